package study

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Verdict answers in words whether ECS-DBN is right for a set, by the summaries of
// the methods on it; empty without those of ecs-dbn and another method.
//
// Methods within a margin of each other are as good. The margin is the greatest of
// the deviations over trials of the two and of the standard error that the G-mean
// of ecs-dbn has from so few rows, each taken as drawn by itself:
//
//	G/2·√((1−r)/(r·n₁) + (1−s)/(s·n₀))
//
// with recall r of n₁ rare and specificity s of n₀ frequent rows, both with one
// success and one failure added.
func Verdict(s *Set, all []Summary) string {
	at := slices.IndexFunc(all, func(m Summary) bool { return m.Method == "ecs-dbn" })
	if at < 0 || len(all) < 2 {
		return ""
	}
	ecs := all[at]
	var n [2]float64
	for _, label := range s.Y {
		n[label]++
	}
	least := standardError(ecs, n)
	margin := func(m Summary) float64 { return max(least, ecs.SD, m.SD) }
	var better, equal []string // best first, as all are
	most := ecs.GMean
	for i, m := range all {
		switch d := m.GMean - ecs.GMean; {
		case i == at:
		case d > margin(m):
			better = append(better, fmt.Sprintf("%s (%.3f)", m.Method, m.GMean))
			most = max(most, m.GMean)
		case d >= -margin(m):
			equal = append(equal, m.Method)
		}
	}

	const coin = 0.5 // G-mean of deciding at random
	var b strings.Builder
	b.WriteString("Is ECS-DBN right for this table? ")
	switch {
	case most-least <= coin:
		fmt.Fprintf(&b, "No, and nothing here is: its G-mean of %.3f is no more than what tossing a coin has, 0.5. The columns do not tell the classes apart, or the rows are too few.\n", ecs.GMean)
	case better != nil:
		fmt.Fprintf(&b, "No: better than its %.3f by G-mean are %s.\n", ecs.GMean, strings.Join(better, ", "))
	case equal != nil:
		fmt.Fprintf(&b, "Yes, no method is better; but as good are %s.\n", strings.Join(equal, ", "))
	default:
		b.WriteString("Yes: it is better than every other method.\n")
	}
	fmt.Fprintf(&b, "Of 100 rows of %[1]s it finds %.0[2]f; of 100 others it takes %.0[3]f for %[1]s.\n", s.Rare, 100*ecs.Recall, 100*(1-ecs.Specificity))
	if i := slices.IndexFunc(all, func(m Summary) bool { return m.Method == "dbn" }); i >= 0 {
		if d := ecs.GMean - all[i].GMean; d > margin(all[i]) {
			fmt.Fprintf(&b, "Costs are worth %.3f: the same network without them, dbn, has %.3f.\n", d, all[i].GMean)
		} else {
			b.WriteString("Costs are worth nothing: the same network without them, dbn, is as good or better.\n")
		}
	}
	fmt.Fprintf(&b, "A difference of less than %.3f is none, for only %.0f rows are of %s. Forests and boosting are not among the methods.\n", least, n[1], s.Rare)
	return b.String()
}

// standardError is that of a G-mean on n rows of the classes, see Verdict.
func standardError(m Summary, n [2]float64) float64 {
	r, s := (m.Recall*n[1]+1)/(n[1]+2), (m.Specificity*n[0]+1)/(n[0]+2)
	return math.Sqrt(r*s) / 2 * math.Sqrt((1-r)/(r*n[1])+(1-s)/(s*n[0]))
}

package study

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Verdict answers in words whether ECS-DBN is right for a set, by the cells of the
// methods on it; empty without cells of ecs-dbn and of another method. Methods within the margin of each other, see
// Recommend, are as good.
func Verdict(s *Set, cells []Cell) string {
	return newJudgement(s, cells).sentences(Summarise(cells, s.Groups != nil))
}

// find returns the summary of a method, and whether there is one.
func find(all []Summary, method string) (Summary, bool) {
	i := slices.IndexFunc(all, func(m Summary) bool { return m.Method == method })
	if i < 0 {
		return Summary{}, false
	}
	return all[i], true
}

func (j *judgement) sentences(all []Summary) string {
	ecs, ok := find(all, Control)
	if !ok || len(all) < 2 {
		return ""
	}
	var better, equal []string // best first, as all are
	most, least, greatest := ecs.GMean, math.Inf(1), 0.
	for _, m := range all {
		if m.Method == Control {
			continue
		}
		margin := j.margin(ecs, m)
		least, greatest = min(least, margin), max(greatest, margin)
		switch d := m.GMean - ecs.GMean; {
		case d > margin:
			better = append(better, fmt.Sprintf("%s (%.3f)", m.Method, m.GMean))
			most = max(most, m.GMean)
		case d >= -margin:
			equal = append(equal, m.Method)
		}
	}

	s := j.set
	few, reason := "the rows", fmt.Sprintf("%d rows are of %s", s.RareRows(), s.Rare)
	if s.Groups != nil {
		few, reason = "the groups", fmt.Sprintf("%d parts were held out", len(s.Folds))
	}
	var b strings.Builder
	b.WriteString("Is ECS-DBN right for this table? ")
	switch own := j.own(ecs); {
	case math.IsInf(own, 1):
		fmt.Fprintf(&b, "The data does not show it: rows of %s, or all others, are in only one of the %d parts held out. It takes more groups that have both.\n", s.Rare, len(s.Folds))
		return b.String()
	case most-own <= coin:
		fmt.Fprintf(&b, "No, and nothing here is: its G-mean of %.3f is not above a tossed coin's, 0.5. The columns do not tell the classes apart, or %s are too few.\n", ecs.GMean, few)
	case better != nil:
		fmt.Fprintf(&b, "No: better than its %.3f by G-mean are %s.\n", ecs.GMean, strings.Join(better, ", "))
	case equal != nil:
		fmt.Fprintf(&b, "Yes, no method is better; but as good, as far as the data shows, are %s.\n", strings.Join(equal, ", "))
	default:
		b.WriteString("Yes: it is better than every other method.\n")
	}
	fmt.Fprintf(&b, "Of 100 rows of %[1]s it finds %.0[2]f; of 100 others it takes %.0[3]f for %[1]s.\n", s.Rare, 100*ecs.Recall, 100*(1-ecs.Specificity))
	span := fmt.Sprintf("%.3f", greatest)
	if from := fmt.Sprintf("%.3f", least); from != span {
		span = from + " to " + span + ", by method,"
	}
	fmt.Fprintf(&b, "A difference of less than %s does not count, because only %s. Boosting is not among the methods.\n", span, reason)
	return b.String()
}

// binomial returns the standard error that the G-mean of a method
// has from so few rows, each taken as drawn by itself (delta method):
//
//	G/2·√((1−r)/(r·n₁) + (1−s)/(s·n₀))
//
// with recall r of n₁ rare and specificity s of n₀ frequent rows, both with one
// success and one failure added.
func binomial(s *Set, m Summary) float64 {
	n1 := float64(s.RareRows())
	n0 := float64(len(s.Y)) - n1
	r, f := (m.Recall*n1+1)/(n1+2), (m.Specificity*n0+1)/(n0+2)
	return math.Sqrt(r*f) / 2 * math.Sqrt((1-r)/(r*n1)+(1-f)/(f*n0))
}

// leftOutOneByOne returns, for every method, its G-mean without each of n folds.
func leftOutOneByOne(cells []Cell, n int) map[string][]float64 {
	without := make(map[string][]float64)
	for fold := 1; fold <= n; fold++ {
		for _, m := range Summarise(slices.DeleteFunc(slices.Clone(cells), func(c Cell) bool { return c.Fold == fold }), true) {
			without[m.Method] = append(without[m.Method], m.GMean)
		}
	}
	return without
}

// jackknife returns the standard error of a figure that comes from the choice of groups, of
// which every one of n folds holds out some. Rows of a group resemble each other, so
// that they count for less than as many rows drawn by themselves. With d₍ᵢ₎ the
// figure without fold i and d̄ their mean, it is √((n−1)/n·Σ(d₍ᵢ₎−d̄)²) (Efron and
// Stein, The Jackknife Estimate of Variance, 1981): infinite if one class is in one
// fold only.
func jackknife(d []float64) float64 {
	n := float64(len(d))
	var centre, square float64
	for _, v := range d {
		centre += v / n
	}
	for _, v := range d {
		square += (v - centre) * (v - centre)
	}
	if se := math.Sqrt(square * (n - 1) / n); se == se {
		return se
	}
	return math.Inf(1)
}

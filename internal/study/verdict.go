package study

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Verdict answers in words whether ECS-DBN is right for a set, by the cells of the
// methods on it; empty without cells of ecs-dbn and of another method.
//
// Methods within a margin of each other are as good. The margin is the greatest of
// the deviations over trials of the two and of
//
//   - twice the standard error of the difference between the two, if rows have
//     groups: how far it may be another with other such groups, see jackknife;
//   - else the standard error of the G-mean of ecs-dbn, see binomial, for two methods
//     are mostly wrong on the same rows.
func Verdict(s *Set, cells []Cell) string {
	all := Summarise(cells, s.Groups != nil)
	if s.Groups == nil {
		return sentences(s, all, binomial(s, all))
	}
	margin := jackknife(cells, len(s.Folds))
	for method := range margin {
		margin[method] *= 2
	}
	return sentences(s, all, margin)
}

// margins are of the difference in G-mean between a method, by its name, and
// ecs-dbn; under its own name, of the G-mean of ecs-dbn.
type margins map[string]float64

// find returns the summary of a method, and whether there is one.
func find(all []Summary, method string) (Summary, bool) {
	i := slices.IndexFunc(all, func(m Summary) bool { return m.Method == method })
	if i < 0 {
		return Summary{}, false
	}
	return all[i], true
}

func sentences(s *Set, all []Summary, least margins) string {
	ecs, ok := find(all, Control)
	if !ok || len(all) < 2 {
		return ""
	}
	within := func(m Summary) float64 { return max(least[m.Method], ecs.SD, m.SD) }
	var better, equal []string // best first, as all are
	most := ecs.GMean
	for _, m := range all {
		switch d := m.GMean - ecs.GMean; {
		case m.Method == Control:
		case d > within(m):
			better = append(better, fmt.Sprintf("%s (%.3f)", m.Method, m.GMean))
			most = max(most, m.GMean)
		case d >= -within(m):
			equal = append(equal, m.Method)
		}
	}

	few, reason := "the rows", fmt.Sprintf("%d rows are of %s", s.RareRows(), s.Rare)
	if s.Groups != nil {
		few, reason = "the groups", fmt.Sprintf("%d parts were held out", len(s.Folds))
	}
	var b strings.Builder
	b.WriteString("Is ECS-DBN right for this table? ")
	switch {
	case math.IsInf(least[Control], 1):
		fmt.Fprintf(&b, "The data does not show it: rows of %s, or all others, are in only one of the %d parts held out. It takes more groups that have both.\n", s.Rare, len(s.Folds))
		return b.String()
	case most-least[Control] <= coin:
		fmt.Fprintf(&b, "No, and nothing here is: its G-mean of %.3f is not above a tossed coin's, 0.5. The columns do not tell the classes apart, or %s are too few.\n", ecs.GMean, few)
	case better != nil:
		fmt.Fprintf(&b, "No: better than its %.3f by G-mean are %s.\n", ecs.GMean, strings.Join(better, ", "))
	case equal != nil:
		fmt.Fprintf(&b, "Yes, no method is better; but as good, as far as the data shows, are %s.\n", strings.Join(equal, ", "))
	default:
		b.WriteString("Yes: it is better than every other method.\n")
	}
	fmt.Fprintf(&b, "Of 100 rows of %[1]s it finds %.0[2]f; of 100 others it takes %.0[3]f for %[1]s.\n", s.Rare, 100*ecs.Recall, 100*(1-ecs.Specificity))
	if dbn, ok := find(all, "dbn"); ok {
		switch d := ecs.GMean - dbn.GMean; {
		case d > within(dbn):
			fmt.Fprintf(&b, "Costs are worth %.3f: the same network without them, dbn, has %.3f.\n", d, dbn.GMean)
		case d > 0:
			fmt.Fprintf(&b, "The data does not show whether costs are worth anything: the same network without them, dbn, has %.3f.\n", dbn.GMean)
		default:
			b.WriteString("Costs are worth nothing: the same network without them, dbn, is as good or better.\n")
		}
	}
	fmt.Fprintf(&b, "A difference of less than %s does not count, because only %s. Boosting is not among the methods.\n", least, reason)
	return b.String()
}

// String returns the least and the greatest margin of a difference.
func (m margins) String() string {
	least, most := math.Inf(1), 0.
	for method, v := range m {
		if method != Control {
			least, most = min(least, v), max(most, v)
		}
	}
	from, to := fmt.Sprintf("%.3f", least), fmt.Sprintf("%.3f", most)
	if from == to {
		return to
	}
	return from + " to " + to + ", by method,"
}

// binomial returns, for every method, the standard error of the G-mean of ecs-dbn, see
// binomialOf.
func binomial(s *Set, all []Summary) margins {
	ecs, _ := find(all, Control)
	one := binomialOf(s, ecs)
	se := make(margins)
	for _, m := range all {
		se[m.Method] = one
	}
	return se
}

// binomialOf returns the standard error that the G-mean of a method
// has from so few rows, each taken as drawn by itself (delta method):
//
//	G/2·√((1−r)/(r·n₁) + (1−s)/(s·n₀))
//
// with recall r of n₁ rare and specificity s of n₀ frequent rows, both with one
// success and one failure added.
func binomialOf(s *Set, m Summary) float64 {
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

// jackknife returns the standard errors, by the choice of groups, of the difference between
// each method and ecs-dbn, and of the G-mean of ecs-dbn itself, see jackknifeOf.
func jackknife(cells []Cell, n int) margins {
	without := leftOutOneByOne(cells, n)
	se := make(margins)
	for method, g := range without {
		d := slices.Clone(g)
		for i := range d {
			if ecs := without[Control]; ecs != nil && method != Control {
				d[i] -= ecs[i]
			}
		}
		se[method] = jackknifeOf(d)
	}
	return se
}

// jackknifeOf returns the standard error of a figure that comes from the choice of groups, of
// which every one of n folds holds out some. Rows of a group resemble each other, so
// that they count for less than as many rows drawn by themselves. With d₍ᵢ₎ the
// figure without fold i and d̄ their mean, it is √((n−1)/n·Σ(d₍ᵢ₎−d̄)²) (Efron and
// Stein, The Jackknife Estimate of Variance, 1981): infinite if one class is in one
// fold only.
func jackknifeOf(d []float64) float64 {
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

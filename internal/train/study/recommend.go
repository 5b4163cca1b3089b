package study

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/flank-tcm/flank/pkg/classify"
)

// coin is the G-mean of deciding at random.
const coin = 0.5

// Recommend says in one sentence which method to deploy for a set, by the cells of the methods
// on it: the simplest of those whose G-mean is within the margin of the best; or none, if the best
// one's is not above a coin's by more than its margin. A method with a lower G-mean than one that
// is as simple, or simpler, is not considered: scatter alone would keep it within the margin. It is
// empty without cells of two methods.
//
// The margin of a difference is the greatest of the deviations over trials and twice the standard
// error of the difference between the two over groups (see jackknife), or without groups the standard
// error of the best method's G-mean (see binomial), for two methods are mostly wrong on the same rows.
func Recommend(s *Set, cells []Cell) string {
	all := Summarise(cells, s.Groups != nil)
	if len(all) < 2 {
		return ""
	}
	best := all[0]
	j := newJudgement(s, cells)
	own := j.own(best)
	over := fmt.Sprintf("over %s", s.parts())
	switch {
	case math.IsInf(own, 1) || own != own:
		return fmt.Sprintf("Deploy none of these methods yet: rows of %s, or all others, are in only one of %s, so the data does not show how any method does on the next one; add more that have both.\n", s.Rare, s.parts())
	case !(best.GMean-own > coin):
		return fmt.Sprintf("Deploy none of these methods yet: the best, %s, has a G-mean of %.2f, which is not above a tossed coin's, 0.5, by more than chance (±%.2f %s).\n", of(best.Method).called, best.GMean, own, over)
	}
	chosen, simplest := best, of(best.Method).simple
	for _, m := range all[1:] { // the best first: what is not simpler than all before it is worse for nothing
		if of(m.Method).simple >= simplest {
			continue
		}
		simplest = of(m.Method).simple
		if best.GMean-m.GMean <= j.margin(best, m) {
			chosen = m
		}
	}
	if chosen.Method != best.Method {
		return fmt.Sprintf("Deploy %s: its G-mean of %.3f is within chance of the best, %s, which is ahead by %s %s, and it is simpler.\n",
			of(chosen.Method).called, chosen.GMean, of(best.Method).called, j.difference(best, chosen), over)
	}
	other := j.rival(all, chosen)
	text := fmt.Sprintf("Deploy %s: its G-mean of %.3f is ahead of %s by %s %s", of(chosen.Method).called, chosen.GMean, of(other.Method).called, j.difference(chosen, other), over)
	switch {
	case of(chosen.Method).simple < of(other.Method).simple:
		text += ", and it is simpler"
	case of(chosen.Method).simple > of(other.Method).simple:
		text += ", and no simpler method comes as near"
	}
	return text + ".\n"
}

// parts says in words what was held out.
func (s *Set) parts() string {
	if s.Groups == nil {
		return fmt.Sprintf("%d rows of the rare class", s.RareRows())
	}
	_, groups := classify.NumberGroups(s.Groups)
	n, kind := len(groups), cmp.Or(s.Kind, "group")
	if n == len(s.Folds) {
		return fmt.Sprintf("%d %ss", n, kind)
	}
	return fmt.Sprintf("%d parts of %d %ss", len(s.Folds), n, kind)
}

// judgement knows how far differences between methods count.
type judgement struct {
	set     *Set
	without map[string][]float64 // by method: the G-mean without each fold, if rows have groups
}

func newJudgement(s *Set, cells []Cell) *judgement {
	j := &judgement{set: s}
	if s.Groups != nil {
		j.without = leftOutOneByOne(cells, len(s.Folds))
	}
	return j
}

// own returns the margin of a method's G-mean.
func (j *judgement) own(m Summary) float64 {
	if j.without == nil {
		return max(m.SD, 2*binomial(j.set, m))
	}
	return max(m.SD, 2*jackknife(j.without[m.Method]))
}

// margin returns the margin of the difference between the best method, or the one in question, and another.
func (j *judgement) margin(best, other Summary) float64 {
	if j.without == nil {
		return max(best.SD, other.SD, binomial(j.set, best))
	}
	d := slices.Clone(j.without[best.Method])
	for i, v := range j.without[other.Method] {
		d[i] -= v
	}
	return max(best.SD, other.SD, 2*jackknife(d))
}

// difference says by how much a is ahead of b, and from where to where that may be.
func (j *judgement) difference(a, b Summary) string {
	d, m := a.GMean-b.GMean, j.margin(a, b)
	return fmt.Sprintf("%.3f (%.3f to %.3f)", d, d-m, d+m)
}

// rival returns the method that the best one is compared with in words: ECS-DBN if it is not
// that one, else the best of the simpler ones, or of all others.
func (j *judgement) rival(all []Summary, best Summary) Summary {
	if m, ok := find(all, Control); ok && best.Method != Control {
		return m
	}
	for _, m := range all[1:] {
		if of(m.Method).simple < of(best.Method).simple {
			return m
		}
	}
	return all[1]
}

package kernel

import (
	"math"
	"sort"
)

// SortedOdds is the rows of two classes, in order of their odds P1/P0. It never
// changes and may be used by several goroutines.
type SortedOdds struct {
	odds [2][]float64 // ascending, of the rows of class 0 and of class 1
	thin [2][]float64 // the odds that shares are taken from
}

// representatives is how many rows of a class its mean share is taken from: if
// it has more, the middles of as many equal parts of their order.
const representatives = 2048

// NewSortedOdds takes the odds of the rows of each class, in any order, from 0 to +Inf.
// They belong to the SortedOdds from then on.
func NewSortedOdds(odds0, odds1 []float64) *SortedOdds {
	p := &SortedOdds{odds: [2][]float64{sortOdds(odds0), sortOdds(odds1)}}
	for k, odds := range p.odds {
		p.thin[k] = thin(odds, representatives)
	}
	return p
}

// Odds returns the odds of the rows of class k in ascending order. They must not
// be changed.
func (p *SortedOdds) Odds(k int) []float64 { return p.odds[k] }

// Count stores in t what the weights w0 and w1 give, shares only if soft. Rows
// whose two weighted posteriors agree to the last bits of a float64 may count
// for either side.
func (p *SortedOdds) Count(t *Tally, w0, w1 float64, soft bool) {
	cut := w0 / w1 // decided for class 1 above
	if w1 == 0 {
		cut = math.Inf(1)
	}
	above := func(odds []float64) int {
		return len(odds) - sort.Search(len(odds), func(i int) bool { return odds[i] > cut })
	}
	t.Right[0] = len(p.odds[0]) - above(p.odds[0])
	t.Right[1] = above(p.odds[1])
	if !soft {
		return
	}
	var sum [2]float64
	for _, odds := range p.thin[0] {
		if w := w0 + odds*w1; w > 0 {
			sum[0] += w0 / w
		}
	}
	for _, odds := range p.thin[1] {
		if w := w0 + odds*w1; math.IsInf(w, 1) {
			sum[1]++
		} else if w > 0 {
			sum[1] += odds * w1 / w
		}
	}
	for k, s := range sum {
		t.Share[k] = s / float64(max(len(p.thin[k]), 1))
	}
}

// Best returns the logarithms of the bounds of the interval of cuts on which the
// product of the rows of either class that are decided right is greatest among
// all cuts, and that product: class 1 is decided for where the odds are above
// the cut. Between two neighbouring odds all cuts decide alike, so one sweep over
// the rows sees all there are. Cuts are looked for within ±limit; of equal
// intervals it takes the widest, and ±limit if no product is positive.
func (p *SortedOdds) Best(limit float64) (low, high float64, product int) {
	a, b := p.odds[0], p.odds[1]
	least, greatest := math.Exp(-limit), math.Exp(limit)
	from, to := least, greatest // odds around the best interval so far
	i, j := 0, 0
	keep := func(odds, next float64, now int) {
		odds = max(odds, least)
		if odds < next && (now > product || next*from > to*odds) {
			from, to, product = odds, next, now
		}
	}
	for i < len(a) && j < len(b) {
		// Which class is next is a coin toss where they overlap, and a branch on
		// that would be mispredicted half the time. Bits of such floats order as
		// they do, so the sign of a difference steps one index or the other.
		x, y := math.Float64bits(a[i]), math.Float64bits(b[j])
		second := int((y - x) >> 63) // 1 if y < x
		i += 1 - second
		j += second
		now := i * (len(b) - j)
		if now < max(product, 1) {
			continue
		}
		next := upTo(a, i, upTo(b, j, greatest))
		keep(math.Float64frombits(min(x, y)), next, now)
	}
	// When either class is used up, what follows is less and less, but what came
	// before may have been beyond the limit.
	for ; j+1 < len(b) && i*(len(b)-j-1) > product; j++ {
		keep(b[j], min(b[j+1], greatest), i*(len(b)-j-1))
	}
	if product == 0 {
		return -limit, limit, 0
	}
	return math.Log(from), math.Log(to), product
}

// upTo returns the value at i, if there is one that is below the greatest.
func upTo(odds []float64, i int, greatest float64) float64 {
	if i < len(odds) {
		return min(greatest, odds[i])
	}
	return greatest
}

// BestOf is Best for any other value of the numbers of rows of class 0 and of
// class 1 that are decided right, and returns the greatest value.
func (p *SortedOdds) BestOf(limit float64, value func(right0, right1 int) float64) (low, high, most float64) {
	a, b := p.odds[0], p.odds[1]
	least, greatest := math.Exp(-limit), math.Exp(limit)
	low, high, most = least, least, math.Inf(-1)
	i, j := 0, 0
	for cut := least; cut < greatest; {
		for i < len(a) && a[i] <= cut {
			i++
		}
		for j < len(b) && b[j] <= cut {
			j++
		}
		next := upTo(a, i, upTo(b, j, greatest))
		if now := value(i, len(b)-j); now > most || now == most && next*low > high*cut {
			low, high, most = cut, next, now
		}
		cut = next
	}
	return math.Log(low), math.Log(high), most
}

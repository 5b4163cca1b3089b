// Package firstday says how much a tool differs from its own first windows, and from where on that is more than healthy tools
// did: what can be said of a tool while no worn one was ever seen. It knows no wear, so what it finds is different, not worn.
//
// The level of a tool is how much its leading sensor reads more than it did when the tool was new, in nepers: the logarithm of a
// ratio, ln 2 = 0.69 where the amplitude has doubled. The leading sensor is the one whose columns follow the lives of the first
// tools most steadily (package stability), which takes no label. A limit in units of healthy spread would need to know how far a
// worn tool is from healthy ones; a ratio is known before: see Least.
package firstday

import (
	"cmp"
	"math"
	"slices"

	"github.com/flank-tcm/flank/pkg/score/stability"
)

// What a tool is different by: an amplitude that has doubled, and a share of what healthy lives reached. Both were chosen on
// simulated drills; docs/figures/first-day.md has what they do to other tools.
const (
	Least = math.Ln2 // neper
	Share = 0.8
)

// Level computes the level of rows.
type Level struct {
	Sensor  string
	Columns []int     // of the sensor, that follow lives, the steadiest first
	Weights []float64 // of Columns: nepers of the level for one unit of the column; below 0 for a column that falls
}

// Lead returns the level of the sensor whose columns have the greatest Σw², of equals the first one; false if no column of a
// sensor has a weight. Nepers has, for each column, what its unit is in nepers of amplitude, and 0 for a column that is no
// amplitude. With w_j the weight of column j and m_j its mean correlation, x_j relative to the tool's reference,
//
//	level = Σ w_j·sign(m_j)·nepers_j·x_j / Σ w_j.
func Lead(of *stability.Columns, sensors []stability.Sensor, nepers []float64) (Level, bool) {
	weights := make([]float64, len(of.Weight))
	for j, w := range of.Weight {
		if nepers[j] != 0 {
			weights[j] = w
		}
	}
	if len(sensors) == 0 {
		return Level{}, false
	}
	best := slices.MaxFunc(sensors, func(a, b stability.Sensor) int { return cmp.Compare(a.Share(weights), b.Share(weights)) })
	l := Level{Sensor: best.Name}
	sum := 0.0
	for _, j := range best.Columns {
		if weights[j] > 0 {
			l.Columns = append(l.Columns, j)
			sum += weights[j]
		}
	}
	slices.SortStableFunc(l.Columns, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	for _, j := range l.Columns {
		l.Weights = append(l.Weights, math.Copysign(weights[j]*nepers[j]/sum, of.Mean[j]*nepers[j]))
	}
	return l, len(l.Columns) > 0
}

// Of returns the level of a row of features relative to the tool's reference. A missing value, NaN, is left out, and the others
// weigh so much more; it is NaN if all are missing.
func (l Level) Of(row []float32) float64 {
	var sum, seen, all float64
	for k, j := range l.Columns {
		w := math.Abs(l.Weights[k])
		all += w
		if v := float64(row[j]); v == v {
			sum += l.Weights[k] * v
			seen += w
		}
	}
	return sum * all / seen // 0/0 is NaN
}

// Reach returns the greatest level that k of n consecutive levels reached together in a life: an alarm at k of n windows whose
// limit is below it is raised, and no other one. Levels that are NaN are passed over. It is −Inf for a life of fewer than k levels.
func Reach(levels []float64, k, n int) float64 {
	most := math.Inf(-1)
	var last, sorted []float64
	for _, v := range levels {
		if v != v {
			continue
		}
		if last = append(last, v); len(last) > n {
			last = last[1:]
		}
		if len(last) >= k {
			sorted = append(sorted[:0], last...)
			slices.Sort(sorted)
			most = max(most, sorted[len(sorted)-k])
		}
	}
	return most
}

// Limit returns the level from which on a tool is different, given what healthy lives reached: a share of their mean, and at least
// least. Lives that reached −Inf say nothing. (A mean, as the greatest would let one odd life hide all worn tools.)
func Limit(reached []float64, share, least float64) float64 {
	sum, n := 0.0, 0.0
	for _, r := range reached {
		if !math.IsInf(r, -1) {
			sum += r
			n++
		}
	}
	if n == 0 {
		return least
	}
	return max(least, share*sum/n)
}

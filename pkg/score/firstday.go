package score

import (
	"cmp"
	"math"
	"slices"
)

// How much a tool differs from its own first windows, and from where on that is more than healthy tools
// did is what can be said of a tool while no worn one was ever seen. It knows no wear, so what it finds is different, not worn.
//
// The level of a tool is how much its leading sensor reads more than it did when the tool was new, in nepers: the logarithm of a
// ratio, ln 2 = 0.69 where the amplitude has doubled. The leading sensor is the one whose columns follow the lives of the first
// tools most steadily ([Columns]), which takes no label. A limit in units of healthy spread would need to know how far a
// worn tool is from healthy ones; a ratio is known before: see LeastDifferent.

// What a tool is different by: an amplitude that has doubled, and a share of what healthy lives reached. Both were chosen on
// simulated drills; docs/figures/first-day.md has what they do to other tools.
const (
	LeastDifferent = math.Ln2 // neper
	ShareDifferent = 0.8
)

// Level computes the level of rows.
type Level struct {
	Sensor  string    `json:"sensor"`
	Columns []int     `json:"columns"` // of the sensor, that follow lives, the steadiest first
	Weights []float64 `json:"weights"` // of Columns: nepers of the level for one unit of the column; below 0 for a column that falls
}

// Lead returns the level of the sensor whose columns have the greatest Σw², of equals the first one; false if no column of a
// sensor has a weight. Nepers has, for each column, what its unit is in nepers of amplitude, and 0 for a column that is no
// amplitude. With w_j the weight of column j and m_j its mean correlation, x_j relative to the tool's reference,
//
//	level = Σ w_j·sign(m_j)·nepers_j·x_j / Σ w_j.
func Lead(of *Columns, sensors []Sensor, nepers []float64) (Level, bool) {
	weights := make([]float64, len(of.Weight))
	for j, w := range of.Weight {
		if nepers[j] != 0 {
			weights[j] = w
		}
	}
	if len(sensors) == 0 {
		return Level{}, false
	}
	best := slices.MaxFunc(sensors, func(a, b Sensor) int { return cmp.Compare(a.Share(weights), b.Share(weights)) })
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
	sum, of := 0.0, l.present(row)
	for k, j := range l.Columns {
		if v := float64(row[j]); v == v {
			sum += l.Weights[k] * v
		}
	}
	return sum * of // 0·∞ is NaN
}

// Parts returns what each feature of the row adds to its level; the parts of all features are the level, unless that is NaN.
func (l Level) Parts(row []float32) []float64 {
	parts, of := make([]float64, len(row)), l.present(row)
	for k, j := range l.Columns {
		if v := float64(row[j]); v == v {
			parts[j] = l.Weights[k] * v * of
		}
	}
	return parts
}

// present returns how much more the columns count that a row has: the sum of all weights over the sum of theirs.
func (l Level) present(row []float32) float64 {
	var seen, all float64
	for k, j := range l.Columns {
		w := math.Abs(l.Weights[k])
		if all += w; row[j] == row[j] {
			seen += w
		}
	}
	return all / seen
}

// ReachedLevel returns the greatest level that k of n consecutive levels reached together in a life: an alarm at k of n windows whose
// limit is below it is raised, and no other one. Levels that are NaN are passed over. It is −Inf for a life of fewer than k levels.
func ReachedLevel(levels []float64, k, n int) float64 {
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

// FirstAbove returns the index of the level with which k of the last n are above the limit for the first time, −1 if that never
// happens. Levels that are NaN are passed over.
func FirstAbove(levels []float64, k, n int, limit float64) int {
	var last []bool
	above := 0
	for i, v := range levels {
		if v != v {
			continue
		}
		if last = append(last, v > limit); v > limit {
			above++
		}
		if len(last) > n && last[len(last)-1-n] {
			above--
		}
		if above >= k {
			return i
		}
	}
	return -1
}

// leastTrend is of how many levels a trend is at least, and rising the least z of Kendall's test of it: 1 %, one-sided.
const leastTrend, rising = 10, 2.326

// WindowsLeft returns after how many more levels the limit is reached if they go on rising as these: by the median of the slopes of all
// pairs, from the median of the last five (P. K. Sen, "Estimates of the Regression Coefficient Based on Kendall's Tau", JASA 63,
// 1968, 1379–1389). It is false if they do not rise by Kendall's test, are fewer than ten, or have reached the limit.
func WindowsLeft(levels []float64, limit float64) (n float64, ok bool) {
	if len(levels) < leastTrend {
		return 0, false
	}
	var slopes []float64
	score := 0.0
	for i, a := range levels {
		for k, b := range levels[i+1:] {
			slopes = append(slopes, (b-a)/float64(k+1))
			score += float64(cmp.Compare(b, a))
		}
	}
	size := float64(len(levels))
	slope, now := median(slopes), median(slices.Clone(levels[len(levels)-5:]))
	if score < rising*math.Sqrt(size*(size-1)*(2*size+5)/18) || !(slope > 0) || now >= limit {
		return 0, false
	}
	return (limit - now) / slope, true
}

// median sorts x and returns its median.
func median(x []float64) float64 {
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// DifferenceLimit returns the level from which on a tool is different, given what healthy lives reached: a share of their mean, and at least
// least. Lives that reached −Inf say nothing. (A mean, as the greatest would let one odd life hide all worn tools.)
func DifferenceLimit(reached []float64, share, least float64) float64 {
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

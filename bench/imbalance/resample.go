package imbalance

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// resampler returns the rows of x and their classes y with rows of the smaller
// class made up behind them, so that it has about as many as the larger one. It
// changes neither x nor y.
//
// Resamplers do what imbalanced-learn's do, with its defaults (G. Lemaître,
// F. Nogueira and C. Aridas, JMLR 18(17), 2017): five neighbours, ten to tell
// where a row stands. Distances are Euclidean, so columns should be standardised.
type resampler func(x dbn.Matrix, y []int, rng *rand.Rand) (dbn.Matrix, []int)

var resamplers = []struct {
	name     string
	resample resampler
}{
	{"smote-dbn", smote},
	{"adasyn-dbn", ADASYN},
	{"smote-borderline1-dbn", borderline1},
	{"smote-borderline2-dbn", borderline2},
	{"smote-svm-dbn", svmsmote},
}

const (
	fewNeighbours  = 5  // between which rows are made up
	manyNeighbours = 10 // decide whether a row is in danger
)

type lack struct {
	class      int
	rows       []int // of the class
	everything []int // all rows
	need       int
}

func lackOf(y []int) lack {
	var rows [2][]int
	l := lack{class: 1}
	for i, label := range y {
		rows[label] = append(rows[label], i)
		l.everything = append(l.everything, i)
	}
	if len(rows[0]) < len(rows[1]) {
		l.class = 0
	}
	l.rows = rows[l.class]
	l.need = len(rows[1-l.class]) - len(l.rows)
	return l
}

// smote makes up rows on the lines between rows of the smaller class and their
// neighbours of that class. (N. Chawla, K. Bowyer, L. Hall and W. Kegelmeyer,
// "SMOTE", JAIR 16, 2002.)
func smote(x dbn.Matrix, y []int, rng *rand.Rand) (dbn.Matrix, []int) {
	l := lackOf(y)
	g := grow(x, y, l)
	g.between(l.rows, neighbours(x, l.rows, l.rows, fewNeighbours), l.need, wholeStep, rng)
	return g.x, g.y
}

// ADASYN is SMOTE with the more rows from a base the more of its neighbours are
// of the larger class; the number of rows made up is right up to rounding. If no
// base has such a neighbour, it is SMOTE. (H. He, Y. Bai, E. Garcia and S. Li,
// "ADASYN", IJCNN 2008.)
func ADASYN(x dbn.Matrix, y []int, rng *rand.Rand) (dbn.Matrix, []int) {
	l := lackOf(y)
	counts := adasynCounts(x, y, l)
	if counts == nil {
		return smote(x, y, rng)
	}
	near := neighbours(x, l.rows, l.rows, fewNeighbours)
	g := grow(x, y, l)
	for i, n := range counts {
		g.between(l.rows[i:i+1], near[i:i+1], n, wholeStep, rng)
	}
	return g.x, g.y
}

// adasynCounts returns how many rows ADASYN makes of each of the smaller class,
// or nil if none has a neighbour of the larger one.
func adasynCounts(x dbn.Matrix, y []int, l lack) []int {
	share := make([]float64, len(l.rows))
	var sum float64
	for i, near := range neighbours(x, l.rows, l.everything, fewNeighbours) {
		share[i] = float64(others(y, near, l.class)) / fewNeighbours
		sum += share[i]
	}
	if sum == 0 {
		return nil
	}
	counts := make([]int, len(share))
	for i := range share {
		counts[i] = int(math.RoundToEven(share[i] / sum * float64(l.need)))
	}
	return counts
}

// borderline1 is SMOTE from bases in danger only: rows of which half the
// neighbours or more, but not all, are of the larger class. If there are none, it
// makes up nothing. (H. Han, W. Wang and B. Mao, "Borderline-SMOTE", ICIC 2005.)
func borderline1(x dbn.Matrix, y []int, rng *rand.Rand) (dbn.Matrix, []int) {
	l := lackOf(y)
	return borderline(x, y, l, l.rows, wholeStep, rng)
}

// borderline2 is borderline1 with neighbours of either class, towards rows of
// the larger one at most half-way.
func borderline2(x dbn.Matrix, y []int, rng *rand.Rand) (dbn.Matrix, []int) {
	l := lackOf(y)
	return borderline(x, y, l, l.everything, func(neighbour int, rng *rand.Rand) float64 {
		u := rng.Float64()
		if y[neighbour] != l.class {
			u *= rng.Float64() / 2
		}
		return u
	}, rng)
}

func borderline(x dbn.Matrix, y []int, l lack, among []int, step func(neighbour int, rng *rand.Rand) float64, rng *rand.Rand) (dbn.Matrix, []int) {
	g := grow(x, y, l)
	if danger, _ := standing(x, y, l.rows, l); len(danger) > 0 {
		g.between(danger, neighbours(x, danger, among, fewNeighbours), l.need, step, rng)
	}
	return g.x, g.y
}

// standing returns which of the rows given are in danger, see Borderline1, and
// which are safe. Rows all of whose neighbours are of the larger class are noise,
// and neither.
func standing(x dbn.Matrix, y, rows []int, l lack) (danger, safe []int) {
	for i, near := range neighbours(x, rows, l.everything, manyNeighbours) {
		switch n := others(y, near, l.class); {
		case n == len(near):
		case 2*n >= len(near):
			danger = append(danger, rows[i])
		default:
			safe = append(safe, rows[i])
		}
	}
	return danger, safe
}

func others(y, rows []int, class int) int {
	n := 0
	for _, i := range rows {
		if y[i] != class {
			n++
		}
	}
	return n
}

// growing are rows with more being added.
type growing struct {
	x     dbn.Matrix
	y     []int
	class int // of what is added
}

func grow(x dbn.Matrix, y []int, l lack) *growing {
	x.Data = slices.Clip(x.Data) // so that nothing is added in place
	return &growing{x, slices.Clip(y), l.class}
}

// wholeStep leads to any place between a base and its neighbour.
func wholeStep(_ int, rng *rand.Rand) float64 { return rng.Float64() }

// between adds n rows, each a base, drawn at random, and a step of the way to one
// of its neighbours. A base without neighbours is repeated.
func (g *growing) between(bases []int, near [][]int, n int, step func(neighbour int, rng *rand.Rand) float64, rng *rand.Rand) {
	for range n {
		b := rng.IntN(len(bases))
		base := g.x.Row(bases[b])
		row := slices.Clone(base)
		if len(near[b]) > 0 {
			neighbour := near[b][rng.IntN(len(near[b]))]
			u := step(neighbour, rng)
			for j, v := range g.x.Row(neighbour) {
				row[j] += float32(u * (float64(v) - float64(base[j])))
			}
		}
		g.x.Data = append(g.x.Data, row...)
		g.x.Rows++
		g.y = append(g.y, g.class)
	}
}

// neighbours returns for each base, a row of x, the at most k rows among those
// given that are nearest to it, the nearest first, of equals the first. A row is
// not its own neighbour.
func neighbours(x dbn.Matrix, bases, among []int, k int) [][]int {
	type candidate struct {
		row      int
		distance float64
	}
	all := make([][]int, len(bases))
	var near []candidate
	for b, base := range bases {
		near = near[:0]
		for _, i := range among {
			if i == base {
				continue
			}
			limit := math.Inf(1)
			if len(near) == k {
				limit = near[k-1].distance
			}
			c := candidate{i, distanceBelow(x.Row(base), x.Row(i), limit)}
			if c.distance >= limit {
				continue
			}
			at, _ := slices.BinarySearchFunc(near, c, func(a, b candidate) int {
				return cmp.Or(cmp.Compare(a.distance, b.distance), -1) // behind its equals
			})
			if near = slices.Insert(near, at, c); len(near) > k {
				near = near[:k]
			}
		}
		for _, c := range near {
			all[b] = append(all[b], c.row)
		}
	}
	return all
}

// distance returns the squared Euclidean distance.
func distance(a, b []float32) float64 { return distanceBelow(a, b, math.Inf(1)) }

// distanceBelow returns the squared Euclidean distance if it is below the limit,
// and otherwise a value from the limit on: the terms of the sum are not negative,
// so the rest of them cannot bring it back.
func distanceBelow(a, b []float32, limit float64) float64 {
	var sum float64
	for j, v := range a {
		d := float64(v) - float64(b[j])
		sum += d * d
		if sum >= limit {
			break
		}
	}
	return sum
}

// scaling standardises columns by the rows that it was fitted to, for methods that
// measure distances. A missing value becomes the mean, 0; a constant column is 0.
type scaling struct {
	mean, sd []float64
}

// FitScale returns the means and deviations of the columns of x.
func FitScale(x dbn.Matrix) scaling {
	s := scaling{make([]float64, x.Cols), make([]float64, x.Cols)}
	for j := range x.Cols {
		var n float64
		low, high := math.Inf(1), math.Inf(-1)
		for i := range x.Rows {
			if v := float64(x.Row(i)[j]); v == v {
				s.mean[j] += v
				low, high = min(low, v), max(high, v)
				n++
			}
		}
		if !(low < high) {
			continue
		}
		s.mean[j] /= n
		for i := range x.Rows {
			if v := float64(x.Row(i)[j]); v == v {
				s.sd[j] += (v - s.mean[j]) * (v - s.mean[j]) / n
			}
		}
		s.sd[j] = math.Sqrt(s.sd[j])
	}
	return s
}

// Apply returns x standardised.
func (s scaling) Apply(x dbn.Matrix) dbn.Matrix {
	z := dbn.NewMatrix(x.Rows, x.Cols)
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if v == v && s.sd[j] > 0 {
				z.Row(i)[j] = float32((float64(v) - s.mean[j]) / s.sd[j])
			}
		}
	}
	return z
}

// addCopies adds n copies of the rows to train on. In each copy every group reads as if its
// sensors had other gains: its column j is multiplied by exp(σ[j]·z), where z ~ N(0,1) is drawn by
// copy, group and column, in this order, and σ is spread. Copies stay in the group of their
// row, so that a fold holds a tool out with all its copies.
func (t *Task) addCopies(n int, rng *rand.Rand) {
	rows, groups := len(t.Y), slices.Compact(slices.Sorted(slices.Values(t.Groups)))
	sigma := t.spread(groups)
	for range n {
		gains := make(map[string][]float64)
		for _, g := range groups {
			for _, s := range sigma {
				gains[g] = append(gains[g], math.Exp(s*rng.NormFloat64()))
			}
		}
		for i := range rows {
			for j, v := range t.X.Row(i) {
				t.X.Data = append(t.X.Data, float32(float64(v)*gains[t.Groups[i]][j]))
			}
		}
		t.X.Rows += rows
		t.Y, t.Groups = append(t.Y, t.Y[:rows]...), append(t.Groups, t.Groups[:rows]...)
	}
}

// spread returns, by column, the standard deviation between the groups to train on of the
// logarithm of a group's level: the root mean square of its healthy rows, so that wear does not
// count. A level of 0 has no logarithm, and is left out; fewer than two levels have no spread.
func (t *Task) spread(groups []string) []float64 {
	square, healthy := make(map[string][]float64), make(map[string]float64)
	for _, g := range groups {
		square[g] = make([]float64, t.X.Cols)
	}
	for i, g := range t.Groups {
		if t.Y[i] == 0 {
			healthy[g]++
			for j, v := range t.X.Row(i) {
				square[g][j] += float64(v) * float64(v)
			}
		}
	}
	sigma := make([]float64, t.X.Cols)
	for j := range sigma {
		var levels []float64
		for _, g := range groups {
			if square[g][j] > 0 {
				levels = append(levels, math.Log(square[g][j]/healthy[g])/2)
			}
		}
		if len(levels) > 1 {
			sigma[j] = stat.StdDev(levels, nil)
		}
	}
	return sigma
}

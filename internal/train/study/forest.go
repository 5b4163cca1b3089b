package study

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// forestSettings say how a forest is grown.
type forestSettings struct {
	Trees   int  // 0 stands for 100
	Extra   bool // extra trees: all rows for each tree, thresholds drawn at random
	Seed    uint64
	Workers int // goroutines that grow trees; never changes a result
}

const defaultTrees = 100

// fittedForest is trees that vote.
type fittedForest struct{ trees []tree }

// tree is nodes in preorder: the branch of values up to value comes next, the other
// one at right.
type tree []node

// node is a question, or a leaf.
type node struct {
	value  float32 // that the column is compared with; in a leaf the share of class 1
	column int32
	right  int32 // 0: a leaf
}

// fitForest grows trees on the rows of x, which are finite, of classes 0 and 1. Each node
// looks at √p columns drawn at random, more as long as all are constant there, and takes the
// question that leaves the least Gini impurity. Trees go on until leaves are pure.
//
//   - A random forest draws as many rows as there are for each tree, with replacement, and
//     looks for the best threshold of a column.
//   - Extra trees take all rows, and one threshold, drawn evenly between the least and the
//     greatest value that the node has of a column. They do not depend on the order of rows.
//
// A column of more than 256 values is cut into as many bins, of equal numbers of rows, and
// thresholds are between bins: it takes a byte for each value of x, and a node takes time in
// proportion to its rows. Equal seeds give equal forests. It returns an error that wraps
// dbn.ErrOneClass or dbn.ErrNotFinite, or the error of ctx.
//
// Sources: L. Breiman, "Random Forests", Machine Learning 45, 2001; P. Geurts, D. Ernst,
// L. Wehenkel, "Extremely randomized trees", Machine Learning 63, 2006.
func fitForest(ctx context.Context, x dbn.Matrix, y []int, s forestSettings) (*fittedForest, error) {
	if err := dbn.CheckLogistic(x, y); err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	b := newBins(x, max(1, s.Workers))
	f := &fittedForest{trees: make([]tree, cmp.Or(s.Trees, defaultTrees))}
	share(len(f.trees), max(1, s.Workers), func() func(k int) {
		g := newGrower(b, y, s.Extra)
		return func(k int) {
			if ctx.Err() == nil {
				f.trees[k] = g.tree(rand.New(rand.NewPCG(s.Seed, uint64(k))))
			}
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

// share calls do for 0 to n−1 on some goroutines, each with a do of its own.
func share(n, workers int, begin func() (do func(k int))) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, workers) {
		wg.Go(func() {
			do := begin()
			for k := next.Add(1) - 1; k < int64(n); k = next.Add(1) - 1 {
				do(int(k))
			}
		})
	}
	wg.Wait()
}

// Probability returns the mean over trees of the share of class 1 in the leaf of row.
func (f *fittedForest) Probability(row []float32) float64 {
	var sum float64
	for _, t := range f.trees {
		sum += float64(t.at(row))
	}
	return sum / float64(len(f.trees))
}

func (t tree) at(row []float32) float32 {
	i := int32(0)
	for t[i].right != 0 {
		if n := &t[i]; row[n.column] <= n.value {
			i++
		} else {
			i = n.right
		}
	}
	return t[i].value
}

// mostBins is how many bins a column has at most.
const mostBins = 256

// bins holds rows as the numbers of the bins that their values are in.
type bins struct {
	rows    int
	columns []binned
}

type binned struct {
	bin       []uint8   // by row
	low, high []float32 // by bin: the least and the greatest value
}

func newBins(x dbn.Matrix, workers int) *bins {
	b := &bins{rows: x.Rows, columns: make([]binned, x.Cols)}
	share(x.Cols, workers, func() func(int) {
		values := make([]float32, x.Rows)
		return func(j int) {
			for i := range values {
				values[i] = x.Data[i*x.Cols+j]
			}
			b.columns[j] = binColumn(values)
		}
	})
	return b
}

// binColumn puts values into bins: one for each value if there are few enough, else bins
// that equal numbers of rows are in, as far as equal values allow.
func binColumn(values []float32) binned {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	c := binned{bin: make([]uint8, len(values))}
	each := 0 // rows of a bin, at least
	if len(slices.Compact(slices.Clone(sorted))) > mostBins {
		each = (len(sorted) + mostBins - 1) / mostBins
	}
	from := 0
	for i := 1; i <= len(sorted); i++ {
		if i == len(sorted) || sorted[i] != sorted[i-1] && i-from >= each {
			c.low, c.high = append(c.low, sorted[from]), append(c.high, sorted[i-1])
			from = i
		}
	}
	for i, v := range values {
		k, _ := slices.BinarySearch(c.high, v)
		c.bin[i] = uint8(k)
	}
	return c
}

// grower grows trees, one after the other.
type grower struct {
	*bins
	y       []int
	extra   bool
	tries   int      // columns that a node looks at
	order   []int    // of columns, the ones looked at first
	rows    []int32  // of the tree, each once
	weight  []uint64 // by row: how often it was drawn in the upper half, and in the lower if it is of class 1
	counts  [mostBins]uint64
	rng     *rand.Rand
	growing tree
}

func newGrower(b *bins, y []int, extra bool) *grower {
	return &grower{bins: b, y: y, extra: extra, tries: max(1, int(math.Sqrt(float64(len(b.columns))))), weight: make([]uint64, b.rows), order: make([]int, len(b.columns))}
}

// times returns what a row counts that was drawn n times.
func times(n uint64, class int) uint64 { return n<<32 | n*uint64(class) }

func (g *grower) tree(rng *rand.Rand) tree {
	g.rng, g.growing = rng, nil
	for j := range g.order {
		g.order[j] = j
	}
	g.rows = g.rows[:0]
	if g.extra {
		for i, class := range g.y {
			g.weight[i] = times(1, class)
		}
	} else {
		clear(g.weight)
		for range g.y {
			i := rng.IntN(len(g.y))
			g.weight[i] += times(1, g.y[i])
		}
	}
	var sum uint64
	for i, w := range g.weight {
		if w > 0 {
			g.rows = append(g.rows, int32(i))
			sum += w
		}
	}
	g.grow(g.rows, sum)
	return slices.Clip(g.growing)
}

// grow appends the nodes of the rows, whose order it changes and whose weights have the
// given sum.
func (g *grower) grow(rows []int32, sum uint64) {
	at := len(g.growing)
	n, ones := sum>>32, sum&math.MaxUint32
	g.growing = append(g.growing, node{value: float32(float64(ones) / float64(n))})
	if ones == 0 || ones == n {
		return
	}
	q, found := g.split(rows, sum)
	if !found {
		return
	}
	bin := g.columns[q.column].bin
	end := 0
	for k, i := range rows {
		if int(bin[i]) <= q.bin {
			rows[end], rows[k] = i, rows[end]
			end++
		}
	}
	g.growing[at].column, g.growing[at].value = int32(q.column), q.value
	g.grow(rows[:end], q.left)
	g.growing[at].right = int32(len(g.growing))
	g.grow(rows[end:], sum-q.left)
}

// question parts the rows of a node: bins up to bin from the others.
type question struct {
	column, bin int
	value       float32
	left        uint64 // sum of the weights of the rows up to bin
	purity      float64
}

// split returns the best question of the columns drawn.
func (g *grower) split(rows []int32, sum uint64) (best question, found bool) {
	for n := 0; n < len(g.order) && (n < g.tries || !found); n++ {
		k := n + g.rng.IntN(len(g.order)-n)
		g.order[n], g.order[k] = g.order[k], g.order[n]
		j := g.order[n]
		bin := g.columns[j].bin
		low, high := mostBins, -1
		for _, i := range rows {
			b := int(bin[i])
			g.counts[b] += g.weight[i]
			low, high = min(low, b), max(high, b)
		}
		if low < high {
			q := g.best(j, low, high, sum)
			if g.extra {
				q = g.drawn(j, low, high, sum)
			}
			if !found || q.purity > best.purity {
				best, found = q, true
			}
		}
		clear(g.counts[low : high+1])
	}
	return best, found
}

// best returns the question about column j that leaves the purest parts. Bins low and high
// have rows of the node.
func (g *grower) best(j, low, high int, sum uint64) question {
	q := question{column: j, purity: -1}
	c := &g.columns[j]
	var left uint64
	var next int // the bin of rows that follows
	for b := low; b < high; b = next {
		left += g.counts[b]
		for next = b + 1; g.counts[next] == 0; next++ {
		}
		if p := purity(left, sum); p > q.purity {
			q.bin, q.left, q.purity = (b+next-1)/2, left, p // half-way, by rows, where none of the node's are between
			q.value = middle(c.high[q.bin], c.low[q.bin+1])
		}
	}
	return q
}

// drawn returns the question about column j whose threshold is drawn.
func (g *grower) drawn(j, low, high int, sum uint64) question {
	c := &g.columns[j]
	from, to := c.high[low], c.low[high]
	at := float32(float64(from) + g.rng.Float64()*(float64(to)-float64(from)))
	b := low
	for b+1 < high && c.low[b+1] <= at {
		b++
	}
	q := question{column: j, bin: b, value: max(at, c.high[b])} // a bin stays whole
	if q.value >= c.low[b+1] {
		q.value = c.high[b]
	}
	for k := low; k <= b; k++ {
		q.left += g.counts[k]
	}
	q.purity = purity(q.left, sum)
	return q
}

// purity returns the greater the purer two parts are: Σ over parts of the sum of the squares of
// both classes' rows by all rows. N less that is N times the Gini impurity.
func purity(left, sum uint64) float64 {
	var all float64
	for _, part := range [2]uint64{left, sum - left} {
		n, ones := float64(part>>32), float64(part&math.MaxUint32)
		all += (ones*ones + (n-ones)*(n-ones)) / n
	}
	return all
}

// middle returns a value from a on that is less than b, half-way if numbers allow.
func middle(a, b float32) float32 {
	if m := float32((float64(a) + float64(b)) / 2); m < b {
		return m
	}
	return a
}

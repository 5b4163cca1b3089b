package score

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"sync"
)

// Columns of a table that follow the life of every tool.
//
// A column is worth listening to if it rises, or falls, steadily over the life of
// a tool, and does so the same way in every tool. Prognostics calls the first
// monotonicity and the second trendability. (J. Coble and J. W. Hines, "Identifying
// Optimal Prognostic Parameters from Data: A Genetic Algorithms Approach", Annual
// Conference of the PHM Society, 2009, §2.)
//
// Flank wear never falls, so the rank correlation of a column with wear is its rank
// correlation with the order of the windows: no window needs a label, and every
// tool that was recorded from new until it was taken out can be used.
//
// A column that rises in every tool alike for another reason, for example because
// the workpiece gets thinner, passes too. Only a person can know that, and exclude it.

// Life is the rows of one tool, in the order of time.
type Life struct {
	Tool string
	Rows []int // indices of rows; the caller's
}

// Columns says of each column how steadily it follows the lives of tools. All
// slices but Tools have one entry a column. It must not be changed once made.
type Columns struct {
	Tools []string // whose lives were looked at

	// Rho has, by column and tool, Spearman's rank correlation of the column with the
	// order of the tool's rows, in [-1, 1]; 0 where the column is constant or missing.
	Rho [][]float64

	Mean []float64 // over tools, of Rho
	SD   []float64 // between tools, shrunk

	// Weight is max(0, |Mean| − SD)², in [0, 1]: 0 for a column that follows no life,
	// or that goes one way in some tools and the other way in others.
	Weight []float64
}

// RankColumns looks at the lives of tools. Row returns the values of a row, one for each
// column, in which NaN is missing; they are lent. Tools of fewer than three rows
// are passed over. With ρ_tj the rank correlation of column j in tool t of T, and
// m_j its mean over tools,
//
//	s_j² = (2·0.3² + Σ_t (ρ_tj − m_j)²) / (2 + T − 1)
//	w_j  = max(0, |m_j| − s_j)².
//
// The result does not depend on the scale of a column, only on the order of its
// values. It has no Tools, and no weights but zero, if no life is long enough.
func RankColumns(columns int, row func(i int) []float32, lives []Life) *Columns {
	return new(Known).Rank(columns, row, lives)
}

// Known has the rank correlations of lives that were looked at: folds leave out some tools, and look at the same lives of the
// others. The zero value has none. It holds them until it is dropped, and is safe for concurrent use.
type Known struct {
	mu  sync.Mutex
	rho map[[sha256.Size]byte][]float64 // by column, of a life of those values
}

// Rank is [RankColumns], and looks at a life once.
func (k *Known) Rank(columns int, row func(i int) []float32, lives []Life) *Columns {
	c := &Columns{Rho: make([][]float64, columns)}
	for _, life := range lives {
		if len(life.Rows) < leastRows {
			continue
		}
		c.Tools = append(c.Tools, life.Tool)
		for j, rho := range k.follow(columns, row, thin(life.Rows)) {
			c.Rho[j] = append(c.Rho[j], rho)
		}
	}
	c.weigh()
	return c
}

// Without returns what RankColumns would of the lives of all tools but the given ones. It shares
// nothing with c. Columns that were excluded have to be excluded again.
func (c *Columns) Without(tools []string) *Columns {
	out := &Columns{Rho: make([][]float64, len(c.Rho))}
	for t, tool := range c.Tools {
		if slices.Contains(tools, tool) {
			continue
		}
		out.Tools = append(out.Tools, tool)
		for j, rho := range c.Rho {
			out.Rho[j] = append(out.Rho[j], rho[t])
		}
	}
	out.weigh()
	return out
}

// weigh computes means, standard deviations and weights from the correlations.
func (c *Columns) weigh() {
	n := len(c.Rho)
	c.Mean, c.SD, c.Weight = make([]float64, n), make([]float64, n), make([]float64, n)
	tools := float64(len(c.Tools))
	if tools == 0 {
		return
	}
	for j, rho := range c.Rho {
		for _, r := range rho {
			c.Mean[j] += r / tools
		}
		sum := priorTools * priorSD * priorSD
		for _, r := range rho {
			sum += (r - c.Mean[j]) * (r - c.Mean[j])
		}
		c.SD[j] = math.Sqrt(sum / (priorTools + tools - 1))
		if v := math.Abs(c.Mean[j]) - c.SD[j]; v > 0 {
			c.Weight[j] = v * v
		}
	}
}

// follow returns the rank correlation of every column with the order of the given rows. It is not to be changed.
func (k *Known) follow(columns int, row func(i int) []float32, rows []int) []float64 {
	values := make([]float32, columns*len(rows)) // by column, as each is sorted by itself
	for n, i := range rows {
		for j, v := range row(i) {
			values[j*len(rows)+n] = v
		}
	}
	text := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+4*len(values)), uint64(columns))
	for _, v := range values {
		text = binary.LittleEndian.AppendUint32(text, math.Float32bits(v))
	}
	name := sha256.Sum256(text)
	k.mu.Lock()
	rho, known := k.rho[name]
	k.mu.Unlock()
	if known {
		return rho
	}
	s := spearman{make([]uint64, 0, len(rows))}
	rho = make([]float64, columns)
	for j := range rho {
		rho[j] = s.withOrder(values[j*len(rows) : (j+1)*len(rows)])
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rho == nil {
		k.rho = make(map[[sha256.Size]byte][]float64)
	}
	k.rho[name] = rho
	return rho
}

// thin returns at most mostRows of the rows, evenly spread.
func thin(rows []int) []int {
	if len(rows) <= mostRows {
		return rows
	}
	out := make([]int, mostRows)
	for k := range out {
		out[k] = rows[k*len(rows)/mostRows]
	}
	return out
}

// spearman computes rank correlations in memory of its own.
type spearman struct {
	order []uint64 // of each value a number that rises with it, and where it stands in the lower half
}

// ascending returns a number that is greater the greater v is; zeros of both signs have the same one.
func ascending(v float32) uint64 {
	b := math.Float32bits(v + 0)
	if b>>31 == 1 {
		return uint64(^b)
	}
	return uint64(b | 1<<31)
}

// withOrder returns Spearman's rank correlation of values, NaN left out, with their
// order. Equal values have the mean of their ranks. It is 0 for a constant.
func (s *spearman) withOrder(values []float32) float64 {
	s.order = s.order[:0]
	for _, v := range values {
		if v == v {
			s.order = append(s.order, ascending(v)<<32|uint64(len(s.order)))
		}
	}
	n := len(s.order)
	if n < leastRows {
		return 0
	}
	slices.Sort(s.order)
	middle := float64(n-1) / 2
	var both, ranks, times float64
	for from := 0; from < n; {
		to := from + 1
		for to < n && s.order[to]>>32 == s.order[from]>>32 {
			to++
		}
		rank := float64(from+to-1)/2 - middle
		for _, i := range s.order[from:to] {
			at := float64(uint32(i)) - middle
			both, ranks, times = both+rank*at, ranks+rank*rank, times+at*at
		}
		from = to
	}
	if ranks == 0 {
		return 0
	}
	return both / math.Sqrt(ranks*times)
}

// Exclude gives columns a weight of zero, for a reason that only a person knows.
func (c *Columns) Exclude(columns []int) {
	for _, j := range columns {
		c.Weight[j] = 0
	}
}

// Kept returns the columns with a weight, the greatest first, of equals the one that
// comes first.
func (c *Columns) Kept() []int {
	var kept []int
	for j, w := range c.Weight {
		if w > 0 {
			kept = append(kept, j)
		}
	}
	slices.SortStableFunc(kept, func(a, b int) int { return cmp.Compare(c.Weight[b], c.Weight[a]) })
	return kept
}

package train

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/signal"
)

// What is compared of tools to find copies of one recording that are not exact: rounded, scaled, cut at their beginning, cut into windows that begin a part of a
// window later, or with channels exchanged. The figures are in docs/algorithm/few-tools.md.
const (
	twinRows    = 256  // the first windows of each tool, with those between them that are not judged
	twinColumns = 32   // of the features, spread over all
	twinTools   = 1000 // the first; the others are not compared
	manyTools   = 100  // of more than these, the first fewRows windows are compared
	fewRows     = 64
	leastRows   = 6  // of fewer windows chance is too likely
	leastLate   = 20 // windows that both must have where one begins later
	longestGap  = 8  // windows that are not judged; longer ones count as so many
	slowness    = 4  // means of two windows, before and behind one, whose mean is what is slow of it

	// Features of two tools are copies from leastLikeness on. Of few windows they have to be more alike: chance does not reach so many standard errors of Fisher's z.
	leastLikeness, leastErrors = 0.6, 5.

	leastAlone = 0.8 // the same, where one tool begins later and no other tool is alike to tell what a machine's programme does

	// A pair is looked at closely if the mixtures of their features are as much alike, by so many standard errors.
	quickLikeness, quickErrors = 0.45, 4.
	leastMean                  = 0.35
	// So many other tools show what a machine's programme makes alike. A part of it stays, for recordings that are there three times.
	mostOthers, mostCommon = 16, 0.95
)

// twin says how alike two tools are: the correlation of what their features do from window to window.
type twin struct {
	of, tool string // the first one, and its copy
	likeness float64
}

// twinFinder keeps the first windows of each tool, before the reference, while rows pass.
type twinFinder struct {
	sums  [][]int  // features of several sensors of one group that are of one kind
	tools []string // in the order in which they first appear
	rows  map[string]*twinTool
}

type twinTool struct {
	name   string
	starts []time.Time
	rows   [2][][]float32 // as they are, and the sums
}

func newTwinFinder(names []string, origins []signal.FeatureOrigin) *twinFinder {
	f := &twinFinder{rows: make(map[string]*twinTool)}
	kinds, sensors := make(map[string][]int), make(map[string]string)
	several := make(map[string]bool)
	var order []string
	for i, o := range origins {
		if o.Group == "" || o.Other != "" {
			continue
		}
		if key := o.Group + " " + names[i][strings.LastIndexAny(names[i], "._")+1:]; kinds[key] == nil {
			order = append(order, key)
			kinds[key], sensors[key] = []int{i}, o.Sensor
		} else {
			kinds[key] = append(kinds[key], i)
			several[key] = several[key] || sensors[key] != o.Sensor
		}
	}
	for _, key := range order {
		if several[key] {
			f.sums = append(f.sums, kinds[key])
		}
	}
	return f
}

// add looks at the next row of a tool and copies what it needs of it.
func (f *twinFinder) add(tool string, start time.Time, row []float32) {
	of := f.rows[tool]
	if of == nil && len(f.tools) < twinTools {
		of = &twinTool{name: tool}
		f.tools, f.rows[tool] = append(f.tools, tool), of
	} else if of == nil || len(of.starts) == twinRows {
		return
	}
	x := make([]float32, min(twinColumns, len(row)))
	for c := range x {
		x[c] = row[c*len(row)/len(x)]
	}
	sums := make([]float32, min(twinColumns, len(f.sums)))
	for c := range sums {
		for _, k := range f.sums[c*len(f.sums)/len(sums)] {
			sums[c] += row[k]
		}
	}
	of.starts, of.rows = append(of.starts, start), [2][][]float32{append(of.rows[0], x), append(of.rows[1], sums)}
}

// places returns where the first windows of a tool are, counted in steps from one window to the next: windows between them are not judged.
func (t *twinTool) places(most int) []int {
	var steps []time.Duration
	for i, s := range t.starts[1:] {
		if d := s.Sub(t.starts[i]); d > 0 {
			steps = append(steps, d)
		}
	}
	slices.Sort(steps)
	at := make([]int, 0, len(t.starts))
	for i, s := range t.starts {
		place := 0
		if i > 0 {
			gap := 1.
			if len(steps) > 0 {
				gap = math.Round(float64(s.Sub(t.starts[i-1])) / float64(steps[len(steps)/2]))
			}
			place = at[i-1] + int(min(max(gap, 1), longestGap))
		}
		if place >= most {
			break
		}
		at = append(at, place)
	}
	return at
}

// twins returns the tools that are copies of an earlier one.
func (f *twinFinder) twins() (out []twin) {
	var views [2]*twinView
	for k := range views {
		views[k] = f.view(k)
	}
	for k, tool := range f.tools {
		for i, of := range f.tools[:k] {
			if l := max(views[0].likeness(i, k), views[1].likeness(i, k)); l > 0 {
				out = append(out, twin{of, tool, l})
				break
			}
		}
	}
	return out
}

// twinView is tools with pairs that may be copies.
type twinView struct {
	tools []series
	pairs map[[2]int]match // of both orders
}

// series is what the features of a tool do from window to window, as steady returns it. Columns have a mean of 0 and a norm of 1, or are 0.
type series struct {
	columns [][]float64
	mixture []float64 // the sum of the columns, each with a sign of its own
	squares []float64 // the sums of the squares of the mixture up to each place
}

// view returns the tools by their features as they are, 0, or by the sums over sensors, 1, which stay if channels are exchanged.
func (f *twinFinder) view(k int) *twinView {
	most := twinRows
	if len(f.tools) > manyTools {
		most = fewRows
	}
	v := &twinView{make([]series, len(f.tools)), make(map[[2]int]match)}
	if k > 0 && len(f.sums) < 2 {
		return v
	}
	for i, tool := range f.tools {
		s := f.rows[tool].series(k, most)
		v.tools[i] = s
		for j, o := range v.tools[:i] {
			if m, ok := o.match(s, o.quickLook(s)); ok {
				v.pairs[[2]int{j, i}], v.pairs[[2]int{i, j}] = m, match{-m.shift, m.repeats}
			}
		}
	}
	return v
}

// series returns what the features of a tool do, or their sums over sensors if k is 1, up to so many places.
func (t *twinTool) series(k, most int) series {
	at := t.places(most)
	s := series{columns: make([][]float64, len(t.rows[k][0])), mixture: make([]float64, at[len(at)-1])}
	signs := uint32(0x9e3779b9) // arbitrary
	for c := range s.columns {
		x := slices.Repeat([]float64{math.NaN()}, at[len(at)-1]+1)
		for j, place := range at {
			x[place] = float64(t.rows[k][j][c])
		}
		s.columns[c] = steady(x)
		sign := 1 - 2*float64(signs>>(c%32)&1)
		for j, y := range clipped(s.columns[c]) {
			s.mixture[j] += sign * y
		}
	}
	s.squares = make([]float64, len(s.mixture)+1)
	for j, y := range s.mixture {
		s.squares[j+1] = s.squares[j] + y*y
	}
	return s
}

// steady returns the means of two windows that follow each other, which a copy has nearly alike that begins a part of a window later, without what is slow: tools
// that wear drift alike.
func steady(x []float64) []float64 {
	means := make([]float64, len(x)-1)
	for i := range means {
		means[i] = (x[i] + x[i+1]) / 2
	}
	out := make([]float64, len(means))
	for i := range out {
		sum, n := 0., 0.
		for _, v := range means[max(0, i-slowness):min(len(means), i+slowness+1)] {
			if v-v == 0 {
				sum, n = sum+v, n+1
			}
		}
		out[i] = means[i] - sum/n
	}
	return standardised(out)
}

// clipped returns x with a mean of 0 and a norm of 1, where a few large steps count for less: they do not make two tools alike.
func clipped(x []float64) []float64 {
	var sizes []float64
	for _, v := range x {
		if v != 0 {
			sizes = append(sizes, math.Abs(v))
		}
	}
	if len(sizes) == 0 {
		return x
	}
	slices.Sort(sizes)
	out, limit := make([]float64, len(x)), 3*sizes[len(sizes)/2]
	for i, v := range x {
		out[i] = min(max(v, -limit), limit)
	}
	return standardised(out)
}

// standardised returns x with a mean of 0 and a norm of 1; of what is missing, or does not vary, zeros.
func standardised(x []float64) []float64 {
	out, n, sum, squares := make([]float64, len(x)), 0., 0., 0.
	for _, v := range x {
		if v-v == 0 {
			n, sum, squares = n+1, sum+v, squares+v*v
		}
	}
	if norm := math.Sqrt(squares - sum*sum/n); norm*norm > 1e-12*squares {
		for i, v := range x {
			if v-v == 0 {
				out[i] = (v - sum/n) / norm
			}
		}
	}
	return out
}

// match is the shift at which two tools are most alike.
type match struct {
	shift   int
	repeats bool // they are about as much alike at another one
}

// quickLook returns the shifts at which the mixtures of two tools are so much alike that it is hardly chance.
func (a series) quickLook(b series) (shifts []int) {
	for s := leastRows - len(b.mixture); s <= len(a.mixture)-leastRows; s++ {
		x, y := overlap(a.mixture, b.mixture, s)
		n, i, k := len(x), max(s, 0), max(-s, 0)
		if n+1 < leastLate && s*s > 1 {
			continue
		}
		xy := 0.
		for j, v := range x {
			xy += v * y[j]
		}
		squares := (a.squares[i+n] - a.squares[i]) * (b.squares[k+n] - b.squares[k])
		if r := xy / math.Sqrt(max(squares, math.SmallestNonzeroFloat64)); r >= quickLikeness && fisher(r, n) >= quickErrors {
			shifts = append(shifts, s)
		}
	}
	return shifts
}

// fisher returns of how many standard errors a correlation is, of n numbers that have nothing in common with the next.
func fisher(r float64, n int) float64 { return math.Atanh(min(r, 0.9999)) * math.Sqrt(float64(n)) }

// match returns at which of some shifts two tools are most alike, by the mean correlation of their columns. It is false if they are not.
func (a series) match(b series, shifts []int) (best match, ok bool) {
	rs, most := make([]float64, len(shifts)), 0.
	at := 0
	for k, s := range shifts {
		varying, n := 0., 0
		for c := range a.columns {
			x, y := overlap(a.columns[c], b.columns[c], s)
			xy, xx, yy := 0., 0., 0.
			for i, v := range x {
				xy, xx, yy = xy+v*y[i], xx+v*v, yy+y[i]*y[i]
			}
			if n = len(x); xx*yy > 0 {
				rs[k], varying = rs[k]+xy/math.Sqrt(xx*yy), varying+1
			}
		}
		rs[k] /= max(varying, 1)
		if e := fisher(rs[k], n); rs[k] >= leastMean && e > most {
			at, most, ok = k, e, true
		}
	}
	if !ok {
		return best, false
	}
	best.shift = shifts[at]
	for k, r := range rs {
		d := shifts[k] - best.shift
		best.repeats = best.repeats || d*d > 4 && 1-rs[at] > 0.5*(1-r)
	}
	return best, true
}

// likeness returns how alike two tools are, 0 if chance or a machine's programme may explain it.
func (v *twinView) likeness(i, k int) (most float64) {
	m, ok := v.pairs[[2]int{i, k}]
	if !ok {
		return 0
	}
	others := v.others(i, k)
	if m.repeats && len(others) == 0 {
		return 0
	}
	for shift := m.shift - 1; shift <= m.shift+1; shift++ {
		if r, n := v.correlation(i, k, shift, others); n+1 >= leastRows && r >= leastFor(n, len(others), shift) {
			most = max(most, r)
		}
	}
	return most
}

// leastFor returns from which likeness on so many means of two windows are a copy's, given how many other tools showed what the machine's programme does. As many as
// 1.5 of these means say as much as one that has nothing in common with the next. The noise of n others makes tools of one programme alike by some 1/(n + 1/2).
func leastFor(n, others, shift int) float64 {
	least, noise := leastLikeness, 0.
	if others > 0 {
		noise = math.Atanh(1 / (float64(others) + 0.5))
	} else if shift*shift > 1 {
		least = leastAlone
	}
	return max(least, math.Tanh(noise+leastErrors/math.Sqrt(max(1, float64(n)/1.5-3))))
}

// others returns tools that are alike to the first one of a pair, but for the other one.
func (v *twinView) others(i, k int) (out []int) {
	for o := range v.tools {
		if _, ok := v.pairs[[2]int{i, o}]; ok && o != k && len(out) < mostOthers {
			out = append(out, o)
		}
	}
	return out
}

// correlation returns the median correlation of the columns of two tools, without what others have in common with the first, and of how many means it is.
func (v *twinView) correlation(i, k, shift int, others []int) (r float64, n int) {
	var rho []float64
	a, b := v.tools[i], v.tools[k]
	for c := range a.columns {
		x, y := overlap(a.columns[c], b.columns[c], shift)
		if len(others) > 0 {
			common, known := v.common(i, c, others)
			x, y = withoutCommon(x, y, common[max(shift, 0):], known[max(shift, 0):])
		}
		x, y, n = clipped(x), clipped(y), max(n, len(x))
		r, all := 0., 0.
		for j, u := range x {
			r, all = r+u*y[j], all+u*u*y[j]*y[j]
		}
		if all > 0 {
			rho = append(rho, r)
		}
	}
	if len(rho) < 2 || 4*len(rho) < len(a.columns) {
		return 0, n
	}
	slices.Sort(rho)
	return rho[(len(rho)-1)/2], n // of two the lesser one
}

// common returns the mean of column c of others where these are most alike to tool i, and where there is one.
func (v *twinView) common(i, c int, others []int) (common []float64, known []bool) {
	n := len(v.tools[i].mixture)
	common, known = make([]float64, n), make([]bool, n)
	counts := make([]float64, n)
	for _, o := range others {
		shift, of := v.pairs[[2]int{i, o}].shift, v.tools[o].columns[c]
		for j := max(slowness, slowness+shift); j < min(n-slowness, len(of)-slowness+shift); j++ {
			common[j], counts[j], known[j] = common[j]+of[j-shift], counts[j]+1, true
		}
	}
	for j, k := range counts {
		common[j] /= max(k, 1)
	}
	return common, known
}

// withoutCommon returns parts of a column of two tools without their projections on what is common, at the same time and one window earlier and later, since tools begin
// at any part of a window. Where that is not known, nothing is.
func withoutCommon(x, y, common []float64, known []bool) (xs, ys []float64) {
	var at [3][]float64
	for j := slowness; j < len(x)-slowness; j++ {
		if known[j-1] && known[j] && known[j+1] && x[j] != 0 && y[j] != 0 { // 0 is missing
			xs, ys = append(xs, x[j]), append(ys, y[j])
			for k := range at {
				at[k] = append(at[k], common[j+[]int{0, -1, 1}[k]])
			}
		}
	}
	for k, of := range at {
		for _, before := range at[:k] {
			of = without(of, before, 1)
		}
		at[k] = of
		xs, ys = without(xs, of, mostCommon), without(ys, of, mostCommon)
	}
	return xs, ys
}

// without returns x without a share of its projection on another one.
func without(x, other []float64, share float64) []float64 {
	along, squares := 0., 0.
	for i, v := range x {
		along, squares = along+v*other[i], squares+other[i]*other[i]
	}
	out := slices.Clone(x)
	for i := range out {
		out[i] -= share * along / max(squares, math.SmallestNonzeroFloat64) * other[i]
	}
	return out
}

// overlap returns the parts of two columns that are of the same time, where b begins so many windows before a.
func overlap(a, b []float64, shift int) (x, y []float64) {
	x, y = a[min(max(shift, 0), len(a)):], b[min(max(-shift, 0), len(b)):]
	n := min(len(x), len(y))
	return x[:n], y[:n]
}

// hold lets copies be held out together with the first tool that they are copies of.
func (t *rowTable) hold(twins []twin) {
	t.twins, t.together = twins, make(map[string]string)
	for _, w := range twins {
		t.together[w.tool] = classify.Together(t.together, w.of)
		t.together[w.of] = t.together[w.tool]
	}
	if t.modes != nil {
		t.modes.together = t.together
	}
}

// twinWarnings names the copies.
func twinWarnings(twins []twin) []string {
	if len(twins) == 0 {
		return nil
	}
	words := make([]string, len(twins))
	for i, t := range twins {
		words[i] = fmt.Sprintf("%s and %s (%.3f)", t.of, t.tool, t.likeness)
	}
	return []string{fmt.Sprintf("these tools are near copies: their features change alike from window to window (correlation): %s: if one recording is there twice under two names, leave one out; they are held out together", firstTools(words))}
}

package train

import (
	"fmt"
	"math"
	"slices"

	"github.com/flank-tcm/flank/pkg/classify"
)

// What is compared of tools to find copies of one recording that are not exact: rounded, scaled, or cut into windows that
// begin a sample later.
const (
	twinRows    = 64   // the first judged windows of each tool
	twinColumns = 32   // of the features, spread over all
	twinTools   = 1000 // the first; the others are not compared
	leastRows   = 6    // of fewer windows chance is too likely

	// Features of two tools are copies from leastLikeness on. Of few windows they have to be more alike: chance does not
	// reach so many standard errors of Fisher's z. The figures are in docs/algorithm/few-tools.md.
	leastLikeness, leastErrors = 0.6, 5.

	mostShift = 8 // windows by which a copy may begin later

	quickColumns, quickLikeness = 8, 0.25 // a pair is looked at closely if the mean over so many columns is as much
)

// twin says how alike the features of two tools are: the correlation of their changes from window to window.
type twin struct {
	of, tool string // the first one, and its copy
	likeness float64
}

// twinFinder keeps the first windows of each tool, before the reference, while rows pass.
type twinFinder struct {
	tools []string // in the order in which they first appear
	rows  map[string][][]float32
}

func newTwinFinder() *twinFinder { return &twinFinder{rows: make(map[string][][]float32)} }

// add looks at the next row of a tool and copies what it needs of it.
func (f *twinFinder) add(tool string, row []float32) {
	of, known := f.rows[tool]
	if !known && len(f.tools) < twinTools {
		f.tools = append(f.tools, tool)
	} else if !known || len(of) == twinRows {
		return
	}
	x := make([]float32, min(twinColumns, len(row)))
	for c := range x {
		x[c] = row[c*len(row)/len(x)]
	}
	f.rows[tool] = append(of, x)
}

// twins returns the tools that are copies of an earlier one.
func (f *twinFinder) twins() (out []twin) {
	all := f.changes()
	for k, c := range all {
		for _, of := range all[:k] {
			if l := likeness(of, c); l > 0 {
				out = append(out, twin{of.tool, c.tool, l})
				break
			}
		}
	}
	return out
}

// changes is how each column of a tool changes from one window to the next, but for what all tools have in common: tools that wear drift alike, and
// a machine's programme changes what it does in the same windows of each tool. Columns have a mean of 0 and a norm of 1, or are 0.
type changes struct {
	tool    string
	columns [][]float64
}

// leastTools is from how many tools on it shows what they have in common.
const leastTools = 3

// changes returns the changes of all tools.
func (f *twinFinder) changes() []changes {
	all := make([]changes, len(f.tools))
	for k, tool := range f.tools {
		rows := f.rows[tool]
		all[k] = changes{tool, make([][]float64, len(rows[0]))}
		for c := range all[k].columns {
			x := make([]float64, len(rows)-1)
			for i := range x {
				x[i] = float64(rows[i+1][c]) - float64(rows[i][c])
			}
			all[k].columns[c] = standardised(x)
		}
	}
	if len(all) < leastTools {
		return all
	}
	for c := range all[0].columns {
		common := make([]float64, twinRows)
		for _, of := range all {
			for i, v := range of.columns[c] {
				common[i] += v
			}
		}
		for _, of := range all {
			x := of.columns[c]
			along, squares := 0., 0.
			for i, v := range x {
				along, squares = along+v*common[i], squares+common[i]*common[i]
			}
			for i := range x {
				x[i] -= along / max(squares, math.SmallestNonzeroFloat64) * common[i]
			}
			of.columns[c] = standardised(x)
		}
	}
	return all
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

// likeness returns the median, over the columns that change in both, of the correlation of their changes, where one tool begins up to mostShift windows later
// than the other; 0 if that may be chance.
func likeness(a, b changes) float64 {
	for shift := -mostShift; shift <= mostShift; shift++ {
		if !maybeAlike(a, b, shift) {
			continue
		}
		if r, n := medianCorrelation(a, b, shift); n+1 >= leastRows && r >= max(leastLikeness, math.Tanh(leastErrors/math.Sqrt(float64(n-3)))) {
			return r
		}
	}
	return 0
}

// medianCorrelation returns it with how many changes it is of, where b begins so many windows before a.
func medianCorrelation(a, b changes, shift int) (r float64, n int) {
	var rho []float64
	for c := range a.columns {
		x, y := overlap(a.columns[c], b.columns[c], shift)
		n = len(x)
		if r := correlation(x, y); r == r {
			rho = append(rho, r)
		}
	}
	if len(rho) < 2 || 4*len(rho) < len(a.columns) {
		return 0, n
	}
	slices.Sort(rho)
	return rho[(len(rho)-1)/2], n // of two the lesser one
}

// maybeAlike is a quick look at a pair.
func maybeAlike(a, b changes, shift int) bool {
	sum, varying := 0., 0.
	n := min(quickColumns, len(a.columns))
	for k := range n {
		r, c := 0., k*len(a.columns)/n
		x, y := overlap(a.columns[c], b.columns[c], shift)
		for i, v := range x {
			r += v * y[i]
		}
		if sum += r; r != 0 {
			varying++
		}
	}
	return sum >= quickLikeness*varying
}

// overlap returns the parts of two columns that are of the same time, where b begins so many windows before a.
func overlap(a, b []float64, shift int) (x, y []float64) {
	x, y = a[min(max(shift, 0), len(a)):], b[min(max(-shift, 0), len(b)):]
	n := min(len(x), len(y))
	return x[:n], y[:n]
}

// correlation returns the correlation of two columns, NaN if one does not vary.
func correlation(x, y []float64) float64 {
	r, all := 0., 0.
	x, y = standardised(x), standardised(y)
	for i, v := range x {
		r, all = r+v*y[i], all+v*v*y[i]*y[i]
	}
	if all == 0 {
		return math.NaN()
	}
	return r
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

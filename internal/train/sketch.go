package train

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
)

const (
	sketchRows    = model.SketchRows    // of each tool
	sketchColumns = model.SketchColumns // of the features
	sketchTools   = model.SketchTools   // more are left out, which keeps memory and model small
)

// sampler keeps some rows of each tool, spread evenly over its life, while rows pass.
type sampler struct {
	tools  []string // in the order in which they first appear
	sample map[string]*toolSample
}

type toolSample struct {
	seen, stride int
	rows         [][]float32 // each stride-th row, fewer than twice sketchRows
}

func newSampler() *sampler { return &sampler{sample: make(map[string]*toolSample)} }

// add looks at the next row of a tool, before the reference, and copies it if it needs it.
func (s *sampler) add(tool string, row []float32) {
	t := s.sample[tool]
	if t == nil {
		if len(s.tools) == sketchTools {
			return
		}
		t = &toolSample{stride: 1}
		s.tools, s.sample[tool] = append(s.tools, tool), t
	}
	t.seen++
	if (t.seen-1)%t.stride != 0 {
		return
	}
	if t.rows = append(t.rows, slices.Clone(row)); len(t.rows) < 2*sketchRows {
		return
	}
	for i := range sketchRows { // every other row goes
		t.rows[i] = t.rows[2*i]
	}
	t.rows, t.stride = slices.Delete(t.rows, sketchRows, len(t.rows)), 2*t.stride
}

// sketch returns the sample as a model keeps it, nil if rows say too little of their tool:
// if there are fewer than two features whose values hardly ever come back.
func (s *sampler) sketch() *model.Sketch {
	var all [][]float32
	for _, name := range s.tools {
		all = append(all, s.sample[name].rows...)
	}
	if len(all) == 0 {
		return nil
	}
	out := &model.Sketch{}
	for c := range all[0] {
		if tolerance, ok := telling(all, c); ok {
			out.Columns, out.Tolerance = append(out.Columns, c), append(out.Tolerance, tolerance)
		}
	}
	if n := len(out.Columns); n < 2 {
		return nil
	} else if n > sketchColumns { // spread over all, because neighbours are of one channel
		for i := range sketchColumns {
			out.Columns[i], out.Tolerance[i] = out.Columns[i*n/sketchColumns], out.Tolerance[i*n/sketchColumns]
		}
		out.Columns, out.Tolerance = out.Columns[:sketchColumns], out.Tolerance[:sketchColumns]
	}
	for _, name := range s.tools {
		t := model.SketchTool{Name: name}
		var whole [][]float32 // rows in which nothing is missing
		for _, row := range s.sample[name].rows {
			if x := classify.Pick(row, out.Columns); !slices.ContainsFunc(x, func(v float32) bool { return v != v }) {
				whole = append(whole, x)
			}
		}
		for i := range min(sketchRows, len(whole)) {
			t.Add(whole[i*len(whole)/min(sketchRows, len(whole))])
		}
		if t.Len(len(out.Columns))*len(out.Columns) >= sketchRows { // fewer numbers coincide by chance
			out.Tools = append(out.Tools, t)
		}
	}
	if len(out.Tools) == 0 {
		return nil
	}
	return out
}

// telling reports whether a column of rows tells one row from another: at least half of
// its values are different by more than the tolerance, which is returned too. A copy may
// differ by a thousandth of the column's spread, and by the rounding to six digits.
func telling(rows [][]float32, column int) (tolerance float64, ok bool) {
	values := make([]float64, 0, len(rows))
	for _, r := range rows {
		if v := float64(r[column]); v == v && !math.IsInf(v, 0) {
			values = append(values, v)
		}
	}
	n := len(values)
	if n < 4 || 2*n < len(rows) {
		return 0, false
	}
	slices.Sort(values)
	largest := max(math.Abs(values[0]), math.Abs(values[n-1]))
	tolerance = max(1e-3*(values[n-1-n/10]-values[n/10]), 5e-6*largest)
	different, last := 1, values[0]
	for _, v := range values {
		if v-last > 2*tolerance {
			different, last = different+1, v
		}
	}
	return tolerance, 2*different >= min(n, 128)
}

// finder recognises the tools that a model was trained on by their rows.
type finder struct {
	sketch  *model.Sketch
	entries []sketchEntry                     // by their first value
	found   map[string]map[sketchEntryID]bool // by tool of the examination
}

type sketchEntryID struct{ tool, row int }

type sketchEntry struct {
	sketchEntryID
	values []float32
}

func newFinder(m *model.Model) *finder {
	f := &finder{sketch: m.Provenance.Sketch, found: make(map[string]map[sketchEntryID]bool)}
	if f.sketch == nil {
		return f
	}
	n := len(f.sketch.Columns)
	for t, tool := range f.sketch.Tools {
		for i := range tool.Len(n) {
			f.entries = append(f.entries, sketchEntry{sketchEntryID{t, i}, tool.Row(i, n)})
		}
	}
	slices.SortFunc(f.entries, func(a, b sketchEntry) int { return cmp.Compare(a.values[0], b.values[0]) })
	return f
}

// add looks at a row of a tool, before the reference.
func (f *finder) add(tool string, row []float32) {
	if f.sketch == nil {
		return
	}
	first, tolerance := float64(row[f.sketch.Columns[0]]), f.sketch.Tolerance[0]
	at, _ := slices.BinarySearchFunc(f.entries, first-tolerance, func(e sketchEntry, v float64) int { return cmp.Compare(float64(e.values[0]), v) })
	for _, e := range f.entries[at:] {
		if float64(e.values[0]) > first+tolerance {
			return
		}
		if !f.same(e.values, row) {
			continue
		}
		if f.found[tool] == nil {
			f.found[tool] = make(map[sketchEntryID]bool)
		}
		f.found[tool][e.sketchEntryID] = true
	}
}

func (f *finder) same(values, row []float32) bool {
	for i, c := range f.sketch.Columns {
		if !(math.Abs(float64(values[i])-float64(row[c])) <= f.sketch.Tolerance[i]) {
			return false
		}
	}
	return true
}

// seen returns the tools whose rows are the rows of a tool of the sketch. With four columns
// or more two rows are enough, because so many numbers do not coincide; with fewer it
// takes three quarters of the rows.
func (f *finder) seen() (out []card.SeenTool) {
	for tool, found := range f.found {
		count := make(map[int]int)
		for id := range found {
			count[id.tool]++
		}
		best, as := 0, ""
		for t, n := range count {
			rows := f.sketch.Tools[t].Len(len(f.sketch.Columns))
			need := (3*rows + 3) / 4
			if len(f.sketch.Columns) >= 4 {
				need = min(2, rows)
			}
			name := f.sketch.Tools[t].Name
			if n >= need && (n > best || n == best && card.CompareNames(name, as) < 0) {
				best, as = n, name
			}
		}
		if best > 0 {
			out = append(out, card.SeenTool{Tool: tool, As: as})
		}
	}
	slices.SortFunc(out, func(a, b card.SeenTool) int { return card.CompareNames(a.Tool, b.Tool) })
	return out
}

// seenTools says in words which tools the model was trained on; nothing if there are none.
func seenTools(seen []card.SeenTool) string {
	var words []string
	for _, s := range seen {
		word := s.Tool
		if s.As != s.Tool {
			word += fmt.Sprintf(" (%s in training)", s.As)
		}
		words = append(words, word)
	}
	return firstTools(words)
}

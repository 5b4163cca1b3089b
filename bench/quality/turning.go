package main

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"strconv"

	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model"
)

// faultyVB is the flank wear in µm from which on a tool is faulty.
const faultyVB = 300

// recording is the turning recording: one row a second, in time order by tool.
type recording struct {
	names []string // of the features
	x     [][]float32
	tool  []string
	vb    []float64
}

func readRecording(path string) (*recording, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil || len(lines) < 2 {
		return nil, fmt.Errorf("%s: no rows: %w", path, err)
	}
	r := &recording{}
	tool, vb := -1, -1
	for j, name := range lines[0] {
		switch name {
		case "tool":
			tool = j
		case "Vb":
			vb = j
		default:
			r.names = append(r.names, name)
		}
	}
	if tool < 0 || vb < 0 {
		return nil, fmt.Errorf("%s: no column tool or Vb", path)
	}
	for i, line := range lines[1:] {
		row := make([]float32, 0, len(r.names))
		for j, text := range line {
			if j == tool {
				r.tool = append(r.tool, text)
				continue
			}
			v, err := math.NaN(), error(nil)
			if text != "" {
				v, err = strconv.ParseFloat(text, 64)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: line %d: %w", path, i+2, err)
			}
			if j == vb {
				r.vb = append(r.vb, v)
			} else {
				row = append(row, float32(v))
			}
		}
		r.x = append(r.x, row)
	}
	return r, nil
}

// rows are what is learnt from and judged: a tool's first windows, its
// reference, are not among them.
type rows struct {
	names  []string
	x      dbn.Matrix
	y      []int
	groups []string
}

// reference is a way to make the rows of one tool relative to its first
// windows. learn is called with those, apply with every other row, in place.
type reference struct {
	name string
	make func() (learn, apply func(row []float32))
}

func byModel(mode model.Mode) func() (learn, apply func([]float32)) {
	return func() (learn, apply func([]float32)) {
		var ref model.Reference
		spec := model.ReferenceSpec{Windows: model.DefaultReference.Windows, Mode: mode}
		return func(row []float32) { ref.Learn(row, spec) }, func(row []float32) { spec.Relate(row, row, ref.Center(), nil) }
	}
}

var (
	medianRatio      = reference{"ratio to the median", byModel(model.ReferenceRatio)}
	medianDifference = reference{"difference from the median", byModel(model.ReferenceDifference)}
	noReference      = reference{"none, as recorded", byModel(model.ReferenceOff)}
	// meanRatio takes a tool's mean, as in the first experiments: one row of
	// means is what the reference learns from.
	meanRatio = reference{"ratio to the mean", func() (learn, apply func([]float32)) {
		var sum []float64
		var count []int
		var ref model.Reference
		learn = func(row []float32) {
			if sum == nil {
				sum, count = make([]float64, len(row)), make([]int, len(row))
			}
			for j, v := range row {
				if v == v {
					sum[j] += float64(v)
					count[j]++
				}
			}
		}
		apply = func(row []float32) {
			spec := model.ReferenceSpec{Windows: 1, Mode: model.ReferenceRatio}
			if !ref.Ready(spec) {
				mean := make([]float32, len(sum))
				for j := range mean {
					mean[j] = float32(sum[j] / float64(count[j])) // NaN without a value
				}
				ref.Learn(mean, spec)
			}
			spec.Relate(row, row, ref.Center(), nil)
		}
		return learn, apply
	}}
)

// relative returns the rows of the recording, relative by ref.
func (r *recording) relative(ref reference) *rows {
	t := &rows{names: r.names, x: dbn.Matrix{Cols: len(r.names)}}
	seen := make(map[string]int)
	var learn, apply func([]float32)
	for i, row := range r.x {
		tool := r.tool[i]
		if seen[tool] == 0 {
			learn, apply = ref.make()
		}
		if seen[tool]++; seen[tool] <= model.DefaultReference.Windows {
			learn(row)
			continue
		}
		at := len(t.x.Data)
		t.x.Data = append(t.x.Data, row...)
		apply(t.x.Data[at:])
		t.x.Rows++
		class := 0
		if r.vb[i] >= faultyVB {
			class = 1
		}
		t.y, t.groups = append(t.y, class), append(t.groups, tool)
	}
	return t
}

func (t *rows) writeCSV(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := csv.NewWriter(f)
	w.Write(append([]string{"tool", "faulty"}, t.names...))
	for i := range t.x.Rows {
		line := []string{t.groups[i], strconv.Itoa(t.y[i])}
		for _, v := range t.x.Row(i) {
			text := ""
			if v == v {
				text = strconv.FormatFloat(float64(v), 'g', -1, 32)
			}
			line = append(line, text)
		}
		w.Write(line)
	}
	w.Flush()
	if err := w.Error(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

package model

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestSketch(t *testing.T) {
	tool := SketchTool{Name: "T1"}
	tool.Add([]float32{1, -2.5})
	tool.Add([]float32{3, 4})
	if tool.Len(2) != 2 || !slices.Equal(tool.Row(1, 2), []float32{3, 4}) || !slices.Equal(tool.Row(0, 2), []float32{1, -2.5}) {
		t.Errorf("%v", tool)
	}
	good := func() *Sketch {
		return &Sketch{Columns: []int{0, 2}, Tolerance: []float64{0, 1e-3}, Tools: []SketchTool{tool}}
	}
	for name, tc := range map[string]struct {
		change func(*Sketch)
		want   string
	}{
		"fine":               {func(*Sketch) {}, ""},
		"no columns":         {func(s *Sketch) { s.Columns, s.Tolerance = nil, nil }, "0 columns"},
		"one tolerance":      {func(s *Sketch) { s.Tolerance = s.Tolerance[:1] }, "2 columns and 1 tolerances"},
		"column beyond":      {func(s *Sketch) { s.Columns[1] = 3 }, "column 3 of 3"},
		"column twice":       {func(s *Sketch) { s.Columns[1] = 0 }, "column 0 of 3"},
		"negative tolerance": {func(s *Sketch) { s.Tolerance[0] = math.NaN() }, "negative"},
		"cut off":            {func(s *Sketch) { s.Tools[0].Rows = s.Tools[0].Rows[:9] }, `"T1" are cut off`},
	} {
		s := good()
		tc.change(s)
		if err := s.check(3); err == nil != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (*Sketch)(nil).check(3); err != nil {
		t.Error(err)
	}
}

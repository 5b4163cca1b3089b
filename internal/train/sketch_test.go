package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
)

// rowsOfTool draws rows that follow the wear of a tool, with noise.
func rowsOfTool(rng *rand.Rand, n, columns int) [][]float32 {
	level := 1 + rng.Float64()
	rows := make([][]float32, n)
	for i := range rows {
		for c := range columns {
			rows[i] = append(rows[i], float32(math.Pow(10, float64(c%5))*level*(1+float64(i)/float64(n))*(1+0.05*rng.NormFloat64())))
		}
	}
	return rows
}

// rounded returns rows as a table of text with six digits has them.
func rounded(rows [][]float32) [][]float32 {
	out := make([][]float32, len(rows))
	for i, row := range rows {
		for _, v := range row {
			r, err := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', 6, 64), 32)
			if err != nil {
				panic(err)
			}
			out[i] = append(out[i], float32(r))
		}
	}
	return out
}

// For any number of tools, windows and features: a tool that the model was trained on is
// recognised by its rows under another name, also if they were rounded, and a tool of the
// same kind that it was not trained on is not.
func TestToolsAreRecognised(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		columns := rapid.IntRange(2, 40).Draw(t, "features")
		tools := rapid.IntRange(2, 12).Draw(t, "tools")
		n := rapid.IntRange(8, 200).Draw(t, "windows")
		s := newSampler()
		trained := make([][][]float32, tools)
		for k := range trained {
			trained[k] = rowsOfTool(rng, n, columns)
			for _, row := range trained[k] {
				s.add(fmt.Sprint("T", k), row)
			}
		}
		m := &model.Model{Provenance: model.Provenance{Sketch: s.sketch()}}
		if sketch := m.Provenance.Sketch; sketch == nil || len(sketch.Tools) != tools || len(sketch.Columns) > sketchColumns {
			t.Fatalf("sketch %+v", sketch)
		}
		f := newFinder(m)
		again := rapid.IntRange(0, tools-1).Draw(t, "again")
		for _, row := range rounded(trained[again]) {
			f.add("copy", row)
		}
		if columns >= 4 { // fewer numbers are alike by chance now and then
			for _, row := range rowsOfTool(rng, n, columns) {
				f.add("new", row)
			}
		}
		if seen := f.seen(); !slices.Equal(seen, []card.SeenTool{{Tool: "copy", As: fmt.Sprint("T", again)}}) {
			t.Fatalf("%d features, %d tools, %d windows: seen %+v, want T%d", columns, tools, n, seen, again)
		}
	})
}

// Half of a tool's life is enough where rows have many features.
func TestHalfAToolIsRecognised(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	s, rows := newSampler(), rowsOfTool(rng, 100, 12)
	for _, row := range rows {
		s.add("T", row)
	}
	f := newFinder(&model.Model{Provenance: model.Provenance{Sketch: s.sketch()}})
	for _, row := range rows[50:] {
		f.add("late", row)
	}
	if seen := f.seen(); !slices.Equal(seen, []card.SeenTool{{Tool: "late", As: "T"}}) {
		t.Errorf("%+v", seen)
	}
}

// Rows that come back all the time say nothing of their tool: there is no sketch of them.
func TestNoSketchOfCoarseRows(t *testing.T) {
	for name, value := range map[string]func(rng *rand.Rand) float32{
		"two values": func(rng *rand.Rand) float32 { return float32(10 * rng.IntN(2)) },
		"ten values": func(rng *rand.Rand) float32 { return float32(rng.IntN(10)) },
		"constant":   func(*rand.Rand) float32 { return 7 },
		"missing":    func(*rand.Rand) float32 { return float32(math.NaN()) },
	} {
		rng, s := rand.New(rand.NewPCG(1, 2)), newSampler()
		for k := range 5 {
			for range 40 {
				s.add(fmt.Sprint("T", k), []float32{value(rng), value(rng), value(rng), value(rng)})
			}
		}
		if sketch := s.sketch(); sketch != nil {
			t.Errorf("%s: %+v", name, sketch)
		}
	}
	if newSampler().sketch() != nil {
		t.Error("a sketch of nothing")
	}
}

// A model keeps a sketch of at most so many tools, however many there are.
func TestSketchIsSmall(t *testing.T) {
	rng, s := rand.New(rand.NewPCG(1, 2)), newSampler()
	for k := range sketchTools + 50 {
		for _, row := range rowsOfTool(rng, 40, 30) {
			s.add(fmt.Sprint("T", k), row)
		}
	}
	sketch := s.sketch()
	if len(sketch.Tools) != sketchTools || len(sketch.Columns) != sketchColumns {
		t.Fatalf("%d tools, %d columns", len(sketch.Tools), len(sketch.Columns))
	}
	for _, tool := range sketch.Tools {
		if n := tool.Len(sketchColumns); n != sketchRows {
			t.Errorf("%s has %d rows", tool.Name, n)
		}
	}
}

// Tools of the training data are recognised in another recording under other names, by the
// sketch. tune then trains networks
// without them. Other tools are not taken for them.
func TestTrainedToolsUnderOtherNames(t *testing.T) {
	t.Parallel()
	j := latheJob(t)
	m, _, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if m.Provenance.Sketch == nil || !m.Provenance.LengthKnown {
		t.Fatalf("provenance %+v", m.Provenance)
	}
	text := strings.NewReplacer("\nA,", "\nV,", "\nB,", "\nW,", "\nC,", "\nX,", "\nD,", "\nY,", "\nE,", "\nZ,").Replace(latheCSV(lives))
	renamed := latheInput(t, j.Layout, "renamed", "other", text)
	old := *m
	old.Provenance.Sketch = nil
	for name, tc := range map[string]struct {
		m    *model.Model
		in   Input
		want string
	}{
		"by the sketch": {m, renamed, "V (A in training), W (B in training), X (C in training), Y (D in training) and Z (E in training)"},
		"no sketch":     {&old, renamed, ""},
		"other tools":   {m, latheInput(t, j.Layout, "new", "lathe", strangersCSV()), ""},
	} {
		e := Exam{Model: tc.m, Inputs: []Input{tc.in}, Join: j.Config.Join, Alarm: alarm.Default}
		r, err := e.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen := seenTools(r.Seen)
		warned := strings.Contains(r.Text(), "note: the model was trained on these tools, under these names or others: ")
		if !strings.Contains(seen, tc.want) || (seen != "") != (tc.want != "") || warned != (tc.want != "") {
			t.Errorf("%s: seen %q, warned %v", name, seen, warned)
		}
		if unknown := strings.Contains(r.Text(), "the model keeps no rows of the tools that it was trained on"); unknown != (tc.m == &old) {
			t.Errorf("%s: warned that training tools cannot be recognised: %v", name, unknown)
		}
		if tc.want == "" {
			continue
		}
		s, err := Score(t.Context(), e, false)
		if err != nil {
			t.Fatal(err)
		}
		if s.Networks != 5 || s.Seen != seen {
			t.Errorf("%s: tune trains %d networks, because of %q", name, s.Networks, s.Seen)
		}
	}
}

// strangersCSV is a recording of two tools that no model was trained on.
func strangersCSV() string {
	all := latheCSV(append(slices.Clone(lives), life{"P", 40, 390}, life{"Q", 40, 410}))
	head, _, _ := strings.Cut(all, "\nA,")
	return head + all[strings.Index(all, "\nP,"):]
}

// A tool that is worn while its reference is taken, and has no window left to judge, is
// among the worn tools and missed.
func TestWornToolsThatAreNotJudged(t *testing.T) {
	t.Parallel()
	j := latheJob(t)
	m, _, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	text := strangersCSV() + "R,2,20,50,0.1,400\nR,2.1,20,50,0.2,400\nR,2,21,50,-0.1,400\n"
	e := Exam{Model: m, Inputs: []Input{latheInput(t, j.Layout, "new", "lathe", text)}, Join: j.Config.Join, Alarm: alarm.Default}
	r, err := e.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a := r.Alarms
	if last := a.Tools[len(a.Tools)-1]; a.Worn != 3 || a.Caught > 2 || last.Tool != "R" || last.Judged != 0 || last.Worn != 1 || last.Alarm != 0 || last.Unjudged != 3 {
		t.Errorf("%+v", a)
	}
	if want := "R gets worn and is never judged while it is: of its faulty windows 3 make its reference"; !strings.Contains(r.Text(), want) {
		t.Errorf("no %q in\n%s", want, r.Text())
	}
	s, err := Score(t.Context(), e, false)
	if err != nil || !slices.Equal(s.Unjudged, []unjudged{{Tool: "R", Learning: 3}}) || slices.Contains(s.Tool, "R") {
		t.Errorf("%v, %+v", err, s)
	}
	if got, want := (unjudged{Tool: "R", Learning: 1, NotCutting: 2, SensorFault: 3}).Words(), "1 make its reference, 2 not cutting and 3 with sensor faults"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

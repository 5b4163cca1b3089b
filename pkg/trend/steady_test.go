package trend

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// fitted returns the JSON of the model of the rows, all parts of which count.
func fitted(t *testing.T, rows *Rows, s Settings) (*Model, string) {
	t.Helper()
	m, _, err := Fit(t.Context(), rows, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Check(rows.Columns); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return m, string(text)
}

// full returns a model of the rows with all parts, which knows every window.
func full(t testing.TB, rows *Rows) *Model {
	t.Helper()
	tools := rows.byTool()
	r := newRegression(rows, tools, nil)
	m := r.all(30)
	m.Parts, m.Reference = mixes[0], rows.referenced()
	m.Median, m.Low, m.High, m.MostUM, m.Distance = 5, -1, 1, 1e9, 1e9
	s := r.steady(nil, []float64{30}, Settings{Seed: 1, Shared: NewShared()})
	if s == nil {
		t.Fatal("nothing follows the life of every tool")
	}
	s.into(m, 0)
	if err := m.Check(rows.Columns); err != nil {
		t.Fatal(err)
	}
	return m
}

// The JSON of a model of an earlier release is read, estimates as it did, and is
// written as it was.
func TestOldForm(t *testing.T) {
	const old = `{"center":[10,2],"scale":[10,0.5],"weights":[10,1],"bias":9.5,"median":3,"low":-1,"high":2,"most_um":900,"distance":100,"limit_um":300}`
	var m Model
	if err := json.Unmarshal([]byte(old), &m); err != nil {
		t.Fatal(err)
	}
	if err := m.Check(1); err != nil {
		t.Fatal(err)
	}
	want := 9.5 + (12.0-10)/10*10 + (math.Log1p(12)-2)/0.5*1
	if root, known := m.Root([]float32{12}, nil); root != want || !known {
		t.Errorf("root %v, %v, want %v without a reference", root, known, want)
	}
	if text, _ := json.Marshal(&m); string(text) != old {
		t.Errorf("written as %s", text)
	}
}

// The file holds all of a model: what is read estimates the same, to the bit.
func TestJSONIsExact(t *testing.T) {
	rows := drifting(4, 60, 12)
	m := full(t, rows)
	again, _ := json.Marshal(m)
	var read Model
	if err := json.Unmarshal(again, &read); err != nil {
		t.Fatal(err)
	}
	for i := range rows.Tool {
		a, _ := m.Root(rows.Row(i), rows.Reference[len(rows.Tool)-1])
		b, _ := read.Root(rows.Row(i), rows.Reference[len(rows.Tool)-1])
		if a != b {
			t.Fatalf("row %d: %v, read again %v", i, a, b)
		}
	}
	_, text := fitted(t, rows, Settings{LimitUM: 300, Seed: 1})
	if _, same := fitted(t, rows, Settings{LimitUM: 300, Seed: 1}); same != text {
		t.Error("the same rows and seed made another model")
	}
	if _, other := fitted(t, rows, Settings{LimitUM: 300, Seed: 2}); other == text {
		t.Error("another seed made the same trees")
	}
}

func TestCheckParts(t *testing.T) {
	rows := drifting(4, 60, 12)
	good := full(t, rows)
	if !good.Reference || len(good.Inputs) == 0 || len(good.Forest) != forestTrees {
		t.Fatalf("reference %v, %d inputs, %d trees", good.Reference, len(good.Inputs), len(good.Forest))
	}
	ask := slices.IndexFunc(good.Forest[0], func(n node) bool { return n.right != 0 })
	for name, spoil := range map[string]func(*Model){
		"unknown part":              func(m *Model) { m.Parts = []Part{"oracle"} },
		"a part twice":              func(m *Model) { m.Parts = []Part{Ridge, Ridge} },
		"weighted without inputs":   func(m *Model) { m.Inputs = nil },
		"trees without trees":       func(m *Model) { m.Forest = nil },
		"too many trees":            func(m *Model) { m.Forest = slices.Repeat(m.Forest, 3) },
		"too many inputs":           func(m *Model) { m.Inputs = slices.Repeat(m.Inputs, 9) },
		"column that is not there":  func(m *Model) { m.Inputs[0].Column = 12 },
		"negative column":           func(m *Model) { m.Inputs[0].Column = -1 },
		"unknown form":              func(m *Model) { m.Inputs[0].Form = "cube" },
		"scale of zero":             func(m *Model) { m.Inputs[0].Scale = 0 },
		"NaN in a weight":           func(m *Model) { m.Inputs[0].Weight = math.NaN() },
		"infinite offset":           func(m *Model) { m.Offset = math.Inf(1) },
		"ratio without a reference": func(m *Model) { m.Reference = false },
		"excluded beyond features":  func(m *Model) { m.Excluded = []int{12} },
		"excluded out of order":     func(m *Model) { m.Excluded = []int{3, 3} },
		"empty tree":                func(m *Model) { m.Forest[0] = Tree{} },
		"tree too large":            func(m *Model) { m.Forest[0] = make(Tree, mostNodes+1) },
		"tree that turns back":      func(m *Model) { m.Forest[0][ask].right = 1 },
		"tree that leaves":          func(m *Model) { m.Forest[0][ask].right = uint16(len(m.Forest[0])) },
		"tree of other inputs":      func(m *Model) { m.Forest[0][ask].input = forestInputs },
		"NaN in a tree":             func(m *Model) { m.Forest[0][ask].value = float32(math.NaN()) },
	} {
		m := *good
		m.Inputs, m.Forest = slices.Clone(good.Inputs), slices.Clone(good.Forest)
		m.Forest[0] = slices.Clone(good.Forest[0])
		if err := m.Check(12); err != nil {
			t.Fatal(err)
		}
		if spoil(&m); m.Check(12) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Columns that a person excludes change neither the model nor an estimate.
func TestExclude(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		exclude := rapid.SliceOfNDistinct(rapid.IntRange(0, 9), 1, 6, rapid.ID).Draw(rt, "excluded")
		rows := drifting(3, 30, 10)
		s := Settings{LimitUM: 300, Seed: 1, Exclude: exclude}
		m, text := fitted(t, rows, s)
		other := *rows
		other.X = slices.Clone(rows.X)
		strange := []float32{float32(math.NaN()), float32(math.Inf(1)), -1e30, 0}
		for i := range rows.Tool {
			for _, c := range exclude {
				other.X[i*10+c] = strange[(i+c)%len(strange)]
			}
		}
		refer(&other, 10)
		n, _ := fitted(t, &other, s)
		for i := range rows.Tool {
			a, knownA := m.Root(rows.Row(i), rows.Reference[i])
			b, knownB := n.Root(other.Row(i), other.Reference[i])
			if a != b || knownA != knownB {
				rt.Fatalf("without columns %v, row %d: %v, %v; with others in them %v, %v", exclude, i, a, knownA, b, knownB)
			}
		}
		for _, in := range m.Inputs {
			if slices.Contains(exclude, in.Column) {
				rt.Fatalf("column %d is an input: %s", in.Column, text)
			}
		}
	})
}

// A window is unknown while the tool has no reference; it counts as a window of the
// tool's, and moves nothing else.
func TestUnknownWithoutAReference(t *testing.T) {
	rows := drifting(4, 60, 12)
	m, _ := fitted(t, rows, Settings{LimitUM: 300, Seed: 1})
	var tool Tool
	for i := range 12 {
		e := tool.Observe(m, rows.Row(i), rows.Reference[i], "")
		if e.Known() != (i >= 9) {
			t.Errorf("window %d: %+v", i+1, e)
		}
		if i == 8 && (tool.Windows != 9 || tool.Root != 0 || len(tool.Recent)+len(tool.Points) != 0) {
			t.Errorf("before the reference: %+v", tool)
		}
	}
	if n := testing.AllocsPerRun(100, func() { m.Root(rows.Row(20), rows.Reference[20]) }); n != 0 {
		t.Errorf("%v allocations for an estimate", n)
	}
	// Models of rows without references ask for none.
	rows.Reference = nil
	m, text := fitted(t, rows, Settings{LimitUM: 300, Seed: 1})
	if _, known := m.Root(rows.Row(40), nil); !known || m.Reference || strings.Contains(text, string(LogRatio)) || strings.Contains(text, string(difference)) {
		t.Errorf("reference %v, known %v: %s", m.Reference, known, text)
	}
}

// Rows with missing features, and tools without a reference, are learnt from.
func TestMissing(t *testing.T) {
	rows := drifting(4, 60, 12)
	rng := rand.New(rand.NewPCG(3, 4))
	for k := range rows.X {
		if k%12 == 7 || rng.IntN(10) == 0 {
			rows.X[k] = float32(math.NaN())
		}
	}
	refer(rows, 10)
	for i, tool := range rows.Tool {
		if tool == "B" {
			rows.Reference[i] = nil
		}
	}
	m, _ := fitted(t, rows, Settings{LimitUM: 300, Seed: 1})
	none := slices.Repeat([]float32{float32(math.NaN())}, 12)
	if root, known := m.Root(none, none); !known || !finite(root) {
		t.Errorf("a window of which all is missing: %v, %v", root, known)
	}
	s, err := CrossValidate(t.Context(), rows, Settings{LimitUM: 300, Seed: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if b := s.Tools[1]; b.Known != 0 || b.sinceReference != 0 || s.Tools[0].Known == 0 {
		t.Errorf("%+v", s.Tools)
	}
}

// Where nothing follows the lives of all tools, the ridge regression is left.
func TestNothingSteady(t *testing.T) {
	rows := drifting(4, 60, 4)
	for i := range rows.Tool {
		for c := range 4 {
			if sign := float32(1 - 2*(int(rows.Tool[i][0])%2)); c == 0 {
				rows.X[i*4] *= sign // falls in every other tool
			} else {
				rows.X[i*4+c] = float32((i*i + c) % 7)
			}
		}
	}
	refer(rows, 10)
	m, c, err := Fit(t.Context(), rows, Settings{LimitUM: 300, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Parts, []Part{Ridge}) || c.Steady != 0 || c.Weighted != 0 || len(m.Inputs)+len(m.Forest) != 0 {
		t.Errorf("%+v, %d inputs", c, len(m.Inputs))
	}
}

// The gain of a sensor, which differs from tool to tool, does not change ln(x/r).
func TestLogRatioForgetsTheGain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, r := rapid.Float32Range(1e-3, 1e3).Draw(t, "x"), rapid.Float32Range(1e-3, 1e3).Draw(t, "r")
		gain := rapid.Float32Range(0.1, 10).Draw(t, "gain")
		a, b := LogRatio.of(x, r), LogRatio.of(x*gain, r*gain)
		if math.Abs(a-b) > 1e-5 || math.Abs(a) > clip {
			t.Fatalf("ln(%v/%v) = %v, of both times %v %v", x, r, a, gain, b)
		}
	})
	nan := float32(math.NaN())
	for name, tc := range map[string]struct {
		form form
		x, r float32
		want float64
	}{
		"raw":                        {raw, -3, nan, -3},
		"logarithm":                  {log, 1, nan, 0},
		"logarithm of what is not":   {log, -3, nan, math.Log(floor)},
		"ratio, within its bounds":   {LogRatio, 1, 1e-20, clip},
		"ratio to none":              {LogRatio, 0, 1, -clip},
		"difference":                 {difference, 3, 5, -2},
		"ratio to what is missing":   {LogRatio, 3, nan, math.NaN()},
		"what is missing to a ratio": {LogRatio, nan, 3, math.NaN()},
	} {
		if got := tc.form.of(tc.x, tc.r); math.Float64bits(got) != math.Float64bits(tc.want) && !(got != got && tc.want != tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// How far an interval goes on either side, by tools and not by windows.
func TestMargin(t *testing.T) {
	same := func(tools, rows int, miss float64) [][]float64 {
		out := make([][]float64, tools)
		for k := range out {
			out[k] = slices.Repeat([]float64{-miss}, rows)
		}
		return out
	}
	up := func(tools int) [][]float64 { // 1 to 100 in each tool
		out := same(tools, 100, 0)
		for k := range out {
			for i := range out[k] {
				out[k][i] = float64((i*37)%100 + 1)
			}
		}
		return out
	}
	for name, tc := range map[string]struct {
		errors [][]float64
		want   float64
	}{
		"nothing":                                      {nil, 0},
		"two tools, the largest":                       {up(2), 100},
		"four tools, the largest":                      {up(4), 100},
		"nine tools, 0.889 of each":                    {up(9), 89},
		"a hundred tools, 0.808":                       {up(100), 81},
		"one of nine is bad, which eight do not have":  {append(same(8, 10, 1), same(1, 1000, 9)...), 1},
		"two of nine are bad, and few of their rows":   {append(same(7, 1000, 1), same(2, 1, 9)...), 9},
		"a tool without rows counts as none: five, 96": {append(up(5), nil), 96},
	} {
		if got := margin(tc.errors); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// A tree stays within what it was grown on, its leaves have rows enough, and its text
// gives it back.
func TestTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, columns := rapid.IntRange(1, 80).Draw(t, "rows"), rapid.IntRange(1, 4).Draw(t, "columns")
		z := rapid.SliceOfN(rapid.Map(rapid.IntRange(-3, 3), func(v int) float64 { return float64(v) }), n*columns, n*columns).Draw(t, "z")
		y := rapid.SliceOfN(rapid.Float64Range(0, 30), n, n).Draw(t, "y")
		for _, tree := range forest(z, columns, y, 1) {
			if err := tree.check(columns); err != nil {
				t.Fatal(err)
			}
			rowsOf := make(map[float64]int)
			for i := range n {
				at := tree.at(z[i*columns : (i+1)*columns])
				if at < slices.Min(y)-1e-4 || at > slices.Max(y)+1e-4 {
					t.Fatalf("%v outside what was learnt, %v", at, y)
				}
				rowsOf[at]++
			}
			for at, rows := range rowsOf {
				if n >= leastLeaf && rows < leastLeaf {
					t.Fatalf("leaf %v of %d rows", at, rows)
				}
			}
			text, err := tree.MarshalText()
			if err != nil {
				t.Fatal(err)
			}
			var read Tree
			if err := read.UnmarshalText(text); err != nil || !slices.Equal(read, tree) {
				t.Fatalf("read as %v, %v; was %v", read, err, tree)
			}
		}
	})
}

// Trees find a step that one of their inputs makes.
func TestForestFindsAStep(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const n = 400
	z, y := make([]float64, 3*n), make([]float64, n)
	for i := range n {
		for c := range 3 {
			z[3*i+c] = rng.Float64()*2 - 1
		}
		if y[i] = 5; z[3*i+1] > 0 {
			y[i] = 15
		}
	}
	trees := forest(z, 3, y, 1)
	for _, tc := range []struct{ x, want float64 }{{-0.5, 5}, {0.5, 15}} {
		if got := average(trees, []float64{0.3, tc.x, -0.3}); math.Abs(got-tc.want) > 0.5 {
			t.Errorf("at %v: %v, want %v", tc.x, got, tc.want)
		}
	}
}

func FuzzTree(f *testing.F) {
	text, _ := Tree{{value: 0.5, input: 1, right: 2}, {value: 3}, {value: 4}}.MarshalText()
	f.Add(text)
	f.Add([]byte("AAAA"))
	f.Add([]byte("not base64"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var tree Tree
		if tree.UnmarshalText(text) != nil || tree.check(2) != nil {
			return
		}
		for _, z := range [][]float64{{0, 0}, {1, -1}, {-5, 5}} { // it ends
			if v := tree.at(z); !finite(v) {
				t.Fatalf("%v at %v", v, z)
			}
		}
		again, _ := tree.MarshalText()
		var read Tree
		if err := read.UnmarshalText(again); err != nil || !slices.Equal(read, tree) || !bytes.Equal(again, bytes.TrimSpace(again)) {
			t.Fatalf("%v is read as %v, %v", tree, read, err)
		}
	})
}

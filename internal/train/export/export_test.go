package export

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/classify/vote"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

var peers = flag.String("peers", "", "folder for models that bench/peers/export/check.py recomputes")

var encodings = []classify.Encoding{classify.Standard, classify.MinMax, classify.NormalScore, classify.Bins, classify.Committee}

var nan, inf = float32(math.NaN()), float32(math.Inf(1))

// trained returns a model of five features, one constant and one without values,
// and rows it was not trained on, with holes and values beyond all bounds.
func trained(t *testing.T, encoding classify.Encoding) (*model.Model, dbn.Matrix) {
	t.Helper()
	return trainedOn(t, encoding, model.LabelRule{})
}

// threeClasses is the rule of a model of three.
var threeClasses = model.LabelRule{Classes: []model.LabelClass{{Name: "healthy"}, {Name: "worn"}, {Name: "broken"}}}

// trainedOn is trained with the classes of a rule.
func trainedOn(t *testing.T, encoding classify.Encoding, label model.LabelRule) (*model.Model, dbn.Matrix) {
	t.Helper()
	var channels []signal.Channel
	for _, name := range []string{"rms", "power", "level", "empty", "temper, °C"} {
		channels = append(channels, signal.Channel{Name: name, Kind: signal.Feature, Rate: 1})
	}
	layout, err := signal.NewLayout("bench", channels)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func(n int) (dbn.Matrix, []int) {
		x, y := dbn.NewMatrix(n, len(channels)), make([]int, n)
		for i := range y {
			if y[i] = i % 3 / 2; len(label.Classes) == 3 {
				y[i] = i % 3
			}
			grown := float64(y[i])
			copy(x.Row(i), []float32{float32(1 + grown + 0.4*rng.NormFloat64()), float32(1e4 * (1 + grown*rng.Float64())), 7, nan, float32(math.Floor(rng.Float64() * 6))})
			if rng.IntN(10) == 0 {
				x.Row(i)[rng.IntN(5)] = nan
			}
		}
		return x, y
	}
	x, y := draw(150)
	c, _, err := classify.Fit(context.Background(), x, y, nil, classify.Settings{
		Encoding: encoding, Seed: 5, Network: dbn.Settings{Hidden: []int{6, 4}, Pretrain: dbn.PretrainSettings{Epochs: 3}, FineTune: dbn.FineTuneSettings{Epochs: 30}},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := &model.Model{
		Layout: layout, Window: window.DefaultSpec, Features: signal.FeatureSpec{Version: signal.FeatureVersion}, Reference: model.ReferenceSpec{Windows: 10, Mode: model.ReferenceKind},
		Usual: make([]signal.Quality, len(channels)), Label: label, Classifier: c, Provenance: model.Provenance{Program: "flank test"},
	}
	s := c.NewScorer()
	for i := range 4 {
		m.Golden = append(m.Golden, model.Golden{Features: x.Row(i), Posterior: slices.Clone(s.Posterior(x.Row(i)))})
	}
	if _, err := m.Encode(); err != nil {
		t.Fatal(err)
	}
	rows, _ := draw(200)
	copy(rows.Data, []float32{inf, -inf, inf, inf, 1e30, nan, nan, nan, nan, nan})
	return m, rows
}

// models returns the model of an encoding, for "three" one of three classes, and for "guarded" one with a guard.
func models(t *testing.T, encoding classify.Encoding) (*model.Model, dbn.Matrix) {
	t.Helper()
	switch encoding {
	case "three":
		return trainedOn(t, classify.Standard, threeClasses)
	case "guarded":
		return guarded(t)
	}
	return trained(t, encoding)
}

// guarded returns a model with a guard of five sensors, two of one unit and two that change alike, and rows in which columns and
// whole sensors are missing, or beyond all bounds.
func guarded(t *testing.T) (*model.Model, dbn.Matrix) {
	t.Helper()
	var channels []signal.Channel
	tb := &classify.Table{Ordered: true, Log: slices.Repeat([]bool{true}, 10)}
	for s, name := range []string{"F_c", "F_f", "acc1", "acc2", "AE"} {
		for _, of := range []string{"_RMS", "_MAX"} {
			channels = append(channels, signal.Channel{Name: name + of, Kind: signal.Feature, Rate: 1})
		}
		unit := []string{"N", "N", "g", "", ""}[s]
		tb.Sensors = append(tb.Sensors, vote.Sensor{Name: name, Unit: unit, Columns: []int{2 * s, 2*s + 1}, Kinds: []vote.Kind{vote.RMS, vote.Max}})
	}
	layout, err := signal.NewLayout("sensors", channels)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	row := func(x []float32, age float64) {
		for s := range 5 {
			level := age*(0.5+0.3*float64(s)) + 0.05*rng.NormFloat64()
			if s == 3 {
				level = 1.1*float64(x[4]) + 0.001*rng.NormFloat64()
			}
			x[2*s], x[2*s+1] = float32(level), float32(level+0.05*rng.NormFloat64())
		}
	}
	x := dbn.NewMatrix(240, 10)
	for i := range x.Rows {
		age := float64(i%40) / 40
		row(x.Row(i), age)
		class := 0
		if age >= 0.7 {
			class = 1
		}
		tb.Y, tb.Groups = append(tb.Y, class), append(tb.Groups, fmt.Sprint("T", i/40))
	}
	tb.X = x
	c, r, err := classify.FitTable(t.Context(), tb, classify.Settings{
		Seed: 5, Guard: classify.GuardVote, Network: dbn.Settings{Hidden: []int{6, 4}, Pretrain: dbn.PretrainSettings{Epochs: 3}, FineTune: dbn.FineTuneSettings{Epochs: 30}},
	})
	if err != nil || c.Guard() == nil {
		t.Fatal(err, r)
	}
	ratios, merged := 0, 0
	for _, e := range c.Guard().Experts() {
		if e.Ratio {
			ratios++
		} else if len(e.Sensors) > 1 {
			merged++
		}
	}
	if ratios == 0 || merged == 0 {
		t.Fatalf("%d ratios and %d experts of two sensors among %+v", ratios, merged, c.Guard().Experts())
	}
	m := &model.Model{
		Layout: layout, Window: window.DefaultSpec, Features: signal.FeatureSpec{Version: signal.FeatureVersion}, Reference: model.ReferenceSpec{Windows: 10, Mode: model.ReferenceKind},
		Usual: make([]signal.Quality, len(channels)), Classifier: c, Provenance: model.Provenance{Program: "flank test"},
	}
	rows := dbn.NewMatrix(400, 10)
	for i := range rows.Rows {
		of := rows.Row(i)
		row(of, rng.Float64()*1.3)
		for s := range 5 {
			switch rng.IntN(12) {
			case 0:
				of[2*s], of[2*s+1] = nan, nan
			case 1:
				of[2*s+rng.IntN(2)] = nan
			case 2:
				of[2*s] += float32(2 * rng.NormFloat64())
			case 3:
				of[2*s] = inf
			}
		}
		if i == 0 {
			for j := range of {
				of[j] = nan
			}
		}
	}
	scorer := c.NewScorer()
	for i := range 4 {
		m.Golden = append(m.Golden, model.Golden{Features: rows.Row(i), Posterior: slices.Clone(scorer.Posterior(rows.Row(i)))})
	}
	if _, err := m.Encode(); err != nil {
		t.Fatal(err)
	}
	return m, rows
}

// Safetensors of a guard has each input once, and names its sensors.
func TestGuardsNumbers(t *testing.T) {
	m, _ := guarded(t)
	b := Safetensors(m)
	tensors, meta := readSafetensors(t, b)
	inputs := 0
	for _, e := range m.Classifier.Guard().Experts() {
		inputs += len(e.Inputs)
	}
	if len(tensors["guard.input.a"]) != inputs || tensors["guard.cut_and_bound"][0] != m.Classifier.Guard().Cut() || !strings.Contains(meta["flank.guard.sensors"], `"F_c"`) {
		t.Errorf("%v %v", tensors, meta)
	}
}

// Both forms say which class is which, and safetensors has the costs of all.
func TestNamesOfClasses(t *testing.T) {
	for names, encoding := range map[string]classify.Encoding{"healthy, faulty": classify.Standard, "healthy, worn, broken": "three"} {
		m, _ := models(t, encoding)
		b := Safetensors(m)
		tensors, meta := readSafetensors(t, b)
		if meta["flank.classes"] != names || !slices.Equal(tensors["costs"], m.Classifier.Costs()) {
			t.Errorf("classes %q with costs %v, want %q with %v", meta["flank.classes"], tensors["costs"], names, m.Classifier.Costs())
		}
		onnx := ONNX(m)
		for _, want := range []string{names, classes(m.ClassNames())} {
			if !bytes.Contains(onnx, []byte(want)) {
				t.Errorf("no %q in the ONNX model", want)
			}
		}
	}
}

// Of logarithms both forms say which features are positive, else neither does.
func TestPositiveFeatures(t *testing.T) {
	for _, spec := range []model.ReferenceSpec{{Windows: 10, Mode: model.ReferenceLog, Positive: "11011"}, {Windows: 10, Mode: model.ReferenceKind}} {
		m, _ := trained(t, classify.Standard)
		m.Reference = spec
		b := Safetensors(m)
		if _, meta := readSafetensors(t, b); meta["flank.reference.positive"] != spec.Positive || meta["flank.reference"] != string(spec.Mode)+", 10 windows" {
			t.Errorf("%s: metadata %v", spec.Mode, meta)
		}
		onnx := ONNX(m)
		if bytes.Contains(onnx, []byte("flank.reference.positive")) != (spec.Positive != "") {
			t.Errorf("%s: the ONNX model says it wrongly", spec.Mode)
		}
	}
}

// readSafetensors returns the tensors as float64 and the metadata.
func readSafetensors(t *testing.T, b []byte) (map[string][]float64, map[string]string) {
	t.Helper()
	n := binary.LittleEndian.Uint64(b)
	if n%8 != 0 {
		t.Errorf("header of %d bytes: not aligned", n)
	}
	var header map[string]json.RawMessage
	if err := json.Unmarshal(b[8:8+n], &header); err != nil {
		t.Fatal(err)
	}
	var meta map[string]string
	if err := json.Unmarshal(header["__metadata__"], &meta); err != nil {
		t.Fatal(err)
	}
	delete(header, "__metadata__")
	data := b[8+n:]
	tensors := make(map[string][]float64)
	covered := 0
	for name, raw := range header {
		var at tensor
		if err := json.Unmarshal(raw, &at); err != nil {
			t.Fatal(err)
		}
		size := map[string]int{"F32": 4, "F64": 8, "I64": 8}[at.Dtype]
		count := 1
		for _, d := range at.Shape {
			count *= d
		}
		part := data[at.Offsets[0]:at.Offsets[1]]
		if len(part) != count*size {
			t.Errorf("%s: %d bytes for shape %v", name, len(part), at.Shape)
		}
		covered += len(part)
		values := make([]float64, count)
		for i := range values {
			switch at.Dtype {
			case "F32":
				values[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(part[4*i:])))
			case "F64":
				values[i] = math.Float64frombits(binary.LittleEndian.Uint64(part[8*i:]))
			default:
				values[i] = float64(int64(binary.LittleEndian.Uint64(part[8*i:])))
			}
		}
		tensors[name] = values
	}
	if covered != len(data) {
		t.Errorf("tensors cover %d of %d bytes", covered, len(data))
	}
	return tensors, meta
}

// The tensors alone give the model's posteriors.
func TestSafetensors(t *testing.T) {
	m, rows := trained(t, classify.Standard)
	b := Safetensors(m)
	if !bytes.Equal(b, Safetensors(m)) {
		t.Errorf("bytes differ from call to call")
	}
	tensors, meta := readSafetensors(t, b)
	if meta["flank.model"] != m.ID() || meta["flank.features"] != `["rms","power","level","empty","temper, °C"]` {
		t.Errorf("metadata %v", meta)
	}
	s := m.Classifier.NewScorer()
	for i := range rows.Rows {
		var x []float64
		knots, values := tensors["encoder.knots"], tensors["encoder.values"]
		for j, v := range rows.Row(i) {
			z := float64(v)
			if math.IsNaN(z) {
				z = tensors["encoder.fill"][j]
			}
			if tensors["encoder.knot_count"][j] == 0 {
				x = append(x, 0)
				continue
			}
			x = append(x, min(max((z-knots[0])/values[0], -5), 5))
			knots, values = knots[1:], values[1:]
		}
		for l := range 3 {
			bias := tensors[fmt.Sprintf("layers.%d.bias", l)]
			w := tensors[fmt.Sprintf("layers.%d.weight", l)]
			y := slices.Clone(bias)
			for k := range y {
				for j := range x {
					y[k] += x[j] * w[j*len(y)+k]
				}
				if l < 2 {
					y[k] = 1 / (1 + math.Exp(-y[k]))
				}
			}
			x = y
		}
		got, want := 1/(1+math.Exp(x[0]-x[1])), s.Posterior(rows.Row(i))[1]
		if math.Abs(got-want) > 1e-6 {
			t.Fatalf("row %d: %v, the model says %v", i, got, want)
		}
	}
}

// field is one of a protocol buffer.
type field struct {
	number int
	value  uint64
	bytes  []byte
}

func fields(t *testing.T, b []byte) []field {
	t.Helper()
	var fs []field
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		v, k := binary.Uvarint(b[n:])
		if n <= 0 || k <= 0 {
			t.Fatal("cut off")
		}
		b = b[n+k:]
		f := field{number: int(tag >> 3), value: v}
		if tag&7 == 2 {
			f.bytes, b = b[:v], b[v:]
		}
		fs = append(fs, f)
	}
	return fs
}

// Every input of an operator is the input of the graph, an initializer or the
// output of an operator before it, and names are used once: what the checker of
// ONNX asks. That the figures are right, bench/peers/export/check.py shows.
func TestONNXIsSound(t *testing.T) {
	for _, encoding := range append(encodings, "three", "guarded") {
		m, _ := models(t, encoding)
		b := ONNX(m)
		known := map[string]bool{"features": true}
		define := func(name string) {
			if known[name] {
				t.Errorf("%s: %q is defined twice", encoding, name)
			}
			known[name] = true
		}
		var nodes [][]byte
		for _, f := range fields(t, b) {
			if f.number != 7 {
				continue
			}
			for _, g := range fields(t, f.bytes) {
				switch g.number {
				case 1:
					nodes = append(nodes, g.bytes)
				case 5:
					for _, p := range fields(t, g.bytes) {
						if p.number == 8 {
							define(string(p.bytes))
						}
					}
				}
			}
		}
		for _, n := range nodes {
			for _, p := range fields(t, n) {
				switch p.number {
				case 1:
					if !known[string(p.bytes)] {
						t.Errorf("%s: %q is used before it is there", encoding, p.bytes)
					}
				case 2:
					define(string(p.bytes))
				}
			}
		}
		for _, out := range []string{"posterior", "score", "class"} {
			if !known[out] {
				t.Errorf("%s: no output %q", encoding, out)
			}
		}
	}
}

func TestWeights(t *testing.T) {
	for _, tc := range []struct{ costs, want []float64 }{
		{[]float64{0.75, 0}, []float64{0.25, 1}},
		{[]float64{1, 1}, []float64{1, 1}}, // nothing weighs anything: argmax of the posterior
	} {
		if got := weights(tc.costs); !slices.Equal(got, tc.want) {
			t.Errorf("costs %v: weights %v, want %v", tc.costs, got, tc.want)
		}
	}
}

// TestForPeers writes a model of each encoding in both forms, with what the
// model itself says of many rows.
func TestForPeers(t *testing.T) {
	if *peers == "" {
		t.Skip("make peers-export runs this")
	}
	for _, encoding := range append(encodings, "three", "guarded") {
		m, rows := models(t, encoding)
		onnx := ONNX(m)
		tensors := Safetensors(m)
		var said struct {
			Features  [][]string  `json:"features"` // as text: JSON has no NaN
			Posterior [][]float64 `json:"posterior"`
			Score     []float64   `json:"score"`
			Class     []int       `json:"class"`
		}
		s := m.Classifier.NewScorer()
		for i := range rows.Rows {
			p := slices.Clone(s.Posterior(rows.Row(i)))
			said.Features = append(said.Features, strings.Fields(strings.Trim(fmt.Sprint(rows.Row(i)), "[]")))
			said.Posterior = append(said.Posterior, p)
			said.Score = append(said.Score, m.Classifier.Score(p))
			said.Class = append(said.Class, m.Classifier.Decide(p))
		}
		text, err := json.Marshal(said)
		if err != nil {
			t.Fatal(err)
		}
		for ending, b := range map[string][]byte{".onnx": onnx, ".safetensors": tensors, ".json": text} {
			if err := os.WriteFile(filepath.Join(*peers, string(encoding)+ending), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

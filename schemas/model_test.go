package schemas

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/model/unknown"
	"github.com/flank-tcm/flank/pkg/score"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/trend"
	"github.com/flank-tcm/flank/pkg/window"
)

// anyModel returns a model whose manifest has every key.
func anyModel(t *testing.T, encoding classify.Encoding) *model.Model {
	t.Helper()
	layout, err := signal.NewLayout("bench", []signal.Channel{
		{Name: "thrust", Kind: signal.Force, Unit: "N", Rate: 100, Range: 5000, Sensor: "dynamometer"},
		{Name: "a", Kind: signal.Feature, Rate: 1}, {Name: "still", Kind: signal.Feature, Rate: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := &model.Model{
		Layout: layout, Window: window.DefaultSpec, Features: signal.FeatureSpec{Version: signal.FeatureVersion, Set: []string{"mean", "std"}},
		Gate: &model.Gate{Channel: "thrust", Threshold: 100}, Usual: []signal.Quality{0, signal.Dropout, 0},
		Label: model.LabelRule{
			VBMaxUM: 300, VBMeanUM: 200, States: []string{"broken"}, HealthyStates: []string{"run-in"}, Findings: []string{"", "chatter"},
			Classes: []model.LabelClass{{Name: "healthy"}, {Name: "worn", VBMaxUM: 300, VBMeanUM: 200, States: []string{"broken"}}},
		},
		Scores: json.RawMessage(`{"split":"none"}`),
		Provenance: model.Provenance{Program: "test", Seed: 3, Config: json.RawMessage(`{"seed":3}`), Parent: "ecs-dbn-000000000000", Labels: "01", LabelsFrom: map[string]int{"file": 1, "floor": 2, "alarms": 3}, Data: []model.DataSet{{
			Name: "made up", SHA256: "00", Windows: 60, Machines: []model.MachineTools{{Machine: "m", Tools: []string{"T1"}}}, MoreTools: 1, CutOff: []model.CutTool{{Machine: "m", Tool: "T0", Missing: 3}},
			From: time.Unix(1.7e9, 0).UTC(), To: time.Unix(1.8e9, 0).UTC(), Offsets: []model.OffsetRange{{Topic: "tcm.windows.v1", Partition: 1, From: 2, To: 3, Windows: 1}},
		}}},
	}
	some := []cycle.Normal{{Mean: 1, SD: 2}}
	m.Cycle = &cycle.Model{
		Frames: 10, Inputs: []cycle.Input{{Channel: "thrust", Measure: cycle.Mean, Sign: 1, Scale: 2, Zero: 3, ZeroSD: 4, Full: 6, Level: some[0], Rise: some[0]}},
		Parts: []cycle.Part{{State: cycle.Idle, Share: 0.4, Next: []float64{0.75, 0.25}, Level: some, Rise: some}, {State: cycle.Drilling, Share: 0.6, Next: []float64{0.25, 0.75}, Level: some, Rise: some}},
	}
	rng := rand.New(rand.NewPCG(3, 4))
	x := dbn.NewMatrix(60, len(m.NewJudge().FeatureNames()))
	m.Reference = model.ReferenceSpec{Windows: 10, Mode: model.ReferenceLog, Positive: strings.Repeat("1", x.Cols-1) + "0"}
	y := make([]int, x.Rows)
	for i := range x.Rows {
		y[i] = i % 3 / 2
		for j := range x.Cols {
			x.Row(i)[j] = float32(float64(y[i]) + rng.NormFloat64())
		}
		x.Row(i)[x.Cols-1] = 7 // a constant column
	}
	x.Row(2)[0] = float32(math.NaN())
	m.Classifier, _, err = classify.Fit(context.Background(), x, y, nil, classify.Settings{
		Encoding: encoding, Bins: 3, Seed: 5,
		Network: dbn.Settings{Hidden: []int{5, 3}, Pretrain: dbn.PretrainSettings{Epochs: 2}, FineTune: dbn.FineTuneSettings{Epochs: 30}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := m.Classifier.NewScorer()
	for i := range 6 {
		m.Golden = append(m.Golden, model.Golden{Features: x.Row(i), Posterior: slices.Clone(s.Posterior(x.Row(i)))})
	}
	return m
}

// file reads a model as model.md describes it, without Flank's own code.
type file struct {
	t *testing.T
	b []byte
}

func (f *file) take(n int) []byte {
	f.t.Helper()
	if n > len(f.b) {
		f.t.Fatalf("%d bytes are left, want %d", len(f.b), n)
	}
	taken := f.b[:n]
	f.b = f.b[n:]
	return taken
}

func (f *file) number() int { f.t.Helper(); return int(binary.LittleEndian.Uint32(f.take(4))) }

func (f *file) double() float64 {
	f.t.Helper()
	return math.Float64frombits(binary.LittleEndian.Uint64(f.take(8)))
}

func (f *file) single() float64 {
	f.t.Helper()
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(f.take(4))))
}

func (f *file) doubles(n int) []float64 {
	f.t.Helper()
	x := make([]float64, n)
	for i := range x {
		x[i] = f.double()
	}
	return x
}

func (f *file) begins(magic string, version int) {
	f.t.Helper()
	if got := string(f.take(len(magic))); got != magic {
		f.t.Fatalf("%q, want %q", got, magic)
	}
	if v := f.number(); v != version {
		f.t.Fatalf("%s: version %d, want %d", magic, v, version)
	}
}

// A reader needs only model.md to read a model's file. The classifier in it, computed by the
// formulas there, gives the golden posteriors.
func TestModelIsAsDocumented(t *testing.T) {
	for number, encoding := range []classify.Encoding{classify.Standard, classify.MinMax, classify.NormalScore, classify.Bins} {
		m := anyModel(t, encoding)
		b, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b[:len(b)-32])
		if !bytes.Equal(sum[:], b[len(b)-32:]) || m.ID() != "ecs-dbn-"+hex.EncodeToString(sum[:6]) {
			t.Errorf("%s: model %s with sum %x", encoding, m.ID(), sum)
		}
		f := &file{t, b[:len(b)-32]}
		f.begins("FLANKMDL", 1)
		if n := f.number(); n != 3 {
			t.Errorf("%d sections, want 3", n)
		}
		section := func(name string) *file {
			if got := string(f.take(int(f.take(1)[0]))); got != name {
				t.Fatalf("section %q, want %q", got, name)
			}
			return &file{t, f.take(int(binary.LittleEndian.Uint64(f.take(8))))}
		}
		checkManifest(t, section("manifest").b)
		posterior := readClassifier(section("classifier"), number)
		golden := section("golden")
		if len(f.b) > 0 {
			t.Errorf("%d bytes are left", len(f.b))
		}
		rows, features, classes := golden.number(), golden.number(), golden.number()
		if rows != 6 || features != m.Classifier.Columns() || classes != 2 {
			t.Errorf("%d golden rows of %d features and %d classes", rows, features, classes)
		}
		for range rows {
			x := make([]float64, features)
			for j := range x {
				x[j] = golden.single()
			}
			got, want := posterior(x), golden.doubles(classes)
			for k := range want {
				if !(math.Abs(got[k]-want[k]) <= 1e-5) {
					t.Errorf("%s: posterior %v, the file says %v", encoding, got, want)
				}
			}
		}
		if len(golden.b) > 0 {
			t.Errorf("%d bytes are left of the golden vectors", len(golden.b))
		}
	}
}

// readClassifier returns the function from features to posterior.
func readClassifier(f *file, encoding int) func([]float64) []float64 {
	f.begins("FCLS", 1)
	k := f.number()
	for _, c := range f.doubles(k) {
		if !(c >= 0 && c <= 1) {
			f.t.Errorf("cost %v", c)
		}
	}
	if got := int(f.take(1)[0]); got != encoding {
		f.t.Fatalf("encoding %d, want %d", got, encoding)
	}
	type column struct {
		missing       float64
		knots, values []float64
	}
	columns := make([]column, f.number())
	for j := range columns {
		columns[j] = column{f.double(), f.doubles(f.number()), f.doubles(f.number())}
	}
	f.begins("FDBN", 1)
	layers := f.number()
	widths := make([]int, 1+layers)
	for i := range widths {
		widths[i] = f.number()
	}
	weights, biases := make([][][]float64, layers), make([][]float64, layers)
	for l := range layers {
		for range widths[l] {
			row := make([]float64, widths[l+1])
			for j := range row {
				row[j] = f.single()
			}
			weights[l] = append(weights[l], row)
		}
		for range widths[l+1] {
			biases[l] = append(biases[l], f.single())
		}
	}
	if len(f.b) > 0 || widths[layers] != k {
		f.t.Errorf("%d bytes are left; %d classes, %d units of the last layer", len(f.b), k, widths[layers])
	}
	within := func(low, x, high float64) float64 { return max(low, min(high, x)) }
	return func(row []float64) []float64 {
		var x []float64
		for j, v := range row {
			c := columns[j]
			k := c.knots
			if math.IsNaN(v) {
				v = c.missing
			}
			switch {
			case len(k) == 0:
				x = append(x, 0)
			case encoding == 0:
				x = append(x, within(-5, (v-k[0])/c.values[0], 5))
			case encoding == 2:
				i := 1
				for i < len(k)-1 && v > k[i] {
					i++
				}
				share := within(0, (v-k[i-1])/(k[i]-k[i-1]), 1)
				x = append(x, c.values[i-1]+share*(c.values[i]-c.values[i-1]))
			default:
				for b := range len(k) - 1 {
					x = append(x, within(0, (v-k[b])/(k[b+1]-k[b]), 1))
				}
			}
		}
		if len(x) != widths[0] {
			f.t.Fatalf("%d inputs for a network of %d", len(x), widths[0])
		}
		for l := range layers {
			out := slices.Clone(biases[l])
			for i, v := range x {
				for j, w := range weights[l][i] {
					out[j] += v * w
				}
			}
			var sum float64
			for j, z := range out {
				out[j] = 1 / (1 + math.Exp(-z))
				if l == layers-1 {
					out[j] = math.Exp(z)
				}
				sum += math.Exp(z)
			}
			for j := range out {
				if l == layers-1 {
					out[j] /= sum
				}
			}
			x = out
		}
		return x
	}
}

// checkManifest checks that a complete manifest has exactly the keys that model.md lists.
func checkManifest(t *testing.T, text []byte) {
	t.Helper()
	var manifest map[string]any
	if err := json.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	keys := make(map[string]bool)
	var walk func(path string, v any)
	walk = func(path string, v any) {
		if object, ok := v.(map[string]any); ok && path != "provenance.config" && path != "scores" && path != "recording" {
			for k, v := range object {
				walk(strings.TrimPrefix(path+"."+k, "."), v)
			}
			return
		}
		if list, ok := v.([]any); ok && len(list) > 0 {
			if _, ok := list[0].(map[string]any); ok {
				for _, v := range list {
					walk(path+"[]", v)
				}
				return
			}
		}
		keys[path] = true
	}
	walk("", manifest)
	byWear, err := json.Marshal(map[string]any{ // only of models that estimate wear, that have seen no worn tool, and of models that were trained on recordings
		"verdict_by_wear": model.WearVerdict{LimitUM: 300, Spread: 1}, "first_day": model.FirstDay{Level: score.Level{Columns: []int{0}, Weights: []float64{1}}, Reached: []float64{1}}, "recording": map[string]any{"tool": "tool"},
		"provenance": map[string]any{
			"window_length_known": true, "sketch": model.Sketch{Columns: []int{0}, Tolerance: []float64{1}, Tools: []model.SketchTool{{Name: "T1", Rows: make([]byte, 4)}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var only map[string]any
	if err := json.Unmarshal(byWear, &only); err != nil {
		t.Fatal(err)
	}
	walk("", only)
	doc, err := os.ReadFile("model.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "## Section `manifest`")
	chapter, _, _ := strings.Cut(rest, "## Section")
	documented := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(chapter, -1) {
		documented[m[1]] = true
	}
	if !maps.Equal(keys, documented) {
		t.Errorf("keys are\n%v\ndocumented are\n%v", slices.Sorted(maps.Keys(keys)), slices.Sorted(maps.Keys(documented)))
	}
}

// A reader needs only model.md to read the sections of the third verdict. Its formula gives the
// golden distances.
func TestNoveltyIsAsDocumented(t *testing.T) {
	m := *anyModel(t, classify.Standard)
	groups, y := make([]string, 200), make([]int, 200)
	x := dbn.NewMatrix(200, m.Classifier.Columns())
	var posterior []float64
	for i := range x.Rows {
		groups[i], y[i] = fmt.Sprint("T", i/40), i%2
		for j := range x.Cols {
			x.Row(i)[j] = float32((i*(j+3)+i*i)%17) + float32(i%(j+2))
		}
		posterior = append(posterior, 0.5+0.4*float64(1-2*y[i])*float64(i)/200, 0.5-0.4*float64(1-2*y[i])*float64(i)/200)
	}
	var err error
	if m.Conformal, err = unknown.NewConformal(posterior, y, groups, 2, 0.05); err != nil {
		t.Fatal(err)
	}
	if m.Novelty, _, err = unknown.FitNovelty(t.Context(), x, groups, nil, 0.02, 1, 1); err != nil {
		t.Fatal(err)
	}
	for _, g := range m.Golden {
		m.Distances = append(m.Distances, m.Novelty.NewScorer().Distance(g.Features))
	}
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	f := &file{t, b[:len(b)-32]}
	f.begins("FLANKMDL", 2)
	sections := map[string]*file{}
	for range f.number() {
		name := string(f.take(int(f.take(1)[0])))
		sections[name] = &file{t, f.take(int(binary.LittleEndian.Uint64(f.take(8))))}
	}
	// Tools all weigh the same: of each class five with 20 windows.
	shares := func(s *file, tools, windows int, descending bool) {
		t.Helper()
		if n := s.number(); n != tools {
			t.Errorf("%d tools, want %d", n, tools)
		}
		at, share := s.doubles(s.number()), s.doubles(s.number())
		if descending {
			slices.Reverse(at)
		}
		if len(at) != windows || len(share) != windows || !slices.IsSorted(at) || !slices.IsSorted(share) || share[windows-1] != 1 {
			t.Errorf("%d numbers with %d shares, want %d", len(at), len(share), windows)
		}
	}
	c := sections["conformal"]
	c.begins("FCONFORM", 2)
	if rate, k := c.double(), c.number(); rate != 0.05 || k != 2 {
		t.Fatalf("error rate %v of %d classes", rate, k)
	}
	for range 2 {
		shares(c, 5, 100, false)
	}
	n, d := sections["novelty"], sections["golden-novelty"]
	n.begins("FNOVELTY", 2)
	if rate := n.double(); rate != 0.02 {
		t.Errorf("p-value %v", rate)
	}
	precision, mean, sd := n.double(), n.doubles(n.number()), n.doubles(n.number())
	shares(n, 5, 200, true)
	directions := make([][]float64, n.number())
	for k := range directions {
		for range mean {
			directions[k] = append(directions[k], n.single())
		}
	}
	want := d.doubles(d.number())
	if len(want) != len(m.Golden) || len(n.b)+len(c.b)+len(d.b) > 0 {
		t.Fatalf("%d golden distances for %d rows; %d, %d, %d bytes are left", len(want), len(m.Golden), len(n.b), len(c.b), len(d.b))
	}
	for i, g := range m.Golden {
		a := make([]float64, len(mean))
		var got float64
		for j, v := range g.Features {
			if v == v && sd[j] > 0 {
				a[j] = max(-5, min(5, (float64(v)-mean[j])/sd[j]))
			}
			got += precision * a[j] * a[j]
		}
		for _, u := range directions {
			var w float64
			for j := range a {
				w += u[j] * a[j]
			}
			got -= w * w
		}
		if got = max(got, 0); math.Abs(got-want[i]) > 1e-3*(1+want[i]) {
			t.Errorf("row %d: distance %v, the file says %v", i, got, want[i])
		}
	}
}

// Section wear has exactly the keys that model.md lists.
func TestWearIsAsDocumented(t *testing.T) {
	doc, err := os.ReadFile("model.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "## Section `wear`")
	chapter, _, _ := strings.Cut(rest, "## Section")
	var documented []string
	for _, line := range regexp.MustCompile("(?m)^\\| `[^|]+\\|").FindAllString(chapter, -1) {
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(line, -1) {
			documented = append(documented, m[1])
		}
	}
	var keys []string
	for _, of := range []reflect.Type{reflect.TypeFor[trend.Model](), reflect.TypeFor[trend.Input]()} {
		for _, f := range reflect.VisibleFields(of) {
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			keys = append(keys, key)
		}
	}
	if !slices.Equal(slices.Sorted(slices.Values(keys)), slices.Sorted(slices.Values(documented))) {
		t.Errorf("keys are %v, documented are %v", keys, documented)
	}
}

// The assumptions of the reader above are in model.md.
func TestModelDocumentNames(t *testing.T) {
	doc, err := os.ReadFile("model.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := regexp.MustCompile("(?m)^## Section `([^`]+)`").FindAllStringSubmatch(string(doc), -1)
	var names []string
	for _, s := range sections {
		names = append(names, s[1])
	}
	if want := []string{"manifest", "classifier", "golden", "wear", "golden-wear", "conformal", "novelty", "golden-novelty", "drift", "held-out"}; !slices.Equal(names, want) {
		t.Errorf("sections %v, want %v", names, want)
	}
	for _, want := range []string{
		"| 8 | `FLANKMDL` |", "| 4 | version of the format, uint32: `3` without section `classifier`, `2` if section `conformal` or `novelty` or `verdict_by_wear` is there, else `1` |", "| 4 | number of sections, uint32: `3`, one more for each optional one, one less without section `classifier` |",
		"| 4 | `FCLS` |", "0 `standard`, 1 `minmax`, 2 `normalscore`, 3 `bins`, 4 `committee`", "| 4 | `FDBN` |", "`ecs-dbn-`",
		"more than 1e-5", fmt.Sprintf("within ±%d, and", model.RatioLimit),
		fmt.Sprintf("`%s`, `%s`, `%s`, `%s` or `%s`", model.ReferenceKind, model.ReferenceLog, model.ReferenceRatio, model.ReferenceDifference, model.ReferenceOff),
		fmt.Sprintf("at least %.0e, kept within ±%d", model.LogFloor, model.LogLimit),
	} {
		if !strings.Contains(string(doc), want) {
			t.Errorf("model.md does not say %q", want)
		}
	}
}

package model

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"crypto/sha256"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model/unknown"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/trend"
	"github.com/flank-tcm/flank/pkg/window"
)

// small returns a layout of a force that gates and two features.
func small(t testing.TB) *signal.Layout {
	l, err := signal.NewLayout("small", []signal.Channel{
		{Name: "thrust", Kind: signal.Force, Unit: "N", Rate: 100},
		{Name: "a", Kind: signal.Feature, Rate: 1},
		{Name: "b", Kind: signal.Feature, Rate: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// trained returns a model that finds a window faulty when a and b have grown
// by half over the reference.
func trained(t testing.TB) *Model {
	m := &Model{
		Layout: small(t), Window: window.DefaultSpec, Reference: ReferenceSpec{Windows: 2, Mode: ReferenceRatio},
		Gate: &Gate{Channel: "thrust", Threshold: 100}, Usual: make([]signal.Quality, 3),
		Label:      LabelRule{VBMaxUM: 300, States: []string{"broken"}},
		Provenance: Provenance{Program: "test", Seed: 3, Data: []DataSet{{Name: "made up", SHA256: "00", Windows: 80}}},
		Scores:     json.RawMessage(`{"gmean":1}`),
	}
	n := len(m.NewJudge().FeatureNames())
	rng := rand.New(rand.NewPCG(3, 4))
	x := dbn.NewMatrix(80, n)
	y := make([]int, x.Rows)
	for i := range x.Rows {
		y[i] = i % 4 / 3
		for j := range n {
			x.Row(i)[j] = float32(float64(y[i]) + 0.2*rng.NormFloat64())
		}
	}
	c, _, err := classify.Fit(context.Background(), x, y, nil, classify.Settings{
		Network: dbn.Settings{Hidden: []int{4}, Pretrain: dbn.PretrainSettings{Epochs: 3}, FineTune: dbn.FineTuneSettings{Epochs: 40}}, Seed: 5,
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Classifier = c
	s := c.NewScorer()
	for i := range 4 {
		m.Golden = append(m.Golden, Golden{x.Row(i), append([]float64(nil), s.Posterior(x.Row(i))...)})
	}
	return m
}

// cutting returns a window whose values are all grown by a factor.
func cutting(grown float32) *window.Window {
	thrust := make([]float32, 100)
	for i := range thrust {
		thrust[i] = (500 + float32(i%7)) * grown
	}
	return &window.Window{
		Context: signal.Context{Machine: "m", Tool: "T1"}, Length: time.Second,
		Samples: [][]float32{thrust, {2 * grown}, {-3 * grown}}, Quality: make([]signal.Quality, 3),
	}
}

func TestJudge(t *testing.T) {
	m := trained(t)
	j := m.NewJudge()
	var ref Reference
	idle := cutting(0.01)
	nan := float32(math.NaN())
	oneOut := cutting(1)
	oneOut.Samples[1][0], oneOut.Quality[1] = nan, signal.Dropout
	blind := cutting(1)
	blind.Quality[0] = signal.Flatline
	other := cutting(2)
	other.Tool = "T2"
	for i, step := range []struct {
		w      *window.Window
		want   Outcome
		learnt int
		why    string
	}{
		{idle, NotCutting, 0, "the gate's channel is low"},
		{cutting(1), Learning, 1, "first of two"},
		{idle, NotCutting, 0, "learns nothing while idle"},
		{cutting(1), Learning, 2, "second of two"},
		{cutting(1), Healthy, 0, "as when the tool was new"},
		{cutting(2), Faulty, 0, "twice as much as when it was new"},
		{blind, SensorFault, 0, "without the gate's channel it is not known whether it cuts"},
		{oneOut, SensorFault, 0, "one of three channels is more than a quarter"},
		{other, Learning, 1, "another tool has another reference"},
		{other, Learning, 2, ""},
		{other, Healthy, 0, "twice as much as another tool is not wear of this one"},
	} {
		v := j.Judge(step.w, &ref, nil)
		if v.Outcome != step.want || v.Learnt != step.learnt {
			t.Errorf("step %d (%s): %s, learnt %d, want %s, %d", i, step.why, v.Outcome, v.Learnt, step.want, step.learnt)
		}
		if judged := v.Outcome == Healthy || v.Outcome == Faulty; judged != (v.Posterior != nil) || (v.Score >= 0.5) != (v.Outcome == Faulty) {
			t.Errorf("step %d: %s with posterior %v, score %v", i, v.Outcome, v.Posterior, v.Score)
		}
	}
}

// A flag that the training data had often is not a fault. A channel that is out does
// not vote: what it reads does not matter.
func TestJudgeLeavesFaultyChannelsOut(t *testing.T) {
	m := trained(t)
	cs := append([]signal.Channel(nil), m.Layout.Channels()...)
	for _, n := range []string{"c", "d", "e"} { // so that one channel is less than a quarter
		cs = append(cs, signal.Channel{Name: n, Kind: signal.Feature, Rate: 1})
	}
	l, err := signal.NewLayout("wider", cs)
	if err != nil {
		t.Fatal(err)
	}
	wide := &Model{Layout: l, Window: m.Window, Reference: ReferenceSpec{Mode: ReferenceOff}, Usual: make([]signal.Quality, 6)}
	wide.Usual[5] = signal.Dropout
	j := wide.NewJudge()
	var ref Reference
	row := func(a float32, qa signal.Quality) ([]float32, Outcome) {
		w := cutting(1)
		w.Samples = append(w.Samples, []float32{1}, []float32{2}, []float32{float32(math.NaN())})
		w.Quality = append(w.Quality, 0, 0, signal.Dropout)
		w.Samples[1][0], w.Quality[1] = a, qa
		var o Observation
		j.Observe(w, &o)
		row, v := j.Row(&o, &ref, nil)
		return append([]float32(nil), row...), v.Outcome
	}
	x, _ := row(1e30, signal.Clipped)
	y, outcome := row(-5, signal.Clipped)
	if outcome == SensorFault || len(x) == 0 {
		t.Fatalf("one channel of six and a usual flag make %q", outcome)
	}
	for i := range x {
		if math.Float32bits(x[i]) != math.Float32bits(y[i]) {
			t.Errorf("feature %s: %v and %v although its channel is out", j.FeatureNames()[i], x[i], y[i])
		}
	}
}

// A channel that was out while the tool's reference was learnt says nothing of this tool: it counts among those that are out, until the next tool.
func TestJudgeNamesChannelsWithoutAReference(t *testing.T) {
	m := trained(t)
	cs := append([]signal.Channel(nil), m.Layout.Channels()...)
	for _, n := range []string{"c", "d", "e"} {
		cs = append(cs, signal.Channel{Name: n, Kind: signal.Feature, Rate: 1})
	}
	l, err := signal.NewLayout("wider", cs)
	if err != nil {
		t.Fatal(err)
	}
	wide := &Model{Layout: l, Window: m.Window, Reference: ReferenceSpec{Windows: 2, Mode: ReferenceRatio}, Usual: make([]signal.Quality, 6)}
	wide.Usual[5] = signal.Dropout
	j := wide.NewJudge()
	var ref Reference
	for i, step := range []struct {
		tool    string
		out     []int
		absent  []bool
		outcome Outcome
	}{
		{"T1", []int{1, 5}, nil, Learning},
		{"T1", []int{1, 5}, nil, Learning},
		{"T1", []int{1}, []bool{false, true, false, false, false, false}, ""}, // counts once
		{"T1", nil, []bool{false, true, false, false, false, false}, ""},
		{"T1", []int{2}, []bool{false, true, false, false, false, false}, SensorFault}, // two of six are more than a quarter
		{"T2", nil, nil, Learning},
		{"T2", []int{1}, nil, Learning},
		{"T2", nil, nil, ""}, // one window had values
	} {
		w := cutting(1)
		w.Tool = step.tool
		w.Samples = append(w.Samples, []float32{1}, []float32{2}, []float32{3})
		w.Quality = append(w.Quality, 0, 0, 0)
		for _, c := range step.out {
			w.Samples[c][0], w.Quality[c] = float32(math.NaN()), signal.Dropout
		}
		_, v := j.Row(observe(j, w), &ref, nil)
		if v.Outcome != step.outcome || !slices.Equal(v.Absent, step.absent) {
			t.Errorf("step %d: %q, absent %v, want %q, %v", i, v.Outcome, v.Absent, step.outcome, step.absent)
		}
	}
}

func TestReferenceLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "features")
		value := rapid.Float32Range(-100, 100)
		var ref Reference
		spec := ReferenceSpec{Windows: rapid.IntRange(1, 6).Draw(t, "windows"), Mode: ReferenceRatio}
		stop := rapid.IntRange(0, spec.Windows).Draw(t, "learnt before a restart")
		for i := range spec.Windows {
			if i == stop {
				restart(t, &ref)
			}
			if ref.Ready(spec) {
				t.Fatalf("ready after %d of %d windows", i, spec.Windows)
			}
			ref.Learn(rapid.SliceOfN(value, n, n).Draw(t, "learnt"), spec)
		}
		if !ref.Ready(spec) || ref.Features() != n {
			t.Fatalf("not ready after %d windows, of %d features", spec.Windows, ref.Features())
		}
		restart(t, &ref)
		text, err := json.Marshal(&ref)
		if err != nil {
			t.Fatal(err)
		}
		var again Reference
		if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(ref, again) {
			t.Fatalf("restored %+v of %+v: %v", again, ref, err)
		}
		x := rapid.SliceOfN(value, n, n).Draw(t, "x")
		r, d := append([]float32(nil), x...), append([]float32(nil), x...)
		ReferenceSpec{Mode: ReferenceRatio}.Relate(r, r, ref.Center(), nil)
		ReferenceSpec{Mode: ReferenceDifference}.Relate(d, d, ref.Center(), nil)
		for i := range x {
			if !(math.Abs(float64(r[i])) <= RatioLimit) {
				t.Fatalf("ratio %v is out of ±%v", r[i], RatioLimit)
			}
			// Both say the same of the direction, if there is a scale.
			if ref.center[i] != 0 && float64(r[i])*float64(d[i]) < 0 && math.Abs(float64(d[i])) > 1e-3 {
				t.Fatalf("ratio %v, difference %v", r[i], d[i])
			}
		}
	})
	// By hand: the median of 3, 5 and an outlier of 1000 is 5, so 10 is 10/5 − 1
	// = 1 in ratio; of −2 and −1 it is −1.5, so −3 is −3/1.5 + 1 = −1. A missing
	// value does not count, nor does an infinity.
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	var ref Reference
	spec := ReferenceSpec{Windows: 3, Mode: ReferenceRatio}
	ref.Learn([]float32{3, -2, 0, nan}, spec)
	ref.Learn([]float32{1000, inf, 0, nan}, spec)
	ref.Learn([]float32{5, -1, 0, nan}, spec)
	x := []float32{10, -3, 7, 1}
	spec.Relate(x, x, ref.Center(), nil)
	if x[0] != 1 || x[1] != -1 || x[2] != RatioLimit || x[3] == x[3] {
		t.Errorf("got %v, want 1 -1 20 NaN", x)
	}
}

// Of a vibration, the gain of the sensor drops out: every feature of the default
// set is the same relative to the reference at any gain.
func TestReferenceDropsGain(t *testing.T) {
	const n = 2000
	l, err := signal.NewLayout("one", []signal.Channel{{Name: "ax", Kind: signal.Vibration, Rate: n}})
	if err != nil {
		t.Fatal(err)
	}
	x, err := signal.NewExtractor(l, []int{n}, signal.FeatureSpec{})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	first, then := make([]float32, n), make([]float32, n)
	for i := range first {
		first[i], then[i] = float32(rng.NormFloat64()), float32(rng.ExpFloat64()-1)
	}
	relative := func(gain float32) []float32 {
		var rows [2][]float32
		for k, samples := range [][]float32{first, then} {
			louder := make([]float32, n)
			for i, v := range samples {
				louder[i] = gain * v
			}
			rows[k] = x.Extract(nil, [][]float32{louder}, signal.Context{SpindleSpeed: 3000})
		}
		var ref Reference
		spec := ReferenceSpec{Windows: 1, Mode: ReferenceKind}
		ref.Learn(rows[0], spec)
		spec.Relate(rows[1], rows[1], ref.Center(), x.Relations())
		return rows[1]
	}
	soft, loud := relative(1), relative(30)
	for i, name := range x.Names() {
		if d := math.Abs(float64(soft[i] - loud[i])); !(d <= 1e-3) {
			t.Errorf("%s is %v, with 30 times the gain %v", name, soft[i], loud[i])
		}
	}
}

// restart writes the reference and reads it again.
func restart(t *rapid.T, ref *Reference) {
	t.Helper()
	text, err := json.Marshal(ref)
	if err != nil {
		t.Fatal(err)
	}
	var again Reference
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	*ref = again
}

func TestDamagedReference(t *testing.T) {
	for _, text := range []string{
		`7`, `{"windows":-1}`, `{"windows":201}`, `{"windows":0,"settled":true}`, `{"windows":2,"settled":true}`, `{"windows":0,"data":"AAAAAA=="}`,
		`{"windows":2,"data":"AAAAAA=="}`, // half a window
		`{"windows":1,"data":"AAAA"}`,     // three bytes
		`{"windows":1,"data":"?"}`,
		`{"windows":1,"settled":true,"data":"AACAfw=="}`, // an infinity
	} {
		ref := Reference{Tool: "kept"}
		if err := json.Unmarshal([]byte(text), &ref); err == nil || ref.Tool != "kept" {
			t.Errorf("%s: error %v, reference %+v", text, err, ref)
		}
	}
}

func TestFile(t *testing.T) {
	m := trained(t)
	path := filepath.Join(t.TempDir(), "m.flank")
	if err := m.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID() != m.ID() || !strings.HasPrefix(got.ID(), "ecs-dbn-") {
		t.Errorf("id %q, saved as %q", got.ID(), m.ID())
	}
	again, err := got.Encode()
	if err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, again) {
		t.Error("a model that was read is not written as it was")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	var ref Reference
	j := got.NewJudge()
	for range 2 {
		j.Judge(cutting(1), &ref, nil)
	}
	if v := j.Judge(cutting(2), &ref, nil); v.Outcome != Faulty {
		t.Errorf("the model that was read says %s", v.Outcome)
	}
}

// A model that has its id is only read, also by Encode: `make race` would see it written.
func TestEncodeInUse(t *testing.T) {
	m := trained(t)
	if _, err := m.Encode(); err != nil {
		t.Fatal(err)
	}
	id := m.ID()
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			var ref Reference
			m.NewJudge().Judge(cutting(1), &ref, nil)
			if _, err := m.Encode(); err != nil || m.ID() != id {
				t.Errorf("id %q, was %q: %v", m.ID(), id, err)
			}
		})
	}
	users.Wait()
}

// A model that estimates wear keeps that in a section of its own, which files of
// models that do not lack; it is refused if it is not of the model's features.
func TestFileWithWear(t *testing.T) {
	m := *trained(t)
	without, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	n := 2 * m.Classifier.Columns()
	m.Wear = &trend.Model{
		Center: make([]float64, n), Scale: slices.Repeat([]float64{1}, n), Weights: slices.Repeat([]float64{0.1}, n), Bias: 1.0 / 3,
		Median: 3, Low: -1, High: 1, MostUM: 900, Distance: 25, LimitUM: 300,
	}
	with, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	old, err := Decode(without)
	if err != nil || old.Wear != nil {
		t.Errorf("without the section: wear %v, %v", old.Wear, err)
	}
	got, err := Decode(with)
	if err != nil || !reflect.DeepEqual(got.Wear, m.Wear) {
		t.Fatalf("wear is read as %+v, %v", got.Wear, err)
	}
	j := got.NewJudge()
	var ref Reference
	var tool trend.Tool
	if e, asked := old.NewJudge().Wear(&tool, "H1"); asked || e.Known() || tool.Windows != 0 {
		t.Errorf("wear without a model of it: %+v", e)
	}
	w := cutting(1)
	for range 5 {
		j.Judge(w, &ref, nil)
		if e, asked := j.Wear(&tool, "H1"); !asked || !e.Known() {
			t.Fatalf("%+v", e)
		}
	}
	if n := testing.AllocsPerRun(100, func() { j.Judge(w, &ref, nil); j.Wear(&tool, "H1") }); n > 0 {
		t.Errorf("%v allocations for a window", n)
	}
	m.Wear = &trend.Model{Median: 3}
	if _, err := m.Encode(); err == nil {
		t.Error("wear of no features was written")
	}
	if _, err := Decode(resum(bytes.Replace(with, []byte(`"median":3`), []byte(`"median":4`), 1))); !errors.Is(err, errFileDamaged) {
		t.Errorf("an even median: %v", err)
	}
}

// A model whose wear takes the tool's reference is read as it was written, with
// references in its golden vectors, and estimates nothing before a tool has one.
func TestFileWithWearByReference(t *testing.T) {
	m := *trained(t)
	p := m.Classifier.Columns()
	leaf := trend.Tree{}
	if err := leaf.UnmarshalText([]byte("AABAQAAAAAA=")); err != nil { // a leaf of 3 √µm
		t.Fatal(err)
	}
	m.Wear = &trend.Model{
		Center: make([]float64, 2*p), Scale: slices.Repeat([]float64{1}, 2*p), Weights: make([]float64, 2*p), Bias: 6,
		Median: 3, Low: -1, High: 1, MostUM: 900, Distance: 25, LimitUM: 300,
		Parts: []trend.Part{trend.Ridge, trend.Weighted, trend.Trees}, Reference: true, Offset: 9,
		Inputs: []trend.Input{{Column: 0, Form: trend.LogRatio, Scale: 1, Weight: 3}}, Forest: []trend.Tree{leaf},
	}
	g := GoldenWear{Features: slices.Repeat([]float32{2}, p), Reference: slices.Repeat([]float32{2}, p), Root: 6}
	m.GoldenWear = []GoldenWear{g}
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil || !reflect.DeepEqual(got.Wear, m.Wear) || !reflect.DeepEqual(got.GoldenWear, m.GoldenWear) {
		t.Fatalf("%v: read as %+v, %+v", err, got.Wear, got.GoldenWear)
	}
	for name, spoil := range map[string]func(m *Model){
		"golden vector without reference": func(m *Model) { m.GoldenWear = []GoldenWear{{Features: g.Features, Root: 6}} },
		"another reference": func(m *Model) {
			m.GoldenWear = []GoldenWear{{Features: g.Features, Reference: slices.Repeat([]float32{1}, p), Root: 6}}
		},
		"no references": func(m *Model) { m.Reference.Mode = ReferenceOff },
	} {
		broken := m
		if spoil(&broken); func() error { _, err := broken.Encode(); return err }() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	j := got.NewJudge()
	var ref Reference
	var tool trend.Tool
	w := cutting(1)
	for i := range m.Reference.Windows + 2 {
		j.Judge(w, &ref, nil)
		settled := i+1 >= m.Reference.Windows
		if (j.Center() != nil) != settled {
			t.Fatalf("window %d: center %v", i+1, j.Center())
		}
		e, asked := j.Wear(&tool, "H1")
		if !asked || e.Known() != settled || settled && math.Abs(e.UM-36) > 1e-9 {
			t.Errorf("window %d: %+v, %v", i+1, e, asked)
		}
	}
	if n := testing.AllocsPerRun(100, func() { j.Judge(w, &ref, nil); j.Wear(&tool, "H1") }); n > 0 {
		t.Errorf("%v allocations for a window", n)
	}
	if text, err := json.Marshal(&tool); err != nil || strings.Contains(string(text), "reference") {
		t.Errorf("the state holds the reference once more: %s, %v", text, err)
	}
}

// cautious returns a model that may say unknown: with an error rate of 0.2, and
// calibrated on three tools.
func cautious(t testing.TB) *Model {
	m := *trained(t)
	n := m.Classifier.Columns()
	rng := rand.New(rand.NewPCG(5, 6))
	x := dbn.NewMatrix(120, n)
	groups, y := make([]string, x.Rows), make([]int, x.Rows)
	s := m.Classifier.NewScorer()
	var posterior []float64
	for i := range x.Rows {
		groups[i], y[i] = string(rune('A'+i/40)), i%4/3
		for j := range n {
			x.Row(i)[j] = float32(float64(y[i]) + 0.2*rng.NormFloat64())
		}
		posterior = append(posterior, s.Posterior(x.Row(i))...)
	}
	var err error
	if m.Conformal, err = unknown.NewConformal(posterior, y, groups, 2, 0.1); err != nil {
		t.Fatal(err)
	}
	if m.Novelty, _, err = unknown.FitNovelty(context.Background(), x, groups, nil, 0.02, 1, 1); err != nil {
		t.Fatal(err)
	}
	for _, g := range m.Golden {
		m.Distances = append(m.Distances, m.Novelty.NewScorer().Distance(g.Features))
	}
	m.Drift = &Drift{Tools: 5, Center: make([]float64, n), Scale: slices.Repeat([]float64{1}, n), Degrees: 2, Raise: 8, Clear: 2}
	return &m
}

// A cautious model says unknown, and why: of a healthy decision on a row unlike all
// others, and of a row that may be either. A worn tool may be unlike all others.
func TestJudgeSaysUnknown(t *testing.T) {
	m := cautious(t)
	j := m.NewJudge()
	n := m.Classifier.Columns()
	row := func(v float32) []float32 { return slices.Repeat([]float32{v}, n) }
	torn := row(0) // features that always go together do so no more
	for i := range torn {
		torn[i] = []float32{-3, 3}[i%2]
	}
	for name, tc := range map[string]struct {
		row    []float32
		want   Outcome
		reason UnknownReason
	}{
		"like healthy ones":       {row(0), Healthy, ""},
		"like faulty ones":        {row(1), Faulty, ""},
		"worn beyond all of them": {row(30), Faulty, ""},
		"half-way":                {row(0.5), Unknown, Implausible},
		"unlike any":              {row(-30), Unknown, OutOfDistribution},
	} {
		v := j.Decide(tc.row, nil, nil)
		if counts := tc.reason != OutOfDistribution; v.Reason.Counts() != counts || !Ambiguous.Counts() || UnknownReason("model_changed").Counts() {
			t.Errorf("%s: an alarm counts it: %v", name, !counts)
		}
		if v.Outcome != tc.want || v.Reason != tc.reason || (v.Class == "") != (tc.want == Unknown) {
			t.Errorf("%s: %v %q %q, P %v, novelty %v", name, v.Outcome, v.Reason, v.Class, v.Posterior, v.Novelty)
		}
		if !(v.Novelty > 0 && v.Novelty <= 1) || len(v.Posterior) != 2 {
			t.Errorf("%s: novelty %v, posterior %v", name, v.Novelty, v.Posterior)
		}
	}
	// Of no row is the verdict healthy with a reason for unknown.
	rapid.Check(t, func(t *rapid.T) {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rapid.Float64Range(-3, 3).Draw(t, "x"))
		}
		v := j.Decide(x, nil, nil)
		class := m.Classifier.Decide(v.Posterior)
		switch {
		case (v.Reason != "") != (v.Outcome == Unknown):
			t.Fatalf("%v with reason %q", v.Outcome, v.Reason)
		case v.Outcome == Healthy && (class != 0 || v.Novelty <= m.Novelty.Rate || !m.Conformal.In(0, v.Posterior) || m.Conformal.In(1, v.Posterior)):
			t.Fatalf("healthy of class %d, P %v, novelty %v", class, v.Posterior, v.Novelty)
		case v.Outcome == Faulty && (class != 1 || m.Conformal.In(0, v.Posterior) || !m.Conformal.In(1, v.Posterior)):
			t.Fatalf("faulty of class %d, P %v", class, v.Posterior)
		}
	})
	if n := testing.AllocsPerRun(100, func() { j.Decide(torn, nil, nil) }); n > 0 {
		t.Errorf("%v allocations for a row", n)
	}
}

// What makes the third verdict, drift and golden vectors of wear are sections of their
// own, which older files lack; they are read as they were written and checked.
func TestFileWithUnknown(t *testing.T) {
	m := cautious(t)
	n := m.Classifier.Columns()
	m.Wear = &trend.Model{
		Center: make([]float64, 2*n), Scale: slices.Repeat([]float64{1}, 2*n), Weights: slices.Repeat([]float64{0.1}, 2*n), Bias: 5,
		Median: 3, Low: -1, High: 1, MostUM: 900, Distance: 25, LimitUM: 300,
	}
	root, _ := m.Wear.Root(m.Golden[0].Features, nil)
	m.GoldenWear = []GoldenWear{{Features: m.Golden[0].Features, Root: root}}
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Conformal, m.Conformal) || !reflect.DeepEqual(got.Novelty, m.Novelty) || !reflect.DeepEqual(got.Drift, m.Drift) ||
		!reflect.DeepEqual(got.GoldenWear, m.GoldenWear) || !slices.Equal(got.Distances, m.Distances) {
		t.Error("it is not read as it was written")
	}
	if again, err := got.Encode(); err != nil || !bytes.Equal(again, b) {
		t.Errorf("written again it differs: %v", err)
	}
	for name, tc := range map[string]struct {
		spoil func(m *Model)
		want  error
	}{
		"a distance":         {func(m *Model) { m.Distances = slices.Clone(m.Distances); m.Distances[2] *= 1.01 }, errGolden},
		"a root of wear":     {func(m *Model) { m.GoldenWear = []GoldenWear{{Features: m.Golden[0].Features, Root: root + 0.01}} }, errGolden},
		"wear of no feature": {func(m *Model) { m.GoldenWear = []GoldenWear{{Root: root}} }, errGolden},
		"too few distances":  {func(m *Model) { m.Distances = m.Distances[1:] }, nil},
		"classes":            {func(m *Model) { m.Conformal = threeSets(t) }, nil},
		"drift of nothing":   {func(m *Model) { m.Drift = &Drift{Tools: 4} }, nil},
		"no reference":       {func(m *Model) { m.Reference.Mode = ReferenceOff }, nil},
	} {
		broken := *m
		tc.spoil(&broken)
		if _, err := broken.Encode(); err == nil || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The version of a file says whether it has the third verdict.
func TestFileVersion(t *testing.T) {
	m := *cautious(t)
	for _, want := range []uint32{2, 1} {
		b, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if v := binary.LittleEndian.Uint32(b[8:]); v != want {
			t.Errorf("version %d, want %d", v, want)
		}
		m.Conformal, m.Novelty, m.Distances = nil, nil, nil
	}
}

// threeSets returns a calibration of three classes.
func threeSets(t testing.TB) *unknown.Conformal {
	var y []int
	for i := range 60 {
		y = append(y, i%3)
	}
	c, err := unknown.NewConformal(slices.Repeat([]float64{0.2, 0.3, 0.5}, 60), y, slices.Repeat([]string{"A", "B", "C"}, 20), 3, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// resum makes the checksum of a changed file fit again.
func resum(b []byte) []byte {
	sum := sha256.Sum256(b[:len(b)-sha256.Size])
	return append(b[:len(b)-sha256.Size:len(b)-sha256.Size], sum[:]...)
}

// longestName returns a file whose only section has a name of 255 bytes.
func longestName() []byte {
	b := append([]byte(magic), 1, 0, 0, 0, 1, 0, 0, 0, 255)
	b = append(b, bytes.Repeat([]byte("0"), 255)...)
	return resum(append(b, make([]byte, 8+sha256.Size)...))
}

// endless returns a file of m whose windows are two hundred years long.
func endless(t *testing.T, m Model) []byte {
	m.Window.Length = 200 * 365 * 24 * time.Hour
	text, err := m.manifest(nil)
	if err != nil {
		t.Fatal(err)
	}
	class, err := m.Classifier.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := sectionWriter{b: append([]byte(magic), 1, 0, 0, 0, 3, 0, 0, 0)}
	w.add(sectionManifest, text)
	w.add(sectionClassifier, class)
	w.add(sectionGolden, appendGolden(nil, m.Golden, m.Classifier.Columns(), 2))
	return resum(append(w.b, make([]byte, sha256.Size)...))
}

func TestDecodeRefuses(t *testing.T) {
	m := trained(t)
	good, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	bad := *m
	bad.Golden = []Golden{{m.Golden[0].Features, []float64{0.5, 0.5}}}
	if _, err := bad.Encode(); !errors.Is(err, errGolden) {
		t.Errorf("a model with wrong golden vectors was written: %v", err)
	}
	change := func(f func([]byte) []byte) []byte { return f(append([]byte(nil), good...)) }
	replace := func(old, new string) []byte {
		if !bytes.Contains(good, []byte(old)) || len(old) != len(new) {
			t.Fatalf("cannot replace %q", old)
		}
		return resum(bytes.Replace(append([]byte(nil), good...), []byte(old), []byte(new), 1))
	}
	golden := change(func(b []byte) []byte {
		at := len(b) - sha256.Size - 8
		binary.LittleEndian.PutUint64(b[at:], math.Float64bits(0.123))
		return resum(b)
	})
	for name, tc := range map[string]struct {
		b    []byte
		kind error
		text string
	}{
		"empty":              {nil, errFileDamaged, "not a Flank model"},
		"another format":     {[]byte("PK\x03\x04 a zip file, say, of a fair length indeed"), errFileDamaged, "not a Flank model"},
		"cut off":            {good[:len(good)-1], errFileDamaged, "checksum"},
		"one bit flipped":    {change(func(b []byte) []byte { b[len(b)/2] ^= 4; return b }), errFileDamaged, "checksum"},
		"newer version":      {change(func(b []byte) []byte { b[8] = 4; return resum(b) }), errOther, "version 4, this program reads 1 to 3"},
		"section cut off":    {change(func(b []byte) []byte { return resum(b[:len(b)-100]) }), errFileDamaged, "cut off"},
		"longest name":       {longestName(), errFileDamaged, "manifest"},
		"endless windows":    {endless(t, *m), errFileDamaged, "choose a shorter length"},
		"layout changed":     {replace(`"unit": "N"`, `"unit": "K"`), errFileDamaged, "fingerprint"},
		"unknown mode":       {replace(`"mode": "ratio"`, `"mode": "ratic"`), errFileDamaged, "mode"},
		"gate of no channel": {replace(`"channel": "thrust"`, `"channel": "thrusl"`), errFileDamaged, "thrusl"},
		"computes otherwise": {golden, errGolden, "class 1"},
	} {
		_, err := Decode(tc.b)
		if !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: got %v, want %v with %q", name, err, tc.kind, tc.text)
		}
	}
}

func TestLoadNamesFileAndRemedy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "absent.flank")
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "trainer fit --model "+path) || !strings.Contains(err.Error(), "trainer demo --model "+path) {
		t.Errorf("absent: %v", err)
	}
	if err := os.WriteFile(path, []byte("FLANKMDL and nothing more than this, which is too short to be one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "copy the file again") {
		t.Errorf("damaged: %v", err)
	}
}

func TestFits(t *testing.T) {
	m := trained(t)
	if err := m.Fits(small(t), window.DefaultSpec); err != nil {
		t.Error(err)
	}
	if err := m.Fits(small(t), window.Spec{Length: 2 * time.Second}); !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), "2s") {
		t.Errorf("other length: %v", err)
	}
	if err := m.Fits(signal.GunDrill(), window.DefaultSpec); !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), "ch01") {
		t.Errorf("other layout: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	good, err := trained(f).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	with, err := cautious(f).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(with)
	logs, err := inMode(f, ReferenceLog).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(logs)
	f.Add([]byte(magic))
	f.Add(longestName())
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > sha256.Size {
			b = resum(append([]byte(nil), b...)) // or nothing behind the checksum is reached
		}
		if m, err := Decode(b); err == nil {
			j, row := m.NewJudge(), make([]float32, m.Classifier.Columns()) // a model that is read can be used
			j.Decide(row, nil, nil)
			m.Reference.Relate(row, row, make([]float32, len(row)), j.Relations())
		}
	})
}

// What the gate must not do: judge a window without a single allocation beyond
// the verdict's.
func TestJudgeAllocatesNothing(t *testing.T) {
	m := trained(t)
	j := m.NewJudge()
	var ref Reference
	w := cutting(1)
	for range 3 {
		j.Judge(w, &ref, nil)
	}
	if n := testing.AllocsPerRun(100, func() { j.Judge(w, &ref, nil) }); n > 0 {
		t.Errorf("%v allocations for a window", n)
	}
}

// A reference from anywhere is refused or can be used: it learns and applies
// without a panic, and is written as it was read.
func FuzzReference(f *testing.F) {
	var ref Reference
	spec := ReferenceSpec{Windows: 2, Mode: ReferenceRatio}
	for _, row := range [][]float32{{1, -2}, {3, float32(math.NaN())}} {
		ref.Learn(row, spec)
		text, err := json.Marshal(&ref)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"windows":1,"data":"AAAAAA=="}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r Reference
		if json.Unmarshal(text, &r) != nil {
			return
		}
		again, err := json.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		var same Reference
		if err := json.Unmarshal(again, &same); err != nil {
			t.Fatalf("%s becomes %s: %v", text, again, err)
		}
		n := max(r.Features(), 1)
		for !r.Ready(spec) {
			r.Learn(make([]float32, n), spec)
		}
		x := make([]float32, n)
		spec.Relate(x, x, r.Center(), nil)
		for _, v := range x {
			if math.IsInf(float64(v), 0) || v > RatioLimit || v < -RatioLimit {
				t.Fatalf("%s makes %v of 0", text, v)
			}
		}
	})
}

// The machine of a cycle may mill: its tool cuts.
func TestCuttingInWords(t *testing.T) {
	m := &Model{Cycle: &cycle.Model{Inputs: []cycle.Input{{Channel: "force"}}, Parts: []cycle.Part{{State: cycle.Idle}, {State: cycle.Drilling}}}}
	if got, want := m.Cutting(), "while the tool cuts; idle and cutting are told apart by force"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

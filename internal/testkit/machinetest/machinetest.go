// Package machinetest holds models and windows of one value for tests and simulations.
package machinetest

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
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

// Drill is the machine of windows made by At.
const Drill = "acme/line1/drill"

// TB is the part of testing.TB that is used.
type TB interface {
	Fatal(args ...any)
	Helper()
}

// A process fits each of these once: with the race detector a fit takes half a second.
var twoClasses, twoColumns, threeClasses = fitted(1, 3, []int{0, 0, 1}, 60), fitted(2, 3, []int{0, 0, 1}, 60), fitted(1, 6, []int{0, 1, 2}, 100)

// fitted returns what fits a classifier, whose rows read their class in every column.
func fitted(columns, hidden int, classes []int, epochs int) func() (*classify.Classifier, error) {
	return sync.OnceValues(func() (*classify.Classifier, error) {
		x := dbn.NewMatrix(30*(classes[2]+1), columns)
		y := make([]int, x.Rows)
		rng := rand.New(rand.NewPCG(1, 1))
		for i := range y {
			y[i] = classes[i%3]
			for k := range x.Row(i) {
				x.Row(i)[k] = float32(y[i]) + 0.1*float32(rng.NormFloat64())
			}
		}
		c, _, err := classify.Fit(context.Background(), x, y, nil, classify.Settings{
			Network: dbn.Settings{Hidden: []int{hidden}, Pretrain: dbn.PretrainSettings{Epochs: 2}, FineTune: dbn.FineTuneSettings{Epochs: epochs}}, Seed: 1,
		})
		return c, err
	})
}

// get returns what f does, or ends the test.
func get[T any](t TB, f func() (T, error)) T {
	t.Helper()
	v, err := f()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// checked returns the model if it can be written.
func checked(t TB, m *model.Model) *model.Model {
	t.Helper()
	get(t, m.Encode)
	return m
}

// OneValue returns a model of a single feature that is faulty when the feature
// is well above what it was in the tool's first two windows.
func OneValue(t TB) *model.Model {
	layout := get(t, oneValue)
	c := get(t, twoClasses)
	m := &model.Model{
		Layout: layout, Window: window.DefaultSpec, Reference: model.ReferenceSpec{Windows: 2, Mode: model.ReferenceRatio},
		Usual: make([]signal.Quality, 1), Classifier: c,
	}
	return checked(t, m)
}

// FirstDay returns OneValue of a day without a worn tool: different when the feature is a good half above what it was in the tool's
// first two windows.
func FirstDay(t TB) *model.Model {
	m := OneValue(t)
	m.Reference = model.ReferenceSpec{Windows: 2, Mode: model.ReferenceLog, Positive: "1"}
	m.Classifier, m.FirstDay = nil, &model.FirstDay{Level: score.Level{Sensor: "force", Columns: []int{0}, Weights: []float64{1}}, Limit: math.Log(1.6), Reached: []float64{0.1}}
	if _, err := m.Encode(); err != nil {
		t.Fatal(err)
	}
	return m
}

// TwoValues returns a model of another layout: of two features, which is faulty when their sum
// is well above what it was in the tool's first two windows.
func TwoValues(t TB) *model.Model {
	layout, err := signal.NewLayout("two values", []signal.Channel{
		{Name: "thrust", Kind: signal.Feature, Unit: "N", Rate: 1}, {Name: "torque", Kind: signal.Feature, Unit: "Nm", Rate: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := OneValue(t)
	c := get(t, twoColumns)
	m.Layout, m.Classifier, m.Usual = layout, c, make([]signal.Quality, 2)
	return checked(t, m)
}

// OfThree is OneValue with the classes healthy, worn and broken: twice and three
// times the reference.
func OfThree(t TB) *model.Model {
	m := OneValue(t)
	c := get(t, threeClasses)
	m.Classifier, m.Label = c, model.LabelRule{Classes: []model.LabelClass{{Name: "healthy"}, {Name: "worn"}, {Name: "broken"}}}
	return checked(t, m)
}

// Cycling returns the same model, which knows a machine that is Idle or drills.
func Cycling(t TB) *model.Model {
	m := OneValue(t)
	wide := cycle.Normal{Mean: 3, SD: 9}
	m.Cycle = &cycle.Model{
		Frames: 1, Inputs: []cycle.Input{{Channel: "force", Measure: cycle.Mean, Sign: 1, Scale: 0.1, ZeroSD: 0.3, Full: 5.3, Level: wide, Rise: wide}},
		Parts: []cycle.Part{
			{State: cycle.Idle, Share: 0.4, Next: []float64{0.9, 0.1}, Level: []cycle.Normal{{Mean: 0, SD: 0.8}}, Rise: []cycle.Normal{{Mean: 0, SD: 1}}},
			{State: cycle.Drilling, Share: 0.6, Next: []float64{0.1, 0.9}, Level: []cycle.Normal{{Mean: 5.3, SD: 0.5}}, Rise: []cycle.Normal{{Mean: 0, SD: 0.1}}},
		},
	}
	return checked(t, m)
}

// WithWear is OneValue with wear whose root is the value.
func WithWear(t TB) *model.Model {
	m := OneValue(t)
	m.Wear = &trend.Model{
		Center: []float64{15, 0}, Scale: []float64{15, 1}, Weights: []float64{15, 0}, Bias: 15,
		Median: 3, Low: -1, High: 2, MostUM: 600, Distance: 100, LimitUM: 500,
	}
	return checked(t, m)
}

// MeasureDrift lets a model look for drift: a tool whose first windows are faulty is far from the tools of the training.
func MeasureDrift(m *model.Model) {
	p := len(m.NewJudge().FeatureNames())
	m.Drift = &model.Drift{Tools: 4, Center: slices.Repeat([]float64{10}, p), Scale: slices.Repeat([]float64{4}, p), Degrees: 1, Raise: 3, Clear: 1.5}
}

// Idle makes a window in which nothing is cut.
func Idle(seq uint64, tool string) *window.Window {
	w := At(seq, tool, false)
	w.Samples[0][0] = 0.1 * float32(seq%3)
	return w
}

// At makes a window: faulty ones read twice the reference of 10.
func At(seq uint64, tool string, faulty bool) *window.Window {
	v := float32(10)
	if faulty {
		v = 20
	}
	return &window.Window{
		Context: signal.Context{Machine: Drill, Tool: tool}, Epoch: 1, Seq: seq,
		Start: time.Date(2026, 11, 2, 2, 0, 0, 0, time.UTC).Add(time.Duration(seq) * time.Second), Length: time.Second,
		Samples: [][]float32{{v}}, Quality: make([]signal.Quality, 1),
	}
}

// Unsure returns OneValue with conformal sets whose classes are far apart, so that
// posteriors between them are unknown, and with what drift is measured by.
func Unsure(t TB) *model.Model {
	m := OneValue(t)
	MakeSets(t, m, 1e-3, 1-1e-3)
	m.Drift = &model.Drift{Tools: 10, Center: []float64{10}, Scale: []float64{1}, Degrees: 1, Raise: 12, Clear: 4}
	return checked(t, m)
}

// MakeSets gives a model of two classes conformal sets: they hold healthy up to one P(faulty), and faulty from another one on.
// Between the two a window is ambiguous or, if the first is less, implausible.
func MakeSets(t TB, m *model.Model, healthy, faulty float64) {
	var posterior []float64
	var y []int
	for i := range 40 {
		p := []float64{healthy, faulty}[i%2]
		posterior, y = append(posterior, 1-p, p), append(y, i%2)
	}
	var err error
	if m.Conformal, err = unknown.NewConformal(posterior, y, slices.Repeat([]string{"A", "A", "B", "B"}, 10), 2, 0.05); err != nil {
		t.Fatal(err)
	}
}

// extractors are by model, since forms take milliseconds to make.
var extractors sync.Map // *model.Model → *extractor

type extractor struct {
	sync.Mutex
	*window.FeatureExtractor
}

// Features returns the features of w that m judges by; nil means OneValue, or any model but
// Cycling. It is safe for concurrent use.
func Features(m *model.Model, w *window.Window) *window.Features {
	x, ok := extractors.Load(m)
	if !ok {
		form, err := formOf(m)
		if err != nil {
			panic("machinetest: " + err.Error())
		}
		x, _ = extractors.LoadOrStore(m, &extractor{FeatureExtractor: form.NewExtractor()})
	}
	e := x.(*extractor)
	e.Lock()
	defer e.Unlock()
	var f window.Features
	e.Extract(w, &f)
	return &f
}

func formOf(m *model.Model) (*window.Form, error) {
	if m != nil {
		return m.Form()
	}
	layout, err := oneValue()
	if err != nil {
		return nil, err
	}
	return window.NewForm(layout, window.DefaultSpec, signal.FeatureSpec{}, nil)
}

func oneValue() (*signal.Layout, error) {
	return signal.NewLayout("one value", []signal.Channel{{Name: "force", Kind: signal.Feature, Unit: "N", Rate: 1}})
}

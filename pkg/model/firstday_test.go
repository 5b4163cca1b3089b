package model

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/score"
	"github.com/flank-tcm/flank/pkg/trend"
)

// firstDay returns a model that finds a tool different when a and the RMS of the thrust have grown by half over the reference.
func firstDay(t testing.TB) *Model {
	m := *trained(t)
	m.Reference = ReferenceSpec{Windows: 2, Mode: ReferenceLog, Positive: strings.Repeat("1", len(m.NewJudge().FeatureNames()))}
	j := (&m).NewJudge()
	a, b := slices.Index(j.FeatureNames(), "a"), slices.Index(j.FeatureNames(), "thrust.rms")
	m.Classifier, m.FirstDay = nil, &FirstDay{
		Level: score.Level{Sensor: "a", Columns: []int{a, b}, Weights: []float64{0.75, 0.25}}, Limit: math.Log(1.5), Reached: []float64{0.1, 0.2},
	}
	for i := range m.Golden {
		score, _ := m.FirstDay.Score(m.Golden[i].Features)
		m.Golden[i].Posterior = []float64{1 - score, score}
	}
	return &m
}

// The file of a model without a classifier is whole, says so in its id and its version, and older releases refuse it.
func TestFirstDayFile(t *testing.T) {
	m := firstDay(t)
	file, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	if file[8] != 3 || !strings.HasPrefix(read.ID(), "first-day-") || !strings.Contains(read.String(), "no worn tool seen yet: different from before where a differs 1.5-fold") {
		t.Errorf("version %d, %s", file[8], read)
	}
	if read.Classifier != nil || !slices.Equal(read.ClassNames(), []string{"healthy", Different}) || !read.Decides() || read.CheckClassifier() == nil || read.CheckDeployable() != nil {
		t.Errorf("%+v", read)
	}
	m.Golden[1].Posterior = []float64{0.5, 0.5}
	if _, err := m.Encode(); !errors.Is(err, errGolden) {
		t.Errorf("other posteriors than computed: %v", err)
	}
}

func TestFirstDayCheck(t *testing.T) {
	for want, change := range map[string]func(*Model){
		"there is a classifier":      func(m *Model) { m.Classifier = trained(t).Classifier },
		"come from worn tools":       func(m *Model) { m.HeldOut = []byte{1} },
		"takes no reference":         func(m *Model) { m.Reference = ReferenceSpec{Mode: ReferenceOff} },
		"2 columns with 1 weights":   func(m *Model) { m.FirstDay.Weights = m.FirstDay.Weights[:1] },
		"column 4711":                func(m *Model) { m.FirstDay.Columns[1] = 4711 },
		"has the weight NaN":         func(m *Model) { m.FirstDay.Weights[1] = math.NaN() },
		"a limit of 0 neper":         func(m *Model) { m.FirstDay.Limit = 0 },
		"no healthy life":            func(m *Model) { m.FirstDay.Reached = nil },
		"no classifier":              func(m *Model) { m.FirstDay = nil },
		"verdict by wear: the model": func(m *Model) { m.ByWear = &WearVerdict{300, 1} },
		"first day: estimates of wear": func(m *Model) {
			n := len(m.NewJudge().FeatureNames())
			zeros := make([]float64, 2*n)
			m.Wear = &trend.Model{Center: zeros, Scale: slices.Repeat([]float64{1}, 2*n), Weights: zeros, Median: 1}
			m.ByWear = &WearVerdict{300, 1}
		},
		"has findings of 3": func(m *Model) { m.Label.Findings = []string{"", "", ""} },
	} {
		m := firstDay(t)
		change(m)
		if err := m.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A window is different from the limit on, and its reasons add up. What the sensor does not say has no verdict.
func TestFirstDayJudges(t *testing.T) {
	m := firstDay(t)
	j, ref := m.NewJudge(), new(Reference)
	for range 2 {
		if v := j.Judge(cutting(1), ref, nil); v.Outcome != Learning {
			t.Fatalf("%+v", v)
		}
	}
	for _, c := range []struct {
		grown   float32
		outcome Outcome
		class   string
	}{{1, Healthy, "healthy"}, {1.49, Healthy, "healthy"}, {1.51, Faulty, Different}, {3, Faulty, Different}} {
		v := j.Judge(cutting(c.grown), ref, nil)
		want := float64(c.grown) / (float64(c.grown) + 1.5)
		if v.Outcome != c.outcome || v.Class != c.class || math.Abs(v.Score-want) > 1e-6 || math.Abs(Times(v.Level)-float64(c.grown)) > 1e-5 || v.Disagrees != -1 {
			t.Errorf("%v times: %+v, want a score of %v", c.grown, v, want)
		}
		class, finding := m.Against(v)
		if decided := v.Decided > 0; class != Different || finding != NoWornTool {
			t.Errorf("%v times, decided %v: class %q, %q", c.grown, decided, class, finding)
		}
		e := j.Explain(ref)
		sum := e.Base
		for _, part := range e.Parts {
			sum += part
		}
		if at := m.FirstDay.Columns[0]; math.Abs(e.Usual[at]-2) > 1e-6 || math.Abs(e.Values[at]-2*float64(c.grown)) > 1e-6 {
			t.Errorf("a is %v, usually %v", e.Values[at], e.Usual[at])
		}
		if math.Abs(sum-e.Total) > 1e-9 || math.Abs(e.Total-math.Log(want/(1-want))) > 1e-6 {
			t.Errorf("parts add up to %v, log odds %v", sum, e.Total)
		}
	}
	for _, c := range []struct {
		grown   float32
		outcome Outcome
		reason  UnknownReason
	}{{0.7, Healthy, ""}, {0.6, Unknown, OutOfDistribution}, {0.01, SensorFault, ""}, {19, Faulty, ""}, {30, SensorFault, ""}} {
		w := cutting(c.grown)
		w.Samples[0] = cutting(1).Samples[0] // the gate's
		saved := *m.FirstDay
		m.FirstDay.Columns, m.FirstDay.Weights = saved.Columns[:1], []float64{1}
		if v := j.Judge(w, ref, nil); v.Outcome != c.outcome || v.Reason != c.reason || (v.Outcome == SensorFault) != (v.Posterior == nil) {
			t.Errorf("%v times: %+v", c.grown, v)
		}
		*m.FirstDay = saved
	}
	m.FirstDay.Columns, m.FirstDay.Weights = m.FirstDay.Columns[:1], m.FirstDay.Weights[:1]
	w := cutting(3)
	for _, c := range m.Layout.Channels() {
		if c.Name == "a" {
			w.Samples[m.Layout.Index(c.Name)][0] = float32(math.NaN())
		}
	}
	if v := j.Judge(w, ref, nil); v.Outcome != SensorFault || v.Posterior != nil || v.Level != 0 || v.Score != 0 {
		t.Errorf("without a value: %+v", v)
	}
}

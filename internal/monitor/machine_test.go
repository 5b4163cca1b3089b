package monitor

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/trend"
	"github.com/flank-tcm/flank/pkg/window"
	"github.com/flank-tcm/flank/schemas"
)

// oneValue returns a model of a single feature that is faulty when the feature
// is well above what it was in the tool's first two windows.
func oneValue(t testing.TB) *model.Model {
	layout, err := signal.NewLayout("one value", []signal.Channel{{Name: "force", Kind: signal.Feature, Unit: "N", Rate: 1}})
	if err != nil {
		t.Fatal(err)
	}
	x := dbn.NewMatrix(60, 1)
	y := make([]int, x.Rows)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range y {
		y[i] = i % 3 / 2
		x.Row(i)[0] = float32(y[i]) + 0.1*float32(rng.NormFloat64())
	}
	c, _, err := classify.Fit(context.Background(), x, y, nil, classify.Settings{
		Network: dbn.Settings{Hidden: []int{3}, Pretrain: dbn.PretrainSettings{Epochs: 2}, FineTune: dbn.FineTuneSettings{Epochs: 60}}, Seed: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	m := &model.Model{
		Layout: layout, Window: window.DefaultSpec, Reference: model.ReferenceSpec{Windows: 2, Mode: model.ReferenceRatio},
		Usual: make([]signal.Quality, 1), Classifier: c,
	}
	if _, err := m.Encode(); err != nil {
		t.Fatal(err)
	}
	return m
}

// ofThree is oneValue with the classes healthy, worn and broken: twice and three
// times the reference.
func ofThree(t testing.TB) *model.Model {
	m := oneValue(t)
	x := dbn.NewMatrix(90, 1)
	y := make([]int, x.Rows)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range y {
		y[i] = i % 3
		x.Row(i)[0] = float32(y[i]) + 0.1*float32(rng.NormFloat64())
	}
	c, _, err := classify.Fit(context.Background(), x, y, nil, classify.Settings{
		Network: dbn.Settings{Hidden: []int{6}, Pretrain: dbn.PretrainSettings{Epochs: 2}, FineTune: dbn.FineTuneSettings{Epochs: 100}}, Seed: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Classifier, m.Label = c, model.LabelRule{Classes: []model.LabelClass{{Name: "healthy"}, {Name: "worn"}, {Name: "broken"}}}
	if _, err := m.Encode(); err != nil {
		t.Fatal(err)
	}
	return m
}

// cycling returns the same model, which knows a machine that is idle or drills.
func cycling(t testing.TB) *model.Model {
	m := oneValue(t)
	wide := cycle.Normal{Mean: 3, SD: 9}
	m.Cycle = &cycle.Model{
		Frames: 1, Inputs: []cycle.Input{{Channel: "force", Measure: cycle.Mean, Sign: 1, Scale: 0.1, ZeroSD: 0.3, Full: 5.3, Level: wide, Rise: wide}},
		Parts: []cycle.Part{
			{State: cycle.Idle, Share: 0.4, Next: []float64{0.9, 0.1}, Level: []cycle.Normal{{Mean: 0, SD: 0.8}}, Rise: []cycle.Normal{{Mean: 0, SD: 1}}},
			{State: cycle.Drilling, Share: 0.6, Next: []float64{0.1, 0.9}, Level: []cycle.Normal{{Mean: 5.3, SD: 0.5}}, Rise: []cycle.Normal{{Mean: 0, SD: 0.1}}},
		},
	}
	if _, err := m.Encode(); err != nil {
		t.Fatal(err)
	}
	return m
}

// Of several classes every one but healthy is faulty, for verdict and alarm, and
// the result names it as its schema says.
func TestMachineOfSeveralClasses(t *testing.T) {
	m := ofThree(t)
	judge, mach := m.NewJudge(), newTestMachine(t, m)
	for i, step := range []struct {
		value   float32
		verdict event.Verdict
		class   string
		alarm   string
	}{
		{10, event.Learning, "", "normal"}, {10, event.Learning, "", "normal"},
		{10, event.Healthy, "", "normal"}, {20, event.Faulty, "worn", "normal"}, {30, event.Faulty, "broken", "raised"},
	} {
		w := at(uint64(i), "T1", false)
		w.Samples[0][0] = step.value
		r, _ := mach.observe(w, judge, m.Layout, m.ID())
		if r.Verdict != step.verdict || r.Class != step.class || r.Alarm != step.alarm {
			t.Errorf("window %d: %s, class %q, alarm %s; want %+v", i, r.Verdict, r.Class, r.Alarm, step)
		}
		if err := schemas.Validate(schemas.Result, event.JSON(r)); err != nil {
			t.Error(err)
		}
	}
}

// idle makes a window in which nothing is cut.
func idle(seq uint64, tool string) *window.Window {
	w := at(seq, tool, false)
	w.Samples[0][0] = 0.1 * float32(seq%3)
	return w
}

// withWear is oneValue with wear whose root is the value.
func withWear(t testing.TB) *model.Model {
	m := oneValue(t)
	m.Wear = &trend.Model{
		Center: []float64{15, 0}, Scale: []float64{15, 1}, Weights: []float64{15, 0}, Bias: 15,
		Median: 3, Low: -1, High: 2, MostUM: 600, Distance: 100, LimitUM: 500,
	}
	if _, err := m.Encode(); err != nil {
		t.Fatal(err)
	}
	return m
}

// Wear is estimated from the first cutting window on, as the schema says; a late
// window leaves it alone, a window without signal too, and a new tool has none.
func TestMachineEstimatesWear(t *testing.T) {
	m := withWear(t)
	judge, mach := m.NewJudge(), newTestMachine(t, m)
	for i, step := range []struct {
		seq   uint64
		tool  string
		value float32
		wear  float64 // −1: not there
	}{
		{1, "T1", 10, 100}, {2, "T1", 12, 100}, {4, "T1", 12, 144}, {5, "T1", 10, 144}, {6, "T1", 25, -1},
		{3, "T1", 20, -1}, {7, "T1", 20, 144}, {8, "T1", 20, 400}, {9, "T2", 9, 81},
	} {
		w := at(step.seq, step.tool, false)
		w.Samples[0][0] = step.value
		r, _ := mach.observe(w, judge, m.Layout, m.ID())
		got := -1.0
		if r.Wear != nil {
			got = r.WearUM
			if r.WearLowUM > got || r.WearHighUM < got {
				t.Errorf("step %d: %+v", i, *r.Wear)
			}
		}
		if beyond := step.value > 24; r.WearUnknown != beyond {
			t.Errorf("step %d: unknown is %v", i, r.WearUnknown)
		}
		if math.Abs(got-step.wear) > 0.05 {
			t.Errorf("step %d: wear %v, want %v", i, got, step.wear)
		}
		if err := schemas.Validate(schemas.Result, event.JSON(r)); err != nil {
			t.Error(err)
		}
	}
}

// The life that is left is told in holes where windows name them, else in windows.
func TestMachineTellsTheLifeLeft(t *testing.T) {
	m := withWear(t)
	for _, holes := range []bool{true, false} {
		judge, mach := m.NewJudge(), newTestMachine(t, m)
		var r *event.Result
		for i := range 16 {
			w := at(uint64(i), "T1", false)
			w.Samples[0][0] = float32(math.Sqrt(20 * float64(i+1)))
			if holes {
				w.Hole = strconv.Itoa(i)
			}
			r, _ = mach.observe(w, judge, m.Layout, m.ID())
		}
		left, low, other := r.WindowsLeft, r.WindowsLeftLow, r.HolesLeft
		if holes {
			left, low, other = r.HolesLeft, r.HolesLeftLow, r.WindowsLeft
		}
		if left == nil || low == nil || other != nil || *low > *left || math.Abs(*left-9) > 1.5 {
			t.Errorf("holes %v: %s", holes, event.JSON(r))
		}
		if err := schemas.Validate(schemas.Result, event.JSON(r)); err != nil {
			t.Error(err)
		}
	}
}

// at makes a window: faulty ones read twice the reference of 10.
func at(seq uint64, tool string, faulty bool) *window.Window {
	v := float32(10)
	if faulty {
		v = 20
	}
	return &window.Window{
		Context: signal.Context{Machine: "acme/line1/drill", Tool: tool}, Epoch: 1, Seq: seq,
		Start: time.Date(2026, 11, 2, 2, 0, 0, 0, time.UTC).Add(time.Duration(seq) * time.Second), Length: time.Second,
		Samples: [][]float32{{v}}, Quality: make([]signal.Quality, 1),
	}
}

func newTestMachine(t rapid.TB, m *model.Model) *machine {
	mach, err := newMachine("acme/line1/drill", alarm.Settings{K: 2, N: 3, Latch: true}, m.Reference, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	return mach
}

func TestMachine(t *testing.T) {
	m := oneValue(t)
	judge, mach := m.NewJudge(), newTestMachine(t, m)
	for i, step := range []struct {
		w       *window.Window
		verdict event.Verdict
		alarm   string
		late    bool
		alerts  []event.AlertState
	}{
		{at(0, "T1", false), event.Learning, "normal", false, nil},
		{at(1, "T1", false), event.Learning, "normal", false, nil},
		{at(2, "T1", true), event.Faulty, "normal", false, nil},
		{at(4, "T1", true), event.Faulty, "raised", false, []event.AlertState{event.Raised}},
		{at(5, "T1", false), event.Healthy, "raised", false, nil},
		{at(3, "T1", true), event.Faulty, "raised", true, nil}, // fills the gap
		{at(6, "T2", false), event.Learning, "normal", false, []event.AlertState{event.Cleared}},
		{at(7, "T2", false), event.Learning, "normal", false, nil},
		{at(8, "T2", true), event.Faulty, "normal", false, nil},
	} {
		r, alerts := mach.observe(step.w, judge, m.Layout, m.ID())
		if r == nil {
			t.Fatalf("step %d: no result", i)
		}
		var states []event.AlertState
		for _, a := range alerts {
			states = append(states, a.State)
		}
		if r.Verdict != step.verdict || r.Alarm != step.alarm || r.Late != step.late || !slices.Equal(states, step.alerts) {
			t.Errorf("step %d: %s, alarm %s, late %v, alerts %v; want %+v", i, r.Verdict, r.Alarm, r.Late, states, step)
		}
		if again, alerts := mach.observe(step.w, judge, m.Layout, m.ID()); again != nil || alerts != nil {
			t.Errorf("step %d: judged twice", i)
		}
	}
}

// The threshold says what counts for the alarm, and nothing of the verdict.
func TestThresholdMovesTheAlarmOnly(t *testing.T) {
	m := oneValue(t)
	worn := at(3, "T1", true)
	plain := newTestMachine(t, m)
	var score float64
	for _, w := range []*window.Window{at(0, "T1", false), at(1, "T1", false), worn} {
		r, _ := plain.observe(w, m.NewJudge(), m.Layout, m.ID())
		score = r.Score
	}
	for _, tc := range []struct {
		threshold float64
		want      string
	}{
		{0.5, "raised"}, {score, "raised"}, {math.Nextafter(score, 2), "normal"},
	} {
		a, err := alarm.New(alarm.Settings{K: 1, N: 1, Threshold: tc.threshold})
		if err != nil {
			t.Fatal(err)
		}
		mach := newTestMachine(t, m)
		mach.alarm = a
		var r *event.Result
		for _, w := range []*window.Window{at(0, "T1", false), at(1, "T1", false), worn} {
			r, _ = mach.observe(w, m.NewJudge(), m.Layout, m.ID())
		}
		if r.Verdict != event.Faulty || r.Alarm != tc.want {
			t.Errorf("score %v, threshold %v: %s, alarm %s; want it %s", score, tc.threshold, r.Verdict, r.Alarm, tc.want)
		}
	}
}

// Only drilling is judged, and every result says what the machine did.
func TestCuttingState(t *testing.T) {
	m := cycling(t)
	judge, mach := m.NewJudge(), newTestMachine(t, m)
	for i, step := range []struct {
		w       *window.Window
		verdict event.Verdict
		state   string
	}{
		{idle(0, "T1"), event.NotCutting, "idle"},
		{at(1, "T1", false), event.Learning, "drilling"},
		{idle(2, "T1"), event.NotCutting, "idle"},
		{at(3, "T1", false), event.Learning, "drilling"},
		{at(4, "T1", true), event.Faulty, "drilling"},
		{idle(5, "T1"), event.NotCutting, "idle"},
		{at(7, "T1", false), event.Healthy, "drilling"},
		{idle(6, "T1"), event.NotCutting, "idle"}, // late
		{at(8, "T2", false), event.Learning, "drilling"},
	} {
		r, _ := mach.observe(step.w, judge, m.Layout, m.ID())
		if r == nil || r.Verdict != step.verdict || r.CuttingState != step.state {
			t.Errorf("step %d: %+v, want %s while %s", i, r, step.verdict, step.state)
		}
	}
}

func TestAlertText(t *testing.T) {
	m := oneValue(t)
	judge, mach := m.NewJudge(), newTestMachine(t, m)
	var all []event.Alert
	for seq, faulty := range []bool{false, false, true, true} {
		_, alerts := mach.observe(at(uint64(seq), "T1", faulty), judge, m.Layout, m.ID())
		all = append(all, alerts...)
	}
	_, alerts := mach.observe(at(4, "T2", false), judge, m.Layout, m.ID())
	all = append(all, alerts...)
	if len(all) != 2 {
		t.Fatalf("%d alerts, want 2", len(all))
	}
	raised, cleared := all[0], all[1]
	if raised.ID != "acme/line1/drill/0000000000000001/3/raised" || raised.Tool != "T1" || raised.Faulty != 2 || raised.Of != 2 ||
		!raised.Since.Equal(at(2, "", false).Start) || !raised.At.Equal(at(3, "", false).End()) {
		t.Errorf("raised: %+v", raised)
	}
	if want := "drill tool T1: FAULTY since 02:00:02, 2 of 2 cutting windows, score "; len(raised.Text) < len(want) || raised.Text[:len(want)] != want {
		t.Errorf("text %q, want %q…", raised.Text, want)
	}
	if cleared.State != event.Cleared || cleared.Tool != "T1" || cleared.Reason != "tool_change" || cleared.Text != "drill tool T1: alarm of 02:00:02 cleared, tool changed to T2." {
		t.Errorf("cleared: %+v", cleared)
	}
}

// The law behind every restart: whatever came before, a machine restored from
// its state says of the next windows what the old one would have said.
func TestRestartedMachineSaysTheSame(t *testing.T) {
	m := cycling(t)
	m.Wear = withWear(t).Wear
	if _, err := m.Encode(); err != nil {
		t.Fatal(err)
	}
	a, b := m.NewJudge(), m.NewJudge()
	rapid.Check(t, func(t *rapid.T) {
		old := newTestMachine(t, m)
		now := newTestMachine(t, m)
		for range rapid.IntRange(1, 40).Draw(t, "windows") {
			w := at(rapid.Uint64Range(0, 30).Draw(t, "seq"), rapid.SampledFrom([]string{"T1", "T1", "T1", "T2"}).Draw(t, "tool"), rapid.Bool().Draw(t, "faulty"))
			if rapid.Bool().Draw(t, "idle") {
				w.Samples = idle(w.Seq, w.Tool).Samples
			}
			w.Samples[0][0] += float32(rapid.IntRange(0, 3).Draw(t, "more"))
			w.Hole = rapid.SampledFrom([]string{"", "H1", "H2"}).Draw(t, "hole")
			w.Epoch = rapid.Uint64Range(1, 2).Draw(t, "epoch")
			w.Quality[0] = signal.Quality(rapid.SampledFrom([]int{0, 0, int(signal.Flatline), int(signal.ClockStep)}).Draw(t, "quality"))
			r1, al1 := old.observe(w, a, m.Layout, m.ID())
			r2, al2 := now.observe(w, b, m.Layout, m.ID())
			told1, told2 := event.JSON(old.told), event.JSON(now.told)
			if string(event.JSON(r1)) != string(event.JSON(r2)) || string(event.JSON(al1)) != string(event.JSON(al2)) || string(told1) != string(told2) {
				t.Fatalf("old: %s %s %s\nnew: %s %s %s", event.JSON(r1), event.JSON(al1), told1, event.JSON(r2), event.JSON(al2), told2)
			}
			if rapid.Bool().Draw(t, "restart") {
				var s state
				if err := json.Unmarshal(event.JSON(now.state(m.ID(), nil)), &s); err != nil {
					t.Fatal(err)
				}
				now = newTestMachine(t, m)
				if err := now.restore(s, m, 1); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func TestEpochsAreBounded(t *testing.T) {
	m := oneValue(t)
	judge, mach := m.NewJudge(), newTestMachine(t, m)
	for e := range uint64(3 * keptEpochs) {
		w := at(0, "T1", false)
		w.Epoch = e + 1
		mach.observe(w, judge, m.Layout, m.ID())
	}
	if len(mach.epochs) != keptEpochs {
		t.Errorf("%d epochs are kept, want %d", len(mach.epochs), keptEpochs)
	}
}

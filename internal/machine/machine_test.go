package machine

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/window"
)

// Of several classes every one but healthy is faulty, for verdict and alarm, and
// the result names it as its schema says.
func TestMachineOfSeveralClasses(t *testing.T) {
	m := machinetest.OfThree(t)
	b := newBench(t, m)
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
		r := b.judged(w)
		if r.Verdict != step.verdict || r.Class != step.class || r.Alarm != step.alarm {
			t.Errorf("window %d: %s, class %q, alarm %s; want %+v", i, r.Verdict, r.Class, r.Alarm, step)
		}
	}
}

// Wear is estimated from the first cutting window on, as the schema says; a late
// window leaves it alone, a window without signal too, and a new tool has none.
func TestMachineEstimatesWear(t *testing.T) {
	m := machinetest.WithWear(t)
	b := newBench(t, m)
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
		r := b.judged(w)
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
	}
}

// The life that is left is counted in holes where windows name them, else in windows.
func TestMachineEstimatesTheLifeLeft(t *testing.T) {
	m := machinetest.WithWear(t)
	for _, holes := range []bool{true, false} {
		b := newBench(t, m)
		var r *event.Result
		for i := range 16 {
			w := at(uint64(i), "T1", false)
			w.Samples[0][0] = float32(math.Sqrt(20 * float64(i+1)))
			if holes {
				w.Hole = strconv.Itoa(i)
			}
			r = b.judged(w)
		}
		left, low, other := r.WindowsLeft, r.WindowsLeftLow, r.HolesLeft
		if holes {
			left, low, other = r.HolesLeft, r.HolesLeftLow, r.WindowsLeft
		}
		if left == nil || low == nil || other != nil || *low > *left || math.Abs(*left-9) > 1.5 {
			t.Errorf("holes %v: %s", holes, event.JSON(r))
		}
	}
}

// Windows are judged once, late ones move nothing, and a tool change clears the alarm.
func TestMachine(t *testing.T) {
	m := machinetest.OneValue(t)
	b := newBench(t, m)
	for i, step := range []struct {
		w       *window.Window
		verdict event.Verdict
		alarm   string
		late    bool
		alerts  []string
	}{
		{at(0, "T1", false), event.Learning, "normal", false, nil},
		{at(1, "T1", false), event.Learning, "normal", false, nil},
		{at(2, "T1", true), event.Faulty, "normal", false, nil},
		{at(4, "T1", true), event.Faulty, "raised", false, []string{"raised"}},
		{at(5, "T1", false), event.Healthy, "raised", false, nil},
		{at(3, "T1", true), event.Faulty, "raised", true, nil}, // fills the gap
		{at(6, "T2", false), event.Learning, "normal", false, []string{"cleared tool_change"}},
		{at(7, "T2", false), event.Learning, "normal", false, nil},
		{at(8, "T2", true), event.Faulty, "normal", false, nil},
	} {
		d := b.window(step.w)
		r := d.Result
		if r == nil {
			t.Fatalf("step %d: no result", i)
		}
		if got := states(d.Alerts); r.Verdict != step.verdict || r.Alarm != step.alarm || r.Late != step.late || !slices.Equal(got, step.alerts) {
			t.Errorf("step %d: %s, alarm %s, late %v, alerts %v; want %+v", i, r.Verdict, r.Alarm, r.Late, got, step)
		}
		if learns := r.Verdict == event.Learning; learns != (len(r.Ranges) == 1) {
			t.Errorf("step %d: verdict %s with ranges %v", i, r.Verdict, r.Ranges)
		}
		if again := b.window(step.w); !again.Repeat || !again.Empty() || len(b.written) > 0 {
			t.Errorf("step %d: judged twice: %+v", i, again)
		}
	}
}

// The threshold says what counts for the alarm, and nothing of the verdict.
func TestThresholdMovesTheAlarmOnly(t *testing.T) {
	m := machinetest.OneValue(t)
	worn := at(3, "T1", true)
	plain := newBench(t, m)
	var score float64
	for _, w := range []*window.Window{at(0, "T1", false), at(1, "T1", false), worn} {
		score = plain.judged(w).Score
	}
	for _, tc := range []struct {
		threshold float64
		want      string
	}{
		{0.5, "raised"}, {score, "raised"}, {math.Nextafter(score, 2), "normal"},
	} {
		b := newBench(t, m, func(s *Settings) { s.Alarm = alarm.Settings{K: 1, N: 1, Threshold: tc.threshold} })
		var r *event.Result
		for _, w := range []*window.Window{at(0, "T1", false), at(1, "T1", false), worn} {
			r = b.judged(w)
		}
		if r.Verdict != event.Faulty || r.Alarm != tc.want {
			t.Errorf("score %v, threshold %v: %s, alarm %s; want it %s", score, tc.threshold, r.Verdict, r.Alarm, tc.want)
		}
	}
}

// Only drilling is judged, and every result says what the machine did.
func TestCuttingState(t *testing.T) {
	m := machinetest.Cycling(t)
	b := newBench(t, m)
	for i, step := range []struct {
		w       *window.Window
		verdict event.Verdict
		state   string
	}{
		{machinetest.Idle(0, "T1"), event.NotCutting, "idle"},
		{at(1, "T1", false), event.Learning, "drilling"},
		{machinetest.Idle(2, "T1"), event.NotCutting, "idle"},
		{at(3, "T1", false), event.Learning, "drilling"},
		{at(4, "T1", true), event.Faulty, "drilling"},
		{machinetest.Idle(5, "T1"), event.NotCutting, "idle"},
		{at(7, "T1", false), event.Healthy, "drilling"},
		{machinetest.Idle(6, "T1"), event.NotCutting, "idle"}, // late
		{at(8, "T2", false), event.Learning, "drilling"},
	} {
		r := b.judged(step.w)
		if r == nil || r.Verdict != step.verdict || r.CuttingState != step.state {
			t.Errorf("step %d: %+v, want %s while %s", i, r, step.verdict, step.state)
		}
	}
}

func TestAlertText(t *testing.T) {
	m := machinetest.OneValue(t)
	b := newBench(t, m)
	var all []event.Alert
	for seq, faulty := range []bool{false, false, true, true} {
		all = append(all, b.window(at(uint64(seq), "T1", faulty)).Alerts...)
	}
	all = append(all, b.window(at(4, "T2", false)).Alerts...)
	if len(all) != 2 {
		t.Fatalf("%d alerts, want 2", len(all))
	}
	raised, cleared := all[0], all[1]
	if raised.ID != "acme/line1/drill/0000000000000001/3/test/raised" || raised.Tool != "T1" || raised.Faulty != 2 || raised.Of != 2 ||
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

func TestEpochsAreBounded(t *testing.T) {
	const keptEpochs = 256
	b := newBench(t, machinetest.OneValue(t))
	for e := range uint64(keptEpochs + 50) {
		w := at(0, "T1", false)
		w.Epoch = e + 1
		b.window(w)
	}
	if len(b.m.Epochs) != keptEpochs {
		t.Errorf("%d epochs are kept, want %d", len(b.m.Epochs), keptEpochs)
	}
}

// An alert names the hole of the window that changed its alarm, but not the first hole of the next tool.
func TestAlertNamesTheHole(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	var all []event.Alert
	for seq, tool := range []string{"T1", "T1", "T1", "T1", "T2"} {
		w := at(uint64(seq), tool, seq > 1)
		w.Hole = fmt.Sprint("H", seq)
		all = append(all, b.window(w).Alerts...)
	}
	wantStrings(t, "alerts", states(all), []string{"raised", "cleared tool_change"})
	if a := all[0]; a.Hole != "H3" || !strings.Contains(a.Text, "tool T1 hole H3: ") {
		t.Errorf("%q: %s", a.Hole, a.Text)
	}
	if a := all[1]; strings.Contains(a.Text, "hole") {
		t.Errorf("%s", a.Text)
	}
}

package shift

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/golden"
)

const drill = "acme/spore/bay2/line1/usk25"

// six is when the week begins in these tests.
var six = time.Date(2026, 11, 16, 6, 0, 0, 0, time.UTC)

func config(t rapid.TB) Config {
	return Config{Plan: mustPlan(t, "06-14-22", time.UTC), Since: six, Until: six.AddDate(0, 0, 7), LimitUM: 300}
}

// result is of a window of a second, seq seconds after six.
func result(seq int, tool string, v event.Verdict) event.Result {
	at := six.Add(time.Duration(seq) * time.Second)
	return event.Result{ID: fmt.Sprint(seq), Machine: drill, Epoch: "1", Seq: uint64(seq), Tool: tool, Start: at, End: at.Add(time.Second), Verdict: v, Model: "ecs-dbn-17"}
}

func alert(id int, state event.AlertState, after time.Duration) event.Alert {
	return event.Alert{ID: fmt.Sprint(id, state), Machine: drill, Tool: "T1", State: state, At: six.Add(after), Reason: map[bool]string{true: "recovered"}[state == event.Cleared]}
}

// A week with some of everything, as people and programs see it.
func TestReport(t *testing.T) {
	c := config(t)
	c.NewTool = func(_, tool, _ string, _ time.Time) {
		if tool != "T2" {
			t.Errorf("new tool %s: T1 was in before", tool)
		}
	}
	c.Healthy = func(a event.Alert) (healthy, known bool) { return a.Tool == "T2", a.Tool == "T2" }
	r := New(c)
	um := func(e event.Result, um float64) event.Result { e.Wear = &event.Wear{WearUM: um}; return e }
	for seq := range 7200 {
		e := result(seq, "T1", event.Healthy)
		switch {
		case seq < 10:
			e.Verdict = event.Learning
		case seq%60 >= 50:
			e.Verdict = event.NotCutting
		case seq == 3000:
			e.Verdict = event.Unknown
		case seq > 3600-60 && seq < 3600:
			e.Verdict = event.Faulty
		}
		if seq >= 4000 && seq < 4010 {
			continue // lost
		}
		if seq >= 3600 {
			e.Tool, e.Model = "T2", "ecs-dbn-18"
		}
		r.Result(um(e, 40+float64(seq%3600)/18))
	}
	late := result(4004, "T2", event.Faulty)
	late.Late = true
	r.Result(late)
	r.Result(late) // again
	r.Result(result(17, "T1", event.Healthy))
	r.Result(result(9*3600, "T2", event.SensorFault))
	before, after := result(0, "T0", event.Faulty), result(0, "T9", event.Faulty)
	before.Start, after.Start = six.Add(-1), c.Until
	r.Result(before)
	r.Result(after)

	old := alert(0, event.Raised, -time.Hour)
	old.Tool = "T0"
	r.Alert(old)
	r.Alert(alert(0, "acknowledged", time.Minute)) // an alarm of the week before
	r.Alert(alert(0, event.Cleared, 2*time.Minute))
	r.Alert(alert(1, event.Raised, 3590*time.Second))
	r.Alert(alert(1, event.Raised, 3590*time.Second)) // again
	r.Alert(alert(1, "acknowledged", 3600*time.Second))
	change := alert(1, event.Cleared, 3601*time.Second)
	change.Reason = "tool_change"
	r.Alert(change)
	ofT2 := alert(2, event.Raised, 5000*time.Second)
	ofT2.Tool = "T2"
	r.Alert(ofT2)
	ack := alert(2, "acknowledged", 5130*time.Second)
	r.Alert(ack)
	r.Alert(alert(2, event.Cleared, 5400*time.Second))
	r.Alert(alert(3, event.Raised, 6000*time.Second))
	wrong := alert(3, "acknowledged", 6010*time.Second)
	wrong.FalseAlarm = true
	r.Alert(wrong)
	r.Alert(alert(3, event.Cleared, 6100*time.Second))
	r.Alert(alert(4, "shelved", 7*time.Hour))
	r.Alert(alert(5, "shelved", 7*time.Hour+time.Minute)) // longer
	r.Alert(alert(6, "unshelved", 9*time.Hour))
	r.Alert(alert(7, "out_of_service", 6*24*time.Hour+23*time.Hour))
	r.Alert(alert(8, event.Raised, 9*time.Hour+time.Second))
	r.Alert(alert(9, "refused", 9*time.Hour+time.Second))
	for i, kind := range []event.AdvisoryKind{event.SensorAdvisory, event.SensorAdvisory, event.SilenceAdvisory, event.DriftAdvisory} {
		a := event.Advisory{ID: fmt.Sprint("a", i), Machine: drill, Kind: kind, State: event.Raised, At: six.Add(time.Duration(i) * time.Hour)}
		r.Advisory(a)
		r.Advisory(a)
		a.ID, a.State = a.ID+"c", event.Cleared
		r.Advisory(a)
	}
	all := r.Finish()
	golden.Check(t, "week.txt", Text(c, all))
	golden.Check(t, "week.md", Markdown(c, all))
	golden.Check(t, "week.json", JSON(c, all))
	if text := Text(c, nil); !strings.Contains(text, nothing) {
		t.Error(text)
	}
}

// play returns the alerts of a script, which gives the second and the state of each.
func play(t *testing.T, script string) (all []event.Alert) {
	t.Helper()
	for i, word := range strings.Fields(script) {
		var s int
		var state event.AlertState
		if _, err := fmt.Sscanf(word, "%d:%s", &s, &state); err != nil {
			t.Fatal(err)
		}
		all = append(all, alert(i, state, time.Duration(s)*time.Second))
	}
	return all
}

// What a person says last of an alarm of the report counts, whenever they say it;
// what they say of others does not.
func TestMarkedFalse(t *testing.T) {
	for name, tc := range map[string]struct {
		script   string // seconds: state
		want     int
		answered int
	}{
		"never":                     {"0:raised 9:acknowledged", 0, 1},
		"after it is over":          {"0:raised 9:cleared 20:marked_false", 1, 1},
		"after the next is raised":  {"0:raised 9:cleared 10:other 20:marked_false", 1, 1},
		"after the report":          {"0:raised 9:cleared 700000:marked_false", 1, 1},
		"taken back":                {"0:raised 20:marked_false 30:unmarked_false", 0, 1},
		"taken back in a week":      {"0:raised 20:marked_false 700000:unmarked_false", 0, 1},
		"by mistake taken back":     {"0:raised 20:marked_false 30:unmarked_false 40:marked_false", 1, 1},
		"acknowledged so":           {"0:raised 9:acknowledged_false", 1, 1},
		"acknowledged so, and not":  {"0:raised 9:acknowledged_false 20:unmarked_false", 0, 1},
		"acknowledged so, and said": {"0:raised 9:acknowledged_false 20:marked_false", 1, 1},
		"of the week before":        {"-60:raised 9:marked_false", 0, 0},
		"of nothing":                {"9:marked_false", 0, 0},
	} {
		r := New(config(t))
		for _, a := range play(t, tc.script) {
			a.Incident = "A-AAAAAAAA"
			switch a.State {
			case "acknowledged_false":
				a.State, a.FalseAlarm = "acknowledged", true
			case "other":
				a.State, a.Incident = event.Raised, "A-BBBBBBBB"
			}
			r.Alert(a)
			r.Alert(a)
			a.Machine = "another"
			a.ID += "another"
			if a.State != event.Raised {
				r.Alert(a)
			}
		}
		got, answered := 0, 0
		for _, m := range r.Finish() {
			got += m.Total().False
			answered += m.Total().Answered
		}
		if got != tc.want || answered != tc.answered {
			t.Errorf("%s: %d false of %d answered, want %d of %d", name, got, answered, tc.want, tc.answered)
		}
	}
}

// Three transitions within a minute are chattering; what people do does not count.
func TestChattering(t *testing.T) {
	for name, tc := range map[string]struct {
		script string // seconds: state
		want   int
	}{
		"two":                         {"0:raised 20:cleared", 0},
		"three":                       {"0:raised 20:cleared 59:raised", 1},
		"four":                        {"0:raised 20:cleared 40:raised 59:cleared", 2},
		"three, a minute apart":       {"0:raised 20:cleared 60:raised", 0},
		"a person's doing":            {"0:raised 20:acknowledged 25:shelved 59:cleared", 0},
		"returned and there again":    {"0:raised 20:returned 59:reactivated", 1},
		"two of them the week before": {"-40:raised -20:cleared 10:raised", 1},
	} {
		r := New(config(t))
		for _, a := range play(t, tc.script) {
			r.Alert(a)
		}
		got := 0
		for _, m := range r.Finish() {
			got += m.Total().Chattering
		}
		if got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// Results may come in any order and more than once: each window counts once. A
// window is missing if it did not come and lies between others.
func TestEveryWindowCountsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := New(config(t))
		came := make(map[int]bool)
		first, last := 31, -1
		for _, seq := range rapid.SliceOfN(rapid.IntRange(0, 30), 1, 60).Draw(t, "seqs") {
			e := result(seq, "T1", event.Healthy)
			e.Late = last > seq
			r.Result(e)
			came[seq], first, last = true, min(first, seq), max(last, seq)
		}
		sum := r.Finish()[0].Total()
		if sum.Windows != len(came) || sum.Missing != last-first+1-len(came) {
			t.Fatalf("%d windows, %d missing; want %d and %d", sum.Windows, sum.Missing, len(came), last-first+1-len(came))
		}
	})
}

// Results leave nothing behind: a week of them takes no more memory than an hour.
func TestResultsAreNotKept(t *testing.T) {
	r := New(config(t))

	e := result(0, "T1", event.Healthy)
	if n := testing.AllocsPerRun(1000, func() {
		e.Seq++
		e.Start, e.End = e.End, e.End.Add(time.Millisecond)
		r.Result(e)
	}); n != 0 {
		t.Errorf("%v allocations a result", n)
	}
}

// A tool that was changed beyond the limit without an alarm is named; one with an
// alarm, one below the limit, and one that is in still are not.
func TestMissedTools(t *testing.T) {
	r := New(config(t))
	for seq, um := range []float64{310, 299, 400, 305} {
		e := result(seq, fmt.Sprint("T", seq), event.Faulty)
		e.Wear = &event.Wear{WearUM: um}
		r.Result(e)
	}
	a := alert(0, event.Raised, 2500*time.Millisecond)
	a.Tool = "T2"
	r.Alert(a)
	unnamed := result(-2, "", event.Healthy)
	unnamed.Machine, unnamed.Wear, unnamed.Start = "acme/unnamed", &event.Wear{WearUM: 310}, six
	r.Result(unnamed)
	unnamed.Tool = "T1"
	unnamed.Seq++
	r.Result(unnamed)
	text := Text(r.cfg, r.Finish())
	for _, want := range []string{"and no alarm: T0. Look", "and no alarm: –. Look"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s, want %s", text, want)
		}
	}
}

func TestLasted(t *testing.T) {
	for s, want := range map[seconds]string{0: "0s", 59.4: "59s", 60: "1m", 61: "1m1s", 3600: "1h", 3660: "1h1m", 3661: "1h1m1s", 36000: "10h"} {
		if got := lasted(s); got != want {
			t.Errorf("%v s: %s, want %s", s, got, want)
		}
	}
}

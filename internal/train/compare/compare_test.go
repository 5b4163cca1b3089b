package compare

import (
	"fmt"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/golden"
	_ "github.com/flank-tcm/flank/internal/testkit/seededrapid"
	"pgregory.net/rapid"
)

var began = time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)

// plant makes results and alerts of machines for a comparison.
type plant struct {
	*Comparison
	incidents int
}

func minute(m float64) time.Time { return began.Add(time.Duration(m * float64(time.Minute))) }

// windows makes n windows of a second, from a minute on, with the verdicts of A and B.
func (p *plant) windows(machine, tool string, from float64, n int, a, b event.Verdict) {
	for i := range n {
		start := minute(from).Add(time.Duration(i) * time.Second)
		for s, v := range []event.Verdict{a, b} {
			p.Result(modelSide(s), &event.Result{Machine: machine, Tool: tool, Start: start, End: start.Add(time.Second), Verdict: v})
		}
	}
}

// alarm raises an alarm of a side, and clears it unless that is before.
func (p *plant) alarm(s modelSide, machine, tool string, raised, cleared, um float64) {
	p.incidents++
	a := event.Alert{Machine: machine, Tool: tool, State: event.Raised, Incident: fmt.Sprintf("A-%08d", p.incidents), At: minute(raised), Score: 0.9}
	p.Alert(s, &a, um)
	if cleared >= raised {
		a.State, a.At = event.Cleared, minute(cleared)
		p.Alert(s, &a, um)
	}
}

// What the report says of differences that are known.
func TestReport(t *testing.T) {
	p := plant{Comparison: New(nil)}
	drill, lathe := "acme/line1/drill", "acme/line2/lathe"
	p.windows(drill, "T01", 0, 600, event.Healthy, event.Healthy)
	p.windows(drill, "T01", 10, 60, event.Faulty, event.Unknown)
	p.alarm(sideA, drill, "T01", 10.5, 20, 310) // both, B earlier
	p.alarm(sideB, drill, "T01", 8, 20, 280)
	p.windows(drill, "T02", 20, 300, event.Healthy, event.Faulty)
	p.alarm(sideB, drill, "T02", 21, 22, nan) // only B
	p.alarm(sideA, drill, "T02", 23, 24, 120) // only A: it ended before
	p.windows(drill, "T03", 30, 300, event.Faulty, event.Faulty)
	p.alarm(sideA, drill, "T03", 31, 40, 305) // both at once; A raises twice while B stands
	p.alarm(sideB, drill, "T03", 31, -1, 305)
	p.alarm(sideA, drill, "T03", 45, 46, 350)
	p.windows(drill, "", 60, 10, event.NotCutting, event.NotCutting)
	p.windows(lathe, "L1", 0, 120, event.Learning, event.Healthy)
	p.alarm(sideA, lathe, "L1", 1, -1, nan) // both, B hours later
	p.alarm(sideB, lathe, "L1", 133.25, -1, nan)
	for range 5 {
		p.Refuse("acme/line3/mill", "B cannot judge them: other features")
	}
	// It stood before: no alert says when A raised it.
	p.Result(sideA, &event.Result{Machine: lathe, Tool: "L2", Start: minute(200), End: minute(200), Verdict: event.Faulty, Incident: "A-BEFORE22"})
	p.Result(sideB, &event.Result{Machine: lathe, Tool: "L2", Start: minute(200), End: minute(200), Verdict: event.Faulty})
	p.alarm(sideB, lathe, "L2", 201, -1, nan)
	joined := "L1"
	p.machine(lathe).joined = &joined
	r := p.Report([2]string{"ecs-dbn-aaaaaaaaaaaa, old.flank", "ecs-dbn-bbbbbbbbbbbb, new.flank"})
	for format, name := range map[string]string{Text: "report.txt", JSON: "report.json", HTML: "report.html"} {
		got, err := r.Format(format)
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name, got)
	}
}

func TestReportOfNothing(t *testing.T) {
	for name, want := range map[string]string{
		"nothing":          "A         a\nB         b\nwindows   none that both judged, so there is nothing to compare\n",
		"one cannot judge": "A         a\nB         b\nwindows   none that both judged, so there is nothing to compare\n\nm\n  left out: 1 windows: why\n",
	} {
		c := New(nil)
		if name != "nothing" {
			c.Refuse("m", "why")
		}
		r := c.Report([2]string{"a", "b"})
		if got := r.text(); got != want {
			t.Errorf("%s:\n%s", name, got)
		}
		if _, err := r.Format(HTML); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An alarm goes with its tool, and its name stays: when the tool is back, it is the same one.
func TestAlarmOfAToolThatIsBack(t *testing.T) {
	c := New(nil)
	a := event.Alert{Machine: "m", Tool: "T1", Incident: "A-AAAAAAAA", State: event.Raised, At: minute(1), Score: 0.7}
	c.Alert(sideA, &a, nan)
	a.State, a.At, a.Reason = event.Cleared, minute(2), "tool_change"
	c.Alert(sideA, &a, nan)
	a.State, a.At, a.Reason = event.Raised, minute(5), "tool_back"
	c.Alert(sideA, &a, nan)
	c.Alert(sideB, &event.Alert{Machine: "m", Tool: "T1", Incident: "A-BBBBBBBB", State: event.Raised, At: minute(6), Score: 0.7}, nan)
	got := c.Report([2]string{"a", "b"}).Alarms
	if got.Both != 1 || got.Later != 1 || *got.LaterS != 300 || got.OnlyA+got.OnlyB != 0 {
		t.Errorf("%+v", got)
	}
	// Of one that comes back and was raised before the comparison, it is not known when.
	c = New(nil)
	c.Alert(sideA, &a, nan)
	if got := c.Report([2]string{"a", "b"}).Alarms; got.Unannounced != 1 || got.OnlyA != 0 {
		t.Errorf("%+v", got)
	}
	// Nor of one that is cleared.
	c = New(nil)
	a.State = event.Cleared
	c.Alert(sideB, &a, nan)
	if got := c.Report([2]string{"a", "b"}).Alarms; got.Unannounced != 1 || got.OnlyB != 0 {
		t.Errorf("%+v", got)
	}
}

// drawn is an alarm that a property test draws.
type drawn struct {
	side            modelSide
	tool            string
	raised, cleared float64
}

func draw(t *rapid.T) (all []drawn) {
	for range rapid.IntRange(0, 12).Draw(t, "alarms") {
		d := drawn{modelSide(rapid.IntRange(0, 1).Draw(t, "side")), rapid.SampledFrom([]string{"T1", "T2"}).Draw(t, "tool"), float64(rapid.IntRange(0, 30).Draw(t, "raised")), -1}
		if rapid.Bool().Draw(t, "ends") {
			d.cleared = d.raised + float64(rapid.IntRange(0, 10).Draw(t, "for"))
		}
		all = append(all, d)
	}
	return all
}

func tallyOf(alarms []drawn, side func(drawn) []modelSide) eventTally {
	p := plant{Comparison: New(nil)}
	for _, d := range alarms {
		for _, s := range side(d) {
			p.alarm(s, "m", d.tool, d.raised, d.cleared, nan)
		}
	}
	return p.Report([2]string{"a", "b"}).Alarms
}

// A model compared with itself has no differences, and A compared with B says the opposite of
// B compared with A.
func TestSymmetry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		alarms := draw(t)
		self := tallyOf(alarms, func(drawn) []modelSide { return []modelSide{sideA, sideB} })
		if self.Both != self.Same || self.OnlyA+self.OnlyB+self.Earlier+self.Later+self.Unannounced != 0 {
			t.Fatalf("with itself: %+v", self)
		}
		ab := tallyOf(alarms, func(d drawn) []modelSide { return []modelSide{d.side} })
		ba := tallyOf(alarms, func(d drawn) []modelSide { return []modelSide{1 - d.side} })
		if ab.Both != ba.Both || ab.Earlier != ba.Later || ab.Later != ba.Earlier || ab.Same != ba.Same || ab.OnlyA != ba.OnlyB || ab.OnlyB != ba.OnlyA {
			t.Fatalf("%+v, and the other way round %+v", ab, ba)
		}
		if ab.Both > 0 && *ab.LaterS != -*ba.LaterS {
			t.Fatalf("%v later, and the other way round %v", *ab.LaterS, *ba.LaterS)
		}
	})
}

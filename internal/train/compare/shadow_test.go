package compare

import (
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
	"pgregory.net/rapid"
)

// onTrial returns a fleet in which champion judges everything, and shadow is on trial.
func onTrial(champion, shadow *model.Model) machine.Fleet {
	f := machine.Everything(champion)
	d := &machine.Deployment{Champion: champion, Shadows: []machine.Shadow{{Model: shadow}}}
	f.Of = func(string, string) *machine.Deployment { return d }
	return f
}

// take gives what was published to trials: what shadows did, then alerts, then results, all of
// it twice.
func (ts *Trials) take(out []machine.Output) {
	for range 2 {
		for _, e := range out {
			if r, ok := e.(machine.ShadowResult); ok {
				ts.ShadowResult(r.Result)
			} else if a, ok := e.(machine.ShadowAlert); ok {
				ts.ShadowAlert(a.Alert)
			}
		}
	}
	for range 2 {
		for _, e := range out {
			if e, ok := e.(machine.Alert); ok {
				ts.Alert(e.Alert)
			}
		}
	}
	for range 2 {
		for _, e := range out {
			if e, ok := e.(machine.Result); ok {
				ts.Result(e.Result)
			}
		}
	}
}

// What a shadow and a champion published since the first window gives the report that a replay
// of the same windows gives.
func TestTrialsAreAsAReplay(t *testing.T) {
	one, three := machinetest.OneValue(t), machinetest.OfThree(t)
	rapid.Check(t, func(t *rapid.T) {
		ws := shuffled(t)
		for _, w := range ws {
			w.Samples[0][0] *= rapid.SampledFrom([]float32{1, 0.807, 0.81}).Draw(t, "less")
		}
		ts := NewTrials("g", time.Time{}, nil)
		ts.take(outputs("g", onTrial(one, three), ws))
		r := NewReplay([2]*model.Model{one, three}, replays, nil)
		for _, w := range ws {
			r.Observe(machinetest.Features(one, w), w.End(), nan)
		}
		r.machine(machinetest.Drill).joined = nil
		names := [2]string{"champion " + one.ID(), "shadow " + three.ID()}
		reports := ts.Reports()
		if len(reports) != 1 {
			t.Fatalf("%d reports", len(reports))
		}
		if got, want := reports[0].text(), r.Report(names).text(); got != want {
			t.Fatalf("%s\nof a replay\n%s", got, want)
		}
	})
}

// A shadow that came later is compared over the windows that it judged, and an alarm that stood
// before is left out.
func TestTrialThatBeganLater(t *testing.T) {
	one, three := machinetest.OneValue(t), machinetest.OfThree(t)
	ts := NewTrials("g", machinetest.At(40, "", false).Start, nil)
	ws := append(worn("T1", 0, 50), worn("T2", 50, 50)...)
	out := outputs("g", onTrial(one, three), ws)
	for i := range out {
		if r, ok := out[i].(machine.Result); ok && r.Seq == 60 {
			out[i] = machine.Advisory{} // Kafka has it no more
		}
	}
	ts.take(append(out, outputs("other", onTrial(one, three), ws)...))
	reports := ts.Reports()
	if len(reports) != 1 {
		t.Fatalf("%d reports", len(reports))
	}
	text := reports[0].text()
	for _, want := range []string{
		"windows   59 that both judged, of 1 machine, from 2026-11-02 02:00:40 to 2026-11-02 02:01:40", "alarms    1 in both (at the same window in 1; median: at the same window); 1 left out, which stood before or were masked",
		"note: of 1 windows that the shadow judged, Kafka has no result of the champion any more",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if other := NewTrials("third", time.Time{}, nil); len(other.Reports()) != 0 {
		t.Error("reports of nothing")
	}
}

// worn returns windows of a tool that is worn from the tenth on.
func worn(tool string, first, n uint64) (ws []*window.Window) {
	for i := range n {
		ws = append(ws, machinetest.At(first+i, tool, i >= 10))
	}
	return ws
}

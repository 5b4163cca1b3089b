package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/machinetest"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// otherFeatures returns a model that learns a tool from another number of windows.
func otherFeatures(t machinetest.TB) *model.Model {
	m := machinetest.OneValue(t)
	m.Reference.Windows = 3
	if _, err := m.Encode(); err != nil {
		t.Fatal(err)
	}
	return m
}

// acknowledged returns a machine whose alarm is acknowledged, the windows it has judged and
// the next seq.
func acknowledged(t *testing.T) (*bench, []*window.Window) {
	t.Helper()
	b := newBench(t, machinetest.OneValue(t))
	var all []*window.Window
	for seq := range uint64(6) {
		all = append(all, at(seq, "T1", seq > 3))
		b.window(all[seq])
	}
	if d := b.command(event.Command{ID: "1", Action: event.Acknowledge, Incident: b.incident()}, noon); len(d.Alerts) != 1 {
		t.Fatalf("%v", states(d.Alerts))
	}
	return b, all
}

// Another model of the same features keeps the reference: windows are judged, and an
// acknowledged alarm stays.
func TestModelOfSameFeatures(t *testing.T) {
	b, all := acknowledged(t)
	incident := b.incident()
	other := machinetest.OfThree(t)
	if other.ID() == b.model.ID() {
		t.Fatal("one id for two models")
	}
	b.restartUnder(other)
	for seq := uint64(len(all)); seq < 12; seq++ {
		d := b.window(at(seq, "T1", true))
		if r := d.Result; len(d.Alerts)+len(d.Advisories)+len(d.Lines) > 0 || r.Verdict != event.Faulty || r.Class != "worn" || r.Alarm != "acknowledged" || r.Incident != incident || r.Model != other.ID() {
			t.Fatalf("%+v\n%s", d, event.JSON(r))
		}
		b.restart()
	}
}

// rebuild lets the machine rebuild the reference that is due from these windows, which lie
// at their index.
func (b *bench) rebuild(windows []*window.Window, from int) Decision {
	b.t.Helper()
	job, due := b.m.RebuildDue()
	if !due {
		b.t.Fatal("no reference is to be rebuilt")
	}
	r := b.m.NewRebuild(job)
	for i, w := range windows {
		if i >= from && i >= int(job.From) && r.Observe(machinetest.Features(nil, w), int64(i)) {
			break
		}
	}
	return b.apply(r.Done(noon.Add(time.Hour)))
}

// Under a model of other features windows are unknown and the alarm holds, which an
// advisory says, until the reference is rebuilt from windows that are still in Kafka.
func TestModelOfOtherFeatures(t *testing.T) {
	for name, tc := range map[string]struct {
		from    int // first window that is still in Kafka
		text    string
		verdict event.Verdict // of the next window
	}{
		"all windows":   {0, "its reference was rebuilt from its first windows", event.Faulty},
		"later windows": {1, "its first windows are gone from Kafka, so its reference was rebuilt from later ones: trust its verdicts less", event.Faulty},
		"too few":       {5, "only 1 of its windows are still in Kafka, so its reference is learnt from its next windows: change the tool", event.Learning},
		"none":          {9, "only 0 of its windows are still in Kafka", event.Learning},
	} {
		t.Run(name, func(t *testing.T) {
			b, all := acknowledged(t)
			incident := b.incident()
			b.restartUnder(otherFeatures(t))
			for i := range 40 { // long enough for the advisory of unknown windows
				d := b.window(at(uint64(len(all)+i), "T1", true))
				want := []string(nil)
				if i == 0 {
					want = []string{"model_changed raised"}
				}
				wantStrings(t, "advisories", kinds(d.Advisories), want)
				if r := d.Result; len(d.Alerts) > 0 || r.Verdict != event.Unknown || r.Unknown != modelChanged || r.Alarm != "acknowledged" || r.Incident != incident {
					t.Fatalf("window %d: %v %s", i, states(d.Alerts), event.JSON(r))
				}
				b.restart()
			}
			d := b.rebuild(all, tc.from)
			wantStrings(t, "rebuilt", kinds(d.Advisories), []string{"model_changed cleared"})
			if len(d.Lines) != 1 || d.Lines[0].Event != "reference_rebuilt" || !strings.Contains(d.Lines[0].Text, "drill tool T1: the model changed; "+tc.text) || len(d.Alerts) > 0 {
				t.Errorf("%+v", d)
			}
			b.restart()
			if _, due := b.m.RebuildDue(); due {
				t.Error("to be rebuilt again")
			}
			next := b.window(at(100, "T1", true))
			if r := next.Result; r.Verdict != tc.verdict || r.Alarm != "acknowledged" || r.Incident != incident || len(next.Alerts)+len(next.Advisories) > 0 {
				t.Errorf("%v %s", states(next.Alerts), event.JSON(r))
			}
		})
	}
}

// A tool in the magazine is rebuilt too. The advisory is of the tool in the spindle only:
// it ends when another tool is put in, and begins again with a tool that is not rebuilt.
func TestModelOfOtherFeaturesInMagazine(t *testing.T) {
	b, all := acknowledged(t)
	incident := b.incident()
	all = append(all, at(6, "T2", false))
	b.window(all[6])
	b.restartUnder(otherFeatures(t))
	wantStrings(t, "T2", kinds(b.window(at(7, "T2", false)).Advisories), []string{"model_changed raised"})
	back := b.window(at(8, "T1", true))
	wantStrings(t, "T1", kinds(back.Advisories), []string{"model_changed cleared", "model_changed raised"})
	wantStrings(t, "T1", states(back.Alerts), []string{"raised tool_back"})
	wantStrings(t, "T3", kinds(b.window(at(9, "T3", false)).Advisories), []string{"model_changed cleared"})
	for range 2 {
		if d := b.rebuild(all, 0); len(d.Advisories) > 0 || len(d.Lines) != 1 {
			t.Errorf("%+v", d)
		}
	}
	d := b.window(at(10, "T1", true))
	if r := d.Result; r.Verdict != event.Faulty || r.Incident != incident || r.Alarm != "acknowledged" {
		t.Errorf("%s", event.JSON(r))
	}
}

// A rebuild learns what judging would have: windows in their order, each once, of its tool
// and machine.
func TestRebuildLearnsAsJudgingDoes(t *testing.T) {
	m := otherFeatures(t)
	b := newBench(t, m)
	var all []*window.Window
	for i, v := range []float32{10, 11, 10.5} {
		w := at(uint64(i), "T1", false)
		w.Samples[0][0] = v
		b.window(w)
		all = append(all, w)
	}
	want := b.m.inSpindle().Reference.Center()
	other := at(1, "T1", true)
	other.Machine = "acme/line1/lathe"
	all = slices.Insert(all, 1, at(7, "T2", true), other, all[0])
	r := b.m.NewRebuild(RebuildJob{Tool: "T1", From: 0})
	for i, w := range all {
		if done := r.Observe(machinetest.Features(nil, w), int64(10+i)); done != (i == len(all)-1) {
			t.Fatalf("window %d: done %v", i, done)
		}
	}
	got := r.Done(noon)
	if !slices.Equal(got.Reference.Center(), want) || got.First != 10 {
		t.Errorf("%v from %d, want %v", got.Reference.Center(), got.First, want)
	}
}

// A reference that was rebuilt for one model is not taken once another one judges, or none: the
// rebuild is due again.
func TestRebuiltForAnotherModel(t *testing.T) {
	wide := machinetest.TwoValues(t)
	b := newBench(t, machinetest.OneValue(t))
	for seq := range uint64(3) {
		b.window(at(seq, "T1", false))
	}
	b.restartUnder(otherFeatures(t))
	job, due := b.m.RebuildDue()
	if !due {
		t.Fatal("no reference is to be rebuilt")
	}
	rebuild := b.m.NewRebuild(job)
	for seq := range uint64(3) {
		rebuild.Observe(machinetest.Features(nil, at(seq, "T1", false)), int64(seq))
	}
	done := rebuild.Done(noon)

	b.m.takeModel(NewModel(wide))
	b.model = wide
	d := b.apply(done)
	if again, due := b.m.RebuildDue(); !due || again != job || len(d.Lines) > 0 {
		t.Errorf("it was taken: %+v", d.Lines)
	}
	w := at(3, "T1", false)
	w.Samples, w.Quality = [][]float32{{10}, {3}}, make([]signal.Quality, 2)
	b.window(w)

	by := b.m.model
	b.m.model = nil
	b.apply(done)
	b.m.model = by
	if d := b.apply(b.m.NewRebuild(job).Done(noon)); len(d.Lines) != 1 {
		t.Errorf("one for the model that judges is not taken: %+v", d.Lines)
	}
}

package machine

import (
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// count returns how many lines of the log name an event.
func (p *plant) count(event string) (n int) {
	for _, l := range p.lines {
		if l.Event == event {
			n++
		}
	}
	return n
}

// A defect of a shadow, and one of a model that is to take over, ends what that model knows. The machine is judged.
func TestModelThatPanics(t *testing.T) {
	a, b := pair(t)
	for name, d := range map[string]*Deployment{
		"a shadow":           {Champion: a, Shadows: []Shadow{{Model: b}}},
		"the next champion":  {Champion: b},
		"built at once":      {Champion: b, Now: true},
		"a shadow, no build": {Champion: a, Shadows: []Shadow{{Model: b}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
			seq := p.run(0, 6, "T1", false)
			p.deploy(fleetOf(d, a, b))
			if seq = p.run(seq, 1, "T1", false); name != "a shadow, no build" && !p.build() {
				t.Fatal("no build is due")
			}
			seq = p.run(seq, 1, "T1", false)
			p.o.models.use(b).judge = nil // which is a defect
			p.o.models.use(b).form, p.o.models.use(b).unfit = p.features[0].Form, nil
			seq = p.run(seq, 3, "T2", true)
			seq = p.run(seq, 4, "T1", false)
			judgedByB := name == "the next champion" || name == "built at once" // it judges the next tool alone
			if stopped := p.o.Machine(drill).stopped != ""; stopped != judgedByB || p.panics != 1 {
				t.Fatalf("stopped: %v, %d panics", stopped, p.panics)
			}
			if judgedByB {
				return
			}
			if r := p.last(); r.Model != a.ID() || r.Verdict != event.Healthy || len(p.results) != int(seq) {
				t.Errorf("%d results, the last one %s", len(p.results), event.JSON(r))
			}
			if n := p.count("model_stopped"); n != 1 {
				t.Errorf("%d lines of the log say it", n)
			}
			p.o.models.used = nil // which mends it
			p.deploy(fleetOf(d, a, b))
			n := len(p.shadows[event.ShadowGroup(group, b.ID())])
			p.run(seq, 2, "T3", false)
			if len(p.shadows[event.ShadowGroup(group, b.ID())]) != n+2 {
				t.Error("the shadow is not asked again")
			}
		})
	}
}

// A champion with a defect takes over no tool that another model knows, also if it could have begun with that model's reference.
func TestDefectOfTheNextChampion(t *testing.T) {
	a, b := toys()["A"], toys()["B"]
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
	seq := p.run(0, 4, "T1", false)
	seq = p.run(seq, 4, "T2", false)
	p.deploy(fleetOf(&Deployment{Champion: b}, a, b))
	seq = p.run(seq, 1, "T2", false)
	p.o.models.use(b).judge = nil // which is a defect
	p.o.models.use(b).form, p.o.models.use(b).unfit = p.features[0].Form, nil
	for _, tool := range []string{"T2", "T1", "T2"} {
		seq = p.run(seq, 2, tool, false)
		if r := p.last(); r.Model != a.ID() || r.Tool != tool || p.o.Machine(drill).stopped != "" {
			t.Fatalf("tool %s: %s", tool, event.JSON(r))
		}
	}
}

// A deployment whose settings were never checked, which is a defect, stops the machine: it does not go on with others in silence.
func TestDeploymentThatWasNotChecked(t *testing.T) {
	a := toys()["A"]
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a))
	p.run(0, 4, "T1", false)
	p.deploy(fleetOf(&Deployment{Champion: a, Alarm: alarm.Settings{K: -1, N: 3}}, a))
	if why := p.o.Machine(drill).stopped; !strings.Contains(why, "a deployment is checked when it is read") {
		t.Errorf("stopped: %q", why)
	}
}

// A window that cannot be opened because of a defect is set aside, counted and named. The others are judged.
func TestWindowThatCannotBeOpened(t *testing.T) {
	o := readyOwner(t)
	known := at(0, "T1", false)
	b := batchOf(t, o.On(Read{Log: WindowLog, Inputs: []Input{
		{Offset: 0, At: noon, Open: func(*window.Features) error { panic("as planted") }},
		{Offset: 1, At: noon, Open: func(w *window.Features) error { *w = *machinetest.Features(nil, known); return nil }},
	}}, noon))
	if b.Panics != 1 || b.Judged != 1 || len(b.Letters) != 1 || b.Letters[0].Offset != 0 || len(b.Lines) != 1 || b.Lines[0].Event != "window_not_opened" {
		t.Errorf("%d panics, %d judged, letters %+v, lines %+v", b.Panics, b.Judged, b.Letters, b.Lines)
	}
}

// A defect while a model sees a tool's past: the model of before goes on, and the machine stops only if there is none.
func TestBuildThatPanics(t *testing.T) {
	a, b := pair(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
	seq := p.run(0, 6, "T1", false)
	fail := func(known ...*model.Model) {
		p.deploy(fleetOf(&Deployment{Champion: b, Now: true}, known...))
		seq = p.run(seq, 1, "T1", false)
		r := p.o.BuildDue(p.now())
		if r == nil {
			t.Fatal("no build is due")
		}
		r.m.judges.models.use(b).judge = nil
		for _, f := range p.features {
			r.Observe(f, noon)
		}
		p.do(p.o.On(r, p.now()))
	}
	fail(a, b)
	seq = p.run(seq, 2, "T1", false)
	if r := p.last(); r.Model != a.ID() || p.count("model_stopped") != 1 || p.o.BuildDue(p.now()) != nil {
		t.Fatalf("%s, %v", event.JSON(r), p.lines)
	}
	fail(b) // nothing else judges the tool
	if results := len(p.results); p.run(seq, 1, "T1", false) != seq+1 || len(p.results) != results || p.count("machine_stopped") != 1 {
		t.Errorf("%s, %v", event.JSON(p.last()), p.lines)
	}
}

// A machine that cannot be loaded because of a defect is stopped, and its records stay as they are. It goes on as if nothing had been
// once models are deployed again.
func TestLoadThatPanics(t *testing.T) {
	a := machinetest.OneValue(t)
	sound := fleetOf(&Deployment{Champion: a}, a)
	broken := sound
	broken.Of = func(string, string) *Deployment { panic("as planted") }
	p := newPlant(t, sound)
	seq := p.run(0, 5, "T1", false)
	seq = p.run(seq, 8, "T1", true)
	records := len(p.records)
	p.fleet = broken
	p.restart()
	wantStrings(t, "advisories", kinds(p.advised), []string{"machine_stopped raised"})
	results := len(p.results)
	p.command(event.Command{ID: "1", Action: event.Acknowledge})
	if seq = p.run(seq, 2, "T1", true); len(p.results) != results || len(p.records) != records || p.letters != 1 {
		t.Fatalf("%d results, %d records, before %d; %d letters", len(p.results)-results, len(p.records), records, p.letters)
	}
	p.deploy(broken)
	p.deploy(sound)
	p.run(seq, 2, "T1", true)
	if r := p.last(); len(p.results) != results+2 || r.Verdict != event.Faulty || r.Alarm != "raised" {
		t.Errorf("%d results, %s", len(p.results)-results, event.JSON(r))
	}
	wantStrings(t, "alerts", states(p.alerts), []string{"raised"})
	wantStrings(t, "advisories, as it goes on", kinds(p.advised), []string{"machine_stopped raised", "machine_stopped cleared"})
}

// Records that were not read because of a defect, and then cannot be used, are set aside: the machine begins again.
func TestUnreadRecordsThatCannotBeUsed(t *testing.T) {
	a := machinetest.OneValue(t)
	sound := fleetOf(&Deployment{Champion: a}, a)
	broken := sound
	broken.Model = func(string) *model.Model { panic("as planted") }
	p := newPlant(t, sound)
	seq := p.run(0, 5, "T1", false)
	for key, r := range p.records {
		if key.Part == event.HeadState {
			r.Value = []byte(strings.Replace(string(r.Value), `{"version"`, `{"evidence":[{"name":"../x"}],"version"`, 1))
			p.records[key] = r
		}
	}
	p.fleet = broken
	p.restart()
	wantStrings(t, "advisories", kinds(p.advised), []string{"machine_stopped raised"})
	p.deploy(sound)
	if p.letters == 0 {
		t.Fatal("nothing was set aside")
	}
	results := len(p.results)
	if p.run(seq, 5, "T1", false); len(p.results) != results+5 {
		t.Errorf("%d results of 5 windows", len(p.results)-results)
	}
}

// A command that meets a defect under a new name is set aside, and the owner goes on.
func TestRenameThatPanics(t *testing.T) {
	a := machinetest.OneValue(t)
	sound := fleetOf(&Deployment{Champion: a}, a)
	broken := sound
	broken.Of = func(machine, layout string) *Deployment {
		if machine == "acme/line1/renamed" {
			panic("as planted")
		}
		return sound.Of(machine, layout)
	}
	p := newPlant(t, broken)
	seq := p.run(0, 5, "T1", false)
	p.renameTo("acme/line1/renamed")
	if p.letters != 1 || p.panics != 1 || p.count("command_failed") != 1 {
		t.Errorf("%d letters, %v", p.letters, p.lines)
	}
	if p.run(seq, 1, "T1", false); len(p.results) != int(seq)+1 {
		t.Errorf("%d results", len(p.results))
	}
}

// State that cannot be written because of a defect stops the machine once, with an advisory, and not with every batch.
func TestStateThatCannotBeWritten(t *testing.T) {
	a := machinetest.OneValue(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a))
	seq := p.run(0, 5, "T1", false)
	p.o.Machine(drill).inSpindle().Trace[0].Verdict = "as planted"
	seq = p.run(seq, 4, "T1", false)
	wantStrings(t, "advisories", kinds(p.advised), []string{"machine_stopped raised"})
	if n := p.count("machine_stopped"); n != 1 {
		t.Errorf("%d lines", n)
	}
	p.restart()
	p.run(seq, 1, "T1", false)
	if r := p.last(); r.Verdict != event.Healthy {
		t.Errorf("%s", event.JSON(r))
	}
}

// A defect in the window that puts a tool in, or in the one that raises its alarm, swallows no alert: its alerts stay, and an
// alarm that has never called calls with the next tick.
func TestDefectSwallowsNoAlert(t *testing.T) {
	a := machinetest.OneValue(t)
	tick := func(p *plant) { p.do(p.o.On(Tick{Now: p.now()}, p.now())) }
	t.Run("the tool before leaves", func(t *testing.T) {
		p := newPlant(t, fleetOf(&Deployment{Champion: a}, a))
		seq := p.run(0, 3, "T1", false)
		seq = p.run(seq, 3, "T1", true)
		p.o.models.used[a.ID()].judge = nil
		seq = p.run(seq, 1, "T2", false)
		p.restart()
		p.run(seq, 1, "T2", false)
		wantStrings(t, "alerts", states(p.alerts), []string{"raised", "cleared tool_change"})
	})
	t.Run("a tool comes back", func(t *testing.T) {
		p := newPlant(t, fleetOf(&Deployment{Champion: a}, a))
		seq := p.run(0, 3, "T1", false)
		p.command(event.Command{ID: "1", Action: event.Suppress, Tool: "T1", Note: "n"})
		seq = p.run(seq, 3, "T1", true) // it has never called
		seq = p.run(seq, 3, "T2", false)
		p.command(event.Command{ID: "2", Action: event.Unsuppress, Tool: "T1"})
		p.o.models.used[a.ID()].judge = nil
		seq = p.run(seq, 1, "T1", true)
		p.restart()
		p.run(seq, 1, "T1", true)
		tick(p)
		tick(p)
		wantStrings(t, "alerts", states(p.alerts), []string{"suppressed", "unsuppressed", "raised"})
	})
	t.Run("a model cannot say why", func(t *testing.T) {
		p := newPlant(t, fleetOf(&Deployment{Champion: a}, a))
		seq := p.run(0, 4, "T1", false)
		broken := *a
		broken.Layout = nil // its channels are named in reasons only
		p.o.models.used[a.ID()].model = &broken
		p.run(seq, 3, "T1", true)
		if len(p.alerts) != 1 || p.alerts[0].Reasons != nil || p.count("reasons_failed") != 1 || p.panics != 1 {
			t.Errorf("%v, %v", states(p.alerts), p.lines)
		}
	})
}

// The release before deletes what it cannot read, but for records of a kind that it does not know. They do not keep this one from
// reading what the release before has written since.
func TestBackToThisRelease(t *testing.T) {
	a, b := machinetest.OneValue(t), machinetest.WithWear(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a))
	p.run(0, 3, "T8", false)
	var left []event.StateRecord
	for k, r := range p.records {
		if k.Model != "" {
			left = append(left, r)
		}
	}
	q := keptPlant(t, &Deployment{Champion: a, Alarm: testAlarm}, a, b)
	for _, when := range []string{"at its first start", "at a later one"} {
		for _, r := range left {
			q.records[r.Key] = r
		}
		q.letters = 0
		if q.restart(); q.letters > 0 || q.o.Machine(drill) == nil {
			t.Errorf("%s: %d letters", when, q.letters)
		}
		for _, r := range left {
			if _, there := q.records[r.Key]; there {
				t.Errorf("%s: record %s is still there", when, r.Key)
			}
		}
	}
}

// Evidence of a machine that is stopped is not due until it runs again: it could not take what became of it.
func TestEvidenceOfStoppedMachine(t *testing.T) {
	a, _ := pair(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a))
	p.o.settings.Evidence = true
	seq := p.run(0, 4, "T1", false)
	seq = p.run(seq, 3, "T1", true)
	m, later := p.o.Machine(drill), p.now().Add(time.Minute)
	m.EvidenceDue(p.now())
	j, due := m.EvidenceDue(later)
	if !due {
		t.Fatal("no evidence is due")
	}
	p.o.models.use(a).judge = nil
	if m.UsualBands(j) != nil {
		t.Error("a model with a defect says what is usual")
	}
	p.run(seq, 1, "T1", true)
	if _, due := m.EvidenceDue(later); due || m.stopped == "" {
		t.Errorf("due %v, stopped %q", due, m.stopped)
	}
	p.o.models.used = nil // mended
	p.deploy(fleetOf(&Deployment{Champion: a}, a))
	if _, due := m.EvidenceDue(later); !due {
		t.Error("it is not due again")
	}
}

// A build that ends while its machine is stopped is run again once the machine runs, and the machine is not called silent.
func TestBuildThatEndsWhileStopped(t *testing.T) {
	a, b := pair(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
	p.o.settings.Silence = 5 * time.Second
	seq := p.run(0, 6, "T1", false)
	p.deploy(fleetOf(&Deployment{Champion: b, Now: true}, a, b))
	seq = p.run(seq, 1, "T1", false)
	r := p.o.BuildDue(p.now())
	p.o.models.use(a).judge = nil
	seq = p.run(seq, 9, "T1", false)
	m := p.o.Machine(drill)
	if r == nil || m.stopped == "" {
		t.Fatalf("build %v, stopped %q", r, m.stopped)
	}
	p.do(p.o.On(r, p.now()))
	p.o.models.used = nil
	p.deploy(fleetOf(&Deployment{Champion: b, Now: true}, a, b))
	if m.overdue(p.now()) {
		t.Error("it is silent since it was stopped")
	}
	for range 6 {
		seq = p.run(seq, 1, "T1", false)
		p.build()
	}
	if p.last().Model != b.ID() {
		t.Errorf("%s judges", p.last().Model)
	}
}

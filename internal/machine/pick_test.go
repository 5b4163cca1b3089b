package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// ofLength returns OneValue for windows of another length.
func ofLength(t *testing.T, d time.Duration) *model.Model {
	t.Helper()
	m := machinetest.OneValue(t)
	m.Window.Length = d
	if _, err := m.Encode(); err != nil {
		t.Fatal(err)
	}
	return m
}

// run sends windows of a tool, one behind the other.
func (p *plant) run(from uint64, n int, tool string, faulty bool) (next uint64) {
	for range n {
		p.window(machinetest.Features(nil, at(from, tool, faulty)))
		from++
	}
	return from
}

func (p *plant) last() event.Result { return p.results[len(p.results)-1] }

// A champion for windows of another length judges nothing: the model of before goes on with the tool that it knows, windows
// of the next one are refused, and its alarm is cleared by the change all the same. Nothing panics, also after a restart.
func TestChampionOfAnotherLength(t *testing.T) {
	a, b := machinetest.OneValue(t), ofLength(t, 2*time.Second)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
	seq := p.run(0, 3, "T1", false)
	seq = p.run(seq, 3, "T1", true)
	p.deploy(fleetOf(&Deployment{Champion: b, Now: true, Shadows: []Shadow{{Model: b}}}, a, b))
	seq = p.run(seq, 2, "T1", true)
	if r := p.last(); r.Model != a.ID() || r.Verdict != event.Faulty {
		t.Errorf("%s", event.JSON(r))
	}
	if p.build() {
		t.Error("a model is to see windows that it cannot judge")
	}
	results := len(p.results)
	for range 3 {
		seq = p.run(seq, 2, "T2", true)
		p.restart()
	}
	if len(p.results) != results {
		t.Errorf("windows of T2 were judged by %s", p.last().Model)
	}
	wantStrings(t, "alerts", states(p.alerts), []string{"raised", "cleared tool_change"})
	wantStrings(t, "advisories", kinds(p.advised), []string{"windows_refused raised"})
	p.run(seq, 1, "T1", true)
	if r := p.last(); r.Model != a.ID() || r.Verdict != event.Faulty || r.Alarm != "raised" {
		t.Errorf("back: %s", event.JSON(r))
	}
}

// A stray window of another layout that has a deployment changes nothing of the machine's tool, and none of the
// references, wear or shadows.
func TestStrayWindowOfAnotherLayout(t *testing.T) {
	a, shadow := pair(t)
	b := machinetest.TwoValues(t)
	for _, deployed := range []bool{true, false} {
		f := byLayout(a, b)
		own := &Deployment{Champion: a, Shadows: []Shadow{{Model: shadow}}}
		of := f.Of
		f.Of = func(name, layout string) *Deployment {
			switch {
			case layout == a.Layout.Fingerprint() || layout == "":
				return own
			case deployed:
				return of(name, layout)
			}
			return nil
		}
		f.Model = fleetOf(nil, a, b, shadow).Model
		p := newPlant(t, f)
		seq := p.run(0, 6, "T1", false)
		p.window(wideOf(b, 7, 0, "T9"))
		m := p.o.Machine(drill)
		if now, _ := m.Judges(); now != a.ID() || m.inSpindle().Name != "T1" || len(m.Shadows()) != 1 {
			t.Errorf("%s judges %s, shadows %v", now, m.inSpindle().Name, m.Shadows())
		}
		p.restart()
		p.run(seq, 3, "T1", false)
		if r := p.last(); r.Verdict != event.Healthy || r.Model != a.ID() {
			t.Errorf("%s", event.JSON(r))
		}
		if n := len(p.shadows[event.ShadowGroup(group, shadow.ID())]); n != 9 {
			t.Errorf("%d results of the shadow, want 9", n)
		}
		wantStrings(t, "advisories", kinds(p.advised), nil)
	}
}

// A good reference is not replaced by one of worn windows: not when the tool's first windows have left Kafka, whether or not the
// next model could use the reference.
func TestReferenceSurvivesRetention(t *testing.T) {
	a := machinetest.OneValue(t)
	for name, b := range map[string]*model.Model{"same print": machinetest.WithWear(t), "another": otherFeatures(t)} {
		for _, now := range []bool{false, true} {
			p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
			seq := p.run(0, 10, "T1", false)
			seq = p.run(seq, 10, "T1", true)
			p.deploy(fleetOf(&Deployment{Champion: b, Now: now}, a, b))
			seq = p.run(seq, 3, "T2", false)
			seq = p.run(seq, 1, "T1", true)
			p.features = p.features[12:] // the others are gone
			for p.build() {
				continue
			}
			p.restart()
			seq = p.run(seq, 3, "T1", true)
			seq = p.run(seq, 1, "T2", false)
			p.run(seq, 3, "T1", true)
			for _, r := range p.results[10:] {
				if r.Tool == "T1" && r.Verdict != event.Faulty {
					t.Fatalf("%s, now %v: %s", name, now, event.JSON(r))
				}
			}
			if lines := fmt.Sprint(p.lines); !strings.Contains(lines, "model_not_built") {
				t.Errorf("%s, now %v: nothing says that the past is gone: %s", name, now, lines)
			} else if seeded := strings.Contains(lines, "it goes on with the reference that it has"); seeded != (name == "same print") {
				t.Errorf("%s, now %v: %s", name, now, lines)
			}
		}
	}
}

// Without a model that knows the tool, the windows of a tool in mid life are unknown until the champion has seen its past; of a past that is
// gone it takes what is left, and an advisory says that the tool was used.
func TestModelOfTheToolIsGone(t *testing.T) {
	a, b := machinetest.OneValue(t), otherFeatures(t)
	for name, tc := range map[string]struct {
		from       int
		verdict    event.Verdict // of the window behind the build
		advisories []string
	}{
		"all is there":     {0, event.Faulty, []string{"model_changed raised", "model_changed cleared"}},
		"the first is not": {1, event.Healthy, []string{"model_changed raised", "model_changed cleared", "model_changed raised"}},
		"nothing is":       {99, event.Learning, []string{"model_changed raised", "model_changed cleared", "model_changed raised"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
			seq := p.run(0, 2, "T1", false)
			seq = p.run(seq, 4, "T1", true)
			p.features = append([]*window.Features{}, p.features...)
			if tc.from == 1 { // healthy ones, but the first
				p.features[3], p.features[2] = machinetest.Features(nil, at(3, "T1", true)), machinetest.Features(nil, at(2, "T1", true))
			}
			p.fleet = fleetOf(&Deployment{Champion: b}, b)
			p.restart()
			seq = p.run(seq, 3, "T1", true)
			if r := p.last(); r.Verdict != event.Unknown || r.Unknown != modelChanged || r.Alarm != "raised" {
				t.Fatalf("%s", event.JSON(r))
			}
			p.features = p.features[min(tc.from, len(p.features)):]
			if !p.build() {
				t.Fatal("nothing is to be built")
			}
			p.restart()
			p.run(seq, 1, "T1", true)
			r := p.last()
			if tc.from == 1 && r.Verdict == event.Faulty { // a reference of one healthy and two worn windows
				t.Errorf("%s", event.JSON(r))
			}
			if tc.from != 1 && r.Verdict != tc.verdict {
				t.Errorf("%s, want %s", event.JSON(r), tc.verdict)
			}
			wantStrings(t, "advisories", kinds(p.advised), tc.advisories)
			wantStrings(t, "alerts", states(p.alerts), []string{"raised"})
			if p.build() {
				t.Error("it is built again")
			}
		})
	}
}

// While the tool's past is to be seen, a window is unknown if the tool cuts in it and the sensors work: else it says so, as ever.
func TestModelOfTheToolIsGoneAndItDoesNotCut(t *testing.T) {
	a, b := machinetest.OneValue(t), machinetest.Cycling(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
	seq := p.run(0, 4, "T1", false)
	p.fleet = fleetOf(&Deployment{Champion: b}, b)
	p.restart()
	dead := at(seq+1, "T1", false)
	dead.Quality[0] = signal.Flatline
	for _, step := range []struct {
		w    *window.Window
		want event.Verdict
	}{{at(seq, "T1", false), event.Unknown}, {dead, event.SensorFault}, {machinetest.Idle(seq+2, "T1"), event.NotCutting}, {at(seq+3, "T1", true), event.Unknown}} {
		p.window(machinetest.Features(b, step.w))
		if r := p.last(); r.Verdict != step.want || (r.Unknown == modelChanged) != (step.want == event.Unknown) {
			t.Errorf("%s, want %s", event.JSON(r), step.want)
		}
	}
}

// A model that is gone leaves windows of another length to the model that judged them last: the champion takes over with the next
// tool. Windows that it judged itself are the champion's at once.
func TestModelOfAnotherLengthIsGone(t *testing.T) {
	a, c := machinetest.OneValue(t), otherFeatures(t)
	long, next := ofLength(t, 2*time.Second), ofLength(t, 2*time.Second)
	next.Provenance.Seed = 7
	if _, err := next.Encode(); err != nil {
		t.Fatal(err)
	}
	shadows := []Shadow{{Model: c}}
	for name, tc := range map[string]struct {
		champion *model.Model
		form     string
		want     string
	}{
		"windows of the other length": {c, "A", a.ID()},
		"its own":                     {next, "S", next.ID()},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlant(t, fleetOf(&Deployment{Champion: a, Shadows: shadows}, a, c, long, next))
			seq := p.run(0, 4, "T1", false)
			send := func(form string) {
				w := measured{1, form}.window(1, seq, "T1", "", noon.Add(time.Duration(seq)*time.Second))
				p.window(machinetest.Features(toys()[form], w))
				seq++
			}
			p.deploy(fleetOf(&Deployment{Champion: long, Shadows: shadows}, a, c, long, next))
			send("S")
			for p.build() {
			}
			send("S")
			if r := p.last(); r.Model != long.ID() || r.Verdict != event.Learning {
				t.Fatalf("%s", event.JSON(r))
			}
			p.deploy(fleetOf(&Deployment{Champion: tc.champion}, a, c, next))
			for range 2 {
				send(tc.form)
				if r := p.last(); r.Model != tc.want || r.Unknown == modelChanged {
					t.Errorf("%s, want %s", event.JSON(r), tc.want)
				}
				p.restart()
			}
		})
	}
}

// A rollback finds what the model of before knew of the tool, and judges it from its next entry on.
func TestRollback(t *testing.T) {
	a, b := machinetest.OneValue(t), otherFeatures(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
	seq := p.run(0, 6, "T1", false)
	p.deploy(fleetOf(&Deployment{Champion: b, Now: true}, a, b))
	seq = p.run(seq, 1, "T1", false)
	if !p.build() {
		t.Fatal("nothing is to be built")
	}
	seq = p.run(seq, 2, "T1", false)
	if r := p.last(); r.Model != b.ID() || r.Verdict != event.Healthy {
		t.Fatalf("%s", event.JSON(r))
	}
	p.deploy(fleetOf(&Deployment{Champion: a}, a, b))
	p.restart()
	seq = p.run(seq, 2, "T1", true)
	if r := p.last(); r.Model != b.ID() {
		t.Fatalf("in mid life: %s", event.JSON(r))
	}
	seq = p.run(seq, 1, "T2", false)
	p.run(seq, 1, "T1", true)
	if r := p.last(); r.Model != a.ID() || r.Verdict != event.Faulty {
		t.Fatalf("%s", event.JSON(r))
	}
	if !p.build() { // it has missed windows
		t.Error("what the model of before knows is not brought up to date")
	}
}

// The alarm of a tool that was changed does not outlive it when no deployment judges the machine any more.
func TestAlarmEndsWithItsTool(t *testing.T) {
	a := machinetest.OneValue(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a))
	seq := p.run(0, 5, "T1", false)
	seq = p.run(seq, 8, "T1", true)
	p.deploy(fleetOf(nil, a))
	seq = p.run(seq, 3, "T1", true)
	if word := p.o.Machine(drill).AlarmWord(); word != "raised" {
		t.Errorf("alarm %s while the tool is in", word)
	}
	p.restart()
	seq = p.run(seq, 5, "T2", false)
	wantStrings(t, "alerts", states(p.alerts), []string{"raised", "cleared tool_change"})
	p.deploy(fleetOf(&Deployment{Champion: a}, a))
	p.run(seq, 1, "T1", true)
	if r := p.last(); r.Verdict != event.Faulty || r.Alarm != "raised" {
		t.Errorf("%s", event.JSON(r))
	}
}

// An owner that knows the champion only does not let it take over in mid life: the record of the tool says who judges.
func TestLoadingDecidesNothing(t *testing.T) {
	a, b := pair(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
	seq := p.run(0, 6, "T1", false)
	p.fleet = fleetOf(&Deployment{Champion: b}, b)
	p.restart()
	if tool := p.o.Machine(drill).inSpindle(); tool.By != a.ID() || tool.judging(a.ID()).Reference.Windows != 2 {
		t.Errorf("judged by %s", tool.By)
	}
	p.fleet = fleetOf(&Deployment{Champion: b}, a, b) // as one that has asked for the models in the records
	p.restart()
	p.run(seq, 1, "T1", false)
	if r := p.last(); r.Model != a.ID() {
		t.Errorf("%s", event.JSON(r))
	}
	if ids := event.StateModels(p.stored()); len(ids) != 1 || ids[0] != a.ID() {
		t.Errorf("the models in the records are %v", ids)
	}
}

func (p *plant) stored() (all []event.StateRecord) {
	for _, r := range p.records {
		all = append(all, r)
	}
	return all
}

// A defect that shows as a panic stops its machine alone: an advisory and a dead letter say so, the others go on, and another
// owner tries again.
func TestMachineThatPanics(t *testing.T) {
	a := machinetest.OneValue(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a))
	seq := p.run(0, 4, "T1", false)
	other := func() event.Result {
		w := at(seq, "T1", false)
		w.Machine = "acme/line1/lathe"
		p.window(machinetest.Features(nil, w))
		return p.last()
	}
	m := p.o.Machine(drill)
	m.inSpindle().Judgings[0].Reference = model.Reference{Tool: "T1"}
	broken := a.ID()
	m.judges.models.used[broken].judge = nil // which is a defect
	seq = p.run(seq, 1, "T1", false)
	if p.letters != 1 || len(p.advised) != 1 || p.advised[0].Kind != event.StoppedAdvisory || !strings.Contains(p.advised[0].Text, "STOPPED") {
		t.Fatalf("%d letters, advisories %v", p.letters, kinds(p.advised))
	}
	p.command(event.Command{ID: "1", Action: event.Suppress, Note: "n"})
	if p.letters != 2 {
		t.Errorf("a command to a machine that is stopped: %d letters", p.letters)
	}
	results := len(p.results)
	seq = p.run(seq, 3, "T1", false)
	if len(p.results) != results || p.letters != 2 || len(p.advised) != 1 {
		t.Errorf("it goes on: %d results, %d letters, %v", len(p.results)-results, p.letters, kinds(p.advised))
	}
	p.o.models.used = nil // which mends it
	if r := other(); r.Machine != "acme/line1/lathe" {
		t.Errorf("the others are not judged: %s", event.JSON(r))
	}
	p.restart()
	p.run(seq, 1, "T1", false)
	if r := p.last(); r.Machine != drill || r.Verdict != event.Learning && r.Verdict != event.Healthy {
		t.Errorf("%s", event.JSON(r))
	}
	wantStrings(t, "advisories", kinds(p.advised), []string{"machine_stopped raised", "machine_stopped cleared"})
}

// A message that cannot be opened because of a defect is set aside, and the stream goes on.
func TestOpenPanics(t *testing.T) {
	a := machinetest.OneValue(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a))
	in := Input{Offset: p.sent, At: p.now(), Open: func(*window.Features) error { panic("a defect") }}
	p.sent++
	p.do(p.o.On(Read{Log: WindowLog, Inputs: []Input{in}}, in.At))
	if p.letters != 1 {
		t.Errorf("%d letters", p.letters)
	}
	if p.run(0, 1, "T1", false); len(p.results) != 1 {
		t.Errorf("%d results", len(p.results))
	}
}

// Two tools in turn, one of them acknowledged and shelved, send no alerts.
func TestTwoToolsInTurn(t *testing.T) {
	a := machinetest.OneValue(t)
	for name, want := range map[string]int{"acknowledged": 1, "shelved": 1, "nothing": 6} {
		p := newPlant(t, fleetOf(&Deployment{Champion: a, Alarm: alarm.Settings{K: 2, N: 3, Latch: true}}, a))
		seq := p.run(0, 5, "T1", false)
		seq = p.run(seq, 5, "T2", false)
		seq = p.run(seq, 10, "T1", true)
		switch name {
		case "acknowledged":
			p.command(event.Command{ID: "1", Action: event.Acknowledge, Incident: p.last().Incident})
		case "shelved":
			p.command(event.Command{ID: "1", Action: event.Shelve, Note: "until the part is done", Until: p.now().Add(8 * time.Hour)})
		}
		sent := len(p.alerts)
		for range 30 { // parts, of a minute each
			seq = p.run(seq, 30, "T2", false)
			seq = p.run(seq, 30, "T1", true)
		}
		if n := len(p.alerts) - sent; n > want {
			t.Errorf("%s: %d alerts in half an hour, want %d: %v", name, n, want, states(p.alerts[sent:]))
		}
	}
}

// models returns n models of the same features that are told apart.
func models(t *testing.T, n int) (all []*model.Model) {
	t.Helper()
	for i := range n {
		m := otherFeatures(t)
		m.Provenance.Seed = uint64(i)
		if _, err := m.Encode(); err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// A tool keeps what the model that judges it knows, and what the two models know that began last.
func TestJudgingsAreBounded(t *testing.T) {
	for _, now := range []bool{false, true} {
		all := models(t, 5)
		p := newPlant(t, fleetOf(&Deployment{Champion: all[0]}, all...))
		seq := p.run(0, 4, "T1", false)
		for _, m := range all[1:] {
			p.deploy(fleetOf(&Deployment{Champion: m, Now: now}, all...))
			p.build()
			p.restart()
			seq = p.run(seq, 1, "T1", false)
		}
		var got []string
		for _, j := range p.o.Machine(drill).Tools[0].Judgings {
			got = append(got, j.Model)
		}
		want := []string{all[0].ID(), all[3].ID(), all[4].ID()}
		if now {
			want[0] = all[2].ID()
		}
		wantStrings(t, fmt.Sprintf("now %v: models", now), got, want)
	}
}

// Once the model that judged a tool is gone, the champion judges it, and not the model that judged before that one.
func TestFormerModelDoesNotComeBack(t *testing.T) {
	all := models(t, 3)
	former, gone, champion := all[0], all[1], all[2]
	shadows := []Shadow{{Model: champion}}
	p := newPlant(t, fleetOf(&Deployment{Champion: former, Shadows: shadows}, all...))
	seq := p.run(0, 4, "T1", false)
	p.deploy(fleetOf(&Deployment{Champion: gone, Now: true, Shadows: shadows}, all...))
	p.build()
	seq = p.run(seq, 1, "T1", false)
	if r := p.last(); r.Model != gone.ID() {
		t.Fatalf("%s", event.JSON(r))
	}
	p.deploy(fleetOf(&Deployment{Champion: champion}, former, champion))
	if now, next := p.o.Machine(drill).Judges(); now != champion.ID() || next != "" {
		t.Errorf("%s judges, and then %q: the model is gone", now, next)
	}
	p.run(seq, 1, "T1", false)
	if r := p.last(); r.Model != champion.ID() {
		t.Errorf("%s, want %s", event.JSON(r), champion.ID())
	}
	if n := strings.Count(fmt.Sprint(p.lines), "model_swapped"); n != 2 {
		t.Errorf("%v: %d lines of a swap, want 2", p.lines, n)
	}
}

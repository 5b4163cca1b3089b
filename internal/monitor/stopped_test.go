package monitor

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

const otherMachine = "acme/line1/lathe"

// defective returns a model that learns a tool's reference, and then panics at its first verdict. No file of a model is so.
func defective(t *testing.T) *model.Model {
	t.Helper()
	m := machinetest.OfThree(t)
	m.Reference.Mode = model.ReferenceLog
	return m
}

// deployOn makes a monitor judge a machine by another deployment than all others.
func deployOn(t *testing.T, name string, d *machine.Deployment) func(*Monitor) {
	t.Helper()
	glob, err := deploy.ParseGlob(name)
	if err != nil {
		t.Fatal(err)
	}
	return func(m *Monitor) {
		f := m.fleet
		f.mu.Lock()
		defer f.mu.Unlock()
		all := []deployed{{deploy.Deployment{For: glob, Layout: d.Champion.Layout.Fingerprint(), Champion: d.Champion}, d}}
		f.deployed = append(all, f.deployed...)
		known := map[string]*model.Model{d.Champion.ID(): d.Champion}
		for id, m := range f.known {
			known[id] = m
		}
		f.known = known
		for c := range f.listen {
			c <- f.machines()
		}
	}
}

// on returns a window of a machine.
func on(name string, seq uint64) *window.Window {
	w := at(seq, "T1", false)
	w.Machine = name
	return w
}

// judged returns how many results a machine has.
func (p *plant) judged(name string) (n int) {
	for _, r := range p.results() {
		if r.Machine == name {
			n++
		}
	}
	return n
}

// A defect that shows at a window of one machine stops that machine alone. An advisory, a dead letter with the
// window, the log and the metrics say so. All others go on, also after a restart, which tries the machine again.
func TestDefectStopsOneMachine(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	broken := deployOn(t, drill, &machine.Deployment{Champion: defective(t)})
	mon := p.monitor(broken)
	for seq := range uint64(2) {
		p.send(p.messages(on(drill, seq), on(otherMachine, seq))...)
	}
	p.untilResults(4)
	failed := p.message(on(drill, 2)) // at offset 4
	p.send(failed, p.message(on(otherMachine, 2)), p.message(on(drill, 3)), p.message(on(otherMachine, 3)))
	p.untilResults(6)

	stopped := func(mon *monitoring, letters int) {
		t.Helper()
		dead := p.read(bus.TopicDead)
		if len(dead) != letters {
			t.Fatalf("%d dead letters, want %d", len(dead), letters)
		}
		if l := dead[0]; !bytes.Equal(l.Value, failed.Value) || string(l.Header("dead_topic")) != bus.TopicWindows || string(l.Header("dead_offset")) != "4" ||
			!strings.Contains(string(l.Header("dead_reason")), "a defect of this program") {
			t.Errorf("dead letter of %s at %s: %s", l.Header("dead_topic"), l.Header("dead_offset"), l.Header("dead_reason"))
		}
		advisories := p.advisories()
		for _, a := range advisories {
			if a.Kind != event.StoppedAdvisory || a.State != event.Raised || a.Severity != "warning" || a.Machine != drill || !strings.Contains(a.Text, "drill: STOPPED") {
				t.Errorf("%s", event.JSON(a))
			}
		}
		if len(advisories) != 1 {
			t.Errorf("%d advisories, want one for as long as it is stopped", len(advisories))
		}
		if st := p.standing(drill); st.Unwatched() != "stopped by a defect" {
			t.Errorf("it stands so: %+v", st)
		}
		if st := p.standing(otherMachine); st.Unwatched() != "" {
			t.Errorf("the other one stands so: %+v", st)
		}
		mon.untilReady(t)              // other machines are judged
		await.Right(t, func() string { // the log has it before they are counted
			text := scrape(mon.Metrics())
			for _, want := range []string{"tcm_machine_panics_total 1", `tcm_machine_stopped{machine="` + drill + `"} 1`, `tcm_machine_stopped{machine="` + otherMachine + `"} 0`} {
				if !strings.Contains(text, "\n"+want+"\n") {
					return fmt.Sprintf("no %q in\n%s", want, text)
				}
			}
			return ""
		})
	}
	s := mon.untilStats(t, func(s Stats) bool { return s.Features == 8 && s.Judged == 6 && s.Dead == 1 })
	if s.Judged != 6 || s.Panics != 1 || s.Unwatched != 1 || s.Dead != 1 {
		t.Errorf("%+v", s)
	}
	stopped(mon, 1)
	if log := p.log.String(); strings.Count(log, `"event":"machine_stopped"`) != 1 || !strings.Contains(log, "goroutine") {
		t.Errorf("the log does not say where it failed:\n%s", log)
	}
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}

	mon = p.monitor(broken)
	p.send(p.messages(on(drill, 4), on(otherMachine, 4), on(drill, 5), on(otherMachine, 5))...)
	p.untilResults(8)
	s = mon.untilStats(t, func(s Stats) bool { return s.Features == 4 && s.Judged == 2 && s.Dead == 1 })
	if s.Judged != 2 || s.Panics != 1 || s.Unwatched != 1 || s.Dead != 1 {
		t.Errorf("after a restart: %+v", s)
	}
	stopped(mon, 2)
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}

	mon = p.monitor() // with a release, or a model, that is mended
	p.send(p.messages(on(drill, 6), on(otherMachine, 6))...)
	p.untilResults(10)
	mon.untilStats(t, func(s Stats) bool { return s.Advisories == 1 })
	if st := p.standing(drill); st.Unwatched() != "" {
		t.Errorf("in the end: %+v", st)
	}
	if n, others := p.judged(drill), p.judged(otherMachine); n != 3 || others != 7 {
		t.Errorf("%d windows of the machine are judged and %d of the other one, want 3 and 7", n, others)
	}
	if n := len(p.read(bus.TopicDead)); n != 2 {
		t.Errorf("%d dead letters", n)
	}
}

// A model that fails at the past of a tool does not take over: the model of before goes on, and the failed one stops the machine with
// the next tool, which no other model can judge.
func TestDefectWhileModelIsBuilt(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	mon := p.monitor()
	for seq := range uint64(4) {
		p.send(p.messages(on(drill, seq), on(otherMachine, seq))...)
	}
	p.untilResults(8)
	deployOn(t, drill, &machine.Deployment{Champion: defective(t)})(mon.Monitor)
	mon.untilStats(t, func(s Stats) bool { return s.Panics == 1 })
	p.send(p.messages(on(drill, 4), on(otherMachine, 4))...)
	p.untilResults(10)
	time.Sleep(3 * jobEvery) // it is not tried over and over
	if s, st := mon.Stats(), p.standing(drill); s.Panics != 1 || s.Unwatched != 0 || st.Unwatched() != "" {
		t.Errorf("%+v; %+v", s, st)
	}
	for seq := range uint64(6) {
		p.send(p.messages(at(5+seq, "T2", false))...)
	}
	mon.untilStats(t, func(s Stats) bool { return s.Panics == 2 })
	judged := len(p.results())
	p.send(p.messages(on(otherMachine, 5))...)
	p.untilResults(judged + 1)
	if st := p.standing(drill); st.Unwatched() != "stopped by a defect" || p.judged(otherMachine) != 6 {
		t.Errorf("%+v; %d windows of the other machine are judged", st, p.judged(otherMachine))
	}
}

// A model of windows of another length is deployed for a machine in spite of all checks, as another program might: the
// model from before goes on with its tool, and the windows of the next tools are refused with an advisory, also after a
// restart. The alarm of the tool before is cleared all the same. Nothing fails.
func TestModelOfAnotherLengthIsDeployed(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	long := machinetest.OfThree(t)
	long.Window.Length = 2 * time.Second
	if _, err := long.Encode(); err != nil {
		t.Fatal(err)
	}
	next := make(chan string, 1000) // the model that is to judge from the next tool on
	mon := p.monitor(func(m *Monitor) {
		m.cfg.OnModels = func(_ string, show web.Models) { next <- show.Next }
	})
	p.send(p.messages(life(5, 3)...)...)
	p.untilResults(5)
	incident := p.standing(drill).Incident
	deployed := deployOn(t, drill, &machine.Deployment{Champion: long})
	deployed(mon.Monitor)
	for <-next != long.ID() {
	}
	p.send(p.messages(at(5, "T1", true))...)
	p.untilResults(6)
	p.send(p.messages(at(6, "T2", true), at(7, "T2", true))...)
	if s := mon.untilStats(t, func(s Stats) bool { return s.Unwatched == 2 }); s.Judged != 6 {
		t.Errorf("%+v", s)
	}
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}
	mon = p.monitor(deployed)
	p.send(p.messages(at(8, "T2", true), at(9, "T3", true), on(otherMachine, 0))...)
	p.untilResults(7)
	if s := mon.untilStats(t, func(s Stats) bool { return s.Unwatched == 2 }); s.Panics != 0 || s.Dead != 0 || s.Judged != 1 {
		t.Errorf("%+v", s)
	}
	if st := p.standing(drill); st.Unwatched() != "windows refused" || st.Alarm != "normal" || st.Incident != "" || st.Tool != "T3" || st.Tools != 3 {
		t.Errorf("it stands so: %+v", st)
	}
	var said []string
	for _, a := range p.advisories() {
		said = append(said, string(a.Kind)+" "+string(a.State))
		if !strings.Contains(a.Text, "drill: NOT WATCHED") || !strings.Contains(a.Text, "trained on windows of 2s, these have 1s") {
			t.Errorf("the advisory does not say why: %s", a.Text)
		}
	}
	for _, a := range p.alertsByID() {
		said = append(said, fmt.Sprintf("%s %s %v", a.State, a.Reason, a.Incident == incident))
	}
	slices.Sort(said)
	if want := []string{"cleared tool_change true", "raised  true", "windows_refused raised"}; !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}
	p.monitor() // the model from before is deployed again
	p.send(p.messages(at(10, "T1", true))...)
	p.untilResults(8)
	for _, r := range p.results() {
		if r.Seq == 10 && (r.Verdict != event.Faulty || r.Alarm != "raised" || r.Incident != incident) {
			t.Errorf("T1 is back: %s", event.JSON(r))
		}
	}
}

package machine

import (
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/window"
)

const lathe = "acme/line1/lathe"

// rename sends the commands that give the drill another name.
func (p *plant) rename(name string) {
	p.t.Helper()
	if p.renameTo(name); p.o.Machine(name) == nil || p.letters > 0 {
		p.t.Fatalf("not renamed: %d letters", p.letters)
	}
}

func (p *plant) renameTo(name string) {
	c := event.Command{ID: "rename", Machine: name, Action: event.Rename, By: "kim", Was: drill, Issued: p.now()}
	for k, r := range p.records {
		c.State = append(c.State, event.Kept{Key: k.String(), Value: r.Value})
	}
	p.command(event.Command{ID: "retire", Action: event.Retire})
	p.do(p.o.On(CommandsRead{{Key: name, Value: event.JSON(c), Offset: p.commanded, At: p.now()}}, p.now()))
	p.commanded++
}

// A machine of which only refused windows came has no tool to announce.
func TestRenameWithoutTools(t *testing.T) {
	a := machinetest.OneValue(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a))
	p.refuse(refusal(drill, 0, tooLong))
	p.renameTo(lathe)
	wantStrings(t, "alerts", states(p.alerts), []string{"retired", "renamed"})
	if text := p.alerts[len(p.alerts)-1].Text; p.letters != 1 || // the refused window
		text != "lathe: renamed from acme/line1/drill by kim; it goes on with what is remembered of 0 tools." {
		t.Error(text)
	}
}

// A machine that is renamed goes on with its references and its alarm, and no model builds anything from windows of the
// new name as if they were the tool's first ones: a worn tool stays worn.
func TestRenamedToolStaysWorn(t *testing.T) {
	a, b := machinetest.OneValue(t), machinetest.WithWear(t)
	for _, now := range []bool{false, true} {
		p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
		seq := uint64(0)
		next := func(n int, name string, faulty bool) {
			for range n {
				w := at(seq, "T1", faulty)
				if w.Machine = name; name != drill {
					w.Epoch = 9
				}
				p.window(machinetest.Features(nil, w))
				seq++
			}
		}
		next(10, drill, false)
		next(10, drill, true)
		p.rename(lathe)
		wantStrings(t, "alerts", states(p.alerts), []string{"raised", "cleared retired", "retired", "renamed", "raised tool_back"})
		p.deploy(fleetOf(&Deployment{Champion: b, Now: now}, a, b))
		next(3, lathe, true)
		if p.build() {
			t.Error("a build looks for windows that lie under the old name")
		}
		p.restart()
		next(3, lathe, true)
		for _, r := range p.results[20:] {
			if r.Verdict != event.Faulty {
				t.Errorf("now %v, window %d of a worn tool is %s", now, r.Seq, r.Verdict)
			}
		}
	}
}

// Kafka still has the features only of a machine in mode edge that was renamed.
func TestRenamedInModeEdge(t *testing.T) {
	a := machinetest.OneValue(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a))
	for seq := range uint64(3) {
		f := machinetest.Features(nil, at(seq, "T1", false))
		p.do(p.o.On(Read{Log: FeatureLog, Inputs: []Input{{Offset: int64(seq), At: p.now(), Open: func(into *window.Features) error { *into = *f; return nil }}}}, p.now()))
	}
	p.rename(lathe)
	for _, w := range p.o.Machine(lathe).inSpindle().Trace {
		if w.Offset != (event.Offset{Features: true}) {
			t.Errorf("window %d at %+v", w.Seq, w.Offset)
		}
	}
}

// Records of another machine or group, or none, rename nothing.
func TestRenameRefuses(t *testing.T) {
	a := machinetest.OneValue(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a))
	for i, kept := range [][]event.Kept{
		{{Key: event.StateKey{Group: group, Machine: "acme/other"}.String(), Value: []byte("{}")}},
		{{Key: event.StateKey{Group: "other", Machine: drill}.String(), Value: []byte("{}")}},
		{{Key: event.StateKey{Group: group, Machine: drill}.String(), Value: []byte(`{"version":3,"machine":"acme/other"}`)}},
		{{Key: "x", Value: []byte("{}")}},
	} {
		c := event.Command{ID: "r", Machine: lathe, Action: event.Rename, By: "kim", Was: drill, Issued: p.now(), State: kept}
		p.do(p.o.On(CommandsRead{{Key: lathe, Value: event.JSON(c), Offset: p.commanded, At: p.now()}}, p.now()))
		p.commanded++
		if p.letters != i+1 || p.o.Machine(lathe) != nil {
			t.Errorf("records %d were taken", i)
		}
	}
}

// Commands reach every group. Each goes on with what it remembers itself, and one that remembers nothing of the machine forgets and
// begins nothing.
func TestRenameReachesEveryGroup(t *testing.T) {
	a := machinetest.OneValue(t)
	c := event.Command{ID: "rename", Machine: lathe, Action: event.Rename, By: "kim", Was: drill, Issued: noon}
	plants := make(map[string]*plant)
	for i, g := range []string{"centre", group, "empty"} {
		p := newPlant(t, fleetOf(&Deployment{Champion: a}, a))
		p.o = NewOwner(&Settings{Group: g, Alarm: testAlarm}, p.fleet, 0)
		p.o.Start()
		p.o.On(Fenced{At: Position{}}, time.Time{})
		p.do(p.o.On(Loaded{}, p.now()))
		if plants[g] = p; g != "empty" {
			p.run(p.run(0, 3+i, "T1", false), 4, "T1", true)
		}
		for k, r := range p.records {
			c.State = append(c.State, event.Kept{Key: k.String(), Value: r.Value})
		}
	}
	for g, p := range plants {
		p.command(event.Command{ID: "retire", Action: event.Retire})
		before := p.letters
		p.do(p.o.On(CommandsRead{{Key: lathe, Value: event.JSON(c), Offset: p.commanded, At: p.now()}}, p.now()))
		m := p.o.Machine(lathe)
		switch {
		case g == "empty":
			if m != nil || p.letters != before+1 || len(p.alerts) > 0 {
				t.Errorf("%s: %d letters, alerts %q", g, p.letters, states(p.alerts))
			}
		case m == nil || p.letters > 0 || m.AlarmWord() != "raised" || m.Tools[0].Windows != len(p.results):
			t.Errorf("%s: %d letters, %v", g, p.letters, m)
		}
	}
}

// A command that was recorded and is sent again later renames nothing.
func TestRenameLate(t *testing.T) {
	a := machinetest.OneValue(t)
	for late, want := range map[time.Duration]bool{0: true, 24 * time.Hour: false, -time.Hour: false} {
		p := newPlant(t, fleetOf(&Deployment{Champion: a}, a))
		p.run(0, 3, "T1", false)
		c := event.Command{ID: "x", Machine: lathe, Action: event.Rename, By: "kim", Was: drill, Issued: p.now()}
		for k, r := range p.records {
			c.State = append(c.State, event.Kept{Key: k.String(), Value: r.Value})
		}
		at := p.now().Add(late)
		p.do(p.o.On(CommandsRead{{Key: lathe, Value: event.JSON(c), Offset: p.commanded, At: at}}, at))
		if got := p.o.Machine(lathe) != nil; got != want || got == (p.letters > 0) {
			t.Errorf("a command that came after %v: renamed %v, %d letters", late, got, p.letters)
		}
	}
}

// A record that is moved to another partition keeps all but offsets, in either version, and no model looks for the tool's past
// there.
func TestMoved(t *testing.T) {
	a, b := machinetest.OneValue(t), machinetest.WithWear(t)
	fresh := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
	fresh.run(fresh.run(0, 4, "T1", false), 4, "T1", true)
	fresh.run(8, 3, "T2", false)
	kept := keptPlant(t, &Deployment{Champion: a}, a, b)
	for _, p := range []*plant{fresh, kept} {
		for k, r := range p.records {
			moved, err := event.MovedState(r)
			if err != nil {
				t.Fatal(err)
			}
			p.records[k] = moved
		}
		p.restart()
		m := p.o.Machine(drill)
		if p.letters > 0 || m == nil || len(m.Tools) < 2 {
			t.Fatalf("%d letters", p.letters)
		}
		for _, tool := range m.Tools {
			for _, w := range tool.Trace {
				if !tool.PastGone || w.Offset.At != 0 {
					t.Errorf("%s: past gone %v, a window at %v", tool.Name, tool.PastGone, w.Offset)
				}
			}
		}
		p.deploy(fleetOf(&Deployment{Champion: otherFeatures(t), Now: true}, a, b, otherFeatures(t)))
		p.run(30, 2, m.inSpindle().Name, false)
		if r := p.last(); r.Model != a.ID() || p.build() {
			t.Errorf("%s", event.JSON(r))
		}
	}
	if _, err := event.MovedState(event.StateRecord{Key: event.StateKey{Group: group, Machine: drill}, Value: []byte("x")}); err == nil {
		t.Error("a damaged record is moved")
	}
}

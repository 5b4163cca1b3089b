package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/order"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
)

// A window of another epoch with another tool, from a disk of last year, does not change
// the tool: its alarm stays, and the windows behind it are judged.
func TestStrayWindow(t *testing.T) {
	for name, tool := range map[string]string{"of another tool": "X", "of the same tool": "T1"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, machinetest.OneValue(t))
			seq, incident := b.wear("T1", 0)
			stray := at(0, tool, false)
			stray.Epoch, stray.Start = 2, stray.Start.AddDate(-1, 0, 0)
			d := b.window(stray)
			if len(d.Alerts)+len(d.Advisories) > 0 || d.Result.Alarm != "raised" || d.Result.Incident != incident {
				t.Errorf("%v %s", states(d.Alerts), event.JSON(d.Result))
			}
			for range 70 {
				b.restart()
				d := b.window(at(seq, "T1", true))
				if r := d.Result; len(d.Alerts)+len(d.Advisories) > 0 || r.Late || r.Verdict != event.Faulty || r.Alarm != "raised" || r.Incident != incident || b.m.inSpindle().Name != "T1" {
					t.Fatalf("window %d: %v %v %s", seq, states(d.Alerts), kinds(d.Advisories), event.JSON(r))
				}
				seq++
			}
		})
	}
}

// Two ingesters send windows of one machine, by the same names of tools or other ones. One
// of them is judged as if it were alone; windows of the other one get a verdict, move
// nothing and are an advisory.
func TestTwoIngesters(t *testing.T) {
	m := machinetest.OneValue(t)
	for name, tools := range map[string][2]string{"the same tool": {"T1", "T1"}, "other tools": {"T1", "T2"}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, m)
			window := func(seq uint64, ingester int) Decision {
				w := at(seq, tools[ingester], seq > 20)
				w.Epoch = uint64(ingester + 1)
				return b.window(w)
			}
			var alerts, advisories []string
			for seq := range uint64(200) {
				first := window(seq, 0)
				if r := first.Result; r.Late || seq > 20 && r.Verdict != event.Faulty || seq > 21 && r.Alarm != "raised" {
					t.Fatalf("first: %s", event.JSON(r))
				}
				second := window(seq, 1)
				if r := second.Result; seq > 0 && !r.Late {
					t.Fatalf("second: %s", event.JSON(r))
				}
				for _, d := range []Decision{first, second} {
					alerts = append(alerts, states(d.Alerts)...)
					for _, a := range d.Alerts {
						if a.Epoch != at(0, "", false).EpochString() || a.Tool != "T1" {
							t.Errorf("%s", event.JSON(a))
						}
					}
					for _, a := range d.Advisories {
						advisories = append(advisories, fmt.Sprintf("%s %s", a.Kind, a.State))
						if !strings.Contains(a.Text, "drill: TWO INGESTERS send windows of this machine; epoch 0000000000000001 is judged, windows of epoch 0000000000000002 get a verdict") {
							t.Error(a.Text)
						}
					}
				}
				if seq%17 == 0 {
					b.restart()
				}
			}
			wantStrings(t, "alerts", alerts, []string{"raised"})
			wantStrings(t, "advisories", advisories, []string{"two_ingesters raised"})
			advisories = nil
			for seq := uint64(200); seq < 262; seq++ { // the second one is taken off
				advisories = append(advisories, kinds(window(seq, 0).Advisories)...)
			}
			wantStrings(t, "one again", advisories, []string{"two_ingesters cleared"})
		})
	}
}

// The second ingester takes over when the first one has been gone for a minute.
func TestSecondIngesterTakesOver(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	window := func(seq, epoch uint64) *event.Result {
		w := at(seq, fmt.Sprint("T", epoch), false)
		w.Epoch = epoch
		return b.judged(w)
	}
	for seq := range uint64(5) {
		window(seq, 1)
		window(seq, 2)
	}
	gone := b.sent
	for seq := uint64(5); ; seq++ {
		r := window(seq, 2)
		after := b.sent - time.Second - gone + 2*time.Second // since the last window of the first one
		if over := after >= order.Patience; r.Late == over {
			t.Fatalf("late %v %v after the last window of the first one", r.Late, after)
		}
		if !r.Late {
			break
		}
		b.restart()
	}
	if b.m.inSpindle().Name != "T2" {
		t.Errorf("tool %s is in the spindle", b.m.inSpindle().Name)
	}
}

// An ingester that begins a new epoch with another tool takes over with its third window
// in a row, and nothing of the first two is lost.
func TestNewEpochWithAnotherTool(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	b.wear("T1", 0)
	for seq := range uint64(5) {
		w := at(seq, "T2", false)
		w.Epoch = 2
		d := b.window(w)
		b.restart()
		want := []string(nil)
		if seq == 2 {
			want = []string{"cleared tool_change"}
		}
		wantStrings(t, fmt.Sprint("window ", seq), states(d.Alerts), want)
		if r := d.Result; r.Late || (r.Verdict == event.Learning) != (seq < 2) || (r.Alarm == "raised") != (seq < 2) {
			t.Errorf("%s", event.JSON(r))
		}
	}
	if tool := b.m.inSpindle(); tool.Name != "T2" || len(tool.Trace) != 5 {
		t.Errorf("tool %s, %d windows in the trace", tool.Name, len(tool.Trace))
	}
}

// Windows of many epochs that are read again, all of them or some, are repeats.
func TestEpochsReadAgain(t *testing.T) {
	m := machinetest.OneValue(t)
	for _, epochs := range []int{9, 200} {
		b := newBench(t, m)
		for pass := range 3 {
			for e := range epochs {
				for seq := range uint64(12) {
					w := at(seq, fmt.Sprint("T", e/2), seq > 5)
					w.Epoch = uint64(e + 1)
					d := b.window(w)
					if d.Repeat != (pass > 0) || d.Repeat && (!d.Empty() || len(b.written) > 0) {
						t.Fatalf("%d epochs, pass %d: %+v", epochs, pass, d)
					}
				}
			}
			b.restart()
		}
	}
}

// A seq that is far ahead, with a normal time or one in the future, does not make the
// windows behind it late.
func TestSeqFarAhead(t *testing.T) {
	for i, ahead := range []uint64{1<<64 - 1, 1 << 63, 1000, 1<<64 - 1} {
		b := newBench(t, machinetest.OneValue(t))
		for seq := range uint64(4) {
			b.window(at(seq, "T1", false))
		}
		w := at(4, "T1", false)
		w.Seq = ahead
		if i == 3 {
			w.Start = w.Start.AddDate(50, 0, 0)
		}
		if d := b.window(w); d.Result.Late || d.Missing != ahead-4 {
			t.Errorf("%+v", d)
		}
		var alerts []string
		for seq := uint64(5); seq < 12; seq++ {
			b.restart()
			d := b.window(at(seq, "T1", true))
			if r := d.Result; r.Late || r.Verdict != event.Faulty {
				t.Errorf("seq %d behind %d: %s", seq, ahead, event.JSON(r))
			}
			alerts = append(alerts, states(d.Alerts)...)
			if again := b.window(at(seq, "T1", true)); !again.Repeat {
				t.Errorf("seq %d: judged twice", seq)
			}
		}
		wantStrings(t, "alerts", alerts, []string{"raised"})
	}
}

// A clock of the broker that was an hour ahead once does not keep a command from being
// carried out, also after a restart.
func TestCommandsAfterClockAhead(t *testing.T) {
	b := raisedBench(t)
	ahead := noon.Add(time.Hour)
	b.command(event.Command{ID: "c0", Action: event.Shelve, Note: "x", Until: ahead.Add(time.Minute)}, ahead)
	b.command(event.Command{ID: "c1", Action: event.Unshelve}, ahead)
	b.restart()
	for i, after := range []time.Duration{time.Minute, 30 * time.Minute, 59 * time.Minute, 61 * time.Minute} {
		d := b.command(event.Command{ID: fmt.Sprint("s", i), Action: event.Suppress, Note: "x"}, noon.Add(after))
		wantStrings(t, after.String(), states(d.Alerts), []string{"suppressed"})
		d = b.command(event.Command{ID: fmt.Sprint("u", i), Action: event.Unsuppress}, noon.Add(after))
		wantStrings(t, after.String(), states(d.Alerts), []string{"unsuppressed"})
	}
	for i := range maxCommands { // a storm by that clock
		b.m.Apply(Command{Key: drill, Value: event.JSON(event.Command{ID: fmt.Sprint("a", i), Machine: drill, Action: event.Unshelve, By: "kim", Issued: ahead}), At: ahead})
	}
	b.keep()
	b.restart()
	d := b.command(event.Command{ID: "last", Action: event.Acknowledge, Incident: b.incident()}, noon.Add(2*time.Minute))
	wantStrings(t, "after a storm", states(d.Alerts), []string{"acknowledged"})
}

// A window of another epoch that is dated ahead, by any time, keeps no window of the machine's own epoch from being
// judged.
func TestStrayWindowOfTheFuture(t *testing.T) {
	for _, tool := range []string{"T1", "T9"} {
		for _, years := range []int{1, 50} {
			b := newBench(t, machinetest.OneValue(t))
			seq, incident := b.wear("T1", 0)
			stray := at(0, tool, false)
			stray.Epoch, stray.Start = 2, stray.Start.AddDate(years, 0, 0)
			b.window(stray)
			for range 80 {
				b.restart()
				d := b.window(at(seq, "T1", true))
				if r := d.Result; len(d.Alerts) > 0 || r.Late || r.Alarm != "raised" || r.Incident != incident {
					t.Fatalf("window %d: %v %s", seq, states(d.Alerts), event.JSON(r))
				}
				seq++
			}
		}
	}
}

// What an old disk brings back of an epoch that another one followed is late while that one goes on, and
// an advisory says so.
func TestEpochBroughtBack(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	b.wear("T1", 0)
	b.sent += 8 * time.Hour // a new disk is put in
	window := func(epoch, seq uint64) Decision {
		w := at(200+seq, "T1", epoch == 1)
		w.Epoch, w.Seq = epoch, seq
		return b.window(w)
	}
	var advisories []string
	for seq := range uint64(200) {
		d := window(2, seq)
		advisories = append(advisories, kinds(d.Advisories)...)
		if r := d.Result; r.Late {
			t.Fatalf("%s", event.JSON(r))
		}
		if seq < 20 {
			continue
		}
		b.restart()
		d = window(1, seq) // and the old one is read
		advisories = append(advisories, kinds(d.Advisories)...)
		if !d.Result.Late || len(d.Alerts) > 0 {
			t.Fatalf("%v %s", states(d.Alerts), event.JSON(d.Result))
		}
	}
	wantStrings(t, "advisories", advisories, []string{"two_ingesters raised"})
}

// Of two ingesters the one that was there first is judged, however far the clock of the other one is off, and whether or
// not their tools have names.
func TestSecondIngesterWithItsClockAhead(t *testing.T) {
	if testing.Short() {
		t.Skip("goes through many days")
	}
	m := machinetest.OneValue(t)
	for _, tool := range []string{"", "T1"} {
		for _, ahead := range []time.Duration{-time.Minute, -500 * time.Millisecond, 0, 3 * time.Second, 5 * time.Minute, 24 * time.Hour} {
			b := newBench(t, m)
			for seq := range uint64(10) {
				b.window(at(seq, tool, false))
			}
			var alerts, advisories []string
			for seq := uint64(10); seq < 600; seq++ {
				other := at(seq, tool, false)
				other.Epoch, other.Seq, other.Start = 2, seq-10, other.Start.Add(ahead)
				d := b.window(other)
				alerts, advisories = append(alerts, states(d.Alerts)...), append(advisories, kinds(d.Advisories)...)
				if d = b.window(at(seq, tool, true)); d.Result.Late {
					t.Fatalf("tool %q, %v ahead: window %d of the first ingester is late", tool, ahead, seq)
				}
				alerts, advisories = append(alerts, states(d.Alerts)...), append(advisories, kinds(d.Advisories)...)
			}
			wantStrings(t, "alerts", alerts, []string{"raised"})
			wantStrings(t, "advisories", advisories, []string{"two_ingesters raised"})
		}
	}
}

// alarms.md: a late window never moves an alarm.
func TestLateWindowsDoNotMoveTheAlarm(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	for _, seq := range []uint64{0, 1, 2, 3, 10, 11} {
		b.window(at(seq, "T1", false))
	}
	for _, seq := range []uint64{4, 5, 6, 7} {
		if d := b.window(at(seq, "T1", true)); !d.Result.Late || len(d.Alerts) > 0 || d.Result.Alarm != "normal" {
			t.Errorf("window %d: late %v, alarm %s, %v", seq, d.Result.Late, d.Result.Alarm, states(d.Alerts))
		}
	}
}

// Two ingesters go on side by side, and the second one sends more windows, or began with some at once: the first one is judged.
func TestSecondIngesterThatSendsMore(t *testing.T) {
	a := machinetest.OneValue(t)
	for name, turns := range map[string][]int{"four windows to one": {4, 4, 4}, "three at once, then one to one": {3, 1, 1}} {
		p := newPlant(t, fleetOf(&Deployment{Champion: a}, a))
		first := p.run(0, 50, "T1", false)
		second := uint64(0)
		for i := range 300 {
			for range turns[min(i, 2)] {
				w := at(second, "X", false)
				w.Epoch = 2
				p.window(machinetest.Features(nil, w))
				second++
			}
			first = p.run(first, 1, "T1", true)
		}
		late := 0
		for _, r := range p.results {
			if r.Tool == "T1" && r.Late {
				late++
			}
		}
		if in := p.o.Machine(drill).inSpindle().Name; in != "T1" || late > 0 || p.last().Alarm != "raised" {
			t.Errorf("%s: the spindle has %s, %d windows of the first one are late, alarm %s", name, in, late, p.last().Alarm)
		}
		if got := kinds(p.advised); len(got) != 1 || got[0] != "two_ingesters raised" {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Stray windows, which never change the tool in the spindle, take nothing from the tools of the magazine: neither one that names
// another life of a tool nor many that name other tools.
func TestStrayWindowsAndTheMagazine(t *testing.T) {
	a := machinetest.OneValue(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a))
	seq := p.run(0, 3, "T1", false)
	seq = p.run(seq, 3, "T1", true)
	seq = p.run(seq, 3, "T2", false)
	stray := func(epoch uint64, tool, life string) {
		w := at(0, tool, false)
		w.Epoch, w.ToolLife = epoch, life
		p.window(machinetest.Features(nil, w))
		seq = p.run(seq, 1, "T2", false)
	}
	stray(9, "T1", "another")
	for i := range uint64(2 * keptTools) {
		stray(1000+i, fmt.Sprint("bench", i), "")
	}
	p.restart()
	seq = p.run(seq, 1, "T3", false) // there is room for it: a stray one goes
	if m := p.o.Machine(drill); len(m.Tools) != keptTools || m.indexTool("T1") < 0 {
		t.Fatalf("%d tools", len(m.Tools))
	}
	p.run(seq, 1, "T1", true)
	if r := p.last(); r.Verdict != event.Faulty || r.Alarm != "raised" {
		t.Errorf("%s", event.JSON(r))
	}
}

// Two ingesters with copies of one spool number their windows alike. The second one's are taken for repeats, and an advisory says so. A
// window that is sent again is not one of another ingester.
func TestCopiedSpool(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	for seq := range uint64(4) {
		b.window(at(seq, "T1", false))
	}
	if d := b.window(at(3, "T1", false)); !d.Repeat || len(d.Advisories) > 0 {
		t.Errorf("a window that is sent again: %+v", d)
	}
	copied := at(3, "T2", false)
	copied.Start = copied.Start.Add(40 * time.Millisecond)
	if d := b.window(copied); !d.Repeat || len(d.Advisories) != 1 || !strings.Contains(d.Advisories[0].Text, "windows of epoch 0000000000000001, which came before, are taken for repeats: a recording is sent again, or a copy of its spool") {
		t.Errorf("a window of a copy: %+v", d)
	}
	b.restart()
	for seq := uint64(4); seq < 70; seq++ {
		if d := b.window(at(seq, "T1", false)); len(d.Advisories) > 0 && seq < 60 {
			t.Fatalf("%d: %v", seq, kinds(d.Advisories))
		}
	}
	if b.m.Notices.of(event.RivalAdvisory, "") != nil {
		t.Error("the advisory stays without a second ingester")
	}
}

package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/machinetest"
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
		if over := after >= rivalPatience; r.Late == over {
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

// A window of another epoch that is dated next year makes the machine's own windows late
// for a minute at most: then its epoch, which goes on, is the current one again.
func TestStrayWindowOfTheFuture(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	seq, incident := b.wear("T1", 0)
	stray := at(0, "T1", false)
	stray.Epoch, stray.Start = 2, stray.Start.AddDate(1, 0, 0)
	b.window(stray)
	for i := range 80 {
		b.restart()
		d := b.window(at(seq, "T1", true))
		if r := d.Result; len(d.Alerts) > 0 || r.Late != (i < 59) || r.Alarm != "raised" || r.Incident != incident {
			t.Fatalf("%d s after it: %v %s", i+1, states(d.Alerts), event.JSON(r))
		}
		seq++
	}
}

// What a spool brings back of an epoch that another one followed is late, also when the
// machine rests.
func TestEpochBroughtBack(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	b.wear("T1", 0)
	for i := range uint64(100) {
		w := at(200+i, "T1", false)
		w.Epoch, w.Seq = 2, i
		if r := b.judged(w); r.Late {
			t.Fatalf("%s", event.JSON(r))
		}
		if d := b.window(at(4+i, "T1", true)); !d.Result.Late || len(d.Alerts)+len(d.Advisories) > 0 {
			t.Fatalf("%v %v %s", states(d.Alerts), kinds(d.Advisories), event.JSON(d.Result))
		}
	}
	b.sent += 8 * time.Hour // the machine is off, and its old disk is read
	for i := range uint64(80) {
		if d := b.window(at(104+i, "T1", true)); !d.Result.Late || len(d.Alerts)+len(d.Advisories) > 0 {
			t.Fatalf("%v %v %s", states(d.Alerts), kinds(d.Advisories), event.JSON(d.Result))
		}
	}
}

package machine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
)

// The counted windows of a tool wait with it: one faulty window before it is taken out and one behind raise an alarm of two in
// three, also after a restart, however long the other tool was in. Windows of the other tool do not count.
func TestCountedWindowsWait(t *testing.T) {
	for _, between := range []int{1, 20} {
		b := newBench(t, machinetest.OneValue(t))
		seq := uint64(0)
		window := func(tool string, faulty bool) Decision {
			seq++
			return b.window(at(seq, tool, faulty))
		}
		for _, faulty := range []bool{false, false, false, true} {
			window("T1", faulty)
		}
		for range between {
			if d := window("T2", false); len(d.Alerts) > 0 {
				t.Fatalf("the other tool: %v", states(d.Alerts))
			}
			b.restart()
		}
		d := window("T1", true)
		wantStrings(t, "back", states(d.Alerts), []string{"raised"})
		if len(d.Alerts) == 1 && (d.Alerts[0].Faulty != 2 || d.Alerts[0].Of != 3) {
			t.Errorf("%s", event.JSON(d.Alerts[0]))
		}
	}
}

// A mask that a tool gets in the magazine keeps it from calling when it comes back, each kind of mask, and only this tool: its
// alarm is announced when the mask is taken off.
func TestMaskOfAToolInTheMagazine(t *testing.T) {
	for action, off := range map[event.Action]event.Action{event.Shelve: event.Unshelve, event.Suppress: event.Unsuppress, event.OutOfService: event.InService} {
		b := newBench(t, machinetest.OneValue(t), func(s *Settings) { s.Alarm.ReAlarm = time.Second })
		seq, incident := b.wear("T1", 0)
		window := func(tool string, faulty bool) Decision {
			b.restart()
			seq++
			return b.window(at(seq, tool, faulty))
		}
		send := func(action event.Action) Decision {
			c := event.Command{ID: string(action), Action: action, Note: "roughing", Until: noon.Add(time.Hour)}
			if c.Tool = "T1"; action == event.Shelve || action == event.Unshelve {
				c.Tool, c.Incident = "", incident
			}
			return b.command(c, noon.Add(b.sent))
		}
		window("T2", false)
		d := send(action)
		if len(d.Alerts) != 1 || d.Alerts[0].Tool != "T1" || !d.Alerts[0].Magazine {
			t.Fatalf("%s: %s", action, event.JSON(d.Alerts))
		}
		if d := window("T2", false); d.Result.Alarm != "normal" {
			t.Errorf("%s of T1 masks T2: %s", action, d.Result.Alarm)
		}
		d = window("T1", true)
		wantStrings(t, string(action)+", back", states(d.Alerts), nil)
		if word := d.Result.Alarm; word == "raised" || d.Result.Incident != incident {
			t.Errorf("%s: the alarm is %s", action, word)
		}
		if d := send(off); len(d.Alerts) != 2 || d.Alerts[1].State != event.Raised || d.Alerts[1].Incident != incident {
			t.Errorf("%s: %v", off, states(d.Alerts))
		}
	}
}

// A tool that comes back after more than 64 others is judged as a used one, also in another partition, under another name of the
// machine and after restarts, until it is declared new. Its reference is not the one of a new tool.
func TestForgottenToolIsUsed(t *testing.T) {
	advised := func(d Decision) string { return strings.Join(kinds(d.Advisories), ", ") }
	forgotten := func(t *testing.T, life string) (*bench, uint64) {
		b := newBench(t, machinetest.OneValue(t), func(s *Settings) { s.Limits.Unjudged = 1000 }) // no tool is in for long enough
		seq := uint64(0)
		b.windowOf(at(seq, "T", false), life)
		for i := range keptTools {
			b.restart()
			seq++
			if d := b.window(at(seq, fmt.Sprint("X", i), false)); len(d.Advisories)+len(d.Alerts)+len(d.Lines) > 0 {
				t.Fatalf("tool %d: %+v", i, d)
			}
		}
		b.restart()
		return b, seq + 1
	}
	for life, lives := range map[string][]string{"": {""}, "x": {"x", ""}} {
		for _, now := range lives {
			b, seq := forgotten(t, life)
			d := b.windowOf(at(seq, "T", true), now)
			if got := advised(d); got != "model_changed raised" || len(d.Alerts) > 0 || d.Result.Verdict != event.Learning {
				t.Fatalf("of life %q, back as %q: %q, %v, %s", life, now, got, states(d.Alerts), d.Result.Verdict)
			}
			if a := d.Advisories[0]; a.Subject != usedTool || a.Text != "drill tool T: REFERENCE OF A USED TOOL: the machine has more than 64 tools in turn, and the monitor had forgotten this one; "+
				"model "+b.model.ID()+" has not seen its first windows, and knows it from later ones on only: trust its verdicts less until the tool is changed" {
				t.Errorf("%s", event.JSON(a))
			}
			b.restart()
			if build := b.m.judges.startBuild(noon); build != nil {
				t.Error("a build looks for its past")
			}
			if d := b.windowOf(at(seq+1, "T", true), now); len(d.Advisories) > 0 {
				t.Errorf("its second window: %s", advised(d))
			}
			if got := advised(b.window(at(seq+2, "X63", false))); got != "model_changed cleared" {
				t.Errorf("another tool: %q", got)
			}
			b.restart()
			if got := advised(b.windowOf(at(seq+3, "T", false), now)); got != "model_changed raised" {
				t.Errorf("it comes back once more: %q", got)
			}
			d = b.command(event.Command{ID: "1", Action: event.NewTool, Tool: "T"}, noon.Add(b.sent))
			if got := advised(d); got != "model_changed cleared" {
				t.Errorf("declared new: %q", got)
			}
			b.restart()
			if d := b.windowOf(at(seq+4, "T", false), now); len(d.Advisories) > 0 || b.m.inSpindle().Used || b.m.inSpindle().PastGone {
				t.Errorf("after it was declared new: %q", advised(d))
			}
		}
	}

	b, seq := forgotten(t, "")
	d := b.command(event.Command{ID: "1", Action: event.NewTool, Tool: "T"}, noon.Add(b.sent))
	wantStrings(t, "declared new while it is forgotten", states(d.Alerts), []string{"tool_is_new"})
	b.restart()
	if d := b.window(at(seq, "T", false)); len(d.Advisories)+len(d.Alerts) > 0 {
		t.Errorf("declared new before: %s, %v", advised(d), states(d.Alerts))
	}

	b, seq = forgotten(t, "x")
	d = b.windowOf(at(seq, "T", false), "y")
	if wantStrings(t, "declared new by its ingester", states(d.Alerts), []string{"tool_is_new"}); len(d.Advisories) > 0 {
		t.Error(advised(d))
	}

	b, seq = forgotten(t, "")
	b.command(event.Command{ID: "1", Action: event.Retire}, noon.Add(b.sent))
	b.restart()
	if d := b.window(at(seq, "T", false)); len(d.Advisories) > 0 {
		t.Errorf("of a machine that was retired: %s", advised(d))
	}
}

// What is forgotten with an open alarm or with masks of its own is a line of the log.
func TestForgottenAlarmIsLogged(t *testing.T) {
	for what, c := range map[string]struct {
		worn bool
		mask event.Action
		want string
	}{
		"an alarm":              {true, "", "raised"},
		"a mask":                {false, event.Suppress, "suppressed"},
		"an alarm under a mask": {true, event.OutOfService, "out_of_service"},
		"nothing":               {},
	} {
		b := newBench(t, machinetest.OneValue(t))
		seq, incident := uint64(1), ""
		if c.worn {
			seq, incident = b.wear("T", 0)
		} else {
			b.window(at(0, "T", false))
		}
		if c.mask != "" {
			b.command(event.Command{ID: "1", Action: c.mask, Tool: "T", Note: "n"}, noon)
		}
		var lines []Line
		for i := range keptTools {
			lines = append(lines, b.window(at(seq, fmt.Sprint("X", i), false)).Lines...)
			seq++
		}
		want := []Line(nil)
		if c.want != "" {
			if incident != "" {
				incident += " "
			}
			want = []Line{{true, "tool_forgotten", "drill tool T: forgotten, and its alarm (" + incident + c.want + "): the machine has more than 64 tools in turn"}}
		}
		if !slices.Equal(lines, want) {
			t.Errorf("%s: %+v, want %+v", what, lines, want)
		}
	}
}

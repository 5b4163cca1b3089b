package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/signal"
)

// A worn tool that is taken out and comes back is judged at once, and its alarm stands
// again under the same name. An alarm that was acknowledged calls no one.
func TestToolBack(t *testing.T) {
	m := machinetest.OneValue(t)
	for word, acknowledge := range map[string]bool{"raised": false, "acknowledged": true} {
		b := newBench(t, m, func(s *Settings) { s.Alarm.ReAlarm = time.Second })
		seq, incident := b.wear("T1", 0)
		if acknowledge {
			b.command(event.Command{ID: "1", Action: event.Acknowledge, Incident: incident}, noon)
		}
		b.restart()
		out := b.window(at(seq, "T2", false))
		wantStrings(t, "out", states(out.Alerts), []string{"cleared tool_change"})
		if r := out.Result; r.Verdict != event.Learning || r.Alarm != "normal" || r.Incident != "" {
			t.Errorf("the other tool: %+v", r)
		}
		b.restart()
		in := b.window(at(seq+1, "T1", true))
		if r := in.Result; r.Verdict != event.Faulty || r.Alarm != word || r.Incident != incident {
			t.Errorf("%s: the worn tool is judged %s, alarm %s of %s", word, r.Verdict, r.Alarm, r.Incident)
		}
		if acknowledge {
			wantStrings(t, "in", states(in.Alerts), nil)
		} else {
			wantStrings(t, "in", states(in.Alerts), []string{"raised tool_back"})
			if a := in.Alerts[0]; a.Incident != incident || a.Alarm != word || a.Severity != "warning" || a.Tool != "T1" || !a.Since.Equal(at(2, "", false).Start) ||
				!strings.HasPrefix(a.Text, "drill tool T1: is back, FAULTY since 2026-11-02 02:00:02.") {
				t.Errorf("%s", event.JSON(a))
			}
		}
		if d := b.window(at(seq+2, "T1", true)); len(d.Alerts) > 0 {
			t.Errorf("%s: raised again: %v", word, states(d.Alerts))
		}
		b.restart()
		wantStrings(t, "out again", states(b.window(at(seq+3, "T2", false)).Alerts), map[bool][]string{false: {"cleared tool_change"}}[acknowledge])
	}
}

// A tool that comes back is silent for a while after its alarm has called: two tools in turn call each few minutes, and
// not with each part. What was silent calls in the end, also without a window.
func TestReAlarm(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	seq, incident := b.wear("T1", 0)
	called := b.sent - time.Second
	calls := 1
	for b.sent < 29*time.Minute {
		for _, tool := range []string{"T2", "T1"} {
			for range 30 {
				d := b.window(at(seq, tool, tool == "T1"))
				seq++
				for _, a := range d.Alerts {
					if a.State == event.Raised {
						calls++
						if since := a.At.Sub(noon) - called; a.Incident != incident || since < 10*time.Minute && b.sent > time.Minute {
							t.Fatalf("%s, %v after the call before", event.JSON(a), since)
						}
						called = b.sent - time.Second
					}
				}
				if seq%50 == 0 {
					b.restart()
				}
			}
		}
	}
	if calls != 3 {
		t.Errorf("%d calls in half an hour, want 3", calls)
	}
	b.window(at(seq, "T2", false))
	b.window(at(seq+1, "T1", true))
	b.restart()
	d := b.apply(Tick{Now: noon.Add(called + 10*time.Minute)})
	wantStrings(t, "a tick", states(d.Alerts), []string{"raised tool_back"})
	if a := d.Alerts[0]; !a.At.Equal(noon.Add(called+10*time.Minute)) || a.Incident != incident {
		t.Errorf("%s", event.JSON(a))
	}
}

// Five worn tools of forty, acknowledged, call no one in a shift.
func TestToolChangerIsQuiet(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	seq, commands := uint64(0), 0
	alerts := 0
	for round := range 12 {
		for tool := range 40 {
			for range 5 {
				d := b.window(at(seq, fmt.Sprint("T", tool), tool%8 == 0 && round > 0))
				seq++
				for _, a := range d.Alerts {
					switch {
					case round > 1:
						alerts++
					case a.State == event.Raised:
						commands++
						b.command(event.Command{ID: fmt.Sprint("c", commands), Action: event.Acknowledge, Incident: a.Incident}, noon.Add(b.sent))
					}
				}
			}
		}
		b.restart()
	}
	if commands != 5 || alerts > 0 {
		t.Errorf("%d alarms were acknowledged, and there were %d alerts after that", commands, alerts)
	}
}

// What is known of a tool waits with it: its reference, its wear and the time it has cut.
func TestToolWaits(t *testing.T) {
	b := newBench(t, machinetest.WithWear(t))
	for seq, v := range []float32{10, 12, 12} {
		w := at(uint64(seq), "T1", false)
		w.Samples[0][0] = v
		b.window(w)
	}
	b.window(at(3, "T2", false))
	b.restart()
	w := at(4, "T1", false)
	w.Samples[0][0] = 12
	r := b.judged(w)
	if tool := b.m.inSpindle(); r.Wear == nil || r.Wear.WearUM != 144 || tool.Cutting != 4*time.Second || len(tool.Trace) != 4 {
		t.Errorf("%s, %v cut, %d windows", event.JSON(r), tool.Cutting, len(tool.Trace))
	}
}

// The masks of the machine stay when the tool changes, a shelf waits with its tool, and an
// alarm that comes back under a mask is not published before the mask is taken off.
func TestToolBackUnderMask(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t), func(s *Settings) { s.Alarm.ReAlarm = time.Second })
	seq, incident := b.wear("T1", 0)
	b.window(at(seq, "T2", false))
	b.command(event.Command{ID: "1", Action: event.Suppress, Note: "set-up"}, noon.Add(b.sent))
	b.restart()
	d := b.window(at(seq+1, "T1", true))
	if len(d.Alerts) > 0 || d.Result.Alarm != "suppressed" || d.Result.Incident != incident {
		t.Fatalf("%v, %s", states(d.Alerts), event.JSON(d.Result))
	}
	b.restart()
	d = b.command(event.Command{ID: "2", Action: event.Unsuppress}, noon.Add(b.sent))
	wantStrings(t, "unmasked", states(d.Alerts), []string{"unsuppressed", "raised"})
	if text := d.Alerts[1].Text; !strings.HasPrefix(text, "drill tool T1: FAULTY since ") {
		t.Error(text)
	}
	b.command(event.Command{ID: "3", Action: event.Shelve, Note: "last part", Until: noon.Add(time.Hour)}, noon.Add(b.sent))
	d = b.window(at(seq+2, "T2", false))
	wantStrings(t, "out", states(d.Alerts), []string{"cleared tool_change"})
	if d.Result.Alarm != "normal" {
		t.Errorf("the shelf hides the next tool: %s", d.Result.Alarm)
	}
	b.restart()
	d = b.window(at(seq+3, "T1", true))
	if len(d.Alerts) > 0 || d.Result.Alarm != "shelved" {
		t.Errorf("back: %v, alarm %s", states(d.Alerts), d.Result.Alarm)
	}
	b.window(at(seq+4, "T2", false))
	d = b.apply(Tick{Now: noon.Add(2 * time.Hour)})
	wantStrings(t, "in the magazine", states(d.Alerts), []string{"unshelved expired"})
	if a := d.Alerts[0]; !a.Magazine || a.Tool != "T1" || a.Alarm != "raised" || a.Severity != "info" || !a.At.Equal(noon.Add(time.Hour)) {
		t.Errorf("%s", event.JSON(a))
	}
	b.sent = 3 * time.Hour
	wantStrings(t, "back", states(b.window(at(seq+5, "T1", true)).Alerts), []string{"raised tool_back"})
}

// A command may mask one tool only, and name the alarm of a tool in the magazine.
func TestCommandsOfOneTool(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t), func(s *Settings) { s.Alarm.ReAlarm = time.Second })
	seq, first := b.wear("T1", 0)
	say := func(c event.Command, want ...string) Decision {
		t.Helper()
		c.ID = fmt.Sprint("c", b.sent)
		b.sent += time.Second
		d := b.command(c, noon.Add(b.sent))
		wantStrings(t, string(c.Action), states(d.Alerts), want)
		b.restart()
		return d
	}
	say(event.Command{Action: event.Suppress, Tool: "T1", Note: "roughing"}, "suppressed")
	say(event.Command{Action: event.Suppress, Tool: "T9", Note: "roughing"}, "refused")
	seq, second := b.wear("T2", seq)
	if r := b.judged(at(seq, "T2", true)); r.Alarm != "raised" {
		t.Errorf("the mask of T1 hides T2: %s", r.Alarm)
	}
	d := say(event.Command{Action: event.Acknowledge, Incident: first}, "acknowledged")
	if a := d.Alerts[0]; !a.Magazine || a.Tool != "T1" || a.Alarm != "suppressed" || b.m.AlarmWord() != "raised" || a.Incident != first {
		t.Errorf("%s", event.JSON(a))
	}
	d = say(event.Command{Action: event.Acknowledge, Incident: second}, "acknowledged")
	if a := d.Alerts[0]; a.Magazine || a.Tool != "T2" || a.Alarm != "acknowledged" {
		t.Errorf("%s", event.JSON(a))
	}
	d = say(event.Command{Action: event.Unsuppress}, "refused") // the machine is not
	if text := d.Alerts[0].Text; !strings.HasSuffix(text, "not masked in this way; the alarm of tool T1 is: name the tool, --tool T1.") {
		t.Error(text)
	}
	say(event.Command{Action: event.Unsuppress, Tool: "T1"}, "unsuppressed")
	if d := b.window(at(seq+1, "T1", true)); d.Result.Alarm != "acknowledged" || d.Result.Incident != first {
		t.Errorf("%s", event.JSON(d.Result))
	}
}

// A machine remembers its last tools. One more makes it forget the tool that was in the
// spindle the longest time ago, and deletes its record, also after restarts.
func TestToolsAreBounded(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	name := func(i int) string { return fmt.Sprintf("T%03d", 500-i) } // later ones come first by name
	key := func(i int) event.StateKey {
		return event.StateKey{Group: group, Machine: drill, Part: event.ToolState, Tool: name(i)}
	}
	seq := uint64(0)
	put := func(i int) *event.Result {
		t.Helper()
		seq++
		return b.judged(at(seq, name(i), false))
	}
	for i := range keptTools {
		put(i)
		put(i)
	}
	if _, kept := b.records[key(0)]; len(b.m.Tools) != keptTools || !kept {
		t.Fatalf("%d tools, first kept: %v", len(b.m.Tools), kept)
	}
	if r := put(1); r.Verdict != event.Healthy {
		t.Errorf("tool of before: %s", r.Verdict)
	}
	const last = 2*keptTools + 10
	for i := keptTools; i <= last; i++ {
		b.restart()
		put(i)
		put(i)
		if _, kept := b.records[key(0)]; i == keptTools && (kept || b.m.indexTool(name(1)) < 0) {
			t.Error("it does not forget the oldest")
		}
		if len(b.m.Tools) != keptTools || len(b.records) != 2*keptTools+2 {
			t.Fatalf("%d tools, %d records", len(b.m.Tools), len(b.records))
		}
	}
	for i, tool := range b.m.Tools {
		if want := name(last - keptTools + 1 + i); tool.Name != want {
			t.Fatalf("tool %d is %s, want %s", i, tool.Name, want)
		}
	}
}

// An ingester names another life of a tool that was declared new to it.
func TestLife(t *testing.T) {
	m := machinetest.OneValue(t)
	worn := func(life string) (*bench, uint64) {
		b := newBench(t, m)
		for seq := range uint64(4) {
			b.windowOf(at(seq, "T1", seq > 1), life)
		}
		b.restart()
		return b, 4
	}
	b, seq := worn("a")
	if d := b.windowOf(at(seq, "T1", true), ""); len(d.Alerts) > 0 || d.Result.Verdict != event.Faulty {
		t.Errorf("a window that names no life: %v, %s", states(d.Alerts), d.Result.Verdict)
	}
	d := b.windowOf(at(seq+1, "T1", false), "b")
	wantStrings(t, "in the spindle", states(d.Alerts), []string{"cleared new_tool", "tool_is_new"})
	if text := d.Alerts[0].Text; text != "drill tool T1: alarm of 02:00:02 cleared, declared new by its ingester." || d.Alerts[0].By != "" {
		t.Errorf("%s", event.JSON(d.Alerts[0]))
	}
	if a := d.Alerts[1]; a.Tool != "T1" || a.Alarm != "normal" || a.Incident != "" || a.By != "" || a.Magazine || a.Text != "drill tool T1: declared new by its ingester; its reference is learnt from its next windows." {
		t.Errorf("%s", event.JSON(a))
	}
	if d.Result.Verdict != event.Learning || d.Result.Alarm != "normal" || len(b.m.Tools) != 1 {
		t.Errorf("%s, alarm %s, %d tools", d.Result.Verdict, d.Result.Alarm, len(b.m.Tools))
	}
	b.restart()
	if r := b.windowOf(at(seq+2, "T1", false), "b").Result; r.ReferenceLen != 2 {
		t.Errorf("%+v", r)
	}

	b, seq = worn("a")
	b.windowOf(at(seq, "T2", false), "a")
	d = b.windowOf(at(seq+1, "T1", false), "b")
	if d.Result.Verdict != event.Learning || len(b.m.Tools) != 2 {
		t.Errorf("from the magazine: %v, %s, %d tools", states(d.Alerts), d.Result.Verdict, len(b.m.Tools))
	}
	wantStrings(t, "from the magazine", states(d.Alerts), []string{"tool_is_new"})
	for i, life := range []string{"b", "", "b"} {
		if d := b.windowOf(at(seq+2+uint64(i), "T1", false), life); len(d.Alerts) > 0 {
			t.Errorf("life %q again: %v", life, states(d.Alerts))
		}
	}
	if d := b.windowOf(at(seq+5, "T3", false), "c"); len(d.Alerts) > 0 {
		t.Errorf("the first life of a tool that is not known: %v", states(d.Alerts))
	}
}

// A tool that its ingester declares new has no masks any more, and an alert says so.
func TestLifeEndsMasks(t *testing.T) {
	for _, in := range []string{"spindle", "magazine"} {
		b := newBench(t, machinetest.OneValue(t))
		b.window(at(0, "T1", false))
		b.command(event.Command{ID: "1", Action: event.Shelve, Note: "n", Until: noon.Add(time.Hour)}, noon)
		b.command(event.Command{ID: "2", Action: event.Suppress, Tool: "T1", Note: "n"}, noon)
		want := []string{"unshelved new_tool", "tool_is_new"}
		if in == "magazine" {
			b.window(at(1, "T2", false))
			want = want[1:]
		}
		b.restart()
		d := b.windowOf(at(2, "T1", false), "b")
		if wantStrings(t, in, states(d.Alerts), want); b.m.inSpindle().Alarm.Masks.On() {
			t.Errorf("%s: it has masks", in)
		}
		if text := d.Alerts[0].Text; in == "spindle" && text != "drill tool T1: the shelf of its alarm is over, its tool is declared new by its ingester." {
			t.Error(text)
		}
	}
}

// A new spool and a new life of the tool in the spindle come together. The tool's alarm
// ends when the new epoch is the current one, and not by a window of before.
func TestLifeWithEpoch(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	seq, incident := b.wear("T1", 0)
	for i := range uint64(3) {
		w := at(i, "T1", false)
		w.Epoch, w.Start = 2, at(seq+i, "", false).Start
		d := b.windowOf(w, "b")
		b.restart()
		if i < 2 {
			if r := d.Result; len(d.Alerts) > 0 || r.Alarm != "raised" || r.Incident != incident || b.m.inSpindle().Life != "" {
				t.Fatalf("window %d: %v, %s", i, states(d.Alerts), event.JSON(r))
			}
			continue
		}
		wantStrings(t, "third window", states(d.Alerts), []string{"cleared new_tool", "tool_is_new"})
		if d.Result.Verdict != event.Learning || b.m.inSpindle().Life != "b" || len(b.m.Tools) != 1 {
			t.Errorf("%s, life %q, %d tools", d.Result.Verdict, b.m.inSpindle().Life, len(b.m.Tools))
		}
	}
}

// A person declares a tool new: in the spindle its alarm is cleared, in the magazine it is
// forgotten. A tool that is not known is refused, since it is new anyway.
func TestNewToolCommand(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	seq, incident := b.wear("T1", 0)
	d := b.command(event.Command{ID: "1", Action: event.NewTool, Tool: "T1", Note: "reground"}, noon)
	wantStrings(t, "alerts", states(d.Alerts), []string{"cleared new_tool", "tool_is_new"})
	if a := d.Alerts[0]; a.Incident != incident || a.Text != "drill tool T1: alarm of 02:00:02 cleared, declared new by kim: reground." {
		t.Errorf("%s", event.JSON(a))
	}
	if a := d.Alerts[1]; a.Incident != "" || a.Tool != "T1" || a.Alarm != "normal" || a.Text != "drill tool T1: declared new by kim; its reference is learnt from its next windows." {
		t.Errorf("%s", event.JSON(a))
	}
	b.restart()
	if r := b.judged(at(seq, "T1", true)); r.Verdict != event.Learning || r.Alarm != "normal" || r.ReferenceLen != 1 {
		t.Errorf("%+v", r)
	}

	b = newBench(t, machinetest.OneValue(t))
	seq, _ = b.wear("T1", 0)
	b.window(at(seq, "T2", false))
	d = b.command(event.Command{ID: "1", Action: event.NewTool, Tool: "T1"}, noon)
	wantStrings(t, "alerts", states(d.Alerts), []string{"tool_is_new"})
	if _, there := b.records[event.StateKey{Group: group, Machine: drill, Part: event.ToolState, Tool: "T1"}]; there {
		t.Error("its record is still there")
	}
	b.restart()
	d = b.window(at(seq+1, "T1", true))
	if len(d.Alerts) > 0 || d.Result.Verdict != event.Learning {
		t.Errorf("%v, %s", states(d.Alerts), d.Result.Verdict)
	}
	d = b.command(event.Command{ID: "2", Action: event.NewTool, Tool: "T9"}, noon)
	wantStrings(t, "not known", states(d.Alerts), []string{"refused"})
}

// A tool that is declared new ends the advisories of the one before.
func TestNewToolEndsAdvisories(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	b.wear("T1", 0)
	b.restartUnder(otherFeatures(t))
	wantStrings(t, "model", kinds(b.window(at(4, "T1", true)).Advisories), []string{"model_changed raised"})
	d := b.command(event.Command{ID: "1", Action: event.NewTool, Tool: "T1"}, noon)
	wantStrings(t, "declared new", kinds(d.Advisories), []string{"model_changed cleared"})
	if text := d.Advisories[0].Text; !strings.HasSuffix(text, "declared new by kim") {
		t.Error(text)
	}
	if b.m.judges.startBuild(noon) != nil {
		t.Error("a model is to see the past of the old tool")
	}
}

// A machine that is retired has no alarm, advisory or record any more, but for the ids of
// its commands. The next window makes it a machine of which nothing else is known.
func TestRetire(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t), withEvidence, func(s *Settings) { s.Alarm.ReAlarm = time.Second })
	seq, incident := b.wear("T1", 0)
	b.command(event.Command{ID: "1", Action: event.OutOfService, Note: "moved"}, noon)
	b.command(event.Command{ID: "2", Action: event.InService}, noon)
	w := at(seq, "T1", true)
	w.Quality[0] = signal.ClockStep
	b.window(w)
	b.window(at(seq+1, "T2", false))
	b.window(at(seq+2, "T1", true))
	b.restart()
	d := b.command(event.Command{ID: "3", Action: event.Retire, Note: "sold"}, noon)
	wantStrings(t, "alerts", states(d.Alerts), []string{"cleared retired", "retired"})
	wantStrings(t, "advisories", kinds(d.Advisories), []string{"sensor cleared"})
	if a := d.Alerts[0]; a.Incident != incident || a.Text != "drill tool T1: alarm of 02:00:02 cleared, machine retired by kim: sold." {
		t.Errorf("%s", event.JSON(a))
	}
	if ids := `{"commands":{"ids":[{"id":"1","at":"2026-11-02T12:00:00Z"},{"id":"2","at":"2026-11-02T12:00:00Z"},{"id":"3","at":"2026-11-02T12:00:00Z"}]},"retired":true}`; len(b.records) != 1 || string(b.stored()[0].Value) != ids {
		t.Errorf("records are left: %s", b.stored()[0].Value)
	}
	for _, r := range b.written {
		if r.Value != nil && r.Key.Part != event.SlowState {
			t.Errorf("%q is written: %s", r.Key, r.Value)
		}
	}
	b.restart()
	d = b.window(at(seq+3, "T1", true))
	if len(d.Alerts)+len(d.Advisories) > 0 || d.Result == nil || d.Result.Verdict != event.Learning || d.Result.Alarm != "normal" || d.Missing != 0 {
		t.Errorf("after it: %+v", d)
	}
	b.restart()
	if d := b.command(event.Command{ID: "3", Action: event.Retire, Note: "sold"}, noon); !strings.Contains(d.Refused, "came before") {
		t.Errorf("a retire that comes again is carried out again: %+v", d)
	}
	if b.m.inSpindle() == nil || b.m.inSpindle().Judgings[0].Reference.Windows != 1 || len(b.m.Tools) != 1 {
		t.Error("the machine that began again is not remembered")
	}
}

// A machine that is retired under a mask begins again without it.
func TestRetireUnmasks(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	b.wear("T1", 0)
	b.command(event.Command{ID: "1", Action: event.OutOfService, Note: "moved"}, noon)
	b.command(event.Command{ID: "2", Action: event.Retire}, noon)
	if r := b.judged(at(9, "T1", false)); r.Alarm != "normal" {
		t.Errorf("alarm %s", r.Alarm)
	}
}

// A tool whose condition ends with the window with which it comes back does not call: only the alarm of the tool that is taken
// out is cleared.
func TestConditionEndsWhenTheToolComesBack(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t), func(s *Settings) { s.Alarm.Latch, s.Alarm.ReAlarm = false, time.Second })
	seq, _ := b.wear("T2", 0)
	for range 2 { // one window before it clears
		b.window(at(seq, "T2", false))
		seq++
	}
	seq, second := b.wear("T1", seq)
	d := b.window(at(seq, "T2", false))
	wantStrings(t, "alerts", states(d.Alerts), []string{"cleared tool_change"})
	if a := d.Alerts[0]; a.Incident != second || d.Result.Alarm != "normal" || d.Result.Incident != "" {
		t.Errorf("%s, alarm %s", event.JSON(a), d.Result.Alarm)
	}
}

// A result names the life of the tool that is known under its tool's name. A window of another one,
// as one that comes late, names none, and so does one of a tool that was never declared new.
func TestResultsNameTheLife(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	for i, w := range []struct {
		seq        uint64
		life, want string
	}{{0, "", ""}, {1, "a", "a"}, {2, "", "a"}, {6, "b", "b"}, {3, "a", ""}, {4, "", "b"}, {5, "b", "b"}, {7, "b", "b"}} {
		r := b.windowOf(at(w.seq, "T1", false), w.life).Result
		if r.ToolLife != w.want || r.Late != (i > 3 && i < 7) {
			t.Errorf("window %d of life %q: the result names %q, late %v; want %q", w.seq, w.life, r.ToolLife, r.Late, w.want)
		}
		b.restart()
	}
	b.command(event.Command{ID: "1", Action: event.NewTool, Tool: "T1"}, noon)
	if r := b.windowOf(at(8, "T1", false), "b").Result; r.ToolLife != "b" || r.ReferenceLen != 1 {
		t.Errorf("after a command: %s", event.JSON(r))
	}
	first := at(0, "T1", false) // of a new spool, which takes over with its third window
	first.Epoch, first.Start = 2, at(9, "", false).Start
	if r := b.windowOf(first, "c").Result; r.ToolLife != "" {
		t.Errorf("before its epoch has taken over: %s", event.JSON(r))
	}
}

func TestToolsWithNearlyOneName(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	var lines []string
	for i, tool := range []string{"5", "6", "05", "5", "05", "t5"} {
		for _, l := range b.window(at(uint64(i), tool, false)).Lines {
			if l.Event == "tools_alike" {
				lines = append(lines, l.Text[:strings.Index(l.Text, ":")])
			}
		}
	}
	wantStrings(t, "lines", lines, []string{`drill tools "5" and "05"`})
}

// A control that names no tool for a moment changes no tool: windows between windows of a tool count for none. After a minute they are of a tool without
// a name.
func TestWindowsBetweenTools(t *testing.T) {
	type step struct {
		seconds int // since the window before
		tool    string
		faulty  bool
		want    string
	}
	short := []step{
		{1, "5", false, "learning normal"}, {1, "5", false, "learning normal"}, {1, "5", true, "faulty normal"}, {1, "5", true, "faulty raised: raised"},
		{1, "", true, "unknown no_tool raised"}, {1, "5", true, "faulty raised"},
		{1, "", true, "unknown no_tool raised"}, {58, "", false, "unknown no_tool raised"}, {1, "5", false, "healthy raised"},
	}
	for name, steps := range map[string][]step{
		"for a moment": short,
		"for a minute": append(short[:6:6],
			step{1, "", true, "unknown no_tool raised"}, step{58, "", true, "unknown no_tool raised"}, step{1, "", false, "learning normal: cleared tool_change"},
			step{1, "", false, "learning normal"}, step{1, "", true, "faulty normal"}, step{1, "5", true, "faulty raised: raised tool_back"}),
		"between two tools": append(short[:6:6],
			step{9, "", true, "unknown no_tool raised"}, step{1, "6", false, "learning normal: cleared tool_change"}, step{1, "", true, "unknown no_tool normal"},
			step{1, "6", true, "learning normal"}),
		"after a pause":                 append(short[:6:6], step{3600, "", true, "unknown no_tool raised"}, step{1, "", true, "unknown no_tool raised"}, step{1, "5", true, "faulty raised"}),
		"before the clock was set back": append(short[:6:6], step{1, "", true, "unknown no_tool raised"}, step{-3600, "", false, "learning normal: cleared tool_change"}),
		"from the beginning":            {{1, "", false, "learning normal"}, {1, "", false, "learning normal"}, {1, "", true, "faulty normal"}, {1, "", true, "faulty raised: raised"}},
	} {
		for _, newEpoch := range []bool{false, name == "for a moment"} {
			b, start := newBench(t, machinetest.OneValue(t), func(s *Settings) { s.Alarm.ReAlarm = time.Second }), noon
			for i, s := range steps {
				start = start.Add(time.Duration(s.seconds) * time.Second)
				w := at(uint64(i), s.tool, s.faulty)
				if w.Start = start; newEpoch && s.tool == "" && i > 3 {
					w.Epoch = 2
				}
				d := b.window(w)
				got := fmt.Sprint(d.Result.Verdict, " ", d.Result.Alarm)
				if d.Result.Unknown != "" {
					got = fmt.Sprint(d.Result.Verdict, " ", d.Result.Unknown, " ", d.Result.Alarm)
				}
				if len(d.Alerts) > 0 {
					got += ": " + strings.Join(states(d.Alerts), ", ")
				}
				if got != s.want {
					t.Errorf("%s, in a new epoch %v, window %d of tool %q: %s, want %s", name, newEpoch, i, s.tool, got, s.want)
				}
				b.restart()
			}
		}
	}
}

// A tool that a command declared new has the command's id for its life, if windows name none: in the spindle, when it is put in, after
// it was forgotten for room, and after restarts. Late windows may be of the one before.
func TestCommandsNameTheLife(t *testing.T) {
	for name, tc := range map[string]struct {
		steps []string // TOOL, TOOL#LIFE, TOOL- for a late window, !TOOL for a command
		want  string   // the lives that results name
	}{
		"in the spindle":            {[]string{"T1", "!T1", "T1", "T1"}, " 1 1"},
		"twice":                     {[]string{"T1", "!T1", "T1", "!T1", "T1"}, " 1 3"},
		"twice before a window":     {[]string{"T1", "!T1", "!T1", "T1"}, " 2"},
		"in the magazine":           {[]string{"T1", "T2", "!T1", "T2", "T1", "T2", "T1"}, "   2  2"},
		"a late window":             {[]string{"T1", "T1", "!T1", "T1", "T1-", "T1"}, "  2  2"},
		"late, before it is put in": {[]string{"T1", "T1", "T2", "!T1", "T1-", "T1"}, "    3"},
		"its ingester names lives":  {[]string{"T1#a", "!T1", "T1#a", "T1"}, "a a a"},
		"its ingester begins to":    {[]string{"T1", "!T1", "T1#a", "T1"}, " a a"},
		"another tool":              {[]string{"T1", "T2", "!T1", "T3", "T1"}, "   2"},
		"forgotten for room":        {[]string{"T1", "T2", "!T1", "T1", "T3", "T4", "T5", "T1"}, "  2    2"},
		"new again when forgotten":  {[]string{"T1", "!T1", "T1", "T3", "T4", "T5", "!T1", "T1"}, " 1    6"},
	} {
		b := newBench(t, machinetest.OneValue(t), func(s *Settings) { s.Limits.Tools = 3 })
		var got []string
		seq := uint64(5)
		for i, step := range tc.steps {
			if tool, is := strings.CutPrefix(step, "!"); is {
				d := b.command(event.Command{ID: fmt.Sprint(i), Action: event.NewTool, Tool: tool}, noon)
				if a := d.Alerts[len(d.Alerts)-1]; a.State != event.ToolIsNew || a.ToolLife != fmt.Sprint(i) {
					t.Errorf("%s: %s", name, event.JSON(a))
				}
				b.restart()
				continue
			}
			tool, life, _ := strings.Cut(step, "#")
			tool, late := strings.CutSuffix(tool, "-")
			w := at(seq, tool, false)
			if late {
				w = at(4, tool, false)
			} else {
				seq++
			}
			got = append(got, b.windowOf(w, life).Result.ToolLife)
			b.restart()
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%s: %q, want %q", name, s, tc.want)
		}
	}
}

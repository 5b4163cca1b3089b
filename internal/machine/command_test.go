package machine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
)

// raisedBench returns a machine with an open alarm.
func raisedBench(t rapid.TB) *bench {
	t.Helper()
	b := newBench(t, machinetest.OneValue(t))
	b.wear("T1", 0)
	return b
}

// What each command does to an alarm, and why it is refused.
func TestCommand(t *testing.T) {
	type change = func(*event.Command)
	for name, tc := range map[string]struct {
		before []event.Action
		action event.Action
		change change
		want   string // states of alerts, and the alarm's
		text   string // in the last of them
	}{
		"acknowledge":            {nil, event.Acknowledge, nil, "acknowledged; acknowledged", "drill tool T1: alarm of 02:00:02 acknowledged by kim: because."},
		"acknowledge twice":      {[]event.Action{event.Acknowledge}, event.Acknowledge, nil, "refused; acknowledged", "acknowledged already"},
		"acknowledge another":    {nil, event.Acknowledge, func(c *event.Command) { c.Incident = "A-AAAAAAAA" }, "refused; raised", "refused: alarm A-AAAAAAAA is closed"},
		"too late":               {nil, event.Acknowledge, func(c *event.Command) { c.Issued = noon.Add(-commandAge - time.Second) }, "refused; raised", "arrived 5m1s after it was issued"},
		"just in time":           {nil, event.Acknowledge, func(c *event.Command) { c.Issued = noon.Add(-commandAge) }, "acknowledged; acknowledged", ""},
		"from the future":        {nil, event.Acknowledge, func(c *event.Command) { c.Issued = noon.Add(2 * time.Minute) }, "refused; raised", "set the sender's clock"},
		"a clock that is ahead":  {nil, event.Acknowledge, func(c *event.Command) { c.Issued = noon.Add(time.Minute) }, "acknowledged; acknowledged", ""},
		"shelve":                 {nil, event.Shelve, nil, "shelved; shelved", "alarm shelved until 2026-11-02 14:00:00 UTC by kim: because."},
		"shelve for too long":    {nil, event.Shelve, func(c *event.Command) { c.Until = noon.Add(9 * time.Hour) }, "refused; raised", "at most 8h0m0s"},
		"shelve until yesterday": {nil, event.Shelve, func(c *event.Command) { c.Until = noon.Add(-time.Hour) }, "refused; raised", "must be later than now"},
		"unshelve":               {[]event.Action{event.Shelve}, event.Unshelve, nil, "unshelved; raised", "alarm unshelved by kim"},
		"unshelve nothing":       {nil, event.Unshelve, nil, "refused; raised", "drill: unshelve by kim: refused: the alarm is not masked in this way."},
		"suppress":               {nil, event.Suppress, nil, "suppressed; suppressed", "drill with all its tools: suppressed by kim: because."},
		"unsuppress":             {[]event.Action{event.Suppress}, event.Unsuppress, nil, "unsuppressed; raised", "drill with all its tools: unsuppressed by kim: because."},
		"out of service":         {nil, event.OutOfService, nil, "out_of_service; out_of_service", "drill with all its tools: out of service by kim: because."},
		"in service":             {[]event.Action{event.OutOfService}, event.InService, nil, "in_service; raised", "drill with all its tools: in service again by kim: because."},
	} {
		t.Run(name, func(t *testing.T) {
			b := raisedBench(t)
			var got []event.Alert
			for i, action := range append(slices.Clone(tc.before), tc.action) {
				c := event.Command{ID: fmt.Sprint("c", i), Action: action, Incident: b.incident(), Note: "because", Issued: noon, Until: noon.Add(2 * time.Hour)}
				if i == len(tc.before) && tc.change != nil {
					tc.change(&c)
				}
				got = b.command(c, noon).Alerts
			}
			var states []string
			for _, a := range got {
				states = append(states, string(a.State))
				if a.By != "kim" || a.Command != fmt.Sprint("c", len(tc.before)) || !a.At.Equal(noon) || a.Incident != b.incident() || a.Seq != 3 {
					t.Errorf("%+v", a)
				}
				calls := map[event.AlertState]bool{event.Raised: true, event.Reactivated: true, event.Unshelved: a.Alarm == "raised", event.Unsuppressed: a.Alarm == "raised", event.BackInService: a.Alarm == "raised"}
				if want := map[bool]string{true: "warning", false: "info"}[calls[a.State]]; a.Severity != want {
					t.Errorf("%s: severity %s, want %s", a.State, a.Severity, want)
				}
			}
			if s := strings.Join(states, " ") + "; " + b.m.AlarmWord(); s != tc.want {
				t.Errorf("%q, want %q", s, tc.want)
			}
			if text := got[len(got)-1].Text; !strings.Contains(text, tc.text) {
				t.Errorf("%q lacks %q", text, tc.text)
			}
		})
	}
}

// An alarm that was raised on the shelf is published when the shelf is over, with the
// name that it has had since.
func TestShelfEnds(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	b.window(at(0, "T1", false))
	b.command(event.Command{ID: "c", Action: event.Shelve, Note: "test piece", Until: noon.Add(time.Hour)}, noon)
	for seq, faulty := range []bool{false, true, true} {
		if d := b.window(at(uint64(seq+1), "T1", faulty)); len(d.Alerts) > 0 || d.Result.Alarm != "shelved" {
			t.Errorf("window %d: alarm %s, alerts %v", seq+1, d.Result.Alarm, d.Alerts)
		}
	}
	incident := b.incident()
	b.restart()
	if d := b.apply(Tick{Now: noon.Add(time.Hour - 1)}); !d.Empty() {
		t.Errorf("before its time: %+v", d)
	}
	alerts := b.apply(Tick{Now: noon.Add(time.Hour + time.Minute)}).Alerts
	if len(alerts) != 2 || alerts[0].State != "unshelved" || alerts[0].Reason != "expired" || alerts[1].State != event.Raised || !alerts[1].At.Equal(noon.Add(time.Hour)) ||
		incident == "" || alerts[1].Incident != incident || !strings.HasPrefix(alerts[0].ID, fmt.Sprintf("%s/%s/shelf/%d", drill, group, noon.UnixMilli())) {
		t.Fatalf("%s", event.JSON(alerts))
	}
	for _, a := range alerts {
		if a.Severity != "warning" {
			t.Errorf("%s", event.JSON(a))
		}
	}
	if want := "drill tool T1: FAULTY since 02:00:02, not announced while the alarm was masked."; !strings.HasPrefix(alerts[1].Text, want) {
		t.Errorf("%q, want %q…", alerts[1].Text, want)
	}
	if d := b.apply(Tick{Now: noon.Add(2 * time.Hour)}); !d.Empty() {
		t.Errorf("it ends twice: %+v", d)
	}
}

// People mark alarms as false, and withdraw that, while the alarm is open, when it is
// closed, while another one is open, and after a restart. The alarm stays as it was.
func TestMark(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	seq := uint64(0)
	worn := func(tool string) (incident string) {
		seq, incident = b.wear(tool, seq)
		return incident
	}
	commands := 0
	say := func(action event.Action, incident string, wrong bool, want, text string) {
		t.Helper()
		commands++
		before := b.m.alarms.inSpindle().alarm.State
		got := b.command(event.Command{ID: fmt.Sprint("c", commands), Action: action, Incident: incident, FalseAlarm: wrong, Note: "chip"}, noon).Alerts
		if len(got) != 1 || string(got[0].State) != want || !strings.Contains(got[0].Text, text) {
			t.Fatalf("%s %s: %s, want %s with %q", action, incident, event.JSON(got), want, text)
		}
		if strings.HasSuffix(want, "marked_false") && (got[0].Incident != incident || got[0].Severity != "info" || got[0].Alarm != before.Word(b.m.Masks) || b.m.alarms.inSpindle().alarm.State != before) {
			t.Errorf("%s", event.JSON(got[0]))
		}
	}
	first := worn("T1")
	say(event.UnmarkFalse, first, false, "refused", "drill: unmark_false by kim: refused: it is not marked as false.")
	say(event.MarkFalse, first, false, "marked_false", "drill tool T1: alarm of 2026-11-02 02:00:02 marked as false by kim: chip.")
	say(event.MarkFalse, first, false, "refused", "it is marked as false already")
	second := worn("T2")
	if first == second {
		t.Fatal("one name for two alarms")
	}
	b.restart()
	say(event.MarkFalse, first, false, "refused", "already")
	say(event.UnmarkFalse, first, false, "unmarked_false", "drill tool T1: alarm of 2026-11-02 02:00:02 no longer marked as false by kim: chip.")
	say(event.Acknowledge, second, true, "acknowledged", "as false")
	say(event.MarkFalse, second, false, "refused", "already")
	say(event.UnmarkFalse, second, false, "unmarked_false", "tool T2")
	say(event.MarkFalse, "A-AAAAAAAA", false, "refused", "A-AAAAAAAA is none of the last 50 alarms")

	for tool := range keptRaised {
		worn(fmt.Sprint("N", tool))
	}
	b.restart()
	if n := len(b.m.Raised); n != keptRaised {
		t.Errorf("%d alarms are remembered", n)
	}
	say(event.UnmarkFalse, second, false, "refused", "none of the last 50")
}

// A command that comes twice is carried out once, also after a restart, and what is not a
// command of the machine is refused with a reason for the dead letters.
func TestCommandRefused(t *testing.T) {
	b := raisedBench(t)
	ack := event.JSON(event.Command{ID: "ack", Machine: drill, Action: event.Acknowledge, Incident: b.incident(), By: "kim", Issued: noon})
	if d := b.apply(Command{Key: drill, Value: ack, At: noon}); len(d.Alerts) != 1 || d.Refused != "" {
		t.Fatalf("%+v", d)
	}
	b.restart()
	for value, want := range map[string]string{
		string(ack): "command ack: a command of this id came before",
		`{"id":`:    "unexpected end of JSON",
		strings.ReplaceAll(string(ack), drill, "acme/line1/other"): "it is for machine",
		strings.ReplaceAll(string(ack), "acknowledge", "explode"):  `action "explode"`,
		strings.Repeat(" ", event.MaxCommand+1):                    "command of 16385 bytes: at most 16384",
	} {
		d := b.apply(Command{Key: drill, Value: []byte(value), At: noon})
		if !strings.Contains(d.Refused, want) || len(d.Alerts) > 0 {
			t.Errorf("%.40s: %+v, want %q", value, d, want)
		}
	}
}

// A command that comes an hour ahead by Kafka's clock does not make those before it new
// again.
func TestCommandsOutlastAWrongClock(t *testing.T) {
	var h commands
	for i := range keptCommands - 1 {
		h.note(fmt.Sprint(i), noon)
	}
	h.note("of a wrong clock", noon.Add(time.Hour))
	if !h.has("0") {
		t.Error("the first command is forgotten")
	}
}

// A shelf as long as may be is not too long by the clock of a sender that is ahead: it ends when it must.
func TestLongestShelfOfAClockAhead(t *testing.T) {
	b := raisedBench(t)
	c := event.Command{ID: "s", Action: event.Shelve, Note: "n", Issued: noon.Add(time.Second), Until: noon.Add(8*time.Hour + time.Second)}
	end := noon.Add(8 * time.Hour)
	if d := b.command(c, noon); len(d.Alerts) != 1 || d.Alerts[0].State != "shelved" || !b.m.inSpindle().Alarm.Shelf.Until.Equal(end) {
		t.Errorf("%+v", d.Alerts)
	} else if a := d.Alerts[0]; !a.Until.Equal(end) || !strings.Contains(a.Text, "shelved until 2026-11-02 20:00:00 UTC") {
		t.Errorf("the alert says until %v: %s", a.Until, a.Text)
	}
	if d := b.command(event.Command{ID: "a", Action: event.Unshelve, Issued: noon.Add(2 * time.Minute)}, noon); !strings.Contains(d.Alerts[0].Text, "issued 2m0s after it arrived") {
		t.Errorf("%s", d.Alerts[0].Text)
	}
	c = event.Command{ID: "t", Action: event.Shelve, Note: "n", Issued: noon, Until: noon.Add(8*time.Hour + time.Second)}
	if d := b.command(c, noon); d.Alerts[0].State != event.Refused {
		t.Errorf("%+v", d.Alerts)
	}
}

// The memory of commands is bounded in time and number.
func TestCommandsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h commands
		now := noon
		for i := range rapid.IntRange(1, 200).Draw(t, "commands") {
			now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "s")) * time.Second)
			h.note(fmt.Sprint(i), now)
			if !h.has(fmt.Sprint(i)) {
				t.Fatalf("command %d is forgotten at once", i)
			}
		}
		for _, o := range h.IDs[:max(0, len(h.IDs)-keptCommands)] {
			if now.Sub(o.At) > commandAge+commandAhead {
				t.Fatalf("%+v is remembered at %v", o, now)
			}
		}
	})
	b := raisedBench(t)
	for i := range maxCommands + 1 {
		d := b.m.Apply(Command{Key: drill, Value: event.JSON(event.Command{ID: fmt.Sprint(i), Machine: drill, Action: event.Unshelve, By: "kim", Issued: noon}), At: noon})
		if flood := strings.Contains(d.Alerts[0].Text, "more than 1000 commands"); flood != (i == maxCommands) {
			t.Fatalf("command %d: %s", i, d.Alerts[0].Text)
		}
	}
	if n := len(b.m.Commands.IDs); n != maxCommands {
		t.Errorf("%d ids are remembered", n)
	}
}

// Any bytes on the commands topic are a command or a reason why not.
func FuzzCommand(f *testing.F) {
	c := event.Command{ID: "1", Machine: drill, Action: event.Shelve, By: "kim", Note: "n", Issued: noon, Until: noon}
	f.Add(event.JSON(c))
	c.Action, c.Tool, c.Note = event.NewTool, "T1", ""
	c.Until = time.Time{}
	f.Add(event.JSON(c))
	c.Action, c.Tool = event.Retire, ""
	f.Add(event.JSON(c))
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"issued":"0000-00-00T00:00:00Z"}`))
	m := machinetest.OneValue(f)
	f.Fuzz(func(t *testing.T, value []byte) {
		b := newBench(t, m)
		b.wear("T1", 0)
		c := Command{Key: drill, Value: value, At: noon}
		e, err := event.ReadCommand(c.Key, c.Value)
		if err == nil && (e.Check() != nil || e.Machine != drill) {
			t.Fatalf("%+v", e)
		}
		d := b.apply(c)
		if (d.Refused != "") != (err != nil) || (len(d.Alerts) > 0) != (err == nil) {
			t.Fatalf("%v: %+v", err, d)
		}
	})
}

// A command is remembered for as long as it could be carried out again, to the second.
func TestCommandIsForgotten(t *testing.T) {
	for after, want := range map[time.Duration]bool{commandAge + commandAhead: true, commandAge + commandAhead + time.Second: false} {
		var h commands
		h.note("first", noon)
		for i := range keptCommands {
			h.note(fmt.Sprint(i), noon.Add(after))
		}
		if h.has("first") != want {
			t.Errorf("%v later: remembered %v, want %v", after, h.has("first"), want)
		}
	}
}

// The sizes of commands are limits, and no less.
func TestCommandSizes(t *testing.T) {
	padded := func(c event.Command, size int) error {
		text := event.JSON(c)
		_, err := event.ReadCommand(drill, append(text, strings.Repeat(" ", size-len(text))...))
		return err
	}
	mark := event.Command{ID: "c", Machine: drill, Action: event.Unshelve, By: "kim", Issued: noon}
	rename := event.Command{ID: "c", Machine: drill, Action: event.Rename, Was: "acme/line1/old", State: []event.Kept{{Key: "k", Value: []byte("{}")}}, By: "kim", Issued: noon}
	for _, tc := range []struct {
		command event.Command
		size    int
		refused bool
	}{{mark, event.MaxCommand, false}, {mark, event.MaxCommand + 1, true}, {rename, event.MaxRename, false}, {rename, event.MaxRename + 1, true}} {
		if err := padded(tc.command, tc.size); (err != nil) != tc.refused {
			t.Errorf("%s of %d bytes: %v", tc.command.Action, tc.size, err)
		}
	}
}

// An alarm that no one was called for may be marked as false once someone has acknowledged it, and not before.
func TestMarkOfAnAlarmUnderAMask(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	b.window(at(0, "T1", false))
	b.command(event.Command{ID: "1", Action: event.Suppress, Note: "n", Issued: noon}, noon)
	_, incident := b.wear("T1", 1)
	for i, c := range []event.Command{
		{Action: event.MarkFalse, Incident: incident}, {Action: event.Shelve, Note: "n", Until: noon.Add(time.Hour)}, {Action: event.MarkFalse, Incident: incident},
		{Action: event.Acknowledge, Incident: incident}, {Action: event.MarkFalse, Incident: incident},
	} {
		c.ID, c.Issued = fmt.Sprint(10+i), noon
		d := b.command(c, noon)
		if refused := d.Alerts[0].State == event.Refused; refused != (i == 0 || i == 2) {
			t.Errorf("%d, %s: %s", i, c.Action, d.Alerts[0].Text)
		}
	}
}

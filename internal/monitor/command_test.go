package monitor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/schemas"
)

var noon = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

// raisedMachine returns a machine whose alarm stands.
func raisedMachine(t *testing.T) (*machine, string) {
	t.Helper()
	m := oneValue(t)
	judge, mach := m.NewJudge(), newTestMachine(t, m)
	for seq, faulty := range []bool{false, false, true, true} {
		mach.observe(at(uint64(seq), "T1", faulty), judge, m.Layout, m.ID())
	}
	if !mach.alarm.Calls() || mach.incident == "" {
		t.Fatal("no alarm")
	}
	return mach, m.ID()
}

// What each command does to an alarm, and why it is refused.
func TestObey(t *testing.T) {
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
		"acknowledge another":    {nil, event.Acknowledge, func(c *event.Command) { c.Incident = "A-AAAAAAAA" }, "refused; raised", "A-AAAAAAAA does not stand any more"},
		"too late":               {nil, event.Acknowledge, func(c *event.Command) { c.Issued = noon.Add(-commandAge - time.Second) }, "refused; raised", "arrived 5m1s after it was issued"},
		"just in time":           {nil, event.Acknowledge, func(c *event.Command) { c.Issued = noon.Add(-commandAge) }, "acknowledged; acknowledged", ""},
		"from the future":        {nil, event.Acknowledge, func(c *event.Command) { c.Issued = noon.Add(2 * time.Minute) }, "refused; raised", "set the sender's clock"},
		"a clock that is ahead":  {nil, event.Acknowledge, func(c *event.Command) { c.Issued = noon.Add(time.Minute) }, "acknowledged; acknowledged", ""},
		"shelve":                 {nil, event.Shelve, nil, "shelved; shelved", "alarm shelved until 2026-11-02 14:00:00 UTC by kim: because."},
		"shelve for too long":    {nil, event.Shelve, func(c *event.Command) { c.Until = noon.Add(9 * time.Hour) }, "refused; raised", "at most 8h0m0s"},
		"shelve until yesterday": {nil, event.Shelve, func(c *event.Command) { c.Until = noon.Add(-time.Hour) }, "refused; raised", "over"},
		"unshelve":               {[]event.Action{event.Shelve}, event.Unshelve, nil, "unshelved; raised", "alarm unshelved by kim"},
		"unshelve nothing":       {nil, event.Unshelve, nil, "refused; raised", "drill: unshelve by kim: refused: it is not so."},
		"suppress":               {nil, event.Suppress, nil, "suppressed; suppressed", "alarm suppressed by kim: because."},
		"unsuppress":             {[]event.Action{event.Suppress}, event.Unsuppress, nil, "unsuppressed; raised", "alarm unsuppressed by kim"},
		"out of service":         {nil, event.OutOfService, nil, "out_of_service; out_of_service", "alarm out of service by kim: because."},
		"in service":             {[]event.Action{event.OutOfService}, event.InService, nil, "in_service; raised", "in service again by kim"},
	} {
		t.Run(name, func(t *testing.T) {
			mach, id := raisedMachine(t)
			var got []event.Alert
			for i, action := range append(slices.Clone(tc.before), tc.action) {
				c := event.Command{
					ID: fmt.Sprint("c", i), Machine: mach.name, Action: action, Incident: mach.incident, By: "kim", Note: "because", Issued: noon, Until: noon.Add(2 * time.Hour),
				}
				if i == len(tc.before) && tc.change != nil {
					tc.change(&c)
				}
				got = mach.obey(c, &bus.Message{Time: noon, Offset: int64(i)}, id)
			}
			var states []string
			for _, a := range got {
				states = append(states, string(a.State))
				if err := schemas.Validate(schemas.Alert, event.JSON(a)); err != nil {
					t.Error(err)
				}
				if a.By != "kim" || a.Command != fmt.Sprint("c", len(tc.before)) || !a.At.Equal(noon) || a.Incident != mach.incident || a.Seq != 3 {
					t.Errorf("%+v", a)
				}
				if want := map[bool]string{true: "warning", false: "info"}[a.Alarm == "raised"]; a.Severity != want {
					t.Errorf("%s: severity %s, want %s", a.State, a.Severity, want)
				}
			}
			if s := strings.Join(states, " ") + "; " + mach.alarm.State().Word(); s != tc.want {
				t.Errorf("%q, want %q", s, tc.want)
			}
			if text := got[len(got)-1].Text; !strings.Contains(text, tc.text) {
				t.Errorf("%q lacks %q", text, tc.text)
			}
		})
	}
}

// An alarm that was raised on the shelf is told when the shelf is over, with the
// name that it has had since.
func TestShelfEnds(t *testing.T) {
	m := oneValue(t)
	judge, mach := m.NewJudge(), newTestMachine(t, m)
	mach.observe(at(0, "T1", false), judge, m.Layout, m.ID())
	mach.obey(event.Command{ID: "c", Machine: drill, Action: event.Shelve, By: "kim", Note: "test piece", Issued: noon, Until: noon.Add(time.Hour)},
		&bus.Message{Time: noon}, m.ID())
	for seq, faulty := range []bool{false, true, true} {
		r, alerts := mach.observe(at(uint64(seq+1), "T1", faulty), judge, m.Layout, m.ID())
		if len(alerts) > 0 || r.Alarm != "shelved" {
			t.Errorf("window %d: alarm %s, alerts %v", seq+1, r.Alarm, alerts)
		}
	}
	incident := mach.incident
	if alerts := mach.expire(noon.Add(time.Hour-1), m.ID()); alerts != nil {
		t.Errorf("before its time: %v", alerts)
	}
	alerts := mach.expire(noon.Add(time.Hour+time.Minute), m.ID())
	if len(alerts) != 2 || alerts[0].State != "unshelved" || alerts[0].Reason != "expired" || alerts[1].State != event.Raised || !alerts[1].At.Equal(noon.Add(time.Hour)) ||
		incident == "" || alerts[1].Incident != incident || alerts[0].ID != fmt.Sprintf("%s/shelf/%d/unshelved", drill, noon.UnixNano()) {
		t.Fatalf("%s", event.JSON(alerts))
	}
	for _, a := range alerts {
		if err := schemas.Validate(schemas.Alert, event.JSON(a)); err != nil || a.Severity != "warning" {
			t.Errorf("%s: %v", event.JSON(a), err)
		}
	}
	if want := "drill tool T1: FAULTY since 02:00:02, which nobody was told"; !strings.HasPrefix(alerts[1].Text, want) {
		t.Errorf("%q, want %q…", alerts[1].Text, want)
	}
}

// Alarms are marked as false, and that is taken back, while they stand, when they
// are over and while another stands, and after a restart; the alarm is as it was.
func TestMark(t *testing.T) {
	m := oneValue(t)
	judge, mach := m.NewJudge(), newTestMachine(t, m)
	seq := uint64(0)
	life := func(tool string) (incident string) {
		for _, faulty := range []bool{false, false, true, true} {
			mach.observe(at(seq, tool, faulty), judge, m.Layout, m.ID())
			seq++
		}
		return mach.incident
	}
	restart := func() {
		record := event.JSON(mach.state(m.ID(), nil))
		var s state
		if err := json.Unmarshal(record, &s); err != nil {
			t.Fatal(err)
		}
		mach = newTestMachine(t, m)
		if err := mach.restore(s, m, 1); err != nil {
			t.Fatal(err)
		}
	}
	commands := 0
	say := func(action event.Action, incident string, wrong bool, want, text string) {
		t.Helper()
		commands++
		before := mach.alarm.State()
		c := event.Command{ID: fmt.Sprint("c", commands), Machine: drill, Action: action, Incident: incident, FalseAlarm: wrong, By: "kim", Note: "chip", Issued: noon}
		got := mach.obey(c, &bus.Message{Time: noon, Offset: int64(commands)}, m.ID())
		if len(got) != 1 || string(got[0].State) != want || !strings.Contains(got[0].Text, text) {
			t.Fatalf("%s %s: %s, want %s with %q", action, incident, event.JSON(got), want, text)
		}
		if err := schemas.Validate(schemas.Alert, event.JSON(got[0])); err != nil {
			t.Error(err)
		}
		if strings.HasSuffix(want, "marked_false") && (got[0].Incident != incident || got[0].Severity != "info" || got[0].Alarm != before.Word() || mach.alarm.State() != before) {
			t.Errorf("%s", event.JSON(got[0]))
		}
	}
	first := life("T1")
	say(event.UnmarkFalse, first, false, "refused", "drill: unmark_false by kim: refused: it is not marked as false.")
	say(event.MarkFalse, first, false, "marked_false", "drill tool T1: alarm of 2026-11-02 02:00:02 marked as false by kim: chip.")
	say(event.MarkFalse, first, false, "refused", "it is marked as false already")
	second := life("T2")
	if first == second {
		t.Fatal("one name for two alarms")
	}
	restart()
	say(event.MarkFalse, first, false, "refused", "already")
	say(event.UnmarkFalse, first, false, "unmarked_false", "drill tool T1: alarm of 2026-11-02 02:00:02 no longer marked as false by kim: chip.")
	say(event.Acknowledge, second, true, "acknowledged", "as false")
	say(event.MarkFalse, second, false, "refused", "already")
	say(event.UnmarkFalse, second, false, "unmarked_false", "tool T2")
	say(event.MarkFalse, "A-AAAAAAAA", false, "refused", "A-AAAAAAAA is none of the last 50 alarms")

	mach.raised = nil // as in a record of before alarms were remembered
	restart()
	say(event.MarkFalse, second, false, "marked_false", "tool T2")
	for tool := range keptRaised {
		life(fmt.Sprint("N", tool))
	}
	restart()
	if len(mach.raised) != keptRaised {
		t.Errorf("%d alarms are remembered", len(mach.raised))
	}
	say(event.UnmarkFalse, second, false, "refused", "none of the last 50")
}

// What is on the commands topic, by whomever, is carried out once: a replay is
// refused, also after a restart and by the monitor that took over, and what cannot
// be read or is for nobody is set aside. Nothing is said twice.
func TestCommands(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 2)
	var late atomic.Int64 // how much later than it is the monitor takes it to be
	clock := func(m *Monitor) { m.now = func() time.Time { return time.Now().Add(time.Duration(late.Load())) } }
	m := p.monitor(clock)
	p.send(p.messages(life(6, 3)...)...)
	p.untilResults(6)
	st := p.standing(drill)
	if st.Incident == "" || st.Alarm != "raised" {
		t.Fatalf("%+v", st)
	}
	command := func(c event.Command) bus.Message {
		c.ID, c.Machine, c.By, c.Issued = event.NewCommandID(), drill, "kim", time.Now()
		msg, err := commandMessage(c)
		if err != nil {
			t.Fatal(err)
		}
		return msg
	}
	outcome := func(id []byte) (last event.Alert) {
		t.Helper()
		p.until(bus.TopicAlerts, func(msgs []bus.Message) bool {
			if err := json.Unmarshal(msgs[len(msgs)-1].Value, &last); err != nil {
				t.Fatal(err)
			}
			return last.Command == string(id)
		})
		return last
	}
	ack := command(event.Command{Action: event.Acknowledge, Incident: st.Incident, Note: "change at hole end"})
	p.send(ack)
	if a := outcome(ack.Header("ce_id")); a.State != "acknowledged" || a.Note != "change at hole end" || a.Incident != st.Incident {
		t.Errorf("%s", event.JSON(a))
	}
	shelve := command(event.Command{Action: event.Shelve, Note: "test piece", Until: time.Now().Add(time.Hour)})
	forged := ack
	forged.Key = "acme/line1/other"
	nobody := forged
	nobody.Value = []byte(strings.ReplaceAll(string(ack.Value), drill, forged.Key))
	garbage := ack
	garbage.Value = []byte(`{"id":`)
	otherKey := ack
	otherKey.Value = []byte(strings.ReplaceAll(string(ack.Value), drill, "acme/line1/drill2"))
	p.send(ack, shelve, nobody, garbage, otherKey)
	if a := outcome(shelve.Header("ce_id")); a.State != "shelved" || a.By != "kim" || a.Until.IsZero() {
		t.Errorf("%s", event.JSON(a))
	}
	p.untilMessages(bus.TopicDead, 4)
	if err := m.stop(); err != nil {
		t.Fatal(err)
	}
	m = p.monitor(clock) // which reads all commands again, and heeds none
	p.send(ack)
	letters := p.until(bus.TopicDead, func(msgs []bus.Message) bool {
		return len(msgs) >= 5 && strings.Contains(string(msgs[len(msgs)-1].Header("dead_reason")), "came before")
	})
	var reasons strings.Builder
	for _, l := range letters {
		fmt.Fprintf(&reasons, "%s\n", l.Header("dead_reason"))
	}
	for _, want := range []string{"a command of this id came before", "no window of it has ever been judged", "unexpected end of JSON", "it is for machine"} {
		if !strings.Contains(reasons.String(), want) {
			t.Errorf("no letter says %q:\n%s", want, &reasons)
		}
	}
	if err := m.stop(); err != nil {
		t.Fatal(err)
	}
	late.Store(int64(2 * time.Hour)) // nobody ran when the shelf ended
	p.monitor(clock)
	p.until(bus.TopicAlerts, func(msgs []bus.Message) bool {
		return strings.Contains(string(msgs[len(msgs)-1].Value), `"unshelved"`)
	})
	var states []string
	for _, a := range p.alertsByID() {
		states = append(states, string(a.State))
	}
	slices.Sort(states)
	if want := []string{"acknowledged", "raised", "shelved", "unshelved"}; !slices.Equal(states, want) {
		t.Errorf("alerts %v, want %v", states, want)
	}
	if st := p.standing(drill); st.Alarm != "acknowledged" || st.By != "kim" {
		t.Errorf("in the end: %+v", st)
	}
}

// standing returns how the alarm of a machine stands, as `monitor alerts` sees it.
func (p *plant) standing(machine string) Standing {
	p.t.Helper()
	all, _, err := Alarms(p.t.Context(), p.bus)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, st := range all {
		if st.Machine == machine {
			return st
		}
	}
	p.t.Fatalf("machine %s is not among %+v", machine, all)
	return Standing{}
}

// The memory of commands is bounded in time and number.
func TestHeardIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h heard
		now := noon
		for i := range rapid.IntRange(1, 200).Draw(t, "commands") {
			now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "s")) * time.Second)
			h.note(fmt.Sprint(i), &bus.Message{Time: now, Offset: int64(i)})
		}
		for _, o := range h.IDs {
			if now.Sub(o.At) > commandAge+commandAhead {
				t.Fatalf("%+v is remembered at %v", o, now)
			}
		}
		if !h.Last.Equal(now) {
			t.Fatalf("last %v, want %v", h.Last, now)
		}
	})
	mach, id := raisedMachine(t)
	for i := range maxHeard + 1 {
		a := mach.obey(event.Command{ID: fmt.Sprint(i), Machine: drill, Action: event.Unshelve, By: "kim", Issued: noon}, &bus.Message{Time: noon}, id)
		if flood := strings.Contains(a[0].Text, "more than 1000 commands"); flood != (i == maxHeard) {
			t.Fatalf("command %d: %s", i, a[0].Text)
		}
	}
	if n := len(mach.heard.IDs); n != maxHeard+1 {
		t.Errorf("%d ids are remembered", n)
	}
}

// Whatever is on the commands topic is read or refused.
func FuzzReadCommand(f *testing.F) {
	c := event.Command{ID: "1", Machine: drill, Action: event.Shelve, By: "kim", Note: "n", Issued: noon, Until: noon}
	f.Add(event.JSON(c))
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"issued":"0000-00-00T00:00:00Z"}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		c, err := readCommand(&bus.Message{Key: drill, Value: value})
		if err != nil {
			return
		}
		if err := c.Check(); err != nil || c.Machine != drill {
			t.Fatalf("%+v: %v", c, err)
		}
		mach, id := raisedMachine(t)
		for _, a := range mach.obey(c, &bus.Message{Time: noon}, id) {
			if err := schemas.Validate(schemas.Alert, event.JSON(a)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

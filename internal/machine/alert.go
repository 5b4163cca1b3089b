package machine

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/state"
	"github.com/flank-tcm/flank/internal/machine/statement"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// cause is what made an alarm change: a window, a command, or the end of a shelf.
type cause struct {
	of     string    // the window, or the machine: of the alerts' ids before the group
	about  string    // likewise, behind the group
	at     time.Time // see event.Alert.At
	now    time.Time // by Kafka's clock
	epoch  string
	seq    uint64
	tool   string // of the window
	hole   string
	score  float64
	model  string
	reason string // see event.Alert.Reason
	by     string
	note   string
	until  time.Time
	action string // id of a command
	word   string // state of the machine's alarm, if the tool is not in the spindle any more

	allTools   bool   // it masks the machine, or ends that
	falseAlarm bool   // see event.Alert.FalseAlarm
	state      string // of the window: what the machine did
	cutting    time.Duration
	wear       *event.Wear
	reasons    *event.Reasons
	trace      []event.Point
}

// ofWindow returns the cause of what the window of r changes. The reason is that
// of an alarm which it clears.
func ofWindow(r *event.Result, reason string) cause {
	return cause{
		of: event.WindowID(r.Machine, r.Epoch, r.Seq), at: r.End, epoch: r.Epoch, seq: r.Seq, tool: r.Tool, hole: r.Hole, score: r.Score, model: r.Model, reason: reason,
		state: r.CuttingState, wear: r.Wear,
	}
}

// id returns the id of what follows in the name of a group, before the slash and the state.
func (c *cause) id(group string) string { return c.of + "/" + group + c.about }

// Alarm is the alarm of a tool, with what people call it.
type Alarm struct {
	alarm.State
	Incident string `json:"incident,omitempty"` // empty: it is normal
	Finding  string `json:"finding,omitempty"`  // see event.Alert.Finding: of the window that raised it last
}

// name gives an alarm that is open the name that id makes, unless it has one, and takes it from one that is not.
func (a *Alarm) name(id string) {
	switch {
	case !a.Raised:
		a.Incident, a.Finding = "", ""
	case a.Incident == "":
		sum := sha256.Sum256([]byte(id))
		a.Incident = "A-" + base32.StdEncoding.EncodeToString(sum[:5])
	}
}

// bell is the alarm of a tool where it is to be heard.
type bell struct {
	alarm     *Alarm
	tool      *Tool
	masks     alarm.Masks // of the machine
	group     string      // in whose name it calls
	inSpindle bool
	shadow    string // model of the shadow under which the alarm would be so; empty: of none
}

// bell returns the alarm of a tool.
func (m *Machine) bell(t *Tool) bell {
	return bell{alarm: &t.Alarm, tool: t, masks: m.Masks, group: m.settings.Group, inSpindle: t == m.inSpindle()}
}

// trial returns what the alarm of a tool would be under a shadow. No one masks it.
func (m *Machine) trial(t *Tool, j *Judging) bell {
	return bell{alarm: j.Trial, tool: t, group: state.ShadowGroup(m.settings.Group, j.Model), inSpindle: t == m.inSpindle(), shadow: j.Model}
}

// quiet reports whether the alarm must not call now.
func (b bell) quiet() bool { return !b.inSpindle || b.masks.On() || b.alarm.Masks.On() }

func (b bell) word() string { return b.alarm.Word(b.masks) }

// AlarmWord returns the state of the alarm of the tool in the spindle, in the words of a result.
func (m *Machine) AlarmWord() string {
	if t := m.inSpindle(); t != nil {
		return m.bell(t).word()
	}
	return m.wordWithoutTool()
}

// wordWithoutTool returns the machine's mask, or normal: the state of the alarm of a spindle without a tool.
func (s *State) wordWithoutTool() string { return cmp.Or(s.Masks.Word(alarm.Masks{}), "normal") }

// announce returns the alerts of an alarm that may call at c.now and has not been announced.
func (m *Machine) announce(b bell, c cause) []event.Alert {
	if b.quiet() {
		return nil
	}
	was := b.alarm.State
	return m.report(b, b.alarm.Announce(m.alarms, c.now), was, c)
}

// announceAll publishes the alarm of a tool, and the alarms that its shadows would have, if they may call now.
func (m *Machine) announceAll(t *Tool, c cause) {
	m.decision.Alerts = append(m.decision.Alerts, m.announce(m.bell(t), c)...)
	for _, j := range t.Judgings {
		if j.Trial != nil {
			m.decision.tellTrial(m.announce(m.trial(t, j), c))
		}
	}
}

// expire ends shelves, and the silence of an alarm whose tool has come back, by Kafka's clock: each at its time, and in the
// order of times.
func (m *Machine) expire(now time.Time) {
	for {
		t := m.firstShelf()
		b, until := m.firstSilence()
		switch {
		case t != nil && !now.Before(t.Alarm.Shelf.Until) && (b.alarm == nil || !until.Before(t.Alarm.Shelf.Until)):
			m.endShelf(t, now)
		case b.alarm != nil && !now.Before(until):
			m.endSilence(b, until)
		default:
			return
		}
	}
}

// firstShelf returns the tool whose shelf ends first; nil if none has one.
func (s *State) firstShelf() (first *Tool) {
	for _, t := range s.Tools {
		if shelf := t.Alarm.Shelf; shelf != nil && (first == nil || shelf.Until.Before(first.Alarm.Shelf.Until)) {
			first = t
		}
	}
	return first
}

func (m *Machine) endShelf(t *Tool, now time.Time) {
	s := t.Alarm.Over(now)
	tool := int64(crc32.ChecksumIEEE([]byte(t.Name))) % 1e6 // Kafka's time is in milliseconds: below them is room to tell tools apart
	c := m.causeWithoutWindow(fmt.Sprintf("/shelf/%d", s.Since.UnixNano()+tool), s.Until)
	c.reason = "expired"
	m.writeTool(t)
	m.decision.Alerts = append(m.decision.Alerts, m.unmasked(m.bell(t), alarm.Unshelved, t.Alarm.State, c)...)
}

// firstSilence returns the alarm of the tool in the spindle, or what one of its shadows would have, that is to call
// first since it was silent when its tool came back, and when. Without one it has no alarm.
func (m *Machine) firstSilence() (first bell, at time.Time) {
	t := m.inSpindle()
	if t == nil {
		return first, at
	}
	look := func(b bell) {
		if until, silent := b.alarm.Silent(m.alarms); silent && !b.quiet() && (first.alarm == nil || until.Before(at)) {
			first, at = b, until
		}
	}
	look(m.bell(t))
	for _, j := range t.Judgings {
		if j.Trial != nil {
			look(m.trial(t, j))
		}
	}
	return first, at
}

// callAtLast announces an alarm in the spindle that may call and never has: a defect has cut the event short that was to announce it.
func (m *Machine) callAtLast(now time.Time) {
	if t := m.inSpindle(); t != nil && t.Alarm.Waits() && t.Alarm.Called.IsZero() && !m.bell(t).quiet() {
		c := m.causeWithoutWindow(fmt.Sprintf("/silent/%d", now.UnixNano()), now)
		c.tool = t.Name
		m.decision.Alerts = append(m.decision.Alerts, m.announce(m.bell(t), c)...)
	}
}

// endSilence announces an alarm that was silent until then.
func (m *Machine) endSilence(b bell, until time.Time) {
	c := m.causeWithoutWindow(fmt.Sprintf("/silent/%d", b.alarm.Called.UnixNano()), until)
	c.reason, c.tool = "tool_back", b.tool.Name
	alerts := m.announce(b, c)
	if b.shadow != "" {
		m.decision.tellTrial(alerts)
		return
	}
	m.decision.Alerts = append(m.decision.Alerts, alerts...)
}

// unmasked says that a mask has been taken off an alarm that was in the given state, and announces what it hid.
func (m *Machine) unmasked(b bell, change alarm.Change, was alarm.State, c cause) []event.Alert {
	changes := []alarm.Change{change}
	if !b.quiet() {
		changes = append(changes, b.alarm.Announce(m.alarms, c.now)...)
	}
	return m.report(b, changes, was, c)
}

// report describes the changes of an alarm that was in the given state.
func (m *Machine) report(b bell, changes []alarm.Change, was alarm.State, c cause) (alerts []event.Alert) {
	before := b.alarm.Incident
	b.alarm.name(c.id(b.group))
	for _, change := range changes {
		a := m.alert(b, change, was, c)
		if a.Incident = b.alarm.Incident; a.Incident == "" {
			a.Incident = before
		}
		if (change == alarm.Raised || change == alarm.Acknowledged) && b.shadow == "" {
			m.rememberAlarm(PastAlarm{Incident: a.Incident, Tool: a.Tool, Since: a.Since})
		}
		alerts = append(alerts, a)
	}
	return alerts
}

// alert describes one change of an alarm that was in the given state.
func (m *Machine) alert(b bell, change alarm.Change, was alarm.State, c cause) event.Alert {
	set, now := m.alarms, b.alarm.State
	faulty, of := now.Count(set)
	stood := now
	if !now.Raised {
		stood = was
	}
	a := event.Alert{
		ID: fmt.Sprintf("%s/%s", c.id(b.group), change), Group: b.group, Machine: m.Machine, Tool: b.tool.Name, State: event.AlertState(change), Alarm: cmp.Or(c.word, b.word()),
		Severity: "info", Since: stood.Since, At: c.at, Epoch: c.epoch, Seq: c.seq,
		Faulty: faulty, Of: of, Unknown: now.Unknowns(set), K: set.K, N: set.N, Threshold: set.Threshold, Score: c.score, Model: cmp.Or(b.shadow, c.model), By: c.by, Note: c.note, Command: c.action,
		Hole: c.hole, CuttingState: c.state, CuttingSeconds: c.cutting.Seconds(), Wear: c.wear, Reasons: c.reasons, Trace: c.trace, Magazine: !b.inSpindle && c.word == "",
	}
	switch change {
	case alarm.Raised, alarm.Reactivated:
		a.Severity = "warning"
	case alarm.Unshelved, alarm.Unsuppressed, alarm.InService:
		if a.Alarm == "raised" && b.inSpindle { // it calls now
			a.Severity = "warning"
		}
	}
	if a.Since.IsZero() {
		a.Since = c.at
	}
	if change != alarm.Cleared {
		a.Finding = b.alarm.Finding
	}
	switch change {
	case alarm.Cleared:
		a.Reason = c.reason
	case alarm.Raised:
		if c.reason == "tool_back" {
			a.Reason = c.reason
		}
	case alarm.Unshelved:
		if c.action == "" {
			a.Reason = c.reason
		}
	case alarm.Shelved:
		a.Until = c.until
	case alarm.Acknowledged:
		a.FalseAlarm = c.falseAlarm
	}
	name := event.ShortName(m.Machine)
	text := statement.Alert(change, &a, c.tool)
	switch {
	case c.allTools && change != alarm.Raised:
		name, text = name+" with all its tools", strings.TrimPrefix(text, "alarm ")
	case a.Tool != "":
		name += " tool " + a.Tool
	}
	if c.hole != "" && a.Tool == c.tool { // not the first hole of the next tool
		name += " hole " + c.hole
	}
	a.Text = name + ": " + text
	return a
}

// noEpoch stands for the epoch of a machine of which no window was judged.
const noEpoch = "0000000000000000"

// causeWithoutWindow returns a cause that is a command or the clock. It stands behind the
// last window.
func (s *State) causeWithoutWindow(about string, at time.Time) cause {
	c := cause{of: s.Machine, about: about, at: at, now: at, model: s.Model, epoch: noEpoch}
	if e := s.Leader(); e != nil {
		c.epoch = e.ID
		c.seq, _ = e.Judged.Last()
	}
	return c
}

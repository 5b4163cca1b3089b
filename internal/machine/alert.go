package machine

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/statement"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
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
	level  float64
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
		of: event.WindowID(r.Machine, r.Epoch, r.Seq), at: r.End, epoch: r.Epoch, seq: r.Seq, tool: r.Tool, hole: r.Hole, score: r.Score, level: r.Level, model: r.Model, reason: reason,
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
	Class    string `json:"class,omitempty"`    // likewise, see event.Alert.Class
}

// name gives an alarm that is open the name that id makes, unless it has one, and takes it from one that is not.
func (a *Alarm) name(id string) {
	switch {
	case !a.Raised:
		a.Incident, a.Finding, a.Class = "", "", ""
	case a.Incident == "":
		sum := sha256.Sum256([]byte(id))
		a.Incident = "A-" + base32.StdEncoding.EncodeToString(sum[:5])
	}
}

// bell is the alarm of a tool where it is to be heard.
type bell struct {
	of        *alarms
	alarm     *Alarm
	tool      *Tool
	masks     alarm.Masks // of the machine
	group     string      // in whose name it calls
	inSpindle bool
	shadow    string // model of the shadow under which the alarm would be so; empty: of none
}

// quiet reports whether the alarm must not call now.
func (b bell) quiet() bool { return !b.inSpindle || b.masks.On() || b.alarm.Masks.On() }

func (b bell) word() string { return b.alarm.Word(b.masks) }

// announce publishes an alarm that may call at c.now and has not been announced.
func (b bell) announce(c cause) {
	if !b.quiet() {
		was := b.alarm.State
		b.publish(b.report(b.alarm.Announce(b.of.set, c.now), was, c))
	}
}

// publish adds alerts to the decision.
func (b bell) publish(alerts []event.Alert) {
	d := b.of.decision
	if b.shadow == "" {
		d.Alerts = append(d.Alerts, alerts...)
		return
	}
	for i := range alerts {
		d.Shadows = append(d.Shadows, ShadowAlert{&alerts[i]})
	}
}

// unmasked says that a mask has been taken off an alarm that was in the given state, and announces what it hid.
func (b bell) unmasked(change alarm.Change, was alarm.State, c cause) []event.Alert {
	changes := []alarm.Change{change}
	if !b.quiet() {
		changes = append(changes, b.alarm.Announce(b.of.set, c.now)...)
	}
	return b.report(changes, was, c)
}

// report describes the changes of an alarm that was in the given state.
func (b bell) report(changes []alarm.Change, was alarm.State, c cause) (alerts []event.Alert) {
	before := b.alarm.Incident
	b.alarm.name(c.id(b.group))
	for _, change := range changes {
		a := b.alert(change, was, c)
		if a.Incident = b.alarm.Incident; a.Incident == "" {
			a.Incident = before
		}
		if (change == alarm.Raised || change == alarm.Acknowledged) && b.shadow == "" {
			b.of.remember(pastAlarm{Incident: a.Incident, Tool: a.Tool, Since: a.Since})
		}
		alerts = append(alerts, a)
	}
	return alerts
}

// alert describes one change of an alarm that was in the given state.
func (b bell) alert(change alarm.Change, was alarm.State, c cause) event.Alert {
	set, now, machine := b.of.set, b.alarm.State, b.of.state.Machine
	faulty, of := now.Count(set)
	stood := now
	if !now.Raised {
		stood = was
	}
	a := event.Alert{
		ID: fmt.Sprintf("%s/%s", c.id(b.group), change), Group: b.group, Machine: machine, Tool: b.tool.Name, ToolLife: b.tool.life(), State: event.AlertState(change), Alarm: cmp.Or(c.word, b.word()),
		Severity: "info", Since: stood.Since, At: c.at, Epoch: c.epoch, Seq: c.seq,
		Faulty: faulty, Of: of, Unknown: now.Unknowns(set), K: set.K, N: set.N, Threshold: set.Threshold, Score: c.score, Level: c.level, Model: cmp.Or(b.shadow, c.model), By: c.by, Note: c.note, Command: c.action,
		Hole: c.hole, CuttingState: c.state, CuttingSeconds: c.cutting.Seconds(), Wear: c.wear, Reasons: c.reasons, Trace: c.trace, Magazine: !b.inSpindle && c.word == "",
	}
	if a.Since.IsZero() {
		a.Since = c.at
	}
	if change != alarm.Cleared {
		a.Finding, a.Class = b.alarm.Finding, b.alarm.Class
	}
	switch change {
	case alarm.Raised:
		a.Severity = "warning"
		if c.reason == "tool_back" {
			a.Reason = c.reason
		}
	case alarm.Reactivated:
		a.Severity = "warning"
	case alarm.Unshelved, alarm.Unsuppressed, alarm.InService:
		b.calls(change, c, &a)
	case alarm.Cleared:
		a.Reason = c.reason
	case alarm.Shelved:
		a.Until = c.until
	case alarm.Acknowledged:
		a.FalseAlarm = c.falseAlarm
	}
	a.Text = b.text(change, c, &a)
	return a
}

// other returns an alert that does not change the alarm: of an incident, empty for none, which may be another one.
func (b bell) other(state event.AlertState, c cause, incident string) event.Alert {
	a := b.alert(alarm.Change(state), b.alarm.State, c)
	if a.Incident = incident; incident != b.alarm.Incident {
		a.Finding, a.Class = "", ""
	}
	return a
}

// calls says of an alarm that is masked no more whether it calls now, and why a shelf is over.
func (b bell) calls(change alarm.Change, c cause, a *event.Alert) {
	if a.Alarm == "raised" && b.inSpindle {
		a.Severity = "warning"
	}
	if change == alarm.Unshelved && c.action == "" {
		a.Reason = c.reason
	}
}

// text returns the words of an alert.
func (b bell) text(change alarm.Change, c cause, a *event.Alert) string {
	name := event.ShortName(a.Machine)
	text := statement.Alert(change, a, c.tool)
	switch {
	case c.allTools && change != alarm.Raised:
		name, text = name+" with all its tools", strings.TrimPrefix(text, "alarm ")
	case a.Tool != "":
		name += " tool " + a.Tool
	}
	if c.hole != "" && a.Tool == c.tool { // not the first hole of the next tool
		name += " hole " + c.hole
	}
	return name + ": " + text
}

// observe moves an alarm by what a model says of a window that Kafka got at a time, and returns what it says.
func (b bell) observe(o opinion, r *event.Result, by *Model, now time.Time) []event.Alert {
	if !o.counts() {
		return nil
	}
	was := b.alarm.State
	c := b.alarm.Observe(b.of.set, b.quiet(), b.of.set.IsFaulty(o.Score), r.Start, r.End, now)
	if o.Outcome == model.Unknown {
		b.alarm.Unknown |= 1
	}
	if b.alarm.Raised && !was.Raised || c == alarm.Reactivated {
		b.alarm.Class, b.alarm.Finding = by.model.Against(o.Verdict)
	}
	if c == alarm.None {
		b.alarm.name(r.ID)
		return nil
	}
	why := ofWindow(r, "recovered")
	why.cutting = b.tool.Cutting
	if c == alarm.Raised || c == alarm.Reactivated {
		b.explain(&why, by)
	}
	return b.report([]alarm.Change{c}, was, why)
}

// counts reports whether the verdict speaks for an alarm or against it.
func (o opinion) counts() bool {
	return o.Outcome == model.Healthy || o.Outcome == model.Faulty || o.Outcome == model.Unknown && o.Reason.Counts()
}

// explain adds what speaks for an alarm to its cause.
func (b bell) explain(why *cause, by *Model) {
	if bad := guard(func() {
		why.reasons = statement.Reasons(by.judge.Explain(&b.tool.judging(by.id()).Reference), by.judge, by.model.Layout)
		why.reasons.Doubted = b.of.state.Notices.doubted()
	}); bad != nil { // better an alarm without reasons than none
		b.of.decision.Defects++
		b.of.decision.warn("reasons_failed", "%s: model %s cannot say why: %v\n%s", event.ShortName(b.of.state.Machine), by.id(), bad, bad.stack)
	}
	if b.shadow == "" {
		why.trace = b.tool.Trace.Points()
	}
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

package machine

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/signal"
)

// cause is what made an alarm change: a window, a command, or the end of a shelf.
type cause struct {
	id     string    // of the alerts, before the slash and their state
	at     time.Time // see event.Alert.At
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
		id: r.ID, at: r.End, epoch: r.Epoch, seq: r.Seq, tool: r.Tool, hole: r.Hole, score: r.Score, model: r.Model, reason: reason,
		state: r.CuttingState, wear: r.Wear,
	}
}

// nameIncident gives an alarm that stands the name that id makes, unless it has one,
// and takes it from one that does not. The alarm is of the tool in the spindle.
func (m *Machine) nameIncident(id string) {
	t := m.inSpindle()
	switch {
	case t == nil:
	case !m.alarm.Stands():
		t.Incident = ""
	case t.Incident == "":
		sum := sha256.Sum256([]byte(id))
		t.Incident = "A-" + base32.StdEncoding.EncodeToString(sum[:5])
	}
}

// report describes the changes of an alarm that was in the given state.
func (m *Machine) report(changes []alarm.Change, was alarm.State, c cause) (alerts []event.Alert) {
	before := m.incident()
	m.nameIncident(c.id)
	for _, change := range changes {
		a := m.alert(change, was, c)
		if a.Incident = m.incident(); a.Incident == "" {
			a.Incident = before
		}
		if m.decided(a.ID) { // of another tool, by the same window
			a.ID = fmt.Sprintf("%s/%s/%s", c.id, cmp.Or(a.Incident, a.Tool), change)
		}
		if change == alarm.Raised {
			m.rememberAlarm(PastAlarm{Incident: a.Incident, Tool: a.Tool, Since: a.Since})
		}
		alerts = append(alerts, a)
	}
	return alerts
}

// decided reports whether an alert of the id follows from the event already.
func (m *Machine) decided(id string) bool {
	return slices.ContainsFunc(m.decision.Alerts, func(a event.Alert) bool { return a.ID == id })
}

// alert describes one change of an alarm that was in the given state.
func (m *Machine) alert(change alarm.Change, was alarm.State, c cause) event.Alert {
	set, now := m.alarm.Settings(), m.alarm.State()
	faulty, of := m.alarm.Count()
	stood := now
	if !now.Raised {
		stood = was
	}
	a := event.Alert{
		ID: fmt.Sprintf("%s/%s", c.id, change), Group: m.settings.Group, Machine: m.Machine, Tool: was.Tool, State: event.AlertState(change), Alarm: now.Word(),
		Severity: "info", Since: stood.Since, At: c.at, Epoch: c.epoch, Seq: c.seq,
		Faulty: faulty, Of: of, K: set.K, N: set.N, Threshold: set.Threshold, Score: c.score, Model: c.model, By: c.by, Note: c.note, Command: c.action,
		CuttingState: c.state, CuttingSeconds: c.cutting.Seconds(), Wear: c.wear, Reasons: c.reasons, Trace: c.trace,
	}
	if m.alarm.Calls() || change == alarm.Raised || change == alarm.Reactivated {
		a.Severity = "warning"
	}
	if a.Since.IsZero() {
		a.Since = c.at
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
	if c.action == "" {
		a.Hole = c.hole
	}
	name := short(m.Machine)
	if was.Tool != "" {
		name += " tool " + was.Tool
	}
	if c.hole != "" && was.Tool == c.tool { // not the first hole of the next tool
		name += " hole " + c.hole
	}
	a.Text = name + ": " + says(change, &a, c)
	return a
}

// clockTime and dayTime write times in the texts of alerts and advisories.
func clockTime(t time.Time) string { return signal.FormatTime(t, time.TimeOnly) }
func dayTime(t time.Time) string   { return signal.FormatTime(t, time.DateTime) }

// says returns an alert in words, behind the name of what it is about.
func says(change alarm.Change, a *event.Alert, c cause) string {
	since := clockTime(a.Since)
	who := " by " + a.By
	if a.Note != "" {
		who += ": " + strings.TrimRight(a.Note, ".")
	}
	switch change {
	case alarm.Raised:
		if a.Reason == "tool_back" {
			return fmt.Sprintf("is back, FAULTY since %s.%s", dayTime(a.Since), orAcknowledged(a.Alarm))
		}
		if a.Score == 0 {
			return fmt.Sprintf("FAULTY since %s, not announced while the alarm was masked. Change the tool before the next part.", since)
		}
		return fmt.Sprintf("FAULTY since %s, %d of %d cutting windows, score %.2f.%s Change the tool before the next part.", since, a.Faulty, a.Of, a.Score, because(a))
	case alarm.Reactivated:
		return fmt.Sprintf("FAULTY again, %d of %d cutting windows, score %.2f; the alarm of %s is not acknowledged.%s", a.Faulty, a.Of, a.Score, since, because(a))
	case alarm.Returned:
		return fmt.Sprintf("alarm of %s is over, %d of the last %d windows are faulty; it waits to be acknowledged.", since, a.Faulty, a.Of)
	case alarm.Cleared:
		switch a.Reason {
		case "tool_change":
			return fmt.Sprintf("alarm of %s cleared, tool changed to %s.", since, orUnknown(c.tool))
		case "acknowledged":
			return fmt.Sprintf("alarm of %s cleared, acknowledged%s.", since, who)
		case "new_tool":
			return fmt.Sprintf("alarm of %s cleared, declared new%s.", since, who)
		case "retired":
			return fmt.Sprintf("alarm of %s cleared, machine retired%s.", since, who)
		}
		return fmt.Sprintf("alarm of %s cleared, %s of the last %d windows is faulty.", since, orNone(a.Faulty), a.Of)
	case alarm.Acknowledged:
		if a.FalseAlarm {
			return fmt.Sprintf("alarm of %s acknowledged as false%s.", since, who)
		}
		return fmt.Sprintf("alarm of %s acknowledged%s.", since, who)
	case alarm.Shelved:
		return fmt.Sprintf("alarm shelved until %s%s.", a.Until.Format("2006-01-02 15:04:05 MST"), who)
	case alarm.Unshelved:
		switch a.Reason {
		case "expired":
			return "the shelf of its alarm is over."
		case "tool_change":
			return fmt.Sprintf("the shelf of its alarm is over, tool changed to %s.", orUnknown(c.tool))
		}
		return "alarm unshelved" + who + "."
	case alarm.InService:
		return "alarm in service again" + who + "."
	}
	return "alarm " + strings.ReplaceAll(string(change), "_", " ") + who + "." // suppressed, unsuppressed, out of service
}

func orAcknowledged(alarm string) string {
	if alarm == "acknowledged" {
		return " Its alarm was acknowledged."
	}
	return " Change the tool before the next part."
}

func orNone(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

func orUnknown(tool string) string {
	if tool == "" {
		return "an unnamed one"
	}
	return tool
}

// short returns the last part of an ISA-95 path.
func short(machine string) string { return machine[strings.LastIndexByte(machine, '/')+1:] }

// noEpoch stands for the epoch of a machine of which no window was judged.
const noEpoch = "0000000000000000"

// causeWithoutWindow returns a cause that is a command or the clock. It stands behind the
// last window.
func (m *Machine) causeWithoutWindow(id string, at time.Time) cause {
	c := cause{id: id, at: at, model: m.Model, epoch: noEpoch}
	if n := len(m.Epochs); n > 0 {
		c.epoch = m.Epochs[n-1].ID
		c.seq, _ = m.Epochs[n-1].Judged.last()
	}
	return c
}

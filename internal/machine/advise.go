package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/order"
	"github.com/flank-tcm/flank/internal/machine/statement"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Notice is a condition other than the tool's alarm, see event.Advisory. Quiet ones are not
// kept.
type Notice struct {
	Kind    event.AdvisoryKind `json:"kind"`
	Subject string             `json:"subject,omitempty"`
	Flags   signal.Quality     `json:"flags,omitempty"` // of a sensor: what was wrong since Since
	Text    string             `json:"text,omitempty"`  // of the advisory that raised it

	Channels []string `json:"channels,omitempty"` // of all sensors of one rate: their channels
	Silent   bool     `json:"silent,omitempty"`   // raised, and not published: the notice of its rate says it
	alarm.Notice
}

// The rules of notices. A Hold of a minute keeps them from chattering.
var (
	sensorRule = alarm.Hysteresis{K: 3, N: 5, Hold: time.Minute}
	clockRule  = alarm.Hysteresis{K: 1, N: 1, Hold: time.Minute} // a step is in one window only
	rivalRule  = alarm.Hysteresis{K: 1, N: 1, Hold: time.Minute}
)

// notices are the conditions of a machine that are not quiet, in the order in which they came.
type notices []Notice

// of returns the notice of that kind and subject, or nil if there is nothing
// to remember of it.
func (n notices) of(kind event.AdvisoryKind, subject string) *Notice {
	return find(n, func(n Notice) bool { return n.Kind == kind && n.Subject == subject })
}

// observe takes what the window of r says of a condition, which is whether it is
// there, and adds an advisory to the decision if the condition
// is raised or cleared by it under the rule. It returns that advisory, of which the
// caller sets Text, and what is of its kind; or nil. The advisory is valid until
// the next call.
//
// Windows that say nothing of the condition are not to be given.
func (n *notices) observe(d *Decision, kind event.AdvisoryKind, subject string, bad bool, rule alarm.Hysteresis, r *event.Result) *event.Advisory {
	one := n.of(kind, subject)
	if one == nil {
		if !bad {
			return nil
		}
		*n = append(*n, Notice{Kind: kind, Subject: subject})
		one = &(*n)[len(*n)-1]
	}
	was := one.Notice
	return n.publish(d, kind, subject, one.Observe(bad, r.Start, r.End, rule), was, byResult(r))
}

// advised is what made a notice change: a window, or the clock.
type advised struct {
	id      string // of the advisory, before what it is about
	group   string // of the monitor
	machine string
	at      time.Time
	epoch   string
	seq     uint64
	tool    string
	model   string
}

// publish adds an advisory on a change of a notice to the decision. It returns the
// advisory, of which the caller sets Text, or nil if nothing changed.
func (n *notices) publish(d *Decision, kind event.AdvisoryKind, subject string, change alarm.Change, was alarm.Notice, by advised) *event.Advisory {
	since := n.of(kind, subject).Since
	if change == alarm.Cleared {
		since = was.Since
	}
	*n = slices.DeleteFunc(*n, func(n Notice) bool { return n.Quiet() })
	if change == alarm.None {
		return nil
	}
	a := event.Advisory{
		Group: by.group, Machine: by.machine, Tool: by.tool, Kind: kind, Subject: subject, State: event.AlertState(change), Severity: "warning",
		Since: since, At: by.at, Epoch: by.epoch, Seq: by.seq, Model: by.model,
	}
	about := string(kind)
	if subject != "" {
		about += "/" + subject
	}
	a.ID = fmt.Sprintf("%s/%s/%s", by.id, about, change)
	if change == alarm.Cleared {
		a.Severity = "info"
	}
	d.Advisories = append(d.Advisories, a)
	return &d.Advisories[len(d.Advisories)-1]
}

// raise raises the notice of a condition that has been there since then, and adds the advisory that says so.
func (n *notices) raise(d *Decision, kind event.AdvisoryKind, subject string, since, at time.Time, by advised, text string) *event.Advisory {
	*n = append(*n, Notice{Kind: kind, Subject: subject, Text: text})
	a := n.publish(d, kind, subject, n.of(kind, subject).Raise(since, at), alarm.Notice{}, by)
	a.Text = text
	return a
}

// clear clears a notice, and adds the advisory that says so. It returns nil if the notice was not raised.
func (n *notices) clear(d *Decision, kind event.AdvisoryKind, subject string, by advised, text string) *event.Advisory {
	one := n.of(kind, subject)
	was := one.Notice
	a := n.publish(d, kind, subject, one.Clear(), was, by)
	if a != nil {
		a.Text = text
	}
	return a
}

// byResult is a change by the window of r, byCause one by what changed the alarm too.
func byResult(r *event.Result) advised {
	return advised{r.ID, r.Group, r.Machine, r.End, r.Epoch, r.Seq, r.Tool, r.Model}
}

// awake notes that a window came. It ends the silence of the machine.
func (m *Machine) awake(w Window, r *event.Result) {
	if n := m.Notices.of(event.SilenceAdvisory, ""); n != nil {
		m.Notices.clear(m.decision, event.SilenceAdvisory, "", byResult(r), fmt.Sprintf("%s: windows come again, after %v without", event.ShortName(m.Machine), w.Now.Sub(n.Since).Round(time.Second)))
	}
	m.LastWindowAt, m.waitingSince, m.askedEnd = w.Now.UTC().Round(0), w.Now, nil
}

// silent raises the silence of the machine at that time by the monitor's clock.
func (m *Machine) silent(now time.Time) {
	now = now.UTC().Round(0)
	since := m.LastWindowAt
	if since.IsZero() { // none has come
		since = m.waitingSince.UTC().Round(0)
	}
	what := "no window to judge since " + statement.Clock(since)
	if m.LastWindowAt.IsZero() && m.unjudged() && m.Notices.of(event.RefusedAdvisory, "") == nil {
		what = "no window of it has ever come"
	}
	c := m.causeWithoutWindow(fmt.Sprintf("/silence/%d", since.UnixNano()), now)
	a := m.Notices.raise(m.decision, event.SilenceAdvisory, "", since, now, m.alarms.byCause(c, m.alarms.inSpindle().tool.Name),
		fmt.Sprintf("%s: SILENT, %s: its tool is not monitored. %s", event.ShortName(m.Machine), what, m.source.whySilent(now)))
	a.ID = c.id(m.settings.Group) + "/" + string(event.Raised)
}

// rivals says whether a second ingester sends windows of the machine.
func (m *Machine) rivals(p order.Place, r *event.Result) {
	a := m.Notices.observe(m.decision, event.RivalAdvisory, "", p == order.Rival, rivalRule, r)
	if a == nil {
		return
	}
	if a.State == event.Cleared {
		a.Text = event.ShortName(m.Machine) + ": one ingester again; windows of a second one came from " + statement.Clock(a.Since) + " on"
		return
	}
	get := " get a verdict but move no alarm. Remove"
	switch {
	case m.decision.Repeat:
		get = ", which came before, are taken for repeats: a recording is sent again, or a copy of its spool. Delete the copy, or remove"
	case m.decision.Result == nil:
		get = " cannot be judged. Remove"
	}
	a.Text = event.ShortName(m.Machine) + ": TWO INGESTERS send windows of this machine; epoch " + m.Leader().ID + " is judged, windows of epoch " + r.Epoch + get +
		" the machine from one of the two configurations, or rename it there"
	m.Notices.of(event.RivalAdvisory, "").Text = a.Text
}

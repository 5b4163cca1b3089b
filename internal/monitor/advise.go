package monitor

import (
	"fmt"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/signal"
)

// notice is a condition beside the tool's alarm, see event.Advisory. Those of which
// there is nothing to remember are not kept.
type notice struct {
	Kind    event.AdvisoryKind `json:"kind"`
	Subject string             `json:"subject,omitempty"`
	Flags   signal.Quality     `json:"flags,omitempty"` // of a sensor: what was wrong since Since
	Text    string             `json:"text,omitempty"`  // of the advisory that raised it

	Channels []string `json:"channels,omitempty"` // of all sensors of one rate: their channels
	Silent   bool     `json:"silent,omitempty"`   // raised, and nobody was told: the notice of its rate says it
	alarm.Notice
}

// stands reports whether people were told of the notice, and not yet that it is over.
func (n *notice) stands() bool { return n.Raised && !n.Silent }

// The rules of notices. A Hold of a minute keeps them from chattering.
var (
	sensorRule = alarm.Hysteresis{K: 3, N: 5, Hold: time.Minute}
	clockRule  = alarm.Hysteresis{K: 1, N: 1, Hold: time.Minute} // a step is in one window only
)

// notice returns the notice of that kind and subject, or nil if there is nothing
// to remember of it.
func (m *machine) notice(kind event.AdvisoryKind, subject string) *notice {
	i := slices.IndexFunc(m.notices, func(n notice) bool { return n.Kind == kind && n.Subject == subject })
	if i < 0 {
		return nil
	}
	return &m.notices[i]
}

// advise takes what the window of r says of a condition, which is whether it is
// there, and adds an advisory to what is to be told of the window if the condition
// is raised or cleared by it under the rule. It returns that advisory, of which the
// caller sets Text, and what is of its kind; or nil. The advisory is valid until
// the next call.
//
// Windows that say nothing of the condition are not to be given.
func (m *machine) advise(kind event.AdvisoryKind, subject string, bad bool, rule alarm.Hysteresis, r *event.Result) *event.Advisory {
	n := m.notice(kind, subject)
	if n == nil {
		if !bad {
			return nil
		}
		m.notices = append(m.notices, notice{Kind: kind, Subject: subject})
		n = &m.notices[len(m.notices)-1]
	}
	was := n.Notice
	return m.tell(kind, subject, n.Observe(bad, r.Start, r.End, rule), was, advised{r.ID, r.End, r.Epoch, r.Seq, r.Tool, r.Model})
}

// advised is what made a notice change: a window, or the clock.
type advised struct {
	id    string // of the advisory, before what it is about
	at    time.Time
	epoch string
	seq   uint64
	tool  string
	model string
}

// tell adds an advisory on a change of a notice to what is to be told.
func (m *machine) tell(kind event.AdvisoryKind, subject string, change alarm.Change, was alarm.Notice, by advised) *event.Advisory {
	n := m.notice(kind, subject)
	since := n.Since
	if change == alarm.Cleared {
		since = was.Since
	}
	m.notices = slices.DeleteFunc(m.notices, func(n notice) bool { return n.Quiet() })
	if change == alarm.None {
		return nil
	}
	a := event.Advisory{
		Machine: m.name, Tool: by.tool, Kind: kind, Subject: subject, State: event.AlertState(change), Severity: "warning",
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
	m.told = append(m.told, a)
	return &m.told[len(m.told)-1]
}

// dismiss clears what was advised of the tool that is taken out.
func (m *machine) dismiss(tool string, r *event.Result) {
	for _, n := range slices.Clone(m.notices) {
		if n.Kind != event.UnknownAdvisory {
			continue // drift is of the machine
		}
		was := n.Notice
		change := m.notice(n.Kind, n.Subject).Clear()
		if a := m.tell(n.Kind, n.Subject, change, was, advised{r.ID, r.End, r.Epoch, r.Seq, tool, r.Model}); a != nil {
			a.Text = fmt.Sprintf("%s: advisory of %s is over, tool changed to %s", short(m.name), a.Since.Format(clock), orUnknown(r.Tool))
		}
	}
}

// awake takes note that a window came, at that time by the monitor's clock. It
// ends the silence of the machine.
func (m *machine) awake(now time.Time, r *event.Result) {
	if n := m.notice(event.SilenceAdvisory, ""); n != nil {
		was := n.Notice
		a := m.tell(event.SilenceAdvisory, "", n.Clear(), was, advised{r.ID, r.End, r.Epoch, r.Seq, r.Tool, r.Model})
		a.Text = fmt.Sprintf("%s: windows come again, after %v without", short(m.name), now.Sub(was.Since).Round(time.Second))
	}
	m.fed, m.patient, m.behind = now.UTC().Round(0), now, nil
}

// silent raises the silence of the machine at that time by the monitor's clock.
func (m *machine) silent(now time.Time, modelID string) {
	now = now.UTC().Round(0)
	if m.notice(event.SilenceAdvisory, "") != nil {
		return
	}
	since := m.fed
	if since.IsZero() { // an older monitor did not say
		since = m.patient.UTC().Round(0)
	}
	c := m.unbidden("", now, modelID)
	m.notices = append(m.notices, notice{Kind: event.SilenceAdvisory})
	n := &m.notices[len(m.notices)-1]
	// Whoever else says so, of the same silence, says it under this id.
	id := fmt.Sprintf("%s/silence/%d", m.name, since.UnixNano())
	a := m.tell(event.SilenceAdvisory, "", n.Raise(since, now), alarm.Notice{}, advised{id, now, c.epoch, c.seq, m.alarm.State().Tool, modelID})
	a.ID = id + "/" + string(event.Raised)
	a.Text = fmt.Sprintf("%s: SILENT, no window to judge since %s: nobody watches its tool. Look at its ingester and sensors", short(m.name), since.Format(clock))
	m.notice(event.SilenceAdvisory, "").Text = a.Text
}

package monitor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// keptRaised is how many alarms of a machine are remembered after they are over, so
// that a person can say that one was false. They are in its record.
const keptRaised = 50

// raised is an alarm that people were told of.
type raised struct {
	Incident string    `json:"incident"`
	Tool     string    `json:"tool,omitempty"`
	Since    time.Time `json:"since"`
	False    bool      `json:"false,omitempty"` // a person says so
}

// raise remembers an alarm that people are told of.
func (m *machine) raise(r raised) {
	m.raised = append(m.raised, r)
	m.raised = slices.Delete(m.raised, 0, max(0, len(m.raised)-keptRaised))
}

// past returns an alarm that people were told of; nil if it is not remembered.
func (m *machine) past(incident string) *raised {
	i := slices.IndexFunc(m.raised, func(r raised) bool { return r.Incident == incident })
	if i < 0 {
		return nil
	}
	return &m.raised[i]
}

// mark says of an alarm, which may be over, that it was false, or takes that back,
// and returns what is to be told. Its errors are as those of carryOut.
func (m *machine) mark(c event.Command, why cause) (event.Alert, error) {
	r, yes := m.past(c.Incident), c.Action == event.MarkFalse
	switch {
	case r == nil:
		return event.Alert{}, fmt.Errorf("%w: %s is none of the last %d alarms that were raised here", alarm.ErrRefused, c.Incident, keptRaised)
	case r.False && yes:
		return event.Alert{}, fmt.Errorf("%w: it is marked as false already", alarm.ErrRefused)
	case !r.False && !yes:
		return event.Alert{}, fmt.Errorf("%w: it is not marked as false", alarm.ErrRefused)
	}
	r.False = yes
	state, says := event.MarkedFalse, "marked as false"
	if !yes {
		state, says = event.UnmarkedFalse, "no longer marked as false"
	}
	a := m.alert(alarm.Change(state), m.alarm.State(), why)
	a.Incident, a.Tool, a.Since, a.Severity = r.Incident, r.Tool, r.Since, "info"
	name := short(m.name)
	if r.Tool != "" {
		name += " tool " + r.Tool
	}
	a.Text = fmt.Sprintf("%s: alarm of %s %s by %s", name, r.Since.Format("2006-01-02 "+clock), says, c.By)
	if c.Note != "" {
		a.Text += ": " + strings.TrimRight(c.Note, ".")
	}
	a.Text += "."
	return a, nil
}

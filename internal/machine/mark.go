package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/statement"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// pastAlarm is an alarm that was published as raised, and that may be closed.
type pastAlarm struct {
	Incident string    `json:"incident"`
	Tool     string    `json:"tool,omitempty"`
	Since    time.Time `json:"since"`
	False    bool      `json:"false,omitempty"` // a person says so
}

// remember remembers an alarm that is published as raised.
func (x *alarms) remember(r pastAlarm) {
	if x.state.pastAlarm(r.Incident) != nil {
		return // of a tool that has come back
	}
	x.state.Raised = append(x.state.Raised, r)
	x.state.Raised = slices.Delete(x.state.Raised, 0, max(0, len(x.state.Raised)-keptRaised))
	x.dirty.slow = true
}

// pastAlarm returns an alarm that was published as raised; nil if it is not remembered.
func (s *State) pastAlarm(incident string) *pastAlarm {
	return find(s.Raised, func(r pastAlarm) bool { return r.Incident == incident })
}

// mark says of an alarm, which may be over, that it was false, or takes that back,
// and returns the alert that says so. Its errors are sentences behind the name of the command.
func (x *alarms) mark(c *event.Command, why cause) (event.Alert, error) {
	r, yes := x.state.pastAlarm(c.Incident), c.Action == event.MarkFalse
	switch {
	case r == nil:
		return event.Alert{}, fmt.Errorf("%w: %s is none of the last %d alarms that were raised here", alarm.ErrRefused, c.Incident, keptRaised)
	case r.False && yes:
		return event.Alert{}, fmt.Errorf("%w: it is marked as false already", alarm.ErrRefused)
	case !r.False && !yes:
		return event.Alert{}, fmt.Errorf("%w: it is not marked as false", alarm.ErrRefused)
	}
	r.False = yes
	x.dirty.slow = true
	state, says := event.MarkedFalse, "marked as false"
	if !yes {
		state, says = event.UnmarkedFalse, "no longer marked as false"
	}
	b := x.inSpindle()
	a := b.other(state, why, r.Incident)
	a.Tool, a.ToolLife, a.Since, a.Severity = r.Tool, "", r.Since, "info"
	name := event.ShortName(x.state.Machine)
	if r.Tool != "" {
		name += " tool " + r.Tool
	}
	a.Text = fmt.Sprintf("%s: alarm of %s %s by %s", name, statement.Day(r.Since), says, c.By)
	if c.Note != "" {
		a.Text += ": " + strings.TrimRight(c.Note, ".")
	}
	a.Text += "."
	return a, nil
}

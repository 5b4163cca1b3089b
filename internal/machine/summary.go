package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// Summary is how a machine stands, as its records say. It needs no model.
type Summary struct {
	Machine      string
	Model        string // id of the model that judged last
	Tool         string // in the spindle
	Tools        int    // that are remembered
	Alarm        alarm.State
	Incident     string // what people call the alarm that stands; empty if none does
	Notices      []Notice
	LastWindowAt time.Time // by the monitor's clock; zero if it is not known
	FeaturesOnly bool      // of the last window in order Kafka has the features only: the gateway is in mode edge
}

// Summarise returns how a machine stands, from its records of one group. It reports
// records that no program of ours wrote.
func Summarise(records []Record) (s Summary, err error) {
	found := false
	for _, r := range records {
		switch {
		case r.Key.OfTool:
			s.Tools++
			continue
		case r.Key.Slow:
			continue
		}
		s.Machine, found = r.Key.Machine, true
		var h headRecord
		if err := json.Unmarshal(r.Value, &h); err != nil {
			return s, fmt.Errorf("machine: state of %.64q: %w", r.Key.Machine, err)
		}
		s.Model, s.Notices, s.LastWindowAt = h.Model, h.Notices, h.LastAt
		if h.Tool != nil {
			s.Alarm, s.Tool, s.Incident = h.Tool.Alarm, h.Tool.Name, h.Tool.Incident
			if n := len(h.Tool.Trace); n > 0 {
				s.FeaturesOnly = h.Tool.Trace[n-1].Offset <= InFeatures(0)
			}
		}
	}
	if !found {
		return s, errors.New("machine: no record of the machine itself")
	}
	return s, nil
}

// Stands reports whether the notice was published as raised and not yet as cleared.
func (n *Notice) Stands() bool { return n.Raised && !n.Silent }

// Shown returns the advisory that raised a notice, as far as that is remembered.
func (n *Notice) Shown(group, machine, modelID string) event.Advisory {
	a := event.Advisory{
		ID: fmt.Sprintf("%s/%s/standing/%s/%s", machine, group, n.Kind, n.Subject), Group: group, Machine: machine, Kind: n.Kind, Subject: n.Subject, State: event.Raised,
		Severity: "warning", Since: n.Since, At: n.Since, Model: modelID, Text: n.Text,
	}
	if n.Kind == event.SensorAdvisory {
		a.Channels, a.Status, a.Flags = n.Channels, n.Flags.Status(), flagNames(n.Flags)
	}
	return a
}

// Shown returns how a machine's alarm stands, as an alert without a state.
func (s *Summary) Shown(group string) event.Alert {
	a := s.Alarm
	e := event.Alert{
		ID: s.Machine + "/" + group + "/standing", Group: group, Machine: s.Machine, Tool: a.Tool, Alarm: a.Word(), Incident: s.Incident, Severity: "info",
		Since: a.Since, At: a.At, Model: s.Model,
	}
	if e.Alarm == "raised" {
		e.Severity = "warning"
	}
	name := short(s.Machine)
	if a.Tool != "" {
		name += " tool " + a.Tool
	}
	if s.Incident == "" {
		e.Since, e.Text = e.At, fmt.Sprintf("%s: no open alarm.", name)
	} else {
		e.Text = fmt.Sprintf("%s: the alarm of %s is open, %s.", name, clockTime(a.Since), a.Word())
	}
	return e
}

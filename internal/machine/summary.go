package machine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/statement"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// Summary is how a machine stands, as its records say. It needs no model.
type Summary struct {
	Machine      string
	Model        string // id of the model that judged last
	Tool         string // in the spindle
	Tools        int    // that are remembered
	Alarm        Alarm  // of the tool in the spindle
	Masks        alarm.Masks
	Magazine     []*Tool // that wait there with an open or masked alarm, in the order of the records
	Notices      []Notice
	Raised       []pastAlarm // that may still be marked as false
	LastWindowAt time.Time   // by the monitor's clock; zero if it is not known
	FeaturesOnly bool        // of the last window in order Kafka has the features only: the gateway is in mode edge
}

// Word returns the state of the alarm in the words of a result.
func (s *Summary) Word() string { return s.Alarm.Word(s.Masks) }

// Mask returns the lowest mask that is on over an alarm of the machine; nil if none is.
func (s *Summary) Mask(of *Alarm) *alarm.Mask {
	a := &of.Masks
	return cmp.Or(s.Masks.Service, a.Service, s.Masks.Suppression, a.Suppression, a.Shelf)
}

// Summarise returns how a machine stands, from its records of one group. It reports
// records that no program of ours wrote.
func Summarise(records []event.StateRecord) (s Summary, err error) {
	found := false
	err = event.CheckStateVersion(records)
	for _, r := range records {
		switch r.Key.Part {
		case event.ToolState:
			s.tool(r)
			continue
		case event.SlowState:
			var slow struct{ Raised []pastAlarm } // of slowRecord
			if json.Unmarshal(r.Value, &slow) == nil {
				s.Raised = slow.Raised
			}
			continue
		case event.ModelState:
			continue
		case event.HeadState:
		}
		s.Machine, found = r.Key.Machine, true
		if err == nil {
			err = s.head(r)
		}
	}
	if err != nil {
		return s, fmt.Errorf("machine: state of %.64q: %w", records[0].Key.Machine, err)
	}
	if !found {
		return s, errors.New("machine: no record of the machine itself")
	}
	s.Magazine = slices.DeleteFunc(s.Magazine, func(t *Tool) bool { return t.Name == s.Tool })
	return s, nil
}

// tool takes the record of a tool. One that cannot be read a monitor sets aside.
func (s *Summary) tool(r event.StateRecord) {
	s.Tools++
	if t := new(Tool); json.Unmarshal(r.Value, t) == nil && (t.Alarm.Incident != "" || t.Alarm.Masks.On()) {
		s.Magazine = append(s.Magazine, t)
	}
}

// head takes the record of the machine itself.
func (s *Summary) head(r event.StateRecord) error {
	var h headRecord
	if err := json.Unmarshal(r.Value, &h); err != nil {
		return err
	}
	s.Model, s.Notices, s.LastWindowAt, s.Masks = h.Model, h.Notices, h.LastWindowAt, h.Masks
	if h.Tool != nil {
		s.Alarm, s.Tool = h.Tool.Alarm, h.Tool.Name
		if n := len(h.Tool.Trace); n > 0 {
			s.FeaturesOnly = h.Tool.Trace[n-1].Offset.Features
		}
	}
	return nil
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
		a.Channels, a.Status, a.Flags = n.Channels, n.Flags.Status(), statement.Flags(n.Flags)
	}
	return a
}

// Shown returns how a machine's alarm stands, as an alert without a state.
func (s *Summary) Shown(group string) event.Alert {
	a := s.Alarm
	if !a.Announced { // a mask hides it, or its tool came back with it: it calls later, or ends without a word
		a = Alarm{State: alarm.State{Masks: a.Masks}}
	}
	e := event.Alert{
		ID: s.Machine + "/" + group + "/standing", Group: group, Machine: s.Machine, Tool: s.Tool, Alarm: a.Word(s.Masks), Incident: a.Incident, Severity: "info",
		Since: a.Since, At: a.At, Model: s.Model,
	}
	if e.Alarm == "raised" {
		e.Severity = "warning"
	}
	name := event.ShortName(s.Machine)
	if s.Tool != "" {
		name += " tool " + s.Tool
	}
	if a.Incident == "" {
		e.Since, e.Text = e.At, fmt.Sprintf("%s: no open alarm.", name)
	} else {
		e.Text = fmt.Sprintf("%s: the alarm of %s is open, %s.", name, statement.Clock(a.Since), e.Alarm)
	}
	return e
}

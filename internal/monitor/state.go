package monitor

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/trend"
)

// keptEpochs is how many epochs of a machine are remembered. A machine gets a
// new one when a recording is replayed again or a spool is lost.
const keptEpochs = 8

// epoch is the windows of one epoch that were judged.
type epoch struct {
	ID     string `json:"id"`
	Judged ranges `json:"judged"`
}

// state is the record of a machine on tcm.state.v1. Pending holds what was
// decided with this state and may not have been sent: whoever reads the state
// sends it again under the same ids.
type state struct {
	Machine   string             `json:"machine"`
	Model     string             `json:"model"`
	Epochs    []epoch            `json:"epochs"`          // the current one last
	Newest    time.Time          `json:"newest,omitzero"` // end of the last window that was not late
	Reference *model.Reference   `json:"reference,omitempty"`
	Cycle     *cycle.Memory      `json:"cycle,omitempty"`
	Wear      *trend.Tool        `json:"wear,omitempty"`
	Alarm     alarm.State        `json:"alarm"`
	Incident  string             `json:"incident,omitempty"`   // what people call the alarm that stands
	Raised    []raised           `json:"raised,omitempty"`     // that people were told of
	Heard     *heard             `json:"heard,omitempty"`      // commands
	Traced    string             `json:"traced,omitempty"`     // tool and epoch of the windows that follow
	Seen      []seen             `json:"seen,omitempty"`       // the last windows
	CuttingNS time.Duration      `json:"cutting_ns,omitempty"` // of the tool
	Last      time.Time          `json:"last,omitzero"`        // end of the last window of that
	Owed      []debt             `json:"owed,omitempty"`       // evidence that is to be kept
	Notices   []notice           `json:"notices,omitempty"`    // beside the alarm
	Unsure    uint64             `json:"unsure,omitempty"`     // the last windows: did the model not know them?
	Drift     *model.DriftMemory `json:"drift,omitempty"`
	Fed       time.Time          `json:"fed,omitzero"` // when a window came last, by the monitor's clock
	Pending   []pending          `json:"pending,omitempty"`
}

// headerTurn says in whose turn a record was written: whoever gets a partition
// takes a higher one than any before.
const headerTurn = "turn"

// turnOf returns the turn of a record. It reports false if there is none: then an
// older monitor wrote it, or a person.
func turnOf(record bus.Message) (turn uint64, ok bool) {
	turn, err := strconv.ParseUint(string(record.Header(headerTurn)), 10, 64)
	if err != nil || turn >= maxTurn {
		return 0, false
	}
	return turn, true
}

// maxTurn is above every turn that is taken: a greater one was written by nobody of
// ours, and nobody could take a higher one.
const maxTurn = 1 << 62

// readState returns the state in a record, and its pending messages. It reports
// a record that no monitor wrote.
func readState(record bus.Message) (st state, again []bus.Message, err error) {
	if err := json.Unmarshal(record.Value, &st); err != nil {
		return st, nil, fmt.Errorf("monitor: state of %.64q: %w", record.Key, err)
	}
	if st.Machine != record.Key || st.Machine == "" {
		return st, nil, fmt.Errorf("monitor: state of %.64q: it is of machine %.64q", record.Key, st.Machine)
	}
	for _, p := range st.Pending {
		m, err := p.message()
		if err == nil && m.Key != st.Machine {
			err = fmt.Errorf("pending message of machine %.64q", m.Key)
		}
		if err != nil {
			return st, nil, fmt.Errorf("monitor: state of %.64q: %w", record.Key, err)
		}
		again = append(again, m)
	}
	return st, again, nil
}

// restore makes m remember s. A reference that was learnt under another model
// is of other features: the tool's is then learnt anew, and so are its wear and
// where the machine is in its cycle. It reports a state that no machine can have under the model,
// which has so many features.
func (m *machine) restore(s state, by *model.Model, features int) error {
	m.epochs, m.newest = s.Epochs, s.Newest
	if s.Reference != nil && s.Model == by.ID() {
		if n := s.Reference.Features(); n != 0 && n != features {
			return fmt.Errorf("monitor: state of %.64q: %w", m.name, errors.New("its reference is not of the model's features"))
		}
		m.ref = *s.Reference
	}
	if s.Cycle != nil && s.Model == by.ID() && by.Cycle != nil {
		if err := s.Cycle.Check(by.Cycle); err != nil {
			return fmt.Errorf("monitor: state of %.64q: %w", m.name, err)
		}
		m.cycle = *s.Cycle
	}
	if s.Wear != nil && s.Model == by.ID() {
		if err := s.Wear.Check(); err != nil {
			return fmt.Errorf("monitor: state of %.64q: %w", m.name, err)
		}
		m.wear = *s.Wear
	}
	if s.Model == by.ID() {
		m.unsure = s.Unsure
	}
	if s.Drift != nil && s.Model == by.ID() && by.Drift != nil {
		if err := s.Drift.Check(by.Drift); err != nil {
			return fmt.Errorf("monitor: state of %.64q: %w", m.name, err)
		}
		m.drift = *s.Drift
	}
	for _, n := range s.Notices {
		if err := n.Check(); err != nil {
			return fmt.Errorf("monitor: state of %.64q: %s: %w", m.name, n.Kind, err)
		}
	}
	m.notices, m.fed = s.Notices, s.Fed
	if err := m.alarm.Restore(s.Alarm); err != nil {
		return fmt.Errorf("monitor: state of %.64q: %w", m.name, err)
	}
	if s.Heard != nil {
		m.heard, m.deaf = *s.Heard, s.Heard.Last
	}
	m.traced, m.seen = s.Traced, s.Seen[max(0, len(s.Seen)-event.MaxTrace):]
	m.cutting, m.last = max(s.CuttingNS, 0), s.Last
	for _, d := range s.Owed {
		if err := d.check(m.name); err != nil {
			return fmt.Errorf("monitor: state of %.64q: %w", m.name, err)
		}
	}
	m.owed = s.Owed
	m.incident = s.Incident
	m.follow(m.name + s.Alarm.At.String()) // older monitors gave alarms no name
	m.raised = s.Raised[max(0, len(s.Raised)-keptRaised):]
	if m.alarm.Stands() && !s.Alarm.Silent && m.past(m.incident) == nil { // nor remembered them
		m.raise(raised{Incident: m.incident, Tool: s.Alarm.Tool, Since: s.Alarm.Since})
	}
	return nil
}

// state returns what m remembers, with what is to be sent.
func (m *machine) state(modelID string, out []pending) state {
	s := state{Machine: m.name, Model: modelID, Epochs: m.epochs, Newest: m.newest, Alarm: m.alarm.State(), Incident: m.incident, Raised: m.raised, Notices: m.notices, Unsure: m.unsure, Fed: m.fed, Pending: out}
	if len(m.heard.IDs) > 0 {
		s.Heard = &m.heard
	}
	s.Traced, s.Seen, s.CuttingNS, s.Last, s.Owed = m.traced, m.seen, m.cutting, m.last, m.owed
	if m.ref.Windows > 0 || m.ref.Tool != "" {
		s.Reference = &m.ref
	}
	if len(m.cycle.Belief) > 0 {
		s.Cycle = &m.cycle
	}
	if m.drift.Tools > 0 {
		s.Drift = &m.drift
	}
	if m.wear.Windows > 0 {
		s.Wear = &m.wear
	}
	return s
}

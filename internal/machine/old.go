package machine

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/trend"

	"github.com/flank-tcm/flank/internal/event"
)

// oldState is the one record of a machine that programs before version 2 kept.
type oldState struct {
	Machine   string             `json:"machine"`
	Model     string             `json:"model"`
	Epochs    []Epoch            `json:"epochs"`
	Newest    time.Time          `json:"newest,omitzero"`
	Reference *model.Reference   `json:"reference,omitempty"`
	Cycle     *cycle.Memory      `json:"cycle,omitempty"`
	Wear      *trend.Tool        `json:"wear,omitempty"`
	Alarm     alarm.State        `json:"alarm"`
	Incident  string             `json:"incident,omitempty"`
	Raised    []PastAlarm        `json:"raised,omitempty"`
	Heard     *oldCommands       `json:"heard,omitempty"`
	Seen      []oldPoint         `json:"seen,omitempty"`
	CuttingNS time.Duration      `json:"cutting_ns,omitempty"`
	Last      time.Time          `json:"last,omitzero"`
	Owed      []EvidenceJob      `json:"owed,omitempty"`
	Notices   []Notice           `json:"notices,omitempty"`
	Unsure    uint64             `json:"unsure,omitempty"`
	Drift     *model.DriftMemory `json:"drift,omitempty"`
	Fed       time.Time          `json:"fed,omitzero"`
	Pending   []OldPending       `json:"pending,omitempty"`
}

type oldCommands struct {
	Commands
	Last time.Time `json:"last"` // when the last one reached Kafka
}

type oldPoint struct {
	event.Point
	Offset int64 `json:"offset"`
}

// OldPending is a message that a program before version 2 had decided and perhaps not
// sent.
type OldPending struct {
	Type string          `json:"type"` // CloudEvents type
	Body json.RawMessage `json:"body"`
}

// Pending returns the messages in a record of a program before version 2.
func Pending(record []byte) ([]OldPending, error) {
	var s struct {
		Pending []OldPending `json:"pending"`
	}
	err := json.Unmarshal(record, &s)
	return s.Pending, err
}

// loadOld makes m remember a record of a program before version 2. All of it is written
// again with the next decision.
func (m *Machine) loadOld(record []byte) error {
	var s oldState
	if err := json.Unmarshal(record, &s); err != nil {
		return err
	}
	if s.Machine != m.Machine {
		return errOfAnother(s.Machine)
	}
	m.dirty.head, m.dirty.slow = true, true
	m.Partition = -1 // it was not kept
	m.Model, m.Epochs, m.Newest, m.Notices, m.State.Evidence, m.LastWindowAt, m.Raised = s.Model, s.Epochs, s.Newest, s.Notices, s.Owed, s.Fed, s.Raised
	for i := range m.Epochs {
		m.Epochs[i].Led = true
	}
	if s.Heard != nil {
		m.Commands, m.Answered.Until = s.Heard.Commands, s.Heard.Last
	}
	if s.Drift != nil {
		m.Drift = *s.Drift
	}
	if len(s.Epochs) == 0 {
		return nil
	}
	name := s.Alarm.Tool
	t := &Tool{
		Name: name, From: -1, Reference: model.Reference{Tool: name}, Wear: trend.Tool{Name: name}, Alarm: s.Alarm, Incident: s.Incident,
		Cutting: max(s.CuttingNS, 0), CutUntil: s.Last, Unknown: s.Unsure, Drifted: s.Drift != nil && s.Drift.Tools > 0 && s.Drift.Tool == name,
		Epoch: s.Epochs[len(s.Epochs)-1].ID,
	}
	for _, p := range s.Seen[max(0, len(s.Seen)-event.MaxTrace):] {
		t.Trace = append(t.Trace, TracePoint(p))
	}
	same := m.model != nil && s.Model == m.model.model.ID()
	if s.Reference != nil && same && s.Reference.Tool == name {
		t.Reference, t.Features = *s.Reference, m.model.fingerprint()
	}
	if s.Cycle != nil && same {
		t.Cycle = *s.Cycle
	}
	if s.Wear != nil && same && s.Wear.Name == name {
		t.Wear = *s.Wear
	}
	m.Tools = []*Tool{t}
	m.dirty.tools[name] = true
	return nil
}

func errOfAnother(machine string) error {
	return fmt.Errorf("it is of machine %.64q", machine)
}

// output returns the event of a pending message. It reports false for what no program of
// ours wrote, or of another machine.
func (p OldPending) output(machine string) (Output, bool) {
	var o Output
	var err error
	var of string
	switch p.Type {
	case event.ResultType:
		o.Result = new(event.Result)
		err, of = json.Unmarshal(p.Body, o.Result), o.Result.Machine
	case event.AlertType:
		o.Alert = new(event.Alert)
		err, of = json.Unmarshal(p.Body, o.Alert), o.Alert.Machine
	case event.AdvisoryType:
		o.Advisory = new(event.Advisory)
		err, of = json.Unmarshal(p.Body, o.Advisory), o.Advisory.Machine
	case event.EvidenceType:
		o.Evidence = new(event.Evidence)
		err, of = json.Unmarshal(p.Body, o.Evidence), o.Evidence.Machine
	default:
		return o, false
	}
	return o, err == nil && of == machine
}

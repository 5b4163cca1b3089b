package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/trend"
)

// Records of version 2, of the release before: a tool had one memory, which belonged to the model that judged last, and a
// shadow was a machine of its own in a group named after its model.

// headBefore is their record of a machine itself.
type headBefore struct {
	Machine   string          `json:"machine"`
	Partition int             `json:"partition"`
	Model     string          `json:"model"`
	Layout    string          `json:"layout"`
	Epoch     *Epoch          `json:"epoch"`
	Newest    time.Time       `json:"newest"`
	Tool      *fastToolBefore `json:"tool"`
	Notices   []Notice        `json:"notices"`
	Evidence  []EvidenceJob   `json:"evidence"`
	LastAt    time.Time       `json:"last_window_at"`
}

type slowBefore struct {
	Epochs   []Epoch            `json:"epochs"`
	Drift    *model.DriftMemory `json:"drift"`
	Raised   []PastAlarm        `json:"raised"`
	Commands *Commands          `json:"commands"`
	Retired  bool               `json:"retired"`
}

type fastToolBefore struct {
	Name     string        `json:"tool"`
	Life     string        `json:"life"`
	Cycle    *cycle.Memory `json:"cycle"`
	Wear     *trend.Tool   `json:"wear"`
	Alarm    stateBefore   `json:"alarm"`
	Incident string        `json:"incident"`
	Cutting  time.Duration `json:"cutting_ns"`
	CutUntil time.Time     `json:"cut_until"`
	Unknown  uint64        `json:"unknown"`
	Epoch    string        `json:"epoch"`
	Trace    Trace         `json:"trace"`
}

type toolBefore struct {
	fastToolBefore
	Features  string           `json:"features"`
	Reference *model.Reference `json:"reference"`
	Rebuild   bool             `json:"rebuild"`
	First     FirstWindow      `json:"first"`
	Stale     bool             `json:"stale"`
	Drifted   bool             `json:"drift_seen"`
	Seen      int              `json:"seen"`
	Points    []trend.Point    `json:"points"`
}

// stateBefore is their alarm: the masks of the machine lay in the alarm of the tool in the spindle.
type stateBefore struct {
	alarm.State
	Silent bool `json:"silent"` // Raised was not announced
}

// machineBefore are the records of a machine or of a shadow of it.
type machineBefore struct {
	head  headBefore
	slow  slowBefore
	tools []toolBefore // the one in the spindle last
}

// loadBefore takes records of the release before. All of it is written again, in the form of this one.
func (m *Machine) loadBefore(records []Record) error {
	of := make(map[string][]Record) // by the model of a shadow; empty: the machine itself
	for _, r := range records {
		if r.Key.Model != "" { // of this release, before someone went back to the one before
			m.dirty.old = append(m.dirty.old, r.Key)
			continue
		}
		_, id, _ := strings.Cut(r.Key.Group, shadowSeparator)
		of[id] = append(of[id], r)
	}
	own, err := readBefore(of[""])
	if err != nil {
		return err
	}
	if own.head.Machine != m.Machine {
		return fmt.Errorf("it is of machine %.64q", own.head.Machine)
	}
	h := &own.head
	m.Model, m.Layout, m.Newest, m.Notices, m.Evidence, m.LastWindowAt = h.Model, h.Layout, h.Newest, h.Notices, h.Evidence, h.LastAt
	m.Epochs, m.Raised = own.slow.Epochs, own.slow.Raised
	if c := own.slow.Commands; c != nil {
		m.Commands = *c
	}
	if h.Epoch != nil {
		m.Epochs = append(m.Epochs, *h.Epoch)
	}
	for i := range m.Epochs {
		m.Epochs[i].Front, _ = m.Epochs[i].Judged.last()
	}
	if d := own.slow.Drift; d != nil {
		m.Drift = map[string]*model.DriftMemory{h.Model: d}
	}
	for i := range own.tools {
		m.Tools = append(m.Tools, own.tools[i].tool(m, i == len(own.tools)-1))
	}
	delete(of, "")
	for _, id := range sortedKeys(of) {
		if shadow, err := readBefore(of[id]); err == nil { // one that cannot be used begins again
			m.trialsBefore(id, shadow)
		}
		for _, r := range of[id] {
			m.dirty.old = append(m.dirty.old, r.Key)
		}
	}
	m.writeAll()
	return nil
}

// readBefore takes the records of a machine, or of a shadow.
func readBefore(records []Record) (k machineBefore, err error) {
	for _, r := range records {
		switch {
		case r.Key.Slow:
			err = json.Unmarshal(r.Value, &k.slow)
		case r.Key.OfTool:
			var t toolBefore
			if err = json.Unmarshal(r.Value, &t); err == nil && t.Name != r.Key.Tool {
				err = fmt.Errorf("the record is of tool %.64q", t.Name)
			}
			k.tools = append(k.tools, t)
		default:
			err = json.Unmarshal(r.Value, &k.head)
		}
		if err != nil {
			return k, fmt.Errorf("tool %.64q: %w", r.Key.Tool, err)
		}
	}
	slices.SortStableFunc(k.tools, func(a, b toolBefore) int { return a.Seen - b.Seen })
	in := k.head.Tool
	if in == nil {
		return k, nil
	}
	last := toolBefore{fastToolBefore: *in}
	if i := slices.IndexFunc(k.tools, func(t toolBefore) bool { return t.Name == in.Name }); i >= 0 {
		last = k.tools[i]
		last.fastToolBefore = *in
		k.tools = slices.Delete(k.tools, i, i+1)
	}
	k.tools = append(k.tools, last)
	return k, nil
}

// tool returns the tool as this release remembers it. Masks of the tool in the spindle are the machine's.
func (t *toolBefore) tool(m *Machine, inSpindle bool) *Tool {
	s := t.Alarm.State
	if inSpindle {
		m.Masks = alarm.Masks{Suppression: s.Suppression, Service: s.Service}
		s.Announced = s.Raised && !t.Alarm.Silent
	}
	s.Suppression, s.Service = nil, nil
	tool := &Tool{
		Name: t.Name, Life: t.Life, Seen: t.Seen, First: t.First, PastGone: t.First.Epoch == "", By: m.Model, Alarm: Alarm{s, t.Incident},
		Cutting: max(t.Cutting, 0), CutUntil: t.CutUntil, Epoch: t.Epoch, Trace: t.Trace,
	}
	tool.Moved = since(m.Epochs, t.First)
	if tool.Windows = 1; t.Rebuild {
		tool.By = ""
		return tool
	}
	tool.Judgings = []*Judging{t.judging(m, m.Model, tool)}
	return tool
}

// since returns the windows that came from a tool's first one on: some of these have moved it.
func since(epochs []Epoch, first FirstWindow) (moved MovedBy) {
	i := slices.IndexFunc(epochs, func(e Epoch) bool { return e.ID == first.Epoch })
	if i < 0 {
		return nil
	}
	for _, e := range epochs[i:] {
		in := movedIn{e.ID, slices.Clone(e.Judged)}
		if e.ID == first.Epoch {
			in.Seqs = slices.DeleteFunc(in.Seqs, func(v interval) bool { return v.last < first.Seq })
			if len(in.Seqs) > 0 {
				in.Seqs[0].first = max(in.Seqs[0].first, first.Seq)
			}
		}
		moved = append(moved, in)
	}
	return moved
}

// judging returns what a model knew of the tool. The one that judges has seen all of it, unless it was stale.
func (t *toolBefore) judging(m *Machine, id string, of *Tool) *Judging {
	j := &Judging{Model: id, Print: t.Features, First: of.First, Reference: model.Reference{Tool: t.Name}, Wear: trend.Tool{Name: t.Name}}
	if by := m.models.of(id); by != nil {
		j.Print = by.print // which said less before
	}
	if t.Reference != nil {
		j.Reference = *t.Reference
	}
	if t.Stale {
		return j
	}
	j.Windows, j.Judged, j.Unknown, j.Drifted = of.Windows, of.Windows, t.Unknown, t.Drifted
	if t.Cycle != nil {
		j.Cycle = *t.Cycle
	}
	if t.Wear != nil {
		j.Wear = *t.Wear
	}
	j.Wear.Points = t.Points
	return j
}

// trialsBefore adds what a shadow knew of the tools that the machine knows, too.
func (m *Machine) trialsBefore(id string, shadow machineBefore) {
	for i := range shadow.tools {
		s := &shadow.tools[i]
		k := m.indexTool(s.Name)
		if k < 0 || m.Tools[k].Life != s.Life || s.Rebuild || m.Tools[k].judging(id) != nil {
			continue
		}
		j := s.judging(m, id, m.Tools[k])
		j.Trial = &Alarm{s.Alarm.State, s.Incident}
		j.Trial.Announced = s.Alarm.Raised && !s.Alarm.Silent && i == len(shadow.tools)-1 && m.Tools[k] == m.inSpindle()
		m.Tools[k].Judgings = append(m.Tools[k].Judgings, j)
	}
}

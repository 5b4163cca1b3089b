package machine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/order"
	"github.com/flank-tcm/flank/pkg/model"
)

// headRecord is the record of the machine itself.
type headRecord struct {
	Version int `json:"version"`
	headState
	Epoch    *order.Epoch `json:"epoch,omitempty"`    // that leads
	Tool     *Tool        `json:"tool,omitempty"`     // in the spindle
	Judgings []Judging    `json:"judgings,omitempty"` // of it, without what is long: that is in their own records
}

// slowRecord is the record of what changes seldom.
type slowRecord struct {
	slowState
	Epochs []order.Epoch `json:"epochs,omitempty"` // that do not lead

	// Retired says that the machine was retired and this is its only record: a command that
	// comes again must not be carried out again once the machine has begun again.
	Retired bool `json:"retired,omitempty"`
}

// Records returns the records that changed since it was called last.
func (m *Machine) Records() (out []event.StateRecord) {
	if !m.dirty.any() {
		return nil // most machines, of every batch
	}
	head := event.StateRecord{Key: event.StateKey{Group: m.settings.Group, Machine: m.Machine}}
	if !m.gone {
		head.Value = event.JSON(m.head())
	}
	out = append(out, head)
	if m.dirty.slow {
		r := event.StateRecord{Key: head.Key, Value: event.JSON(m.slow())}
		r.Key.Part = event.SlowState
		out = append(out, r)
	}
	for _, name := range slices.Sorted(maps.Keys(m.dirty.tools)) {
		r := event.StateRecord{Key: head.Key}
		r.Key.Part, r.Key.Tool = event.ToolState, name
		if i := m.indexTool(name); i >= 0 {
			r.Value = event.JSON(m.Tools[i])
		}
		out = append(out, r)
	}
	for _, key := range slices.SortedFunc(maps.Keys(m.dirty.judgings), judgingKey.compare) {
		r := event.StateRecord{Key: head.Key}
		r.Key.Part, r.Key.Tool, r.Key.Model = event.ModelState, key.tool, key.model
		if i := m.indexTool(key.tool); i >= 0 {
			if j := m.Tools[i].judging(key.model); j != nil {
				r.Value = event.JSON(j)
			}
		}
		out = append(out, r)
	}
	m.dirty.head, m.dirty.slow = false, false
	clear(m.dirty.tools)
	clear(m.dirty.judgings)
	return out
}

func (k judgingKey) compare(o judgingKey) int {
	return cmp.Or(cmp.Compare(k.tool, o.tool), cmp.Compare(k.model, o.model))
}

func (s *State) head() headRecord {
	h := headRecord{Version: event.StateVersion, headState: s.headState, Epoch: s.Leader()}
	if t := s.inSpindle(); t != nil {
		fast := *t
		fast.First, fast.Drifted, fast.Moved = FirstWindow{}, nil, t.Moved[max(0, len(t.Moved)-1):]
		h.Tool = &fast
		for _, j := range t.Judgings {
			fast := *j
			fast.Windows, fast.Judged = j.Windows-t.Windows, j.Judged-t.Windows // most are 0
			fast.Print, fast.Takes, fast.First, fast.Reference, fast.Wear.Points = "", "", FirstWindow{}, model.Reference{}, nil
			h.Judgings = append(h.Judgings, fast)
		}
	}
	return h
}

func (m *Machine) slow() slowRecord {
	return slowRecord{slowState: m.slowState, Epochs: m.Epochs[:max(0, len(m.Epochs)-1)], Retired: m.gone}
}

// Load returns the machine of its records, at that time. It needs no model: what a model knows of a tool is looked
// at when the model is asked. It reports records that no program of ours wrote.
func Load(records []event.StateRecord, s *Settings, models *candidates, now time.Time) (*Machine, error) {
	if len(records) == 0 {
		return nil, errors.New("machine: no record")
	}
	return loadAs(records[0].Key.Machine, records[0].Key.Machine, records, s, models, now)
}

// loadAs does so for records that were kept under another name.
func loadAs(name, was string, records []event.StateRecord, s *Settings, models *candidates, now time.Time) (*Machine, error) {
	m, err := newMachine(name, s, models, func(string) *Deployment { return nil }, now)
	if err != nil {
		return nil, err
	}
	m.Machine = was
	if err := m.load(records); err != nil {
		return nil, fmt.Errorf("machine: state of %.64q: %w", name, err)
	}
	m.Machine = name
	return m, nil
}

// load takes what the group's records of the machine hold.
func (m *Machine) load(records []event.StateRecord) error {
	if err := event.CheckStateVersion(records); err != nil {
		return err
	}
	if err := m.loadKept(records); err != nil || m.gone {
		return err
	}
	if err := m.check(m.judges.models); err != nil {
		return err
	}
	m.tools.forgetOldest()
	m.Epochs = m.Epochs[max(0, len(m.Epochs)-m.settings.keptEpochs()):]
	m.Raised = m.Raised[max(0, len(m.Raised)-keptRaised):]
	m.Commands.IDs = m.Commands.IDs[max(0, len(m.Commands.IDs)-maxCommands):]
	return nil
}

func (m *Machine) loadKept(records []event.StateRecord) error {
	var head headRecord
	var slow slowRecord
	var judgings []*Judging // in the order of tools
	var of []string         // their tools
	for _, r := range records {
		var err error
		switch r.Key.Part {
		case event.SlowState:
			err = json.Unmarshal(r.Value, &slow)
		case event.ToolState:
			t := new(Tool)
			if err = json.Unmarshal(r.Value, t); err == nil && t.Name != r.Key.Tool {
				err = fmt.Errorf("the record is of tool %.64q", t.Name)
			}
			m.Tools = append(m.Tools, t)
		case event.ModelState:
			j := new(Judging)
			if err = json.Unmarshal(r.Value, j); err == nil && j.Model != r.Key.Model {
				err = fmt.Errorf("a record of model %.64q is of model %.64q", r.Key.Model, j.Model)
			}
			judgings, of = append(judgings, j), append(of, r.Key.Tool)
		case event.HeadState:
			err = json.Unmarshal(r.Value, &head)
		}
		if err != nil {
			return fmt.Errorf("tool %.64q: %w", r.Key.Tool, err)
		}
	}
	m.slowState, m.Epochs = slow.slowState, slow.Epochs
	if m.gone = slow.Retired && head.Machine == ""; m.gone {
		return nil
	}
	if head.Machine != m.Machine {
		return fmt.Errorf("it is of machine %.64q", head.Machine)
	}
	if m.headState = head.headState; head.Epoch != nil {
		m.Epochs = append(m.Epochs, *head.Epoch)
	}
	for i, j := range judgings {
		k := m.indexTool(of[i])
		if k < 0 { // the tool is gone
			m.dirty.judging(of[i], j.Model)
			continue
		}
		m.Tools[k].Judgings = append(m.Tools[k].Judgings, j)
	}
	return m.loadSpindle(&head)
}

// loadSpindle puts tools in the order in which they were in the spindle. The head record has what changes with each window of
// the one that is in it.
func (s *State) loadSpindle(head *headRecord) error {
	in := head.Tool
	if in != nil {
		i := s.indexTool(in.Name)
		if i < 0 {
			return fmt.Errorf("tool %.64q is in the spindle, and has no record", in.Name)
		}
		in.Judgings, in.First, in.Drifted, in.Moved = s.Tools[i].Judgings, s.Tools[i].First, s.Tools[i].Drifted, s.Tools[i].Moved.With(in.Moved)
		*s.Tools[i] = *in
		in = s.Tools[i]
	}
	for k := range head.Judgings {
		fast := &head.Judgings[k]
		j := (*Judging)(nil)
		if in != nil {
			j = in.judging(fast.Model)
		}
		if j == nil {
			return fmt.Errorf("model %.64q knows the tool in the spindle, and has no record", fast.Model)
		}
		fast.Windows, fast.Judged = fast.Windows+in.Windows, fast.Judged+in.Windows
		fast.Print, fast.Takes, fast.First, fast.Reference, fast.Wear.Points = j.Print, j.Takes, j.First, j.Reference, j.Wear.Points
		*j = *fast
	}
	slices.SortStableFunc(s.Tools, func(a, b *Tool) int {
		return cmp.Or(cmp.Compare(a.Seen, b.Seen), cmp.Compare(a.Name, b.Name))
	})
	if i := slices.Index(s.Tools, in); i >= 0 {
		s.Tools = append(slices.Delete(s.Tools, i, i+1), in)
	}
	for _, t := range s.Tools {
		slices.SortStableFunc(t.Judgings, func(a, b *Judging) int { return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Model, b.Model)) })
	}
	return nil
}

// check reports a state that no machine can have. What a model knows of a tool is checked if the model is known.
func (s *State) check(x *candidates) error {
	for i, t := range s.Tools {
		if err := t.check(x); err != nil {
			return fmt.Errorf("tool %.64q: %w", t.Name, err)
		}
		if slices.ContainsFunc(s.Tools[:i], func(o *Tool) bool { return o.Name == t.Name }) {
			return fmt.Errorf("tool %.64q is there twice", t.Name)
		}
	}
	if err := s.checkDrift(x); err != nil {
		return err
	}
	for i := range s.Notices {
		if err := s.Notices[i].check(); err != nil {
			return err
		}
	}
	for _, j := range s.Evidence {
		if err := j.check(s.Machine); err != nil {
			return err
		}
	}
	return nil
}

func (s *State) checkDrift(x *candidates) error {
	for id, d := range s.Drift {
		if by := x.of(id); by != nil && by.model.Drift != nil {
			if err := d.Check(by.model.Drift); err != nil {
				return err
			}
		}
	}
	return nil
}

// check reports a notice that no machine can have.
func (n *Notice) check() error {
	if err := n.Check(); err != nil {
		return fmt.Errorf("%s: %w", n.Kind, err)
	}
	if !n.Raised && (n.Kind == event.SilenceAdvisory || n.Kind == event.LossAdvisory || n.Kind == event.RefusedAdvisory || n.Kind == event.DriftAdvisory || n.Kind == event.ModelAdvisory) {
		return fmt.Errorf("%s: a notice that is kept only while it is raised, and is not", n.Kind)
	}
	return nil
}

// check reports a tool that cannot be.
func (t *Tool) check(x *candidates) error {
	if err := t.Alarm.Check(); err != nil {
		return err
	}
	if t.Windows < 0 || t.Cutting < 0 {
		return fmt.Errorf("%d windows, %v of cutting", t.Windows, t.Cutting)
	}
	for _, j := range t.Judgings {
		if err := j.check(t, x); err != nil {
			return fmt.Errorf("model %.64q: %w", j.Model, err)
		}
	}
	return nil
}

// errFeatures is returned for a reference that is not of the features of its model.
var errFeatures = errors.New("its reference is not of the model's features")

func (j *Judging) check(t *Tool, x *candidates) error {
	if j.Reference.Tool != t.Name {
		return fmt.Errorf("its reference is of tool %.64q", j.Reference.Tool)
	}
	if j.Windows < 0 {
		return fmt.Errorf("%d windows", j.Windows)
	}
	if j.Trial != nil {
		if err := j.Trial.Check(); err != nil {
			return err
		}
	}
	if err := j.Wear.Check(); err != nil {
		return err
	}
	by := x.of(j.Model)
	if by == nil {
		return nil
	}
	if n := j.Reference.Features(); n != 0 && n != len(by.judge.FeatureNames()) {
		return errFeatures
	}
	if by.model.Cycle != nil {
		return j.Cycle.Check(by.model.Cycle)
	}
	return nil
}

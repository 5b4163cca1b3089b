package machine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/trend"
)

// A machine is kept in several records of the state topic, so that a window only writes
// what it changes: the head, which changes with every window, what changes with an
// epoch or an alarm, and one record for each tool. Keys name the group, since two groups
// judge for themselves.
const (
	keySeparator = "\x1f"
	slowPart     = "slow"
	toolPart     = "tool"
)

// Key is the key of a state record, taken apart.
type Key struct {
	Group   string
	Machine string
	Slow    bool
	OfTool  bool
	Tool    string
}

// ParseKey takes the key of a state record apart. It reports false for a key that no
// program of ours makes.
func ParseKey(key string) (k Key, ok bool) {
	parts := strings.SplitN(key, keySeparator, 4) // a tool is called as its machine likes
	switch {
	case len(parts) == 1 || parts[0] == "" || parts[1] == "":
		return Key{}, false
	case len(parts) == 2:
		return Key{Group: parts[0], Machine: parts[1]}, true
	case len(parts) == 3 && parts[2] == slowPart:
		return Key{Group: parts[0], Machine: parts[1], Slow: true}, true
	case len(parts) == 4 && parts[2] == toolPart:
		return Key{Group: parts[0], Machine: parts[1], OfTool: true, Tool: parts[3]}, true
	}
	return Key{}, false
}

// String puts a key together.
func (k Key) String() string {
	s := k.Group + keySeparator + k.Machine
	switch {
	case k.Slow:
		return s + keySeparator + slowPart
	case k.OfTool:
		return s + keySeparator + toolPart + keySeparator + k.Tool
	}
	return s
}

// Record is a record of the state topic: a key, and a value that is nil to delete it. The
// partition is the machine's.
type Record struct {
	Key    Key
	Value  []byte
	Offset int64 // of one that was read
}

// Records returns the records that changed since it was called last.
func (m *Machine) Records() (out []Record) {
	if !m.dirty.head && !m.dirty.slow && len(m.dirty.tools) == 0 {
		return nil // most machines, of every batch
	}
	key := Key{Group: m.settings.Group, Machine: m.Machine}
	if m.gone {
		out = append(out, Record{Key: key})
	} else {
		out = append(out, Record{Key: key, Value: event.JSON(m.head())})
	}
	if m.dirty.slow {
		r := Record{Key: key, Value: event.JSON(m.slow())}
		r.Key.Slow = true
		out = append(out, r)
	}
	for _, name := range sortedKeys(m.dirty.tools) {
		r := Record{Key: key}
		r.Key.OfTool, r.Key.Tool = true, name
		if i := m.indexTool(name); i >= 0 {
			r.Value = event.JSON(m.Tools[i].record())
		}
		out = append(out, r)
	}
	m.dirty.head, m.dirty.slow = false, false
	clear(m.dirty.tools)
	return out
}

func (m *Machine) head() headRecord {
	h := headRecord{Version: recordVersion, Machine: m.Machine, Model: m.Model, Layout: m.Layout, Newest: m.Newest, Notices: m.Notices, Evidence: m.State.Evidence, LastAt: m.LastWindowAt}
	if n := len(m.Epochs); n > 0 {
		h.Epoch = &m.Epochs[n-1]
	}
	if t := m.inSpindle(); t != nil {
		f := t.fast()
		h.Tool = &f
	}
	return h
}

func (m *Machine) slow() slowRecord {
	s := slowRecord{Raised: m.Raised, Retired: m.gone}
	if n := len(m.Epochs); n > 1 {
		s.Epochs = m.Epochs[:n-1]
	}
	if m.Drift.Tools > 0 {
		s.Drift = &m.Drift
	}
	if len(m.Commands.IDs) > 0 {
		s.Commands = &m.Commands
	}
	return s
}

func (t *Tool) fast() fast {
	f := fast{Name: t.Name, Life: t.Life, Alarm: t.Alarm, Incident: t.Incident, Cutting: t.Cutting, CutUntil: t.CutUntil, Unknown: t.Unknown, Epoch: t.Epoch, Trace: t.Trace}
	if len(t.Cycle.Belief) > 0 {
		f.Cycle = &t.Cycle
	}
	if t.Wear.Windows > 0 {
		w := t.Wear
		w.Points = nil
		f.Wear = &w
	}
	return f
}

func (t *Tool) record() toolRecord {
	r := toolRecord{fast: t.fast(), Features: t.Features, From: t.From, Rebuild: t.Rebuild, Stale: t.Stale, Drifted: t.Drifted, Seen: t.Seen, Points: t.Wear.Points}
	if t.Reference.Windows > 0 {
		r.Reference = &t.Reference
	}
	if t.First.Epoch != "" {
		r.First = &t.First
	}
	return r
}

// restore makes t what was kept of it.
func (t *Tool) restore(f *fast) {
	t.Name, t.Life, t.Alarm, t.Incident, t.Cutting, t.CutUntil = f.Name, f.Life, f.Alarm, f.Incident, max(f.Cutting, 0), f.CutUntil
	t.Unknown, t.Epoch, t.Trace = f.Unknown, f.Epoch, f.Trace
	t.Cycle, t.Wear = cycle.Memory{}, trend.Tool{Name: f.Name}
	if f.Cycle != nil {
		t.Cycle = *f.Cycle
	}
	if f.Wear != nil {
		t.Wear = *f.Wear
	}
}

// errFeatures is returned for a reference that is not of the features it says it is of.
var errFeatures = errors.New("its reference is not of the model's features")

// Load returns the machine of its records, at that time. It reports records that no
// program of ours wrote.
func Load(records []Record, s *Settings, by *Model, now time.Time) (*Machine, error) {
	if len(records) == 0 {
		return nil, errors.New("machine: no record")
	}
	name := records[0].Key.Machine
	m, err := New(name, s, by, now)
	if err != nil {
		return nil, err
	}
	if err = m.load(records); err == nil {
		err = m.check()
	}
	if err != nil {
		return nil, fmt.Errorf("machine: state of %.64q: %w", name, err)
	}
	if by != nil {
		m.adopt()
	}
	return m, nil
}

// load takes what the group's records of the machine hold.
func (m *Machine) load(records []Record) error {
	var head headRecord
	var slow slowRecord
	var tools []*Tool
	for _, r := range records {
		var err error
		switch {
		case r.Key.Slow:
			err = json.Unmarshal(r.Value, &slow)
		case r.Key.OfTool:
			var t *Tool
			t, err = loadTool(r)
			tools = append(tools, t)
		default:
			err = json.Unmarshal(r.Value, &head)
		}
		if err != nil {
			return err
		}
	}
	if head.Version > recordVersion {
		return fmt.Errorf("it is of version %d, this program reads up to %d: use the release that wrote it, or a later one", head.Version, recordVersion)
	}
	if m.gone = slow.Retired && head.Machine == ""; m.gone {
		if slow.Commands != nil {
			m.Commands = *slow.Commands
		}
		return nil
	}
	if head.Machine != m.Machine {
		return fmt.Errorf("it is of machine %.64q", head.Machine)
	}
	m.loadTools(tools, head.Tool)
	m.Layout = head.Layout
	m.Model, m.Newest, m.Notices, m.State.Evidence, m.LastWindowAt = head.Model, head.Newest, head.Notices, head.Evidence, head.LastAt
	m.Epochs = slow.Epochs
	if head.Epoch != nil {
		m.Epochs = append(m.Epochs, *head.Epoch)
	}
	if slow.Commands != nil {
		m.Commands = *slow.Commands
	}
	if slow.Drift != nil {
		m.Drift = *slow.Drift
	}
	m.Raised = slow.Raised
	return nil
}

// loadTool returns the tool of a record.
func loadTool(r Record) (*Tool, error) {
	var t toolRecord
	if err := json.Unmarshal(r.Value, &t); err != nil {
		return nil, fmt.Errorf("tool %.64q: %w", r.Key.Tool, err)
	}
	if t.Name != r.Key.Tool {
		return nil, fmt.Errorf("tool %.64q: the record is of tool %.64q", r.Key.Tool, t.Name)
	}
	tool := &Tool{Features: t.Features, From: t.From, Rebuild: t.Rebuild, Stale: t.Stale, Drifted: t.Drifted, Seen: t.Seen}
	tool.restore(&t.fast)
	tool.Wear.Points = t.Points
	tool.Reference = model.Reference{Tool: t.Name}
	if t.Reference != nil {
		tool.Reference = *t.Reference
	}
	if t.First != nil {
		tool.First = *t.First
	}
	return tool, nil
}

// loadTools puts tools in the order in which they were in the spindle. The head record
// has the one that is in it now, nil if there is none; its own record, if there is one,
// has what changes seldom.
func (m *Machine) loadTools(tools []*Tool, inSpindle *fast) {
	slices.SortStableFunc(tools, func(a, b *Tool) int { return cmp.Or(cmp.Compare(a.Seen, b.Seen), cmp.Compare(a.Name, b.Name)) })
	if inSpindle == nil {
		m.Tools = append(m.Tools, tools...)
		return
	}
	last := &Tool{From: -1, Reference: model.Reference{Tool: inSpindle.Name}}
	for _, t := range tools {
		if t.Name == inSpindle.Name {
			last = t
		} else {
			m.Tools = append(m.Tools, t)
		}
	}
	points := last.Wear.Points
	last.restore(inSpindle)
	last.Wear.Points = points
	m.Tools = append(m.Tools, last)
}

// check reports a state that no machine can have, bounds what is remembered, and puts the alarm
// of the tool in the spindle in place.
func (m *Machine) check() error {
	same := m.model != nil && m.Model == m.model.model.ID()
	for i, t := range m.Tools {
		if err := m.checkTool(t, same); err != nil {
			return fmt.Errorf("tool %.64q: %w", t.Name, err)
		}
		if slices.ContainsFunc(m.Tools[:i], func(o *Tool) bool { return o.Name == t.Name }) {
			return fmt.Errorf("tool %.64q is there twice", t.Name)
		}
	}
	if same && m.model.model.Drift != nil {
		if err := m.Drift.Check(m.model.model.Drift); err != nil {
			return err
		}
	}
	for i := range m.Notices {
		if err := m.Notices[i].check(); err != nil {
			return err
		}
	}
	for _, j := range m.State.Evidence {
		if err := j.check(m.Machine); err != nil {
			return err
		}
	}
	m.Tools = m.Tools[max(0, len(m.Tools)-KeptTools):]
	m.Epochs = m.Epochs[max(0, len(m.Epochs)-keptEpochs):]
	m.Raised = m.Raised[max(0, len(m.Raised)-keptRaised):]
	m.Commands.IDs = m.Commands.IDs[max(0, len(m.Commands.IDs)-maxCommands):]
	return m.restoreAlarm()
}

// restoreAlarm puts the alarm of the tool in the spindle in place.
func (m *Machine) restoreAlarm() error {
	t := m.inSpindle()
	if t == nil {
		return nil
	}
	if err := m.alarm.Restore(t.Alarm); err != nil {
		return err
	}
	m.nameIncident(m.Machine + t.Alarm.At.String()) // the first releases gave alarms no name
	if m.alarm.Stands() && !t.Alarm.Silent && m.pastAlarm(t.Incident) == nil {
		m.rememberAlarm(PastAlarm{Incident: t.Incident, Tool: t.Name, Since: t.Alarm.Since})
	}
	return nil
}

// check reports a notice that no machine can have.
func (n *Notice) check() error {
	if err := n.Check(); err != nil {
		return fmt.Errorf("%s: %w", n.Kind, err)
	}
	if !n.Raised && (n.Kind == event.SilenceAdvisory || n.Kind == event.RefusedAdvisory || n.Kind == event.DriftAdvisory || n.Kind == event.ModelAdvisory) {
		return fmt.Errorf("%s: a notice that is kept only while it is raised, and is not", n.Kind)
	}
	return nil
}

// checkTool reports a tool that cannot be. If the records are of the model that judges now,
// same is true, and what depends on the model is checked, too.
func (m *Machine) checkTool(t *Tool, same bool) error {
	if err := new(alarm.Alarm).Restore(t.Alarm); err != nil {
		return err
	}
	if t.Reference.Tool != t.Name {
		return fmt.Errorf("its reference is of tool %.64q", t.Reference.Tool)
	}
	if n := t.Reference.Features(); m.model != nil && n != 0 && n != len(m.model.judge.FeatureNames()) && t.Features == m.model.fingerprint() {
		return errFeatures
	}
	if same && len(t.Cycle.Belief) > 0 && m.model.model.Cycle != nil {
		if err := t.Cycle.Check(m.model.model.Cycle); err != nil {
			return err
		}
	}
	return t.Wear.Check()
}

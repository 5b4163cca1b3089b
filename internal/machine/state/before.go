package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/order"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/trend"
)

// Records of version 2, of the release before: a tool had one memory, which belonged to the model that judged last, and a
// shadow was a machine of its own in a group named after its model. What has not changed since is passed on as it is.

// headBefore is their record of a machine itself.
type headBefore struct {
	Machine  json.RawMessage `json:"machine"`
	Model    string          `json:"model"`
	Layout   json.RawMessage `json:"layout"`
	Epoch    *order.Epoch    `json:"epoch"`
	Newest   json.RawMessage `json:"newest"`
	Tool     *fastToolBefore `json:"tool"`
	Notices  json.RawMessage `json:"notices"`
	Evidence json.RawMessage `json:"evidence"`
	LastAt   json.RawMessage `json:"last_window_at"`
}

type slowBefore struct {
	Epochs   []order.Epoch   `json:"epochs"`
	Drift    json.RawMessage `json:"drift"`
	Raised   json.RawMessage `json:"raised"`
	Commands json.RawMessage `json:"commands"`
}

type fastToolBefore struct {
	Name     string          `json:"tool"`
	Life     string          `json:"life"`
	Cycle    json.RawMessage `json:"cycle"`
	Wear     *trend.Tool     `json:"wear"`
	Alarm    alarmBefore     `json:"alarm"`
	Incident string          `json:"incident"`
	Cutting  time.Duration   `json:"cutting_ns"`
	CutUntil json.RawMessage `json:"cut_until"`
	Unknown  uint64          `json:"unknown"`
	Epoch    string          `json:"epoch"`
	Trace    json.RawMessage `json:"trace"`
}

type toolBefore struct {
	fastToolBefore
	Reference json.RawMessage `json:"reference"`
	Rebuild   bool            `json:"rebuild"`
	First     firstWindow     `json:"first"`
	Stale     bool            `json:"stale"`
	Drifted   bool            `json:"drift_seen"`
	Seen      int             `json:"seen"`
	Points    []trend.Point   `json:"points"`
}

type firstWindow struct {
	Epoch string    `json:"epoch"`
	Seq   uint64    `json:"seq"`
	At    time.Time `json:"at"`
}

// alarmBefore is their alarm: the masks of the machine lay in the alarm of the tool in the spindle.
type alarmBefore struct {
	alarm.State
	Silent bool `json:"silent"` // Raised was not announced
}

// machineBefore are the records of a machine or of a shadow of it.
type machineBefore struct {
	head  headBefore
	slow  slowBefore
	tools []toolBefore // the one in the spindle last
}

// fields are the fields of a JSON object.
type fields = map[string]any

// A tool, its alarm and what a model knows of it, as records of version 3 have them.
type (
	tool3 struct {
		Name     string          `json:"tool"`
		Life     string          `json:"life,omitempty"`
		Seen     int             `json:"seen"`
		First    firstWindow     `json:"first"`
		Drifted  []string        `json:"drift_seen,omitempty"`
		PastGone bool            `json:"past_gone,omitempty"`
		Windows  int             `json:"windows"`
		Moved    order.Windows   `json:"moved,omitempty"`
		By       string          `json:"by,omitempty"`
		Alarm    alarm3          `json:"alarm"`
		Cutting  time.Duration   `json:"cutting_ns,omitempty"`
		CutUntil json.RawMessage `json:"cut_until,omitempty"`
		Epoch    string          `json:"epoch,omitempty"`
		Trace    json.RawMessage `json:"trace,omitempty"`
	}
	alarm3 struct {
		alarm.State
		Incident string `json:"incident,omitempty"`
	}
	judging3 struct {
		Model     string          `json:"model"`
		First     firstWindow     `json:"first"`
		Judged    int             `json:"judged,omitempty"`
		Windows   int             `json:"windows,omitempty"`
		Reference json.RawMessage `json:"reference"`
		Cycle     json.RawMessage `json:"cycle,omitempty"`
		Wear      trend.Tool      `json:"wear"`
		Unknown   uint64          `json:"unknown,omitempty"`
		Trial     *alarm3         `json:"trial,omitempty"`
	}
)

// Upgrade returns records of a machine that the release before wrote, with the records of its shadows, in the form of this one, and the keys
// of records that are not needed any more. It reports records that no program of ours wrote.
func Upgrade(records []Record) (now []Record, old []Key, err error) {
	of := make(map[string][]Record) // by the model of a shadow; empty: the machine itself
	for _, r := range records {
		if r.Key.Model != "" { // of this release, before someone went back to the one before
			old = append(old, r.Key)
			continue
		}
		_, id, _ := strings.Cut(r.Key.Group, shadowSeparator)
		of[id] = append(of[id], r)
	}
	own, err := readBefore(of[""])
	if err != nil {
		return nil, nil, err
	}
	key := of[""][0].Key
	delete(of, "")
	ids, shadows := slices.Sorted(maps.Keys(of)), make(map[string]machineBefore)
	for _, id := range ids {
		shadows[id], _ = readBefore(of[id]) // one that cannot be used begins again
		for _, r := range of[id] {
			old = append(old, r.Key)
		}
	}
	h, epochs := &own.head, own.slow.Epochs
	if h.Epoch != nil {
		epochs = append(epochs, *h.Epoch)
	}
	for i := range epochs {
		epochs[i].Front, _ = epochs[i].Judged.Last()
	}
	add := func(k Key, value any) {
		k.Group, k.Machine = key.Group, key.Machine
		now = append(now, Record{Key: k, Value: event.JSON(value)})
	}
	head := fields{"version": Version, "machine": h.Machine, "model": h.Model, "layout": h.Layout, "newest": h.Newest, "notices": h.Notices, "evidence": h.Evidence, "last_window_at": h.LastAt}
	slow := fields{"raised": own.slow.Raised, "commands": own.slow.Commands, "epochs": epochs}
	if own.slow.Drift != nil {
		slow["drift"] = fields{h.Model: own.slow.Drift}
	}
	if h.Epoch != nil {
		head["epoch"], slow["epochs"] = epochs[len(epochs)-1], epochs[:len(epochs)-1]
	}
	for i := range own.tools {
		was, inSpindle := &own.tools[i], h.Tool != nil && i == len(own.tools)-1
		t := was.tool(h.Model, inSpindle)
		t.Moved = (&order.Order{Epochs: epochs}).Since(t.First.Epoch, t.First.Seq)
		if add(Key{OfTool: true, Tool: t.Name}, t); !was.Rebuild {
			add(Key{Model: h.Model, Tool: t.Name}, was.judging(h.Model, &t))
		}
		for _, id := range ids {
			if j := shadows[id].trial(id, &t, inSpindle); j != nil && (id != h.Model || was.Rebuild) {
				add(Key{Model: id, Tool: t.Name}, j)
			}
		}
		if inSpindle {
			t.Moved = nil // its own record has them
			head["tool"], head["masks"] = t, alarm.Masks{Suppression: was.Alarm.Suppression, Service: was.Alarm.Service}
		}
	}
	add(Key{Slow: true}, slow)
	add(Key{}, head)
	return now, old, nil
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
func (t *toolBefore) tool(by string, inSpindle bool) tool3 {
	if t.Rebuild {
		by = ""
	}
	s := t.Alarm.State
	s.Suppression, s.Service, s.Announced = nil, nil, s.Announced || inSpindle && s.Raised && !t.Alarm.Silent
	var drifted []string
	if t.Drifted && by != "" {
		drifted = []string{by}
	}
	return tool3{
		Name: t.Name, Life: t.Life, Seen: t.Seen, First: t.First, Drifted: drifted, PastGone: t.First.Epoch == "", Windows: 1, By: by, Alarm: alarm3{s, t.Incident},
		Cutting: max(t.Cutting, 0), CutUntil: t.CutUntil, Epoch: t.Epoch, Trace: t.Trace,
	}
}

// judging returns what a model knew of the tool. The one that judges has seen all of it, unless it was stale.
func (t *toolBefore) judging(id string, of *tool3) *judging3 {
	j := &judging3{Model: id, First: of.First, Reference: t.Reference, Wear: trend.Tool{Name: t.Name}}
	if j.Reference == nil {
		j.Reference = event.JSON(fields{"tool": t.Name})
	}
	if t.Stale {
		return j
	}
	j.Windows, j.Judged, j.Unknown, j.Cycle = of.Windows, of.Windows, t.Unknown, t.Cycle
	if t.Wear != nil {
		j.Wear = *t.Wear
	}
	j.Wear.Points = t.Points
	return j
}

// trial returns what a shadow knew of a tool that the machine knows, too; nil: nothing.
func (k machineBefore) trial(id string, of *tool3, inSpindle bool) *judging3 {
	i := slices.IndexFunc(k.tools, func(t toolBefore) bool { return t.Name == of.Name && t.Life == of.Life && !t.Rebuild })
	if i < 0 {
		return nil
	}
	s := &k.tools[i]
	j := s.judging(id, of)
	j.Trial = &alarm3{s.Alarm.State, s.Incident}
	j.Trial.Announced = s.Alarm.Raised && !s.Alarm.Silent && i == len(k.tools)-1 && inSpindle
	return j
}

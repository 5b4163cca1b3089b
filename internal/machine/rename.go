package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// Moved returns a state record for another partition than it lies in: without the offsets of
// windows, which are of the partition that it leaves. What would be read again from there is
// read from the oldest window. It reports a record that no program of ours wrote.
func Moved(r Record) (Record, error) {
	switch {
	case r.Value == nil || r.Key.Slow:
	case r.Key.OfTool:
		var t toolRecord
		if err := json.Unmarshal(r.Value, &t); err != nil {
			return Record{}, err
		}
		t.From = -1
		t.Trace.forgetOffsets()
		r.Value = event.JSON(t)
	default:
		var h headRecord
		if err := json.Unmarshal(r.Value, &h); err != nil {
			return Record{}, err
		}
		h.forgetOffsets()
		r.Value = event.JSON(h)
	}
	return r, nil
}

func (h *headRecord) forgetOffsets() {
	if h.Tool != nil {
		h.Tool.Trace.forgetOffsets()
	}
	for i := range h.Evidence {
		h.Evidence[i].Offset = oldest(h.Evidence[i].Offset)
	}
}

func (t Trace) forgetOffsets() {
	for i := range t {
		t[i].Offset = oldest(t[i].Offset)
	}
}

// oldest returns the least offset in the topic that an offset is of, see InFeatures.
func oldest(offset int64) int64 {
	if offset < -1 {
		return InFeatures(0)
	}
	return 0
}

// Renamed returns the state records of a machine under another name, for a command
// that renames it. Offsets and evidence that is not written yet are of the old name's
// windows, and left out. It reports records that no program of ours wrote.
func Renamed(records []event.Kept, group, was, name string) ([]Record, error) {
	var out []Record
	for _, r := range records {
		k, ok := ParseKey(r.Key)
		if !ok || k.Machine != was || k.Group != group {
			return nil, fmt.Errorf("state record %q is not of machine %.64q and group %s", r.Key, was, group)
		}
		k.Machine = name
		moved, err := Moved(Record{Key: k, Value: r.Value})
		if err != nil {
			return nil, err
		}
		if !k.Slow && !k.OfTool {
			var h headRecord
			if err := json.Unmarshal(moved.Value, &h); err != nil {
				return nil, err
			}
			h.Machine, h.Evidence, h.Epoch, h.Newest = name, nil, nil, time.Time{}
			moved.Value = event.JSON(h)
		}
		out = append(out, moved)
	}
	if len(out) == 0 {
		return nil, errors.New("no state record")
	}
	return out, nil
}

// rename makes a machine of which nothing is known go on with what was remembered of
// another name. It returns the machine, or why not.
func (o *Owner) rename(c Command, e *event.Command, now time.Time) (*Machine, Decision, error) {
	var d Decision
	records, err := Renamed(e.State, o.settings.Group, e.Was, e.Machine)
	if err != nil {
		return nil, d, err
	}
	m, err := Load(records, o.settings, o.loadedBy(c.Key, records), now)
	if err != nil {
		return nil, d, err
	}
	m.Epochs, m.Notices = nil, nil // ingesters of the new name have epochs of their own, and advisories ended with the old one
	m.writeAll()
	m.decision = &d
	defer func() { m.decision = nil }()
	why := m.causeWithoutWindow(fmt.Sprintf("%s/%s/command/%s", m.Machine, m.settings.Group, e.ID), c.At)
	why.by, why.note, why.action = e.By, e.Note, e.ID
	was, t := m.alarm.State(), m.inSpindle()
	var left alarm.State
	if t != nil { // its alarm was cleared under the old name, and is raised again below
		_, left = m.alarm.TakeOut()
	}
	a := m.alert(alarm.Change(event.Renamed), was, why)
	a.Incident, a.Was = "", e.Was
	a.Text = fmt.Sprintf("%s: renamed from %s by %s; it goes on with what is remembered of %d tools.", short(m.Machine), e.Was, e.By, len(m.Tools))
	d.Alerts = append(d.Alerts, a)
	if t != nil {
		why.reason, why.tool, why.action = "tool_back", t.Name, e.ID
		d.Alerts = append(d.Alerts, m.report(m.alarm.PutIn(t.Name, left), alarm.State{Tool: t.Name, Since: left.Since}, why)...)
		t.Alarm = m.alarm.State()
	}
	m.Commands.note(e.ID, c.At)
	return m, d, nil
}

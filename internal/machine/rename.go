package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// nowhere is the partition of the records that a rename carries. No topic has so many.
const nowhere = math.MaxInt32

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
		if k.Machine = name; !k.Slow && !k.OfTool {
			var h headRecord
			if err := json.Unmarshal(r.Value, &h); err != nil {
				return nil, err
			}
			h.Machine, h.Partition, h.Evidence, h.Epoch, h.Newest = name, nowhere, nil, nil, time.Time{}
			r.Value = event.JSON(h)
		}
		out = append(out, Record{Key: k, Value: r.Value})
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
	m.moveTo(o.partition)
	m.Past = nil // partitions of the old name hold no windows of the new one
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

package machine

import (
	"fmt"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// rename makes a machine of which nothing is known go on with what was remembered of
// another name. Evidence that is not written yet and the offsets of windows are of the old name, and left out. It returns the
// machine, or why not.
func (o *Owner) rename(c Command, e *event.Command, now time.Time) (*Machine, Decision, error) {
	var d Decision
	records, err := event.RenamedState(e.State, o.settings.Group, e.Was, e.Machine)
	if err != nil {
		return nil, d, err
	}
	m, err := o.load(c.Key, e.Was, records, now)
	if err != nil {
		return nil, d, err
	}
	m.Epochs, m.Notices, m.Unjudged, m.Evidence, m.Newest, m.Unnamed = nil, nil, 0, nil, time.Time{}, 0 // ingesters of the new name have epochs of their own, and advisories ended with the old one
	for _, t := range m.Tools {
		t.PastGone = true // no windows from before lie under the new name
		for i := range t.Trace {
			t.Trace[i].Offset.At = 0
		}
		for _, j := range t.Judgings {
			if j.Trial != nil {
				j.Trial.Announced, j.Trial.Called = false, time.Time{}
			}
		}
		t.Alarm.Announced, t.Alarm.Called = false, time.Time{} // it was cleared under the old name, and is raised again below
	}
	m.dirty.all(m.Tools)
	m.alarms.expire(c.At)
	why := m.causeWithoutWindow("/command/"+e.ID, c.At)
	why.by, why.note, why.action = e.By, e.Note, e.ID
	b, renamed := m.alarms.inSpindle(), why
	renamed.word = m.wordWithoutTool() // no alarm has been announced under the name
	a := b.other(event.Renamed, renamed, "")
	a.Was = e.Was
	a.Text = fmt.Sprintf("%s: renamed from %s by %s; it goes on with what is remembered of %d tools.", event.ShortName(m.Machine), e.Was, e.By, len(m.Tools))
	b.publish([]event.Alert{a})
	why.reason, why.tool = "tool_back", b.tool.Name
	m.alarms.announceAll(b.tool, why)
	m.Commands.note(e.ID, c.At)
	return m, m.decision.take(), nil
}

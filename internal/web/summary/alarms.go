package summary

import (
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// ToolAlarm is how the alarm of a tool stood last.
type ToolAlarm struct {
	Tool     string    `json:"tool"`
	Incident string    `json:"incident,omitempty"` // empty: it is over
	Alarm    string    `json:"alarm,omitempty"`    // its state, in the words of a result
	Since    time.Time `json:"since,omitzero"`     // start of the first faulty window that led to it
	At       time.Time `json:"at"`                 // when Kafka got the message that says so
}

// ToolAlarms are the alarms of a machine's tools, as results and alerts tell of them: of tools that
// had one, the one that changed last at the end. Messages may come again and in any order: of two
// of a tool, the one that Kafka got later holds. An alarm that someone acknowledges under a mask in the magazine, and that
// has ended so, counts as open until the mask ends: the alert does not tell.
type ToolAlarms []ToolAlarm

const maxToolAlarms = 64 // monitors remember as many tools

// Result takes what a result says that Kafka got at a time.
func (all *ToolAlarms) Result(r *event.Result, at time.Time) {
	of := slices.IndexFunc(*all, func(t ToolAlarm) bool { return r.Incident != "" && t.Incident == r.Incident })
	if !r.Late && !r.Between() && (of < 0 || (*all)[of].Tool == r.Tool) { // else it is not of the tool in the spindle, of whose alarm it tells
		all.put(ToolAlarm{Tool: r.Tool, Incident: r.Incident, Alarm: r.Alarm, At: at})
	}
}

// Alert takes what an alert says that Kafka got at a time.
func (all *ToolAlarms) Alert(a *event.Alert, at time.Time) {
	if mask := maskOf[a.State]; mask != "" && !a.Magazine { // it was perhaps the machine's, over all tools
		for i := range *all {
			if t := &(*all)[i]; t.Alarm == mask && t.At.Before(at) {
				t.Alarm = "raised"
			}
		}
	}
	is := ToolAlarm{Tool: a.Tool, Incident: a.Incident, Alarm: a.Alarm, Since: a.Since, At: at}
	switch {
	case a.State == event.ToolIsNew:
		is.Incident = ""
	case a.State.Marks(), a.State == event.Refused, a.Incident == "":
		return
	case a.Reason == "tool_change": // the alert says how the machine's alarm is now, not the tool's
		if is.Alarm = "raised"; all.of(a.Tool).Incident == a.Incident {
			is.Alarm = all.of(a.Tool).Alarm
		}
	case a.Alarm == "normal":
		is.Incident = ""
	}
	all.put(is)
}

// maskOf has the mask that ends, in the words of a result.
var maskOf = map[event.AlertState]string{event.Unsuppressed: "suppressed", event.BackInService: "out_of_service"}

func (all ToolAlarms) of(tool string) ToolAlarm {
	if i := all.index(tool); i >= 0 {
		return all[i]
	}
	return ToolAlarm{}
}

func (all ToolAlarms) index(tool string) int {
	return slices.IndexFunc(all, func(t ToolAlarm) bool { return t.Tool == tool })
}

func (t ToolAlarm) same(as ToolAlarm) bool {
	return t.Incident == as.Incident && t.Alarm == as.Alarm && t.Since.Equal(as.Since)
}

// put takes how the alarm of a tool is, unless something later is known of it.
func (all *ToolAlarms) put(is ToolAlarm) {
	i := all.index(is.Tool)
	if i >= 0 && is.Incident != "" && is.Incident == (*all)[i].Incident && (*all)[i].Since.IsZero() {
		(*all)[i].Since = is.Since // results, which may be read before older alerts, do not say it
	}
	if i < 0 && is.Incident == "" || i >= 0 && is.At.Before((*all)[i].At) {
		return
	}
	if i >= 0 {
		was := (*all)[i]
		if is.Incident == was.Incident && is.Since.IsZero() {
			is.Since = was.Since
		}
		if is.same(was) {
			(*all)[i].At = is.At
			return
		}
		*all = slices.Delete(*all, i, i+1)
	}
	if is.Incident == "" {
		is.Alarm, is.Since = "", time.Time{}
	}
	*all = append(*all, is)
	*all = slices.Delete(*all, 0, max(0, len(*all)-maxToolAlarms))
}

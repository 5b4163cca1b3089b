package summary

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// The alarms of a machine's tools after results and alerts, in the order in which Kafka got them and
// in the other one, and after a restart.
func TestToolAlarms(t *testing.T) {
	const a, b = "A-22222222", "A-33333333"
	said := func(tool, incident, alarm string) *event.Result {
		r := result("m", 0, event.Healthy)
		r.Tool, r.Incident, r.Alarm = tool, incident, alarm
		return r
	}
	alert := func(tool, incident string, state event.AlertState, alarm, reason string, magazine bool) *event.Alert {
		return &event.Alert{Machine: "m", Tool: tool, Incident: incident, State: state, Alarm: alarm, Reason: reason, Magazine: magazine, Since: t0}
	}
	out := []any{alert("T1", a, event.Raised, "raised", "", false), said("T1", a, "raised"), alert("T1", a, event.Cleared, "normal", "tool_change", false), said("T2", "", "normal")}
	between := func(incident string, verdict event.Verdict, reason string) *event.Result {
		r := said("", incident, "raised")
		r.Verdict, r.Unknown = verdict, reason
		return r
	}
	late := said("T2", a, "raised")
	late.Late = true
	for name, c := range map[string]struct {
		then []any
		want string
	}{
		"in the magazine":                {nil, "T1 A-22222222 raised"},
		"acknowledged there":             {[]any{alert("T1", a, event.Acknowledged, "acknowledged", "", true)}, "T1 A-22222222 acknowledged"},
		"acknowledged and over":          {[]any{alert("T1", a, event.Acknowledged, "normal", "", true)}, ""},
		"shelved there":                  {[]any{alert("T1", a, event.Shelved, "shelved", "", true)}, "T1 A-22222222 shelved"},
		"the shelf has ended":            {[]any{alert("T1", a, event.Shelved, "shelved", "", true), alert("T1", a, event.Unshelved, "raised", "", true)}, "T1 A-22222222 raised"},
		"declared new":                   {[]any{alert("T1", "", event.ToolIsNew, "normal", "", false)}, ""},
		"back, not announced, and gone":  {[]any{said("T1", a, "raised"), said("T2", "", "normal")}, "T1 A-22222222 raised"},
		"over while it was back":         {[]any{said("T1", a, "acknowledged"), said("T1", "", "normal"), said("T2", "", "normal")}, ""},
		"the machine's mask has ended":   {[]any{said("T1", a, "suppressed"), said("T2", "", "suppressed"), alert("T2", "", event.Unsuppressed, "normal", "", false)}, "T1 A-22222222 raised"},
		"two tools":                      {[]any{alert("T2", b, event.Raised, "raised", "", false), said("T2", b, "raised"), said("T3", "", "normal")}, "T1 A-22222222 raised; T2 A-33333333 raised"},
		"a refused command and a mark":   {[]any{alert("T2", "", event.Refused, "normal", "", false), alert("T1", a, event.MarkedFalse, "normal", "", false)}, "T1 A-22222222 raised"},
		"another tool's late window":     {[]any{late}, "T1 A-22222222 raised"},
		"windows between tools":          {[]any{between(b, event.Unknown, event.NoTool), between(b, event.NotCutting, ""), between(b, event.SensorFault, "")}, "T1 A-22222222 raised"},
		"a tool without a name":          {[]any{said("", b, "raised"), between("", event.Unknown, event.NoTool), said("T2", "", "normal")}, " A-33333333 raised; T1 A-22222222 raised"},
		"another tool's first windows":   {[]any{said("T1", a, "raised"), said("T3", a, "raised")}, "T1 A-22222222 raised"},
		"it left before the topic began": {[]any{alert("T9", b, event.Cleared, "normal", "tool_change", false)}, "T1 A-22222222 raised; T9 A-33333333 raised"},
	} {
		t.Run(name, func(t *testing.T) {
			var msgs []Message
			for i, e := range append(slices.Clone(out), c.then...) {
				m := Message{At: t0.Add(time.Duration(i) * time.Second), Offset: int64(i)}
				switch e := e.(type) {
				case *event.Result:
					r := *e
					r.Seq, m.Result = uint64(i), &r
				case *event.Alert:
					x := *e
					x.ID, m.Alert = fmt.Sprint(i), &x
				}
				msgs = append(msgs, m)
			}
			s := open(t, t.TempDir())
			put(t, s, "topic", msgs...)
			var again ToolAlarms
			for _, of := range [][]Message{msgs, msgs[len(out)/2:], msgs} {
				for _, m := range of {
					again.take(&m)
				}
			}
			var after ToolAlarms
			for _, results := range []bool{true, false} {
				for _, m := range msgs {
					if results == (m.Result != nil) {
						after.take(&m)
					}
				}
			}
			all, err := s.Machines()
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			for how, got := range map[string]ToolAlarms{"kept": all[0].Alarms, "when messages come again": again, "alerts after results": after} {
				var open []string
				for _, x := range got {
					if x.Incident != "" {
						open = append(open, fmt.Sprintf("%s %s %s", x.Tool, x.Incident, x.Alarm))
					}
					if x.Incident != "" && x.Tool != "" && !x.Since.Equal(t0) {
						t.Errorf("%s: since %v", how, x.Since)
					}
				}
				if slices.Sort(open); strings.Join(open, "; ") != c.want {
					t.Errorf("%s: %q, want %q", how, open, c.want)
				}
			}
		})
	}
}

func (all *ToolAlarms) take(m *Message) {
	if m.Result != nil {
		all.Result(m.Result, m.At)
	} else {
		all.Alert(m.Alert, m.At)
	}
}

// The memory for alarms of tools has an end.
func TestToolAlarmsAreBounded(t *testing.T) {
	var all ToolAlarms
	for i := range 100 {
		all.Alert(&event.Alert{Tool: fmt.Sprint("T", i), Incident: fmt.Sprint("A-", i), State: event.Raised, Alarm: "raised"}, t0.Add(time.Duration(i)*time.Second))
	}
	if len(all) != maxToolAlarms || all[0].Tool != "T36" {
		t.Errorf("%d alarms, the first one of %s", len(all), all[0].Tool)
	}
}

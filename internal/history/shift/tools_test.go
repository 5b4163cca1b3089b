package shift

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// Windows between cycles that name no tool change none; a tool that is declared new under its name is another one.
func TestToolsOfAReport(t *testing.T) {
	r := New(config(t))
	for seq, c := range []struct {
		tool, life, why string
		v               event.Verdict
	}{
		{"", "", "", event.NotCutting}, {"T1", "", "", event.Healthy}, {"", "", event.NoTool, event.Unknown}, {"", "", "", event.NotCutting}, {"T1", "", "", event.Healthy},
		{"T1", "new", "", event.Learning}, {"", "", "", event.SensorFault}, {"T1", "new", "", event.Healthy}, {"T2", "", "", event.Healthy},
	} {
		e := result(seq, c.tool, c.v)
		e.ToolLife, e.Unknown = c.life, c.why
		r.Result(e)
	}
	var got []string
	for _, tool := range r.Finish()[0].Tools {
		got = append(got, tool.Tool+" "+tool.To.Sub(tool.From).String())
	}
	if want := "T1 4s, T1 3s, T2 1s"; strings.Join(got, ", ") != want {
		t.Errorf("%s, want %s", strings.Join(got, ", "), want)
	}
}

// Each change of an alarm and of a mask counts for the tool that it names, also in the magazine.
func TestAlarmsOfTools(t *testing.T) {
	for name, tc := range map[string]struct {
		script string // minute:tool:state:incident
		want   string
	}{
		"acknowledged in the magazine": {"1:T1:raised:A-1 2:T1:tool_change:A-1 3:T2:raised:A-2 5:T1:acknowledged:A-1", "2 alarms, 1 open, acknowledged 1 in 240 s, 0 false"},
		"while no other one is open":   {"1:T1:raised:A-1 2:T1:tool_change:A-1 5:T1:acknowledged:A-1", "1 alarms, 0 open, acknowledged 1 in 240 s, 0 false"},
		"of the week before":           {"3:T2:raised:A-2 5:T1:acknowledged:A-1", "1 alarms, 1 open, acknowledged 0 in 0 s, 0 false"},
		"back, false, and not": {"1:T1:raised:A-1 2:T1:tool_change:A-1 3:T1:raised:A-1 4:T1:acknowledged_false:A-1 9:T1:unmarked_false:A-1",
			"2 alarms, 0 open, acknowledged 1 in 60 s, 0 false"},
		"shelves of two tools":      {"0:T1:shelved: 9:T2:shelved: 12:T2:unshelved: 20:T1:unshelved:", "masked 1200 s"},
		"one after the other":       {"0:T1:shelved: 9:T2:shelved: 12:T1:unshelved: 20:T2:unshelved: 30:T1:shelved: 31:T1:unshelved:", "masked 1260 s"},
		"of all tools":              {"0:T1:suppressed: 10:T2:unsuppressed:", "masked 600 s"},
		"declared new":              {"0:T1:shelved: 5:T2:tool_is_new: 10:T1:tool_is_new:", "masked 600 s"},
		"a machine, a tool not new": {"0:T1:out_of_service: 5:T1:tool_is_new: 10:T1:in_service:", "masked 600 s"},
	} {
		r := New(config(t))
		for id, step := range strings.Fields(tc.script) {
			f := strings.Split(step, ":")
			a := alert(id, event.AlertState(f[2]), 0)
			fmt.Sscan(f[0], &id)
			a.At, a.Tool, a.Incident, a.Reason = six.Add(time.Duration(id)*time.Minute), f[1], f[3], ""
			switch f[2] {
			case "tool_change":
				a.State, a.Reason = event.Cleared, "tool_change"
			case "acknowledged_false":
				a.State, a.FalseAlarm = event.Acknowledged, true
			}
			r.Alert(a)
		}
		m := r.Finish()[0]
		sum := m.Total()
		got := fmt.Sprintf("%d alarms, %d open, acknowledged %d in %v s, %d false", sum.Alarms, m.Open, sum.Acknowledged, sum.AckTotal, sum.False)
		if sum.Alarms == 0 {
			got = fmt.Sprintf("masked %v s", sum.Shelved+sum.Suppressed+sum.OutOfService)
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/model"
)

// What an alert carries of the window that decided: the state, the time in the
// cut, the reasons, and a trace that ends with it.
func TestAlertCarriesItsReasons(t *testing.T) {
	b := newBench(t, machinetest.Cycling(t))
	var all []event.Alert
	seq := uint64(0)
	for range 70 { // longer than a trace
		all = append(all, b.window(at(seq, "T1", false)).Alerts...)
		seq++
	}
	b.window(machinetest.Idle(seq, "T1"))
	for range 2 {
		seq++
		all = append(all, b.window(at(seq, "T1", true)).Alerts...)
	}
	all = append(all, b.window(at(seq+1, "T2", false)).Alerts...)
	if len(all) != 2 {
		t.Fatalf("%d alerts", len(all))
	}
	for _, a := range all {
		if a.CuttingSeconds != 72 {
			t.Errorf("%s after %v s of cutting", a.State, a.CuttingSeconds)
		}
	}
	a := all[0]
	if a.CuttingState != "drilling" || len(a.Trace) != event.MaxTrace || a.Trace[event.MaxTrace-1].Seq != seq || a.Trace[event.MaxTrace-1].Score != a.Score {
		t.Errorf("%s after %d windows", a.CuttingState, len(a.Trace))
	}
	if w := a.Trace[event.MaxTrace-3]; w.Verdict != event.NotCutting || w.Score != 0 {
		t.Errorf("the idle window is %+v", w)
	}
	r := a.Reasons
	if r == nil || r.Total <= 0 || r.Base >= r.Total || len(r.Channels) != 1 || r.Channels[0] != (event.ChannelReason{Channel: "force", Share: 1}) {
		t.Fatalf("%+v", r)
	}
	if f := r.Features[0]; f.Feature != "force" || f.Unit != "N" || *f.Value != 20 || !(*f.Usual > 9 && *f.Usual < 15) {
		t.Errorf("%s", event.JSON(f))
	}
	if cleared := all[1]; cleared.Reasons != nil || cleared.Trace != nil {
		t.Errorf("%s", event.JSON(cleared))
	}
	b.window(at(seq+2, "T2", false))
	if tool := b.m.inSpindle(); len(tool.Trace) != 2 || tool.Cutting.Seconds() != 2 {
		t.Errorf("of the next tool %d windows are in the trace, %v cut", len(tool.Trace), tool.Cutting)
	}
}

// What a new tool may not end is to be looked at, in the word of the model's labels: when the alarm is raised, and when the shelf that hid
// it ends in a monitor that was started again. An alarm that is over does not say it.
func TestAlertFollowsTheStatesWord(t *testing.T) {
	for finding, want := range map[string]string{"chatter": "Look at it before the next part: chatter.", "": "Change the tool before the next part."} {
		m := *machinetest.OneValue(t)
		if finding != "" {
			m.Label.Findings = []string{"", finding}
		}
		b := newBench(t, &m)
		b.window(at(0, "T1", false))
		b.command(event.Command{ID: "c", Action: event.Shelve, Note: "test piece", Until: noon.Add(time.Hour)}, noon)
		for seq, faulty := range []bool{false, true, true} {
			b.window(at(uint64(seq+1), "T1", faulty))
		}
		b.restart()
		hidden := b.apply(Tick{Now: noon.Add(time.Hour + time.Minute)}).Alerts
		cleared := b.window(at(4, "T2", false)).Alerts
		var raised []event.Alert
		for seq := uint64(5); len(raised) == 0; seq++ {
			raised = b.window(at(seq, "T2", seq > 6)).Alerts
		}
		for _, a := range []event.Alert{hidden[1], raised[0]} {
			if a.State != event.Raised || a.Finding != finding || !strings.HasSuffix(a.Text, want) {
				t.Errorf("%q: %s", finding, event.JSON(a))
			}
		}
		if cleared[0].State != event.Cleared || cleared[0].Finding != "" {
			t.Errorf("%q: %s", finding, event.JSON(cleared))
		}
	}
}

// An alert that is not of the open alarm, or of another one, does not say what is to be looked at.
func TestFindingIsOfTheAlarm(t *testing.T) {
	m := *machinetest.OneValue(t)
	m.Label.Findings = []string{"", "chatter"}
	b := newBench(t, &m)
	seq, closed := b.wear("T1", 0)
	_, open := b.wear("T2", seq)
	for i, tc := range []struct {
		command event.Command
		finding string
	}{
		{event.Command{Action: event.MarkFalse, Incident: closed}, ""},
		{event.Command{Action: event.MarkFalse, Incident: open}, "chatter"},
		{event.Command{Action: event.Unshelve}, "chatter"}, // refused
		{event.Command{Action: event.NewTool, Tool: "T1"}, ""},
		{event.Command{Action: event.Retire}, ""},
	} {
		tc.command.ID, tc.command.Issued = fmt.Sprint(i), noon
		alerts := b.command(tc.command, noon).Alerts
		if a := alerts[len(alerts)-1]; a.Finding != tc.finding || (a.Incident == open) != (tc.finding != "") {
			t.Errorf("%s: %s", tc.command.Action, event.JSON(a))
		}
	}
}

// By a model that has seen no worn tool an alarm says that the tool is different, in words of its own, before and after a restart; results
// say by how much. It does not say worn.
func TestAlertOfTheFirstDay(t *testing.T) {
	b := newBench(t, machinetest.FirstDay(t))
	var raised []event.Alert
	for seq := range uint64(9) {
		d := b.window(at(seq, "T1", seq > 3))
		if r := d.Result; seq < 2 && r.Level != 0 || seq >= 2 && (r.Level > 1.6) != (r.Class == model.Different) || (r.Verdict == event.Faulty) != (r.Class == model.Different) {
			t.Errorf("window %d: %s", seq, event.JSON(r))
		}
		raised = append(raised, d.Alerts...)
	}
	if len(raised) != 1 {
		t.Fatalf("%d alerts", len(raised))
	}
	a := raised[0]
	if a.Class != event.Different || a.Finding != model.NoWornTool || strings.Contains(a.Text, "FAULTY") || strings.Contains(a.Text, "Change the tool") ||
		!strings.Contains(a.Text, "DIFFERENT FROM BEFORE since") || !(a.Level > 1.6) || !strings.Contains(a.Text, fmt.Sprintf("%.2f-fold", a.Level)) || !strings.HasSuffix(a.Text, "Look at it before the next part: "+model.NoWornTool+".") {
		t.Errorf("%s", event.JSON(a))
	}
	b.restart()
	acked := b.command(event.Command{ID: "c", Action: event.Acknowledge, Incident: a.Incident, By: "anna"}, noon).Alerts
	if len(acked) != 1 || acked[0].Class != model.Different {
		t.Errorf("%s", event.JSON(acked))
	}
}

// What calls says why: an alarm that is raised, and one that is there again. One that returns does not.
func TestWhatCallsSaysWhy(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	seq, _ := b.wear("T1", 0)
	var said []string
	for _, faulty := range []bool{false, false, false, true, true, true} {
		for _, a := range b.window(at(seq, "T1", faulty)).Alerts {
			said = append(said, fmt.Sprint(a.State, " ", a.Reasons != nil, len(a.Trace) > 0))
		}
		seq++
	}
	wantStrings(t, "alerts", said, []string{"returned false false", "reactivated true true"})
}

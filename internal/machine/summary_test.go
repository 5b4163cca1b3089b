package machine

import (
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/machine/machinetest"
)

// A route that starts while an alarm is silent, because its tool came back within re_alarm, does not show it as open: it calls later, or
// its tool leaves without a word. A listing names the open alarm of a tool in the magazine.
func TestSummaryOfSilentAlarm(t *testing.T) {
	a := machinetest.OneValue(t)
	set := testAlarm
	set.ReAlarm = 10 * time.Minute
	p := newPlant(t, fleetOf(&Deployment{Champion: a, Alarm: set}, a))
	sum := func() *Summary {
		t.Helper()
		s, err := Summarise(p.stored())
		if err != nil {
			t.Fatal(err)
		}
		return &s
	}
	seq := p.run(0, 5, "T1", false)
	seq = p.run(seq, 8, "T1", true)
	incident := p.alerts[0].Incident
	if e := sum().Shown(group); e.Alarm != "raised" || e.Incident != incident || e.Severity != "warning" {
		t.Errorf("raised: %+v", e)
	}
	seq = p.run(seq, 1, "T2", false)
	s := sum()
	if e := s.Shown(group); e.Alarm != "normal" || len(s.Magazine) != 1 || s.Magazine[0].Name != "T1" || s.Magazine[0].Alarm.Word(s.Masks) != "raised" {
		t.Errorf("in the magazine: %+v, %+v", e, s.Magazine)
	}
	seq = p.run(seq, 1, "T1", true)
	if s = sum(); len(s.Magazine) != 0 {
		t.Errorf("in the spindle: %+v", s.Magazine)
	}
	if e := s.Shown(group); e.Alarm != "normal" || e.Incident != "" || e.Severity != "info" {
		t.Errorf("silent: %+v", e)
	}
	p.sent += 600 // seconds
	p.run(seq, 1, "T1", true)
	if e := sum().Shown(group); e.Alarm != "raised" || e.Incident != incident {
		t.Errorf("it calls again: %+v", e)
	}
	wantStrings(t, "alerts", states(p.alerts), []string{"raised", "cleared tool_change", "raised tool_back"})
}

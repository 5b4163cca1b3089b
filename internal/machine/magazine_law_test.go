package machine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/internal/web/summary"
)

// Pages learn of open alarms in the magazine from results and alerts, a listing from the records:
// both name the same tools, alarms and states. No one acknowledges under a mask here: the alert does not say whether
// the alarm has ended then.
func TestPagesKnowTheMagazine(t *testing.T) {
	a := machinetest.OneValue(t)
	rapid.Check(t, func(t *rapid.T) {
		set := testAlarm
		set.Latch, set.ReAlarm = rapid.Bool().Draw(t, "latch"), time.Duration(rapid.IntRange(0, 20).Draw(t, "re_alarm"))*time.Second
		p := newPlant(t, fleetOf(&Deployment{Champion: a, Alarm: set}, a))
		var page summary.ToolAlarms
		answers := []event.Action{event.NewTool, event.MarkFalse, event.Acknowledge}
		if rapid.Bool().Draw(t, "masks") {
			answers = append(answers[:2], event.Shelve, event.Unshelve)
		}
		seq, results, alerts := uint64(0), 0, 0
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
			case what < 6:
				tool := rapid.SampledFrom([]string{"T1", "T2", "T3"}).Draw(t, "tool")
				seq = p.run(seq, rapid.IntRange(1, 6).Draw(t, "windows"), tool, rapid.Bool().Draw(t, "faulty"))
			case seq == 0 || len(p.alerts) == 0:
			default:
				of := rapid.SampledFrom(p.alerts).Draw(t, "of")
				c := event.Command{ID: fmt.Sprint("c", p.commanded), Action: rapid.SampledFrom(answers).Draw(t, "action"), Incident: of.Incident, Note: "note"}
				switch c.Action {
				case event.NewTool:
					c.Tool, c.Incident = of.Tool, ""
				case event.Shelve:
					c.Until = p.now().Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "minutes")) * time.Minute)
				}
				p.command(c)
			}
			at := p.now()
			for ; results < len(p.results); results++ {
				page.Result(&p.results[results], at)
			}
			for ; alerts < len(p.alerts); alerts++ {
				page.Alert(&p.alerts[alerts], at)
			}
			if seq == 0 {
				continue
			}
			s, err := Summarise(p.stored())
			if err != nil {
				t.Fatal(err)
			}
			var want, got []string
			for _, m := range s.Magazine {
				if m.Alarm.Incident != "" {
					want = append(want, m.Name+" "+m.Alarm.Incident+" "+m.Alarm.Word(s.Masks))
				}
			}
			for _, x := range page {
				if x.Incident != "" && x.Tool != s.Tool {
					got = append(got, x.Tool+" "+x.Incident+" "+x.Alarm)
				}
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("a page has %q in the magazine, the records have %q; alerts %v", got, want, states(p.alerts))
			}
		}
	})
}

package machine

import (
	"testing"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// A shadow that says what the champion says has the champion's alarm, window by window: it has the alarm settings of the
// deployment, also those that were changed while it judged, and not the settings of the monitor.
func TestShadowHasTheAlarmOfTheChampion(t *testing.T) {
	a, same := machinetest.OneValue(t), machinetest.OneValue(t)
	same.Provenance.Seed = 7
	if _, err := same.Encode(); err != nil {
		t.Fatal(err)
	}
	deployment := func(set alarm.Settings) Fleet {
		return fleetOf(&Deployment{Champion: a, Shadows: []Shadow{{Model: same}}, Alarm: set}, a, same)
	}
	p := newPlant(t, deployment(alarm.Settings{K: 4, N: 6}))
	seq := p.run(0, 4, "T1", false)
	seq = p.run(seq, 6, "T1", true)
	p.deploy(deployment(alarm.Settings{K: 5, N: 5, Threshold: 0.6}))
	seq = p.run(seq, 8, "T1", false)
	p.restart()
	p.run(seq, 8, "T1", true)
	says := p.shadows[event.ShadowGroup(group, same.ID())]
	if len(says) != len(p.results) {
		t.Fatalf("%d results of the shadow, want %d", len(says), len(p.results))
	}
	raised := 0
	for i, r := range p.results {
		if s := says[i]; s.Alarm != r.Alarm || s.Verdict != r.Verdict || s.Threshold != r.Threshold {
			t.Errorf("window %d: %s\nthe champion: %s", r.Seq, event.JSON(s), event.JSON(r))
		}
		if r.Alarm == "raised" {
			raised++
		}
	}
	if raised != 3+4+4 { // from the fourth of six faulty windows on, until five are healthy, and from the fifth of eight on
		t.Errorf("the alarm is raised for %d windows", raised)
	}
}

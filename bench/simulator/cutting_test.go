package main

import (
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
)

// The states of simulated machines are found right in 99 of 100 windows, of tools
// that they were not learnt from, and every change of state within two windows.
// docs/figures/simulator.md has the figures of more tools and longer holes.
func TestStatesOfTheSimulatedDrill(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("takes a minute with the race detector, and starts nothing of its own")
	}
	s := cuttingStudy{Seed: 1, Tools: 6}
	m, err := s.learn(t.Context(), train.Schedule{Life: 45 * time.Second, Hole: 10 * time.Second, Pause: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []train.Schedule{{Life: 35 * time.Second, Hole: 10 * time.Second, Pause: 3 * time.Second}, {Life: 30 * time.Second, Hole: 15 * time.Second, Pause: 16 * time.Second}} {
		r, err := s.row(t.Context(), m, by)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %+v", by, r)
		if r.Windows < 200 || r.Changes < 50 {
			t.Errorf("%s: only %d windows, %d changes", by, r.Windows, r.Changes)
		}
		if r.Right*100 < 99*r.Windows {
			t.Errorf("%s: %d of %d windows right", by, r.Right, r.Windows)
		}
		if r.Missed > 0 {
			t.Errorf("%s: %d of %d changes are more than two windows off", by, r.Missed, r.Changes)
		}
		if r.States.Wrongly+r.States.Lost > r.Gate.Wrongly+r.Gate.Lost {
			t.Errorf("%s: the states tell drilling worse than the gate: %+v, %+v", by, r.States, r.Gate)
		}
	}
}

func TestCompareStates(t *testing.T) {
	const i, e, d, r = cycle.Idle, cycle.Entry, cycle.Drilling, cycle.Retract
	truth := []cycle.State{i, i, i, e, d, d, d, d, d, r, i, i}
	for why, tc := range map[string]struct {
		found  []cycle.State
		right  int
		within [3]int
		missed int
	}{
		"all right":         {truth, 12, [3]int{4, 0, 0}, 0},
		"entry is too long": {[]cycle.State{i, i, i, e, e, d, d, d, d, r, i, i}, 11, [3]int{3, 1, 0}, 0},
		"too soon":          {[]cycle.State{i, i, e, d, d, d, d, d, d, r, i, i}, 10, [3]int{2, 2, 0}, 0},
		"retract is missed": {[]cycle.State{i, i, i, e, d, d, d, d, d, i, i, i}, 11, [3]int{2, 1, 0}, 1},
		"lost":              {[]cycle.State{i, i, i, i, i, i, i, i, i, i, i, i}, 5, [3]int{0, 0, 0}, 4},
	} {
		var row cuttingRow
		row.compare(truth, tc.found, make([]bool, len(truth)))
		if row.Windows != 12 || row.Changes != 4 || row.Right != tc.right || row.Within != tc.within || row.Missed != tc.missed {
			t.Errorf("%s: %+v, want %d right, %v, %d missed", why, row, tc.right, tc.within, tc.missed)
		}
	}
}

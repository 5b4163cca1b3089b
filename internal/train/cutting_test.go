package train

import (
	"testing"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
)

// The states of simulated machines are told right in 99 of 100 windows, of tools
// that they were not learnt from, and every change of state within two windows.
// docs/simulator.md has the figures of more tools and longer holes.
func TestStatesOfTheSimulatedDrill(t *testing.T) {
	if raceDetector {
		t.Skip("takes a minute with the race detector, and starts nothing of its own")
	}
	s := CuttingStudy{Seed: 1, Tools: 6}
	m, _, err := s.observe(t.Context(), 1, Schedule{45 * time.Second, historyHole, historyPause}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m.Cycle == nil {
		t.Fatal("no states are learnt")
	}
	for _, by := range []Schedule{{35 * time.Second, historyHole, historyPause}, {30 * time.Second, 15 * time.Second, 16 * time.Second}} {
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
			t.Errorf("%s: drilling is told by the states worse than by the gate: %+v, %+v", by, r.States, r.Gate)
		}
	}
}

func TestCompareStates(t *testing.T) {
	const i, e, d, r = cycle.Idle, cycle.Entry, cycle.Drilling, cycle.Retract
	truth := []cycle.State{i, i, i, e, d, d, d, d, d, r, i, i}
	for why, tc := range map[string]struct {
		told   []cycle.State
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
		var row CuttingRow
		row.compare(truth, tc.told)
		if row.Windows != 12 || row.Changes != 4 || row.Right != tc.right || row.Within != tc.within || row.Missed != tc.missed {
			t.Errorf("%s: %+v, want %d right, %v, %d missed", why, row, tc.right, tc.within, tc.missed)
		}
	}
}

// Windows that do not follow one another are apart in what is learnt from, and
// sensors with a fault are missing.
func TestTracks(t *testing.T) {
	_, m, _ := mustRows(t, func() Job {
		j := drillJob(t, "interpolate", nil, drillInput(newDrill(drillLayout(t), "m", "T1", drillStart, 3)))
		j.Config.Gate = "off"
		j.Wear = append(j.Wear, atEnd("T1", drillStart, 3, 300, ""))
		return j
	}())
	_, m.Cycle = cuttingOf(m)
	n := m.Cycle.Frames * len(m.Cycle.Inputs)
	window := func(machine, tool string, second int, faults ...signal.Quality) observed {
		o := observed{machine: machine}
		o.Tool, o.Start, o.Quality = tool, drillStart.Add(time.Duration(second)*time.Second), make([]signal.Quality, 2)
		o.Frames = make([]float32, n)
		copy(o.Quality, faults)
		return o
	}
	found := [][]observed{
		{window("m", "T1", 0), window("m", "T1", 1), window("m", "T1", 3), window("m", "T2", 4), window("n", "T2", 5), {machine: "n"}},
		{window("n", "T2", 6, 0, signal.Flatline), window("n", "T2", 7, signal.Dropout)},
	}
	var lengths []int
	tracks := tracksOf(m, found)
	for _, x := range tracks {
		lengths = append(lengths, len(x)/n)
	}
	if got, want := lengths, []int{2, 1, 1, 1, 2}; len(got) != len(want) || got[0] != 2 || got[1] != 1 || got[4] != 2 {
		t.Errorf("tracks of %v windows, want %v", got, want)
	}
	missing := 0
	for _, v := range tracks[4] {
		if v != v {
			missing++
		}
	}
	if want := 2 * m.Cycle.Frames; missing != want {
		t.Errorf("%d measures are missing, want %d", missing, want)
	}
}

package train

import (
	"testing"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

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

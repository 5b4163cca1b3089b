package gateway

import (
	"cmp"
	"time"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/sim"
)

// Simulation says what the simulated gun drill does. It cuts short holes.
type Simulation struct {
	Machine string
	Start   time.Time     // sensor time of the first sample; tools are named after it
	Seed    uint64        // of everything drawn at random
	Life    time.Duration // mean cutting time of a tool
	Used    float64       // share of its life that the first tool has behind it
	Change  time.Duration // for which the machine stands until a tool at the end of its life is changed
	Tools   int           // drilled one after the other; 0 means about as many as a year holds
}

const (
	simulatedHole  = 10 * time.Second
	simulatedPause = 3 * time.Second
	manyTools      = 400_000
)

// Simulated returns a source that drills with one tool after the other. The tools are
// of the kinds of the experiment and in its order, and each is a piece of its own.
func Simulated(s Simulation) (source.Source, error) {
	start := s.Start.UTC().Truncate(time.Second)
	kinds := sim.Tools(s.Seed, s.Life)
	kinds[0].Used = s.Used
	return sim.New(sim.Settings{
		Machine: s.Machine, Start: start, Seed: s.Seed, Tools: kinds, Count: cmp.Or(s.Tools, manyTools),
		// By the second: tools of another start are other tools, with a reference of their own.
		Prefix: "T" + start.Format("150405"),
		Hole:   simulatedHole, Pause: simulatedPause, Change: s.Change,
	})
}

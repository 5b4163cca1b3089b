package gateway

import (
	"fmt"
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
	if s.Tools == 0 {
		s.Tools = manyTools
	}
	start := s.Start.UTC().Truncate(time.Second)
	kinds := sim.Tools(s.Seed, s.Life)
	tools := make([]sim.Tool, s.Tools)
	for i := range tools {
		tools[i] = kinds[i%len(kinds)]
		// By the second: tools of another start are other tools, with a reference of their own.
		tools[i].Name = fmt.Sprintf("T%s-%02d", start.Format("150405"), i+1)
		tools[i].Seed += uint64(i/len(kinds)) << 32
	}
	return sim.New(sim.Settings{Machine: s.Machine, Start: start, Seed: s.Seed, Tools: tools, Hole: simulatedHole, Pause: simulatedPause, Change: s.Change})
}

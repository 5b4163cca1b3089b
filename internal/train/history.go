package train

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/internal/wear"
	"github.com/flank-tcm/flank/pkg/signal"
)

// The simulated history cuts short holes and wears its tools fast: what takes a
// plant weeks is to be there in a minute.
const (
	historyLife      = 60 * time.Second // mean cutting time of a tool
	historyHole      = 10 * time.Second
	historyPause     = 3 * time.Second
	historyReference = 6 // windows: a tool lives a minute
)

// SimulatedHistory returns the job of drilling the lives of the experiment's 20
// tools on the simulated gun drill and training a model from them. Labels are
// the wear that the simulator knows of every window: its tools live for six
// holes only, between which a microscope's look would tell too little. It is for
// trying Flank out: what such a model knows, it knows of the simulator.
func SimulatedHistory(machine string, seed uint64) Job {
	return simulatedHistory(machine, seed, sim.Tools(seed, historyLife), false)
}

// simulatedHistory is SimulatedHistory of the given tools. With a microscope,
// labels are what it sees after each hole.
func simulatedHistory(machine string, seed uint64, tools []sim.Tool, microscope bool) Job {
	c := DefaultConfig()
	c.Seed = seed
	c.Reference.Windows = historyReference
	c.Evaluate = Evaluate{ByTool: "off"} // takes longer than a newcomer waits
	c.Costs.Folds = 5                    // as do ten
	j := Job{Config: c, Layout: signal.GunDrill()}
	for _, t := range tools {
		j.Inputs = append(j.Inputs, simulatedLife(machine, t, seed, microscope, shortCycles))
	}
	return j
}

func simulatedLife(machine string, t sim.Tool, seed uint64, microscope bool, by Schedule) Input {
	settings := sim.Settings{
		Machine: machine, Start: time.Date(2026, 1, 5, 6, 0, 0, 0, time.UTC), Seed: seed,
		Tools: []sim.Tool{t}, Hole: by.Hole, Pause: by.Pause,
	}
	var d *sim.Drill
	in := Input{
		Name:    t.Name,
		SHA256:  fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%+v", settings))),
		Windows: int((t.Life + t.Life/max(by.Hole, historyHole)*by.Pause) / time.Second),
		Open: func() (_ source.Source, err error) {
			d, err = sim.New(settings)
			return d, err
		},
	}
	if microscope {
		in.Wear = func() []wear.Measurement {
			var ms []wear.Measurement
			for _, m := range d.Measurements() {
				ms = append(ms, wear.Measurement(m))
			}
			return ms
		}
	}
	return in
}

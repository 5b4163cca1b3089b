package train

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/signal"
)

// HistorySchedule is the schedule of SimulatedHistory. It has short holes, and tools wear fast: a
// person who tries Flank out waits a minute for what takes a plant weeks.
var HistorySchedule = Schedule{Life: 60 * time.Second, Hole: 10 * time.Second, Pause: 3 * time.Second}

const historyReference = 6 // windows: a tool lives a minute

// Schedule says how a simulated machine drills.
type Schedule struct {
	Life  time.Duration // mean cutting time of a tool
	Hole  time.Duration // cutting time of a hole; 0: of 50 mm at the tool's feed
	Pause time.Duration // between two holes
}

// String returns the schedule in words.
func (s Schedule) String() string {
	hole := "50 mm at the tool's feed"
	if s.Hole > 0 {
		hole = "holes of " + s.Hole.String()
	}
	return hole + ", pauses of " + s.Pause.String()
}

// Simulation says how recordings of the simulated gun drill are made.
type Simulation struct {
	Machine    string
	Seed       uint64
	Microscope bool // labels are what a microscope sees after each hole, not the simulator's own wear
	Schedule   Schedule
}

// SimulatedHistory returns the job of drilling the lives of the experiment's 20
// tools on the simulated gun drill and training a model from them. Labels are
// the wear that the simulator knows of every window: its tools live for six
// holes only, between which a microscope's look would tell too little. It is for
// trying Flank out: what such a model knows, it knows of the simulator.
func SimulatedHistory(machine string, seed uint64) Job {
	return Simulation{Machine: machine, Seed: seed, Schedule: HistorySchedule}.Job(sim.Tools(seed, HistorySchedule.Life))
}

// Job returns the job of training a model from the lives of the given tools, with the
// configuration of SimulatedHistory.
func (s Simulation) Job(tools []sim.Tool) Job {
	c := DefaultConfig()
	c.Seed = s.Seed
	c.Reference.Windows = historyReference
	c.Evaluate = Evaluate{ByTool: "off"} // takes longer than a newcomer waits
	c.Costs.Folds = 5                    // as do ten
	j := Job{Config: c, Layout: signal.GunDrill()}
	for _, t := range tools {
		j.Inputs = append(j.Inputs, s.life(t))
	}
	return j
}

// life returns the recording of a tool's life.
func (s Simulation) life(t sim.Tool) Input {
	settings := sim.Settings{
		Machine: s.Machine, Start: time.Date(2026, 1, 5, 6, 0, 0, 0, time.UTC), Seed: s.Seed,
		Tools: []sim.Tool{t}, Hole: s.Schedule.Hole, Pause: s.Schedule.Pause,
	}
	var d *sim.Drill
	in := Input{
		Name:    t.Name,
		SHA256:  fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%+v", settings))),
		Windows: int((t.Life + t.Life/max(s.Schedule.Hole, HistorySchedule.Hole)*s.Schedule.Pause) / time.Second),
		Open: func() (_ source.Source, err error) {
			d, err = sim.New(settings)
			return d, err
		},
	}
	if s.Microscope {
		in.Wear = func() []wear.Measurement {
			var ms []wear.Measurement
			for _, m := range d.Measurements() {
				ms = append(ms, wear.Measurement{Machine: m.Machine, Tool: m.Tool, Hole: m.Hole, Time: m.Time, VBMeanUM: m.VBMeanUM, VBMaxUM: m.VBMaxUM, State: m.State})
			}
			return ms
		}
	}
	return in
}

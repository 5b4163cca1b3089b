package main

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/signal"
)

// What changes in a year.
const (
	walk         = 0.06 // standard deviation of a month's change of the logarithm of a sensor's gain
	remounted    = 4    // month in which one accelerometer of each third machine is mounted again
	remountedTo  = 0.5  // its gain then
	otherSteel   = 6    // month from which on the odd machines drill another material
	steelForce   = 1.4  // thrust and torque of it
	steelSpeed   = 1100 // rev/min
	steelFeedUM  = 24   // per revolution
	steelLife    = 0.8  // of the life in the first material
	regrindFrom  = 3    // month from which on tools come back reground
	regrindEvery = 3    // one tool of so many is reground
)

type plan struct {
	machine string
	tool    sim.Tool
	seed    uint64
	start   time.Time
	gains   []sim.Fault // of the machine's sensors in this month
	looks   looks
	drill   *sim.Drill
}

// looks says when a microscope sees the tool.
type looks int

const (
	never looks = iota
	atTheEnd
	afterEachHole
)

type fleet struct {
	size
	rng  *rand.Rand
	gain [][]float64 // logarithms, by machine and sensor
}

func newFleet(z size) *fleet {
	f := &fleet{size: z, rng: rand.New(rand.NewPCG(seed, 0x79656172))}
	for range z.machines {
		f.gain = append(f.gain, make([]float64, len(sensors())))
	}
	return f
}

// sensors returns the channels of each sensor of the gun drill: four accelerometers of three axes,
// and the dynamometer.
func sensors() (all [][]string) {
	for i, c := range signal.GunDrill().Channels() {
		if i < 12 && i%3 > 0 {
			all[len(all)-1] = append(all[len(all)-1], c.Name)
		} else {
			all = append(all, []string{c.Name})
		}
	}
	return all
}

// plans returns the tools of a month; of month 0 those that the first model learns from.
func (f *fleet) plans(month int) (all []*plan) {
	for i := range f.machines {
		kinds := sim.Tools(f.rng.Uint64(), train.HistorySchedule.Life)
		f.drift(i, month)
		for n := range f.tools {
			if month == 0 && len(all) == f.first {
				return all
			}
			p := &plan{
				machine: fmt.Sprintf("acme/spore/bay2/line1/m%02d", i+1), tool: kinds[f.rng.IntN(len(kinds))], seed: f.rng.Uint64(),
				start: time.Date(2026, time.Month(month), 5, 6+n, 0, 0, 0, time.UTC), gains: f.faults(i, month),
			}
			p.tool.Name = fmt.Sprintf("M%02d-%02d%c", i+1, month, 'a'+n)
			f.change(p, i, month)
			switch {
			case month == 0:
				p.looks = afterEachHole
			case f.rng.IntN(measured) == 0:
				p.looks = atTheEnd
			}
			all = append(all, p)
		}
	}
	return all
}

// change makes the tool one of its month.
func (f *fleet) change(p *plan, machine, month int) {
	if month >= otherSteel && machine%2 == 1 {
		p.tool.SpeedRPM, p.tool.FeedUM = steelSpeed, steelFeedUM
		p.tool.Life = time.Duration(steelLife * float64(p.tool.Life)).Round(time.Second)
	}
	if month >= regrindFrom && f.rng.IntN(regrindEvery) == 0 { // it is shorter and thinner
		p.tool.Geometry = "1380mm_N8_R9"
		p.tool.DiameterMM -= 0.05
	}
}

func (f *fleet) drift(machine, month int) {
	for s := range f.gain[machine] {
		f.gain[machine][s] += walk * f.rng.NormFloat64()
	}
	if month == remounted && machine%3 == 0 {
		f.gain[machine][1] += math.Log(remountedTo)
	}
}

func (f *fleet) faults(machine, month int) (all []sim.Fault) {
	for s, channels := range sensors() {
		g := math.Exp(f.gain[machine][s])
		if month >= otherSteel && machine%2 == 1 && len(channels) == 1 {
			g *= steelForce
		}
		for _, c := range channels {
			all = append(all, sim.Fault{Kind: sim.Gain, Channel: c, Size: g})
		}
	}
	return all
}

func (p *plan) input() train.Input {
	s := sim.Settings{Machine: p.machine, Start: p.start, Seed: p.seed, Tools: []sim.Tool{p.tool}, Hole: train.HistorySchedule.Hole, Pause: train.HistorySchedule.Pause}
	return train.Input{
		Name: p.tool.Name, SHA256: fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%+v%v", s, p.gains))),
		Open: func() (_ source.Source, err error) {
			if p.drill, err = sim.New(s); err != nil {
				return nil, err
			}
			return sim.WithFaults(p.drill, p.gains)
		},
	}
}

// measurements returns what the trainer will hear of the tool; nil if nothing.
func (p *plan) measurements() (all []wear.Measurement) {
	if p.looks == never {
		return nil
	}
	for _, m := range p.drill.Measurements() {
		of := wear.Measurement{Machine: p.machine, Tool: m.Tool, Time: m.Time, VBMeanUM: m.VBMeanUM, VBMaxUM: m.VBMaxUM}
		if m.State == sim.Chipped || m.State == sim.Broken { // what else it is the wear says
			of.State = m.State
		}
		all = append(all, of)
	}
	if p.looks == atTheEnd {
		all = all[len(all)-1:]
	}
	return all
}

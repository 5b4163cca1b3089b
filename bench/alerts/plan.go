package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/pkg/signal"
)

// stay is a tool's time in the machine.
type stay struct {
	tool  sim.Tool
	holes int // after which it is taken out in good time; 0: at the end of its life
}

// plan is what happens to one machine.
type plan struct {
	name   string // of the machine
	seed   uint64
	stays  []stay
	hole   time.Duration // drilling time of a hole; 0: of 50 mm at the tool's feed
	pause  time.Duration // between two holes
	faults []sim.Fault   // of sensors
}

// begin is when every plan does.
var begin = time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)

// open returns the machine as a source.
func (p *plan) open() (source.Source, error) {
	l := &line{plan: p, start: begin}
	if err := l.change(); err != nil {
		return nil, err
	}
	return sim.WithFaults(l, p.faults)
}

// line is a machine in which one tool follows the other. A tool that is taken out in
// good time is taken out before a hole.
type line struct {
	plan  *plan
	next  int // stay that comes next
	start time.Time
	drill *sim.Drill
	hole  string
	holes int // that the tool at hand has begun
}

// change puts the next tool in. It returns io.EOF after the last.
func (l *line) change() (err error) {
	if l.next == len(l.plan.stays) {
		return io.EOF
	}
	l.drill, err = sim.New(sim.Settings{
		Machine: l.plan.name, Start: l.start, Seed: l.plan.seed, Tools: []sim.Tool{l.plan.stays[l.next].tool}, Hole: l.plan.hole, Pause: l.plan.pause,
	})
	l.next++
	l.hole, l.holes = "", 0
	return err
}

func (l *line) Layout() *signal.Layout { return signal.GunDrill() }

func (l *line) Next(ctx context.Context) (*source.Block, error) {
	for {
		b, err := l.drill.Next(ctx)
		if err == nil && b.Group == 0 {
			if b.Hole != l.hole {
				l.hole = b.Hole
				l.holes++
			}
			if most := l.plan.stays[l.next-1].holes; most > 0 && l.holes > most {
				err = io.EOF
			} else {
				l.start = b.Time.Add(time.Second) // a block of a drill is one
			}
		}
		if errors.Is(err, io.EOF) {
			if err = l.change(); err == nil {
				continue
			}
		}
		return b, err
	}
}

// size is how much is simulated.
type size struct {
	shift                        time.Duration // length of the shift
	healthyTools                 time.Duration // cutting with tools that are fit, on several machines
	failingTools, failingSensors int           // more than in the shift
	life                         time.Duration // of a tool, cutting
	hole                         time.Duration // drilling time of a hole; 0: of 50 mm at the tool's feed
}

// full is what docs/figures/alerts.md is about: tools live as long as the paper's, for
// some ten holes of two minutes. Quick is the same in small.
var (
	full  = size{shift: 8 * time.Hour, healthyTools: 24 * time.Hour, failingTools: 20, failingSensors: 200, life: 22 * time.Minute}
	quick = size{shift: time.Hour, failingTools: 20, failingSensors: 40, life: 165 * time.Second, hole: 24 * time.Second}
)

// fit is the share of its life after which a tool is taken out in good time.
const fit = 0.7

// tool returns a tool of the experiment with a life and an end of its own.
func tool(n int, seed uint64, end string, life time.Duration) sim.Tool {
	kinds := sim.Tools(seed+uint64(n), life)
	t := kinds[n%len(kinds)]
	t.Name, t.End, t.Life = fmt.Sprintf("T%03d", n+1), end, life
	return t
}

// drilling returns how long a hole takes a tool.
func (p *plan) drilling(t sim.Tool) time.Duration {
	return cmp.Or(p.hole, time.Duration(50/(t.FeedUM/1000*t.SpeedRPM)*float64(time.Minute)))
}

// healthy returns tool n, to be taken out in good time, and how long it stays and cuts.
func (p *plan) healthy(n int, life time.Duration) (s stay, stays, cuts time.Duration) {
	s.tool = tool(n, p.seed, sim.Worn, life)
	hole := p.drilling(s.tool)
	s.holes = max(1, int(fit*life.Seconds()/hole.Seconds()))
	return s, time.Duration(s.holes) * (hole + p.pause), time.Duration(s.holes) * hole
}

// shift returns a machine's shift: tools that are taken out in
// good time, and among them three that wear out, chip and break; and five sensors that fail,
// each for a minute and in its own way.
func shift(seed uint64, z size) *plan {
	p := &plan{name: "acme/spore/bay2/line1/usk25", seed: seed, hole: z.hole, pause: 17 * time.Second}
	length := z.shift
	ends := []string{sim.Worn, sim.Chipped, sim.Broken}
	var now time.Duration
	for n := 0; now < length; n++ {
		if k := len(ends); k > 0 && now > length*time.Duration(4-k)/4-z.life {
			t := tool(n, seed, ends[0], z.life)
			p.stays = append(p.stays, stay{tool: t})
			now += z.life + z.life/p.drilling(t)*p.pause
			ends = ends[1:]
			continue
		}
		s, stays, _ := p.healthy(n, z.life)
		p.stays = append(p.stays, s)
		now += stays
	}
	for i, f := range []sim.Fault{
		{Kind: sim.Flatline, Channel: "ch07"}, {Kind: sim.Dropout, Channel: "ch02"}, {Kind: sim.Clipping, Channel: "ch11"},
		{Kind: sim.NonFinite, Channel: "torque"}, {Kind: sim.ClockDrift, Channel: "ch01"},
	} {
		// Between the tools that fail: while the clock of all accelerations is wrong no tool is judged.
		f.From, f.For = time.Duration([...]float64{0.05, 0.12, 0.42, 0.66, 0.93}[i]*float64(length)).Round(time.Second), time.Minute
		p.faults = append(p.faults, f)
	}
	return p
}

// healthyTools returns a machine that cuts for the given time with tools that are fit.
func healthyTools(name string, seed uint64, cutting time.Duration, z size) *plan {
	p := &plan{name: name, seed: seed, hole: z.hole, pause: 5 * time.Second}
	var cut time.Duration
	for n := 0; cut < cutting; n++ {
		s, _, cuts := p.healthy(n, z.life)
		p.stays = append(p.stays, s)
		cut += cuts
	}
	return p
}

// failingTools returns a machine of the experiment's tools from..to, which all fail: 11 of the
// 20 wear out, 6 chip and 3 break. They live for four minutes at most.
func failingTools(name string, seed uint64, from, to int, z size) *plan {
	p := &plan{name: name, seed: seed, hole: z.hole, pause: 5 * time.Second}
	for _, t := range sim.Tools(seed, min(z.life, 4*time.Minute))[from:to] {
		p.stays = append(p.stays, stay{tool: t})
	}
	return p
}

// failingSensors returns a machine whose tools are fit and of whose sensors n fail, one every 30 s
// for 12 s.
func failingSensors(name string, seed uint64, n int, z size) *plan {
	const every = 30 * time.Second
	p := healthyTools(name, seed, time.Duration(n+2)*every, z)
	channels := signal.GunDrill().Channels()
	kinds := []sim.FaultKind{sim.Flatline, sim.Dropout, sim.Clipping, sim.NonFinite}
	for i := range n {
		f := sim.Fault{Kind: kinds[i%len(kinds)], Channel: channels[(5*i)%len(channels)].Name, From: time.Duration(i+1) * every, For: 12 * time.Second}
		if f.Kind == sim.Clipping && channels[(5*i)%len(channels)].Range == 0 {
			f.Kind = sim.Flatline // nothing says where it clips
		}
		if i%10 == 9 {
			f.Kind, f.Channel = sim.ClockStep, channels[i%len(channels)].Name
		}
		p.faults = append(p.faults, f)
	}
	return p
}

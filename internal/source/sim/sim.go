// Package sim simulates a gun drill: the recordings of an experiment that was
// never published, good enough to develop on, and no more than that. Nothing
// that is found on it is a finding about drilling.
//
// It follows the experiment of C. Zhang, K. C. Tan, H. Li, G. S. Hong, "A
// Cost-Sensitive Deep Belief Network for Imbalanced Classification", IEEE Trans.
// Neural Netw. Learn. Syst. 30 (2019), arXiv 1804.10801: a [Tool] drills holes
// of 50 mm in Inconel 718 until its flank is worn, its edge chips or it breaks,
// while twelve accelerations are sampled at 20 kHz, thrust and torque at 100 Hz.
// A [Drill] takes one tool after the other and is a source of blocks like any
// recording. After each hole a microscope sees the flank: a [Measurement].
//
// A hole's cycle is idle, start-up, coolant, drilling, retract, shutdown. What is
// modelled is described, with its source or the word "assumed", at curve (wear),
// dynamometer (thrust and torque) and vibration. Tools, set-ups, workpiece and
// holes differ by more than wear changes the level of any one channel; what tells
// wear is the change within a tool, above all in the high bands, and impulses.
// docs/figures/simulator.md has the figures.
package sim

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
)

const (
	holeDepthMM = 50 // of the experiment

	// measuringErrorUM is the standard deviation of what the microscope reads
	// (assumed).
	measuringErrorUM = 5
)

// Settings says what is simulated.
type Settings struct {
	Machine string        // ISA-95 path of the machine
	Start   time.Time     // sensor time of the first sample
	Seed    uint64        // with the seed of a tool it fixes every sample of that tool
	Tools   []Tool        // one after the other
	Count   int           // of tools: beyond Tools come others of their kinds, in their order; 0 means as many as Tools
	Prefix  string        // of the names of tools, such as T06 of T06-01; empty leaves them the names of Tools
	Hole    time.Duration // drilling time of a hole; 0 means what 50 mm take at the tool's speed and feed
	Pause   time.Duration // between the end of one hole's drilling and the next: retract, shutdown, idle, start-up, coolant; may be 0
	Change  time.Duration // for which the machine stands after the last hole of a tool, until someone changes it, rounded up to seconds
}

// Measurement is what the microscope saw after a hole.
type Measurement struct {
	Machine, Tool, Hole string
	Time                time.Time // when drilling ended
	VBMeanUM, VBMaxUM   float64   // mean and maximum flank wear in µm
	State               string    // Healthy, Worn (as measured), Chipped or Broken
}

// Drill is the simulated machine, a [source.Source] in the layout of
// [signal.GunDrill].
type Drill struct {
	layout   *signal.Layout
	settings Settings
	tool     int       // index of the one at hand
	run      *run      // its session; nil before the first block
	start    time.Time // of the session
	blocks   [2]source.Block
	second   bool // the block of 100 Hz comes next
	scope    *rand.Rand
	measured []Measurement
}

// New returns a drill with its first tool in place. It reports settings that
// cannot be simulated.
func New(s Settings) (*Drill, error) {
	err := cmp.Or(
		config.Wrong(len(s.Tools) == 0, "sim: no tools: see Tools for the tools of the experiment"),
		config.Wrong(s.Start.IsZero(), "sim: no start time"),
		config.Wrong(s.Hole != 0 && s.Hole < time.Second, "sim: %v to drill a hole: must be a second or more, or 0 for 50 mm at the tool's feed", s.Hole),
		config.Wrong(s.Count < 0, "sim: %d tools: must not be negative", s.Count),
		config.Wrong(s.Pause < 0, "sim: pause %v: must not be negative", s.Pause),
		config.Wrong(s.Change < 0, "sim: %v to change a tool: must not be negative", s.Change))
	if err != nil {
		return nil, err
	}
	for i := range s.Tools {
		if err := s.Tools[i].check(); err != nil {
			return nil, fmt.Errorf("sim: tool %d (%s): %w", i+1, s.Tools[i].Name, err)
		}
	}
	s.Tools, s.Count = slices.Clone(s.Tools), cmp.Or(s.Count, len(s.Tools))
	d := &Drill{layout: signal.GunDrill(), settings: s, start: s.Start, scope: rand.New(rand.NewPCG(s.Seed, 0x73636f7065))}
	for g := range d.blocks {
		group := d.layout.Groups()[g]
		b := &d.blocks[g]
		b.Machine = s.Machine
		b.Group = g
		b.Truth = make([]source.Truth, 1)
		b.Samples = make([][]float32, len(group.Channels))
		for i := range b.Samples {
			b.Samples[i] = make([]float32, int(group.Rate)) // one second
		}
	}
	return d, nil
}

// Layout returns the layout of the gun drill.
func (d *Drill) Layout() *signal.Layout { return d.layout }

// Next returns the next block: for each second one of the accelerations and one
// of thrust and torque, in that order. Each tool is a session of its own, which
// begins idle and ends idle after its last hole; the next begins at once. Truth
// is one for the block: the tool at its end, and the phase that takes most of it.
// After the last tool Next returns io.EOF.
func (d *Drill) Next(ctx context.Context) (*source.Block, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if d.second {
		d.second = false
		return &d.blocks[1], nil
	}
	if d.run != nil && d.run.hole == len(d.run.holes) {
		d.start = d.start.Add(time.Duration(d.run.next) * frame)
		d.run = nil
		d.tool++
	}
	if d.tool == d.settings.Count {
		return nil, io.EOF
	}
	if d.run == nil {
		d.run = newRun(d.settings.piece(d.tool), &d.settings)
	}

	first, hole := d.run.next, d.run.hole
	var most state
	var count [stateCount]int
	for f := range framesPerBlock {
		d.run.frame(d.blocks[0].Samples, d.blocks[1].Samples, f)
		m := d.run.cut.machine
		if count[m]++; count[m] > count[most] {
			most = m
		}
	}
	for g := range d.blocks {
		b := &d.blocks[g]
		b.Tool = d.run.tool.Name
		b.Hole = d.run.holes[hole].name
		b.SpindleSpeed = d.run.tool.SpeedRPM
		b.Session = d.start.UnixNano()
		b.First = int64(first) * int64(b.Len()) / framesPerBlock
		b.Time = d.start.Add(time.Duration(first) * frame)
		b.Truth[0] = source.Truth{VBMeanUM: d.run.cut.vbMean, VBMaxUM: d.run.cut.vbMax, State: d.run.cut.state, Phase: stateNames[most]}
	}
	if d.run.hole > hole {
		d.measure(&d.run.holes[hole])
	}
	d.second = true
	return &d.blocks[0], nil
}

// piece returns tool i, counted from 0. Each is a piece of its own, with a seed of its own.
func (s *Settings) piece(i int) Tool {
	t := s.Tools[i%len(s.Tools)]
	t.Seed += uint64(i/len(s.Tools)) << 32
	if s.Prefix != "" {
		t.Name = fmt.Sprintf("%s-%02d", s.Prefix, i+1)
	}
	return t
}

// measure takes the microscope to the tool after hole h.
func (d *Drill) measure(h *hole) {
	c := &d.run.cut
	m := Measurement{
		Machine:  d.settings.Machine,
		Tool:     d.run.tool.Name,
		Hole:     h.name,
		Time:     d.start.Add(time.Duration(h.first+h.ends[drilling]) * frame),
		VBMeanUM: max(0, c.vbMean+measuringErrorUM*d.scope.NormFloat64()),
		VBMaxUM:  max(0, c.vbMax+measuringErrorUM*d.scope.NormFloat64()),
		State:    c.state,
	}
	if m.State == Healthy || m.State == Worn {
		m.State = Healthy
		if m.VBMaxUM >= LimitUM {
			m.State = Worn
		}
	}
	d.measured = append(d.measured, m)
}

// Measurements returns what the microscope saw after each hole whose last block
// has been delivered, with an error of 5 µm. The caller must not change it.
func (d *Drill) Measurements() []Measurement { return d.measured }

package train

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// drilled is the blocks of a drill, copied: for each second one of each rate.
func drilled(t *testing.T, tool sim.Tool, hole time.Duration, seconds int) [][2]signal.Block {
	t.Helper()
	d, err := sim.New(sim.Settings{
		Machine: "acme/spore/bay2/line1/usk25", Start: time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC), Seed: 7,
		Tools: []sim.Tool{tool}, Hole: hole, Pause: 3 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	var out [][2]signal.Block
	for range seconds {
		var pair [2]signal.Block
		for range pair {
			b, err := d.Next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			c := b.Block
			c.Samples = nil
			for _, x := range b.Samples {
				c.Samples = append(c.Samples, slices.Clone(x))
			}
			pair[c.Group] = c
		}
		out = append(out, pair)
	}
	return out
}

// judged cuts the blocks into windows and judges them.
func judged(t *testing.T, m *model.Model, blocks [][2]signal.Block, ref *model.Reference) []model.Verdict {
	t.Helper()
	s, err := window.NewSlicer(m.Layout, m.Window)
	if err != nil {
		t.Fatal(err)
	}
	j := m.NewJudge()
	var memory model.Memory
	var out []model.Verdict
	for i := range blocks {
		s.Push(&blocks[i][0])
		s.Push(&blocks[i][1])
		for {
			ev, ok := s.Next()
			if !ok {
				break
			}
			if ev.Gap != nil {
				t.Fatalf("gap: %+v", ev.Gap)
			}
			ev.Window.Assess(m.Layout)
			v := j.Judge(ev.Window, ref, &memory)
			v.Faults, v.Posterior = slices.Clone(v.Faults), slices.Clone(v.Posterior)
			out = append(out, v)
		}
	}
	return out
}

// sampleFaults change the samples of one channel from one on; full is the full
// scale of the channel.
var sampleFaults = map[string]func(x []float32, full float32, rng *rand.Rand){
	"a cable that is off":     func(x []float32, _ float32, _ *rand.Rand) { fill(x, nan32) },
	"single samples are lost": func(x []float32, _ float32, rng *rand.Rand) { x[rng.IntN(len(x))] = nan32 },
	"dead":                    func(x []float32, _ float32, _ *rand.Rand) { fill(x, x[0]) },
	"shorted":                 func(x []float32, _ float32, _ *rand.Rand) { fill(x, 0) },
	"stuck at full scale":     func(x []float32, full float32, _ *rand.Rand) { fill(x, full) },
	"an overflow in the converter": func(x []float32, _ float32, rng *rand.Rand) {
		x[rng.IntN(len(x))] = float32(math.Inf(1 - 2*rng.IntN(2)))
	},
	"overdriven, so clipped": func(x []float32, full float32, _ *rand.Rand) {
		for i, v := range x {
			x[i] = min(max(v*60, -full), full)
		}
	},
}

func fill(x []float32, v float32) {
	for i := range x {
		x[i] = v
	}
}

// smallDrill returns a model of the simulated drill, and a tool that it has never
// seen and that does not wear.
func smallDrill() (*model.Model, sim.Tool, error) {
	m, err := drillModel()
	fresh := sim.Tools(3, 36*time.Second)[0]
	fresh.Name, fresh.Life, fresh.End = "T90", time.Hour, sim.Worn
	return m, fresh, err
}

var drillModel = sync.OnceValues(func() (*model.Model, error) {
	var tools []sim.Tool
	for _, tool := range sim.Tools(3, 36*time.Second)[:4] {
		tool.End = sim.Worn
		tools = append(tools, tool)
	}
	job := Simulation{Machine: "acme/spore/bay2/line1/usk25", Seed: 3, Schedule: HistorySchedule}.Job(tools)
	job.Config.Features = signal.FeatureSpec{Version: 2}
	job.Config.Evaluate = Evaluate{ByTool: "off"}
	job.Config.Costs.Folds, job.Config.Costs.JADE.Generations = 2, 40
	job.Config.Network.Hidden = []int{10}
	job.Config.Network.Pretrain.Epochs, job.Config.Network.FineTune.Epochs = 5, 40
	m, _, err := Run(context.Background(), job)
	return m, err
})

// Two hundred faults of sensors are found as such, and none passes for a fault
// of the tool.
func TestSensorFaultsAreNoToolFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("judges tools with each fault of a sensor")
	}
	t.Parallel()
	if raceDetector {
		t.Skip("takes a minute with the race detector, and starts nothing of its own")
	}
	m, fresh, err := smallDrill()
	if err != nil {
		t.Fatal(err)
	}
	blocks := drilled(t, fresh, time.Minute, 24)
	var ref model.Reference
	clean := judged(t, m, blocks, &ref)
	var sound []int // seconds from which two windows are healthy
	for i := 1; i < len(clean); i++ {
		if clean[i-1].Outcome == model.Healthy && clean[i].Outcome == model.Healthy {
			sound = append(sound, i-1)
		}
		for c, q := range clean[i].Faults {
			if q != 0 {
				t.Errorf("window %d, channel %d: %v without a fault", i, c, q)
			}
		}
	}
	if len(sound) < 8 {
		t.Fatalf("only from %v on are windows healthy: that shows nothing", sound)
	}

	rng := rand.New(rand.NewPCG(8, 9))
	names := slices.Sorted(maps.Keys(sampleFaults))
	flagged, tool := 0, 0
	verdict := func(what string, found bool, after []model.Verdict, before []model.Verdict) {
		if found {
			flagged++
		} else {
			t.Errorf("%s: not flagged", what)
		}
		for i, v := range after {
			if v.Outcome == model.Faulty && before[i].Outcome != model.Faulty {
				tool++
				t.Errorf("%s: window %d is judged to be of a faulty tool", what, i)
			}
		}
	}
	for n := range 180 {
		name := names[n%len(names)]
		first := sound[rng.IntN(len(sound))]
		channel := rng.IntN(len(m.Layout.Channels()))
		group, place := 0, channel
		if channel >= 12 {
			group, place = 1, channel-12
			if name == "overdriven, so clipped" || name == "stuck at full scale" {
				channel, group, place = 3, 0, 3 // the dynamometer has no full scale
			}
		}
		part := slices.Clone(blocks[first : first+2])
		from := rng.IntN(part[0][group].Len())
		for i := range part {
			b := &part[i][group]
			b.Samples = slices.Clone(b.Samples)
			x := slices.Clone(b.Samples[place])
			sampleFaults[name](x[from:], float32(m.Layout.Channels()[channel].Range), rng)
			b.Samples[place] = x
			from = 0
		}
		known := ref
		got := judged(t, m, part, &known)
		found := slices.ContainsFunc(got, func(v model.Verdict) bool { return v.Faults[channel] != 0 })
		verdict(fmt.Sprintf("%s, channel %d from second %d", name, channel, first), found, got, clean[first:])
	}
	for n := range 20 {
		name, want, from := "the clock leaps", signal.ClockStep, sound[0]
		part := slices.Clone(blocks[from:])
		leap := time.Duration(1+rng.IntN(7200)) * time.Second * time.Duration(1-2*rng.IntN(2))
		at := 1 + rng.IntN(len(part)-1)
		if n%2 == 1 { // samples are lost and not counted
			name, want = "the rate is wrong", signal.RateError
			leap, at = time.Duration(10+rng.IntN(50))*time.Millisecond, 0
		}
		for i := at; i < len(part); i++ {
			shift := leap
			if at == 0 {
				shift = time.Duration(i) * leap
			}
			part[i][0].Time = part[i][0].Time.Add(shift)
		}
		known := ref
		got := judged(t, m, part, &known)
		found := slices.ContainsFunc(got, func(v model.Verdict) bool { return v.Faults[0]&want != 0 })
		verdict(fmt.Sprintf("%s by %v at %d", name, leap, at), found, got, clean[from:])
	}
	t.Logf("%d of 200 flagged as faults of sensors, %d taken for faults of the tool", flagged, tool)
}

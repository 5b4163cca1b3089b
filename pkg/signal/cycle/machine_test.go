package cycle_test

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
)

// A machine that is made up, faster than the simulator and with knobs that it does
// not have: samples of thrust and torque at 100 Hz and of a vibration at 1 kHz.

var dynamometer = must(signal.NewLayout("dynamometer", []signal.Channel{
	{Name: "thrust", Kind: signal.Force, Unit: "N", Rate: 100},
	{Name: "torque", Kind: signal.Torque, Unit: "N·m", Rate: 100},
	{Name: "acc", Kind: signal.Vibration, Unit: "g", Rate: 1000},
}))

var samples = []int{100, 100, 1000}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// tool is one tool on it.
type tool struct {
	thrust, torque float64 // of the edge in the material
	zero           float64 // of the thrust
	sign           float64 // of the thrust
	jet            float64 // thrust of the coolant
	drift          float64 // of the thrust's zero, N a second
	steps          []step
}

// step is what it does for a while, in tenths of a second.
type step struct {
	state  cycle.State
	tenths int
}

// hole is one cycle. No window is near to half of one state and half of another.
var hole = []step{{cycle.Idle, 30}, {cycle.StartUp, 22}, {cycle.Coolant, 21}, {cycle.Entry, 14}, {cycle.Drilling, 87}, {cycle.Retract, 28}, {cycle.Idle, 18}}

func holes(n int) (steps []step) {
	for range n {
		steps = append(steps, hole...)
	}
	return steps
}

// anyTool returns a tool as machines have them, for n holes.
func anyTool(rng *rand.Rand, n int) tool {
	return tool{
		thrust: 300 * math.Exp(0.15*rng.NormFloat64()), torque: 1.5 * math.Exp(0.15*rng.NormFloat64()),
		zero: 8 * rng.NormFloat64(), sign: 1, jet: 15, steps: holes(n),
	}
}

// window is a window of it, with the state that holds most of it.
type window struct {
	start   time.Time
	samples [][]float32
	state   cycle.State
}

var began = time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)

// run returns the windows of a second in the tool's life.
func (l tool) run(rng *rand.Rand) []window {
	var ws []window
	var count [7]int
	speed, tenth := 0., 0
	for _, s := range l.steps {
		for t := range s.tenths {
			if tenth%10 == 0 {
				ws = append(ws, window{start: began.Add(time.Duration(tenth) * 100 * time.Millisecond), samples: make([][]float32, 3)})
				count = [7]int{}
			}
			w := &ws[len(ws)-1]
			if count[s.state]++; count[s.state] > count[w.state] {
				w.state = s.state
			}
			for k := range 10 {
				into := (float64(t) + float64(k)/10) / float64(s.tenths)
				engaged, jet := 0., 0.
				switch s.state {
				case cycle.Idle:
					speed = max(0, speed-0.01)
				case cycle.StartUp:
					speed = into
				case cycle.Entry:
					engaged, jet = into, l.jet
				case cycle.Drilling:
					engaged, jet = 1, l.jet
				default:
					speed, jet = 1, l.jet
				}
				zero := l.zero + l.drift*float64(tenth)/10
				w.samples[0] = append(w.samples[0], float32(l.sign*(engaged*l.thrust*(1+0.03*rng.NormFloat64())+jet)+zero+4*rng.NormFloat64()))
				w.samples[1] = append(w.samples[1], float32(engaged*l.torque*(1+0.03*rng.NormFloat64())+0.04*speed+0.02*rng.NormFloat64()))
				for range 10 {
					w.samples[2] = append(w.samples[2], float32((0.005+0.04*speed+engaged)*rng.NormFloat64()))
				}
			}
			tenth++
		}
	}
	if tenth%10 != 0 {
		ws = ws[:len(ws)-1]
	}
	return ws
}

// tracks returns what is learnt from of the lives of some tools.
func tracks(f *cycle.Follower, tools []tool, rng *rand.Rand) (ts [][]float32) {
	for _, l := range tools {
		var t []float32
		for _, w := range l.run(rng) {
			t = f.Measure(t, w.samples)
		}
		ts = append(ts, t)
	}
	return ts
}

// school returns a model that was learnt from ten tools of a kind.
func school(layout *signal.Layout, samples []int, kind func(rng *rand.Rand) tool) (*cycle.Model, error) {
	blank := cycle.New(layout, samples)
	rng := rand.New(rand.NewPCG(1, 2))
	var tools []tool
	for range 10 {
		tools = append(tools, kind(rng))
	}
	return blank.Learn(tracks(cycle.NewFollower(blank, layout, time.Second, time.Second), tools, rng), 150)
}

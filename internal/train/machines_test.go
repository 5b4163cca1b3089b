package train

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Two made-up machines stand in the tests: a lathe, whose recordings hold a row
// of features a second and the measured wear, and a drill, whose forces are
// sampled at two rates and with wear measured after each hole.

// latheLayout has four features; the first two grow with wear.
func latheLayout(t testing.TB) *signal.Layout {
	t.Helper()
	return layout(t, "lathe", []signal.Channel{
		{Name: "rms", Kind: signal.Feature, Rate: 1}, {Name: "power", Kind: signal.Feature, Rate: 1},
		{Name: "speed", Kind: signal.Feature, Rate: 1}, {Name: "hum", Kind: signal.Feature, Rate: 1},
	})
}

func layout(t testing.TB, name string, cs []signal.Channel) *signal.Layout {
	t.Helper()
	l, err := signal.NewLayout(name, cs)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// life is a tool that wears linearly from 0 to µm in so many seconds.
type life struct {
	tool    string
	seconds int
	um      float64
}

// lives are five tools, of which one never wears out.
var lives = []life{{"A", 48, 420}, {"B", 40, 390}, {"C", 52, 140}, {"D", 44, 400}, {"E", 40, 450}}

var latheColumns = signal.Recording{Tool: "tool", VBMax: "vb"}

// latheCSV returns a recording of tools on the lathe, in which one cell of 40
// is empty. Rows of 300 µm or more are faulty.
func latheCSV(tools []life) string {
	rng := rand.New(rand.NewPCG(11, 12))
	var b strings.Builder
	b.WriteString("tool,rms,power,speed,hum,vb\n")
	cells := 0
	for _, l := range tools {
		level := 1 + rng.Float64() // of the tool when it is new
		for s := range l.seconds {
			um := l.um * float64(s) / float64(l.seconds-1)
			b.WriteString(l.tool)
			for _, v := range []float64{
				level * (1 + um/200), 10 * level * (1 + um/400), 50, rng.NormFloat64(),
			} {
				if cells++; cells%40 == 0 {
					b.WriteString(",")
					continue
				}
				fmt.Fprintf(&b, ",%.4f", v*(1+0.04*rng.NormFloat64()))
			}
			fmt.Fprintf(&b, ",%.1f\n", um)
		}
	}
	return b.String()
}

// latheInput writes a recording to a file and returns it as trainer would.
func latheInput(t testing.TB, l *signal.Layout, name, machine, text string) Input {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	rec := source.Recording{Path: path, Layout: l, Columns: latheColumns, Machine: machine}
	sum, err := rec.SHA256()
	if err != nil {
		t.Fatal(err)
	}
	return Input{Name: rec.Name(), SHA256: sum, Open: rec.Open}
}

// latheJob is a job that is done in a blink.
func latheJob(t testing.TB) Job {
	t.Helper()
	c := DefaultConfig()
	c.Reference = model.ReferenceSpec{Windows: 5, Mode: model.ReferenceKind} // auto, which tries several, takes as many times as long
	c.ReferenceSaid = true
	c.Network.Hidden = []int{6}
	c.Network.Pretrain.Epochs = 3
	c.Network.FineTune.Epochs = 40
	c.Costs.Folds, c.Costs.JADE.Generations = 2, 40 // costs of two classes have converged by then
	l := latheLayout(t)
	return Job{Config: c, Layout: l, Program: "test", Inputs: []Input{latheInput(t, l, "lives", "lathe", latheCSV(lives))}}
}

// drillLayout has a force at 100 Hz, which tells when the drill is cutting,
// and a vibration at 400 Hz.
func drillLayout(t testing.TB) *signal.Layout {
	t.Helper()
	return layout(t, "drill", []signal.Channel{
		{Name: "acc", Kind: signal.Vibration, Unit: "g", Rate: 400}, {Name: "thrust", Kind: signal.Force, Unit: "N", Rate: 100},
	})
}

const (
	idleSeconds = 2 // before each hole
	holeSeconds = 8
)

// cycleTime is the time from the start of a hole's idle time to the hole's end.
const cycleTime = (idleSeconds + holeSeconds) * time.Second

var drillStart = time.Date(2026, 2, 3, 6, 0, 0, 0, time.UTC)

// drill is a [source.Source] of holes that one tool drills one after the other.
type drill struct {
	layout        *signal.Layout
	machine, tool string
	start         time.Time
	holes         int
	rng           *rand.Rand
	at            int  // block that is next
	unplugged     int  // seconds at the end in which thrust is missing
	busy          bool // it never idles
}

func newDrill(l *signal.Layout, machine, tool string, start time.Time, holes int) *drill {
	return &drill{layout: l, machine: machine, tool: tool, start: start, holes: holes, rng: rand.New(rand.NewPCG(uint64(holes), 1))}
}

func (d *drill) Layout() *signal.Layout { return d.layout }

func (d *drill) Next(context.Context) (*source.Block, error) {
	second, group := d.at/2, d.at%2
	if second == d.holes*(idleSeconds+holeSeconds) {
		return nil, io.EOF
	}
	d.at++
	hole := second / (idleSeconds + holeSeconds)
	level := float32(1)
	if second%(idleSeconds+holeSeconds) >= idleSeconds || d.busy {
		level = 300 + 10*float32(hole)
	}
	rate := d.layout.Groups()[group].Rate
	x := make([]float32, int(rate))
	for i := range x {
		x[i] = level * (1 + 0.1*float32(d.rng.NormFloat64()))
		if group == 1 && second >= d.holes*(idleSeconds+holeSeconds)-d.unplugged {
			x[i] = nan32
		}
	}
	return &source.Block{Block: signal.Block{
		Context: signal.Context{Machine: d.machine, Tool: d.tool, Hole: fmt.Sprint("H", hole+1)},
		Session: 1, Group: group, First: int64(second) * int64(rate), Time: d.start.Add(time.Duration(second) * time.Second),
		Samples: [][]float32{x},
	}}, nil
}

func drillInput(d *drill) Input {
	return Input{Name: d.machine + "-" + d.tool, Open: func() (source.Source, error) { return d, nil }}
}

// atEnd is a measurement at the end of a hole of a tool that started at start.
func atEnd(tool string, start time.Time, hole int, um float64, state string) wear.Measurement {
	return wear.Measurement{
		Tool: tool, Hole: fmt.Sprint("H", hole), Time: start.Add(time.Duration(hole) * cycleTime),
		VBMeanUM: nan, VBMaxUM: um, State: state,
	}
}

// drillJob is a job whose rows are looked at and never learnt from.
func drillJob(t testing.TB, join wear.Mode, ms []wear.Measurement, inputs ...Input) Job {
	t.Helper()
	c := DefaultConfig()
	c.Reference.Windows = 4
	c.Join = join
	return Job{Config: c, Layout: drillLayout(t), Inputs: inputs, Wear: ms, Workers: 2, Progress: func(string, int, int) {}}
}

// mustRows returns the table that the job would learn from.
func mustRows(t testing.TB, j Job) (rowTable, *model.Model, card.Tally) {
	t.Helper()
	rows, m, counts, err := j.rows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return rows, m, counts
}

// quick makes a network that learns next to nothing, where only errors matter.
func quick(c *Config) {
	c.Network.Pretrain.Epochs, c.Network.FineTune.Epochs = -1, 1
	c.Network.Hidden = []int{2}
}

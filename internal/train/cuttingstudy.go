package train

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
)

// CuttingStudy asks how well the states of a machine's cycle are told on the
// simulated drill. They are learnt as from a user's recordings, without a label,
// and judged by the states that the simulator knows, on tools of other seeds.
type CuttingStudy struct {
	Seed    uint64
	Tools   int // of the experiment's 20; 0 means all
	Workers int // 0: one for each CPU; never changes a result
}

// CuttingReport is what a study finds.
type CuttingReport struct {
	Tools int
	Rows  []CuttingRow
}

// CuttingRow is how well the states learnt from one schedule are told on another.
type CuttingRow struct {
	Learnt, Judged Schedule
	Windows        int
	Right          int     // of the state that holds most of them
	Changes        int     // of the state, from one window to the next
	Within         [3]int  // changes that were seen 0, 1 or 2 windows off
	Missed         int     // changes that were seen later, or never
	States, Gate   Sorting // as drilling or not, by the states and by the gate on the force's level
}

// Sorting counts windows that are taken for drilling or not.
type Sorting struct {
	Wrongly int // judged, and not drilling
	Lost    int // drilling, and not judged
}

// Schedule says how a machine drills.
type Schedule struct{ Life, Hole, Pause time.Duration }

// String returns the schedule in words.
func (s Schedule) String() string {
	hole := "50 mm at the tool's feed"
	if s.Hole > 0 {
		hole = "holes of " + s.Hole.String()
	}
	return hole + ", pauses of " + s.Pause.String()
}

// The schedules of a study: that of the simulated history, a longer one, and the
// holes of the experiment.
var (
	shortCycles = Schedule{historyLife, historyHole, historyPause}
	longCycles  = Schedule{75 * time.Second, 25 * time.Second, 16 * time.Second}
	paperCycles = Schedule{120 * time.Second, 0, 17300 * time.Millisecond}
)

// Run drills the tools, learns the states and follows them. Studies that are equal
// give equal reports.
func (s CuttingStudy) Run(ctx context.Context) (*CuttingReport, error) {
	r := &CuttingReport{Tools: cmp.Or(s.Tools, len(sim.Tools(1, time.Minute)))}
	for _, of := range []struct {
		learnt Schedule
		judged []Schedule
	}{{shortCycles, []Schedule{shortCycles, longCycles, paperCycles}}, {longCycles, []Schedule{shortCycles}}} {
		m, _, err := s.observe(ctx, s.Seed, of.learnt, nil)
		if err != nil {
			return nil, err
		}
		if m.Cycle == nil || m.Gate == nil {
			return nil, fmt.Errorf("train: no states are learnt from %s: %w", of.learnt, cycle.ErrNoCycle)
		}
		for _, judged := range of.judged {
			row, err := s.row(ctx, m, judged)
			if err != nil {
				return nil, err
			}
			row.Learnt = of.learnt
			r.Rows = append(r.Rows, row)
		}
	}
	return r, nil
}

// row follows the tools of another seed by m.
func (s CuttingStudy) row(ctx context.Context, m *model.Model, judged Schedule) (CuttingRow, error) {
	r := CuttingRow{Judged: judged}
	_, found, err := s.observe(ctx, s.Seed+1, judged, m)
	if err != nil {
		return r, err
	}
	judge := m.NewJudge()
	for _, os := range found {
		var ref model.Reference
		var memory cycle.Memory
		var truth, told []cycle.State
		for i := range os {
			o := &os[i]
			var state cycle.State
			if err := state.UnmarshalText([]byte(o.truth.Phase)); err != nil {
				return r, err
			}
			_, v := judge.Row(&o.Observation, &ref, &memory)
			truth, told = append(truth, state), append(told, v.State)
			r.States.count(v.State == cycle.Drilling, state == cycle.Drilling)
			r.Gate.count(o.Level >= m.Gate.Threshold, state == cycle.Drilling)
		}
		r.compare(truth, told)
	}
	return r, nil
}

func (s *Sorting) count(judged, drilling bool) {
	switch {
	case judged && !drilling:
		s.Wrongly++
	case drilling && !judged:
		s.Lost++
	}
}

// compare counts the windows and changes of one tool's life.
func (r *CuttingRow) compare(truth, told []cycle.State) {
	r.Windows += len(truth)
	for i, state := range truth {
		if told[i] == state {
			r.Right++
		}
		if i == 0 || state == truth[i-1] {
			continue
		}
		r.Changes++
		off := len(r.Within)
		for j := max(1, i-2); j < min(len(told), i+len(r.Within)); j++ {
			if told[j] == state && told[j-1] != state {
				off = min(off, max(i-j, j-i))
			}
		}
		if off < len(r.Within) {
			r.Within[off]++
		} else {
			r.Missed++
		}
	}
}

// observe drills the tools of a seed and observes their windows, by m if it is not
// nil, and else by a model that learns its cycle from them.
func (s CuttingStudy) observe(ctx context.Context, seed uint64, by Schedule, m *model.Model) (*model.Model, [][]observed, error) {
	tools := sim.Tools(seed, by.Life)
	if s.Tools > 0 {
		tools = tools[:min(s.Tools, len(tools))]
	}
	j := Job{Config: DefaultConfig(), Layout: signal.GunDrill(), Workers: cmp.Or(s.Workers, runtime.GOMAXPROCS(0))}
	for _, t := range tools {
		j.Inputs = append(j.Inputs, simulatedLife(fmt.Sprintf("local/site/area/line/drill%d", seed), t, seed, false, by))
	}
	learn := m == nil
	if learn {
		m = &model.Model{
			Layout: j.Layout, Window: j.Config.spec(), Reference: j.Config.Reference, Usual: make([]signal.Quality, len(j.Layout.Channels())),
			Features: signal.FeatureSpec{Version: j.Config.Features.Version, Set: []string{"mean"}}, // nobody looks at them
		}
		m.Gate, m.Cycle = cuttingOf(m)
	}
	found, _, err := collect(ctx, m, j.Inputs, j.Workers, func(int, int) {})
	if err != nil {
		return nil, nil, fmt.Errorf("train: %w", err)
	}
	if learn {
		if err := j.settleCutting(m, found); err != nil {
			return nil, nil, err
		}
	}
	return m, found, nil
}

// Markdown returns the report as a table.
func (r *CuttingReport) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d tools each; changes of state that were seen in the window itself, one window off, two, more.\n\n", r.Tools)
	b.WriteString("| learnt from | told on | windows | state right | changes | 0 | 1 | 2 | more | judged but not drilling: states, gate | drilling but not judged: states, gate |\n")
	b.WriteString("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "| %s | %s | %d | %.2f %% | %d | %d | %d | %d | %d | %d, %d | %d, %d |\n", row.Learnt, row.Judged, row.Windows,
			100*float64(row.Right)/float64(row.Windows), row.Changes, row.Within[0], row.Within[1], row.Within[2], row.Missed,
			row.States.Wrongly, row.Gate.Wrongly, row.States.Lost, row.Gate.Lost)
	}
	return b.String()
}

package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flank-tcm/flank/bench/document"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
)

// cuttingStudy asks how well a model finds the states of a machine's cycle on the
// simulated drill. They are learnt as from a user's recordings, without a label,
// and judged by the states that the simulator knows, on tools of other seeds.
type cuttingStudy struct {
	Seed  uint64
	Tools int // of the experiment's 20; 0 means all
}

// cuttingReport is what a study finds.
type cuttingReport struct {
	Tools int
	Rows  []cuttingRow
}

// cuttingRow is how well the states learnt from one schedule are found on another.
type cuttingRow struct {
	Learnt, Judged train.Schedule
	Windows        int
	Right          int     // of the state that holds most of them
	Changes        int     // of the state, from one window to the next
	Within         [3]int  // changes that were seen 0, 1 or 2 windows off
	Missed         int     // changes that were seen later, or never
	States, Gate   sorting // as drilling or not, by the states and by the gate on the force's level
}

// sorting counts windows that are taken for drilling or not.
type sorting struct {
	Wrongly int // judged, and not drilling
	Lost    int // drilling, and not judged
}

// The schedules of a study: the simulated history's, a longer one, and the
// holes of the experiment.
var (
	shortCycles = train.HistorySchedule
	longCycles  = train.Schedule{Life: 75 * time.Second, Hole: 25 * time.Second, Pause: 16 * time.Second}
	paperCycles = train.Schedule{Life: 120 * time.Second, Pause: 17300 * time.Millisecond}
)

// Run drills the tools, learns the states and follows them. Studies that are equal
// give equal reports.
func (s cuttingStudy) Run(ctx context.Context) (*cuttingReport, error) {
	r := &cuttingReport{Tools: cmp.Or(s.Tools, len(sim.Tools(1, time.Minute)))}
	for _, of := range []struct {
		learnt train.Schedule
		judged []train.Schedule
	}{{shortCycles, []train.Schedule{shortCycles, longCycles, paperCycles}}, {longCycles, []train.Schedule{shortCycles}}} {
		m, err := s.learn(ctx, of.learnt)
		if err != nil {
			return nil, err
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

// learn returns a model that knows when the machine is cutting, from the lives of the
// study's tools.
func (s cuttingStudy) learn(ctx context.Context, by train.Schedule) (*model.Model, error) {
	j := s.job(s.Seed, by)
	j.Config.Features.Set = []string{"mean"} // the study asks for no feature
	_, _, m, err := train.Lessons(ctx, j)
	if err != nil {
		return nil, err
	}
	if m.Cycle == nil || m.Gate == nil {
		return nil, fmt.Errorf("no states are learnt from %s: %w", by, cycle.ErrNoCycle)
	}
	return m, nil
}

func (s cuttingStudy) job(seed uint64, by train.Schedule) train.Job {
	j := train.Simulation{Machine: fmt.Sprint(machine, seed), Seed: seed, Schedule: by}.Job(tools(seed, by, s.Tools))
	j.Config.Reference.Mode = model.ReferenceKind // states do not depend on it
	j.Workers = runtime.GOMAXPROCS(0)
	return j
}

// row follows the tools of another seed by m.
func (s cuttingStudy) row(ctx context.Context, m *model.Model, judged train.Schedule) (cuttingRow, error) {
	r := cuttingRow{Judged: judged}
	j := s.job(s.Seed+1, judged)
	var mu sync.Mutex
	var tools errgroup.Group
	tools.SetLimit(j.Workers)
	for _, in := range j.Inputs {
		tools.Go(func() error { return r.follow(ctx, &mu, m, in) })
	}
	err := tools.Wait()
	return r, err
}

// follow finds the states of a tool's life by m, and adds what comes of it under the lock.
func (r *cuttingRow) follow(ctx context.Context, mu *sync.Mutex, m *model.Model, in train.Input) error {
	src, err := in.Open()
	if err != nil {
		return err
	}
	cut, err := source.NewCutter(src, m.Window)
	if err != nil {
		return err
	}
	judge := m.NewJudge()
	var o model.Observation
	var ref model.Reference
	var memory model.Memory
	var truth, found []cycle.State
	var gate []bool
	for {
		c, err := cut.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			mu.Lock()
			defer mu.Unlock()
			r.compare(truth, found, gate)
			return nil
		case err != nil:
			return err
		case c.Gap != nil:
			continue
		}
		var state cycle.State
		if err := state.UnmarshalText([]byte(c.Truth.Phase)); err != nil {
			return err
		}
		judge.Observe(c.Window, &o)
		_, v := judge.Row(&o, &ref, &memory)
		truth, found, gate = append(truth, state), append(found, v.State), append(gate, o.Level >= m.Gate.Threshold)
	}
}

func (s *sorting) count(judged, drilling bool) {
	switch {
	case judged && !drilling:
		s.Wrongly++
	case drilling && !judged:
		s.Lost++
	}
}

// compare counts the windows and changes of one tool's life, and what the gate says of the windows.
func (r *cuttingRow) compare(truth, found []cycle.State, gate []bool) {
	r.Windows += len(truth)
	for i, state := range truth {
		r.States.count(found[i] == cycle.Drilling, state == cycle.Drilling)
		r.Gate.count(gate[i], state == cycle.Drilling)
		if found[i] == state {
			r.Right++
		}
		if i == 0 || state == truth[i-1] {
			continue
		}
		r.Changes++
		off := len(r.Within)
		for j := max(1, i-2); j < min(len(found), i+len(r.Within)); j++ {
			if found[j] == state && found[j-1] != state {
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

// Share is how much of the windows is right, in percent.
func (r cuttingRow) Share() float64 { return 100 * float64(r.Right) / float64(r.Windows) }

//go:embed cutting.md.tmpl
var cuttingText string

// Markdown returns the report as a table.
func (r *cuttingReport) Markdown() string { return document.Fill(cuttingText, r, nil) }

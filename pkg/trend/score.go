package trend

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
)

// Score says how good estimates are of tools that a model was not fitted to.
type Score struct {
	Tools    []ToolScore `json:"tools"` // in the order of the rows
	Rows     int         `json:"rows"`
	Known    int         `json:"known"`      // rows with an estimate; the others are left out of the figures
	MAEUM    float64     `json:"mae_um"`     // mean absolute error
	AllMAEUM float64     `json:"all_mae_um"` // the same over all rows since the tool had its reference, known or not
	Coverage float64     `json:"coverage"`   // share of the rows whose wear lies in its interval
	WidthUM  float64     `json:"width_um"`   // mean of the intervals

	// Of the holes or windows left: how often there was an estimate while the tool
	// had some left, its mean absolute error, and how often its interval held.
	Life         int     `json:"life_rows"` // rows of which it is known how long the tool lasted
	LifeKnown    int     `json:"life_known"`
	LifeMAE      float64 `json:"life_mae"`
	LifeCoverage float64 `json:"life_coverage"`

	Estimates []Estimate `json:"-"` // of each row
}

// ToolScore is the Score of one tool, by the model of all others.
type ToolScore struct {
	Tool     string  `json:"tool"`
	Rows     int     `json:"rows"`
	Known    int     `json:"known"`
	MAEUM    float64 `json:"mae_um"` // 0 if nothing is known
	Coverage float64 `json:"coverage"`
	MostUM   float64 `json:"most_um"` // measured
	Choice   Choice  `json:"choice,omitzero"`

	all            float64 // sum of the absolute errors of all rows since the tool had a reference
	sinceReference int     // how many these are
}

// CrossValidate scores Fit: each tool is held out of the model that estimates it,
// and of the choice of its penalty, median and interval; of more than ten tools
// a tenth at a time. The result does not depend on
// the number of workers. It returns ErrTooFew for fewer than three tools.
func CrossValidate(ctx context.Context, rows *Rows, set Settings, workers int) (*Score, error) {
	tools := rows.byTool()
	if len(tools) <= leastTools {
		return nil, fmt.Errorf("trend: %w: %d, at least %d are needed to hold one out", ErrTooFew, len(tools), leastTools+1)
	}
	s := &Score{Tools: make([]ToolScore, len(tools)), Estimates: make([]Estimate, len(rows.Tool))}
	set.Shared = cmp.Or(set.Shared, NewShared())
	folds := parts(tools)
	failed := make([]error, len(folds))
	jobs := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range max(min(workers, len(folds)), 1) {
		wg.Go(func() {
			for f := range jobs {
				failed[f] = s.holdOut(ctx, rows, tools, folds[f], set)
				if set.Progress != nil {
					mu.Lock()
					done++
					set.Progress(done, len(folds))
					mu.Unlock()
				}
			}
		})
	}
	for f := range folds {
		jobs <- f
	}
	close(jobs)
	wg.Wait()
	if err := cmp.Or(failed...); err != nil {
		return nil, err
	}
	s.sum(rows, tools, set.LimitUM)
	return s, nil
}

// Assess estimates the rows of all tools by m and scores the estimates. A row whose wear is
// NaN was not measured: it is one of the tool's windows all the same. Rows of a tool come in
// the order of cutting, and those without a reference came before it was settled.
func Assess(m *Model, rows *Rows) *Score {
	tools := rows.byTool()
	s := &Score{Tools: make([]ToolScore, len(tools)), Estimates: make([]Estimate, len(rows.Tool))}
	for k := range tools {
		s.Tools[k].Tool = rows.Tool[tools[k][0]]
		s.observe(m, rows, tools[k], k)
	}
	s.sum(rows, tools, m.LimitUM)
	return s
}

// observe estimates the rows of tool k.
func (s *Score) observe(m *Model, rows *Rows, of []int, k int) {
	t := &s.Tools[k]
	unbounded := *m
	unbounded.Distance, unbounded.MostUM = math.MaxFloat64, math.MaxFloat64
	var tool, other Tool
	for _, i := range of {
		measured := rows.WearUM[i] == rows.WearUM[i]
		if measured {
			t.Rows++
		}
		s.Estimates[i] = tool.Observe(m, rows.Row(i), rows.ReferenceOf(i), rows.hole(i))
		if e := other.Observe(&unbounded, rows.Row(i), rows.ReferenceOf(i), rows.hole(i)); e.Known() && measured {
			t.all += math.Abs(e.UM - rows.WearUM[i])
			t.sinceReference++
		}
	}
}

// holdOut estimates the rows of a part of the tools by a model of all others.
func (s *Score) holdOut(ctx context.Context, rows *Rows, tools [][]int, part []int, set Settings) error {
	held := make(map[string]bool, len(part))
	for _, k := range part {
		held[rows.Tool[tools[k][0]]] = true
	}
	m, choice, err := Fit(ctx, rows.Without(held), set)
	if err != nil {
		return err
	}
	for _, k := range part {
		s.Tools[k].Tool, s.Tools[k].Choice = rows.Tool[tools[k][0]], choice
		s.observe(m, rows, tools[k], k)
	}
	return nil
}

// Without returns a copy of the rows of all tools but those held.
func (r *Rows) Without(held map[string]bool) *Rows {
	out := &Rows{Columns: r.Columns}
	for i, t := range r.Tool {
		if held[t] {
			continue
		}
		out.X = append(out.X, r.Row(i)...)
		out.WearUM = append(out.WearUM, r.WearUM[i])
		out.Tool = append(out.Tool, t)
		out.Hole = append(out.Hole, r.hole(i))
		if r.Reference != nil {
			out.Reference = append(out.Reference, r.Reference[i])
		}
	}
	return out
}

func (s *Score) sum(rows *Rows, tools [][]int, limitUM float64) {
	mean := func(sum *float64, n int) {
		if n > 0 {
			*sum /= float64(n)
		}
	}
	all := 0
	for k, held := range tools {
		t := &s.Tools[k]
		for _, i := range held {
			um, e := rows.WearUM[i], s.Estimates[i]
			if um != um {
				continue
			}
			t.MostUM = max(t.MostUM, um)
			if !e.Known() {
				continue
			}
			t.Known++
			miss := math.Abs(e.UM - um)
			t.MAEUM += miss
			s.MAEUM += miss
			s.WidthUM += e.HighUM - e.LowUM
			if e.LowUM <= um && um <= e.HighUM {
				t.Coverage++
				s.Coverage++
			}
		}
		s.Rows += t.Rows
		s.Known += t.Known
		s.AllMAEUM += t.all
		all += t.sinceReference
		mean(&t.MAEUM, t.Known)
		mean(&t.Coverage, t.Known)
		s.lives(rows, held, limitUM)
	}
	mean(&s.AllMAEUM, all)
	mean(&s.MAEUM, s.Known)
	mean(&s.Coverage, s.Known)
	mean(&s.WidthUM, s.Known)
	mean(&s.LifeMAE, s.LifeKnown)
	mean(&s.LifeCoverage, s.LifeKnown)
}

// at returns where the windows of a tool are: in holes, or in windows if there are none.
func (r *Rows) at(held []int) []int {
	at := make([]int, len(held))
	holes, last := 0, ""
	for n, i := range held {
		if h := r.hole(i); h != "" && h != last {
			holes, last = holes+1, h
		}
		at[n] = holes
	}
	if holes == 0 {
		for n := range at {
			at[n] = n + 1
		}
	}
	return at
}

// lives adds what became of the holes or windows left of a tool that reached the limit.
func (s *Score) lives(rows *Rows, held []int, limitUM float64) {
	if limitUM == 0 {
		return
	}
	at := rows.at(held)
	end := slices.IndexFunc(held, func(i int) bool { return rows.WearUM[i] >= limitUM })
	for n := range max(end, 0) {
		s.Life++
		e, left := s.Estimates[held[n]], float64(at[end]-at[n])
		if e.Left != e.Left {
			continue
		}
		s.LifeKnown++
		s.LifeMAE += math.Abs(e.Left - left)
		if e.LowLeft <= left && !(e.HighLeft < left) {
			s.LifeCoverage++
		}
	}
}

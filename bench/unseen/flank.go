package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/bench/columns"
	"github.com/flank-tcm/flank/bench/replay"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/internal/train/study"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
	"github.com/flank-tcm/flank/pkg/trend"
)

// Flank's name among the methods, and the name of its default settings.
const (
	flankMethod    = "flank"
	defaultVariant = "default"
	noGuardVariant = "no-guard"
)

// variants are the settings that Flank is run with: the default ones for all splits, without a guard for
// the six of nine turning tools and the drills, and for the turning tools what they are without a part, without a guard too.
var variants = []struct {
	name   string
	change func(*train.Config)
}{
	{defaultVariant, func(*train.Config) {}},
	{noGuardVariant, func(c *train.Config) { c.Guard = classify.GuardOff }},
	{"log", noGuard(model.ReferenceLog, func(*train.Config) {})},
	{"log-unweighted", noGuard(model.ReferenceLog, func(c *train.Config) { c.Stability = classify.StabilityOff })},
	{"log-no-pretraining", noGuard(model.ReferenceLog, func(c *train.Config) { c.Network.Pretrain.Epochs = -1 })},
	{"ratio", noGuard(model.ReferenceRatio, func(*train.Config) {})},
}

// noGuard returns a change that also leaves the guard out and sets the mode of the reference.
func noGuard(mode model.Mode, change func(*train.Config)) func(*train.Config) {
	return func(c *train.Config) {
		c.Guard, c.Reference.Mode = classify.GuardOff, mode
		change(c)
	}
}

// runs reports whether a split is judged by a variant.
func runs(variant, data, protocol string) bool {
	return variant == defaultVariant || data == "turning" && protocol == sixOfNine || variant == noGuardVariant && data == "drill" && protocol == fiveFold
}

// judgeAll computes the cells of the sets and variants that the log does not have. No
// protocols stand for all.
func judgeAll(ctx context.Context, folder string, sets, protocols []string, log *cellLog, out io.Writer) error {
	for _, name := range sets {
		s, err := loadSet(folder, name)
		if err != nil {
			return err
		}
		for _, v := range variants {
			began, n := time.Now(), 0
			for _, p := range s.Splits {
				if len(protocols) > 0 && !slices.Contains(protocols, p.Protocol) || !runs(v.name, name, p.Protocol) {
					continue
				}
				if log.done[cell{Data: name, Protocol: p.Protocol, Split: p.Name, Method: flankMethod, Variant: v.name}.key()] {
					continue
				}
				cs, err := s.judge(ctx, p, v.name, v.change)
				if err != nil {
					return fmt.Errorf("%s, %s, %s: %w", name, p.Protocol, p.Name, err)
				}
				if err := log.append(cs); err != nil {
					return err
				}
				n++
			}
			fmt.Fprintf(out, "%s, %s: %d splits in %v\n", name, v.name, n, time.Since(began).Round(time.Second))
		}
	}
	return nil
}

// machine is the name of the machine that all tools are of.
const machine = "unseen"

func (s *set) config() train.Config {
	c := train.DefaultConfig()
	c.Gate = "off" // every row is of cutting
	c.Reference.Windows = s.Reference
	c.Label = wear.Rule{VBMaxUM: s.LimitUM}
	c.Evaluate = train.Evaluate{ByTool: "off"}
	return c
}

// part returns the rows that a split learns from; rows of unlabelled tools have
// neither class nor wear.
func (s *set) part(p split) *table.Table {
	t := table.New(s.table.Columns)
	for i := range s.table.Rows() {
		r := s.table.Row(i)
		r.Machine, r.Start = machine, replay.Start(i)
		switch {
		case slices.Contains(p.Train, r.Tool):
		case slices.Contains(p.Unlabelled, r.Tool):
			r.Class, r.VBMaxUM = table.NoClass, math.NaN()
		default:
			continue
		}
		t.Append(r)
	}
	return t
}

// judge trains on one part of a split and judges the tools of the other.
func (s *set) judge(ctx context.Context, p split, variant string, change func(*train.Config)) ([]cell, error) {
	m, err := s.fit(ctx, p, change)
	if err != nil {
		return nil, err
	}
	cs, _, err := s.judgeBy(m, p, variant)
	return cs, err
}

func (s *set) fit(ctx context.Context, p split, change func(*train.Config)) (*model.Model, error) {
	j, err := s.job(s.part(p), change)
	if err != nil {
		return nil, err
	}
	m, _, err := train.Run(ctx, j)
	return m, err
}

// job returns what learns from rows of the set.
func (s *set) job(rows *table.Table, change func(*train.Config)) (train.Job, error) {
	c := s.config()
	change(&c)
	layout, err := columns.Layout(s.Name, s.table.Columns)
	return train.Job{
		Config: c, Layout: layout, Program: "unseen", Log: zerolog.Nop(),
		Inputs: []train.Input{{Name: s.Name, Windows: rows.Rows(), Table: rows}},
	}, err
}

// judgeBy judges the tools that a split does not learn from, and returns the posterior of each window too.
func (s *set) judgeBy(m *model.Model, p split, variant string) (out []cell, scores []float64, err error) {
	var faulty []bool
	for _, tool := range p.Test {
		cl := cell{Data: s.Name, Protocol: p.Protocol, Unit: p.Unit, Split: p.Name, Method: flankMethod, Variant: variant, Tool: tool}
		if err := s.follow(m, tool, &cl, &scores, &faulty); err != nil {
			return nil, nil, err
		}
		out = append(out, cl)
	}
	setAUC(out, scores, faulty)
	return out, scores, nil
}

// setAUC gives the cells of a split the AUC of all its windows, NaN if one class is missing.
func setAUC(cs []cell, scores []float64, faulty []bool) {
	auc := math.NaN()
	if slices.Contains(faulty, true) && slices.Contains(faulty, false) {
		auc = score.AUC(scores, faulty)
	}
	for i := range cs {
		cs[i].AUC = auc
	}
}

// follow judges the life of a tool as the monitor would, and appends the score and the
// class of its windows.
func (s *set) follow(m *model.Model, tool string, c *cell, score *[]float64, faulty *[]bool) error {
	o := &own{}
	c.flank = o
	if m.Conformal == nil {
		o.SetHealthy, o.SetFaulty = math.NaN(), math.NaN()
	}
	first, life := replay.NewFirstAlarm(), trend.Tool{Name: tool}
	err := replay.Life(m, tool, s.table, func(judge *model.Judge, r table.Row) {
		o.Worst = max(o.Worst, r.VBMaxUM)
		if e, asked := judge.Wear(&life, ""); asked {
			o.estimate(e, r.VBMaxUM)
		}
	}, func(n int, r table.Row, v model.Verdict) {
		if n <= s.Reference { // as with every other method, also where no reference is taken
			return
		}
		one := decided(r.Class != classify.Healthy, v.Decided != classify.Healthy)
		c.add(one, 1)
		if m.Conformal != nil && m.Conformal.In(r.Class, v.Posterior) {
			o.inSet(r.Class)
		}
		*score, *faulty = append(*score, v.Posterior[1]), append(*faulty, r.Class != classify.Healthy)
		if v.Outcome == model.Unknown {
			o.Unknown.add(one, 1)
		}
		first.See(m, r, v)
	})
	o.AlarmUM = first.UM
	return err
}

func (o *own) inSet(class int) {
	if class == classify.Healthy {
		o.SetHealthy++
	} else {
		o.SetFaulty++
	}
}

// estimate counts an estimate of wear against what was measured, in µm.
func (o *own) estimate(e trend.Estimate, um float64) {
	o.Wear++
	if !e.Known() {
		return
	}
	o.Known++
	o.Error += math.Abs(e.UM - um)
	if e.LowUM <= um && um <= e.HighUM {
		o.Inside++
	}
}

// decided returns the counts of one window that is worn or not and was called so or not.
func decided(worn, called bool) counts {
	switch {
	case worn && called:
		return counts{TP: 1}
	case worn:
		return counts{FN: 1}
	case called:
		return counts{FP: 1}
	}
	return counts{TN: 1}
}

// simpleMethods are the methods of `trainer fit` that are judged here too.
var simpleMethods = []study.Baseline{study.OneColumn, study.LogisticRegression}

// simpleVariant is the name of their only variant.
const simpleVariant = "all aids"

// compareAll writes the cells of the simple methods on all splits of the sets.
func compareAll(ctx context.Context, folder string, names []string, out, log io.Writer) error {
	var all []cell
	for _, name := range names {
		s, err := loadSet(folder, name)
		if err != nil {
			return err
		}
		began := time.Now()
		cs, err := s.compare(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, cs...)
		fmt.Fprintf(log, "%s: %d splits in %v\n", name, len(s.Splits), time.Since(began).Round(time.Second))
	}
	return writeCells(out, cellHeader, all)
}

// compare judges every split by the simple methods.
func (s *set) compare(ctx context.Context) ([]cell, error) {
	j, err := s.job(s.part(split{Train: toolsOf(s.lives())}), func(*train.Config) {})
	if err != nil {
		return nil, err
	}
	rows, lessons, _, err := train.Lessons(ctx, j)
	if err != nil {
		return nil, err
	}
	var out []cell
	for _, p := range s.Splits {
		t, err := taskOf(p, rows, lessons)
		if err != nil {
			return nil, err
		}
		for _, m := range simpleMethods {
			a, err := m.Judge(ctx, t)
			if err != nil {
				return nil, fmt.Errorf("%s, %s, %s: %w", p.Protocol, p.Name, m, err)
			}
			out = append(out, s.cells(p, m, a, rows)...)
		}
	}
	return out, nil
}

func rowsOf(rows *table.Table, tools []string) []int {
	var out []int
	for i, tool := range rows.Tool {
		if slices.Contains(tools, tool) {
			out = append(out, i)
		}
	}
	return out
}

// taskOf returns what simple methods learn from and judge in a split.
func taskOf(p split, rows *table.Table, all *classify.Table) (study.Task, error) {
	return study.NewTask(all, rowsOf(rows, p.Train), rowsOf(rows, p.Unlabelled), rowsOf(rows, p.Test))
}

// cells returns a cell for each tool of a split that a method has judged.
func (s *set) cells(p split, m study.Baseline, a *study.Answer, rows *table.Table) []cell {
	var out []cell
	test := rowsOf(rows, p.Test)
	called, faulty := a.Decide(), make([]bool, len(test))
	for _, tool := range p.Test {
		c := cell{Data: s.Name, Protocol: p.Protocol, Unit: p.Unit, Split: p.Name, Method: string(m), Variant: simpleVariant, Tool: tool}
		for n, i := range test {
			if rows.Tool[i] == tool {
				faulty[n] = rows.Class[i] != classify.Healthy
				c.add(decided(faulty[n], called[n] != classify.Healthy), 1)
			}
		}
		out = append(out, c)
	}
	setAUC(out, a.Scores(), faulty)
	return out
}

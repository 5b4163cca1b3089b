package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/classify"
)

// guards are what is compared on turning tools; the last one is the default.
var guards = [3]classify.Guard{classify.GuardOff, classify.GuardVote, classify.GuardVoteAndGains}

// other is a data set next to the turning tools, of which the first and the last of guards are compared.
type other struct {
	set, title string
	prefix     string // of the tools that are taken
	both       [2]*card.Robustness
}

func others() []other {
	return []other{
		{set: "drill", title: "Simulated gun drills, one at a time", prefix: drillTool(drillSeeds[0], "")},
		{set: "phm2010", title: "PHM 2010, one of three cutters at a time"},
		{set: "uniwear", title: "Uniwear, one of eight experiments at a time"},
	}
}

// robust makes each sensor of each set read wrong, and returns what becomes of tools that were held out.
func robust(ctx context.Context, folder string, stderr io.Writer) (turning [3]*card.Robustness, rest []other, err error) {
	measure := func(name string, guard classify.Guard, prefix string) (*card.Robustness, error) {
		s, err := loadSet(folder, name)
		if err != nil {
			return nil, err
		}
		r, err := s.robust(ctx, guard, prefix)
		if err != nil {
			return nil, fmt.Errorf("%s, guard %s: %w", name, guard, err)
		}
		fmt.Fprintf(stderr, "%s, guard %s: %d trials, guarded %t\n", name, guard, len(r.Trials), r.Guarded)
		return r, nil
	}
	for i, guard := range guards {
		if turning[i], err = measure("turning", guard, ""); err != nil {
			return turning, nil, err
		}
		if turning[i].Guarded != (guard != classify.GuardOff) {
			return turning, nil, errors.New("the model of the turning tools has no guard")
		}
	}
	rest = others()
	for k := range rest {
		o := &rest[k]
		for i, guard := range [2]classify.Guard{guards[0], guards[2]} {
			if o.both[i], err = measure(o.set, guard, o.prefix); err != nil {
				return turning, nil, err
			}
		}
	}
	return turning, rest, nil
}

// robust trains on the tools of a set whose names begin so, holding each out in turn.
func (s *set) robust(ctx context.Context, guard classify.Guard, prefix string) (*card.Robustness, error) {
	c := s.config()
	c.Guard, c.Evaluate.ByTool = guard, "leave-one-out"
	layout, err := s.layout()
	if err != nil {
		return nil, err
	}
	var all split
	for _, l := range s.lives() {
		if strings.HasPrefix(l.tool, prefix) {
			all.Train = append(all.Train, l.tool)
		}
	}
	t := s.part(all)
	_, report, err := train.Run(ctx, train.Job{
		Config: c, Layout: layout, Program: "unseen", Log: zerolog.Nop(),
		Inputs: []train.Input{{Name: s.Name, Windows: t.Rows(), Table: t}},
	})
	switch {
	case err != nil:
		return nil, err
	case report.Robustness.Note != "":
		return nil, errors.New(report.Robustness.Note)
	}
	return report.Robustness, nil
}

// robustTable is of a run without a guard and, next to it, of one with a guard if there is one.
func robustTable(of string, runs ...*card.Robustness) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| one sensor of %s |", of)
	for i := range runs {
		fmt.Fprintf(&b, " %s | alarms missed | late | false |", [...]string{"G-mean, worst and mean", "with a guard"}[i])
	}
	fmt.Fprintf(&b, "\n|---|%s\n| as it should be |", strings.Repeat("---:|", 4*len(runs)))
	for _, r := range runs {
		fmt.Fprintf(&b, " %s | %d of %d | %d | %d |", card.Figure(r.Clean.GMean), r.Clean.Missed, r.Worn, r.Clean.Late, r.Clean.False)
	}
	for i, k := range runs[0].Kinds {
		fmt.Fprintf(&b, "\n| %s |", k.Kind)
		for _, r := range runs {
			k := r.Kinds[i]
			fmt.Fprintf(&b, " %s, %s | %d of %d | %d | %d |", card.Figure(k.Worst), card.Figure(k.Mean), k.Missed, k.Of, k.Late, k.False)
		}
	}
	return b.String() + "\n"
}

// robustPage is docs/figures/robust.md.
func robustPage(all [3]*card.Robustness, rest []other) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# If one sensor reads wrong

Written by `+"`make robust`"+`. The data are %d turning tools, %d of which get worn. Each tool is judged by networks that have not seen it; settings are the defaults but for the guard. [Robustness](../concepts/robustness.md) says what is tried.
Settings were chosen on these tools too, so the figures flatter. "Late" and "false" come on top of what happens without a fault.

`, all[0].Tools, all[0].Worn)
	for i, r := range all {
		missed, of := 0, 0
		for _, t := range r.Trials {
			if len(t.Sensors) == 1 {
				missed, of = missed+t.Missed, of+r.Worn
			}
		}
		fmt.Fprintf(&b, "## %s\n\nWithout a fault: G-mean %s, %d of %d alarms missed, %d late, %d false. With one sensor wrong: G-mean %s at worst, %s in the mean, %d of %d alarms missed.\n\n", []string{"Without a guard: `guard: \"off\"`", "Without steps of gains: `guard: vote`", "By default: `guard: vote-and-gains`"}[i],
			card.Figure(r.Clean.GMean), r.Clean.Missed, r.Worn, r.Clean.Late, r.Clean.False, card.Figure(r.Worst), card.Figure(r.Mean), missed, of)
		b.WriteString("| the sensor | trials | worst G-mean | mean | missed | late | false | worst if |\n|---|---:|---:|---:|---:|---:|---:|---|\n")
		for _, k := range r.Kinds {
			fmt.Fprintf(&b, "| %s | %d | %s | %s | %d of %d | %d | %d | %s |\n", k.Kind, k.Trials, card.Figure(k.Worst), card.Figure(k.Mean), k.Missed, k.Of, k.Late, k.False, k.WorstIf)
		}
		missing := ""
		for _, t := range r.Trials {
			if t.Missed > 0 {
				missing += fmt.Sprintf("| %s | %s | %s |\n", t.Words(), card.Figure(t.GMean), strings.Join(t.MissedTools, ", "))
			}
		}
		if missing == "" {
			b.WriteString("\nNo trial misses an alarm.\n")
		} else {
			b.WriteString("\n| trials that miss an alarm | G-mean | missed tools |\n|---|---:|---|\n" + missing)
		}
		b.WriteByte('\n')
	}
	for _, o := range rest {
		off, guarded := o.both[0], o.both[1]
		fmt.Fprintf(&b, "## %s\n\n%d of %d tools get worn.", o.title, off.Worn, off.Tools)
		table := robustTable("these", off, guarded)
		if !guarded.Guarded {
			table = robustTable("these", off)
			b.WriteString(" No model here has a guard: a guard needs three worn tools to learn from, and features that belong to sensors.")
		}
		fmt.Fprintf(&b, " Without a fault the G-mean is %s, and %s with the defaults; the worst with one sensor wrong is %s and %s.\n\n%s\n",
			card.Figure(off.Clean.GMean), card.Figure(guarded.Clean.GMean), card.Figure(off.Worst), card.Figure(guarded.Worst), table)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

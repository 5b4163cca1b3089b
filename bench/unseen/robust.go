package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	"github.com/flank-tcm/flank/bench/document"
	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/classify"
)

// guards are what is compared on turning tools; the last one is the default.
var guards = [3]classify.Guard{classify.GuardOff, classify.GuardVote, classify.GuardVoteAndGains}

// other is a data set next to the turning tools, of which the first and the last of guards are compared.
type other struct {
	set, Title string
	prefix     string // of the tools that are taken
	Both       [2]*card.Robustness
}

func others() []other {
	return []other{
		{set: "drill", Title: "Simulated gun drills, one at a time", prefix: drillTool(drillSeeds[0], "")},
		{set: "phm2010", Title: "PHM 2010, one of three cutters at a time"},
		{set: "uniwear", Title: "Uniwear, one of eight experiments at a time"},
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
			if o.Both[i], err = measure(o.set, guard, o.prefix); err != nil {
				return turning, nil, err
			}
		}
	}
	return turning, rest, nil
}

// robust trains on the tools of a set whose names begin so, holding each out in turn.
func (s *set) robust(ctx context.Context, guard classify.Guard, prefix string) (*card.Robustness, error) {
	tools := slices.DeleteFunc(toolsOf(s.lives()), func(tool string) bool { return !strings.HasPrefix(tool, prefix) })
	j, err := s.job(s.part(split{Train: tools}), func(c *train.Config) { c.Guard, c.Evaluate.ByTool = guard, "leave-one-out" })
	if err != nil {
		return nil, err
	}
	_, report, err := train.Run(ctx, j)
	switch {
	case err != nil:
		return nil, err
	case report.Robustness.Note != "":
		return nil, errors.New(report.Robustness.Note)
	}
	return report.Robustness, nil
}

//go:embed robust.md.tmpl
var robustText string

// robustPage is docs/figures/robust.md.
func robustPage(all [3]*card.Robustness, rest []other) string {
	titles := [3]string{"Without a guard: `guard: \"off\"`", "Without steps of gains: `guard: vote`", "By default: `guard: vote-and-gains`"}
	return document.Fill(robustText, map[string]any{"Turning": all, "Titles": titles, "Rest": rest}, template.FuncMap{
		"figure": card.Figure,
		"missed": func(r *card.Robustness) string {
			missed, of := 0, 0
			for _, t := range r.Trials {
				if len(t.Sensors) == 1 {
					missed, of = missed+t.Missed, of+r.Worn
				}
			}
			return fmt.Sprintf("%d of %d", missed, of)
		},
		"missing": func(r *card.Robustness) []card.Trial {
			return slices.DeleteFunc(slices.Clone(r.Trials), func(t card.Trial) bool { return t.Missed == 0 })
		},
	})
}

// Robust measures what becomes of decisions and alarms on tools never seen if one sensor reads
// wrong, with and without a guard: it trains on the turning recording three times, and writes
// docs/figures/robust.md and the table of README.md.
//
//	robust --data FOLDER
//
// `make robust` calls it; it takes three minutes of a processor.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	ossignal "os/signal"
	"path/filepath"
	"strings"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/figures/document"
	"github.com/flank-tcm/flank/internal/atomicfile"
	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/signal"
)

func main() {
	ctx, stop := ossignal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "robust:", err)
		os.Exit(1)
	}
}

// guards are what is compared; the last one is the default.
var guards = [3]classify.Guard{classify.GuardOff, classify.GuardVote, classify.GuardVoteAndGains}

func run(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("robust", flag.ContinueOnError)
	flags.SetOutput(stderr)
	data := flags.String("data", os.Getenv("FLANK_DATA"), "`folder` of the recordings")
	layout := flags.String("layout", "examples/turning/layout.yaml", "`file` of their layout")
	out := flags.String("out", "docs/figures/robust.md", "`file` of the page")
	readme := flags.String("readme", "README.md", "`file` whose table is written")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *data == "" {
		return errors.New("say where the recordings are: --data FOLDER, or FLANK_DATA")
	}
	var all [3]*card.Robustness
	for i, guard := range guards {
		var err error
		if all[i], err = measure(ctx, *data, *layout, guard, stderr); err != nil {
			return fmt.Errorf("guard %s: %w", guard, err)
		}
	}
	if err := atomicfile.Write(*out, []byte(page(all))); err != nil {
		return err
	}
	return document.Replace(*readme, "robust", table(all[0], all[2]))
}

// measure trains on the turning recording with default settings and the given guard.
func measure(ctx context.Context, data, layout string, guard classify.Guard, stderr io.Writer) (*card.Robustness, error) {
	l, columns, err := signal.LoadLayout(layout)
	if err != nil {
		return nil, err
	}
	rec := source.Recording{Path: filepath.Join(data, "vicomtech-turning", "turning_wear_dev.csv"), Layout: l, Columns: columns}
	c := train.DefaultConfig()
	c.Guard = guard
	_, report, err := train.Run(ctx, train.Job{
		Config: c, Layout: l, Inputs: []train.Input{{Name: rec.Name(), Open: rec.Open}}, Log: zerolog.New(stderr).Level(zerolog.ErrorLevel),
		Progress: func(phase string, done, total int) {
			if done == total {
				fmt.Fprintf(stderr, "guard %s: %s\n", guard, phase)
			}
		},
	})
	switch {
	case err != nil:
		return nil, err
	case report.Robustness.Note != "":
		return nil, errors.New(report.Robustness.Note)
	case report.Robustness.Guarded != (guard != classify.GuardOff):
		return nil, errors.New("the model has no guard")
	}
	return report.Robustness, nil
}

// table is the part of README.md: without a guard, and as by default.
func table(off, vote *card.Robustness) string {
	var b strings.Builder
	b.WriteString("| one sensor of the turning tools | G-mean, worst and mean | alarms missed | with a guard | alarms missed |\n|---|---:|---:|---:|---:|\n")
	fmt.Fprintf(&b, "| as it should be | %s | %d of %d | %s | %d of %d |\n", card.Figure(off.Clean.GMean), off.Clean.Missed, off.Worn, card.Figure(vote.Clean.GMean), vote.Clean.Missed, vote.Worn)
	for i, k := range off.Kinds {
		g := vote.Kinds[i]
		fmt.Fprintf(&b, "| %s | %s, %s | %d of %d | %s, %s | %d of %d |\n", k.Kind, card.Figure(k.Worst), card.Figure(k.Mean), k.Missed, k.Of, card.Figure(g.Worst), card.Figure(g.Mean), g.Missed, g.Of)
	}
	return b.String()
}

// page is docs/figures/robust.md.
func page(all [3]*card.Robustness) string {
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
	return strings.TrimSuffix(b.String(), "\n")
}

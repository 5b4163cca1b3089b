package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/inspect"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/signal"
)

type inspectCommand struct {
	File string `arg:"" placeholder:"FILE" help:"Recording, in any format of docs/reference/formats.md."`
	cli.RecordingLayout
	cli.RateFlag
	cli.Moment
	cli.LongRecording
	cli.PlotFile
	Channel []string `placeholder:"NAME" help:"Channels to draw; the first 16 by default. May be given several times." sep:"none"`
	Hole    []string `placeholder:"NAME" help:"Two holes to draw side by side, with --layout, instead of the whole: waveform, spectrum and features of one channel." sep:"none"`
	cli.WearFile
}

// Run prints what is in a recording.
func (f *inspectCommand) Run(ctx context.Context, out cli.Output) error {
	stdout := out.Stdout
	if f.Rate < 0 {
		return fmt.Errorf("--rate %v: must be positive", f.Rate)
	}
	if err := f.CheckPlot(); err != nil {
		return err
	}
	if len(f.Channel) > 0 && f.Plot == "" {
		return errors.New("--channel says what to draw: give --plot too")
	}
	opt := inspect.Options{Rate: f.Rate, Start: f.Start, All: f.All}
	if f.Layout != "" {
		var err error
		if opt.Layout, opt.Columns, err = signal.LoadLayout(f.Layout); err != nil {
			return err
		}
	}
	if len(f.Hole) > 0 || f.Wear != "" {
		return compareHoles(ctx, f, opt, stdout)
	}
	s, err := inspect.Inspect(ctx, f.File, opt)
	if err != nil {
		return err
	}
	if err := s.Print(stdout); err != nil {
		return err
	}
	if f.Plot != "" {
		left, err := s.Plot(f.Plot, f.Channel)
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "\nplot      %s\n", f.Plot)
		if left > 0 {
			fmt.Fprintf(stdout, "          %d more channels are not in it: name those to draw with --channel\n", left)
		}
	}
	return s.Err
}

// compareHoles draws two holes of a recording.
func compareHoles(ctx context.Context, f *inspectCommand, opt inspect.Options, stdout io.Writer) error {
	if len(f.Hole) != 2 || len(f.Channel) > 1 || f.Layout == "" || f.Plot == "" {
		return errors.New("holes are drawn in pairs: give --hole twice, --layout, --plot and at most one --channel")
	}
	captions := [2]string(f.Hole)
	if f.Wear != "" {
		ms, _, err := wear.Load(f.Wear)
		if err != nil {
			return err
		}
		tool := source.Recording{Path: f.File}.Name()
		for i, hole := range f.Hole {
			if captions[i], err = seen(ms, tool, hole); err != nil {
				return fmt.Errorf("--wear %s: %w", f.Wear, err)
			}
		}
	}
	h, err := inspect.CompareHoles(ctx, f.File, opt, strings.Join(f.Channel, ""), f.Hole[0], f.Hole[1])
	if err != nil {
		return err
	}
	if err := h.Plot(f.Plot, captions); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s: holes %s and %s, channel %s: %s\n", filepath.Base(f.File), f.Hole[0], f.Hole[1], h.Channel.Name, f.Plot)
	return nil
}

// seen returns what a wear file records of a tool after a hole.
func seen(ms []wear.Measurement, tool, hole string) (string, error) {
	for _, m := range ms {
		if m.Tool != tool || m.Hole != hole {
			continue
		}
		words := []string{hole}
		if m.VBMaxUM == m.VBMaxUM {
			words = append(words, fmt.Sprintf("VB %.0f µm", m.VBMaxUM))
		}
		if m.State != "" {
			words = append(words, m.State)
		}
		return strings.Join(words, ", "), nil
	}
	return "", fmt.Errorf("no measurement of tool %q after hole %q", tool, hole)
}

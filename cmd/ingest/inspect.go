package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/flank-tcm/flank/internal/source/inspect"
	"github.com/flank-tcm/flank/pkg/signal"
)

type inspectFlags struct {
	File    string   `arg:"" placeholder:"FILE" help:"Recording, in any format of docs/formats.md."`
	Layout  string   `placeholder:"FILE" help:"Layout of the recording: shows its channels in their units, and the gaps that a gateway would find."`
	Rate    float64  `placeholder:"HZ" help:"Samples a second, where the recording does not say it."`
	Plot    string   `placeholder:"FILE" help:"Draw the channels to a .png or .svg."`
	Channel []string `placeholder:"NAME" help:"Channels to draw; the first 16 by default. May be given several times." sep:"none"`
}

// inspectFile prints what is in a recording.
func inspectFile(ctx context.Context, f inspectFlags, stdout io.Writer) error {
	if f.Rate < 0 {
		return fmt.Errorf("--rate %v: must be positive", f.Rate)
	}
	if len(f.Channel) > 0 && f.Plot == "" {
		return errors.New("--channel says what to draw: give --plot too")
	}
	opt := inspect.Options{Rate: f.Rate}
	if f.Layout != "" {
		var err error
		if opt.Layout, opt.Columns, err = signal.LoadLayout(f.Layout); err != nil {
			return err
		}
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

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/record"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/internal/table/wear"
)

type simulateCommand struct {
	cli.Destination
	cli.Drill
	Format string        `default:"csv" placeholder:"F" help:"csv or parquet: one file a tool and rate; tdms: one a tool (default: csv)."`
	Tools  int           `default:"3" help:"How many of the experiment's 20 tools (default: 3)."`
	Life   time.Duration `default:"60s" help:"Mean cutting time of a tool (default: 60s)."`
	Hole   time.Duration `default:"10s" help:"Drilling time of a hole; 0s: what 50 mm take at the tool's speed and feed (default: 10s)."`
}

// simulatedSeed fixes every sample.
const simulatedSeed = 1

// simulatedPause is the time between the drilling of two holes.
const simulatedPause = 3 * time.Second

// simulatedStart is the sensor time of the first sample.
var simulatedStart = time.Date(2026, 1, 5, 6, 0, 0, 0, time.UTC)

// Run writes recordings of the simulated drill, and what a microscope saw of its
// tools.
func (f *simulateCommand) Run(ctx context.Context, out cli.Output) error {
	if err := event.CheckMachine(f.Machine); err != nil {
		return fmt.Errorf("--machine: %w", err)
	}
	faults, err := sim.ParseFaults(f.Fault)
	if err != nil {
		return fmt.Errorf("--fault: %w", err)
	}
	if f.Life < 2*time.Second {
		return fmt.Errorf("--life %v: must be 2s or more", f.Life)
	}
	tools := sim.Tools(simulatedSeed, f.Life)
	if f.Tools < 1 || f.Tools > len(tools) {
		return fmt.Errorf("--tools %d: must be 1 to %d", f.Tools, len(tools))
	}
	drill, err := sim.New(sim.Settings{Machine: f.Machine, Start: simulatedStart, Seed: simulatedSeed, Tools: tools[:f.Tools], Hole: f.Hole, Pause: simulatedPause})
	if err != nil {
		return err
	}
	src, err := sim.WithFaults(drill, faults)
	if err != nil {
		return fmt.Errorf("--fault: %w", err)
	}
	w, err := record.NewWriter(f.Out, src.Layout(), record.Format(f.Format))
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if err := errors.Join(copyBlocks(ctx, src, w), w.Close()); err != nil {
		return err
	}
	if err := writeWear(filepath.Join(f.Out, "wear.csv"), drill.Measurements()); err != nil {
		return err
	}
	fmt.Fprintf(out.Stdout, "%d tools, %d holes: %d files, their layouts and wear.csv in %s\n", f.Tools, len(drill.Measurements()), len(w.Files()), f.Out)
	return nil
}

func copyBlocks(ctx context.Context, src source.Source, w *record.Writer) error {
	for {
		b, err := src.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, context.Canceled):
			return errors.New("stopped: the files are incomplete")
		case err != nil:
			return err
		}
		if err := w.Write(b); err != nil {
			return err
		}
	}
}

func writeWear(path string, seen []sim.Measurement) (err error) {
	out, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	var ms []wear.Measurement
	for _, m := range seen {
		m.Machine = "" // the layouts leave it open too
		ms = append(ms, wear.Measurement{Machine: m.Machine, Tool: m.Tool, Hole: m.Hole, Time: m.Time, VBMeanUM: m.VBMeanUM, VBMaxUM: m.VBMaxUM, State: m.State})
	}
	return wear.Write(out, ms)
}

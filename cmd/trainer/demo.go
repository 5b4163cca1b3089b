package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/model"
)

type demoCommand struct {
	newModel
}

// Run trains a model of the simulated drill, for trying Flank out.
func (f *demoCommand) Run(ctx context.Context, out cli.Output) error {
	if _, err := os.Stat(f.Model); !errors.Is(err, fs.ErrNotExist) {
		m, err := model.Load(f.Model)
		if err == nil {
			fmt.Fprintf(out.Stdout, "%s is there: %s\n", f.Model, m)
		}
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.Model), 0o755); err != nil {
		return err
	}
	job := train.SimulatedHistory("local/site/area/line/drill", 1)
	job.Program, job.Log = cli.Version(), cli.Logger(out.Stderr, zerolog.InfoLevel)
	bar := cli.NewProgress(out.Stderr)
	defer bar.Close()
	job.Progress = bar.Report
	m, report, err := train.Run(ctx, job)
	if err != nil {
		return err
	}
	bar.Close()
	if err := saveModel(m, report, f.Model); err != nil {
		return err
	}
	fmt.Fprintf(out.Stdout, "%s\nmodel   %s (%s)\ncard    %s\n", report.Summary(), f.Model, m.ID(), nextTo(f.Model, ".report.html"))
	return nil
}

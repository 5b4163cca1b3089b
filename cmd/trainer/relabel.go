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

type relabelCommand struct {
	examFlags
	besideModel
	cli.QuietFlag
}

// path returns where the new model goes, which is not where the old one is.
func (f *relabelCommand) path() (string, error) {
	out := f.Out
	if out == "" {
		out = nextTo(f.Model, ".relabelled"+filepath.Ext(f.Model))
	}
	if err := cli.CheckFolder("--out", out); err != nil {
		return "", err
	}
	is, err := os.Stat(f.Model)
	if err != nil {
		return out, nil // said when it is read
	}
	if to, err := os.Stat(out); err == nil && os.SameFile(is, to) {
		return "", fmt.Errorf("--out %s: it is the model that is relabelled, which stays: name another file", out)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("--out %s: %w", out, err)
	}
	return out, nil
}

// Run gives a model costs for the labels of today, and writes it as another model with its card.
func (f *relabelCommand) Run(ctx context.Context, out cli.Output) error {
	path, err := f.path()
	if err != nil {
		return err
	}
	m, err := model.Load(f.Model)
	if err != nil {
		return err
	}
	log := cli.Logger(out.Stderr, zerolog.InfoLevel)
	d, err := f.loadLabels(m, "--config", f.Config, f.examinedFlags, log)
	if err != nil {
		return err
	}
	p := f.Progress(out.Stderr)
	defer p.Close()
	child, report, err := train.Relabelling{Model: m, Inputs: d.Inputs, Wear: d.Wear, Join: d.Config.Join, Progress: p.Report, Log: log}.Run(ctx)
	if errors.Is(err, context.Canceled) {
		return errors.New("stopped: no model is written")
	}
	if err != nil {
		return err
	}
	p.Close()
	if err := saveModel(child, report, path); err != nil {
		return err
	}
	fmt.Fprintf(out.Stdout, "%s\nmodel   %s (%s, of %s)\ncard    %s\nreport  %s\n", report.Summary(), path, child.ID(), m.ID(), nextTo(path, ".report.html"), nextTo(path, ".report.json"))
	return nil
}

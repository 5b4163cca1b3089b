package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/train"
)

type featuresCommand struct {
	dataFlags
	cli.Destination
	Relative bool `help:"Make features relative to the reference of their tool, as the classifier takes them; windows that make a reference, or are not judged, have none. Such a table is to look at: fit does not take it."`
	Judged   bool `help:"Leave out windows that are not judged: of a machine that is not cutting, with a sensor fault, or that make a reference. Such a table is to look at as well."`
	cli.QuietFlag
}

// Run writes what a model would see of recordings.
func (f *featuresCommand) Run(ctx context.Context, out cli.Output) error {
	if _, err := table.FormatOf(f.Out); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if err := cli.CheckFolder("--out", f.Out); err != nil {
		return err
	}
	if len(f.Table) > 0 {
		return errors.New("--table: a table has features already: name recordings with --data, or windows on Kafka with --kafka")
	}
	job := train.Job{Scratch: filepath.Dir(f.Out), Log: cli.Logger(out.Stderr, zerolog.InfoLevel)}
	d, err := f.load(job.Log)
	if err != nil {
		return err
	}
	job.Config, job.Layout, job.Columns, job.Inputs, job.Wear = d.Config, d.Layout, d.Columns, d.Inputs, d.Wear
	if err := train.RemoveUnfinished(f.Out); err != nil {
		return err
	}
	p := f.Progress(out.Stderr)
	defer p.Close()
	job.Progress = p.Report
	n, err := train.WriteFeatures(ctx, job, train.FeatureFile{Path: f.Out, Relative: f.Relative, Judged: f.Judged})
	if err != nil {
		return err
	}
	p.Close()
	var words []string
	for _, s := range table.Statuses {
		if n.Status[s] > 0 {
			words = append(words, fmt.Sprintf("%d %s", n.Status[s], strings.ReplaceAll(s, "_", " ")))
		}
	}
	fmt.Fprintf(out.Stdout, "%d windows of %d tools: %s; %d have a label\n", n.Rows, n.Tools, strings.Join(words, ", "), n.Labelled)
	fmt.Fprintf(out.Stdout, "features  %s, %d features of each window\n", f.Out, n.Columns)
	return nil
}

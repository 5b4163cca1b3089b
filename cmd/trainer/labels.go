package main

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/train"
)

type labelsCommand struct {
	Check labelsCheckCommand `cmd:"" help:"Show which windows have a label, by tool on a time line, which have none, and why. Nothing is trained." example:"trainer labels check --config train.yaml --data 'runs/*.csv' --wear wear.csv"`

	Add    labelsAddCommand    `cmd:"" help:"Say on Kafka how worn a tool was." example:"trainer labels add --kafka kafka1:9092 --machine acme/spore/bay2/usk25 --tool T08 --wear 0.34mm --method microscope --by kim; trainer labels add --kafka kafka1:9092 --machine acme/spore/bay2/usk25 --tool T08 --state worn"`
	Import labelsImportCommand `cmd:"" help:"Put the rows of a wear file on Kafka. To import it again changes nothing." example:"trainer labels import wear.csv --kafka kafka1:9092 --machine acme/spore/bay2/usk25"`
	Ls     labelsListCommand   `cmd:"" help:"List the labels on Kafka." example:"trainer labels ls --kafka kafka1:9092; trainer labels ls --kafka kafka1:9092 --all -o json"`
	Revoke labelsRevokeCommand `cmd:"" help:"Take a label back. It stays visible with 'ls --all'." example:"trainer labels revoke L-K3ZQ7M2PABCD --kafka kafka1:9092 --reason 'another tool'"`
}

type labelsCheckCommand struct {
	dataFlags
	cli.PlotFile
	cli.QuietFlag
}

// Run shows the labels of the data.
func (f *labelsCheckCommand) Run(ctx context.Context, out cli.Output) error {
	if err := f.CheckPlot(); err != nil {
		return err
	}
	job := train.Job{Log: cli.Logger(out.Stderr, zerolog.InfoLevel)}
	d, err := f.load(job.Log)
	if err != nil {
		return err
	}
	job.Config, job.Layout, job.Inputs, job.Wear = d.Config, d.Layout, d.Inputs, d.Wear
	p := f.Progress(out.Stderr)
	defer p.Close()
	job.Progress = p.Report
	l, err := job.Labels(ctx)
	p.Close()
	if err != nil {
		return stoppedOr(err)
	}
	return f.show(l, out)
}

// show prints and draws labels. It is an error if there are none.
func (f *labelsCheckCommand) show(l *card.Labels, out cli.Output) error {
	if _, err := fmt.Fprint(out.Stdout, l.Text()); err != nil {
		return err
	}
	if f.Plot != "" {
		if err := config.WriteFile(f.Plot, l.SVG()); err != nil {
			return fmt.Errorf("--plot: %w", err)
		}
		fmt.Fprintf(out.Stdout, "\nplot     %s\n", f.Plot)
	}
	if labelled, all := l.Labelled(); labelled == 0 {
		return fmt.Errorf("none of %d windows has a label: the lines above say why", all)
	}
	return nil
}

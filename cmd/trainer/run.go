package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/internal/wear"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

const description = `Build models of tool condition from labelled recordings, and look into them.

A recording is a table with one row for each sample; the layout file of the configuration says which
columns are channels. Labels are a column of the recording or a wear file. Tools, never single
windows, are held out for the score.

  trainer fit --config examples/turning/train.yaml --data turning.csv --model turning.flank
  trainer fit --config examples/milling/train.yaml --data 'runs/*.csv' --model milling.flank
  trainer inspect turning.flank

Beside the model, fit writes a report for people, .report.md, and for programs, .report.json.`

type flags struct {
	Fit     fitFlags     `cmd:"" help:"Train a model and score it on tools it has not seen."`
	Inspect inspectFlags `cmd:"" help:"Print what is in a model file, and check it."`
	Demo    demoFlags    `cmd:"" help:"Drill a simulated history and train a model from it, unless there is one."`
}

type fitFlags struct {
	Config  string   `required:"" placeholder:"FILE" help:"Training configuration, see examples/turning/train.yaml."`
	Data    []string `required:"" sep:"none" placeholder:"FILE" help:"Recording to learn from; repeat it, or name more files after it. A quoted pattern such as 'runs/*.csv' works too."`
	Model   string   `default:"model.flank" placeholder:"FILE" help:"Where to write the model; the report is written beside it as .report.json and .report.md."`
	Wear    string   `placeholder:"FILE" help:"Wear file with labels; overrides the configuration."`
	Machine string   `default:"local/site/area/line/machine" help:"ISA-95 path of the machine, where the recordings do not name it."`
	Workers int      `default:"0" help:"Networks trained at the same time; 0 is one for each CPU. Never changes a result."`
	Quiet   bool     `help:"Show no progress."`
	More    []string `arg:"" optional:"" name:"file" help:"More recordings."`
}

type inspectFlags struct {
	Model string `arg:"" help:"Model file."`
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var f flags
	k, err := cli.Parse(&f, "trainer", description, args, stdout, stderr)
	if k == nil {
		return err
	}
	switch {
	case strings.HasPrefix(k.Command(), "inspect"):
		return inspect(f.Inspect.Model, stdout)
	case k.Command() == "demo":
		return demo(ctx, f.Demo, stdout, stderr)
	}
	return fit(ctx, f.Fit, stdout, stderr)
}

func fit(ctx context.Context, f fitFlags, stdout, stderr io.Writer) error {
	cfg := train.DefaultConfig()
	if err := config.Load(f.Config, &cfg); err != nil {
		return err
	}
	if err := cfg.Check(); err != nil {
		return fmt.Errorf("%s: %w", f.Config, err)
	}
	if dir := filepath.Dir(f.Model); !isDir(dir) { // now, and not when the training is over
		return fmt.Errorf("--model %s: there is no folder %s: make it first", f.Model, dir)
	}
	job := train.Job{Config: cfg, Layout: signal.GunDrill(), Program: cli.Version(), Workers: f.Workers, Log: cli.Logger(stderr, zerolog.InfoLevel)}
	var columns signal.Recording
	var err error
	if cfg.Layout != "" {
		if job.Layout, columns, err = signal.LoadLayout(config.Beside(f.Config, cfg.Layout)); err != nil {
			return err
		}
	}
	if job.Inputs, err = inputs(append(f.Data, f.More...), job.Layout, columns, f.Machine); err != nil {
		return err
	}
	if path := wearFile(f, cfg); path != "" {
		var warnings []string
		if job.Wear, warnings, err = wear.Load(path); err != nil {
			return err
		}
		for _, w := range warnings {
			job.Log.Warn().Msg(w)
		}
	}
	if !f.Quiet {
		p := cli.NewProgress(stderr)
		defer p.Close()
		job.Progress = p.Report
	}
	m, report, err := train.Run(ctx, job)
	if errors.Is(err, context.Canceled) {
		return errors.New("stopped before the model was trained: nothing is written")
	}
	if err != nil {
		return err
	}
	base := strings.TrimSuffix(f.Model, filepath.Ext(f.Model))
	if err := report.Save(base + ".report"); err != nil {
		return err
	}
	if err := m.Save(f.Model); err != nil {
		return err
	}
	fmt.Fprintln(stdout, report.Summary())
	fmt.Fprintf(stdout, "model   %s (%s)\nreport  %s.report.md, %s.report.json\n", f.Model, m.ID(), base, base)
	return nil
}

func wearFile(f fitFlags, cfg train.Config) string {
	if f.Wear != "" {
		return f.Wear
	}
	return config.Beside(f.Config, cfg.Wear)
}

// inputs returns the recordings that the arguments name, files or patterns.
// A recording that is named twice, or has a name that another one's tool has
// already, would make near copies look like windows of another tool.
func inputs(args []string, layout *signal.Layout, columns signal.Recording, machine string) ([]train.Input, error) {
	var ins []train.Input
	bySum, byName := make(map[string]string), make(map[string]string)
	for _, arg := range args {
		paths, err := filepath.Glob(arg)
		if err != nil {
			return nil, fmt.Errorf("--data %s: %w", arg, err)
		}
		if len(paths) == 0 {
			return nil, fmt.Errorf("--data %s: %w: check the path; a pattern must match a file", arg, fs.ErrNotExist)
		}
		for _, path := range paths {
			rec := source.Recording{Path: path, Layout: layout, Columns: columns, Machine: machine}
			if isDir(path) {
				return nil, fmt.Errorf("--data %s is a folder: name its recordings, for example '%s'", path, filepath.Join(path, "*.csv"))
			}
			sum, err := rec.SHA256()
			if err != nil {
				return nil, err
			}
			if other, twice := bySum[sum]; twice {
				return nil, fmt.Errorf("--data: %s and %s are the same recording: name one of them", other, path)
			}
			if other, twice := byName[rec.Name()]; twice && columns.Tool == "" {
				return nil, fmt.Errorf("--data: %s and %s would name their tools alike, which the layout has no column for: rename one of them", other, path)
			}
			bySum[sum], byName[rec.Name()] = path, path
			ins = append(ins, train.Input{Name: rec.Name(), SHA256: sum, Open: rec.Open})
		}
	}
	return ins, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func inspect(path string, stdout io.Writer) error {
	m, err := model.Load(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s\n", m)
	fmt.Fprintf(stdout, "layout      %s, fingerprint %s\n", m.Layout.Name(), m.Layout.Fingerprint())
	fmt.Fprintf(stdout, "label       faulty if %s\n", strings.TrimPrefix(wear.Rule(m.Label).String(), "faulty if "))
	if m.Gate != nil {
		fmt.Fprintf(stdout, "cutting     while %s is at %.4g or more\n", m.Gate.Channel, m.Gate.Threshold)
	}
	for _, d := range m.Provenance.Data {
		fmt.Fprintf(stdout, "trained on  %s, %d windows, SHA-256 %.16s…\n", d.Name, d.Windows, d.SHA256)
	}
	fmt.Fprintf(stdout, "seed        %d, by %s\n", m.Provenance.Seed, m.Provenance.Program)
	if scores, of := train.Headline(m); scores != "" {
		fmt.Fprintf(stdout, "scores      %s\n            of %s\n", scores, of)
	}
	fmt.Fprintf(stdout, "checks      checksum and %d golden vectors hold\n", len(m.Golden))
	return nil
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/gateway"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

// liveLife is the mean cutting time of a live tool: it wears out while the
// user watches.
const liveLife = 65 * time.Second

// drill returns the job of monitoring the simulated drill, with the model in
// the data directory, which it trains first if it is not there.
func (p *plant) drill(ctx context.Context) (job, error) {
	if p.model == nil {
		if err := p.findModel(ctx); err != nil {
			return job{}, err
		}
	}
	if err := p.model.Fits(signal.GunDrill(), p.model.Window); err != nil {
		return job{}, err
	}
	// Another seed than the history's: these tools were never seen.
	s := gateway.Simulation{Machine: p.Machine, Start: time.Now(), Seed: p.Seed + 1, Life: liveLife}
	if p.Once {
		s.Tools = 1
	}
	src, err := gateway.Simulated(s)
	if err != nil {
		return job{}, err
	}
	return job{source: src, speed: cmp.Or(p.Speed, 1), rule: train.RuleOf(p.model)}, nil
}

// findModel loads the model of the data directory, or trains one.
func (p *plant) findModel(ctx context.Context) error {
	path := filepath.Join(p.DataDir, "model.flank")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		p.model, err = model.Load(path)
		return err
	}
	bar := cli.NewProgress(p.stderr)
	defer bar.Close()
	job := train.SimulatedHistory(p.Machine, p.Seed)
	job.Program, job.Log = cli.Version(), p.log
	job.Progress = func(phase string, done, total int) {
		bar.Report(phase, done, total)
		status := web.Status{Phase: web.Training, Text: phase, Fraction: float64(done) / float64(max(total, 1))}
		if phase == train.Reading {
			status.Phase = web.LearningHistory
		}
		p.hub.Status(status)
	}
	fmt.Fprintln(p.stderr, "First start: drilling a labelled history of 20 simulated tools and training a model from it.")
	m, report, err := train.Run(ctx, job)
	if err != nil {
		return err
	}
	bar.Close()
	if err := report.Save(filepath.Join(p.DataDir, "model.report")); err != nil {
		return err
	}
	if err := m.Save(path); err != nil {
		return err
	}
	fmt.Fprintln(p.stderr, report.Summary())
	p.model = m
	return nil
}

package main

import (
	"cmp"
	"context"
	_ "embed" // for the prepared model
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

// liveLife is the mean cutting time of a live tool: it wears out while the
// user watches.
const liveLife = 65 * time.Second

// changeTime is how long the drill waits for a new tool. The alarm of the worn tool stands as
// long, so that a person can look at it and answer it.
const changeTime = 75 * time.Second

// prepared is the file of the model that p.train would train: `make prepared-model` writes it.
//
//go:embed prepared.flank
var prepared []byte

// drilledHistory returns the job of drilling the labelled history and training a model from it, by a program of
// that version.
func drilledHistory(machine, version string) train.Job {
	job := train.SimulatedHistory(machine, 1)
	job.Program = version
	return job
}

// drill returns the job of monitoring the simulated drill. It trains a model first if there is
// none.
func (p *plant) drill(ctx context.Context) (job, error) {
	if p.model == nil {
		if err := p.train(ctx); err != nil {
			return job{}, err
		}
	}
	if err := p.model.Fits(signal.GunDrill(), p.model.Window); err != nil {
		return job{}, err
	}
	// Another seed than the history's: these tools were never seen.
	s := gateway.Simulation{Machine: p.Machine, Start: time.Now(), Seed: 2, Life: liveLife}
	speed := cmp.Or(p.Speed, 1)
	if p.Once {
		s.Tools = 1 // no one waits for the end of a program that prints a summary
	} else {
		if p.newcomer {
			s.Used = 0.5 // a newcomer waits for the first alarm
		}
		s.Change = time.Duration(speed * float64(changeTime)) // by the clock of the person who looks
	}
	src, err := gateway.Simulated(s)
	if err != nil {
		return job{}, err
	}
	if src, err = sim.WithFaults(src, p.faults); err != nil {
		return job{}, fmt.Errorf("--fault: %w", err)
	}
	return job{source: src, speed: speed, classOf: card.RuleOf(p.model).Class}, nil
}

// modelPath returns where the model of the simulated drill is kept.
func (p *plant) modelPath() string { return filepath.Join(p.DataDir, "model.flank") }

// givenModel returns the model of --model, or else of the data directory, where the prepared one is put at
// first; nil if one is to be trained.
func (p *plant) givenModel() (*model.Model, error) {
	if p.Model != "" {
		return model.Load(p.Model)
	}
	if _, err := os.Stat(p.modelPath()); !p.Fresh && !errors.Is(err, fs.ErrNotExist) {
		return model.Load(p.modelPath())
	}
	if p.newcomer = true; p.Fresh {
		return nil, nil
	}
	fmt.Fprintln(p.stderr, "First start, with the prepared model, which learnt from 20 simulated tools; with --fresh it trains one itself.")
	m, err := model.Decode(prepared)
	if err != nil {
		return nil, fmt.Errorf("the prepared model: %w: start with --fresh", err)
	}
	return m, m.Save(p.modelPath())
}

// train trains the model of the simulated drill and keeps it in the data directory.
func (p *plant) train(ctx context.Context) error {
	bar := cli.NewProgress(p.stderr)
	defer bar.Close()
	job := drilledHistory(p.Machine, cli.Version())
	job.Log = p.log
	job.Progress = func(phase string, done, total int) {
		bar.Report(phase, done, total)
		status := web.Status{Phase: web.Training, Text: phase, Fraction: float64(done) / float64(max(total, 1))}
		if phase == train.Reading {
			status.Phase = web.LearningHistory
		}
		p.hub.Status(status)
	}
	fmt.Fprintln(p.stderr, "Drilling a labelled history of 20 simulated tools and training a model from it.")
	m, report, err := train.Run(ctx, job)
	if err != nil {
		return err
	}
	bar.Close()
	if err := report.Save(filepath.Join(p.DataDir, "model.report"), config.WriteFile); err != nil {
		return err
	}
	if err := m.Save(p.modelPath()); err != nil {
		return err
	}
	fmt.Fprintln(p.stderr, report.Summary())
	p.use(m)
	return nil
}

// use makes m the model that judges.
func (p *plant) use(m *model.Model) {
	p.model = m
	p.shown.Store(m)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/train/compare"
	"github.com/flank-tcm/flank/pkg/model"
)

type replayCommand struct {
	cli.ConfigFile
	Models []string `required:"" sep:"," placeholder:"A,B" help:"The two models: files, or ids of models on tcm.models.v1. A is what judges today."`
	cli.Span
	cli.Machines
	cli.FeatureTables
	cli.WearFile
	cli.Listing `set:"formats=text, json, html"`
	cli.QuietFlag
}

// Run judges features of the past by two models and prints how they differ.
func (f *replayCommand) Run(ctx context.Context, out cli.Output) error {
	c, to, err := loadBus(f.Config)
	if err != nil {
		return err
	}
	if err := f.check(c); err != nil {
		return err
	}
	glob, err := deploy.ParseGlob(f.For)
	if err != nil {
		return fmt.Errorf("--for %w", err)
	}
	models, names, err := f.models(ctx, c, to)
	if err != nil {
		return err
	}
	log := cli.Logger(out.Stderr, zerolog.WarnLevel)
	labels, err := compare.LoadLabels(f.Wear, func(text string) { log.Warn().Msg(text) })
	if err != nil {
		return fmt.Errorf("--wear: %w", err)
	}
	team := newReplayTeam(runtime.GOMAXPROCS(0), models, c.Alarm, labels)
	p := f.Progress(out.Stderr)
	defer p.Close()
	began := time.Now()
	span := replaySpan{f.Since.Time, f.Until.Time, glob, p}
	if len(f.Table) > 0 {
		err = replayTables(ctx, f.Table, span, team)
	} else {
		err = replayKafka(ctx, to, models, span, team)
	}
	judged := team.finish()
	if errors.Is(err, context.Canceled) {
		return errors.New("stopped")
	}
	if err != nil {
		return err
	}
	p.Close()
	r := team.report(names)
	if err := f.print(out.Stdout, r); err != nil {
		return err
	}
	if s := time.Since(began).Seconds(); judged > 0 && !f.Quiet {
		fmt.Fprintf(out.Stderr, "replayed %d windows in %.1f s, %.0f a second on %d cores\n", judged, s, float64(judged)/s, runtime.GOMAXPROCS(0))
	}
	return nil
}

// check reports flags that do not go together.
func (f *replayCommand) check(c settings) error {
	switch {
	case len(f.Models) != 2:
		return fmt.Errorf("--models names %d models: name two, with a comma between them, such as --models old.flank,new.flank", len(f.Models))
	case !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until.Time):
		return fmt.Errorf("--since %s is not before --until, %s", f.Since.Format(time.RFC3339), f.Until.Format(time.RFC3339))
	}
	if err := c.Alarm.Check(); err != nil {
		return fmt.Errorf("%s: %w", c.file, err)
	}
	return nil
}

func (f *replayCommand) print(w io.Writer, r *compare.Report) error {
	text, err := r.Format(f.Format)
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

// models loads the two models, and names them.
func (f *replayCommand) models(ctx context.Context, c settings, to bus.Config) (ms [2]*model.Model, names [2]string, err error) {
	for i, name := range f.Models {
		if ms[i], err = loadModel(ctx, c, to, name); err != nil {
			return ms, names, fmt.Errorf("--models %s: %w", name, err)
		}
		if names[i] = ms[i].ID(); name != names[i] {
			names[i] += ", " + name
		}
	}
	return ms, names, nil
}

// loadModel returns the model of a file, or the one with an id on Kafka. Unless the
// configuration says whose models count, anyone's do: a replay moves no alarm.
func loadModel(ctx context.Context, c settings, to bus.Config, name string) (*model.Model, error) {
	if _, err := os.Stat(name); err == nil || !strings.HasPrefix(name, "ecs-dbn-") {
		return model.Load(name)
	}
	keys, err := c.keys(len(c.Models.Keys) == 0)()
	if err != nil {
		return nil, err
	}
	t := deploy.NewTopic(to, keys)
	if _, err := t.CatchUp(ctx); err != nil {
		return nil, err
	}
	return t.Model(ctx, name)
}

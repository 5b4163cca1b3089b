package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/train"
)

type searchCommand struct {
	dataFlags
	Trials               int `default:"20" help:"Networks to try, the configured one among them; each is trained some hundred times (default: 20)."`
	cli.UsualDestination `set:"out=search.json"`
	cli.QuietFlag
	checkpointFlags
}

// Run tries networks, and writes what they gain.
func (f *searchCommand) Run(ctx context.Context, out cli.Output) error {
	s := train.Search{Trials: f.Trials, Job: train.Job{Program: cli.Version(), Log: cli.Logger(out.Stderr, zerolog.InfoLevel)}}
	d, err := f.load(s.Log)
	if err != nil {
		return err
	}
	s.Config, s.Layout, s.Inputs, s.Wear = d.Config, d.Layout, d.Inputs, d.Wear
	base := strings.TrimSuffix(f.Out, ".json")
	point, err := train.OpenCheckpoint(base+".checkpoint", f.CheckpointEvery, time.Now)
	if err != nil {
		return err
	}
	s.Keep = point
	p := f.Progress(out.Stderr)
	defer p.Close()
	s.Progress = p.Report
	r, err := s.Run(ctx)
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("stopped before the search was over: the same command goes on with what is in %s.checkpoint", base)
	}
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := cli.PrintJSON(&text, r); err != nil {
		return err
	}
	if err := config.WriteFile(f.Out, text.Bytes()); err != nil {
		return fmt.Errorf("--out %s: %w", f.Out, err)
	}
	if _, err := point.Remove(); err != nil {
		return err
	}
	p.Close()
	_, err = io.WriteString(out.Stdout, r.Text())
	return err
}

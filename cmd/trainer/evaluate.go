package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
)

type evaluateCommand struct {
	examFlags
	Model     string  `required:"" placeholder:"FILE" help:"Model to examine; labels follow the rule that it was trained with."`
	K         int     `default:"5" help:"Faulty windows of the last n that raise an alarm (default: 5)."`
	N         int     `default:"8" help:"Judged windows that an alarm looks at (default: 8)."`
	Threshold float64 `default:"0.5" help:"Score from which on a window counts as faulty for an alarm, as alarm.threshold of the monitor (default: 0.5, the model's own decision)."`
	cli.Listing
	cli.QuietFlag
}

// Run judges labelled data with a model and prints the figures.
func (f *evaluateCommand) Run(ctx context.Context, out cli.Output) error {
	_, r, err := f.examine(ctx, out.Stderr)
	if err != nil {
		return err
	}
	text, err := r.JSON()
	if err != nil {
		return err
	}
	if !f.IsJSON() {
		text = []byte(r.Text())
	}
	_, err = out.Stdout.Write(text)
	return err
}

// examine loads the model and the data and judges one by the other.
func (f *evaluateCommand) examine(ctx context.Context, stderr io.Writer) (*model.Model, *card.Evaluation, error) {
	m, err := model.Load(f.Model)
	if err != nil {
		return nil, nil, err
	}
	exam := train.Exam{Model: m, Alarm: alarm.Settings{K: f.K, N: f.N, Threshold: f.Threshold, Latch: true}, Log: cli.Logger(stderr, zerolog.ErrorLevel)}
	if err := exam.Alarm.Check(); err != nil {
		return nil, nil, err
	}
	d, err := f.load(m, cli.Logger(stderr, zerolog.WarnLevel))
	if err != nil {
		return nil, nil, err
	}
	exam.Inputs, exam.Wear, exam.Join, exam.Window = d.Inputs, d.Wear, d.Config.Join, d.Window(f.ModelFlags)
	p := f.Progress(stderr)
	defer p.Close()
	exam.Progress = p.Report
	r, err := exam.Run(ctx)
	if errors.Is(err, context.Canceled) {
		return nil, nil, errors.New("stopped")
	}
	return m, r, err
}

type costsCommand struct {
	examFlags
	Model string `required:"" placeholder:"FILE" help:"Model whose costs to study."`
	cli.Listing
	cli.QuietFlag
}

// Run shows how the costs of a model were chosen, or, with data, what would
// be best there.
func (f *costsCommand) Run(ctx context.Context, out cli.Output) error {
	var r *card.Evaluation
	m, err := model.Load(f.Model)
	if err != nil {
		return err
	}
	if f.Named() {
		e := evaluateCommand{examFlags: f.examFlags, Model: f.Model, K: alarm.Default.K, N: alarm.Default.N, QuietFlag: f.QuietFlag}
		if m, r, err = e.examine(ctx, out.Stderr); err != nil {
			return err
		}
	}
	s, err := train.StudyCosts(ctx, m, r)
	if err != nil {
		return err
	}
	if f.IsJSON() {
		text, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			return err
		}
		_, err = out.Stdout.Write(append(text, '\n'))
		return err
	}
	_, err = io.WriteString(out.Stdout, s.Text())
	return err
}

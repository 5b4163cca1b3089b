package main

import (
	"cmp"
	"context"
	"fmt"
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
	alarmFlag
	cli.Listing
	cli.QuietFlag
}

// Run judges labelled data with a model and prints the figures.
func (f *evaluateCommand) Run(ctx context.Context, out cli.Output) error {
	_, r, err := f.examine(ctx, out.Stderr)
	if err != nil {
		return err
	}
	if f.IsJSON() {
		return cli.PrintJSON(out.Stdout, r)
	}
	_, err = io.WriteString(out.Stdout, r.Text())
	return err
}

// examine loads the model and the data and judges one by the other.
func (f *evaluateCommand) examine(ctx context.Context, stderr io.Writer) (*model.Model, *card.Evaluation, error) {
	m, err := model.Load(f.Model)
	if err != nil {
		return nil, nil, err
	}
	rule, err := parseAlarm(cmp.Or(f.Alarm, "k=5"), &alarm.Settings{K: alarm.Default.K, N: alarm.Default.N, Threshold: alarm.Default.Threshold, Latch: true})
	if err != nil {
		return nil, nil, err
	}
	if rule == nil || *rule != (alarm.Settings{K: rule.K, N: rule.N, Threshold: rule.Threshold, Latch: true}) {
		return nil, nil, fmt.Errorf("--alarm %s: name k, n and threshold only: evaluate acknowledges each alarm at once, without hold times", f.Alarm)
	}
	exam := train.Exam{Model: m, Alarm: *rule, Log: cli.Logger(stderr, zerolog.ErrorLevel)}
	d, err := f.load(m, cli.Logger(stderr, zerolog.WarnLevel))
	if err != nil {
		return nil, nil, err
	}
	exam.Inputs, exam.Wear, exam.Join, exam.Window = d.Inputs, d.Wear, d.Config.Join, d.Window(f.examinedFlags)
	p := f.Progress(stderr)
	defer p.Close()
	exam.Progress = p.Report
	r, err := exam.Run(ctx)
	return m, r, stoppedOr(err)
}

type costsCommand struct {
	examFlags
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
		e := evaluateCommand{examFlags: f.examFlags, QuietFlag: f.QuietFlag}
		if m, r, err = e.examine(ctx, out.Stderr); err != nil {
			return err
		}
	}
	s, err := train.StudyCosts(ctx, m, r)
	if err != nil {
		return err
	}
	if f.IsJSON() {
		return cli.PrintJSON(out.Stdout, s)
	}
	_, err = io.WriteString(out.Stdout, s.Text())
	return err
}

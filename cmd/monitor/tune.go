package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/cmd/internal/dataset"
	"github.com/flank-tcm/flank/internal/atomicfile"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/internal/tune"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
)

type tuneFlags struct {
	Config string `required:"" placeholder:"FILE" help:"Configuration; of it 'model' and 'alarm' are used."`
	Budget string `required:"" placeholder:"BUDGET" help:"False alarms that people put up with in some cutting time, such as '1 per 8h'."`
	Model  string `placeholder:"FILE" help:"Model to tune for, instead of the configuration's."`
	Train  string `placeholder:"FILE" help:"Training configuration, see examples/turning/train.yaml; recordings need it for their layout."`
	dataset.Flags
	HoldOut bool   `help:"Score each tool by networks that are trained without it. It is always so with data that the model was trained on; ask for it where they were written anew since."`
	Plot    string `placeholder:"FILE" help:"Where to draw the trade-off curve, as SVG (default: beside the model, as .tune.svg)."`
	Workers int    `default:"0" help:"How much is done at the same time; 0 is one for each CPU. Never changes the choice."`
	Quiet   bool   `help:"Show no progress."`
}

// tuneAlarm chooses settings of the alarm and prints them.
func tuneAlarm(ctx context.Context, file string, c settings, f tuneFlags, stdout, stderr io.Writer) error {
	budget, err := tune.ParseBudget(f.Budget)
	if err != nil {
		return fmt.Errorf("--%w", err)
	}
	if err := c.Alarm.Check(); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	path := cmp.Or(f.Model, config.ResolvePath(file, c.Model))
	if path == "" {
		return fmt.Errorf("%s: model: name the model file, train one with `trainer fit`", file)
	}
	plot := cmp.Or(f.Plot, strings.TrimSuffix(path, filepath.Ext(path))+".tune.svg")
	if filepath.Ext(plot) != ".svg" {
		return fmt.Errorf("--plot %s: plots are SVG: name a file that ends in .svg", plot)
	}
	m, err := model.Load(path)
	if err != nil {
		return err
	}
	log := cli.Logger(stderr, zerolog.WarnLevel)
	d, err := f.Load("--train", f.Train, m, log)
	if err != nil {
		return err
	}
	p := cli.NewProgress(stderr)
	if f.Quiet {
		p = cli.NewProgress(io.Discard)
	}
	defer p.Close()
	exam := train.Exam{
		Model: m, Inputs: d.Inputs, Wear: d.Wear, Join: d.Config.Join, Alarm: c.Alarm, Workers: f.Workers, Progress: p.Report, Log: zerolog.Nop(),
	}
	scored, err := train.Score(ctx, exam, f.HoldOut)
	if err != nil {
		return stoppedOr(err)
	}
	lives := livesOf(scored)
	choice, err := tune.Choose(ctx, tune.Job{
		Lives: lives, Length: m.Window.Length, Step: m.Window.Step(), Alarm: c.Alarm, Budget: budget, Workers: f.Workers,
		Progress: func(done, total int) { p.Report("replaying", done, total) },
	})
	if err != nil {
		return stoppedOr(err)
	}
	p.Close()
	if err := atomicfile.Write(plot, choice.Plot().SVG()); err != nil {
		return fmt.Errorf("--plot: %w", err)
	}
	scores := "of the model, which is not known to have seen these data; if it has, under another form, say --hold-out"
	switch {
	case scored.Seen != "":
		scores = fmt.Sprintf("of tools held out: THE MODEL WAS TRAINED ON %s, so %d networks were trained anew, each without the tools it scores", scored.Seen, scored.Networks)
	case scored.Networks > 0:
		scores = fmt.Sprintf("of tools held out, by %d networks that were trained without them", scored.Networks)
	}
	fmt.Fprintf(stdout, "model    %s, %v\nwindows  %s\nscores   %s\n%s", m.ID(), train.RuleOf(m), scored.Windows, scores, choice.Text())
	for _, w := range scored.Warnings {
		fmt.Fprintf(stderr, "note: %s\n", w)
	}
	_, err = fmt.Fprintf(stderr, "plot     %s\n", plot)
	return err
}

// livesOf sorts windows by tool, in the order in which tools appear. Unknown ones are
// left out, as the alarm leaves them out: times are of cutting that it counts.
func livesOf(s *train.Scored) []tune.Life {
	var lives []tune.Life
	index := make(map[string]int)
	for i, tool := range s.Tool {
		if s.Unknown[i] {
			continue
		}
		at, known := index[tool]
		if !known {
			at = len(lives)
			index[tool], lives = at, append(lives, tune.Life{Tool: tool})
		}
		l := &lives[at]
		l.Score, l.Faulty = append(l.Score, s.Score[i]), append(l.Faulty, s.Class[i] != classify.Healthy)
	}
	return lives
}

func stoppedOr(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("stopped")
	}
	return err
}

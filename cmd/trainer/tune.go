package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/internal/train/tune"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
)

// monitorConfig is what tuning takes of monitor.yaml. The monitor checks the other keys.
type monitorConfig struct {
	Model string         `yaml:"model"`
	Alarm alarm.Settings `yaml:"alarm"`
	Rest  map[string]any `yaml:",inline"`
}

type tuneCommand struct {
	Config string `required:"" placeholder:"FILE" help:"Configuration of the monitor: its keys 'alarm' and 'model'."`
	Budget string `required:"" placeholder:"BUDGET" help:"Accepted false alarms in some cutting time, such as '1 per 8h', or in all of the data, such as '1'."`
	Model  string `placeholder:"FILE" help:"Model to tune for, instead of the configuration's."`
	inputFlags
	examinedFlags
	HoldOut bool `help:"Score each tool by networks that are trained without it. This is always done with tools that the model was trained on, which it recognises by their windows; ask for it if the windows were cut differently."`
	cli.QuietFlag
}

// Run chooses settings of the alarm and prints them.
func (f *tuneCommand) Run(ctx context.Context, out cli.Output) error {
	c := monitorConfig{Alarm: alarm.Default}
	if err := config.Load(f.Config, &c); err != nil {
		return err
	}
	budget, err := tune.ParseBudget(f.Budget)
	if err != nil {
		return fmt.Errorf("--%w", err)
	}
	if err := c.Alarm.Check(); err != nil {
		return fmt.Errorf("%s: %w", f.Config, err)
	}
	path := cmp.Or(f.Model, config.ResolvePath(f.Config, c.Model))
	if path == "" {
		return fmt.Errorf("%s: model: it names no model file: name one with --model", f.Config)
	}
	m, err := model.Load(path)
	if err != nil {
		return err
	}
	d, err := f.loadFor(m, "--layout", "", f.examinedFlags, cli.Logger(out.Stderr, zerolog.WarnLevel))
	if err != nil {
		return err
	}
	p := f.Progress(out.Stderr)
	defer p.Close()
	exam := train.Exam{
		Model: m, Inputs: d.Inputs, Wear: d.Wear, Join: d.Config.Join, Window: d.Window(f.examinedFlags), Alarm: c.Alarm, Progress: p.Report, Log: zerolog.Nop(),
	}
	scored, err := train.Score(ctx, exam, f.HoldOut)
	if err != nil {
		return stoppedOr(err)
	}
	choice, err := tune.Choose(ctx, tune.Job{
		Lives: livesOf(scored), Length: scored.Time.Length, Step: scored.Time.Step(), NoHours: scored.Time.Unknown, Alarm: c.Alarm, Budget: budget,
		Progress: func(done, total int) { p.Report("replaying", done, total) },
	})
	if errors.Is(err, tune.ErrNoHours) {
		return fmt.Errorf("--%w", err)
	}
	if err != nil {
		return stoppedOr(err)
	}
	p.Close()
	return save(out, path, m, scored, choice)
}

// save writes the curve and the figures next to the file of the model, and prints what was chosen.
func save(out cli.Output, path string, m *model.Model, scored *train.Scored, choice *tune.Choice) error {
	base := nextTo(path, ".tune")
	if err := config.WriteFile(base+".svg", choice.Plot().SVG()); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	figures, err := json.MarshalIndent(choice.Saved(m.ID()), "", "  ")
	if err != nil {
		panic("trainer tune: " + err.Error()) // figures are finite
	}
	if err := config.WriteFile(base+".json", append(figures, '\n')); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	fmt.Fprintf(out.Stdout, "model    %s, %v\nwindows  %s\nscores   %s\n", m.ID(), card.RuleOf(m), scored.Windows, originOf(scored))
	if scored.Time.Words != "" {
		fmt.Fprintf(out.Stdout, "time     %s\n", scored.Time.Words)
	}
	fmt.Fprint(out.Stdout, choice.Text())
	for _, w := range scored.Warnings {
		fmt.Fprintf(out.Stderr, "note: %s\n", plain.Text(w))
	}
	_, err = fmt.Fprintf(out.Stderr, "plot     %s.svg\n", base)
	return err
}

// originOf says which networks gave the scores.
func originOf(s *train.Scored) string {
	switch {
	case s.Seen != "":
		return fmt.Sprintf("of tools held out: THE MODEL WAS TRAINED ON %s, so %d networks were trained for this, each without the tools it scores", s.Seen, s.Networks)
	case s.Networks > 0:
		return fmt.Sprintf("of tools held out, by %d networks that were trained without them", s.Networks)
	}
	return "of the model, which was not trained on these data as far as known: none of its training windows is among them; if it was, on windows that were cut differently, use --hold-out"
}

// livesOf sorts windows by tool, as people count their names. Tools that get worn where no
// window is judged have a life too.
func livesOf(s *train.Scored) []tune.Life {
	var lives []tune.Life
	index := make(map[string]int)
	of := func(tool string) *tune.Life {
		at, known := index[tool]
		if !known {
			at = len(lives)
			index[tool], lives = at, append(lives, tune.Life{Tool: tool})
		}
		return &lives[at]
	}
	for i, tool := range s.Tool {
		l := of(tool)
		l.Score, l.Faulty, l.Unknown = append(l.Score, s.Score[i]), append(l.Faulty, s.Class[i] != 0), append(l.Unknown, !s.Unknown[i].Counts())
	}
	for _, u := range s.Unjudged {
		l := of(u.Tool)
		l.Unjudged, l.Why = u.Windows(), u.Words()
	}
	slices.SortFunc(lives, func(a, b tune.Life) int { return card.CompareNames(a.Tool, b.Tool) })
	return lives
}

func stoppedOr(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("stopped")
	}
	return err
}

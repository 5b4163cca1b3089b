package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/internal/train/study"
)

// studyWorkers is how many fits are made at the same time, each by one worker.
const studyWorkers = 2

type studyCommand struct {
	dataFlags
	Label   string   `placeholder:"COLUMN" help:"Of a .csv of your own, given with --data and without --config: the column that holds the class, one of two values, of which the rarer one is positive; or wear, with --vb-max-um."`
	LimitUM float64  `name:"vb-max-um" placeholder:"UM" help:"Flank wear in µm from which on a tool is worn: turns the column --label into the class; of recordings and tables of fit it counts instead of the label of the configuration."`
	Group   string   `placeholder:"COLUMN" help:"Column of the .csv that says which rows belong together, for example the tool; groups, never single rows, are held out."`
	Methods []string `placeholder:"NAME" help:"Methods to compare, with commas between them, see below (default: all)."`
	Trials  int      `default:"3" placeholder:"N" help:"Trials of each method, each with random draws of its own (default: 3)."`
	cli.QuietFlag
}

// Help is what --help says below the flags' summary.
func (studyCommand) Help() string {
	var b strings.Builder
	b.WriteString(`Says in its first sentence which method to deploy for your data, even if that is not Flank's ECS-DBN: the simplest one whose
G-mean on tools held out is as good as the best one's, as far as so few tools show.

  trainer study --config train.yaml --data 'runs/*.csv'
  trainer study --table features.parquet
  trainer study --data my.csv --label faulty --group tool
  trainer study --data my.csv --label wear --vb-max-um 300 --group tool --ignore time

Recordings, tables and windows on Kafka are those that fit takes, with its flags: features are relative to the tool's
reference, and ecs-dbn is trained as the configuration says. A .csv without --config is any table with a line of column names.

A method is fitted to the training part of a fold, with its encoder and search among settings, and decides the
test part. The table shows the geometric mean of both recalls (G-mean), which no method can raise by giving up the rare class,
with its standard deviation over trials, and what the G-mean is made of. Sentences below the table
say whether ECS-DBN is right for your data: whether a method is better by more than that deviation and than so few rare rows, or groups, leave
open. If logistic is as good as ecs-dbn, a network is worth nothing on your data. By group,
figures are of the rows of all groups held out, together; without, rows of one tool are on both sides of a fold and
every method looks better than it is.

Methods:
`)
	for _, m := range study.Methods() {
		fmt.Fprintf(&b, "  %-14s %s\n", m.Name, m.Settings)
	}
	return b.String()
}

// plain reports whether the data are a plain table: one that fit would not take.
func (f *studyCommand) plain() bool { return f.Config+f.Layout == "" && len(f.Data) > 0 }

// check reports flags that do not go together.
func (f *studyCommand) check() error {
	switch {
	case !f.Named():
		return errors.New("name your data with --data or --table (see --help)")
	case f.LimitUM < 0:
		return fmt.Errorf("--vb-max-um %v: must be positive", f.LimitUM)
	case f.Trials < 1:
		return errors.New("--trials must be positive")
	case f.plain():
		return f.checkPlain()
	case f.Label != "" || f.Group != "":
		return errors.New("--label and --group are for a .csv without --config; of recordings and tables of fit the label is in the configuration or in --wear, and tools are the groups")
	}
	return nil
}

// checkPlain reports flags that do not go with a plain table.
func (f *studyCommand) checkPlain() error {
	path := f.Data[0]
	switch ending := strings.ToLower(filepath.Ext(path)); {
	case f.Wear != "":
		return errors.New("--wear goes with --config, whose layout says which columns are channels, or with --table")
	case len(f.Data)+len(f.More) > 1:
		return errors.New("a study of tables without --config is of one .csv: name one, or recordings with --config, or tables of features with --table")
	case ending == ".parquet" || ending == ".arrow" || ending == ".feather":
		return fmt.Errorf("--data %s: name a table of features with --table, or recordings with --data and their --config", path)
	case f.Label == "" && f.LimitUM != 0:
		return errors.New("--label is missing: the column of --data that holds the wear")
	case f.Label == "":
		return errors.New("--label is missing: the column of --data that holds the class; if the file is a recording, its layout is missing: name train.yaml with --config")
	}
	return nil
}

// Run compares methods and prints which to deploy, and the table.
func (f *studyCommand) Run(ctx context.Context, out cli.Output) error {
	if err := f.check(); err != nil {
		return err
	}
	bar := f.Progress(out.Stderr)
	defer bar.Close()
	s, heading, err := f.set(ctx, out, bar)
	if err != nil {
		return err
	}
	cells, err := study.Run(ctx, s, study.Plan{Methods: f.Methods, Trials: f.Trials, Workers: studyWorkers, Progress: bar.Report})
	if errors.Is(err, context.Canceled) {
		return errors.New("stopped: nothing was kept; fewer --methods or --trials take less time")
	}
	if err != nil {
		return err
	}
	bar.Close()
	fmt.Fprintf(out.Stdout, "%s%s\n%s%s", study.Recommend(s, cells), heading, study.Table(study.Summarise(cells, s.Groups != nil)), study.Verdict(s, cells))
	return nil
}

// set returns the user's own data as a set, and what they were taken for.
func (f *studyCommand) set(ctx context.Context, out cli.Output, bar *cli.Progress) (*study.Set, string, error) {
	if f.plain() {
		s, err := study.CSV{Path: f.Data[0], Label: f.Label, Group: f.Group, Ignore: f.Ignore, Keep: f.Keep, LimitUM: f.LimitUM}.Load()
		if err != nil {
			return nil, "", err
		}
		return s, f.heading(s), nil
	}
	log := cli.Logger(out.Stderr, zerolog.WarnLevel)
	data := f.dataFlags
	if len(data.Table) == 0 {
		data.Ignore = nil // features of recordings are computed, and do not count
	}
	d, err := data.load(log)
	if err != nil {
		return nil, "", err
	}
	if len(data.Table) == 0 {
		d.Config.Exclude = append(d.Config.Exclude, f.Ignore...)
	}
	if f.LimitUM > 0 {
		d.Config.Label = wear.Rule{VBMaxUM: f.LimitUM}
	}
	e, err := train.ExamplesOf(ctx, train.Job{Config: d.Config, Layout: d.Layout, Inputs: d.Inputs, Wear: d.Wear, Workers: studyWorkers, Log: log, Progress: bar.Report})
	if err != nil {
		return nil, "", err
	}
	for _, w := range e.Warnings {
		log.Warn().Msg(w)
	}
	name := "recordings"
	if len(d.Inputs) == 1 && d.Inputs[0].Name != "" {
		name = d.Inputs[0].Name
	}
	s := &study.Set{Name: name, X: e.X, Y: e.Y, Rare: e.Faulty, Groups: e.Groups, Kind: "tool", Ordered: e.Ordered, Wear: e.Wear, Settings: &e.Settings}
	if err := s.LeaveGroupsOut(); err != nil {
		return nil, "", err
	}
	return s, fmt.Sprintf("%s. Each of %d parts is held out in turn, tool by tool.", e.Words(), len(s.Folds)), s.Check()
}

// heading says what a table was taken for.
func (f *studyCommand) heading(s *study.Set) string {
	how := fmt.Sprintf("Each of %d parts is held out in turn, %s by %s.", len(s.Folds), f.Group, f.Group)
	if f.Group == "" {
		how = fmt.Sprintf("Folds are by row, %d of them: if rows of one tool, or one minute, resemble each other, all figures flatter. Name what they share with --group.", len(s.Folds))
	}
	text := fmt.Sprintf("%s: %d rows of %d columns, %d of them of the rare class, %s. %s\nColumns: %s.", f.Data[0], s.X.Rows, s.X.Cols, s.RareRows(), s.Rare, how, strings.Join(s.Columns, ", "))
	if len(s.Left) > 0 {
		text += fmt.Sprintf("\nLeft out: %s. --keep COLUMN takes one in.", strings.Join(s.Left, "; "))
	}
	return text
}

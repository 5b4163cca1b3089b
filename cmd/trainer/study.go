package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/config/atomicfile"
	"github.com/flank-tcm/flank/internal/study"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/internal/train"
)

type studyCommand struct {
	dataFlags
	Label   string        `placeholder:"COLUMN" help:"Of a .csv of your own, given with --data and without --config: the column that holds the class, one of two values, of which the rarer one is positive; or wear, with --vb-max-um."`
	LimitUM float64       `name:"vb-max-um" placeholder:"UM" help:"Flank wear in µm from which on a tool is worn: turns the column --label into the class; of recordings and tables of fit it counts instead of the label of the configuration."`
	Group   string        `placeholder:"COLUMN" help:"Column of the .csv that says which rows belong together, for example the tool; groups, never single rows, are held out."`
	KEEL    string        `name:"keel" placeholder:"DIR" help:"Folder of data sets of the KEEL repository with their five folds, instead of your data."`
	Sets    []string      `placeholder:"NAME" help:"Sets of KEEL to study, with commas between them (default: all)."`
	Drill   bool          `help:"The simulated gun drill instead: the paper's 20 tools, one row for each reading of the 14 channels, parted at random as in the paper and by tool."`
	Rows    int           `default:"200000" help:"Rows of --drill that are kept (default: 200000)."`
	Full    bool          `help:"With --drill, fit dbn and ecs-dbn to as many rows as the paper had too, 19,712,414; they stay on disk, 1.1 GB in the folder of --out."`
	Cutting time.Duration `default:"2443s" help:"With --drill, cutting time of all tools (default: 2443s, the paper's)."`
	Methods []string      `placeholder:"NAME" help:"Methods to compare, with commas between them, see below (default: of your data ecs-dbn, dbn, logistic, random-forest and extra-trees; of --keel and --drill all others and not the last three)."`
	Trials  int           `placeholder:"N" help:"Trials of each method, each with random draws of its own (default: 3, but with --drill 1 where rows are parted at random or relative to a reference, and with --keel 10 of ecs-dbn and dbn)."`
	Redo    []string      `placeholder:"NAME" help:"Methods whose cells, of all sets, are dropped and made again, after a change."`
	Out     string        `default:"study" placeholder:"DIR" help:"Folder of cells.csv, one line for each set, method, trial and fold. Cells that it holds are not made again, so a study that was stopped goes on; another table, or other folds, need another folder (default: study)."`
	Workers int           `default:"2" help:"Cells made at the same time. Never changes a cell but its seconds (default: 2)."`
	progressFlags
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
  trainer study --keel keel --sets glass1,pima --trials 2 --out glass
  trainer study --drill --full --out drill

Recordings, tables and windows on Kafka are those that fit takes, with its flags: features are relative to the tool's
reference, and ecs-dbn is trained as the configuration says. A .csv without --config is any table with a line of column names.

A method is fitted to the training part of a fold, with its encoder, resampler and search among settings, and decides the
test part. The table shows the geometric mean of both recalls (G-mean), which no method can raise by giving up the rare class,
with its standard deviation over trials; the mean rank; and what the G-mean is made of. Sentences below the table
say whether ECS-DBN is right for your data: whether a method is better by more than that deviation and than so few rare rows, or groups, leave
open. If dbn is as good as ecs-dbn, costs are worth nothing on your data; if logistic is, a network is not. By group,
figures are of the rows of all groups held out, together; without, rows of one tool are on both sides of a fold and
every method looks better than it is.

Methods:
`)
	for _, m := range study.AllMethods() {
		fmt.Fprintf(&b, "  %-22s %s\n", m.Name, m.Settings)
	}
	return b.String()
}

// ownTrials is how many trials there are of each method on a user's own data.
const ownTrials = 3

// own reports whether a user's own data are named, and whether they are a plain table: one
// that fit would not take.
func (f *studyCommand) own() (own, plain bool) {
	return f.Named(), f.Named() && f.Config == "" && len(f.Data) > 0
}

// check reports flags that do not go together.
func (f *studyCommand) check() error {
	own, plain := f.own()
	switch {
	case count(f.KEEL != "", own, f.Drill) != 1:
		return errors.New("name your data with --data or --table, KEEL's folder with --keel, or say --drill (see --help)")
	case f.Full && !f.Drill:
		return errors.New("--full goes with --drill")
	case f.Rows < 1000 || f.Cutting < 20*time.Second:
		return errors.New("--rows must be 1000 or more, --cutting 20s or more")
	case !own && (f.Label != "" || f.LimitUM != 0 || f.Group != "" || len(f.Ignore) > 0):
		return errors.New("--label, --vb-max-um, --group and --ignore go with --data")
	case f.LimitUM < 0:
		return fmt.Errorf("--vb-max-um %v: must be positive", f.LimitUM)
	case f.KEEL == "" && len(f.Sets) > 0:
		return errors.New("--sets goes with --keel")
	case f.Trials < 0 || f.Workers < 1:
		return errors.New("--trials and --workers must be positive")
	case plain:
		return f.checkPlain()
	case own && (f.Label != "" || f.Group != ""):
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
	err := f.check()
	if err != nil {
		return err
	}
	p := study.Plan{Methods: f.Methods, Trials: f.Trials, Dir: f.Out, Redo: f.Redo, Workers: f.Workers}
	bar := f.progress(out.Stderr)
	defer bar.Close()
	p.Progress = bar.Report
	drill := study.Drill{Seed: 1, Cutting: f.Cutting, Rows: f.Rows, Progress: bar.Report}
	heading := ""
	switch own, _ := f.own(); {
	case f.KEEL != "":
		p.Sets, err = study.LoadKEEL(f.KEEL, f.Sets)
	case f.Drill:
		p.Sets, err = drill.Sets(ctx)
	case own:
		var s *study.Set
		s, heading, err = f.set(ctx, out, bar)
		p.Sets, p.Trials = []*study.Set{s}, cmp.Or(f.Trials, ownTrials)
		if len(f.Methods) == 0 {
			p.Methods = study.OwnMethods()
		}
	}
	if err != nil {
		return err
	}
	cells, err := study.Run(ctx, p)
	if err == nil && f.Full {
		drill.Rows = 0
		cells, err = drill.RunFull(ctx, f.Out)
	}
	path := filepath.Join(f.Out, study.CellsFile)
	if errors.Is(err, context.Canceled) && len(f.Redo) > 0 {
		return fmt.Errorf("stopped: the same command without --redo goes on with what is in %s; with it, all begins again", path)
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("stopped: the same command goes on with what is in %s", path)
	}
	if err != nil {
		return err
	}
	bar.Close()
	if f.Drill {
		text := study.DrillPage(cells)
		fmt.Fprint(out.Stdout, text)
		return atomicfile.Write(filepath.Join(f.Out, "drill.md"), []byte(text))
	}
	if heading == "" {
		fmt.Fprint(out.Stdout, study.Table(study.Summarise(cells, false)))
	} else {
		s := p.Sets[0]
		fmt.Fprintf(out.Stdout, "%s%s\n%s%s", study.Recommend(s, cells), heading, study.Table(study.Summarise(cells, s.Groups != nil)), study.Verdict(s, cells))
	}
	fmt.Fprintf(out.Stdout, "cells  %s\n", path)
	return nil
}

// set returns the user's own data as a set, and what they were taken for.
func (f *studyCommand) set(ctx context.Context, out cli.Output, bar *cli.Progress) (*study.Set, string, error) {
	if _, plain := f.own(); plain {
		s, err := study.CSV{Path: f.Data[0], Label: f.Label, Group: f.Group, Ignore: f.Ignore, LimitUM: f.LimitUM}.Load()
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
	d, err := data.load(nil, log)
	if err != nil {
		return nil, "", err
	}
	if len(data.Table) == 0 {
		d.Config.Exclude = append(d.Config.Exclude, f.Ignore...)
	}
	if f.LimitUM > 0 {
		d.Config.Label = wear.Rule{VBMaxUM: f.LimitUM}
	}
	e, err := train.ExamplesOf(ctx, train.Job{Config: d.Config, Layout: d.Layout, Inputs: d.Inputs, Wear: d.Wear, Workers: f.Workers, Log: log, Progress: bar.Report})
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
	s := &study.Set{Name: study.CellName(name), X: e.X, Y: e.Y, Rare: e.Faulty, Groups: e.Groups, Kind: "tool", Ordered: e.Ordered, Wear: e.Wear, Settings: &e.Settings}
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
	return fmt.Sprintf("%s: %d rows of %d columns, %d of them of the rare class, %s. %s", f.Data[0], s.X.Rows, s.X.Cols, s.RareRows(), s.Rare, how)
}

// count returns how many are true.
func count(all ...bool) int {
	n := 0
	for _, b := range all {
		if b {
			n++
		}
	}
	return n
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/atomicfile"
	"github.com/flank-tcm/flank/internal/study"
)

type studyCommand struct {
	KEEL    string        `name:"keel" placeholder:"DIR" help:"Folder of data sets of the KEEL repository with their five folds."`
	Sets    []string      `placeholder:"NAME" help:"Sets of KEEL to study, with commas between them (default: all)."`
	Data    string        `placeholder:"FILE" help:"A table of your own instead, .csv with a line of column names: is an ECS-DBN right for it?"`
	Label   string        `placeholder:"COLUMN" help:"Column of --data that holds the class, one of two values; the rarer one is positive."`
	Group   string        `placeholder:"COLUMN" help:"Column of --data that says which rows belong together, for example the tool; groups, never single rows, are held out."`
	Ignore  []string      `placeholder:"COLUMN" help:"Columns of --data that are not features, for example a time."`
	Drill   bool          `help:"The simulated gun drill instead: the paper's 20 tools, one row for each reading of the 14 channels, parted at random as in the paper and by tool."`
	Rows    int           `default:"200000" help:"Rows of --drill that are kept (default: 200000)."`
	Full    bool          `help:"With --drill, fit dbn and ecs-dbn to as many rows as the paper had too, 19,712,414; they stay on disk, 1.1 GB in the folder of --out."`
	Cutting time.Duration `default:"2443s" help:"With --drill, cutting time of all tools (default: 2443s, the paper's)."`
	Methods []string      `placeholder:"NAME" help:"Methods to compare (default: all, see below)."`
	Trials  int           `placeholder:"N" help:"Trials of each method, each with random draws of its own (default: 10 of ecs-dbn and dbn, 3 of the others, 1 with --drill)."`
	Redo    []string      `placeholder:"NAME" help:"Methods whose cells, of all sets, are dropped and made again, after a change."`
	Out     string        `default:"study" placeholder:"DIR" help:"Folder of cells.csv, one line for each set, method, trial and fold. Cells that it holds are not made again, so a study that was stopped goes on; another table, or other folds, need another folder (default: study)."`
	Workers int           `default:"2" help:"Cells made at the same time. Never changes a cell but its seconds (default: 2)."`
	progressFlags
}

// Help is what --help says below the flags' summary.
func (studyCommand) Help() string {
	var b strings.Builder
	b.WriteString(`Compares ways to tell a rare class from a frequent one: ECS-DBN, what it is made of, what the literature compares with it.

  trainer study --data my.csv --label faulty --group tool
  trainer study --keel keel --sets glass1,pima --trials 2 --out glass
  trainer study --keel keel --out docs/figures/study
  trainer study --drill --full --out drill

A method is fitted to the training part of a fold, with its encoder, resampler and search among settings, and decides the
test part. The table shows the geometric mean of both recalls (G-mean), which no method can raise by giving up the rare class,
with its standard deviation over trials; the mean rank; and what the G-mean is made of. With --data, sentences below the table
say whether ECS-DBN is right for it: whether a method is better by more than that deviation and than so few rare rows, or groups, leave
open. If dbn is as good as ecs-dbn, costs are worth nothing on your data; if welm-w1 is, a network is not. With
--group, figures are of the rows of all groups held out, together; without, rows of one tool are on both sides of a fold and
every method looks better than it is.

Methods:
`)
	for _, m := range study.Methods() {
		fmt.Fprintf(&b, "  %-22s %s\n", m.Name, m.Settings)
	}
	return b.String()
}

// check reports flags that do not go together.
func (f *studyCommand) check() error {
	switch {
	case count(f.KEEL != "", f.Data != "", f.Drill) != 1:
		return errors.New("name KEEL's folder with --keel, or a table with --data, or say --drill (see --help)")
	case f.Full && !f.Drill:
		return errors.New("--full goes with --drill")
	case f.Rows < 1000 || f.Cutting < 20*time.Second:
		return errors.New("--rows must be 1000 or more, --cutting 20s or more")
	case f.Data != "" && f.Label == "":
		return errors.New("--label is missing: the column of --data that holds the class")
	case f.Data == "" && (f.Label != "" || f.Group != "" || len(f.Ignore) > 0):
		return errors.New("--label, --group and --ignore go with --data")
	case f.KEEL == "" && len(f.Sets) > 0:
		return errors.New("--sets goes with --keel")
	case f.Trials < 0 || f.Workers < 1:
		return errors.New("--trials and --workers must be positive")
	}
	return nil
}

// Run compares methods and prints the table.
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
	switch {
	case f.KEEL != "":
		p.Sets, err = study.LoadKEEL(f.KEEL, f.Sets)
	case f.Drill:
		p.Sets, err = drill.Sets(ctx)
		p.Trials = cmp.Or(f.Trials, 1)
	default:
		var s *study.Set
		s, err = study.CSV{Path: f.Data, Label: f.Label, Group: f.Group, Ignore: f.Ignore}.Load()
		p.Sets = []*study.Set{s}
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
	all := study.Summarise(cells, f.Group != "")
	if f.Data != "" {
		fmt.Fprintln(out.Stdout, f.heading(p.Sets[0]))
	}
	fmt.Fprint(out.Stdout, study.Table(all))
	if f.Data != "" {
		fmt.Fprint(out.Stdout, study.Verdict(p.Sets[0], cells))
	}
	fmt.Fprintf(out.Stdout, "cells  %s\n", path)
	return nil
}

// heading says what a table was taken for.
func (f *studyCommand) heading(s *study.Set) string {
	how := fmt.Sprintf("Each of %d parts is held out in turn, %s by %s.", len(s.Folds), f.Group, f.Group)
	if f.Group == "" {
		how = fmt.Sprintf("Folds are by row, %d of them: if rows of one tool, or one minute, resemble each other, all figures flatter. Name what they share with --group.", len(s.Folds))
	}
	return fmt.Sprintf("%s: %d rows of %d columns, %d of them of the rare class, %s. %s", f.Data, s.X.Rows, s.X.Cols, s.RareRows(), s.Rare, how)
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

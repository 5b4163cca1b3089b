// Command study compares ECS-DBN with other methods for imbalanced data, and writes the pages of docs/figures/study.
//
//	go run -C bench ./study cells -keel DIR
//	go run -C bench ./study drill -o ../docs/figures/study/drill -full
//	go run -C bench ./study report -keel DIR
//
// The first makes cells, one line of cells.csv for each set of KEEL, method, trial and fold. The second makes the
// cells of simulated gun drills, the paper's 20 tools, and drill.md of them. Cells that are there are not made again:
// what was stopped goes on. The third fits nothing. It writes the pages from cells.csv and from peers.csv,
// which bench/peers/study/peers.py made, and links defaults.md and drill/drill.md; the
// last three need not be there.
//
// A method's score on a set is the mean over trials of the mean over folds; its
// spread is the standard deviation over trials. Methods are compared on the sets
// that all of them have. Equal cells, equal bytes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/flank-tcm/flank/bench/command"
	"github.com/flank-tcm/flank/bench/imbalance"
	"github.com/flank-tcm/flank/internal/config"
)

func main() { command.Main("study", run) }

func run(ctx context.Context, args []string, _, stderr io.Writer) error {
	if len(args) == 0 {
		args = []string{"-h"}
	}
	flags := command.Flags("study cells|drill|report", stderr)
	keel := flags.String("keel", "", "`folder` of KEEL's data sets, with the paper's tables")
	dir := flags.String("o", "../docs/figures/study", "`folder` of the cells and the pages")
	methods := flags.String("methods", "", "`names` of methods; none: all")
	redo := flags.String("redo", "", "`names` of methods whose cells, of all sets, are made again, after a change")
	rows := flags.Int("rows", 200_000, "rows of the drill that are kept")
	cutting := flags.Duration("cutting", imbalance.PaperCutting, "cutting time of all tools of the drill: the paper's")
	full := flags.Bool("full", false, "fit dbn and ecs-dbn to as many rows of the drill as the paper had too; they stay on disk, 1.1 GB")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	plan := imbalance.Plan{Methods: command.List(*methods), Dir: *dir, Redo: command.List(*redo), Workers: 2, Progress: progress(stderr)}
	var err error
	switch args[0] {
	case "cells":
		if plan.Sets, err = imbalance.LoadKEEL(*keel, nil); err == nil {
			_, err = imbalance.Run(ctx, plan)
		}
	case "drill":
		err = drill(ctx, imbalance.Drill{Seed: 1, Cutting: *cutting, Rows: *rows, Progress: plan.Progress}, plan, *full)
	case "report":
		err = write(*keel, *dir, stderr)
	default:
		flags.Usage()
		err = fmt.Errorf("%q: name cells, drill or report", args[0])
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("stopped: the same command, without -redo, goes on with what is in %s", filepath.Join(*dir, imbalance.CellsFile))
	}
	return err
}

func progress(stderr io.Writer) func(phase string, done, total int) {
	last := ""
	return func(phase string, done, total int) {
		if now := fmt.Sprintf("%s: %d of 10", phase, 10*done/max(total, 1)); now != last {
			last = now
			fmt.Fprintln(stderr, "study:", now)
		}
	}
}

func drill(ctx context.Context, d imbalance.Drill, plan imbalance.Plan, full bool) error {
	var err error
	if plan.Sets, err = d.Sets(ctx); err != nil {
		return err
	}
	cells, err := imbalance.Run(ctx, plan)
	if err == nil && full {
		d.Rows = imbalance.PaperRows
		cells, err = d.RunFull(ctx, plan.Dir)
	}
	if err != nil {
		return err
	}
	return config.WriteFile(filepath.Join(plan.Dir, "drill.md"), []byte(imbalance.DrillPage(cells)))
}

func write(keel, dir string, stderr io.Writer) error {
	if keel == "" {
		return errors.New("-keel names the folder of KEEL's data sets")
	}
	paper, err := ReadPaper(keel)
	if err != nil {
		return err
	}
	in := Input{Methods: imbalance.Methods(), Paper: paper}
	if in.Cells, err = imbalance.LoadCells(filepath.Join(dir, imbalance.CellsFile)); err != nil {
		return err
	}
	peers, err := imbalance.LoadCells(filepath.Join(dir, "peers.csv"))
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(stderr, "no %s: Python's classifiers are left out\n", filepath.Join(dir, "peers.csv"))
	} else if err != nil {
		return err
	}
	in.Cells = append(in.Cells, peers...)
	for name, link := range map[string]*string{"defaults.md": &in.Defaults, "drill/drill.md": &in.Drill} {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err == nil {
			*link = name
		}
	}
	return Write(dir, in)
}

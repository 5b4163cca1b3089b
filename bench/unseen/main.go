// Unseen measures how well tools are judged that were never seen: by Flank with its
// default settings and by classifiers of scikit-learn, with and without the same aids.
//
//	unseen tables --data FOLDER --tables FOLDER
//	unseen flank --tables FOLDER --cells ../docs/figures/unseen
//	unseen simple --tables FOLDER --cells ../docs/figures/unseen
//	unseen robust --tables FOLDER --out ../docs/figures/unseen.md
//	unseen rounded --tables FOLDER --out FILE.csv --sets turning --protocols leave-one-out --redo half,bfloat16
//	unseen page --cells ../docs/figures/unseen --out ../docs/figures/unseen.md --readme ../README.md
//
// The first makes feature tables and splits of the recordings, which the other parts
// and bench/peers/unseen/peers.py learn from; the second runs Flank on each split, and the third the
// simple methods that `trainer fit` compares it with. The fourth makes sensors read wrong: it writes robust.md next to the page.
// The fifth says what verdicts become if features have 16 bits: it trains again with the forms that redo names.
// The last writes the page and the table of README.md, of the committed cells alone. `make unseen` calls them.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/flank-tcm/flank/bench/command"
	"github.com/flank-tcm/flank/bench/document"
	"github.com/flank-tcm/flank/internal/config"
)

func main() { command.Main("unseen", run) }

func run(ctx context.Context, args []string, _, stderr io.Writer) error {
	if len(args) == 0 {
		args = []string{""}
	}
	flags := command.Flags("unseen "+args[0], stderr)
	data := flags.String("data", os.Getenv("FLANK_DATA"), "`folder` of the recordings")
	tables := flags.String("tables", "../flank-data/unseen", "`folder` of feature tables, made once")
	sets := flags.String("sets", "turning,phm2010,uniwear,lmas,drill", "comma `list` of data sets")
	protocols := flags.String("protocols", "", "comma `list` of protocols that flank judges by; empty: all")
	cells := flags.String("cells", "../docs/figures/unseen", "`folder` of cells")
	out := flags.String("out", "../docs/figures/unseen.md", "`file` of the page")
	readme := flags.String("readme", "../README.md", "`file` whose table page writes; empty: none")
	redo := flags.String("redo", "", "comma `list` of variants whose cells flank makes again, or of forms that rounded trains with")
	seeds := flags.Int("seeds", 1, "`number` of seeds that rounded trains with")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	names := command.List(*sets)
	switch args[0] {
	case "flank":
		log, err := openLog(filepath.Join(*cells, "cells.csv"), command.List(*redo))
		if err != nil {
			return err
		}
		defer log.file.Close()
		return judgeAll(ctx, *tables, names, command.List(*protocols), log, stderr)
	case "robust":
		turning, rest, err := robust(ctx, *tables, stderr)
		if err != nil {
			return err
		}
		return config.WriteFile(filepath.Join(filepath.Dir(*out), "robust.md"), []byte(robustPage(turning, rest)))
	case "rounded":
		return config.WriteFileTo(*out, func(out io.Writer) error {
			return roundAll(ctx, *tables, names, *protocols, command.List(*redo), *seeds, out)
		})
	case "simple":
		return config.WriteFileTo(filepath.Join(*cells, simpleFile), func(out io.Writer) error { return compareAll(ctx, *tables, names, out, stderr) })
	case "page":
		cs, err := loadCells(*cells)
		if err != nil {
			return err
		}
		p := newPage(cs)
		if err := config.WriteFile(*out, []byte(p.markdown())); err != nil || *readme == "" {
			return err
		}
		return document.Replace(*readme, "unseen", p.readme())
	case "tables":
		return prepareSets(ctx, names, *data, *tables, stderr)
	}
	return fmt.Errorf("%q: say tables, flank, simple, robust, rounded or page", args[0])
}

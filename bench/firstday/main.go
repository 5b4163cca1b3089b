// Firstday measures what can be said of tools while no worn one was ever seen: Flank's level of the leading sensor
// (pkg/score) next to one-class methods, cumulative sums, and limits that are taught in from the first tool.
//
//	firstday splits --tables FOLDER
//	firstday page --tables FOLDER --cells ../docs/figures/unseen/cells.csv --out ../docs/figures/first-day.md
//
// The first writes the splits, for bench/peers/unseen/firstday.py. The second measures and writes the page. `make bench-firstday` calls them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/flank-tcm/flank/bench/command"
	"github.com/flank-tcm/flank/internal/config/atomicfile"
)

func main() { command.Main("firstday", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return errors.New("say splits or page")
	}
	flags := flag.NewFlagSet("firstday "+args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	tables := flags.String("tables", "../flank-data/unseen", "`folder` of feature tables, made by `unseen tables`")
	cells := flags.String("cells", "../docs/figures/unseen/cells.csv", "`file` of the cells of tools never seen")
	out := flags.String("out", "../docs/figures/first-day.md", "`file` of the page; -: print it")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "splits":
		return writeSplits(*tables)
	case "page":
		p, err := measure(ctx, *tables, *cells)
		if err != nil {
			return err
		}
		text, err := p.markdown()
		if err != nil {
			return err
		}
		if *out == "-" {
			_, err := io.WriteString(stdout, text)
			return err
		}
		return atomicfile.Write(*out, []byte(text))
	}
	return fmt.Errorf("%q: say splits or page", args[0])
}

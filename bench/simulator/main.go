// Command simulator measures how well wear can be judged on the simulated gun
// drill, or with -cutting the states of its cycle, and writes the tables of
// docs/figures/simulator.md:
//
//	go run -C bench ./simulator -o ../docs/figures/simulator.md
//	go run -C bench ./simulator -cutting -o ../docs/figures/simulator.md
//
// With -compare 4 it prints the table of docs/reference/features.md instead: versions of the
// features, and ways to take them relative to a reference, on four seeds.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/flank-tcm/flank/bench/command"
	"github.com/flank-tcm/flank/bench/document"
)

// studied is how many of the experiment's tools are followed.
const studied = 20

func main() { command.Main("simulator", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("simulator", flag.ContinueOnError)
	flags.SetOutput(stderr)
	cutting := flags.Bool("cutting", false, "tell the states of the machine's cycle, not wear")
	file := flags.String("o", "", "document whose table is replaced, instead of printing it")
	compare := flags.Uint64("compare", 0, "compare ways to take features relative to the reference on so many seeds instead")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *compare > 0 {
		trials, err := compareFeatures(ctx, *compare)
		fmt.Fprint(stdout, featureTable(trials))
		return err
	}
	if *cutting {
		r, err := cuttingStudy{Seed: 1, Tools: studied}.Run(ctx)
		if err != nil {
			return err
		}
		return document.Put(stdout, *file, "cutting", r.Markdown())
	}
	r, err := wearStudy{Seed: 1, Life: time.Minute, Tools: studied}.Run(ctx)
	if err != nil {
		return err
	}
	return document.Put(stdout, *file, "wear", r.Markdown())
}

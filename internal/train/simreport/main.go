// Command simreport measures how well wear can be told on the simulated gun
// drill, and writes the table of docs/simulator.md:
//
//	go run ./internal/train/simreport -o docs/simulator.md
//
// With -compare 4 it prints the table of docs/features.md instead: versions of the
// features, and ways to take them relative to a reference, on four seeds.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/flank-tcm/flank/internal/train"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("simreport: ")
	seed := flag.Uint64("seed", 1, "of the simulation and the training")
	life := flag.Duration("life", time.Minute, "mean cutting time of a tool")
	tools := flag.Int("tools", 20, "how many of the experiment's tools")
	version := flag.Int("features", 0, "version of the features; 0 means the trainer's")
	file := flag.String("o", "", "document whose table is replaced, instead of printing it")
	compare := flag.Uint64("compare", 0, "compare features on so many seeds instead")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *compare > 0 {
		trials, err := train.CompareFeatures(ctx, *compare)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(train.FeatureTable(trials))
		return
	}
	r, err := train.SimulatorStudy{Seed: *seed, Life: *life, Tools: *tools, Version: *version}.Run(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if *file == "" {
		fmt.Print(r.Markdown())
		return
	}
	if err := replace(*file, r.Markdown()); err != nil {
		log.Fatal(err)
	}
}

// The table stands between these lines of the document.
const begin, end = "<!-- simreport: begin -->\n", "<!-- simreport: end -->\n"

func replace(file, table string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	from, to := bytes.Index(text, []byte(begin)), bytes.Index(text, []byte(end))
	if from < 0 || to < from {
		return fmt.Errorf("%s: no lines %q and %q to write the table between", file, begin, end)
	}
	out := append([]byte{}, text[:from+len(begin)]...)
	out = append(out, table...)
	out = append(out, text[to:]...)
	return os.WriteFile(file, out, 0o644)
}

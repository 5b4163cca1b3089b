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
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/flank-tcm/flank/bench/document"
)

// studied is how many of the experiment's tools are followed.
const studied = 20

func main() {
	log.SetFlags(0)
	log.SetPrefix("simulator: ")
	cutting := flag.Bool("cutting", false, "tell the states of the machine's cycle, not wear")
	file := flag.String("o", "", "document whose table is replaced, instead of printing it")
	compare := flag.Uint64("compare", 0, "compare ways to take features relative to the reference on so many seeds instead")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *compare > 0 {
		trials, err := compareFeatures(ctx, *compare)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(featureTable(trials))
		return
	}
	name, report := "wear", func() (markdowner, error) {
		return wearStudy{Seed: 1, Life: time.Minute, Tools: studied}.Run(ctx)
	}
	if *cutting {
		name, report = "cutting", func() (markdowner, error) { return cuttingStudy{Seed: 1, Tools: studied}.Run(ctx) }
	}
	r, err := report()
	if err != nil {
		log.Fatal(err)
	}
	text := r.Markdown()
	if *file == "" {
		fmt.Print(text)
		return
	}
	if err := document.Replace(*file, name, text); err != nil {
		log.Fatal(err)
	}
}

type markdowner interface{ Markdown() string }

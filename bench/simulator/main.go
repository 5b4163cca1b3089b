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
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/flank-tcm/flank/bench/command"
	"github.com/flank-tcm/flank/bench/document"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
)

// studied is how many of the experiment's tools are followed.
const studied = 20

func main() { command.Main("simulator", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := command.Flags("simulator", stderr)
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

// featureTrial is how features are taken relative to the reference, with what an ECS-DBN makes
// of them on simulated drills.
type featureTrial struct {
	Mode    model.Mode
	Columns int
	GMean   []float64 // by seed
	AUC     []float64 // by seed
}

// compareFeatures drills the tools of seeds 1, 2, … n and holds a fifth of them
// out in turn. Costs come
// from two folds only: what counts here is what the features are worth.
func compareFeatures(ctx context.Context, n uint64) ([]featureTrial, error) {
	trials := []featureTrial{{Mode: model.ReferenceDifference}, {Mode: model.ReferenceKind}}
	for seed := uint64(1); seed <= n; seed++ {
		for i := range trials {
			t := &trials[i]
			s := wearStudy{Seed: seed}
			x, err := s.rows(ctx, false, t.Mode)
			if err != nil {
				return nil, err
			}
			j := s.job(false, t.Mode)
			settings := j.Config.Settings(j.Workers)
			settings.Costs.Folds = 2
			folds := classify.GroupKFold(x.lessons.Y, x.lessons.Groups, 5, rand.New(rand.NewPCG(seed, 1)))
			v, err := classify.CrossValidateTable(ctx, x.lessons, settings, folds)
			if err != nil {
				return nil, fmt.Errorf("features by %s, seed %d: %w", t.Mode, seed, err)
			}
			t.Columns = len(x.Columns)
			t.GMean = append(t.GMean, float64(v.Pooled.GMean))
			t.AUC = append(t.AUC, float64(v.Pooled.AUC))
		}
	}
	return trials, nil
}

// featureTable returns trials as a table.
func featureTable(trials []featureTrial) string {
	var b strings.Builder
	b.WriteString("| features | reference | G-mean by seed | mean | AUC by seed | mean |\n|---:|---|---|---:|---|---:|\n")
	for _, t := range trials {
		g, mean := figures(t.GMean, 3)
		a, meanAUC := figures(t.AUC, 4)
		fmt.Fprintf(&b, "| %d | %s | %s | %.4f | %s | %.4f |\n", t.Columns, t.Mode, g, mean, a, meanAUC)
	}
	return b.String()
}

func figures(x []float64, digits int) (text string, mean float64) {
	var words []string
	for _, v := range x {
		words = append(words, fmt.Sprintf("%.*f", digits, v))
		mean += v / float64(len(x))
	}
	return strings.Join(words, " "), mean
}

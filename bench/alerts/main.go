// Alerts shows how quiet and how timely alarms are, on simulated drills whose tools a
// model never saw, and writes it into docs/figures/alerts.md:
//
//	alerts -o ../docs/figures/alerts.md -plot ../docs/figures/shift.svg
//
// A model is trained as `trainer demo` does, on the lives of 20 tools. Then machines
// are simulated (internal/source/sim), cut into windows, judged and alarmed by the
// code that a gateway and a monitor run, one window a second: a shift of eight hours in
// which three tools fail in different ways and five sensors do; a day of cutting with
// tools that are fit; twenty tools that fail; two hundred sensors that do. All of it is
// drawn from a seed: equal seeds, equal bytes. `make shift` calls it. With -quick it is one
// hour of tools that wear fast, and no day of cutting.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/flank-tcm/flank/bench/command"
	"github.com/flank-tcm/flank/bench/document"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/model"
)

func main() { command.Main("alerts", run) }

// seed is of the training; the machines are of others.
const seed = 1

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := command.Flags("alerts", stderr)
	file := flags.String("o", "", "document whose table is replaced, instead of printing it")
	plot := flags.String("plot", "", "`file` to draw the shift in, as SVG")
	small := flags.Bool("quick", false, "the same in small: one hour, tools that wear fast")
	if err := flags.Parse(args); err != nil {
		return err
	}
	z := full
	if *small {
		z = quick
	}
	m, _, err := train.Run(ctx, train.SimulatedHistory("acme/spore/bay2/line1/history", seed))
	if err != nil {
		return err
	}
	plans := [groups][]*plan{{shift(seed+1, z)}}
	const machines = 4
	for i := range machines {
		if z.healthyTools > 0 {
			plans[ofHealthyTools] = append(plans[ofHealthyTools], healthyTools(fmt.Sprint("healthy/", i), seed+100*uint64(i+1), z.healthyTools/machines, z))
		}
		plans[ofFailingTools] = append(plans[ofFailingTools], failingTools(fmt.Sprint("tools/", i), seed+1000, i*z.failingTools/machines, (i+1)*z.failingTools/machines, z))
		plans[ofFailingSensors] = append(plans[ofFailingSensors], failingSensors(fmt.Sprint("sensors/", i), seed+2000+uint64(i), z.failingSensors/machines, z))
	}
	r := results{model: m, small: *small}
	if err := r.follow(ctx, plans, stderr); err != nil {
		return err
	}
	if *plot != "" {
		if err := os.WriteFile(*plot, r.shift.draw(), 0o644); err != nil {
			return err
		}
	}
	return document.Put(stdout, *file, "shift", r.markdown())
}

// The groups of machines that are simulated, each for one question.
const (
	ofShift = iota
	ofFailingTools
	ofFailingSensors
	ofHealthyTools
	groups
)

// results is what a model makes of the groups.
type results struct {
	model *model.Model
	small bool
	shift *record
	of    [groups]findings
}

// follow follows all machines, as many at a time as there are processors.
func (r *results) follow(ctx context.Context, plans [groups][]*plan, stderr io.Writer) error {
	machines, ctx := errgroup.WithContext(ctx)
	machines.SetLimit(runtime.GOMAXPROCS(0))
	var all [groups][]*record
	for g, of := range plans { // in order: the shift takes longest
		all[g] = make([]*record, len(of))
		for i, p := range of {
			machines.Go(func() (err error) {
				if all[g][i], err = follow(ctx, p, r.model); err == nil {
					fmt.Fprintf(stderr, "%s: %s\n", p.name, all[g][i].measure())
				}
				return err
			})
		}
	}
	err := machines.Wait()
	if err == nil {
		r.shift = all[ofShift][0]
		for g := range all {
			for _, rec := range all[g] {
				r.of[g].add(rec)
			}
		}
	}
	return err
}

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
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"runtime"
	"sync"

	"github.com/flank-tcm/flank/bench/document"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/model"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("alerts: ")
	file := flag.String("o", "", "document whose table is replaced, instead of printing it")
	plot := flag.String("plot", "", "`file` to draw the shift in, as SVG")
	small := flag.Bool("quick", false, "the same in small: one hour, tools that wear fast")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	z := full
	if *small {
		z = quick
	}
	m, _, err := train.Run(ctx, train.SimulatedHistory("acme/spore/bay2/line1/history", seed))
	if err == nil {
		err = run(ctx, m, z, *file, *plot)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// seed is of the training; the machines are of others.
const seed = 1

func run(ctx context.Context, m *model.Model, z size, file, plot string) error {
	s := study{model: m, shift: []*plan{shift(seed+1, z)}}
	const machines = 4
	for i := range machines {
		if z.healthyTools > 0 {
			s.healthyTools = append(s.healthyTools, healthyTools(fmt.Sprint("healthy/", i), seed+100*uint64(i+1), z.healthyTools/machines, z))
		}
		s.failingTools = append(s.failingTools, failingTools(fmt.Sprint("tools/", i), seed+1000, i*z.failingTools/machines, (i+1)*z.failingTools/machines, z))
		s.failingSensors = append(s.failingSensors, failingSensors(fmt.Sprint("sensors/", i), seed+2000+uint64(i), z.failingSensors/machines, z))
	}
	r, err := s.run(ctx)
	if err != nil {
		return err
	}
	r.small = z.shift < full.shift
	if plot != "" {
		if err := os.WriteFile(plot, r.shift.draw(), 0o644); err != nil {
			return err
		}
	}
	if file == "" {
		fmt.Print(r.markdown())
		return nil
	}
	return document.Replace(file, "shift", r.markdown())
}

// study is what is simulated, each group for one question.
type study struct {
	model                                             *model.Model
	shift, healthyTools, failingTools, failingSensors []*plan
}

// results is what a study comes to.
type results struct {
	model                                                     *model.Model
	small                                                     bool
	shift                                                     *record
	ofShift, ofHealthyTools, ofFailingTools, ofFailingSensors *findings
}

// run follows all machines, as many at a time as there are processors.
func (s *study) run(ctx context.Context) (*results, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &results{model: s.model}
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	watch := func(plans []*plan) func() *findings {
		all := make([]*findings, len(plans))
		for i, p := range plans {
			places <- struct{}{} // in order: the shift takes longest
			wg.Go(func() {
				defer func() { <-places }()
				rec, err := follow(ctx, p, s.model)
				if err != nil {
					cancel(err)
					return
				}
				all[i] = rec.measure()
				fmt.Fprintf(os.Stderr, "%s: %s\n", p.name, all[i])
				if p == s.shift[0] {
					r.shift = rec
				}
			})
		}
		return func() *findings {
			sum := &findings{verdicts: make(map[event.Verdict]int)}
			for _, f := range all {
				sum.add(f)
			}
			return sum
		}
	}
	ofShift, ofFailingTools, ofFailingSensors, ofHealthyTools := watch(s.shift), watch(s.failingTools), watch(s.failingSensors), watch(s.healthyTools)
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	r.ofShift, r.ofHealthyTools, r.ofFailingTools, r.ofFailingSensors = ofShift(), ofHealthyTools(), ofFailingTools(), ofFailingSensors()
	return r, nil
}

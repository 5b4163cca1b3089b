// Simulate runs the pipeline through bad days, see package simulation. It stops at the
// first seed that does not hold, and tells its story in lines.
//
//	go run ./internal/testkit/simulation/run -seeds 20000
//	go run ./internal/testkit/simulation/run -seed 4711 -trace
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flank-tcm/flank/internal/testkit/simulation"
)

func main() {
	seeds := flag.Uint64("seeds", 20000, "how many seeds to run")
	first := flag.Uint64("seed", 0, "the first seed, or the one to replay")
	windows := flag.Int("windows", 60, "windows of each machine")
	trace := flag.Bool("trace", false, "tell the whole story of one seed, also if it holds")
	bug := flag.String("bug", "", "break the pipeline, to see it found: "+fmt.Sprint(simulation.Bugs))
	flag.Parse()
	settings := simulation.Settings{Windows: *windows, Trace: *trace, Bug: simulation.Bug(*bug)}
	if *trace {
		s := simulation.Run(*first, settings, simulation.NewModels(fatal{}))
		fmt.Print(s)
		if s.Wrong != "" {
			os.Exit(1)
		}
		return
	}
	// Runs are short, and leave much behind.
	debug.SetGCPercent(2000)
	if s := search(*first, *seeds, settings); s != nil {
		fmt.Println(s.Wrong)
		fmt.Printf("%s\nreplay it with: make simulate SEED=%d SEEDS=1\n", simulation.Shrink(s.Seed, settings, simulation.NewModels(fatal{})), s.Seed)
		os.Exit(1)
	}
}

// search runs seeds on all processors and returns the story of the least one that does not
// hold; nil if all do.
func search(first, n uint64, settings simulation.Settings) *simulation.Story {
	var (
		next, done atomic.Uint64
		steps      atomic.Int64
		mu         sync.Mutex
		bad        *simulation.Story
		workers    sync.WaitGroup
	)
	began := time.Now()
	for range runtime.NumCPU() {
		workers.Go(func() {
			models := simulation.NewModels(fatal{})
			for {
				i := next.Add(1) - 1
				mu.Lock()
				stop := i >= n || bad != nil
				mu.Unlock()
				if stop {
					return
				}
				s := simulation.Run(first+i, settings, models)
				steps.Add(int64(s.Steps))
				done.Add(1)
				if s.Wrong != "" {
					mu.Lock()
					if bad == nil || s.Seed < bad.Seed {
						bad = s
					}
					mu.Unlock()
				}
			}
		})
	}
	finished := make(chan struct{})
	go func() {
		tick := time.NewTicker(10 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				d := done.Load()
				fmt.Fprintf(os.Stderr, "%d of %d seeds, %.0f a second\n", d, n, float64(d)/time.Since(began).Seconds())
			case <-finished:
				return
			}
		}
	}()
	workers.Wait()
	close(finished)
	fmt.Printf("seeds %d to %d: %d ran, %d steps, %v\n", first, first+n-1, done.Load(), steps.Load(), time.Since(began).Round(time.Second))
	return bad
}

// fatal ends the program where a test would.
type fatal struct{}

func (fatal) Helper() {}

func (fatal) Fatal(args ...any) {
	fmt.Fprintln(os.Stderr, args...)
	os.Exit(2)
}

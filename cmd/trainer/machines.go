package main

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
)

// How machinesNow looks.
const (
	lately   = 15 * time.Minute
	mostLast = 100 // results of each partition
	lookers  = 8
)

// lookFor bounds how long a person waits for the names of machines. Tests raise it.
var lookFor = 3 * time.Second

// machinesNow returns the machines for which want holds and that had results lately; none if
// that cannot be found out quickly.
func machinesNow(ctx context.Context, cfg bus.Config, want func(machine string) bool) []string {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	cfg.OnRetry = nil
	n, err := bus.Partitions(ctx, cfg, bus.TopicResults)
	if err != nil {
		return nil
	}
	var (
		mu    sync.Mutex
		names = make(map[string]bool)
		wg    sync.WaitGroup
		next  = make(chan int)
	)
	for range lookers {
		wg.Go(func() {
			for p := range next {
				_, end, err := bus.Bounds(ctx, cfg, bus.TopicResults, p)
				if err != nil {
					continue
				}
				within := bus.Range{From: max(0, end-mostLast), Since: time.Now().Add(-lately)}
				_ = bus.ReadRange(ctx, cfg, bus.TopicResults, p, within, func(m bus.Message) error { // what is found by then is shown
					var r event.Result
					if json.Unmarshal(m.Value, &r) == nil && want(r.Machine) {
						mu.Lock()
						names[r.Machine] = true
						mu.Unlock()
					}
					return nil
				})
			}
		})
	}
	for p := range n {
		next <- p
	}
	close(next)
	wg.Wait()
	return slices.Sorted(maps.Keys(names))
}

//go:build e2e

package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
)

var fleetSwaps = flag.Int("fleet.swaps", 1, "how often TestFleetSwapTimes promotes and rolls back each kind of machine")

// modelWatch notes which model judged the last window of each machine, and since when.
type modelWatch struct {
	mu    sync.Mutex
	model map[string]string
	since map[string]time.Time
}

func (w *modelWatch) see(m bus.Message) {
	var r event.Result
	if json.Unmarshal(m.Value, &r) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.model[r.Machine] != r.Model {
		w.model[r.Machine], w.since[r.Machine] = r.Model, time.Now()
	}
}

// by returns since when the machines are judged by a model, and whether all of them are.
func (w *modelWatch) by(model string, machines []string) (since []time.Time, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range machines {
		if w.model[name] == model {
			since = append(since, w.since[name])
		}
	}
	return since, len(since) == len(machines)
}

// swapTimes are the times of one command on one kind of machine.
type swapTimes struct {
	command  []time.Duration // that it took itself
	machines []time.Duration // from its start until a result by the other model, of each machine
	slowest  []time.Duration // of its machines
}

// TestFleetSwapTimes measures how long after the start of 'trainer promote --now' and 'trainer
// rollback' readers see the first result of each machine by the other model. It prints a table
// and has no limit of time. A drill sends a window a second, so half a second of its time
// is the wait for the next window.
func TestFleetSwapTimes(t *testing.T) {
	f := newFleetRun(t)
	w := &modelWatch{model: make(map[string]string), since: make(map[string]time.Time)}
	(&latencySide{}).follow(t, f.cfg, bus.TopicResults, w.see)
	f.startAll()
	before := load()
	times := map[string]*swapTimes{}
	for range *fleetSwaps {
		for _, kind := range []string{"drills", "lathes"} {
			first, second := f.models[kind][0], f.models[kind][1]
			f.timeSwap(w, times, kind, "promote --now", second, "promote", second, "--for", globOf(kind), "--now")
			f.timeSwap(w, times, kind, "rollback", first, "rollback", "--for", globOf(kind))
		}
	}
	for i, p := range f.ingesters {
		f.end(p, f.ingestLog[i])
	}
	for _, m := range f.monitors {
		f.end(m.proc, m.log)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s Load %.1f before, %.1f after.\n\n", machineLine(), before, load())
	b.WriteString("| command | machines | times | the command itself p50 | first result by the other model p50 | p99 | of the slowest machine p50 | longest |\n|---|---|---:|---:|---:|---:|---:|---:|\n")
	for _, command := range []string{"promote --now", "rollback"} {
		for _, kind := range []string{"drills", "lathes"} {
			s := times[command+" "+kind]
			fmt.Fprintf(&b, "| %s | %s | %d | %.2f s | %.2f s | %.2f s | %.2f s | %.2f s |\n", command, kind, len(s.command),
				quantile(s.command, 0.5).Seconds(), quantile(s.machines, 0.5).Seconds(), quantile(s.machines, 0.99).Seconds(), quantile(s.slowest, 0.5).Seconds(), slices.Max(s.slowest).Seconds())
		}
	}
	t.Log("\n" + b.String())
}

// timeSwap runs a command of trainer and waits until all machines of a kind are judged by a model.
func (f *fleetRun) timeSwap(w *modelWatch, times map[string]*swapTimes, kind, command, model string, args ...string) {
	f.t.Helper()
	var machines []string
	for _, name := range f.machines {
		if kindOf(name) == kind {
			machines = append(machines, name)
		}
	}
	began := time.Now()
	f.trainer(args[0], args[1:]...)
	took := time.Since(began)
	f.await("for results by "+model, func() bool { _, all := w.by(model, machines); return all })
	since, _ := w.by(model, machines)
	s := times[command+" "+kind]
	if s == nil {
		s = new(swapTimes)
		times[command+" "+kind] = s
	}
	s.command = append(s.command, took)
	var slowest time.Duration
	for _, at := range since {
		s.machines = append(s.machines, at.Sub(began))
		slowest = max(slowest, at.Sub(began))
	}
	s.slowest = append(s.slowest, slowest)
}

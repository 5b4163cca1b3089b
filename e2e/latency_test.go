//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/gateway"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/window"
)

var latencyWindows = flag.Int("latency.windows", 30, "results to measure with each release")

// latencyWarm is how many results are not measured while the programs start.
const latencyWarm = 5

// latencySide is the monitor of one release with its own broker and its own simulated gun drill.
// On both sides the ingester is the one of this release, in this process.
type latencySide struct {
	name    string
	gateway *gateway.Gateway

	mu      sync.Mutex
	cut     map[string]time.Time // when the last sample of a window came, by epoch and seq
	onKafka map[string]time.Time // when a reader saw the window
	results int
	whole   []time.Duration // from the end of a window until a reader saw its result
	monitor []time.Duration // from when a reader saw the window until then
}

// TestLatency measures how long after the end of a window a reader of committed messages
// sees its result, with this release and with an older one. The windows of the two end half a
// second apart. A monitor publishes alerts together with the result of their window. The test
// prints a table and has no limit of time.
func TestLatency(t *testing.T) {
	old := oldPrograms(t)
	data := filepath.Join(t.TempDir(), "data")
	startFrom(t, old, "standalone", "--once", "--speed", "0", "--data-dir", data, "--page", "off", "--broker", "127.0.0.1:0").wait(t)
	var sides []*latencySide
	for _, s := range []struct{ name, programs string }{{"without transactions", old}, {"with transactions", bin}} {
		sides = append(sides, startLatency(t, s.name, s.programs, filepath.Join(data, "model.flank")))
	}
	before := load()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	began := time.Now()
	for i, s := range sides {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / 2)))
		running.Go(func() {
			if err := s.gateway.Run(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	for last, since := 0, time.Now(); ; time.Sleep(100 * time.Millisecond) {
		n := min(sides[0].measured(), sides[1].measured())
		if n >= *latencyWindows {
			break
		}
		if n > last {
			last, since = n, time.Now()
		} else if time.Since(since) > patience {
			t.Errorf("%d results, still waiting for %d", n, *latencyWindows)
			break
		}
	}
	cancel()
	running.Wait()
	t.Log("\n" + latencyTable(sides, before))
}

// latencyTable returns what was measured, as docs/figures/latency.md has it.
func latencyTable(sides []*latencySide, loadBefore float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s Load %.1f before, %.1f after.\n\n", machineLine(), loadBefore, load())
	b.WriteString("| monitor | windows | window end → result p50 | p99 | window on Kafka → result p50 | p99 |\n|---|---|---|---|---|---|\n")
	for _, s := range sides {
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprintf(&b, "| %s | %d | %d ms | %d ms | %d ms | %d ms |\n", s.name, len(s.whole),
			quantile(s.whole, 0.5).Milliseconds(), quantile(s.whole, 0.99).Milliseconds(), quantile(s.monitor, 0.5).Milliseconds(), quantile(s.monitor, 0.99).Milliseconds())
	}
	ratio := func(v, to []time.Duration, q float64) float64 {
		return float64(quantile(v, q)) / float64(quantile(to, q))
	}
	first, second := sides[0], sides[1]
	fmt.Fprintf(&b, "| ratio | | %.2f | %.2f | %.2f | %.2f |\n", ratio(second.whole, first.whole, 0.5), ratio(second.whole, first.whole, 0.99),
		ratio(second.monitor, first.monitor, 0.5), ratio(second.monitor, first.monitor, 0.99))
	return b.String()
}

// startLatency starts a broker and a monitor, and follows windows and results.
func startLatency(t *testing.T, name, programs, model string) *latencySide {
	t.Helper()
	b, cfg := startServer(t, 4)
	s := &latencySide{name: name, cut: make(map[string]time.Time), onKafka: make(map[string]time.Time)}
	s.follow(t, cfg, bus.TopicWindows, func(m bus.Message) {
		id := string(m.Header("epoch")) + "/" + string(m.Header("seq"))
		if _, again := s.onKafka[id]; !again {
			s.onKafka[id] = time.Now()
		}
	})
	s.follow(t, cfg, bus.TopicResults, func(m bus.Message) {
		now := time.Now()
		var r event.Result
		if err := json.Unmarshal(m.Value, &r); err != nil {
			t.Error(err)
			return
		}
		if s.results++; s.results <= latencyWarm {
			return
		}
		id := fmt.Sprintf("%s/%d", r.Epoch, r.Seq)
		s.whole = append(s.whole, now.Sub(s.cut[id]))
		if at, ok := s.onKafka[id]; ok {
			s.monitor = append(s.monitor, now.Sub(at))
		}
	})
	dir := t.TempDir()
	src, err := gateway.Simulated(gateway.Simulation{Machine: machine, Start: time.Now(), Seed: 1, Life: 80 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s.gateway, err = gateway.New(gateway.Config{
		Source: source.Pace(src, 1, source.Clock{}), Window: window.DefaultSpec, SpoolDir: filepath.Join(dir, "spool"), Bus: cfg, Log: zerolog.Nop(),
		OnCut: func(c source.Cut) {
			if c.Window != nil {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.cut[fmt.Sprintf("%s/%d", c.Window.EpochString(), c.Window.Seq)] = time.Now()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.gateway.Close() })
	write(t, dir, "monitor.yaml", fmt.Sprintf("kafka: {brokers: [%q]}\nmodel: %s\npage: \"\"\n", b.Addr(), model))
	startFrom(t, programs, "monitor", "run", "--config", filepath.Join(dir, "monitor.yaml"))
	return s
}

// follow calls see for every message of a topic as it comes.
func (s *latencySide) follow(t *testing.T, cfg bus.Config, topic string, see func(bus.Message)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = bus.ReadTopic(ctx, cfg, topic, bus.FirstOffset, true, func(m bus.Message) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			see(m)
			return nil
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func (s *latencySide) measured() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.whole)
}

// quantile returns the q-quantile.
func quantile(v []time.Duration, q float64) time.Duration {
	if len(v) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(v))
	return sorted[min(len(sorted)-1, int(math.Ceil(q*float64(len(sorted))))-1)]
}

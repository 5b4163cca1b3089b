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

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
)

var latencyWindows = flag.Int("latency.windows", 30, "results to measure with each release")

// latencyRound is how many windows one release gets before it is the other's turn.
const latencyRound = 30

// latencySide is one release's monitor with a broker, an ingester and a simulated gun
// drill of its own. The ingester is this release's on both sides.
type latencySide struct {
	name, dir string
	mu        sync.Mutex
	onKafka   map[string]time.Time // when a reader saw a window, by epoch and seq
	whole     []time.Duration      // from the end of a window until a reader saw its result
	monitor   []time.Duration      // from when a reader saw the window until then
	results   int
	skip      int // results that are not measured any more, since the programs are starting
}

// TestLatency measures how long after the end of a window a reader of committed messages
// sees its result, with this release and with an older one, in turns. Alerts are
// published together with the result of their window. It judges no speed: it prints a
// table.
func TestLatency(t *testing.T) {
	old := oldPrograms(t)
	data := filepath.Join(t.TempDir(), "data")
	startFrom(t, old, "standalone", "--once", "--speed", "0", "--data-dir", data, "--page", "off", "--broker", "127.0.0.1:0").wait(t)
	var sides []*latencySide
	for _, s := range []struct{ name, programs string }{{"before", old}, {"transactions", bin}} {
		sides = append(sides, startLatency(t, s.name, s.programs, filepath.Join(data, "model.flank")))
	}
	before := load()
	for done := false; !done; {
		done = true
		for _, s := range sides {
			s.round(t)
			done = done && s.measured() >= *latencyWindows
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s Load %.1f before, %.1f after.\n\n| monitor | windows | window end → result p50 | p99 | window on Kafka → result p50 | p99 |\n|---|---|---|---|---|---|\n", machineLine(), before, load())
	for _, s := range sides {
		fmt.Fprintf(&b, "| %s | %d | %d ms | %d ms | %d ms | %d ms |\n", s.name, len(s.whole),
			quantile(s.whole, 0.5).Milliseconds(), quantile(s.whole, 0.99).Milliseconds(), quantile(s.monitor, 0.5).Milliseconds(), quantile(s.monitor, 0.99).Milliseconds())
	}
	ratio := func(of func(*latencySide) []time.Duration, q float64) float64 {
		return float64(quantile(of(sides[1]), q)) / float64(quantile(of(sides[0]), q))
	}
	whole, monitor := func(s *latencySide) []time.Duration { return s.whole }, func(s *latencySide) []time.Duration { return s.monitor }
	fmt.Fprintf(&b, "| ratio | | %.2f | %.2f | %.2f | %.2f |\n", ratio(whole, 0.5), ratio(whole, 0.99), ratio(monitor, 0.5), ratio(monitor, 0.99))
	t.Log("\n" + b.String())
}

// startLatency starts a broker and a monitor, and follows its results.
func startLatency(t *testing.T, name, programs, model string) *latencySide {
	t.Helper()
	b, cfg := startServer(t, 4)
	s := &latencySide{name: name, dir: t.TempDir(), onKafka: make(map[string]time.Time)}
	kafka := fmt.Sprintf("kafka: {brokers: [%q]}\n", b.Addr())
	write(t, s.dir, "monitor.yaml", kafka+fmt.Sprintf("model: %s\npage: \"\"\n", model))
	write(t, s.dir, "ingest.yaml", kafka+fmt.Sprintf("machine: %s\nspool: spool\nsource: {kind: simulate, seed: 1}\n", machine))
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
		if s.results++; s.skip > 0 {
			s.skip--
			return
		}
		s.whole = append(s.whole, now.Sub(r.End))
		if at, ok := s.onKafka[fmt.Sprintf("%s/%d", r.Epoch, r.Seq)]; ok {
			s.monitor = append(s.monitor, now.Sub(at))
		}
	})
	startFrom(t, programs, "monitor", "run", "--config", filepath.Join(s.dir, "monitor.yaml"))
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

// round lets the machine of s work for so many windows. Those that come while the
// ingester starts are not measured.
func (s *latencySide) round(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	s.skip = 3
	until := s.results + s.skip + latencyRound
	s.mu.Unlock()
	p := start(t, "ingest", "run", "--config", filepath.Join(s.dir, "ingest.yaml"))
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		s.mu.Lock()
		enough := s.results >= until
		s.mu.Unlock()
		if enough {
			break
		}
		if time.Since(began) > patience {
			p.kill()
			t.Fatalf("%s: %d results, still waiting for %d\n%s", s.name, s.results, until, tail(p.stderr.String()))
		}
	}
	s.mu.Lock()
	s.skip = math.MaxInt // what the ingester still sends is not measured
	s.mu.Unlock()
	p.interrupt(t)
}

func (s *latencySide) measured() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.whole)
}

// quantile returns the value that a share q of them is at most.
func quantile(v []time.Duration, q float64) time.Duration {
	if len(v) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(v))
	return sorted[min(len(sorted)-1, int(math.Ceil(q*float64(len(sorted))))-1)]
}

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/window"
)

var latencyWindows = flag.Int("latency.windows", 30, "results to measure with each release")

// latencyWarm is how many results are not measured while the programs start.
const latencyWarm = 5

// latencySide is a monitor with its own broker and its own simulated gun drill. The ingester is
// the one of this release, in this process.
type latencySide struct {
	name    string
	gateway *gateway.Gateway
	process *process // the monitor

	mu      sync.Mutex
	cut     map[string]time.Time // when the last sample of a window came, by epoch and seq
	onKafka map[string]time.Time // when a reader saw the window, or in mode edge its features
	results int
	whole   []time.Duration // from the end of a window until a reader saw its result
	monitor []time.Duration // from when a reader saw the window until then
	cpu     time.Duration   // of the monitor, when the first measured window came
	cpuEach time.Duration   // and from then on, for each window
}

// TestLatency measures how long after the end of a window a reader of committed messages
// sees its result: with an older release, with this one, and with this one in mode edge. Their
// windows end a third of a second apart. A monitor publishes alerts together with the result of
// their window. The test prints a table and has no limit of time.
func TestLatency(t *testing.T) {
	old := oldPrograms(t)
	data := filepath.Join(t.TempDir(), "data")
	startFrom(t, old, "standalone", "--once", "--speed", "0", "--data-dir", data, "--page", "off", "--broker", "127.0.0.1:0").wait(t)
	var sides []*latencySide
	for _, s := range []struct {
		name, programs string
		edge           *gateway.Edge
	}{{"older release, raw", old, nil}, {"raw", bin, nil}, {"edge", bin, &gateway.Edge{Keep: time.Hour, KeepBytes: 100 << 20}}} {
		sides = append(sides, startLatency(t, s.name, s.programs, filepath.Join(data, "model.flank"), s.edge))
	}
	before := load()
	runLatency(t, sides, *latencyWindows)
	t.Log("\n" + latencyTable(sides, before))
}

// runLatency lets the gateways run until each side has measured so many windows, which end at different times.
func runLatency(t *testing.T, sides []*latencySide, windows int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	began := time.Now()
	for i, s := range sides {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(len(sides)))))
		running.Go(func() {
			if err := s.gateway.Run(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	for last, since := 0, time.Now(); ; time.Sleep(100 * time.Millisecond) {
		n := math.MaxInt
		for _, s := range sides {
			n = min(n, s.measured())
		}
		if n >= windows {
			break
		}
		if n > last {
			last, since = n, time.Now()
		} else if time.Since(since) > patience {
			t.Errorf("%d results, still waiting for %d", n, windows)
			break
		}
	}
	for _, s := range sides {
		s.cpuEach = (s.process.cpu(t) - s.cpu) / time.Duration(max(s.measured(), 1))
	}
	cancel()
	running.Wait()
}

// latencyTable returns what was measured, as docs/figures/latency.md has it.
func latencyTable(sides []*latencySide, loadBefore float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s Load %.1f before, %.1f after.\n\n", machineLine(), loadBefore, load())
	b.WriteString("| monitor | windows | window end → result p50 | p99 | on Kafka → result p50 | p99 | processor time of the monitor a window |\n|---|---|---|---|---|---|---|\n")
	for _, s := range sides {
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprintf(&b, "| %s | %d | %d ms | %d ms | %d ms | %d ms | %.1f ms |\n", s.name, len(s.whole),
			quantile(s.whole, 0.5).Milliseconds(), quantile(s.whole, 0.99).Milliseconds(), quantile(s.monitor, 0.5).Milliseconds(), quantile(s.monitor, 0.99).Milliseconds(), 1e3*s.cpuEach.Seconds())
	}
	ratio := func(v, to []time.Duration, q float64) float64 {
		return float64(quantile(v, q)) / float64(quantile(to, q))
	}
	for i, s := range sides[1:] {
		to := sides[i]
		fmt.Fprintf(&b, "| %s / %s | | %.2f | %.2f | %.2f | %.2f | %.2f |\n", s.name, to.name, ratio(s.whole, to.whole, 0.5), ratio(s.whole, to.whole, 0.99),
			ratio(s.monitor, to.monitor, 0.5), ratio(s.monitor, to.monitor, 0.99), float64(s.cpuEach)/float64(max(to.cpuEach, 1)))
	}
	return b.String()
}

// startLatency starts a broker and a monitor, and follows results and what the gateway sends.
func startLatency(t *testing.T, name, programs, model string, edge *gateway.Edge) *latencySide {
	t.Helper()
	b, cfg := startServer(t, 4)
	s := &latencySide{name: name, cut: make(map[string]time.Time), onKafka: make(map[string]time.Time)}
	sends := bus.TopicWindows
	if edge != nil {
		sends = bus.TopicFeatures
	}
	s.follow(t, cfg, sends, func(m bus.Message) {
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
			s.cpu = s.process.cpu(t)
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
		Source: src, Speed: 1, Window: window.DefaultSpec, SpoolDir: filepath.Join(dir, "spool"), Bus: cfg, Edge: edge, Log: zerolog.Nop(),
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
	s.process = startFrom(t, programs, "monitor", "run", "--config", filepath.Join(dir, "monitor.yaml"))
	return s
}

// follow calls see for every message of a topic as it comes.
func (s *latencySide) follow(t *testing.T, cfg bus.Config, topic string, see func(bus.Message)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = readTopic(ctx, cfg, topic, bus.FirstOffset, true, func(m bus.Message) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			see(m)
			return nil
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// cpu returns the processor time that a running process has used.
func (p *process) cpu(t *testing.T) time.Duration { return cpuOf(t, p.cmd.Process.Pid) }

// cpuOf returns the processor time that a process has taken.
func cpuOf(t *testing.T, pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Error(err)
		return 0
	}
	_, after, _ := strings.Cut(string(text), ") ") // behind the program's name
	const user, ticks = 11, 100                    // proc(5): fields 14 and 15, in hundredths of a second
	var used time.Duration
	for i, f := range strings.Fields(after) {
		if i == user || i == user+1 {
			n, err := strconv.Atoi(f)
			if err != nil {
				t.Error(err)
			}
			used += time.Duration(n) * time.Second / ticks
		}
	}
	return used
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

//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

var (
	linkMachines = flag.String("link.machines", "10", "numbers of machines whose features TestSlowLink sends, one after the other")
	linkTime     = flag.Duration("link.time", 5*time.Second, "for how long it sends them")
)

const (
	linkRate  = 10e6 / 8 // bytes a second: 10 Mbit/s
	linkDelay = 40 * time.Millisecond
	linkGates = 2 // machines with an ingest of their own, in mode edge, next to the others
)

// linkRound is one number of machines behind a slow link.
type linkRound struct {
	mu     sync.Mutex
	spans  []time.Duration // from the end of a window until Kafka has its features
	failed int
}

// TestSlowLink sends features of simulated gun drills over a link of 10 Mbit/s, whose answers take
// 40 ms: most machines are senders of messages in this process, each with a producer of its own, as a
// gateway has, and some are ingesters in mode edge. Every message must arrive. It prints a table
// of how long that took and has no limit of time.
func TestSlowLink(t *testing.T) {
	features := drillFeatures(t)
	var table strings.Builder
	table.WriteString("| machines | messages | the link, up | of it | a message | window end → Kafka p50 | p99 | arrived |\n|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	before := load()
	for _, field := range strings.Split(*linkMachines, ",") {
		var machines int
		if _, err := fmt.Sscan(field, &machines); err != nil {
			t.Fatalf("-link.machines %q: %v", *linkMachines, err)
		}
		measureLink(t, machines, features, &table)
	}
	t.Logf("\n%s Load %.1f before, %.1f after.\n\n%s", machineLine(), before, load(), &table)
}

// measureLink sends features of so many machines and writes a line of the table.
func measureLink(t *testing.T, machines int, features []window.Features, table *strings.Builder) {
	t.Helper()
	b, direct := startServer(t, 64)
	p := startProxy(t, b.Addr())
	p.slow(linkDelay)
	p.limit(linkRate)
	dir := t.TempDir()
	config := fmt.Sprintf("kafka: {brokers: [%q]}\nmode: edge\nmachines:\n", p.addr)
	for i := range linkGates {
		config += fmt.Sprintf("  - {machine: acme/spore/bay9/line1/drill%d, edge: {keep_mib: 100}, spool: spool%d, source: {kind: simulate, seed: %d}}\n", i, i, i)
	}
	ingester := start(t, "ingest", "run", "--config", write(t, dir, "ingest.yaml", config))

	ctx, cancel := context.WithTimeout(t.Context(), *linkTime)
	defer cancel()
	r := new(linkRound)
	var sending sync.WaitGroup
	began, from := time.Now(), p.up.bytes()
	for i := range machines - linkGates {
		sending.Go(func() {
			if err := r.send(ctx, bus.Config{Brokers: []string{p.addr}, ClientID: "e2e"}, i, machines, features); err != nil {
				t.Error(err)
			}
		})
	}
	sending.Wait()
	took, bytes := time.Since(began), p.up.bytes()-from
	if err := ingester.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	ingester.wait(t)
	want := len(r.spans)
	for line := range strings.Lines(ingester.stdout.String()) {
		var cut, delivered, pending int
		if _, counts, ok := strings.Cut(line, ": "); ok {
			if _, err := fmt.Sscanf(counts, "%d windows cut, %d delivered, %d pending", &cut, &delivered, &pending); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			want += delivered
		}
	}
	ids := make(map[string]bool)
	for _, m := range readAll(t, direct, bus.TopicFeatures) {
		ids[string(m.Header("ce_id"))] = true
	}
	if len(ids) != want || r.failed > 0 || want == 0 {
		t.Errorf("%d machines: %d messages have arrived, %d were sent, %d failed", machines, len(ids), want, r.failed)
	}
	rate := float64(bytes) / took.Seconds()
	fmt.Fprintf(table, "| %d | %d | %.2f MB/s | %.0f %% | %.0f bytes | %d ms | %d ms | %d |\n", machines, want, rate/1e6, 100*rate/linkRate, float64(bytes)/float64(want),
		quantile(r.spans, 0.5).Milliseconds(), quantile(r.spans, 0.99).Milliseconds(), len(ids))
}

// send sends features of a machine once a second until ctx ends, each when its window would have
// ended or as soon as the one before has arrived.
func (r *linkRound) send(ctx context.Context, cfg bus.Config, i, machines int, features []window.Features) error {
	out, err := bus.NewProducer(cfg)
	if err != nil {
		return err
	}
	defer out.Close()
	begin := time.Now().Add(time.Duration(i) * time.Second / time.Duration(machines))
	for seq := 0; ; seq++ {
		due := begin.Add(time.Duration(seq) * time.Second)
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			return nil
		}
		x := features[(i+seq)%len(features)]
		x.Machine, x.Epoch, x.Seq = fmt.Sprintf("acme/spore/bay%d/line1/drill%d", 1+i/20, i), uint64(i)<<32|0xa1b2c3d4, uint64(seq)
		e, err := x.Form.Seal(&x)
		if err != nil {
			return err
		}
		err = out.Send(context.Background(), []bus.Message{envelope.Features(e, envelope.Gateway, 0)})
		r.mu.Lock()
		if err != nil {
			r.failed++
		} else {
			r.spans = append(r.spans, time.Since(due))
		}
		r.mu.Unlock()
	}
}

// drillFeatures returns features of windows of a simulated drill.
func drillFeatures(t *testing.T) (all []window.Features) {
	t.Helper()
	form, err := window.NewForm(signal.GunDrill(), window.DefaultSpec, signal.FeatureSpec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	drill, err := sim.New(sim.Settings{Machine: machine, Start: time.Now(), Seed: 1, Tools: sim.Tools(1, 30*time.Second)[:1], Hole: train.HistorySchedule.Hole, Pause: train.HistorySchedule.Pause})
	if err != nil {
		t.Fatal(err)
	}
	cutter, err := source.NewCutter(drill, window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	extractor := form.NewExtractor()
	for len(all) < 20 {
		c, err := cutter.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c.Window != nil {
			var x window.Features
			extractor.Extract(c.Window, &x)
			all = append(all, x)
		}
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

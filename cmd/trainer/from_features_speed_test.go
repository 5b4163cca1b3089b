//go:build unix

package main

import (
	"io"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/internal/testkit/spent"
)

// BenchmarkKafka reads the windows of a simulated tool, and their features.
func BenchmarkKafka(b *testing.B) {
	b.Chdir(b.TempDir())
	p, size, count := newPlant(b), make(map[string]int), 0
	drilled(b, "acme/drill", sim.Tools(1, 2*time.Minute)[:1], envelope.Monitor, func(_ uint64, w, f bus.Message) {
		p.send(b, w, f)
		size["windows"] += len(w.Value)
		size["features"] += len(f.Value)
		count++
	})
	for _, from := range []string{"windows", "features"} {
		b.Run(from, func(b *testing.B) {
			began, _, _ := spent.Now()
			for b.Loop() {
				if err := run(b.Context(), []string{"features", "--quiet", "--out", "f.parquet", "--kafka", p.addr, "--from", from}, io.Discard, io.Discard); err != nil {
					b.Fatal(err)
				}
			}
			ended, _, _ := spent.Now()
			b.ReportMetric(float64((ended-began).Microseconds())/float64(b.N*count), "cpu-µs/window")
			b.ReportMetric(float64(size[from])/float64(count), "bytes/window")
		})
	}
}

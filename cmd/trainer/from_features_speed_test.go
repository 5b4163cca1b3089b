//go:build unix

package main

import (
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/source/sim"
)

// processorTime is what this process has taken, the broker in it included.
func processorTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

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
			began := processorTime(b)
			for b.Loop() {
				if err := run(b.Context(), []string{"features", "--quiet", "--out", "f.parquet", "--kafka", p.addr, "--from", from}, io.Discard, io.Discard); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processorTime(b)-began).Microseconds())/float64(b.N*count), "cpu-µs/window")
			b.ReportMetric(float64(size[from])/float64(count), "bytes/window")
		})
	}
}

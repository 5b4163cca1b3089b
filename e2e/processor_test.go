//go:build e2e

package e2e

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/ingest/gateway"
)

var processorTime = flag.Bool("processor.time", false, "run TestProcessorTime, some two minutes")

// processorLife is the life of the simulated tool of TestProcessorTime.
const processorLife = 300 * time.Second

// TestProcessorTime measures the processor time that ingest and monitor take for a window of the
// gun drill in both modes, while windows come as fast as they can be made. What the simulated drill itself
// takes is measured apart and subtracted. It prints a table and has no limit of time.
func TestProcessorTime(t *testing.T) {
	if !*processorTime {
		t.Skip("-processor.time is not set: use make processor-time")
	}
	data := filepath.Join(t.TempDir(), "data")
	run(t, "standalone", "--once", "--speed", "0", "--data-dir", data, "--page", "off", "--broker", "127.0.0.1:0")
	before := load()
	drill, seconds := simulatorTime(t)
	var b strings.Builder
	fmt.Fprintf(&b, "| mode | windows | ingest without the simulated drill | monitor | both |\n|---|---:|---:|---:|---:|\n")
	for _, mode := range []string{"raw", "edge"} {
		windows, ingest, monitor := modeTime(t, mode, filepath.Join(data, "model.flank"))
		ingest -= drill / time.Duration(seconds)
		fmt.Fprintf(&b, "| %s | %d | %.1f ms | %.1f ms | %.1f ms |\n", mode, windows, 1e3*ingest.Seconds(), 1e3*monitor.Seconds(), 1e3*(ingest+monitor).Seconds())
	}
	t.Logf("\n%s Load %.1f before, %.1f after. The simulated drill: %.1f ms a window.\n\n%s", machineLine(), before, load(), 1e3*drill.Seconds()/float64(seconds), &b)
}

// simulatorTime returns the processor time that a simulated drill takes for so many seconds.
func simulatorTime(t *testing.T) (used time.Duration, seconds int) {
	t.Helper()
	src, err := gateway.Simulated(gateway.Simulation{Machine: machine, Start: time.Now(), Seed: 1, Life: processorLife, Tools: 1})
	if err != nil {
		t.Fatal(err)
	}
	from := ownTime(t)
	for {
		b, err := src.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return ownTime(t) - from, seconds
		}
		if err != nil {
			t.Fatal(err)
		}
		if b.Group == 0 {
			seconds++
		}
	}
}

// ownTime returns the processor time of this process.
func ownTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// modeTime returns how many windows there were in a mode, and the processor time of ingest and of
// a monitor for each.
func modeTime(t *testing.T, mode, model string) (windows int, ingest, monitor time.Duration) {
	t.Helper()
	b, cfg := startServer(t, 4)
	dir := t.TempDir()
	config := write(t, dir, "ingest.yaml", fmt.Sprintf("machine: %s\nmode: %s\nkafka: {brokers: [%q]}\nspool: spool\nsource: {kind: simulate, speed: 0, tools: 1, tool_life: %v}\n", machine, mode, b.Addr(), processorLife))
	p := start(t, "ingest", "run", "--config", config)
	p.wait(t)
	if _, err := fmt.Sscanf(p.stdout.String(), "%d windows cut", &windows); err != nil {
		t.Fatalf("%v\n%s", err, &p.stdout)
	}
	ingest = p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	results := follow(t, cfg, bus.TopicResults)
	m := start(t, "monitor", "run", "--config", write(t, dir, "monitor.yaml", fmt.Sprintf("kafka: {brokers: [%q]}\nmodel: %s\npage: \"\"\n", b.Addr(), model)))
	results.until(t, windows, "results")
	monitor = m.cpu(t)
	m.kill()
	return windows, ingest / time.Duration(windows), monitor / time.Duration(windows)
}

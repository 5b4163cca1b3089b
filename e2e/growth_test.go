//go:build e2e

package e2e

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
)

// The bytes of a window on Kafka: docs/figures/sizes.md.
const (
	rawBytes  = 968e3
	edgeBytes = 4.4e3
)

// TestGrowth measures what a window takes with more machines and more monitors, and works out from that what larger plants need. It writes a
// page and has no limit of time.
func TestGrowth(t *testing.T) {
	if *growthReport == "" {
		t.Skip("-growth.report is not set: use make bench-growth")
	}
	measured, before := commit(), load()
	model, drill := pipelineModel(t)
	broker := "embedded"
	if kafkatest.Version() != "" {
		broker = "Apache Kafka " + kafkatest.Version()
	}
	var rows, plans strings.Builder
	for _, mode := range []struct {
		name  string
		bytes float64
		loads []burden
	}{
		{"raw", rawBytes, []burden{{mode: "raw", machines: 1, speed: 1, monitors: 1}, {mode: "raw", machines: 8, speed: 1, monitors: 1}, {mode: "raw", machines: 8, speed: 1, monitors: 4}, {mode: "raw", machines: 32, speed: 1, monitors: 1}}},
		{"edge", edgeBytes, []burden{{mode: "edge", machines: 1, speed: 1, monitors: 1}, {mode: "edge", machines: 8, speed: 1, monitors: 1}, {mode: "edge", machines: 8, speed: 1, monitors: 4}, {mode: "edge", machines: 64, speed: 1, monitors: 1}, {mode: "edge", machines: 64, speed: 1, monitors: 4}}},
	} {
		eight := 0.0
		var largest []share
		for _, l := range mode.loads {
			l.settle, l.windows = 20*l.machines, 45*l.machines
			rate, took := measurePipeline(t, broker, l, model, drill)
			all := (took[0].processor + took[1].processor + took[2].processor).Seconds()
			if l.machines == 8 && l.monitors == 1 {
				eight = all
			}
			against := "–"
			if eight > 0 {
				against = fmt.Sprintf("%.2f", all/eight)
			}
			fmt.Fprintf(&rows, "| %s | %d | %d | %.1f | %.2f | %.2f | %.2f | %.2f | %s | %.0f | %.0f |\n", l.mode, l.machines, l.monitors, rate,
				1e3*took[0].processor.Seconds(), 1e3*took[1].processor.Seconds(), 1e3*took[2].processor.Seconds(), 1e3*all, against, took[1].memory, took[2].memory)
			if l.monitors == 1 {
				largest = took
			}
			t.Log(rows.String())
		}
		for _, n := range []float64{10, 100, 1000, 10_000, 100_000} {
			plans.WriteString(planRow(mode.name, n, mode.bytes, largest))
		}
	}
	page := fmt.Sprintf(growthPage, time.Now().Format(time.DateOnly), measured, machineLine(), before, load(), broker, &rows, &plans)
	if err := os.WriteFile(*growthReport, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
}

// planRow works out what a plant of n machines needs, from what a window took.
func planRow(mode string, n, bytes float64, took []share) string {
	const (
		busy     = 0.5   // share of a processor that is to be used
		replicas = 3     // each takes what the one broker took that was measured
		network  = 600e6 // bytes a second of a broker: half of 10 Gbit/s
	)
	cores := func(took share, copies float64) float64 {
		return math.Ceil(n * copies * took.processor.Seconds() / busy)
	}
	// Written by the gateways, copied to the other replicas, read by the monitors.
	traffic := n * bytes * (1 + replicas - 1 + 1)
	brokers := max(replicas, math.Ceil(traffic/network))
	days := map[string]float64{"raw": 7, "edge": 90}[mode]
	return fmt.Sprintf("| %s | %.0f | %.0f | %.0f | %.0f | %.0f | %s | %s |\n", mode, n, cores(took[1], 1), cores(took[2], replicas), brokers, max(8, math.Ceil(n/4)),
		amount(n*bytes, "/s"), amount(n*bytes*86400*days*replicas, ""))
}

// amount writes bytes in a unit that suits them.
func amount(v float64, of string) string {
	unit := 0
	for ; v >= 1000 && unit < 5; unit++ {
		v /= 1000
	}
	return fmt.Sprintf("%.3g %s%s", v, [...]string{"B", "kB", "MB", "GB", "TB", "PB"}[unit], of)
}

const growthPage = `# Growth: more machines, more monitors

Written by ` + "`make bench-growth`" + `; do not edit. Each machine is a simulated gun drill with a window a second of real time. Each program is a process of its own, and all share two processors with the broker. Milliseconds are processor time for one window.

%s, %s. %s Load %.1f before, %.1f after. 45 s a row, after 20 s. Broker: %s.

| mode | machines | monitors | windows a second | ingest, ms | monitors, ms | broker, ms | all, ms | of 8 machines' | monitors, MB resident | broker, MB |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
%s
What the simulated drills take is measured alone and subtracted from ingest; among other programs they take less, so that a figure may be negative. Fewer windows a second than machines say that the two processors are full. What the broker does without windows is in each row.

## What larger plants need

Worked out from the rows above with one monitor and the most machines. Nothing beyond them was tried. Processors are half busy, topics have three replicas, each replica takes what the one broker took, and a broker moves 600 MB a second. Partitions are a quarter of the machines, at least 8.

| mode | machines | processors of monitors | processors of brokers | brokers | partitions of a topic | sent by gateways | on disk: windows 7 days (raw), features 90 days (edge) |
|---|---:|---:|---:|---:|---:|---:|---:|
%s
Bytes of a window are in [sizes.md](sizes.md). More than some thousand machines are better served by a cluster for each plant, with [features mirrored](../how-to/growing.md#4-two-sites) to the centre.
`

//go:build e2e

package e2e

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
	"github.com/flank-tcm/flank/internal/testkit/spent"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

var (
	goalsReport     = flag.String("goals.report", "", "run TestGoals, and write its table to this page")
	goalsBenchmarks = flag.String("goals.benchmarks", "", "what go test -bench has printed")
	goalsHours      = flag.Int("goals.hours", 24, "hours of eight machines that a monitor judges to see how its memory grows")
)

// goalsTried begins the part of the page that people write.
const goalsTried = "\n## What was tried\n"

// goal is a row of the page: a figure, what it is to be at least or at most, and what it is.
type goal struct {
	what, unit string
	limit      float64
	least      bool // the figure is to be at least the limit
	value      float64
	from       string
	decimals   int
}

func (g goal) row() string {
	held, relation := g.value <= g.limit, "≤"
	if g.least {
		held, relation = g.value >= g.limit, "≥"
	}
	verdict := "**not held**" // also of what is not a number
	if held {
		verdict = "held"
	}
	number := func(v float64, decimals int) string { return strconv.FormatFloat(v, 'f', decimals, 64) }
	limit := strings.TrimSpace(relation + " " + number(g.limit, -1) + " " + g.unit)
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", g.what, limit, number(g.value, g.decimals), verdict, g.from)
}

// TestGoals holds what the whole pipeline takes against its goals, and writes the table of docs/figures/goals.md. What people have written below the table stays.
func TestGoals(t *testing.T) {
	if *goalsReport == "" {
		t.Skip("-goals.report is not set: use make bench-goals")
	}
	if kafkatest.Version() == "" {
		t.Fatal("FLANK_KAFKA is not set")
	}
	if *pipelinePython == "" {
		t.Fatal("-pipeline.python is not set: the goals are held against the peer")
	}
	benchmarks, before := readBenchmarks(t, *goalsBenchmarks), load()
	figure := func(name, unit string) float64 {
		v, ok := benchmarks[name+" "+unit]
		if !ok {
			t.Fatalf("%s has no %s of %s", *goalsBenchmarks, unit, name)
		}
		return v
	}
	measured := commit()
	ours, peer := featuresAgainstPeer(t)
	model, drill := pipelineModel(t)
	raw8 := func(broker string) []share {
		_, took := measurePipeline(t, broker, burden{mode: "raw", machines: 8, speed: 1, monitors: 1, settle: 120, windows: 480}, model, drill)
		return took
	}
	ms := func(s share) float64 { return 1e3 * s.processor.Seconds() }
	embedded, kafka := raw8("embedded"), raw8("Apache Kafka")
	latency := latencyGoal(t, model)
	first, last := measureDay(t, model)
	bench := func(name string) string { return "`-bench " + name + "`" }
	rows := []goal{
		{what: "features of a window, one core", unit: "ms", limit: 1, value: ours, from: "from the message to 671 features", decimals: 2},
		{what: "the good peer's time for the same by ours", unit: "×", limit: 8, least: true, value: peer / ours, from: fmt.Sprintf("`fast.py` takes %.1f ms in the same run", peer), decimals: 1},
		{what: "monitor, raw window of a backlog", unit: "ms", limit: 2.1, value: figure("BenchmarkMonitor/windows/backlog", "monitor-ms/window"), from: bench("Monitor"), decimals: 2},
		{what: "monitor, raw, eight machines", unit: "ms", limit: 2.1, value: ms(embedded[1]), from: "embedded broker, a transaction for nearly each window", decimals: 2},
		{what: "the peer's time for the same by the monitor's", unit: "×", limit: 6.5, least: true, value: ms(embedded[3]) / ms(embedded[1]), from: fmt.Sprintf("consumer.py takes %.1f ms in the same run", ms(embedded[3])), decimals: 1},
		{what: "ingest, raw", unit: "ms", limit: 1.6, value: figure("BenchmarkGateway/raw", "processor-ms/window"), from: bench("Gateway"), decimals: 2},
		{what: "ingest, edge", unit: "ms", limit: 2.6, value: figure("BenchmarkGateway/edge", "processor-ms/window"), from: bench("Gateway"), decimals: 2},
		{what: "ingest, edge, memory a window", unit: "kB", limit: 200, value: figure("BenchmarkGateway/edge", "B/window") / 1e3, from: bench("Gateway")},
		{what: "embedded broker, a window in and out", unit: "ms", limit: 2.5, value: figure("BenchmarkMonitor/windows/backlog", "broker-ms/window"), from: bench("Monitor"), decimals: 2},
		{what: "machines in mode raw on two cores with Kafka", unit: "", limit: 220, least: true, value: 2e3 / (ms(kafka[0]) + ms(kafka[1]) + ms(kafka[2])), from: fmt.Sprintf("worked out: ingest %.2f, monitor %.2f and Kafka %.2f ms a window of eight machines", ms(kafka[0]), ms(kafka[1]), ms(kafka[2]))},
		{what: "machines judged from features by a core", unit: "", limit: 15_000, least: true, value: 1e3 / figure("BenchmarkMonitor/features/backlog", "monitor-ms/window"), from: bench("Monitor")},
		{what: "times real time, judging a backlog of features", unit: "×", limit: 2000, least: true, value: 1e9 / figure("BenchmarkMonitor/features/backlog", "ns/op"), from: "the same, by the clock"},
		{what: "objects a window, monitor, backlog", unit: "", limit: 50, value: figure("BenchmarkMonitor/windows/backlog", "monitor-objects/window"), from: bench("Monitor")},
		{what: "objects a window, ingest, raw", unit: "", limit: 50, value: figure("BenchmarkGateway/raw", "objects/window"), from: bench("Gateway")},
		{what: "objects a window, features", unit: "", limit: 0, value: figure("BenchmarkExtract", "allocs/op"), from: bench("Extract")},
		{what: fmt.Sprintf("monitor's memory after %d hours of eight machines, 64 partitions", *goalsHours), unit: "MB", limit: 250, value: last, from: "features of that time as a backlog, Kafka"},
		{what: "its growth after the first hour", unit: "%", limit: 5, value: 100 * (last/first - 1), from: "the same", decimals: 1},
		{what: "a simulated machine", unit: "ms", limit: 5, value: figure("BenchmarkNew", "ns/op") / 1e6, from: bench("New"), decimals: 2},
		{what: "a simulated machine, memory", unit: "kB", limit: 1000, value: figure("BenchmarkNew", "B/op") / 1e3, from: bench("New")},
		{what: "window end to alert, p50, Kafka", unit: "ms", limit: 35, value: float64(quantile(latency.whole, 0.5).Milliseconds()), from: "one machine in mode raw"},
		{what: "window end to alert, p99, Kafka", unit: "ms", limit: 80, value: float64(quantile(latency.whole, 0.99).Milliseconds()), from: "the same"},
		{what: "200 machines in mode edge", unit: "MB/s", limit: 0.5, value: 200 * figure("BenchmarkEdge", "edge-packed-B/window") / 1e6, from: bench("Edge"), decimals: 2},
	}
	var b strings.Builder
	for _, g := range rows {
		b.WriteString(g.row())
	}
	page := fmt.Sprintf(goalsPage, time.Now().Format(time.DateOnly), measured, machineLine(), before, load(), &b)
	old, err := os.ReadFile(*goalsReport)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	_, tried, _ := strings.Cut(string(old), goalsTried)
	if err := os.WriteFile(*goalsReport, []byte(page+goalsTried+cmp.Or(tried, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

const goalsPage = `# Goals of speed

The table is written by ` + "`make bench-goals`" + `, some 40 minutes; what was tried is written by people. Milliseconds are processor time for one window of the gun drill, of 14 channels and 968 kB.

%s, %s. %s Load %.1f before, %.1f after.

| figure | goal | measured | | from |
|---|---|---:|---|---|
%s`

var benchmarkLine = regexp.MustCompile(`^(Benchmark\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// readBenchmarks returns the medians of what go test -bench has printed, by "name unit".
func readBenchmarks(t *testing.T, file string) map[string]float64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]float64)
	for line := range strings.Lines(string(text)) {
		m := benchmarkLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		for words := strings.Fields(m[2]); len(words) >= 2; words = words[2:] {
			v, err := strconv.ParseFloat(words[0], 64)
			if err != nil {
				t.Fatalf("%s: %q: %v", file, line, err)
			}
			all[m[1]+" "+words[1]] = append(all[m[1]+" "+words[1]], v)
		}
	}
	medians := make(map[string]float64, len(all))
	for name, v := range all {
		medians[name] = median(v)
	}
	return medians
}

// drillWindows returns windows of a simulated drill.
func drillWindows(t *testing.T, n int) (windows []*window.Window, layout *signal.Layout) {
	t.Helper()
	src, err := gateway.Simulated(gateway.Simulation{Machine: machine, Start: time.Now(), Seed: 1, Life: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	cut, err := source.NewCutter(src, window.DefaultSpec)
	for err == nil && len(windows) < n {
		var c source.Cut
		if c, err = cut.Next(t.Context()); err == nil && c.Window != nil {
			w := *c.Window
			w.Samples = make([][]float32, len(c.Window.Samples))
			for i, x := range c.Window.Samples {
				w.Samples[i] = slices.Clone(x)
			}
			windows = append(windows, &w)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return windows, src.Layout()
}

// featuresAgainstPeer returns what a window's features take from its message, and what they take the good peer: milliseconds of the
// processor, medians of rounds in turn, each the best of five trials.
func featuresAgainstPeer(t *testing.T) (ours, peer float64) {
	t.Helper()
	const rounds, trials, each = 15, 5, 10
	windows, layout := drillWindows(t, 5)
	codec, err := window.NewCodec(layout, window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	form, err := window.NewForm(layout, window.DefaultSpec, signal.FeatureSpec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := codec.Seal(windows[4])
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, t.TempDir(), "window.arrow", string(sealed.Value))
	cmd := exec.Command(*pipelinePython, "../bench/peers/signal/fast.py")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	answers := bufio.NewReader(out)
	ask := func(request string) []string {
		t.Helper()
		if _, err := fmt.Fprintln(in, request); err != nil {
			t.Fatal(err)
		}
		line, err := answers.ReadString('\n')
		words := strings.Fields(line)
		if err != nil || len(words) < 2 || words[0] == "error:" {
			t.Fatalf("the peer answers %q to %q: %v", line, request, err)
		}
		return words
	}
	number := func(word string) float64 {
		t.Helper()
		v, err := strconv.ParseFloat(word, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	extractor := form.NewExtractor()
	var w window.Window
	var x window.Features
	open := func() {
		if err := codec.Open(sealed, &w); err != nil {
			t.Fatal(err)
		}
		extractor.Extract(&w, &x)
	}
	open()
	theirValues := make(map[string]float64)
	for words := ask("values " + file); len(words) >= 2; words = words[2:] {
		theirValues[words[0]] = number(words[1])
	}
	for i, name := range form.Names() { // both count in float32: they differ by a thousandth of their size, and at least of 1
		ours, theirs := float64(x.Values[i]), theirValues[name]
		if _, there := theirValues[name]; !there || math.IsNaN(ours) != math.IsNaN(theirs) || math.Abs(theirs-ours) > 1e-3*max(1, math.Abs(ours)) {
			t.Fatalf("feature %s of the peer is %v, ours is %v", name, theirs, ours)
		}
	}
	var mine, theirs []float64
	for range rounds {
		best := time.Duration(math.MaxInt64)
		for range trials {
			from, _, _ := spent.Now()
			for range each {
				open()
			}
			to, _, _ := spent.Now()
			best = min(best, to-from)
		}
		mine = append(mine, 1e3*best.Seconds()/each)
		theirs = append(theirs, 1e3*number(ask(fmt.Sprintf("features %s %d %d", file, each, trials))[1])/each)
	}
	return median(mine), median(theirs)
}

// latencyGoal measures from the end of a window to its result, of one machine in mode raw on Apache Kafka.
func latencyGoal(t *testing.T, model string) *latencySide {
	t.Helper()
	s := startLatency(t, "raw", bin, model, nil)
	runLatency(t, []*latencySide{s}, 100)
	return s
}

// measureDay returns the memory of a monitor of 64 partitions on Kafka, in MB, after the first and after the last of some hours of eight machines whose
// features wait for it. A tool is changed each hour.
func measureDay(t *testing.T, model string) (first, last float64) {
	t.Helper()
	const machines, ahead = 8, 4000
	addr := kafkatest.Start(t).Addr
	awaitTCP(t, addr)
	cfg := bus.Config{Brokers: []string{addr}, ClientID: "day"}
	if _, err := bus.Apply(t.Context(), cfg, 64, 1); err != nil {
		t.Fatal(err)
	}
	var judged atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = readTopic(ctx, cfg, bus.TopicResults, bus.FirstOffset, true, func(bus.Message) error { judged.Add(1); return nil })
	}()
	defer func() { cancel(); <-done }()
	dir := t.TempDir()
	p := start(t, "monitor", "run", "--config", write(t, dir, "monitor.yaml", fmt.Sprintf("kafka: {brokers: [%q]}\nmodel: %s\npage: \"\"\n", addr, model)))
	t.Cleanup(p.kill)
	out, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	windows, layout := drillWindows(t, 100)
	form, err := window.NewForm(layout, window.DefaultSpec, signal.FeatureSpec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	extractor, features := form.NewExtractor(), make([]window.Features, len(windows))
	for i, w := range windows {
		extractor.Extract(w, &features[i])
	}
	memory := func() float64 { return takenBy(t, p.cmd.Process.Pid, "").memory }
	began := time.Now().Add(-time.Duration(*goalsHours) * time.Hour).Truncate(time.Second)
	for second := range *goalsHours * 3600 {
		var msgs []bus.Message
		for i := range machines {
			x := features[(second+11*i)%len(features)]
			x.Machine, x.Tool, x.Epoch, x.Seq = fmt.Sprintf("acme/spore/bay9/line1/drill%d", i), fmt.Sprintf("T%d", second/3600), 1, uint64(second)
			x.Start = began.Add(time.Duration(second) * time.Second)
			e, err := form.Seal(&x)
			if err != nil {
				t.Fatal(err)
			}
			msgs = append(msgs, envelope.Features(e, envelope.Gateway, 0))
		}
		if err := out.Send(t.Context(), msgs); err != nil {
			t.Fatal(err)
		}
		if sent := int64(machines * (second + 1)); sent%ahead == 0 {
			await.Until(t, fmt.Sprintf("%d of %d windows judged", sent-ahead, sent), func() bool { return judged.Load() >= sent-ahead })
		}
		if second == 3600 {
			first = memory()
		}
	}
	all := int64(machines * *goalsHours * 3600)
	await.Until(t, fmt.Sprintf("all %d windows judged", all), func() bool { return judged.Load() >= all })
	return first, memory()
}

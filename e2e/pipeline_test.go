//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
	"github.com/flank-tcm/flank/internal/testkit/spent"
)

var (
	pipelineReport = flag.String("pipeline.report", "", "run TestPipeline, and write its page to this file")
	pipelinePython = flag.String("pipeline.python", "", "Python of bench/peers/signal for the peer; without it there is no peer")
	pipelineWindow = flag.Int("pipeline.windows", 480, "windows of each row")
	growthReport   = flag.String("growth.report", "", "run TestGrowth, and write its page to this file")
)

// processorLife is the life of a simulated tool whose windows come as fast as they can be made.
const processorLife = 300 * time.Second

var nan = math.NaN()

// burden is a load on the pipeline.
type burden struct {
	mode     string
	machines int
	speed    int // of the source
	monitors int
	settle   int // windows that come before it is measured: connections and references are there, and buffers have their size
	windows  int // that are measured
}

// share is what a program has taken for a window; of the monitors all together.
type share struct {
	program string
	taken
}

// taken is what a program has taken since it began.
type taken struct {
	processor      time.Duration
	objects, bytes float64 // allocated; NaN if not known
	memory         float64 // resident, in MB
}

// TestPipeline measures what ingest, broker and monitor take for a window of the gun drill, as processes of their own, and next
// to them a consumer in Python that reads the same windows at the same time. What the simulated drill itself
// takes is measured apart and subtracted. It writes a page and has no limit of time.
func TestPipeline(t *testing.T) {
	if *pipelineReport == "" {
		t.Skip("-pipeline.report is not set: use make bench-pipeline")
	}
	measured, before := commit(), load()
	model, drill := pipelineModel(t)
	var b strings.Builder
	fmt.Fprintf(&b, "| broker | mode | machines | windows a second | program | ms of processor | objects | kB allocated | MB resident |\n|---|---|---:|---:|---|---:|---:|---:|---:|\n")
	brokers := []string{"embedded"}
	if kafkatest.Version() != "" {
		brokers = append(brokers, "Apache Kafka "+kafkatest.Version())
	}
	for _, name := range brokers {
		for _, l := range []burden{{mode: "raw", machines: 1, speed: 8, monitors: 1}, {mode: "raw", machines: 8, speed: 1, monitors: 1}, {mode: "edge", machines: 1, speed: 8, monitors: 1}, {mode: "edge", machines: 8, speed: 1, monitors: 1}, {mode: "edge", machines: 32, speed: 1, monitors: 1}} {
			l.settle, l.windows = 120, *pipelineWindow
			rate, took := measurePipeline(t, name, l, model, drill)
			for _, s := range took {
				fmt.Fprintf(&b, "| %s | %s | %d | %.1f | %s\n", name, l.mode, l.machines, rate, s.row(s.program))
			}
			t.Log(b.String())
		}
	}
	page := fmt.Sprintf(pipelinePage, time.Now().Format(time.DateOnly), measured, machineLine(), before, load(), *pipelineWindow, &b,
		1e3*drill.processor.Seconds(), drill.objects)
	if err := os.WriteFile(*pipelineReport, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
}

// pipelineModel returns the file of a model for the simulated drill, and what a window of that drill takes to make.
func pipelineModel(t *testing.T) (file string, drill taken) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	run(t, "standalone", "--once", "--speed", "0", "--data-dir", data, "--page", "off", "--broker", "127.0.0.1:0")
	took, seconds := simulatorTook(t)
	return filepath.Join(data, "model.flank"), took.of(seconds)
}

const pipelinePage = `# The pipeline, program by program

Written by ` + "`make bench-pipeline`" + `; do not edit. Each program is a process of its own. Figures are for one window of the gun drill, of 14 channels and 968 kB, while windows come steadily: connections and references are there before.

%s, %s. %s Load %.1f before, %.1f after. %d windows a row.

%s
What the simulated drill takes is not ingest's, and is subtracted: %.1f ms and %.0f objects a window, measured alone. Of the peer, a consumer in Python ([consumer.py](../../bench/peers/signal/consumer.py)), the default features are by [fast.py](../../bench/peers/signal/fast.py). It reads the windows while the monitor does, so that the broker of these rows has two readers, and writes its results in a transaction for each fetch. With few windows a second nearly each one has a transaction of its own: what a window takes of a backlog is in [goals.md](goals.md).
`

// of returns what was taken for each of so many.
func (a taken) of(n int) taken {
	return taken{a.processor / time.Duration(n), a.objects / float64(n), a.bytes / float64(n), a.memory}
}

// less returns what was taken since another moment.
func (a taken) less(b taken) taken {
	return taken{a.processor - b.processor, a.objects - b.objects, a.bytes - b.bytes, a.memory}
}

// plus returns what two processes have taken together.
func (a taken) plus(b taken) taken {
	return taken{a.processor + b.processor, a.objects + b.objects, a.bytes + b.bytes, a.memory + b.memory}
}

func (a taken) row(program string) string {
	cell := func(v float64) string {
		if v != v {
			return "–"
		}
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return fmt.Sprintf("%s | %.2f | %s | %s | %s |", program, 1e3*a.processor.Seconds(), cell(a.objects), cell(a.bytes/1e3), cell(a.memory))
}

// measurePipeline returns the windows a second under a load, and what each program takes for one: ingest, monitors, broker, peer.
func measurePipeline(t *testing.T, broker string, l burden, model string, drill taken) (rate float64, took []share) {
	t.Helper()
	if !t.Run(fmt.Sprint(broker, l), func(t *testing.T) { rate, took = pipelineUnder(t, broker, l, model, drill) }) {
		t.FailNow()
	}
	return rate, took
}

func pipelineUnder(t *testing.T, broker string, l burden, model string, drill taken) (rate float64, took []share) {
	dir, hostProfile := t.TempDir(), ""
	var addr string
	var host int
	if broker == "embedded" {
		hostProfile = freeAddr(t)
		p := start(t, "standalone", "--broker-only", "--broker", freeAddr(t), "--data-dir", filepath.Join(dir, "data"), "--pprof", hostProfile)
		addr, host = p.cmd.Args[3], p.cmd.Process.Pid
		t.Cleanup(p.kill)
	} else {
		addr = kafkatest.Start(t).Addr
		host = javaChild(t)
	}
	awaitTCP(t, addr)
	cfg := bus.Config{Brokers: []string{addr}, ClientID: "pipeline"}
	if _, err := bus.Apply(t.Context(), cfg, max(8, l.machines/4), 1); err != nil {
		t.Fatal(err)
	}
	results := follow(t, cfg, bus.TopicResults) // metrics would cost the monitor what they are asked for
	programs := []part{{program: "broker", pid: host, profile: hostProfile}}
	begin := func(program, file, config string) {
		profile := freeAddr(t)
		p := start(t, program, "run", "--pprof", profile, "--config", write(t, dir, file, config))
		t.Cleanup(p.kill)
		programs = append(programs, part{program, p.cmd.Process.Pid, profile})
	}
	for i := range l.monitors {
		begin("monitor", fmt.Sprintf("monitor%d.yaml", i), fmt.Sprintf("kafka: {brokers: [%q]}\nmodel: %s\npage: \"\"\n", addr, model))
	}
	var peer *process
	if *pipelinePython != "" && l.mode == "raw" {
		peer = startPeer(t, addr, l.settle, l.windows)
	}
	config := fmt.Sprintf("kafka: {brokers: [%q]}\nmode: %s\nmachines:\n", addr, l.mode)
	for i := range l.machines {
		config += fmt.Sprintf("  - {machine: acme/spore/bay9/line1/drill%d, spool: spool%d, source: {kind: simulate, seed: %d, speed: %d}}\n", i, i, i, l.speed)
	}
	begin("ingest", "ingest.yaml", config)
	slices.Reverse(programs)
	at := func(least int) (n int, of []taken) {
		await.Until(t, fmt.Sprintf("%d windows judged", least), func() bool { n = results.distinct(); return n >= least })
		for _, p := range programs {
			of = append(of, takenBy(t, p.pid, p.profile))
		}
		return n, of
	}
	from, begun := at(l.settle)
	clock := time.Now()
	to, ended := at(from + l.windows)
	rate = float64(to-from) / time.Since(clock).Seconds()
	for i, p := range programs {
		a := ended[i].less(begun[i]).of(to - from)
		if p.program == "ingest" {
			a = a.less(drill)
		}
		if last := len(took) - 1; last >= 0 && took[last].program == p.program {
			took[last].taken = took[last].plus(a)
		} else {
			took = append(took, share{p.program, a})
		}
	}
	if peer != nil {
		peer.wait(t)
		var out struct {
			Milliseconds float64
			MB           float64
		}
		if err := json.Unmarshal(peer.stdout.Bytes(), &out); err != nil {
			t.Fatalf("%v\n%s", err, &peer.stdout)
		}
		took = append(took, share{"peer in Python", taken{time.Duration(out.Milliseconds * float64(time.Millisecond)), nan, nan, out.MB}})
	}
	return rate, took
}

// part is a process of the pipeline.
type part struct {
	program string
	pid     int
	profile string // where its profiles are; "" if it has none
}

// takenBy returns what a process has taken, of a Go program with its profiles at an address.
func takenBy(t *testing.T, pid int, profiles string) taken {
	t.Helper()
	a := taken{processor: cpuOf(t, pid), objects: nan, bytes: nan}
	kb, err := strconv.ParseFloat(strings.TrimSuffix(field(fmt.Sprintf("/proc/%d/status", pid), "VmRSS"), " kB"), 64)
	if err != nil {
		t.Fatal(err)
	}
	a.memory = kb / 1e3
	if profiles == "" {
		return a
	}
	res, err := http.Get("http://" + profiles + "/debug/pprof/heap?debug=1")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]*float64{"\n# Mallocs = ": &a.objects, "\n# TotalAlloc = ": &a.bytes} {
		_, after, _ := bytes.Cut(text, []byte(name))
		line, _, _ := bytes.Cut(after, []byte("\n"))
		if *to, err = strconv.ParseFloat(string(line), 64); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// startPeer starts the consumer in Python, which measures itself from the windows settle to settle and n.
func startPeer(t *testing.T, addr string, settle, n int) *process {
	t.Helper()
	return startCommand(t, *pipelinePython, "../bench/peers/signal/consumer.py", addr, strconv.Itoa(settle), strconv.Itoa(n))
}

// javaChild returns the process of the broker that this process started last.
func javaChild(t *testing.T) (pid int) {
	t.Helper()
	await.Until(t, "a broker runs", func() bool {
		paths, _ := filepath.Glob("/proc/[0-9]*/status")
		for _, path := range paths {
			id, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if field(path, "Name") == "java" && field(path, "PPid") == strconv.Itoa(os.Getpid()) && field(path, "State")[0] != 'Z' {
				pid = max(pid, id)
			}
		}
		return pid > 0
	})
	return pid
}

// simulatorTook returns what a simulated drill takes for so many seconds.
func simulatorTook(t *testing.T) (took taken, seconds int) {
	t.Helper()
	src, err := gateway.Simulated(gateway.Simulation{Machine: machine, Start: time.Now(), Seed: 1, Life: processorLife, Tools: 1})
	if err != nil {
		t.Fatal(err)
	}
	from := ownTaken()
	for {
		b, err := src.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return ownTaken().less(from), seconds
		}
		if err != nil {
			t.Fatal(err)
		}
		if b.Group == 0 {
			seconds++
		}
	}
}

// ownTaken returns what this process has taken.
func ownTaken() (a taken) {
	a.processor, a.objects, a.bytes = spent.Now()
	return a
}

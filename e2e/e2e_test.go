//go:build e2e

// Package e2e runs the programs as separate processes and kills them. It counts windows by
// their ids on tcm.windows.v1, and results and alerts by their ids on their topics. It does not
// use the programs' own counters.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/broker"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
	"github.com/flank-tcm/flank/internal/testkit/logtest"
	"github.com/flank-tcm/flank/internal/testkit/loopback"
	"github.com/flank-tcm/flank/schemas"
)

var bin string // folder of the programs

// TestMain builds the programs into the folder that FLANK_PROGRAMS names, where Go links only what has changed, or
// into one that it removes.
func TestMain(m *testing.M) {
	dir, keep := os.LookupEnv("FLANK_PROGRAMS")
	if !keep {
		var err error
		if dir, err = os.MkdirTemp("", "flank-e2e-"); err != nil {
			panic(err)
		}
	}
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "../cmd/ingest", "../cmd/trainer", "../cmd/monitor", "../cmd/standalone")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		panic(err)
	}
	bin = dir
	code := kafkatest.Main(m)
	closeChromium()
	if !keep {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// process is a program that runs.
type process struct {
	cmd    *exec.Cmd
	stdout bytes.Buffer
	stderr logtest.Buffer
}

func start(t *testing.T, name string, args ...string) *process {
	return startCommand(t, filepath.Join(bin, name), args...)
}

// startCommand starts a program of any kind, which ends with the test.
func startCommand(t *testing.T, path string, args ...string) *process {
	p := &process{cmd: exec.Command(path, args...)}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

// kill ends p with SIGKILL.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// wait returns when p has ended. It fails the test if p failed.
func (p *process) wait(t *testing.T) {
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("%v: %v\n%s", p.cmd.Args, err, &p.stderr)
	}
}

func run(t *testing.T, name string, args ...string) string {
	p := start(t, name, args...)
	p.wait(t)
	return p.stdout.String()
}

const (
	tools, rows = 6, 250
	windows     = tools * rows
	machine     = "acme/spore/bay2/line1/lathe"
)

// write writes a file of the test's folder.
func write(t *testing.T, dir, name, text string) string {
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// recording is a table of tools that wear.
func recording(seed uint64) string {
	return wearing(rand.New(rand.NewPCG(seed, 1)), tools, rows)
}

// wearing is a table of so many tools of so many rows: force and power rise with
// the wear, noise does not, and every third tool is taken out before it is worn.
func wearing(rng *rand.Rand, tools, rows int) string {
	var b strings.Builder
	b.WriteString("force,power,noise,tool,VB\n")
	for tool := range tools {
		gain, end := 1+rng.Float64(), 420.0
		if tool%3 == 2 {
			end = 240
		}
		for i := range rows {
			vb := end * float64(i) / float64(rows)
			writeRow(&b, rng, gain, tool, vb)
		}
	}
	return b.String()
}

// writeRow writes a row of a recording: a tool with so many µm of wear. Gain scales its force
// and power.
func writeRow(b *strings.Builder, rng *rand.Rand, gain float64, tool int, vb float64) {
	fmt.Fprintf(b, "%.4f,%.4f,%.4f,T%d,%.1f\n", gain*(100+vb/2+4*rng.NormFloat64()), gain*(20+vb/8+rng.NormFloat64()), rng.NormFloat64(), tool, vb)
}

// prepare writes layout, recording and configurations, and trains a model.
func prepare(t *testing.T, broker string, speed float64) (dir string) {
	dir = t.TempDir()
	write(t, dir, "layout.yaml", "name: small\nchannels:\n  - {names: [force, power, noise], kind: feature, rate: 1}\nrecording: {tool: tool, vb_max_um: VB}\n")
	write(t, dir, "history.csv", recording(1))
	write(t, dir, "day.csv", recording(2))
	write(t, dir, "train.yaml", "layout: layout.yaml\nnetwork: {hidden: [6], pretrain: {epochs: 5}, fine_tune: {epochs: 30}}\nevaluate: {by_tool: \"off\", random_split: false}\n")
	write(t, dir, "ingest.yaml", fmt.Sprintf("machine: %s\nkafka: {brokers: [%q]}\nlayout: layout.yaml\nspool: spool\nsource: {kind: csv, file: day.csv, speed: %v}\n", machine, broker, speed))
	write(t, dir, "monitor.yaml", fmt.Sprintf("kafka: {brokers: [%q]}\nmodel: m.flank\npage: \"\"\n", broker))
	run(t, "trainer", "fit", "--quiet", "--config", filepath.Join(dir, "train.yaml"), "--data", filepath.Join(dir, "history.csv"), "--model", filepath.Join(dir, "m.flank"))
	return dir
}

// reader follows a topic and remembers every message.
type reader struct {
	mu   sync.Mutex
	msgs []bus.Message
	ids  map[string]bool
}

// readTopic is bus.ReadTopic without the ledgers that gateways send next to windows once a minute.
func readTopic(ctx context.Context, cfg bus.Config, topic string, from int64, follow bool, fn func(bus.Message) error) error {
	return bus.ReadTopic(ctx, cfg, topic, from, follow, func(m bus.Message) error {
		if envelope.IsLedger(&m) {
			return nil
		}
		return fn(m)
	})
}

func follow(t *testing.T, cfg bus.Config, topic string) *reader {
	r := &reader{ids: make(map[string]bool)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = readTopic(ctx, cfg, topic, bus.FirstOffset, true, func(m bus.Message) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.msgs = append(r.msgs, m)
			r.ids[string(m.Header("ce_id"))] = true
			return nil
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

func (r *reader) all() []bus.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]bus.Message(nil), r.msgs...)
}

// distinct returns how many different ids there are.
func (r *reader) distinct() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ids)
}

// reaches waits until there are n distinct ids. It reports false if that takes too long.
func (r *reader) reaches(n int) bool {
	for deadline := time.Now().Add(patience); r.distinct() < n; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// until waits until there are n distinct ids.
func (r *reader) until(t *testing.T, n int, what string) {
	t.Helper()
	if !r.reaches(n) {
		t.Fatalf("%d %s, still waiting for %d", r.distinct(), what, n)
	}
}

// server is a broker that can die and come back.
type server interface {
	Addr() string
	Kill()
	Restart(t *testing.T)
}

// startServer starts the Apache Kafka that FLANK_KAFKA names, or an embedded
// broker, with all topics.
func startServer(t *testing.T, partitions int) (server, bus.Config) {
	t.Helper()
	var s server
	if kafkatest.Version() == "" {
		e := &embedded{dir: t.TempDir(), addr: loopback.Host(2) + ":0"}
		e.Restart(t)
		t.Cleanup(e.Kill)
		s = e
	} else {
		s = apache{kafkatest.Start(t)}
	}
	cfg := bus.Config{Brokers: []string{s.Addr()}, ClientID: "e2e"}
	if _, err := bus.Apply(context.Background(), cfg, partitions, 1); err != nil {
		t.Fatal(err)
	}
	return s, cfg
}

// apache is Apache Kafka.
type apache struct{ b *kafkatest.Broker }

func (a apache) Addr() string         { return a.b.Addr }
func (a apache) Kill()                { a.b.Kill() }
func (a apache) Restart(t *testing.T) { a.b.Restart(t) }

// embedded is a broker in this process. Its Kill only closes it.
type embedded struct {
	dir, addr string
	b         *broker.Broker
}

func (e *embedded) Addr() string { return e.addr }
func (e *embedded) Kill()        { _ = e.b.Close() }
func (e *embedded) Restart(t *testing.T) {
	t.Helper()
	b, err := broker.Start(e.dir, e.addr)
	if err != nil {
		t.Fatal(err)
	}
	e.b, e.addr = b, b.Addr()
}

// checkResults checks that every window has one result, that repeats are equal, and that all
// results are valid.
func checkResults(t *testing.T, r *reader, want int) (verdicts map[uint64]event.Verdict, repeats int) {
	t.Helper()
	verdicts = map[uint64]event.Verdict{}
	body := map[string]string{}
	for _, m := range r.all() {
		id := string(m.Header("ce_id"))
		if before, ok := body[id]; ok {
			repeats++
			if before != string(m.Value) {
				t.Errorf("result %s came twice and differs:\n%s\n%s", id, before, m.Value)
			}
			continue
		}
		body[id] = string(m.Value)
		if err := schemas.Validate(schemas.Result, m.Value); err != nil {
			t.Fatal(err)
		}
		var res event.Result
		if err := json.Unmarshal(m.Value, &res); err != nil {
			t.Fatal(err)
		}
		if _, twice := verdicts[res.Seq]; twice {
			t.Errorf("window %d has results of two ids", res.Seq)
		}
		verdicts[res.Seq] = res.Verdict
	}
	for seq := range uint64(want) {
		if _, ok := verdicts[seq]; !ok {
			t.Errorf("window %d has no result", seq)
		}
	}
	if len(verdicts) != want {
		t.Errorf("%d windows have results, want %d", len(verdicts), want)
	}
	return verdicts, repeats
}

func checkAlerts(t *testing.T, r *reader) map[string]event.Alert {
	t.Helper()
	alerts := map[string]event.Alert{}
	for _, m := range r.all() {
		if string(m.Header("ce_type")) != event.AlertType {
			continue
		}
		if err := schemas.Validate(schemas.Alert, m.Value); err != nil {
			t.Fatal(err)
		}
		var a event.Alert
		if err := json.Unmarshal(m.Value, &a); err != nil {
			t.Fatal(err)
		}
		if before, ok := alerts[a.ID]; ok && !reflect.DeepEqual(before, a) {
			t.Errorf("alert %s came twice and differs", a.ID)
		}
		alerts[a.ID] = a
	}
	return alerts
}

// Standalone is killed half-way and started again.
func TestStandaloneKilled(t *testing.T) {
	dir := prepare(t, "127.0.0.1:1", 0)
	out := filepath.Join(dir, "out.jsonl")
	args := []string{
		"--once", "--replay", filepath.Join(dir, "day.csv"), "--layout", filepath.Join(dir, "layout.yaml"), "--model", filepath.Join(dir, "m.flank"),
		"--results", out, "--data-dir", filepath.Join(dir, "data"), "--page", "off", "--broker", "127.0.0.1:0", "--machine", machine,
	}
	for _, after := range []time.Duration{900 * time.Millisecond, 1300 * time.Millisecond} {
		p := start(t, "standalone", append(args, "--speed", "300")...)
		time.Sleep(after)
		p.kill()
	}
	stdout := run(t, "standalone", args...)
	var s struct{ Windows, Results, Lost, Duplicated, Alerts int }
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &s); err != nil {
		t.Fatalf("%v\n%s", err, stdout)
	}
	if s.Windows != windows || s.Results != windows || s.Lost != 0 || s.Duplicated != 0 || s.Alerts != 4 {
		t.Errorf("%+v, want %d windows, each with one result, and 4 alerts", s, windows)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n != windows {
		t.Errorf("%d lines in out.jsonl, want %d", n, windows)
	}
}

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/testkit/mqtttest"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// liveRows is how many rows the live sensor sends, one for each window. The first channel holds
// the number of the row.
const liveRows = 400

func liveTable() string {
	var b strings.Builder
	b.WriteString("force,power,noise\n")
	for i := range liveRows {
		fmt.Fprintf(&b, "%d,%d,0\n", i, i%7)
	}
	return b.String()
}

// live changes the configuration of prepare to a live source.
func live(t *testing.T, dir, broker, source string) (config string) {
	return write(t, dir, "ingest.yaml", fmt.Sprintf("machine: %s\nkafka: {brokers: [%q]}\nlayout: layout.yaml\nspool: spool\n%s\n", machine, broker, source))
}

// rowsOf returns the rows of all windows on the topic, in order. It fails the test for windows
// that differ from the sent rows.
func rowsOf(t *testing.T, r *reader, dir string) (rows []int) {
	t.Helper()
	layout, _, err := signal.LoadLayout(filepath.Join(dir, "layout.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	codec, err := window.NewCodec(layout, window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range r.all() {
		if id := string(m.Header("ce_id")); seen[id] {
			continue
		} else {
			seen[id] = true
		}
		var w window.Window
		if err := envelope.Open(codec, &m, &w); err != nil {
			t.Fatal(err)
		}
		row := int(w.Samples[0][0])
		if w.Samples[1][0] != float32(row%7) || w.First != int64(row) {
			t.Errorf("window of row %d begins at %d and holds %v", row, w.First, w.Samples)
		}
		rows = append(rows, row)
	}
	return rows
}

func checkRows(t *testing.T, got []int) {
	t.Helper()
	var want []int
	for i := range liveRows {
		want = append(want, i)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d rows in windows, want each of %d once and in order: %v", len(got), liveRows, got)
	}
}

// client starts one of the example clients, which sends the table on a file.
func client(t *testing.T, command []string, to, table string, speed int) *process {
	t.Helper()
	args := append(command[1:len(command):len(command)], "--to", to, "--rate", "1", "--frame")
	if length := "1s"; strings.HasSuffix(command[len(command)-1], ".py") {
		args = append(args, strings.TrimSuffix(length, "s"))
	} else {
		args = append(args, length)
	}
	args = append(args, "--speed", fmt.Sprint(speed))
	p := &process{cmd: exec.Command(command[0], args...)}
	p.cmd.Stdin = strings.NewReader(table)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

// An ingester with a live source is killed again and again. Its client sends unacknowledged rows
// again, and every row is in one window.
func TestLiveKilled(t *testing.T) {
	clients := map[string][]string{"go": {filepath.Join(bin, "feed")}}
	if python, err := exec.LookPath("python3"); err == nil && exec.Command(python, "-c", "import pyarrow").Run() == nil {
		clients["python"] = []string{python, "../examples/feed/feed.py"}
	} else {
		t.Log("no python3 with pyarrow: its client is not tested")
	}
	build := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "../examples/feed")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for name, command := range clients {
		t.Run(name, func(t *testing.T) {
			b, cfg := startServer(t, 2)
			dir, at := prepare(t, b.Addr(), 1), freeAddr(t)
			config := live(t, dir, b.Addr(), fmt.Sprintf("source: {kind: tcp, listen: %q}", at))
			sent := follow(t, cfg, bus.TopicWindows)
			c := client(t, command, at, liveTable(), 200)
			for _, n := range []int{liveRows / 10, liveRows / 3, liveRows / 2, liveRows * 3 / 4} {
				p := start(t, "ingest", "run", "--config", config)
				sent.until(t, n, "windows")
				p.kill()
			}
			start(t, "ingest", "run", "--config", config)
			c.wait(t)
			if got, want := c.stdout.String(), fmt.Sprintf("%d samples sent, 0 frames not acknowledged\n", liveRows); got != want {
				t.Errorf("the client says %q, want %q", got, want)
			}
			sent.until(t, liveRows, "windows")
			checkRows(t, rowsOf(t, sent, dir))
		})
	}
}

// After a tool change at the machine the monitor's results name the new tool, and the monitor
// learns the tool's reference.
func TestToolChange(t *testing.T) {
	build := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "../examples/feed")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	b, cfg := startServer(t, 2)
	dir, at := prepare(t, b.Addr(), 1), freeAddr(t)
	config := live(t, dir, b.Addr(), fmt.Sprintf("source: {kind: tcp, listen: %q}", at))
	ingester := start(t, "ingest", "run", "--config", config)
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", at)
		if err == nil {
			conn.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("ingest does not listen\n%s", &ingester.stderr)
		}
	}
	start(t, "monitor", "run", "--wait", "60s", "--config", filepath.Join(dir, "monitor.yaml"))
	results := follow(t, cfg, bus.TopicResults)
	if out := run(t, "ingest", "tool", "--config", config, "--tool", "T1", "--hole", "H1"); out != machine+": tool T1, hole H1, spindle speed not known\n" {
		t.Errorf("%q", out)
	}
	c := client(t, []string{filepath.Join(bin, "feed")}, at, liveTable(), 100)
	results.until(t, liveRows/4, "results")
	run(t, "ingest", "tool", "--config", config, "--tool", "T2")
	results.until(t, liveRows/2, "results")
	ingester.kill()
	start(t, "ingest", "run", "--config", config) // it still knows the tool
	c.wait(t)
	results.until(t, liveRows, "results")
	verdicts, _ := checkResults(t, results, liveRows)
	var tools []string
	first := map[string]event.Result{}
	bySeq := map[uint64]event.Result{}
	for _, m := range results.all() {
		var r event.Result
		if err := json.Unmarshal(m.Value, &r); err != nil {
			t.Fatal(err)
		}
		bySeq[r.Seq] = r
	}
	for seq := range uint64(len(bySeq)) {
		r := bySeq[seq]
		if len(tools) == 0 || tools[len(tools)-1] != r.Tool {
			tools = append(tools, r.Tool)
			first[r.Tool] = r
		}
	}
	if !slices.Equal(tools, []string{"T1", "T2"}) {
		t.Fatalf("results are of tools %v, want T1 and then T2", tools)
	}
	if first["T1"].Hole != "H1" || first["T2"].Hole != "" {
		t.Errorf("holes %q and %q, want H1 and none", first["T1"].Hole, first["T2"].Hole)
	}
	for tool, r := range first {
		if r.Verdict != event.Learning {
			t.Errorf("the first window of %s is %s, want %s: the monitor must learn its reference", tool, r.Verdict, event.Learning)
		}
	}
	if v := verdicts[first["T2"].Seq-1]; v == event.Learning {
		t.Errorf("the last window of T1 is %s: its reference was learnt long ago", v)
	}
}

// All published samples arrive, in order, also across a restart of ingest.
func TestMQTTArrives(t *testing.T) {
	s := mqtttest.Start(t, mqtttest.Options{})
	b, cfg := startServer(t, 2)
	dir := prepare(t, b.Addr(), 1)
	config := live(t, dir, b.Addr(), fmt.Sprintf("source: {kind: mqtt}\nmqtt: {broker: %q}", s.URL))
	sent := follow(t, cfg, bus.TopicWindows)
	publish := func(from, to int) {
		for i := from; i < to; i++ {
			frame := fmt.Sprintf(`{"session": 5, "first": %d, "time_ns": %d, "tool": "T1", "channels": {"force": [%d], "power": [%d], "noise": [0]}}`,
				i, time.Date(2026, 1, 5, 6, 0, i, 0, time.UTC).UnixNano(), i, i%7)
			s.Publish(t, "flank/"+machine+"/samples", []byte(frame), false)
		}
	}
	p := start(t, "ingest", "run", "--config", config)
	for deadline := time.Now().Add(patience); s.Subscribers("flank/"+machine+"/samples") == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("ingest does not subscribe\n%s", &p.stderr)
		}
	}
	publish(0, liveRows/2)
	sent.until(t, liveRows/2, "windows")
	time.Sleep(200 * time.Millisecond) // until the broker has noticed: it sends repeats in no order
	p.kill()
	publish(liveRows/2, liveRows/2+1)
	start(t, "ingest", "run", "--config", config)
	sent.until(t, liveRows/2+1, "windows")
	publish(liveRows/2+1, liveRows)
	sent.until(t, liveRows, "windows")
	checkRows(t, rowsOf(t, sent, dir))
}

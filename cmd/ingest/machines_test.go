package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/ingest/spool"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/webtest"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// health is what /healthz says of a machine.
type health struct {
	State, Problem    string
	Restarts, Windows uint64
	Senders           *int64
}

// One ingest serves several machines: a bad recording, a spool in use, a port in
// use and a disk that is full stop no other machine, and what can be mended is
// tried again.
func TestMachines(t *testing.T) {
	t.Parallel()
	addr, at, web := startBroker(t), freePort(t), freePort(t)
	name := func(m string) string { return "acme/spore/bay2/line1/" + m }
	dir := bench(t, "bad.csv", table+"9,off,T2\n", "ingest.yaml", fmt.Sprintf(`
kafka: {brokers: [%q]}
metrics: %q
machines:
  - {machine: %s, layout: layout.yaml, spool: spools/a, source: {kind: file, file: day.csv, speed: 0}}
  - {machine: %s, layout: layout.yaml, spool: spools/b, source: {kind: file, file: bad.csv, speed: 0}}
  - {machine: %s, layout: layout.yaml, spool: spools/c, source: {kind: tcp, listen: %q}}
  - {machine: %s, layout: layout.yaml, spool: spools/d, source: {kind: tcp, listen: "127.0.0.1:0"}}
  - {machine: %s, layout: layout.yaml, source: {kind: folder, folder: absent, speed: 0}}
`, addr, web, name("a"), name("b"), name("c"), at, name("d"), name("e")))
	if _, _, err := dir.run(t, t.Context(), "topics apply --config ingest.yaml"); err != nil {
		t.Fatal(err)
	}
	held, _, err := spool.Open(dir.path("spools/d"), spool.Settings{}) // another program has it
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	stop := dir.background(t, "run --config ingest.yaml")
	c := connect(t, at)
	for n := range int64(3) {
		c.send(row(1, n, ""))
	}
	c.acked(3)

	states := func() map[string]health {
		_, text := webtest.Get(t, "http://"+web+"/healthz")
		var got struct{ Machines map[string]health }
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		short := map[string]health{}
		for m, h := range got.Machines {
			short[strings.TrimPrefix(m, name(""))] = h
		}
		return short
	}
	await.Until(t, "every machine is where it gets", func() bool {
		s := states()
		return s["a"].State == "done" && s["b"].State == "failed" && s["c"].State == "running" && s["d"].State == "failed" && s["e"].State == "failed"
	})
	s := states()
	if !strings.Contains(s["b"].Problem, "bad.csv:6") || !strings.Contains(s["d"].Problem, "spools/d") || s["c"].Windows != 3 || *s["c"].Senders != 1 {
		t.Errorf("%+v", s)
	}
	if err := os.Mkdir(dir.path("absent"), 0o755); err != nil {
		t.Fatal(err)
	}
	held.Close()
	await.Until(t, "what was mended runs", func() bool { s := states(); return s["d"].State == "running" && s["e"].State == "running" })
	if s := states(); s["d"].Restarts == 0 || s["a"].Restarts+s["b"].Restarts != 0 {
		t.Errorf("%+v", s)
	}
	out, _, err := dir.run(t, t.Context(), "tool --config ingest.yaml --machine "+name("c")+" --tool T5")
	if err != nil || !strings.HasPrefix(out, name("c")+": tool T5") {
		t.Errorf("tool: %q, %v", out, err)
	}
	for args, want := range map[string]string{
		"--tool T5":                              "has 5 machines: name one by --machine",
		"--tool T5 --machine " + name("f"):       "no machine",
		"--tool T5 --machine " + name("a"):       "names its tools itself; declare one new with `monitor machines new-tool`",
		"--machine " + name("c"):                 "says nothing",
		"--machine " + name("c") + " --speed=-2": "rev/min from 0",
	} {
		if _, _, err := dir.run(t, t.Context(), "tool --config ingest.yaml "+args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("tool %s: %v, want %q", args, err, want)
		}
	}
	_, text := webtest.Get(t, "http://"+web+"/metrics")
	if line := fmt.Sprintf("tcm_windows_cut_total{machine=%q} 3\n", name("c")); !strings.Contains(text, line) {
		t.Errorf("no %s in\n%s", line, text)
	}
	out, log, err := stop()
	if err == nil || !strings.Contains(err.Error(), "bad.csv:6") || strings.Contains(err.Error(), name("a")) {
		t.Errorf("the bad recording is the end's error: %v", err)
	}
	for _, want := range []string{name("a") + ": 4 windows cut, 4 delivered", name("b") + ": 4 windows cut, 4 delivered", name("c") + ": 3 windows cut, 3 delivered"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s\n%s", want, out, log)
		}
	}
	got := dir.arrived(t, addr)
	for m, want := range map[string]int{"a": 4, "b": 4, "c": 3} {
		if len(got[name(m)]) != want {
			t.Errorf("%s: %d windows on the topic, want %d", m, len(got[name(m)]), want)
		}
	}

	out, _, err = dir.run(t, t.Context(), "spool ls --config ingest.yaml")
	if err != nil || strings.Count(out, "delivered up to seq") != 5 {
		t.Errorf("spool ls: %v\n%s", err, out)
	}
	out, _, err = dir.run(t, t.Context(), "spool verify --config ingest.yaml --machine "+name("c"))
	if err != nil || !strings.Contains(out, "3 records whole, 0 lost") || strings.Contains(out, "4 records") {
		t.Errorf("spool verify: %v\n%s", err, out)
	}
	out, _, err = dir.run(t, t.Context(), "spool resend --config ingest.yaml --since 1h")
	if err != nil || !strings.HasPrefix(out, "11 windows sent again") {
		t.Errorf("spool resend: %v\n%s", err, out)
	}
	out, _, err = dir.run(t, t.Context(), "check --config ingest.yaml")
	if err != nil || strings.Count(out, " segments, fsync of ") != 5 {
		t.Errorf("check: %v\n%s", err, out)
	}
}

// A simulated drill fails on request, as its recordings do.
func TestFaultsOnTheSimulatedDrill(t *testing.T) {
	t.Parallel()
	addr := startBroker(t)
	dir := bench(t, "ingest.yaml", fmt.Sprintf(`machine: a/b/c/d/e
kafka: {brokers: [%q]}
spool: spool
source: {kind: simulate, speed: 0, tools: 1, tool_life: 5s, faults: ["flatline:ch07@2s+3s", "missing@6s+2s"]}
`, addr))
	if _, _, err := dir.run(t, t.Context(), "topics apply --config ingest.yaml"); err != nil {
		t.Fatal(err)
	}
	out, log, err := dir.run(t, t.Context(), "run --config ingest.yaml")
	if err != nil || !strings.HasSuffix(out, ", 1 gaps\n") || !strings.Contains(log, `"reason":"missing samples"`) || !strings.Contains(log, `"duration_ms":2000`) {
		t.Errorf("%v\n%s%s", err, out, log)
	}
	flat := 0
	windowsOf(t, addr, signal.GunDrill(), func(w *window.Window) {
		if w.Quality[6] != 0 {
			flat++
		}
	})
	if flat != 3 {
		t.Errorf("%d windows with a flat channel, want 3", flat)
	}
}

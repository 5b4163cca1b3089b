package main

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/opcuatest"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// startAgent serves an MTConnect agent that names a tool.
func startAgent(t *testing.T, tool *atomic.Value) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `<MTConnectStreams xmlns="urn:mtconnect.org:MTConnectStreams:1.8"><Streams><ToolAssetId dataItemId="t">%v</ToolAssetId><Program dataItemId="p">O12</Program><Material dataItemId="m">42CrMo4</Material><PathFeedrate dataItemId="f">1.375</PathFeedrate></Streams></MTConnectStreams>`, tool.Load())
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func controlYAML(url, more string) string {
	return "context:\n  mtconnect: {url: " + url + "}\n  tool: ToolAssetId\n  hole: Program\n  feed_rate: PathFeedrate\n  programme: Program\n  material: Material\n  interval: 100ms\n" + more
}

// Windows have the tool that an MTConnect agent names.
func TestMTConnect(t *testing.T) {
	var tool atomic.Value
	url := startAgent(t, &tool)
	testControl(t, controlYAML(url, ""), url, func(name string) { tool.Store(cmp.Or(name, "UNAVAILABLE")) }, func() {})
}

func opcuaYAML(endpoint, more string) string {
	return "context:\n  opcua: {endpoint: \"" + endpoint + "\"}\n  tool: ns=2;s=Tool\n  hole: ns=2;s=Programme\n  feed_rate: ns=2;s=Feed\n  programme: ns=2;s=Programme\n  material: ns=2;s=Material\n  interval: 100ms\n" + more
}

// Windows have the tool that a server of OPC UA names, also if the tool changes while the
// server restarts.
func TestOPCUA(t *testing.T) {
	s := opcuatest.StartControl(t, opcuatest.Options{})
	s.Set("Programme", "O12")
	s.Set("Feed", 82.5)
	s.Set("Material", "42CrMo4")
	testControl(t, opcuaYAML(s.Endpoint(), ""), s.Endpoint(), func(name string) {
		if name == "" {
			s.Bad("Tool")
		} else {
			s.Set("Tool", name)
		}
	}, func() {
		s.Kill()
		s.Restart()
	})
}

// testControl checks that windows have the tool that the control at an address names, which
// set changes, and that another tool begins another session, also after a restart of the
// control and of ingest. The hole and the programme are O12, the feed rate is 82.5 mm/min, the material 42CrMo4. An empty tool is one that the control does not know.
func testControl(t *testing.T, yaml, address string, set func(tool string), restart func()) {
	t.Helper()
	addr, at := startBroker(t), freePort(t)
	set("GD-1")
	dir := bench(t, "ingest.yaml", tcpYAML(addr, at)+yaml)
	if _, _, err := dir.run(t, t.Context(), "topics apply --config ingest.yaml"); err != nil {
		t.Fatal(err)
	}
	out, _, err := dir.run(t, t.Context(), "check --config ingest.yaml")
	if want := "context ok  " + address + ", " + lathe + `: tool "GD-1", hole "O12", spindle speed not known, feed rate 82.5 mm/min, programme "O12", material "42CrMo4"` + "\n"; err != nil || !strings.HasSuffix(out, want) {
		t.Errorf("check: %v\n%s, want %s", err, out, want)
	}
	inUse := func(name string) {
		t.Helper()
		await.Until(t, "the tool is "+name, func() bool {
			text, _ := os.ReadFile(dir.path("spool/context.json"))
			return strings.Contains(string(text), fmt.Sprintf("%q", name))
		})
	}
	stop := dir.background(t, "run --config ingest.yaml")
	c := connect(t, at)
	inUse("GD-1")
	for n := range int64(2) {
		c.send(row(1, n, ""))
	}
	c.acked(2)
	c.c.Close() // a client that is silent for as long as a restart takes loses its place
	restart()
	set("GD-2")
	inUse("GD-2")
	c = connect(t, at)
	c.send(row(1, 2, ""))
	c.acked(1)
	_, log, err := stop()
	if err != nil || !strings.Contains(log, `context: tool \"GD-2\", hole \"O12\"`) {
		t.Errorf("%v\n%s", err, log)
	}
	set("") // as after a restart of the control
	stop = dir.background(t, "run --config ingest.yaml")
	c = connect(t, at)
	c.send(row(1, 3, ""))
	c.acked(1)
	halt(t, stop)
	if got, want := fmt.Sprint(dir.arrived(t, addr)[lathe]), "[GD-1:0 GD-1:1 GD-2:2 GD-2:3]"; got != want {
		t.Errorf("windows %s, want %s", got, want)
	}
	sessions := map[string]bool{}
	layout, _, err := signal.LoadLayout(dir.path("layout.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	windowsOf(t, addr, layout, func(w *window.Window) {
		sessions[fmt.Sprint(w.Tool, w.Session)] = true
		if w.FeedRate != 82.5 || w.Programme != "O12" || w.Material != "42CrMo4" {
			t.Errorf("window %d: %+v", w.Seq, w.Context)
		}
	})
	if len(sessions) != 2 {
		t.Errorf("tools and sessions: %v", sessions)
	}
}

// Where samples name their tool, the control's is not used: the log says so once, and not at each reading.
func TestMTConnectNamed(t *testing.T) {
	t.Parallel()
	addr, at := startBroker(t), freePort(t)
	var asked, other atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprintf(w, `<MTConnectStreams xmlns="urn:mtconnect.org:MTConnectStreams:1.8"><Streams><ToolAssetId dataItemId="t">GD-%d</ToolAssetId><Program dataItemId="p">O12</Program></Streams></MTConnectStreams>`, other.Load())
	}))
	t.Cleanup(s.Close)
	dir := bench(t, "ingest.yaml", tcpYAML(addr, at)+controlYAML(s.URL, ""))
	if _, _, err := dir.run(t, t.Context(), "topics apply --config ingest.yaml"); err != nil {
		t.Fatal(err)
	}
	stop := dir.background(t, "run --config ingest.yaml")
	c := connect(t, at)
	c.send(row(1, 0, `, "tool": "T7"`))
	c.acked(1)
	other.Store(1)
	began := asked.Load()
	await.Until(t, "the control is asked again and again", func() bool { return asked.Load() > began+10 })
	_, log, err := stop()
	if n := strings.Count(log, `context: tool`); err != nil || n > 2 || strings.Count(log, "the tool of the control is not used") != 1 {
		t.Errorf("%v, %d changes of the context\n%s", err, n, log)
	}
}

// A control that does not answer stops `ingest check`, not ingest; what cannot be meant
// stops both.
func TestMTConnectWrong(t *testing.T) {
	t.Parallel()
	addr, at := startBroker(t), freePort(t)
	dir := bench(t, "ingest.yaml", tcpYAML(addr, at)+controlYAML("http://"+nowhere, ""))
	if _, _, err := dir.run(t, t.Context(), "topics apply --config ingest.yaml"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := dir.run(t, t.Context(), "check --config ingest.yaml"); err == nil || !strings.Contains(err.Error(), "context: "+lathe+": ") || !strings.Contains(err.Error(), "correct `url`, or start the MTConnect agent") {
		t.Errorf("check: %v", err)
	}
	stop := dir.background(t, "run --config ingest.yaml")
	c := connect(t, at)
	c.send(row(1, 0, ""))
	c.acked(1)
	if _, log, err := stop(); err != nil || !strings.Contains(log, "the machine's control cannot be read") {
		t.Errorf("%v\n%s", err, log)
	}
	for want, text := range map[string]string{
		"context: the source, csv, names its tools itself":       ingestYAML(addr, "", "") + controlYAML("http://agent:5000", ""),
		"context: says not whom to ask":                          tcpYAML(addr, at) + "context:\n  tool: t\n",
		"context: mtconnect: url: write the agent's address":     tcpYAML(addr, at) + controlYAML("agent", ""),
		"context: mtconnect: nothing is asked for":               tcpYAML(addr, at) + "context:\n  mtconnect: {url: \"http://agent:5000\"}\n",
		"context: timeout: 1ms: must be from 100ms to 1h0m0s":    tcpYAML(addr, at) + controlYAML("http://agent:5000", "  timeout: 1ms\n"),
		"context: mtconnect: TLS: a certificate needs its key":   tcpYAML(addr, at) + "context:\n  mtconnect: {url: \"https://agent\", tls: {cert: a.pem}}\n  tool: t\n",
		"context: names two controls":                            tcpYAML(addr, at) + controlYAML("http://agent:5000", "  opcua: {endpoint: \"opc.tcp://control\"}\n"),
		"context: opcua: endpoint: write the server's address":   tcpYAML(addr, at) + opcuaYAML("control:4840", ""),
		"context: opcua: endpoint: without certificates":         tcpYAML(addr, at) + opcuaYAML("opc.tcp://control", ""),
		"context: opcua: spindle_speed: \"Speed\" is not the id": tcpYAML(addr, at) + opcuaYAML("opc.tcp://127.0.0.1", "  spindle_speed: Speed\n"),
		"context: opcua: tls: OPC UA needs all of":               tcpYAML(addr, at) + "context:\n  opcua: {endpoint: \"opc.tcp://control\", tls: {ca: ca.pem}}\n  tool: i=85\n",
		"unknown key `tools`":                                    tcpYAML(addr, at) + controlYAML("http://agent:5000", "  tools: x\n"),
	} {
		dir.write(t, "ingest.yaml", text)
		if _, _, err := dir.run(t, t.Context(), "run --config ingest.yaml"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

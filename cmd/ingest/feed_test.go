package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/loopback"
	"github.com/flank-tcm/flank/internal/testkit/mqtttest"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// patience bounds what should take a moment. It is not a measure of speed.
const patience = 2 * time.Minute

const lathe = "acme/spore/bay2/line1/lathe"

// background runs ingest until the test or the returned function ends it.
func (dir folder) background(t *testing.T, args string) (stop func() (stdout, stderr string, err error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var out, errs string
	var err error
	go func() {
		defer close(done)
		out, errs, err = dir.run(t, ctx, args)
	}()
	stop = func() (string, string, error) {
		cancel()
		<-done
		return out, errs, err
	}
	t.Cleanup(func() { cancel(); <-done })
	return stop
}

// halt ends what background runs, which must not fail.
func halt(t *testing.T, stop func() (string, string, error)) {
	t.Helper()
	if _, log, err := stop(); err != nil {
		t.Errorf("%v\n%s", err, log)
	}
}

var hosts atomic.Int64

// freePort returns an address that no program listens at. Its host is this computer by a number of its own, so that no
// other test gets the port before ingest listens there.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", loopback.Host(1+int(hosts.Add(1)%250))+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// row is a frame of one row of the small layout.
func row(session, n int64, change string) []byte {
	return fmt.Appendf(nil, `{"session": %d, "first": %d, "time_ns": %d%s, "channels": {"force": [%d], "power": [1]}}`,
		session, n, time.Date(2026, 1, 5, 6, 0, int(n), 0, time.UTC).UnixNano(), change, n)
}

func framed(p []byte) []byte {
	h := binary.LittleEndian.AppendUint32(nil, uint32(len(p)))
	return append(binary.LittleEndian.AppendUint32(h, crc32.ChecksumIEEE(p)), p...)
}

// sender is a client that sends rows and hears what becomes of them.
type sender struct {
	t *testing.T
	c net.Conn
	r *bufio.Reader
}

func connect(t *testing.T, addr string) *sender {
	t.Helper()
	var c net.Conn
	await.Until(t, "ingest listens at "+addr, func() (ok bool) {
		var err error
		c, err = net.Dial("tcp", addr)
		return err == nil
	})
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &sender{t, c, bufio.NewReader(c)}
}

func (s *sender) send(frame []byte) {
	s.t.Helper()
	if _, err := s.c.Write(framed(frame)); err != nil {
		s.t.Fatal(err)
	}
}

// acked waits until n frames are acknowledged.
func (s *sender) acked(n int) {
	s.t.Helper()
	for {
		line, err := s.r.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "ok ") {
			s.t.Fatalf("%q, %v", line, err)
		}
		if line == fmt.Sprintf("ok %d\n", n) {
			return
		}
	}
}

// windowsOf calls fn for every window on the topic, once.
func windowsOf(t *testing.T, addr string, layout *signal.Layout, fn func(w *window.Window)) {
	t.Helper()
	codec, err := window.NewCodec(layout, window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	err = bus.ReadTopic(t.Context(), bus.Config{Brokers: []string{addr}}, bus.TopicWindows, bus.FirstOffset, false, func(m bus.Message) error {
		if envelope.IsLedger(&m) {
			return nil
		}
		var w window.Window
		if err := envelope.Open(codec, &m, &w); err != nil {
			return err
		}
		if id := string(m.Header("ce_id")); !ids[id] {
			ids[id] = true
			fn(&w)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// arrived returns the windows on the topic, as tool and first sample, by machine.
func (dir folder) arrived(t *testing.T, addr string) map[string][]string {
	t.Helper()
	layout, _, err := signal.LoadLayout(dir.path("layout.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	windowsOf(t, addr, layout, func(w *window.Window) {
		got[w.Machine] = append(got[w.Machine], fmt.Sprintf("%s:%v", w.Tool, w.Samples[0][0]))
	})
	return got
}

func tcpYAML(broker, listen string) string {
	return ingestYAML(broker, "  kind: csv\n  file: day.csv\n  speed: 0\n", fmt.Sprintf("  kind: tcp\n  listen: %q\n", listen))
}

// A client's rows arrive, each once; a tool that is named from the command line
// holds from then on, also after a restart of ingest, which the client survives by
// sending again what was not acknowledged.
func TestFeedAndTool(t *testing.T) {
	t.Parallel()
	addr, at := startBroker(t), freePort(t)
	dir := bench(t, "ingest.yaml", tcpYAML(addr, at))
	if _, _, err := dir.run(t, t.Context(), "topics apply --config ingest.yaml"); err != nil {
		t.Fatal(err)
	}
	stop := dir.background(t, "run --config ingest.yaml")
	c := connect(t, at)
	for n := range int64(3) {
		c.send(row(1, n, ""))
	}
	c.acked(3)
	out, _, err := dir.run(t, t.Context(), "tool --config ingest.yaml --tool T08 --hole 12 --speed 1650")
	if err != nil || out != lathe+": tool T08, hole 12, 1650 rev/min\n" {
		t.Errorf("tool: %q, %v", out, err)
	}
	for n := int64(3); n < 5; n++ {
		c.send(row(1, n, ""))
	}
	c.acked(5)
	out, log, err := stop()
	if err != nil || !strings.HasPrefix(out, "5 windows cut, 5 delivered, 0 pending in the spool, 0 gaps\n") || !strings.Contains(log, `"tool":"T08","hole":"12","spindle_speed":1650`) {
		t.Errorf("%v\n%s%s", err, out, log)
	}
	if _, _, err := dir.run(t, t.Context(), "tool --config ingest.yaml --tool T09"); err == nil || !strings.Contains(err.Error(), "is not running: start it, then run this command again") {
		t.Errorf("a tool named while ingest is not running: %v", err)
	}

	stop = dir.background(t, "run --config ingest.yaml")
	c = connect(t, at)
	for n := int64(3); n < 8; n++ { // two of them are on disk
		c.send(row(1, n, ""))
	}
	c.acked(5)
	c.send(row(1, 8, `, "tool": "X1"`)) // it knows its tool now
	c.acked(6)
	if _, _, err := dir.run(t, t.Context(), "tool --config ingest.yaml --tool T09"); err == nil || !strings.Contains(err.Error(), `the last frame says it is "X1"`) {
		t.Errorf("a tool that the frames contradict: %v", err)
	}
	out, _, err = dir.run(t, t.Context(), "tool --config ingest.yaml --new")
	if err != nil || !strings.HasPrefix(out, lathe+": tool X1 is new from now on\n"+lathe+": tool X1, ") {
		t.Errorf("tool --new: %q, %v", out, err)
	}
	c.send(row(1, 9, `, "tool": "X1"`))
	c.acked(7)
	halt(t, stop)
	want := "[:0 :1 :2 T08:3 T08:4 T08:5 T08:6 T08:7 X1:8 X1:9]"
	if got := fmt.Sprint(dir.arrived(t, addr)[lathe]); got != want {
		t.Errorf("windows %s, want %s", got, want)
	}
	var lives []string
	err = bus.ReadTopic(t.Context(), bus.Config{Brokers: []string{addr}}, bus.TopicWindows, bus.FirstOffset, false, func(m bus.Message) error {
		if envelope.IsLedger(&m) {
			return nil
		}
		if life := string(m.Header("tool_life")); life != "" {
			lives = append(lives, string(m.Header("seq"))+" "+life[:2])
		}
		return nil
	})
	if err != nil || fmt.Sprint(lives) != "[9 20]" { // it begins with the year
		t.Errorf("windows of tools that were declared new: %q, %v", lives, err)
	}
}

// Only who can read the token may name a tool.
func TestToolNeedsToken(t *testing.T) {
	t.Parallel()
	at := freePort(t)
	dir := bench(t, "ingest.yaml", tcpYAML(nowhere, at))
	dir.background(t, "run --config ingest.yaml")
	connect(t, at)
	var c struct{ URL, Token string }
	text, err := os.ReadFile(dir.path("spool/control.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir.path("spool/control.json")); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v: others can read the token", info.Mode(), err)
	}
	for why, tc := range map[string]struct {
		token, body string
		code        int
	}{
		"no token":           {"", `{"machine": "` + lathe + `", "tool": "T1"}`, http.StatusUnauthorized},
		"a wrong token":      {"Bearer " + strings.Repeat("0", 64), `{"machine": "` + lathe + `", "tool": "T1"}`, http.StatusUnauthorized},
		"another machine":    {"Bearer " + c.Token, `{"machine": "a/b/c/d/e", "tool": "T1"}`, http.StatusNotFound},
		"nothing":            {"Bearer " + c.Token, `{"machine": "` + lathe + `"}`, http.StatusBadRequest},
		"no JSON":            {"Bearer " + c.Token, `T1`, http.StatusBadRequest},
		"a book":             {"Bearer " + c.Token, `{"machine": "` + strings.Repeat("x", 1<<17) + `"}`, http.StatusBadRequest},
		"all that is needed": {"Bearer " + c.Token, `{"machine": "` + lathe + `", "tool": "T1"}`, http.StatusOK},
	} {
		req, err := http.NewRequest(http.MethodPost, c.URL+"/v1/context", strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", tc.token)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != tc.code {
			t.Errorf("%s: %s %s, want %d", why, res.Status, body, tc.code)
		}
	}
}

// Samples and the tool come by MQTT; what is published while no ingest runs is
// ingested by the next.
func TestMQTT(t *testing.T) {
	t.Parallel()
	addr := startBroker(t)
	s := mqtttest.Start(t, mqtttest.Options{})
	dir := bench(t, "ingest.yaml", ingestYAML(addr, "  kind: csv\n  file: day.csv\n  speed: 0\n", fmt.Sprintf("  kind: mqtt\nmqtt: {broker: %q, prefix: plant}\n", s.URL)))
	if _, _, err := dir.run(t, t.Context(), "topics apply --config ingest.yaml"); err != nil {
		t.Fatal(err)
	}
	out, _, err := dir.run(t, t.Context(), "check --config ingest.yaml")
	if err != nil || !strings.Contains(out, "mqtt    ok  "+s.URL) {
		t.Errorf("check: %v\n%s", err, out)
	}
	publish := func(kind string, payload []byte, retain bool) {
		t.Helper()
		s.Publish(t, "plant/"+lathe+"/"+kind, payload, retain)
	}
	publish("context", []byte(`{"tool": "T1"}`), true)
	stop := dir.background(t, "run --config ingest.yaml")
	const id = "flank-ingest-acme-spore-bay2-line1-lathe"
	await.Until(t, "ingest has heard of the tool", func() bool {
		text, err := os.ReadFile(dir.path("spool/context.json"))
		return err == nil && strings.Contains(string(text), "T1")
	})
	for n := range int64(4) {
		publish("samples", row(1, n, ""), false)
	}
	inflight := func() int { return s.Inflight(id) }
	await.Until(t, "all is acknowledged", func() bool { return len(dir.arrived(t, addr)[lathe]) == 4 && inflight() == 0 })
	halt(t, stop)
	publish("samples", row(1, 4, ""), false)
	publish("context", []byte(`{"tool": "T2"}`), true)
	stop = dir.background(t, "run --config ingest.yaml")
	await.Until(t, "ingest has heard of the next tool", func() bool {
		text, err := os.ReadFile(dir.path("spool/context.json"))
		return err == nil && strings.Contains(string(text), "T2") && inflight() == 0
	})
	publish("samples", row(1, 5, ""), false)
	await.Until(t, "the last window is there", func() bool { return len(dir.arrived(t, addr)[lathe]) == 6 })
	halt(t, stop)
	got := fmt.Sprint(dir.arrived(t, addr)[lathe])
	if want := "[T1:0 T1:1 T1:2 T1:3 T1:4 T2:5]"; got != want && got != strings.Replace(want, "T1:4", "T2:4", 1) { // the sample is in no order with the context
		t.Errorf("windows %s, want %s", got, want)
	}
	s.Stop()
	if _, _, err := dir.run(t, t.Context(), "check --config ingest.yaml"); err == nil || !strings.HasPrefix(err.Error(), "mqtt: ") {
		t.Errorf("check without the broker: %v", err)
	}
}

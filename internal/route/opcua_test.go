package route

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopcua/opcua/ua"
	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/opcuatest"
)

// plcVariables are the variables of two machines: usk25 acknowledges with a String, usk26 with
// a Boolean.
func plcVariables() map[string]any {
	all := make(map[string]any)
	for machine, one := range map[string]map[string]any{
		"usk25": {"alarm": "", "text": "", "wear_um": 0.0, "tool": "", "incident": "", "time": time.Time{}, "request": false, "request_id": "", "acknowledged": ""},
		"usk26": {"alarm": uint16(0), "text": "", "wear_um": int16(0), "tool": "", "incident": "", "time": "", "request": false, "request_id": "", "acknowledged": false},
	} {
		for key, v := range one {
			all["ns=2;s="+machine+"."+key] = v
		}
	}
	return all
}

// variablesOf is the configuration of plcVariables.
func variablesOf(machine string) opcuaNodes {
	node := func(key string) string { return "ns=2;s={machine}." + key }
	return opcuaNodes{machine, node("alarm"), node("text"), node("wear_um"), node("tool"), node("incident"), node("time"), node("request"), node("request_id"), node("acknowledged")}
}

const drill26 = "acme/spore/bay2/line1/usk26"

func opcuaRoute(t *testing.T, o opcuaConfig) (*bench, *opcuaReceiver) {
	t.Helper()
	if o.Nodes == nil {
		o.Nodes = []opcuaNodes{variablesOf("usk*")}
	}
	b := newBench(t, Config{Receivers: Receivers{OPCUA: &o}}, nil)
	b.timeout = patience
	b.clock = time.Now()
	return b, b.to.(*opcuaReceiver)
}

func withWear(um float64) func(*event.Alert) {
	return func(a *event.Alert) { a.Wear = &event.Wear{WearUM: um} }
}

// want compares variables.
func want(t *testing.T, s *opcuatest.Server, machine string, all map[string]any) {
	t.Helper()
	for key, v := range all {
		if got := s.Get("ns=2;s=" + machine + "." + key); got != v {
			t.Errorf("%s.%s is %v (%[3]T), want %v (%[4]T)", machine, key, got, v)
		}
	}
}

// The variables show an alarm while it is open, in the types that the PLC has.
func TestOPCUAVariables(t *testing.T) {
	s := opcuatest.Start(t, "", plcVariables())
	_, to := opcuaRoute(t, opcuaConfig{Endpoint: s.URL})
	for _, m := range []bus.Message{
		alert(drill, 1, event.Raised, withWear(187.5)), alert(drill26, 1, "acknowledged", withWear(99999)), advisory(drill, 2, "sensor", "ch07", event.Raised),
		alert("acme/spore/bay2/line1/lathe", 1, event.Raised),
	} {
		if err := to.deliver(within(t), opened(t, m)); err != nil {
			t.Fatal(err)
		}
	}
	want(t, s, "usk25", map[string]any{"alarm": "raised", "text": "usk25 tool T07 hole H3_08: FAULTY since 02:13:35.", "wear_um": 187.5, "tool": "T07",
		"incident": "A-K3ZQ7M2P", "time": monday.Add(time.Second), "request": true, "request_id": "A-K3ZQ7M2P"})
	want(t, s, "usk26", map[string]any{"alarm": uint16(2), "wear_um": int16(32767), "incident": "A-K3ZQ7M2P", "time": "2026-11-02T02:13:42Z", "request": true})
	for _, machine := range []string{drill, drill26} {
		if err := to.deliver(within(t), opened(t, alert(machine, 5, event.Cleared, func(a *event.Alert) { a.Incident = "" }))); err != nil {
			t.Fatal(err)
		}
	}
	want(t, s, "usk25", map[string]any{"alarm": "normal", "incident": "", "wear_um": -1.0, "request": false, "request_id": ""})
	want(t, s, "usk26", map[string]any{"alarm": uint16(0), "incident": "", "wear_um": int16(-1), "request": false, "request_id": ""})
}

// answersAtOnce makes the PLC acknowledge each request at once, and counts them.
func answersAtOnce(s *opcuatest.Server, machine string, asked *int) {
	was := s.Get("ns=2;s=" + machine + ".request").(bool)
	s.OnWrite(func(all map[string]any) {
		request := all["ns=2;s="+machine+".request"].(bool)
		if request && !was {
			*asked++
		}
		was = request
		if node := "ns=2;s=" + machine + ".acknowledged"; all[node] == false || all[node] == true {
			all[node] = request
		} else if request {
			all[node] = all["ns=2;s="+machine+".request_id"]
		}
	})
}

// again takes the next steps, some seconds later.
func (b *bench) after(t *testing.T, d time.Duration) {
	t.Helper()
	b.clock = b.clock.Add(d)
	if err := b.to.(*opcuaReceiver).again(within(t), 0); err != nil {
		t.Fatal(err)
	}
}

// A PLC takes a request once, also if the monitor is restarted in the middle.
func TestOPCUARequest(t *testing.T) {
	t.Parallel()
	for _, machine := range []string{drill, drill26} {
		name := event.ShortName(machine)
		s := opcuatest.Start(t, "", plcVariables())
		b, to := opcuaRoute(t, opcuaConfig{Endpoint: s.URL})
		raised := opened(t, alert(machine, 1, event.Raised))
		if err := to.deliver(within(t), raised); err != nil {
			t.Fatal(err)
		}
		b.after(t, 5*time.Second)
		want(t, s, name, map[string]any{"request": true, "request_id": "A-K3ZQ7M2P"})
		to.drop(0) // the monitor ends, the PLC answers, and another monitor begins
		asked := 0
		answersAtOnce(s, name, &asked)
		s.Set("ns=2;s="+name+".acknowledged", map[string]any{"usk25": "A-K3ZQ7M2P", "usk26": true}[name])
		next, to := opcuaRoute(t, opcuaConfig{Endpoint: s.URL})
		to.take(0, []*Event{raised})
		next.after(t, 0)
		want(t, s, name, map[string]any{"text": "usk25 tool T07 hole H3_08: FAULTY since 02:13:35.", "request": false, "request_id": "A-K3ZQ7M2P"})
		if c := next.snapshot(); c.requestsTaken != 1 || c.requestsMissed != 0 || c.requestsOpen != 0 || asked != 0 {
			t.Errorf("%s: %d taken, %d not, %d open, asked %d times", name, c.requestsTaken, c.requestsMissed, c.requestsOpen, asked)
		}
		last, to := opcuaRoute(t, opcuaConfig{Endpoint: s.URL}) // restarted after it
		to.take(0, []*Event{raised})
		for range 5 {
			last.after(t, 20*time.Second)
		}
		if asked != 0 {
			t.Errorf("%s: asked %d times more", name, asked)
		}
		if err := to.deliver(within(t), opened(t, alert(machine, 9, event.Cleared, func(a *event.Alert) { a.Incident = "" }))); err != nil {
			t.Fatal(err)
		}
		second := opened(t, alert(machine, 10, event.Raised, func(a *event.Alert) { a.Incident = "A-BBBBBBBB" }))
		if err := to.deliver(within(t), second); err != nil {
			t.Fatal(err)
		}
		last.after(t, time.Second)
		last.after(t, time.Second)
		want(t, s, name, map[string]any{"request": false, "request_id": "A-BBBBBBBB"})
		if c := last.snapshot(); c.requestsTaken != 1 || asked != 1 {
			t.Errorf("%s: the second alarm: %d taken, asked %d times", name, c.requestsTaken, asked)
		}
	}
}

// A PLC that is silent gets the request again after each time-out and pause, and it is gone
// with the alarm.
func TestOPCUARequestNotTaken(t *testing.T) {
	s := opcuatest.Start(t, "", plcVariables())
	b, to := opcuaRoute(t, opcuaConfig{Endpoint: s.URL, HandshakeTimeout: 10 * time.Second})
	if err := to.deliver(within(t), opened(t, alert(drill, 1, event.Raised))); err != nil {
		t.Fatal(err)
	}
	b.after(t, 9*time.Second)
	want(t, s, "usk25", map[string]any{"request": true})
	b.after(t, time.Second)
	want(t, s, "usk25", map[string]any{"request": false, "request_id": "", "alarm": "raised"})
	if c := b.snapshot(); c.requestsMissed != 1 || c.requestsOpen != 1 || !strings.Contains(b.log.String(), "request_not_taken") {
		t.Errorf("%d not taken, %d open: %s", c.requestsMissed, c.requestsOpen, &b.log)
	}
	b.after(t, time.Minute)
	want(t, s, "usk25", map[string]any{"request": true, "request_id": "A-K3ZQ7M2P"})
	if err := to.deliver(within(t), opened(t, alert(drill, 9, "shelved"))); err != nil {
		t.Fatal(err)
	}
	want(t, s, "usk25", map[string]any{"request": false, "request_id": "", "alarm": "shelved"})
	if c := b.snapshot(); c.requestsOpen != 0 || c.requestsTaken != 0 {
		t.Errorf("%d open, %d taken", c.requestsOpen, c.requestsTaken)
	}
}

// A server that was away gets the present state when it is back, and one that forgot within a
// minute.
func TestOPCUAServerAway(t *testing.T) {
	t.Parallel()
	s := opcuatest.Start(t, "", plcVariables())
	b, to := opcuaRoute(t, opcuaConfig{Endpoint: s.URL})
	if err := to.deliver(within(t), opened(t, alert(drill, 1, event.Raised))); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if err := to.deliver(within(t), opened(t, alert(drill, 2, "acknowledged"))); err == nil {
		t.Error("delivered to no server")
	}
	if err := to.again(within(t), 0); err == nil || !strings.Contains(err.Error(), "check the address, and that the server runs") {
		t.Errorf("%v", err)
	}
	s = opcuatest.Start(t, s.Addr, plcVariables())
	b.after(t, time.Second)
	want(t, s, "usk25", map[string]any{"alarm": "acknowledged", "request": true, "request_id": "A-K3ZQ7M2P"})
	s.Drop()
	s.Set("ns=2;s=usk25.alarm", "")
	if to.again(within(t), 0) == nil {
		t.Error("the connection was dropped, and nothing failed")
	}
	b.after(t, 0)
	want(t, s, "usk25", map[string]any{"alarm": "acknowledged"})
	s.Set("ns=2;s=usk25.alarm", "")
	b.after(t, rewriteEvery)
	want(t, s, "usk25", map[string]any{"alarm": "acknowledged"})
	b.after(t, 46*time.Minute) // the channel's keys are old
	if _, dialled := s.Counts(); dialled < 5 {
		t.Errorf("%d connections", dialled)
	}
}

// A machine whose variables the server refuses is set aside, and does not hold up another.
func TestOPCUARefused(t *testing.T) {
	s := opcuatest.Start(t, "", plcVariables())
	s.Refuse("ns=2;s=usk25.tool", ua.StatusBadUserAccessDenied)
	b, to := opcuaRoute(t, opcuaConfig{Endpoint: s.URL})
	p, dead := newTape(alert(drill, 1, event.Raised), alert(drill26, 1, event.Raised)), &drawer{}
	for _, m := range p.msgs {
		if err := b.Route.take(t.Context(), p, dead, m); err != nil {
			t.Fatal(err)
		}
	}
	if len(dead.letters) != 1 || !strings.Contains(b.log.String(), "ns=2;s=usk25.tool (`tool`)") {
		t.Errorf("%d dead letters: %s", len(dead.letters), &b.log)
	}
	want(t, s, "usk26", map[string]any{"alarm": uint16(1), "request": true})
	to.take(0, []*Event{opened(t, alert(drill, 1, event.Raised)), opened(t, alert(drill26, 1, event.Raised))})
	b.after(t, 0)
	want(t, s, "usk25", map[string]any{"alarm": ""})
	s.Refuse("ns=2;s=usk25.tool", ua.StatusOK)
	b.after(t, rewriteEvery)
	want(t, s, "usk25", map[string]any{"alarm": "raised", "tool": "T07"})
	for node, wrong := range map[string]any{"request": "true", "time": int32(1), "alarm": 1.5} {
		s.Set("ns=2;s=usk25."+node, wrong)
		_, to := opcuaRoute(t, opcuaConfig{Endpoint: s.URL})
		err := to.deliver(within(t), opened(t, alert(drill, 1, event.Raised)))
		if err == nil || !strings.Contains(err.Error(), "(`"+node+"`) is of type") {
			t.Errorf("%s: %v", node, err)
		}
		s.Set("ns=2;s=usk25."+node, plcVariables()["ns=2;s=usk25."+node])
	}
}

// Of two machines whose last parts are the same, and for which one entry names the same variables, the second one is set aside:
// it would take the alarm of the first one back. What the variables showed of a machine that was retired they may show of another.
func TestOPCUAOneName(t *testing.T) {
	s := opcuatest.Start(t, "", plcVariables())
	b, to := opcuaRoute(t, opcuaConfig{Endpoint: s.URL})
	const other = "acme/spore/bay2/line2/usk25"
	normal := func(a *event.Alert) { a.Alarm, a.Incident = "normal", "" }
	p, dead := newTape(alert(drill, 1, event.Raised), alert(other, 1, event.Cleared, normal)), &drawer{}
	for _, m := range p.msgs {
		if err := b.Route.take(t.Context(), p, dead, m); err != nil {
			t.Fatal(err)
		}
	}
	if len(dead.letters) != 1 || !strings.Contains(b.log.String(), "is written for "+drill+" already") {
		t.Errorf("%d dead letters: %s", len(dead.letters), &b.log)
	}
	b.after(t, rewriteEvery)
	want(t, s, "usk25", map[string]any{"alarm": "raised"})
	for n, m := range []bus.Message{alert(drill, 2, event.Retired, normal), alert(other, 2, event.Raised)} {
		if err := to.deliver(within(t), opened(t, m)); err != nil {
			t.Fatal(err)
		}
		want(t, s, "usk25", map[string]any{"alarm": []string{"normal", "raised"}[n]})
	}
	b.after(t, rewriteEvery)
	want(t, s, "usk25", map[string]any{"alarm": "raised"})
}

// A test of the route writes nothing.
func TestOPCUATestWritesNothing(t *testing.T) {
	s := opcuatest.Start(t, "", plcVariables())
	b, _ := opcuaRoute(t, opcuaConfig{Endpoint: s.URL, Nodes: []opcuaNodes{variablesOf(drill), variablesOf("acme/*/*/*/*")}})
	var found []string
	for _, step := range b.Steps(TestEvent("n", monday)) {
		text, err := step.Run(within(t))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, text)
	}
	if writes, _ := s.Counts(); writes != 0 || !strings.Contains(found[3], "has 9 variables of 1 machines; nothing was written") {
		t.Errorf("%d writes: %q", writes, found)
	}
}

// Two monitors of a group: the one that has the machine sends, and the other one goes on when
// it is gone.
func TestOPCUATwoMonitors(t *testing.T) {
	t.Parallel()
	cfg, out := startBroker(t, 1)
	s := opcuatest.Start(t, "", plcVariables())
	asked := 0
	answersAtOnce(s, "usk25", &asked)
	var standing atomic.Pointer[[]*Event] // as monitors keep it
	standing.Store(&[]*Event{})
	var stops []func()
	for range 2 {
		r, err := New(Config{Name: "plc", Receivers: Receivers{OPCUA: &opcuaConfig{Endpoint: s.URL, Nodes: []opcuaNodes{variablesOf("usk*")}}}},
			Options{Bus: cfg, Group: "tcm-monitor", Log: zerolog.Nop(), Standing: func(context.Context, int) ([]*Event, error) {
				return *standing.Load(), nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		stops = append(stops, sync.OnceFunc(func() { cancel(); <-done; r.Close() }))
		t.Cleanup(stops[len(stops)-1])
	}
	publish := func(m bus.Message) {
		standing.Store(&[]*Event{opened(t, m)})
		send(t, out, m)
	}
	publish(alert(drill, 1, event.Raised))
	await.Until(t, "the PLC took the request", func() bool {
		return s.Get("ns=2;s=usk25.alarm") == "raised" && s.Get("ns=2;s=usk25.request") == false && s.Get("ns=2;s=usk25.request_id") == "A-K3ZQ7M2P"
	})
	stops[0]()
	publish(alert(drill, 2, event.Cleared, func(a *event.Alert) { a.Incident = "" }))
	await.Until(t, "the alarm is cleared", func() bool { return s.Get("ns=2;s=usk25.alarm") == "normal" && s.Get("ns=2;s=usk25.request_id") == "" })
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

// What a person gets wrong is refused with the key and the remedy.
func TestOPCUAConfig(t *testing.T) {
	const nodes = "nodes: [{machine: usk25, alarm: \"ns=2;s=a\"}]"
	for text, want := range map[string]string{
		"{}": "opcua.endpoint",
		"{endpoint: \"opc.tcp://plc:4840\", " + nodes + "}":                                                                               "insecure: true",
		"{endpoint: \"opc.tcp://plc:4840\", insecure: true, user: u, password_env: P, " + nodes + "}":                                     "anyone on the way could read the password",
		"{endpoint: \"opc.tcp://plc:4840\", tls: {ca: c}, " + nodes + "}":                                                                 "all of `ca`, `cert` and `key`",
		"{endpoint: \"opc.tcp://127.0.0.1\", handshake_timeout: 2h, " + nodes + "}":                                                       "from 1s to 1h0m0s",
		"{endpoint: \"opc.tcp://127.0.0.1\"}":                                                                                             "at least one machine",
		"{endpoint: \"opc.tcp://127.0.0.1\", nodes: [{alarm: \"ns=2;s=a\"}]}":                                                             "opcua.nodes[0].machine",
		"{endpoint: \"opc.tcp://127.0.0.1\", nodes: [{machine: usk25}]}":                                                                  "name a variable",
		"{endpoint: \"opc.tcp://127.0.0.1\", nodes: [{machine: \"usk*\", alarm: \"ns=2;s=a\"}]}":                                          "put {machine} into it",
		"{endpoint: \"opc.tcp://127.0.0.1\", nodes: [{machine: usk25, alarm: \"two\"}]}":                                                  "is not a node id",
		"{endpoint: \"opc.tcp://127.0.0.1\", nodes: [{machine: usk25, alarm: \"ns=2;s=a\", tool: \"ns=2;s=a\"}]}":                         "is the variable of alarm already",
		"{endpoint: \"opc.tcp://127.0.0.1\", nodes: [{machine: usk25, alarm: \"ns=2;s=a\"}, {machine: usk26, tool: \"ns=2;s=a\"}]}":       "is the variable of alarm already",
		"{endpoint: \"opc.tcp://127.0.0.1\", nodes: [{machine: usk25, request: \"ns=2;s=a\", request_id: \"ns=2;s=b\"}]}":                 "all of `request`, `request_id` and `acknowledged`",
		"{endpoint: \"opc.tcp://u:p@127.0.0.1\", " + nodes + "}":                                                                          "a password does not belong in a URL",
		"{endpoint: \"opc.tcp://127.0.0.1\", " + nodes + "}\n  severity: warning":                                                         "it would never learn that an alarm has ended",
		"{endpoint: \"opc.tcp://127.0.0.1\", nodes: [{machine: usk25, alarm: \"ns=2;s=a\", time: \"ns=2;s=b\"}, {machine: \"usk\\\\\"}]}": "opcua.nodes[1].machine",
	} {
		var all []Config
		if err := config.Decode([]byte("- name: plc\n  opcua: "+text+"\n"), "monitor.yaml", &all); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		_, err := New(all[0], Options{})
		if err == nil || !strings.Contains(err.Error()+keyText(err), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// The key is one that Basic256Sha256 can use. The error names its file.
func TestOPCUAKey(t *testing.T) {
	t.Parallel()
	dir, soon := t.TempDir(), time.Now().Add(time.Hour)
	for bits, want := range map[int]string{1024: "small.key: OPC UA needs an RSA key of 2048 to 4096 bits: make a new one", 2048: ""} {
		own := opcuatest.NewCertificate(t, dir, map[int]string{1024: "small", 2048: "good"}[bits], "urn:flank:monitor", bits, soon)
		o := opcuaConfig{Endpoint: "opc.tcp://plc:4840", TLS: &credential.TLS{CA: own.File, Cert: own.File, Key: own.Key}, Nodes: []opcuaNodes{{Machine: "usk25", Alarm: "ns=2;s=a"}}}
		if err := o.check(); (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || keyText(err) != " tls.key") {
			t.Errorf("%d bits: %v, want %q", bits, err, want)
		}
	}
}

func keyText(err error) string {
	key, _ := keyOf(err)
	return " " + key
}

package route

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/logtest"
	"github.com/flank-tcm/flank/internal/testkit/mqtttest"
	"github.com/flank-tcm/flank/schemas"
)

// ear hears what is published.
type ear struct {
	mu   sync.Mutex
	said []heard
}

type heard struct {
	topic    string
	payload  []byte
	retained bool
}

func listen(t *testing.T, b *mqtttest.Broker, filter string) *ear {
	t.Helper()
	e := &ear{}
	b.Subscribe(t, filter, func(topic string, payload []byte, retained bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.said = append(e.said, heard{topic, slices.Clone(payload), retained})
	})
	return e
}

func (e *ear) all() []heard {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.said)
}

func (e *ear) topics() (all []string) {
	for _, h := range e.all() {
		all = append(all, h.topic)
	}
	return all
}

func mqttRoute(t *testing.T, b *mqtttest.Broker, change ...func(*mqttConfig)) (*bench, *mqttReceiver) {
	t.Helper()
	m := mqttConfig{Broker: b.URL, ClientID: "flank-test"}
	for _, f := range change {
		f(&m)
	}
	r := newBench(t, Config{Receivers: Receivers{MQTT: &m}}, nil)
	r.timeout = patience
	return r, r.to.(*mqttReceiver)
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// Who connects later sees how each machine stands; a broker that forgot is shown it
// again.
func TestRetained(t *testing.T) {
	t.Parallel()
	s := mqtttest.Start(t, mqtttest.Options{})
	_, to := mqttRoute(t, s)
	for _, m := range []*Event{
		opened(t, advisory(drill, 1, "sensor", "ch07", event.Raised)), opened(t, alert(drill, 2, event.Raised)),
	} {
		if err := to.deliver(within(t), m); err != nil {
			t.Fatal(err)
		}
	}
	const topic = "flank/" + drill + "/alarm"
	state := func() (m publishedState) {
		t.Helper()
		e := listen(t, s, topic)
		await.Until(t, "the state is there", func() bool { return len(e.all()) > 0 })
		if err := schemas.Validate(schemas.MachineState, e.all()[0].payload); err != nil || !strings.Contains(string(e.all()[0].payload), `"monitor":"flank-test","sent":"2026-11-02T`) {
			t.Errorf("%v: %s", err, e.all()[0].payload)
		}
		if err := json.Unmarshal(e.all()[0].payload, &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := state()
	if m.Machine != drill || m.Alarm != "raised" || !m.Active || m.Incident != "A-K3ZQ7M2P" || !m.Since.Equal(monday.Add(-6*time.Second)) || len(m.Advisories) != 1 || m.Advisories[0].Status != "failure" {
		t.Errorf("%+v", m)
	}
	for _, m := range []*Event{
		opened(t, advisory(drill, 3, "sensor", "ch07", event.Cleared)), opened(t, alert(drill, 4, event.Cleared)), TestEvent("n", monday),
	} {
		if err := to.deliver(within(t), m); err != nil {
			t.Fatal(err)
		}
	}
	if m = state(); m.Alarm != "normal" || m.Active || m.Incident != "" || len(m.Advisories) != 0 || !m.Since.IsZero() {
		t.Errorf("%+v", m)
	}
	all := listen(t, s, "#")
	await.Until(t, "what is retained comes", func() bool { return len(all.all()) > 0 })
	if slices.ContainsFunc(all.all(), func(h heard) bool { return h.retained && h.topic == "flank/test/test/test/test/test/alarm" }) { // what the broker sends late is not
		t.Error("a test is retained")
	}
	s.Stop()
	forgot := mqtttest.Start(t, mqtttest.Options{Addr: s.Addr})
	e := listen(t, forgot, topic)
	await.Until(t, "the state is published again", func() bool { return len(e.all()) > 0 })
}

// Monitors of one group on a host do not share a client id, and an edge node of Sparkplug is one client.
func TestMQTTClientID(t *testing.T) {
	name := func(s *sparkplugConfig, id string, aside bool) string {
		r := newBench(t, Config{Receivers: Receivers{MQTT: &mqttConfig{Broker: "mqtt://127.0.0.1:1"}}}, nil)
		r.opt.Aside = aside
		return newMQTT(mqttConfig{Broker: "mqtt://127.0.0.1:1", ClientID: id, Sparkplug: s}, r.Route).cfg.ClientID
	}
	if a, b := name(nil, "", false), name(nil, "", false); a == b || !strings.HasPrefix(a, "flank-cmms-") {
		t.Errorf("%s and %s", a, b)
	}
	edge := &sparkplugConfig{Group: "acme", Edge: "hall1"}
	for want, got := range map[string]string{
		"flank-acme-hall1": name(edge, "", false), "flank-acme-hall1-test": name(edge, "", true), "mine": name(edge, "mine", false), "mine-test": name(nil, "mine", true),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Two monitors with one client id back off, warn once each, and their routes are not up, although they take events.
func TestMQTTClientIDTwice(t *testing.T) {
	t.Parallel()
	s := mqtttest.Start(t, mqtttest.Options{})
	var logs [2]logtest.Buffer
	var routes [2]*bench
	for i := range routes {
		r, to := mqttRoute(t, s)
		to.log = zerolog.New(&logs[i])
		if routes[i] = r; to.ready(within(t)) != nil {
			t.Fatal("no connection")
		}
	}
	await.Until(t, "both say it", func() bool {
		return strings.Contains(logs[0].String(), "route_contested") && strings.Contains(logs[1].String(), "route_contested")
	})
	for i, r := range routes {
		if err := fmt.Sprint(r.Err()); !strings.Contains(err, "another program connects to the MQTT broker with the client id flank-test") || !strings.Contains(err, "give each monitor a `client_id`") {
			t.Error(err)
		}
		if n := strings.Count(logs[i].String(), "route_contested"); n != 1 || !r.snapshot().failing {
			t.Errorf("%d warnings, failing %v", n, r.snapshot().failing)
		}
	}
}

// A connection that ends before the broker has answered the life sign is missed at once, not after the time-out of the answer:
// of two monitors with one client id, one would else hold the other up until its own connections count as lasting.
func TestMQTTEndsUnanswered(t *testing.T) {
	t.Parallel()
	var signs atomic.Int64
	s := mqtttest.Start(t, mqtttest.Options{Mute: func(string) bool { return signs.Add(1) == 1 }})
	online := listen(t, s, "flank/_monitor/#")
	var log logtest.Buffer
	_, to := mqttRoute(t, s)
	if to.log = zerolog.New(&log); to.ready(within(t)) != nil {
		t.Fatal("no connection")
	}
	await.Until(t, "the broker has the life sign", func() bool { return signs.Load() > 0 })
	s.Drop(t, "flank-test")
	await.Until(t, "it gives the life sign up", func() bool { return strings.Contains(log.String(), "route_status") })
	if !strings.Contains(log.String(), errEnded.Error()) {
		t.Error(log.String())
	}
	await.Until(t, "it is online on a later connection", func() bool { return len(online.all()) > 0 })
}

// A monitor is online from its first connection on, says so again while it has machines, and is offline when it
// dies, stops, or its test of a route is all there is.
func TestMonitorStatus(t *testing.T) {
	t.Parallel()
	s := mqtttest.Start(t, mqtttest.Options{})
	heard := listen(t, s, "flank/_monitor/#")
	last := func() (m monitorStatus) {
		all := heard.all()
		if len(all) == 0 {
			return m
		}
		h := all[len(all)-1]
		if err := errors.Join(schemas.Validate(schemas.MonitorStatus, h.payload), json.Unmarshal(h.payload, &m)); err != nil || h.topic != "flank/_monitor/flank-test/status" {
			t.Fatalf("%s: %v, %s", h.topic, err, h.payload)
		}
		return m
	}
	r, to := mqttRoute(t, s)
	var mu sync.Mutex
	clock := r.clock
	to.now = func() time.Time { mu.Lock(); defer mu.Unlock(); return clock }
	to.take(0, []*Event{opened(t, alert(drill, 1, event.Raised))})
	if err := to.again(within(t), 0); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "it is online", func() bool { return last() == monitorStatus{"flank-test", "online", r.clock, r.clock} })
	for range 3 {
		if err := to.again(within(t), 0); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(heard.all()); n != 1 {
		t.Errorf("%d life signs at one moment", n)
	}
	// The will of an earlier connection comes late.
	s.Publish(t, "flank/_monitor/flank-test/status", event.JSON(monitorStatus{"flank-test", "offline", monday, time.Time{}}), true)
	mu.Lock()
	clock = clock.Add(to.every())
	mu.Unlock()
	if err := to.again(within(t), 0); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "it is online nevertheless", func() bool { return last() == monitorStatus{"flank-test", "online", r.clock, r.clock.Add(lifeSign)} })
	s.Drop(t, "flank-test")
	await.Until(t, "it was offline, and is online again", func() bool {
		all := heard.all()
		return len(all) >= 5 && strings.Contains(string(all[3].payload), `"status":"offline"`) && last().Status == "online"
	})
	to.close()
	await.Until(t, "it is offline", func() bool { return last().Status == "offline" })
	retained := listen(t, s, "flank/_monitor/flank-test/status")
	await.Until(t, "a later HMI learns that", func() bool { return len(retained.all()) == 1 })
	if !strings.Contains(string(retained.all()[0].payload), `"offline"`) {
		t.Errorf("%s", retained.all()[0].payload)
	}
}

// A broker that refuses the life sign gets alerts all the same, and the log says it once.
func TestMonitorStatusRefused(t *testing.T) {
	t.Parallel()
	s := mqtttest.Start(t, mqtttest.Options{ReadOnly: "flank/_monitor/"})
	var log logtest.Buffer
	_, to := mqttRoute(t, s)
	to.log = zerolog.New(&log)
	for n := range 3 {
		to.take(n, []*Event{opened(t, alert(drill+fmt.Sprint(n), 1, event.Raised))})
		if err := to.again(within(t), n); err != nil {
			t.Fatal(err)
		}
	}
	await.Until(t, "the log says it", func() bool { return strings.Contains(log.String(), "HMIs take its machines for unwatched") })
	if n := strings.Count(log.String(), "HMIs take its machines for unwatched"); n != 1 || !strings.Contains(log.String(), "the broker refuses flank/_monitor/flank-test/status: not authorized: grant the right") {
		t.Errorf("%d times: %s", n, log.String())
	}
}

// The log says that hosts of Sparkplug cannot ask for births. Alerts go on.
func TestSparkplugCommandsRefused(t *testing.T) {
	t.Parallel()
	var refuse atomic.Bool
	refuse.Store(true)
	s := mqtttest.Start(t, mqtttest.Options{Refuse: &refuse})
	var log logtest.Buffer
	_, to := mqttRoute(t, s, func(m *mqttConfig) { m.Sparkplug = new(sparkplugConfig) })
	if to.log = zerolog.New(&log); to.ready(within(t)) != nil {
		t.Fatal("no connection")
	}
	await.Until(t, "the log says it", func() bool { return strings.Contains(log.String(), "route_commands") })
}

// A broker that is so far away that one attempt does not show all machines is shown them in several: each goes on where the one
// before ended.
func TestMQTTShowsOn(t *testing.T) {
	t.Parallel()
	var left atomic.Int64
	var out atomic.Pointer[context.CancelFunc]
	s := mqtttest.Start(t, mqtttest.Options{Mute: func(topic string) bool {
		if !strings.HasSuffix(topic, "/alarm") || left.Add(-1) >= 0 {
			return false
		}
		(*out.Load())() // the time of the attempt is over
		return true
	}})
	online, shown := listen(t, s, "flank/_monitor/#"), listen(t, s, "flank/acme/#")
	_, to := mqttRoute(t, s)
	if err := to.ready(within(t)); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "it is online", func() bool { return len(online.all()) > 0 })
	var all []*Event
	for n := range 5 {
		all = append(all, opened(t, alert(drill+fmt.Sprint(n), 1, event.Raised)))
	}
	attempt := func(f func(context.Context) error) error {
		ctx, cancel := context.WithCancel(within(t))
		defer cancel()
		out.Store(&cancel)
		left.Store(2)
		return f(ctx)
	}
	again := func(ctx context.Context) error { return to.again(ctx, 0) }
	to.take(0, all)
	for n, complete := range []bool{false, false, true} {
		if err := attempt(again); (err == nil) != complete {
			t.Fatalf("attempt %d: %v", n, err)
		}
	}
	if err := attempt(func(ctx context.Context) error { return to.deliver(ctx, opened(t, alert(drill+"3", 2, event.Cleared))) }); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "all is there, and each once", func() bool { return len(shown.all()) == 6 })
	if last := shown.all()[5]; last.topic != "flank/"+drill+"3/alarm" || !strings.Contains(string(last.payload), `"alarm":"normal"`) {
		t.Errorf("%s: %s", last.topic, last.payload)
	}
}

// Nothing is retained of a machine that was retired, and its device dies: an HMI would show for ever that all is well with a
// machine that no one watches. It begins again with its next alarm or advisory.
func TestMQTTRetired(t *testing.T) {
	t.Parallel()
	retired := alert(drill, 3, event.Retired, func(a *event.Alert) { a.Alarm, a.Incident = "normal", "" })
	s := mqtttest.Start(t, mqtttest.Options{})
	_, to := mqttRoute(t, s)
	deliver := func(m bus.Message) {
		t.Helper()
		if err := to.deliver(within(t), opened(t, m)); err != nil {
			t.Fatal(err)
		}
	}
	retained := func() (is bool) {
		e := listen(t, s, "flank/#")
		await.Until(t, "the life sign is retained", func() bool {
			return slices.ContainsFunc(e.all(), func(h heard) bool { return strings.HasSuffix(h.topic, "/status") })
		})
		return slices.ContainsFunc(e.all(), func(h heard) bool { return strings.HasSuffix(h.topic, "/alarm") && len(h.payload) > 0 })
	}
	for n, step := range []struct {
		m    bus.Message
		want bool
	}{
		{alert(drill, 1, event.Raised), true}, {retired, false}, {advisory(drill, 2, "sensor", "ch07", event.Cleared), false},
		{advisory(drill, 4, "windows_refused", "", event.Raised), true}, {retired, false}, {alert(drill, 5, event.Raised), true},
	} {
		if deliver(step.m); retained() != step.want {
			t.Errorf("step %d: retained %v", n, !step.want)
		}
	}

	device := mqtttest.Start(t, mqtttest.Options{})
	e := listen(t, device, "spBv1.0/#")
	_, to = mqttRoute(t, device, func(m *mqttConfig) { m.Sparkplug = &sparkplugConfig{Group: "acme", Edge: "hall1"} })
	deliver(alert(drill, 1, event.Raised))
	deliver(retired)
	await.Until(t, "the device is dead", func() bool { return len(e.all()) >= 3 })
	await.Until(t, "it takes commands", func() bool { return device.Subscribers("spBv1.0/acme/NCMD/hall1") > 0 })
	device.Publish(t, "spBv1.0/acme/NCMD/hall1", spbPayload(monday, -1, []spbMetric{{spbRebirth, true}}), false)
	await.Until(t, "the node is born again", func() bool { return len(e.all()) >= 5 })
	deliver(alert(drill, 4, event.Raised))
	await.Until(t, "the device is born again", func() bool { return len(e.all()) >= 6 })
	var types []string
	for _, topic := range e.topics() {
		types = append(types, strings.Split(topic, "/")[2])
	}
	if got := strings.Join(types, " "); got != "NBIRTH DBIRTH DDEATH NCMD NBIRTH DBIRTH" {
		t.Error(got)
	}
}

// The state of a machine fits the schema after any events.
func TestMachineStateIsValid(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newMachineStates().of(0, drill)
		for n := range rapid.IntRange(0, 20).Draw(rt, "events") {
			var m bus.Message
			if rapid.Bool().Draw(rt, "advisory") {
				kind := rapid.SampledFrom([]string{"sensor", "silence", "unknown", "drift"}).Draw(rt, "kind")
				subject := rapid.SampledFrom([]string{"", "ch07", "20000Hz"}).Draw(rt, "subject")
				m = advisory(drill, n, kind, subject, rapid.SampledFrom([]event.AlertState{event.Raised, event.Cleared}).Draw(rt, "state"))
			} else {
				m = alert(drill, n, event.AlertState(rapid.SampledFrom(states).Draw(rt, "state")), func(a *event.Alert) {
					if a.Tool = rapid.SampledFrom([]string{"", "T07"}).Draw(rt, "tool"); a.State != event.Raised && a.State != event.Cleared {
						a.Alarm = rapid.SampledFrom([]string{"normal", "raised", "acknowledged", "returned", "shelved", "suppressed", "out_of_service"}).Draw(rt, "alarm")
					}
					if a.State == event.Raised && rapid.Bool().Draw(rt, "evidence") {
						a.Evidence = &event.EvidenceLink{URL: "/evidence/A-K3ZQ7M2P-4711.arrow"}
					}
				})
			}
			s.apply(opened(t, m))
			if err := schemas.Validate(schemas.MachineState, event.JSON(machineState(s))); err != nil {
				rt.Fatalf("%v: %s", err, event.JSON(machineState(s)))
			}
		}
	})
}

// The schema describes every field and nothing else, and does not take what the
// route would never say.
func TestMachineStateSchema(t *testing.T) {
	type object struct {
		Properties map[string]any
		Required   []string
		Defs       map[string]object `json:"$defs"`
	}
	var o, status object
	if err := errors.Join(json.Unmarshal(schemas.MachineStateJSON, &o), json.Unmarshal(schemas.MonitorStatusJSON, &status)); err != nil {
		t.Fatal(err)
	}
	for typ, o := range map[reflect.Type]object{
		reflect.TypeFor[publishedState](): o, reflect.TypeFor[advisoryState](): o.Defs["advisory"], reflect.TypeFor[monitorStatus](): status,
	} {
		var all, always []string
		for _, f := range reflect.VisibleFields(typ) {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if all = append(all, name); options == "" {
				always = append(always, name)
			}
		}
		slices.Sort(all)
		if got := slices.Sorted(maps.Keys(o.Properties)); !slices.Equal(got, all) || !slices.Equal(o.Required, always) {
			t.Errorf("%v: schema describes %v and requires %v, the struct has %v, always %v", typ, got, o.Required, all, always)
		}
	}
	s := newMachineStates().of(0, drill)
	s.apply(opened(t, alert(drill, 1, event.Raised)))
	s.apply(opened(t, advisory(drill, 2, "sensor", "ch07", event.Raised)))
	for why, change := range map[string]func(d map[string]any){
		"no machine":                    func(d map[string]any) { delete(d, "machine") },
		"no advisories, not even none":  func(d map[string]any) { d["advisories"] = nil },
		"raised, and not active":        func(d map[string]any) { d["active"] = false },
		"normal, and active":            func(d map[string]any) { d["alarm"] = "normal" },
		"an alarm without a name":       func(d map[string]any) { d["incident"] = "A-1" },
		"a time that is none":           func(d map[string]any) { d["since"] = "today" },
		"what is described nowhere":     func(d map[string]any) { d["score"] = 0.9 },
		"an advisory about nothing":     func(d map[string]any) { delete(d["advisories"].([]any)[0].(map[string]any), "kind") },
		"an advisory with more than is": func(d map[string]any) { d["advisories"].([]any)[0].(map[string]any)["at"] = "2026-11-02T02:13:42Z" },
	} {
		var d map[string]any
		if err := json.Unmarshal(event.JSON(machineState(s)), &d); err != nil {
			t.Fatal(err)
		}
		change(d)
		if err := schemas.Validate(schemas.MachineState, event.JSON(d)); err == nil {
			t.Errorf("%s: taken", why)
		}
	}
}

// A broker that is away is an error that says so, and nothing is lost by it.
func TestMQTTAway(t *testing.T) {
	s := mqtttest.Start(t, mqtttest.Options{Users: map[string]string{"flank": "right"}})
	t.Setenv("MQTT_PASSWORD", "wrong")
	_, to := mqttRoute(t, s, func(m *mqttConfig) { m.Login = credential.Login{User: "flank", PasswordEnv: "MQTT_PASSWORD"} })
	if err := to.connect(); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the broker refuses the password", func() bool { return to.trouble.Load() != nil })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := to.deliver(ctx, opened(t, alert(drill, 1, event.Raised)))
	if err == nil || !strings.Contains(err.Error(), "no connection to "+s.URL) || strings.Contains(err.Error(), "wrong") {
		t.Error(err)
	}
	t.Setenv("MQTT_PASSWORD", "right") // corrected, and nothing restarted
	if err := to.deliver(within(t), opened(t, alert(drill, 1, event.Raised))); err != nil {
		t.Error(err)
	}
	if found, err := to.probe(within(t)); err != nil || !strings.Contains(found, "user flank") {
		t.Errorf("%q, %v", found, err)
	}
}

// metrics reads a payload of Sparkplug: its seq, or -1, and its metrics by name.
func metrics(t *testing.T, payload []byte) (seq int, all map[string]string) {
	t.Helper()
	seq, all = -1, make(map[string]string)
	err := fields(payload, func(field protowire.Number, v uint64, metric []byte) error {
		if field == 3 {
			seq = int(v)
		}
		if field != 2 {
			return nil
		}
		var name, value string
		err := fields(metric, func(field protowire.Number, v uint64, text []byte) error {
			switch field {
			case 1:
				name = string(text)
			case 7:
				value = "null"
			case 11, 14:
				value = fmt.Sprint(v)
			case 15:
				value = string(text)
			}
			return nil
		})
		all[name] = value
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return seq, all
}

// hostReads gives messages to pysparkplug, which holds them to the rules of the specification.
func hostReads(t *testing.T, all []heard, want string) {
	t.Helper()
	folder := os.Getenv("FLANK_PEERS")
	if folder == "" {
		return // make sparkplug
	}
	var lines strings.Builder
	for _, h := range all {
		fmt.Fprintf(&lines, "%s\t%x\n", h.topic, h.payload)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(folder, ".venv/bin/python"), filepath.Join(folder, "host.py"))
	cmd.Stdin = strings.NewReader(lines.String())
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("pysparkplug: %v: %s, want %s", err, out, want)
	}
}

// A life of an edge node, as Sparkplug B has it: births with a seq that rises by one
// from 0 to 255, a death that names the birth it belongs to, births again after a
// lost connection and when a host asks.
func TestSparkplugLife(t *testing.T) {
	t.Parallel()
	s := mqtttest.Start(t, mqtttest.Options{})
	e := listen(t, s, "spBv1.0/#")
	_, to := mqttRoute(t, s, func(m *mqttConfig) { m.Sparkplug = &sparkplugConfig{Group: "acme", Edge: "hall1"} })
	const lathe = "acme/spore/bay2/line1/lathe"
	device := func(typ, machine string) string {
		return "spBv1.0/acme/" + typ + "/hall1/" + strings.ReplaceAll(machine, "/", ".")
	}
	const birth, death = "spBv1.0/acme/NBIRTH/hall1", "spBv1.0/acme/NDEATH/hall1"
	normal := func(machine string) *Event {
		return opened(t, alert(machine, 0, "", func(a *event.Alert) { a.Alarm, a.Incident, a.ID = "normal", "", machine+"/standing" }))
	}
	to.take(0, []*Event{normal(drill), normal(lathe)})
	if err := to.again(within(t), 0); err != nil {
		t.Fatal(err)
	}
	for n := range 300 {
		state := event.Raised
		if n%2 == 1 {
			state = event.Cleared
		}
		if err := to.deliver(within(t), opened(t, alert(drill, n, state))); err != nil {
			t.Fatal(err)
		}
	}
	await.Until(t, "all is there", func() bool { return len(e.all()) == 303 })
	all := e.all()
	if got := e.topics()[:4]; !slices.Equal(got, []string{birth, device("DBIRTH", lathe), device("DBIRTH", drill), device("DDATA", drill)}) {
		t.Errorf("%v", got)
	}
	for i, h := range all {
		if seq, _ := metrics(t, h.payload); seq != i%256 {
			t.Fatalf("message %d on %s has seq %d", i, h.topic, seq)
		}
	}
	_, node := metrics(t, all[0].payload)
	born := monday.Add(time.Hour).Unix() & 0xff
	_, first := metrics(t, all[2].payload)
	_, raised := metrics(t, all[3].payload)
	if node["bdSeq"] != fmt.Sprint(born) || node[spbRebirth] != "0" {
		t.Errorf("birth of the node %v", node)
	}
	if first["Alarm/Active"] != "0" || first["Alarm/State"] != "normal" || first["Alarm/Since"] != "null" || raised["Alarm/Active"] != "1" ||
		raised["Alarm/Incident"] != "A-K3ZQ7M2P" || raised["Alarm/Since"] != fmt.Sprint(monday.Add(-6*time.Second).UnixMilli()) || len(first) != len(raised) {
		t.Errorf("%v, raised %v", first, raised)
	}
	s.Drop(t, "flank-test") // as if the network failed: the broker publishes the will
	await.Until(t, "it is born again", func() bool { return len(e.all()) >= 307 })
	all = e.all()[303:]
	if got := e.topics()[303:307]; !slices.Equal(got, []string{death, birth, device("DBIRTH", lathe), device("DBIRTH", drill)}) {
		t.Errorf("%v", got)
	}
	seq, dead := metrics(t, all[0].payload)
	if _, again := metrics(t, all[1].payload); seq != -1 || dead["bdSeq"] != fmt.Sprint(born) || again["bdSeq"] != fmt.Sprint((born+1)&0xff) {
		t.Errorf("death with seq %d, %v; then birth %v", seq, dead, again)
	}
	s.Publish(t, "spBv1.0/acme/NCMD/hall1", spbPayload(monday, -1, []spbMetric{{spbRebirth, true}}), false)
	await.Until(t, "it is born on command", func() bool { return len(e.all()) >= 311 })
	if got := e.topics()[308:311]; !slices.Equal(got, []string{birth, device("DBIRTH", lathe), device("DBIRTH", drill)}) {
		t.Errorf("%v", got)
	}
	to.drop(0)
	to.close()
	await.Until(t, "its death is published", func() bool { return len(e.all()) >= 314 })
	if got := e.topics()[311:]; !slices.Equal(got, []string{device("DDEATH", lathe), device("DDEATH", drill), death}) {
		t.Errorf("%v", got)
	}
	hostReads(t, e.all(), "3 births of the node, 6 of devices")
}

// An edge node is born once, and each machine once, although partitions come one by one, at the same time and in
// any order, and a partition that comes later adds its machines alone. The life after a restart has another bdSeq.
func TestSparkplugOneBirth(t *testing.T) {
	t.Parallel()
	s := mqtttest.Start(t, mqtttest.Options{})
	e := listen(t, s, "spBv1.0/#")
	r, to := mqttRoute(t, s, func(m *mqttConfig) { m.Sparkplug = &sparkplugConfig{Group: "acme", Edge: "hall1"} })
	const partitions = 64
	show := func(n int) error {
		to.take(n, []*Event{opened(t, alert(fmt.Sprintf("acme/spore/bay2/line1/m%d", n), 1, event.Raised))})
		return to.again(within(t), n)
	}
	var all sync.WaitGroup
	for n := range partitions {
		all.Go(func() {
			if err := show(n); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := show(partitions); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "all are born", func() bool { return len(e.all()) >= partitions+2 })
	count := make(map[string]int)
	for _, topic := range e.topics() {
		count[topic]++
	}
	if len(count) != partitions+2 || len(e.all()) != len(count) || e.topics()[0] != "spBv1.0/acme/NBIRTH/hall1" {
		t.Errorf("%d messages on %d topics, %v", len(e.all()), len(count), count)
	}
	_, first := metrics(t, e.all()[0].payload)
	to.close()
	await.Until(t, "the first life has ended", func() bool { // a broker may publish a death behind the next birth
		return slices.Contains(e.topics(), "spBv1.0/acme/NDEATH/hall1")
	})
	later := newMQTT(to.cfg, r.Route)
	later.now = func() time.Time { return r.clock.Add(time.Minute) }
	defer later.close()
	if err := later.ready(within(t)); err != nil {
		t.Fatal(err)
	}
	births := func() (all [][]byte) {
		for _, m := range e.all() {
			if strings.Contains(m.topic, "/NBIRTH/") {
				all = append(all, m.payload)
			}
		}
		return all
	}
	await.Until(t, "it is born again", func() bool { return len(births()) == 2 })
	if _, again := metrics(t, births()[1]); again["bdSeq"] == first["bdSeq"] {
		t.Errorf("both lives have bdSeq %s", first["bdSeq"])
	}
	hostReads(t, e.all(), "2 births of the node, 65 of devices")
}

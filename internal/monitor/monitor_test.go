package monitor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"

	"github.com/flank-tcm/flank/internal/broker"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/logtest"
	"github.com/flank-tcm/flank/internal/testkit/loopback"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
	"github.com/flank-tcm/flank/schemas"
)

// patience bounds what should take a moment. It is not a measure of speed.
const patience = 2 * time.Minute

const drill = machinetest.Drill

func at(seq uint64, tool string, faulty bool) *window.Window {
	return machinetest.At(seq, tool, faulty)
}

// plant is a broker, and what is needed to send it windows.
type plant struct {
	t     *testing.T
	dir   string // of the broker; empty: it is in memory
	bus   bus.Config
	model *model.Model
	codec *window.Codec
	out   *bus.Producer
	log   logtest.Buffer

	broker *broker.Broker
}

// newPlant starts a broker with all topics.
func newPlant(t *testing.T, partitions int) *plant {
	p := newPlantWithoutTopics(t)
	p.apply(partitions)
	return p
}

func (p *plant) apply(partitions int) {
	p.t.Helper()
	if _, err := bus.Apply(context.Background(), p.bus, partitions, 1); err != nil {
		p.t.Fatal(err)
	}
}

func newPlantWithoutTopics(t *testing.T) *plant { return newPlantIn(t, "") }

// newPlantIn starts a broker without topics, whose data is in a folder: a copy of it, or another broker, has the data after it.
func newPlantIn(t *testing.T, dir string) *plant {
	p := &plant{t: t, dir: dir, model: machinetest.OneValue(t)}
	p.open()
	return p
}

// open starts the broker on the plant's folder, and a producer.
func (p *plant) open() {
	p.t.Helper()
	p.start(loopback.Host(1) + ":0")
	p.t.Cleanup(func() { p.broker.Close() })
	p.bus = p.broker.Config("test")
	var err error
	if p.codec, err = window.NewCodec(p.model.Layout, p.model.Window); err != nil {
		p.t.Fatal(err)
	}
	if p.out, err = bus.NewProducer(p.bus); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(p.out.Close)
}

func (p *plant) start(addr string) {
	var b *broker.Broker
	var ln net.Listener
	var err error
	if p.dir != "" {
		b, err = broker.Start(p.dir, addr)
	} else if ln, err = net.Listen("tcp", addr); err == nil {
		b, err = broker.NewMemory(ln)
	}
	if err != nil {
		p.t.Error(err)
		return
	}
	p.broker = b
}

// createTopic makes a topic as bus.Apply would not.
func (p *plant) createTopic(name string, partitions int, settings ...kafka.ConfigEntry) {
	p.t.Helper()
	res, err := (&kafka.Client{Addr: kafka.TCP(p.bus.Brokers...)}).CreateTopics(context.Background(), &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: name, NumPartitions: partitions, ReplicationFactor: 1, ConfigEntries: settings}},
	})
	if err == nil {
		err = res.Errors[name]
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *plant) send(msgs ...bus.Message) {
	p.t.Helper()
	if err := p.out.Send(context.Background(), msgs); err != nil {
		p.t.Fatal(err)
	}
}

// message returns the message of a window as an ingester sends it.
func (p *plant) message(w *window.Window) bus.Message {
	p.t.Helper()
	e, err := p.codec.Seal(w)
	if err != nil {
		p.t.Fatal(err)
	}
	return envelope.Window(e)
}

func (p *plant) messages(ws ...*window.Window) (msgs []bus.Message) {
	for _, w := range ws {
		msgs = append(msgs, p.message(w))
	}
	return msgs
}

// read returns all messages of a topic. It waits for state records: a transaction's end
// reaches one partition after the other.
func (p *plant) read(topic string) (msgs []bus.Message) {
	p.t.Helper()
	add := func(m bus.Message) error {
		msgs = append(msgs, m)
		return nil
	}
	if topic != bus.TopicState {
		if err := bus.ReadTopic(context.Background(), p.bus, topic, bus.FirstOffset, false, add); err != nil {
			p.t.Fatal(err)
		}
		return msgs
	}
	n, err := bus.Partitions(context.Background(), p.bus, topic)
	for i := 0; i < n && err == nil; i++ {
		err = bus.ReadRange(context.Background(), p.bus, bus.TopicState, i, bus.Range{Settled: true}, add)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return msgs
}

// until follows a topic until done says so of the messages so far, and returns them.
func (p *plant) until(topic string, done func([]bus.Message) bool) (msgs []bus.Message) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	enough := errors.New("enough")
	err := bus.ReadTopic(ctx, p.bus, topic, bus.FirstOffset, true, func(m bus.Message) error {
		if msgs = append(msgs, m); done(msgs) {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		p.t.Fatalf("%d messages on %s: %v\n%s", len(msgs), topic, err, p.log.String())
	}
	return msgs
}

// untilMessages is until with a number of messages.
func (p *plant) untilMessages(topic string, n int) {
	p.t.Helper()
	p.until(topic, func(msgs []bus.Message) bool { return len(msgs) == n })
}

// untilResults waits until so many windows have results.
func (p *plant) untilResults(n int) {
	p.t.Helper()
	ids := map[string]bool{}
	p.until(bus.TopicResults, func(msgs []bus.Message) bool {
		ids[string(msgs[len(msgs)-1].Header("ce_id"))] = true
		return len(ids) == n
	})
}

// results returns the results by id. It fails if one came twice and differs.
func (p *plant) results() map[string]event.Result {
	p.t.Helper()
	return byID(p.t, p.read(bus.TopicResults), schemas.Result, func(r event.Result) string { return r.ID })
}

func (p *plant) alertsByID() map[string]event.Alert {
	p.t.Helper()
	return byID(p.t, p.ofType(event.AlertType), schemas.Alert, func(a event.Alert) string { return a.ID })
}

func (p *plant) advisories() map[string]event.Advisory {
	p.t.Helper()
	return byID(p.t, p.ofType(event.AdvisoryType), schemas.Advisory, func(a event.Advisory) string { return a.ID })
}

// ofType returns the messages of a type on the topic of alerts.
func (p *plant) ofType(typ string) (msgs []bus.Message) {
	p.t.Helper()
	for _, m := range p.read(bus.TopicAlerts) {
		if string(m.Header("ce_type")) == typ {
			msgs = append(msgs, m)
		}
	}
	return msgs
}

// byID drops repeats, which must say the same, and validates the messages.
func byID[E any](t *testing.T, msgs []bus.Message, schema string, id func(E) string) map[string]E {
	t.Helper()
	got, body := map[string]E{}, map[string][]byte{}
	for _, m := range msgs {
		if err := schemas.Validate(schema, m.Value); err != nil {
			t.Errorf("%v\n%s", err, m.Value)
		}
		var e E
		if err := json.Unmarshal(m.Value, &e); err != nil {
			t.Fatal(err)
		}
		if string(m.Header("ce_id")) != id(e) {
			t.Errorf("ce_id %q, the body says %q", m.Header("ce_id"), id(e))
		}
		if before, twice := body[id(e)]; twice && !bytes.Equal(before, m.Value) {
			t.Errorf("came twice and differs:\n%s\n%s", before, m.Value)
		}
		got[id(e)], body[id(e)] = e, m.Value
	}
	return got
}

// monitoring is a monitor that runs.
type monitoring struct {
	*Monitor
	stop func() error // and wait
	done chan error
}

// untilReady waits until the monitor has all its partitions.
func (m *monitoring) untilReady(t *testing.T) {
	t.Helper()
	await.Right(t, func() string {
		if err := m.Ready(); err != nil {
			return "not ready: " + err.Error()
		}
		return ""
	})
}

// testAlarm is what monitors have. A tool that comes back calls again at once.
var testAlarm = alarm.Settings{K: 2, N: 3, Latch: true, ReAlarm: 5 * time.Millisecond}

// monitor starts a monitor. It is stopped at the end of the test.
func (p *plant) monitor(change ...func(*Monitor)) *monitoring {
	p.t.Helper()
	m, err := New(Config{Model: p.model, Bus: p.bus, Alarm: testAlarm, Log: zerolog.New(&p.log)})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, c := range change {
		c(m)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &monitoring{Monitor: m, done: make(chan error, 1)}
	go func() { r.done <- m.Run(ctx) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-r.done
	})
	p.t.Cleanup(func() {
		if err := r.stop(); err != nil {
			p.t.Error(err)
		}
	})
	return r
}

// calm returns what a monitor without any trouble says of the windows.
func (p *plant) calm(ws ...*window.Window) (results map[string]event.Result, alerts map[string]event.Alert) {
	p.t.Helper()
	results, alerts = map[string]event.Result{}, map[string]event.Alert{}
	settings, by := machine.Settings{Group: DefaultGroup, Alarm: testAlarm}, machine.Everything(p.model)
	o := machine.NewOwner(&settings, by, 0)
	o.On(machine.Fenced{At: machine.Position{}}, time.Time{})
	o.On(machine.Loaded{}, time.Time{})
	for i, w := range ws {
		for _, a := range o.On(machine.Read{Log: machine.WindowLog, Inputs: []machine.Input{{Offset: int64(i), Open: func(into *window.Features) error { *into = *machinetest.Features(p.model, w); return nil }}}}, time.Time{}) {
			b, ok := a.(*machine.Batch)
			if !ok {
				continue
			}
			for _, e := range b.Events {
				switch e := e.(type) {
				case machine.Result:
					results[e.ID] = *e.Result
				case machine.Alert:
					alerts[e.ID] = *e.Alert
				case machine.Advisory, machine.Evidence, machine.ShadowResult, machine.ShadowAlert:
				}
			}
			o.On(machine.Published{}, time.Time{})
		}
	}
	return results, alerts
}

// same checks what was published of windows: results, alerts and features.
func (p *plant) same(wantResults map[string]event.Result, wantAlerts map[string]event.Alert) {
	p.t.Helper()
	p.sameEvents(wantResults, wantAlerts)
	p.oneMessageOfFeatures(wantResults)
}

func (p *plant) sameEvents(wantResults map[string]event.Result, wantAlerts map[string]event.Alert) {
	p.t.Helper()
	if got := p.results(); string(event.JSON(got)) != string(event.JSON(wantResults)) {
		p.t.Errorf("results\n%s\nwant\n%s", event.JSON(got), event.JSON(wantResults))
	}
	if got := p.alertsByID(); string(event.JSON(got)) != string(event.JSON(wantAlerts)) {
		p.t.Errorf("alerts\n%s\nwant\n%s", event.JSON(got), event.JSON(wantAlerts))
	}
}

// oneMessageOfFeatures checks that readers see the features of every judged window, once.
func (p *plant) oneMessageOfFeatures(results map[string]event.Result) {
	p.t.Helper()
	times := make(map[string]int)
	for _, m := range p.read(bus.TopicFeatures) {
		times[string(m.Header("ce_id"))]++
	}
	for _, r := range results {
		if id := event.WindowID(r.Machine, r.Epoch, r.Seq); times[id] != 1 {
			p.t.Errorf("%d messages of the features of window %s", times[id], id)
		}
	}
	if len(times) != len(results) {
		p.t.Errorf("features of %d windows, and %d were judged", len(times), len(results))
	}
}

// life is the windows of a tool that is faulty from a seq on.
func life(n, faulty int) (ws []*window.Window) {
	for seq := range uint64(n) {
		ws = append(ws, at(seq, "T1", int(seq) >= faulty))
	}
	return ws
}

// A sender that floods the topic with windows of other layouts, each with a key of its
// own, does not fill the monitor's memory.
func TestForeignKeysAreBounded(t *testing.T) {
	s := &partition{mon: &Monitor{cfg: Config{Model: machinetest.OneValue(t)}}, foreign: make(map[string]bool), log: zerolog.Nop()}
	for i := range 3 * maxForeign {
		s.logLetter(machine.Letter{Err: &unreadable{fmt.Sprintf("%d%s", i, strings.Repeat("x", 1000)), window.ErrForeign}})
	}
	for key := range s.foreign {
		if len(key) > 256 {
			t.Fatalf("a key of %d bytes is kept", len(key))
		}
	}
	if len(s.foreign) != maxForeign {
		t.Errorf("%d keys are kept, want %d", len(s.foreign), maxForeign)
	}
}

// One of each kind of bad message, among good ones: each is set aside once as it
// was, with a reason that names what is wrong, and the good ones are judged.
func TestBadMessages(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	ws := life(12, 6)
	good := p.messages(ws...)

	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	set := func(m bus.Message, header, value string) bus.Message {
		m.Headers = slices.Clone(m.Headers)
		for i := range m.Headers {
			if m.Headers[i].Key == header {
				m.Headers[i].Value = []byte(value)
			}
		}
		return m
	}
	fresh := func(seq uint64) bus.Message { return p.message(at(seq, "T1", false)) }

	flipped := fresh(100)
	flipped.Value = bytes.Clone(flipped.Value)
	flipped.Value[len(flipped.Value)/2] ^= 4
	truncated := fresh(101)
	truncated.Value = truncated.Value[:len(truncated.Value)-40]
	truncated = set(truncated, "crc32c", fmt.Sprintf("%08x", crc32.Checksum(truncated.Value, castagnoli)))
	other, err := signal.NewLayout("another", []signal.Channel{{Name: "torque", Kind: signal.Feature, Unit: "N·m", Rate: 1}})
	if err != nil {
		t.Fatal(err)
	}
	stray := fresh(103)
	stray.Key = "acme/line1/lathe"
	nameless := at(104, "T1", false)
	nameless.Machine = ""
	latin1 := at(105, "T\xe4", false)
	escape, backwards := at(110, "T1", false), at(111, "T1", false)
	escape.Programme, backwards.Material = "O1\x1b[2J", "\u202e4oMrC24"

	bad := []struct {
		name   string
		m      bus.Message
		reason string
	}{
		{"a flipped bit", flipped, "checksum"},
		{"a truncated stream whose checksum fits", truncated, "corrupt payload"},
		{"a foreign message", bus.Message{Topic: bus.TopicWindows, Key: drill, Value: []byte(`{"temperature": 21}`)}, `no header "ce_type"`},
		{"another kind of event", set(fresh(106), "ce_type", "com.example.order"), `ce_type is "com.example.order"`},
		{"a text for a number", set(fresh(107), "seq", "twelve"), `seq is "twelve"`},
		{"another seq than in the value", set(fresh(108), "seq", "109"), "headers say"},
		{"the layout of another schema", set(fresh(102), "layout", other.Fingerprint()), "the schema is not one of windows of layout"},
		{"the key of another machine", stray, `key "acme/line1/lathe", the window is of machine "acme/line1/drill"`},
		{"no machine", p.message(nameless), "no machine"},
		{"a tool that is not text", p.message(latin1), "UTF-8"},
		{"a programme with an escape", p.message(escape), "programme or material"},
		{"a material that is written backwards", p.message(backwards), "control characters"},
		{"nothing", bus.Message{Topic: bus.TopicWindows, Key: drill}, `no header "ce_type"`},
	}
	var stream []bus.Message
	for i := range max(len(good), len(bad)) {
		if i < len(good) {
			stream = append(stream, good[i])
		}
		if i < len(bad) {
			stream = append(stream, bad[i].m)
		}
	}
	p.send(stream...)
	p.send(good...) // repeats
	mon := p.monitor()
	p.untilMessages(bus.TopicResults, len(good))
	p.untilMessages(bus.TopicDead, len(bad))
	p.send(p.message(at(12, "T1", true))) // the stream goes on
	p.untilMessages(bus.TopicResults, len(good)+1)
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}

	results, alerts := p.calm(append(ws, at(12, "T1", true))...)
	if len(alerts) != 1 {
		t.Fatalf("%d alerts expected: the test has no teeth", len(alerts))
	}
	p.same(results, alerts)
	if n := len(p.read(bus.TopicResults)); n != len(good)+1 {
		t.Errorf("%d messages on %s for %d windows", n, bus.TopicResults, len(good)+1)
	}
	letters := p.read(bus.TopicDead)
	if len(letters) != len(bad) {
		t.Errorf("%d dead letters, want %d", len(letters), len(bad))
	}
	if got := asides(mon.Monitor); got != "corrupt 4, not_a_window 9" {
		t.Errorf("%s are counted", got)
	}
	for _, tc := range bad {
		found := slices.IndexFunc(letters, func(l bus.Message) bool {
			return bytes.Equal(l.Value, tc.m.Value) && strings.Contains(string(l.Header("dead_reason")), tc.reason)
		})
		if found < 0 {
			t.Errorf("%s: no dead letter with its bytes and the reason %s", tc.name, tc.reason)
			continue
		}
		l := letters[found]
		letters = slices.Delete(letters, found, found+1)
		if l.Key != tc.m.Key || string(l.Header("dead_topic")) != bus.TopicWindows {
			t.Errorf("%s: dead letter has key %q of topic %q", tc.name, l.Key, l.Header("dead_topic"))
		}
		for _, h := range tc.m.Headers {
			if got := l.Header("original_" + h.Key); !bytes.Equal(got, h.Value) {
				t.Errorf("%s: header original_%s is %q, want %q", tc.name, h.Key, got, h.Value)
			}
		}
	}
	for _, l := range letters {
		t.Errorf("a dead letter that nothing explains: %s", l.Header("dead_reason"))
	}
	if st := p.standing(drill); st.Incident == "" || st.Alarm != "raised" || st.Tools != 1 {
		t.Errorf("standing %+v", st)
	}
	if st := mon.Stats(); st != (Stats{Judged: 13, Repeats: 12, Features: 13, Dead: uint64(len(bad)), Alerts: 1}) {
		t.Errorf("stats %+v", st)
	}
	checkContract(t, p)
}

// A monitor that is stopped and started goes on where it was, and says what one
// says that was never stopped.
func TestRestart(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	ws := life(40, 25)
	other := life(10, 10)
	for _, w := range other {
		w.Machine = "acme/line1/lathe"
	}
	stopAt := []int{3, 11, 27}
	sent := 0
	for _, n := range stopAt {
		p.send(p.messages(ws[sent:n]...)...)
		sent = n
		mon := p.monitor()
		p.untilMessages(bus.TopicResults, n)
		if err := mon.stop(); err != nil {
			t.Fatal(err)
		}
	}
	p.send(p.messages(ws[sent-5:]...)...) // an ingester that restarted repeats some
	p.send(p.messages(other...)...)
	mon := p.monitor()
	p.untilResults(len(ws) + len(other))
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}
	p.same(p.calm(append(ws, other...)...))
	if st := mon.Stats(); st.Judged != uint64(len(ws)-sent+len(other)) || st.Repeats != 5 || st.Dead != 0 {
		t.Errorf("stats after the last start %+v", st)
	}
}

// A window that fills a gap is judged and marked, and moves neither the alarm nor
// the reference; a repeat is dropped.
func TestLateWindow(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	mon := p.monitor()
	ws := []*window.Window{
		at(0, "T1", false), at(1, "T1", false), at(2, "T1", true), at(5, "T1", false), at(6, "T1", false),
		at(3, "T1", true), at(4, "T1", true), // two of three, had they come in time
		at(3, "T1", true),
		at(7, "T1", false),
	}
	for _, w := range ws {
		p.send(p.message(w))
	}
	p.untilResults(8)
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}
	if n := len(p.read(bus.TopicAlerts)); n != 0 {
		t.Errorf("%d alerts: late windows moved the alarm", n)
	}
	for _, r := range p.results() {
		if late := r.Seq == 3 || r.Seq == 4; r.Late != late || late && r.Verdict != event.Faulty {
			t.Errorf("window %d: %s, late %v", r.Seq, r.Verdict, r.Late)
		}
	}
	if st := mon.Stats(); st.Repeats != 1 {
		t.Errorf("%d repeats, want 1", st.Repeats)
	}
}

// Another owner fences a monitor that is in the middle of a batch: nothing of the batch is
// seen, and the windows are judged again, once.
func TestFencedInABatch(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	ws := life(12, 4)
	p.send(p.messages(ws[:3]...)...)
	var windows atomic.Int64
	mon := p.monitor(func(m *Monitor) {
		m.cfg.OnWindow = func(*signal.Layout, *window.Window, event.Result) {
			if windows.Add(1) == 6 {
				kc := &kafka.Client{Addr: kafka.TCP(p.bus.Brokers...)}
				res, err := kc.InitProducerID(context.Background(), &kafka.InitProducerIDRequest{TransactionalID: DefaultGroup + "-0", TransactionTimeoutMs: 10000, ProducerID: -1, ProducerEpoch: -1})
				if err != nil || res.Error != nil {
					t.Error(err, res)
				}
			}
		}
	})
	p.untilMessages(bus.TopicResults, 3)
	p.send(p.messages(ws[3:]...)...)
	p.untilResults(12)
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}
	p.same(p.calm(ws...))
	if n := len(p.read(bus.TopicResults)); n != 12 {
		t.Errorf("%d results that readers of committed messages see, want 12", n)
	}
	if n := windows.Load(); n <= 12 {
		t.Errorf("%d windows judged: the batch was not lost, the test has no teeth", n)
	}
}

// A record that cannot be used is set aside, and its machine begins again; the others do
// not notice. The second start finds nothing to set aside.
func TestDamagedState(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	key := func(machine string) string { return DefaultGroup + "\x1f" + machine }
	want := map[string]struct{ value, reason string }{
		"acme/damaged/text":    {"\x00\x01\x02", "invalid character"},
		"acme/damaged/cut":     {`{"version":3,"machine":"acme/dam`, "unexpected end of JSON"},
		"acme/damaged/empty":   {"{}", "version 0"},
		"acme/damaged/newer":   {`{"version":4,"machine":"acme/damaged/newer"}`, "version 4"},
		"acme/damaged/overlap": {`{"version":3,"machine":"acme/damaged/overlap","epoch":{"id":"1","judged":[[0,3],[2,5]]}}`, "not ascending"},
		"acme/damaged/tool":    {`{"version":3,"machine":"acme/damaged/tool","tool":{"tool":"T1","windows":4,"alarm":{}}}`, "has no record"},
		"acme/damaged/notice":  {`{"version":3,"machine":"acme/damaged/notice","notices":[{"kind":"silence"}]}`, "kept only while it is raised"},
		"acme/damaged/older":   {`{"version":2,"machine":"acme/damaged/older"}`, "version 2, this program reads version 3: use the release that wrote it"},
	}
	var ws []*window.Window
	for name, d := range want {
		p.send(bus.Message{Topic: bus.TopicState, Key: key(name), Route: name, Value: []byte(d.value)})
		w := at(9, "T1", false)
		w.Machine = name
		ws = append(ws, w)
	}
	sound := life(4, 4)
	p.send(p.messages(append(ws, sound...)...)...)
	mon := p.monitor()
	p.untilResults(len(ws) + len(sound))
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}
	letters := map[string]bus.Message{}
	for _, l := range p.read(bus.TopicDead) {
		letters[l.Key] = l
	}
	for name, d := range want {
		l := letters[key(name)]
		if got := string(l.Header("dead_reason")); !strings.Contains(got, d.reason) || string(l.Header("dead_topic")) != bus.TopicState || string(l.Value) != d.value {
			t.Errorf("%s: dead letter of %s with reason %q, want %q", name, l.Header("dead_topic"), got, d.reason)
		}
		if !strings.Contains(p.log.String(), name) {
			t.Errorf("%s: not in the log", name)
		}
	}
	if len(letters) != len(want) {
		t.Errorf("%d machines have dead letters, want %d", len(letters), len(want))
	}
	before := len(p.read(bus.TopicDead))
	mon = p.monitor()
	p.send(p.message(at(10, "T1", false)))
	p.untilResults(len(ws) + len(sound) + 1)
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}
	if after := len(p.read(bus.TopicDead)); after != before {
		t.Errorf("the second start set aside %d records", after-before)
	}
}

// The broker goes away in the middle of a batch, for longer than a batch may take
// after its partition was taken away: the monitor waits and goes on.
func TestBrokerAway(t *testing.T) {
	t.Parallel()
	p := newPlantIn(t, t.TempDir())
	p.apply(1)
	ws := life(20, 10)
	p.send(p.messages(ws...)...)
	var once sync.Once
	back := make(chan struct{})
	p.monitor(func(m *Monitor) {
		m.grace = 100 * time.Millisecond
		m.cfg.OnWindow = func(*signal.Layout, *window.Window, event.Result) {
			once.Do(func() {
				addr := p.broker.Addr()
				p.broker.Close()
				time.AfterFunc(time.Second, func() {
					p.start(addr)
					close(back)
				})
			})
		}
	})
	<-back
	p.untilResults(len(ws))
	p.untilMessages(bus.TopicAlerts, 1)
	p.same(p.calm(ws...))
}

// Run names a topic that is missing at the start, even if it is needed rarely.
func TestMissingTopic(t *testing.T) {
	t.Parallel()
	p := newPlantWithoutTopics(t)
	for _, topic := range []string{bus.TopicWindows, bus.TopicFeatures, bus.TopicState, bus.TopicCommands, bus.TopicResults, bus.TopicAlerts, bus.TopicShadow} {
		p.createTopic(topic, 1)
	}
	m, err := New(Config{Model: p.model, Bus: p.bus})
	if err != nil {
		t.Fatal(err)
	}
	err = m.Run(context.Background())
	if !errors.Is(err, bus.ErrNoTopic) || !strings.Contains(err.Error(), bus.TopicDead) || !strings.Contains(err.Error(), "ingest topics apply") {
		t.Errorf("error %v: want one that names %s and `ingest topics apply`", err, bus.TopicDead)
	}
}

// Where the records of machines are not divided as their windows are, a monitor
// would not find them again.
func TestStateDividedOtherwise(t *testing.T) {
	t.Parallel()
	p := newPlantWithoutTopics(t)
	p.createTopic(bus.TopicState, 2)
	p.apply(3)
	m, err := New(Config{Model: p.model, Bus: p.bus})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err = m.Run(ctx)
	for _, want := range []string{bus.TopicState + " has 2", bus.TopicWindows + " has 3 partitions", "ingest topics grow --partitions 3"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
}

// A bad message that the dead-letter topic does not take stops nothing.
func TestDeadLetterTooLarge(t *testing.T) {
	t.Parallel()
	p := newPlantWithoutTopics(t)
	p.createTopic(bus.TopicDead, 1, kafka.ConfigEntry{ConfigName: "max.message.bytes", ConfigValue: "2000"})
	p.apply(1)
	large := bus.Message{
		Topic: bus.TopicWindows, Key: strings.Repeat("k", 5000), Value: make([]byte, 5000),
		Headers: []bus.Header{{Key: "x", Value: make([]byte, 5000)}},
	}
	p.send(large, bus.Message{Topic: bus.TopicWindows, Key: drill, Value: []byte("small")}, p.message(at(0, "T1", false)))
	p.monitor()
	p.untilMessages(bus.TopicResults, 1)
	p.untilMessages(bus.TopicDead, 2)
	for _, l := range p.read(bus.TopicDead) {
		switch string(l.Header("dead_offset")) {
		case "0":
			if !strings.Contains(string(l.Header("dead_reason")), "too large") || len(l.Value) != 0 {
				t.Errorf("reason %q with %d bytes", l.Header("dead_reason"), len(l.Value))
			}
		case "1":
			if string(l.Value) != "small" {
				t.Errorf("value %q, want it whole", l.Value)
			}
		default:
			t.Errorf("dead letter of offset %s", l.Header("dead_offset"))
		}
	}
}

// Windows of another length are the configuration's fault: an advisory says so once, with
// what to do, in the log, among the advisories and on the page.
func TestRefusedWindowsAreSaidOnce(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	other, err := window.NewCodec(p.model.Layout, window.Spec{Length: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for seq := range uint64(5) {
		w := at(seq, "T1", false)
		w.Length, w.Samples = 2*time.Second, [][]float32{{10, 10}}
		e, err := other.Seal(w)
		if err != nil {
			t.Fatal(err)
		}
		p.send(envelope.Window(e))
	}
	mon := p.monitor(func(m *Monitor) { m.cfg.Log = m.cfg.Log.Level(zerolog.InfoLevel) })
	p.untilMessages(bus.TopicFeatures, 5)
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}
	if st := mon.Stats(); st.Unwatched != 5 || st.Features != 5 || st.Dead != 0 || st.Judged != 0 {
		t.Errorf("stats %+v", st)
	}
	log := p.log.String()
	const says = "drill: NOT WATCHED, its windows are refused: model does not fit: trained on windows of 1s, these have 2s"
	if n := strings.Count(log, says); n != 1 || strings.Count(log, "\n") != 1 {
		t.Errorf("log:\n%s\nwant one line that says what to do", log)
	}
	st := p.standing(drill)
	if st.Unwatched() != "windows refused" || len(st.Advisories) != 1 || !strings.HasPrefix(st.Advisories[0].Text, says) || st.Tools != 0 || !st.LastWindowAt.IsZero() {
		t.Errorf("%+v", st)
	}
	hub := web.NewHub(web.Config{Layout: p.model.Layout})
	if _, skipped, err := Recall(t.Context(), p.bus, DefaultGroup, hub); err != nil || skipped > 0 {
		t.Fatal(skipped, err)
	}
	page := httptest.NewRecorder()
	hub.Handler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "http://localhost/api/machines", nil))
	if body := page.Body.String(); !strings.Contains(body, `"refused_age":`) || strings.Contains(body, `"verdict":"healthy"`) {
		t.Errorf("page: %s", body)
	}

	p.monitor()
	p.send(p.message(at(5, "T1", false))) // someone corrected the ingester
	p.untilMessages(bus.TopicResults, 1)
	if st := p.standing(drill); st.Unwatched() == "" || st.Tools != 1 {
		t.Errorf("right after the first judged window: %+v", st)
	}
}

// A message that names no machine of ours, or not the one that its key says, is a dead
// letter and no advisory.
func TestRefusalNamesItsMachine(t *testing.T) {
	m := machinetest.OneValue(t)
	known, err := newLayouts([]*model.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	other, err := window.NewForm(m.Layout, window.Spec{Length: 2 * time.Second}, signal.FeatureSpec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	message := func(name string) bus.Message {
		w := at(7, "T1", false)
		w.Machine, w.Length, w.Samples = name, 2*time.Second, [][]float32{{10, 10}}
		var x window.Features
		other.NewExtractor().Extract(w, &x)
		e, err := other.Seal(&x)
		if err != nil {
			t.Fatal(err)
		}
		return envelope.Features(e, envelope.Gateway, 0)
	}
	stray := message(drill)
	stray.Key = "acme/line1/lathe"
	for name, tc := range map[string]struct {
		m    bus.Message
		want string // machine; empty: no refusal
	}{
		"ours":                  {message(drill), drill},
		"the key of another":    {stray, ""},
		"no name":               {message(""), ""},
		"a control character":   {message("a\x1fb"), ""},
		"a name that is long":   {message(strings.Repeat("x", envelope.MaxName+1)), ""},
		"a name that is not so": {message(strings.Repeat("x", envelope.MaxName)), strings.Repeat("x", envelope.MaxName)},
	} {
		var refusal *machine.Refusal
		err := known.openFeatures(&tc.m, new(window.Features))
		if err == nil || !errors.Is(err, window.ErrForeign) {
			t.Errorf("%s: %v", name, err)
		}
		switch {
		case errors.As(err, &refusal) != (tc.want != ""):
			t.Errorf("%s: refusal %+v", name, refusal)
		case refusal != nil && (refusal.Machine != tc.want || refusal.Seq != 7 || refusal.Epoch != "0000000000000001"):
			t.Errorf("%s: %+v", name, refusal)
		case refusal != nil && (refusal.Window == nil || refusal.Window.Tool != "T1" || refusal.Layout != m.Layout.Fingerprint()):
			t.Errorf("%s: it moves no tool: %+v", name, refusal)
		}
	}
}

// Monitors of one group share the machines, and the one that stays takes over.
func TestTwoMonitors(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 2)
	var first, second atomic.Uint64
	count := func(n *atomic.Uint64) func(*Monitor) {
		return func(m *Monitor) { m.cfg.OnWindow = func(*signal.Layout, *window.Window, event.Result) { n.Add(1) } }
	}
	a := p.monitor(count(&first))
	machines := []string{"acme/line1/a", "acme/line1/b", "acme/line1/c", "acme/line1/d", "acme/line1/e", "acme/line1/f"}
	var all []*window.Window
	round := func(seq uint64) {
		for _, name := range machines {
			w := at(seq, "T1", seq > 4)
			w.Machine = name
			all = append(all, w)
			p.send(p.message(w))
		}
	}
	seq := uint64(0)
	for ; seq < 3; seq++ {
		round(seq)
	}
	p.untilResults(len(all))
	p.monitor(count(&second))
	for deadline := time.Now().Add(patience); second.Load() == 0; seq++ { // until the second has joined
		round(seq)
		p.untilResults(len(all))
		if time.Now().After(deadline) {
			t.Fatal("the second monitor gets no partition")
		}
	}
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		round(seq)
		seq++
	}
	p.untilResults(len(all))
	p.same(p.calm(all...))
	records, err := history.Records(t.Context(), p.bus, DefaultGroup)
	if got := slices.Sorted(maps.Keys(records)); err != nil || !slices.Equal(got, machines) {
		t.Errorf("states of %v, %v", got, err)
	}
}

// standing returns how a machine stands.
func (p *plant) standing(machine string) Standing {
	p.t.Helper()
	all, _, err := Alarms(p.t.Context(), p.bus, DefaultGroup)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, st := range all {
		if st.Machine == machine {
			return st
		}
	}
	p.t.Fatalf("machine %s is not among %+v", machine, all)
	return Standing{}
}

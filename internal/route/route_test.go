package route

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/broker/brokertest"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/metric"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/logtest"
	"github.com/flank-tcm/flank/internal/testkit/metrictest"
)

func TestMain(m *testing.M) {
	await.Together()
	os.Exit(m.Run())
}

const drill = "acme/spore/bay2/line1/usk25"

var monday = time.Date(2026, 11, 2, 2, 13, 41, 0, time.UTC)

// alert returns a message as a monitor sends it, n seconds after monday.
func alert(machine string, n int, state event.AlertState, change ...func(*event.Alert)) bus.Message {
	at := monday.Add(time.Duration(n) * time.Second)
	a := event.Alert{
		ID: event.WindowID(machine, "00000000cafe0001", uint64(n)) + "/" + string(state), Group: "tcm-monitor", Machine: machine, Tool: "T07", State: state, Alarm: "raised",
		Incident: "A-K3ZQ7M2P", Severity: "warning", Since: monday.Add(-6 * time.Second), At: at, Epoch: "00000000cafe0001", Seq: uint64(n),
		Faulty: 6, Of: 8, K: 6, N: 8, Score: 0.93, Model: "ecs-dbn-0123456789ab", Text: "usk25 tool T07 hole H3_08: FAULTY since 02:13:35.",
	}
	switch state {
	case event.Raised, "reactivated":
	case event.Cleared:
		a.Alarm, a.Severity, a.Reason, a.Text = "normal", "info", "tool_change", "usk25 tool T07: alarm of 02:13:35 cleared, tool changed to T08."
	default:
		a.Alarm, a.Severity, a.By, a.Text = string(state), "info", "kim", "usk25 tool T07: "+string(state)+" by kim."
	}
	for _, c := range change {
		c(&a)
	}
	return message(a, a.ID, event.AlertType, a.Machine, a.At)
}

// advisory returns a message as a monitor sends it.
func advisory(machine string, n int, kind, subject string, state event.AlertState) bus.Message {
	at := monday.Add(time.Duration(n) * time.Second)
	severity, status := "warning", "failure"
	if state == event.Cleared {
		severity, status = "info", ""
	}
	id := fmt.Sprintf("%s/00000000cafe0001/%d/%s/%s/%s", machine, n, kind, subject, state)
	return message(map[string]any{
		"id": id, "group": "tcm-monitor", "machine": machine, "tool": "T07", "kind": kind, "subject": subject, "state": state, "status": status, "severity": severity,
		"since": monday, "at": at, "epoch": "00000000cafe0001", "seq": n, "model": "m", "text": "SENSOR " + subject + " " + status + ".",
	}, id, event.AdvisoryType, machine, at)
}

func message(v any, id, typ, machine string, at time.Time) bus.Message {
	e, err := Of(v, id, typ, machine, at)
	if err != nil {
		panic(err)
	}
	return e.message
}

func opened(t testing.TB, m bus.Message) *Event {
	t.Helper()
	e, err := open(m)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// tape is a partition with messages, after which nothing comes.
type tape struct {
	id        int
	msgs      []bus.Message
	next      int
	committed int64
	marks     int64  // offsets behind the messages that never become any
	dry       func() // called when all were read
}

func newTape(msgs ...bus.Message) *tape {
	for i := range msgs {
		msgs[i].Offset = int64(i)
	}
	return &tape{msgs: msgs}
}

func (p *tape) ID() int { return p.id }

func (p *tape) Fetch(ctx context.Context, most int, _ time.Duration) ([]bus.Message, error) {
	if p.next == len(p.msgs) {
		p.dry()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	n := min(most, len(p.msgs)-p.next)
	p.next += n
	return slices.Clone(p.msgs[p.next-n : p.next]), nil
}

func (p *tape) Commit(_ context.Context, offset int64) error {
	p.committed = offset
	return nil
}

func (p *tape) End(context.Context) (int64, error) { return int64(len(p.msgs)) + p.marks, nil }

// drawer keeps dead letters.
type drawer struct{ letters []bus.Message }

func (d *drawer) Send(_ context.Context, msgs []bus.Message) error {
	d.letters = append(d.letters, msgs...)
	return nil
}

// mailbox takes events, or does what the test says.
type mailbox struct {
	mu   sync.Mutex
	ids  []string
	says func(e *Event, attempt int) error
	try  map[string]int
}

func (m *mailbox) deliver(ctx context.Context, e *Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.try == nil {
		m.try = make(map[string]int)
	}
	m.try[e.ID]++
	if m.says != nil {
		if err := m.says(e, m.try[e.ID]); err != nil {
			return err
		}
	}
	m.ids = append(m.ids, e.ID)
	return ctx.Err()
}

func (m *mailbox) probe(context.Context) (string, error) { return "here", nil }
func (m *mailbox) close()                                {}

// tester is a testing.T, or one of rapid.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
	Cleanup(func())
}

// bench is a route to a receiver whose clock is the test's: waiting takes no time.
type bench struct {
	*Route
	log   logtest.Buffer
	clock time.Time
	waits []time.Duration
}

func newBench(t tester, cfg Config, to receiver) *bench {
	t.Helper()
	b := &bench{clock: monday.Add(time.Hour)}
	if cfg.Name == "" {
		cfg.Name = "cmms"
	}
	if cfg.Receivers == (Receivers{}) {
		cfg.Webhook = &Webhook{URL: "http://127.0.0.1:1/"}
	}
	r, err := New(cfg, Options{Bus: bus.Config{Brokers: []string{"127.0.0.1:1"}}, Group: "tcm-monitor", Log: zerolog.New(&b.log)})
	if err != nil {
		t.Fatal(err)
	}
	if to != nil {
		r.to = to
	}
	r.rng = rand.New(rand.NewPCG(1, 1))
	r.now = func() time.Time { return b.clock }
	r.sleep = func(ctx context.Context, d time.Duration) error {
		b.waits, b.clock = append(b.waits, d), b.clock.Add(d)
		return ctx.Err()
	}
	b.Route = r
	t.Cleanup(r.Close)
	return b
}

// play takes all that is on a tape to the receiver.
func (b *bench) play(t tester, p *tape) *drawer {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	p.dry = stop
	dead := &drawer{}
	if err := b.serve(ctx, p, dead); !errors.Is(err, context.Canceled) {
		t.Fatalf("serve: %v\n%s", err, &b.log)
	}
	return dead
}

// A receiver that was down for a day then gets every event once and in order. In
// between the route asks it only as often as the back-off allows.
func TestDeadForADay(t *testing.T) {
	var msgs []bus.Message
	for n := range 50 {
		msgs = append(msgs, alert(drill, n, event.Raised))
	}
	box := &mailbox{}
	b := newBench(t, Config{}, box)
	back := b.clock.Add(24 * time.Hour)
	box.says = func(*Event, int) error {
		if b.clock.Before(back) {
			return errors.New("connection refused")
		}
		return nil
	}
	p := newTape(msgs...)
	dead := b.play(t, p)
	if len(box.ids) != 50 || !slices.IsSortedFunc(box.ids, func(a, b string) int { return len(a) - len(b) }) || p.committed != 50 || len(dead.letters) > 0 {
		t.Errorf("%d events, committed %d, %d dead letters: %v", len(box.ids), p.committed, len(dead.letters), box.ids)
	}
	for i, d := range b.waits {
		if d > longWait || d < longWait/2 && i > 6 || d < firstWait/2 {
			t.Errorf("wait %d is %v", i, d)
		}
	}
	if n := len(b.waits); n < 24*60 || n > 2*24*60+10 {
		t.Errorf("%d attempts in a day, of which there should be one or two a minute", n)
	}
	if log := b.log.String(); strings.Count(log, "route_failing") > 24*6+2 || strings.Count(log, "route_recovered") != 1 {
		t.Errorf("%d lines say that it fails, %d that it is over", strings.Count(log, "route_failing"), strings.Count(log, "route_recovered"))
	}
}

// Waits grow, are bounded, and follow from the seed; what the receiver asks for is
// the least, up to an hour.
func TestWait(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, n := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 1<<20).Draw(t, "failures")
		asked := time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(t, "asked"))
		seeded := func() *Route { return &Route{rng: rand.New(rand.NewPCG(seed, 0))} }
		d := seeded().wait(n, asked)
		if again := seeded().wait(n, asked); again != d {
			t.Errorf("%v and %v from one seed", d, again)
		}
		base := longWait
		if n <= 6 {
			base = min(firstWait<<(n-1), longWait)
		}
		if least := max(base/2, min(asked, askedWait)); d < least || d > max(base, min(asked, askedWait)) {
			t.Errorf("%v after %d failures, asked for %v", d, n, asked)
		}
	})
}

// Every event that passes the filter ends once with the receiver or on the
// dead-letter topic, in order, for any answers of the receiver. Repeats are dropped.
func TestEveryEventEndsSomewhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		box := &mailbox{}
		fates := make(map[string][]int) // attempts: 0 taken, 1 fails, 2 asks for time, 3 refused
		var msgs []bus.Message
		var want, letters []string
		for n := range rapid.IntRange(1, 30).Draw(t, "events") {
			m := alert(drill, n, event.Raised)
			id := string(m.Header("ce_id"))
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0:
				m.Value = []byte("no JSON")
				letters = append(letters, id)
			case 1:
				if len(msgs) > 0 {
					msgs = append(msgs, msgs[rapid.IntRange(0, len(msgs)-1).Draw(t, "again")])
				}
				fallthrough
			default:
				fates[id] = rapid.SliceOfN(rapid.IntRange(1, 2), 0, 5).Draw(t, "fate")
				if rapid.IntRange(0, 5).Draw(t, "last") == 0 {
					fates[id] = append(fates[id], 3)
					letters = append(letters, id)
				} else {
					want = append(want, id)
				}
			}
			msgs = append(msgs, m)
		}
		box.says = func(e *Event, attempt int) error {
			fate := fates[e.ID]
			if attempt > len(fate) {
				if len(fate) > 0 && fate[len(fate)-1] == 3 {
					return &refusal{errors.New("no")}
				}
				return nil
			}
			switch fate[attempt-1] {
			case 1:
				return errors.New("down")
			case 2:
				return &later{errors.New("busy"), time.Second}
			}
			return &refusal{errors.New("no")}
		}
		b := newBench(t, Config{}, box)
		p := newTape(msgs...)
		dead := b.play(t, p)
		if !slices.Equal(box.ids, want) {
			t.Errorf("taken %v, want %v", box.ids, want)
		}
		got := make(map[string]bool)
		for _, l := range dead.letters {
			letter, err := bus.OpenLetter(l)
			if err != nil || !strings.HasPrefix(letter.Reason, "route cmms: ") {
				t.Errorf("%+v, %v", letter, err)
			}
			got[string(letter.Message.Header("ce_id"))] = true
		}
		for _, id := range letters {
			if !got[id] {
				t.Errorf("%s is neither taken nor set aside", id)
			}
		}
		if p.committed != int64(len(msgs)) {
			t.Errorf("committed %d of %d", p.committed, len(msgs))
		}
	})
}

// Metrics say how far behind a route is, while it is.
func TestMetrics(t *testing.T) {
	box := &mailbox{}
	b := newBench(t, Config{Filter: Filter{Severity: "warning"}}, box)
	values := func() (s string) {
		w := httptest.NewRecorder()
		metric.Handler(Metrics([]*Route{b.Route})).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for line := range strings.Lines(w.Body.String()) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			name, value, ok := strings.Cut(strings.TrimSpace(line), `{route="cmms"} `)
			if !ok {
				t.Error(line)
			}
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Error(err)
			}
			s += fmt.Sprintf("%s=%v ", strings.TrimPrefix(name, "tcm_route_"), v)
		}
		return s
	}
	var during string
	box.says = func(e *Event, attempt int) error {
		if attempt < 3 {
			return errors.New("down")
		}
		during = values()
		return nil
	}
	first := alert(drill, 0, event.Raised)
	first.Time = b.clock.Add(-90 * time.Second)
	p := newTape(first, alert(drill, 1, event.Cleared))
	p.marks = 1 // Kafka's, behind a transaction
	b.play(t, p)
	if want := "lag_messages=3 lag_seconds="; !strings.Contains(during, want) || strings.Contains(during, "lag_seconds=0") || !strings.Contains(during, "retries_total=2 up=0") {
		t.Errorf("while it is away: %s", during)
	}
	if got, want := values(), fmt.Sprintf("delivered_total=1 filtered_total=1 lag_messages=0 lag_seconds=0 last_success_timestamp_seconds=%v refused_total=0 repeated_total=0 requests_not_taken_total=0 requests_open=0 requests_taken_total=0 retries_total=2 up=1 ", float64(b.clock.Unix())+float64(b.clock.Nanosecond()/1e6)/1e3); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	metrictest.Check(t, "../../docs/reference/metrics.md", Metrics([]*Route{b.Route}))
}

// patience bounds what should take a moment.
const patience = 2 * time.Minute

// startBroker starts an embedded broker with all topics.
func startBroker(t *testing.T, partitions int) (bus.Config, *bus.Producer) {
	t.Helper()
	b := brokertest.Start(t)
	if _, err := bus.Apply(t.Context(), b.Config("test"), partitions, 1); err != nil {
		t.Fatal(err)
	}
	out, err := bus.NewProducer(b.Config("test"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.Close)
	return b.Config("test"), out
}

func send(t *testing.T, out *bus.Producer, msgs ...bus.Message) {
	t.Helper()
	if err := out.Send(t.Context(), msgs); err != nil {
		t.Fatal(err)
	}
}

// running runs a route to a mailbox until stopped.
func running(t *testing.T, cfg bus.Config, c Config, to receiver) (log *logtest.Buffer, stop func()) {
	t.Helper()
	log = &logtest.Buffer{}
	if c.Receivers == (Receivers{}) {
		c.Webhook = &Webhook{URL: "http://127.0.0.1:1/"}
	}
	r, err := New(c, Options{Bus: cfg, Group: "tcm-monitor", Log: zerolog.New(log), Standing: func(context.Context, int) ([]*Event, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if to != nil {
		r.to = to
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done; r.Close() })
	t.Cleanup(stop)
	await.Until(t, "the route runs", func() bool { return strings.Contains(log.String(), "delivering alerts to") })
	return log, stop
}

func (m *mailbox) has(n int) func() bool {
	return func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.ids) >= n
	}
}

// On Kafka: a new route begins at the newest message, one that was away goes on
// where it was, and a dead receiver of one route delays no other.
func TestOnKafka(t *testing.T) {
	t.Parallel()
	cfg, out := startBroker(t, 2)
	const lathe = "acme/spore/bay2/line1/lathe"
	send(t, out, alert(drill, 0, event.Raised), alert(lathe, 0, event.Raised)) // history
	box, hung := &mailbox{}, &mailbox{says: func(*Event, int) error { return errors.New("down") }}
	_, stop := running(t, cfg, Config{Name: "good"}, box)
	running(t, cfg, Config{Name: "hung"}, hung)
	send(t, out, alert(drill, 1, event.Raised), alert(lathe, 1, event.Raised), alert(drill, 2, event.Cleared))
	await.Until(t, "three events came", box.has(3))
	stop()
	send(t, out, alert(drill, 3, event.Raised))
	again := &mailbox{}
	running(t, cfg, Config{Name: "good"}, again)
	send(t, out, alert(drill, 4, event.Cleared))
	await.Until(t, "two more came", again.has(2))
	if got := again.ids; !strings.HasSuffix(got[0], "/3/raised") || !strings.HasSuffix(got[1], "/4/cleared") {
		t.Errorf("%v", got)
	}
	for _, id := range box.ids {
		if strings.HasSuffix(id, "/0/raised") {
			t.Errorf("%s was there before the route", id)
		}
	}
	if len(hung.ids) > 0 {
		t.Errorf("the dead receiver took %v", hung.ids)
	}
}

// Two monitors share the partitions of a route, and one that comes late gets no
// history either.
func TestTwoMonitors(t *testing.T) {
	t.Parallel()
	cfg, out := startBroker(t, 4)
	var boxes [2]mailbox
	running(t, cfg, Config{Name: "cmms"}, &boxes[0])
	running(t, cfg, Config{Name: "cmms"}, &boxes[1])
	var want []string
	for n := range 20 {
		m := alert(fmt.Sprintf("acme/spore/bay2/line1/m%d", n), n, event.Raised)
		want = append(want, string(m.Header("ce_id")))
		send(t, out, m)
	}
	all := func() map[string]bool {
		got := make(map[string]bool)
		for i := range boxes {
			boxes[i].mu.Lock()
			for _, id := range boxes[i].ids {
				got[id] = true
			}
			boxes[i].mu.Unlock()
		}
		return got
	}
	await.Until(t, "all came to one of them", func() bool { return len(all()) == len(want) })
}

// Kafka to Kafka: the message as it was.
func TestKafkaRoute(t *testing.T) {
	t.Parallel()
	cfg, out := startBroker(t, 1)
	other, _ := startBroker(t, 1)
	running(t, cfg, Config{Name: "copy", Receivers: Receivers{Kafka: &kafkaConfig{Topic: bus.TopicResults, Cluster: bus.Settings{Brokers: other.Brokers}}}}, nil)
	sent := alert(drill, 1, event.Raised)
	send(t, out, sent)
	enough := errors.New("enough")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := bus.ReadTopic(ctx, other, bus.TopicResults, bus.FirstOffset, true, func(m bus.Message) error {
		if m.Key != sent.Key || string(m.Value) != string(sent.Value) || fmt.Sprint(m.Headers) != fmt.Sprint(sent.Headers) {
			t.Errorf("%+v, want %+v", m, sent)
		}
		return enough
	})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}

// A refused alert lies on the dead-letter topic, and the ones behind it go on.
func TestRefusedOnKafka(t *testing.T) {
	t.Parallel()
	cfg, out := startBroker(t, 1)
	box := &mailbox{says: func(e *Event, _ int) error {
		if strings.HasSuffix(e.ID, "/1/raised") {
			return &refusal{errors.New("the receiver answers 422 Unprocessable Entity")}
		}
		return nil
	}}
	running(t, cfg, Config{Name: "cmms"}, box)
	send(t, out, alert(drill, 1, event.Raised), alert(drill, 2, event.Cleared))
	await.Until(t, "the second came", box.has(1))
	err := bus.ReadTopic(t.Context(), cfg, bus.TopicDead, bus.FirstOffset, false, func(m bus.Message) error {
		l, err := bus.OpenLetter(m)
		if err != nil || l.Reason != "route cmms: the receiver answers 422 Unprocessable Entity" || l.Message.Topic != bus.TopicAlerts || l.Message.Offset != 0 {
			t.Errorf("%+v, %v", l, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// narrow is a topic of dead letters that takes messages up to a size.
type narrow struct {
	drawer
	most int
}

func (n *narrow) Send(ctx context.Context, msgs []bus.Message) error {
	if msgs[0].Size() > n.most {
		return fmt.Errorf("bus: %w", bus.ErrTooLarge)
	}
	return n.drawer.Send(ctx, msgs)
}

// A message that is too large for the topic of dead letters, or damaged, holds up no alert behind it. Its letter does not
// claim to be whole: it would be sent again without its body.
func TestSetAsideBare(t *testing.T) {
	large := alert(drill, 1, event.Raised)
	large.Value = []byte(strings.Repeat("no JSON ", 500))
	box := &mailbox{}
	b := newBench(t, Config{}, box)
	p := newTape(large, bus.Message{Topic: bus.TopicAlerts, Damage: errors.New("torn")}, alert(drill, 2, event.Cleared))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	p.dry = stop
	dead := &narrow{most: 3000}
	if err := b.serve(ctx, p, dead); !errors.Is(err, context.Canceled) || len(box.ids) != 1 || len(dead.letters) != 2 {
		t.Fatalf("%v; delivered %v, %d letters", err, box.ids, len(dead.letters))
	}
	for i, want := range []string{"too large", "torn"} {
		l, err := bus.OpenLetter(dead.letters[i])
		if err != nil || l.Whole() == nil || l.Message.Offset != int64(i) || !strings.Contains(l.Reason, want) {
			t.Errorf("%+v, %v: whole %v", l, err, l.Whole() == nil)
		}
	}
}

package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/broker/brokertest"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/logtest"
	"github.com/flank-tcm/flank/schemas"
)

// kafka is a sender that a test holds up or lets fail.
type kafka struct {
	mu     sync.Mutex
	fail   error
	got    []event.Audit
	sends  chan struct{} // one for each call, if not nil
	hold   chan struct{} // a call waits until it is closed, if not nil
	closed bool
}

func (k *kafka) Send(ctx context.Context, msgs []bus.Message) error {
	if k.sends != nil {
		k.sends <- struct{}{}
	}
	if k.hold != nil {
		select {
		case <-k.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail != nil {
		return k.fail
	}
	for _, m := range msgs {
		var a event.Audit
		if err := json.Unmarshal(m.Value, &a); err != nil {
			return err
		}
		k.got = append(k.got, a)
	}
	return nil
}

func (k *kafka) Close() { k.closed = true }

func (k *kafka) set(fail error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fail = fail
}

// clock is a time that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func ack(name string) event.Audit {
	return event.Audit{
		Actor:  event.Actor{Name: name, Role: "operator", Identified: event.BySession, From: "192.0.2.7"},
		Action: event.Acknowledge, Machine: "acme/usk25", Alarm: "A-K3ZQ7M2P", Command: "c1", Outcome: event.Accepted,
	}
}

// A record is on the topic and in the log, in the form of its schema, with who wrote it.
func TestRecord(t *testing.T) {
	t.Parallel()
	var log logtest.Buffer
	k, c := &kafka{}, newClock()
	w := open(k, "monitor", zerolog.New(&log), c.now)
	w.Record(ack("kim"))
	denied := ack("vera")
	denied.Outcome, denied.Reason = event.Denied, "the role viewer may not"
	w.Record(denied)
	w.Close()
	if len(k.got) != 2 || !k.closed {
		t.Fatalf("%d records on the topic, closed %v", len(k.got), k.closed)
	}
	for _, a := range k.got {
		if err := schemas.Validate(schemas.Audit, event.JSON(a)); err != nil {
			t.Error(err)
		}
		if a.Program != "monitor" || a.Host != Host() || a.ID == "" || !a.At.Equal(c.now()) {
			t.Errorf("%+v", a)
		}
	}
	if k.got[1].Reason != "the role viewer may not" || k.got[0].ID == k.got[1].ID {
		t.Errorf("%+v", k.got)
	}
	for _, want := range []string{
		`"level":"info","event":"audit"`, `"action":"acknowledge","outcome":"accepted","identified":"session","name":"kim"`, `"alarm":"A-K3ZQ7M2P"`,
		`"level":"warn","event":"audit"`, `"outcome":"refused","identified":"session","name":"vera"`, `"reason":"the role viewer may not"`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s\n%s", want, log.String())
		}
	}
	if s := w.Stats(); s != (Stats{Accepted: 1, Refused: 1}) {
		t.Errorf("%+v", s)
	}
	var none *Writer
	none.Record(ack("kim"))
	none.Close()
	if none.Stats() != (Stats{}) {
		t.Error("a nil writer has counted")
	}
}

// No secret reaches the topic or the log, in whichever field someone gives it.
func TestRecordKeepsNoSecret(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"QX5GZ7J2M4T6WYBNC3DKLRA7UE", "mB2qEiQ0sB9tWq5lYkq0x_Zt7-4bq1kJm3o2fQxJ9aU", "8f14e45fceea167a5a36dedd4bea2543"} {
		var a event.Audit
		fill := func(v reflect.Value) {
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.Type.Kind() == reflect.String && f.Name != "Command" { // an id is as random as a token
					v.Field(i).SetString("by " + secret)
				}
			}
		}
		fill(reflect.ValueOf(&a).Elem())
		fill(reflect.ValueOf(&a.Actor).Elem())
		var log logtest.Buffer
		k := &kafka{}
		w := open(k, "monitor", zerolog.New(&log), time.Now)
		w.Record(a)
		w.Close()
		if text := fmt.Sprintf("%+v", k.got); len(k.got) != 1 || strings.Contains(text, secret) {
			t.Errorf("the topic has %s", text)
		}
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log has %s", log.String())
		}
	}
}

// A broker that is away holds up no one: what does not fit is counted, in the log, and not on the
// topic. What waited is sent when the broker is back.
func TestRecordDoesNotBlock(t *testing.T) {
	t.Parallel()
	var log logtest.Buffer
	k := &kafka{sends: make(chan struct{}, 1000), hold: make(chan struct{})}
	w := open(k, "monitor", zerolog.New(&log), newClock().now)
	w.Record(ack("first"))
	<-k.sends // it is being sent, and the queue is empty
	for range waiting + 7 {
		w.Record(ack("kim"))
	}
	if s := w.Stats(); s.Lost != 7 || s.Accepted != waiting+8 {
		t.Errorf("%+v", s)
	}
	if n := strings.Count(log.String(), `"event":"audit_lost"`); n != 1 {
		t.Errorf("%d lines say that records are lost", n)
	}
	if n := strings.Count(log.String(), `"event":"audit",`); n != waiting+8 {
		t.Errorf("the log has %d records", n)
	}
	close(k.hold)
	w.Close()
	if len(k.got) != waiting+1 {
		t.Errorf("the topic has %d records", len(k.got))
	}
}

// A broker that does not come back does not hold up the end of the program.
func TestCloseEnds(t *testing.T) { synctest.Test(t, closeEnds) }

func closeEnds(t *testing.T) {
	k := &kafka{sends: make(chan struct{}, 10), hold: make(chan struct{})}
	w := open(k, "monitor", zerolog.Nop(), time.Now)
	w.Record(ack("kim"))
	<-k.sends
	w.Record(ack("kim"))
	w.Close()
	if s := w.Stats(); s.Lost != 2 {
		t.Errorf("%+v", s)
	}
	w.Record(ack("late"))
	if s := w.Stats(); s.Lost != 3 {
		t.Errorf("%+v", s)
	}
}

// Without the right to write, a program says so once, goes on, and writes again when it may.
func TestMissingRight(t *testing.T) {
	t.Parallel()
	var log logtest.Buffer
	k, c := &kafka{sends: make(chan struct{}, 10)}, newClock()
	k.set(errors.New("bus: write topic tcm.audit.v1: not allowed"))
	w := open(k, "monitor", zerolog.New(&log), c.now)
	until := func(lost uint64) {
		t.Helper()
		await.Until(t, fmt.Sprint(lost, " lines are lost"), func() bool { return w.Stats().Lost == lost })
	}
	w.Record(ack("kim"))
	until(1)
	w.Record(ack("kim")) // too soon to ask again
	until(2)
	c.pass(retryRefused)
	w.Record(ack("kim"))
	until(3)
	if n := strings.Count(log.String(), `"event":"audit_unwritten"`); n != 1 {
		t.Errorf("%d lines say that the right is missing\n%s", n, log.String())
	}
	k.set(nil)
	c.pass(retryRefused)
	w.Record(ack("vera"))
	w.Close()
	if len(k.got) != 1 || k.got[0].Actor.Name != "vera" || !strings.Contains(log.String(), `"event":"audit_written"`) || len(k.sends) != 3 {
		t.Errorf("%d calls, %+v\n%s", len(k.sends), k.got, log.String())
	}
}

// Of refusals that come too fast some have a record, which says how many have none. Other actions
// keep theirs.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	k, c := &kafka{}, newClock()
	w := open(k, "monitor", zerolog.Nop(), c.now)
	wrong := event.Audit{Action: event.Login, Outcome: event.Denied, Reason: "wrong token"}
	for range 100 {
		w.Record(wrong)
	}
	for range 100 {
		w.Record(ack("kim"))
	}
	c.pass(refusalEvery)
	w.Record(wrong)
	w.Close()
	if s := w.Stats(); s != (Stats{Accepted: 100, Refused: 101, Unrecorded: 80}) {
		t.Errorf("%+v", s)
	}
	if last := k.got[len(k.got)-1]; len(k.got) != 20+100+1 || last.Action != event.Login || last.More != 80 {
		t.Errorf("%d records, the last one is %+v", len(k.got), last)
	}
}

// Records come back from Kafka, and messages that are not records are counted. A missing topic is an
// error, soon.
func TestTopic(t *testing.T) {
	t.Parallel()
	broker := brokertest.Start(t)
	cfg := broker.Config("test")
	if err := Write(t.Context(), cfg, "monitor", ack("early")); !errors.Is(err, bus.ErrNoTopic) {
		t.Errorf("without a topic: %v", err)
	}
	if _, err := bus.Apply(t.Context(), cfg, 1, 1); err != nil {
		t.Fatal(err)
	}
	if err := Write(t.Context(), cfg, "trainer", ack("anna")); err != nil {
		t.Fatal(err)
	}
	w, err := Open(cfg, "monitor", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	w.Record(ack("kim"))
	w.Close()
	p, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	foreign := Message(ack("x").Clean())
	foreign.Value = []byte("no JSON")
	if err := p.Send(t.Context(), []bus.Message{foreign, {Topic: bus.TopicAudit, Key: "stray", Value: []byte("{}")}}); err != nil {
		t.Fatal(err)
	}
	var names []string
	skipped, err := Read(t.Context(), cfg, time.Time{}, func(a event.Audit) error {
		names = append(names, a.Program+" "+a.Actor.Name)
		return nil
	})
	if err != nil || skipped != 2 || strings.Join(names, ", ") != "trainer anna, monitor kim" {
		t.Errorf("%q, skipped %d, %v", names, skipped, err)
	}
	names = nil
	if _, err := Read(t.Context(), cfg, time.Now().Add(time.Hour), func(a event.Audit) error { names = append(names, a.ID); return nil }); err != nil || len(names) > 0 {
		t.Errorf("of the future: %q, %v", names, err)
	}
}

// A command in a terminal is its user's, under the name that was typed.
func TestTerminal(t *testing.T) {
	a := Terminal("anna")
	if a.Name != "anna" || a.Identified != event.ByTerminal || !strings.HasSuffix(a.From, "@"+Host()) {
		t.Errorf("%+v", a)
	}
	if user, _, _ := strings.Cut(a.From, "@"); Terminal("").Name != user {
		t.Errorf("%+v", Terminal(""))
	}
}

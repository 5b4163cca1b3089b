// Package audit writes and reads the audit: who did what, from where, and whether it was accepted.
//
// A record is an event.Audit. A [Writer] gives each one to the log and to the topic tcm.audit.v1. It
// never blocks who records: it holds a bounded number of records while Kafka is away, and counts and
// logs what it loses. Of refusals that come too fast it keeps some, and how many there were: someone
// who sends nonsense must not push the other records off the topic. A program without the right to
// write the topic goes on, with the log alone, and says so once.
package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
)

// Bounds of a writer.
const (
	waiting      = 1024             // records that wait for Kafka
	atOnce       = 128              // records of one request
	flushWait    = 3 * time.Second  // for the last records when the program ends
	writeWait    = 5 * time.Second  // for the one record of a command
	retryRefused = time.Minute      // after Kafka has refused records: the right may be given, or the topic made
	lostEvery    = 10 * time.Minute // between two lines about lost records

	refusalsAtOnce = 20              // of one action
	refusalEvery   = 5 * time.Second // then
)

// Writer writes the records of one program. Its methods are safe for concurrent use. A nil
// Writer writes nothing.
type Writer struct {
	program, host string
	log           zerolog.Logger
	out           sender
	queue         chan event.Audit
	cancel        context.CancelFunc // ends sending
	ended         chan struct{}      // closed when everything is sent or lost
	now           func() time.Time   // replaced by tests

	gate   sync.RWMutex // held while a record is queued
	closed bool

	accepted, refused, unrecorded, lost atomic.Uint64

	mu       sync.Mutex
	budgets  map[event.Action]*budget
	lostSaid time.Time // when the log last had a line about lost records
	lostOf   uint64    // how many were lost by then
}

// sender is what a Writer needs of a bus.Producer.
type sender interface {
	Send(ctx context.Context, msgs []bus.Message) error
	Close()
}

// Open returns a Writer for a program, such as monitor. It connects when it has something to write.
func Open(cfg bus.Config, program string, log zerolog.Logger) (*Writer, error) {
	out, err := bus.NewProducer(cfg)
	if err != nil {
		return nil, err
	}
	return open(out, program, log, time.Now), nil
}

func open(out sender, program string, log zerolog.Logger, now func() time.Time) *Writer {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Writer{
		program: program, host: Host(), log: log, out: out, queue: make(chan event.Audit, waiting), cancel: cancel,
		ended: make(chan struct{}), now: now, budgets: make(map[event.Action]*budget),
	}
	go w.send(ctx)
	return w
}

// Record gives a record to the log and to the topic. It sets the id, the time unless there is one,
// the program and the computer, and cleans every text. It does not wait.
func (w *Writer) Record(a event.Audit) {
	if w == nil {
		return
	}
	a = stamp(a, w.program, w.host, w.now)
	if a.Outcome == event.Accepted {
		w.accepted.Add(1)
	} else if w.refused.Add(1); !w.take(&a) {
		w.unrecorded.Add(1)
		return
	}
	logRecord(w.log, a)
	w.gate.RLock()
	defer w.gate.RUnlock()
	if w.closed {
		w.lose(1, errors.New("the program ends"))
		return
	}
	select {
	case w.queue <- a:
	default:
		w.lose(1, fmt.Errorf("%d records wait for Kafka already", waiting))
	}
}

// stamp gives a record its id, the program and its computer, and the time unless there is one. It cleans every text.
func stamp(a event.Audit, program, host string, now func() time.Time) event.Audit {
	a.ID, a.Program, a.Host = event.NewCommandID(), program, host
	if a.At.IsZero() {
		a.At = now()
	}
	return a.Clean()
}

// Log writes a record to a log alone: it sets the id and cleans every text.
func Log(log zerolog.Logger, a event.Audit) { logRecord(log, stamp(a, "", "", time.Now)) }

func logRecord(log zerolog.Logger, a event.Audit) {
	ev := log.Info()
	if a.Outcome == event.Denied {
		ev = log.Warn()
	}
	ev = ev.Str("event", "audit").Str("id", a.ID).Str("action", string(a.Action)).Str("outcome", string(a.Outcome)).Str("identified", string(a.Actor.Identified))
	for _, f := range []struct{ key, value string }{
		{"name", a.Actor.Name}, {"role", a.Actor.Role}, {"from", a.Actor.From}, {"machine", a.Machine}, {"alarm", a.Alarm}, {"model", a.Model},
		{"object", a.Object}, {"command", a.Command}, {"reason", a.Reason},
	} {
		if f.value != "" {
			ev = ev.Str(f.key, f.value)
		}
	}
	if a.More > 0 {
		ev = ev.Uint64("more", a.More)
	}
	ev.Msgf("%s by %s: %s", a.Action, cmp.Or(a.Actor.Name, "someone"), a.Outcome)
}

// budget bounds the refusals of one action that have a record.
type budget struct {
	left float64
	last time.Time
	more uint64 // refusals without a record since the last one that has one
}

// take reports whether a refusal gets a record, and sets how many before it did not.
func (w *Writer) take(a *event.Audit) bool {
	now := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.budgets[a.Action] // Clean lets only known actions pass
	if b == nil {
		b = &budget{left: refusalsAtOnce, last: now}
		w.budgets[a.Action] = b
	}
	b.left = min(refusalsAtOnce, b.left+max(0, now.Sub(b.last).Seconds())/refusalEvery.Seconds())
	b.last = now
	if b.left < 1 {
		b.more++
		return false
	}
	b.left--
	a.More, b.more = b.more, 0
	return true
}

// lose counts records that the topic will not have, and logs that at most every ten minutes.
func (w *Writer) lose(n int, why error) {
	all := w.lost.Add(uint64(n))
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if !w.lostSaid.IsZero() && now.Sub(w.lostSaid) < lostEvery {
		return
	}
	w.log.Warn().Err(why).Str("event", "audit_lost").Uint64("records", all-w.lostOf).
		Msg("records of the audit are in this log and not on " + bus.TopicAudit)
	w.lostSaid, w.lostOf = now, all
}

// batch returns the messages of what waits, at most as much as is sent at once.
func (w *Writer) batch(first event.Audit) []bus.Message {
	batch := []bus.Message{Message(first)}
	for len(batch) < atOnce && len(w.queue) > 0 {
		batch = append(batch, Message(<-w.queue))
	}
	return batch
}

// send sends what is recorded until the queue is closed and empty, or ctx ends.
func (w *Writer) send(ctx context.Context) {
	defer close(w.ended)
	refusing := false
	var until time.Time // after a refusal of Kafka nothing is sent before
	for first := range w.queue {
		batch := w.batch(first)
		if refusing && w.now().Before(until) {
			w.lost.Add(uint64(len(batch)))
			continue
		}
		err := w.out.Send(ctx, batch)
		switch {
		case err == nil && refusing:
			refusing = false
			w.log.Info().Str("event", "audit_written").Msg("the audit is on " + bus.TopicAudit + " again")
		case err == nil:
		case ctx.Err() != nil:
			w.lose(len(batch), err)
		default:
			w.lost.Add(uint64(len(batch)))
			until = w.now().Add(retryRefused)
			if !refusing {
				refusing = true
				w.log.Warn().Err(err).Str("event", "audit_unwritten").
					Msg("the audit is in this log only; everything else goes on. Create the topic with `ingest topics apply`, and give this program the right Write on " + bus.TopicAudit)
			}
		}
	}
}

// Close sends what waits, for some seconds at most, and ends the writer. It may be called once.
func (w *Writer) Close() {
	if w == nil {
		return
	}
	w.gate.Lock()
	w.closed = true
	close(w.queue)
	w.gate.Unlock()
	timer := time.AfterFunc(flushWait, w.cancel)
	<-w.ended
	timer.Stop()
	w.cancel()
	w.out.Close()
}

// Stats counts what a Writer did.
type Stats struct {
	Accepted, Refused uint64 // actions
	Unrecorded        uint64 // of the refused ones, those without a record of their own
	Lost              uint64 // records that are in the log and not on the topic
}

// Stats returns the counts. A nil Writer has none.
func (w *Writer) Stats() Stats {
	if w == nil {
		return Stats{}
	}
	return Stats{w.accepted.Load(), w.refused.Load(), w.unrecorded.Load(), w.lost.Load()}
}

// Message returns the message of a record.
func Message(a event.Audit) bus.Message {
	return envelope.Event(bus.TopicAudit, a.ID, a.Program, event.AuditType, a.At, event.JSON(a))
}

// Write puts one record on the topic, for a command that ends then, and returns why it could not.
// It waits some seconds at most, also after ctx has ended: an action that was broken off is recorded too.
func Write(ctx context.Context, cfg bus.Config, program string, a event.Audit) error {
	out, err := bus.NewProducer(cfg)
	if err != nil {
		return err
	}
	defer out.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeWait)
	defer cancel()
	return out.Send(ctx, []bus.Message{Message(stamp(a, program, Host(), time.Now))})
}

// maxRecord is the longest record that is read, in bytes.
const maxRecord = 64 << 10

// Read calls fn for the records that Kafka got at a time or later, the oldest first. The zero time
// is all. It returns how many messages are not records. Records are as they were sent: anyone who may
// write the topic may have written them. Read ends at the first error of fn.
func Read(ctx context.Context, cfg bus.Config, since time.Time, fn func(event.Audit) error) (skipped int, err error) {
	n, err := bus.Partitions(ctx, cfg, bus.TopicAudit)
	if err != nil {
		return 0, err
	}
	for id := range n {
		err := bus.ReadRange(ctx, cfg, bus.TopicAudit, id, bus.Range{Since: since}, func(m bus.Message) error {
			var a event.Audit
			if string(m.Header("ce_type")) != event.AuditType || len(m.Value) > maxRecord || json.Unmarshal(m.Value, &a) != nil || a.ID == "" {
				skipped++
				return nil
			}
			return fn(a)
		})
		if err != nil {
			return skipped, err
		}
	}
	return skipped, nil
}

// Host returns the name of this computer.
func Host() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// User returns the name of the user that the program runs as, also where $USER is not set and the
// user has no entry in the system, as in a container: uid 1000.
func User() string {
	if name := os.Getenv("USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return fmt.Sprintf("uid %d", os.Getuid())
}

// Terminal returns the actor of a command in a terminal: the name that was typed, and the user and
// the computer. Without a name it is the user's.
func Terminal(name string) event.Actor {
	who := User()
	return event.Actor{Name: cmp.Or(name, who), Identified: event.ByTerminal, From: who + "@" + Host()}
}

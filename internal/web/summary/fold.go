package summary

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/flank-tcm/flank/internal/event"
)

// Position names a partition of a topic, and the topic by the id that Kafka gave it.
type Position struct {
	Topic     string
	Partition int
	ID        [16]byte // zero if it is not known
}

// Message is one message of a topic. One of the pointers is set; the store keeps what it points
// to, which must not change any more.
type Message struct {
	At       time.Time // when Kafka got it
	Offset   int64
	Result   *event.Result
	Shadow   *event.Result // of a model on trial
	Alert    *event.Alert
	Advisory *event.Advisory
	Evidence *event.Evidence
}

// Fold folds messages of a partition, in order. Next is the offset behind them. It writes what
// waits when that is due. After an error the caller calls Forget, or SetAside if it is
// ErrDamaged, and goes on where Begin says.
func (s *Store) Fold(p Position, next int64, msgs []Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		s.since = s.now()
	}
	for i := range msgs {
		if err := s.fold(&msgs[i]); err != nil {
			return err
		}
		if s.rows >= flushRows && i+1 < len(msgs) {
			s.move(p, msgs[i].Offset+1)
			if err := s.flush(); err != nil {
				return err
			}
			s.since = s.now()
		}
	}
	s.move(p, next)
	if s.due() {
		return s.flush()
	}
	return nil
}

// due reports whether so much waits, or for so long, that it is to be written.
func (s *Store) due() bool {
	return s.results >= flushResults || len(s.events) >= flushEvents || s.rows >= flushRows || s.now().Sub(s.since) >= flushEvery
}

func (s *Store) move(p Position, next int64) {
	k := partitionKey{p.Topic, p.Partition}
	s.offsets[k] = offset{next, p.ID}
	s.moved[k] = true
}

func (s *Store) fold(m *Message) error {
	switch {
	case m.Result != nil:
		s.results++
		return s.foldResult(m.Result, m.At)
	case m.Shadow != nil:
		s.results++
		return s.foldShadow(m.Shadow, m.At)
	case m.Alert != nil:
		return s.foldAlert(m.Alert, m)
	case m.Advisory != nil:
		return s.hold(m.Advisory.Machine, m)
	case m.Evidence != nil && m.Evidence.Incident != "":
		return s.hold(m.Evidence.Machine, m)
	}
	return nil
}

// foldAlert does what an alert says about names and tools, and holds it until it is written.
func (s *Store) foldAlert(a *event.Alert, m *Message) error {
	switch a.State {
	case event.Retired:
		s.names.retire(a.Machine, m.At)
		return nil
	case event.Renamed:
		if a.Was != "" {
			s.names.rename(a.Was, a.Machine, m.At)
		}
	case event.ToolIsNew:
		if a.Command == "" {
			break // its ingester says so: its results name another life
		}
		id, ok := s.names.resolve(a.Machine, m.At)
		if !ok {
			return nil
		}
		of, err := s.machine(id)
		if err != nil {
			return err
		}
		of.renew(a.Tool, m.At)
	}
	return s.hold(a.Machine, m)
}

// heldEvent is an alert, an advisory or evidence that is not written.
type heldEvent struct {
	id uint64 // of the machine
	Message
}

// hold keeps an event until it is written.
func (s *Store) hold(name string, m *Message) error {
	id, ok := s.names.resolve(name, m.At)
	if !ok {
		return nil
	}
	of, err := s.machine(id)
	if err != nil {
		return err
	}
	if m.Alert != nil {
		of.head.Alarms.Alert(m.Alert, m.At)
		of.dirty = true
	}
	s.events = append(s.events, heldEvent{id, *m})
	return nil
}

// write writes the event.
func (e *heldEvent) write(tx *bbolt.Tx) error {
	b, err := tx.Bucket(inMachines).CreateBucketIfNotExists(idKey(e.id))
	if err != nil {
		return err
	}
	switch {
	case e.Alert != nil:
		return e.writeAlert(tx, b)
	case e.Advisory != nil:
		return e.writeAdvisory(b)
	}
	_, err = e.store(b, e.Evidence.Incident, e.Evidence.ID, e.Evidence)
	return err
}

// storedEvent is an event of an alarm, and where it lies among the others.
type storedEvent struct {
	At       int64           `json:"at"` // when Kafka got it, Unix nanoseconds
	Offset   int64           `json:"offset"`
	Alert    json.RawMessage `json:"alert,omitempty"`
	Evidence json.RawMessage `json:"evidence,omitempty"`
}

// openEvent returns the event that store kept.
func openEvent(v []byte) (e storedEvent, err error) {
	text, err := unpack(v)
	if err == nil {
		err = json.Unmarshal(text, &e)
	}
	if err != nil {
		err = fmt.Errorf("%w: an event of an alarm: %w", ErrDamaged, err)
	}
	return e, err
}

// sortEvents puts events into the order in which they were sent.
func sortEvents(all []storedEvent) {
	slices.SortStableFunc(all, func(a, b storedEvent) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Offset, b.Offset)) })
}

// store keeps an event of an alarm. It reports false if it is there already.
func (e *heldEvent) store(b *bbolt.Bucket, incident, id string, v any) (isNew bool, err error) {
	in, err := b.CreateBucketIfNotExists(inEvents)
	if err != nil {
		return false, err
	}
	key := append(append([]byte(incident), 0), id...)
	if len(key) > bbolt.MaxKeySize-8 || in.Get(key) != nil { // the key of its alarm begins with a time
		return false, nil
	}
	stored := storedEvent{At: e.At.UnixNano(), Offset: e.Offset}
	if e.Alert != nil {
		stored.Alert = event.JSON(v)
	} else {
		stored.Evidence = event.JSON(v)
	}
	packed, err := pack(event.JSON(stored))
	if err != nil {
		return false, err
	}
	return true, in.Put(key, packed)
}

// writeAlert keeps an alert, and brings the record of its alarm up to date.
func (e *heldEvent) writeAlert(tx *bbolt.Tx, b *bbolt.Bucket) error {
	a := e.Alert
	if a.Alarm != "" && !a.Aside() {
		if err := b.Put(keyAlert, event.JSON(a)); err != nil {
			return err
		}
	}
	if a.Incident == "" {
		return nil
	}
	isNew, err := e.store(b, a.Incident, a.ID, a)
	if err != nil || !isNew {
		return err
	}
	in, err := b.CreateBucketIfNotExists(inAlarms)
	if err != nil {
		return err
	}
	key, alarm, err := e.alarm(tx, in)
	if err != nil {
		return err
	}
	alarm.apply(a)
	return in.Put(key, event.JSON(alarm))
}

// alarm returns the key and the record of the alarm that an alert is of, which may be new.
func (e *heldEvent) alarm(tx *bbolt.Tx, in *bbolt.Bucket) (key []byte, alarm Alarm, err error) {
	a, names := e.Alert, tx.Bucket(inByName)
	key = append(key, names.Get([]byte(a.Incident))...)
	if len(key) > 8 && string(key[:8]) == string(idKey(e.id)) {
		key = key[8:]
		if err := json.Unmarshal(in.Get(key), &alarm); err != nil {
			return nil, alarm, fmt.Errorf("%w: record of alarm %s: %w", ErrDamaged, a.Incident, err)
		}
		return key, alarm, nil
	}
	key = append(timeKey(a.At.UnixMilli()), a.Incident...)
	if err := names.Put([]byte(a.Incident), append(idKey(e.id), key...)); err != nil {
		return nil, alarm, err
	}
	alarm = Alarm{Incident: a.Incident, Tool: a.Tool, Since: a.Since, Raised: a.At}
	return key, alarm, tx.Bucket(inByTime).Put(key, idKey(e.id))
}

const maxChanges = 32

// apply brings the alarm up to date with an alert of it.
func (alarm *Alarm) apply(a *event.Alert) {
	if len(alarm.Changes) == maxChanges { // the first one stays
		alarm.Changes = append(alarm.Changes[:1], alarm.Changes[2:]...)
	}
	alarm.Changes = append(alarm.Changes, Change{a.At, a.State, a.By})
	switch a.State {
	case event.MarkedFalse, event.UnmarkedFalse:
		alarm.FalseAlarm = a.State == event.MarkedFalse
		return
	case event.Refused:
		return
	case event.Raised:
		if alarm.Of == 0 {
			alarm.Faulty, alarm.Of, alarm.Since, alarm.Raised = a.Faulty, a.Of, a.Since, a.At
			if a.Wear != nil {
				w := a.Wear.WearUM
				alarm.WearUM = &w
			}
		}
		alarm.Cleared = time.Time{} // its tool was put in again
	case event.Cleared:
		alarm.Cleared = a.At
	case event.Acknowledged:
		alarm.FalseAlarm = alarm.FalseAlarm || a.FalseAlarm
	}
	alarm.Severity = a.Severity
	if alarm.State = a.Alarm; !alarm.Cleared.IsZero() {
		alarm.State = "normal"
	}
}

// adviceKey names an advisory among the open ones.
func adviceKey(a *event.Advisory) []byte {
	return append(append([]byte(a.Kind), 0), a.Subject...)
}

// writeAdvisory keeps an advisory, and from when to when it was open.
func (e *heldEvent) writeAdvisory(b *bbolt.Bucket) error {
	a := e.Advisory
	spans, err := b.CreateBucketIfNotExists(inAdvice)
	if err != nil {
		return err
	}
	open, err := b.CreateBucketIfNotExists(inOpenNow)
	if err != nil {
		return err
	}
	key := adviceKey(a)
	if len(key) > bbolt.MaxKeySize/2 {
		return nil
	}
	var before event.Advisory
	if v := open.Get(key); v != nil {
		if err := json.Unmarshal(v, &before); err != nil {
			return fmt.Errorf("%w: an open advisory: %w", ErrDamaged, err)
		}
	}
	span := AdvisorySpan{Kind: a.Kind, Subject: a.Subject, From: a.Since}
	switch {
	case a.State == event.Raised:
		if before.ID != "" && before.Since.Before(a.Since) { // the end of that one is gone
			was := AdvisorySpan{a.Kind, a.Subject, before.Since, a.Since}
			if err := spans.Put(append(timeKey(was.From.UnixMilli()), key...), event.JSON(was)); err != nil {
				return err
			}
		}
		if err := open.Put(key, event.JSON(a)); err != nil {
			return err
		}
	case before.ID == "": // the beginning is gone
		return nil
	default:
		span.From, span.To = before.Since, a.At
		if err := open.Delete(key); err != nil {
			return err
		}
	}
	return spans.Put(append(timeKey(span.From.UnixMilli()), key...), event.JSON(span))
}

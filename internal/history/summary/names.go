package summary

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/flank-tcm/flank/internal/event"
)

// goneName is what became of the name of a machine. Results and alerts are read from two
// topics: a result may be folded after the alert that follows it.
type goneName struct {
	Retired time.Time `json:"retired,omitzero"` // when Kafka got that; zero: it was not
	Renamed time.Time `json:"renamed,omitzero"` // likewise
	To      string    `json:"to,omitempty"`     // the name after that
	ID      uint64    `json:"id,omitempty"`     // of the retired machine, until it is removed
}

// retiredFor is how long the rows of a retired machine stay, hidden: the alert that it was
// renamed may still come.
const retiredFor = time.Hour

// resolve returns the machine that had a name at a time, which may be new. It reports false if
// that machine was retired and is removed.
func (s *Store) resolve(name string, at time.Time) (id uint64, ok bool) {
	for hops := 0; hops < 16; hops++ {
		g, ok := s.gone[name]
		if !ok || g.To == "" || at.After(g.Renamed) {
			break
		}
		name, at = g.To, g.Renamed.Add(1)
	}
	if g, ok := s.gone[name]; ok && !at.After(g.Retired) {
		return g.ID, g.ID != 0
	}
	id, ok = s.names[name]
	if !ok {
		s.nextID++
		id = s.nextID
		s.names[name] = id
		s.renamed = true
	}
	return id, true
}

// retire hides a machine.
func (s *Store) retire(name string, at time.Time) {
	g := s.gone[name]
	if !at.After(g.Retired) {
		return // it is known
	}
	g.Retired = at
	if id, ok := s.names[name]; ok {
		if g.ID != 0 {
			s.drops = append(s.drops, g.ID)
		}
		g.ID = id
		delete(s.names, name)
	}
	s.gone[name] = g
	s.renamed = true
}

// rename gives what the store holds of one machine to another name.
func (s *Store) rename(was, name string, at time.Time) error {
	g := s.gone[was]
	if was == name || !at.After(g.Renamed) {
		return nil // it is known
	}
	id := g.ID
	if id == 0 {
		id = s.names[was]
	}
	own, both := s.names[name]
	if both && id != 0 && own != id {
		if err := s.absorb(id, own); err != nil {
			return err
		}
	}
	if g.ID == 0 {
		delete(s.names, was)
	}
	g.ID, g.To, g.Renamed = 0, name, at
	s.gone[was] = g
	s.renamed = true
	if id != 0 { // else its results come later, if at all
		s.names[name] = id
	}
	return nil
}

// absorb adds the rows and alarms of a machine to another one, which is the same under its old name, and
// removes it. It writes what waits first, so the offsets must be those
// before the message that is being folded.
func (s *Store) absorb(into, from uint64) error {
	if err := s.flush(); err != nil {
		return err
	}
	s.since = s.now()
	a, err := s.machine(into)
	if err != nil {
		return err
	}
	b, err := s.machine(from)
	if err != nil {
		return err
	}
	a.dirty = true
	ids := make(map[uint32]uint32)
	return s.safely(func() error {
		return s.db.View(func(tx *bbolt.Tx) error {
			s.absorbLives(tx, a, b, ids)
			s.absorbRows(tx, a, b, inMinutes, a.minutes, ids)
			s.absorbRows(tx, a, b, inHours, a.hours, ids)
			s.absorbHoles(tx, a, b, ids)
			s.absorbUsual(tx, a, b, ids)
			s.absorbTallies(tx, a, b)
			absorbEpochs(a.head.Epochs, b.head.Epochs)
			absorbEpochs(a.head.Shadows, b.head.Shadows)
			a.head.Strip = append(a.head.Strip, b.head.Strip...)
			slices.SortStableFunc(a.head.Strip, func(x, y stripe) int { return int(min(max(x.At-y.At, -1), 1)) })
			a.head.Strip = a.head.Strip[max(len(a.head.Strip)-MaxStrip, 0):]
			if b.head.LastAt > a.head.LastAt {
				a.head.Last, a.head.LastAt = b.head.Last, b.head.LastAt
			}
			a.head.Newest = max(a.head.Newest, b.head.Newest)
			s.drops = append(s.drops, from)
			return s.absorbEvents(tx, into, from)
		})
	})
}

// absorbEpochs adds epochs that are not there.
func absorbEpochs(into, from map[string]*epoch) {
	for name, e := range from {
		if into[name] == nil {
			into[name] = e
		}
	}
}

// absorbEvents holds the alerts and the evidence of one machine as events of another.
func (s *Store) absorbEvents(tx *bbolt.Tx, into, from uint64) error {
	b := bucketOf(tx, from, inEvents)
	if b == nil {
		return nil
	}
	var all []storedEvent
	err := b.ForEach(func(_, v []byte) error {
		e, err := openEvent(v)
		all = append(all, e)
		return err
	})
	sortEvents(all)
	for _, e := range all {
		held := heldEvent{into, Message{At: time.Unix(0, e.At), Offset: e.Offset}}
		if e.Alert != nil {
			held.Alert = new(event.Alert)
			err = errors.Join(err, json.Unmarshal(e.Alert, held.Alert))
		} else {
			held.Evidence = new(event.Evidence)
			err = errors.Join(err, json.Unmarshal(e.Evidence, held.Evidence))
		}
		s.events = append(s.events, held)
	}
	return err
}

// absorbLives gives the lives of b new ids in a.
func (s *Store) absorbLives(tx *bbolt.Tx, a, b *machine, ids map[uint32]uint32) {
	lives := bucketOf(tx, b.id, inLives)
	if lives == nil {
		return
	}
	c := lives.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		l := new(life)
		if len(k) != 4 || l.parse(v) != nil {
			continue
		}
		if called := bucketOf(tx, b.id, inCalled); called != nil {
			l.call(called.Get(k))
		}
		a.head.NextLife++
		ids[lifeID(k)] = a.head.NextLife
		a.lives[a.head.NextLife] = l
		a.tools[l.name] = a.head.NextLife
	}
}

func (s *Store) absorbRows(tx *bbolt.Tx, a, b *machine, bucket []byte, rows map[int64]*row, ids map[uint32]uint32) {
	from, own := bucketOf(tx, b.id, bucket), bucketOf(tx, a.id, bucket)
	if from == nil {
		return
	}
	c := from.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		var r row
		t, ok := keyTime(k)
		if !ok || r.parse(v) != nil {
			continue
		}
		r.tool = ids[r.tool]
		into := new(row)
		if own != nil {
			if v := own.Get(k); v != nil {
				_ = into.parse(v)
			}
		}
		into.add(&r)
		rows[t] = into
	}
}

// writeNames writes the names of the machines.
func (s *Store) writeNames(tx *bbolt.Tx) error {
	if !s.renamed {
		return nil
	}
	for _, name := range [...][]byte{inNames, inGone} {
		if err := tx.DeleteBucket(name); err != nil {
			return err
		}
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.names)) {
		if err := tx.Bucket(inNames).Put(nameKey(name), binary.BigEndian.AppendUint64(nil, s.names[name])); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.gone)) {
		if err := tx.Bucket(inGone).Put(nameKey(name), event.JSON(s.gone[name])); err != nil {
			return err
		}
	}
	return nil
}

// nameKey returns a machine's name as a key. Longer names than Kafka's tools take are cut.
func nameKey(name string) []byte { return []byte(name[:min(len(name), bbolt.MaxKeySize)]) }

// drop removes a machine and its alarms.
func drop(tx *bbolt.Tx, id uint64) error {
	b := tx.Bucket(inMachines).Bucket(idKey(id))
	if b == nil {
		return nil
	}
	if alarms := b.Bucket(inAlarms); alarms != nil {
		c := alarms.Cursor()
		for k, _ := c.First(); k != nil; k, _ = c.Next() {
			if err := forgetAlarm(tx, id, k); err != nil {
				return err
			}
		}
	}
	return tx.Bucket(inMachines).DeleteBucket(idKey(id))
}

// forgetAlarm removes an alarm of a machine from the lists of all machines.
func forgetAlarm(tx *bbolt.Tx, id uint64, key []byte) error {
	if of := tx.Bucket(inByTime); bytes.Equal(of.Get(key), idKey(id)) {
		if err := of.Delete(key); err != nil {
			return err
		}
	}
	of := tx.Bucket(inByName)
	if !bytes.HasPrefix(of.Get(key[8:]), idKey(id)) {
		return nil // a machine of the same incident
	}
	return of.Delete(key[8:])
}

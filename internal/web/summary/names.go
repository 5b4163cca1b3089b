package summary

import (
	"bytes"
	"cmp"
	"time"

	"go.etcd.io/bbolt"

	"github.com/flank-tcm/flank/internal/event"
)

// nameTable is the machines of a store, by the names that they have and had.
type nameTable struct {
	of      map[string]uint64
	gone    map[string]goneName
	last    uint64   // id that was given to a machine
	changed bool     // of or gone, since they were written
	drops   []uint64 // machines that have to be removed
}

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
func (n *nameTable) resolve(name string, at time.Time) (id uint64, ok bool) {
	name, id, known := n.named(name, at)
	if known {
		return id, id != 0
	}
	n.last++
	n.of[name] = n.last
	n.changed = true
	return n.last, true
}

// Knows reports whether the store knows which machine had a name at a time. If it does not, the machine is new, or an
// alert that it was renamed has not been folded yet: results come from another topic than alerts. To fold its results
// before that alert splits its history.
func (s *Store) Knows(name string, at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _, known := s.names.named(name, at)
	return known
}

// named returns under which name a machine goes on that had a name at a time, and its id: 0 if it was retired and is
// removed. It reports false if the store has nothing of it.
func (n *nameTable) named(name string, at time.Time) (now string, id uint64, known bool) {
	for hops := 0; hops < 16; hops++ {
		g, ok := n.gone[name]
		if !ok || g.To == "" || at.After(g.Renamed) {
			break
		}
		name, at = g.To, g.Renamed.Add(1)
	}
	if g, ok := n.gone[name]; ok && !at.After(g.Retired) {
		return name, g.ID, true
	}
	id, known = n.of[name]
	return name, id, known
}

// retire hides a machine.
func (n *nameTable) retire(name string, at time.Time) {
	g := n.gone[name]
	if !at.After(g.Retired) {
		return // it is known
	}
	g.Retired = at
	if id, ok := n.of[name]; ok {
		if g.ID != 0 {
			n.drops = append(n.drops, g.ID)
		}
		g.ID = id
		delete(n.of, name)
	}
	n.gone[name] = g
	n.changed = true
}

// rename gives what the store holds of one machine to another name. If it holds another machine of that name, which
// monitors have forgotten, that one goes on under the name with the day.
func (n *nameTable) rename(was, name string, at time.Time) {
	g := n.gone[was]
	if was == name || !at.After(g.Renamed) {
		return // it is known
	}
	id := g.ID
	if id == 0 {
		id = n.of[was]
		delete(n.of, was)
	}
	if own, both := n.of[name]; both && own != id {
		n.of[name+at.UTC().Format(" (until 2006-01-02 15:04:05)")] = own
		delete(n.of, name)
	}
	g.ID, g.To, g.Renamed = 0, name, at
	n.gone[was] = g
	n.changed = true
	if id != 0 { // else its results come later, if at all
		n.of[name] = id
	}
}

// write writes the names of the machines.
func (n *nameTable) write(tx *bbolt.Tx) error {
	if !n.changed {
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
	return cmp.Or(
		putAll(tx, inNames, n.of, nameKey, idKey),
		putAll(tx, inGone, n.gone, nameKey, func(g goneName) []byte { return event.JSON(g) }))
}

// nameKey returns a machine's name as a key. Longer names than Kafka's tools take are cut.
func nameKey(name string) []byte { return []byte(name[:min(len(name), bbolt.MaxKeySize)]) }

// drop removes a machine and its alarms.
func drop(tx *bbolt.Tx, id uint64) error {
	b := tx.Bucket(inMachines).Bucket(idKey(id))
	if b == nil {
		return nil
	}
	for k := range ascending(b.Bucket(inAlarms), nil) {
		if err := forgetAlarm(tx, id, k); err != nil {
			return err
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

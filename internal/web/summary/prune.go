package summary

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

const (
	pruneEvery = time.Hour
	pruneAt    = 2000 // rows that one transaction removes
)

// prune removes what is older than the store keeps, in several transactions. Ages count from
// the newest window of a machine, so that a recording of last year is kept too, and from now for
// clocks that are ahead. A machine of which no result has come for as long as hours are kept is
// removed, and so is a retired one. s.mu must be held, and everything written.
func (s *Store) prune() error {
	now := s.now()
	err := s.file.safely(func() error {
		for _, name := range slices.Sorted(maps.Keys(s.names.gone)) {
			s.names.prune(name, now)
		}
		var all []limits
		for _, name := range slices.Sorted(maps.Keys(s.names.of)) {
			id := s.names.of[name]
			m, err := s.machine(id)
			if err != nil {
				return err
			}
			if at := max(m.head.LastAt, s.file.lastEvent(id)); at != 0 && now.UnixMilli()-at > keepHours.Milliseconds() {
				s.names.drops, s.names.changed = append(s.names.drops, id), true
				delete(s.names.of, name)
				continue
			}
			l := limitsOf(m, now, s.minute, s.hour)
			err = s.file.db.View(func(tx *bbolt.Tx) error {
				l.holes = holesBefore(bucketOf(tx, id, inHoles), l.holes, maxHoles)
				return nil
			})
			if err != nil {
				return err
			}
			all = append(all, l)
		}
		return s.file.removeAll(all)
	})
	if err != nil {
		return fmt.Errorf("history: %s: %w", s.file.path, err)
	}
	if len(s.names.drops) > 0 || s.names.changed {
		s.since = now
		return s.flush()
	}
	return nil
}

// removeAll removes what is before the limits, in transactions of bounded size.
func (x *file) removeAll(all []limits) error {
	for left := 0; left <= 0; {
		left = pruneAt
		err := x.db.Update(func(tx *bbolt.Tx) error {
			for i := range all {
				n, err := all[i].remove(tx, left)
				if left -= n; err != nil || left <= 0 {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// prune removes a retired machine, and later what is known of its name.
func (n *nameTable) prune(name string, now time.Time) {
	g := n.gone[name]
	if g.ID != 0 && now.Sub(g.Retired) > retiredFor {
		n.drops = append(n.drops, g.ID)
		g.ID = 0
		n.gone[name] = g
		n.changed = true
	}
	if now.Sub(g.Retired) > keepAlarms && now.Sub(g.Renamed) > keepAlarms {
		delete(n.gone, name)
		n.changed = true
	}
}

// lastEvent returns when the last alert of a machine was, in Unix milliseconds; 0 if it has
// none.
func (x *file) lastEvent(id uint64) (at int64) {
	_ = x.get(id, nil, keyAlert, func(v []byte) error {
		var a struct{ At time.Time }
		if json.Unmarshal(v, &a) == nil {
			at = a.At.UnixMilli()
		}
		return nil
	})
	return at
}

// limits are the keys before which a machine's records are removed.
type limits struct {
	id                            uint64
	minutes, hours, holes, alarms []byte
	lives                         int64 // Unix milliseconds
}

// limitsOf returns the limits of a machine whose minutes and hours are kept for so long.
func limitsOf(m *machine, now time.Time, minute, hour time.Duration) limits {
	newest := min(m.head.Newest, now.Unix())
	oldest := newest - int64(hour.Seconds())
	return limits{
		m.id, timeKey(newest - int64(minute.Seconds())), timeKey(oldest), timeKey(oldest * 1000), timeKey(now.Add(-keepAlarms).UnixMilli()), oldest * 1000,
	}
}

// remove removes at most so many records, and returns how many it removed.
func (l *limits) remove(tx *bbolt.Tx, most int) (n int, err error) {
	b := bucketOf(tx, l.id, nil)
	if b == nil {
		return 0, nil
	}
	for _, old := range [...]struct{ bucket, before []byte }{{inMinutes, l.minutes}, {inHours, l.hours}, {inHoles, l.holes}, {inTallies, l.hours}, {inAdvice, l.alarms}} {
		keys := keysBefore(b.Bucket(old.bucket), old.before, most-n)
		if err := deleteAll(b.Bucket(old.bucket), keys); err != nil {
			return n, err
		}
		n += len(keys)
	}
	for _, k := range keysBefore(b.Bucket(inAlarms), l.alarms, most-n) {
		if err := removeAlarm(tx, b, l.id, k); err != nil {
			return n, err
		}
		n++
	}
	removed, err := l.removeLives(b, most-n)
	return n + removed, err
}

// keysBefore returns the first keys of a bucket, which may be nil, that are before a key.
func keysBefore(b *bbolt.Bucket, before []byte, most int) (keys [][]byte) {
	for k := range ascending(b, nil) {
		if bytes.Compare(k, before) >= 0 || len(keys) >= most {
			break
		}
		keys = append(keys, bytes.Clone(k))
	}
	return keys
}

// removeAlarm removes an alarm and its events.
func removeAlarm(tx *bbolt.Tx, b *bbolt.Bucket, id uint64, key []byte) error {
	if err := forgetAlarm(tx, id, key); err != nil {
		return err
	}
	if err := b.Bucket(inAlarms).Delete(key); err != nil {
		return err
	}
	events := b.Bucket(inEvents)
	return deleteAll(events, keysOf(events, key[8:]))
}

// keysOf returns the keys of the events of an alarm.
func keysOf(b *bbolt.Bucket, incident []byte) (keys [][]byte) {
	prefix := append(bytes.Clone(incident), 0)
	for k := range ascending(b, prefix) {
		if !bytes.HasPrefix(k, prefix) {
			break
		}
		keys = append(keys, bytes.Clone(k))
	}
	return keys
}

// removeLives removes tools whose last window is too old. A tool that comes back begins a new
// life.
func (l *limits) removeLives(b *bbolt.Bucket, most int) (n int, err error) {
	var gone [][]byte
	for k, v := range ascending(b.Bucket(inLives), nil) {
		if len(gone) >= most {
			break
		}
		var one life
		if one.parse(v) != nil || one.to >= l.lives {
			continue
		}
		gone = append(gone, bytes.Clone(k))
		if tools := b.Bucket(inTools); tools != nil && bytes.Equal(tools.Get(toolKey(one.name)), k) {
			if err := tools.Delete(toolKey(one.name)); err != nil {
				return 0, err
			}
		}
	}
	for _, name := range [][]byte{inLives, inUsual, inCalled} {
		if in := b.Bucket(name); in != nil {
			if err := deleteAll(in, gone); err != nil {
				return 0, err
			}
		}
	}
	return len(gone), nil
}

func deleteAll(in *bbolt.Bucket, keys [][]byte) error {
	for _, k := range keys {
		if err := in.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Ack says that every record of the current epoch up to and including seq was
// delivered. The cursor file follows within a second of acknowledging, and at
// Close; an error of Ack is about that file and only costs repeats after
// a crash. It panics if seq was not yet durable, so never delivered.
func (s *Spool) Ack(seq uint64) error {
	s.mu.Lock()
	if seq >= s.synced {
		s.mu.Unlock()
		panic(fmt.Sprintf("spool: Ack(%d): only records below %d were delivered", seq, s.synced))
	}
	if s.closed {
		s.mu.Unlock()
		return fmt.Errorf("spool: %w", ErrClosed)
	}
	s.acked = max(s.acked, seq+1)
	s.passHoles()
	acked, sealed := s.acked, len(s.segs) > 1 && s.segs[0].end <= s.acked
	s.mu.Unlock()
	if sealed {
		s.reap()
	}
	s.cursor.Lock()
	due := acked >= s.written+cursorAcks || acked > s.written && s.set.Now().Sub(s.writtenT) >= cursorAge
	s.cursor.Unlock()
	if !due {
		return nil
	}
	return s.writeCursor()
}

// passHoles moves acked over lost records that cannot be delivered. It needs mu.
func (s *Spool) passHoles() {
	for len(s.holes) > 0 && s.holes[0].from <= s.acked {
		s.acked = max(s.acked, s.holes[0].to)
		s.holes = s.holes[1:]
	}
}

// reap removes the segments that were delivered long enough ago.
func (s *Spool) reap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for n < len(s.segs)-1 && s.segs[n].end <= s.acked { // the last one stays: it keeps the next seq
		n++
	}
	if len(s.old)+n == 0 {
		return
	}
	now := s.set.Now()
	var bytes int64 // of what was delivered
	for _, segs := range []segments{s.old, s.segs[:n]} {
		for _, g := range segs {
			bytes += g.size
			if g.done.IsZero() {
				g.done = now
			}
		}
	}
	removed := s.old.removeOld(s.disk, &s.set, now, &bytes)
	all := removed == len(s.old)
	s.old = s.old[removed:]
	if all {
		s.segs = s.segs[s.segs[:n].removeOld(s.disk, &s.set, now, &bytes):]
	}
}

// removeOld removes delivered segments that were kept long enough, the oldest first, and
// returns how many. It stops at the first that stays: one that is missing between others
// would look like damage. Bytes is what all delivered segments take.
func (segs segments) removeOld(d Disk, set *Settings, now time.Time, bytes *int64) (n int) {
	for _, g := range segs {
		if set.keeps(g, now, *bytes) {
			break
		}
		if err := d.Remove(g.name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			break // it may be possible later
		}
		*bytes -= g.size
		n++
	}
	return n
}

// keeps reports whether a delivered segment is to stay, where all of them take so many
// bytes.
func (s *Settings) keeps(g *segment, now time.Time, bytes int64) bool {
	if s.RingBytes > 0 && bytes > s.RingBytes {
		return false
	}
	written := g.written
	if written.IsZero() {
		written = g.done
	}
	return now.Sub(g.done) < s.Keep || s.Ring > 0 && now.Sub(written) < s.Ring
}

// writeCursor makes acked durable.
func (s *Spool) writeCursor() error {
	s.cursor.Lock()
	defer s.cursor.Unlock()
	s.mu.Lock()
	c := cursor{ordinal: s.ordinal, epoch: s.epoch, acked: s.acked}
	s.mu.Unlock()
	if err := c.write(s.disk); err != nil {
		return fmt.Errorf("spool: folder %s: cursor: %w", s.dir, err)
	}
	s.written, s.writtenT = c.acked, s.set.Now()
	return nil
}

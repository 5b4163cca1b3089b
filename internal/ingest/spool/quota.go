package spool

import (
	"errors"
	"fmt"
	"slices"
)

// maxBad is how many damaged files are kept for a person to look at.
const maxBad = 8

// perSpool is how many segments a full spool has at least, where the disk is large enough
// for segments of bufferSize. Whole segments are dropped, so it bounds what is lost at once.
const perSpool = 32

// fitSegments makes segments small where the spool can hold only so many bytes. It needs
// write.
func (s *Settings) fitSegments(most int64) {
	s.SegmentBytes = min(s.SegmentBytes, max(most/perSpool, bufferSize))
}

// fit makes room for size bytes more under Settings.MaxBytes. It needs write.
func (s *Spool) fit(size int64) error {
	if s.set.MaxBytes == 0 {
		return nil
	}
	for s.used()+size > s.set.MaxBytes {
		freed, err := s.free(s.set.DropOldest)
		if err != nil {
			return err
		}
		s.closeGone()
		if !freed {
			return fmt.Errorf("spool: folder %s: %w: %d of %d bytes are waiting for delivery", s.dir, ErrFull, s.used(), s.set.MaxBytes)
		}
	}
	return nil
}

// used returns the bytes of all segments, with what is not yet written. It needs
// write.
func (s *Spool) used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := int64(len(s.buf)) + s.old.bytes() + s.segs.bytes()
	if s.file != nil {
		n += s.wrote - s.segs[len(s.segs)-1].size
	}
	return n
}

// free removes the oldest segment that was delivered or, if drop is set, the
// oldest of those that were not. It reports whether there is more room now. It
// needs write.
func (s *Spool) free(drop bool) (bool, error) {
	s.mu.Lock()
	oldest, old := s.segs[0], len(s.old) > 0
	alone := len(s.segs) == 1 && s.file != nil && oldest.end > oldest.first && oldest.end == s.next
	delivered := old || oldest.end <= s.acked && (alone || len(s.segs) > 1)
	s.mu.Unlock()
	if !delivered && !drop {
		return false, nil
	}
	if alone && !old { // the active segment is all there is
		if err := s.roll(); err != nil {
			return false, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.old) > 0 {
		if s.removeOpen(s.old[0]) != nil {
			return false, nil
		}
		s.old = s.old[1:]
		return true, nil
	}
	if len(s.segs) < 2 {
		return false, nil
	}
	g := s.segs[0]
	if s.removeOpen(g) != nil {
		return false, nil
	}
	if s.acked < g.end {
		s.dropped += g.end - max(s.acked, g.first)
		s.acked = g.end
		s.passHoles()
	}
	s.segs = s.segs[1:]
	return true, nil
}

// removeOpen removes the file of g, also where the reader has it open, which
// Windows refuses.
func (s *Spool) removeOpen(g *segment) error {
	err := s.disk.Remove(g.name())
	if err != nil && s.reading.TryLock() {
		s.r.close()
		s.reading.Unlock()
		err = s.disk.Remove(g.name())
	}
	return err
}

// closeGone closes the file that the reader has open if it was removed: it takes its room
// until then, and a reader that waits for the broker would keep it. It needs write.
func (s *Spool) closeGone() {
	if !s.reading.TryLock() {
		return
	}
	defer s.reading.Unlock()
	if s.r.seg != nil && s.gone(s.r.seg) {
		s.r.close()
	}
}

// full makes room if err says that the disk is full, and says so in the error it
// returns. Other errors are returned as they are. It needs write.
func (s *Spool) full(err error) error {
	if !isFull(err) {
		return err
	}
	s.set.fitSegments(s.used())
	_, _ = s.free(s.set.DropOldest) // if it cannot, the caller waits
	s.closeGone()
	signal(s.wake) // a reader that is busy closes the file itself
	return fmt.Errorf("%w: %w", ErrFull, err)
}

// isFull reports whether err says that the disk is full.
func isFull(err error) bool {
	return slices.ContainsFunc(diskFull, func(full error) bool { return errors.Is(err, full) })
}

// trimBad removes all but the newest damaged files.
func trimBad(d Disk) {
	files, err := d.List()
	if err != nil {
		return
	}
	var bad []string
	for name := range files {
		if len(name) > len(badSuffix) && name[len(name)-len(badSuffix):] == badSuffix {
			bad = append(bad, name)
		}
	}
	slices.Sort(bad) // segments are named in the order of their records
	for _, name := range bad[:max(0, len(bad)-maxBad)] {
		_ = d.Remove(name)
	}
}

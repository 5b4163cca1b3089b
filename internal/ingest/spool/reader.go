package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
)

// Record is one payload with its place.
type Record struct {
	Epoch   uint64
	Seq     uint64
	Payload []byte // valid until the next call of Next
	Kept    any    // what Keep was given for the record; nil: it is read from the disk
}

// Next returns the next durable record that was not yet read, and waits for it
// until ctx ends. Records that are damaged, or that the disk cannot read, are set
// aside and skipped; Stats counts them. ErrFull says that the disk has no room for
// what is good of a damaged segment. Any other error but ErrClosed and the error of
// ctx comes from the disk: the same Next may succeed later. Only one
// goroutine may call Next.
func (s *Spool) Next(ctx context.Context) (Record, error) {
	for {
		s.reading.Lock()
		rec, ok, err := s.read()
		s.reading.Unlock()
		if ok || err != nil {
			return rec, err
		}
		select {
		case <-s.wake:
		case <-s.done:
		case <-ctx.Done():
			return Record{}, ctx.Err()
		}
	}
}

// Rewind makes Next return the first unacknowledged record again.
func (s *Spool) Rewind() {
	s.mu.Lock()
	s.rewind = true
	s.mu.Unlock()
	signal(s.wake)
}

// reader is where Next stands.
type reader struct {
	seg  *segment // nil before the first record
	file File
	sc   scanner
	at   uint64 // seq of the record at the scanner's offset
	seq  uint64 // seq Next returns next, unless acked is higher
}

func (r *reader) close() {
	if r.file != nil {
		r.file.Close()
	}
	r.seg, r.file = nil, nil
}

// open puts r at the start of g.
func (r *reader) open(d Disk, g *segment) error {
	r.close()
	f, err := d.Open(g.name())
	if err != nil {
		return err
	}
	r.seg, r.file, r.at = g, f, g.first
	r.sc = scanner{file: &patched{file: f}, epoch: g.epoch, buf: r.sc.buf[:0]}
	return nil
}

// place is a segment that holds the record to be read next, as it was a moment ago.
type place struct {
	kept  any // what Keep was given; nil: it is to be read
	seg   *segment
	end   uint64
	size  int64
	epoch uint64
}

// locate returns where the next record is. ok is false if there is none now. It
// needs reading.
func (s *Spool) locate() (p place, ok bool, err error) {
	r := &s.r
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return place{}, false, fmt.Errorf("spool: %w", ErrClosed)
	}
	if s.rewind {
		r.seq, s.rewind = s.acked, false
	}
	r.seq = max(r.seq, s.acked)
	if r.seq >= s.synced {
		if r.seg != nil && !slices.Contains(s.segs, r.seg) {
			r.close() // the disk gets the room of a removed file back only now
		}
		return place{}, false, nil
	}
	g := s.segs.find(r.seq)
	return place{s.kept.take(r.seq), g, g.end, g.size, s.epoch}, true, nil
}

// read returns the next record. ok is false if there is none now. It needs reading.
func (s *Spool) read() (rec Record, ok bool, err error) {
	r := &s.r
	var mended *segment
	for {
		p, ok, err := s.locate()
		if err != nil || !ok {
			return Record{}, false, err
		}
		if p.kept != nil {
			r.seq++
			return Record{Epoch: p.epoch, Seq: r.seq - 1, Kept: p.kept}, true, nil
		}
		if r.seg != p.seg || r.at > r.seq {
			if err := r.open(s.disk, p.seg); errors.Is(err, fs.ErrNotExist) && s.gone(p.seg) {
				continue
			} else if err != nil {
				return Record{}, false, fmt.Errorf("spool: %w", err)
			}
		}
		rec, ok, err := s.scanTo(p)
		switch {
		case err == errDamaged && p.seg == mended:
			return Record{}, false, fmt.Errorf("spool: %s: damaged again right after its good records were rewritten: check the disk", r.seg.name())
		case err == errDamaged && s.gone(p.seg):
		case err == errDamaged:
			if err := s.quarantine(p.seg); err != nil {
				return Record{}, false, err
			}
			mended = p.seg
		case err != nil:
			return Record{}, false, fmt.Errorf("spool: %s: %w", r.seg.name(), err)
		case ok:
			return rec, true, nil
		}
	}
}

// scanTo reads the open segment up to the next record. ok is false if there is a
// hole in its place, or the end of the segment. The error is errDamaged where
// records are missing or damaged, or is the disk's. It needs reading.
func (s *Spool) scanTo(p place) (rec Record, ok bool, err error) {
	r := &s.r
	r.sc.end = p.size
	for r.at < p.end && r.at <= r.seq {
		h, payload, err := r.sc.take(r.at, p.end, false)
		if err == io.EOF {
			err = errDamaged
		}
		if err != nil {
			return Record{}, false, err
		}
		from := r.at
		r.at = h.seq + 1
		if h.hole() {
			s.skip(span{from, r.at})
			return Record{}, false, nil
		}
		if h.seq == r.seq {
			r.seq++
			return Record{Epoch: p.epoch, Seq: h.seq, Payload: payload}, true, nil
		}
	}
	return Record{}, false, nil
}

// skip notes that the records of a hole are lost. It needs reading.
func (s *Spool) skip(hole span) {
	s.r.seq = max(s.r.seq, hole.to)
	s.mu.Lock()
	defer s.mu.Unlock()
	if hole.to > s.acked && !slices.Contains(s.holes, hole) {
		s.holes = append(s.holes, hole)
		s.passHoles()
	}
}

// segments are some of a spool, in order. They need mu.
type segments []*segment

// bytes returns how many they take.
func (segs segments) bytes() (n int64) {
	for _, g := range segs {
		n += g.size
	}
	return n
}

// find returns the segment that holds seq, which must be durable and not below
// acked.
func (segs segments) find(seq uint64) *segment {
	for _, g := range segs {
		if seq < g.end {
			return g
		}
	}
	panic(fmt.Sprintf("spool: no segment for record %d", seq))
}

// gone reports whether g was dropped to make room.
func (s *Spool) gone(g *segment) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.Contains(s.segs, g)
}

// quarantine sets the damaged segment aside; what is good of it stays in its
// place. An active segment is sealed before. Records may be appended meanwhile: a
// disk that has bad sectors can take minutes. It needs reading.
func (s *Spool) quarantine(g *segment) error {
	s.r.close()
	if err := s.seal(g); err != nil {
		return err
	}
	s.mu.Lock()
	end, acked := g.end, s.acked
	s.mu.Unlock()
	found, err := salvage(s.disk, g, end, acked)
	if isFull(err) {
		s.write.Lock()
		_, _ = s.free(false) // if it cannot, the caller waits
		s.write.Unlock()
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !slices.Contains(s.segs, g) && !slices.Contains(s.old, g): // dropped meanwhile
		_ = s.disk.Remove(g.name())
		return nil
	case err != nil:
		return fmt.Errorf("spool: folder %s: quarantine of %s: %w", s.dir, g.name(), err)
	}
	g.size = found.size
	s.quarantined += found.lost
	s.damagedBytes += found.bytes
	return nil
}

// seal sees to it that nothing is appended to g any more. Where the disk refuses
// the records that wait for a Sync, the next Append or Sync says so.
func (s *Spool) seal(g *segment) error {
	s.write.Lock()
	defer s.write.Unlock()
	if s.isClosed() {
		return fmt.Errorf("spool: %w", ErrClosed)
	}
	s.mu.Lock()
	active, next := s.file != nil && s.segs[len(s.segs)-1] == g, s.next
	s.mu.Unlock()
	if !active {
		return nil
	}
	err := s.roll() // g is sealed also if it fails
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next < next {
		s.refused = err
	}
	return nil
}

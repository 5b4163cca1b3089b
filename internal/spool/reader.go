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
}

// Next returns the next durable record that was not yet read, and waits for it
// until ctx ends. Records that are damaged, or that the disk cannot read, are set
// aside and skipped; Stats counts them. ErrFull says that the disk has no room for
// what is good of a damaged segment. Another error than these, that of ctx and
// ErrClosed comes from the disk: the same Next may succeed later. Only one
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
	s.signal()
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

// read returns the next record. ok is false if there is none now. It needs reading.
func (s *Spool) read() (rec Record, ok bool, err error) {
	r := &s.r
	var mended *segment
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return Record{}, false, fmt.Errorf("spool: %w", ErrClosed)
		}
		if s.rewind {
			r.seq, s.rewind = s.acked, false
		}
		r.seq = max(r.seq, s.acked)
		if r.seq >= s.synced {
			if r.seg != nil && !slices.Contains(s.segs, r.seg) {
				r.close() // the disk gets the room of a removed file back only now
			}
			s.mu.Unlock()
			return Record{}, false, nil
		}
		g := s.find(r.seq)
		end, size, epoch := g.end, g.size, s.epoch
		s.mu.Unlock()

		if r.seg != g || r.at > r.seq {
			if err := r.open(s.disk, g); errors.Is(err, fs.ErrNotExist) && s.gone(g) {
				continue
			} else if err != nil {
				return Record{}, false, fmt.Errorf("spool: %w", err)
			}
		}
		r.sc.end = size
		for r.at < end && r.at <= r.seq {
			h, payload, err := r.sc.next()
			switch {
			case err == io.EOF, err == nil && (h.seq < r.at || h.seq >= end || h.seq > r.at && !h.hole()):
				err = errDamaged // records are missing
			}
			if err == errDamaged {
				if g == mended {
					return Record{}, false, fmt.Errorf("spool: %s: damaged again right after its good records were written anew: check the disk", r.seg.name())
				}
				if s.gone(g) {
					break
				}
				if err := s.quarantine(g); err != nil {
					return Record{}, false, err
				}
				mended = g
				break
			}
			if err != nil {
				return Record{}, false, fmt.Errorf("spool: %s: %w", r.seg.name(), err)
			}
			from := r.at
			r.at = h.seq + 1
			if h.hole() {
				r.seq = max(r.seq, r.at)
				s.mu.Lock()
				if hole := (span{from, r.at}); r.at > s.acked && !slices.Contains(s.holes, hole) {
					s.holes = append(s.holes, hole)
					s.passHoles()
				}
				s.mu.Unlock()
				break
			}
			if h.seq == r.seq {
				r.seq++
				return Record{Epoch: epoch, Seq: h.seq, Payload: payload}, true, nil
			}
		}
	}
}

// find returns the segment that holds seq, which must be durable and not below
// acked. It needs mu.
func (s *Spool) find(seq uint64) *segment {
	for _, g := range s.segs {
		if seq < g.end {
			return g
		}
	}
	panic(fmt.Sprintf("spool: no segment for record %d", seq))
}

// gone reports whether g was given up to make room.
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
	case !slices.Contains(s.segs, g) && !slices.Contains(s.old, g): // given up, meanwhile
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

package spool

import "fmt"

// makeRoom sees to it that there is an active segment that may take size bytes
// more. It needs write.
func (s *Spool) makeRoom(size int64) error {
	used := s.wrote + int64(len(s.buf))
	if s.file != nil && (used == 0 || used+size <= s.set.SegmentBytes) {
		return nil
	}
	return s.roll()
}

// setActive replaces the file that records are written to, which holds size bytes.
// It needs write.
func (s *Spool) setActive(f File, size int64) {
	if s.file != nil {
		s.file.Close() // what counts of it was synced
	}
	s.file, s.wrote, s.buf = f, size, s.buf[:0]
}

// roll seals the active segment, if there is one, and starts the next. It needs
// write.
func (s *Spool) roll() error {
	if err := s.sync(); err != nil {
		return err
	}
	s.mu.Lock()
	g := &segment{ordinal: s.ordinal, epoch: s.epoch, first: s.next, end: s.next}
	s.mu.Unlock()
	f, err := createSegment(s.disk, g)
	if err != nil {
		// The file may be there, and says that g.first is not in the one before:
		// nothing may be appended to that any more.
		s.setActive(nil, 0)
		return err
	}
	s.setActive(f, 0)
	s.mu.Lock()
	if n := len(s.segs); n > 0 && s.segs[n-1].first == g.first {
		s.segs = s.segs[:n-1] // it never got a record, and its file is g's now
	}
	s.segs = append(s.segs, g)
	s.mu.Unlock()
	return nil
}

// createSegment makes the empty file of g and its name durable.
func createSegment(d Disk, g *segment) (File, error) {
	f, err := d.Create(g.name())
	if err != nil {
		return nil, fmt.Errorf("spool: new segment: %w", err)
	}
	if err := d.Sync(); err != nil {
		f.Close()
		return nil, fmt.Errorf("spool: new segment %s: %w", g.name(), err)
	}
	return f, nil
}

// output is the active segment.
type output struct {
	file  File   // nil before the first append after a failure
	wrote int64  // bytes in file
	buf   []byte // encoded records not yet written to file
}

// put hands pieces of a payload from a length on to the system, and others once bufferSize of them wait.
func (o *output) put(payload [][]byte, direct int) error {
	for _, p := range payload {
		if len(p) < direct {
			o.buf = append(o.buf, p...)
			continue
		}
		if err := o.flush(); err != nil {
			return err
		}
		if err := o.writeOut(p); err != nil {
			return err
		}
	}
	if len(o.buf) >= bufferSize {
		return o.flush()
	}
	return nil
}

// flush hands the buffer to the system.
func (o *output) flush() error {
	err := o.writeOut(o.buf)
	o.buf = o.buf[:0]
	return err
}

// writeOut hands bytes to the system.
func (o *output) writeOut(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	n, err := o.file.WriteAt(b, o.wrote)
	o.wrote += int64(n)
	return err
}

// sync does what Sync says. It needs write.
func (s *Spool) sync() error {
	if err := s.refusal(); err != nil {
		return err
	}
	s.mu.Lock()
	next, dirty := s.next, s.next > s.synced
	s.mu.Unlock()
	if !dirty {
		return nil
	}
	err := s.flush()
	if err == nil {
		err = s.file.Sync()
	}
	if err != nil {
		return s.withdraw(err)
	}
	s.mu.Lock()
	g := s.segs[len(s.segs)-1]
	g.size, g.end, g.written = s.wrote, next, s.set.Now()
	s.synced = next
	s.mu.Unlock()
	signal(s.wake)
	s.reap()
	return nil
}

// refusal returns, once, why seal withdrew records. It needs write.
func (s *Spool) refusal() error {
	err := s.refused
	s.refused = nil
	return err
}

// withdraw forgets the records that are not durable. After a failed fsync no one
// knows which bytes of them are on the disk, so the segment ends before them and
// the next Append starts another. It needs write and returns the error to show.
func (s *Spool) withdraw(cause error) error {
	s.mu.Lock()
	g := s.segs[len(s.segs)-1]
	lost := s.next - s.synced
	s.next = s.synced
	s.kept.forget(s.synced)
	size := g.size
	s.mu.Unlock()
	_ = s.file.Truncate(size) // if it fails, readers stop at g.end all the same
	s.setActive(nil, 0)
	return fmt.Errorf("spool: folder %s: %d records not stored: %w", s.dir, lost, cause)
}

// signal wakes the reader.
func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

package spool

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// SegmentInfo describes a segment to people.
type SegmentInfo struct {
	Name    string
	Epoch   uint64
	First   uint64 // seq of its first record
	Bytes   int64
	Written time.Time // when it was last written to
	Earlier bool      // of an epoch before, or of an earlier time of one that came again: all is delivered

	seg *segment
}

// Listing is what a folder holds.
type Listing struct {
	Epoch    uint64        // of the newest segment; 0 if there is none
	Acked    uint64        // records of Epoch below it were delivered, as the cursor file has it
	Segments []SegmentInfo // in the order of their records
	Bad      []SegmentInfo // files that were set aside, in the same order; zeros stand for what the disk could not read
}

// List looks at a spool, which may be in use, and changes nothing. An error wraps
// fs.ErrNotExist if the folder does not exist.
func List(d Disk) (Listing, error) {
	files, err := d.List()
	if err != nil {
		return Listing{}, fmt.Errorf("spool: %w", err)
	}
	var l Listing
	segs := segmentsOf(files)
	for _, g := range segs {
		earlier := g.ordinal != segs[len(segs)-1].ordinal
		l.Segments = append(l.Segments, SegmentInfo{g.name(), g.epoch, g.first, g.size, files[g.name()].Written, earlier, g})
		l.Epoch = g.epoch
	}
	l.Bad = badSegments(files, l.Segments)
	if c, found, _, err := readCursor(d); err == nil && found && len(l.Segments) > 0 {
		if last := l.Segments[len(l.Segments)-1].seg; c.epoch == last.epoch && c.ordinal == last.ordinal {
			l.Acked = c.acked
		}
	}
	return l, nil
}

// badSegments returns the files that were set aside, with the end of the segment
// that took their place.
func badSegments(files map[string]FileInfo, segs []SegmentInfo) (bad []SegmentInfo) {
	for name, info := range files {
		at := strings.Index(name, segmentSuffix)
		if at < 0 || !strings.HasSuffix(name, badSuffix) {
			continue
		}
		g, ok := parseSegmentName(name[:at+len(segmentSuffix)])
		if !ok {
			continue
		}
		if i := slices.IndexFunc(segs, func(s SegmentInfo) bool { return s.Name == g.name() }); i >= 0 {
			g.end = segs[i].seg.end
		}
		bad = append(bad, SegmentInfo{name, g.epoch, g.first, info.Size, info.Written, false, g})
	}
	slices.SortFunc(bad, func(a, b SegmentInfo) int { return strings.Compare(a.Name, b.Name) })
	return bad
}

// Check is what a segment holds.
type Check struct {
	Records      uint64 // whole ones
	Lost         uint64 // of those before the last whole one: damaged now, or set aside before
	Damaged      int64  // offset of the first damage, or -1
	DamagedBytes int64  // bytes that are not part of a whole record, without Torn
	Torn         int64  // bytes behind the last whole record that are being written or that a crash tore
}

// Walk reads a segment of a Listing of d from its start to its end and calls fn, if
// it is not nil, for each whole record. It changes nothing. What the disk cannot
// read is damage like any other. An error of fn ends it and is returned.
func Walk(d Disk, info SegmentInfo, fn func(Record) error) (Check, error) {
	f, err := d.Open(info.Name)
	if err != nil {
		return Check{Damaged: -1}, fmt.Errorf("spool: %w", err)
	}
	defer f.Close()
	g := info.seg
	w := walk{check: Check{Damaged: -1}, disk: &patched{file: f}, want: g.first, end: g.end, high: cmp.Or(g.end, maxSeq)}
	w.sc = &scanner{file: w.disk, epoch: g.epoch, end: info.Bytes}
	for {
		h, payload, err := w.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return w.check, fmt.Errorf("spool: %s: %w", info.Name, err)
		}
		if h.hole() {
			w.check.Lost += h.seq + 1 - w.want
		} else {
			w.check.Lost += h.seq - w.want
			w.check.Records++
			if fn != nil {
				if err := fn(Record{Epoch: g.epoch, Seq: h.seq, Payload: payload}); err != nil {
					return w.check, err
				}
			}
		}
		w.want = h.seq + 1
	}
	if g.end > w.want {
		w.check.Lost += g.end - w.want
		if w.check.Damaged < 0 {
			w.check.Damaged = w.sc.off
		}
	}
	return w.check, nil
}

// Peek calls fn for each record of a segment of a Listing of d with the first bytes of its
// payload, at most n, and checks no payload. It is much faster than Walk. Whole is false
// where the segment is damaged: then Peek has passed over the rest of it. An error of fn
// ends it and is returned.
func Peek(d Disk, info SegmentInfo, n int, fn func(seq uint64, head []byte) error) (whole bool, err error) {
	f, err := d.Open(info.Name)
	if err != nil {
		return false, fmt.Errorf("spool: %w", err)
	}
	defer f.Close()
	b := make([]byte, headerSize+n)
	for off := int64(0); off < info.Bytes; {
		got, err := f.ReadAt(b[:min(int64(len(b)), info.Bytes-off)], off)
		switch {
		case isUnreadable(err):
			return false, nil
		case err != nil && err != io.EOF:
			return false, fmt.Errorf("spool: %s: %w", info.Name, err)
		case got < headerSize:
			return false, nil
		}
		h, ok := parseHeader(b, info.Epoch)
		if !ok || off+headerSize+h.payloadSize() > info.Bytes {
			return false, nil
		}
		if !h.hole() {
			head := b[headerSize:got]
			if err := fn(h.seq, head[:min(int64(len(head)), h.payloadSize())]); err != nil {
				return true, err
			}
		}
		off += headerSize + h.payloadSize()
	}
	return true, nil
}

// walk is a segment that is being looked through.
type walk struct {
	check     Check
	disk      *patched
	sc        *scanner
	want      uint64 // the seq that comes next if none is lost
	end, high uint64 // seq behind the last record, 0 if it is not known; the highest that it can be
}

// next returns the next whole record or hole. It counts what is damaged before it.
// It returns io.EOF after the last.
func (w *walk) next() (header, []byte, error) {
	for {
		at := w.sc.off
		h, payload, err := w.sc.take(w.want, w.high, true)
		if err != errDamaged {
			return h, payload, err
		}
		found, err := w.sc.resync(w.want, w.high)
		if err != nil {
			return header{}, nil, err
		}
		if !found {
			if w.end > w.want || w.disk.anyBad(at, w.sc.end) {
				w.damage(at, w.sc.end)
			} else {
				w.check.Torn = w.sc.end - at
			}
			return header{}, nil, io.EOF
		}
		w.damage(at, w.sc.off)
	}
}

// damage counts bytes that are not part of a whole record.
func (w *walk) damage(from, to int64) {
	if w.check.Damaged < 0 {
		w.check.Damaged = from
	}
	w.check.DamagedBytes += to - from
}

// Found is a record of a spool that someone has asked for.
type Found struct {
	Record
	Segment   string // its file
	Delivered bool   // as the cursor file has it
}

// Find looks for a record in the folder at path, which may be in use, and changes nothing. It
// returns nil if the spool does not have the record, and an error if the folder has no spool.
func Find(path string, epoch, seq uint64) (found *Found, err error) {
	disk := Dir(path)
	l, err := List(disk)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(l.Segments) == 0 {
		return nil, errors.New("it has no files of a spool: name the folder of the machine, as ingest.yaml has it under spool")
	}
	for i, s := range l.Segments {
		later := i+1 < len(l.Segments) && l.Segments[i+1].seg.ordinal == s.seg.ordinal && l.Segments[i+1].First <= seq
		if s.Epoch != epoch || s.First > seq || later {
			continue
		}
		_, err = Walk(disk, s, func(r Record) error {
			if r.Seq == seq {
				r.Payload = slices.Clone(r.Payload)
				found = &Found{r, s.Name, s.Earlier || seq < l.Acked}
			}
			return nil
		})
		if errors.Is(err, fs.ErrNotExist) { // it was delivered and removed
			err = nil
		}
	}
	return found, err
}

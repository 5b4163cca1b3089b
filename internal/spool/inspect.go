package spool

import (
	"fmt"
	"io"
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
// fs.ErrNotExist if there is no such folder.
func List(d Disk) (Listing, error) {
	files, err := d.List()
	if err != nil {
		return Listing{}, fmt.Errorf("spool: %w", err)
	}
	var l Listing
	for _, g := range segmentsOf(files) {
		l.Segments = append(l.Segments, SegmentInfo{g.name(), g.epoch, g.first, g.size, files[g.name()].Written, g})
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
		bad = append(bad, SegmentInfo{name, g.epoch, g.first, info.Size, info.Written, g})
	}
	slices.SortFunc(bad, func(a, b SegmentInfo) int { return strings.Compare(a.Name, b.Name) })
	return bad
}

// Check is what a segment holds.
type Check struct {
	Records      uint64 // whole ones
	Lost         uint64 // of those before the last whole one: damaged now, or set aside before
	Damaged      int64  // offset of the first damage, or -1
	DamagedBytes int64  // bytes that are no part of a whole record, Torn not included
	Torn         int64  // bytes behind the last whole record that are being written or that a crash tore
}

// Walk reads a segment of a Listing of d from its start to its end and calls fn, if
// it is not nil, for each whole record. It changes nothing. What the disk cannot
// read is damage like any other. An error of fn ends it and is returned.
func Walk(d Disk, info SegmentInfo, fn func(Record) error) (Check, error) {
	c := Check{Damaged: -1}
	f, err := d.Open(info.Name)
	if err != nil {
		return c, fmt.Errorf("spool: %w", err)
	}
	defer f.Close()
	g := info.seg
	high := uint64(maxSeq)
	if g.end > 0 {
		high = g.end
	}
	disk := &patched{file: f}
	sc := &scanner{file: disk, epoch: g.epoch, end: info.Bytes}
	damage := func(from, to int64) {
		if c.Damaged < 0 {
			c.Damaged = from
		}
		c.DamagedBytes += to - from
	}
	want := g.first
	for {
		at := sc.off
		h, payload, err := sc.next()
		if err == nil && (h.seq < want || h.seq >= high) {
			sc.off, err = at, errDamaged
		}
		if err == errDamaged {
			found, err := sc.resync(want, high)
			if err != nil {
				return c, fmt.Errorf("spool: %s: %w", info.Name, err)
			}
			if found {
				damage(at, sc.off)
				continue
			}
			if g.end > want || disk.anyBad(at, info.Bytes) {
				damage(at, info.Bytes)
			} else {
				c.Torn = info.Bytes - at
			}
			break
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return c, fmt.Errorf("spool: %s: %w", info.Name, err)
		}
		if h.hole() {
			c.Lost += h.seq + 1 - want
		} else {
			c.Lost += h.seq - want
			c.Records++
			if fn != nil {
				if err := fn(Record{Epoch: g.epoch, Seq: h.seq, Payload: payload}); err != nil {
					return c, err
				}
			}
		}
		want = h.seq + 1
	}
	if g.end > want {
		c.Lost += g.end - want
		if c.Damaged < 0 {
			c.Damaged = sc.off
		}
	}
	return c, nil
}

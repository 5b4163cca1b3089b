package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	Bad      []string      // names of files that were set aside
}

// List looks at the spool in folder dir, which may be in use, and changes nothing.
func List(dir string) (Listing, error) {
	d := osDisk{dir: dir, fsync: (*os.File).Sync}
	sizes, err := d.list()
	if err != nil {
		return Listing{}, fmt.Errorf("spool: %w", err)
	}
	segs, err := listSegments(d)
	if err != nil {
		return Listing{}, fmt.Errorf("spool: folder %s: %w", dir, err)
	}
	var l Listing
	for name := range sizes {
		if strings.HasSuffix(name, badSuffix) {
			l.Bad = append(l.Bad, name)
		}
	}
	slices.Sort(l.Bad)
	for _, g := range segs {
		info, err := os.Stat(filepath.Join(dir, g.name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // delivered, meanwhile
		}
		if err != nil {
			return Listing{}, fmt.Errorf("spool: %w", err)
		}
		l.Segments = append(l.Segments, SegmentInfo{g.name(), g.epoch, g.first, g.size, info.ModTime(), g})
		l.Epoch = g.epoch
	}
	if c, found, _, err := readCursor(d); err == nil && found && c.epoch == l.Epoch {
		l.Acked = c.acked
	}
	return l, nil
}

// Check is what a segment holds.
type Check struct {
	Records uint64 // whole ones
	Lost    uint64 // of those before the last whole one: damaged now, or set aside before
	Damaged int64  // offset of the first damage, or -1
	Torn    int64  // bytes behind the last whole record
}

// Walk reads the segment of a Listing of dir from its start to its end and calls
// fn, if it is not nil, for each whole record. It changes nothing. An error of fn
// ends it and is returned.
func Walk(dir string, info SegmentInfo, fn func(Record) error) (Check, error) {
	c := Check{Damaged: -1}
	f, err := os.Open(filepath.Join(dir, info.Name))
	if err != nil {
		return c, fmt.Errorf("spool: %w", err)
	}
	defer f.Close()
	g := info.seg
	high := uint64(maxSeq)
	if g.end > 0 {
		high = g.end
	}
	sc := &scanner{file: f, epoch: g.epoch, end: info.Bytes}
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
			if found || g.end > want {
				if c.Damaged < 0 {
					c.Damaged = at
				}
			}
			if found {
				continue
			}
			c.Torn = info.Bytes - at
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

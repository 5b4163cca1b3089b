package gateway

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/ingest/spool"
	"github.com/flank-tcm/flank/pkg/window"
)

// ring reads the windows that a spool still has, delivered or not. It only reads files, so a
// gateway may have the spool open. One goroutine at a time may use it.
type ring struct {
	disk   spool.Disk
	length time.Duration           // of windows
	times  map[string]segmentTimes // by the name of a segment
}

// segmentTimes are the earliest and the latest end of a segment's windows. They count while
// the segment has the size that it had then.
type segmentTimes struct {
	size        int64
	first, last time.Time
}

// headOfMessage is how many bytes of a record are looked at for the time of its window.
// Topic and machine come before it.
const headOfMessage = 2048

// place is a record of a ring, or where one would be.
type place struct {
	Segment string `json:"segment,omitempty"` // name of its file
	Seq     uint64 `json:"seq,omitempty"`
}

// kept is a window of a ring.
type kept struct {
	place
	msg  bus.Message
	lost uint64 // windows that each had come by before the segment, and that the disk has lost
}

// oldest returns when the oldest window begins. ok is false if there is none.
func (r *ring) oldest() (at time.Time, ok bool, err error) {
	l, err := spool.List(r.disk)
	if errors.Is(err, fs.ErrNotExist) {
		return at, false, nil
	}
	if err != nil {
		return at, false, err
	}
	for _, s := range l.Segments {
		t, err := r.timesOf(s)
		if err != nil {
			return at, false, err
		}
		if !t.first.IsZero() {
			return t.first.Add(-r.length), true, nil
		}
	}
	return at, false, nil
}

// each calls fn for the windows that are wanted, from a place on, the oldest first, until
// fn fails. It returns how many windows it came by that the disk has lost, in segments
// that hold wanted ones.
func (r *ring) each(want event.Wanted, from place, fn func(kept) error) (lost uint64, err error) {
	l, err := spool.List(r.disk)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	r.forget(l.Segments)
	for i, s := range l.Segments {
		end := uint64(math.MaxUint64) // seq behind the last one
		if i+1 < len(l.Segments) && l.Segments[i+1].Epoch == s.Epoch && l.Segments[i+1].First > s.First {
			end = l.Segments[i+1].First
		}
		if strings.Compare(s.Name, from.Segment) < 0 || s.Name == from.Segment && end <= from.Seq || want.Epoch != "" && window.FormatEpoch(s.Epoch) != want.Epoch {
			continue
		}
		holds, err := r.holds(s, end, want)
		if err != nil {
			return lost, err
		}
		if !holds {
			continue
		}
		check, err := spool.Walk(r.disk, s, func(rec spool.Record) error {
			if s.Name == from.Segment && rec.Seq < from.Seq {
				return nil
			}
			return r.offer(want, kept{place: place{s.Name, rec.Seq}, lost: lost}, rec.Payload, fn)
		})
		if errors.Is(err, fs.ErrNotExist) {
			continue // the ring has gone on
		}
		lost += check.Lost
		if err != nil {
			return lost, err
		}
	}
	return lost, nil
}

// offer calls fn for a record if its window is wanted.
func (r *ring) offer(want event.Wanted, k kept, payload []byte, fn func(kept) error) error {
	if !want.Timed() && (k.Seq < want.First || k.Seq > want.Last) {
		return nil
	}
	if want.Timed() {
		if end, ok := bus.BinaryTime(payload); !ok || !r.overlaps(end, end, want) {
			return nil
		}
	}
	if err := k.msg.UnmarshalBinary(payload); err != nil {
		return fmt.Errorf("gateway: spool record %d: %w", k.Seq, err)
	}
	return fn(k)
}

// overlaps reports whether windows that end from first to last may overlap the time that is
// wanted.
func (r *ring) overlaps(first, last time.Time, want event.Wanted) bool {
	return last.After(want.From) && first.Add(-r.length).Before(want.To)
}

// holds reports whether a segment, whose seqs are below end, may hold a wanted window.
func (r *ring) holds(s spool.SegmentInfo, end uint64, want event.Wanted) (bool, error) {
	if !want.Timed() {
		return s.First <= want.Last && want.First < end, nil
	}
	t, err := r.timesOf(s)
	return !t.first.IsZero() && r.overlaps(t.first, t.last, want), err
}

// timesOf returns the times of a segment. They are zero if it holds nothing, or is gone.
func (r *ring) timesOf(s spool.SegmentInfo) (segmentTimes, error) {
	if t, ok := r.times[s.Name]; ok && t.size == s.Bytes {
		return t, nil
	}
	t := segmentTimes{size: s.Bytes}
	note := func(payload []byte) {
		at, ok := bus.BinaryTime(payload)
		if ok && (t.first.IsZero() || at.Before(t.first)) {
			t.first = at
		}
		if ok && at.After(t.last) {
			t.last = at
		}
	}
	whole, err := spool.Peek(r.disk, s, headOfMessage, func(_ uint64, head []byte) error {
		note(head)
		return nil
	})
	if err == nil && !whole { // damaged, or being written
		_, err = spool.Walk(r.disk, s, func(rec spool.Record) error {
			note(rec.Payload)
			return nil
		})
	}
	if errors.Is(err, fs.ErrNotExist) {
		return segmentTimes{}, nil
	}
	if err != nil {
		return segmentTimes{}, err
	}
	r.times[s.Name] = t
	return t, nil
}

// forget drops the times of segments that are gone.
func (r *ring) forget(segments []spool.SegmentInfo) {
	if len(r.times) <= 2*len(segments) {
		return
	}
	now := make(map[string]segmentTimes, len(segments))
	for _, s := range segments {
		if t, ok := r.times[s.Name]; ok {
			now[s.Name] = t
		}
	}
	r.times = now
}

package summary

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/flank-tcm/flank/internal/event"
)

const (
	holeVersion = 1
	maxHoleName = 100 // bytes
	openHoles   = 8   // last holes of a machine that windows can still be added to
)

// hole sums up the windows of one hole. Its binary form, with little-endian numbers:
//
//	version    byte     1
//	name       u16, bytes
//	from, to   2×i64    start of its first and end of its last window, Unix milliseconds
//	row                 as described at rowVersion; its tool is the tool's life
//
// The key of a hole is the start of the window that was folded first and the tool's life.
type hole struct {
	name     string
	from, to int64
	row      row
}

// holeRef is a hole that windows can still be added to.
type holeRef struct {
	From int64  `json:"from"` // start of the window that was folded first, Unix milliseconds
	Life uint32 `json:"life"`
	Name string `json:"name"`
}

func (r *holeRef) key() string {
	return string(binary.BigEndian.AppendUint32(timeKey(r.From), r.Life))
}

// foldHole adds a window to its hole. The source names holes, and may use a name again: windows
// of one name and one tool that follow each other are one hole, also if windows without a name
// come in between.
func (s *Store) foldHole(m *machine, r *event.Result, start, end time.Time, one *row) error {
	if r.Hole == "" {
		return nil
	}
	at := start.UnixMilli()
	ref := holeRef{at, one.tool, holeName(r.Hole)}
	i := m.openHole(&ref)
	if i < 0 && r.Late && len(m.head.Holes) == openHoles && !slices.ContainsFunc(m.head.Holes, func(o holeRef) bool { return o.From <= at }) {
		return nil // its hole is not open any more
	}
	if i >= 0 {
		ref = m.head.Holes[i]
		m.head.Holes = slices.Delete(m.head.Holes, i, i+1)
	}
	m.head.Holes = append(m.head.Holes, ref) // the one that was used last
	if n := len(m.head.Holes) - openHoles; n > 0 {
		m.head.Holes = slices.Delete(m.head.Holes, 0, n)
	}
	into, err := s.hole(m, ref)
	if err != nil {
		return err
	}
	into.add(&hole{from: at, to: end.UnixMilli(), row: *one})
	return nil
}

// holeName returns the name of a hole as it is kept. It is text, also where it was cut off: the last holes are
// kept as JSON, which holds nothing else.
func holeName(name string) string {
	return strings.ToValidUTF8(name[:min(len(name), maxHoleName)], "")
}

func (o *holeRef) same(as *holeRef) bool { return o.Life == as.Life && o.Name == as.Name }

// openHole returns the index of the open hole that a window belongs to whose own hole would be
// ref; -1 if there is none. That is the hole before its start or the one after it.
func (m *machine) openHole(ref *holeRef) int {
	before, after := -1, -1
	for i, o := range m.head.Holes {
		switch {
		case o.From <= ref.From && (before < 0 || o.From >= m.head.Holes[before].From):
			before = i
		case o.From > ref.From && (after < 0 || o.From < m.head.Holes[after].From):
			after = i
		}
	}
	for _, i := range [...]int{before, after} {
		if i >= 0 && m.head.Holes[i].same(ref) {
			return i
		}
	}
	return -1
}

// hole returns a hole that may be new.
func (s *Store) hole(m *machine, ref holeRef) (*hole, error) {
	key := ref.key()
	if h := m.holes[key]; h != nil {
		return h, nil
	}
	h := &hole{name: ref.Name, from: math.MaxInt64, to: math.MinInt64}
	// As with rows, a hole that cannot be read counts from zero again.
	err := s.file.get(m.id, inHoles, []byte(key), func(v []byte) error {
		var kept hole
		if kept.parse(v) == nil {
			*h = kept
		}
		return nil
	})
	m.holes[key] = h
	s.rows++
	return h, err
}

// add adds the windows of another hole.
func (h *hole) add(o *hole) {
	h.from, h.to = min(h.from, o.from), max(h.to, o.to)
	h.row.add(&o.row)
}

func (h *hole) appendTo(b []byte) []byte {
	le := binary.LittleEndian
	b = append(b, holeVersion)
	b = le.AppendUint16(b, uint16(len(h.name)))
	b = append(b, h.name...)
	b = le.AppendUint64(b, uint64(h.from))
	b = le.AppendUint64(b, uint64(h.to))
	return h.row.appendTo(b)
}

var errHole = errors.New("summary: the record of a hole is damaged, or of a later release")

// parse sets h to the hole whose binary form is b. Any bytes are safe to try.
func (h *hole) parse(b []byte) error {
	le := binary.LittleEndian
	if len(b) < 3 || b[0] != holeVersion {
		return errHole
	}
	n := int(le.Uint16(b[1:]))
	if b = b[3:]; n > maxHoleName || len(b) < n+16 {
		return errHole
	}
	*h = hole{name: string(b[:n]), from: int64(le.Uint64(b[n:])), to: int64(le.Uint64(b[n+8:]))}
	return h.row.parse(b[n+16:])
}

// holesBefore returns the key before which holes are removed: before a time, or before the last
// so many.
func holesBefore(b *bbolt.Bucket, before []byte, most int) []byte {
	if b == nil {
		return before
	}
	c := b.Cursor()
	k, _ := c.Last()
	for n := 1; k != nil && n < most && bytes.Compare(k, before) >= 0; n++ {
		k, _ = c.Prev()
	}
	if k == nil || bytes.Compare(k, before) < 0 {
		return before
	}
	return bytes.Clone(k)
}

// countHoles returns how many holes began between two times in Unix seconds.
func (q *query) countHoles(first, end int64) (n int) {
	q.eachHole(first, end, func([]byte) { n++ })
	return n
}

// eachHole calls fn with the holes that began between two times in Unix seconds.
func (q *query) eachHole(first, end int64, fn func(v []byte)) {
	for k, v := range ascending(q.b.Bucket(inHoles), timeKey(first*1000)) {
		if bytes.Compare(k, timeKey(end*1000)) >= 0 {
			return
		}
		fn(v)
	}
}

// holes returns the holes that began between two times in Unix seconds, in at most MaxPoints
// parts: each sums up so many holes that follow each other. all is how many holes they are.
func (q *query) holes(first, end int64) (parts []hole, each, all int) {
	var holes []hole
	q.eachHole(first, end, func(v []byte) {
		var h hole
		if h.parse(v) == nil {
			holes = append(holes, h)
		}
	})
	slices.SortStableFunc(holes, func(x, y hole) int { return cmp.Compare(x.from, y.from) })
	each = max((len(holes)+MaxPoints-1)/MaxPoints, 1)
	for part := range slices.Chunk(holes, each) {
		sum := part[0]
		for i := range part[1:] {
			sum.add(&part[i+1])
		}
		parts = append(parts, sum)
	}
	return parts, each, len(holes)
}

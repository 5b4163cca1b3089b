package spool

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	segmentSuffix = ".seg"
	tempSuffix    = ".tmp"
	badSuffix     = ".bad"
)

// segment is one file of records. The last one of the current epoch is active:
// records are appended to it, and end and size move as they become durable. All
// others are sealed.
type segment struct {
	ordinal uint32
	epoch   uint64
	first   uint64    // seq of its first record
	end     uint64    // seq behind its last durable record
	size    int64     // bytes of its durable records
	done    time.Time // when its last record was acknowledged; zero before
}

func (g *segment) name() string {
	return fmt.Sprintf("%08x-%016x-%020d%s", g.ordinal, g.epoch, g.first, segmentSuffix)
}

// parseSegmentName is the inverse of name. ok is false for every other name.
func parseSegmentName(name string) (g *segment, ok bool) {
	parts := strings.Split(strings.TrimSuffix(name, segmentSuffix), "-")
	if len(parts) != 3 {
		return nil, false
	}
	ordinal, err1 := strconv.ParseUint(parts[0], 16, 32)
	epoch, err2 := strconv.ParseUint(parts[1], 16, 64)
	first, err3 := strconv.ParseUint(parts[2], 10, 64)
	g = &segment{ordinal: uint32(ordinal), epoch: epoch, first: first}
	return g, errors.Join(err1, err2, err3) == nil && epoch != 0 && first < maxSeq && g.name() == name
}

// listSegments returns the segments of d in the order of their records. Sizes
// are those of the files; end is the first seq of the next segment, and 0 for the
// last one of an epoch.
func listSegments(d disk) ([]*segment, error) {
	sizes, err := d.list()
	if err != nil {
		return nil, err
	}
	var segs []*segment
	for name, size := range sizes {
		if g, ok := parseSegmentName(name); ok {
			g.size = size
			segs = append(segs, g)
		}
	}
	slices.SortFunc(segs, func(a, b *segment) int {
		return cmp.Or(cmp.Compare(a.ordinal, b.ordinal), cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.first, b.first))
	})
	for i, g := range segs[:max(0, len(segs)-1)] {
		if next := segs[i+1]; next.epoch == g.epoch && next.ordinal == g.ordinal {
			g.end = next.first
		}
	}
	return segs, nil
}

// salvage sets a damaged segment aside and puts its good records, with a hole for
// every run of lost ones, in its place. The damaged bytes stay in bad, the name
// of a file beside it. end is the seq behind the segment's last record, or 0 if
// it is not known: then the last record found ends it. salvage returns that end,
// the size of the new file and how many records were lost.
func salvage(d disk, g *segment, end uint64) (newEnd uint64, size int64, lost uint64, bad string, err error) {
	sizes, err := d.list()
	if err != nil {
		return 0, 0, 0, "", err
	}
	src, err := d.open(g.name())
	if err != nil {
		return 0, 0, 0, "", err
	}
	defer src.Close() // on Windows a file cannot be replaced while it is open, so it is closed below as well
	whole := sizes[g.name()]
	bad = badName(sizes, g.name())
	err = replaceFile(d, bad, func(w io.Writer) error {
		_, err := io.Copy(w, io.NewSectionReader(src, 0, whole))
		return err
	})
	if err != nil {
		return 0, 0, 0, "", err
	}
	err = replaceFile(d, g.name(), func(w io.Writer) error {
		sc := &scanner{file: src, epoch: g.epoch, end: whole}
		newEnd, size, lost, err = copyGood(w, sc, g.first, end)
		src.Close()
		return err
	})
	trimBad(d)
	return newEnd, size, lost, bad, err
}

// copyGood writes the good records of sc, with seqs from first up to end, to w.
// If end is 0 the last good record is the end.
func copyGood(w io.Writer, sc *scanner, first, end uint64) (newEnd uint64, size int64, lost uint64, err error) {
	out := bufio.NewWriterSize(w, chunkSize)
	high := cmp.Or(end, maxSeq)
	want := first
	var head []byte
	put := func(h header, payload []byte) {
		head = h.append(head[:0], sc.epoch)
		out.Write(head) // bufio keeps the first error for Flush
		out.Write(payload)
		size += int64(len(head) + len(payload))
		want = h.seq + 1
	}
	for want < high {
		at := sc.off
		h, payload, err := sc.next()
		if err == nil && (h.seq < want || h.seq >= high) {
			sc.off, err = at, errDamaged
		}
		if err == errDamaged {
			var found bool
			if found, err = sc.resync(want, high); found {
				continue
			}
			if err == nil {
				err = io.EOF
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, 0, 0, err
		}
		if h.seq > want && !h.hole() {
			lost += h.seq - want
			put(header{seq: h.seq - 1, length: holeLength}, nil)
		}
		put(h, payload)
	}
	if want < end {
		lost += end - want
		put(header{seq: end - 1, length: holeLength}, nil)
	}
	return want, size, lost, out.Flush()
}

// badName returns a name that is free among files for the damaged form of the
// file called name.
func badName(files map[string]int64, name string) string {
	for i := 0; ; i++ {
		bad := name + badSuffix
		if i > 0 {
			bad = fmt.Sprintf("%s.%d%s", name, i, badSuffix)
		}
		if _, taken := files[bad]; !taken {
			return bad
		}
	}
}

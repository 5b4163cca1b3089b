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
	written time.Time // when its last record became durable, by the clock of the computer; zero: not known
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
// are read from the files; end is the first seq of the next segment, and 0 for the
// last one of an epoch.
func listSegments(d Disk) ([]*segment, error) {
	files, err := d.List()
	if err != nil {
		return nil, err
	}
	return segmentsOf(files), nil
}

func segmentsOf(files map[string]FileInfo) []*segment {
	var segs []*segment
	for name, info := range files {
		if g, ok := parseSegmentName(name); ok {
			g.size, g.written = info.Size, info.Written
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
	return segs
}

// unknownEnd is the end of a segment of which nothing says where it ends.
const unknownEnd = maxSeq

// salvaged is what salvage made of a damaged segment.
type salvaged struct {
	end   uint64 // seq behind its last record
	size  int64  // bytes of the new file
	lost  uint64 // records that were damaged and not yet delivered
	bytes int64  // bytes of the old file that were not a whole record
	bad   string // name of the file with the damaged bytes; empty if the disk had no room for it
}

// salvage sets a damaged segment aside and puts its good records, with a hole for
// every run of lost ones, in its place. Records below delivered do not count as
// lost. end is the seq behind the segment's last record, or unknownEnd: then the
// last record found ends it, or the last that began before a place that the disk
// cannot read.
func salvage(d Disk, g *segment, end, delivered uint64) (found salvaged, err error) {
	files, err := d.List()
	if err != nil {
		return found, err
	}
	src, err := d.Open(g.name())
	if err != nil {
		return found, err
	}
	defer src.Close() // on Windows a file cannot be replaced while it is open, so it is closed below as well
	whole := files[g.name()].Size
	disk := &patched{file: src} // sectors that could not be read before get another try
	bad := badName(files, g.name())
	err = replaceFile(d, bad, func(w io.Writer) error {
		_, err := io.Copy(w, io.NewSectionReader(disk, 0, whole))
		return err
	})
	if err != nil && !isFull(err) {
		return found, err
	}
	if err != nil {
		bad = ""
	}
	err = replaceFile(d, g.name(), func(w io.Writer) error {
		sc := &scanner{file: disk, epoch: g.epoch, end: whole}
		found, err = copyGood(w, sc, disk, g.first, end, delivered)
		src.Close()
		return err
	})
	trimBad(d)
	found.bad = bad
	return found, err
}

// copyGood writes the good records of sc, which reads disk, with seqs from first up
// to end, to w. See salvage.
func copyGood(w io.Writer, sc *scanner, disk *patched, first, end, delivered uint64) (found salvaged, err error) {
	out := bufio.NewWriterSize(w, chunkSize)
	good := walk{disk: disk, sc: sc, want: first, high: end}
	var head []byte
	put := func(h header, payload []byte) {
		head = h.append(head[:0], sc.epoch)
		out.Write(head) // bufio keeps the first error for Flush
		out.Write(payload)
		found.size += int64(len(head) + len(payload))
		good.want = h.seq + 1
	}
	lose := func(to uint64) {
		found.lost += to - min(max(good.want, delivered), to)
		put(header{seq: to - 1, length: holeLength}, nil)
	}
	whole := sc.end
	found.bytes = whole // but for good records
	for good.want < end {
		h, payload, err := good.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return found, err
		}
		if h.seq > good.want && !h.hole() {
			lose(h.seq)
		}
		found.bytes -= headerSize + h.payloadSize()
		put(h, payload)
	}
	if end == unknownEnd {
		end = good.want
		if disk.anyBad(sc.off, whole) {
			n, err := sc.begun(end)
			if err != nil {
				return found, err
			}
			end += n
		}
	}
	if good.want < end {
		lose(end)
	}
	found.end = good.want
	return found, out.Flush()
}

// badName returns a name that is free among files for the damaged form of the
// file called name.
func badName(files map[string]FileInfo, name string) string {
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

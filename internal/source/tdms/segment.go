package tdms

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// Flags of a segment's table of contents.
const (
	tocMeta        = 1 << 1
	tocNewList     = 1 << 2
	tocRaw         = 1 << 3
	tocInterleaved = 1 << 5
	tocBigEndian   = 1 << 6
)

const leadIn = 28 // bytes

// segment is a lead-in, and after it metadata and raw data.
type segment struct {
	at        int64 // byte of the file at which it begins
	toc       uint32
	data      int64 // byte at which its raw data begin
	end       int64 // byte after it
	cut       bool  // the file ends before it does
	unwritten bool  // its writer never said where it ends
}

func (s segment) big() bool { return s.toc&tocBigEndian != 0 }

// member is an object in the list of a segment.
type member struct {
	object *object
	index  rawIndex
	data   bool // it has values in this segment
}

// readSegments reads the metadata of all segments.
func (f *file) readSegments() error {
	var list []member
	for at := int64(0); at < f.size; {
		s, err := f.readLeadIn(at)
		if errors.Is(err, errTail) {
			return nil
		}
		if err != nil {
			return err
		}
		if s.toc&tocMeta != 0 {
			if list, err = f.readMeta(s, list); err != nil {
				return err
			}
		} else if list == nil && s.toc&tocRaw != 0 {
			return f.errorf(at, "the first segment has no metadata: the beginning of the file is missing; copy it again")
		}
		if s.toc&tocRaw != 0 {
			if err := f.place(s, list); err != nil {
				return err
			}
		}
		at = s.end
	}
	return nil
}

// errTail says that the rest of the file holds nothing whole.
var errTail = errors.New("tail")

// tail notes what is left at the end of an interrupted file.
func (f *file) tail(at int64, what string) error {
	f.Remark("the file was not finished: %s at byte %d of %d; what comes before is whole", what, at, f.size)
	return errTail
}

func (f *file) readLeadIn(at int64) (segment, error) {
	s := segment{at: at}
	var b [leadIn]byte
	n, err := f.in.ReadAt(b[:min(leadIn, f.size-at)], at)
	if err != nil && err != io.EOF {
		return s, fmt.Errorf("tdms: %s: %w", f.name, err)
	}
	if tag := string(b[:4]); tag != "TDSm" && at == 0 {
		if tag == "TDSh" {
			return s, fmt.Errorf("tdms: %s: is the index of a recording and holds no samples: give the .tdms file of the same name", f.name)
		}
		return s, fmt.Errorf("tdms: %s: is not a TDMS file, it does not begin with TDSm: check its ending, or set `format` under the layout's `recording`", f.name)
	} else if n == leadIn && tag != "TDSm" && tag != "\x00\x00\x00\x00" {
		return s, f.errorf(at, "a segment should begin here, but there is no TDSm: the file is damaged; copy it again")
	}
	if n < leadIn || b[0] == 0 {
		return s, f.tail(at, "its last segment breaks off")
	}
	s.toc = binary.LittleEndian.Uint32(b[4:])
	var order binary.ByteOrder = binary.LittleEndian
	if s.big() {
		order = binary.BigEndian
	}
	next, data := order.Uint64(b[12:]), order.Uint64(b[20:])
	left := uint64(f.size - at - leadIn)
	s.unwritten = next == math.MaxUint64
	s.cut = s.unwritten || next > left
	s.end = f.size
	if !s.cut {
		s.end = at + leadIn + int64(next)
	}
	if data > left {
		if s.cut {
			return s, f.tail(at, "the metadata of its last segment break off")
		}
		return s, f.errorf(at, "the raw data of the segment would begin %d bytes behind it, beyond the end of the file: the file is damaged; copy it again", data)
	}
	s.data = at + leadIn + int64(data)
	if s.data > s.end {
		return s, f.errorf(at, "the raw data of the segment would begin after its end: the file is damaged; copy it again")
	}
	return s, nil
}

// readMeta returns the list of objects of a segment, given the list of the one
// before.
func (f *file) readMeta(s segment, before []member) ([]member, error) {
	const most = 1 << 40 // no section reader overflows
	m := &meta{at: s.at + leadIn, end: s.data, big: s.big(), order: binary.LittleEndian}
	if m.big {
		m.order = binary.BigEndian
	}
	m.r = bufio.NewReader(io.NewSectionReader(f.in, m.at, min(s.data-m.at, most)))
	list := make([]member, 0, len(before))
	if s.toc&tocNewList == 0 {
		list = append(list, before...)
	}
	position := make(map[*object]int, len(list))
	for i, e := range list {
		position[e.object] = i
	}
	for i, n := uint32(0), m.uint32(); i < n && m.err == nil; i++ {
		list = f.readObject(m, list, position)
	}
	if m.err != nil {
		return nil, f.errorf(m.at, "the metadata of the segment at byte %d cannot be read: %v: the file is damaged; copy it again", s.at, m.err)
	}
	return list, nil
}

// readObject reads one object of a segment into its list.
func (f *file) readObject(m *meta, list []member, position map[*object]int) []member {
	path := m.text(maxName, false)
	if m.err != nil {
		return list
	}
	o, known := f.objects[path]
	if !known {
		o = &object{path: path}
		var ok bool
		if o.group, o.channel, ok = splitPath(path); !ok {
			m.fail(fmt.Errorf("%.80q is not the path of an object", path))
			return list
		}
		f.objects[path] = o
		f.order = append(f.order, o)
	}
	header := m.uint32()
	e := member{object: o, index: o.index, data: true}
	switch header {
	case noRawData:
		e.data = false
	case sameAsBefore:
		if !o.stated {
			m.fail(fmt.Errorf("object %.80s has the values it had before, but it had none", path))
		}
	default:
		e.index = m.rawIndex(header)
		o.index, o.stated = e.index, true
	}
	if i, ok := position[o]; ok {
		list[i] = e
	} else {
		position[o] = len(list)
		list = append(list, e)
	}
	before := o.properties["wf_start_time"].time
	m.properties(o)
	f.noteBreak(o, before, o.properties["wf_start_time"].time)
	return list
}

// noteBreak notes that a channel begins again at another time than that at which the values since its start before have ended.
func (f *file) noteBreak(o *object, before, start time.Time) {
	dt := o.properties["wf_increment"].number
	if !(dt > 0) || start.Equal(before) {
		return
	}
	late := start.Sub(before) - time.Duration(float64(o.values-o.begun)*dt*1e9)
	if o.begun = o.values; o.values == 0 || before.IsZero() || start.IsZero() || late.Abs() <= time.Second { // a computer's clock
		return
	}
	if f.breaks++; f.breaks == 1 {
		f.aBreak = fmt.Sprintf("channel %s/%s behind value %d, %v late", o.group, o.channel, o.values, late)
	}
}

package mat5

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/source/track"
)

// kind is the type of the data of an element.
type kind uint32

const (
	kindInt8       kind = 1
	kindUint8      kind = 2
	kindInt16      kind = 3
	kindUint16     kind = 4
	kindInt32      kind = 5
	kindUint32     kind = 6
	kindFloat32    kind = 7
	kindFloat64    kind = 9
	kindInt64      kind = 12
	kindUint64     kind = 13
	kindMatrix          = 14
	kindCompressed      = 15
)

// numeric says how the types of numbers are stored: class and bytes.
var numeric = map[kind]struct {
	class byte
	size  int
}{
	kindInt8: {'i', 1}, kindUint8: {'u', 1}, kindInt16: {'i', 2}, kindUint16: {'u', 2}, kindInt32: {'i', 4}, kindUint32: {'u', 4},
	kindInt64: {'i', 8}, kindUint64: {'u', 8}, kindFloat32: {'f', 4}, kindFloat64: {'f', 8},
}

// size returns the bytes of a value, 0 if it is not a number.
func (k kind) size() int { return numeric[k].size }

// Classes of arrays.
const (
	classCell   = 1
	classStruct = 2
	classObject = 3
	classChar   = 4
	classSparse = 5
	classDouble = 6
	classUint64 = 15
)

// classes names what is left out.
var classes = map[uint32]string{classCell: "a cell array", classObject: "an object", classChar: "text", classSparse: "sparse", 16: "a function", 17: "an object"}

// limits of what a file may announce. No recording comes near them.
const (
	maxName   = 64 << 10 // bytes of a name, and of the names of all fields
	maxDepth  = 16       // structures within structures
	maxTracks = 4096     // of one matrix
)

// scanner reads the elements of one variable.
type scanner struct {
	file     *file
	variable int
	r        *bufio.Reader
	at       int64 // bytes read
	left     int64 // bytes that there are
	b        [8]byte
	err      error // the first; from then on numbers are 0 and bytes none
}

var errEnd = errors.New("it ends in the middle of an element")

// fail notes an error, unless there was one.
func (s *scanner) fail(err error) { s.err = cmp.Or(s.err, err) }

// take reads n ≤ 8 bytes.
func (s *scanner) take(n int) []byte {
	b := s.b[:n]
	if s.left-s.at < int64(n) {
		s.fail(errEnd)
	}
	if s.err == nil {
		_, err := io.ReadFull(s.r, b)
		s.err = ending(err)
	}
	if s.err != nil {
		clear(b)
		return b
	}
	s.at += int64(n)
	return b
}

// ending puts the end of a stream in words.
func ending(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errEnd
	}
	return err
}

func (s *scanner) skip(n int64) {
	if n < 0 || n > s.left-s.at {
		s.fail(errEnd)
	}
	if s.err == nil {
		s.at += n
		s.err = ending(track.Skip(s.r, n))
	}
}

// tag reads a tag of full size.
func (s *scanner) tag() (k kind, size int64) {
	b := s.take(8)
	return kind(s.file.order.Uint32(b)), int64(s.file.order.Uint32(b[4:]))
}

// element reads the tag of an element whose data may be within the tag; pad is
// how many bytes follow the data.
func (s *scanner) element() (k kind, size, pad int64) {
	first := s.file.order.Uint32(s.take(4))
	if n := int64(first >> 16); n != 0 {
		if n > 4 {
			s.fail(fmt.Errorf("a short element has %d bytes", n))
		}
		return kind(first & 0xffff), n, 4 - n
	}
	size = int64(s.file.order.Uint32(s.take(4)))
	return kind(first), size, -size & 7
}

// bytes reads the data of a short element, such as a name.
func (s *scanner) bytes() []byte {
	_, size, pad := s.element()
	if size > maxName || size > s.left-s.at {
		s.fail(fmt.Errorf("a name or a list of dimensions has %d bytes", size))
	}
	if s.err != nil {
		return nil
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(s.r, b); err != nil {
		s.fail(ending(err))
		return nil
	}
	s.at += size
	s.skip(min(pad, s.left-s.at))
	return b
}

// matrix reads the element of a matrix with size bytes of data; path is the name
// of what holds it, if anything.
func (s *scanner) matrix(path string, size int64, depth int) {
	if size == 0 {
		return // an empty field
	}
	if depth > maxDepth {
		s.fail(fmt.Errorf("%s: structures are nested more than %d deep", path, maxDepth))
		return
	}
	end := s.at + size
	if k, n, _ := s.element(); s.err != nil || k != kindUint32 || n != 8 {
		s.err = errors.Join(s.err, errors.New("a matrix has no flags"))
	}
	flags := s.file.order.Uint32(s.take(8))
	class, complexNumbers := flags&0xff, flags&0x800 != 0
	dims, total := s.dimensions()
	name := path + strings.TrimRight(string(s.bytes()), "\x00")
	switch {
	case s.err != nil:
		return
	case class == classStruct:
		s.structure(name, total, depth)
		return
	case class < classDouble || class > classUint64:
		s.leave(name, classes[class])
	case complexNumbers:
		s.leave(name, "complex")
	default:
		if s.numbers(name, dims, total); s.err != nil {
			s.err = fmt.Errorf("%s: %w", name, s.err)
		}
	}
	if depth > 0 { // else nothing follows that would be read
		s.skip(end - s.at)
	}
}

func (s *scanner) leave(name, what string) {
	s.file.Remark("variable %.80s is left out: it is %s", name, cmp.Or(what, "of a class that is not known"))
}

// dimensions reads how long an array is in each direction, and how many values that makes.
func (s *scanner) dimensions() (dims []int64, total int64) {
	total = 1
	for b := s.bytes(); len(b) >= 4; b = b[4:] {
		d := int64(int32(s.file.order.Uint32(b)))
		if d < 0 || d > 0 && total > 1<<40/d {
			s.fail(fmt.Errorf("an array has dimension %d", d))
			return nil, 0
		}
		total *= d
		dims = append(dims, d)
	}
	if len(dims) < 2 {
		s.fail(errors.New("an array has less than 2 dimensions"))
	}
	return dims, total
}

// structure reads the fields of an array of so many structures.
func (s *scanner) structure(name string, total int64, depth int) {
	b := s.bytes()
	if len(b) != 4 {
		s.fail(errors.New("a structure does not say how long its names are"))
		return
	}
	width := int(int32(s.file.order.Uint32(b)))
	if width < 1 || width > maxName {
		s.fail(fmt.Errorf("a structure has names of %d bytes", width))
		return
	}
	list := s.bytes()
	var fields []string
	for ; len(list) >= width; list = list[width:] {
		f, _, _ := bytes.Cut(list[:width], []byte{0})
		fields = append(fields, string(f))
	}
	for i := range total {
		at := name
		if total > 1 {
			at = fmt.Sprintf("%s(%d)", name, i+1)
		}
		if len(fields) == 0 {
			break
		}
		for _, field := range fields {
			k, size := s.tag()
			if k != kindMatrix {
				s.fail(fmt.Errorf("%s.%s: a field is an element of type %d", at, field, k))
				return
			}
			s.matrix(at+"."+field, size, depth+1)
		}
	}
}

// numbers notes the tracks of an array, whose values come next.
func (s *scanner) numbers(name string, dims []int64, total int64) {
	k, size, _ := s.element()
	if total == 0 {
		return
	}
	rows, columns := dims[0], total/dims[0]
	if k.size() == 0 || size != total*int64(k.size()) {
		s.fail(fmt.Errorf("%d values of type %d should not have %d bytes", total, k, size))
	}
	if s.left < s.at+size {
		s.fail(errEnd)
	}
	if s.err != nil {
		return
	}
	longest := max(rows, columns)
	f := s.file
	add := func(name string, first, step int64) {
		f.series = append(f.series, series{variable: s.variable, at: s.at + first*int64(k.size()), step: step * int64(k.size()), kind: k, count: longest})
		f.Infos = append(f.Infos, track.Info{Name: name, Len: longest})
	}
	switch {
	case slices.Contains(dims, total): // a vector, in any dimension
		add(name, 0, 1)
	case len(dims) > 2:
		s.leave(name, fmt.Sprintf("of %d dimensions", len(dims)))
	case total/longest > maxTracks:
		s.leave(name, fmt.Sprintf("more than %d channels", maxTracks))
	case rows >= columns:
		for j := range columns {
			add(fmt.Sprintf("%s(:,%d)", name, j+1), j*rows, 1)
		}
	default:
		for i := range rows {
			add(fmt.Sprintf("%s(%d,:)", name, i+1), i, rows)
		}
	}
}

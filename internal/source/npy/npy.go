// Package npy reads the arrays that NumPy saves: NPY files, and NPZ files,
// which are ZIP archives of them.
//
// An array of one dimension is one track. An array of two is as many tracks as
// its shorter dimension has, each along the longer one: samples outnumber
// channels. Tracks of an NPY file are called 1, 2, 3, …; tracks of an NPZ file
// by the name of the array, with the index in NumPy's words if the array has
// several: x, x[:,1], x[1,:].
//
// Source: NumPy, "NEP 1: A simple file format for NumPy arrays", versions 1.0
// to 3.0. Values are checked against NumPy.
package npy

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/flank-tcm/flank/internal/source/track"
)

// Format is NPY and NPZ.
var Format = track.Format{Name: "npy", Endings: []string{".npy", ".npz"}, Magic: "\x93NUMPY", Like: regexp.MustCompile("(?s)^PK\x03\x04.{26,200}\\.npy"), New: newFile}

// file is an open NPY or NPZ file: a [track.Contents] of its arrays of real numbers.
type file struct {
	name   string
	series []series
	track.Listing
}

// series is where the values of a track are.
type series struct {
	array *array
	first int64 // number of its first value in the array
	step  int64 // values from one to the next
	count int64
}

// array is an NPY file, or one within an NPZ file.
type array struct {
	name   string
	open   func() (io.ReadCloser, error)
	data   int64 // byte at which its values begin
	class  byte  // of its values, see track.Decoder
	size   int   // of a value
	order  binary.ByteOrder
	column bool // values of a column follow each other
	shape  []int64
}

// newFile reads which arrays a file of the given size holds; name names it in
// errors. The caller keeps in and closes it.
func newFile(in io.ReaderAt, size int64, name string) (track.Contents, error) {
	f := &file{name: name}
	var magic [4]byte
	if _, err := in.ReadAt(magic[:], 0); err != nil && err != io.EOF {
		return nil, fmt.Errorf("npy: %s: %w", name, err)
	}
	if string(magic[:]) == "PK\x03\x04" {
		return f, f.readArchive(in, size)
	}
	a := &array{open: func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(in, 0, size)), nil }}
	left, err := a.readHeader()
	if err == nil && left != "" {
		err = fmt.Errorf("the array is %s: save an array of real numbers", left)
	}
	if err != nil {
		return nil, fmt.Errorf("npy: %s: %w", name, err)
	}
	if n := a.values() * int64(a.size); size-a.data < n {
		return nil, fmt.Errorf("npy: %s: its values need %d bytes, but %d follow byte %d: copy the file again", name, n, size-a.data, a.data)
	}
	return f, f.add(a)
}

// maxArrays is the most arrays that a file may have.
const maxArrays = 4096

func (f *file) readArchive(in io.ReaderAt, size int64) error {
	z, err := zip.NewReader(in, size)
	if err != nil {
		return fmt.Errorf("npy: %s: is not an NPZ file, or is damaged: %w: save it again", f.name, err)
	}
	if len(z.File) > maxArrays {
		return fmt.Errorf("npy: %s: holds %d arrays, more than %d: save fewer", f.name, len(z.File), maxArrays)
	}
	for _, member := range z.File {
		name, ok := strings.CutSuffix(member.Name, ".npy")
		if !ok {
			f.Remark("%.80s is left out: it is not an array", member.Name)
			continue
		}
		a := &array{name: name, open: member.Open}
		left, err := a.readHeader()
		if err != nil {
			return fmt.Errorf("npy: %s: array %.80s: %w", f.name, name, err)
		}
		if left != "" {
			f.Remark("array %.80s is left out: it is %s", name, left)
			continue
		}
		if err := f.add(a); err != nil {
			return err
		}
	}
	if len(f.series) == 0 {
		return fmt.Errorf("npy: %s: holds no array of real numbers: save one", f.name)
	}
	f.series, err = track.LeaveShort(&f.Listing, f.series, f.column)
	return err
}

// add lists the tracks of an array.
func (f *file) add(a *array) error {
	rows, columns := a.values(), int64(1)
	if len(a.shape) == 2 {
		rows, columns = a.shape[0], a.shape[1]
	}
	n, along := columns, rows // tracks, and values of each
	if columns > rows {
		n, along = rows, columns
	}
	if n == 0 || along == 0 {
		return fmt.Errorf("npy: %s: array %q is empty: record again", f.name, a.name)
	}
	if n > maxArrays {
		return fmt.Errorf("npy: %s: array %q would be %d channels, more than %d: save fewer", f.name, a.name, n, maxArrays)
	}
	// Values of a track follow each other if the axis of time is stored so.
	contiguous := a.column == (columns <= rows)
	for i := range n {
		s := series{array: a, first: i, step: n, count: along}
		if contiguous {
			s.first, s.step = i*along, 1
		}
		name := a.name
		switch {
		case name == "":
			name = strconv.FormatInt(i+1, 10)
		case n > 1 && columns <= rows:
			name += fmt.Sprintf("[:,%d]", i)
		case n > 1:
			name += fmt.Sprintf("[%d,:]", i)
		}
		f.series = append(f.series, s)
		f.Infos = append(f.Infos, track.Info{Name: name, Len: along})
	}
	return nil
}

func (a *array) values() int64 {
	n := int64(1)
	for _, d := range a.shape {
		n *= d
	}
	return n
}

var (
	descr   = regexp.MustCompile(`'descr':\s*'([<>|=])([a-zA-Z])(\d+)'`)
	fortran = regexp.MustCompile(`'fortran_order':\s*(True|False)`)
	shape   = regexp.MustCompile(`'shape':\s*\(([0-9, ]*)\)`)
)

// readHeader reads what comes before the values. It returns why an array is
// left out, empty if it is not.
func (a *array) readHeader() (left string, err error) {
	r, err := a.open()
	if err != nil {
		return "", err
	}
	defer r.Close()
	text, err := a.headerText(r)
	if err != nil {
		return "", err
	}
	d, o, s := descr.FindSubmatch(text), fortran.FindSubmatch(text), shape.FindSubmatch(text)
	if o == nil || s == nil {
		return "", fmt.Errorf("the header %.80q states no order or no shape: save it again", text)
	}
	if d == nil {
		return "an array of records or of text", nil
	}
	a.order = binary.LittleEndian
	if d[1][0] == '>' {
		a.order = binary.BigEndian
	}
	a.class = d[2][0]
	if a.class == 'b' { // a truth value
		a.class = 'u'
	}
	a.size, _ = strconv.Atoi(string(d[3])) // digits
	a.column = string(o[1]) == "True"
	if err := a.setShape(string(s[1])); err != nil {
		return "", err
	}
	switch {
	case track.Decoder(a.class, a.size, a.order) == nil:
		return fmt.Sprintf("of type %s%s", d[2], d[3]), nil
	case len(a.shape) > 2:
		return fmt.Sprintf("of %d dimensions", len(a.shape)), nil
	}
	return "", nil
}

// headerText returns the description of the array, and notes where it ends.
func (a *array) headerText(r io.Reader) ([]byte, error) {
	var b [12]byte
	if _, err := io.ReadFull(r, b[:10]); err != nil || string(b[:6]) != "\x93NUMPY" {
		return nil, errors.New("is not an NPY file, it does not begin with NUMPY: check its ending, or set `format` under the layout's `recording`")
	}
	n := int64(binary.LittleEndian.Uint16(b[8:]))
	a.data = 10
	switch b[6] {
	case 1:
	case 2, 3:
		if _, err := io.ReadFull(r, b[10:]); err != nil {
			return nil, errors.New("it ends in its header: copy it again")
		}
		n = int64(binary.LittleEndian.Uint32(b[8:]))
		a.data = 12
	default:
		return nil, fmt.Errorf("version %d.%d is not known: save it as version 1.0", b[6], b[7])
	}
	if n > 64<<10 {
		return nil, fmt.Errorf("a header of %d bytes is too long for an array of numbers: save an array of real numbers", n)
	}
	a.data += n
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, errors.New("it ends in its header: copy it again")
	}
	return text, nil
}

// setShape reads the dimensions of the array, between parentheses.
func (a *array) setShape(text string) error {
	total := int64(1)
	for field := range strings.SplitSeq(text, ",") {
		if field = strings.TrimSpace(field); field == "" {
			continue
		}
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil || n > 0 && total > 1<<48/n {
			return fmt.Errorf("the shape (%.80s) is too large: save it again", text)
		}
		a.shape = append(a.shape, n)
		total *= n
	}
	return nil
}

// Open returns a Reader of tracks. Each reads, and inflates, its array by
// itself.
func (f *file) Open(tracks []int) (track.Reader, error) {
	return f.SideBySide(tracks, f.column)
}

// column returns a Column of track i.
func (f *file) column(i int) (track.Column, error) {
	s := f.series[i]
	fail := func(value int64, err error) error {
		if err == io.ErrUnexpectedEOF {
			err = errors.New("the values end")
		}
		return fmt.Errorf("npy: %s: %s, value %d of %d: %w: the file is damaged; copy it again", f.name, f.Infos[i].Name, value+1, s.count, err)
	}
	in, err := s.array.open()
	if err != nil {
		return nil, fail(0, err)
	}
	r, skip := bufio.NewReader(in), s.array.data+s.first*int64(s.array.size)
	if at, ok := in.(io.Seeker); ok {
		_, err = at.Seek(skip, io.SeekStart)
	} else {
		err = track.Skip(r, skip)
	}
	if err != nil {
		return nil, fail(0, err)
	}
	return &track.Strided{
		Stream: r, Size: s.array.size, Step: s.step * int64(s.array.size), Count: s.count,
		Decode: track.Decoder(s.array.class, s.array.size, s.array.order), Fail: fail,
	}, nil
}

// Package mat5 reads the files that MATLAB saves in version 5 to 7: MAT-files
// of level 5.
//
// A file is a header and then elements, each a tag, which is type and size, and
// data. A variable is an element of type matrix, or a compressed element that
// holds one. The elements in a matrix are its flags, its dimensions, its name
// and its values, which may be stored in a smaller type than the one that the
// variable has. The fields of a structure are matrices in turn.
//
// Arrays of real numbers are read, also as fields of structures. A vector is
// one track. A matrix of two dimensions is as many tracks as its shorter
// dimension has, each along the longer one: samples outnumber channels. Tracks
// have MATLAB's names: x, x(:,2), x(2,:), s.x, s(3).x.
//
// Source: MathWorks, "MAT-File Format" (R2024a). Values are checked against
// scipy.io.
package mat5

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/flank-tcm/flank/internal/source/track"
)

// Format is MAT-files of level 5.
var Format = track.Format{Name: "mat", Endings: []string{".mat"}, Magic: "MATLAB 5.0", New: newFile}

// file is an open MAT-file: a [track.Contents] of its arrays of numbers.
type file struct {
	name  string
	in    io.ReaderAt
	size  int64
	order binary.ByteOrder

	variables []variable
	series    []series
	track.Listing
}

// variable is an element at the top of the file.
type variable struct {
	at         int64 // byte of its data
	size       int64 // of its data
	compressed bool
}

// series is where the values of a track are.
type series struct {
	variable int
	at       int64 // byte of the first value, within the data of the variable, inflated
	step     int64 // bytes from a value to the next
	kind     kind
	count    int64
}

const headerSize = 128

// newFile reads what variables a file of the given size has; name names it in
// errors. The caller keeps in and closes it.
func newFile(in io.ReaderAt, size int64, name string) (track.Contents, error) {
	f := &file{name: name, in: in, size: size}
	var head [headerSize]byte
	n, err := in.ReadAt(head[:min(size, headerSize)], 0)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("mat5: %s: %w", name, err)
	}
	mark := string(head[126:])
	switch {
	case bytes.HasPrefix(head[:], []byte("MATLAB 7.3")) || bytes.HasPrefix(head[:], []byte("\x89HDF")):
		return nil, fmt.Errorf("mat5: %s: was saved as version 7.3, which is HDF5: save it with -v7, or convert it, see docs/reference/formats.md", name)
	case n < headerSize || mark != "IM" && mark != "MI":
		return nil, fmt.Errorf("mat5: %s: is not a MAT-file of version 5 to 7: save it with -v7, or check its ending", name)
	case mark == "IM":
		f.order = binary.LittleEndian
	default:
		f.order = binary.BigEndian
	}
	if err := f.readVariables(); err != nil {
		return nil, err
	}
	if len(f.series) == 0 {
		if len(f.Remarks) > 0 {
			return nil, fmt.Errorf("mat5: %s: holds no array of numbers (%s): save one", name, strings.Join(f.Remarks, "; "))
		}
		return nil, fmt.Errorf("mat5: %s: holds no array of numbers: save one", name)
	}
	f.series, err = track.LeaveShort(&f.Listing, f.series, f.column)
	return f, err
}

// readVariables reads the tags of all variables, and what each one holds.
func (f *file) readVariables() error {
	for at := int64(headerSize); at < f.size; {
		var b [8]byte
		if f.size-at < 8 {
			return f.errorf(at, "the file breaks off: copy it again")
		}
		if _, err := f.in.ReadAt(b[:], at); err != nil {
			return fmt.Errorf("mat5: %s: %w", f.name, err)
		}
		k, size := f.order.Uint32(b[:]), int64(f.order.Uint32(b[4:]))
		if k != kindMatrix && k != kindCompressed {
			return f.errorf(at, "a variable should begin here, but there is an element of type %d: the file is damaged; copy it again", k)
		}
		if size > f.size-at-8 {
			return f.errorf(at, "the file ends in the middle of a variable of %d bytes: copy it again", size)
		}
		v := variable{at: at + 8, size: size, compressed: k == kindCompressed}
		f.variables = append(f.variables, v)
		if err := f.readVariable(len(f.variables) - 1); err != nil {
			return f.errorf(at, "the variable that begins here cannot be read: %v: the file is damaged; copy it again", err)
		}
		at = v.at + v.size
	}
	return nil
}

func (f *file) readVariable(i int) error {
	v := f.variables[i]
	r, err := f.inflated(v)
	if err != nil {
		return err
	}
	s := &scanner{file: f, variable: i, r: r, left: math.MaxInt64}
	if !v.compressed {
		s.left = v.size
		s.matrix("", v.size, 0)
	} else if k, size := s.tag(); k == kindMatrix {
		s.matrix("", size, 0)
	} else {
		s.fail(fmt.Errorf("compressed data hold an element of type %d", k))
	}
	return s.err
}

// inflated returns the data of a variable from their first byte.
func (f *file) inflated(v variable) (*bufio.Reader, error) {
	section := io.NewSectionReader(f.in, v.at, v.size)
	if !v.compressed {
		return bufio.NewReader(section), nil
	}
	z, err := zlib.NewReader(bufio.NewReader(section))
	if err != nil {
		return nil, err
	}
	return bufio.NewReader(z), nil
}

// Open returns a Reader of tracks. Each reads, and inflates, its variable by
// itself.
func (f *file) Open(tracks []int) (track.Reader, error) {
	return f.SideBySide(tracks, f.column)
}

// column returns a Column of track i.
func (f *file) column(i int) (track.Column, error) {
	s := f.series[i]
	v := f.variables[s.variable]
	fail := func(value int64, err error) error {
		return fmt.Errorf("mat5: %s: variable %s, value %d of %d: %w: the file is damaged; copy it again", f.name, f.Infos[i].Name, value+1, s.count, ending(err))
	}
	skip := s.at
	if !v.compressed { // no need to read what comes before
		v.at, v.size, skip = v.at+s.at, v.size-s.at, 0
	}
	r, err := f.inflated(v)
	if err == nil {
		err = track.Skip(r, skip)
	}
	if err != nil {
		return nil, fail(0, err)
	}
	return &track.Strided{Stream: r, Size: s.kind.size(), Step: s.step, Count: s.count, Decode: track.Decoder(numeric[s.kind].class, s.kind.size(), f.order), Fail: fail}, nil
}

// errorf returns an error about what is at a byte of the file.
func (f *file) errorf(at int64, format string, args ...any) error {
	return fmt.Errorf("mat5: %s: byte %d: %s", f.name, at, fmt.Sprintf(format, args...))
}

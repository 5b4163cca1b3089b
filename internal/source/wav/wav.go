// Package wav reads WAV files: PCM of 8, 16, 24 and 32 bits and floating point
// of 32 and 64 bits, of any number of channels.
//
// PCM is delivered as a part of full scale: n bits stand for -1 to 1-2^(1-n),
// so that the gain of a channel is what full scale means in its unit. Channels
// are called 1, 2, 3, …
//
// Sources: IBM and Microsoft, "Multimedia Programming Interface and Data
// Specifications 1.0" (1991); Microsoft, "Multiple Channel Audio Data and WAVE
// Files" (2007); EBU Tech 3306 for files over 4 GiB (RF64).
package wav

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/flank-tcm/flank/internal/source/track"
)

// Format is WAV.
var Format = track.Format{Name: "wav", Endings: []string{".wav"}, Magic: "RIFF", New: newFile}

// file is an open WAV file: a [track.Contents] of its channels.
type file struct {
	name   string
	in     io.ReaderAt
	data   int64 // byte of the first frame
	frame  int64 // bytes of one sample of every channel
	frames int64
	size   int // bytes of a sample
	decode func([]byte) float64
	track.Listing
}

// newFile reads the header of a file of the given size; name names it in errors.
// The caller keeps in and closes it.
func newFile(in io.ReaderAt, size int64, name string) (track.Contents, error) {
	f := &file{name: name, in: in}
	var head [12]byte
	if n, _ := in.ReadAt(head[:], 0); n < len(head) || string(head[:4]) != "RIFF" && string(head[:4]) != "RF64" || string(head[8:]) != "WAVE" {
		return nil, fmt.Errorf("wav: %s: is not a WAV file, it does not begin with RIFF and WAVE: check its ending, or set `format` under the layout's `recording`", name)
	}
	long := int64(0)
	for at := int64(len(head)); ; {
		var b [8]byte
		if n, err := in.ReadAt(b[:], at); n < len(b) {
			if err != io.EOF {
				return nil, fmt.Errorf("wav: %s: %w", name, err)
			}
			return nil, f.errorf(min(at, size), "the file ends before its samples: record again")
		}
		id, n := string(b[:4]), int64(binary.LittleEndian.Uint32(b[4:]))
		at += 8
		switch id {
		case "fmt ":
			if err := f.readFormat(at, n); err != nil {
				return nil, err
			}
		case "ds64": // of RF64: the length of samples for which 32 bits are too few
			_, _ = in.ReadAt(b[:], at+8) // the file ends before its samples if it ends here
			long = int64(binary.LittleEndian.Uint64(b[:]))
		case "data":
			if n == math.MaxUint32 && long > 0 {
				n = long
			}
			if f.decode == nil {
				return nil, f.errorf(at-8, "the samples come before the format: the file is damaged; export it again")
			}
			return f, f.readData(at, n, size)
		}
		at += n + n&1
	}
}

// coding is how samples are stored: the code of the format, 1 for PCM and 3 for floating point, and bits of a sample.
type coding struct {
	code uint16
	bits int
}

// decoders make numbers of samples: PCM has the full scale ±1.
var decoders = map[coding]func([]byte) float64{
	{1, 8}:  func(b []byte) float64 { return (float64(b[0]) - 128) / (1 << 7) },
	{1, 16}: func(b []byte) float64 { return float64(int16(binary.LittleEndian.Uint16(b))) / (1 << 15) },
	{1, 24}: func(b []byte) float64 {
		return float64(int32(uint32(b[0])<<8|uint32(b[1])<<16|uint32(b[2])<<24)) / (1 << 31)
	},
	{1, 32}: func(b []byte) float64 { return float64(int32(binary.LittleEndian.Uint32(b))) / (1 << 31) },
	{3, 32}: track.Decoder('f', 4, binary.LittleEndian),
	{3, 64}: track.Decoder('f', 8, binary.LittleEndian),
}

// readFormat reads the chunk that says what samples are like.
func (f *file) readFormat(at, n int64) error {
	b := make([]byte, min(n, 40))
	if m, _ := f.in.ReadAt(b, at); m < 16 {
		return f.errorf(at, "the format is cut off: copy the file again")
	}
	code := binary.LittleEndian.Uint16(b)
	channels, rate := int(binary.LittleEndian.Uint16(b[2:])), binary.LittleEndian.Uint32(b[4:])
	align, bits := binary.LittleEndian.Uint16(b[12:]), int(binary.LittleEndian.Uint16(b[14:]))
	if code == 0xfffe && len(b) >= 26 { // extensible: the code is the beginning of a GUID
		code = binary.LittleEndian.Uint16(b[24:])
	}
	f.Infos = nil // a second format replaces the first
	f.size, f.frame = bits/8, int64(align)
	if f.decode = decoders[coding{code, bits}]; f.decode == nil {
		return f.errorf(at, "samples of code %d with %d bits are not supported: export it as PCM or floating point", code, bits)
	}
	if channels == 0 || rate == 0 || f.frame != int64(channels*f.size) {
		return f.errorf(at, "%d channels of %d bits at %d Hz should not have frames of %d bytes: the file is damaged; copy it again", channels, bits, rate, align)
	}
	for i := range channels {
		f.Infos = append(f.Infos, track.Info{Name: strconv.Itoa(i + 1), Rate: float64(rate)})
	}
	return nil
}

// readData takes note of n bytes of samples. A recorder that was stopped leaves
// 0 or the greatest number, and so do files over 4 GiB.
func (f *file) readData(at, n, size int64) error {
	if left := size - at; n == math.MaxUint32 || n == 0 || n > left {
		if n != math.MaxUint32 {
			f.Remark("the file was not finished: its header does not have the length of its samples; the samples that are there are read")
		}
		n = left
	}
	f.data, f.frames = at, n/f.frame
	if f.frames == 0 {
		return f.errorf(at, "the file holds no samples: record again")
	}
	for i := range f.Infos {
		f.Infos[i].Len = f.frames
	}
	return nil
}

// Open returns a Reader of channels.
func (f *file) Open(tracks []int) (track.Reader, error) {
	return f.SideBySide(tracks, func(i int) (track.Column, error) {
		at := f.data + int64(i*f.size)
		return &track.Strided{
			Stream: bufio.NewReader(io.NewSectionReader(f.in, at, f.frames*f.frame-int64(i*f.size))),
			Size:   f.size, Step: f.frame, Count: f.frames, Decode: f.decode,
			Fail: func(value int64, err error) error {
				return f.errorf(at+value*f.frame, "channel %d: %v: copy the file again", i+1, err)
			},
		}, nil
	})
}

// errorf returns an error about what is at a byte of the file.
func (f *file) errorf(at int64, format string, args ...any) error {
	return fmt.Errorf("wav: %s: byte %d: %s", f.name, at, fmt.Sprintf(format, args...))
}

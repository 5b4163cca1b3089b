package record

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
)

// Types of elements and the class of an array in a MAT-file.
const (
	matInt8       = 1
	matInt32      = 5
	matUint32     = 6
	matFloat32    = 7
	matMatrix     = 14
	matCompressed = 15
	matSingle     = 7 // class
)

// writeMAT writes a MAT-file of level 5 with one compressed variable for each
// channel, a column of class single (MathWorks, "MAT-File Format", R2024a). Noise
// hardly deflates, so speed goes before size.
func writeMAT(out *os.File, columns []*column) error {
	head := append([]byte("MATLAB 5.0 MAT-file, simulated gun drill"), bytes.Repeat([]byte{' '}, 124)...)[:124]
	if _, err := out.Write(append(head, "\x00\x01IM"...)); err != nil {
		return err
	}
	le := binary.LittleEndian
	for _, c := range columns {
		if 4*c.samples > math.MaxInt32 {
			return fmt.Errorf("channel %s: MAT-files of this version hold 2 GiB of a variable: choose %s or %s", c.name, TDMS, Parquet)
		}
		at, err := out.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		if _, err := out.Write(le.AppendUint32(le.AppendUint32(nil, matCompressed), 0)); err != nil { // its size is written below
			return err
		}
		z, err := zlib.NewWriterLevel(out, zlib.BestSpeed)
		if err != nil {
			return err
		}
		if err := writeVariable(z, c); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		end, err := out.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		if _, err := out.WriteAt(le.AppendUint32(nil, uint32(end-at-8)), at+4); err != nil {
			return err
		}
	}
	return nil
}

// writeVariable writes a matrix element: its flags, dimensions, name and values,
// each padded to eight bytes.
func writeVariable(w io.Writer, c *column) error {
	le := binary.LittleEndian
	element := func(b []byte, kind uint32, data []byte) []byte {
		b = le.AppendUint32(le.AppendUint32(b, kind), uint32(len(data)))
		return append(append(b, data...), make([]byte, -len(data)&7)...)
	}
	body := element(nil, matUint32, le.AppendUint32(le.AppendUint32(nil, matSingle), 0))
	body = element(body, matInt32, le.AppendUint32(le.AppendUint32(nil, uint32(c.samples)), 1))
	body = element(body, matInt8, []byte(c.name))
	values := uint32(4 * c.samples)
	body = le.AppendUint32(le.AppendUint32(body, matFloat32), values)
	padding := -values & 7
	tag := le.AppendUint32(le.AppendUint32(nil, matMatrix), uint32(len(body))+values+padding)
	if _, err := w.Write(append(tag, body...)); err != nil {
		return err
	}
	if err := c.copyTo(w); err != nil {
		return err
	}
	_, err := w.Write(make([]byte, padding))
	return err
}

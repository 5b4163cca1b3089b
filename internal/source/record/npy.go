package record

import (
	"archive/zip"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strings"
)

// npyHeader is the bytes before the values: enough for any shape, and a multiple
// of the 64 that values are aligned to.
const npyHeader = 128

// npyHead returns the header of an NPY file of version 1.0 with values of
// float32, by rows (NumPy, "NEP 1: A simple file format for NumPy arrays").
func npyHead(shape string) []byte {
	dict := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", shape)
	b := append(make([]byte, 0, npyHeader), "\x93NUMPY\x01\x00"...)
	b = binary.LittleEndian.AppendUint16(b, npyHeader-10)
	b = append(b, dict...)
	b = append(b, strings.Repeat(" ", npyHeader-1-len(b))...)
	return append(b, '\n')
}

// npyFile is an array of one row for each sample.
type npyFile struct{ *frames }

func newNPY(f *os.File, channels int) (*npyFile, error) {
	w := &npyFile{newFrames(f, channels)}
	_, err := w.out.Write(w.header())
	return w, err
}

func (w *npyFile) header() []byte { return npyHead(fmt.Sprintf("%d, %d", w.samples, w.channels)) }
func (w *npyFile) close() error   { return w.finish(w.header()) }

// writeNPZ writes an archive of one array for each channel. Noise hardly
// deflates, so speed goes before size.
func writeNPZ(out *os.File, columns []*column) error {
	z := zip.NewWriter(out)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	for _, c := range columns {
		w, err := z.CreateHeader(&zip.FileHeader{Name: c.name + ".npy", Method: zip.Deflate})
		if err != nil {
			return err
		}
		if _, err := w.Write(npyHead(fmt.Sprintf("%d,", c.samples))); err != nil {
			return err
		}
		if err := c.copyTo(w); err != nil {
			return err
		}
	}
	return z.Close()
}

package record

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/flank-tcm/flank/internal/source"
)

// spilled is a file in which one channel follows another, each behind a count of
// its samples. Until the recording ends, and they can be counted, each channel is
// kept in a file of its own in the same folder.
type spilled struct {
	file    *os.File
	rates   [][]*column // by group
	columns []*column   // in layout order
	lines   []line      // by group
	encode  func(out *os.File, columns []*column) error
}

// column is the samples of a channel: float32, little-endian.
type column struct {
	name    string
	samples int64
	file    *os.File
	out     *bufio.Writer
	buf     []byte
}

func newSpilled(f *os.File, w *Writer, encode func(*os.File, []*column) error) (*spilled, error) {
	s := &spilled{file: f, encode: encode}
	for _, c := range w.layout.Channels() {
		tmp, err := os.CreateTemp(filepath.Dir(f.Name()), ".channel-*.tmp")
		if err != nil {
			return nil, fmt.Errorf("record: %w", errors.Join(err, s.drop(), f.Close()))
		}
		s.columns = append(s.columns, &column{name: c.Name, file: tmp, out: bufio.NewWriterSize(tmp, 1<<16)})
	}
	for _, g := range w.layout.Groups() {
		var cs []*column
		for _, i := range g.Channels {
			cs = append(cs, s.columns[i])
		}
		s.rates = append(s.rates, cs)
	}
	s.lines = make([]line, len(s.rates))
	return s, nil
}

func (s *spilled) write(b *source.Block) error {
	missing, err := s.lines[b.Group].add(b)
	if err != nil {
		return fmt.Errorf("record: %s: %w", s.file.Name(), err)
	}
	for i, c := range s.rates[b.Group] {
		if err := c.add(missing, b.Samples[i]); err != nil {
			return fmt.Errorf("record: %w", err)
		}
	}
	return nil
}

func (c *column) add(missing int64, x []float32) error {
	c.samples += missing + int64(len(x))
	var gap [4]byte
	binary.LittleEndian.PutUint32(gap[:], missingSample)
	for range missing {
		if _, err := c.out.Write(gap[:]); err != nil {
			return err
		}
	}
	c.buf = c.buf[:0]
	for _, v := range x {
		c.buf = binary.LittleEndian.AppendUint32(c.buf, math.Float32bits(v))
	}
	_, err := c.out.Write(c.buf)
	return err
}

// copyTo writes all samples to w.
func (c *column) copyTo(w io.Writer) error {
	if err := c.out.Flush(); err != nil {
		return err
	}
	if _, err := c.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	n, err := io.Copy(w, c.file)
	if err == nil && n != 4*c.samples {
		err = fmt.Errorf("%s: %d bytes of channel %s, %d were written", c.file.Name(), n, c.name, 4*c.samples)
	}
	return err
}

func (s *spilled) close() error {
	err := s.encode(s.file, s.columns)
	if err = errors.Join(err, s.drop(), s.file.Close()); err != nil {
		return fmt.Errorf("record: %s: %w", s.file.Name(), err)
	}
	return nil
}

// drop removes the files of the channels.
func (s *spilled) drop() (err error) {
	for _, c := range s.columns {
		err = errors.Join(err, c.file.Close(), os.Remove(c.file.Name()))
	}
	return err
}

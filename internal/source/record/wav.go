package record

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/flank-tcm/flank/internal/source"
)

// frames writes samples of float32, little-endian, one of each channel and then
// the next of each.
type frames struct {
	file     *os.File
	out      *bufio.Writer
	channels int
	line
	buf []byte
}

func newFrames(f *os.File, channels int) *frames {
	return &frames{file: f, out: bufio.NewWriterSize(f, 1<<16), channels: channels}
}

func (w *frames) write(b *source.Block) error {
	missing, err := w.add(b)
	if err != nil {
		return fmt.Errorf("record: %s: %w", w.file.Name(), err)
	}
	le := binary.LittleEndian
	for range missing {
		w.buf = w.buf[:0]
		for range w.channels {
			w.buf = le.AppendUint32(w.buf, missingSample)
		}
		if _, err := w.out.Write(w.buf); err != nil {
			return fmt.Errorf("record: %w", err)
		}
	}
	w.buf = w.buf[:0]
	for i := range b.Len() {
		for _, x := range b.Samples {
			w.buf = le.AppendUint32(w.buf, math.Float32bits(x[i]))
		}
	}
	if _, err := w.out.Write(w.buf); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// finish closes the file and writes its header again, which now knows how many
// samples there are.
func (w *frames) finish(header []byte) error {
	err := w.out.Flush()
	_, at := w.file.WriteAt(header, 0)
	if err = errors.Join(err, at, w.file.Close()); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// wavFile is RIFF WAVE with samples of IEEE float, 32 bits, in the unit of the
// channels (Microsoft, "Multimedia Programming Interface and Data Specifications
// 1.0", and "New Multimedia Data Types": WAVE_FORMAT_IEEE_FLOAT with its fact
// chunk).
type wavFile struct {
	*frames
	rate float64
}

const wavHeader = 58 // bytes before the samples

func newWAV(f *os.File, channels int, rate float64) (*wavFile, error) {
	if rate != math.Trunc(rate) || rate > math.MaxUint32 || channels > math.MaxUint16/4 {
		f.Close()
		return nil, fmt.Errorf("record: %d channels at %v Hz: WAV has whole rates and fewer channels: choose %s or %s", channels, rate, CSV, Parquet)
	}
	w := &wavFile{newFrames(f, channels), rate}
	_, err := w.out.Write(w.header())
	return w, err
}

func (w *wavFile) header() []byte {
	data := uint32(w.samples * int64(4*w.channels))
	le := binary.LittleEndian
	b := append(make([]byte, 0, wavHeader), "RIFF"...)
	b = le.AppendUint32(b, wavHeader-8+data)
	b = append(b, "WAVEfmt "...)
	b = le.AppendUint32(b, 18)
	b = le.AppendUint16(b, 3) // IEEE float
	b = le.AppendUint16(b, uint16(w.channels))
	b = le.AppendUint32(b, uint32(w.rate))
	b = le.AppendUint32(b, uint32(w.rate)*uint32(4*w.channels))
	b = le.AppendUint16(b, uint16(4*w.channels))
	b = le.AppendUint16(b, 32)
	b = le.AppendUint16(b, 0) // no extension
	b = append(b, "fact"...)
	b = le.AppendUint32(b, 4)
	b = le.AppendUint32(b, uint32(w.samples))
	b = append(b, "data"...)
	return le.AppendUint32(b, data)
}

func (w *wavFile) write(b *source.Block) error {
	after := int64(b.Len())
	if w.begun {
		after += b.First - w.first
	}
	if after*int64(4*w.channels) > math.MaxUint32-wavHeader {
		return fmt.Errorf("record: %s: WAV ends at 4 GiB: choose %s or %s", w.file.Name(), CSV, Parquet)
	}
	return w.frames.write(b)
}

func (w *wavFile) close() error { return w.finish(w.header()) }

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

// wavFile is RIFF WAVE with samples of IEEE float, 32 bits, in the unit of the
// channels (Microsoft, "Multimedia Programming Interface and Data Specifications
// 1.0", and "New Multimedia Data Types": WAVE_FORMAT_IEEE_FLOAT with its fact
// chunk).
type wavFile struct {
	file     *os.File
	out      *bufio.Writer
	channels int
	rate     float64
	first    int64 // counter of the first sample of the file
	frames   int64 // so far
	buf      []byte
}

const wavHeader = 58 // bytes before the samples

func newWAV(f *os.File, channels int, rate float64) (*wavFile, error) {
	if rate != math.Trunc(rate) || rate > math.MaxUint32 || channels > math.MaxUint16/4 {
		f.Close()
		return nil, fmt.Errorf("record: %d channels at %v Hz: WAV has whole rates and fewer channels: choose %s or %s", channels, rate, CSV, Parquet)
	}
	w := &wavFile{file: f, out: bufio.NewWriterSize(f, 1<<16), channels: channels, rate: rate, first: -1}
	_, err := w.out.Write(w.header())
	return w, err
}

func (w *wavFile) header() []byte {
	data := uint32(w.frames * int64(4*w.channels))
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
	b = le.AppendUint32(b, uint32(w.frames))
	b = append(b, "data"...)
	return le.AppendUint32(b, data)
}

func (w *wavFile) write(b *source.Block) error {
	if w.first < 0 {
		w.first = b.First
	}
	missing := b.First - w.first - w.frames
	if missing < 0 {
		return fmt.Errorf("record: %s: sample %d comes after sample %d", w.file.Name(), b.First, w.first+w.frames-1)
	}
	if (w.frames+missing+int64(b.Len()))*int64(4*w.channels) > math.MaxUint32-wavHeader {
		return fmt.Errorf("record: %s: WAV ends at 4 GiB: choose %s or %s", w.file.Name(), CSV, Parquet)
	}
	nan := math.Float32bits(float32(math.NaN()))
	for range missing {
		w.buf = w.buf[:0]
		for range w.channels {
			w.buf = binary.LittleEndian.AppendUint32(w.buf, nan)
		}
		if _, err := w.out.Write(w.buf); err != nil {
			return fmt.Errorf("record: %w", err)
		}
	}
	w.buf = w.buf[:0]
	for i := range b.Len() {
		for _, x := range b.Samples {
			w.buf = binary.LittleEndian.AppendUint32(w.buf, math.Float32bits(x[i]))
		}
	}
	w.frames += missing + int64(b.Len())
	if _, err := w.out.Write(w.buf); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// close writes the header again, which now knows how many samples there are.
func (w *wavFile) close() error {
	err := w.out.Flush()
	_, at := w.file.WriteAt(w.header(), 0)
	if err = errors.Join(err, at, w.file.Close()); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

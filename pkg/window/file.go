package window

import (
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
)

// FileContentType is the media type of what a FileWriter writes.
const FileContentType = "application/vnd.apache.arrow.file"

// FileWriter writes windows of one layout into one Arrow IPC file, each as a
// record batch of one row with the columns that a window has on the wire. Such a
// file is for keeping and for other programs: any Arrow library opens it
// (schemas/evidence.arrow.md).
type FileWriter struct {
	codec  *Codec
	schema *arrow.Schema
	out    *ipc.FileWriter
}

// NewFileWriter returns a FileWriter for windows of the codec's layout and spec.
// Metadata is what the schema says of the file: pairs of a key and its value.
func (c *Codec) NewFileWriter(w io.Writer, metadata ...[2]string) (*FileWriter, error) {
	var keys, values []string
	for _, m := range metadata {
		keys, values = append(keys, m[0]), append(values, m[1])
	}
	about := arrow.NewMetadata(keys, values)
	f := &FileWriter{codec: c, schema: arrow.NewSchema(c.schema.Fields(), &about)}
	var err error
	if f.out, err = ipc.NewFileWriter(&position{w: w}, ipc.WithSchema(f.schema)); err != nil {
		return nil, fmt.Errorf("window: file: %w", err)
	}
	return f, nil
}

// Write adds w. It panics and fails like [Codec.Seal], and when nothing can be
// written.
func (f *FileWriter) Write(w *Window) error {
	rec, err := f.codec.record(w)
	if err != nil {
		return err
	}
	if err := f.out.Write(array.NewRecord(f.schema, rec.Columns(), 1)); err != nil {
		return fmt.Errorf("window: file: seq %d: %w", w.Seq, err)
	}
	return nil
}

// Close writes the end of the file, without which it is none. It does not close
// what is written to.
func (f *FileWriter) Close() error {
	if err := f.out.Close(); err != nil {
		return fmt.Errorf("window: file: %w", err)
	}
	return nil
}

// position lets the Arrow library ask how far it has written, which is all that it
// seeks for.
type position struct {
	w io.Writer
	n int64
}

func (p *position) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	p.n += int64(n)
	return n, err
}

func (p *position) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekCurrent {
		return 0, errors.New("window: file: an Arrow file is written from front to back")
	}
	return p.n, nil
}

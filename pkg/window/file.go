package window

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"

	"github.com/flank-tcm/flank/pkg/signal"
)

// FileContentType is the media type of what a FileWriter writes.
const FileContentType = "application/vnd.apache.arrow.file"

// FileWriter writes windows of one layout into one Arrow IPC file, each as a
// record batch of one row with the columns that a window has on the wire. Such a
// file is for keeping and for other programs: any Arrow library opens it
// (schemas/evidence.arrow.md).
//
// Feed rate, programme and material are columns after the channels, if the first window
// that is written knows one of them.
type FileWriter struct {
	codec   *Codec
	to      io.Writer
	about   arrow.Metadata
	context bool // feed rate, programme and material are columns
	schema  *arrow.Schema
	out     *ipc.FileWriter // nil until the first window
}

// NewFileWriter returns a FileWriter for windows of the codec's layout and spec. It writes
// nothing yet. Metadata is what the schema says of the file: pairs of a key and its value.
func (c *Codec) NewFileWriter(w io.Writer, metadata ...[2]string) *FileWriter {
	var keys, values []string
	for _, m := range metadata {
		keys, values = append(keys, m[0]), append(values, m[1])
	}
	return &FileWriter{codec: c, to: w, about: arrow.NewMetadata(keys, values)}
}

// begin writes what precedes the windows.
func (f *FileWriter) begin() (err error) {
	if f.out != nil {
		return nil
	}
	fields := f.codec.schema.Fields()
	if f.context {
		fields = append(slices.Clip(fields),
			arrow.Field{Name: keyFeedRate, Type: arrow.PrimitiveTypes.Float64},
			arrow.Field{Name: keyProgramme, Type: arrow.BinaryTypes.String},
			arrow.Field{Name: keyMaterial, Type: arrow.BinaryTypes.String})
	}
	f.schema = arrow.NewSchema(fields, &f.about)
	if f.out, err = ipc.NewFileWriter(&position{w: f.to}, ipc.WithSchema(f.schema)); err != nil {
		return fmt.Errorf("window: file: %w", err)
	}
	return nil
}

// Write adds w. It panics and fails like [Codec.Seal], and when nothing can be
// written.
func (f *FileWriter) Write(w *Window) error {
	cells, err := f.codec.cells(w)
	if err != nil {
		return err
	}
	if f.out == nil {
		keys, err := contextKeys(&w.Context)
		if err != nil {
			return err
		}
		f.context = len(keys) > 0
	}
	if err := f.begin(); err != nil {
		return err
	}
	if f.context {
		cells = append(cells, cell{numbers: arrow.Float64Traits.CastToBytes([]float64{knownFeedRate(w.FeedRate)})}, cell{text: w.Programme}, cell{text: w.Material})
	}
	if err := f.out.Write(record(f.schema, cells)); err != nil {
		return fmt.Errorf("window: file: seq %d: %w", w.Seq, err)
	}
	return nil
}

// Close writes the end of the file, without which it is none. It does not close
// what is written to.
func (f *FileWriter) Close() error {
	if err := f.begin(); err != nil {
		return err
	}
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

// ErrNoChannel is returned when a file has no channel of the given name.
var ErrNoChannel = errors.New("window: file: no channel of that name")

// ReadChannel calls each with the samples of one channel of every window in a file that
// a [FileWriter] wrote, in the order of the file. The caller opens the reader, with [OpenWindows] if
// others may have written the file, and closes it. Start is the sensor time of the first
// sample. x belongs to ReadChannel: each must not keep it. An error of each ends the
// reading and is returned; a damaged file is an error that wraps [ErrCorrupt].
func ReadChannel(r *ipc.FileReader, name string, each func(c signal.Channel, start time.Time, x []float32) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("window: file: Arrow reader: %v: %w", r, ErrCorrupt)
		}
	}()
	fields := r.Schema().Fields()
	col := slices.IndexFunc(fields, func(f arrow.Field) bool { return f.Name == name })
	if col < factColumns || fields[col].Type.ID() != arrow.FIXED_SIZE_LIST { // before the channels, or after them
		return fmt.Errorf("%w: %.64q", ErrNoChannel, name)
	}
	about := func(key string) string {
		if i := fields[col].Metadata.FindKey(key); i >= 0 {
			return fields[col].Metadata.Values()[i]
		}
		return ""
	}
	c := signal.Channel{Name: name, Kind: signal.Kind(about("kind")), Unit: about("unit"), Sensor: about("sensor")}
	if c.Rate, err = strconv.ParseFloat(about("rate"), 64); err != nil || !(c.Rate > 0) {
		return fmt.Errorf("window: file: channel %.64q: rate %.64q: %w", name, about("rate"), ErrCorrupt)
	}
	for i := range r.NumRecords() {
		rec, err := r.RecordAt(i)
		if err != nil {
			return fmt.Errorf("window: file: record %d: %w: %w", i, err, ErrCorrupt)
		}
		start := time.Unix(0, int64(rec.Column(colStart).(*array.Timestamp).Value(0))).UTC()
		x := rec.Column(col).(*array.FixedSizeList).ListValues().(*array.Float32).Float32Values()
		err = each(c, start, x)
		rec.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

package table

import (
	"fmt"
	"io"
	"os"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/flank-tcm/flank/pkg/window"
)

// arrowBatch is the number of rows in a record batch, of about so many bytes.
const (
	arrowBatch = 16 << 10
	batchBytes = 8 << 20
)

// arrowTypes are the types of columns.
var arrowTypes = map[SheetKind]arrow.DataType{
	SheetText: arrow.BinaryTypes.String, SheetUnique: arrow.BinaryTypes.String, SheetTime: &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"},
	sheetInt32: arrow.PrimitiveTypes.Int32, SheetNumber: arrow.PrimitiveTypes.Float64, SheetSingle: arrow.PrimitiveTypes.Float32,
}

// arrowWriter writes rows as an Arrow IPC file, which Feather (version 2) is, batch by batch.
type arrowWriter struct {
	out     *ipc.FileWriter
	builder *array.RecordBuilder
	batch   int // rows
	rows    int // in the builder
}

func newArrowWriter(w io.Writer, columns []SheetColumn, text string) (*arrowWriter, error) {
	var fields []arrow.Field
	for _, c := range columns {
		fields = append(fields, arrow.Field{Name: c.Name, Type: arrowTypes[c.Kind], Nullable: true})
	}
	var meta *arrow.Metadata
	if text != "" {
		meta = new(arrow.NewMetadata([]string{metaKey}, []string{text}))
	}
	schema := arrow.NewSchema(fields, meta)
	out, err := ipc.NewFileWriter(&appender{w: w}, ipc.WithSchema(schema))
	if err != nil {
		return nil, err
	}
	return &arrowWriter{out: out, builder: array.NewRecordBuilder(memory.DefaultAllocator, schema), batch: min(arrowBatch, max(1<<10, batchBytes/4/len(columns)))}, nil
}

func (a *arrowWriter) write(facts []value, features []float32) error {
	for col, v := range facts {
		switch to := a.builder.Field(col).(type) {
		case *array.StringBuilder:
			put(to, v.kind != missing, v.text)
		case *array.TimestampBuilder:
			put(to, v.kind != missing, arrow.Timestamp(v.time.UnixNano()))
		case *array.Int32Builder:
			put(to, v.kind != missing, int32(v.number))
		case *array.Float64Builder:
			put(to, v.kind != missing, v.number)
		}
	}
	for j, v := range features {
		put(a.builder.Field(len(facts)+j).(*array.Float32Builder), v == v, v)
	}
	if a.rows++; a.rows < a.batch {
		return nil
	}
	return a.flush()
}

func (a *arrowWriter) flush() error {
	if a.rows == 0 {
		return nil
	}
	rec := a.builder.NewRecord()
	defer rec.Release()
	a.rows = 0
	return a.out.Write(rec)
}

func (a *arrowWriter) close() error {
	defer a.builder.Release()
	if err := a.flush(); err != nil {
		return err
	}
	return a.out.Close()
}

// put appends a value, or null if it is not known.
func put[T any](to interface {
	Append(T)
	AppendNull()
}, known bool, v T) {
	if known {
		to.Append(v)
	} else {
		to.AppendNull()
	}
}

// appender is what the Arrow library takes for a seekable file, of which it
// only asks how far it has written.
type appender struct {
	w  io.Writer
	at int64
}

func (a *appender) Write(p []byte) (int, error) {
	n, err := a.w.Write(p)
	a.at += int64(n)
	return n, err
}

func (a *appender) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekCurrent {
		return 0, os.ErrInvalid
	}
	return a.at, nil
}

// scanArrow reads a table from an Arrow IPC file of the given size, as arrowWriter or
// another program writes it, see scanParquet.
func scanArrow(f io.ReaderAt, size int64, file string, ignore *Ignore, to sink) (err error) {
	defer func() { // the library panics at damaged files, and so does the allocator
		if r := recover(); r != nil {
			err = fmt.Errorf("table: %s: the file is damaged: %v: write the table again", file, r)
		}
	}()
	in, err := window.OpenArrow(f, size)
	if err != nil {
		return fmt.Errorf("table: %s: is not an Arrow file that a table can be read from, or is damaged: %w: write the table again", file, err)
	}
	defer func() { _ = in.Close() }() // it only drops what it holds
	var names []string
	for _, f := range in.Schema().Fields() {
		names = append(names, f.Name)
	}
	h, err := newHeader(names, ignore)
	if err == nil {
		err = h.checkTypes(func(c int) bool { return isArrowNumber(in.Schema().Field(c).Type) })
	}
	if err != nil {
		return fmt.Errorf("table: %s: %w", file, err)
	}
	if err := to.begin(h.features); err != nil {
		return err
	}
	read := 0
	row := h.row()
	for batch := range in.NumRecords() {
		rec, err := in.RecordAt(batch)
		if err != nil {
			return fmt.Errorf("table: %s: after row %d: %w: write the table again", file, read, err)
		}
		if n := rec.NumRows(); n < 0 || n > inflation*size {
			return fmt.Errorf("table: %s: the file is damaged: %d rows in %d bytes: write the table again", file, n, size)
		}
		values := make([]func(int) value, len(names))
		for c := range values {
			column, ok := CellsOfArrow(rec.Column(c))
			if !ok {
				return fmt.Errorf("table: %s: column %q is of type %v, which cannot be read: make it text, a number or a timestamp, or remove it", file, names[c], rec.Column(c).DataType())
			}
			values[c] = valuesOf(column)
		}
		for i := range int(rec.NumRows()) {
			for c := range values {
				if err := h.set(&row, c, values[c](i)); err != nil {
					return fmt.Errorf("table: %s: row %d, %w", file, read+1, err)
				}
			}
			read++
			if err := to.row(row); err != nil {
				return err
			}
		}
		rec.Release()
	}
	return nil
}

// isArrowNumber reports whether a column is neither text nor a timestamp.
func isArrowNumber(t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.StringType, *arrow.LargeStringType, *arrow.TimestampType:
		return false
	case *arrow.DictionaryType:
		return isArrowNumber(t.ValueType)
	}
	return true
}

// inflation is by how much a compressed file may grow when it is read.
const inflation = 1 << 10

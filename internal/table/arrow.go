package table

import (
	"fmt"
	"io"
	"os"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/flank-tcm/flank/internal/table/cells"
)

// arrowBatch is the number of rows in a record batch.
const arrowBatch = 16 << 10

// arrowSchema has the columns that parquetGroup has.
func (h Head) arrowSchema() *arrow.Schema {
	var fields []arrow.Field
	for _, name := range h.names() {
		fields = append(fields, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Float32, Nullable: true})
	}
	for _, f := range []int{factMachine, factTool, factHole} {
		fields[f].Type = arrow.BinaryTypes.String
	}
	fields[factStart].Type = &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}
	fields[factClass].Type = arrow.PrimitiveTypes.Int32
	if h.Named {
		fields[factClass].Type = arrow.BinaryTypes.String
	}
	fields[factVBMax].Type = arrow.PrimitiveTypes.Float64
	if h.Detailed {
		for i, d := range details {
			if fields[len(facts)+i].Type = arrow.PrimitiveTypes.Float64; d.text != nil {
				fields[len(facts)+i].Type = arrow.BinaryTypes.String
			}
		}
	}
	var meta *arrow.Metadata
	if h.Meta != "" {
		m := arrow.NewMetadata([]string{metaKey}, []string{h.Meta})
		meta = &m
	}
	return arrow.NewSchema(fields, meta)
}

// WriteArrow writes the table as an Arrow IPC file, which Feather (version 2)
// is, with the columns and errors of WriteParquet.
func (t *Table) WriteArrow(w io.Writer) error { return t.head().write(w, ".arrow", t.each) }

// arrowWriter writes rows as an Arrow IPC file, batch by batch.
type arrowWriter struct {
	out     *ipc.FileWriter
	builder *array.RecordBuilder
	batch   int // rows
	rows    int // in the builder
}

func newArrowWriter(w io.Writer, h Head) (*arrowWriter, error) {
	schema := h.arrowSchema()
	out, err := ipc.NewFileWriter(&appender{w: w}, ipc.WithSchema(schema))
	if err != nil {
		return nil, err
	}
	return &arrowWriter{out: out, builder: array.NewRecordBuilder(memory.DefaultAllocator, schema), batch: min(arrowBatch, max(1<<10, groupBytes/4/len(h.names())))}, nil
}

func (a *arrowWriter) write(r Row, i int) error {
	if err := appendArrow(a.builder, r, i); err != nil {
		return err
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

func appendArrow(b *array.RecordBuilder, r Row, i int) error {
	ns, err := unixNano(r.Start, i)
	if err != nil {
		return err
	}
	text := func(col int, known bool, s string) { put(b.Field(col).(*array.StringBuilder), known, s) }
	number := func(col int, v float64) { put(b.Field(col).(*array.Float64Builder), v == v, v) }
	text(factMachine, r.Machine != "", r.Machine)
	text(factTool, true, r.Tool)
	text(factHole, r.Hole != "", r.Hole)
	put(b.Field(factStart).(*array.TimestampBuilder), !r.Start.IsZero(), arrow.Timestamp(ns))
	if to, ok := b.Field(factClass).(*array.Int32Builder); ok {
		put(to, r.Class != NoClass, int32(r.Class))
	} else {
		class := r.classText()
		text(factClass, class != "", class)
	}
	number(factVBMax, r.VBMaxUM)
	at := len(facts)
	if r.Details != nil {
		for _, d := range details {
			if d.text != nil {
				s := *d.text(r.Details)
				text(at, s != "", s)
			} else {
				number(at, *d.number(r.Details))
			}
			at++
		}
	}
	for j, v := range r.Features {
		put(b.Field(at+j).(*array.Float32Builder), v == v, v)
	}
	return nil
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

// scanArrow reads a table from an Arrow IPC file of the given size, as WriteArrow or
// another program writes it, see scanParquet.
func scanArrow(f io.ReaderAt, size int64, file string, ignore *Ignore, to sink) (err error) {
	defer func() { // the library panics at damaged files, and so does the allocator
		if r := recover(); r != nil {
			err = fmt.Errorf("table: %s: the file is damaged: %v: write the table again", file, r)
		}
	}()
	if err := cells.CheckArrow(f, size); err != nil {
		return fmt.Errorf("table: %s: is not an Arrow file that a table can be read from: %w: write the table again", file, err)
	}
	in, err := cells.OpenArrow(f, size)
	if err != nil {
		return fmt.Errorf("table: %s: is not an Arrow file, or is damaged: %w: write the table again", file, err)
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
	if err := to.begin(h.features()); err != nil {
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
			column, ok := cells.OfArrow(rec.Column(c))
			if !ok {
				return fmt.Errorf("table: %s: column %q is of type %v, which cannot be read: make it text, a number or a timestamp, or remove it", file, names[c], rec.Column(c).DataType())
			}
			values[c] = valuesOf(column)
		}
		for i := range int(rec.NumRows()) {
			row.clear()
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

package table

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/flank-tcm/flank/internal/cells"
)

// arrowBatch is the number of rows in a record batch.
const arrowBatch = 16 << 10

// arrowSchema has the columns that parquetSchema has.
func (t *Table) arrowSchema() *arrow.Schema {
	var fields []arrow.Field
	for _, name := range slices.Concat(facts, t.Columns) {
		fields = append(fields, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Float32, Nullable: true})
	}
	for _, f := range []int{factMachine, factTool, factHole} {
		fields[f].Type = arrow.BinaryTypes.String
	}
	fields[factStart].Type = &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}
	fields[factClass].Type = arrow.PrimitiveTypes.Int32
	if t.labelled() {
		fields[factClass].Type = arrow.BinaryTypes.String
	}
	fields[factVBMax].Type = arrow.PrimitiveTypes.Float64
	return arrow.NewSchema(fields, nil)
}

// WriteArrow writes the table as an Arrow IPC file, which Feather (version 2)
// is, with the columns and errors of WriteParquet.
func (t *Table) WriteArrow(w io.Writer) error {
	if err := t.writable(); err != nil {
		return err
	}
	schema := t.arrowSchema()
	out, err := ipc.NewFileWriter(&appender{w: w}, ipc.WithSchema(schema))
	if err != nil {
		return fmt.Errorf("table: write: %w", err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for from := 0; from < t.Rows(); from += arrowBatch {
		for i := from; i < min(from+arrowBatch, t.Rows()); i++ {
			if err := t.finite(i); err != nil {
				return err
			}
			if err := appendArrow(b, t.Row(i), i); err != nil {
				return err
			}
		}
		rec := b.NewRecord()
		err := out.Write(rec)
		rec.Release()
		if err != nil {
			return fmt.Errorf("table: write: %w", err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("table: write: %w", err)
	}
	return nil
}

func appendArrow(b *array.RecordBuilder, r Row, i int) error {
	ns, err := unixNano(r.Start, i)
	if err != nil {
		return err
	}
	names := []string{factMachine: r.Machine, factTool: r.Tool, factHole: r.Hole}
	for f, s := range names {
		if to := b.Field(f).(*array.StringBuilder); s == "" && f != factTool {
			to.AppendNull()
		} else {
			to.Append(s)
		}
	}
	if to := b.Field(factStart).(*array.TimestampBuilder); r.Start.IsZero() {
		to.AppendNull()
	} else {
		to.Append(arrow.Timestamp(ns))
	}
	switch to := b.Field(factClass).(type) {
	case *array.StringBuilder:
		if class := r.classText(); class == "" {
			to.AppendNull()
		} else {
			to.Append(class)
		}
	case *array.Int32Builder:
		if r.Class == NoClass {
			to.AppendNull()
		} else {
			to.Append(int32(r.Class))
		}
	}
	if to := b.Field(factVBMax).(*array.Float64Builder); r.VBMaxUM != r.VBMaxUM {
		to.AppendNull()
	} else {
		to.Append(r.VBMaxUM)
	}
	for j, v := range r.Features {
		if to := b.Field(len(facts) + j).(*array.Float32Builder); v != v {
			to.AppendNull()
		} else {
			to.Append(v)
		}
	}
	return nil
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

// scanArrow reads a table from the bytes of an Arrow IPC file, as WriteArrow or
// another program writes it, see scanParquet.
func scanArrow(b []byte, file string, to sink) (err error) {
	defer func() { // the library panics at damaged files, and so does the allocator
		if r := recover(); r != nil {
			err = fmt.Errorf("table: %s: the file is damaged: %v: write the table again", file, r)
		}
	}()
	if err := cells.CheckArrow(bytes.NewReader(b), int64(len(b))); err != nil {
		return fmt.Errorf("table: %s: is not an Arrow file that a table can be read from: %w", file, err)
	}
	in, err := cells.OpenArrow(bytes.NewReader(b), int64(len(b)), inflation*len(b)+1<<20)
	if err != nil {
		return fmt.Errorf("table: %s: is not an Arrow file, or is damaged: %w: write the table again", file, err)
	}
	defer func() { _ = in.Close() }() // it only drops what it holds
	var names []string
	for _, f := range in.Schema().Fields() {
		names = append(names, f.Name)
	}
	h, err := newHeader(names)
	if err != nil {
		return fmt.Errorf("table: %s: %w", file, err)
	}
	if err := to.begin(h.features()); err != nil {
		return err
	}
	read := 0
	row := h.row()
	for {
		rec, err := in.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("table: %s: after row %d: %w: write the table again", file, read, err)
		}
		if rec.NumRows() > inflation*int64(len(b)) {
			return fmt.Errorf("table: %s: the file is damaged: %d rows in %d bytes: write the table again", file, rec.NumRows(), len(b))
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
	}
}

// inflation is by how much a compressed file may grow when it is read.
const inflation = 1 << 10

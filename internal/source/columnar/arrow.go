package columnar

import (
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"

	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/table"
)

// maxBuffer is the most bytes that a column of a record batch may have.
const maxBuffer = 1 << 30

// Arrow is an open Arrow IPC file, which Feather (version 2) is: a [track.File]
// of its columns. The metadata of a column may state its unit and its rate in
// Hz, under these names.
type Arrow struct {
	name  string
	close func() error
	in    io.ReaderAt
	size  int64
	infos []track.Info
}

// OpenArrow opens the Arrow IPC file at path and reads its schema.
func OpenArrow(path string) (*Arrow, error) {
	return openFile(path, func(in *os.File, size int64, name string) (*Arrow, error) { return NewArrow(in, size, name) })
}

// NewArrow reads the schema of a file of the given size; name names it in
// errors. The caller keeps in and closes it.
func NewArrow(in io.ReaderAt, size int64, name string) (a *Arrow, err error) {
	a = &Arrow{name: name, in: in, size: size}
	if err := table.CheckArrow(in, size); err != nil {
		return nil, fmt.Errorf("columnar: %s: is no Arrow IPC file of numbers, text and timestamps, or was not finished: %w: record or copy it again", name, err)
	}
	r, err := a.reader()
	if err != nil {
		return nil, err
	}
	if r.NumRecords() == 0 {
		return nil, fmt.Errorf("columnar: %s: holds no rows: record again", name)
	}
	for _, f := range r.Schema().Fields() {
		info := track.Info{Name: f.Name, Len: -1}
		kind := f.Type.ID()
		if d, ok := f.Type.(*arrow.DictionaryType); ok {
			kind = d.ValueType.ID()
		}
		info.Text = kind == arrow.STRING || kind == arrow.LARGE_STRING
		if unit, ok := f.Metadata.GetValue("unit"); ok {
			info.Unit = unit
		}
		if text, ok := f.Metadata.GetValue("rate"); ok {
			if rate, err := strconv.ParseFloat(text, 64); err == nil && rate > 0 && !math.IsInf(rate, 0) {
				info.Rate = rate
			}
		}
		a.infos = append(a.infos, info)
	}
	return a, nil
}

// reader returns a reader of the record batches. The caller may drop it: it
// only holds memory.
func (a *Arrow) reader() (r *ipc.FileReader, err error) {
	defer func() { // the library panics at damaged files, and so does the allocator
		if p := recover(); p != nil {
			r, err = nil, fmt.Errorf("columnar: %s: the file is damaged: %v: copy it again", a.name, p)
		}
	}()
	r, err = ipc.NewFileReader(io.NewSectionReader(a.in, 0, a.size), ipc.WithAllocator(table.Bounded(maxBuffer)))
	if err != nil {
		return nil, fmt.Errorf("columnar: %s: is no Arrow IPC file, or is damaged: %w: copy it again", a.name, err)
	}
	return r, nil
}

// Tracks returns the columns, in the order of the file.
func (a *Arrow) Tracks() []track.Info { return a.infos }

// Notes returns nothing: a file with columns that cannot be read is refused.
func (a *Arrow) Notes() []string { return nil }

func (a *Arrow) setClose(f func() error) { a.close = f }

// Close closes the file if OpenArrow opened it.
func (a *Arrow) Close() error {
	if a.close == nil {
		return nil
	}
	return a.close()
}

// Open returns a Reader of columns.
func (a *Arrow) Open(tracks []int) (track.Reader, error) {
	r, err := a.reader()
	if err != nil {
		return nil, err
	}
	b := &batches{file: a, in: r, tracks: tracks, values: make([]track.Values, len(tracks))}
	for k, i := range tracks {
		if a.infos[i].Text {
			b.values[k].Texts = make([]string, 0, maxRows)
		} else {
			b.values[k].Numbers = make([]float64, 0, maxRows)
		}
	}
	return b, nil
}

// maxRows is the most rows that are read at once.
const maxRows = 4096

// batches reads columns of one record batch after another.
type batches struct {
	file   *Arrow
	in     *ipc.FileReader
	tracks []int
	next   int // record batch
	rec    arrow.Record
	row    int   // of the record batch
	read   int64 // rows
	cells  []func(row int, v *track.Values)
	values []track.Values
	err    error
}

// Read returns the next rows of one record batch.
func (b *batches) Read(most int) (values []track.Values, n int, err error) {
	if b.err != nil {
		return nil, 0, b.err
	}
	defer func() {
		if p := recover(); p != nil {
			values, n, err = nil, 0, fmt.Errorf("columnar: %s: after row %d: the file is damaged: %v: copy it again", b.file.name, b.read, p)
		}
		b.err = err
	}()
	for b.rec == nil || b.row == int(b.rec.NumRows()) {
		if b.next == b.in.NumRecords() {
			return nil, 0, io.EOF
		}
		if err := b.load(); err != nil {
			return nil, 0, fmt.Errorf("columnar: %s: after row %d: %w: the file is damaged; copy it again", b.file.name, b.read, err)
		}
	}
	n = min(most, maxRows, int(b.rec.NumRows())-b.row)
	for k := range b.values {
		v := &b.values[k]
		v.Numbers, v.Texts = v.Numbers[:0], v.Texts[:0]
		for i := range n {
			b.cells[k](b.row+i, v)
		}
	}
	b.row += n
	b.read += int64(n)
	return b.values, n, nil
}

// load reads the next record batch.
func (b *batches) load() error {
	rec, err := b.in.RecordAt(b.next)
	if err != nil {
		return err
	}
	if b.rec != nil {
		b.rec.Release()
	}
	b.rec, b.row = rec, 0
	b.next++
	b.cells = b.cells[:0]
	for _, i := range b.tracks {
		c := rec.Column(i)
		if int64(c.Len()) != rec.NumRows() {
			return fmt.Errorf("column %s has %d of %d rows", b.file.infos[i].Name, c.Len(), rec.NumRows())
		}
		cell, err := b.cellsOf(c, b.file.infos[i].Text)
		if err != nil {
			return fmt.Errorf("column %s: %w", b.file.infos[i].Name, err)
		}
		b.cells = append(b.cells, cell)
	}
	return nil
}

// cellsOf returns what appends the value of a row of a column.
func (b *batches) cellsOf(a arrow.Array, text bool) (func(row int, v *track.Values), error) {
	if text {
		of := texts(a)
		if of == nil {
			return nil, fmt.Errorf("its type is %v", a.DataType())
		}
		return func(row int, v *track.Values) {
			if a.IsNull(row) {
				v.Texts = append(v.Texts, "")
				return
			}
			v.Texts = append(v.Texts, strings.Clone(of(row)))
		}, nil
	}
	of := numbers(a)
	if of == nil {
		return nil, fmt.Errorf("its type is %v", a.DataType())
	}
	return func(row int, v *track.Values) {
		if a.IsNull(row) {
			v.Numbers = append(v.Numbers, math.NaN())
			return
		}
		v.Numbers = append(v.Numbers, of(row))
	}, nil
}

// texts returns what reads text, nil for an array of anything else.
func texts(a arrow.Array) func(row int) string {
	switch a := a.(type) {
	case *array.String:
		return a.Value
	case *array.LargeString:
		return a.Value
	case *array.Dictionary:
		if words := texts(a.Dictionary()); words != nil {
			return func(row int) string { return words(a.GetValueIndex(row)) }
		}
	}
	return nil
}

// numbers returns what reads numbers, nil for an array of anything else.
func numbers(a arrow.Array) func(row int) float64 {
	switch a := a.(type) {
	case *array.Dictionary:
		if values := numbers(a.Dictionary()); values != nil {
			return func(row int) float64 { return values(a.GetValueIndex(row)) }
		}
	case *array.Null:
		return func(int) float64 { return math.NaN() }
	case *array.Timestamp:
		perSecond := float64(time.Second / a.DataType().(*arrow.TimestampType).Unit.Multiplier())
		return func(row int) float64 { return float64(a.Value(row)) / perSecond }
	case *array.Boolean:
		return func(row int) float64 {
			if a.Value(row) {
				return 1
			}
			return 0
		}
	case *array.Float32:
		return number(a.Float32Values())
	case *array.Float64:
		return number(a.Float64Values())
	case *array.Int8:
		return number(a.Int8Values())
	case *array.Int16:
		return number(a.Int16Values())
	case *array.Int32:
		return number(a.Int32Values())
	case *array.Int64:
		return number(a.Int64Values())
	case *array.Uint8:
		return number(a.Uint8Values())
	case *array.Uint16:
		return number(a.Uint16Values())
	case *array.Uint32:
		return number(a.Uint32Values())
	case *array.Uint64:
		return number(a.Uint64Values())
	}
	return nil
}

func number[T float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](x []T) func(row int) float64 {
	return func(row int) float64 { return float64(x[row]) }
}

package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"
	"unsafe"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// ErrLZ4 is returned for a Parquet file that is compressed with LZ4. The decoder
// of the library asks for memory until there is none left if bytes are damaged.
var ErrLZ4 = errors.New("is compressed with LZ4, which is not supported: write it with Snappy, Zstandard or Gzip")

// OpenParquet reads the schema of a Parquet file of the given size. Its errors do
// not name the file. Call [CheckPages] before you read rows.
//
// The library, parquet-go, trusts what a file says of itself: for a flipped length it
// allocates terabytes, and at some damaged bytes it panics. What can be checked is checked
// first. A caller that reads on must still recover from a panic.
func OpenParquet(in io.ReaderAt, size int64) (*parquet.File, error) {
	if err := checkParquet(in, size); err != nil {
		return nil, err
	}
	f, err := parquet.OpenFile(in, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	for _, g := range f.Metadata().RowGroups {
		for _, c := range g.Columns {
			if c.MetaData.Codec == format.Lz4Raw {
				return nil, ErrLZ4
			}
		}
	}
	return f, nil
}

// checkParquet reports a footer that cannot lie within the file, for which the
// library would allocate what a flipped length says.
func checkParquet(in io.ReaderAt, size int64) error {
	var tail [8]byte
	if size < 12 {
		return errors.New("it is too short")
	}
	if _, err := in.ReadAt(tail[:], size-8); err != nil {
		return err
	}
	if string(tail[4:]) != "PAR1" {
		return errors.New("it does not end with PAR1")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	switch {
	case n > size-12:
		return fmt.Errorf("its footer has %d bytes, the file %d", n, size)
	case n > maxParquetFooter:
		return fmt.Errorf("its footer has %d bytes, and at most %d are read: write fewer columns or larger groups of rows", n, maxParquetFooter)
	}
	footer := make([]byte, n)
	if _, err := in.ReadAt(footer, size-8-n); err != nil {
		return err
	}
	t := thriftCheck{footer, footerMemory + 8*n}
	if err := t.structure(0); err != nil {
		return fmt.Errorf("its footer: %w", err)
	}
	return checkSchema(footer)
}

// CellsOfParquet returns what reads the cells of a column. It is false for types that
// are not numbers, text or timestamps. A time of the day is seconds since midnight.
func CellsOfParquet(c *parquet.Column) (CellReader[parquet.Value], bool) {
	cells := CellReader[parquet.Value]{Null: func(v parquet.Value) bool { return v.IsNull() }}
	if !c.Leaf() || c.Repeated() {
		return cells, false
	}
	var logical format.LogicalTypeValue
	if l := c.Type().LogicalType(); l != nil {
		logical = l.Value
	}
	kind := c.Type().Kind()
	if of, ok := logical.(*format.TimeType); ok && of.Unit.Value != nil {
		ticks, second := parquetNumber(kind, false), float64(time.Second/of.Unit.Value.Duration())
		cells.Number = func(v parquet.Value) float64 { return ticks(v) / second }
		return cells, ticks != nil
	}
	if isUnusual(logical) {
		return cells, false
	}
	if kind == parquet.Int96 { // as Spark and Hive write times: nanoseconds of a Julian day
		cells.Kind, cells.Unit, cells.Ticks = KindTime, time.Nanosecond, func(v parquet.Value) int64 {
			of := v.Int96()
			return (int64(of[2])-julian1970)*int64(24*time.Hour) + int64(of[1])<<32 + int64(of[0])
		}
		return cells, true
	}
	if stamp, ok := logical.(*format.TimestampType); ok && kind == parquet.Int64 {
		cells.Kind, cells.Ticks, cells.Unit = KindTime, func(v parquet.Value) int64 { return v.Int64() }, time.Nanosecond
		if stamp.Unit.Value != nil {
			cells.Unit = stamp.Unit.Value.Duration()
		}
		return cells, true
	}
	if kind == parquet.ByteArray {
		cells.Kind, cells.Text = KindText, func(v parquet.Value) string {
			b := v.ByteArray()
			return unsafe.String(unsafe.SliceData(b), len(b))
		}
		return cells, true
	}
	integer, _ := logical.(*format.IntType)
	cells.Number = parquetNumber(kind, integer != nil && !integer.IsSigned)
	return cells, cells.Number != nil
}

// julian1970 is the Julian day of the beginning of 1970.
const julian1970 = 2440588

// parquetNumber returns what makes a number of a value, nil if it is not a number.
func parquetNumber(kind parquet.Kind, unsigned bool) func(parquet.Value) float64 {
	switch {
	case kind == parquet.Boolean:
		return func(v parquet.Value) float64 { return truth(v.Boolean()) }
	case kind == parquet.Int32 && unsigned:
		return func(v parquet.Value) float64 { return float64(v.Uint32()) }
	case kind == parquet.Int32:
		return func(v parquet.Value) float64 { return float64(v.Int32()) }
	case kind == parquet.Int64 && unsigned:
		return func(v parquet.Value) float64 { return float64(v.Uint64()) }
	case kind == parquet.Int64:
		return func(v parquet.Value) float64 { return float64(v.Int64()) }
	case kind == parquet.Float:
		return func(v parquet.Value) float64 { return float64(v.Float()) }
	case kind == parquet.Double:
		return parquet.Value.Double
	}
	return nil
}

// isUnusual reports logical types whose values do not mean what their physical
// type says.
func isUnusual(t format.LogicalTypeValue) bool {
	switch t.(type) {
	case *format.DecimalType, *format.DateType, *format.JsonType, *format.BsonType, *format.VariantType, *format.GeometryType, *format.GeographyType:
		return true
	}
	return false
}

// ordered is a group of columns in the order of names.
type ordered struct {
	parquet.Group
	names []string
}

func (o ordered) Fields() []parquet.Field {
	fields := o.Group.Fields()
	byName := make(map[string]parquet.Field, len(fields))
	for _, f := range fields {
		byName[f.Name()] = f
	}
	for i, name := range o.names {
		fields[i] = byName[name]
	}
	return fields
}

func (o ordered) GoType() reflect.Type { return reflect.TypeFor[map[string]any]() }

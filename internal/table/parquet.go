package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// ordered is a group of columns in the order they are given in; those of the
// library are sorted by name.
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

// parquetSchema has the columns of a table: names as text, start as a timestamp
// in nanoseconds, class as a whole number, or as text if any has a name, wear and features as numbers of 64
// and 32 bits. All may be null.
func (t *Table) parquetSchema() *parquet.Schema {
	g := ordered{parquet.Group{}, slices.Concat(facts, t.Columns)}
	for _, name := range g.names {
		g.Group[name] = parquet.Optional(parquet.Leaf(parquet.FloatType))
	}
	for _, f := range []int{factMachine, factTool, factHole} {
		g.Group[facts[f]] = parquet.Optional(parquet.Encoded(parquet.String(), &parquet.RLEDictionary))
	}
	g.Group[facts[factStart]] = parquet.Optional(parquet.Timestamp(parquet.Nanosecond))
	g.Group[facts[factClass]] = parquet.Optional(parquet.Leaf(parquet.Int32Type))
	if t.labelled() {
		g.Group[facts[factClass]] = parquet.Optional(parquet.Encoded(parquet.String(), &parquet.RLEDictionary))
	}
	g.Group[facts[factVBMax]] = parquet.Optional(parquet.Leaf(parquet.DoubleType))
	return parquet.NewSchema("table", g)
}

// WriteParquet writes the table as a Parquet file with the columns that
// WriteCSV writes; what is missing or not known is null. It returns an error
// where WriteCSV does, and for a start outside the years 1678 to 2261, which a
// timestamp in nanoseconds cannot hold.
func (t *Table) WriteParquet(w io.Writer) error {
	if err := t.writable(); err != nil {
		return err
	}
	out := parquet.NewGenericWriter[any](w, t.parquetSchema(), parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(1<<20))
	cells := make(parquet.Row, len(facts)+len(t.Columns))
	labelled := t.labelled()
	for i := range t.Rows() {
		if err := t.finite(i); err != nil {
			return err
		}
		r := t.Row(i)
		ns, err := unixNano(r.Start, i)
		if err != nil {
			return err
		}
		put := func(col int, known bool, v parquet.Value) {
			if !known {
				cells[col] = parquet.NullValue().Level(0, 0, col)
				return
			}
			cells[col] = v.Level(0, 1, col)
		}
		put(factMachine, r.Machine != "", parquet.ByteArrayValue([]byte(r.Machine)))
		put(factTool, true, parquet.ByteArrayValue([]byte(r.Tool)))
		put(factHole, r.Hole != "", parquet.ByteArrayValue([]byte(r.Hole)))
		put(factStart, !r.Start.IsZero(), parquet.Int64Value(ns))
		if labelled {
			class := r.classText()
			put(factClass, class != "", parquet.ByteArrayValue([]byte(class)))
		} else {
			put(factClass, r.Class != NoClass, parquet.Int32Value(int32(r.Class)))
		}
		put(factVBMax, r.VBMaxUM == r.VBMaxUM, parquet.DoubleValue(r.VBMaxUM))
		for j, v := range r.Features {
			put(len(facts)+j, v == v, parquet.FloatValue(v))
		}
		if _, err := out.WriteRows([]parquet.Row{cells}); err != nil {
			return fmt.Errorf("table: write: %w", err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("table: write: %w", err)
	}
	return nil
}

// unixNano returns the start of row i in nanoseconds since 1970, 0 if it is not
// known.
func unixNano(at time.Time, i int) (int64, error) {
	if at.IsZero() {
		return 0, nil
	}
	ns := at.UnixNano()
	if !time.Unix(0, ns).Equal(at) {
		return 0, fmt.Errorf("table: write: row %d: start %v is outside the years 1678 to 2261, which this format can hold: write CSV", i+1, at)
	}
	return ns, nil
}

// ReadParquet reads a table from a Parquet file of the given size, as
// WriteParquet or another program writes it: numbers of any width, timestamps
// of any unit, names as text or whole numbers. Columns are told by name as in
// ReadCSV. file names the source in errors, which state row and column.
func ReadParquet(in io.ReaderAt, size int64, file string) (*Table, error) {
	return gather(func(s sink) error { return scanParquet(in, size, file, s) })
}

func scanParquet(in io.ReaderAt, size int64, file string, to sink) (err error) {
	defer func() { // the library panics at some damaged files
		if r := recover(); r != nil {
			err = fmt.Errorf("table: %s: the file is damaged: %v: write the table again", file, r)
		}
	}()
	if err := CheckParquet(in, size); err != nil {
		return fmt.Errorf("table: %s: is no Parquet file, or is damaged: %w: write the table again", file, err)
	}
	f, err := parquet.OpenFile(in, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return fmt.Errorf("table: %s: is no Parquet file, or is damaged: %w: write the table again", file, err)
	}
	for _, g := range f.Metadata().RowGroups {
		for _, c := range g.Columns {
			if c.MetaData.Codec == format.Lz4Raw { // whose decoder asks for more memory until it is out of it if bytes are damaged
				return fmt.Errorf("table: %s: is compressed with LZ4, which is not supported: write it with Snappy, Zstandard or Gzip", file)
			}
		}
	}
	var names []string
	var convert []func(parquet.Value) value
	for _, c := range f.Root().Columns() {
		convertCell, ok := parquetCell(c)
		if !ok {
			return fmt.Errorf("table: %s: column %q is of type %v, which no table has: make it text, a number or a timestamp, or remove it", file, c.Name(), c.Type())
		}
		names, convert = append(names, c.Name()), append(convert, convertCell)
	}
	h, err := newHeader(names)
	if err != nil {
		return fmt.Errorf("table: %s: %w", file, err)
	}
	if err := to.begin(h.features()); err != nil {
		return err
	}
	plain := make([]bool, len(names)) // numbers of 32 bits that are features: nearly all cells
	for i, c := range f.Root().Columns() {
		plain[i] = h.fact[i] == isFeature && c.Type().Kind() == parquet.Float
	}
	read := 0
	row, buffer := h.row(), make([]parquet.Row, 64)
	for _, g := range f.RowGroups() {
		rows := g.Rows()
		for {
			n, err := rows.ReadRows(buffer)
			for _, cells := range buffer[:n] {
				row.clear()
				for _, cell := range cells {
					if col := cell.Column(); plain[col] && !cell.IsNull() {
						if v := cell.Float(); v-v == 0 { // finite
							row.Features[h.feature[col]] = v
							continue
						}
					}
					if err := h.set(&row, cell.Column(), convert[cell.Column()](cell)); err != nil {
						return errors.Join(fmt.Errorf("table: %s: row %d, %w", file, read+1, err), rows.Close())
					}
				}
				read++
				if err := to.row(row); err != nil {
					return errors.Join(err, rows.Close())
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return errors.Join(fmt.Errorf("table: %s: after row %d: %w: write the table again", file, read, err), rows.Close())
			}
		}
		if err := rows.Close(); err != nil {
			return fmt.Errorf("table: %s: %w", file, err)
		}
	}
	return nil
}

// CheckParquet reports a footer that cannot lie within the file, for which the
// library would allocate what a flipped length says.
func CheckParquet(in io.ReaderAt, size int64) error {
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
	if n := int64(binary.LittleEndian.Uint32(tail[:])); n > size-12 {
		return fmt.Errorf("its footer has %d bytes, the file %d", n, size)
	}
	return nil
}

// parquetCell returns what makes a cell of a column's values; it is false for
// types that no table has.
func parquetCell(c *parquet.Column) (func(parquet.Value) value, bool) {
	if !c.Leaf() || c.Repeated() {
		return nil, false
	}
	var of func(parquet.Value) value
	number := func(n func(parquet.Value) float64) {
		of = func(v parquet.Value) value { return value{kind: isNumber, number: n(v)} }
	}
	var logical format.LogicalTypeValue
	if l := c.Type().LogicalType(); l != nil {
		logical = l.Value
	}
	integer, _ := logical.(*format.IntType)
	unsigned := integer != nil && !integer.IsSigned
	switch kind := c.Type().Kind(); {
	case isUnusual(logical):
		return nil, false
	case kind == parquet.Boolean:
		number(func(v parquet.Value) float64 {
			if v.Boolean() {
				return 1
			}
			return 0
		})
	case kind == parquet.Int32 && unsigned:
		number(func(v parquet.Value) float64 { return float64(v.Uint32()) })
	case kind == parquet.Int32:
		number(func(v parquet.Value) float64 { return float64(v.Int32()) })
	case kind == parquet.Int64 && unsigned:
		number(func(v parquet.Value) float64 { return float64(v.Uint64()) })
	case kind == parquet.Int64:
		stamp, ok := logical.(*format.TimestampType)
		if !ok {
			number(func(v parquet.Value) float64 { return float64(v.Int64()) })
			break
		}
		unit := int64(time.Nanosecond)
		if stamp.Unit.Value != nil {
			unit = int64(stamp.Unit.Value.Duration())
		}
		of = func(v parquet.Value) value {
			perSecond := int64(time.Second) / unit
			s, rest := v.Int64()/perSecond, v.Int64()%perSecond
			return value{kind: isTime, time: time.Unix(s, rest*unit).UTC()}
		}
	case kind == parquet.Float:
		number(func(v parquet.Value) float64 { return float64(v.Float()) })
	case kind == parquet.Double:
		number(parquet.Value.Double)
	case kind == parquet.ByteArray:
		of = func(v parquet.Value) value { return value{kind: isText, text: string(v.ByteArray())} }
	default:
		return nil, false
	}
	return func(v parquet.Value) value {
		if v.IsNull() {
			return value{}
		}
		return of(v)
	}, true
}

// isUnusual reports logical types whose values do not mean what their physical
// type says.
func isUnusual(t format.LogicalTypeValue) bool {
	switch t.(type) {
	case *format.DecimalType, *format.DateType, *format.TimeType, *format.JsonType, *format.BsonType, *format.VariantType, *format.GeometryType, *format.GeographyType:
		return true
	}
	return false
}

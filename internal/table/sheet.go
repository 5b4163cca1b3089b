package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"os"

	"github.com/parquet-go/parquet-go"
)

// Cell is a value of a Sheet. The zero Cell is null.
type Cell = parquet.Value

// SheetKind says what the cells of a column of a Sheet are.
type SheetKind int

// The kinds of columns.
const (
	SheetText    SheetKind = iota // that repeats itself
	SheetUnique                   // text that does not
	SheetInteger                  // of 64 bits
	sheetInt32                    // of 32 bits
	SheetNumber                   // of 64 bits
	SheetSingle                   // of 32 bits
	SheetTime                     // nanoseconds since 1970, UTC
)

// SheetColumn is a column of a Sheet.
type SheetColumn struct {
	Name  string
	Kind  SheetKind
	Whole bool // no cell is null
}

// nodes are the columns of each kind.
var nodes = map[SheetKind]parquet.Node{
	SheetText: parquet.Encoded(parquet.String(), &parquet.RLEDictionary), SheetUnique: parquet.String(), SheetTime: parquet.Timestamp(parquet.Nanosecond),
	SheetInteger: parquet.Leaf(parquet.Int64Type), sheetInt32: parquet.Leaf(parquet.Int32Type), SheetNumber: parquet.Leaf(parquet.DoubleType), SheetSingle: parquet.Leaf(parquet.FloatType),
}

func (c SheetColumn) node() parquet.Node {
	if c.Whole {
		return nodes[c.Kind]
	}
	return parquet.Optional(nodes[c.Kind])
}

// SheetWriter writes a Parquet file of rows that are all of the same columns. Equal rows give equal bytes.
type SheetWriter struct {
	Sum hash.Hash // of the rows; nil: no one asks for it

	out     *parquet.GenericWriter[any]
	columns []SheetColumn
	row     parquet.Row
	raw     []byte
}

// groupBytes is about how many bytes of cells a group of rows has, which is in memory.
const groupBytes = 8 << 20

// NewSheetWriter returns a writer of rows to w. The schema of the file has a name. Columns are in the order given, which the
// library sorts by name. Pages are compressed with Snappy.
func NewSheetWriter(w io.Writer, schema string, columns []SheetColumn) *SheetWriter {
	group, names := parquet.Group{}, make([]string, len(columns))
	for i, c := range columns {
		group[c.Name], names[i] = c.node(), c.Name
	}
	rows := int64(max(1<<10, groupBytes/4/len(columns)))
	return &SheetWriter{
		out:     parquet.NewGenericWriter[any](w, parquet.NewSchema(schema, ordered{group, names}), parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(rows)),
		columns: columns, row: make(parquet.Row, len(columns)),
	}
}

// Write writes a row, which has a cell for each column.
func (s *SheetWriter) Write(row []Cell) error {
	for i, c := range row {
		definition := 1
		if c.IsNull() || s.columns[i].Whole {
			definition = 0
		}
		s.row[i] = c.Level(0, definition, i)
	}
	if s.Sum != nil {
		s.sum(row)
	}
	_, err := s.out.WriteRows([]parquet.Row{s.row})
	return err
}

// sum adds a row to the sum.
func (s *SheetWriter) sum(row []Cell) {
	s.raw = s.raw[:0]
	for _, c := range row {
		from := len(s.raw)
		s.raw = c.AppendBytes(append(s.raw, byte(c.Kind()), 0, 0, 0, 0))
		binary.LittleEndian.PutUint32(s.raw[from+1:], uint32(len(s.raw)-from-5)) // so that cells cannot run into each other
	}
	s.Sum.Write(s.raw)
}

// Close ends the file. A text goes with it under the key, unless it is empty.
func (s *SheetWriter) Close(key, text string) error {
	if text != "" {
		s.out.SetKeyValueMetadata(key, text)
	}
	return s.out.Close()
}

// ReadSheet calls begin with what goes with the Parquet file at path under the key and with the names of its columns, and
// each with its rows. A row is lent.
func ReadSheet(path, key string, begin func(meta string, columns []string) error, each func(row []Cell) error) (err error) {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	defer func() { // the library panics at some damaged files
		if r := recover(); r != nil {
			err = fmt.Errorf("the file is damaged: %v", r)
		}
	}()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	f, err := OpenParquet(in, info.Size())
	if err != nil {
		return err
	}
	if err := CheckPages(f); err != nil {
		return err
	}
	meta, _ := f.Lookup(key)
	var names []string
	for _, c := range f.Root().Columns() {
		names = append(names, c.Name())
	}
	if err := begin(meta, names); err != nil || each == nil {
		return err
	}
	return eachParquetRow(f, each)
}

// eachParquetRow calls each with the rows of a file that [CheckPages] has passed. A row is lent.
func eachParquetRow(f *parquet.File, each func(row []Cell) error) error {
	var buffer [64]parquet.Row
	for _, g := range f.RowGroups() {
		rows := g.Rows()
		var err error
		for err == nil {
			var n int
			n, err = rows.ReadRows(buffer[:])
			for _, row := range buffer[:n] {
				if err := each(row); err != nil {
					return errors.Join(err, rows.Close())
				}
			}
		}
		if err == io.EOF {
			err = nil
		}
		if err := errors.Join(err, rows.Close()); err != nil {
			return err
		}
	}
	return nil
}

// TextCell returns a cell of text. An empty text is null, as NaN is below.
func TextCell(s string) (c Cell) {
	if s != "" {
		c = parquet.ByteArrayValue([]byte(s))
	}
	return c
}

// IntegerCell returns a cell of a whole number, or of nanoseconds since 1970.
func IntegerCell(n int64) Cell { return parquet.Int64Value(n) }

// NumberCell returns a cell of a number of 64 bits.
func NumberCell(v float64) (c Cell) {
	if v == v {
		c = parquet.DoubleValue(v)
	}
	return c
}

// SingleCell returns a cell of a number of 32 bits.
func SingleCell(v float32) (c Cell) {
	if v == v {
		c = parquet.FloatValue(v)
	}
	return c
}

// NumberIn returns the number in a cell of 64 bits, NaN if it is null.
func NumberIn(c Cell) float64 {
	if c.IsNull() {
		return math.NaN()
	}
	return c.Double()
}

// SingleIn returns the number in a cell of 32 bits, NaN if it is null.
func SingleIn(c Cell) float32 {
	if c.IsNull() {
		return float32(math.NaN())
	}
	return c.Float()
}

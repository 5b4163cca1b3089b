package cells

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
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
	SheetNumber                   // of 64 bits
	SheetSingle                   // of 32 bits
	SheetTime                     // nanoseconds since 1970, UTC
)

// SheetColumn is a column of a Sheet.
type SheetColumn struct {
	Name string
	Kind SheetKind
}

func (c SheetColumn) node() parquet.Node {
	switch c.Kind {
	case SheetText:
		return ParquetText()
	case SheetUnique:
		return parquet.Optional(parquet.String())
	case SheetInteger:
		return parquet.Optional(parquet.Leaf(parquet.Int64Type))
	case SheetNumber:
		return parquet.Optional(parquet.Leaf(parquet.DoubleType))
	case SheetTime:
		return parquet.Optional(parquet.Timestamp(parquet.Nanosecond))
	}
	return parquet.Optional(parquet.Leaf(parquet.FloatType))
}

// SheetWriter writes a Parquet file of rows that are all of the same columns. Equal rows give equal bytes.
type SheetWriter struct {
	out *parquet.GenericWriter[any]
	row parquet.Row
	sum hash.Hash
	raw []byte
}

// NewSheetWriter returns a writer of rows to w.
func NewSheetWriter(w io.Writer, columns []SheetColumn) *SheetWriter {
	group, names := parquet.Group{}, make([]string, len(columns))
	for i, c := range columns {
		group[c.Name], names[i] = c.node(), c.Name
	}
	rows := int64(max(1<<10, (8<<20)/4/len(columns)))
	return &SheetWriter{out: ParquetWriter(w, "sheet", group, names, rows), row: make(parquet.Row, len(columns)), sum: sha256.New()}
}

// Write writes a row, which has a cell for each column.
func (s *SheetWriter) Write(row []Cell) error {
	s.raw = s.raw[:0]
	for i, c := range row {
		SetParquet(s.row, i, !c.IsNull(), c)
		from := len(s.raw)
		s.raw = c.AppendBytes(append(s.raw, byte(c.Kind()), 0, 0, 0, 0))
		binary.LittleEndian.PutUint32(s.raw[from+1:], uint32(len(s.raw)-from-5)) // so that cells cannot run into each other
	}
	s.sum.Write(s.raw)
	_, err := s.out.WriteRows([]parquet.Row{s.row})
	return err
}

// Close ends the file. Meta returns what goes with it under the key, given the SHA-256 of the rows.
func (s *SheetWriter) Close(key string, meta func(sha256 string) string) error {
	s.out.SetKeyValueMetadata(key, meta(hex.EncodeToString(s.sum.Sum(nil))))
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
	for _, g := range f.RowGroups() {
		if err := readGroup(g, each); err != nil {
			return err
		}
	}
	return nil
}

func readGroup(g parquet.RowGroup, each func(row []Cell) error) error {
	rows := g.Rows()
	var buffer [64]parquet.Row
	for {
		n, err := rows.ReadRows(buffer[:])
		for _, row := range buffer[:n] {
			if err := each(row); err != nil {
				return errors.Join(err, rows.Close())
			}
		}
		if err == io.EOF {
			return rows.Close()
		}
		if err != nil {
			return errors.Join(err, rows.Close())
		}
	}
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

// NumberOf returns the number in a cell of 64 bits, NaN if it is null.
func NumberOf(c Cell) float64 {
	if c.IsNull() {
		return math.NaN()
	}
	return c.Double()
}

// SingleOf returns the number in a cell of 32 bits, NaN if it is null.
func SingleOf(c Cell) float32 {
	if c.IsNull() {
		return float32(math.NaN())
	}
	return c.Float()
}

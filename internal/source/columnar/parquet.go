// Package columnar reads recordings in Parquet and Arrow IPC files, in which a
// column is a track: numbers of any width, truth values, text, and timestamps,
// which become seconds since 1970. Null is missing.
//
// Of a Parquet file a page of each column is in memory, of an Arrow file a
// record batch. The libraries are parquet-go and Arrow, whose decoders are kept
// from what damaged files do to them in the way of internal/table.
package columnar

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/table"
)

// Parquet is an open Parquet file: a [track.File] of its columns.
type Parquet struct {
	name    string
	close   func() error
	file    *parquet.File
	columns []parquetColumn
	infos   []track.Info
	notes   []string
}

// parquetColumn is a column that can be read.
type parquetColumn struct {
	index  int // among the leaves of the schema
	number func(parquet.Value) float64
}

// openFile opens the file at path and reads what new reads.
func openFile[F interface{ setClose(func() error) }](path string, new func(in *os.File, size int64, name string) (F, error)) (file F, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return file, fmt.Errorf("columnar: %w: check the path", err)
	}
	if err != nil {
		return file, fmt.Errorf("columnar: %w", err)
	}
	info, err := f.Stat()
	if err == nil {
		file, err = new(f, info.Size(), path)
	}
	if err != nil {
		f.Close()
		return file, err
	}
	file.setClose(f.Close)
	return file, nil
}

// OpenParquet opens the Parquet file at path and reads its schema.
func OpenParquet(path string) (*Parquet, error) {
	return openFile(path, func(in *os.File, size int64, name string) (*Parquet, error) { return NewParquet(in, size, name) })
}

// NewParquet reads the schema of a file of the given size; name names it in
// errors. The caller keeps in and closes it.
func NewParquet(in io.ReaderAt, size int64, name string) (p *Parquet, err error) {
	defer func() { // the library panics at some damaged files
		if r := recover(); r != nil {
			p, err = nil, fmt.Errorf("columnar: %s: the file is damaged: %v: copy it again", name, r)
		}
	}()
	if err := table.CheckParquet(in, size); err != nil {
		return nil, fmt.Errorf("columnar: %s: is no Parquet file, or was not finished: %w: record or copy it again", name, err)
	}
	f, err := parquet.OpenFile(in, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("columnar: %s: is no Parquet file, or is damaged: %w: copy it again", name, err)
	}
	p = &Parquet{name: name, file: f}
	for _, g := range f.Metadata().RowGroups {
		for _, c := range g.Columns {
			if c.MetaData.Codec == format.Lz4Raw { // whose decoder asks for memory without end if bytes are damaged
				return nil, fmt.Errorf("columnar: %s: is compressed with LZ4, which is not supported: write it with Snappy, Zstandard or Gzip", name)
			}
		}
	}
	for _, c := range f.Root().Columns() {
		info, number, ok := parquetTrack(c)
		if !ok {
			p.notes = append(p.notes, fmt.Sprintf("column %.80s is left out: it is of type %.80s", c.Name(), c.Type()))
			continue
		}
		info.Len = f.NumRows()
		p.columns = append(p.columns, parquetColumn{c.Index(), number})
		p.infos = append(p.infos, info)
	}
	if len(p.columns) == 0 || f.NumRows() == 0 {
		return nil, fmt.Errorf("columnar: %s: holds no rows with numbers: record again", name)
	}
	return p, nil
}

// parquetTrack returns what a column holds and what makes a number of its
// values, nil for text; it is false of what is neither.
func parquetTrack(c *parquet.Column) (info track.Info, number func(parquet.Value) float64, ok bool) {
	info.Name = c.Name()
	if !c.Leaf() || c.Repeated() {
		return info, nil, false
	}
	var logical format.LogicalTypeValue
	if l := c.Type().LogicalType(); l != nil {
		logical = l.Value
	}
	unsigned := false
	switch l := logical.(type) {
	case *format.DecimalType, *format.DateType, *format.TimeType, *format.JsonType, *format.BsonType, *format.VariantType, *format.GeometryType, *format.GeographyType:
		return info, nil, false // values do not mean what their physical type says
	case *format.IntType:
		unsigned = !l.IsSigned
	case *format.TimestampType:
		unit := time.Nanosecond
		if l.Unit.Value != nil {
			unit = l.Unit.Value.Duration()
		}
		return info, func(v parquet.Value) float64 { return float64(v.Int64()) / float64(time.Second/unit) }, true
	}
	switch kind := c.Type().Kind(); {
	case kind == parquet.Boolean:
		return info, func(v parquet.Value) float64 {
			if v.Boolean() {
				return 1
			}
			return 0
		}, true
	case kind == parquet.Int32 && unsigned:
		return info, func(v parquet.Value) float64 { return float64(v.Uint32()) }, true
	case kind == parquet.Int32:
		return info, func(v parquet.Value) float64 { return float64(v.Int32()) }, true
	case kind == parquet.Int64 && unsigned:
		return info, func(v parquet.Value) float64 { return float64(v.Uint64()) }, true
	case kind == parquet.Int64:
		return info, func(v parquet.Value) float64 { return float64(v.Int64()) }, true
	case kind == parquet.Float:
		return info, func(v parquet.Value) float64 { return float64(v.Float()) }, true
	case kind == parquet.Double:
		return info, parquet.Value.Double, true
	case kind == parquet.ByteArray:
		info.Text = true
		return info, nil, true
	}
	return info, nil, false
}

// Tracks returns the columns, in the order of the file.
func (p *Parquet) Tracks() []track.Info { return p.infos }

// Notes says which columns are left out.
func (p *Parquet) Notes() []string { return p.notes }

func (p *Parquet) setClose(f func() error) { p.close = f }

// Close closes the file if OpenParquet opened it.
func (p *Parquet) Close() error {
	if p.close == nil {
		return nil
	}
	return p.close()
}

// Open returns a Reader of columns.
func (p *Parquet) Open(tracks []int) (track.Reader, error) {
	var columns []track.Column
	var infos []track.Info
	for _, i := range tracks {
		columns = append(columns, &pages{file: p, info: p.infos[i], column: p.columns[i], groups: p.file.RowGroups()})
		infos = append(infos, p.infos[i])
	}
	return track.SideBySide(columns, infos), nil
}

// pages reads one column, page by page.
type pages struct {
	file   *Parquet
	info   track.Info
	column parquetColumn
	groups []parquet.RowGroup // to come
	pages  parquet.Pages      // of the row group that is being read; nil between two
	page   parquet.Page       // that is being read; nil between two
	values parquet.ValueReader
	read   int64
	buffer [256]parquet.Value
}

// Read reads the values that are at hand.
func (c *pages) Read(dst track.Values) (n int, err error) {
	defer func() { // the library panics at some damaged files
		if r := recover(); r != nil {
			n, err = 0, c.error(fmt.Errorf("%v", r))
		}
	}()
	for {
		if c.values == nil {
			if err := c.turn(); err == io.EOF {
				if c.read != c.info.Len {
					return 0, c.error(errors.New("values are missing"))
				}
				return 0, io.EOF
			} else if err != nil {
				return 0, c.error(err)
			}
		}
		n, err := c.values.ReadValues(c.buffer[:min(len(dst.Numbers)+len(dst.Texts), len(c.buffer))])
		for i, v := range c.buffer[:n] {
			c.put(dst, i, v)
		}
		c.read += int64(n)
		if err == io.EOF {
			parquet.Release(c.page)
			c.page, c.values = nil, nil
		} else if err != nil {
			return n, c.error(err)
		}
		if n > 0 {
			return n, nil
		}
	}
}

func (c *pages) put(dst track.Values, i int, v parquet.Value) {
	switch {
	case c.info.Text && v.IsNull():
		dst.Texts[i] = ""
	case c.info.Text:
		if s := v.ByteArray(); string(s) != dst.Texts[i] { // mostly it is what it was
			dst.Texts[i] = strings.Clone(string(s))
		}
	case v.IsNull():
		dst.Numbers[i] = math.NaN()
	default:
		dst.Numbers[i] = c.column.number(v)
	}
}

// turn goes on to the next page. It returns io.EOF after the last.
func (c *pages) turn() error {
	for {
		if c.pages == nil {
			if len(c.groups) == 0 {
				return io.EOF
			}
			c.pages = c.groups[0].ColumnChunks()[c.column.index].Pages()
			c.groups = c.groups[1:]
		}
		page, err := c.pages.ReadPage()
		if err == io.EOF {
			err = c.pages.Close()
			if c.pages = nil; err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		c.page, c.values = page, page.Values()
		return nil
	}
}

func (c *pages) error(err error) error {
	return fmt.Errorf("columnar: %s: column %s, after row %d: %w: the file is damaged; copy it again", c.file.name, c.info.Name, c.read, err)
}

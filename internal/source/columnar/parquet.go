// Package columnar reads recordings in Parquet and Arrow IPC files, in which a
// column is a track: numbers of any width, truth values, text, and timestamps,
// which become seconds since 1970. Null is missing.
//
// Of a Parquet file a page of each column is in memory, of an Arrow file a
// record batch. What a cell is, and which files are refused, is up to package
// cells.
package columnar

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/table"
)

// ParquetFormat is Parquet.
var ParquetFormat = track.Format{Name: "parquet", Endings: []string{".parquet"}, Magic: "PAR1", New: newParquet}

// parquetReader is an open Parquet file: a [track.Contents] of its columns.
type parquetReader struct {
	name    string
	file    *parquet.File
	columns []parquetColumn
	track.Listing
}

// parquetColumn is a column that can be read.
type parquetColumn struct {
	index int // among the leaves of the schema
	table.CellReader[parquet.Value]
}

// newParquet reads the schema of a file of the given size; name names it in
// errors. The caller keeps in and closes it.
func newParquet(in io.ReaderAt, size int64, name string) (contents track.Contents, err error) {
	defer func() { // the library panics at some damaged files
		if r := recover(); r != nil {
			contents, err = nil, fmt.Errorf("columnar: %s: the file is damaged: %v: copy it again", name, r)
		}
	}()
	f, err := table.OpenParquet(in, size)
	if errors.Is(err, table.ErrLZ4) {
		return nil, fmt.Errorf("columnar: %s: %w", name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("columnar: %s: is not a Parquet file, was not finished, or is damaged: %w: record or copy it again", name, err)
	}
	if err := table.CheckPages(f); err != nil {
		return nil, fmt.Errorf("columnar: %s: %w: record or copy it again", name, err)
	}
	p := &parquetReader{name: name, file: f}
	for _, c := range f.Root().Columns() {
		of, ok := table.CellsOfParquet(c)
		if !ok {
			p.Remark("column %.80s is left out: it is of type %.80s", c.Name(), c.Type())
			continue
		}
		p.columns = append(p.columns, parquetColumn{c.Index(), of})
		p.Infos = append(p.Infos, track.Info{Name: c.Name(), Len: f.NumRows(), Text: of.Kind == table.KindText})
	}
	if len(p.columns) == 0 || f.NumRows() == 0 {
		return nil, fmt.Errorf("columnar: %s: holds no rows with numbers: record again", name)
	}
	return p, nil
}

// Open returns a Reader of columns.
func (p *parquetReader) Open(tracks []int) (track.Reader, error) {
	return p.SideBySide(tracks, func(i int) (track.Column, error) {
		return &pages{file: p, info: p.Infos[i], column: p.columns[i], groups: p.file.RowGroups()}, nil
	})
}

// pages reads one column, page by page.
type pages struct {
	file   *parquetReader
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
			if err := c.nextPage(); err == io.EOF {
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
			put(&c.column.CellReader, dst, i, v)
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

// nextPage goes on to the next page. It returns io.EOF after the last.
func (c *pages) nextPage() error {
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

// put stores the value of a cell in dst: timestamps become seconds, null becomes NaN or empty text. It keeps a text that is there already:
// mostly it is the same.
func put[Cell any](c *table.CellReader[Cell], dst track.Values, i int, cell Cell) {
	null := c.Null(cell)
	switch {
	case c.Kind == table.KindText && null:
		dst.Texts[i] = ""
	case c.Kind == table.KindText:
		if s := c.Text(cell); s != dst.Texts[i] {
			dst.Texts[i] = strings.Clone(s)
		}
	case null:
		dst.Numbers[i] = math.NaN()
	case c.Kind == table.KindTime:
		dst.Numbers[i] = c.Seconds(cell)
	default:
		dst.Numbers[i] = c.Number(cell)
	}
}

package table

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// parquetWriter writes rows as Parquet. What is missing or not known is null.
type parquetWriter struct {
	out     *SheetWriter
	columns []SheetColumn
	meta    string
	row     []Cell
}

func (p *parquetWriter) write(facts []value, features []float32) error {
	p.row = p.row[:0]
	for i, v := range facts {
		var cell Cell
		switch {
		case v.kind == isText:
			cell = parquet.ByteArrayValue([]byte(v.text))
		case v.kind == isTime:
			cell = IntegerCell(v.time.UnixNano())
		case v.kind == isNumber && p.columns[i].Kind == sheetInt32:
			cell = parquet.Int32Value(int32(v.number))
		case v.kind == isNumber:
			cell = NumberCell(v.number)
		}
		p.row = append(p.row, cell)
	}
	for _, v := range features {
		p.row = append(p.row, SingleCell(v))
	}
	return p.out.Write(p.row)
}

func (p *parquetWriter) close() error { return p.out.Close(metaKey, p.meta) }

// scanParquet reads a table from a Parquet file of the given size, as
// parquetWriter or another program writes it: numbers of any width, timestamps of
// any unit, names as text or whole numbers. Columns are known by name as in CSV.
// file names the table in errors, which state row and column.
func scanParquet(in io.ReaderAt, size int64, file string, ignore *Ignore, to sink) (err error) {
	defer func() { // the library panics at some damaged files
		if r := recover(); r != nil {
			err = fmt.Errorf("table: %s: the file is damaged: %v: write the table again", file, r)
		}
	}()
	f, err := OpenParquet(in, size)
	if errors.Is(err, ErrLZ4) {
		return fmt.Errorf("table: %s: %w", file, err)
	}
	if err != nil {
		return fmt.Errorf("table: %s: is not a Parquet file, or is damaged: %w: write the table again", file, err)
	}
	p := new(parquetTable)
	var names []string
	var kinds []CellKind
	for _, c := range f.Root().Columns() {
		column, ok := CellsOfParquet(c)
		if !ok && !(c.Leaf() && ignore.match(c.Name())) {
			return fmt.Errorf("table: %s: column %q is of type %v, which cannot be read: make it text, a number or a timestamp, or leave it out with --ignore", file, c.Name(), c.Type())
		}
		names, kinds, p.values = append(names, c.Name()), append(kinds, column.Kind), append(p.values, valuesOf(column))
	}
	if p.header, err = newHeader(names, ignore); err == nil {
		err = p.header.checkTypes(func(c int) bool { return kinds[c] == KindNumber })
	}
	if err != nil {
		return fmt.Errorf("table: %s: %w", file, err)
	}
	if err := CheckPages(f); err != nil {
		return fmt.Errorf("table: %s: %w: write the table again", file, err)
	}
	if err := to.begin(p.header.features); err != nil {
		return err
	}
	for i, c := range f.Root().Columns() {
		p.plain = append(p.plain, p.header.fact[i] == isFeature && c.Type().Kind() == parquet.Float)
	}
	p.row = p.header.row()
	read := 0
	var own error // of a row, or of who takes it
	err = eachParquetRow(f, func(row []Cell) error {
		if own = p.set(row); own != nil {
			own = fmt.Errorf("table: %s: row %d, %w", file, read+1, own)
			return own
		}
		read++
		own = to.row(p.row)
		return own
	})
	if err != nil && own == nil {
		return fmt.Errorf("table: %s: after row %d: %w: write the table again", file, read, err)
	}
	return err
}

// parquetTable is a Parquet file that is being read as a table.
type parquetTable struct {
	header header
	values []func(parquet.Value) value // by column
	plain  []bool                      // by column: numbers of 32 bits that are features, nearly all cells
	row    Row
}

// set stores the cells of a row in p.row. Its errors name the column.
func (p *parquetTable) set(row []Cell) error {
	for _, cell := range row {
		col := cell.Column()
		if p.header.fact[col] == isIgnored { // and perhaps of no kind that is read
			continue
		}
		if p.plain[col] && !cell.IsNull() {
			if v := cell.Float(); v-v == 0 { // finite
				p.row.Features[p.header.feature[col]] = v
				continue
			}
		}
		if err := p.header.set(&p.row, col, p.values[col](cell)); err != nil {
			return err
		}
	}
	return nil
}

package table

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/flank-tcm/flank/internal/cells"
)

// parquetGroup has the columns of a table: names as text, start as a timestamp in
// nanoseconds, class as a whole number, or as text if any class has a name, wear
// as numbers of 64 bits and features of 32. All may be null.
func (t *Table) parquetGroup() parquet.Group {
	g := parquet.Group{}
	for _, name := range t.Columns {
		g[name] = parquet.Optional(parquet.Leaf(parquet.FloatType))
	}
	for _, f := range []int{factMachine, factTool, factHole} {
		g[facts[f]] = cells.ParquetText()
	}
	g[facts[factStart]] = parquet.Optional(parquet.Timestamp(parquet.Nanosecond))
	g[facts[factClass]] = parquet.Optional(parquet.Leaf(parquet.Int32Type))
	if t.labelled() {
		g[facts[factClass]] = cells.ParquetText()
	}
	g[facts[factVBMax]] = parquet.Optional(parquet.Leaf(parquet.DoubleType))
	return g
}

// WriteParquet writes the table as a Parquet file with the columns that
// WriteCSV writes; what is missing or not known is null. It returns an error
// where WriteCSV does, and for a start outside the years 1678 to 2261, which a
// timestamp in nanoseconds cannot hold.
func (t *Table) WriteParquet(w io.Writer) error {
	if err := t.writable(); err != nil {
		return err
	}
	out := cells.ParquetWriter(w, "table", t.parquetGroup(), slices.Concat(facts, t.Columns), 1<<20)
	row := make(parquet.Row, len(facts)+len(t.Columns))
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
		put := func(col int, known bool, v parquet.Value) { cells.SetParquet(row, col, known, v) }
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
		if _, err := out.WriteRows([]parquet.Row{row}); err != nil {
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

// scanParquet reads a table from a Parquet file of the given size, as
// WriteParquet or another program writes it: numbers of any width, timestamps of
// any unit, names as text or whole numbers. Columns are known by name as in CSV.
// file names the table in errors, which state row and column.
func scanParquet(in io.ReaderAt, size int64, file string, to sink) (err error) {
	defer func() { // the library panics at some damaged files
		if r := recover(); r != nil {
			err = fmt.Errorf("table: %s: the file is damaged: %v: write the table again", file, r)
		}
	}()
	f, err := cells.OpenParquet(in, size)
	if errors.Is(err, cells.ErrLZ4) {
		return fmt.Errorf("table: %s: %w", file, err)
	}
	if err != nil {
		return fmt.Errorf("table: %s: is not a Parquet file, or is damaged: %w: write the table again", file, err)
	}
	p := &parquetTable{file: file}
	var names []string
	for _, c := range f.Root().Columns() {
		column, ok := cells.OfParquet(c)
		if !ok {
			return fmt.Errorf("table: %s: column %q is of type %v, which cannot be read: make it text, a number or a timestamp, or remove it", file, c.Name(), c.Type())
		}
		names, p.values = append(names, c.Name()), append(p.values, valuesOf(column))
	}
	if p.header, err = newHeader(names); err != nil {
		return fmt.Errorf("table: %s: %w", file, err)
	}
	if err := to.begin(p.header.features()); err != nil {
		return err
	}
	for i, c := range f.Root().Columns() {
		p.plain = append(p.plain, p.header.fact[i] == isFeature && c.Type().Kind() == parquet.Float)
	}
	p.row = p.header.row()
	for _, g := range f.RowGroups() {
		if err := p.scanGroup(g, to); err != nil {
			return err
		}
	}
	return nil
}

// parquetTable is a Parquet file that is being read as a table.
type parquetTable struct {
	file   string
	header header
	values []func(parquet.Value) value // by column
	plain  []bool                      // by column: numbers of 32 bits that are features, nearly all cells
	row    Row
	read   int // rows
	buffer [64]parquet.Row
}

// scanGroup reads the rows of a row group.
func (p *parquetTable) scanGroup(g parquet.RowGroup, to sink) error {
	rows := g.Rows()
	for {
		n, err := rows.ReadRows(p.buffer[:])
		for _, row := range p.buffer[:n] {
			if err := p.set(row); err != nil {
				return errors.Join(fmt.Errorf("table: %s: row %d, %w", p.file, p.read+1, err), rows.Close())
			}
			p.read++
			if err := to.row(p.row); err != nil {
				return errors.Join(err, rows.Close())
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return errors.Join(fmt.Errorf("table: %s: after row %d: %w: write the table again", p.file, p.read, err), rows.Close())
		}
	}
	if err := rows.Close(); err != nil {
		return fmt.Errorf("table: %s: %w", p.file, err)
	}
	return nil
}

// set stores the cells of a row in p.row. Its errors name the column.
func (p *parquetTable) set(row parquet.Row) error {
	p.row.clear()
	for _, cell := range row {
		col := cell.Column()
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

package table

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/flank-tcm/flank/internal/table/cells"
)

// parquetGroup has the columns of a table: names as text, start as a timestamp in
// nanoseconds, class as a whole number, or as text if any class has a name, wear and
// numbers of details as numbers of 64 bits and features of 32. All may be null.
func (h Head) parquetGroup() parquet.Group {
	g := parquet.Group{}
	for _, name := range h.Columns {
		g[name] = parquet.Optional(parquet.Leaf(parquet.FloatType))
	}
	for _, f := range []int{factMachine, factTool, factHole} {
		g[facts[f]] = cells.ParquetText()
	}
	g[facts[factStart]] = parquet.Optional(parquet.Timestamp(parquet.Nanosecond))
	g[facts[factClass]] = parquet.Optional(parquet.Leaf(parquet.Int32Type))
	if h.Named {
		g[facts[factClass]] = cells.ParquetText()
	}
	g[facts[factVBMax]] = parquet.Optional(parquet.Leaf(parquet.DoubleType))
	if !h.Detailed {
		return g
	}
	for _, d := range details {
		switch {
		case d.number != nil:
			g[d.name] = parquet.Optional(parquet.Leaf(parquet.DoubleType))
		case d.name == "window.frames": // each row another
			g[d.name] = parquet.Optional(parquet.String())
		default:
			g[d.name] = cells.ParquetText()
		}
	}
	return g
}

// WriteParquet writes the table as a Parquet file with the columns that
// WriteCSV writes; what is missing or not known is null. It returns an error
// where WriteCSV does, and for a start outside the years 1678 to 2261, which a
// timestamp in nanoseconds cannot hold.
func (t *Table) WriteParquet(w io.Writer) error { return t.head().write(w, ".parquet", t.each) }

// parquetWriter writes rows as Parquet.
type parquetWriter struct {
	out   *parquet.GenericWriter[any]
	row   parquet.Row
	named bool
}

func newParquetWriter(w io.Writer, h Head) *parquetWriter {
	names := h.names()
	rows := int64(max(1<<10, groupBytes/4/len(names)))
	p := &parquetWriter{cells.ParquetWriter(w, "table", h.parquetGroup(), names, rows), make(parquet.Row, len(names)), h.Named}
	if h.Meta != "" {
		p.out.SetKeyValueMetadata(metaKey, h.Meta)
	}
	return p
}

// groupBytes is about how many bytes of cells a group of rows has, which is in memory.
const groupBytes = 8 << 20

func (p *parquetWriter) write(r Row, i int) error {
	ns, err := unixNano(r.Start, i)
	if err != nil {
		return err
	}
	put := func(col int, known bool, v parquet.Value) { cells.SetParquet(p.row, col, known, v) }
	text := func(col int, known bool, s string) { put(col, known, parquet.ByteArrayValue([]byte(s))) }
	text(factMachine, r.Machine != "", r.Machine)
	text(factTool, true, r.Tool)
	text(factHole, r.Hole != "", r.Hole)
	put(factStart, !r.Start.IsZero(), parquet.Int64Value(ns))
	if p.named {
		class := r.classText()
		text(factClass, class != "", class)
	} else {
		put(factClass, r.Class != NoClass, parquet.Int32Value(int32(r.Class)))
	}
	put(factVBMax, r.VBMaxUM == r.VBMaxUM, parquet.DoubleValue(r.VBMaxUM))
	at := len(facts)
	if r.Details != nil {
		for _, d := range details {
			if d.text != nil {
				s := *d.text(r.Details)
				text(at, s != "", s)
			} else {
				v := *d.number(r.Details)
				put(at, v == v, parquet.DoubleValue(v))
			}
			at++
		}
	}
	for j, v := range r.Features {
		put(at+j, v == v, parquet.FloatValue(v))
	}
	_, err = p.out.WriteRows([]parquet.Row{p.row})
	return err
}

func (p *parquetWriter) close() error { return p.out.Close() }

// unixNano returns the start of row i in nanoseconds since 1970, 0 if it is not
// known.
func unixNano(at time.Time, i int) (int64, error) {
	if at.IsZero() {
		return 0, nil
	}
	ns := at.UnixNano()
	if !time.Unix(0, ns).Equal(at) {
		return 0, fmt.Errorf("row %d: start %v is outside the years 1678 to 2261, which this format can hold: write CSV", i+1, at)
	}
	return ns, nil
}

// scanParquet reads a table from a Parquet file of the given size, as
// WriteParquet or another program writes it: numbers of any width, timestamps of
// any unit, names as text or whole numbers. Columns are known by name as in CSV.
// file names the table in errors, which state row and column.
func scanParquet(in io.ReaderAt, size int64, file string, ignore *Ignore, to sink) (err error) {
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
	var kinds []cells.Kind
	for _, c := range f.Root().Columns() {
		column, ok := cells.OfParquet(c)
		if !ok && !(c.Leaf() && ignore.match(c.Name())) {
			return fmt.Errorf("table: %s: column %q is of type %v, which cannot be read: make it text, a number or a timestamp, or leave it out with --ignore", file, c.Name(), c.Type())
		}
		names, kinds, p.values = append(names, c.Name()), append(kinds, column.Kind), append(p.values, valuesOf(column))
	}
	if p.header, err = newHeader(names, ignore); err == nil {
		err = p.header.checkTypes(func(c int) bool { return kinds[c] == cells.Number })
	}
	if err != nil {
		return fmt.Errorf("table: %s: %w", file, err)
	}
	if err := cells.CheckPages(f); err != nil {
		return fmt.Errorf("table: %s: %w: write the table again", file, err)
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

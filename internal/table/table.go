// Package table holds feature tables, which is what models are trained on.
//
// A [Table] has one row for each window: the values of its features, and
// which machine and tool cut it, in which hole and when, the class it is labelled
// with, and the wear that the label comes from. The tool is the group
// of a row: rows of one tool are near copies, so no split parts them.
//
// A [TextReader] reads separated values of any origin, in any encoding; a [CellReader] the cells of a
// Parquet file that [OpenParquet] opens, or of an Arrow IPC file that pkg/window opens.
package table

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math"
	"slices"
	"time"
)

// NoClass is the class of a row without a label.
const NoClass = -1

// Table is a feature table in memory. All slices but Columns have one entry
// for each row, Data one for each row and column.
type Table struct {
	Columns []string  // names of the features, each different
	Data    []float32 // row-major; a missing value is NaN

	Machine []string    // empty if not known
	Tool    []string    // group of the row
	Hole    []string    // empty if not known
	Start   []time.Time // of the window; zero if not known
	Class   []int       // 0, 1, …, or NoClass
	Label   []string    // name of the class, where that is what is known of it; else empty
	VBMaxUM []float64   // maximum flank wear in µm; NaN if not known
	Details []Details   // what else is known of the row; nil if the table has no such columns
}

// Row is one row of a Table.
type Row struct {
	Machine, Tool, Hole string
	Start               time.Time
	Class               int    // NoClass if there is a Label
	Label               string // see Table
	VBMaxUM             float64
	Features            []float32 // one for each column
	Details             *Details  // nil if the table has no such columns
}

// New returns a table of the given features without rows. It keeps columns.
func New(columns []string) *Table { return &Table{Columns: columns} }

// Rows returns the number of rows.
func (t *Table) Rows() int { return len(t.Tool) }

// Row returns row i. Its features and details are the table's memory, not a copy.
func (t *Table) Row(i int) Row {
	n := len(t.Columns)
	r := Row{
		Machine: t.Machine[i], Tool: t.Tool[i], Hole: t.Hole[i], Start: t.Start[i],
		Class: t.Class[i], Label: t.Label[i], VBMaxUM: t.VBMaxUM[i], Features: t.Data[i*n : (i+1)*n : (i+1)*n],
	}
	if t.Details != nil {
		r.Details = &t.Details[i]
	}
	return r
}

// Append adds a row, copying its features. It panics if they are not one for
// each column, if the class is below NoClass, if it has a class and a label, or if only
// some rows have details.
func (t *Table) Append(r Row) {
	if len(r.Features) != len(t.Columns) {
		panic(fmt.Sprintf("table: Append: %d features for %d columns", len(r.Features), len(t.Columns)))
	}
	if r.Class < NoClass {
		panic(fmt.Sprintf("table: Append: class %d", r.Class))
	}
	if r.Label != "" && r.Class != NoClass {
		panic(fmt.Sprintf("table: Append: class %d, and %q", r.Class, r.Label))
	}
	if t.Rows() > 0 && (r.Details != nil) != (t.Details != nil) {
		panic("table: Append: some rows have details, and others do not")
	}
	if r.Details != nil {
		t.Details = append(t.Details, *r.Details)
	}
	t.Data = append(t.Data, r.Features...)
	t.Machine = append(t.Machine, r.Machine)
	t.Tool = append(t.Tool, r.Tool)
	t.Hole = append(t.Hole, r.Hole)
	t.Start = append(t.Start, r.Start)
	t.Class = append(t.Class, r.Class)
	t.Label = append(t.Label, r.Label)
	t.VBMaxUM = append(t.VBMaxUM, r.VBMaxUM)
}

// Select returns a new table of the given rows, in the given order. It shares
// Columns with t and copies everything else.
func (t *Table) Select(rows []int) *Table {
	s := New(t.Columns)
	s.Data = make([]float32, 0, len(rows)*len(t.Columns))
	for _, i := range rows {
		s.Append(t.Row(i))
	}
	return s
}

// Part returns rows from, from+1, …, to−1 as a table that shares the memory of t.
func (t *Table) Part(from, to int) *Table {
	n := len(t.Columns)
	p := &Table{
		Columns: t.Columns, Data: t.Data[from*n : to*n : to*n],
		Machine: t.Machine[from:to:to], Tool: t.Tool[from:to:to], Hole: t.Hole[from:to:to], Start: t.Start[from:to:to],
		Class: t.Class[from:to:to], Label: t.Label[from:to:to], VBMaxUM: t.VBMaxUM[from:to:to],
	}
	if t.Details != nil {
		p.Details = t.Details[from:to:to]
	}
	return p
}

// SHA256 returns the SHA-256 of the content, for the provenance of what is made
// from it: equal for equal tables, no matter which NaN stands for a missing value
// and which zone a time is in, and the same for a table written and read again.
//
// It covers the number of columns and their names, then row by row machine,
// tool, hole, the seconds of start since 1970 and its nanoseconds, class, wear
// and features. Numbers are little-endian, of 64 bits but for the features of
// 32; the length of a text, in bytes, comes before it; NaN is Go's math.NaN. A
// class that has a name is -2, with the name after it. After the features come the
// details, if the table has them, in the order of detailColumns.
func (t *Table) SHA256() [sha256.Size]byte {
	h := NewHash(t.Columns)
	for i := range t.Rows() {
		h.Add(t.Row(i))
	}
	return h.Sum()
}

// hasher computes the SHA256 of a table of which the rows come one after the other.
type hasher struct {
	sum hash.Hash
	out *bufio.Writer // a hash never fails to write
}

// NewHash returns the hasher of a table with features of the given names.
func NewHash(columns []string) *hasher {
	sum := sha256.New()
	h := &hasher{sum, bufio.NewWriterSize(sum, 32<<10)}
	h.integer(uint64(len(columns)))
	for _, c := range columns {
		h.text(c)
	}
	return h
}

func (h *hasher) integer(v uint64) {
	h.out.Write(binary.LittleEndian.AppendUint64(h.out.AvailableBuffer(), v))
}

func (h *hasher) text(s string) {
	h.integer(uint64(len(s)))
	h.out.WriteString(s)
}

func (h *hasher) number(v float64) {
	if v != v {
		v = math.NaN()
	}
	h.integer(math.Float64bits(v))
}

// Add adds the next row.
func (h *hasher) Add(r Row) {
	h.text(r.Machine)
	h.text(r.Tool)
	h.text(r.Hole)
	h.integer(uint64(r.Start.Unix()))
	h.integer(uint64(r.Start.Nanosecond()))
	if r.Label == "" {
		h.integer(uint64(r.Class))
	} else {
		named := -2
		h.integer(uint64(named))
		h.text(r.Label)
	}
	h.number(r.VBMaxUM)
	for _, v := range r.Features {
		if v != v {
			v = float32(math.NaN())
		}
		h.out.Write(binary.LittleEndian.AppendUint32(h.out.AvailableBuffer(), math.Float32bits(v)))
	}
	if r.Details == nil {
		return
	}
	for _, c := range details {
		if c.text != nil {
			h.text(*c.text(r.Details))
		} else {
			h.number(*c.number(r.Details))
		}
	}
}

// Sum returns the SHA-256 of all rows.
func (h *hasher) Sum() [sha256.Size]byte {
	_ = h.out.Flush() // a hash takes all
	return [sha256.Size]byte(h.sum.Sum(nil))
}

// duplicate returns a name that occurs twice in names.
func duplicate(names []string) (string, bool) {
	sorted := slices.Sorted(slices.Values(names))
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			return sorted[i], true
		}
	}
	return "", false
}

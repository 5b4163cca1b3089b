package table

import "time"

// CellKind says what the cells of a column are.
type CellKind int

// The kinds of cells.
const (
	KindNumber CellKind = iota // a number of any width, or a truth value: 0 or 1
	KindText
	KindTime // a timestamp
)

// CellReader reads the cells of one column. A cell is given by its value in a Parquet
// file, by its row in a record batch of an Arrow file.
type CellReader[Cell any] struct {
	Kind   CellKind
	Null   func(Cell) bool
	Number func(Cell) float64 // of a cell of KindNumber
	Text   func(Cell) string  // of KindText; valid while the page or batch is in memory
	Ticks  func(Cell) int64   // of KindTime: since 1970
	Unit   time.Duration      // of Ticks
}

// Time returns the time in a cell of KindTime.
func (c CellReader[Cell]) Time(cell Cell) time.Time {
	ticks, perSecond := c.Ticks(cell), int64(time.Second/c.Unit)
	return time.Unix(ticks/perSecond, ticks%perSecond*int64(c.Unit)).UTC()
}

// Seconds returns the time in a cell of KindTime in seconds since 1970.
func (c CellReader[Cell]) Seconds(cell Cell) float64 {
	return float64(c.Ticks(cell)) / float64(time.Second/c.Unit)
}

// truth returns 1 for true and 0 for false.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

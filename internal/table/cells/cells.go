// Package cells opens Parquet files, and reads the cells of the columns of Parquet and
// Arrow IPC files, which pkg/window opens.
//
// The library, parquet-go, trusts what a file says of itself: for a flipped length
// it allocates terabytes, and at some damaged bytes it panics. [OpenParquet] checks
// what can be checked first. A caller that reads on must still recover from a panic.
package cells

import "time"

// Kind says what the cells of a column are.
type Kind int

// The kinds of cells.
const (
	Number Kind = iota // a number of any width, or a truth value: 0 or 1
	Text
	Time // a timestamp
)

// Column reads the cells of one column. A cell is given by its value in a Parquet
// file, by its row in a record batch of an Arrow file.
type Column[Cell any] struct {
	Kind   Kind
	Null   func(Cell) bool
	Number func(Cell) float64 // of a cell of kind Number
	Text   func(Cell) string  // of kind Text; valid while the page or batch is in memory
	Ticks  func(Cell) int64   // of kind Time: since 1970
	Unit   time.Duration      // of Ticks
}

// Time returns the time in a cell of kind Time.
func (c Column[Cell]) Time(cell Cell) time.Time {
	ticks, perSecond := c.Ticks(cell), int64(time.Second/c.Unit)
	return time.Unix(ticks/perSecond, ticks%perSecond*int64(c.Unit)).UTC()
}

// Seconds returns the time in a cell of kind Time in seconds since 1970.
func (c Column[Cell]) Seconds(cell Cell) float64 {
	return float64(c.Ticks(cell)) / float64(time.Second/c.Unit)
}

// truth returns 1 for true and 0 for false.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

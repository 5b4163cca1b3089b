package columnar

import (
	"math"
	"strings"

	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/table/cells"
)

// column makes the values of a track of cells: timestamps become seconds, null
// becomes NaN or empty text.
type column[Cell any] struct {
	null   func(Cell) bool
	text   func(Cell) string // nil if the cells are numbers
	number func(Cell) float64
}

func newColumn[Cell any](c cells.Column[Cell]) column[Cell] {
	if c.Kind == cells.Time {
		c.Number = c.Seconds
	}
	return column[Cell]{null: c.Null, text: c.Text, number: c.Number}
}

// put stores the value of a cell in dst. It keeps a text that is there already:
// mostly it is the same.
func (c *column[Cell]) put(dst track.Values, i int, cell Cell) {
	switch {
	case c.text == nil && c.null(cell):
		dst.Numbers[i] = math.NaN()
	case c.text == nil:
		dst.Numbers[i] = c.number(cell)
	case c.null(cell):
		dst.Texts[i] = ""
	default:
		if s := c.text(cell); s != dst.Texts[i] {
			dst.Texts[i] = strings.Clone(s)
		}
	}
}

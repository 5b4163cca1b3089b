package columnar

import (
	"math"
	"strings"

	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/table"
)

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

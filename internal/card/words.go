package card

import (
	"fmt"
	"math"
	"strings"

	"github.com/flank-tcm/flank/pkg/score"
)

// Figure returns a figure in words, a dash if it is undefined.
func Figure(f score.Figure) string {
	if math.IsNaN(float64(f)) {
		return "–"
	}
	return fmt.Sprintf("%.3f", float64(f))
}

// Some lists up to five names.
func Some(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Listed joins words as a sentence does: a, b and c.
func Listed(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// The words for scores of more than two classes, none of which is the positive
// one: the recall of each, and how well scores part healthy from all other classes.

// several reports whether there are more than two classes.
func several(names []string) bool { return len(names) > 2 }

package train

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/pkg/signal"
)

// What is looked at of columns that a table brought, to find those that hold the label in other words.
const (
	telltaleRows   = 2048    // so many rows are kept, drawn from all,
	telltaleValues = 4 << 20 // or of wide tables so many values
	leastTelltale  = 40      // of fewer rows chance is too likely
	rowsOfValue    = 10      // a column of codes has so many rows for each
	telltaleErrors = 0.005   // rows that a cut may have on the wrong side, as of wear that was rounded
	likeWear       = 0.999   // rank correlation with wear, which no measurement reaches
)

// telltales keeps rows with their labels, as they are before the reference, of columns that are features of their own.
type telltales struct {
	names   []string
	columns []int // in the features
	most    int   // rows that are kept, drawn from all
	seen    int
	draw    *rand.Rand
	class   []int
	um      []float64
	rows    [][]float32
}

// newTelltales returns nil if the features of all channels are computed here.
func newTelltales(l *signal.Layout, features []string) *telltales {
	t := &telltales{draw: rand.New(rand.NewPCG(1, 0))}
	at := make(map[string]int, len(features))
	for i, name := range features {
		at[name] = i
	}
	for _, c := range l.Channels() {
		if i, ok := at[c.Name]; ok && c.Kind == signal.Feature {
			t.names, t.columns = append(t.names, c.Name), append(t.columns, i)
		}
	}
	if t.names == nil {
		return nil
	}
	t.most = max(leastTelltale, min(telltaleRows, telltaleValues/len(t.names)))
	return t
}

// add looks at a window with a label; um is its wear, or NaN.
func (t *telltales) add(class int, um float64, features []float32) {
	if t == nil {
		return
	}
	at := len(t.rows)
	if t.seen++; at < t.most {
		t.class, t.um, t.rows = append(t.class, 0), append(t.um, 0), append(t.rows, make([]float32, len(t.columns)))
	} else if at = t.draw.IntN(t.seen); at >= t.most {
		return
	}
	t.class[at], t.um[at] = class, um
	for k, c := range t.columns {
		t.rows[at][k] = features[c]
	}
}

// warnings names columns that alone decide the class or follow the wear, but for excluded features. Such a column may
// be a measurement of tools that are easy to tell apart, so it stays.
func (t *telltales) warnings(exclude []int, ofTables bool) []string {
	if t == nil || len(t.rows) < leastTelltale {
		return nil
	}
	var deciding, following []string
	right := len(t.rows)
	for k, name := range t.names {
		if slices.Contains(exclude, t.columns[k]) {
			continue
		}
		values, class, um := t.column(k)
		if wrong, ok := decides(values, class); ok {
			deciding, right = append(deciding, name), min(right, len(t.rows)-wrong)
		} else if followsWear(values, um) {
			following = append(following, name)
		}
	}
	var out []string
	say := func(names []string, says string) {
		if len(names) == 0 {
			return
		}
		which, remedy := fmt.Sprintf("column %q alone ", names[0]), "take it out of the layout"
		if len(names) > 1 {
			which = fmt.Sprintf("each of %d columns alone, %s, ", len(names), card.Some(names))
		}
		if ofTables {
			remedy = "leave it out with --ignore " + names[0]
		}
		out = append(out, which+says+": if it is not a measurement, "+remedy)
	}
	rows := fmt.Sprintf("all %d rows", len(t.rows))
	if right < len(t.rows) {
		rows = fmt.Sprintf("%d of %d rows", right, len(t.rows))
	}
	if t.seen > len(t.rows) {
		rows += " that were looked at"
	}
	say(deciding, "decides the class in "+rows)
	say(following, fmt.Sprintf("follows the wear with a rank correlation of %v or more, as no measurement does", likeWear))
	return out
}

// column returns the values of a column that are not missing, ascending, with class and wear of their rows.
func (t *telltales) column(k int) (values []float32, class []int, um []float64) {
	var order []int
	for i, row := range t.rows {
		if row[k] == row[k] {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(t.rows[a][k], t.rows[b][k]) })
	for _, i := range order {
		values, class, um = append(values, t.rows[i][k]), append(class, t.class[i]), append(um, t.um[i])
	}
	if 10*len(values) < 9*len(t.rows) {
		return nil, nil, nil
	}
	return values, class, um
}

// decides reports whether ascending values decide the class: cuts part the classes, but for some wrong rows if there are two of them, or each of
// few values has one class.
func decides(values []float32, class []int) (wrong int, ok bool) {
	rows := make(map[int]int) // by class
	for _, k := range class {
		rows[k]++
	}
	least := len(class)
	for _, n := range rows {
		least = min(least, n)
	}
	if len(rows) < 2 || least < leastTelltale/10 {
		return 0, false
	}
	distinct, changes, pure := 1, 0, true
	best, below, first := len(class), 0, class[0] // rows wrong at the best cut; rows of the first class below a cut
	for i, k := range class {
		switch next := i > 0 && values[i] != values[i-1]; {
		case next && k != class[i-1]:
			changes++
			fallthrough
		case next:
			distinct++
			wrong = i - below + rows[first] - below
			best = min(best, wrong, len(class)-wrong)
		case i > 0 && k != class[i-1]:
			pure = false
		}
		if k == first {
			below++
		}
	}
	if pure && (changes == len(rows)-1 || rowsOfValue*distinct <= len(values)) {
		return 0, true
	}
	return best, len(rows) == 2 && float64(best) <= min(telltaleErrors*float64(len(class)), float64(least)/20)
}

// followsWear reports whether ascending values follow the wear as wear itself does, rising or falling.
func followsWear(values []float32, um []float64) bool {
	var x, y []float64
	for i, v := range values {
		if um[i] == um[i] {
			x, y = append(x, float64(v)), append(y, um[i])
		}
	}
	return len(x) >= leastTelltale && math.Abs(stat.Correlation(ranks(x), ranks(y), nil)) >= likeWear // NaN of a constant
}

// ranks returns the rank of each value; equal ones have the mean of theirs.
func ranks(values []float64) []float64 {
	order := places(len(values))
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	out := make([]float64, len(values))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && values[order[to]] == values[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			out[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return out
}

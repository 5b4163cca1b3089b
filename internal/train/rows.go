package train

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/classify/vote"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/trend"
)

// rowTable is the feature table that is learnt from: every row has a class.
type rowTable struct {
	*table.Table

	classes []string // their names; rows may lack some

	// group names the tool of each row: rows of one tool are never on both
	// sides of a split.
	group []string

	// wear is every window of cutting of which the wear is known, also those that
	// make a reference. It has no rows if the features are not in memory.
	wear *trend.Rows

	// hop is the median time from one window's start to the next one's of the same tool; 0
	// if it is not known.
	hop time.Duration

	// unjudged are the tools with windows that are faulty by their label and were not
	// judged.
	unjudged []unjudged

	// starts are the references of the tools, in the order in which they were settled.
	starts [][]float32

	bare bare // windows without a label

	kept keptRows // which windows the rows are of, with and without a label, in their order

	// ordered says that no tool's rows go back in time. Of each group mostUM is the
	// greatest wear that was measured; limitUM is the label's limit, or 0.
	ordered bool
	mostUM  map[string]float64
	limitUM float64
	states  map[string]int // windows with a label by state, in lower case

	findings []string // see model.LabelRule

	tell     *telltales        // what columns say of the label, see telltales.warnings
	twins    []twin            // tools that are copies of others
	together map[string]string // by such a tool: see classify.Table

	mismatches []string // names and times that should agree in wear file and recordings

	// rel, if not nil, is what it takes to make rows relative to the references of
	// their tools: which way is best is still to be found. Then rows are as before.
	rel *relative

	// modes, if not nil, is the rows for scoring modes of the reference, where these rows do
	// not do: they are as before the reference, with all modes to choose from.
	modes *rowTable

	exclude []int // columns that do not count

	// sensors are what columns come from, and logs says which columns are logarithms of ratios to the reference, once
	// rows are relative to it; nil if none is.
	sensors []vote.Sensor
	logs    []bool

	// Of rows that are relative and not many: features before the reference, and what
	// says which reference each row has.
	plain []float32
	was   *relative

	// wearAt is where each row is in wear, -1 if its wear was not measured.
	wearAt []int

	// onDisk holds the features if they are not in memory. Of the table there are
	// then columns, tools and classes only.
	onDisk *table.RowFile
	stats  *columnStats // of onDisk
	view   dbn.Rows     // of a part of onDisk; else nil
}

// x returns the features as the classifier takes them, without a copy.
func (t rowTable) x() dbn.Rows {
	switch {
	case t.view != nil:
		return t.view
	case t.onDisk != nil:
		return t.onDisk
	}
	return t.inMemory()
}

// inMemory returns the features, which are in memory.
func (t rowTable) inMemory() dbn.Matrix {
	return dbn.Matrix{Rows: t.Rows(), Cols: len(t.Columns), Data: t.Data}
}

// close removes what is on disk.
func (t rowTable) close() {
	for _, f := range []*table.RowFile{t.onDisk, t.bare.onDisk} {
		if f != nil {
			_ = f.Close() // what is left is in no one's way
		}
	}
}

// rowsOf returns how many rows of a class there are and which groups have some,
// in the order in which they first appear.
func (t rowTable) rowsOf(class int) (rows int, groups []string) {
	for i, g := range t.group {
		if t.Class[i] == class {
			groups = append(groups, g)
		}
	}
	rows = len(groups)
	_, groups = classify.NumberGroups(groups)
	return rows, groups
}

// apart returns the name under which each row's tool is held out.
func (t rowTable) apart() []string { return classify.AllTogether(t.together, t.group) }

// unlike returns the tools that have rows of a class, of copies the first one.
func (t rowTable) unlike(class int) []string {
	_, groups := t.rowsOf(class)
	_, names := classify.NumberGroups(classify.AllTogether(t.together, groups))
	return names
}

// check reports a class without rows.
func (t rowTable) check(rule wear.Rule) error {
	for k, name := range t.classes {
		if rows, _ := t.rowsOf(k); rows > 0 {
			continue
		}
		add := "worn tools"
		if k == classify.Healthy {
			add = "tools while they are new"
		}
		if several(t.classes) {
			return fmt.Errorf("%w: none of %d windows with a label is %s (%s%s): %sadd recordings of %s, or correct the rule under `label`", errData, t.Rows(), name, rule, t.bounds(), t.suspicion(k), add)
		}
		return fmt.Errorf("%w: all %d windows with a label are %s (%s%s): %sadd recordings of %s, or correct the rule under `label`", errData, t.Rows(), t.classes[1-k], rule, t.bounds(), t.suspicion(k), add)
	}
	return nil
}

// bounds says between which bounds the wear of the rows lies, and their states, if that is
// known.
func (t rowTable) bounds() string {
	var out string
	if least, most := t.span(); least == most {
		out = fmt.Sprintf("; they have %.4g µm", least)
	} else if least < most {
		out = fmt.Sprintf("; they have %.4g to %.4g µm", least, most)
	}
	if len(t.states) > 0 {
		states := slices.Sorted(maps.Keys(t.states))
		for i, s := range states {
			states[i] = fmt.Sprintf("%q", s)
		}
		out += "; their states are " + card.Some(states)
	}
	return out
}

// span returns the least and the greatest wear of the rows; if no wear is known, the
// first is the greater one.
func (t rowTable) span() (least, most float64) {
	least, most = math.Inf(1), math.Inf(-1)
	for _, um := range t.VBMaxUM {
		if um == um {
			least, most = min(least, um), max(most, um)
		}
	}
	return least, most
}

// suspicion says what may be the reason why no row is of class k.
func (t rowTable) suspicion(k int) string {
	if len(t.mismatches) > 0 {
		return strings.Join(t.mismatches, "; ") + "; otherwise "
	}
	if k == classify.Healthy {
		return ""
	}
	if _, most := t.span(); wear.UnitDoubt(most) != "" {
		return wear.UnitDoubt(most) + "; otherwise "
	}
	if len(t.states) > 0 {
		return "name the states of worn tools under `label`, as `label: {states: [worn, chipped, broken]}`; "
	}
	return ""
}

// warnings says in words what a person should know before trusting a score.
func (t rowTable) warnings() []string {
	var out []string
	for k, name := range t.classes[1:] {
		rows, groups := t.rowsOf(k + 1)
		if len(groups) < 3 {
			out = append(out, fmt.Sprintf("only %d of the tools ever get %s (%s): scores of tools never seen rest on few examples; label more worn tools", len(groups), name, strings.Join(groups, ", ")))
		}
		if rows < 20 {
			out = append(out, fmt.Sprintf("only %d windows are %s: label more worn tools", rows, name))
		}
	}
	return out
}

// wearUM returns the wear that was measured at each row, of the kind that the label's limit
// is of; NaN where it was not. It is nil if no wear is known.
func (t rowTable) wearUM() []float64 {
	if len(t.wearAt) == 0 || t.wear == nil {
		return nil
	}
	um := make([]float64, len(t.wearAt))
	for i, at := range t.wearAt {
		um[i] = math.NaN()
		if at >= 0 {
			um[i] = t.wear.WearUM[at]
		}
	}
	return um
}

// several reports whether there are more than two classes.
func several(names []string) bool { return len(names) > 2 }

package classify

import (
	"slices"
	"testing"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// Rows without a class lie between the others as they came. Tools that are held out have none.
func TestWhole(t *testing.T) {
	numbered := func(values ...float32) dbn.Matrix { return dbn.Matrix{Rows: len(values), Cols: 1, Data: values} }
	table := &Table{
		X: numbered(1, 3, 4, 6), Y: []int{0, 1, 0, 1}, Groups: []string{"a", "a", "b", "b"},
		Unlabelled: Unlabelled{X: numbered(0, 2, 5, 7, 8), Groups: []string{"a", "a", "b", "b", "c"}, After: []int{0, 1, 3, 4, 4}},
	}
	d := subset{of: table, rows: runOf(4), more: runOf(5)}
	for name, tc := range map[string]struct {
		d      subset
		values []float32
		tools  []string
	}{
		"all":       {d, []float32{0, 1, 2, 3, 4, 5, 6, 7, 8}, []string{"a", "a", "a", "a", "b", "b", "b", "b", "c"}},
		"without a": {d.learnFrom(setOf([]int{2, 3}), setOf([]int{0, 1}), false), []float32{4, 5, 6, 7, 8}, []string{"b", "b", "b", "b", "c"}},
	} {
		l := tc.d.lesson(table.X, table.Unlabelled.X)
		all := l.whole(l.x.(dbn.Matrix))
		var values []float32
		var tools []string
		for _, life := range all.Lives {
			for _, i := range life.Rows {
				values, tools = append(values, all.Row(i)...), append(tools, life.Tool)
			}
		}
		if !slices.Equal(values, tc.values) || !slices.Equal(tools, tc.tools) {
			t.Errorf("%s: rows %v of %v, want %v of %v", name, values, tools, tc.values, tc.tools)
		}
	}
	if all := (subset{of: table, rows: runOf(4)}).lesson(table.X, nil).whole(table.X.(dbn.Matrix)); all != nil {
		t.Errorf("no rows without a class: %v", all)
	}
}

package train

import (
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/model"
)

// examples are the windows that Run learns from, relative to the reference, without the columns
// that are excluded.
func TestExamplesOf(t *testing.T) {
	j := latheJob(t)
	e, err := ExamplesOf(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if e.X.Rows != 199 || len(e.Y) != 199 || len(e.Groups) != 199 || e.X.Cols != len(e.Columns) || !e.Ordered {
		t.Errorf("%d rows of %d columns, %d classes, %d groups, ordered %t", e.X.Rows, e.X.Cols, len(e.Y), len(e.Groups), e.Ordered)
	}
	faulty := 0
	for _, class := range e.Y {
		faulty += class
	}
	if faulty != 49 || e.Faulty != "class faulty" || !strings.Contains(e.Words(), "199 windows of 5 tools: 150 healthy, 49 faulty") {
		t.Errorf("%d faulty, %q, %q", faulty, e.Faulty, e.Words())
	}
	j.Config.Exclude = e.Columns[1:2]
	less, err := ExamplesOf(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if want := slices.Delete(slices.Clone(e.Columns), 1, 2); !slices.Equal(less.Columns, want) || less.X.Cols != len(want) || len(less.Settings.Exclude) != 0 {
		t.Errorf("columns %v, want %v", less.Columns, want)
	}
	for i := range less.X.Rows {
		a, b := e.X.Row(i), less.X.Row(i)
		if a[0] != b[0] && a[0] == a[0] || a[2] != b[1] && a[2] == a[2] {
			t.Fatalf("row %d: %v without the second value is %v", i, a, b)
		}
	}
}

// Of several modes of the reference, the first is taken; of several classes, all but the first are one.
func TestExamplesOfModesAndClasses(t *testing.T) {
	j := threeJob(t)
	j.Config.Reference.Mode = model.ReferenceAuto
	e, err := ExamplesOf(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if e.Faulty != "any class but healthy" || slices.Max(e.Y) != 1 || e.Wear != nil {
		t.Errorf("%q, classes up to %d, wear %v", e.Faulty, slices.Max(e.Y), e.Wear)
	}
	if e.Reference != "log" && e.Reference != "kind" {
		t.Errorf("mode %q", e.Reference)
	}
	if !strings.Contains(e.Words(), "relative to the tool's reference by mode "+e.Reference) {
		t.Errorf("%q", e.Words())
	}
	j.Config.Label.Classes, j.Config.Label.VBMaxUM = nil, 1e9
	if _, err := ExamplesOf(t.Context(), j); err == nil || !strings.Contains(err.Error(), "are healthy") {
		t.Errorf("no worn window: %v", err)
	}
}

// A feature does not count by its own name, with any characters in it, and * stands for a slash too.
func TestExcludeStrangeNames(t *testing.T) {
	columns := []string{"rms", "force [N]", "note/1", "power"}
	if got, err := excluded(columns, []string{"force [N]", "note*"}); err != nil || !slices.Equal(got, []int{1, 2}) {
		t.Errorf("%v, %v", got, err)
	}
}

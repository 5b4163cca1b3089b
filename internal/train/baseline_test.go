package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/score"
)

// A report compares the model with simpler methods on the same windows of the same tools.
func TestReportHasBaselines(t *testing.T) {
	t.Parallel()
	var phases []string
	_, r := latheModel(t)
	for _, p := range latheOnce.progress {
		if p.done == p.total && strings.HasPrefix(p.phase, "comparing") {
			phases = append(phases, fmt.Sprint(p.phase, " ", p.total))
		}
	}
	var names []string
	for _, b := range r.Baselines {
		names = append(names, b.Method)
	}
	if r.NotCompared != "" || !slices.Equal(names, []string{"threshold on one column", "logistic regression", "random forest"}) {
		t.Fatalf("%q %q", r.NotCompared, names)
	}
	for _, b := range r.Baselines {
		if b.Pooled.Rows != r.Pooled.Rows || b.Pooled.Positive != r.Pooled.Positive || len(b.Groups) != len(r.Groups) {
			t.Errorf("%s judges %d windows, %d faulty, of %d tools", b.Method, b.Pooled.Rows, b.Pooled.Positive, len(b.Groups))
		}
		if b.Pooled.GMean < 0.8 || math.Abs(float64(b.Ahead-(r.Pooled.GMean-b.Pooled.GMean))) > 1e-12 {
			t.Errorf("%s: G-mean %v, the model %v, ahead %v", b.Method, b.Pooled.GMean, r.Pooled.GMean, b.Ahead)
		}
		if b.AheadInterval[0] > b.Ahead || b.AheadInterval[1] < b.Ahead {
			t.Errorf("%s: %v ahead, %v", b.Method, b.Ahead, b.AheadInterval)
		}
	}
	if !slices.Equal(phases, []string{"comparing with simpler methods 5"}) {
		t.Errorf("progress %q", phases)
	}
	j := latheJob(t)
	j.Config.Evaluate.ByTool = "off"
	_, r, err := Run(t.Context(), j)
	if err != nil || r.Baselines != nil || r.NotCompared != "" {
		t.Errorf("without tools held out: %v %q %v", r.Baselines, r.NotCompared, err)
	}
}

// Of several classes, all but healthy are one.
func TestBaselinesOfThreeClasses(t *testing.T) {
	t.Parallel()
	_, r := threeModel(t)
	for _, b := range r.Baselines {
		if len(b.Pooled.Confusion) != 2 || b.Pooled.Positive != r.Faulty.Positive || math.Abs(float64(b.Ahead-(r.Faulty.GMean-b.Pooled.GMean))) > 1e-12 {
			t.Errorf("%s: %+v; healthy or not the model has %v", b.Method, b.Pooled, r.Faulty.GMean)
		}
	}
	if len(r.Baselines) != 3 {
		t.Errorf("%d simpler methods", len(r.Baselines))
	}
	if b := r.Robustness; b.Note != "" || math.Abs(float64(b.Clean.GMean-r.Faulty.GMean)) > 1e-12 || len(b.Trials) == 0 {
		t.Errorf("without a fault, healthy or not: %+v", b)
	}
}

// tableOf returns rows of tools whose first of three columns says what their class is.
func tableOf(tools, each int) (rowTable, *validated) {
	rng := rand.New(rand.NewPCG(1, 2))
	t := rowTable{Table: table.New([]string{"a", "b", "c"}), classes: []string{"healthy", "faulty"}}
	for tool := range tools {
		name := fmt.Sprint("T", tool)
		for i := range each {
			class := 0
			if i >= each*2/3 {
				class = 1
			}
			x := []float32{float32(3*class) + float32(rng.NormFloat64()), float32(rng.NormFloat64()), float32(i)}
			t.Append(table.Row{Tool: name, Class: class, Features: x, VBMaxUM: math.NaN()})
			t.group = append(t.group, name)
		}
	}
	v := &validated{Validation: &classify.Validation{Classes: 2, Fold: make([]int, t.Rows())}, folds: classify.LeaveOneGroupOut(t.group)}
	for f, fold := range v.folds {
		v.Reports = append(v.Reports, &classify.Report{Weights: &classify.Weights{Columns: []classify.ColumnWeight{{Column: 0, Weight: 0.5}, {Column: 1, Weight: 0.1}}}})
		for _, i := range fold.Test {
			v.Fold[i] = f
		}
	}
	return t, v
}

func compared(t *testing.T, rows rowTable, v *validated) *card.Report {
	t.Helper()
	j := Job{Config: DefaultConfig()}
	j.prepare()
	r := &card.Report{Groups: map[string]score.Summary{}}
	for _, g := range rows.group {
		if !slices.Contains(r.Tools, g) {
			r.Tools, r.Groups[g] = append(r.Tools, g), score.Confusion{{1, 0}, {0, 1}}.Summary()
		}
	}
	if err := j.compare(t.Context(), rows, v, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// Decisions on a tool that is held out do not depend on its labels, and columns
// without a weight do not count.
func TestBaselinesSeeOnlyTheirFold(t *testing.T) {
	rows, v := tableOf(4, 30)
	before := compared(t, rows, v)
	for _, b := range before.Baselines {
		if b.Pooled.GMean < 0.85 {
			t.Errorf("%s: G-mean %v", b.Method, b.Pooled.GMean)
		}
	}
	for i := range rows.Class {
		rows.Data[3*i+2] = float32(1000 * rows.Class[i]) // the answer, without a weight
	}
	for k, b := range compared(t, rows, v).Baselines {
		if b.Pooled.GMean != before.Baselines[k].Pooled.GMean {
			t.Errorf("%s looks at a column without a weight", b.Method)
		}
	}
	first := func(b card.Baseline) (called int) {
		return b.Groups["T0"].Confusion[0][1] + b.Groups["T0"].Confusion[1][1]
	}
	for i := range 15 { // of T0
		rows.Class[i] = 1
	}
	for k, b := range compared(t, rows, v).Baselines {
		if first(b) != first(before.Baselines[k]) {
			t.Errorf("%s: the labels of T0 change the decisions on it", b.Method)
		}
	}
}

// The early rows of tools without a label count as healthy, unless their tool is held out.
func TestBaselinesLearnFromUnlabelledTools(t *testing.T) {
	rows, v := tableOf(4, 30)
	rows.ordered = true
	before := compared(t, rows, v)
	add := func(tool string) rowTable {
		with := rows
		for range 120 { // of which 30 count, and look as faulty rows do
			with.bare.data = append(with.bare.data, 3, 0, 0)
			with.bare.group, with.bare.after = append(with.bare.group, tool), append(with.bare.after, rows.Rows())
		}
		return with
	}
	recall := func(r *card.Report, k int) float64 { return float64(r.Baselines[k].Pooled.Recall) }
	for k, b := range compared(t, add("T9"), v).Baselines {
		if float64(b.Pooled.Recall) >= recall(before, k) && k < 2 { // a forest tells the one value apart
			t.Errorf("%s: rows of an unlabelled tool that look worn leave the recall at %v", b.Method, b.Pooled.Recall)
		}
	}
	for k, b := range compared(t, add("T0"), v).Baselines { // which has labels elsewhere
		if k < 2 && math.Abs(float64(b.Pooled.Recall)-recall(before, k)) > 0.05 {
			t.Errorf("%s: rows without a label of a labelled tool count as healthy: recall %v, before %v", b.Method, b.Pooled.Recall, recall(before, k))
		}
	}
}

// Too large a table is left alone, and the report says why.
func TestNotCompared(t *testing.T) {
	rows, v := tableOf(4, 30)
	rows.onDisk = new(table.RowFile)
	if r := compared(t, rows, v); r.Baselines != nil || !strings.Contains(r.NotCompared, "do not fit in memory") {
		t.Errorf("on disk: %v, %q", r.Baselines, r.NotCompared)
	}
	rows.onDisk, rows.bare.onDisk = nil, new(table.RowFile)
	if r := compared(t, rows, v); !strings.Contains(r.NotCompared, "do not fit in memory") {
		t.Errorf("unlabelled rows on disk: %q", r.NotCompared)
	}
	rows.bare.onDisk = nil
	rows.Columns = make([]string, 100_000)
	if r := compared(t, rows, v); r.Baselines != nil || !strings.Contains(r.NotCompared, "120 windows of 100000 features in 4 folds") {
		t.Errorf("large: %v, %q", r.Baselines, r.NotCompared)
	}
}

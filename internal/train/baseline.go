package train

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/train/study"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// comparedWith are the simpler methods that a model is compared with: one column, all of them in a
// line, and a forest.
var comparedWith = []study.Baseline{study.OneColumn, study.LogisticRegression, study.RandomForest}

// baselineValues is up to how many values, rows by columns by folds, simpler methods are
// compared: they take some ten seconds then.
const baselineValues = 12_000_000

// baselineSeed is what the seeds of simpler methods are derived from, one for each fold.
const baselineSeed = 0x626173650000

// compare scores simpler methods on the tools that were held out, and adds them to the report.
// They learn from the windows that the network of each fold was fine-tuned on: relative
// to the reference in the same way, with the same weights of features, and with the early windows of
// tools without a label. Classes are healthy and all others.
func (j *Job) compare(ctx context.Context, rows rowTable, v *validated, r *card.Report) error {
	if v == nil {
		return nil
	}
	if r.NotCompared = notCompared(rows, len(v.folds)); r.NotCompared != "" {
		return nil
	}
	y := make([]int, len(rows.Class))
	for i, class := range rows.Class {
		y[i] = min(class, 1)
	}
	views, worn := rows.views(j.Config.Reference.Windows), rows.wearInLimits()
	task := func(f int) study.Task {
		fold, report := v.folds[f], v.Reports[f]
		unlabelled := rows.bareOf(j.Config.Evaluate.Transductive, fold)
		x, more := viewOf(rows, views, report.View, fold, unlabelled)
		t := j.foldTask(f, fold, x, y, rows)
		t.Weights, t.Groups = weightsOf(report.Weights, x.Cols, rows.exclude), classify.Pick(rows.group, fold.Train)
		t.Wear = classify.Pick(worn, fold.Train)
		if len(unlabelled) > 0 {
			t.Unlabelled.X = classify.Part(more, unlabelled)
		}
		t.Unlabelled.Groups = classify.Pick(rows.bare.group, unlabelled)
		return t
	}
	const phase = "comparing with simpler methods"
	n := 0
	j.Progress(phase, 0, len(v.folds))
	answers, err := study.JudgeFolds(ctx, comparedWith, len(v.folds), task, j.Workers, func() {
		n++
		j.Progress(phase, n, len(v.folds))
	})
	if err != nil {
		return err
	}
	for k, method := range comparedWith {
		r.Baselines = append(r.Baselines, r.NewBaseline(string(method), v.answered(answers, k, y, rows.group)))
	}
	return j.settingsAlone(ctx, rows, y, v, r)
}

// foldTask returns the task of a fold, without groups, weights and what else a method learns from.
func (j *Job) foldTask(f int, fold classify.Fold, x dbn.Matrix, y []int, rows rowTable) study.Task {
	return study.Task{
		X: classify.Part(x, fold.Train).(dbn.Matrix), Test: classify.Part(x, fold.Test).(dbn.Matrix), Y: classify.Pick(y, fold.Train),
		Ordered: rows.ordered, Costs: j.Config.Costs, Seed: classify.DeriveSeed(j.Config.Seed, baselineSeed+uint64(f)),
	}
}

// answered returns what method k decided in all folds.
func (v *validated) answered(answers [][]*study.Answer, k int, y []int, groups []string) *classify.Validation {
	s := &classify.Validation{
		Classes: 2, Fold: v.Fold, Decision: slices.Repeat([]int{-1}, len(y)), Posterior: make([]float64, 2*len(y)), Score: make([]float64, len(y)),
	}
	for f, fold := range v.folds {
		a := answers[f][k]
		decided, scores := a.Decide(), a.Scores()
		for n, i := range fold.Test {
			s.Decision[i], s.Score[i] = decided[n], scores[n]
			copy(s.Posterior[2*i:], a.Posterior[2*n:2*n+2])
		}
	}
	s.Assess(y, groups)
	return s
}

// settingsAlone scores what settings reach without sensors, on the same folds: columns that are the same in all windows of a tool and not in all tools,
// such as a feed. They are taken as they are before the reference, also if they do not count.
func (j *Job) settingsAlone(ctx context.Context, rows rowTable, y []int, v *validated, r *card.Report) error {
	plain := rows.plain
	if rows.rel != nil {
		plain = rows.Data
	}
	columns := settingsOf(plain, len(rows.Columns), rows.group)
	if len(columns) == 0 {
		return nil
	}
	x := dbn.NewMatrix(len(y), len(columns))
	names := make([]string, len(columns))
	for k, c := range columns {
		names[k] = rows.Columns[c]
		for i := range y {
			x.Row(i)[k] = plain[i*len(rows.Columns)+c]
		}
	}
	groups := rows.apart()
	task := func(f int) study.Task {
		t := j.foldTask(f, v.folds[f], x, y, rows)
		t.Weights, t.Groups = weightsOf(nil, len(columns), nil), classify.Pick(groups, v.folds[f].Train)
		return t
	}
	answers, err := study.JudgeFolds(ctx, []study.Baseline{study.RandomForest}, len(v.folds), task, j.Workers, func() {})
	if err != nil {
		return err
	}
	r.Settings = &card.SettingsAlone{Columns: names, Baseline: r.NewBaseline("settings alone", v.answered(answers, 0, y, rows.group))}
	if warning := r.Settings.Warning(); warning != "" {
		j.warn(r, warning)
	}
	return nil
}

// settingsOf returns the columns of rows that have one value in each tool, most of which have two windows or more, and not the same in all.
func settingsOf(rows []float32, width int, group []string) (out []int) {
	if rows == nil {
		return nil
	}
	number, names := classify.NumberGroups(group)
	counts, long := make([]int, len(names)), 0
	for _, g := range number {
		if counts[g]++; counts[g] == 2 {
			long++
		}
	}
	if 2*long <= len(names) {
		return nil
	}
columns:
	for c := range width {
		of := slices.Repeat([]float32{float32(math.NaN())}, len(names))
		differ, last := false, float32(math.NaN())
		for i, g := range number {
			v := rows[i*width+c]
			if v != v {
				continue
			}
			if of[g] == of[g] && of[g] != v {
				continue columns
			}
			differ = differ || last == last && last != v
			of[g], last = v, v
		}
		if differ {
			out = append(out, c)
		}
	}
	return out
}

// notCompared says why simpler methods are not compared on rows, or nothing.
func notCompared(rows rowTable, folds int) string {
	columns := len(rows.Columns) - len(rows.exclude)
	switch values := rows.Rows() * columns * folds; {
	case rows.onDisk != nil || rows.bare.onDisk != nil:
		return "the features do not fit in memory; train on a part of the table to see how they do"
	case values > baselineValues:
		return fmt.Sprintf("%d windows of %d features in %d folds would take them minutes; fewer features (exclude), or evaluate: {by_tool: 5-fold}, make it feasible", rows.Rows(), columns, folds)
	}
	return ""
}

// viewOf returns all rows with a label and all without, in the view of that name as a fold and
// the unlabelled rows that it learns from teach it.
func viewOf(rows rowTable, views []classify.View, name string, fold classify.Fold, unlabelled []int) (x, more dbn.Matrix) {
	at := slices.IndexFunc(views, func(v classify.View) bool { return v.Name == name })
	if at < 0 {
		return rows.inMemory(), dbn.Matrix{Rows: len(rows.bare.group), Cols: len(rows.Columns), Data: rows.bare.data}
	}
	a, b := views[at].Rows(fold.Train, unlabelled)
	if b != nil {
		more = b.(dbn.Matrix)
	}
	return a.(dbn.Matrix), more
}

// weightsOf returns by how much each column counts.
func weightsOf(w *classify.Weights, columns int, exclude []int) []float64 {
	out := slices.Repeat([]float64{1}, columns)
	if w != nil && w.Off == "" {
		clear(out)
		for _, c := range w.Columns {
			out[c.Column] = c.Weight
		}
	}
	for _, j := range exclude {
		out[j] = 0
	}
	return out
}

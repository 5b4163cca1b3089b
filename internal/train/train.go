package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/wear"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Job is a training run.
type Job struct {
	Config  Config
	Layout  *signal.Layout
	Inputs  []Input
	Wear    []wear.Measurement // nil: labels are in the recordings
	Program string             // name and version, for the provenance
	Workers int                // 0: one for each CPU; never changes a result

	// Progress, if not nil, is told how far each phase is, by one goroutine at
	// a time.
	Progress func(phase string, done, total int)

	Log zerolog.Logger
}

// ErrData is returned where there is nothing to learn from.
var ErrData = errors.New("nothing to learn from")

// Run trains a model and scores it. Equal jobs give equal models and reports,
// byte for byte.
func Run(ctx context.Context, job Job) (*model.Model, *Report, error) {
	if job.Workers == 0 {
		job.Workers = runtime.GOMAXPROCS(0)
	}
	if job.Progress == nil {
		job.Progress = func(string, int, int) {}
	}
	if err := job.Config.Check(); err != nil {
		return nil, nil, fmt.Errorf("train: %w", err)
	}
	if len(job.Inputs) == 0 {
		return nil, nil, fmt.Errorf("train: %w: no recordings: name some with --data", ErrData)
	}
	rows, m, counts, err := job.rows(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range rows.warnings() {
		job.Log.Warn().Msg(w)
	}
	r := newReport(&job, m, rows, counts)
	if err := job.evaluate(ctx, rows, r); err != nil {
		return nil, nil, err
	}
	s := job.Config.settings(job.Workers)
	s.Progress = job.phase("training the model")
	c, fit, err := classify.Fit(ctx, rows.x(), rows.Class, rows.Tool, s)
	if err != nil {
		return nil, nil, fmt.Errorf("train: %w", err)
	}
	r.Fit = fit
	m.Classifier = c
	m.Golden = golden(c, rows)
	if m.Scores, err = json.Marshal(r.headline()); err != nil {
		return nil, nil, fmt.Errorf("train: %w", err)
	}
	if _, err := m.Encode(); err != nil { // checks it and gives it its id
		return nil, nil, err
	}
	r.Model = m.ID()
	return m, r, nil
}

// phase returns a progress callback that shows one name for all phases of the
// classifier.
func (j *Job) phase(name string) func(string, int, int) {
	return func(_ string, done, total int) { j.Progress(name, done, total) }
}

// rowTable is the feature table that is learnt from: every row has a class.
type rowTable struct {
	*table.Table
}

// x returns the features as the classifier takes them, without a copy.
func (t rowTable) x() dbn.Matrix {
	return dbn.Matrix{Rows: t.Rows(), Cols: len(t.Columns), Data: t.Data}
}

// warnings says in words what a person should know before trusting a score.
func (t rowTable) warnings() []string {
	var out []string
	faulty := map[string]bool{}
	n := 0
	for i, c := range t.Class {
		if c != classify.Healthy {
			faulty[t.Tool[i]] = true
			n++
		}
	}
	if len(faulty) < 3 {
		out = append(out, fmt.Sprintf("only %d tool(s) ever get faulty: scores on tools never seen rest on few examples", len(faulty)))
	}
	if n < 20 {
		out = append(out, fmt.Sprintf("only %d faulty windows: label more worn tools", n))
	}
	return out
}

// rows observes the recordings and makes the table, with a model that is
// complete but for its classifier.
func (j *Job) rows(ctx context.Context) (rowTable, *model.Model, tally, error) {
	fail := func(err error) (rowTable, *model.Model, tally, error) {
		return rowTable{}, nil, tally{}, fmt.Errorf("train: %w", err)
	}
	c := &j.Config
	var join *wear.Join
	if j.Wear != nil {
		var err error
		if join, err = wear.NewJoin(j.Wear, c.Join); err != nil {
			return fail(err)
		}
	}
	m := &model.Model{
		Layout: j.Layout, Window: c.spec(), Features: c.Features, Reference: c.Reference,
		Usual: make([]signal.Quality, len(j.Layout.Channels())),
		Label: model.LabelRule(c.Label),
	}
	if err := m.Window.Check(m.Layout); err != nil {
		return fail(err)
	}
	if _, err := signal.NewExtractor(m.Layout, m.SamplesPerChannel(), m.Features); err != nil {
		return fail(err)
	}
	if name, ok := gateChannel(j.Layout); ok && c.Gate == "auto" {
		m.Gate = &model.Gate{Channel: name}
	}
	found, gaps, err := collect(ctx, m, j.Inputs, j.Workers, func(done, total int) { j.Progress("reading recordings", done, total) })
	if err != nil {
		return fail(err)
	}
	counts := tally{Gaps: gaps}
	for i, os := range found {
		counts.Windows += len(os)
		m.Provenance.Data = append(m.Provenance.Data, model.DataSet{Name: j.Inputs[i].Name, SHA256: j.Inputs[i].SHA256, Windows: len(os)})
	}
	if counts.Windows == 0 {
		return fail(fmt.Errorf("%w: the recordings are shorter than one window of %v", ErrData, c.Window.Length))
	}
	m.Provenance.Program, m.Provenance.Seed = j.Program, c.Seed
	if m.Provenance.Config, err = json.Marshal(c); err != nil {
		return fail(err)
	}
	m.Usual = usual(len(m.Usual), found)
	m.Gate = settleGate(m.Gate, found)
	if join != nil {
		starts(join, found)
	}
	t, err := j.table(m, found, join, &counts)
	return t, m, counts, err
}

// settleGate learns the threshold of the gate, or drops it.
func settleGate(g *model.Gate, found [][]observed) *model.Gate {
	if g == nil {
		return nil
	}
	var levels []float64
	for _, os := range found {
		for i := range os {
			levels = append(levels, os[i].Level)
		}
	}
	slices.Sort(levels)
	threshold, ok := learnGate(levels)
	if !ok {
		return nil
	}
	return &model.Gate{Channel: g.Channel, Threshold: threshold}
}

// starts tells the join when each tool was new: at its first window.
func starts(join *wear.Join, found [][]observed) {
	seen := make(map[[2]string]bool)
	for _, os := range found {
		for i := range os {
			if key := [2]string{os[i].machine, os[i].Tool}; !seen[key] {
				seen[key] = true
				join.Start(os[i].machine, os[i].Tool, os[i].end)
			}
		}
	}
}

// table makes one row of every window that is judged and labelled.
func (j *Job) table(m *model.Model, found [][]observed, join *wear.Join, counts *tally) (rowTable, error) {
	judge := m.NewJudge()
	t := table.New(judge.FeatureNames())
	for _, os := range found {
		var ref model.Reference
		for i := range os {
			o := &os[i]
			row, v := judge.Row(&o.Observation, &ref)
			switch v.Outcome {
			case model.NotCutting:
				counts.NotCutting++
				continue
			case model.SensorFault:
				counts.SensorFault++
				continue
			case model.Learning:
				counts.Learning++
				continue
			}
			class, ok := label(o, j.Config.Label, join)
			if !ok {
				counts.Unlabelled++
				continue
			}
			t.Append(table.Row{Features: row, Machine: o.machine, Tool: o.Tool, Hole: o.hole, Start: o.end.Add(-m.Window.Length), Class: class, VBMaxUM: o.truth.VBMaxUM})
		}
	}
	counts.Used, counts.Missing = t.Rows(), t.Missing()
	if counts.Used == 0 {
		return rowTable{}, fmt.Errorf("train: %w: of %d windows none has a label and is fit for judging (%+v)", ErrData, counts.Windows, *counts)
	}
	return rowTable{t}, nil
}

// evaluate scores the settings on tools that were held out, and on rows that
// were.
func (j *Job) evaluate(ctx context.Context, rows rowTable, r *Report) error {
	s := j.Config.settings(j.Workers)
	var folds []classify.Fold
	rng := rand.New(rand.NewPCG(j.Config.Seed, 0x666f6c6473)) // "folds"
	switch j.Config.Evaluate.ByTool {
	case "leave-one-out":
		folds = classify.LeaveOneGroupOut(rows.Tool)
	case "5-fold":
		folds = classify.GroupKFold(rows.Class, rows.Tool, 5, rng)
	}
	if len(folds) > 1 {
		s.Progress = j.phase("scoring on tools held out")
		v, err := classify.CrossValidate(ctx, rows.x(), rows.Class, rows.Tool, s, folds)
		if err != nil {
			return fmt.Errorf("train: scoring by tool: %w", err)
		}
		r.byTool(v, j.Config.Evaluate.ByTool, len(folds))
	} else if j.Config.Evaluate.ByTool != "off" {
		j.Log.Warn().Msg("all windows are of one tool: nothing can be said of tools never seen")
	}
	if j.Config.Evaluate.RandomSplit {
		s.Progress = j.phase("scoring on a random split")
		v, err := classify.CrossValidate(ctx, rows.x(), rows.Class, nil, s, classify.StratifiedKFold(rows.Class, 5, rng))
		if err != nil {
			return fmt.Errorf("train: scoring on a random split: %w", err)
		}
		r.random(v)
	}
	return nil
}

// golden picks rows of every class for the model to be checked by.
func golden(c *classify.Classifier, rows rowTable) []model.Golden {
	const each = 4
	s := c.NewScorer()
	var out []model.Golden
	for class := range c.Classes() {
		var of []int
		for i, k := range rows.Class {
			if k == class {
				of = append(of, i)
			}
		}
		for k := range min(each, len(of)) {
			i := of[k*len(of)/min(each, len(of))]
			x := slices.Clone(rows.x().Row(i))
			out = append(out, model.Golden{Features: x, Posterior: slices.Clone(s.Posterior(x))})
		}
	}
	return out
}

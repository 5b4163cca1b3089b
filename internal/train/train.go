package train

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/internal/train/study"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/trend"
)

// Job is a training run.
type Job struct {
	Config  Config
	Layout  *signal.Layout
	Columns signal.Recording // how recordings are read, for the model to carry
	Inputs  []Input
	Wear    []wear.Measurement // nil: labels are in the recordings
	Program string             // name and version, for the provenance
	Workers int                // 0: one for each CPU; never changes a result

	// Scratch is the folder for features that do not fit in memory; empty stands
	// for the one of temporary files.
	Scratch string

	// Keep, if not nil, keeps trained networks, for a run that is cut off and
	// started again.
	Keep classify.Checkpoints

	// Progress, if not nil, is called with how far each phase is, by one goroutine at
	// a time.
	Progress func(phase string, done, total int)

	Log zerolog.Logger

	shared      *classify.Shared                                        // networks of this run
	scoresModes bool                                                    // of the reference, if the rows are few enough: rows for that are made too
	watch       func(group string, start time.Time, features []float32) // see labeller
	hop         time.Duration                                           // of the windows, see medianHop
	presume     bool                                                    // windows without a label are healthy
}

// Errors that callers test for.
var (
	// errData: there is nothing to learn from.
	errData = errors.New("nothing to learn from")
	// errLabels: labels contradict each other.
	errLabels = errors.New("labels contradict each other")
	// errUnknownState: a state is of no class.
	errUnknownState = errors.New("a label cannot be read")
)

// Reading is the phase of a run in which recordings are read, or simulated.
const Reading = "reading recordings"

// Run trains a model and scores it. Equal jobs give equal models and reports,
// byte for byte.
func Run(ctx context.Context, job Job) (*model.Model, *card.Report, error) {
	job.prepare()
	if err := job.Config.Check(); err != nil {
		return nil, nil, fmt.Errorf("train: %w", err)
	}
	job.scoresModes, job.shared = job.Config.Evaluate.ByTool != "off", classify.NewShared()
	rows, m, counts, err := job.rows(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer rows.close()
	if err := rows.check(job.Config.Label); err != nil {
		return nil, nil, fmt.Errorf("train: %w%s", err, hintFirstDay(&rows))
	}
	m.Label.Findings, m.Provenance.Labels, m.Provenance.LabelsFrom = rows.findings, labelSum(&rows), counts.LabelsFrom
	r := begin(&job, m, rows, counts)
	rng := rand.New(rand.NewPCG(job.Config.Seed, foldSeed))
	v, err := job.scoreByTool(ctx, rows, r, rng)
	if err != nil {
		return nil, nil, fmt.Errorf("train: scoring by tool: %w", err)
	}
	if err := job.compare(ctx, rows, v, r); err != nil {
		return nil, nil, fmt.Errorf("train: comparing with simpler methods: %w", err)
	}
	if r.Robustness, err = job.robustness(ctx, rows, m, v); err != nil {
		return nil, nil, fmt.Errorf("train: making sensors read wrong: %w", err)
	}
	modes, err := job.scoreModes(ctx, &rows)
	if err != nil {
		return nil, nil, fmt.Errorf("train: scoring modes of the reference: %w", err)
	}
	s := job.settings(rows)
	s.Progress = job.phase("training the model")
	c, fit, err := classify.FitTable(ctx, rows.lessons(m.Reference.Windows), s)
	if err != nil {
		return nil, nil, fmt.Errorf("train: %w", err)
	}
	r.SetFit(fit, rows.Columns, rows.exclude)
	if rows.rel != nil {
		m.Reference = rows.settle(model.Mode(fit.View), m.Reference.Windows)
		r.Reference = m.Reference
		job.sayView(fit)
	}
	job.sayModes(r, modes, m.Reference.Mode)
	if err := job.scoreAtRandom(ctx, rows, r, rng); err != nil {
		return nil, nil, fmt.Errorf("train: scoring on a random split: %w", err)
	}
	showFit(r, rows, c, fit.Posterior)
	m.Classifier = c
	if err := job.complete(ctx, &rows, m, r, v); err != nil {
		return nil, nil, fmt.Errorf("train: %w", err)
	}
	if _, err := m.Encode(); err != nil { // checks it and gives it its id
		return nil, nil, err
	}
	r.Model = m.ID()
	return m, r, nil
}

// begin returns the report as it is before minutes of training, and says what it has so far.
func begin(j *Job, m *model.Model, rows rowTable, counts card.Tally) *card.Report {
	r := newReport(j, m, rows, counts)
	j.Log.Info().Msg(r.Balance)
	for _, w := range slices.Concat(tableWarnings(&j.Config, j.Inputs, m), rows.warnings(), rows.columnWarnings(), rows.tell.warnings(rows.exclude, tables(j.Inputs)), rows.copyWarnings(), counts.Warnings()) {
		j.warn(r, w)
	}
	return r
}

// showFit gives the report what its plots show of the posteriors that costs were chosen on.
func showFit(r *card.Report, rows rowTable, c *classify.Classifier, posterior []float64) {
	if r.Pooled == nil {
		var decision []int
		if several(rows.classes) {
			decision = study.ByRow(posterior, c.Classes(), c.Decide)
		}
		r.Held = heldOut(rows, posterior, decision, study.ByRow(posterior, c.Classes(), c.Score))
		r.CostsSeen = r.Fit.Costs.Posteriors == posteriorsByTool
	}
	if !several(rows.classes) { // of which alone the G-mean depends on one threshold
		r.Landscape = card.NewLandscape(card.FaultyOf(posterior, 2), card.Positives(rows.Class))
	}
	r.SetFaulty()
}

// complete gives a model that has its classifier the rest: the estimate of wear, the verdict
// unknown, drift, and what it is checked by.
func (j *Job) complete(ctx context.Context, rows *rowTable, m *model.Model, r *card.Report, v *validated) (err error) {
	if g := r.Fit.Guard; g != nil && g.Off == "" && j.Config.Guard != j.Config.guard() {
		g.StepsOff = "windows overlap"
	}
	posterior := r.Fit.Posterior
	r.Fit.Posterior = nil // it is not needed again, and large if there are many rows
	if err := j.trend(ctx, rows, m, r); err != nil {
		return err
	}
	if err := rows.keepHeldOut(m, r.Fit, j.Log); err != nil {
		return err
	}
	if m.Golden, err = goldenRows(m, *rows); err != nil {
		return err
	}
	if err := j.fitUnknown(ctx, *rows, posterior, m, r, v); err != nil {
		return err
	}
	if m.Reference.Mode != model.ReferenceOff {
		m.Drift = fitDrift(rows.starts, counted(r.Fit.Weights, len(rows.Columns), rows.exclude))
	}
	j.decide(*rows, r)
	m.Scores, err = json.Marshal(r.Headline())
	return err
}

// prepare fills in what may be left out.
func (j *Job) prepare() { prepare(&j.Workers, &j.Progress) }

func prepare(workers *int, progress *func(phase string, done, total int)) {
	*workers = cmp.Or(*workers, runtime.GOMAXPROCS(0))
	if *progress == nil {
		*progress = func(string, int, int) {}
	}
}

// settings returns the classifier's settings.
func (j *Job) settings(rows rowTable) classify.Settings {
	s := j.Config.Settings(j.Workers)
	s.Keep, s.Shared, s.Exclude = j.Keep, j.shared, rows.exclude
	return s
}

// sayView says which way of taking features relative to the reference was chosen.
func (j *Job) sayView(fit *classify.Report) {
	if len(fit.Views) == 0 {
		if j.Config.Reference.Mode == model.ReferenceAuto {
			j.Log.Info().Msgf("features are taken relative to the tool's reference by mode %s: to choose another takes four tools that have windows of each class but healthy, and a table of up to %d MiB", fit.View, viewBytes>>20)
		}
		return
	}
	words := make([]string, len(fit.Views))
	for i, v := range fit.Views {
		words[i] = fmt.Sprintf("%s %.3f", v.Name, v.Loss)
	}
	j.Log.Info().Msgf("features are taken relative to the tool's reference by mode %s (chosen by the cross-entropy at its best temperature: %s)", fit.View, strings.Join(words, ", "))
}

// phase returns a progress callback that shows one name for all phases of the
// classifier.
func (j *Job) phase(name string) func(string, int, int) {
	return func(_ string, done, total int) { j.Progress(name, done, total) }
}

// rows observes the recordings and makes the table, with a model that is
// complete but for its classifier.
func (j *Job) rows(ctx context.Context) (rowTable, *model.Model, card.Tally, error) {
	fail := func(err error) (rowTable, *model.Model, card.Tally, error) {
		return rowTable{}, nil, card.Tally{}, fmt.Errorf("train: %w", err)
	}
	if len(j.Inputs) == 0 {
		return fail(fmt.Errorf("%w: no recordings: name some with --data", errData))
	}
	if err := j.checkWear(); err != nil { // before hours of reading
		return fail(err)
	}
	if err := checkLabelled(j.Inputs, j.Wear); err != nil && !j.presume {
		return fail(err)
	}
	m, err := j.blank()
	if err != nil {
		return fail(err)
	}
	judge := m.NewJudge()
	sample, copies := newSampler(), newTwinFinder(judge.FeatureNames(), judge.Origins())
	j.watch = func(group string, start time.Time, features []float32) {
		sample.add(group, features)
		copies.add(group, start, features)
	}
	end := func(t rowTable, counts card.Tally, err error) (rowTable, *model.Model, card.Tally, error) {
		if err != nil {
			return rowTable{}, nil, card.Tally{}, err
		}
		if t.exclude, err = excluded(t.Columns, j.Config.Exclude); err != nil {
			t.close()
			return fail(err)
		}
		t.hold(copies.twins())
		m.Provenance.Sketch = sample.sketch()
		return t, m, counts, nil
	}
	if slices.ContainsFunc(j.Inputs, func(in Input) bool { return in.Scan != nil || in.Large }) {
		return end(j.rowsOnDisk(ctx, m))
	}
	found, gaps, err := collect(ctx, m, j.Inputs, j.Workers, keepAll, func(done, total int) { j.Progress(Reading, done, total) })
	if err != nil {
		return fail(err)
	}
	j.hop = medianHop(found)
	counts := card.Tally{Gaps: gaps, LeftOut: leftOut(j.Inputs)}
	if m.Provenance.Data, err = dataSets(j.Inputs, found, m.Window.Length, &counts); err != nil {
		return fail(err)
	}
	if counts.Windows == 0 {
		return fail(fmt.Errorf("%w: the recordings hold no whole window of %v: record for longer, or shorten `window: length`", errData, j.Config.Window.Length))
	}
	m.Usual = usual(len(m.Usual), found)
	if err := j.settleCutting(m, found); err != nil {
		return fail(err)
	}
	cutting := newCuttingWindows(m)
	for _, os := range inOrder(found) {
		for i := range os {
			cutting.observe(&os[i])
		}
	}
	if counts.ReferenceFit, err = j.fitReference(m, cutting.windows); err != nil {
		return fail(err)
	}
	if err := j.provenance(m); err != nil {
		return rowTable{}, nil, card.Tally{}, err
	}
	join, err := j.join(windowsOf(j.Inputs, found, false))
	if err != nil {
		return fail(err)
	}
	t, err := j.table(m, windowsOf(j.Inputs, found, true), join, &counts)
	t.hop = medianHop(found)
	return end(t, counts, err)
}

// blank returns a model that has learnt nothing yet.
func (j *Job) blank() (*model.Model, error) {
	c := &j.Config
	m := &model.Model{
		Layout: j.Layout, Recording: j.Columns, Window: c.spec(), Features: c.Features, Reference: c.Reference,
		Usual: make([]signal.Quality, len(j.Layout.Channels())),
		Label: labelRule(c.Label),
	}
	if err := m.Window.Check(m.Layout); err != nil {
		return nil, err
	}
	x, err := signal.NewExtractor(m.Layout, m.SamplesPerChannel(), m.Features)
	if err != nil {
		return nil, err
	}
	m.Features = x.Spec() // with its version, so that a newer one changes nothing
	if c.Gate == "auto" {
		m.Gate, m.Cycle = cuttingOf(m)
	}
	return m, nil
}

// provenance notes where the model comes from, but for the data.
func (j *Job) provenance(m *model.Model) (err error) {
	m.Provenance.Program, m.Provenance.Seed = j.Program, j.Config.Seed
	m.Provenance.LengthKnown = j.Config.Window.Said || !tables(j.Inputs)
	if m.Provenance.Config, err = json.Marshal(&j.Config); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

// settleGate learns the threshold of the gate, or drops it. Windows in which
// its channel has holes say nothing of the level.
func settleGate(g *model.Gate, channel int, found [][]observed) *model.Gate {
	var levels []float64
	for _, os := range found {
		for i := range os {
			if os[i].Quality[channel]&(signal.Dropout|signal.NonFinite) == 0 {
				levels = append(levels, os[i].Level)
			}
		}
	}
	threshold, ok := learnGate(levels)
	if !ok {
		return nil
	}
	return &model.Gate{Channel: g.Channel, Threshold: threshold}
}

// checkWear reports measurements that cannot be joined to any windows.
func (j *Job) checkWear() error {
	if j.Wear == nil {
		return nil
	}
	if _, err := j.Config.newJoin(j.Wear); err != nil {
		return err
	}
	return j.Config.Label.CheckClasses(j.Wear)
}

// checkLabelled reports windows on Kafka, which have no labels of their own, that come without any.
func checkLabelled(inputs []Input, ms []wear.Measurement) error {
	if ms == nil && len(inputs) > 0 && !slices.ContainsFunc(inputs, func(in Input) bool { return in.Cut == nil || in.Wear != nil }) {
		return fmt.Errorf("%w: windows on Kafka have no labels: name a file with the wear of their tools, --wear FILE", errData)
	}
	return nil
}

// newJoin returns the join of measurements that labels come from, before it has seen windows.
func (c *Config) newJoin(ms []wear.Measurement) (*wear.Join, error) {
	join, err := wear.NewJoin(ms, c.Join)
	if err == nil {
		join.Limit(c.Label.Limit())
	}
	return join, err
}

// join returns the join of all measurements, which knows when each tool was
// new: at its first window. It is nil if labels are in the recordings.
func (j *Job) join(found windows) (*wear.Join, error) {
	ms, any := slices.Clone(j.Wear), j.Wear != nil
	for _, in := range j.Inputs {
		if in.Wear != nil {
			ms, any = append(ms, in.Wear()...), true
		}
	}
	if !any {
		return nil, nil
	}
	join, err := j.Config.newJoin(ms)
	if err != nil {
		return nil, err
	}
	for o, err := range found {
		if err != nil {
			return nil, err
		}
		join.See(o.window(j.Config.Window.Length))
	}
	return join, join.Check()
}

// table makes one row of every window that is judged and labelled. A tool that
// a machine goes on with in the next recording keeps its reference, as it does
// in the monitor, so found is in the order of time, and recordings are in the order of their first windows.
func (j *Job) table(m *model.Model, found windows, join *wear.Join, counts *card.Tally) (rowTable, error) {
	plain := *m
	if plain.Reference.Mode != model.ReferenceOff {
		plain.Reference.Mode, plain.Reference.Positive = model.ReferenceDifference, ""
	}
	t, l, err := j.plainRows(&plain, found, join, counts, j.watch)
	if err != nil {
		return rowTable{}, err
	}
	t.rel.modes = modesOf(l.judge.Relations(), m.Reference.Mode)
	t.missing(counts)
	large := 4*(len(t.Data)+len(t.bare.data)) > viewBytes
	if large {
		t.rel.modes = t.rel.modes[:1]
	}
	switch mode := t.rel.modes[0]; {
	case m.Decides():
		if m.ByWear != nil || !large {
			t.plain, t.was = slices.Clone(t.Data), t.rel
		}
		t.relate(m.Reference, t.Data, t.Data, t.rel.tool)
		t.rel = nil
	case len(t.rel.modes) == 1 && (large || mode != model.ReferenceLog): // which features are positive, folds of a large table do not find out each for itself
		if !large {
			t.plain, t.was = slices.Clone(t.Data), t.rel
		}
		m.Reference = t.settle(mode, m.Reference.Windows)
	}
	err = l.finish(t.Rows())
	t.mismatches = counts.Mismatches
	if err != nil {
		return t, err
	}
	return t, j.rowsOfModes(&t, m, found, join)
}

// plainRows makes the rows as they are before the reference, for which the model's mode is
// difference or off, and says how they are made relative to it. Found is in order; watch, if not
// nil, is the labeller's.
func (j *Job) plainRows(plain *model.Model, found windows, join *wear.Join, counts *card.Tally, watch func(group string, start time.Time, features []float32)) (rowTable, *labeller, error) {
	machines, err := severalMachines(found)
	if err != nil {
		return rowTable{}, nil, err
	}
	l := newLabeller(plain, j.Config.Label, join, counts, machines)
	l.watch, l.presume = watch, j.presume
	if watch != nil && !plain.Decides() {
		l.tell = newTelltales(plain.Layout, l.judge.FeatureNames())
	}
	l.least = make(map[string]lowest)
	t := rowTable{Table: table.New(l.judge.FeatureNames()), classes: plain.ClassNames(), wear: &trend.Rows{Columns: len(l.judge.FeatureNames())}}
	t.rel, t.sensors = &relative{relations: l.judge.Relations(), least: l.least}, sensorsOf(t.Columns, l.judge.Origins())
	for o, err := range found {
		if err != nil {
			return t, l, err
		}
		row, ok, err := l.row(o)
		if err != nil {
			return t, l, err
		}
		t.kept.see(o, l.group(o))
		wear := -1
		if l.addWear(t.wear, o, plain.Decides()) {
			wear = len(t.wear.Tool) - 1
		}
		if ok {
			t.kept.add(o, row.class == table.NoClass)
			t.add(row, o, wear)
		}
	}
	l.describe(&t)
	return t, l, nil
}

// add appends a row of a window, with or without a label; wear is where the window is in
// t.wear, or -1.
func (t *rowTable) add(row labelled, o *observed, wear int) {
	at := len(t.rel.centers) - 1
	if at < 0 || row.center != nil && &t.rel.centers[at][0] != &row.center[0] {
		// Machines take turns: the tool may be one that was met before.
		if at = slices.IndexFunc(t.rel.centers, func(c []float32) bool { return c != nil && row.center != nil && &c[0] == &row.center[0] }); at < 0 {
			at = len(t.rel.centers)
			t.rel.centers = append(t.rel.centers, row.center)
		}
	}
	if row.class == table.NoClass {
		b := &t.bare
		b.data, b.group = append(b.data, row.plain...), append(b.group, row.group)
		b.after, b.tool = append(b.after, t.Rows()), append(b.tool, int32(at))
		return
	}
	t.Append(table.Row{Features: row.plain, Machine: o.machine, Tool: o.Tool, Hole: o.hole, Start: o.Start, Class: row.class, VBMaxUM: row.vbMaxUM})
	t.group, t.wearAt = append(t.group, row.group), append(t.wearAt, wear)
	t.rel.tool = append(t.rel.tool, int32(at))
}

// missing counts the feature values that rows with a label lack, or will lack once
// they are relative to a reference that lacks them.
func (t *rowTable) missing(counts *card.Tally) {
	counts.Missing = 0
	p := len(t.Columns)
	for i, k := range t.rel.tool {
		center := t.rel.centers[k]
		for j, v := range t.Data[i*p : (i+1)*p] {
			if v != v || center != nil && center[j] != center[j] {
				counts.Missing++
			}
		}
	}
}

// warn logs a warning and adds it to the report.
func (j *Job) warn(r *card.Report, text string) {
	j.Log.Warn().Msg(text)
	r.Warnings = append(r.Warnings, text)
}

// goldenRows picks rows of every class for the model to be checked by. A row of which the model says nothing gives way to the next one.
func goldenRows(m *model.Model, rows rowTable) ([]model.Golden, error) {
	const each = 4
	posterior := m.Posteriors()
	var out []model.Golden
	for class := range m.Classes() {
		before := len(out)
		of, _ := rows.rowsOf(class)
		some := min(each, of)
		for i, nth := 0, 0; i < len(rows.Class); i++ {
			if rows.Class[i] != class {
				continue
			}
			nth++
			if k := len(out) - before; k == some || nth-1 < k*of/some {
				continue
			}
			x := make([]float32, len(rows.Columns))
			if err := rows.x().ReadRows(x, i); err != nil {
				return nil, err
			}
			if p := posterior(x); p[0] == p[0] {
				out = append(out, model.Golden{Features: x, Posterior: slices.Clone(p)})
			}
		}
	}
	return out, nil
}

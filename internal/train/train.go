package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/wear"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/trend"
)

// Job is a training run.
type Job struct {
	Config  Config
	Layout  *signal.Layout
	Inputs  []Input
	Wear    []wear.Measurement // nil: labels are in the recordings
	Program string             // name and version, for the provenance
	Workers int                // 0: one for each CPU; never changes a result

	// Scratch is the folder for features that do not fit in memory; empty stands
	// for that of temporary files.
	Scratch string

	// Keep, if not nil, keeps trained networks, for a run that is cut off and
	// started again.
	Keep classify.Keeper

	// Progress, if not nil, is told how far each phase is, by one goroutine at
	// a time.
	Progress func(phase string, done, total int)

	Log zerolog.Logger
}

// Errors that callers test for.
var (
	// ErrData: there is nothing to learn from.
	ErrData = errors.New("nothing to learn from")
	// ErrLabels: labels contradict each other.
	ErrLabels = errors.New("labels contradict each other")
)

// Reading is the phase of a run in which recordings are read, or simulated.
const Reading = "reading recordings"

// Run trains a model and scores it. Equal jobs give equal models and reports,
// byte for byte.
func Run(ctx context.Context, job Job) (*model.Model, *Report, error) {
	job.prepare()
	if err := job.Config.Check(); err != nil {
		return nil, nil, fmt.Errorf("train: %w", err)
	}
	rows, m, counts, err := job.rows(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer rows.close()
	if err := rows.check(job.Config.Label); err != nil {
		return nil, nil, fmt.Errorf("train: %w", err)
	}
	r := newReport(&job, m, rows, counts)
	job.Log.Info().Msg(r.Balance) // now, because what follows takes minutes
	for _, w := range slices.Concat(rows.warnings(), rows.columnWarnings(), rows.copyWarnings(), counts.warnings()) {
		job.warn(r, w)
	}
	if err := job.evaluate(ctx, rows, r); err != nil {
		return nil, nil, err
	}
	s := job.settings()
	s.Progress = job.phase("training the model")
	c, fit, err := classify.Fit(ctx, rows.x(), rows.Class, rows.group, s)
	if err != nil {
		return nil, nil, fmt.Errorf("train: %w", err)
	}
	r.Fit = fit
	if r.Pooled == nil {
		var decision []int
		if several(rows.classes) {
			decision = decisionsOf(c, fit.Posterior)
		}
		r.hold(rows, fit.Posterior, decision, scoresOf(c, fit.Posterior))
	}
	if !several(rows.classes) { // of which alone the G-mean depends on one threshold
		r.landscape = newLandscape(faultyOf(fit.Posterior, 2), positives(rows.Class))
	}
	posterior := fit.Posterior
	fit.Posterior = nil // nobody asks again, and of many rows it is much
	r.Faulty = r.binary()
	m.Classifier = c
	if err := job.trend(ctx, rows.wear, m, r); err != nil {
		return nil, nil, fmt.Errorf("train: %w", err)
	}
	if m.Golden, err = goldenRows(c, rows); err != nil {
		return nil, nil, fmt.Errorf("train: %w", err)
	}
	if err := job.doubts(ctx, rows, posterior, m, r); err != nil {
		return nil, nil, fmt.Errorf("train: %w", err)
	}
	m.Drift = fitDrift(rows.starts)
	if m.Scores, err = json.Marshal(r.headline()); err != nil {
		return nil, nil, fmt.Errorf("train: %w", err)
	}
	if _, err := m.Encode(); err != nil { // checks it and gives it its id
		return nil, nil, err
	}
	r.Model = m.ID()
	return m, r, nil
}

// prepare fills in what may be left out.
func (j *Job) prepare() {
	if j.Workers == 0 {
		j.Workers = runtime.GOMAXPROCS(0)
	}
	if j.Progress == nil {
		j.Progress = func(string, int, int) {}
	}
}

// settings returns the classifier's settings.
func (j *Job) settings() classify.Settings {
	s := j.Config.settings(j.Workers)
	s.Keep = j.Keep
	return s
}

// phase returns a progress callback that shows one name for all phases of the
// classifier.
func (j *Job) phase(name string) func(string, int, int) {
	return func(_ string, done, total int) { j.Progress(name, done, total) }
}

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

	// starts are the references of the tools, in the order in which they were settled.
	starts [][]float32

	// far holds the features if they are not in memory. Of the table there are
	// then columns, tools and classes only.
	far   *table.RowFile
	stats *columnStats // of far
	view  dbn.Rows     // of a part of far; else nil
}

// x returns the features as the classifier takes them, without a copy.
func (t rowTable) x() dbn.Rows {
	switch {
	case t.view != nil:
		return t.view
	case t.far != nil:
		return t.far
	}
	return t.near()
}

// near returns the features, which are in memory.
func (t rowTable) near() dbn.Matrix {
	return dbn.Matrix{Rows: t.Rows(), Cols: len(t.Columns), Data: t.Data}
}

// close removes what is on disk.
func (t rowTable) close() {
	if t.far != nil {
		_ = t.far.Close() // what is left is in the way of nobody
	}
}

// homes returns how many rows of a class there are and which groups have some,
// in the order in which they first appear.
func (t rowTable) homes(class int) (rows int, groups []string) {
	seen := map[string]bool{}
	for i, g := range t.group {
		if t.Class[i] != class {
			continue
		}
		rows++
		if !seen[g] {
			seen[g] = true
			groups = append(groups, g)
		}
	}
	return rows, groups
}

// check reports a class without rows.
func (t rowTable) check(rule wear.Rule) error {
	for k, name := range t.classes {
		if rows, _ := t.homes(k); rows > 0 {
			continue
		}
		add := "worn tools"
		if k == classify.Healthy {
			add = "tools while they are new"
		}
		if several(t.classes) {
			return fmt.Errorf("%w: none of %d windows with a label is %s (%s%s): add recordings of %s, or correct the rule under `label`", ErrData, t.Rows(), name, rule, t.bounds(), add)
		}
		return fmt.Errorf("%w: all %d windows with a label are %s (%s%s): add recordings of %s, or correct the rule under `label`", ErrData, t.Rows(), t.classes[1-k], rule, t.bounds(), add)
	}
	return nil
}

// bounds says between which bounds the wear of the rows lies, if that is known.
func (t rowTable) bounds() string {
	least, most := math.Inf(1), math.Inf(-1)
	for _, um := range t.VBMaxUM {
		if um == um {
			least, most = min(least, um), max(most, um)
		}
	}
	if least > most {
		return ""
	}
	return fmt.Sprintf("; they have %.0f to %.0f µm", least, most)
}

// warnings says in words what a person should know before trusting a score.
func (t rowTable) warnings() []string {
	var out []string
	for k, name := range t.classes[1:] {
		rows, groups := t.homes(k + 1)
		if len(groups) < 3 {
			out = append(out, fmt.Sprintf("only %d of the tools ever get %s (%s): what is said of tools never seen rests on few examples; label more worn tools", len(groups), name, strings.Join(groups, ", ")))
		}
		if rows < 20 {
			out = append(out, fmt.Sprintf("only %d windows are %s: label more worn tools", rows, name))
		}
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
	if len(j.Inputs) == 0 {
		return fail(fmt.Errorf("%w: no recordings: name some with --data", ErrData))
	}
	if _, err := wear.NewJoin(j.Wear, c.Join); err != nil { // before hours of reading
		return fail(err)
	}
	m := &model.Model{
		Layout: j.Layout, Window: c.spec(), Features: c.Features, Reference: c.Reference,
		Usual: make([]signal.Quality, len(j.Layout.Channels())),
		Label: labelRule(c.Label),
	}
	if err := m.Window.Check(m.Layout); err != nil {
		return fail(err)
	}
	x, err := signal.NewExtractor(m.Layout, m.SamplesPerChannel(), m.Features)
	if err != nil {
		return fail(err)
	}
	m.Features = x.Spec() // with its version, whatever the newest will be
	if c.Gate == "auto" {
		m.Gate, m.Cycle = cuttingOf(m)
	}
	if slices.ContainsFunc(j.Inputs, func(in Input) bool { return in.Scan != nil }) {
		t, counts, err := j.farRows(ctx, m)
		return t, m, counts, err
	}
	found, gaps, err := collect(ctx, m, j.Inputs, j.Workers, func(done, total int) { j.Progress(Reading, done, total) })
	if err != nil {
		return fail(err)
	}
	counts := tally{Gaps: gaps}
	for i, os := range found {
		counts.Windows += len(os)
		m.Provenance.Data = append(m.Provenance.Data, model.DataSet{Name: j.Inputs[i].Name, SHA256: j.Inputs[i].SHA256, Windows: len(os)})
	}
	if counts.Windows == 0 {
		return fail(fmt.Errorf("%w: the recordings hold no whole window of %v: record for longer, or shorten `window: length`", ErrData, c.Window.Length))
	}
	if err := j.provenance(m); err != nil {
		return rowTable{}, nil, tally{}, err
	}
	m.Usual = usual(len(m.Usual), found)
	if err := j.settleCutting(m, found); err != nil {
		return fail(err)
	}
	join, err := j.join(found)
	if err != nil {
		return fail(err)
	}
	t, err := j.table(m, found, join, &counts)
	return t, m, counts, err
}

// provenance notes where the model comes from, but for the data.
func (j *Job) provenance(m *model.Model) (err error) {
	m.Provenance.Program, m.Provenance.Seed = j.Program, j.Config.Seed
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

// join returns the join of all measurements, which knows when each tool was
// new: at its first window. It is nil if labels are in the recordings.
func (j *Job) join(found [][]observed) (*wear.Join, error) {
	ms, any := slices.Clone(j.Wear), j.Wear != nil
	for _, in := range j.Inputs {
		if in.Wear != nil {
			ms, any = append(ms, in.Wear()...), true
		}
	}
	if !any {
		return nil, nil
	}
	join, err := wear.NewJoin(ms, j.Config.Join)
	if err != nil {
		return nil, err
	}
	for _, os := range found {
		for i := range os {
			join.Start(os[i].machine, os[i].Tool, os[i].Start)
		}
	}
	return join, nil
}

// table makes one row of every window that is judged and labelled. A tool that
// a machine goes on with in the next recording keeps its reference, as it does
// in the monitor, so recordings are taken in the order of their first windows.
func (j *Job) table(m *model.Model, found [][]observed, join *wear.Join, counts *tally) (rowTable, error) {
	found = slices.DeleteFunc(slices.Clone(found), func(os []observed) bool { return len(os) == 0 })
	slices.SortStableFunc(found, func(a, b []observed) int { return a[0].Start.Compare(b[0].Start) })
	machines := make(map[string]bool)
	for _, os := range found {
		for i := range os {
			machines[os[i].machine] = true
		}
	}
	l := newLabeller(m, j.Config.Label, join, counts, len(machines) > 1)
	t := rowTable{Table: table.New(l.judge.FeatureNames()), classes: m.ClassNames(), wear: &trend.Rows{Columns: len(l.judge.FeatureNames())}}
	for _, os := range found {
		for i := range os {
			o := &os[i]
			row, ok, err := l.row(o)
			if err != nil {
				return rowTable{}, err
			}
			l.addWear(t.wear, o)
			if ok {
				t.Append(table.Row{Features: row.features, Machine: o.machine, Tool: o.Tool, Hole: o.hole, Start: o.Start, Class: row.class, VBMaxUM: row.vbMaxUM})
				t.group = append(t.group, row.group)
			}
		}
	}
	counts.Missing, t.starts = t.Missing(), l.starts
	return t, l.finish(t.Rows())
}

// labeller makes rows to learn from of windows.
type labeller struct {
	judge    *model.Judge
	rule     wear.Rule
	join     *wear.Join // nil: labels are in the recordings
	counts   *tally
	machines bool                        // there are several
	used     map[string]bool             // by group
	names    map[string]string           // of groups, one copy of each
	refs     map[string]*model.Reference // by machine
	cycles   map[string]*cycle.Memory    // by machine
	settled  map[string]bool             // by group: its reference is among starts
	starts   [][]float32
}

func newLabeller(m *model.Model, rule wear.Rule, join *wear.Join, counts *tally, severalMachines bool) *labeller {
	return &labeller{
		judge: m.NewJudge(), rule: rule, join: join, counts: counts, machines: severalMachines,
		used: make(map[string]bool), names: make(map[string]string), refs: make(map[string]*model.Reference), cycles: make(map[string]*cycle.Memory),
		settled: make(map[string]bool),
	}
}

// labelled is a row to learn from; its features are lent until the next.
type labelled struct {
	features []float32
	group    string
	class    int
	vbMaxUM  float64
}

// row returns the row of a window, or false if nothing can be learnt from it.
func (l *labeller) row(o *observed) (labelled, bool, error) {
	name, known := l.names[l.group(o)]
	if !known {
		name = l.group(o)
		l.names[name], l.used[name] = name, false
	}
	ref := l.refs[o.machine]
	if ref == nil {
		ref = new(model.Reference)
		l.refs[o.machine] = ref
		l.cycles[o.machine] = new(cycle.Memory)
	}
	row, v := l.judge.Row(&o.Observation, ref, l.cycles[o.machine])
	if ref.Center() != nil && !l.settled[name] {
		l.settled[name] = true
		l.starts = append(l.starts, slices.Clone(ref.Center()))
	}
	switch v.Outcome {
	case model.NotCutting:
		l.counts.NotCutting++
		return labelled{}, false, nil
	case model.SensorFault:
		l.counts.SensorFault++
		return labelled{}, false, nil
	case model.Learning:
		l.counts.Learning++
		return labelled{}, false, nil
	}
	class, um, ok, err := label(o, l.rule, l.join)
	if err != nil {
		return labelled{}, false, fmt.Errorf("train: %w", err)
	}
	if !ok {
		l.counts.Unlabelled++
		return labelled{}, false, nil
	}
	l.used[name] = true
	return labelled{row, name, class, um}, true, nil
}

// group names the tool of a window. Tools of two machines may have one name, so
// with more than one machine the machine is part of it.
func (l *labeller) group(o *observed) string {
	if l.machines {
		return o.machine + "/" + o.Tool
	}
	return o.Tool
}

// finish notes what became of all windows; it is an error if none of them is
// left.
func (l *labeller) finish(rows int) error {
	c := l.counts
	c.Used = rows
	if l.join != nil {
		c.Join = l.join.Tally().String()
	}
	if c.Used == 0 {
		return fmt.Errorf("train: %w: %s%s", ErrData, c.words(), c.remedy())
	}
	for g, any := range l.used {
		if !any {
			c.Unused = append(c.Unused, g)
		}
	}
	slices.Sort(c.Unused)
	return nil
}

// evaluate scores the settings on tools that were held out, and on rows that
// were. Scores that the data cannot give are missing with a warning.
func (j *Job) evaluate(ctx context.Context, rows rowTable, r *Report) error {
	rng := rand.New(rand.NewPCG(j.Config.Seed, 0x666f6c6473)) // "folds"
	if err := j.scoreByTool(ctx, rows, r, rng); err != nil {
		return fmt.Errorf("train: scoring by tool: %w", err)
	}
	if err := j.scoreAtRandom(ctx, rows, r, rng); err != nil {
		return fmt.Errorf("train: scoring on a random split: %w", err)
	}
	return nil
}

func (j *Job) scoreByTool(ctx context.Context, rows rowTable, r *Report, rng *rand.Rand) error {
	if j.Config.Evaluate.ByTool == "off" {
		return nil
	}
	for k, name := range slices.Backward(rows.classes) {
		if _, tools := rows.homes(k); len(tools) == 1 {
			j.warn(r, fmt.Sprintf("no score on tools held out: tool %s alone has %s windows, and with it held out there are none to learn from; label another such tool", tools[0], name))
			return nil
		}
	}
	var folds []classify.Fold
	if j.Config.Evaluate.ByTool == "leave-one-out" {
		folds = classify.LeaveOneGroupOut(rows.group)
	} else {
		folds = classify.GroupKFold(rows.Class, rows.group, 5, rng)
	}
	s := j.settings()
	s.Progress = j.phase("scoring on tools held out")
	v, err := classify.CrossValidate(ctx, rows.x(), rows.Class, rows.group, s, folds)
	if errors.Is(err, classify.ErrTooFew) {
		few := "faulty (class 1) or healthy (class 0)"
		if several(rows.classes) {
			few = "of one class of " + numbered(rows.classes)
		}
		j.warn(r, "no score on tools held out, of which too few are "+few+": "+err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	r.byTool(v, j.Config.Evaluate.ByTool, len(folds))
	r.validated, r.folds = v, folds
	r.hold(rows, v.Posterior, v.Decision, v.Score)
	return nil
}

func (j *Job) scoreAtRandom(ctx context.Context, rows rowTable, r *Report, rng *rand.Rand) error {
	if !j.Config.Evaluate.RandomSplit {
		return nil
	}
	const k = 5
	counts, words := make([]int, len(rows.classes)), make([]string, len(rows.classes))
	for class, name := range rows.classes {
		counts[class], _ = rows.homes(class)
		words[class] = fmt.Sprintf("%d %s", counts[class], name)
	}
	if slices.Min(counts) < k {
		j.warn(r, fmt.Sprintf("no score on a random split: %s windows cannot be dealt to %d folds", listed(words), k))
		return nil
	}
	s := j.settings()
	s.Progress = j.phase("scoring on a random split")
	v, err := classify.CrossValidate(ctx, rows.x(), rows.Class, nil, s, classify.StratifiedKFold(rows.Class, k, rng))
	if err != nil {
		return err
	}
	r.random(v)
	return nil
}

// warn tells a person now and in the report.
func (j *Job) warn(r *Report, text string) {
	j.Log.Warn().Msg(text)
	r.Warnings = append(r.Warnings, text)
}

// goldenRows picks rows of every class for the model to be checked by.
func goldenRows(c *classify.Classifier, rows rowTable) ([]model.Golden, error) {
	const each = 4
	s := c.NewScorer()
	var out []model.Golden
	for class := range c.Classes() {
		before := len(out)
		of := 0
		for _, k := range rows.Class {
			if k == class {
				of++
			}
		}
		some := min(each, of)
		for i, nth := 0, 0; i < len(rows.Class); i++ {
			if rows.Class[i] != class {
				continue
			}
			nth++
			if k := len(out) - before; k == some || nth-1 != k*of/some {
				continue
			}
			x := make([]float32, len(rows.Columns))
			if err := rows.x().ReadRows(x, i); err != nil {
				return nil, err
			}
			out = append(out, model.Golden{Features: x, Posterior: slices.Clone(s.Posterior(x))})
		}
	}
	return out, nil
}

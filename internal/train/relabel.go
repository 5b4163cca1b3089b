package train

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/model/unknown"
	"github.com/flank-tcm/flank/pkg/score"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Relabelling chooses costs, temperature, the guard's cut and conformal sets of a model again, for labels that have come since it
// was trained. Its network stays. Windows whose label is not known now keep the one of before.
type Relabelling struct {
	Model  *model.Model
	Inputs []Input            // features of tools that came after the fit, or labels of windows; may be empty
	Wear   []wear.Measurement // nil: labels are in the inputs
	Join   wear.Mode

	Workers  int
	Progress func(phase string, done, total int)
	Log      zerolog.Logger
}

// errNotKept: a model cannot have its costs chosen again.
var errNotKept = errors.New("costs cannot be chosen again")

// relabelling is a Relabelling at work.
type relabelling struct {
	Relabelling
	config Config
	held   *model.HeldOut
	prior  []int    // by row of held: the class that the model's costs were chosen with; -1: none
	names  []string // of classes
	data   []model.DataSet
	used   []int // rows of held that costs are chosen on
	counts card.RelabelledRows
	from   string
	warn   []string
}

// Run returns a model with other costs, whose parent is e.Model, and its report. Equal labels give an equal classifier.
func (e Relabelling) Run(ctx context.Context) (*model.Model, *card.Report, error) {
	r, err := e.start()
	if err == nil {
		err = r.label(ctx)
	}
	if err == nil {
		err = r.use()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("train: %w", err)
	}
	m, report, err := r.recost(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("train: %w", err)
	}
	return m, report, nil
}

const again = "train again with `trainer fit`"

// check reports a model that does not have what it takes, and that there are no labels.
func (e Relabelling) check() error {
	m := e.Model
	switch {
	case m.Classifier == nil:
		return m.CheckClassifier()
	case m.ByWear != nil:
		return fmt.Errorf("%w: %s decides by the estimated wear, for which costs count nothing: %s", errNotKept, m.ID(), again)
	case len(m.HeldOut) == 0:
		return fmt.Errorf("%w: %s does not keep the posteriors that its costs were chosen on (it is of an earlier release, of more than %d windows, or its costs were chosen on training posteriors): %s", errNotKept, m.ID(), mostHeldRows, again)
	case len(e.Wear)+len(e.Inputs) == 0:
		return fmt.Errorf("%w: no labels: name a wear file with --wear, or labels on Kafka with --labels", errData)
	}
	return nil
}

// start reads what the model keeps.
func (e Relabelling) start() (*relabelling, error) {
	m := e.Model
	if err := e.check(); err != nil {
		return nil, err
	}
	held, err := model.DecodeHeldOut(m.HeldOut)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.ID(), err)
	}
	if held.Classes != m.Classifier.Classes() || held.Votes != (m.Classifier.Guard() != nil) {
		return nil, fmt.Errorf("%w: %s keeps posteriors of another classifier: %s", errNotKept, m.ID(), again)
	}
	c, err := configOf(m)
	if err != nil {
		return nil, err
	}
	c.Join = e.Join
	prepare(&e.Workers, &e.Progress)
	r := &relabelling{Relabelling: e, config: c, held: held, names: m.ClassNames()}
	for _, row := range held.Rows {
		if r.prior = append(r.prior, row.Class); row.Fold == model.Taught {
			r.prior[len(r.prior)-1] = -1
		}
	}
	return r, nil
}

// label finds the labels of the windows that the model keeps, and of others at hand.
func (r *relabelling) label(ctx context.Context) error {
	if r.Wear != nil {
		if err := r.joinHeld(); err != nil {
			return err
		}
	}
	if len(r.Inputs) == 0 {
		return nil
	}
	return r.read(ctx)
}

// join returns the join of the measurements, which has seen the windows that the model keeps.
func (r *relabelling) join() (*wear.Join, error) {
	join, err := r.config.newJoin(r.Wear)
	if err == nil {
		err = r.config.Label.CheckClasses(r.Wear)
	}
	if err != nil {
		return nil, err
	}
	length := r.Model.Window.Length
	for _, t := range r.held.Tools {
		o := observedOf(t, model.HeldRow{Start: t.First})
		join.See(o.window(length))
		o.Start = t.Last
		join.See(o.window(length))
	}
	for _, row := range r.held.Rows {
		o := observedOf(r.held.Tools[row.Tool], row)
		join.See(o.window(length))
	}
	return join, join.Check()
}

// joinHeld gives windows that the model keeps the labels of measurements.
func (r *relabelling) joinHeld() error {
	join, err := r.join()
	if err != nil {
		return err
	}
	length := r.Model.Window.Length
	l := &labeller{rule: r.config.Label, join: join, length: length}
	for i := range r.held.Rows {
		row := &r.held.Rows[i]
		o := observedOf(r.held.Tools[row.Tool], *row)
		if _, err := l.known(&o); err != nil {
			return err
		}
		class, _, ok, err := label(&o, length, l.rule, join)
		if err != nil {
			return err
		}
		if ok {
			row.Class = class
		}
	}
	r.from = model.LabelsFrom(join.Sources())
	if len(r.Inputs) == 0 {
		r.warn = append(r.warn, join.Mismatches()...)
	}
	if text := l.contradictions(); text != "" {
		r.warn = append(r.warn, text)
	}
	return nil
}

// observedOf returns a window without its features.
func observedOf(t model.HeldTool, row model.HeldRow) observed {
	o := observed{machine: t.Machine, hole: row.Hole, recording: t.Recording, began: t.Began, cutOff: t.CutOff, class: table.NoClass}
	o.Tool, o.Start = t.Tool, row.Start
	return o
}

// read reads the inputs: of windows that the model keeps the labels that are in them, and windows of other tools with their
// posteriors by the model.
func (r *relabelling) read(ctx context.Context) error {
	m := r.Model
	defer closeCut(r.Inputs)
	found, gaps, err := collect(ctx, m, r.Inputs, r.Workers, keepAll, func(done, total int) { r.Progress(Reading, done, total) })
	if err != nil {
		return err
	}
	counts := card.Tally{Gaps: gaps, LeftOut: leftOut(r.Inputs)}
	j := Job{Config: Config{Label: r.config.Label, Join: r.Join, Window: windowConfig{Length: m.Window.Length}}, Wear: r.Wear, Inputs: r.Inputs}
	if err := cmp.Or(j.checkWear(), checkLabelled(r.Inputs, r.Wear)); err != nil {
		return err
	}
	join, err := j.join(windowsOf(r.Inputs, found, false))
	if err != nil {
		return err
	}
	rows, err := j.table(m, windowsOf(r.Inputs, found, true), join, &counts)
	if err != nil {
		return err
	}
	if r.data, err = dataSets(r.Inputs, found, m.Window.Length, &counts); err != nil {
		return err
	}
	r.warn = append(r.warn, counts.Warnings()...)
	return r.take(&rows, join == nil)
}

// rowKey names a window; windows without a time have numbers.
type rowKey struct {
	heldTool   // without the recording where that is of no account
	hole       string
	start, nth int64
}

// keys returns the keys of windows in their order.
func keys() func(of heldTool, hole string, start int64) rowKey {
	met := make(map[rowKey]int64)
	return func(of heldTool, hole string, start int64) rowKey {
		k := rowKey{of, hole, start, 0}
		met[k]++
		k.nth = met[k]
		return k
	}
}

// take adds rows of tools that are new to the model, and lets rows that it keeps have their labels if inLabels says that the
// inputs have labels of their own.
func (r *relabelling) take(rows *rowTable, inInputs bool) error {
	if len(rows.kept.rows) > mostHeldRows { // others were not noted
		return fmt.Errorf("%w: there are more than %d windows: name fewer tools or days", errData, mostHeldRows)
	}
	posterior, votes, err := r.Model.Classifier.JudgeUnlabelled(rows.x(), r.held.Temperature)
	if err != nil {
		return err
	}
	kept, of := make(map[rowKey]int), keys()
	known, fresh := make(map[heldTool]bool), make(map[heldTool]bool)
	for i, row := range r.held.Rows {
		t := r.held.Tools[row.Tool]
		for _, key := range slices.Compact([]heldTool{{t.Machine, t.Tool, ""}, {t.Machine, t.Tool, t.Recording}}) {
			kept[of(key, row.Hole, row.Start.UnixNano())], known[key] = i, true
		}
	}
	at := make(map[int]int) // tools of the rows in r.held
	k, n := r.held.Classes, 0
	of = keys()
	for _, row := range rows.kept.rows {
		t := rows.kept.tools[row.tool]
		tool, key := heldTool{t.Machine, t.Tool, ""}, heldTool{t.Machine, t.Tool, t.Recording}
		if signal.HasClock(row.start) || !known[key] { // without a clock each recording begins at second 0
			key = tool
		}
		i, same := kept[of(key, row.hole, row.start.UnixNano())]
		labelled := n
		if !row.bare {
			n++
		}
		switch {
		case row.bare:
		case same && inInputs:
			r.held.Rows[i].Class = rows.Class[labelled]
		case same:
		case known[tool]:
			r.counts.Skipped++
		default:
			to, met := at[row.tool]
			if !met {
				to = r.addTool(t)
				at[row.tool], fresh[tool] = to, true
			}
			h := model.HeldRow{Tool: to, Hole: row.hole, Start: row.start, Was: -1, Class: rows.Class[labelled], Fold: model.Judged}
			setHeld(&h, posterior[labelled*k:(labelled+1)*k], votes, labelled)
			r.held.Rows = append(r.held.Rows, h)
			r.counts.Judged++
		}
	}
	r.counts.JudgedTools = len(fresh)
	return nil
}

// addTool adds a tool that is new to the model, and returns its index. Where there are several machines, the machine is in its name.
func (r *relabelling) addTool(t model.HeldTool) int {
	if t.Group = t.Tool; slices.ContainsFunc(r.held.Tools, func(other model.HeldTool) bool { return other.Machine != t.Machine }) {
		t.Group = t.Machine + "/" + t.Tool
	}
	t.Apart = t.Group
	r.held.Tools = append(r.held.Tools, t)
	return len(r.held.Tools) - 1
}

// use finds the rows that costs are chosen on, and counts where they come from.
func (r *relabelling) use() error {
	late, lateTools, changedTools := 0, make(map[string]bool), make(map[string]bool)
	for i := range r.held.Rows {
		row := &r.held.Rows[i]
		group := r.held.Tools[row.Tool].Group
		switch {
		case row.Class < 0:
			continue
		case row.Fold == model.Taught:
			r.counts.Taught++
			continue
		case row.Fold == model.Judged:
			late++
			lateTools[group] = true
		case row.Class != row.Was:
			r.counts.Changed++
			changedTools[group] = true
		default:
			r.counts.Same++
		}
		r.used = append(r.used, i)
	}
	c := &r.counts
	c.ChangedTools, c.Late, c.LateTools = len(changedTools), late-c.Judged, len(lateTools)-c.JudgedTools
	rows := make([]int, len(r.names))
	for _, i := range r.used {
		rows[r.held.Rows[i].Class]++
	}
	for k, n := range rows {
		if n == 0 {
			return fmt.Errorf("%w: with these labels no window is %s: label such a tool, or correct the labels", errData, r.names[k])
		}
	}
	return nil
}

// input returns what costs are chosen on: h, the classes now and before, and the names of tools, and of copies one name.
func (r *relabelling) input() (h *classify.HeldOut, y, was []int, group, apart []string) {
	h = &classify.HeldOut{ByGroup: r.held.ByTool, Folds: r.held.Folds, Temperature: r.held.Temperature}
	for _, i := range r.used {
		row := &r.held.Rows[i]
		t := &r.held.Tools[row.Tool]
		y, group, apart = append(y, row.Class), append(group, t.Group), append(apart, t.Apart)
		for _, p := range row.Posterior {
			h.Posterior = append(h.Posterior, float64(p))
		}
		if r.held.Votes {
			h.Vote = append(h.Vote, float64(row.Vote))
		}
		h.Fold = append(h.Fold, row.Fold)
		before := -1
		if i < len(r.prior) {
			before = r.prior[i]
		}
		was = append(was, before)
	}
	return h, y, was, group, apart
}

// recost makes the model and its report.
func (r *relabelling) recost(ctx context.Context) (*model.Model, *card.Report, error) {
	h, y, was, group, apart := r.input()
	c, fit, err := r.Model.Classifier.Recost(ctx, h, y, was, apart, r.config.Settings(r.Workers))
	if err != nil {
		return nil, nil, err
	}
	rows := rowTable{Table: &table.Table{Columns: r.Model.NewJudge().FeatureNames(), Class: y, Tool: group}, classes: r.names, group: group}
	m := r.child(c, fit, &rows)
	report := &card.Report{
		Label: r.config.Label.String(), Balance: rows.balance(), Features: len(rows.Columns), Warnings: r.warn, Fit: fit, Job: m.Provenance,
		Cutting: m.Cutting(), Reference: m.Reference, NotCompared: "labels changed the costs alone; a whole fit compares",
	}
	report.Windows.Windows, report.Windows.Used = len(r.held.Rows), len(y)
	if several(r.names) {
		report.Classes = r.names
	}
	v, err := r.holdOut(ctx, h, y, was, group, apart)
	if err != nil {
		return nil, nil, err
	}
	if v != nil {
		report.SetByTool(v.Validation, "costs chosen without the tool, networks as at the fit", len(v.folds))
		report.Held = heldOut(rows, v.Posterior, v.Decision, v.Score)
	}
	showFit(report, rows, c, fit.Posterior)
	if err := r.doubt(m, report, rows, v); err != nil {
		return nil, nil, err
	}
	report.Relabelled = r.compare(h, y, m, fit)
	fit.Posterior = nil
	job := Job{Config: r.config, Inputs: r.Inputs, Log: r.Log}
	job.decide(rows, report)
	for _, w := range slices.Concat(r.warn, fit.Warnings) {
		r.Log.Warn().Msg(w)
	}
	if m.Scores, err = json.Marshal(report.Headline()); err != nil {
		return nil, nil, err
	}
	if _, err := m.Encode(); err != nil {
		return nil, nil, err
	}
	report.Model = m.ID()
	return m, report, nil
}

// child returns the model with another classifier.
func (r *relabelling) child(c *classify.Classifier, fit *classify.Report, rows *rowTable) *model.Model {
	m := *r.Model
	m.Classifier, m.Golden, m.Conformal = c, nil, nil
	s := c.NewScorer()
	for _, g := range r.Model.Golden {
		m.Golden = append(m.Golden, model.Golden{Features: g.Features, Posterior: slices.Clone(s.Posterior(g.Features))})
	}
	m.Provenance.Parent, m.Provenance.Labels = r.Model.ID(), labelSum(rows)
	m.Provenance.Data = slices.Concat(r.Model.Provenance.Data, r.data)
	held := *r.held
	held.Temperature = fit.Costs.Temperature
	m.HeldOut = held.Encode()
	return &m
}

// holdOut decides the windows of each fold by costs that were chosen on the other folds; nil if tools were not held out or a fold
// leaves a class without windows.
func (r *relabelling) holdOut(ctx context.Context, h *classify.HeldOut, y, was []int, group, apart []string) (*validated, error) {
	if !r.held.ByTool {
		return nil, nil
	}
	k := r.held.Classes
	v := &classify.Validation{Classes: k, Fold: make([]int, len(y)), Decision: make([]int, len(y)), Posterior: make([]float64, len(y)*k), Score: make([]float64, len(y))}
	folds := foldsOf(h.Fold, h.Folds)
	for f, fold := range folds {
		of := func(x []int) []int { return classify.Pick(x, fold.Train) }
		c, report, err := r.Model.Classifier.Recost(ctx, h.Rows(fold.Train), of(y), of(was), classify.Pick(apart, fold.Train), r.config.Settings(r.Workers))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil { // a class has no rows
			return nil, nil
		}
		test := h.Rows(fold.Test)
		test.Temperature = report.Costs.Temperature
		for n, p := range slices.Collect(slices.Chunk(c.Judged(test), k)) {
			i := fold.Test[n]
			copy(v.Posterior[i*k:], p)
			v.Fold[i], v.Decision[i], v.Score[i] = f, c.Decide(p), c.Score(p)
		}
		v.Reports = append(v.Reports, report)
	}
	v.Assess(y, group)
	return &validated{Validation: v, folds: folds}, nil
}

// foldsOf returns folds as lists, without empty ones; rows that the model judged are one more.
func foldsOf(fold []int, n int) []classify.Fold {
	folds := make([]classify.Fold, n+1)
	for i, of := range fold {
		if of < 0 {
			of = n
		}
		for f := range folds {
			if f == of {
				folds[f].Test = append(folds[f].Test, i)
			} else {
				folds[f].Train = append(folds[f].Train, i)
			}
		}
	}
	return slices.DeleteFunc(folds, func(f classify.Fold) bool { return len(f.Test) == 0 })
}

// doubt gives the model conformal sets of the posteriors that costs were chosen on, if it had some, and measures them on tools
// held out. Novelty stays as it is, and is not measured again, which takes the features.
func (r *relabelling) doubt(m *model.Model, report *card.Report, rows rowTable, v *validated) (err error) {
	d := &card.UnknownReport{}
	report.Unknown = d
	if r.config.Unknown.ErrorRate > 0 && report.Fit.Costs.Posteriors == posteriorsByTool {
		if m.Conformal, err = unknown.NewConformal(report.Fit.Posterior, rows.Class, rows.group, len(rows.classes), r.config.Unknown.ErrorRate); err != nil {
			return err
		}
	}
	d.SetPromises(m, rows.classes)
	if v != nil && m.Conformal != nil {
		report.Held.Unknown, err = measureUnknown(rows, &model.Model{Conformal: m.Conformal}, d, v, unknown.HeldNovelty{})
	}
	return err
}

// compare says what changed.
func (r *relabelling) compare(h *classify.HeldOut, y []int, m *model.Model, fit *classify.Report) *card.Relabelled {
	before := r.Model.Classifier
	out := &card.Relabelled{
		Parent: r.Model.ID(), From: r.from, Rows: r.counts,
		Before: costing(before, h.Temperature, before.Judged(h), y), After: costing(m.Classifier, fit.Costs.Temperature, fit.Posterior, y),
	}
	k := r.held.Classes
	right, all := [2][]int{make([]int, k), make([]int, k)}, [2][]int{make([]int, k), make([]int, k)}
	for i, class := range y {
		late := 0
		if h.Fold[i] < 0 {
			late = 1
		}
		all[late][class]++
		if m.Classifier.Decide(fit.Posterior[i*k:(i+1)*k]) == class {
			right[late][class]++
		}
	}
	for late, of := range []string{"tools of the fit", "tools that the network had no label of"} {
		t := card.RelabelledTools{Of: of}
		for class, n := range all[late] {
			t.Rows += n
			t.Recalls = append(t.Recalls, score.Figure(float64(right[late][class])/float64(n)))
		}
		out.Tools = append(out.Tools, t)
	}
	out.Fit = r.reasons(out, fit)
	return out
}

// costing says what costs give on posteriors.
func costing(c *classify.Classifier, temperature float64, posterior []float64, y []int) card.Costing {
	k := c.Classes()
	a := card.Costing{Costs: c.Costs(), Temperature: temperature, Threshold: score.Figure(math.NaN())}
	if k == 2 {
		a.Threshold = score.Figure(c.Costs().Threshold())
	}
	if g := c.Guard(); g != nil {
		a.Cut = new(g.Cut())
	}
	m := score.NewConfusion(k)
	for i, class := range y {
		m.Add(class, c.Decide(posterior[i*k:(i+1)*k]))
	}
	a.Score = m.Summary()
	return a
}

// From which figures on a whole fit would be better. docs/how-to/late-labels.md says so.
const (
	mostLate    = 0.2  // share of windows that no network has learnt the labels of
	mostChanged = 0.05 // share of windows that networks learnt under another label
	mostShift   = 1.0  // of a class's weight, logarithm
	mostBehind  = 0.1  // recall of a class on late tools less the one on tools of the fit
)

// reasons says why a whole fit would be better.
func (r *relabelling) reasons(c *card.Relabelled, fit *classify.Report) (why []string) {
	n := c.Rows
	total := float64(len(r.used))
	if late := n.Late + n.Judged; float64(late) > mostLate*total {
		why = append(why, fmt.Sprintf("%d of %d windows (%.0f %%) are of tools whose labels the network never learnt, and up to %.0f %% is little", late, len(r.used), 100*float64(late)/total, 100*mostLate))
	}
	if trained := n.Same + n.Changed; float64(n.Changed) > mostChanged*float64(trained) {
		why = append(why, fmt.Sprintf("%d of %d training windows (%.0f %%) have another label than the one that networks learnt, and up to %.0f %% is little", n.Changed, trained, 100*float64(n.Changed)/float64(trained), 100*mostChanged))
	}
	if shift := classify.Shift(c.Before.Costs, c.After.Costs); shift > mostShift {
		why = append(why, fmt.Sprintf("the weights of classes moved by a factor of %.1f, and up to %.1f is little", math.Exp(shift), math.Exp(mostShift)))
	}
	for k, name := range r.names {
		if old, late := c.Tools[0].Recalls[k], c.Tools[1].Recalls[k]; late < old-mostBehind {
			why = append(why, fmt.Sprintf("on tools whose labels the network never learnt the recall of %s is %s, and %s on tools of the fit", name, card.Figure(late), card.Figure(old)))
		}
	}
	if h := card.HeadlineOf(r.Model).Costs; h != nil && h.Rule != fit.Costs.Rule {
		rules := strings.Join([]string{cmp.Or(h.Rule, "as of many tools"), cmp.Or(fit.Costs.Rule, "as of many tools")}, `", and costs now follow "`)
		why = append(why, fmt.Sprintf(`the network was trained for another number of tools: its costs followed "%s"`, rules))
	}
	return why
}

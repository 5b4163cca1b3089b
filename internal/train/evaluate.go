package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
	"github.com/flank-tcm/flank/pkg/trend"
	"github.com/flank-tcm/flank/pkg/window"
)

// Exam is the examination of a model on labelled recordings or tables.
type Exam struct {
	Model   *model.Model
	Inputs  []Input
	Wear    []wear.Measurement // nil: labels are in the recordings
	Join    wear.Mode
	Alarm   alarm.Settings
	Window  window.Spec // how long rows of tables last; a length of 0: it is not said
	Workers int         // 0: one for each CPU; never changes a result

	// Progress, if not nil, is called with how far the reading is.
	Progress func(phase string, done, total int)
	Log      zerolog.Logger
}

// Run judges all windows with the exam's model and compares what it decides with
// their labels, and says what sensors that read wrong do.
func (e Exam) Run(ctx context.Context) (*card.Evaluation, error) {
	prepare(&e.Workers, &e.Progress)
	r, err := e.judge(ctx)
	if err != nil {
		return nil, err
	}
	if r.Robustness, err = r.robustness(ctx, e); err != nil {
		return nil, fmt.Errorf("train: making sensors read wrong: %w", err)
	}
	r.verdict()
	return r.Evaluation, nil
}

// examined is an evaluation with what was decided of each judged window.
type examined struct {
	*card.Evaluation
	judged   card.Judged
	score    []float64
	time     windowTime
	unjudged []unjudged
	trained  []string // names of the data that the model was trained on, by their checksums
	rows     rowTable
}

func (e Exam) judge(ctx context.Context) (*examined, error) {
	prepare(&e.Workers, &e.Progress)
	if len(e.Inputs) == 0 {
		return nil, fmt.Errorf("train: %w: no recordings: name some with --data", errNothing)
	}
	if err := checkLabelled(e.Inputs, e.Wear); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	m := e.Model
	defer closeCut(e.Inputs)
	found, gaps, err := collect(ctx, m, e.Inputs, e.Workers, keepAll, func(done, total int) { e.Progress(Reading, done, total) })
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	r := &examined{Evaluation: &card.Evaluation{Model: m.ID(), Label: card.RuleOf(m).String(), Warnings: []string{}}}
	counts := card.Tally{Gaps: gaps, LeftOut: leftOut(e.Inputs)}
	if r.Data, err = dataSets(e.Inputs, found, m.Window.Length, &counts); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	judge := m.NewJudge()
	finder, copies := newFinder(m), newTwinFinder(judge.FeatureNames(), judge.Origins())
	watch := func(tool string, start time.Time, row []float32) {
		finder.add(tool, row)
		copies.add(tool, start, row)
	}
	j := Job{Config: Config{Label: card.RuleOf(m), Join: e.Join, Window: windowConfig{Length: m.Window.Length}}, Wear: e.Wear, Inputs: e.Inputs, watch: watch}
	if err := j.checkWear(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	join, err := j.join(windowsOf(e.Inputs, found, false))
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	rows, err := j.table(m, windowsOf(e.Inputs, found, true), join, &counts)
	if errors.Is(err, errData) {
		return nil, fmt.Errorf("train: %w: %s%s", errNothing, counts.Words(), counts.Remedy())
	}
	if err != nil {
		return nil, err
	}
	rows.hold(copies.twins())
	r.rows, r.Windows, r.Balance, r.unjudged = rows, counts, rows.balance(), rows.unjudged
	if in := e.Inputs[0]; in.cut != nil {
		if found, err = in.cut.sample(sampleBytes); err != nil {
			return nil, fmt.Errorf("train: %w", err)
		}
	}
	r.time = e.windowTime(medianHop(found))
	r.Time, r.NoHours = r.time.Words, r.time.Unknown
	r.judge(m, rows)
	r.scoreWear(m, rows)
	r.alarms(e.Alarm, m, rows)
	r.Seen = finder.seen()
	r.warn(m, rows)
	r.Warnings = append(append(r.Warnings, counts.Losses()...), counts.Mismatches...)
	if counts.Contradictions != "" {
		r.Warnings = append(r.Warnings, counts.Contradictions)
	}
	return r, nil
}

var errNothing = errors.New("nothing to evaluate on")

// judge fills in the scores.
func (r *examined) judge(m *model.Model, rows rowTable) {
	k := m.Classes()
	judge := m.NewJudge()
	x := rows.inMemory()
	r.judged = card.Judged{Tool: rows.group, Class: rows.Class, Classes: k}
	r.Unknown = &card.UnknownReport{Split: "the windows evaluated"}
	r.Unknown.SetPromises(m, rows.classes)
	counter := card.NewUnknownCounter(r.Unknown, rows.classes)
	for i := range x.Rows {
		var plain, reference []float32 // for a model that decides by wear; of many rows for others they are nil
		if rows.plain != nil {
			plain, reference = rows.plain[i*x.Cols:(i+1)*x.Cols], rows.was.centers[rows.was.tool[i]]
		}
		v := judge.Decide(x.Row(i), plain, reference)
		r.judged.Decided = append(r.judged.Decided, v.Decided)
		r.score = append(r.score, v.Score)
		r.judged.Posterior = append(r.judged.Posterior, v.Posterior...)
		counter.Add(m, rows.group[i], rows.Class[i], v.Decided, v.Posterior, v.Novelty)
		r.judged.Unknown = append(r.judged.Unknown, v.Reason)
	}
	counter.Finish()
	if m.Conformal == nil && m.Novelty == nil {
		r.Unknown = nil
	}
	r.Class, r.Posterior = rows.Class, r.judged.Posterior
	r.Tools = slices.SortedFunc(slices.Values(rows.tools()), card.CompareNames)
	if several(rows.classes) {
		r.Classes = rows.classes
	}
	r.WindowScores, r.CountingUnknown = r.judged.Scores(r.Tools, false), r.judged.Scores(r.Tools, true)
}

// scoreWear compares the wear that the model estimates with the wear that was measured on
// these windows.
func (r *examined) scoreWear(m *model.Model, rows rowTable) {
	if m.Wear == nil {
		return
	}
	s := trend.Assess(m.Wear, rows.wearRows(m.Reference.Mode != model.ReferenceOff))
	if s.Rows == 0 {
		r.Wear = "is estimated, but not scored: no wear was measured in these data"
		return
	}
	s.Tools = slices.DeleteFunc(s.Tools, func(t trend.ToolScore) bool { return t.Rows == 0 })
	slices.SortFunc(s.Tools, func(a, b trend.ToolScore) int { return card.CompareNames(a.Tool, b.Tool) })
	r.WearScore = s
	if s.Known == 0 {
		r.Wear = fmt.Sprintf("the estimate is unknown in all of the %d windows whose wear was measured", s.Rows)
		return
	}
	r.Wear = fmt.Sprintf("in these data off by %.1f µm on average, %.0f %% intervals hold %.1f %%, %.1f %% of %d windows unknown",
		s.MAEUM, 100*trend.Coverage, 100*s.Coverage, 100*(1-float64(s.Known)/float64(s.Rows)), s.Rows)
}

// alarms replays every tool's life through an alarm.
func (r *examined) alarms(s alarm.Settings, m *model.Model, rows rowTable) {
	limit, _ := card.RuleOf(m).Limit()
	r.Alarms = card.Replay(rows.lives(r.score, r.judged.Unknown), s, r.timing(), limit)
}

// timing returns how long windows are, if that is known.
func (r *examined) timing() card.Timing {
	if r.time.Unknown != "" {
		return card.Timing{}
	}
	return card.Timing{Length: r.time.Length, Step: r.time.Step()}
}

// robustness says what sensors that read wrong do: those that count by the weights that the model
// was trained with or, if it decides by wear, all.
func (r *examined) robustness(ctx context.Context, e Exam) (*card.Robustness, error) {
	m := e.Model
	limit, _ := card.RuleOf(m).Limit()
	out := card.NewRobustness(r.rows.lives(r.score, nil), e.Alarm, r.timing(), limit)
	if out.Note != "" {
		return out, nil
	}
	if m.Classifier == nil {
		return card.NotRobust(fmt.Sprintf("the model goes by sensor %s alone", m.FirstDay.Sensor), "train one with worn tools"), nil
	}
	out.Guarded = m.Classifier.Guard() != nil
	b, why := newRobust(&r.rows, m.NewJudge().Origins(), r.score, m.Provenance.Seed)
	if why != "" {
		return card.NotRobust(why, "evaluate it on fewer windows"), nil
	}
	p := robustPart{rows: places(len(r.score)), spec: m.Reference, weights: m.Classifier.ColumnWeights(), score: byClassifier(m.Classifier), guard: m.Classifier.Guard()}
	if m.ByWear != nil {
		p.weights, p.score = slices.Repeat([]float64{1}, b.columns), byWear(m.Wear, m.ByWear)
	}
	b.parts = []robustPart{p}
	return b.measure(ctx, out, e.Workers, func(done, total int) { e.Progress("making sensors read wrong", done, total) })
}

// verdict says whether to switch the model on.
func (r *examined) verdict() {
	all := cmp.Or(r.CountingUnknown.Faulty, &r.CountingUnknown.Pooled)
	r.Verdict = card.VerdictOf(card.Evidence{
		Held: true, Seen: r.seenData(), Alarms: r.Alarms, GMean: all.GMean, Random: score.Figure(math.NaN()), Ours: all.GMean,
		NotCompared: "`trainer fit` does that", Robustness: r.Robustness,
	})
}

// seenData names what of the data the model was trained on; nothing if nothing is known.
func (r *examined) seenData() string {
	if len(r.trained) > 0 {
		return card.Listed(r.trained)
	}
	return seenTools(r.Seen)
}

// tools returns the groups in the order in which they first appear.
func (t rowTable) tools() []string {
	_, names := classify.NumberGroups(t.group)
	return names
}

// warn notes what a person should know before trusting the figures.
func (r *examined) warn(m *model.Model, rows rowTable) {
	for _, d := range r.Data {
		if _, known := trainedOn(m, d.SHA256); known {
			r.trained = append(r.trained, d.Name)
			r.Warnings = append(r.Warnings, fmt.Sprintf("the model was trained on %s: the figures say how well it remembers, and nothing of a new tool", d.Name))
		}
	}
	switch {
	case len(r.trained) == len(r.Data):
	case m.Provenance.Sketch == nil:
		r.Warnings = append(r.Warnings, "the model keeps no rows of the tools that it was trained on, so it is not known whether these are among them: the figures hold if they are not")
	case len(r.Seen) > 0:
		r.Warnings = append(r.Warnings, fmt.Sprintf("the model was trained on these tools, under these names or others: %s: their figures say how well it remembers, and nothing of a new tool; evaluate it on tools that it has not seen", seenTools(r.Seen)))
	}
	if r.NoHours != "" {
		r.Warnings = append(r.Warnings, "it is not known how long a window lasts, so that there are no hours and no false alarms an hour: "+r.NoHours)
	}
	switch {
	case several(rows.classes):
		r.warnClasses(rows)
	case r.Pooled.Positive == 0:
		r.Warnings = append(r.Warnings, "no window is faulty by its label: recall, precision, F1 and G-mean are not defined")
	case r.Pooled.Positive == r.Pooled.Rows:
		r.Warnings = append(r.Warnings, "no window is healthy by its label: specificity and G-mean are not defined")
	}
	r.Warnings = append(r.Warnings, rows.copyWarnings()...)
}

// trainedOn reports whether a model was trained on data with a checksum, and what
// they were called then.
func trainedOn(m *model.Model, sum string) (name string, ok bool) {
	for _, d := range m.Provenance.Data {
		if d.SHA256 == sum && sum != "" {
			return d.Name, true
		}
	}
	return "", false
}

// warnClasses notes the classes that no window is of.
func (r *examined) warnClasses(rows rowTable) {
	for k, name := range rows.classes {
		if n, _ := rows.rowsOf(k); n == 0 {
			r.Warnings = append(r.Warnings, fmt.Sprintf("no window is %s by its label: its recall and the G-mean are not defined", name))
		}
	}
}

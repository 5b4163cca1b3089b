package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/wear"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
)

// Exam is the examination of a model on labelled recordings or tables.
type Exam struct {
	Model   *model.Model
	Inputs  []Input
	Wear    []wear.Measurement // nil: labels are in the recordings
	Join    wear.Mode
	Alarm   alarm.Settings
	Workers int // 0: one for each CPU; never changes a result

	// Progress, if not nil, is called with how far the reading is.
	Progress func(phase string, done, total int)
	Log      zerolog.Logger
}

// Run judges all windows with the exam's model and compares what it decides with
// their labels.
func (e Exam) Run(ctx context.Context) (*card.Evaluation, error) {
	r, err := e.judge(ctx)
	if err != nil {
		return nil, err
	}
	return r.Evaluation, nil
}

// examined is an evaluation with what was decided of each judged window.
type examined struct {
	*card.Evaluation
	unknown []bool // its verdict is unknown
	score   []float64
	group   []string // its tool
}

func (e Exam) judge(ctx context.Context) (*examined, error) {
	if e.Workers == 0 {
		e.Workers = runtime.GOMAXPROCS(0)
	}
	if e.Progress == nil {
		e.Progress = func(string, int, int) {}
	}
	if len(e.Inputs) == 0 {
		return nil, fmt.Errorf("train: %w: no recordings: name some with --data", errNothing)
	}
	m := e.Model
	found, gaps, err := collect(ctx, m, e.Inputs, e.Workers, func(done, total int) { e.Progress(Reading, done, total) })
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	r := &examined{Evaluation: &card.Evaluation{Model: m.ID(), Label: RuleOf(m).String(), Warnings: []string{}}}
	counts := card.Tally{Gaps: gaps}
	for i, os := range found {
		counts.Windows += len(os)
		r.Data = append(r.Data, model.DataSet{Name: e.Inputs[i].Name, SHA256: e.Inputs[i].SHA256, Windows: len(os)})
	}
	j := Job{Config: Config{Label: RuleOf(m), Join: e.Join, Window: Window{Length: m.Window.Length}}, Wear: e.Wear, Inputs: e.Inputs}
	if err := j.checkWear(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	join, err := j.join(found)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	rows, err := j.table(m, found, join, &counts)
	if errors.Is(err, ErrData) {
		return nil, fmt.Errorf("train: %w: %s%s", errNothing, counts.Words(), counts.Remedy())
	}
	if err != nil {
		return nil, err
	}
	r.Windows, r.Balance, r.Class = counts, rows.balance(), rows.Class
	r.judge(m, rows)
	r.alarms(e.Alarm, m, rows)
	r.warn(m, rows)
	r.Warnings = append(r.Warnings, counts.Mismatches...)
	for _, w := range r.Warnings {
		e.Log.Warn().Msg(w)
	}
	return r, nil
}

var errNothing = errors.New("nothing to evaluate on")

// judge fills in the scores.
func (r *examined) judge(m *model.Model, rows rowTable) {
	k := m.Classifier.Classes()
	judge := m.NewJudge()
	x := rows.inMemory()
	decisions := make([]int, x.Rows)
	r.Unknown = &card.UnknownReport{Split: "the windows evaluated"}
	r.Unknown.SetPromises(m, rows.classes)
	counter := card.NewUnknownCounter(r.Unknown, rows.classes)
	for i := range x.Rows {
		v := judge.Decide(x.Row(i), rows.before(i), rows.reference(i))
		decisions[i] = v.Decided
		r.score = append(r.score, v.Score)
		r.Posterior = append(r.Posterior, v.Posterior...)
		counter.Add(m, rows.group[i], rows.Class[i], decisions[i], v.Posterior, v.Novelty)
		r.unknown = append(r.unknown, v.Outcome == model.Unknown)
	}
	counter.Finish()
	if m.Conformal == nil && m.Novelty == nil {
		r.Unknown = nil
	}
	_, r.Wear = card.Notes(m)
	r.Pooled = r.assess(decisions, k, func(int) bool { return true })
	if several(rows.classes) {
		r.Classes, r.Faulty = rows.classes, card.AgainstHealthy(r.Pooled.Confusion)
	}
	faulty := card.FaultyOf(r.Posterior, k)
	r.AveragePrecision = score.Figure(score.AveragePrecision(faulty, card.Positives(rows.Class)))
	r.CalibrationError = score.Figure(score.CalibrationError(score.Reliability(faulty, card.Positives(rows.Class), 10)))
	r.Groups = make(map[string]score.Summary)
	r.group = rows.group
	for _, tool := range rows.tools() {
		r.Tools = append(r.Tools, tool)
		r.Groups[tool] = r.assess(decisions, k, func(i int) bool { return rows.group[i] == tool })
	}
	by := card.Confusions(r.Tools, r.Groups)
	r.Interval = card.IntervalOf(by)
	if several(rows.classes) {
		r.FaultyInterval = card.IntervalOf(card.TwoClasses(by))
	}
}

// assess scores the windows of some that are healthy or faulty.
func (r *examined) assess(decisions []int, k int, of func(i int) bool) score.Summary {
	var y, d []int
	var p []float64
	for i, decision := range decisions {
		if of(i) && !r.unknown[i] {
			y, d, p = append(y, r.Class[i]), append(d, decision), append(p, r.Posterior[k*i:k*i+k]...)
		}
	}
	return score.Assess(y, d, p, k)
}

// tools returns the groups in the order in which they first appear.
func (t rowTable) tools() []string {
	var names []string
	seen := make(map[string]bool)
	for _, g := range t.group {
		if !seen[g] {
			seen[g] = true
			names = append(names, g)
		}
	}
	return names
}

// alarms replays every tool's life through an alarm.
func (r *examined) alarms(s alarm.Settings, m *model.Model, rows rowTable) {
	a := &r.Alarms
	a.K, a.N, a.Threshold = s.K, s.N, cmp.Or(s.Threshold, alarm.Default.Threshold)
	var delays []float64
	healthy := 0
	for _, tool := range r.Tools {
		bell, err := alarm.New(s)
		if err != nil {
			panic("train: " + err.Error()) // the caller checked it
		}
		life := card.ToolAlarm{Tool: tool}
		for i, g := range rows.group {
			if g != tool {
				continue
			}
			life.Judged++
			if rows.Class[i] == classify.Healthy {
				healthy++
			} else if life.Worn == 0 {
				life.Worn = life.Judged
			}
			if len(r.unknown) > 0 && r.unknown[i] {
				continue // neither for nor against, as in the monitor
			}
			at := time.Time{}.Add(time.Duration(life.Judged) * m.Window.Length)
			if bell.Observe(bell.IsFaulty(r.score[i]), at.Add(-m.Window.Length), at) == alarm.Raised && life.Alarm == 0 {
				life.Alarm = life.Judged
			}
		}
		early := life.Alarm > 0 && (life.Worn == 0 || life.Alarm < life.Worn)
		if life.Worn > 0 {
			a.Worn++
			if life.Alarm >= life.Worn {
				a.Caught++
				delays = append(delays, float64(life.Alarm-life.Worn)*m.Window.Length.Seconds())
			}
		}
		if early {
			a.Early++
		}
		a.Tools = append(a.Tools, life)
	}
	a.HealthyHours = float64(healthy) * m.Window.Length.Hours()
	a.EarlyPerHour = score.Figure(math.NaN())
	if a.HealthyHours > 0 {
		a.EarlyPerHour = score.Figure(float64(a.Early) / a.HealthyHours)
	}
	a.MedianDelay = score.Figure(median(delays))
}

// median returns the median of x, NaN if it is empty.
func median(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// warn notes what a person should know before trusting the figures.
func (r *examined) warn(m *model.Model, rows rowTable) {
	for _, d := range r.Data {
		if _, known := trainedOn(m, d.SHA256); known {
			r.Warnings = append(r.Warnings, fmt.Sprintf("the model was trained on %s: the figures say how well it remembers, and nothing of a new tool", d.Name))
		}
	}
	if several(rows.classes) {
		for k, name := range rows.classes {
			if n, _ := rows.rowsOf(k); n == 0 {
				r.Warnings = append(r.Warnings, fmt.Sprintf("no window is %s by its label: its recall and the G-mean are not defined", name))
			}
		}
		r.Warnings = append(r.Warnings, rows.copyWarnings()...)
		return
	}
	if r.Pooled.Positive == 0 {
		r.Warnings = append(r.Warnings, "no window is faulty by its label: recall, precision, F1 and G-mean are not defined")
	}
	if r.Pooled.Positive == r.Pooled.Rows {
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

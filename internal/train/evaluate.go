package train

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

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

	// Progress, if not nil, is told how far the reading is.
	Progress func(phase string, done, total int)
	Log      zerolog.Logger
}

// Evaluation says how good a model is on the windows of an exam. Its JSON is
// part of the contract, as that of Report is.
type Evaluation struct {
	Model            string                   `json:"model"`
	Label            string                   `json:"label"`                     // rule, in words
	Pooled           score.Summary            `json:"pooled"`                    // of windows with the verdict healthy or faulty, as all figures but those of ranking and calibration
	Interval         *ToolInterval            `json:"pooled_interval,omitempty"` // if there are several tools
	Classes          []string                 `json:"classes,omitempty"`         // their names, if there are more than two
	Faulty           *score.Summary           `json:"faulty,omitempty"`          // healthy against all others, if there are more than two
	FaultyInterval   *ToolInterval            `json:"faulty_interval,omitempty"`
	AveragePrecision score.Figure             `json:"average_precision"` // of P(faulty): of any class but healthy
	CalibrationError score.Figure             `json:"calibration_error"` // of P(faulty), expected, ten bins
	Groups           map[string]score.Summary `json:"groups"`
	Unknown          *Doubts                  `json:"unknown,omitempty"`    // windows with the verdict unknown, if the model has it
	Wear             string                   `json:"wear_trend,omitempty"` // what the trainer found, in words, if the model estimates wear
	Alarms           Alarms                   `json:"alarms"`
	Windows          tally                    `json:"windows"`
	Balance          string                   `json:"balance"`
	Data             []model.DataSet          `json:"data"`
	Warnings         []string                 `json:"warnings"`
	Class            []int                    `json:"-"` // by judged window
	Posterior        []float64                `json:"-"` // P(class|window), healthy first, one of each class for each judged window

	tools   []string  // in the order of the recordings
	unknown []bool    // by judged window: that does not stand
	score   []float64 // by judged window, as a verdict has it
	group   []string  // by judged window: its tool
}

// Alarms says what a person at the machine would have seen: one alarm for each
// worn tool, if all is well.
type Alarms struct {
	K         int         `json:"k"`         // of the last
	N         int         `json:"n"`         // judged windows
	Threshold float64     `json:"threshold"` // have this score or more; 0.5 is the model's own decision
	Tools     []ToolAlarm `json:"tools"`

	Worn         int          `json:"worn"`           // tools that became faulty
	Caught       int          `json:"caught"`         // of them those with an alarm at their first faulty window or later
	Early        int          `json:"early"`          // tools, worn later or never, with an alarm while healthy
	HealthyHours float64      `json:"healthy_hours"`  // of cutting
	EarlyPerHour score.Figure `json:"early_per_hour"` // false alarms per hour of healthy cutting
	MedianDelay  score.Figure `json:"median_delay_s"` // seconds of cutting from the first faulty window to the alarm, of tools caught
}

// ToolAlarm is the life of one tool. Windows are counted from 1 among those that
// are judged; 0 stands for never.
type ToolAlarm struct {
	Tool   string `json:"tool"`
	Judged int    `json:"judged"`
	Worn   int    `json:"first_faulty_window"` // by its label
	Alarm  int    `json:"alarm_window"`        // in which the first alarm was raised
}

// Run judges all windows with the exam's model and compares what it decides with
// their labels.
func (e Exam) Run(ctx context.Context) (*Evaluation, error) {
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
	r := &Evaluation{Model: m.ID(), Label: RuleOf(m).String(), Warnings: []string{}}
	counts := tally{Gaps: gaps}
	for i, os := range found {
		counts.Windows += len(os)
		r.Data = append(r.Data, model.DataSet{Name: e.Inputs[i].Name, SHA256: e.Inputs[i].SHA256, Windows: len(os)})
	}
	j := Job{Config: Config{Label: RuleOf(m), Join: e.Join}, Wear: e.Wear, Inputs: e.Inputs}
	join, err := j.join(found)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	rows, err := j.table(m, found, join, &counts)
	if errors.Is(err, ErrData) {
		return nil, fmt.Errorf("train: %w: %s%s", errNothing, counts.words(), counts.remedy())
	}
	if err != nil {
		return nil, err
	}
	r.Windows, r.Balance, r.Class = counts, rows.balance(), rows.Class
	r.judge(m, rows)
	r.alarms(e.Alarm, m, rows)
	r.warn(m, rows)
	for _, w := range r.Warnings {
		e.Log.Warn().Msg(w)
	}
	return r, nil
}

var errNothing = errors.New("nothing to evaluate on")

// judge fills in the scores.
func (r *Evaluation) judge(m *model.Model, rows rowTable) {
	k := m.Classifier.Classes()
	judge := m.NewJudge()
	x := rows.near()
	decisions := make([]int, x.Rows)
	r.Unknown = &Doubts{Split: "the windows evaluated"}
	r.Unknown.promise(m, rows.classes)
	doubts := newDoubter(r.Unknown, rows.classes)
	for i := range x.Rows {
		v := judge.Decide(x.Row(i), rows.before(i), rows.reference(i))
		decisions[i] = v.Decided
		r.score = append(r.score, v.Score)
		r.Posterior = append(r.Posterior, v.Posterior...)
		doubts.add(m, rows.group[i], rows.Class[i], decisions[i], v.Posterior, v.Novelty)
		r.unknown = append(r.unknown, v.Outcome == model.Unknown)
	}
	doubts.finish()
	if m.Conformal == nil && m.Novelty == nil {
		r.Unknown = nil
	}
	_, r.Wear = Beside(m)
	r.Pooled = r.assess(decisions, k, func(int) bool { return true })
	if several(rows.classes) {
		r.Classes, r.Faulty = rows.classes, againstHealthy(r.Pooled.Confusion)
	}
	faulty := faultyOf(r.Posterior, k)
	r.AveragePrecision = score.Figure(score.AveragePrecision(faulty, positives(rows.Class)))
	r.CalibrationError = score.Figure(score.CalibrationError(score.Reliability(faulty, positives(rows.Class), 10)))
	r.Groups = make(map[string]score.Summary)
	r.group = rows.group
	for _, tool := range rows.tools() {
		r.tools = append(r.tools, tool)
		r.Groups[tool] = r.assess(decisions, k, func(i int) bool { return rows.group[i] == tool })
	}
	by := confusions(r.tools, r.Groups)
	r.Interval = intervalOf(by)
	if several(rows.classes) {
		r.FaultyInterval = intervalOf(twoClasses(by))
	}
}

// assess scores the windows of some that are healthy or faulty.
func (r *Evaluation) assess(decisions []int, k int, of func(i int) bool) score.Summary {
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

// faultyOf returns P(faulty) of posteriors of k classes: of all but healthy.
func faultyOf(posterior []float64, k int) []float64 {
	f := make([]float64, len(posterior)/k)
	for i := range f {
		for _, p := range posterior[k*i+1 : k*(i+1)] {
			f[i] += p
		}
	}
	return f
}

// alarms replays every tool's life through an alarm.
func (r *Evaluation) alarms(s alarm.Settings, m *model.Model, rows rowTable) {
	a := &r.Alarms
	a.K, a.N, a.Threshold = s.K, s.N, cmp.Or(s.Threshold, alarm.Default.Threshold)
	var delays []float64
	healthy := 0
	for _, tool := range r.tools {
		bell, err := alarm.New(s)
		if err != nil {
			panic("train: " + err.Error()) // the caller checked it
		}
		life := ToolAlarm{Tool: tool}
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
func (r *Evaluation) warn(m *model.Model, rows rowTable) {
	for _, d := range r.Data {
		if _, known := trainedOn(m, d.SHA256); known {
			r.Warnings = append(r.Warnings, fmt.Sprintf("the model was trained on %s: the figures say how well it remembers, and nothing of a new tool", d.Name))
		}
	}
	if several(rows.classes) {
		for k, name := range rows.classes {
			if n, _ := rows.homes(k); n == 0 {
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

// Text returns the evaluation for a terminal.
func (r *Evaluation) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "model    %s, %s\n", r.Model, r.Label)
	fmt.Fprintf(&b, "windows  %s\n         %s\n", r.Windows.words(), r.Balance)
	p := &r.Pooled
	c := p.Confusion
	if several(r.Classes) {
		b.WriteString(confusionText(r.Classes, c))
		fmt.Fprintf(&b, "faulty   any class but healthy: %s\n", healthyOrNot(r.Faulty))
		for k, name := range r.Classes {
			fmt.Fprintf(&b, "ROC AUC  %s of %s against the rest\n", figure(p.AUCs[k]), name)
		}
	} else {
		fmt.Fprintf(&b, "decided  %d faulty rightly, %d missed; %d healthy rightly, %d called faulty\n", c[1][1], c[1][0], c[0][0], c[0][1])
		fmt.Fprintf(&b, "ranking  ROC AUC %s, average precision %s; Brier score %s, calibration error %s\n",
			figure(p.AUC), figure(r.AveragePrecision), figure(p.Brier), figure(r.CalibrationError))
	}
	if u := r.Unknown; u != nil {
		fmt.Fprintf(&b, "%s\n         unknown windows are left out of the figures below, and neither for nor against an alarm\n",
			strings.Replace(u.words(), "unknown: ", "unknown  ", 1))
	}
	if r.Wear != "" {
		fmt.Fprintf(&b, "wear     %s\n", strings.TrimLeft(strings.TrimPrefix(r.Wear, "flank wear"), ": "))
	}
	a := &r.Alarms
	soon := 0 // early on tools that wore out later
	for _, t := range a.Tools {
		if t.Worn > 0 && t.Alarm > 0 && t.Alarm < t.Worn {
			soon++
		}
	}
	over := ""
	if a.Threshold != alarm.Default.Threshold {
		over = fmt.Sprintf(" with a score of %v or more", a.Threshold)
	}
	fmt.Fprintf(&b, "alarms   at %d of %d windows%s: %d of %d worn tools caught once they were worn, %d before, %d missed; %d of %d others rang", a.K, a.N, over,
		a.Caught, a.Worn, soon, a.Worn-a.Caught-soon, a.Early-soon, len(a.Tools)-a.Worn)
	if a.Caught > 0 {
		fmt.Fprintf(&b, "; median delay %.0f s of cutting", float64(a.MedianDelay))
	}
	if several(r.Classes) {
		t := newScoreTable(r.Classes)
		t.line("all", p)
		for _, name := range r.tools {
			s := r.Groups[name]
			t.line(name, &s)
		}
		b.WriteString("\n" + t.String())
		r.intervals(&b)
		r.notes(&b)
		return b.String()
	}
	const head, row = "\n\n%-16s %7s %7s %12s %10s %7s %9s %7s %7s %8s %7s", "\n%-16s %7s %7s %12s %10s %7s %9s %7s %7s %8d %7d"
	fmt.Fprintf(&b, head, "", "G-mean", "recall", "specificity", "precision", "F1", "accuracy", "MCC", "AUC", "windows", "faulty")
	line := func(name string, s score.Summary) {
		fmt.Fprintf(&b, row, name, figure(s.GMean), figure(s.Recall), figure(s.Specificity), figure(s.Precision), figure(s.F1), figure(s.Accuracy), figure(s.MCC), figure(s.AUC), s.Rows, s.Positive)
	}
	line("all", r.Pooled)
	for _, t := range r.tools {
		line(t, r.Groups[t])
	}
	r.intervals(&b)
	r.notes(&b)
	return b.String()
}

// intervals says how far the scores of all tools together depend on which tools they are.
func (r *Evaluation) intervals(b *strings.Builder) {
	if words := r.Interval.words(r.Classes, &r.Pooled); words != "" {
		fmt.Fprintf(b, "\nall, with 95 %% intervals: %s", words)
	}
	if words := r.FaultyInterval.words(nil, r.Faulty); words != "" {
		fmt.Fprintf(b, "\nhealthy against all others, with 95 %% intervals: %s", words)
	}
}

func (r *Evaluation) notes(b *strings.Builder) {
	b.WriteString("\nA dash is a figure without windows to rest on.")
	for _, w := range r.Warnings {
		fmt.Fprintf(b, "\nnote: %s", w)
	}
	b.WriteString("\n")
}

// JSON returns the evaluation for programs.
func (r *Evaluation) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return append(b, '\n'), nil
}

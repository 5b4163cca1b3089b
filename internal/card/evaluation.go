package card

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
	"github.com/flank-tcm/flank/pkg/trend"
)

// Evaluation says how good a model is on the windows of an exam. Its JSON is
// part of the contract, as the JSON of Report is.
type Evaluation struct {
	Verdict Verdict `json:"verdict"`
	Model   string  `json:"model"`
	Label   string  `json:"label"` // rule, in words

	WindowScores                 // of the windows whose verdict is not unknown
	CountingUnknown WindowScores `json:"counting_unknown"`     // of all windows: unknown ones count as wrong
	Classes         []string     `json:"classes,omitempty"`    // their names, if there are more than two
	Seen            []SeenTool   `json:"trained_on,omitempty"` // tools that the model was trained on

	Unknown   *UnknownReport  `json:"unknown,omitempty"`    // windows with the verdict unknown, if the model has it
	Wear      string          `json:"wear_trend,omitempty"` // how good the estimates of wear are, in words, if the model makes them
	WearScore *trend.Score    `json:"wear_score,omitempty"` // of these windows, if their wear was measured
	Alarms    Alarms          `json:"alarms"`
	Time      string          `json:"window_time,omitempty"`   // how long rows of a table last, in words
	NoHours   string          `json:"hours_unknown,omitempty"` // why it is not known, and what to do about it
	Windows   Tally           `json:"windows"`
	Balance   string          `json:"balance"`
	Data      []model.DataSet `json:"data"`
	Warnings  []string        `json:"warnings"`
	Class     []int           `json:"-"` // by judged window
	Posterior []float64       `json:"-"` // P(class|window), healthy first, one of each class for each judged window
	Tools     []string        `json:"-"` // as people count their names

	Robustness *Robustness `json:"robustness,omitempty"` // what a sensor that reads wrong does
}

// WindowScores are figures that are all of the same windows.
type WindowScores struct {
	Pooled           score.Summary            `json:"pooled"`
	Interval         *ToolInterval            `json:"pooled_interval,omitempty"` // if there are several tools
	Faulty           *score.Summary           `json:"faulty,omitempty"`          // healthy against all others, if there are more than two classes
	FaultyInterval   *ToolInterval            `json:"faulty_interval,omitempty"`
	AveragePrecision score.Figure             `json:"average_precision"` // of P(faulty): of any class but healthy
	CalibrationError score.Figure             `json:"calibration_error"` // of P(faulty), expected, ten bins
	Groups           map[string]score.Summary `json:"groups"`
}

// Judged are windows with what was decided of them.
type Judged struct {
	Tool      []string
	Class     []int                 // by its label
	Decided   []int                 // class, also where the verdict is unknown
	Unknown   []model.UnknownReason // why the verdict is unknown; empty where it is not
	Posterior []float64             // one of each class for each window
	Classes   int
}

// Scores returns the figures of the windows whose verdict is not unknown, or of all of
// them, where unknown ones count as wrong. AUC, average precision, Brier score and
// calibration error are of the same windows as all other figures, and look at the
// posteriors only.
func (j *Judged) Scores(tools []string, countUnknown bool) WindowScores {
	s := WindowScores{Groups: make(map[string]score.Summary)}
	all := j.rows("", countUnknown)
	s.Pooled = j.assess(all)
	var faulty []float64
	var positive []bool
	of := FaultyOf(j.Posterior, j.Classes)
	for _, i := range all {
		faulty, positive = append(faulty, of[i]), append(positive, j.Class[i] != classify.Healthy)
	}
	s.AveragePrecision = score.Figure(score.AveragePrecision(faulty, positive))
	s.CalibrationError = score.Figure(score.CalibrationError(score.Reliability(faulty, positive, 10)))
	for _, t := range tools {
		s.Groups[t] = j.assess(j.rows(t, countUnknown))
	}
	by := make([]score.Confusion, len(tools))
	for k, t := range tools {
		by[k] = withWrong(s.Groups[t])
	}
	s.Interval = IntervalOf(by)
	if j.Classes > 2 {
		s.Faulty = againstHealthy(s.Pooled)
		for k, t := range tools {
			by[k] = withWrong(*againstHealthy(s.Groups[t]))
		}
		s.FaultyInterval = IntervalOf(by)
	}
	return s
}

// assess returns the figures of some windows, where unknown ones count as wrong.
func (j *Judged) assess(rows []int) score.Summary {
	var y, d []int
	var p []float64
	k := j.Classes
	known, unknown := score.NewConfusion(k), make([]int, k)
	for _, i := range rows {
		y, d, p = append(y, j.Class[i]), append(d, j.Decided[i]), append(p, j.Posterior[k*i:k*i+k]...)
		if j.Unknown[i] != "" {
			unknown[j.Class[i]]++
		} else {
			known.Add(j.Class[i], j.Decided[i])
		}
	}
	s, ranked := known.CountingUnknown(unknown), score.Assess(y, d, p, k)
	s.AUC, s.AUCs, s.Brier = ranked.AUC, ranked.AUCs, ranked.Brier
	return s
}

// againstHealthy returns the scores of decisions between healthy and all other classes,
// taken as one, with the windows that have none.
func againstHealthy(s score.Summary) *score.Summary {
	two := scoresAgainstHealthy(s.Confusion)
	if s.Unknown == nil {
		return two
	}
	unknown := make([]int, 2)
	for class, n := range s.Unknown {
		unknown[min(class, 1)] += n
	}
	out := two.Confusion.CountingUnknown(unknown)
	return &out
}

// withWrong returns the confusion of s, where windows that have no decision count as wrong.
func withWrong(s score.Summary) score.Confusion {
	if s.Unknown == nil {
		return s.Confusion
	}
	return s.Confusion.WithWrong(s.Unknown)
}

// SeenTool is a tool of an examination that the model was trained on.
type SeenTool struct {
	Tool string `json:"tool"`
	As   string `json:"as"` // its name in training
}

// Text returns the evaluation for a terminal.
func (r *Evaluation) Text() string {
	var b strings.Builder
	b.WriteString(r.Verdict.Text() + "\n")
	fmt.Fprintf(&b, "model    %s, %s\n", r.Model, r.Label)
	fmt.Fprintf(&b, "windows  %s\n         %s\n", r.Windows.Words(), r.Balance)
	if r.Time != "" {
		fmt.Fprintf(&b, "time     %s\n", r.Time)
	}
	r.decided(&b)
	if words := r.Unknown.Words(); words != "" {
		fmt.Fprintf(&b, "%s\n", strings.Replace(words, "unknown: ", "unknown  ", 1))
	}
	if r.Wear != "" {
		fmt.Fprintf(&b, "wear     %s\n", r.Wear)
	}
	r.alarms(&b)
	r.table(&b)
	r.wearTable(&b)
	words := r.Robustness.Words()
	if r.Robustness != nil && r.Robustness.Note != "" {
		words = "If a sensor reads wrong: not measured, because " + r.Robustness.Note
	}
	if words != "" {
		if r.WearScore == nil { // whose table ends with a new line
			b.WriteByte('\n')
		}
		b.WriteString("\n" + words + "\n")
	}
	r.intervals(&b)
	r.notes(&b)
	return b.String()
}

// someUnknown reports whether the verdict on a window is unknown.
func (r *Evaluation) someUnknown() bool { return r.CountingUnknown.Pooled.Unknown != nil }

// bothWays calls with with the scores of all windows, where unknown ones count as wrong,
// and, if some are unknown, with the scores of the other windows. It says what they are of.
func (r *Evaluation) bothWays(with func(of string, s *WindowScores)) {
	all := fmt.Sprintf("all %d windows", r.CountingUnknown.Pooled.Rows)
	if !r.someUnknown() {
		with(all, &r.CountingUnknown)
		return
	}
	with(all+", unknown ones count as wrong", &r.CountingUnknown)
	with(fmt.Sprintf("the %d windows that are not unknown", r.Pooled.Rows), &r.WindowScores)
}

// decided says what was decided of the windows, and how well posteriors rank them.
func (r *Evaluation) decided(b *strings.Builder) {
	p := &r.CountingUnknown.Pooled
	c, not := p.Confusion, func(class int) string {
		if p.Unknown == nil {
			return ""
		}
		return fmt.Sprintf(", %d unknown", p.Unknown[class])
	}
	if several(r.Classes) {
		b.WriteString(confusionText(r.Classes, c, p.Unknown))
		r.bothWays(func(of string, s *WindowScores) {
			fmt.Fprintf(b, "faulty   any class but healthy: %s (%s)\n", healthyOrNot(s.Faulty), of)
		})
	} else {
		fmt.Fprintf(b, "decided  %d faulty rightly, %d missed%s; %d healthy rightly, %d called faulty%s\n", c[1][1], c[1][0], not(1), c[0][0], c[0][1], not(0))
	}
	r.bothWays(func(of string, s *WindowScores) {
		of = strings.TrimSuffix(of, ", unknown ones count as wrong") // a posterior is never wrong
		rest := fmt.Sprintf("average precision %s; Brier score %s, calibration error %s", Figure(s.AveragePrecision), Figure(s.Pooled.Brier), Figure(s.CalibrationError))
		if !several(r.Classes) {
			fmt.Fprintf(b, "ranking  %s: ROC AUC %s, %s\n", of, Figure(s.Pooled.AUC), rest)
			return
		}
		words := make([]string, len(r.Classes))
		for k, name := range r.Classes {
			words[k] = fmt.Sprintf("%s of %s", Figure(s.Pooled.AUCs[k]), name)
		}
		fmt.Fprintf(b, "ranking  %s: %s; ROC AUC %s against the rest\n", of, rest, Listed(words))
	})
}

// alarms says what alarms a person would have seen.
func (r *Evaluation) alarms(b *strings.Builder) {
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
	fmt.Fprintf(b, "alarms   at %d of %d windows%s: %d of %d worn tools caught once they were worn, %d before, %d missed; %d of %d others rang", a.K, a.N, over,
		a.Caught, a.Worn, soon, a.Worn-a.Caught-soon, a.Early-soon, len(a.Tools)-a.Worn)
	switch {
	case a.Caught == 0:
	case r.NoHours != "":
		fmt.Fprintf(b, "; median delay %s windows", strconv.FormatFloat(medianOf(a.delays()), 'f', -1, 64))
	default:
		fmt.Fprintf(b, "; median delay %.0f s of cutting", float64(a.MedianDelay))
	}
	for _, t := range a.Tools {
		if t.Unjudged > 0 && t.Worn > t.Judged {
			fmt.Fprintf(b, "\n         %s gets worn and is never judged while it is: of its faulty windows %s", t.Tool, t.Why)
		}
	}
	if r.someUnknown() {
		b.WriteString("\n         windows that are out of distribution are neither for nor against an alarm; other unknown ones count as they were decided")
	}
}

// delays returns how many windows after the first faulty one alarms were raised, of tools
// caught.
func (a *Alarms) delays() (out []float64) {
	for _, t := range a.Tools {
		if t.Worn > 0 && t.Alarm >= t.Worn {
			out = append(out, float64(t.Alarm-t.Worn))
		}
	}
	return out
}

// withoutUnknown begins the line of a table with the flattering scores.
const withoutUnknown = "  without unknown"

// table lays the scores of all windows and of each tool out. Where windows are unknown
// there are two lines: they count as wrong in the first, and are left out of the second.
func (r *Evaluation) table(b *strings.Builder) {
	t := newScoreTable(r.Classes, true)
	b.WriteByte('\n')
	both := func(name string, all, known score.Summary) {
		t.line(name, &all)
		if all.Unknown != nil {
			t.line(withoutUnknown, &known)
		}
	}
	both("all", r.CountingUnknown.Pooled, r.Pooled)
	for _, name := range r.Tools {
		both(name, r.CountingUnknown.Groups[name], r.Groups[name])
	}
	b.WriteString(t.String())
	if r.someUnknown() {
		b.WriteString("\nUnknown windows count as wrong; the lines `without unknown` leave them out, which flatters. AUC is of the same windows.")
	}
}

func sum(x []int) (s int) {
	for _, v := range x {
		s += v
	}
	return s
}

// wearTable lays out how good the estimates of wear are, tool by tool.
func (r *Evaluation) wearTable(b *strings.Builder) {
	if r.WearScore == nil {
		return
	}
	fmt.Fprintf(b, "\n\n%-17s %8s %8s %10s %10s %9s", "flank wear", "measured", "estimate", "worn to µm", "off by µm", "interval")
	for _, t := range r.WearScore.Tools {
		off, holds := "–", "–"
		if t.Known > 0 {
			off, holds = fmt.Sprintf("%.1f", t.MAEUM), fmt.Sprintf("%.1f %%", 100*t.Coverage)
		}
		fmt.Fprintf(b, "\n%-17s %8d %8d %10.0f %10s %9s", t.Tool, t.Rows, t.Known, t.MostUM, off, holds)
	}
	b.WriteByte('\n')
}

// intervals says how far the scores of all tools together depend on which tools they are.
func (r *Evaluation) intervals(b *strings.Builder) {
	r.bothWays(func(of string, s *WindowScores) {
		if words := s.Interval.Words(r.Classes, &s.Pooled); words != "" {
			fmt.Fprintf(b, "\n%s, with 95 %% intervals: %s", of, words)
		}
	})
	r.bothWays(func(of string, s *WindowScores) {
		if words := s.FaultyInterval.Words(nil, s.Faulty); words != "" {
			fmt.Fprintf(b, "\nhealthy against all others, %s, with 95 %% intervals: %s", of, words)
		}
	})
}

func (r *Evaluation) notes(b *strings.Builder) {
	b.WriteString("\nA dash is a figure without windows to rest on.")
	for _, w := range r.Warnings {
		fmt.Fprintf(b, "\nnote: %s", w)
	}
	b.WriteString("\n")
}

// rows returns the windows of a tool, of all tools if it has no name, with those that are unknown or without.
func (j *Judged) rows(tool string, countUnknown bool) (out []int) {
	for i := range j.Class {
		if (tool == "" || j.Tool[i] == tool) && (countUnknown || j.Unknown[i] == "") {
			out = append(out, i)
		}
	}
	return out
}

package card

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
)

// Evaluation says how good a model is on the windows of an exam. Its JSON is
// part of the contract, as the JSON of Report is.
type Evaluation struct {
	Model            string                   `json:"model"`
	Label            string                   `json:"label"`                     // rule, in words
	Pooled           score.Summary            `json:"pooled"`                    // of windows with the verdict healthy or faulty, as all figures but ranking and calibration
	Interval         *ToolInterval            `json:"pooled_interval,omitempty"` // if there are several tools
	Classes          []string                 `json:"classes,omitempty"`         // their names, if there are more than two
	Faulty           *score.Summary           `json:"faulty,omitempty"`          // healthy against all others, if there are more than two
	FaultyInterval   *ToolInterval            `json:"faulty_interval,omitempty"`
	AveragePrecision score.Figure             `json:"average_precision"` // of P(faulty): of any class but healthy
	CalibrationError score.Figure             `json:"calibration_error"` // of P(faulty), expected, ten bins
	Groups           map[string]score.Summary `json:"groups"`
	Unknown          *UnknownReport           `json:"unknown,omitempty"`    // windows with the verdict unknown, if the model has it
	Wear             string                   `json:"wear_trend,omitempty"` // what the trainer found, in words, if the model estimates wear
	Alarms           Alarms                   `json:"alarms"`
	Windows          Tally                    `json:"windows"`
	Balance          string                   `json:"balance"`
	Data             []model.DataSet          `json:"data"`
	Warnings         []string                 `json:"warnings"`
	Class            []int                    `json:"-"` // by judged window
	Posterior        []float64                `json:"-"` // P(class|window), healthy first, one of each class for each judged window
	Tools            []string                 `json:"-"` // in the order of the recordings
}

// SeenTool is a tool of an examination that the model was trained on.
type SeenTool struct {
	Tool string `json:"tool"`
	As   string `json:"as,omitempty"` // its name in training; empty: only golden vectors of the model say so
}

// Text returns the evaluation for a terminal.
func (r *Evaluation) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "model    %s, %s\n", r.Model, r.Label)
	fmt.Fprintf(&b, "windows  %s\n         %s\n", r.Windows.Words(), r.Balance)
	p := &r.Pooled
	c := p.Confusion
	if several(r.Classes) {
		b.WriteString(confusionText(r.Classes, c))
		fmt.Fprintf(&b, "faulty   any class but healthy: %s\n", healthyOrNot(r.Faulty))
		for k, name := range r.Classes {
			fmt.Fprintf(&b, "ROC AUC  %s of %s against the rest\n", Figure(p.AUCs[k]), name)
		}
	} else {
		fmt.Fprintf(&b, "decided  %d faulty rightly, %d missed; %d healthy rightly, %d called faulty\n", c[1][1], c[1][0], c[0][0], c[0][1])
		fmt.Fprintf(&b, "ranking  ROC AUC %s, average precision %s; Brier score %s, calibration error %s\n",
			Figure(p.AUC), Figure(r.AveragePrecision), Figure(p.Brier), Figure(r.CalibrationError))
	}
	if u := r.Unknown; u != nil {
		fmt.Fprintf(&b, "%s\n         unknown windows are left out of the figures below, and neither for nor against an alarm\n",
			strings.Replace(u.Words(), "unknown: ", "unknown  ", 1))
	}
	if r.Wear != "" {
		fmt.Fprintf(&b, "wear     %s\n", strings.TrimLeft(strings.TrimPrefix(r.Wear, "flank wear"), ": "))
	}
	r.alarms(&b)
	r.table(&b)
	r.intervals(&b)
	r.notes(&b)
	return b.String()
}

// alarms says on one line what alarms a person would have seen.
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
	if a.Caught > 0 {
		fmt.Fprintf(b, "; median delay %.0f s of cutting", float64(a.MedianDelay))
	}
}

// table lays the scores of all windows and of each tool out.
func (r *Evaluation) table(b *strings.Builder) {
	if several(r.Classes) {
		t := newScoreTable(r.Classes)
		t.line("all", &r.Pooled)
		for _, name := range r.Tools {
			s := r.Groups[name]
			t.line(name, &s)
		}
		b.WriteString("\n" + t.String())
		return
	}
	const head, row = "\n\n%-16s %7s %7s %12s %10s %7s %9s %7s %7s %8s %7s", "\n%-16s %7s %7s %12s %10s %7s %9s %7s %7s %8d %7d"
	fmt.Fprintf(b, head, "", "G-mean", "recall", "specificity", "precision", "F1", "accuracy", "MCC", "AUC", "windows", "faulty")
	line := func(name string, s score.Summary) {
		fmt.Fprintf(b, row, name, Figure(s.GMean), Figure(s.Recall), Figure(s.Specificity), Figure(s.Precision), Figure(s.F1), Figure(s.Accuracy), Figure(s.MCC), Figure(s.AUC), s.Rows, s.Positive)
	}
	line("all", r.Pooled)
	for _, t := range r.Tools {
		line(t, r.Groups[t])
	}
}

// intervals says how far the scores of all tools together depend on which tools they are.
func (r *Evaluation) intervals(b *strings.Builder) {
	if words := r.Interval.Words(r.Classes, &r.Pooled); words != "" {
		fmt.Fprintf(b, "\nall, with 95 %% intervals: %s", words)
	}
	if words := r.FaultyInterval.Words(nil, r.Faulty); words != "" {
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
		return nil, fmt.Errorf("card: %w", err)
	}
	return append(b, '\n'), nil
}

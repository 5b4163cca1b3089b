package card

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
)

// Headline is what a model keeps of its report, in Model.Scores.
type Headline struct {
	Verdict   *Verdict       `json:"verdict,omitempty"`
	Split     string         `json:"split"`
	Pooled    *score.Summary `json:"pooled,omitempty"` // of tools held out
	Interval  *ToolInterval  `json:"pooled_interval,omitempty"`
	OutOfFold *score.Summary `json:"out_of_fold,omitempty"` // without those

	// How the costs were chosen, and how much that matters.
	Costs     *classify.CostReport `json:"costs,omitempty"`
	Landscape *landscape           `json:"landscape,omitempty"`

	Unknown *UnknownReport `json:"unknown,omitempty"`
	Trend   *Trend         `json:"wear_trend,omitempty"`

	Relabelled *Relabelled `json:"relabelled,omitempty"` // nil: the network was trained for this model
}

// Headline returns what a model keeps of the report.
func (r *Report) Headline() Headline {
	h := Headline{Verdict: r.Verdict, Split: r.Split, Pooled: r.Pooled, Interval: r.Interval, Costs: &r.Fit.Costs, Landscape: r.Landscape, Unknown: r.Unknown, Trend: r.Trend, Relabelled: r.Relabelled}
	if r.Pooled == nil {
		h.Split, h.OutOfFold = "none: these are the out-of-fold rows that the costs were chosen on, which flatters", &r.Fit.Held
		if r.ByWear {
			h.Split += "; the classifier decides them, and the model decides by estimated wear"
		}
	}
	return h
}

// HeadlineOf returns the headline in a model, or an empty one.
func HeadlineOf(m *model.Model) (h Headline) {
	if json.Unmarshal(m.Scores, &h) != nil {
		return Headline{}
	}
	return h
}

// Scores returns the scores in a model, and what they are of, in words. Both are empty if
// there are none.
func Scores(m *model.Model) (scores, of string) {
	h := HeadlineOf(m)
	s := cmp.Or(h.Pooled, h.OutOfFold)
	if s == nil {
		return "", ""
	}
	if names := m.ClassNames(); several(names) && len(s.Recalls) == len(names) {
		scores = cmp.Or(h.Interval.Words(names, s), fmt.Sprintf("G-mean %s, %s", Figure(s.GMean), recalls(names, s)))
		return fmt.Sprintf("%s, accuracy %s", scores, Figure(s.Accuracy)), fmt.Sprintf("%d windows; split: %s", s.Rows, h.Split)
	}
	scores = cmp.Or(h.Interval.Words(nil, s), fmt.Sprintf("G-mean %s, recall %s, specificity %s", Figure(s.GMean), Figure(s.Recall), Figure(s.Specificity)))
	scores += fmt.Sprintf(", precision %s, F1 %s, accuracy %s", Figure(s.Precision), Figure(s.F1), Figure(s.Accuracy))
	return scores, fmt.Sprintf("%d windows, %d faulty; split: %s", s.Rows, s.Positive, h.Split)
}

// Notes returns what a model says of the verdict unknown and of the wear trend, each on one
// line, in words. They are empty if it says nothing.
func Notes(m *model.Model) (unknown, wear string) {
	h := HeadlineOf(m)
	return h.Unknown.Words(), h.Trend.Words()
}

// Shape describes the network of a model in words.
func Shape(m *model.Model) string {
	layers := m.Classifier.Network().Layers()
	words := make([]string, len(layers))
	for i, n := range layers {
		words[i] = fmt.Sprint(n)
	}
	return fmt.Sprintf("%s: %d features, encoded as %s, to %d inputs", strings.Join(words, "–"), m.Classifier.Columns(), m.Classifier.Encoder().Encoding(), layers[0])
}

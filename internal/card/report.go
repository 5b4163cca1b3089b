// Package card presents what is known of a trained model: the report of its training, the
// model card with its plots, the evaluation on other data, and the choice of its costs, as
// HTML, as text for a terminal and as JSON; and the verdict whether to switch the model on.
//
// Package train fills the values in. The JSON of a [Report] and of an [Evaluation] is part of
// the contract with other programs.
package card

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
)

// Report says what a training run saw and how good the model is. Its JSON is
// part of the contract: pooled, groups and random_split each have accuracy,
// recall, specificity, precision, f1 and gmean, with faulty as the positive
// class; a figure without rows to rest on is null. Of more than two classes the
// last is the positive one there, and recalls has all of them. fit.weights has the
// features that count, by name and column.
type Report struct {
	Model          string                   `json:"model"`
	Verdict        *Verdict                 `json:"verdict,omitempty"`
	Label          string                   `json:"label"`                // rule, in words
	Classes        []string                 `json:"classes,omitempty"`    // their names, if there are more than two
	Split          string                   `json:"split,omitempty"`      // how tools were held out
	NotOfModel     string                   `json:"split_note,omitempty"` // where folds decide in another way than the model: how many, in words
	Pooled         *score.Summary           `json:"pooled,omitempty"`     // of all windows of tools held out
	Interval       *ToolInterval            `json:"pooled_interval,omitempty"`
	Groups         map[string]score.Summary `json:"groups,omitempty"` // of each tool held out
	Faulty         *score.Summary           `json:"faulty,omitempty"` // healthy against all others, of the same windows, if there are more than two
	FaultyInterval *ToolInterval            `json:"faulty_interval,omitempty"`
	Random         *score.Summary           `json:"random_split,omitempty"` // leaky: neighbouring windows of a tool are on both sides
	Leak           string                   `json:"random_split_note,omitempty"`
	Baselines      []Baseline               `json:"baselines,omitempty"`      // simpler methods on the same tools held out
	Settings       *SettingsAlone           `json:"settings_alone,omitempty"` // what they reach without sensors; nil: none is the same in all windows of each tool
	Against        []Contest                `json:"champions,omitempty"`      // how it compares with them, if `trainer watch` trained it
	NotCompared    string                   `json:"baselines_note,omitempty"` // why there are none
	Robustness     *Robustness              `json:"robustness,omitempty"`     // what a sensor that reads wrong does on tools held out
	Alarms         *Alarms                  `json:"alarms,omitempty"`         // of tools held out; if there are none, of those that costs were chosen on
	Windows        Tally                    `json:"windows"`
	Balance        string                   `json:"balance,omitempty"` // rows by class and tool, in words
	Features       int                      `json:"features"`
	Excluded       []string                 `json:"excluded,omitempty"` // features that do not count, because the configuration says so
	Warnings       []string                 `json:"warnings"`           // what to know before trusting a score; fit has its own
	Fit            *classify.Report         `json:"fit"`
	Trend          *Trend                   `json:"wear_trend,omitempty"`      // if wear was measured of tools enough
	Unknown        *UnknownReport           `json:"unknown,omitempty"`         // if the model has the third verdict
	Modes          modeScores               `json:"reference_modes,omitempty"` // what each mode of the reference gives on tools held out, if that was looked at
	Relabelled     *Relabelled              `json:"relabelled,omitempty"`      // if the network is another model's
	Job            model.Provenance         `json:"provenance"`

	ByWear    bool                `json:"-"` // the model decides by estimated wear
	CostsSeen bool                `json:"-"` // no tools were held out of all, but the tools of Held were held out of the networks
	Landscape *landscape          `json:"-"` // of the posteriors that the costs were chosen on
	Tools     []string            `json:"-"` // held out, in the order of the recordings
	Held      HeldOut             `json:"-"` // windows of these or, if there are none, those that costs were chosen on
	Bounds    string              `json:"-"` // of the wear, in words, if known
	Cutting   string              `json:"-"` // when, in words
	Reference model.ReferenceSpec `json:"-"`

	// ViewLimitMiB is how large a table may be for the trainer to try several modes of the
	// reference; 0 if the configuration names the mode.
	ViewLimitMiB int `json:"-"`
}

const leakNote = "leaky: windows of one tool are on both sides of the split, and neighbouring windows are near copies; it says nothing of a new tool"

// SetFaulty sets the scores of healthy against all other classes, if there are more than two.
func (r *Report) SetFaulty() {
	if several(r.Classes) {
		r.Faulty = scoresAgainstHealthy(cmp.Or(r.Pooled, &r.Fit.Held).Confusion)
	}
}

// SetByTool sets the scores of tools held out.
func (r *Report) SetByTool(v *classify.Validation, how string, folds int) {
	r.Split = fmt.Sprintf("%s by tool, %d folds", how, folds)
	r.Pooled = &v.Pooled
	r.Groups = make(map[string]score.Summary, len(v.Groups))
	for _, g := range v.Groups {
		r.Groups[g.Group] = g.Summary
		r.Tools = append(r.Tools, g.Group)
	}
	by := confusions(r.Tools, r.Groups)
	r.Interval = IntervalOf(by)
	if several(r.Classes) {
		r.FaultyInterval = IntervalOf(twoClasses(by))
	}
}

// SetRandom sets the scores of the random split.
func (r *Report) SetRandom(v *classify.Validation) {
	r.Random, r.Leak = &v.Pooled, leakNote
}

// Decide sets the verdict, when all scores are set. The lives are the windows of Held, and
// their alarm has the given settings.
func (r *Report) Decide(lives []Life, s alarm.Settings, t Timing, limitUM float64) {
	undefined := score.Figure(math.NaN())
	e := Evidence{Held: r.Pooled != nil || r.CostsSeen, CostsSeen: r.Pooled == nil, Alarms: Replay(lives, s, t, limitUM), GMean: undefined, Ours: undefined, Random: undefined}
	if r.Alarms = nil; e.Held {
		r.Alarms = &e.Alarms
		e.Ours = scoresAgainstHealthy(cmp.Or(r.Pooled, &r.Fit.Held).Confusion).GMean
		if e.GMean = e.Ours; r.Unknown != nil && r.Unknown.Judged != nil {
			e.GMean = r.Unknown.countedWrong().GMean
		}
	}
	if r.Random != nil {
		e.Random = scoresAgainstHealthy(r.Random.Confusion).GMean
	}
	for _, b := range r.Baselines {
		e.Baselines = append(e.Baselines, baselineFigure{b.Method, b.Pooled.GMean})
	}
	e.NotCompared, e.Robustness, e.NotOfModel = r.NotCompared, r.Robustness, r.NotOfModel
	e.UnknownNotMeasured = r.unknownNotMeasured()
	v := VerdictOf(e)
	r.Verdict = &v
}

// Summary returns the verdict and a few more lines for a terminal.
func (r *Report) Summary() string {
	var b strings.Builder
	if r.Verdict != nil {
		b.WriteString(r.Verdict.Text() + "\n")
	}
	b.WriteString(r.Windows.Words())
	if n := r.Windows.Missing; n > 0 {
		fmt.Fprintf(&b, "; %d feature values missing, imputed", n)
	}
	t := newScoreTable(r.Classes, false)
	if r.Pooled != nil {
		t.line("tools held out", r.Pooled)
	}
	if r.Random != nil {
		t.line("random (leaky)", r.Random)
	}
	outOfFold := r.Pooled == nil && r.Random == nil
	if outOfFold {
		t.line("out of fold", &r.Fit.Held)
	}
	b.WriteString(t.String())
	if words := r.Interval.Words(r.Classes, r.Pooled); words != "" {
		b.WriteString("\ntools held out, with 95 % intervals: " + words)
	}
	if several(r.Classes) {
		b.WriteString("\nFor verdicts and alarms every class but healthy is faulty: " + healthyOrNot(r.Faulty))
		if words := r.FaultyInterval.Words(nil, r.Faulty); words != "" {
			b.WriteString("; with 95 % intervals: " + words)
		}
	}
	if outOfFold {
		b.WriteString(flatters)
	}
	return b.String() + r.notes()
}

const flatters = "\nnote: out of fold are the rows that the costs were chosen on, which flatters"

func (r *Report) notes() string {
	var b strings.Builder
	for _, words := range []string{r.simpler(), r.Settings.Words(), r.Robustness.Words(), r.Modes.text(), r.followers(), r.guard(), r.unlabelled(), r.between(), r.Unknown.Words(), r.Trend.Words(), r.Relabelled.Words()} {
		if words != "" {
			fmt.Fprintf(&b, "\n%s", words)
		}
	}
	for _, w := range r.Fit.Warnings {
		fmt.Fprintf(&b, "\nnote: %s", w)
	}
	if n := len(r.Warnings); n > 0 { // the trainer has logged them when it found them
		fmt.Fprintf(&b, "\nnote: %s above, and on the card", count(n, "warning", "warnings"))
	}
	return b.String()
}

// unknownNotMeasured reports whether the model has the verdict unknown, and it was not
// counted how many windows of tools held out get it.
func (r *Report) unknownNotMeasured() bool {
	return r.Held.Unknown == nil && r.Unknown != nil && (r.Unknown.ErrorRate > 0 || r.Unknown.Novelty > 0)
}

// simpler says how simpler methods do on the same folds; nothing if they were not compared,
// which the verdict says.
func (r *Report) simpler() string {
	if len(r.Baselines) == 0 {
		return ""
	}
	return r.BaselineWords()
}

func (r *Report) warnings() []string { return slices.Concat(r.Warnings, r.Fit.Warnings) }

// Save writes base.html, the model card for people, and base.json, the report for programs, as [FirstDay.Save] does.
func (r *Report) Save(base string, write func(path string, b []byte) error) error {
	return saveCard(base, write, r, cardHead{r.Model, r.Label, r.Job, r.Verdict}, r.page().Sections)
}

const transductiveSplit = ", transductive: networks have learnt from windows without a label of the tools held out"

// SetTransductive notes that networks have learnt from windows without a label of the tools
// held out.
func (r *Report) SetTransductive() { r.Split += transductiveSplit }

// transductive reports whether networks have seen windows of the tools held out.
func (r *Report) transductive() bool { return strings.HasSuffix(r.Split, transductiveSplit) }

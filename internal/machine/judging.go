package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/trend"
	"github.com/flank-tcm/flank/pkg/window"
)

// Judging is what one model knows of one tool life. It belongs to that model for ever: another model
// has one of its own.
type Judging struct {
	Model     string          `json:"model"`             // id
	Number    int             `json:"number,omitempty"`  // orders the judgings of a tool: the greater, the later it began
	Print     string          `json:"print,omitempty"`   // Model.print
	Takes     string          `json:"takes,omitempty"`   // Model.takes
	First     FirstWindow     `json:"first,omitzero"`    // that it has seen, or that the one it was seeded from had seen
	Judged    int             `json:"judged,omitempty"`  // windows of the tool when it judged one last
	Windows   int             `json:"windows,omitempty"` // of the tool that it has seen, or that were of a form that the model does not take
	Reference model.Reference `json:"reference,omitzero"`
	model.Memory
	Wear    trend.Tool `json:"wear,omitzero"`
	Unknown uint64     `json:"unknown,omitempty"` // bit i: did the model not know the i-th last window that it might have judged?
	Trial   *Alarm     `json:"trial,omitempty"`   // only of a shadow: what its alarm would be
}

// FirstWindow is the window with which a tool began.
type FirstWindow struct {
	Epoch string    `json:"epoch"` // empty: it is not known
	Seq   uint64    `json:"seq"`
	At    time.Time `json:"at"` // when Kafka got it; its features came no sooner
}

func (f FirstWindow) is(o FirstWindow) bool { return f.Epoch == o.Epoch && f.Seq == o.Seq }

// newJudging returns what a model knows of a tool before it has seen a window of it.
func newJudging(by *Model, tool string, first FirstWindow) *Judging {
	return &Judging{Model: by.id(), Print: by.print, Takes: by.takes, First: first, Reference: model.Reference{Tool: tool}, Wear: trend.Tool{Name: tool}}
}

// seed returns what another model knows of the tool: the reference of a judging of the same print, if one
// is settled and complete, or no other model can judge the tool, and what sensors read of what they did then; else nil. Wear and cycle begin again.
func (t *Tool) seed(by *Model, alone bool) *Judging {
	for _, j := range t.Judgings {
		if j.Print == by.print && (alone || j.complete(t)) && j.Reference.Center() != nil {
			n := newJudging(by, t.Name, j.First)
			n.Reference = j.Reference // a settled one is not changed any more
			n.Sensors = j.Sensors.Clone()
			return n
		}
	}
	return nil
}

// complete reports whether j, or its seed, has seen the tool from its first window on.
func (j *Judging) complete(t *Tool) bool { return !t.Used && j.First.is(t.First) }

// current reports whether j has seen each window that moved the tool.
func (j *Judging) current(t *Tool) bool { return j.complete(t) && j.Windows == t.Windows }

// judging returns what a model knows of the tool; nil if it knows nothing.
func (t *Tool) judging(id string) *Judging {
	i := slices.IndexFunc(t.Judgings, func(j *Judging) bool { return j.Model == id })
	if i < 0 {
		return nil
	}
	return t.Judgings[i]
}

// keptJudgings is how many judgings a tool has of models that judge it or have judged it; shadows come on
// top.
const keptJudgings = 3

// takes reports whether the model of j takes features of a form. Of a model that is not known any more, it goes by layout and length.
func (x *candidates) takes(j *Judging, form *window.Form) bool {
	if by := x.of(j.Model); by != nil {
		return by.covers(form) == nil
	}
	return form != nil && j.Takes == windowsOf(form.Layout(), form.Length())
}

// candidate is a judging with its model, which takes the features at hand.
type candidate struct {
	*Judging
	by *Model
}

// judgedLast returns the judging that judged the last window of the form at hand: it goes on after windows of other forms. If its model
// is gone, no other one goes on.
func (x *candidates) judgedLast(t *Tool, w Window) candidate {
	last := new(Judging)
	for _, j := range t.Judgings {
		if (j.Trial == nil || j.Model == t.By) && j.Judged > last.Judged && x.takes(j, w.Form) {
			last = j
		}
	}
	if by := x.of(last.Model); by != nil {
		return candidate{last, by}
	}
	return candidate{}
}

// mostSeen returns the judging that has seen most of the tool, of those whose models take the features. Shadows
// move no alarm.
func (x *candidates) mostSeen(t *Tool, w Window) (most candidate) {
	for _, j := range t.Judgings {
		if by := x.of(j.Model); j.Trial == nil && by != nil && by.covers(w.Form) == nil && (most.Judging == nil || j.Windows > most.Windows) {
			most = candidate{j, by}
		}
	}
	return most
}

// opinion is what a judging says of a window.
type opinion struct {
	model.Verdict
	wear    trend.Estimate
	asked   bool // the model estimates wear, and was asked
	learnt  bool // the tool's reference was learnt from the window
	cutting bool // the machine was cutting
}

// look asks the model about a window that moves nothing, and learns nothing. One between tools says nothing of a tool.
func (c candidate) look(t *Tool, w Window) (o opinion) {
	ref := &model.Reference{Tool: t.Name}
	o.wear = trend.Unknown
	if c.Judging != nil && !w.between && c.Reference.Ready(c.by.model.Reference) {
		ref = &c.Reference
	}
	if o.Verdict = c.by.judge.JudgeFeatures(w.Features, ref, nil); w.between {
		o.withhold(event.NoTool)
	}
	return o
}

// id returns the id of the model that judges; empty if none does.
func (c candidate) id() string {
	if c.Judging == nil {
		return ""
	}
	return c.Model
}

// trial reports whether a model judges as a shadow at a time.
func (d *Deployment) trial(id string, at time.Time) bool {
	return d != nil && slices.ContainsFunc(d.Shadows, func(s Shadow) bool { return s.Model.ID() == id && !s.over(at) })
}

func (d *Decision) line(event, format string, args ...any) {
	d.Lines = append(d.Lines, Line{false, event, fmt.Sprintf(format, args...)})
}

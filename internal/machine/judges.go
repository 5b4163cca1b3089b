package machine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/order"
	"github.com/flank-tcm/flank/internal/machine/statement"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// judges are the models that judge the tools of a machine, and what builds are to show them.
type judges struct {
	models   *candidates
	deployed func(layout string) *Deployment // what judges windows of a layout; nil: nothing
	settings *Settings
	state    *State
	alarms   *alarms
	decision *Decision // of the event that is being applied
	dirty    *dirty

	deployment *Deployment            // of the last window in order; nil: none
	form       *window.Form           // of the last window in order
	build      *Build                 // that runs
	retained   []retained             // windows that came since it began
	defects    map[string]bool        // ids of models that are not asked any more, see passOver
	unseen     map[string]FirstWindow // by model: the tool of which it cannot see the first windows
}

// unwatched returns why no model judges features of the machine; nil if one can.
func (x *judges) unwatched(d *Deployment, f *window.Features) *window.Mismatch {
	layout := f.Form.Layout()
	if d == nil {
		if other := x.deployed(""); other != nil { // for machines of its name, of another layout
			return window.Compare(layout, other.Champion.Layout)
		}
		return &window.Mismatch{What: NoModel, Text: fmt.Sprintf("no model is deployed for it with layout %s", cmp.Or(layout.Name(), layout.Fingerprint()))}
	}
	if err := x.models.use(d.Champion).covers(f.Form); err != nil {
		return &window.Mismatch{What: window.OtherFeatures, Text: err.Error()}
	}
	return nil
}

// setJudging adds a judging to a tool, in place of one of its model, and forgets what is not needed any more.
func (x *judges) setJudging(t *Tool, j *Judging) {
	for _, o := range t.Judgings {
		j.Number = max(j.Number, o.Number+1)
	}
	x.dirty.judging(t.Name, j.Model)
	t.Judgings = append(slices.DeleteFunc(t.Judgings, func(o *Judging) bool { return o.Model == j.Model }), j)
	own := 0
	for i := len(t.Judgings) - 1; i >= 0; i-- {
		o := t.Judgings[i]
		if o.Trial != nil || x.judgesForm(t, o) {
			continue
		}
		if own++; own > keptJudgings-1 {
			x.dropJudging(t, o)
		}
	}
}

// judgesForm reports whether o judged the last window of the form that its model takes. A model that takes other features
// of the same windows does not judge in its place.
func (x *judges) judgesForm(t *Tool, o *Judging) bool {
	if o.Judged == 0 {
		return o.Model == t.By
	}
	now := x.models.takes(o, x.form)
	return !slices.ContainsFunc(t.Judgings, func(p *Judging) bool {
		return p.Judged > o.Judged && p.Takes == o.Takes && (!now || x.models.takes(p, x.form))
	})
}

func (x *judges) dropJudging(t *Tool, j *Judging) {
	x.dirty.judging(t.Name, j.Model)
	t.Judgings = slices.DeleteFunc(t.Judgings, func(o *Judging) bool { return o == j })
}

// pick returns the judging that judges a window of t, and moves its alarm if the window moves anything.
// It is the only place where another model takes over. Entered: the tool has just been put in. The candidate is
// empty if no model can judge the window; builds is true if one will once a build has ended.
func (x *judges) pick(t *Tool, d *Deployment, w Window, p order.Place, entered bool) (c candidate, builds bool) {
	if d == nil {
		return c, false
	}
	champion := x.models.use(d.Champion)
	var next candidate
	now, most := x.models.judgedLast(t, w), x.models.mostSeen(t, w)
	fits := champion.covers(w.Form) == nil && (!x.defects[champion.id()] || most.Judging == nil) // alone it is to stop the machine, and not to be silent
	if fits {
		next = candidate{t.judging(champion.id()), champion}
	}
	if fits && next.Judging == nil && p.Moves() {
		next.Judging = x.begin(t, champion, w, most.Judging == nil)
	}
	if now.Judging == nil && next.Judging == nil {
		now = most
	}
	switch {
	case next.Judging != nil && (now.Judging == nil || now.Model == next.Model || entered && next.complete(t) || d.Now && (next.current(t) || t.PastGone && next.complete(t))):
		c = next
	default:
		c = now
	}
	if c.Judging == nil {
		return candidate{nil, champion}, fits
	}
	if p.Moves() {
		x.takeOver(t, c)
		c.Judged = t.Windows + 1
	}
	return c, false
}

// takeOver notes which model moves the alarm of a tool.
func (x *judges) takeOver(t *Tool, c candidate) {
	if t.By == c.Model {
		return
	}
	if t.By != "" && t == x.state.inSpindle() {
		x.decision.line("model_swapped", "%s tool %s: model %s judges instead of %s", event.ShortName(x.state.Machine), statement.Tool(t.Name), c.Model, t.By)
	}
	t.By = c.Model
	c.Trial = nil // it has stopped being a shadow
	x.dirty.tools[t.Name] = true
	x.dirty.judging(t.Name, c.Model)
}

// begin begins a judging by a model with a window of t: its first one, or seeded. In mid life it does so only if
// the tool's past cannot be found and no other model judges it; nil: a build is to find it.
func (x *judges) begin(t *Tool, by *Model, w Window, alone bool) *Judging {
	j := t.seed(by, alone)
	switch {
	case j != nil:
	case t.Windows == 0:
		j = newJudging(by, t.Name, t.First)
	case t.PastGone && alone:
		j = newJudging(by, t.Name, FirstWindow{w.EpochString(), w.Seq, w.At.UTC()})
		x.decision.warn("reference_rebuilt", "%s tool %s: none of its windows from before are in Kafka: model %s learns its reference from its next windows; "+
			"change the tool, or do not trust its verdicts until it is changed", event.ShortName(x.state.Machine), statement.Tool(t.Name), by.id())
	default:
		if t.PastGone {
			x.notBuilt(t, by.id(), gone, "model "+t.By+" goes on until another tool is put in")
		}
		return nil
	}
	x.setJudging(t, j)
	return j
}

// take asks the model about the next window of the tool, and learns from it.
func (x *judges) take(t *Tool, c candidate, w Window) (o opinion) {
	j, judge := c.Judging, c.by.judge
	before, points := j.Reference.Windows, len(j.Wear.Points)
	o.Verdict = judge.JudgeFeatures(w.Features, &j.Reference, &j.Memory)
	j.Wear.ChangeTool(t.Name)
	o.wear, o.asked = judge.Wear(&j.Wear, w.Hole)
	o.cutting = len(judge.Cutting()) > 0
	o.learnt = j.Reference.Windows > before
	if o.learnt || len(j.Wear.Points) != points {
		x.dirty.judging(t.Name, j.Model)
	}
	j.Windows++
	return o
}

// follow lets the judgings of t that do not judge a window learn from it: the champion's, which is to take
// over, and the judgings of shadows, which say what they think of it.
func (x *judges) follow(t *Tool, c candidate, d *Deployment, w Window, p order.Place, made *event.Result) {
	if d == nil {
		return
	}
	if id := d.Champion.ID(); id != c.id() && p.Moves() && !d.trial(id, w.At) { // a shadow learns below
		if next := (candidate{t.judging(id), x.models.use(d.Champion)}); next.Judging != nil && next.by.covers(w.Form) == nil {
			x.try(t, id, func() { x.take(t, next, w) })
		}
	}
	for _, s := range d.Shadows {
		if id := s.Model.ID(); !s.over(w.At) && id != c.id() && (p.Moves() || id != made.Model) {
			x.try(t, id, func() { x.shadow(t, s.Model, w, p, made) })
		}
	}
	if p.Moves() {
		x.endTrials(t, d, w)
	}
}

// shadow lets a shadow say what it thinks of a window. Without the tool's past it says nothing until a build
// has ended.
func (x *judges) shadow(t *Tool, of *model.Model, w Window, p order.Place, made *event.Result) {
	c := candidate{t.judging(of.ID()), x.models.use(of)}
	if c.by.covers(w.Form) != nil {
		return
	}
	if c.Judging == nil {
		if c.Judging = t.seed(c.by, false); c.Judging == nil && t.Windows == 0 {
			c.Judging = newJudging(c.by, t.Name, t.First)
		}
		if c.Judging == nil {
			return
		}
		if c.Trial = new(Alarm); p.Moves() {
			x.setJudging(t, c.Judging)
		}
	}
	if c.Trial == nil {
		if !p.Moves() { // it begins no trial
			former := *c.Judging
			c.Judging = &former
		}
		c.Trial = new(Alarm)
	}
	b := x.alarms.trial(t, c.Judging)
	r := *made
	r.Group, r.Model, r.Champion = b.group, c.Model, nil
	r.ID = resultID(&w.Window, r.Epoch, b.group)
	if made.Verdict != "" {
		r.Champion = &event.Champion{Model: made.Model, Verdict: made.Verdict, Incident: t.Alarm.Incident}
	}
	r.Verdict, r.Class, r.CuttingState, r.Unknown, r.Novelty, r.Sensors, r.Wear, r.WearUnknown, r.Ranges = "", "", "", "", 0, nil, nil, false, nil
	var alerts []event.Alert
	if p.Moves() {
		o := x.take(t, c, w)
		noteOpinion(&r, o, w)
		alerts = b.observe(o, &r, c.by, w.At)
	} else {
		noteOpinion(&r, c.look(t, w), w)
	}
	r.Alarm, r.Incident, r.Threshold = b.word(), b.alarm.Incident, x.alarms.set.Threshold
	x.decision.Shadows = append(x.decision.Shadows, ShadowResult{&r})
	b.publish(alerts)
}

// endTrials forgets what shadows know of a tool that could judge a window and are deployed no more.
func (x *judges) endTrials(t *Tool, d *Deployment, w Window) {
	t.Judgings = slices.DeleteFunc(t.Judgings, func(j *Judging) bool {
		if j.Trial == nil || d.trial(j.Model, w.At) {
			return false
		}
		if by := x.models.of(j.Model); by == nil || by.covers(w.Form) != nil {
			return false // it is of another layout
		}
		x.dirty.judging(t.Name, j.Model)
		if d.Champion.ID() == j.Model { // the trial has ended well
			j.Trial = nil
			return false
		}
		return true
	})
}

// try lets a model that does not judge a tool see a window of it. A defect ends what the model knows of the tool, and
// the machine goes on.
func (x *judges) try(t *Tool, id string, do func()) {
	if x.defects[id] {
		return
	}
	if bad := guard(do); bad != nil {
		x.passOver(t, id, bad)
	}
}

// passOver asks a model no more until models are deployed again or another owner takes the partition.
func (x *judges) passOver(t *Tool, id string, bad *defect) {
	if x.defects == nil {
		x.defects = make(map[string]bool)
	}
	x.defects[id] = true
	x.decision.Defects++
	if j := t.judging(id); j != nil {
		x.dropJudging(t, j)
	}
	x.decision.warn("model_stopped", "%s: model %s, which does not judge it yet, is not asked any more: %v. Update the monitor, report this line, and deploy the model again to try once more\n%s", event.ShortName(x.state.Machine), id, bad, bad.stack)
}

package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/order"
	"github.com/flank-tcm/flank/internal/machine/statement"
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

// setJudging adds a judging to a tool, in place of one of its model, and forgets what is not needed any more.
func (m *Machine) setJudging(t *Tool, j *Judging) {
	for _, o := range t.Judgings {
		j.Number = max(j.Number, o.Number+1)
	}
	m.dirty.judging(t.Name, j.Model)
	t.Judgings = append(slices.DeleteFunc(t.Judgings, func(o *Judging) bool { return o.Model == j.Model }), j)
	own := 0
	for i := len(t.Judgings) - 1; i >= 0; i-- {
		o := t.Judgings[i]
		if o.Trial != nil || m.judgesForm(t, o) {
			continue
		}
		if own++; own > keptJudgings-1 {
			m.dropJudging(t, o)
		}
	}
}

// judgesForm reports whether o judged the last window of the form that its model takes. A model that takes other features
// of the same windows does not judge in its place.
func (m *Machine) judgesForm(t *Tool, o *Judging) bool {
	if o.Judged == 0 {
		return o.Model == t.By
	}
	now := m.models.takes(o, m.form)
	return !slices.ContainsFunc(t.Judgings, func(p *Judging) bool {
		return p.Judged > o.Judged && p.Takes == o.Takes && (!now || m.models.takes(p, m.form))
	})
}

// takes reports whether the model of j takes features of a form. Of a model that is not known any more, it goes by layout and length.
func (x *Models) takes(j *Judging, form *window.Form) bool {
	if by := x.of(j.Model); by != nil {
		return by.covers(form) == nil
	}
	return form != nil && j.Takes == windowsOf(form.Layout(), form.Length())
}

func (m *Machine) dropJudging(t *Tool, j *Judging) {
	m.dirty.judging(t.Name, j.Model)
	t.Judgings = slices.DeleteFunc(t.Judgings, func(o *Judging) bool { return o == j })
}

// candidate is a judging with its model, which takes the features at hand.
type candidate struct {
	*Judging
	by *Model
}

// pick returns the judging that judges a window of t, and moves its alarm if the window moves anything.
// It is the only place where another model takes over. Entered: the tool has just been put in. The candidate is
// empty if no model can judge the window; builds is true if one will once a build has ended.
func (m *Machine) pick(t *Tool, d *Deployment, w Window, p order.Place, entered bool) (c candidate, builds bool) {
	if d == nil {
		return c, false
	}
	champion := m.models.use(d.Champion)
	var next candidate
	now, most := m.models.judgedLast(t, w), m.models.mostSeen(t, w)
	fits := champion.covers(w.Form) == nil && (!m.defects[champion.id()] || most.Judging == nil) // alone it is to stop the machine, and not to be silent
	if fits {
		next = candidate{t.judging(champion.id()), champion}
	}
	if fits && next.Judging == nil && p.Moves() {
		next.Judging = m.begin(t, champion, w, most.Judging == nil)
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
		m.takeOver(t, c)
		c.Judged = t.Windows + 1
	}
	return c, false
}

// judgedLast returns the judging that judged the last window of the form at hand: it goes on after windows of other forms. If its model
// is gone, no other one goes on.
func (x *Models) judgedLast(t *Tool, w Window) candidate {
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
func (x *Models) mostSeen(t *Tool, w Window) (most candidate) {
	for _, j := range t.Judgings {
		if by := x.of(j.Model); j.Trial == nil && by != nil && by.covers(w.Form) == nil && (most.Judging == nil || j.Windows > most.Windows) {
			most = candidate{j, by}
		}
	}
	return most
}

// takeOver notes which model moves the alarm of a tool.
func (m *Machine) takeOver(t *Tool, c candidate) {
	if t.By == c.Model {
		return
	}
	if t.By != "" && t == m.inSpindle() {
		m.decision.line("model_swapped", "%s tool %s: model %s judges instead of %s", event.ShortName(m.Machine), statement.Tool(t.Name), c.Model, t.By)
	}
	t.By = c.Model
	c.Trial = nil // it has stopped being a shadow
	m.dirty.tools[t.Name] = true
	m.dirty.judging(t.Name, c.Model)
}

// begin begins a judging by a model with a window of t: its first one, or seeded. In mid life it does so only if
// the tool's past cannot be found and no other model judges it; nil: a build is to find it.
func (m *Machine) begin(t *Tool, by *Model, w Window, alone bool) *Judging {
	j := t.seed(by, alone)
	switch {
	case j != nil:
	case t.Windows == 0:
		j = newJudging(by, t.Name, t.First)
	case t.PastGone && alone:
		j = newJudging(by, t.Name, FirstWindow{w.EpochString(), w.Seq, w.At.UTC()})
		m.decision.warn("reference_rebuilt", "%s tool %s: none of its windows from before are in Kafka: model %s learns its reference from its next windows; "+
			"change the tool, or do not trust its verdicts until it is changed", event.ShortName(m.Machine), statement.Tool(t.Name), by.id())
	default:
		if t.PastGone {
			m.notBuilt(t, by.id(), gone, "model "+t.By+" goes on until another tool is put in")
		}
		return nil
	}
	m.setJudging(t, j)
	return j
}

// opinion is what a judging says of a window.
type opinion struct {
	model.Verdict
	wear    trend.Estimate
	asked   bool // the model estimates wear, and was asked
	learnt  bool // the tool's reference was learnt from the window
	cutting bool // the machine was cutting
}

// take asks the model about the next window of the tool, and learns from it.
func (m *Machine) take(t *Tool, c candidate, w Window) (o opinion) {
	j, judge := c.Judging, c.by.judge
	before, points := j.Reference.Windows, len(j.Wear.Points)
	o.Verdict = judge.JudgeFeatures(w.Features, &j.Reference, &j.Memory)
	j.Wear.ChangeTool(t.Name)
	o.wear, o.asked = judge.Wear(&j.Wear, w.Hole)
	o.cutting = len(judge.Cutting()) > 0
	o.learnt = j.Reference.Windows > before
	if o.learnt || len(j.Wear.Points) != points {
		m.dirty.judging(t.Name, j.Model)
	}
	j.Windows++
	return o
}

// look asks the model about a window that moves nothing, and learns nothing.
func (c candidate) look(t *Tool, w Window) (o opinion) {
	ref := &model.Reference{Tool: t.Name}
	o.wear = trend.Unknown
	if c.Judging != nil && c.Reference.Ready(c.by.model.Reference) {
		ref = &c.Reference
	}
	o.Verdict = c.by.judge.JudgeFeatures(w.Features, ref, nil)
	return o
}

// follow lets the judgings of t that do not judge a window learn from it: the champion's, which is to take
// over, and the judgings of shadows, which say what they think of it.
func (m *Machine) follow(t *Tool, c candidate, d *Deployment, w Window, p order.Place, made *event.Result) {
	if d == nil {
		return
	}
	if id := d.Champion.ID(); id != c.id() && p.Moves() && !d.trial(id, w.At) { // a shadow learns below
		if next := (candidate{t.judging(id), m.models.use(d.Champion)}); next.Judging != nil && next.by.covers(w.Form) == nil {
			m.try(t, id, func() { m.take(t, next, w) })
		}
	}
	for _, s := range d.Shadows {
		if id := s.Model.ID(); !s.over(w.At) && id != c.id() && (p.Moves() || id != made.Model) {
			m.try(t, id, func() { m.shadow(t, s.Model, w, p, made) })
		}
	}
	if p.Moves() {
		m.endTrials(t, d, w)
	}
}

// id returns the id of the model that judges; empty if none does.
func (c candidate) id() string {
	if c.Judging == nil {
		return ""
	}
	return c.Model
}

// shadow lets a shadow say what it thinks of a window. Without the tool's past it says nothing until a build
// has ended.
func (m *Machine) shadow(t *Tool, of *model.Model, w Window, p order.Place, made *event.Result) {
	c := candidate{t.judging(of.ID()), m.models.use(of)}
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
			m.setJudging(t, c.Judging)
		}
	}
	if c.Trial == nil {
		if !p.Moves() { // it begins no trial
			former := *c.Judging
			c.Judging = &former
		}
		c.Trial = new(Alarm)
	}
	b := m.trial(t, c.Judging)
	r := *made
	r.Group, r.Model, r.Champion = b.group, c.Model, nil
	r.ID = resultID(&w.Window, b.group)
	if made.Verdict != "" {
		r.Champion = &event.Champion{Model: made.Model, Verdict: made.Verdict, Incident: t.Alarm.Incident}
	}
	r.Verdict, r.Class, r.CuttingState, r.Unknown, r.Novelty, r.Sensors, r.Wear, r.WearUnknown, r.Ranges = "", "", "", "", 0, nil, nil, false, nil
	var alerts []event.Alert
	if p.Moves() {
		o := m.take(t, c, w)
		noteOpinion(&r, o, w)
		alerts = m.observe(b, o, &r, c.by, w.At)
	} else {
		if m.between {
			noteOpinion(&r, c.by.lookBetween(t, w), w)
		} else {
			noteOpinion(&r, c.look(t, w), w)
		}
	}
	r.Alarm, r.Incident, r.Threshold = b.word(), b.alarm.Incident, m.alarms.Threshold
	m.decision.Shadows = append(m.decision.Shadows, ShadowResult{&r})
	m.decision.tellTrial(alerts)
}

// tellTrial publishes alerts of a shadow.
func (d *Decision) tellTrial(alerts []event.Alert) {
	for i := range alerts {
		d.Shadows = append(d.Shadows, ShadowAlert{&alerts[i]})
	}
}

// endTrials forgets what shadows know of a tool that could judge a window and are deployed no more.
func (m *Machine) endTrials(t *Tool, d *Deployment, w Window) {
	t.Judgings = slices.DeleteFunc(t.Judgings, func(j *Judging) bool {
		if j.Trial == nil || d.trial(j.Model, w.At) {
			return false
		}
		if by := m.models.of(j.Model); by == nil || by.covers(w.Form) != nil {
			return false // it is of another layout
		}
		m.dirty.judging(t.Name, j.Model)
		if d.Champion.ID() == j.Model { // the trial has ended well
			j.Trial = nil
			return false
		}
		return true
	})
}

// trial reports whether a model judges as a shadow at a time.
func (d *Deployment) trial(id string, at time.Time) bool {
	return d != nil && slices.ContainsFunc(d.Shadows, func(s Shadow) bool { return s.Model.ID() == id && !s.over(at) })
}

func (d *Decision) line(event, format string, args ...any) {
	d.Lines = append(d.Lines, Line{false, event, fmt.Sprintf(format, args...)})
}

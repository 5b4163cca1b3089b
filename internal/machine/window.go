package machine

import (
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/order"
	"github.com/flank-tcm/flank/internal/machine/statement"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// modelChanged is why a window is unknown while no judging of a model that takes it is there.
const modelChanged = "model_changed"

// apply places a window, moves the tools, and lets a model judge it. A window that came before has no
// result. One that comes late, and one of a second ingester, is judged and moves nothing.
func (w Window) apply(m *Machine) {
	if m.gone {
		m.gone, m.dirty.slow = false, true
	}
	d := m.judges.deployed(w.layout())
	if m.unjudged() {
		if why := m.judges.unwatched(d, w.Features); why != nil {
			m.decision.Unwatched = true
			m.refuseWindow(&Refusal{Machine: m.Machine, Epoch: w.EpochString(), Seq: w.Seq, Why: why}, w.At, w.Now)
			return
		}
	}
	m.alarms.expire(w.At)
	t := m.inSpindle()
	w.between = m.betweenTools(w)
	epoch := w.EpochString()
	s := m.Put(epoch, w.Seq, w.At, w.between || t != nil && t.is(w.Tool, w.ToolLife), m.settings.keptEpochs())
	r := &event.Result{
		ID: resultID(&w.Window, epoch, m.settings.Group), Group: m.settings.Group, Machine: m.Machine, Epoch: epoch, Seq: w.Seq,
		Tool: w.Tool, Hole: w.Hole, FeedRate: w.FeedRate, Programme: w.Programme, Material: w.Material, Start: w.Start, End: w.End(), Model: m.Model, Late: !s.Moves(),
	}
	if s.Place == order.Repeat {
		if m.decision.Repeat = true; t != nil && t.contradicts(r) {
			m.rivals(order.Rival, r)
		}
		return
	}
	m.dirty.head, m.dirty.slow = true, m.dirty.slow || s.Slow
	m.decision.Missing = s.Missing
	m.judges.retain(w)
	if s.Place != order.InOrder { // it may be of a tool without a name that was in before
		w.between = w.between && w.End().Sub(m.Newest).Abs() < order.Patience
	}
	switch {
	case w.between:
		m.judgeBetween(w, s.Place, d, r)
	case m.judge(w, s.Place, d, r):
		next, c := m.inSpindle(), ofWindow(r, "tool_back")
		c.now, c.cutting = w.At, next.Cutting
		m.alarms.announceAll(next, c)
	}
	if s.Place != order.Late {
		m.rivals(s.Place, r)
	}
	m.awake(w, r)
	if s.Place == order.InOrder && m.decision.Result != nil {
		m.accept(w.At, r)
		m.runs(r)
		m.unheard(w.At, r)
		r.Ledger, m.unshown = m.unshown, nil
	}
	b := m.alarms.inSpindle()
	r.Alarm, r.Threshold, r.Incident = b.word(), m.alarms.set.Threshold, b.alarm.Incident
}

// judge lets a model judge a window that stands at p, and its tool follow. It reports whether the tool has just been put
// in.
func (m *Machine) judge(w Window, p order.Place, d *Deployment, r *event.Result) (entered bool) {
	if p == order.InOrder {
		m.deploy(d)
		m.Layout, m.Newest, m.Unnamed, m.judges.form = w.layout(), w.End(), 0, w.Form
		entered = m.tools.changeTool(w, r)
	}
	t := m.toolOf(w)
	if p.Moves() && t.First.Epoch == "" && t.Windows == 0 {
		t.First = FirstWindow{r.Epoch, r.Seq, w.At.UTC()}
		m.dirty.tools[t.Name] = true
	}
	c, builds := m.judges.pick(t, d, w, p, entered)
	if c.Judging == nil && (c.by == nil || c.by.covers(w.Form) != nil) {
		m.notJudged(w, p, d, t)
		return entered
	}
	if p == order.Provisional && m.indexTool(t.Name) < 0 { // a new life of a tool that is remembered begins when its epoch leads
		m.tools.park(t)
	}
	m.decision.Result = r
	r.Model = c.by.id()
	if slices.Contains(m.Tools, t) { // not a tool of the same name that was declared new, or was before
		if r.ToolLife = t.Life; !r.Late { // a late one may be from before a command
			r.ToolLife = t.life()
		}
	}
	var o opinion
	switch {
	case c.Judging == nil || !p.Moves():
		o = c.look(t, w)
		if builds && t.Windows > 0 {
			o.withhold(modelChanged)
		}
	default:
		o = m.judges.take(t, c, w)
		if o.cutting {
			t.addCuttingTime(&w.Window)
		}
	}
	if p == order.InOrder {
		m.Model = r.Model
	}
	noteOpinion(r, o, w)
	if p.Moves() {
		t.remember(r, w.Offset)
		b := m.alarms.of(t)
		alerts := b.observe(o, r, c.by, w.At)
		m.scheduleEvidence(m.settings, t, alerts, r)
		b.publish(alerts)
	}
	if p == order.InOrder {
		m.advise(c, o, w, r)
		m.drifts(t, c, r)
		m.modelAdvisory(t, c, builds, r)
	}
	m.judges.follow(t, c, d, w, p, r)
	m.moved(t, p, w)
	return entered
}

// advise moves the notices of sensors, and of windows without a verdict, by what a model says of a window in order.
func (m *Machine) advise(c candidate, o opinion, w Window, r *event.Result) {
	(&sensing{&m.Notices, m.decision, o.Faults, c.by.byFeatures(o.Verdict), w.Form.Layout(), &w.Window, r}).advise()
	m.countUnknown(c, r)
}

// betweenTools reports whether a window names no tool, and windows have named none for less than a minute, by their dates, since the tool
// in the spindle was named: controls name none between two cycles, and for a moment in mid cut.
func (s *State) betweenTools(w Window) bool {
	t := s.inSpindle()
	return t != nil && t.Name != "" && w.Tool == "" && w.End().Sub(s.unnamedSince(w)).Abs() < order.Patience
}

// unnamedSince returns since when windows name no tool, of which w is one.
func (s *State) unnamedSince(w Window) time.Time {
	if s.Unnamed > 0 {
		return s.Newest.Add(-s.Unnamed)
	}
	return w.Start
}

// judgeBetween lets a model look at a window between tools, which moves nothing: it says nothing of the tool in the spindle.
func (m *Machine) judgeBetween(w Window, p order.Place, d *Deployment, r *event.Result) {
	t := m.inSpindle()
	if p == order.InOrder {
		m.Newest, m.Unnamed = w.End(), w.End().Sub(m.unnamedSince(w))
	}
	c, _ := m.judges.pick(t, d, w, order.Late, false)
	if c.by == nil || c.by.covers(w.Form) != nil {
		if m.decision.Unwatched = true; p == order.InOrder {
			m.refuseUnjudged(w, d)
		}
		return
	}
	m.decision.Result, r.Model = r, c.by.id()
	o := c.look(t, w)
	noteOpinion(r, o, w)
	if p == order.InOrder {
		m.advise(candidate{by: c.by}, o, w, r)
	}
	m.judges.follow(t, candidate{}, d, w, order.Late, r)
}

// withhold makes an opinion unknown, but for what it says of the machine and its sensors.
func (o *opinion) withhold(why model.UnknownReason) {
	if o.Outcome != model.NotCutting && o.Outcome != model.SensorFault {
		o.Verdict = model.Verdict{Outcome: model.Unknown, Reason: why, Faults: o.Faults, State: o.State}
	}
}

// moved counts a window that moved a tool. A model that does not take its form has not missed it.
func (m *Machine) moved(t *Tool, p order.Place, w Window) {
	if !p.Moves() {
		return
	}
	t.Windows++
	for _, j := range t.Judgings {
		if by := m.judges.models.of(j.Model); by != nil && by.covers(w.Form) != nil {
			j.Windows++
		}
	}
	if t.Moved.Add(w.EpochString(), w.Seq) {
		m.dirty.tools[t.Name] = true
	}
	if p == order.Provisional {
		m.dirty.tool(t)
	}
}

// notJudged counts a window that no model judges. The spindle and the alarms have moved all the same.
func (m *Machine) notJudged(w Window, p order.Place, d *Deployment, t *Tool) {
	m.decision.Unwatched = true
	if p != order.InOrder {
		if t.Windows == 0 {
			t.First = FirstWindow{} // it has not moved the tool
		}
		return
	}
	m.moved(t, p, w)
	m.refuseUnjudged(w, d)
}

// refuseUnjudged advises that no model judges a window in order.
func (m *Machine) refuseUnjudged(w Window, d *Deployment) {
	refusal := w.refused
	if refusal == nil {
		refusal = &Refusal{Machine: m.Machine, Epoch: w.EpochString(), Seq: w.Seq, Why: m.judges.unwatched(d, w.Features)}
	}
	m.refuseWindow(refusal, w.At, w.Now)
}

// resultID names the result of a window. It differs from the window's own id, since both
// are events of one source, and names the group, since another one judges for itself.
func resultID(w *window.Window, epoch, group string) string {
	return event.WindowID(w.Machine, epoch, w.Seq) + "/" + group
}

// noteOpinion puts what a model says of a window into its result.
func noteOpinion(r *event.Result, o opinion, w Window) {
	statement.Verdict(r, o.Verdict, w.Form.Layout())
	r.Wear, r.WearUnknown = statement.Wear(o.wear), o.asked && !o.wear.Known()
	if o.learnt {
		r.Ranges = statement.Ranges(w.Form, w.Values, o.Faults)
	}
}

// remember adds the window of r, which lies at an offset, to the last ones of its tool.
// They are of one epoch: those before are not part of its trace.
func (t *Tool) remember(r *event.Result, offset event.Offset) {
	if t.Epoch != r.Epoch {
		t.Epoch, t.Trace = r.Epoch, nil
	}
	t.Trace = slices.Delete(t.Trace, 0, max(0, len(t.Trace)-event.MaxTrace+1))
	t.Trace = append(t.Trace, event.TracePoint{Point: event.Point{Seq: r.Seq, End: r.End, Score: r.Score, Verdict: r.Verdict}, Offset: offset})
}

// contradicts reports whether a window that came under the same number is another one than r's, as two ingesters with copies of one spool
// send it. The last windows are known.
func (t *Tool) contradicts(r *event.Result) bool {
	return t.Epoch == r.Epoch && slices.ContainsFunc(t.Trace, func(p event.TracePoint) bool { return p.Seq == r.Seq && !p.End.Equal(r.End) })
}

// addCuttingTime counts the cutting time of a window. Windows that overlap do not cut
// twice.
func (t *Tool) addCuttingTime(w *window.Window) {
	from := w.Start
	if t.CutUntil.After(from) && t.CutUntil.Before(w.End()) {
		from = t.CutUntil
	}
	t.CutUntil = w.End()
	t.Cutting += w.End().Sub(from)
}

package machine

import (
	"slices"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/window"
)

// modelChanged is why a window is unknown while the tool's reference is rebuilt.
const modelChanged = "model_changed"

// apply judges a window and moves the tool's alarm. A window that was judged before has no
// result. One that comes late, and one of a second ingester, is judged and moves nothing.
func (w Window) apply(m *Machine) {
	if m.gone {
		m.gone, m.dirty.slow = false, true
	}
	p, missing := m.place(w)
	d := m.decision
	if p == repeat {
		d.Repeat = true
		return
	}
	d.Missing = missing
	r := &event.Result{
		ID: resultID(&w.Window, m.settings.Group), Group: m.settings.Group, Machine: m.Machine, Epoch: w.EpochString(), Seq: w.Seq,
		Tool: w.Tool, Hole: w.Hole, FeedRate: w.FeedRate, Programme: w.Programme, Material: w.Material, Start: w.Start, End: w.End(), Model: m.Model, Late: p == late || p == rival,
	}
	d.Result = r
	t := m.toolFor(w, p, r)
	r.Model = m.Model
	if slices.Contains(m.Tools, t) { // not a tool of the same name that was declared new, or was before
		r.ToolLife = t.Life
	}
	if t.First.Epoch == "" && len(t.Trace) == 0 && t.Reference.Windows == 0 && (p == inOrder || p == provisional) {
		t.First = FirstWindow{r.Epoch, r.Seq, w.At.UTC()}
		m.dirty.tools[t.Name] = true
	}
	v := m.judge(w, p, t, r)
	switch p {
	case inOrder:
		m.remember(t, r, w.Offset)
		m.observe(t, v, r)
		m.senses(v.Faults, m.model.model.Layout, r)
		m.countUnknown(t, r)
		m.drifts(t, r)
		m.modelAdvisory(t, r)
	case provisional:
		m.remember(t, r, w.Offset)
		m.observeParked(t, v, r)
		m.dirty.tools[t.Name] = true
	}
	if p != late {
		m.rivals(p, r)
	}
	m.retain(w)
	m.awake(w, r)
	m.accept(w.At, r)
	r.Alarm, r.Incident, r.Threshold = m.alarm.State().Word(), m.incident(), m.alarm.Settings().Threshold
}

// resultID names the result of a window. It differs from the window's own id, since both
// are events of one source, and names the group, since another one judges for itself.
func resultID(w *window.Window, group string) string {
	return event.WindowID(w.Machine, w.EpochString(), w.Seq) + "/" + group
}

// toolFor returns the tool of a window that stands at p, and puts it into the spindle if it
// is in order.
func (m *Machine) toolFor(w Window, p position, r *event.Result) *Tool {
	if p == inOrder {
		m.changeTool(w, r)
		return m.inSpindle()
	}
	if i := m.indexTool(w.Tool); i >= 0 {
		t := m.Tools[i]
		if !t.otherLife(w.ToolLife) {
			return t
		}
	}
	t := newTool(w.Tool, w.ToolLife)
	if p == provisional && m.inSpindle().Name != t.Name { // a new life of the tool in the spindle begins when its epoch takes over
		m.park(t)
	}
	return t
}

// judge asks the model about a window of t and notes what it says in r. The verdict is
// valid until the next window.
func (m *Machine) judge(w Window, p position, t *Tool, r *event.Result) model.Verdict {
	judge := m.model.judge
	ref, memory := &t.Reference, &t.Cycle
	if p == late || p == rival {
		memory = nil
		if !ref.Ready(m.model.model.Reference) {
			ref = new(model.Reference) // it is not learnt from windows out of order
		}
	}
	if t.Rebuild {
		ref = new(model.Reference)
	}
	before := ref.Windows
	v := judge.JudgeFeatures(w.Features, ref, memory)
	if ref == &t.Reference && ref.Windows != before {
		if before == 0 {
			t.From = w.Offset
		}
		t.Features = m.model.fingerprint()
		m.dirty.tools[t.Name] = true
	}
	if ref == &t.Reference && v.Outcome == model.Learning && ref.Windows > before {
		r.Ranges = rangesOf(w.Form, w.Values, v.Faults)
	}
	if t.Rebuild && (v.Outcome == model.Learning || v.Outcome == model.Healthy || v.Outcome == model.Faulty || v.Outcome == model.Unknown) {
		v = model.Verdict{Outcome: model.Unknown, Reason: modelChanged, Faults: v.Faults, State: v.State}
	}
	if (p == inOrder || p == provisional) && !t.Rebuild {
		m.judgeWear(w, t, r)
	}
	noteVerdict(r, v, m.model.model.Layout)
	return v
}

// judgeWear asks the model about the wear of t, and counts its cutting time.
func (m *Machine) judgeWear(w Window, t *Tool, r *event.Result) {
	judge := m.model.judge
	points := len(t.Wear.Points)
	t.Wear.ChangeTool(t.Name)
	e, asked := judge.Wear(&t.Wear, w.Hole)
	r.Wear, r.WearUnknown = wearOf(e), asked && !e.Known()
	if len(t.Wear.Points) != points {
		m.dirty.tools[t.Name] = true
	}
	if len(judge.Cutting()) > 0 {
		t.addCuttingTime(&w.Window)
	}
}

// noteVerdict puts what a model says of a window of a layout into the window's result.
func noteVerdict(r *event.Result, v model.Verdict, layout *signal.Layout) {
	if r.Verdict = event.Verdict(v.Outcome); v.Class != string(v.Outcome) {
		r.Class = v.Class
	}
	if v.State != cycle.Unknown {
		r.CuttingState = v.State.String()
	}
	r.Unknown, r.Novelty = string(v.Reason), v.Novelty
	r.Posterior = slices.Clone(v.Posterior)
	r.Score, r.ReferenceLen = v.Score, v.Learnt
	for i, q := range v.Faults {
		if q != 0 {
			r.Sensors = append(r.Sensors, event.Sensor{Channel: layout.Channels()[i].Name, Flags: flagNames(q)})
		}
	}
}

// observe moves the alarm of the tool in the spindle by a verdict.
func (m *Machine) observe(t *Tool, v model.Verdict, r *event.Result) {
	if v.Outcome != model.Healthy && v.Outcome != model.Faulty {
		return
	}
	was := m.alarm.State()
	c := m.alarm.Observe(m.alarm.IsFaulty(v.Score), r.Start, r.End)
	if c == alarm.None {
		m.nameIncident(r.ID)
		return
	}
	why := ofWindow(r, "recovered")
	why.cutting = t.Cutting
	if c == alarm.Raised || c == alarm.Reactivated {
		why.reasons, why.trace = reasonsOf(m.model.judge.Explain(&t.Reference), m.model.judge, m.model.model.Layout), t.Trace.points()
	}
	alerts := m.report([]alarm.Change{c}, was, why)
	m.scheduleEvidence(t, alerts, r)
	m.decision.Alerts = append(m.decision.Alerts, alerts...)
}

// observeParked moves the alarm of a tool that is not in the spindle. What it does is
// published when the tool is put in.
func (m *Machine) observeParked(t *Tool, v model.Verdict, r *event.Result) {
	if v.Outcome != model.Healthy && v.Outcome != model.Faulty {
		return
	}
	a, err := alarm.New(m.alarmed)
	if err == nil {
		err = a.Restore(t.Alarm)
	}
	if err != nil {
		panic("machine: alarm of a tool: " + err.Error()) // both were checked before
	}
	a.Observe(a.IsFaulty(v.Score), r.Start, r.End)
	t.Alarm = a.State()
}

// remember adds the window of r, which lies at an offset, to the last ones of its tool.
// They are of one epoch: those before are not part of its trace.
func (m *Machine) remember(t *Tool, r *event.Result, offset int64) {
	if t.Epoch != r.Epoch {
		t.Epoch, t.Trace = r.Epoch, nil
	}
	if n := len(t.Trace) - event.MaxTrace + 1; n > 0 {
		t.Trace = slices.Delete(t.Trace, 0, n)
	}
	t.Trace = append(t.Trace, TracePoint{event.Point{Seq: r.Seq, End: r.End, Score: r.Score, Verdict: r.Verdict}, offset})
}

// points returns the trace as an alert has it.
func (t Trace) points() []event.Point {
	points := make([]event.Point, len(t))
	for i, p := range t {
		points[i] = p.Point
	}
	return points
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

// flagNames returns the names of the flags in q, and "unknown" if a newer
// ingester sent only flags that this monitor has no name for.
func flagNames(q signal.Quality) []string {
	if names := q.Names(); len(names) > 0 {
		return names
	}
	return []string{"unknown"}
}

package oracle

import (
	"slices"
	"time"
)

// Model is a model as far as the oracle needs it.
type Model struct {
	ID     string
	Print  string // models of one print can use each other's references
	Learns int    // windows of a reference
	Gone   bool   // monitors do not know it any more
	Knows  bool   // it needs to have seen no window of a tool to judge it

	// Covers reports whether the model can judge a window; nil: each of its layout.
	Covers func(*Window) bool

	// Judge returns what the model says of a window, by the windows that the reference was learnt
	// from, and the windows that the model has judged before, nil if it is to learn nothing. The outcome "learning"
	// makes the window one of the reference.
	Judge func(learnt, seen []*Window, w *Window) Verdict

	Drift  *Drift                           // nil: drift is not looked for
	Center func(learnt []*Window) []float32 // of the reference
}

// Verdict is what a model says of a window.
type Verdict struct {
	Outcome string // in the words of results
	Reason  string // why it is unknown
	Score   float64
}

// Given is a model whose verdict is the Value of the window.
var Given = &Model{ID: "given", Judge: func(_, _ []*Window, w *Window) Verdict { return w.Value.(Verdict) }}

// takes reports whether a window has the form that the model needs.
func (m *Model) takes(w *Window) bool { return m.Covers == nil || m.Covers(w) }

// covers reports whether monitors can let the model judge a window.
func (m *Model) covers(w *Window) bool { return !m.Gone && m.takes(w) }

// judging is what one model knows of one tool.
type judging struct {
	model  *Model
	first  *Window   // that it has judged, or that the one had from which it has its reference
	seen   []*Window // that it has judged
	learnt []*Window // of the reference
	trial  alarm     // that a shadow would have

	outcomes []string // of windows that moved the tool in the spindle, as far as they were judged
}

func (j *judging) settled() bool { return len(j.learnt) >= j.model.Learns }

// complete reports whether it has seen the tool's first window, so that its reference is of a new tool.
func (j *judging) complete(t *tool) bool {
	return !t.used && len(t.windows) > 0 && j.first == t.windows[0]
}

// current reports whether it has seen every window before w that it can judge.
func (j *judging) current(t *tool, w *Window) bool {
	n := 0
	for _, of := range t.windows {
		if of != w && j.model.covers(of) {
			n++
		}
	}
	return len(j.seen) == n
}

// take lets the judging judge a window, and learn from it.
func (j *judging) take(w *Window) Verdict {
	if j.first == nil {
		j.first = w
	}
	if j.seen == nil {
		j.seen = []*Window{}
	}
	v := j.model.Judge(j.learnt, j.seen, w)
	j.seen = append(j.seen, w)
	if v.Outcome == "learning" {
		j.learnt = append(j.learnt, w)
	}
	return v
}

// look judges a window and learns nothing.
func (j *judging) look(w *Window) Verdict {
	if j.settled() {
		return j.model.Judge(j.learnt, nil, w)
	}
	return j.model.Judge(nil, nil, w)
}

// of returns what a model knows of the tool; nil if nothing.
func (t *tool) of(by *Model) *judging {
	for _, j := range t.judgings {
		if j.model.ID == by.ID {
			return j
		}
	}
	return nil
}

// candidates returns the judgings that may move the alarm by a window. A shadow's judging may not.
func (t *tool) candidates(w *Window, d *Deployment) (all []*judging) {
	for _, j := range t.judgings {
		if j.model.covers(w) && (j.trial.shadow == "" || d != nil && j.model.ID == d.Champion.ID) {
			all = append(all, j)
		}
	}
	return all
}

// before returns the model that judged the last window of this form.
func (t *tool) before(w *Window) *Model {
	for _, by := range slices.Backward(t.by) {
		if by.takes(w) {
			return by
		}
	}
	return nil
}

// begin lets a model know the tool if it can: from the tool's first window on, with the
// reference of another model, or from this window on if no model knows it and its past is gone. The
// trial is a shadow's, which begins with no reference of a used tool.
func (t *tool) begin(by *Model, w *Window, d *Deployment, trial alarm) {
	if !by.covers(w) || t.of(by) != nil {
		return
	}
	alone := len(t.candidates(w, d)) == 0 && by == d.Champion
	for _, j := range t.judgings {
		if j.model.Print == by.Print && j.settled() && len(j.learnt) > 0 && (j.complete(t) || alone) {
			t.add(&judging{model: by, first: j.first, learnt: slices.Clone(j.learnt), trial: trial})
			return
		}
	}
	if t.windows[0] == w || by.Knows || t.pastGone && alone {
		t.add(&judging{model: by, trial: trial})
	}
}

// keptJudgings is how many models know a tool without judging it, next to shadows: the ones that
// began last.
const keptJudgings = 2

// add adds what a model knows of the tool, in place of what it knew before.
func (t *tool) add(j *judging) {
	t.judgings = append(slices.DeleteFunc(t.judgings, func(o *judging) bool { return o.model.ID == j.model.ID }), j)
	others := 0
	for i := len(t.judgings) - 1; i >= 0; i-- {
		o := t.judgings[i]
		if o.trial.shadow != "" || t.judges(o) {
			continue
		}
		if others++; others > keptJudgings {
			t.judgings = slices.Delete(t.judgings, i, i+1)
		}
	}
}

// judges reports whether a judging has moved the alarm by the last window of its form.
func (t *tool) judges(j *judging) bool {
	for _, w := range slices.Backward(t.windows) {
		if by := t.before(w); j.model.takes(w) && by != nil {
			return by.ID == j.model.ID
		}
	}
	return false
}

// pick returns the judging that moves the alarm by a window of a tool; nil if none can.
func (t *tool) pick(w *Window, d *Deployment, entered bool) *judging {
	all := t.candidates(w, d)
	if len(all) == 0 {
		return nil
	}
	next, before := t.of(d.Champion), t.before(w)
	if !slices.Contains(all, next) {
		next = nil
	}
	var now *judging
	if before != nil && slices.Contains(all, t.of(before)) { // it has not become a shadow since
		now = t.of(before)
	}
	switch {
	case next != nil && (now == nil || now == next || next.complete(t) && (entered || d.Now && (next.current(t, w) || t.pastGone))):
		return next
	case now != nil:
		return now
	}
	most := all[0]
	for _, j := range all {
		if len(j.seen) > len(most.seen) {
			most = j
		}
	}
	return most
}

// judgeable reports whether a window of a tool gets a result.
func (t *tool) judgeable(w *Window, d *Deployment) bool {
	return d != nil && (d.Champion.covers(w) || len(t.candidates(w, d)) > 0)
}

// without returns what a model says of a window of a tool whose past it has not seen, or of no tool.
func without(by *Model, w *Window, reason string) Verdict {
	switch v := by.Judge(nil, nil, w); v.Outcome {
	case "sensor_fault", "not_cutting":
		return v
	}
	return Verdict{Outcome: "unknown", Reason: reason}
}

// judge judges a window that moves a tool, and moves the alarm by it. It returns nil if no model
// can.
func (m *Machine) judge(t *tool, w *Window, d *Deployment, entered bool) *Result {
	if !t.judgeable(w, d) {
		return nil
	}
	t.begin(d.Champion, w, d, alarm{})
	j := t.pick(w, d, entered)
	if j == nil {
		m.out.Result = &Result{Model: d.Champion.ID, Verdict: without(d.Champion, w, ModelChanged)}
	} else {
		t.by = append(t.by, j.model)
		j.trial = alarm{}
		v := j.take(w)
		m.count(t, &t.alarm, w, v)
		m.out.Result = &Result{Model: j.model.ID, Verdict: v}
	}
	if next := t.of(d.Champion); next != nil && next != j && next.model.covers(w) && !d.shadows(next.model, w.At) {
		next.take(w)
	}
	for _, s := range d.Shadows {
		if !s.over(w.At) && s.covers(w) && (j == nil || j.model.ID != s.ID) {
			m.try(t, s.Model, w, d)
		}
	}
	t.endTrials(w, d)
	return m.out.Result
}

// try lets a shadow judge a window that moves a tool.
func (m *Machine) try(t *tool, by *Model, w *Window, d *Deployment) {
	t.begin(by, w, d, alarm{shadow: by.ID})
	j := t.of(by)
	if j == nil {
		return
	}
	j.trial.shadow = by.ID
	v := j.take(w)
	m.count(t, &j.trial, w, v)
	m.out.Trials = append(m.out.Trials, Result{Model: by.ID, Verdict: v, Alarm: j.trial.word(), Incident: j.trial.incident})
}

// shadows reports whether a model is a shadow at a time.
func (d *Deployment) shadows(by *Model, at time.Time) bool {
	return slices.ContainsFunc(d.Shadows, func(s Shadow) bool { return s.ID == by.ID && !s.over(at) })
}

// endTrials lets go of what shadows know that could judge a window and do not any more.
func (t *tool) endTrials(w *Window, d *Deployment) {
	t.judgings = slices.DeleteFunc(t.judgings, func(j *judging) bool {
		if j.trial.shadow == "" || !j.model.covers(w) || d.shadows(j.model, w.At) {
			return false
		}
		j.trial = alarm{}
		return j.model.ID != d.Champion.ID
	})
}

// look judges a window that moves nothing.
func (m *Machine) look(w *Window, d *Deployment) {
	t := m.toolOf(w)
	if !t.judgeable(w, d) {
		return
	}
	known := slices.Contains(m.tools, t) && len(t.windows) > 0
	r := &Result{Late: true, Model: d.Champion.ID}
	m.out.Result = r
	if !known {
		r.Verdict = d.Champion.Judge(nil, nil, w)
	} else if j := t.pick(w, d, false); j != nil {
		r.Model, r.Verdict = j.model.ID, j.look(w)
	} else {
		r.Verdict = without(d.Champion, w, ModelChanged)
	}
	m.lookTrials(t, w, d, func(j *judging) Verdict { return j.look(w) })
}

// lookTrials lets shadows look at a window that moves nothing.
func (m *answers) lookTrials(t *tool, w *Window, d *Deployment, verdict func(*judging) Verdict) {
	r := m.out.Result
	for _, s := range d.Shadows {
		if s.over(w.At) || s.ID == r.Model {
			continue
		}
		as := *t // as if the window moved it
		as.windows, as.judgings = append(slices.Clone(t.windows), w), slices.Clone(t.judgings)
		as.begin(s.Model, w, d, alarm{shadow: s.ID})
		if j := as.of(s.Model); j != nil && s.covers(w) {
			m.out.Trials = append(m.out.Trials, Result{Model: s.ID, Verdict: verdict(j), Late: r.Late, Alarm: j.trial.word(), Incident: j.trial.incident})
		}
	}
}

// modelAdvisories says whether the tool in the spindle waits for a model that has seen its past, or is
// judged by one that has not seen it new.
func (m *answers) modelAdvisories(t *tool, w *Window, d *Deployment) {
	r := m.out.Result
	if r == nil {
		return
	}
	waits, used := true, false
	for _, j := range t.judgings {
		if j.model.ID == r.Model && slices.Contains(j.seen, w) {
			waits, used = false, !j.complete(t)
		}
	}
	m.when(ModelChanged, waits)
	m.when(UsedReference, used)
}

// when raises an advisory if a condition is there, and clears it if it is over.
func (m *answers) when(kind string, there bool) {
	if there {
		m.raise(kind)
	} else {
		m.clear(kind)
	}
}

// Job is a model that is to see the past of a tool.
type Job struct {
	Model    string // id
	Tool     string
	First    *Window   // of the tool
	Settings *Settings // of the alarm, when the model began; it counts by them; nil: the present ones
}

// Due returns the models that are to see the past of the tool in the spindle, so that they can
// judge it, or judge it sooner. One that does not take the tool's first window cannot know the tool as new: it is only to see
// what it takes if no other model judges.
func (m *Machine) Due() (all []Job) {
	if len(m.tools) == 0 || len(m.spindle().windows) == 0 {
		return nil
	}
	t := m.spindle()
	w := t.windows[len(t.windows)-1]
	d := m.deployment(w.Layout)
	if d == nil || t.used {
		return nil
	}
	due := func(by *Model) {
		if slices.Contains(t.vain, by.ID) {
			return
		}
		all = append(all, Job{Model: by.ID, Tool: t.name, First: t.windows[0]})
	}
	if by, before := d.Champion, t.before(w); by.covers(w) && (before == nil || before.ID != by.ID) {
		if j := t.of(by); j == nil && (by.covers(t.windows[0]) || len(t.candidates(w, d)) == 0) || j != nil && d.Now && j.complete(t) && !j.current(t, nil) {
			due(by)
		}
	}
	for _, s := range d.Shadows {
		if s.covers(w) && !s.over(m.now) && s.ID != d.Champion.ID && s.covers(t.windows[0]) && t.of(s.Model) == nil {
			due(s.Model)
		}
	}
	return all
}

// Built says that a model has seen the past of a tool: the windows that Kafka still has
// of it, in Kafka's order, and the windows that came meanwhile. It reports whether what the model
// knows is used. Trials end when Kafka got the last window of the epoch that leads: a window that comes again ends none.
func (m *Machine) Built(by *Model, job Job, seen []*Window) (out Outcome, used bool) {
	t := m.named(job.Tool)
	if t == nil || len(t.windows) == 0 || t.windows[0] != job.First {
		return out, false // another tool has its name
	}
	last := t.windows[len(t.windows)-1]
	now := m.epochs[len(m.epochs)-1].last
	d := m.deploymentOf(by, seen)
	judges := t.before(last)
	shadow := d != nil && d.shadows(by, now) && by.ID != d.Champion.ID && (judges == nil || judges.ID != by.ID)
	m.out, m.now = &Outcome{}, now
	j := &judging{model: by}
	m.counts = job.Settings
	for _, w := range seen {
		if by.covers(w) {
			v := j.take(w)
			m.count(&tool{}, &j.trial, w, v)
		}
	}
	m.counts = nil
	if slices.Contains(j.seen, job.First) {
		j.first = job.First
	}
	t.pastGone = t.pastGone || !slices.Contains(seen, job.First)
	before := t.of(by)
	better := j.complete(t) && (before == nil || len(j.seen) >= len(before.seen))
	alone := !shadow && before == nil && len(j.seen) > 0 && len(t.candidates(j.seen[len(j.seen)-1], d)) == 0
	if d == nil || by.ID != d.Champion.ID && !d.shadows(by, now) || !better && !alone {
		if slices.Contains(seen, job.First) {
			t.vain = append(t.vain, by.ID) // it would find the same again
		}
		return m.finish(), false
	}
	switch {
	case before != nil && before.trial.shadow != "":
		j.trial = before.trial
	case shadow:
		j.trial.shadow = by.ID
	default:
		j.trial = alarm{}
	}
	t.add(j)
	return m.finish(), true
}

// deploymentOf returns the deployment for the windows that a model takes, of those that it has seen; nil: none.
func (m *Machine) deploymentOf(by *Model, seen []*Window) *Deployment {
	for _, w := range seen {
		if by.takes(w) {
			return m.deployment(w.Layout)
		}
	}
	return nil
}

// Windows returns the windows that moved a tool; nil if it is not remembered.
func (m *magazine) Windows(tool string) []*Window {
	if t := m.named(tool); t != nil {
		return t.windows
	}
	return nil
}

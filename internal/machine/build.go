package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/order"
	"github.com/flank-tcm/flank/internal/machine/statement"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// BuildJob is the past of the tool in the spindle that a model is to see, so that it can judge the tool.
type BuildJob struct {
	Machine    string
	Tool, Life string
	First      FirstWindow
	Model      string // id
}

// retained is a window that came while a build ran.
type retained struct {
	features window.Features
	at, now  time.Time
}

// Build shows a model the past of a tool: features of the windows that moved the tool, in the order in
// which they lie in Kafka. It belongs to one goroutine.
type Build struct {
	job     BuildJob
	by      *model.Model
	m       *Machine     // that asks the model, and has no windows of its own
	form    *window.Form // of the last window that the model has seen; before, the one that came when the build was due
	t       *Tool        // as far as the model has seen it
	j       *Judging
	moved   order.Windows // the tool's windows when the build was due
	shown   order.Windows
	whole   bool // the tool's first window was among them
	Windows int  // that the model has seen
	Failed  bool // set it if the features cannot be read; the build is run again
	defect  *defect
}

// BuildDue returns a build that is to be run; nil if there is none. What comes of
// the machine from now on is retained for it. Call Observe with the features that lie
// in Kafka by now, then give it back as a [Reply].
func (o *Owner) BuildDue(now time.Time) (b *Build) {
	at, _ := slices.BinarySearch(o.names, o.built+"\x00")
	for _, name := range slices.Concat(o.names[at:], o.names[:at]) { // behind the last one, so that each has its turn
		if m := o.Machine(name); b == nil && m != nil && m.judges.build == nil && m.stopped == "" {
			if b = m.judges.startBuild(now); b != nil {
				o.built = name
			}
		}
	}
	return b
}

// wants returns the models that are to know the tool in the spindle: the champion, and shadows.
func (x *judges) wants() (models []*model.Model) {
	d := x.deployment
	if d == nil {
		return nil
	}
	models = []*model.Model{d.Champion}
	for _, s := range d.Shadows {
		if !s.over(x.state.lastAt()) {
			models = append(models, s.Model)
		}
	}
	return models
}

// helps reports whether a build of the tool may find something for a model.
func (x *judges) helps(t *Tool, by *model.Model) bool {
	id := by.ID()
	if j := t.judging(id); j != nil && (j.current(t) || !j.complete(t)) || x.defects[id] || x.models.use(by).covers(x.form) != nil {
		return false
	}
	again := x.unseen[id].is(t.First) // it would find the same
	return !again || id == x.deployment.Champion.ID() && !x.models.anotherKnows(t, id, x.form)
}

// startBuild returns a build of the tool in the spindle, for a model that has not seen all of it; nil if none is to
// be run, or it cannot find the tool's past.
func (x *judges) startBuild(now time.Time) *Build {
	t := x.state.inSpindle()
	if t == nil || t.PastGone || t.Windows == 0 || t.First.Epoch == "" {
		return nil
	}
	for _, by := range x.wants() {
		if !x.helps(t, by) {
			continue
		}
		s := *x.settings
		s.Silence, s.Evidence = 0, false
		s.Group = event.ShadowGroup(s.Group, by.ID()) // names alarms as a shadow that was there from the beginning
		s.Alarm = x.alarms.set
		x.retained = x.retained[:0]
		x.build = &Build{job: BuildJob{x.state.Machine, t.Name, t.Life, t.First, by.ID()}, by: by, form: x.form, t: &Tool{Name: t.Name, Life: t.Life}, moved: t.Moved.Clone()}
		x.build.defect = guard(func() {
			fresh, err := New(x.state.Machine, &s, NewModel(by), now)
			assert(err == nil, "the machine has the same settings: %v", err)
			x.build.m, x.build.j = fresh, newJudging(fresh.judges.models.use(by), t.Name, FirstWindow{})
		})
		return x.build
	}
	return nil
}

// lastAt returns when Kafka got the last window of the epoch that leads.
func (s *State) lastAt() time.Time {
	if e := s.Leader(); e != nil {
		return time.UnixMilli(e.LastMS).UTC()
	}
	return time.Time{}
}

// Job returns what the build is of.
func (r *Build) Job() BuildJob { return r.job }

// Model returns the model that sees the tool's past.
func (r *Build) Model() *model.Model { return r.by }

// Observe takes the features of the next window, which may be of another machine. At is when
// Kafka got them. It ignores windows that had not moved the tool when the build was due: the machine shows those that do
// meanwhile.
func (r *Build) Observe(f *window.Features, at time.Time) {
	if r.defect == nil && f.Machine == r.job.Machine && f.Tool == r.job.Tool && r.moved.Has(f.EpochString(), f.Seq) {
		r.defect = guard(func() { r.show(Window{Features: f, At: at, Now: at}) }) // it must not end the other machines' monitor
	}
}

// showAll shows the model the windows of the tool that came while it was built. It returns what went wrong.
func (r *Build) showAll(t *Tool, kept []retained) *defect {
	bad := r.defect
	for i := range kept {
		if f := &kept[i].features; bad == nil && f.Tool == t.Name && t.Moved.Has(f.EpochString(), f.Seq) {
			bad = guard(func() { r.show(Window{Features: f, At: kept[i].at, Now: kept[i].now}) })
		}
	}
	return bad
}

// show shows the model a window, once: another group or a gateway may have published its features, too.
func (r *Build) show(w Window) {
	epoch := w.EpochString()
	if r.shown.Has(epoch, w.Seq) {
		return
	}
	r.shown.Add(epoch, w.Seq)
	at := FirstWindow{epoch, w.Seq, w.At.UTC()}
	r.whole = r.whole || r.job.First.is(at)
	by := r.m.judges.models.use(r.by)
	if by.covers(w.Form) != nil {
		return
	}
	r.form = w.Form
	if r.Windows++; r.Windows == 1 {
		r.j.First, r.t.Judgings = at, []*Judging{r.j}
	}
	*r.m.decision = Decision{}
	o := r.m.judges.take(r.t, candidate{r.j, by}, w)
	b := r.m.alarms.of(r.t)
	b.observe(o, &event.Result{ID: resultID(&w.Window, epoch, b.group), Machine: w.Machine, Epoch: epoch, Seq: w.Seq, Tool: w.Tool, Start: w.Start, End: w.End()}, by, w.At)
}

// retain keeps a window for the build that runs.
func (x *judges) retain(w Window) {
	if x.build == nil {
		return
	}
	if len(x.retained) == x.settings.mostRetained() {
		x.build, x.retained = nil, nil // it took too long, and is run again
		return
	}
	f := *w.Features
	f.Quality, f.Values, f.Frames = slices.Clone(f.Quality), slices.Clone(f.Values), slices.Clone(f.Frames)
	x.retained = append(x.retained, retained{f, w.At, w.Now})
}

// built is a build that has seen all that lay in Kafka when it was due.
type built struct{ of *Build }

func (e built) apply(m *Machine) {
	r := e.of
	if m.judges.build != r {
		return
	}
	kept := m.judges.retained
	m.judges.build, m.judges.retained = nil, nil
	i := m.indexTool(r.job.Tool)
	if r.Failed || i < 0 || !m.Tools[i].First.is(r.job.First) {
		return // or another tool under its name
	}
	t := m.Tools[i]
	bad := r.showAll(t, kept)
	switch _, champion := m.judges.role(r); {
	case bad == nil:
		m.judges.adopt(t, r)
	case !champion || m.judges.models.anotherKnows(t, r.job.Model, r.form):
		m.judges.passOver(t, r.job.Model, bad)
	default:
		panic(bad) // no other model judges the tool
	}
}

// role says whether the model of a build is on trial by now, and whether it is the champion.
func (x *judges) role(r *Build) (trial, champion bool) {
	d := x.deployed(r.by.Layout.Fingerprint())
	return d.trial(r.job.Model, x.state.lastAt()), d != nil && d.Champion.ID() == r.job.Model
}

// adopt takes what a model knows of a tool since a build. It is taken if it began with the tool's first window and has
// seen no less than what is there of its model, or if no other model can judge the tool. A model that is not deployed any
// more, such as a shadow whose time is over, must not come to judge the tool later.
func (x *judges) adopt(t *Tool, r *Build) {
	about := fmt.Sprintf("%s tool %s: ", event.ShortName(x.state.Machine), statement.Tool(t.Name))
	j, alarm := r.judging()
	before := t.judging(r.job.Model)
	trial, champion := x.role(r)
	shadow := trial && !champion && t.By != r.job.Model
	whole := r.whole && j != nil && j.First.is(t.First)
	if !whole {
		t.PastGone = t.PastGone || !r.whole
		x.dirty.tools[t.Name] = true
	}
	switch {
	case !trial && !champion:
		return
	case whole:
		j.First, j.Windows = t.First, t.Windows
		x.decision.line("model_built", "%smodel %s has seen %d windows of the tool, from its first window on", about, r.job.Model, r.Windows)
	case shadow || before != nil || x.models.anotherKnows(t, r.job.Model, r.form):
		why := gone
		if r.whole {
			why = "which lack what it takes"
		}
		x.notBuilt(t, r.job.Model, why, t.instead(before != nil, shadow))
		return
	default:
		if j == nil {
			return // it begins with the next window, and says so
		}
		j.Windows = t.Windows
		x.decision.warn("reference_rebuilt", "%smodel %s has seen %d windows of the tool, and not its first ones: trust its verdicts less until the tool is changed", about, r.job.Model, r.Windows)
	}
	if j.Trial = nil; before != nil {
		j.Judged = before.Judged
	}
	if before != nil && before.Trial != nil {
		j.Trial = before.Trial // people know of it
	} else if shadow {
		j.Trial = alarm
		x.decision.line("shadow_begins", "%smodel %s judges as a shadow", about, r.job.Model)
	}
	if x.setJudging(t, j); j.Trial == nil {
		return
	}
	c := x.state.causeWithoutWindow(fmt.Sprintf("/built/%s/%d/%d", t.First.Epoch, t.First.Seq, t.Windows), x.state.lastAt())
	c.tool = t.Name
	x.alarms.trial(t, j).announce(c)
}

const gone = "which are not in Kafka any more, or not known"

// notBuilt says once of a tool that a model cannot see its first windows, and what follows. No build is run for that any more.
func (x *judges) notBuilt(t *Tool, id, why, instead string) {
	if first, said := x.unseen[id]; said && first.is(t.First) {
		return
	}
	if x.unseen == nil {
		x.unseen = make(map[string]FirstWindow)
	}
	x.unseen[id] = t.First
	x.decision.warn("model_not_built", "%s tool %s: model %s cannot see its first windows, %s: %s", event.ShortName(x.state.Machine), statement.Tool(t.Name), id, why, instead)
}

// anotherKnows reports whether a model other than one, which may move the alarm, knows the tool and takes windows of a form; nil: of any.
func (x *candidates) anotherKnows(t *Tool, than string, form *window.Form) bool {
	return slices.ContainsFunc(t.Judgings, func(j *Judging) bool {
		by := x.of(j.Model)
		return by != nil && j.Model != than && j.Trial == nil && (form == nil || by.covers(form) == nil)
	})
}

// instead says what judges a tool whose past a model cannot see.
func (t *Tool) instead(seeded, shadow bool) string {
	switch {
	case seeded:
		return "it goes on with the reference that it has, and its wear begins now"
	case shadow:
		return "as a shadow it passes over this tool"
	}
	return "model " + t.By + " goes on until another tool is put in"
}

// judging returns what the model of a build knows of the tool, and what the tool's alarm would be; nil: nothing.
func (r *Build) judging() (*Judging, *Alarm) {
	if r.Windows == 0 {
		return nil, nil
	}
	trial := r.t.Alarm
	trial.Announced, trial.Called = false, time.Time{}
	return r.j, &trial
}

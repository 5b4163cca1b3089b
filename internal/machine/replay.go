package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/trend"
	"github.com/flank-tcm/flank/pkg/window"
)

// FirstWindow is the window with which a tool began.
type FirstWindow struct {
	Epoch string    `json:"epoch"` // empty: it is not known
	Seq   uint64    `json:"seq"`
	At    time.Time `json:"at"` // when Kafka got it; its features came no sooner
}

// ReplayJob is the past of the tool in the spindle that a model is to see before it judges.
type ReplayJob struct {
	Machine    string
	Tool, Life string
	First      FirstWindow
	Model      string // id of the model
	Shadow     bool   // it does not take the champion's place
}

// mostRetained is how many windows a machine remembers while a replay runs. With more, it
// runs again.
const mostRetained = 20_000

// retained is a window that was judged while a replay ran.
type retained struct {
	features window.Features
	offset   int64
	at, now  time.Time
}

// Replay shows a model the past of a tool: features of the machine's windows, in the order in
// which they lie in Kafka, from the tool's first window on. It belongs to one goroutine.
type Replay struct {
	job     ReplayJob
	m       *Machine // judges by the model, as a monitor that had it from the beginning
	judged  []Epoch  // what the machine had judged when the replay was due
	begun   bool
	whole   bool               // it began with the tool's first window
	before  map[string]*ranges // windows that lay before it, by epoch
	Windows int                // that were seen
	Failed  bool               // set it if the features cannot be read; the replay is run again
}

// ReplayDue returns a replay that is to be run, and the job it does; nil if there is none. What
// the machine judges from now on is retained for it. Call Observe with the features that lie
// in Kafka by now, then give it back as Reply.Replayed.
func (o *Owner) ReplayDue(now time.Time) *Replay {
	var found *Replay
	o.Machines(func(m *Machine) {
		if found != nil || m.replay != nil {
			return
		}
		if by := m.replayBy(); by != nil {
			found = m.startReplay(*o.settings, m, by, false, now)
			m.replay = found
		}
	})
	if found != nil {
		return found
	}
	o.shadows.all(func(key shadowKey, sm *Machine) bool {
		if m := o.machines[key.machine]; sm.awaiting && sm.replay == nil && m != nil && m.inSpindle() != nil {
			found = m.startReplay(*sm.settings, sm, sm.model.model, true, now)
			sm.replay = found
		}
		return found == nil
	})
	return found
}

// replayBy returns the model that is to see the past of the tool in the spindle; nil if none
// is. Without the tool's first window nothing can be replayed.
func (m *Machine) replayBy() *model.Model {
	t := m.inSpindle()
	if t == nil || t.First.Epoch == "" || m.model == nil {
		return nil
	}
	switch {
	case m.next != nil && m.deployment != nil && m.deployment.Now:
		return m.next.model
	case t.Stale || t.Rebuild:
		return m.model.model
	}
	return nil
}

// startReplay returns a replay of the tool in m's spindle by a model.
func (m *Machine) startReplay(s Settings, of *Machine, by *model.Model, shadow bool, now time.Time) *Replay {
	t := m.inSpindle()
	fresh, err := New(m.Machine, &s, NewModel(by), now)
	if err != nil {
		panic("machine: settings: " + err.Error()) // they were checked before
	}
	fresh.setAlarm(m.alarmed)
	fresh.Model, fresh.Layout = by.ID(), m.Layout
	of.retained = of.retained[:0]
	return &Replay{m: fresh, judged: cloneEpochs(m.Epochs), before: make(map[string]*ranges), job: ReplayJob{
		Machine: m.Machine, Tool: t.Name, Life: t.Life, First: t.First, Model: by.ID(), Shadow: shadow,
	}}
}

// Job returns what the replay is of.
func (r *Replay) Job() ReplayJob { return r.job }

// Observe takes the features of the next window, which may be of another machine. At is when
// Kafka got them. It ignores windows that the machine had not judged when the replay was due:
// another group or a gateway may have published them already, and the machine judges them
// itself.
func (r *Replay) Observe(f *window.Features, at time.Time) {
	if f.Machine != r.job.Machine || r.m.model.covers(f.Form) != nil {
		return
	}
	if i := slices.IndexFunc(r.judged, func(e Epoch) bool { return e.ID == f.EpochString() }); i < 0 || !r.judged[i].Judged.has(f.Seq) {
		return
	}
	if r.isBefore(f) {
		return
	}
	if d := r.m.Apply(Window{Features: f, Offset: -1, At: at, Now: at}); !d.Repeat {
		r.Windows++
	}
}

// isBefore reports whether a window is of the time before the tool's first window. Another
// group may have published its features behind that.
func (r *Replay) isBefore(f *window.Features) bool {
	epoch := f.EpochString()
	old := epoch == r.job.First.Epoch && f.Seq < r.job.First.Seq
	if r.begun {
		return old || r.before[epoch] != nil && r.before[epoch].has(f.Seq)
	}
	first := epoch == r.job.First.Epoch && f.Seq == r.job.First.Seq
	if first || !old && f.Tool == r.job.Tool && (r.job.Life == "" || f.ToolLife == r.job.Life) {
		r.begun, r.whole = true, first
		return false
	}
	if r.before[epoch] == nil {
		r.before[epoch] = new(ranges)
	}
	r.before[epoch].add(f.Seq)
	return true
}

// retain keeps a window for the replay that runs, or is to run.
func (m *Machine) retain(w Window) {
	if m.replay == nil {
		return
	}
	if len(m.retained) == mostRetained {
		m.replay, m.retained = nil, nil // it took too long, and is run again
		return
	}
	f := *w.Features
	f.Quality, f.Values, f.Frames = slices.Clone(f.Quality), slices.Clone(f.Values), slices.Clone(f.Frames)
	m.retained = append(m.retained, retained{f, w.Offset, w.At, w.Now})
}

// replayed takes a replay that has seen all that lay in Kafka when it was due.
func (o *Owner) replayed(b *Batch, r *Replay, now time.Time) {
	m := o.machines[r.job.Machine]
	if m == nil || m.gone {
		return
	}
	if r.job.Shadow {
		o.shadowReplayed(b, m, r)
		return
	}
	if m.replay != r {
		return
	}
	kept := m.retained
	m.replay, m.retained = nil, nil
	if r.Failed {
		return
	}
	t := m.inSpindle()
	if by := m.replayBy(); by == nil || by.ID() != r.job.Model || t.Name != r.job.Tool || t.otherLife(r.job.Life) {
		return // another tool, or another deployment
	}
	for i := range kept {
		r.m.Apply(Window{Features: &kept[i].features, Offset: kept[i].offset, At: kept[i].at, Now: kept[i].now})
	}
	var d Decision
	m.decision = &d
	m.adoptReplay(r, t, now)
	m.decision = nil
	o.add(b, m, d)
}

// adoptReplay makes the model of a replay judge the machine, with all that it remembers of
// the tool in the spindle. The alarm stays as it is.
func (m *Machine) adoptReplay(r *Replay, t *Tool, now time.Time) {
	was := m.Model
	if m.next != nil && m.next.model.ID() == r.job.Model {
		m.takeModel(m.next)
	}
	i := r.m.indexTool(t.Name)
	if i < 0 {
		t.Stale, t.First = false, FirstWindow{} // nothing is left of its past
		m.dirty.head, m.dirty.tools[t.Name] = true, true
		m.warn("model_changed", "%s tool %s: nothing of its past is in Kafka any more; model %s judges it as far as it is known", short(m.Machine), orUnknown(t.Name), m.Model)
		return
	}
	from := r.m.Tools[i]
	m.closeModelAdvisory(t, fmt.Sprintf("%s tool %s: model %s has seen its past and judges it", short(m.Machine), orUnknown(t.Name), m.Model), now)
	t.Reference, t.Features, t.Cycle, t.Wear, t.Unknown, t.Drifted = from.Reference, from.Features, from.Cycle, from.Wear, from.Unknown, from.Drifted
	t.Rebuild, t.Stale = false, false
	m.Drift = r.m.Drift
	m.dirty.head, m.dirty.slow, m.dirty.tools[t.Name] = true, true, true
	of := "its first window on"
	if !r.whole {
		of = "a later window on, since its first are gone from Kafka: trust its verdicts less until the tool is changed"
	}
	m.decision.Lines = append(m.decision.Lines, Line{!r.whole, "model_swapped",
		fmt.Sprintf("%s tool %s: model %s judges instead of %s; it has seen %d windows of the tool, from %s", short(m.Machine), orUnknown(t.Name), m.Model, was, r.Windows, of)})
}

// shadowReplayed makes what a replay remembers the state of a shadow, which judges from now
// on.
func (o *Owner) shadowReplayed(b *Batch, m *Machine, r *Replay) {
	key := shadowKey{m.Machine, r.job.Model}
	sm := o.shadows[key.machine][key.model]
	if sm == nil || sm.replay != r {
		return
	}
	kept := sm.retained
	sm.replay, sm.retained = nil, nil
	if r.Failed {
		return
	}
	o.shadows.set(key, r.m)
	b.Lines = append(b.Lines, MachineLine{m.Machine, Line{false, "shadow_begins",
		fmt.Sprintf("%s tool %s: model %s judges as a shadow; it has seen %d windows of the tool", short(m.Machine), orUnknown(r.job.Tool), r.job.Model, r.Windows)}})
	r.m.writeAll()
	for i := range kept {
		o.addShadow(b, r.m.Apply(Window{Features: &kept[i].features, Offset: kept[i].offset, At: kept[i].at, Now: kept[i].now}))
	}
}

// forgetMemory forgets what only means something under the model that judged last.
func (t *Tool) forgetMemory() {
	t.Stale = t.Stale || t.Wear.Windows > 0 || t.Reference.Windows > 0
	t.Cycle, t.Unknown, t.Drifted = cycle.Memory{}, 0, false
	t.Wear = trend.Tool{Name: t.Name}
}

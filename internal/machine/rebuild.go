package machine

import (
	"fmt"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/window"
)

// adopt makes what is remembered fit the model of now: what only means something under
// the model that judged last is forgotten, references of other features are marked to be
// rebuilt, and alarms stay.
func (m *Machine) adopt() {
	id := m.model.model.ID()
	if m.Model == "" && len(m.Tools) == 0 {
		m.Model = id
	}
	if m.Model != id {
		m.Model, m.Drift = id, model.DriftMemory{}
		m.writeAll()
		for _, t := range m.Tools {
			t.forgetMemory()
		}
	}
	for _, t := range m.Tools {
		if t.Features == m.model.fingerprint() || t.Reference.Windows == 0 {
			continue
		}
		m.dirty.tools[t.Name] = true
		t.Reference = model.Reference{Tool: t.Name}
		t.Features = ""
		t.Rebuild = m.model.model.Reference.Mode != model.ReferenceOff
	}
}

// RebuildJob is a tool's reference that is to be learnt again from windows that are still
// in Kafka, since a model of other features took over.
type RebuildJob struct {
	Tool string
	Life string // of the tool under this name; empty: any
	From int64  // offset of the first window; -1: of the oldest one that Kafka has
}

// RebuildDue returns the tool in the spindle, or another one, whose reference is to be
// rebuilt. Without a model none is.
func (m *Machine) RebuildDue() (RebuildJob, bool) {
	if m.model == nil {
		return RebuildJob{}, false
	}
	for i := len(m.Tools) - 1; i >= 0; i-- {
		if t := m.Tools[i]; t.Rebuild {
			return RebuildJob{t.Name, t.Life, t.From}, true
		}
	}
	return RebuildJob{}, false
}

// Rebuild learns the reference of a tool from its windows, in the order in which they lie
// in Kafka. The zero value is not ready; use NewRebuild.
type Rebuild struct {
	job     RebuildJob
	model   *Model
	judge   *model.Judge
	ref     model.Reference
	cycle   cycle.Memory
	seen    model.Observation
	next    map[string]uint64 // by epoch: windows may have been sent again
	first   int64             // offset of the first window; -1 before it
	machine string
}

// NewRebuild returns a rebuild that has seen no window. It has a judge of its own, so that
// windows may be judged meanwhile.
func (m *Machine) NewRebuild(j RebuildJob) *Rebuild {
	return &Rebuild{
		job: j, model: m.model, judge: m.model.model.NewJudge(), ref: model.Reference{Tool: j.Tool}, next: make(map[string]uint64), first: -1, machine: m.Machine,
	}
}

// Observe takes the features of the next window, which may be of another machine or tool, and reports
// whether the reference is settled.
func (b *Rebuild) Observe(w *window.Features, offset int64) (done bool) {
	if w.Machine != b.machine || w.Tool != b.job.Tool || b.job.Life != "" && w.ToolLife != b.job.Life || w.Seq < b.next[w.EpochString()] {
		return false
	}
	b.next[w.EpochString()] = w.Seq + 1
	before := b.ref.Windows
	if b.judge.Take(w, &b.seen) != nil {
		return false // of another form, from before the model
	}
	b.judge.Row(&b.seen, &b.ref, &b.cycle)
	if b.first == -1 && b.ref.Windows != before {
		b.first = offset
	}
	return b.ref.Ready(b.model.model.Reference)
}

// Rebuilt ends a rebuild with Rebuild.Done, even if it has not seen enough windows.
type Rebuilt struct {
	Job       RebuildJob
	Features  string // that the reference is of, see Model.fingerprint
	Reference model.Reference
	First     int64 // offset of the first window that was learnt from; -1: none
	Now       time.Time
}

// Done returns what became of the rebuild at that time.
func (b *Rebuild) Done(now time.Time) Rebuilt {
	return Rebuilt{b.job, b.model.fingerprint(), b.ref, b.first, now}
}

func (e Rebuilt) apply(m *Machine) {
	i := m.indexTool(e.Job.Tool)
	if i < 0 || !m.Tools[i].Rebuild || m.Tools[i].From != e.Job.From {
		return // it was declared new or forgotten meanwhile
	}
	if m.model == nil || e.Features != m.model.fingerprint() {
		return // another model judges meanwhile: it is rebuilt again for that one
	}
	t := m.Tools[i]
	t.Rebuild, t.Reference, t.Features, t.From = false, e.Reference, e.Features, e.First
	m.dirty.tools[t.Name], m.dirty.head = true, true
	about := fmt.Sprintf("%s tool %s: the model changed", short(m.Machine), orUnknown(t.Name))
	var text string
	switch ready := t.Reference.Ready(m.model.model.Reference); {
	case ready && e.First == e.Job.From:
		text = about + "; its reference was rebuilt from its first windows"
	case ready && e.Job.From == -1:
		text = about + "; its reference was rebuilt from its oldest windows in Kafka: trust its verdicts less if it was not new then"
	case ready:
		text = about + "; its first windows are gone from Kafka, so its reference was rebuilt from later ones: trust its verdicts less until the tool is changed"
	default:
		text = fmt.Sprintf("%s; only %d of its windows are still in Kafka, so its reference is learnt from its next windows: change the tool, or do not trust its verdicts until it is changed", about, t.Reference.Windows)
	}
	m.warn("reference_rebuilt", "%s", text)
	m.closeModelAdvisory(t, text, e.Now)
}

// modelAdvisory says that windows of the tool in the spindle are unknown since the model
// changed, until its reference is rebuilt.
func (m *Machine) modelAdvisory(t *Tool, r *event.Result) {
	if !t.Rebuild || m.notice(event.ModelAdvisory, "") != nil {
		return
	}
	m.Notices = append(m.Notices, Notice{Kind: event.ModelAdvisory})
	n := &m.Notices[len(m.Notices)-1]
	a := m.publishNotice(event.ModelAdvisory, "", n.Raise(r.Start, r.End), alarm.Notice{}, byResult(r))
	a.Severity = "info"
	a.Text = fmt.Sprintf("%s tool %s: MODEL CHANGED to one of other features; windows are unknown until its reference is rebuilt from windows in Kafka; its alarm stays as it is", short(m.Machine), orUnknown(t.Name))
	m.notice(event.ModelAdvisory, "").Text = a.Text
}

func (m *Machine) closeModelAdvisory(t *Tool, text string, now time.Time) {
	n := m.notice(event.ModelAdvisory, "")
	if n == nil || m.inSpindle() != t {
		return
	}
	was := n.Notice
	c := m.causeWithoutWindow(fmt.Sprintf("%s/%s/rebuilt/%s/%s", m.Machine, m.settings.Group, m.Model, t.Name), now.UTC().Round(0))
	if a := m.publishNotice(event.ModelAdvisory, "", n.Clear(), was, byCause(c, t.Name)); a != nil {
		a.Text = text
	}
}

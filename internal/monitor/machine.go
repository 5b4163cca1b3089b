package monitor

import (
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/trend"
	"github.com/flank-tcm/flank/pkg/window"
)

// machine is everything the monitor remembers of one machine.
type machine struct {
	name   string
	epochs []epoch // the current one last
	newest time.Time
	ref    model.Reference
	cycle  cycle.Memory
	wear   trend.Tool
	alarm  *alarm.Alarm
	spec   model.ReferenceSpec
	log    zerolog.Logger
	warned bool   // that an epoch came back
	gap    uint64 // windows missing before the one that was observed last
	holes  uint64 // windows missing in all epochs, as of the last count

	notices []notice // beside the alarm
	unsure  uint64   // bit i: did the model not know the i-th last window it might have judged?
	drift   model.DriftMemory
	told    []event.Advisory // by the window that was observed last, or since
	fed     time.Time        // when a window came last, by the clock of the monitor that took it
	patient time.Time        // since when windows are waited for, by our clock
	behind  *int64           // offset up to which the partition must be judged before the machine may be called silent

	offset  int64         // of the window that is observed, where it lies on Kafka
	traced  string        // tool and epoch that seen is of
	seen    []seen        // the last windows that were not late
	cutting time.Duration // of the tool since it came
	last    time.Time     // end of the last window that counted for cutting
	owed    []debt        // evidence that is to be kept

	incident string    // what people call the alarm that stands
	raised   []raised  // alarms that people were told of, the last one last
	heard    heard     // commands
	deaf     time.Time // commands before this were heard by another monitor
}

func newMachine(name string, s alarm.Settings, spec model.ReferenceSpec, log zerolog.Logger) (*machine, error) {
	a, err := alarm.New(s)
	if err != nil {
		return nil, err
	}
	return &machine{name: name, alarm: a, spec: spec, log: log}, nil
}

// place finds where a window belongs: whether it was judged before, and whether
// later ones were.
//
// An epoch that is seen for the first time becomes the current one: epochs are
// random, and the times of a recording that is replayed begin again. Windows of
// an epoch before it are late, unless they are newer than what was judged since:
// then that epoch is alive, and would be mute for ever if it stayed in the past.
func (m *machine) place(w *window.Window) (e *epoch, repeat, late bool) {
	id := w.EpochString()
	i := slices.IndexFunc(m.epochs, func(e epoch) bool { return e.ID == id })
	if i < 0 {
		m.epochs = append(m.epochs, epoch{ID: id})
		if n := len(m.epochs) - keptEpochs; n > 0 {
			m.epochs = slices.Delete(m.epochs, 0, n)
		}
		return &m.epochs[len(m.epochs)-1], false, false
	}
	e = &m.epochs[i]
	if e.Judged.has(w.Seq) {
		return e, true, false
	}
	if last, any := e.Judged.last(); any && w.Seq < last {
		return e, false, true
	}
	if i == len(m.epochs)-1 {
		return e, false, false
	}
	if w.Start.Before(m.newest) {
		return e, false, true
	}
	if !m.warned {
		m.warned = true
		m.log.Warn().Str("machine", m.name).Str("epoch", id).
			Msg("an epoch goes on that another had followed: does more than one ingester send for this machine?")
	}
	back := *e
	m.epochs = append(slices.Delete(m.epochs, i, i+1), back)
	return &m.epochs[len(m.epochs)-1], false, false
}

// observe judges w and moves the alarm. It returns nothing for a window that
// was judged before. A window that comes late is judged and never moves the
// alarm, nor the reference, nor the wear, nor a notice. Advisories are in m.told.
func (m *machine) observe(w *window.Window, judge *model.Judge, layout *signal.Layout, modelID string) (*event.Result, []event.Alert) {
	m.told = nil
	e, repeat, late := m.place(w)
	if repeat {
		return nil, nil
	}
	m.gap = 0
	if last, any := e.Judged.last(); any && w.Seq > last {
		m.gap = w.Seq - last - 1
	}
	e.Judged.add(w.Seq)
	if !late {
		m.newest = w.End()
	}
	r := &event.Result{
		ID: event.WindowID(w.Machine, w.EpochString(), w.Seq), Machine: w.Machine, Epoch: w.EpochString(), Seq: w.Seq,
		Tool: w.Tool, Hole: w.Hole, Start: w.Start, End: w.End(), Model: modelID, Late: late,
	}
	var alerts []event.Alert
	ref, memory := &m.ref, &m.cycle
	if late {
		memory = nil
		if m.ref.Tool != w.Tool || !m.ref.Ready(m.spec) {
			ref = new(model.Reference) // of a tool that is gone, or not learnt yet
		}
	} else {
		was := m.alarm.State()
		c := ofWindow(r, "tool_change")
		c.cutting = m.cutting
		alerts = m.report(m.alarm.ChangeTool(w.Tool), was, c)
		if was.Tool != w.Tool {
			m.cutting, m.last = 0, time.Time{}
			m.unsure = 0
			m.dismiss(was.Tool, r)
		}
	}
	v := judge.Judge(w, ref, memory)
	if r.Verdict = event.Verdict(v.Outcome); v.Class != string(v.Outcome) {
		r.Class = v.Class
	}
	if v.State != cycle.Unknown {
		r.CuttingState = v.State.String()
	}
	if !late {
		m.wear.ChangeTool(w.Tool)
		e, asked := judge.Wear(&m.wear, w.Hole)
		r.Wear, r.WearUnknown = wearOf(e), asked && !e.Known()
		if len(judge.Cutting()) > 0 {
			m.cut(w)
		}
	}
	r.Unknown, r.Novelty = string(v.Doubt), v.Novelty
	r.Posterior = slices.Clone(v.Posterior)
	r.Score, r.ReferenceLen = v.Score, v.Learnt
	for i, q := range v.Faults {
		if q != 0 {
			r.Sensors = append(r.Sensors, event.Sensor{Channel: layout.Channels()[i].Name, Flags: flagNames(q)})
		}
	}
	if !late {
		m.remember(r, m.offset)
	}
	if judged := v.Outcome == model.Healthy || v.Outcome == model.Faulty; judged && !late {
		was := m.alarm.State()
		if c := m.alarm.Observe(m.alarm.Counts(v.Score), w.Start, w.End()); c != alarm.None {
			why := ofWindow(r, "recovered")
			why.cutting = m.cutting
			if c == alarm.Raised || c == alarm.Reactivated {
				why.reasons, why.trace = reasonsOf(judge.Explain(ref), judge, layout), m.trace()
			}
			alerts = append(alerts, m.report([]alarm.Change{c}, was, why)...)
		} else {
			m.follow(r.ID)
		}
	}
	if !late {
		m.senses(v.Faults, layout, r)
		m.doubts(r)
		m.drifts(judge, r)
	}
	r.Alarm, r.Incident = m.alarm.State().Word(), m.incident
	return r, alerts
}

// countHoles counts the windows that are missing, and returns by how much that is
// more than the last time.
func (m *machine) countHoles() (more int64) {
	before := m.holes
	m.holes = 0
	for _, e := range m.epochs {
		m.holes += e.Judged.holes()
	}
	return int64(m.holes) - int64(before)
}

// flagNames returns the names of the flags in q, and "unknown" if a newer
// ingester sent only flags that this monitor has no name for.
func flagNames(q signal.Quality) []string {
	if names := q.Names(); len(names) > 0 {
		return names
	}
	return []string{"unknown"}
}

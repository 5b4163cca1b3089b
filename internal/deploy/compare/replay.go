package compare

import (
	"fmt"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/machine/state"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// Replay lets two models judge features of the past, each as a monitor would have judged them
// that knew nothing before, in event time. What people did, and silence, are left out. One
// goroutine at a time may use it.
type Replay struct {
	*Comparison
	settings machine.Settings
	sides    [2]side
	machines map[string]*replayed
	form     *window.Form // that covers was asked about last
	unfit    string       // why a side cannot judge it; empty: both can

	Judged, Repeats uint64 // windows
}

// side is one of the two models.
type side struct {
	id    string
	model *model.Model
	judge *machine.Model // shared by the machines
}

// replayed is a machine as the two models see it.
type replayed struct {
	sides  [2]*machine.Machine
	offset state.Offset
}

// NewReplay returns a replay by models A and B, with labels, which may be nil. It reports alarm
// settings that cannot be used.
func NewReplay(models [2]*model.Model, s alarm.Settings, labels *Labels) (*Replay, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	r := &Replay{Comparison: New(labels), settings: machine.Settings{Group: "replay", Alarm: s}, machines: make(map[string]*replayed)}
	for i, m := range models {
		r.sides[i] = side{m.ID(), m, machine.NewModel(m)}
	}
	return r, nil
}

// Observe lets both models judge the next window of a machine, which Kafka got at a time. The
// wear is the tool's maximum flank wear in µm, NaN if it is not known. A window that was
// judged before is dropped. A window that one model cannot judge is left out for both.
func (r *Replay) Observe(w *window.Features, at time.Time, wearUM float64) {
	if why := r.covers(w.Form); why != "" {
		r.Refuse(w.Machine, why)
		return
	}
	m := r.machines[w.Machine]
	if m == nil {
		m = r.meet(w)
	}
	decisions := r.judge(m, w, at)
	if decisions[sideA].Repeat {
		r.Repeats++
		return
	}
	r.Judged++
	for s, d := range decisions {
		for i := range d.Alerts {
			r.Alert(modelSide(s), &d.Alerts[i], wearUM)
		}
		r.Result(modelSide(s), d.Result)
	}
}

// covers returns why one of the models cannot judge features of a form; empty if both can.
func (r *Replay) covers(f *window.Form) string {
	if r.form == f {
		return r.unfit
	}
	r.form, r.unfit = f, ""
	for i := range slices.Backward(r.sides[:]) {
		if err := r.sides[i].model.Covers(f); err != nil {
			r.unfit = fmt.Sprintf("%s cannot judge them: %v", modelSide(i), err)
		}
	}
	return r.unfit
}

// meet makes a machine that was not seen before.
func (r *Replay) meet(w *window.Features) *replayed {
	m := new(replayed)
	for i := range r.sides {
		one, err := machine.New(w.Machine, &r.settings, r.sides[i].judge, time.Time{})
		if err != nil {
			panic("compare: settings: " + err.Error()) // NewReplay has checked them
		}
		m.sides[i] = one
	}
	r.machines[w.Machine] = m
	if w.Seq > 0 {
		r.machine(w.Machine).joined = new(string)
		*r.machine(w.Machine).joined = w.Tool
	}
	return m
}

func (r *Replay) judge(m *replayed, w *window.Features, at time.Time) (d [2]machine.Decision) {
	for i, one := range m.sides {
		d[i] = one.Apply(machine.Window{Features: w, Offset: m.offset, At: at, Now: at})
	}
	m.offset.At++
	return d
}

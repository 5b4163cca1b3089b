package compare

import (
	"fmt"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// judge is a machine as one of the models sees it.
type judge interface {
	Judge(w *window.Features, at time.Time) (r *event.Result, alerts []event.Alert, repeat bool)
}

// Replay lets two models judge features of the past, each as a monitor would have judged them
// that knew nothing before, in event time. What people did, and silence, are left out. One
// goroutine at a time may use it.
type Replay[M judge] struct {
	*Comparison
	models   [2]*model.Model
	meets    [2]func(machine string) M
	machines map[string]*[2]M
	form     *window.Form // that covers was asked about last
	unfit    string       // why a side cannot judge it; empty: both can

	Judged, Repeats uint64 // windows
}

// NewReplay returns a replay by models A and B, with labels, which may be nil. Judging returns what makes machines
// whose windows a model judges.
func NewReplay[M judge](models [2]*model.Model, judging func(*model.Model) func(machine string) M, labels *Labels) *Replay[M] {
	r := &Replay[M]{Comparison: New(labels), models: models, machines: make(map[string]*[2]M)}
	for i, m := range models {
		r.meets[i] = judging(m)
	}
	return r
}

// Observe lets both models judge the next window of a machine, which Kafka got at a time. The
// wear is the tool's maximum flank wear in µm, NaN if it is not known. A window that was
// judged before is dropped. A window that one model cannot judge is left out for both.
func (r *Replay[M]) Observe(w *window.Features, at time.Time, wearUM float64) {
	if why := r.covers(w.Form); why != "" {
		r.Refuse(w.Machine, why)
		return
	}
	m := r.machines[w.Machine]
	if m == nil {
		m = r.meet(w)
	}
	repeats := false
	for s, one := range m {
		result, alerts, repeat := one.Judge(w, at)
		if repeats = repeat; repeat {
			continue
		}
		for i := range alerts {
			r.Alert(modelSide(s), &alerts[i], wearUM)
		}
		r.Result(modelSide(s), result)
	}
	if repeats {
		r.Repeats++
	} else {
		r.Judged++
	}
}

// covers returns why one of the models cannot judge features of a form; empty if both can.
func (r *Replay[M]) covers(f *window.Form) string {
	if r.form == f {
		return r.unfit
	}
	r.form, r.unfit = f, ""
	for i := range slices.Backward(r.models[:]) {
		if err := r.models[i].Covers(f); err != nil {
			r.unfit = fmt.Sprintf("%s cannot judge them: %v", modelSide(i), err)
		}
	}
	return r.unfit
}

// meet makes a machine that was not seen before.
func (r *Replay[M]) meet(w *window.Features) *[2]M {
	m := &[2]M{r.meets[sideA](w.Machine), r.meets[sideB](w.Machine)}
	r.machines[w.Machine] = m
	if w.Seq > 0 {
		r.machine(w.Machine).joined = new(w.Tool)
	}
	return m
}

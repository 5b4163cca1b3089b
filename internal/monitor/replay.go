package monitor

import (
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// Replayed is a machine whose windows of the past are judged, in event time.
type Replayed struct {
	*machine.Machine
	next event.Offset
}

// Replays returns what makes machines of a group named replay, of which nothing is known, whose windows m judges.
// The caller has checked the settings.
func Replays(m *model.Model, s alarm.Settings) func(name string) *Replayed {
	settings, judge := &machine.Settings{Group: "replay", Alarm: s}, machine.NewModel(m)
	return func(name string) *Replayed {
		one, err := machine.New(name, settings, judge, time.Time{})
		if err != nil {
			panic("monitor: settings: " + err.Error()) // they were checked
		}
		return &Replayed{Machine: one}
	}
}

// Judge judges the next window, which Kafka got at a time. Repeat says that it came before.
func (r *Replayed) Judge(w *window.Features, at time.Time) (said *event.Result, alerts []event.Alert, repeat bool) {
	d := r.Apply(machine.Window{Features: w, Offset: r.next, At: at, Now: at})
	r.next.At++
	return d.Result, d.Alerts, d.Repeat
}

package machine

import (
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/state"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// Replayed is a machine whose windows of the past are judged, in event time.
type Replayed struct {
	*Machine
	next state.Offset
}

// Replays returns what makes machines of a group named replay, of which nothing is known, whose windows m judges.
// The caller has checked the settings.
func Replays(m *model.Model, s alarm.Settings) func(name string) *Replayed {
	settings, judge := &Settings{Group: "replay", Alarm: s}, NewModel(m)
	return func(name string) *Replayed {
		one, err := New(name, settings, judge, time.Time{})
		assert(err == nil, "the alarm's settings were checked: %v", err)
		return &Replayed{Machine: one}
	}
}

// Judge judges the next window, which Kafka got at a time. Repeat says that it came before.
func (r *Replayed) Judge(w *window.Features, at time.Time) (said *event.Result, alerts []event.Alert, repeat bool) {
	d := r.Apply(Window{Features: w, Offset: r.next, At: at, Now: at})
	r.next.At++
	return d.Result, d.Alerts, d.Repeat
}

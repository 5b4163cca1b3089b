package machine

import (
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// Follower judges the windows of one machine as a monitor does, without Kafka and without
// the clock: commands, shelves that end and silence are left out. It is for replays. A
// Follower is not safe for concurrent use.
type Follower struct {
	machine   *Machine
	offset    int64
	extractor *window.FeatureExtractor
	features  window.Features
}

// NewFollower returns a follower of a machine of which nothing is known. It reports
// settings that cannot be used.
func NewFollower(name string, by *model.Model, s alarm.Settings) (*Follower, error) {
	form, err := by.Form()
	if err != nil {
		return nil, err
	}
	m, err := New(name, &Settings{Group: "replay", Alarm: s}, NewModel(by), time.Time{})
	if err != nil {
		return nil, err
	}
	return &Follower{machine: m, extractor: form.NewExtractor()}, nil
}

// Observe judges the next window and returns what a monitor would publish. The result
// is nil if the window was judged before. All of it is the caller's.
func (f *Follower) Observe(w *window.Window) (*event.Result, []event.Alert, []event.Advisory) {
	f.extractor.Extract(w, &f.features)
	d := f.machine.Apply(Window{Features: &f.features, Offset: f.offset, At: w.End(), Now: w.End()})
	f.offset++
	return d.Result, d.Alerts, d.Advisories
}

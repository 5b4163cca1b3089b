package monitor

import (
	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// Follower judges the windows of one machine as a Monitor does, without Kafka and
// without the clock: what it says is what a monitor would have said of them, but for
// commands, shelves that end, and silence. It is for simulations. A Follower is not
// safe for concurrent use.
type Follower struct {
	machine *machine
	judge   *model.Judge
	model   *model.Model
}

// NewFollower returns a follower of a machine of which nothing is known.
func NewFollower(name string, m *model.Model, s alarm.Settings) (*Follower, error) {
	mach, err := newMachine(name, s, m.Reference, zerolog.Nop())
	if err != nil {
		return nil, err
	}
	return &Follower{mach, m.NewJudge(), m}, nil
}

// Observe judges the next window, and returns what a monitor would send. The result
// is nil if the window was judged before.
func (f *Follower) Observe(w *window.Window) (*event.Result, []event.Alert, []event.Advisory) {
	r, alerts := f.machine.observe(w, f.judge, f.model.Layout, f.model.ID())
	return r, alerts, f.machine.told
}

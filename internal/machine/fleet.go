package machine

import (
	"time"

	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
)

// Deployment says what judges a machine and when it is alarmed. It must not be changed once it
// is in a Fleet.
type Deployment struct {
	Champion *model.Model
	Now      bool // a new champion judges once it has seen the tool's past, not from the next tool on
	Shadows  []Shadow
	Alarm    alarm.Settings // zero: Settings.Alarm
}

// Shadow is a model that judges the same windows as the champion and moves no alarm.
type Shadow struct {
	Model *model.Model
	Until time.Time // by the clock of Kafka; zero: until it is taken out of the deployment
}

// Fleet says what judges which machine. Its functions must be pure, and safe for concurrent
// use.
type Fleet struct {
	// Of returns the deployment of a machine whose windows have a layout of that fingerprint,
	// nil if there is none. Without a layout, which is not known of a machine that an older
	// program kept, it returns the one for any layout, or the first.
	Of func(machine, layout string) *Deployment

	// Model returns the model with an id: one that judged a machine last may not be the champion
	// any more. It returns nil if the model is not known any more.
	Model func(id string) *model.Model

	// Named are the machines that deployments name by their whole path: their windows are expected.
	Named []string
}

// Everything returns a fleet in which a model judges every machine.
func Everything(m *model.Model) Fleet {
	d := &Deployment{Champion: m}
	return Fleet{
		Of: func(string, string) *Deployment { return d },
		Model: func(id string) *model.Model {
			if id == m.ID() {
				return m
			}
			return nil
		},
	}
}

// expect makes the machines that deployments name machines of the partition, also if no window of them has ever come: then
// they are silent.
func (o *Owner) expect(now time.Time) {
	for _, name := range o.fleet.Named {
		if o.machines[name] == nil && o.Has != nil && o.Has(name) {
			o.meet(name, now)
		}
	}
}

// redeploy lets every machine know of another fleet. A model that the fleet does not know any more judges
// nothing more, as after a restart.
func (o *Owner) redeploy(b *Batch, f Fleet) {
	o.fleet, o.models.known = f, f.Model
	used := make(map[string]bool)
	o.Machines(func(m *Machine) {
		if m.unread != nil {
			o.takeIn(b, m.Machine, m.unread)
			return
		}
		if m.stopped != "" { // windows that came meanwhile were not retained, and it has not been silent
			m.judges.build, m.judges.retained, m.waitingSince, m.askedEnd = nil, nil, b.now, nil
		}
		m.stopped, m.unwritable, m.judges.defects = "", false, nil // it may try again
		bad := guard(func() {
			if !m.unjudged() { // one that has judged no window takes its deployment with the first one
				m.deploy(o.fleet.Of(m.Machine, m.Layout))
			}
			for _, by := range m.judges.wants() { // others are made again when they are asked
				used[by.ID()] = true
			}
		})
		if bad != nil {
			o.add(b, m, m.stop(bad, b.now))
		}
	})
	o.models.keep(used)
	o.expect(b.now)
}

// deployedFor returns what finds the deployment of a machine by the layout of its windows.
func (o *Owner) deployedFor(name string) func(layout string) *Deployment {
	return func(layout string) *Deployment { return o.fleet.Of(name, layout) }
}

// take lets a machine judge a window, and its shadows after it. The letter is for a window that it cannot take.
func (o *Owner) take(b *Batch, w Window, l Letter) {
	name := w.Machine
	m := o.machines[name]
	if m == nil || m.gone {
		if o.fleet.Of(name, w.Form.Layout().Fingerprint()) == nil && !o.roomForUnjudged() {
			b.Unwatched++
			return
		}
		if m == nil {
			m = o.meet(name, w.Now)
		}
	}
	d := o.apply(b, m, w, &l)
	if d.Unwatched {
		b.Unwatched++
	}
	if d.Result != nil && o.OnWindow != nil {
		o.OnWindow(w.Features, *d.Result)
	}
	o.add(b, m, d)
}

// roomForUnjudged reports whether the partition may know one more machine of which no window
// was ever judged.
func (o *Owner) roomForUnjudged() bool {
	n := 0
	o.Machines(func(m *Machine) {
		if m.unjudged() {
			n++
		}
	})
	return n < mostRefused
}

func (s Shadow) over(at time.Time) bool { return !s.Until.IsZero() && !at.Before(s.Until) }

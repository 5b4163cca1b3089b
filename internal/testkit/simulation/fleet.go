package simulation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/model"
)

// fleet is a model of tcm.models.v1 and of the people who deploy models.
type fleet struct {
	w        *world
	models   *Models
	versions []*version
	champion map[string]bool // machine and model: the model was deployed there at some time
	shadow   map[string]bool // likewise
}

// target is what a deployment is for: windows of a machine, of one layout.
type target struct {
	machine string
	two     bool // values
}

// version is what is deployed at a time. It is not changed once it is made.
type version struct {
	number int
	of     map[target]*machine.Deployment // without one windows are not watched
	fleet  machine.Fleet

	// An owner that takes over may not know a model that judges any more.
	fresh bool
}

func newFleet(w *world, models *Models) *fleet {
	f := &fleet{w: w, models: models, champion: make(map[string]bool), shadow: make(map[string]bool)}
	of := make(map[target]*machine.Deployment)
	for _, g := range w.gateways {
		for _, t := range []target{{g.machine, g.two}, {g.machine, !g.two}} {
			d := &machine.Deployment{Champion: f.all(t)[w.rng.IntN(len(f.all(t)))]}
			if d.Champion == models.long {
				d.Champion = models.One[0]
			}
			switch {
			case t.two != g.two && w.rng.IntN(2) == 0:
			case w.fault(0.05, "no deployment at first for ", g.machine):
				f.deployAgain(t, d)
			default:
				of[t] = d
			}
		}
	}
	f.write(of, nil)
	if w.rng.IntN(3) == 0 { // a share of seeds, since models that change take half as much time again
		f.change()
	}
	return f
}

// all returns the models of a layout.
func (f *fleet) all(t target) []*model.Model {
	if t.two {
		return f.models.Two
	}
	return f.models.One
}

func (f *fleet) last() *version { return f.versions[len(f.versions)-1] }

// write makes a version of deployments, and lets every monitor know some time later.
func (f *fleet) write(of map[target]*machine.Deployment, removed map[string]bool) {
	v := &version{number: len(f.versions), of: of, fresh: len(removed) > 0}
	known := make(map[string]*model.Model)
	for _, m := range slices.Concat(f.models.One, f.models.Two) {
		if !removed[m.ID()] {
			known[m.ID()] = m
		}
	}
	for t, d := range of {
		known[d.Champion.ID()] = d.Champion
		f.champion[t.machine+" "+d.Champion.ID()] = true
		for _, s := range d.Shadows {
			known[s.Model.ID()] = s.Model
			f.shadow[t.machine+" "+s.Model.ID()] = true
		}
	}
	v.fleet = machine.Fleet{
		Of: func(name, layout string) *machine.Deployment {
			for _, two := range []bool{false, true} {
				if d := of[target{name, two}]; d != nil && (layout == "" || layout == d.Champion.Layout.Fingerprint()) {
					return d
				}
			}
			return nil
		},
		Model: func(id string) *model.Model { return known[id] },
	}
	f.versions = append(f.versions, v)
	for _, g := range f.w.groups {
		for _, m := range g.members {
			m.hearOf(v)
		}
	}
}

// hearOf tells a monitor of a version some time later.
func (m *member) hearOf(v *version) {
	w := m.w
	delay := w.latency()
	if w.rng.IntN(2) == 0 && !w.calm {
		delay += w.rng.Int64N(8000)
	}
	var try func()
	try = func() {
		switch {
		case w.broker.isDown():
			w.after(poll, &m.process, try)
		case v.number > m.version.number || w.Bug == FleetGoesBack: // else it has read on
			m.follow(v)
		}
	}
	w.after(delay, &m.process, try)
}

// follow lets every partition of a monitor know of a version.
func (m *member) follow(v *version) {
	m.version = v
	m.w.say("%s knows of deployments %d", m.name, v.number)
	for _, part := range slices.Sorted(maps.Keys(m.drives)) {
		m.drives[part].follows(v)
	}
}

// change deploys something else every now and then.
func (f *fleet) change() {
	w := f.w
	w.after(1000+w.rng.Int64N(4000), nil, func() {
		defer f.change()
		if w.calm || w.broker.isDown() {
			return
		}
		for _, g := range w.gateways {
			f.changeOf(target{g.machine, g.two != (w.rng.IntN(4) == 0)})
		}
	})
}

// changeOf deploys something else for windows of one machine, perhaps.
func (f *fleet) changeOf(t target) {
	w, name := f.w, t.machine
	d := machine.Deployment{}
	if now := f.last().of[t]; now != nil {
		d = *now
	} else {
		return // until it is deployed again
	}
	d.Shadows = slices.Clone(d.Shadows)
	all := f.all(t)
	switch {
	case w.fault(0.04, "promotion at the next tool of ", name):
		d.Champion, d.Now = all[w.rng.IntN(len(all))], false
	case w.fault(0.06, "promotion at once of ", name):
		d.Champion, d.Now = all[w.rng.IntN(len(all))], true
	case w.fault(0.03, "rollback of ", name):
		for _, v := range slices.Backward(f.versions) {
			if was := v.of[t]; was != nil && was.Champion != d.Champion {
				d.Champion, d.Now = was.Champion, w.rng.IntN(2) == 0
				break
			}
		}
	case w.fault(0.06, "another shadow of ", name):
		s := machine.Shadow{Model: all[w.rng.IntN(len(all))]}
		if w.rng.IntN(2) == 0 {
			s.Until = w.time().Add(time.Duration(w.rng.IntN(30)) * time.Second)
		}
		d.Shadows = append(slices.DeleteFunc(d.Shadows, func(o machine.Shadow) bool { return o.Model == s.Model }), s)
	case w.fault(0.03, "no shadow of ", name):
		d.Shadows = nil
	case w.fault(0.03, "other alarm settings of ", name):
		d.Alarm = w.alarm()
	case w.fault(0.02, "no deployment of ", name):
		f.deploy(t, nil)
		f.deployAgain(t, &d)
		return
	default:
		return
	}
	d.Shadows = slices.DeleteFunc(d.Shadows, func(s machine.Shadow) bool { return s.Model == d.Champion }) // no one deploys a model as a shadow of itself
	f.deploy(t, &d)
}

// deployAgain makes a deployment some time later.
func (f *fleet) deployAgain(t target, d *machine.Deployment) {
	f.w.after(1000+f.w.rng.Int64N(15_000), nil, func() { f.deploy(t, d) })
}

// deploy writes a version in which a target has another deployment. Models that are not
// deployed may go with it.
func (f *fleet) deploy(t target, d *machine.Deployment) {
	of := maps.Clone(f.last().of)
	if d == nil {
		delete(of, t)
		f.w.say("nothing is deployed for %v", t)
	} else {
		of[t] = d
		f.w.say("deployed for %v: %s", t, describe(d))
	}
	removed := make(map[string]bool)
	if f.w.fault(0.1, "models that are removed", "") {
		for _, m := range slices.Concat(f.models.One, f.models.Two) {
			removed[m.ID()] = true
		}
	}
	f.write(of, removed)
}

func describe(d *machine.Deployment) string {
	text := "model " + d.Champion.ID()[8:]
	if d.Now {
		text += " at once"
	}
	for _, s := range d.Shadows {
		text += ", shadow " + s.Model.ID()[8:]
		if !s.Until.IsZero() {
			text += fmt.Sprintf(" until %.0f s", s.Until.Sub(epoch0).Seconds())
		}
	}
	return fmt.Sprintf("%s, alarm %d of %d", text, d.Alarm.K, d.Alarm.N)
}

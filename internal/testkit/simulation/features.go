package simulation

import (
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/window"
)

// opened are the features that an owner has opened last, which it takes, or of which it says that no model judges
// them.
type opened struct {
	*window.Features        // not changed
	name             string // of their window
	offset           event.Offset
	at               int64
	edge             bool
}

func (o opened) time() time.Time { return epoch0.Add(time.Duration(o.at) * time.Millisecond) }

// input is what an owner has taken: a reply, or a build that began.
type input struct {
	reply   machine.Reply
	now     time.Time // when it came, by the clock of the monitor
	due     *machine.Build
	seen    []*sentFeatures // by the build of a reply
	version *version        // of the deployments of a reply
}

// handled returns what the owner has taken before and with the reply that a batch follows
// from.
func (d *drive) handled(of machine.Reply) (done []*input) {
	if _, waits := of.(machine.CommandsRead); !waits && of != nil {
		done, d.inputs = d.inputs, nil // the reply is the last one
	}
	return done
}

// follows lets the owner know of a version of the deployments.
func (d *drive) follows(v *version) {
	if d.over {
		return
	}
	f := v.fleet
	if d.versions[&f] = v; !d.loaded {
		d.version = v
	}
	d.do(d.owner.On(&f, d.now()))
}

// take waits for features from an offset on. The owner judges those that a gateway has sent;
// the others are of windows that it reads itself.
func (d *drive) take(from int) {
	d.follow(featureLog, from, &d.next.Features, func(from, to int) (machine.Reply, bool) {
		in := make([]machine.Input, 0, to-from)
		for i := from; i < to; i++ {
			in = append(in, d.featuresInput(i))
		}
		return machine.Read{Log: machine.FeatureLog, Inputs: in}, true
	})
}

// featuresInput returns features of the partition as the owner takes them.
func (d *drive) featuresInput(i int) machine.Input {
	w := d.m.w
	f := w.broker.parts[d.part].features[i]
	o := opened{Features: f.Features, name: f.name, offset: event.Offset{At: int64(i), Features: true}, at: f.stamp, edge: true}
	in := machine.Input{Offset: int64(i), At: o.time()}
	if !f.judged() {
		return in
	}
	in.Open = func(into *window.Features) error {
		*into, w.opened = *f.Features, o
		return nil
	}
	return in
}

// startBuild shows a model the past of a tool, if that is due.
func (d *drive) startBuild() {
	w := d.m.w
	if d.over || d.building || d.publishing { // what is being published is not visible yet
		return
	}
	b := d.owner.BuildDue(d.now())
	if b == nil {
		return
	}
	job := b.Job()
	d.building = true
	d.inputs = append(d.inputs, &input{due: b})
	w.say("%s partition %d: shows tool %s of %s to model %s", d.m.name, d.part, job.Tool, job.Machine, job.Model[8:])
	p := w.broker.parts[d.part]
	end := len(p.features)
	takes := 100 + w.rng.Int64N(3000)
	if w.fault(0.05, "slow build of ", d.m.name) {
		takes += w.rng.Int64N(30_000)
	}
	if w.fault(0.1, "failed build of ", d.m.name) {
		w.after(takes, &d.m.process, func() { d.built(b, nil, true) })
		return
	}
	if w.Bug == SwapForgetsWindows {
		d.buildWithout(b, takes)
		return
	}
	var read func()
	read = func() {
		if w.broker.isDown() || p.stable(featureLog) < min(end, len(p.features)) {
			w.after(poll, &d.m.process, read)
			return
		}
		all := p.committed(job.First.At, p.stable(featureLog))
		for _, f := range all {
			b.Observe(f.Features, f.time())
		}
		d.built(b, all, false)
	}
	w.after(takes, &d.m.process, read)
}

// buildWithout shows a model what lay on the features topic when the build began, and forgets
// what the owner has judged meanwhile.
func (d *drive) buildWithout(b *machine.Build, takes int64) {
	w := d.m.w
	p := w.broker.parts[d.part]
	all := p.committed(b.Job().First.At, p.stable(featureLog))
	w.after(takes, &d.m.process, func() {
		if d.over || d.publishing {
			d.built(b, nil, true)
			return
		}
		d.built(b, nil, true)
		again := d.owner.BuildDue(d.now())
		for range 3 { // machines take turns
			if again == nil || again.Job().Machine == b.Job().Machine {
				break
			}
			d.inputs = append(d.inputs, &input{due: again})
			d.built(again, nil, true)
			again = d.owner.BuildDue(d.now())
		}
		if again != nil {
			d.inputs = append(d.inputs, &input{due: again})
			for _, f := range all {
				again.Observe(f.Features, f.time())
			}
			d.built(again, all, false)
		}
	})
}

// built gives a build back, perhaps to an owner that has never heard of it.
func (d *drive) built(b *machine.Build, seen []*sentFeatures, failed bool) {
	d.building = false
	b.Failed = failed
	if d.over {
		return
	}
	d.m.w.say("%s partition %d: has shown tool %s of %s to model %s: %v", d.m.name, d.part, b.Job().Tool, b.Job().Machine, b.Job().Model[8:], !failed)
	d.seen[b] = seen
	d.do(d.owner.On(b, d.now()))
}

func (f *sentFeatures) time() time.Time { return epoch0.Add(time.Duration(f.stamp) * time.Millisecond) }

// committed returns the features from the first one that is not from before a time, by the broker's clock, up to an offset,
// as far as readers of committed messages see them, but for those that retention has deleted.
func (p *part) committed(since time.Time, end int) (all []*sentFeatures) {
	begun := false
	for _, f := range p.features[min(p.kept[featureLog], end):end] {
		begun = begun || !f.time().Before(since)
		if begun && f.txn.visible() {
			all = append(all, f)
		}
	}
	return all
}

// has reports whether a build would see the features of a window.
func (p *part) has(window string, since time.Time) bool {
	return slices.ContainsFunc(p.committed(since, p.stable(featureLog)), func(f *sentFeatures) bool { return f.name == window })
}

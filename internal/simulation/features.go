package simulation

import (
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/window"
)

// opened says where the features lie that an owner has opened last.
type opened struct {
	offset int64 // as machine.Window has it
	at     int64
	edge   bool
}

// judged is a window that an owner has taken, or of which it has said that no model judges it.
type judged struct {
	*window.Features
	opened
}

func (o opened) of(f *window.Features) judged {
	kept := *f // what it points to is not changed
	return judged{&kept, o}
}

func (j judged) event() machine.Window {
	at := j.time()
	return machine.Window{Features: j.Features, Offset: j.offset, At: at, Now: at}
}

func (o opened) time() time.Time { return epoch0.Add(time.Duration(o.at) * time.Millisecond) }

// input is what was handed to an owner: a reply, or a replay that began.
type input struct {
	reply machine.Reply
	due   *machine.Replay
	seen  []*sentFeatures // by the replay of a reply
	level int             // number of the deployments of a reply
}

// is reports whether a batch follows from an input.
func (in *input) is(of *machine.Reply) bool {
	r := &in.reply
	switch {
	case in.due != nil:
		return false
	case len(of.Windows) > 0:
		return len(r.Windows) > 0 && &r.Windows[0] == &of.Windows[0]
	case len(of.Features) > 0:
		return len(r.Features) > 0 && &r.Features[0] == &of.Features[0]
	case len(of.Commands) > 0:
		return len(r.Commands) > 0 && &r.Commands[0] == &of.Commands[0]
	case of.Tick != nil:
		return r.Tick == of.Tick
	case of.Evidence != nil:
		return r.Evidence == of.Evidence
	case of.Rebuilt != nil:
		return r.Rebuilt == of.Rebuilt
	case of.Fleet != nil:
		return r.Fleet == of.Fleet
	}
	return of.Replayed != nil && r.Replayed == of.Replayed
}

// handled returns what the owner has taken before and with the reply that a batch follows
// from.
func (d *drive) handled(of *machine.Reply) []*input {
	if of == nil {
		return nil
	}
	i := slices.IndexFunc(d.inputs, func(in *input) bool { return in.is(of) })
	done := slices.Clone(d.inputs[:i+1])
	d.inputs = d.inputs[i+1:]
	return slices.DeleteFunc(done, func(in *input) bool {
		r := &in.reply
		return !in.is(of) && in.due == nil && r.Fleet == nil && r.Replayed == nil && len(r.Features) == 0
	})
}

// follows lets the owner know of a version of the deployments.
func (d *drive) follows(v *version) {
	if d.over {
		return
	}
	if !d.loaded {
		d.version = v
	}
	f := v.fleet
	r := machine.Reply{Fleet: &f, Now: d.now()}
	d.inputs = append(d.inputs, &input{reply: r, level: v.number})
	d.do(d.owner.On(r))
}

// take waits for features from an offset on. The owner judges those that a gateway has sent;
// the others are of windows that it reads itself.
func (d *drive) take(from int) {
	d.follow(featureLog, from, &d.next.Features, func(from, to int) (machine.Reply, bool) {
		in := make([]machine.Input, 0, to-from)
		for i := from; i < to; i++ {
			in = append(in, d.featuresInput(i))
		}
		return machine.Reply{Features: in}, true
	})
}

// featuresInput returns features of the partition as the owner takes them.
func (d *drive) featuresInput(i int) machine.Input {
	w := d.m.w
	f := w.broker.parts[d.part].features[i]
	o := opened{offset: machine.InFeatures(int64(i)), at: f.at, edge: true}
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

// startReplay shows a model the past of a tool, if that is due.
func (d *drive) startReplay() {
	w := d.m.w
	if d.over || d.replaying || d.publishing { // what is being published is not visible yet
		return
	}
	r := d.owner.ReplayDue(d.now())
	if r == nil {
		return
	}
	job := r.Job()
	d.replaying = true
	d.inputs = append(d.inputs, &input{due: r})
	w.say("%s partition %d: replays tool %s of %s by %s", d.m.name, d.part, job.Tool, job.Machine, job.Model[8:])
	p := w.broker.parts[d.part]
	end := len(p.features)
	takes := 100 + w.rng.Int64N(3000)
	if w.fault(0.05, "slow replay of "+d.m.name) {
		takes += w.rng.Int64N(30_000)
	}
	if w.fault(0.1, "failed replay of "+d.m.name) {
		w.after(takes, &d.m.process, func() { d.replayed(r, nil, true) })
		return
	}
	if w.Bug == SwapForgetsWindows {
		d.replayWithout(r, takes)
		return
	}
	var read func()
	read = func() {
		if w.broker.isDown() || p.stable(featureLog) < min(end, len(p.features)) {
			w.after(poll, &d.m.process, read)
			return
		}
		all := p.committed(p.stable(featureLog))
		for _, f := range all {
			r.Observe(f.Features, f.time())
		}
		d.replayed(r, all, false)
	}
	w.after(takes, &d.m.process, read)
}

// replayWithout replays what lay on the features topic when it began, and forgets what the
// owner has judged meanwhile.
func (d *drive) replayWithout(r *machine.Replay, takes int64) {
	w := d.m.w
	p := w.broker.parts[d.part]
	all := p.committed(p.stable(featureLog))
	w.after(takes, &d.m.process, func() {
		if d.over || d.publishing {
			d.replayed(r, nil, true)
			return
		}
		d.replayed(r, nil, true)
		if again := d.owner.ReplayDue(d.now()); again != nil {
			d.inputs = append(d.inputs, &input{due: again})
			for _, f := range all {
				again.Observe(f.Features, f.time())
			}
			d.replayed(again, all, false)
		}
	})
}

// replayed gives a replay back, perhaps to an owner that has never heard of it.
func (d *drive) replayed(r *machine.Replay, seen []*sentFeatures, failed bool) {
	d.replaying = false
	r.Failed = failed
	if d.over {
		return
	}
	d.m.w.say("%s partition %d: has replayed %s of %s: %v", d.m.name, d.part, r.Job().Tool, r.Job().Machine, !failed)
	d.inputs = append(d.inputs, &input{reply: machine.Reply{Replayed: r, Now: d.now()}, seen: seen})
	d.do(d.owner.On(machine.Reply{Replayed: r, Now: d.now()}))
}

func (f *sentFeatures) time() time.Time { return epoch0.Add(time.Duration(f.at) * time.Millisecond) }

// committed returns the features up to an offset that readers of committed messages see.
func (p *part) committed(end int) (all []*sentFeatures) {
	for _, f := range p.features[:end] {
		if f.txn.visible() {
			all = append(all, f)
		}
	}
	return all
}

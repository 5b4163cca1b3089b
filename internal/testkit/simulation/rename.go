package simulation

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/oracle"
)

// patience is how long a person waits until the first group has judged all windows of a machine that is to be
// renamed.
const patience = 20

// renamed is what the first group knew of a machine when a person read its records to give them to another name.
type renamed struct {
	was   string
	steps []step
	given bool
}

// rename gives the machine another name, as `monitor machines rename` does: its gateway has stopped, all is judged, the old name is
// retired, and the gateway goes on under the new name. It tries again for a while.
func (g *gateway) rename(tries int) {
	w, part := g.w, partitionOf(g.machine, partitions)
	f := w.check.of(w.groups[0]).followers(part).of[g.machine]
	records, ok := w.broker.load(part)
	state := kept(records, w.groups[0].name, g.machine)
	switch {
	case tries == 0 || w.calm:
		g.stops = false
		return
	case !ok, w.broker.isDown(), g.next < len(g.cut), f == nil, len(state) == 0, !w.broker.parts[part].done(w.groups[0].positions[part]):
		w.after(1000, nil, func() { g.rename(tries - 1) })
		return
	}
	was, to := g.machine, fmt.Sprintf("%s-%d", g.machine, len(g.cut))
	w.fleet.rename(was, to)
	c := event.Command{ID: fmt.Sprintf("c%d", w.rng.Uint64()), Machine: to, Action: event.Rename, Was: was, State: state, By: "kim", Issued: w.time()}
	w.renames[c.ID] = &renamed{was, f.steps[:len(f.steps):len(f.steps)], f.given}
	w.check.of(w.groups[1]).lost[c.ID] = true // it has its own state, and sets the command aside
	if ahead := w.broker.partOf(to).clock; !(oracle.Command{At: w.time().Add(time.Duration(ahead) * time.Millisecond), Issued: c.Issued}).Timely() {
		w.check.of(w.groups[0]).lost[c.ID] = true // likewise
	}
	w.broker.produceCommand(&event.Command{ID: fmt.Sprintf("c%d", w.rng.Uint64()), Machine: was, Action: event.Retire, By: "kim", Issued: w.time()}, w.time())
	w.broker.produceCommand(&c, w.time())
	w.after(w.rng.Int64N(6000), nil, func() {
		w.say("%s goes on as %s", was, to)
		g.machine, g.stops = to, false
		g.epoch, g.seq = g.epoch+50, 0
	})
}

// kept returns the records of a machine as a command has them.
func kept(records []event.StateRecord, group, name string) (state []event.Kept) {
	for _, r := range records {
		if r.Key.Group == group && r.Key.Machine == name {
			state = append(state, event.Kept{Key: r.Key.String(), Value: r.Value})
		}
	}
	return state
}

// rename deploys for a name what is deployed for another one.
func (f *fleet) rename(was, to string) {
	for _, all := range []map[string]bool{f.champion, f.shadow} {
		for key := range maps.Clone(all) {
			if id, of := strings.CutPrefix(key, was+" "); of {
				all[to+" "+id] = true
			}
		}
	}
	for _, two := range []bool{false, true} {
		if d := f.last().of[target{was, two}]; d != nil {
			f.deploy(target{to, two}, d)
		}
	}
}

// renames lets the machine go on with what was known of another name, if the command carries the records of the group.
func (f *follower) renames(s *step) oracle.Outcome {
	r := f.w.renames[s.command.ID]
	if f.g != f.w.groups[0] {
		return oracle.Outcome{Answer: oracle.Unknown} // no record of the group is in it
	}
	if r.given && !f.given {
		f.given = true
		clear(f.deployed)
		clear(f.models)
		f.deploy(s)
	}
	of := newFollower(f.w, f.g, r.was)
	of.given, of.steps, of.m, of.models, of.learnt, of.memory = f.given, r.steps, nil, f.models, f.learnt, f.memory
	before := of.machine()
	before.Deployed, before.Settings, before.Silence, before.Limits = f.m.Deployed, f.m.Settings, f.m.Silence, f.m.Limits
	m, out := oracle.Rename(before, s.command.ID, s.at, s.now)
	f.m, f.names = m, of.names
	return out
}

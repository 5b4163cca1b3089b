package simulation

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/model"
)

// swaps is what a group has published that depends on what is deployed. The checker says what
// does not hold of it:
//
//   - a result is of the group, and of a model that was deployed for its machine at some time;
//   - the end of a build, and a version of the deployments, publishes no alert and leaves the alarm as it is;
//   - what shadows publish is for the topic of shadows and names a shadow that was deployed,
//     each window has at most one result of each shadow, and when faults have ended no shadow
//     that is over judges;
//   - a window that no model judges goes to no dead letter, and an advisory says so;
//   - each judgement of a window that came with its samples publishes its features once, and
//     one of a window that came as features does not;
//   - once faults have ended, every monitor uses the newest deployments.
//
// Which model judges, and what its verdicts and alerts are, is held in follow.go.
type swaps struct {
	featured map[string]int           // messages of features of a window, by its name
	decided  map[string]int           // judgements of it
	unjudged map[string]bool          // windows that no model could judge
	watched  map[string]bool          // machines of which a window was judged since they were new
	shadows  map[string]*event.Result // by id
}

func newSwaps() swaps {
	return swaps{
		featured: make(map[string]int), decided: make(map[string]int), unjudged: make(map[string]bool), watched: make(map[string]bool), shadows: make(map[string]*event.Result),
	}
}

// taken reports whether a group has judged a window, or said that no model can.
func (s *seen) taken(window string, g *group) bool {
	return s.judged[window+"/"+g.name] || s.unjudged[window]
}

// features counts what a transaction puts on the features topic.
func (c *checker) features(t *txn) {
	for _, j := range t.judged {
		if !j.edge {
			c.of(t.group).featured[j.name]++
		}
	}
}

// unwatched checks that each window that an owner took has a result or that an advisory says
// why not, and its features.
func (c *checker) unwatched(s *seen, t *txn) {
	results := t.results()
	for _, j := range t.judged {
		if !j.edge {
			s.decided[j.name]++
		}
	}
	without, took := 0, make(map[string]bool) // a window of an epoch that is forgotten counts again, also within a transaction
	for _, j := range t.judged {
		took[j.name] = true
		if s.decided[j.name] != s.featured[j.name] {
			c.w.fail("%s: window %s was judged %d times, and its features are published %d times", t.group.name, j.name, s.decided[j.name], s.featured[j.name])
		}
		if results[j.name] != nil {
			s.watches(t, j.Machine, true)
			continue
		}
		without++
		s.unjudged[j.name] = true
		if !s.watched[j.Machine] && !s.machine(j.Machine).advised(t) {
			c.w.fail("%s: no model judges window %s, and no advisory says so", t.group.name, j.name)
		}
	}
	if uint64(without) != t.batch.Unwatched {
		c.w.fail("%s: %d windows without a model, %d are counted as unwatched", t.group.name, without, t.batch.Unwatched)
	}
	c.untaken(t, took)
}

// untaken checks that no window has a result that the transaction did not take.
func (c *checker) untaken(t *txn, took map[string]bool) {
	for name := range t.results() {
		if !took[name] {
			c.w.fail("%s: window %s has a result, and was not taken", t.group.name, name)
		}
	}
}

// watches notes whether a window of a machine was judged since it was new.
func (s *seen) watches(t *txn, of string, yes bool) {
	if before := s.watched[of]; before != yes {
		s.watched[of] = yes
		t.forget = append(t.forget, func() { s.watched[of] = before })
	}
}

// retired forgets what a machine took.
func (s *seen) retired(t *txn, of string) {
	s.watches(t, of, false)
	for id, r := range s.shadows {
		if r.Machine == of {
			delete(s.shadows, id)
			t.forget = append(t.forget, func() { s.shadows[id] = r })
		}
	}
}

// shadowResult checks a result that a shadow publishes.
func (c *checker) shadowResult(s *seen, t *txn, r *event.Result) {
	if s.shadows[r.ID] != nil && t.group.settings.Limits.Epochs == 0 {
		c.w.fail("%s: window %s has two results of a shadow", r.Group, r.ID)
	}
	s.shadows[r.ID] = r
	t.forget = append(t.forget, func() { delete(s.shadows, r.ID) })
	c.ofShadow(t, r.Group, r.Machine, r.Model)
}

// ofShadow checks in whose name a shadow publishes.
func (c *checker) ofShadow(t *txn, group, of, id string) {
	if group != event.ShadowGroup(t.group.name, id) || !c.w.fleet.shadow[of+" "+id] {
		c.w.fail("%s: a shadow of %s publishes for group %s and model %s, which was never a shadow there", t.group.name, of, group, id)
	}
}

// alarmsStay checks that a version of the deployments, or the end of a build, moves no alarm.
func (c *checker) alarmsStay(s *seen, t *txn) {
	if !is[*machine.Fleet](t.batch.Of) && !is[*machine.Build](t.batch.Of) {
		return
	}
	for _, o := range t.batch.Events {
		if a, ok := o.(machine.Alert); ok {
			c.w.fail("%s: a swap publishes alert %s", t.group.name, a.ID)
		}
	}
}

// is reports whether a reply is a T.
func is[T machine.Reply](r machine.Reply) bool { _, is := r.(T); return is }

// alarmOf returns the alarm in the record of a machine.
func alarmOf(record []byte) []byte {
	var head struct {
		Tool struct {
			Alarm json.RawMessage `json:"alarm"`
		} `json:"tool"`
	}
	if err := json.Unmarshal(record, &head); err != nil {
		return nil
	}
	return head.Tool.Alarm
}

// spoil publishes a batch as a monitor does that is built wrong.
func (w *world) spoil(b *machine.Batch) {
	switch {
	case w.Bug == ShadowOnResults:
		for i, o := range b.Events {
			if r, ok := o.(machine.ShadowResult); ok {
				b.Events[i] = machine.Result{Result: r.Result}
			} else if a, ok := o.(machine.ShadowAlert); ok {
				b.Events[i] = machine.Alert(a)
			}
		}
	case w.Bug == SwapMovesAlarm && is[*machine.Build](b.Of):
		for i, r := range b.State {
			if alarm := alarmOf(r.Value); alarm != nil {
				b.State[i].Value = bytes.Replace(r.Value, alarm, []byte("{}"), 1)
			}
		}
	}
}

// fleetEnd checks that monitors use the newest deployments once faults have ended.
func (c *checker) fleetEnd(g *group, s *seen) {
	v := c.w.fleet.last()
	for _, m := range g.members {
		if m.version != v {
			c.w.fail("%s uses deployments %d, the newest are %d", m.name, m.version.number, v.number)
		}
		for part, d := range m.drives {
			if d.over || g.owners[part] != m {
				continue
			}
			coming := d.building || d.owner.BuildDue(d.now()) != nil // a slow build may end behind the end
			d.owner.Machines(func(of *machine.Machine) { c.judges(g, s, of, v, coming) })
		}
	}
}

// judges checks that a machine is judged by what is deployed, or will be from the next tool on.
func (c *checker) judges(g *group, s *seen, of *machine.Machine, v *version, coming bool) {
	want := v.fleet.Of(of.Machine, of.Layout)
	for _, id := range of.Shadows() {
		if c.tookLast(s, g, of, nil) && (want == nil || !slices.ContainsFunc(want.Shadows, func(s machine.Shadow) bool { return s.Model.ID() == id && !c.over(s) })) {
			c.w.fail("%s: shadow %s of %s is over, and still judges", g.name, id, of.Machine)
		}
	}
	now, next := of.Judges()
	if want == nil || now == "" && len(of.Epochs) == 0 {
		return // it takes one with its first window
	}
	id := want.Champion.ID()
	if now == id || s.follows[partitionOf(of.Machine, partitions)].of[of.Machine].given { // what a build saw lies in another order
		return
	}
	t := of.Tools[len(of.Tools)-1]
	sees := coming || t.PastGone || slices.ContainsFunc(t.Judgings, func(j *machine.Judging) bool { return j.Model == id && j.Windows == t.Windows }) // it takes over with the next window
	if next != id || want.Now && !sees && c.tookLast(s, g, of, want.Champion) {
		c.w.fail("%s: %s is judged by %s and then by %q, deployed is %s", g.name, of.Machine, now, next, describe(want))
	}
}

// tookLast reports whether the last window of a machine was one of the tool in its spindle. One that a reader
// passed over after a loss, and one that moves nothing, ends no shadow. A model that is given must take it, and the tool's first one.
func (c *checker) tookLast(s *seen, g *group, of *machine.Machine, by *model.Model) bool {
	for _, from := range c.w.gateways {
		if from.machine == of.Machine {
			last := from.cut[len(from.cut)-1]
			t := of.Tools[len(of.Tools)-1]
			for _, win := range from.cut { // the last one, and the tool's first one
				if by != nil && (win == last || win.EpochString() == t.First.Epoch && win.Seq == t.First.Seq) && by.Covers(win.features.Form) != nil {
					return false
				}
			}
			r := s.results[last.name+"/"+g.name]
			return r != nil && !r.Late && t.Name == last.Tool
		}
	}
	return false
}

// over reports whether a shadow was over before the last windows came.
func (c *checker) over(s machine.Shadow) bool {
	return !s.Until.IsZero() && s.Until.UnixMilli()-epoch0.UnixMilli() <= c.w.calmAt+lastWindow
}

// featuresLost is called when the logs have lost their tails.
func (c *checker) featuresLost() { c.cutOff = true }

package simulation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/model"
)

// swaps is what a group has published that depends on what is deployed. The checker says what
// does not hold of it:
//
//   - a result is of the group, and of a model that was deployed for its machine at some time;
//   - once a model has seen the past of a tool, its verdicts, and the verdicts of a shadow, equal the verdicts of
//     a machine that had the model from the beginning and has taken the same windows, unless two ingesters
//     sent windows of the machine;
//   - the end of a build, and a version of the deployments, publishes no alert and leaves the alarm as it is;
//   - what shadows publish is for the topic of shadows and names a shadow that was deployed,
//     each window has at most one result of each shadow, and when faults have ended no shadow
//     that is over judges;
//   - a window that no model judges goes to no dead letter, and an advisory says so; its machine
//     was without a deployment for it at some time;
//   - each judgement of a window that came with its samples publishes its features once, and
//     one of a window that came as features does not;
//   - once faults have ended, every monitor uses the newest deployments.
//
// That alerts equal the alerts of an owner without any trouble, which is given the same windows, models
// and deployments, is what checker.compare says.
type swaps struct {
	featured map[string]int             // messages of features of a window, by its name
	decided  map[string]int             // judgements of it
	unjudged map[string]bool            // windows that no model could judge
	shadows  map[string]*event.Result   // by id
	past     map[string][]machine.Event // by machine: what it took, in the order in which it did
	asIf     map[asIfOf]*asIf
}

// asIfOf names the model of a machine.
type asIfOf struct{ machine, model string }

// asIf is a machine that had the model of another one from the beginning.
type asIf struct {
	m          *machine.Machine
	tool, life string
}

func newSwaps() swaps {
	return swaps{
		featured: make(map[string]int), decided: make(map[string]int), unjudged: make(map[string]bool), shadows: make(map[string]*event.Result),
		past: make(map[string][]machine.Event), asIf: make(map[asIfOf]*asIf),
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
			c.of(t.group).featured[name(&j.Window)]++
		}
	}
}

// unwatched checks that each window that an owner took has a result or that an advisory says
// why not, and its features.
func (c *checker) unwatched(s *seen, t *txn) {
	results, shadows := t.results(), t.shadows()
	for _, j := range t.judged {
		if !j.edge {
			s.decided[name(&j.Window)]++
		}
	}
	without := 0
	for _, j := range t.judged {
		id := name(&j.Window)
		if s.decided[id] != s.featured[id] {
			c.w.fail("%s: window %s was judged %d times, and its features are published %d times", t.group.name, id, s.decided[id], s.featured[id])
		}
		r := results[id]
		if c.asIf(s, t, j, append(shadows[id], r)); r != nil {
			c.took(s, t, j.Machine, j.event())
			continue
		}
		if len(s.past[j.Machine]) > 0 { // it moves the tools all the same
			c.took(s, t, j.Machine, j.event())
		}
		without++
		s.unjudged[id] = true
		switch {
		case !c.w.fleet.without[j.Machine]:
			c.w.fail("%s: window %s is not judged, and there always was a model for it", t.group.name, id)
		case len(s.past[j.Machine]) == 0 && !s.machine(j.Machine).refused:
			c.w.fail("%s: no model judges window %s, and no advisory says so", t.group.name, id)
		}
	}
	if len(results)+without != len(t.judged) || uint64(without) != t.batch.Unwatched {
		c.w.fail("%s: %d results and %d windows without a model, %d windows were taken, %d are counted as unwatched", t.group.name, len(results), without, len(t.judged), t.batch.Unwatched)
	}
}

// shadows returns the results of shadows of a transaction by their windows.
func (t *txn) shadows() map[string][]*event.Result {
	var results map[string][]*event.Result
	for _, o := range t.batch.Events {
		if r := o.Result; r != nil && o.Shadow {
			if results == nil {
				results = make(map[string][]*event.Result)
			}
			id := nameOf(r.Machine, r.Epoch, r.Seq)
			results[id] = append(results[id], r)
		}
	}
	return results
}

// took notes what a machine took.
func (c *checker) took(s *seen, t *txn, of string, e machine.Event) {
	n := len(s.past[of])
	s.past[of] = append(s.past[of], e)
	t.forget = append(t.forget, func() { s.past[of] = s.past[of][:min(n, len(s.past[of])):n] })
}

// declaredNew notes that a command has declared a tool new.
func (c *checker) declaredNew(s *seen, t *txn, a *event.Alert) {
	s.forgetAsIf(a.Machine)
	for _, m := range t.batch.Of.Commands {
		if c.ids(t)[m.Offset] == a.Command {
			c.took(s, t, a.Machine, m)
			return
		}
	}
}

// retired forgets what a machine took.
func (s *seen) retired(t *txn, of string) {
	s.forgetAsIf(of)
	past := s.past[of]
	delete(s.past, of)
	t.forget = append(t.forget, func() { s.past[of] = past })
	for id, r := range s.shadows {
		if r.Machine == of {
			delete(s.shadows, id)
			t.forget = append(t.forget, func() { s.shadows[id] = r })
		}
	}
}

func (s *seen) forgetAsIf(of string) {
	maps.DeleteFunc(s.asIf, func(key asIfOf, _ *asIf) bool { return key.machine == of })
}

// asIf holds the results of a window to what a machine says that had their model from the
// beginning. The window may have no result.
func (c *checker) asIf(s *seen, t *txn, j judged, results []*event.Result) {
	if c.cutOff {
		clear(s.asIf)
	}
	for key, a := range s.asIf {
		if key.machine != j.Machine {
			continue
		}
		want := a.m.Apply(j.event()).Result
		if j.Tool != a.tool {
			continue
		}
		if want != nil && !want.Late && want.ToolLife != a.life {
			delete(s.asIf, key) // another tool of its name
			continue
		}
		for _, r := range results {
			if r == nil || r.Model != key.model {
				continue
			}
			c.held++
			if want == nil || verdict(want) != verdict(r) {
				c.w.fail("%s: window %s is judged\n%s\nby a machine that had the model from the beginning\n%s", t.group.name, r.ID, verdict(r), verdict(want))
			}
		}
	}
}

// verdict returns what a result says of its window, without the alarm and whose it is.
func verdict(r *event.Result) string {
	if r == nil {
		return "not at all"
	}
	of := *r
	of.Alarm, of.Incident, of.ID, of.Group, of.Champion, of.Threshold = "", "", "", "", nil, 0
	return string(event.JSON(of))
}

// swapped begins to hold a machine to one that had its model from the beginning, if a build has shown the model
// the past of a tool.
func (c *checker) swapped(s *seen, t *txn) {
	for key, a := range s.asIf {
		if t.missed(key, a.tool) {
			delete(s.asIf, key)
		}
	}
	if t.batch.Of == nil || t.batch.Of.Built == nil || c.cutOff {
		return
	}
	job := t.batch.Of.Built.Job()
	key := asIfOf{job.Machine, job.Model}
	built := slices.ContainsFunc(t.batch.Lines, func(l machine.MachineLine) bool { return l.Machine == job.Machine && l.Event == "model_built" })
	delete(s.asIf, key)
	if !built || s.twoIngesters(job) || !s.inOrder(job, t.before[len(t.before)-1].seen) {
		return
	}
	i := slices.IndexFunc(c.w.fleet.models.of(job.Model), func(m *model.Model) bool { return m.ID() == job.Model })
	m, err := machine.New(job.Machine, t.group.settings, machine.NewModel(c.w.fleet.models.of(job.Model)[i]), epoch0)
	if err != nil {
		panic(err) // the group's monitors use the same settings
	}
	for _, e := range s.past[job.Machine] {
		m.Apply(e)
	}
	s.asIf[key] = &asIf{m, job.Tool, job.Life}
}

// missed reports whether a transaction leaves what a model knows of a tool behind, or without some of the tool's
// windows: then another model judges it.
func (t *txn) missed(of asIfOf, tool string) bool {
	type windows struct {
		Model   string `json:"model"`
		Windows int    `json:"windows"`
	}
	var came, seen *int
	for _, r := range t.batch.State {
		if r.Key.Machine != of.machine || r.Key.Slow {
			continue
		}
		switch {
		case r.Key.Model == of.model && r.Key.Tool == tool:
			var j windows
			if json.Unmarshal(r.Value, &j) != nil {
				return true // it is gone
			}
			seen = &j.Windows
		case r.Key.OfTool && r.Key.Tool == tool:
			var of windows
			if json.Unmarshal(r.Value, &of) != nil {
				return true
			}
			came = &of.Windows
		case !r.Key.OfTool && r.Key.Model == "":
			var head struct {
				Tool struct {
					Tool    string `json:"tool"`
					Windows int    `json:"windows"`
				} `json:"tool"`
				Judgings []windows `json:"judgings"`
			}
			if json.Unmarshal(r.Value, &head) != nil || head.Tool.Tool != tool {
				continue
			}
			i := slices.IndexFunc(head.Judgings, func(j windows) bool { return j.Model == of.model })
			return i < 0 || head.Judgings[i].Windows != head.Tool.Windows
		}
	}
	return came != nil && seen != nil && *came != *seen
}

// inOrder reports whether the features that a build saw lie in the order in which the machine
// took their windows. Windows that come with samples and windows that come as features lie on
// two topics, and each group takes them in an order of its own.
func (s *seen) inOrder(job machine.BuildJob, shown []*sentFeatures) bool {
	at := make(map[string]int)
	for i, e := range s.past[job.Machine] {
		if w, ok := e.(machine.Window); ok {
			at[name(&w.Window)] = i + 1
		}
	}
	first := at[fmt.Sprintf("%s/%s/%d", job.Machine, job.First.Epoch, job.First.Seq)]
	last, had := 0, make(map[string]bool)
	for _, f := range shown {
		id := name(&f.Window)
		if f.Machine != job.Machine || had[id] || at[id] < first {
			continue
		}
		had[id] = true
		if at[id] < last {
			return false
		}
		last = at[id]
	}
	return true
}

// twoIngesters reports whether the machine took windows of two epochs in turn. Which of two
// ingesters counts depends on what came before the tool, and on when Kafka got the windows; a
// build sees neither.
func (s *seen) twoIngesters(job machine.BuildJob) bool {
	over := make(map[string]bool)
	last := ""
	for _, e := range s.past[job.Machine] {
		w, ok := e.(machine.Window)
		if !ok || w.EpochString() == last {
			continue
		}
		if over[w.EpochString()] {
			return true
		}
		over[last], last = true, w.EpochString()
	}
	return false
}

// shadowed checks what a shadow publishes.
func (c *checker) shadowed(s *seen, t *txn, o machine.Output) {
	var group, of, id string
	switch {
	case o.Result != nil:
		group, of, id = o.Result.Group, o.Result.Machine, o.Result.Model
		if s.shadows[o.Result.ID] != nil {
			c.w.fail("%s: window %s has two results of a shadow", group, o.Result.ID)
		}
		s.shadows[o.Result.ID] = o.Result
		t.forget = append(t.forget, func() { delete(s.shadows, o.Result.ID) })
	case o.Alert != nil:
		group, of = o.Alert.Group, o.Alert.Machine
		_, id, _ = strings.Cut(group, "~")
	default:
		c.w.fail("%s: a shadow publishes something else than results and alerts", t.group.name)
		return
	}
	if group != machine.ShadowGroup(t.group.name, id) || !c.w.fleet.shadow[of+" "+id] {
		c.w.fail("%s: a shadow of %s publishes for group %s and model %s, which was never a shadow there", t.group.name, of, group, id)
	}
}

// alarmsStay checks that a version of the deployments, or the end of a build, moves no alarm.
func (c *checker) alarmsStay(s *seen, t *txn) {
	if of := t.batch.Of; of == nil || of.Fleet == nil && of.Built == nil {
		return
	}
	for _, o := range t.batch.Events {
		if o.Alert != nil && !o.Shadow {
			c.w.fail("%s: a swap publishes alert %s", t.group.name, o.Alert.ID)
		}
	}
}

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
		for i := range b.Events {
			b.Events[i].Shadow = false
		}
	case w.Bug == SwapMovesAlarm && b.Of != nil && b.Of.Built != nil:
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
		if c.tookLast(s, g, of) && (want == nil || !slices.ContainsFunc(want.Shadows, func(s machine.Shadow) bool { return s.Model.ID() == id && !c.over(s) })) {
			c.w.fail("%s: shadow %s of %s is over, and still judges", g.name, id, of.Machine)
		}
	}
	now, next := of.Judges()
	if want == nil || now == "" && len(of.Epochs) == 0 {
		return // it takes one with its first window
	}
	id := want.Champion.ID()
	if now == id {
		return
	}
	t := of.Tools[len(of.Tools)-1]
	sees := coming || t.PastGone || slices.ContainsFunc(t.Judgings, func(j *machine.Judging) bool { return j.Model == id && j.Windows == t.Windows }) // it takes over with the next window
	if next != id || want.Now && !sees && c.tookLast(s, g, of) {
		c.w.fail("%s: %s is judged by %s and then by %q, deployed is %s", g.name, of.Machine, now, next, describe(want))
	}
}

// tookLast reports whether the last window of a machine was one of the tool in its spindle. One that a reader
// passed over after a loss, and one that moves nothing, ends no shadow.
func (c *checker) tookLast(s *seen, g *group, of *machine.Machine) bool {
	for _, from := range c.w.gateways {
		if from.machine == of.Machine {
			last := from.cut[len(from.cut)-1]
			r := s.results[name(last.Window)+"/"+g.name]
			return r != nil && !r.Late && of.Tools[len(of.Tools)-1].Name == last.Tool
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

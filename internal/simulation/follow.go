package simulation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/machine/oracle"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/window"
)

// follower holds what a group publishes of one machine against the oracle, which takes what the
// group's monitors took, in the same order. The oracle has no records and no owners: it forgets nothing when
// another monitor takes over. It goes back when the broker has lost what the group wrote.
type follower struct {
	w     *world
	g     *group
	name  string
	steps []step          // that it took
	m     *oracle.Machine // nil: to be made of the steps
	names map[int]string  // incidents of the oracle, as the group calls them

	// given says that verdicts are taken from what is published, and that the model which judges is not
	// held: a build saw something else than the windows that moved its tool, in their order.
	given    bool
	came     int       // windows but for repeats, at any time
	trouble  time.Time // of the last tick that was kept
	models   map[string]*oracle.Model
	deployed map[*version]map[string]*oracle.Deployment
	learnt   map[some]model.Reference
	memory   map[some]cycle.Memory
}

// step is something that the machine took.
type step struct {
	version *version
	window  *oracle.Window // its value is a *seenWindow
	other   *machine.Refusal
	command *event.Command
	offset  int64 // of the command
	silent  bool  // an advisory of the tick says that no window comes
	tick    *machine.Tick
	built   *builtOf

	at, now time.Time
	says    []string // incidents of the machine that were named, in order
	trials  []string // likewise of shadows
}

// seenWindow is a window, and what its group has published of it.
type seenWindow struct {
	*window.Features
	result *event.Result
}

// builtOf is a build that an owner took.
type builtOf struct {
	job  machine.BuildJob
	from int // of the tool's windows: the first one that it saw

	settings *oracle.Settings // of the alarm, when it began
}

// some names windows that a model has judged, or that models of one print have learnt a reference from.
type some struct {
	by          string
	first, last *oracle.Window
	n           int
}

// these returns the name of windows that end with one.
func these(by string, before []*oracle.Window, last *oracle.Window) some {
	first := last
	if len(before) > 0 {
		first = before[0]
	}
	return some{by, first, last, len(before) + 1}
}

func newFollower(w *world, g *group, name string) *follower {
	f := &follower{
		w: w, g: g, name: name, steps: make([]step, 0, 128), models: make(map[string]*oracle.Model), deployed: make(map[*version]map[string]*oracle.Deployment), learnt: make(map[some]model.Reference), memory: make(map[some]cycle.Memory),
	}
	f.begin()
	return f
}

func (f *follower) begin() {
	f.m = &oracle.Machine{}
	f.names = make(map[int]string)
}

// back makes the machine one that has taken only its first steps.
func (f *follower) back(n int) {
	if n < len(f.steps) {
		f.steps = f.steps[:n:n]
		f.m = nil
	}
}

// take lets the oracle take a step.
func (f *follower) take(s step) (oracle.Outcome, *step) {
	f.machine()
	f.steps = append(f.steps, s)
	last := &f.steps[len(f.steps)-1]
	return f.do(last), last
}

// giveUp takes verdicts and models from what is published from now on.
func (f *follower) giveUp() {
	if !f.given {
		f.given, f.m = true, nil
		clear(f.deployed)
		clear(f.models)
	}
}

func (f *follower) do(s *step) oracle.Outcome {
	f.deploy(s)
	switch {
	case s.window != nil:
		out := f.m.Window(*s.window)
		if f.given && out.Result != nil && out.Result.Verdict.Outcome == "" {
			out.Result = nil // no model has judged it
		}
		return out
	case s.other != nil:
		return f.m.Unreadable(s.at, s.now)
	case s.command != nil && s.command.Action == event.Rename && !f.m.Known() && !f.m.Came(s.command.ID) && f.command(s).Timely():
		return f.renames(s)
	case s.command != nil:
		return f.m.Command(f.command(s))
	case s.built != nil:
		return f.build(s)
	case s.tick != nil:
		return f.m.Tick(oracle.Tick{Now: s.tick.Now, Trouble: s.tick.Trouble, Behind: !s.silent})
	}
	f.m.Restarted(s.now) // another owner goes on
	return oracle.Outcome{}
}

// command returns a command as the oracle takes it.
func (f *follower) command(s *step) oracle.Command {
	c := s.command
	of := oracle.Command{ID: c.ID, Action: string(c.Action), Tool: c.Tool, OfTool: c.Tool != "" && c.Action.MasksMachine(), At: s.at, Issued: c.Issued, Until: c.Until, FalseAlarm: c.FalseAlarm}
	if c.Incident != "" {
		of.Incident = -1
		for n, name := range f.names {
			if name == c.Incident { // the last one: windows that come again to a machine that was retired raise it again
				of.Incident = max(of.Incident, n)
			}
		}
	}
	return of
}

// deploy lets the machine know what is deployed for it.
func (f *follower) deploy(s *step) {
	f.m.Settings = settingsOf(f.g.settings.Alarm)
	f.m.Silence = f.g.settings.Silence
	f.m.Limits = oracle.Limits{Tools: f.g.settings.Limits.Tools, Epochs: f.g.settings.Limits.Epochs}
	of := f.deployed[s.version]
	if of == nil {
		of = make(map[string]*oracle.Deployment)
		for _, layout := range f.w.fleet.models.layouts() {
			if d := s.version.fleet.Of(f.name, layout); d != nil {
				of[layout] = f.deployment(d)
			} else if f.given {
				of[layout] = &oracle.Deployment{Champion: given}
			}
		}
		f.deployed[s.version] = of
	}
	f.m.Deployed = of
	for id, m := range f.models {
		m.Gone = s.version.fleet.Model(id) == nil
	}
}

// given is a model that says what was published, which may be nothing.
var given = &oracle.Model{
	ID: "given", Knows: true,
	Covers: func(w *oracle.Window) bool { return w.Value.(*seenWindow).result != nil },
	Judge: func(_, _ []*oracle.Window, w *oracle.Window) oracle.Verdict {
		return verdictOf(w.Value.(*seenWindow).result)
	},
}

func verdictOf(r *event.Result) oracle.Verdict {
	if r == nil {
		return oracle.Verdict{}
	}
	return oracle.Verdict{Outcome: string(r.Verdict), Reason: r.Unknown, Score: r.Score}
}

func settingsOf(s alarm.Settings) oracle.Settings {
	s, err := s.Complete()
	if err != nil {
		panic(err) // the simulation's own
	}
	return oracle.Settings{K: s.K, N: s.N, Clear: s.Clear, OnHold: s.OnHold, OffHold: s.OffHold, Latch: s.Latch, MaxShelf: s.MaxShelf, ReAlarm: s.ReAlarm, Threshold: s.Threshold}
}

// deployment returns what is deployed as the oracle takes it.
func (f *follower) deployment(d *machine.Deployment) *oracle.Deployment {
	of := &oracle.Deployment{Champion: given}
	if d.Alarm != (alarm.Settings{}) {
		s := settingsOf(d.Alarm)
		of.Settings = &s
	}
	if f.given {
		return of
	}
	of.Champion, of.Now = f.model(d.Champion), d.Now
	for _, s := range d.Shadows {
		of.Shadows = append(of.Shadows, oracle.Shadow{Model: f.model(s.Model), Until: s.Until})
	}
	return of
}

// model returns a model as the oracle takes it.
func (f *follower) model(m *model.Model) *oracle.Model {
	of := f.models[m.ID()]
	if of == nil {
		judge := f.w.fleet.models.judge(m)
		of = &oracle.Model{
			ID: m.ID(), Print: judge.print, Learns: m.Reference.Windows,
			Covers: func(w *oracle.Window) bool { return judge.takes(m, w.Value.(*seenWindow).Form) },
			Judge: func(learnt, seen []*oracle.Window, w *oracle.Window) oracle.Verdict {
				return f.ask(m, judge, learnt, seen, w)
			},
		}
		f.models[m.ID()] = of
	}
	return of
}

// ask returns what a model says of a window that it has learnt from some windows before, and has seen some.
func (f *follower) ask(m *model.Model, judge *judge, learnt, seen []*oracle.Window, w *oracle.Window) oracle.Verdict {
	var ref model.Reference
	if n := len(learnt); n > 0 {
		ref = f.learnt[these(judge.print, learnt[:n-1], learnt[n-1])]
	}
	var memory *cycle.Memory
	if m.Cycle != nil && seen != nil {
		memory = new(cycle.Memory)
		if n := len(seen); n > 0 {
			*memory = f.memory[these(m.ID(), seen[:n-1], seen[n-1])]
			memory.Belief, memory.Zero, memory.Variance, memory.Last = slices.Clone(memory.Belief), slices.Clone(memory.Zero), slices.Clone(memory.Variance), slices.Clone(memory.Last)
		}
	}
	v := judge.JudgeFeatures(w.Value.(*seenWindow).Features, &ref, memory)
	if memory != nil {
		f.memory[these(m.ID(), seen, w)] = *memory
	}
	if seen != nil && v.Outcome == model.Learning {
		f.learnt[these(judge.print, learnt, w)] = ref
	}
	return oracle.Verdict{Outcome: string(v.Outcome), Reason: string(v.Reason), Score: v.Score}
}

// build lets a model see the past of a tool.
func (f *follower) build(s *step) (out oracle.Outcome) {
	if f.given {
		return out
	}
	job := s.built.job
	windows := f.m.Windows(job.Tool)
	by := f.models[job.Model]
	if by == nil || len(windows) == 0 || !isFirst(windows[0], job.First) {
		return out
	}
	out, _ = f.m.Built(by, oracle.Job{Model: job.Model, Tool: job.Tool, First: windows[0], Settings: s.built.settings}, windows[min(s.built.from, len(windows)):], s.at)
	return out
}

func isFirst(w *oracle.Window, first machine.FirstWindow) bool {
	return w.Epoch == first.Epoch && w.Seq == first.Seq
}

// published is what a transaction publishes of one machine, in order.
type published struct {
	results    []*event.Result
	alerts     []*event.Alert
	advisories []*event.Advisory
	trials     []*event.Result
	shadows    []*event.Alert // of shadows
}

// byMachine sorts what a transaction publishes.
func (t *txn) byMachine() map[string]*published {
	all := make(map[string]*published)
	of := func(name string) *published {
		p := all[name]
		if p == nil {
			p = new(published)
			all[name] = p
		}
		return p
	}
	for _, o := range t.batch.Events {
		switch {
		case o.Result != nil && o.Shadow:
			p := of(o.Result.Machine)
			p.trials = append(p.trials, o.Result)
		case o.Alert != nil && o.Shadow:
			p := of(o.Alert.Machine)
			p.shadows = append(p.shadows, o.Alert)
		case o.Result != nil:
			p := of(o.Result.Machine)
			p.results = append(p.results, o.Result)
		case o.Alert != nil:
			p := of(o.Alert.Machine)
			p.alerts = append(p.alerts, o.Alert)
		case o.Advisory != nil:
			p := of(o.Advisory.Machine)
			p.advisories = append(p.advisories, o.Advisory)
		}
	}
	return all
}

// followers are the followers of one group and partition.
type followers struct {
	of      map[string]*follower
	version *version
	epoch   int                      // of the producer that published last
	due     map[*machine.Build]begun // builds that have begun
}

// begun is how many windows the tool and the machine had when a build began, and the settings of the alarm.
type begun struct {
	windows, came int
	settings      *oracle.Settings
}

// retained returns how many windows may come while a build runs; with more, it is run again.
func (f *follower) retained() int { return cmp.Or(f.g.settings.Limits.Retained, math.MaxInt) }

// follow holds a transaction to what the oracle says.
func (c *checker) follow(s *seen, t *txn) {
	fs := s.followers(t.part)
	x := &following{c: c, s: s, t: t, fs: fs, all: t.byMachine()}
	for _, f := range fs.of {
		n := len(f.steps)
		t.forget = append(t.forget, func() { f.back(n) })
	}
	if fs.epoch != t.epoch {
		fs.epoch, fs.version = t.epoch, t.version
		clear(fs.due)
		for _, f := range fs.of {
			f.take(step{version: fs.version, now: t.began})
		}
	}
	for _, in := range t.before {
		x.input(in)
		if c.w.wrong != "" {
			return
		}
	}
	for _, name := range sorted(x.all) {
		if rest := x.all[name].rest(); rest != "" {
			x.fail(name, "published is, and does not follow: %s", rest)
		}
	}
	if x.judged != len(t.judged) {
		c.w.fail("%s partition %d: features of %d windows are published, expected of %d", t.group.name, t.part, len(t.judged), x.judged)
	}
}

func (s *seen) followers(part int) *followers {
	fs := s.follows[part]
	if fs == nil {
		fs = &followers{of: make(map[string]*follower), due: make(map[*machine.Build]begun)}
		s.follows[part] = fs
	}
	return fs
}

func (p *published) rest() string {
	switch {
	case len(p.results) > 0:
		return "a result of " + p.results[0].ID
	case len(p.alerts) > 0:
		return tellAlert(p.alerts[0])
	case len(p.trials) > 0:
		return "a result of a shadow of " + p.trials[0].ID
	case len(p.shadows) > 0:
		return "of a shadow, " + tellAlert(p.shadows[0])
	}
	for _, a := range p.advisories {
		if held(a) != "" {
			return "advisory " + string(a.Kind) + " " + string(a.State)
		}
	}
	return ""
}

// following is one transaction that is held to the oracle.
type following struct {
	c   *checker
	s   *seen
	t   *txn
	fs  *followers
	all map[string]*published

	judged   int             // windows that do not come again
	features window.Features // that are opened
}

func (x *following) fail(name, format string, args ...any) {
	f := x.fs.of[name]
	given := ""
	if f != nil && f.given {
		given = " (verdicts are given)"
	}
	x.c.w.fail("%s partition %d: %s%s: %s", x.t.group.name, x.t.part, name, given, fmt.Sprintf(format, args...))
}

// of returns the follower of a machine.
func (x *following) of(name string) *follower {
	f := x.fs.of[name]
	if f == nil {
		f = newFollower(x.c.w, x.t.group, name)
		x.fs.of[name] = f
		x.t.forget = append(x.t.forget, func() { f.back(0) })
	}
	return f
}

func (x *following) published(name string) *published {
	p := x.all[name]
	if p == nil {
		p = new(published)
		x.all[name] = p
	}
	return p
}

// input lets machines take what an owner took.
func (x *following) input(in *input) {
	r := in.reply
	switch {
	case in.due != nil:
		if f := x.fs.of[in.due.Job().Machine]; f != nil {
			f.machine()
			f.deploy(&step{version: x.fs.version})
			x.fs.due[in.due] = begun{len(f.m.Windows(in.due.Job().Tool)), f.came, f.m.AlarmSettings()}
		}
	case r.Fleet != nil:
		if in.version.number > x.fs.version.number {
			x.fs.version = in.version
		}
	case r.Windows != nil:
		x.windows(r.Windows, r.Now)
	case r.Features != nil:
		x.windows(r.Features, r.Now)
	case r.Commands != nil:
		for _, m := range r.Commands {
			x.step(x.of(m.Key), step{command: x.c.w.broker.command(m), offset: m.Offset, at: m.At, now: r.Now})
		}
	case r.Tick != nil:
		decides := x.t.batch.Of != nil && x.t.batch.Of.Tick == r.Tick
		for _, name := range sorted(x.fs.of) {
			x.tick(x.fs.of[name], r.Tick, decides)
		}
	case r.End != nil && !r.End.Known:
		for _, f := range x.fs.of {
			if f.machine().Overdue(r.Now) {
				f.take(step{version: x.fs.version, now: r.Now}) // the time begins again
			}
		}
	case r.Built != nil:
		x.built(in)
	}
}

// mute is how long after its time a silent machine must have an advisory, once faults have ended.
const mute = 15 * time.Second

// tick lets a machine know the time. Only the monitor knows whether it is behind, and when the advisory of a machine of
// which no window comes is due because of that.
func (x *following) tick(f *follower, t *machine.Tick, decides bool) {
	silent := decides && slices.ContainsFunc(x.published(f.name).advisories, func(a *event.Advisory) bool { return a.Kind == event.SilenceAdvisory && a.State == event.Raised })
	if !silent && x.c.w.time().Add(-mute).After(epoch0.Add(time.Duration(x.c.w.calmAt)*time.Millisecond)) && x.c.w.calm && f.machine().Overdue(t.Now.Add(-mute)) {
		x.fail(f.name, "no window comes, and no advisory says so")
	}
	x.step(f, step{tick: t, silent: silent})
}

func sorted[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// machine returns the oracle's machine, which it makes of its steps if it has to.
func (f *follower) machine() *oracle.Machine {
	if f.m != nil {
		return f.m
	}
	f.begin()
	for i := range f.steps {
		s := &f.steps[i]
		own, trials := mentions(f.do(s))
		for i, n := range own[:min(len(own), len(s.says))] {
			f.names[n] = s.says[i]
		}
		for i, n := range trials[:min(len(trials), len(s.trials))] {
			f.names[n] = s.trials[i]
		}
	}
	return f.m
}

// mentions returns the numbers of alarms that are in an outcome, as they are held: of the machine, and of shadows.
func mentions(out oracle.Outcome) (own, trials []int) {
	if out.Result != nil {
		own = append(own, out.Result.Incident)
	}
	for _, r := range out.Trials {
		trials = append(trials, r.Incident)
	}
	for _, a := range out.Alerts {
		if a.Shadow == "" {
			own = append(own, a.Incident)
		} else {
			trials = append(trials, a.Incident)
		}
	}
	return own, trials
}

// windows lets machines take windows.
func (x *following) windows(all []machine.Input, now time.Time) {
	for _, in := range all {
		if in.Open == nil {
			continue
		}
		if err := in.Open(&x.features); err != nil {
			if why := refusalOf(machine.Letter{Err: err}); why != nil {
				x.step(x.of(why.Machine), step{other: why, at: in.At, now: now})
			}
			continue
		}
		features := x.c.w.opened.Features
		w := &oracle.Window{
			Tool: features.Tool, Life: features.ToolLife, Epoch: features.EpochString(), Seq: features.Seq, Start: features.Start, End: features.End(), At: in.At, Now: now,
			Layout: features.Form.Layout().Fingerprint(), Sensors: sensors(features),
		}
		p, v := x.published(features.Machine), &seenWindow{Features: features}
		if len(p.results) > 0 && p.results[0].Epoch == w.Epoch && p.results[0].Seq == w.Seq {
			v.result = p.results[0]
		}
		w.Value = v
		f := x.of(features.Machine)
		x.step(f, step{window: w, at: in.At, now: now})
	}
}

// sensors returns what features say of the sensors.
func sensors(f *window.Features) []oracle.Sensor {
	all := make([]oracle.Sensor, len(f.Quality))
	for i, c := range f.Form.Layout().Channels() {
		const clock, failed = signal.ClockStep | signal.RateError, signal.Dropout | signal.Flatline | signal.NonFinite
		q := f.Quality[i]
		all[i] = oracle.Sensor{Name: c.Name, Rate: "1Hz", Fault: q&^clock != 0, Failed: q&failed != 0, Clock: q&clock != 0}
	}
	return all
}

// built lets a machine take what a model has seen of a tool.
func (x *following) built(in *input) {
	b := in.reply.Built
	job := b.Job()
	due, known := x.fs.due[b]
	f := x.fs.of[job.Machine]
	if delete(x.fs.due, b); !known || b.Failed || f == nil || f.came-due.came > f.retained() {
		return
	}
	f.machine()
	from, like := x.c.saw(f, job, due.windows, in.seen)
	if !like || x.c.cutOff {
		f.giveUp()
	}
	x.step(f, step{built: &builtOf{job, from, due.settings}, at: f.lastAt()})
}

// lastAt returns when Kafka got the last window of the machine.
func (f *follower) lastAt() time.Time {
	for _, s := range slices.Backward(f.steps) {
		if s.window != nil {
			return s.at
		}
	}
	return epoch0
}

// saw returns from which of a tool's windows on a build saw them, when there were so many of them. It reports false if
// what it saw is not what moved the tool, in that order: windows that come with samples and windows that
// come as features lie on two topics, and which of two ingesters counts depends on what came before.
func (c *checker) saw(f *follower, job machine.BuildJob, due int, shown []*sentFeatures) (from int, like bool) {
	windows := f.m.Windows(job.Tool)
	if len(windows) == 0 || !isFirst(windows[0], job.First) {
		return 0, true
	}
	at := make(map[string]int)
	n := 0
	for _, s := range shown {
		if s.Machine != job.Machine {
			continue
		}
		id := s.name
		if _, had := at[id]; !had {
			n++
			at[id] = n
		}
	}
	last := 0
	for i, w := range windows[:min(due, len(windows))] {
		id := nameOf(job.Machine, w.Epoch, w.Seq)
		k := at[id]
		switch {
		case k == 0 && last == 0:
			from = i + 1
		case k == 0 && !c.cutOff && c.w.broker.partOf(job.Machine).has(id, job.First.At):
			c.w.fail("%s: model %s was not shown window %s, which came before its build began", f.g.name, job.Model, id)
			return from, true
		case k == 0 || k < last:
			return from, false
		default:
			last = k
		}
	}
	if f.twoEpochs() {
		return from, false
	}
	return from, true
}

// twoEpochs reports whether windows of two epochs came in turn.
func (f *follower) twoEpochs() bool {
	over := make(map[string]bool)
	last := ""
	for i := range f.steps {
		w := f.steps[i].window
		if w == nil || w.Epoch == last {
			continue
		}
		if over[w.Epoch] {
			return true
		}
		over[last], last = true, w.Epoch
	}
	return false
}

// step lets a machine take a step, and holds what is published to what the oracle says.
func (x *following) step(f *follower, s step) {
	if x.c.w.wrong != "" {
		return
	}
	s.version = x.fs.version
	out, kept := f.take(s)
	if s.window != nil && x.c.w.Trace {
		x.c.w.say("  %s takes %s/%s/%d of %s: %s", x.t.group.name, f.name, s.window.Epoch, s.window.Seq, s.window.Tool, out.Place)
	}
	p := x.published(f.name)
	if f.given {
		p.trials, p.shadows = nil, nil
		p.advisories = slices.DeleteFunc(p.advisories, func(a *event.Advisory) bool {
			return a.Kind == event.ModelAdvisory || a.Kind == event.RefusedAdvisory || a.Kind == event.UnknownAdvisory
		})
	}
	if s.tick != nil && s.tick.Trouble.Equal(f.trouble) && len(out.Alerts) == 0 && len(out.Advisories) == 0 {
		f.steps = f.steps[:len(f.steps)-1] // nothing follows from it
		return
	}
	if s.tick != nil {
		f.trouble = s.tick.Trouble
	}
	if s.window != nil && out.Place != oracle.Repeat {
		if i := x.judged; i >= len(x.t.judged) || x.t.judged[i].Seq != s.window.Seq || x.t.judged[i].Machine != f.name {
			x.fail(f.name, "window %s/%d %s is not published as judged", s.window.Epoch, s.window.Seq, out.Place)
		}
		x.judged++
		if out.Place != oracle.Nowhere {
			f.came++
		}
	}
	x.result(f, p, kept, &out)
	x.alerts(f, p, kept, &out)
	x.answer(f, p, kept, &out)
	x.advisories(f, p, &out)
}

// incident holds the name of an alarm to its number.
func (x *following) incident(f *follower, said *[]string, of string, n int, name string) {
	*said = append(*said, name)
	switch {
	case n == 0 && name == "", n != 0 && f.names[n] == name && name != "":
	case n != 0 && name != "" && f.names[n] == "":
		f.names[n] = name
	default:
		x.fail(f.name, "%s: alarm %q, expected is alarm %d, which was %q", of, name, n, f.names[n])
	}
}

// result holds the result of a window.
func (x *following) result(f *follower, p *published, s *step, out *oracle.Outcome) {
	if s.window == nil {
		return
	}
	id := nameOf(f.name, s.window.Epoch, s.window.Seq)
	r := s.window.Value.(*seenWindow).result
	if (r == nil) != (out.Result == nil) {
		x.fail(f.name, "window %s %s has a result: %v, expected: %v", id, out.Place, r != nil, out.Result != nil)
		return
	}
	if r == nil {
		return
	}
	p.results = p.results[1:]
	want := out.Result
	if r.Late != want.Late || r.Alarm != want.Alarm {
		x.fail(f.name, "window %s %s: late %v, alarm %s; expected late %v, alarm %s", id, out.Place, r.Late, r.Alarm, want.Late, want.Alarm)
	}
	if x.incident(f, &s.says, "window "+id, want.Incident, r.Incident); f.given {
		return
	}
	x.c.held++
	if got := verdictOf(r); r.Model != want.Model || got != want.Verdict {
		x.fail(f.name, "window %s %s of tool %s: model %s says %v, expected model %s says %v", id, out.Place, r.Tool, r.Model, got, want.Model, want.Verdict)
	}
	for _, want := range out.Trials {
		if len(p.trials) == 0 || nameOf(f.name, p.trials[0].Epoch, p.trials[0].Seq) != id {
			x.fail(f.name, "window %s %s: nothing of shadow %s, expected %v", id, out.Place, want.Model, want.Verdict)
			return
		}
		r := p.trials[0]
		p.trials = p.trials[1:]
		if got := verdictOf(r); r.Model != want.Model || got != want.Verdict || r.Late != want.Late || r.Alarm != want.Alarm {
			x.fail(f.name, "window %s %s: shadow %s says %v, alarm %s; expected shadow %s says %v, alarm %s", id, out.Place, r.Model, got, r.Alarm, want.Model, want.Verdict, want.Alarm)
		}
		x.incident(f, &s.trials, "shadow "+r.Model+" of window "+id, want.Incident, r.Incident)
	}
}

func tellAlert(a *event.Alert) string {
	return fmt.Sprintf("alert %s(%s) %s %s alarm %s", a.State, a.Tool, a.Reason, a.Severity, a.Alarm)
}

// alerts holds the alerts of a step.
func (x *following) alerts(f *follower, p *published, s *step, out *oracle.Outcome) {
	for _, want := range out.Alerts {
		says := fmt.Sprintf("alert %s(%s) %s %s alarm %s", want.State, want.Tool, want.Reason, want.Severity, want.Alarm)
		of := &p.alerts
		if want.Shadow != "" {
			of = &p.shadows
			says = "shadow " + want.Shadow + " " + says
		}
		if len(*of) == 0 {
			x.fail(f.name, "expected %s", says)
			return
		}
		a := (*of)[0]
		if want.Shadow != "" {
			i := slices.IndexFunc(*of, func(a *event.Alert) bool { return a.Model == want.Shadow })
			if i < 0 {
				x.fail(f.name, "expected %s", says)
				return
			}
			a = (*of)[i]
			*of = slices.Delete(slices.Clone(*of), i, i+1)
		} else {
			*of = (*of)[1:]
		}
		got := tellAlert(a)
		if want.Shadow != "" {
			got = "shadow " + a.Model + " " + got
		}
		if got != says || !want.At.IsZero() && !a.At.Equal(want.At) {
			x.fail(f.name, "%s at %v, expected %s at %v", got, a.At, says, cmp.Or(want.At, a.At))
		}
		said := &s.says
		if want.Shadow != "" {
			said = &s.trials
		}
		x.incident(f, said, got, want.Incident, a.Incident)
	}
}

// answer holds what became of a command.
func (x *following) answer(f *follower, p *published, s *step, out *oracle.Outcome) {
	if s.command == nil {
		return
	}
	got := oracle.Done
	for _, l := range x.t.batch.Letters {
		if l.Command && l.Offset == s.offset {
			if got = oracle.Again; l.Unknown {
				got = oracle.Unknown
			}
		}
	}
	if len(p.alerts) > 0 && p.alerts[0].State == event.Refused && p.alerts[0].Command == s.command.ID {
		if p.alerts[0].Severity != "info" {
			x.fail(f.name, "%s is answered with severity %s", s.command.Action, p.alerts[0].Severity)
		}
		got, p.alerts = oracle.RefusedAnswer, p.alerts[1:]
	}
	if got != out.Answer {
		x.fail(f.name, "command %s %s %s: %s, expected %s; alarms %v", s.command.ID, s.command.Action, s.command.Incident, got, out.Answer, f.names)
	}
}

// held returns the kind of an advisory in the oracle's words; empty if it knows nothing of it.
func held(a *event.Advisory) string {
	switch a.Kind {
	case event.RivalAdvisory, event.RefusedAdvisory, event.SilenceAdvisory, event.UnknownAdvisory:
		return string(a.Kind)
	case event.SensorAdvisory:
		return oracle.Faulty + a.Subject
	case event.ModelAdvisory:
		if a.Subject != "" {
			return oracle.UsedReference
		}
		return oracle.ModelChanged
	}
	return ""
}

// advisories holds the advisories of a step.
func (x *following) advisories(f *follower, p *published, out *oracle.Outcome) {
	for _, want := range out.Advisories {
		if f.given && slices.Contains([]string{oracle.Refused, oracle.ModelChanged, oracle.UsedReference, oracle.Unmonitored}, want.Kind) {
			continue // a given model never waits, takes all windows, and stands for all models
		}
		i := slices.IndexFunc(p.advisories, func(a *event.Advisory) bool { return held(a) == want.Kind })
		if i < 0 || string(p.advisories[i].State) != want.State {
			x.fail(f.name, "expected advisory %s %s", want.Kind, want.State)
			return
		}
		p.advisories = slices.Delete(p.advisories, i, i+1)
	}
}

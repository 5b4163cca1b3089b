package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/testkit/oracle"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

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
		switch o := o.(type) {
		case machine.ShadowResult:
			add(&of(o.Machine).trials, o.Result)
		case machine.ShadowAlert:
			add(&of(o.Machine).shadows, o.Alert)
		case machine.Result:
			add(&of(o.Machine).results, o.Result)
		case machine.Alert:
			add(&of(o.Machine).alerts, o.Alert)
		case machine.Advisory:
			add(&of(o.Machine).advisories, o.Advisory)
		case machine.Evidence:
		}
	}
	return all
}

func add[E any](to *[]E, e E) { *to = append(*to, e) }

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
	for _, name := range slices.Sorted(maps.Keys(x.all)) {
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
	if in.due != nil {
		if f := x.fs.of[in.due.Job().Machine]; f != nil {
			f.machine()
			f.deploy(&step{version: x.fs.version})
			x.fs.due[in.due] = begun{len(f.m.Windows(in.due.Job().Tool)), f.came, f.m.AlarmSettings()}
		}
		return
	}
	switch r := in.reply.(type) {
	case *machine.Fleet:
		if in.version.number > x.fs.version.number {
			x.fs.version = in.version
		}
	case machine.Read:
		x.windows(r.Inputs, in.now)
	case machine.CommandsDue:
		for _, m := range r {
			x.step(x.of(m.Key), step{command: x.c.w.broker.command(m), offset: m.Offset, at: m.At, now: in.now})
		}
	case machine.Tick:
		decides := in == x.t.before[len(x.t.before)-1]
		for _, name := range slices.Sorted(maps.Keys(x.fs.of)) {
			x.tick(x.fs.of[name], &r, decides)
		}
	case machine.End:
		for _, f := range x.fs.of {
			if !r.Known && f.machine().Overdue(in.now) {
				f.take(step{version: x.fs.version, now: in.now}) // the time begins again
			}
		}
	case *machine.Build:
		x.built(in, r)
	case machine.Fenced, machine.Loaded, machine.FeaturesPassed, machine.CommandsRead, machine.Published, machine.Lost, machine.EvidenceOf: // machines take nothing from them
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
		const clock, failed = signal.Clock, signal.Dropout | signal.Flatline | signal.NonFinite
		q := f.Quality[i]
		all[i] = oracle.Sensor{Name: c.Name, Rate: "1Hz", Fault: q&^clock != 0, Failed: q&failed != 0, Clock: q&clock != 0, Grave: q&clock&^signal.ClockStep != 0}
	}
	return all
}

// built lets a machine take what a model has seen of a tool.
func (x *following) built(in *input, b *machine.Build) {
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
	x.step(f, step{built: &builtOf{job, from, due.settings}})
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
			return a.Kind == event.ModelAdvisory || a.Kind == event.RefusedAdvisory || a.Kind == event.UnknownAdvisory || a.Kind == event.DriftAdvisory
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
		of, said, whose, i := &p.alerts, &s.says, "", 0
		if want.Shadow != "" {
			of, said, whose = &p.shadows, &s.trials, "shadow "+want.Shadow+" "
			i = slices.IndexFunc(*of, func(a *event.Alert) bool { return a.Model == want.Shadow })
		}
		says = whose + says
		if i < 0 || i >= len(*of) {
			x.fail(f.name, "expected %s", says)
			return
		}
		a := (*of)[i]
		*of = slices.Delete(slices.Clone(*of), i, i+1)
		got := whose + tellAlert(a)
		if got != says || !want.At.IsZero() && !a.At.Equal(want.At) {
			x.fail(f.name, "%s at %v, expected %s at %v", got, a.At, says, cmp.Or(want.At, a.At))
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
	letters := x.t.batch.Letters
	if i := slices.IndexFunc(letters, func(l machine.Letter) bool { return l.Log == machine.CommandLog && l.Offset == s.offset }); i >= 0 {
		if got = oracle.Again; letters[i].Unknown {
			got = oracle.Unknown
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
	case event.RivalAdvisory, event.RefusedAdvisory, event.SilenceAdvisory, event.UnknownAdvisory, event.DriftAdvisory:
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

package simulation

import (
	"cmp"
	"math"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/testkit/oracle"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
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
	memory   map[some]model.Memory
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
		w: w, g: g, name: name, steps: make([]step, 0, 128), models: make(map[string]*oracle.Model), deployed: make(map[*version]map[string]*oracle.Deployment), learnt: make(map[some]model.Reference), memory: make(map[some]model.Memory),
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

func (f *follower) window(s *step) oracle.Outcome {
	out := f.m.Window(*s.window)
	if f.given && out.Result != nil && out.Result.Verdict.Outcome == "" {
		out.Result = nil // no model has judged it
	}
	return out
}

func (f *follower) do(s *step) oracle.Outcome {
	f.deploy(s)
	switch {
	case s.window != nil:
		return f.window(s)
	case s.other != nil:
		return f.m.Unreadable(s.at, s.now)
	case s.command != nil:
		if s.command.Action == event.Rename && !f.m.Known() && !f.m.Came(s.command.ID) && f.command(s).Timely() {
			return f.renames(s)
		}
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
			Drift: &oracle.Drift{Tools: m.Drift.Tools, Center: m.Drift.Center, Scale: m.Drift.Scale, Raise: m.Drift.Raise, Clear: m.Drift.Clear},
			Center: func(learnt []*oracle.Window) []float32 {
				ref := f.learnt[these(judge.print, learnt[:len(learnt)-1], learnt[len(learnt)-1])]
				return ref.Center()
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
	var memory *model.Memory
	if seen != nil && (m.Cycle != nil || m.Classifier != nil && m.Classifier.Guard() != nil) { // no other judge remembers
		memory = new(model.Memory)
		if n := len(seen); n > 0 {
			*memory = f.memory[these(m.ID(), seen[:n-1], seen[n-1])].Clone()
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
	out, _ = f.m.Built(by, oracle.Job{Model: job.Model, Tool: job.Tool, First: windows[0], Settings: s.built.settings}, windows[min(s.built.from, len(windows)):])
	return out
}

func isFirst(w *oracle.Window, first machine.FirstWindow) bool {
	return w.Epoch == first.Epoch && w.Seq == first.Seq
}

// retained returns how many windows may come while a build runs; with more, it is run again.
func (f *follower) retained() int { return cmp.Or(f.g.settings.Limits.Retained, math.MaxInt) }

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

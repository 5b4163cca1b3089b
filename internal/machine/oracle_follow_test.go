package machine

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/internal/testkit/oracle"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// kindOfDay says what may happen on a day.
type kindOfDay struct {
	commands, masks, marks, lives, retire, rename  bool
	disorder, epochs, pauses, clocks, late, unread bool // late: events come late, without ticks
	settings, reAlarm, silence, few, holds         bool // holds: alarms that return, and are on again, within seconds
	deployments, lengths, layouts, none, removed   bool
	shadows, retention                             bool
}

// Machines keep what the oracle says that Flank promises.
func TestFollowsOracle(t *testing.T) {
	for what, k := range map[string]kindOfDay{
		"tools":                       {settings: true},
		"tools in turn":               {settings: true, reAlarm: true, commands: true},
		"commands":                    {settings: true, commands: true, marks: true},
		"holds":                       {holds: true, commands: true, reAlarm: true},
		"masks":                       {settings: true, commands: true, masks: true, reAlarm: true},
		"lives":                       {commands: true, masks: true, lives: true, reAlarm: true},
		"disorder":                    {commands: true, disorder: true},
		"epochs":                      {epochs: true, commands: true, masks: true},
		"epochs that pause":           {epochs: true, pauses: true, commands: true},
		"clocks of sensors differ":    {epochs: true, pauses: true, clocks: true},
		"events come late":            {commands: true, masks: true, reAlarm: true, pauses: true, late: true},
		"retired":                     {commands: true, masks: true, retire: true, epochs: true},
		"renamed":                     {commands: true, masks: true, rename: true, reAlarm: true, deployments: true},
		"silence":                     {silence: true, pauses: true, unread: true, none: true, retire: true, commands: true},
		"few tools":                   {few: true, epochs: true, commands: true, masks: true, lives: true, deployments: true},
		"few tools and epochs":        {few: true, epochs: true, commands: true, masks: true, lives: true},
		"deployments":                 {deployments: true, settings: true, commands: true},
		"deployments, tools come new": {deployments: true, lives: true, commands: true, disorder: true, epochs: true},
		"retention":                   {deployments: true, retention: true, lives: true},
		"models are removed":          {deployments: true, removed: true, retention: true},
		"windows of another length":   {deployments: true, lengths: true, epochs: true, removed: true},
		"windows of another layout":   {deployments: true, layouts: true, epochs: true},
		"nothing is deployed":         {deployments: true, none: true, epochs: true, commands: true, unread: true},
		"shadows":                     {shadows: true, commands: true, masks: true, reAlarm: true},
		"shadows and deployments":     {shadows: true, deployments: true, lives: true, epochs: true, disorder: true},
		"everything": {
			commands: true, masks: true, marks: true, lives: true, retire: true, rename: true, disorder: true, epochs: true, pauses: true, clocks: true, unread: true, settings: true, reAlarm: true,
			silence: true, few: true, deployments: true, lengths: true, layouts: true, none: true, removed: true, shadows: true, retention: true,
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { newFollower(t, k).run() })
		})
	}
}

// toys are the models of the days, by a letter: A and B have the same features, C and D learn from more windows, S
// judges windows of two seconds, Z windows of another layout. Between healthy and worn, windows are ambiguous to A and
// implausible to B.
var toys = sync.OnceValue(func() map[string]*model.Model {
	fatal := panics{}
	all := map[string]*model.Model{
		"A": machinetest.OneValue(fatal), "B": machinetest.OneValue(fatal), "C": machinetest.OneValue(fatal), "D": machinetest.OneValue(fatal), "S": machinetest.OneValue(fatal), "Z": machinetest.TwoValues(fatal),
	}
	all["B"].Provenance.Seed = 7
	machinetest.MakeSets(fatal, all["A"], 0.3, 0.2)
	machinetest.MakeSets(fatal, all["B"], 0.15, 0.3)
	all["C"].Reference.Windows, all["D"].Reference.Windows = 3, 4
	all["S"].Window.Length = 2 * time.Second
	for _, m := range all {
		machinetest.MeasureDrift(m)
		if _, err := m.Encode(); err != nil {
			panic(err)
		}
	}
	return all
})

type panics struct{}

func (panics) Fatal(args ...any) { panic(fmt.Sprint(args...)) }
func (panics) Helper()           {}

// measured is a window as a model sees it.
type measured struct {
	value float64
	form  string // S, Z, or A, as A, B, C and D judge them
}

func formOf(letter string) string {
	if letter == "S" || letter == "Z" {
		return letter
	}
	return "A"
}

// sent is a window of the days.
type sent struct {
	measured
	tool, life string
}

func (v measured) window(epoch, seq uint64, tool, life string, start time.Time) *window.Window {
	w := at(seq, tool, false)
	w.Epoch, w.Start, w.ToolLife = epoch, start, life
	w.Samples[0][0] = float32(v.value)
	switch v.form {
	case "S":
		w.Length, w.Samples[0] = 2*time.Second, append(w.Samples[0], float32(v.value))
	case "Z":
		w.Samples, w.Quality = slices.Repeat(w.Samples, 2), slices.Repeat(w.Quality, 2)
	}
	return w
}

// askToy asks a toy about a window.
func askToy(letter string, w *oracle.Window, ref *model.Reference) model.Verdict {
	m := toys()[letter]
	return m.NewJudge().JudgeFeatures(machinetest.Features(m, w.Value.(measured).window(1, 0, "", "", noon)), ref, nil)
}

// toyReference returns the reference that a toy learns from windows.
func toyReference(letter string, learnt []*oracle.Window) *model.Reference {
	ref := new(model.Reference)
	for _, w := range learnt {
		askToy(letter, w, ref)
	}
	return ref
}

// toyVerdicts remembers what toys say, by what they have learnt.
var toyVerdicts sync.Map // string → oracle.Verdict

// toyVerdict returns what a toy says of a window, by the windows that its reference was learnt from. It asks
// package model, and no code of this one.
func toyVerdict(letter string, learnt []*oracle.Window, w *oracle.Window) oracle.Verdict {
	key := letter
	for _, of := range append(slices.Clone(learnt), w) {
		key += fmt.Sprintf(" %g", of.Value.(measured).value)
	}
	if v, ok := toyVerdicts.Load(key); ok {
		return v.(oracle.Verdict)
	}
	said := askToy(letter, w, toyReference(letter, learnt))
	v := oracle.Verdict{Outcome: string(said.Outcome), Reason: string(said.Reason), Score: said.Score}
	toyVerdicts.Store(key, v)
	return v
}

// follower holds an owner of a partition with one machine against the oracle, event by event.
type follower struct {
	t   *rapid.T
	day kindOfDay
	log []string

	// The product.
	o        *Owner
	settings *Settings
	records  map[event.StateKey]event.StateRecord
	position Position
	features []*window.Features // on Kafka, of all names
	from     int                // what of them is left
	batch    Batch              // what followed from the last event
	asks     bool
	build    *Build
	shows    int  // how many features there were when it was due
	new      bool // no window in order has come since the restart

	// The oracle.
	m      *oracle.Machine
	models map[string]*oracle.Model // by letter
	job    oracle.Job
	alarms map[int]string // incidents, as the machine calls them
	trials map[int]string // incidents of shadows, likewise
	asked  bool           // the monitor has judged all that there was when the machine was overdue

	// The plant.
	name     string
	renames  int
	now      time.Time
	deployed map[string]*Deployment // by layout; nil: none
	removed  map[string]bool        // letters
	next     map[uint64]uint64      // number, by epoch
	begun    map[[2]uint64]time.Time
	known    map[[2]uint64]sent
	commands int
	offset   int64
}

func newFollower(t *rapid.T, k kindOfDay) *follower {
	s := alarm.Settings{K: 2, N: 3, Latch: rapid.Bool().Draw(t, "latch"), Threshold: 0.5, MaxShelf: time.Minute, ReAlarm: time.Second}
	if k.settings {
		s = drawSettings(t, s)
	}
	if k.holds {
		s.K, s.N, s.Latch, s.OnHold = 1, 1, true, time.Duration(rapid.IntRange(2, 4).Draw(t, "on"))*time.Second
	}
	if k.reAlarm {
		s.ReAlarm = time.Duration(rapid.IntRange(1, 12).Draw(t, "re_alarm")) * time.Second
	}
	f := &follower{
		t: t, day: k, now: noon, settings: &Settings{Group: group, Alarm: s}, records: make(map[event.StateKey]event.StateRecord), position: Position{Windows: -1, Features: -1, Commands: -1},
		models: make(map[string]*oracle.Model), alarms: make(map[int]string), trials: make(map[int]string), name: drill, deployed: make(map[string]*Deployment), removed: make(map[string]bool),
		next: make(map[uint64]uint64), begun: make(map[[2]uint64]time.Time), known: make(map[[2]uint64]sent),
	}
	f.m = &oracle.Machine{Settings: settingsOf(s)}
	if k.few {
		f.settings.Limits.Tools, f.m.Limits.Tools = 2, 2
		f.settings.Limits.Unjudged, f.m.Limits.Unjudged = 3, 3
		if !k.deployments { // a build leaves out epochs that are forgotten
			f.settings.Limits.Epochs, f.m.Limits.Epochs = 3, 3
		}
	}
	if k.silence {
		f.settings.Silence = 20 * time.Second
		f.m.Silence = f.settings.Silence
	}
	for letter, m := range toys() {
		learns, form := m.Reference.Windows, formOf(letter)
		f.models[letter] = &oracle.Model{
			ID: m.ID(), Print: fmt.Sprint(form, learns), Learns: learns, Covers: func(w *oracle.Window) bool { return w.Value.(measured).form == form },
			Judge: func(learnt, _ []*oracle.Window, w *oracle.Window) oracle.Verdict {
				return toyVerdict(letter, learnt, w)
			},
			Drift:  &oracle.Drift{Tools: m.Drift.Tools, Center: m.Drift.Center, Scale: m.Drift.Scale, Raise: m.Drift.Raise, Clear: m.Drift.Clear},
			Center: func(learnt []*oracle.Window) []float32 { return toyReference(letter, learnt).Center() },
		}
	}
	f.deploy("A", &Deployment{Champion: toys()["A"]})
	if k.layouts {
		f.deploy("Z", &Deployment{Champion: toys()["Z"]})
	}
	f.restart()
	return f
}

func drawSettings(t *rapid.T, s alarm.Settings) alarm.Settings {
	s.Latch = rapid.Bool().Draw(t, "latch")
	s.N = rapid.IntRange(1, 6).Draw(t, "n")
	s.K = rapid.IntRange(1, s.N).Draw(t, "k")
	s.Clear = rapid.IntRange(0, s.K-1).Draw(t, "clear")
	s.OnHold = time.Duration(rapid.IntRange(0, 3).Draw(t, "on")) * time.Second
	s.OffHold = time.Duration(rapid.IntRange(0, 3).Draw(t, "off")) * time.Second
	return s
}

func settingsOf(s alarm.Settings) oracle.Settings {
	return oracle.Settings{K: s.K, N: s.N, Clear: s.Clear, OnHold: s.OnHold, OffHold: s.OffHold, Latch: s.Latch, MaxShelf: s.MaxShelf, ReAlarm: s.ReAlarm, Threshold: s.Threshold}
}

func letterOf(m *model.Model) string {
	for letter, of := range toys() {
		if of.ID() == m.ID() {
			return letter
		}
	}
	panic("an unknown model")
}

func layoutOf(form string) string {
	if form == "Z" {
		return toys()["Z"].Layout.Fingerprint()
	}
	return toys()["A"].Layout.Fingerprint()
}

func (f *follower) say(format string, args ...any) {
	f.log = append(f.log, f.now.Format(time.TimeOnly)+" "+fmt.Sprintf(format, args...))
}

func (f *follower) fail(format string, args ...any) {
	f.t.Helper()
	for _, l := range f.log[max(0, len(f.log)-60):] {
		f.t.Log(l)
	}
	f.t.Fatalf(format, args...)
}

// one draws whether something happens, once in so many times. Rapid makes it rarer if it looks for a short day.
func (f *follower) one(in int, what string) bool {
	return rapid.IntRange(0, in-1).Draw(f.t, what) == in-1
}

// do does what the owner wants, at once.
func (f *follower) do(actions []Action) {
	for len(actions) > 0 {
		a := actions[0]
		actions = actions[1:]
		switch a := a.(type) {
		case Fence:
			at := f.position
			actions = append(actions, f.o.On(Fenced{At: at}, f.now)...)
		case LoadState:
			records := slices.SortedFunc(maps.Values(f.records), func(x, y event.StateRecord) int { return cmp.Compare(x.Key.String(), y.Key.String()) })
			if records == nil {
				records = []event.StateRecord{}
			}
			actions = append(actions, f.o.On(Loaded(records), f.now)...)
		case AskEnd:
			if _, read := f.batch.Of.(CommandsRead); !read {
				f.asks = true
				continue
			}
			actions = append(actions, f.o.On(End{Known: true}, f.now)...) // all windows that there are were given to the owner
		case ReadWindows, ReadFeatures, ReadCommands: // they are given without that
		case *Batch:
			f.publish(a)
			actions = append(actions, f.o.On(Published{}, f.now)...)
		}
	}
}

func (f *follower) publish(b *Batch) {
	f.position = b.Position
	for _, r := range b.State {
		if r.Value == nil {
			delete(f.records, r.Key)
		} else {
			f.records[r.Key] = r
		}
	}
	f.batch.Events = append(f.batch.Events, b.Events...)
	f.batch.Letters = append(f.batch.Letters, b.Letters...)
	f.batch.Lines = append(f.batch.Lines, b.Lines...)
	f.batch.Repeats += b.Repeats
	f.batch.Unwatched += b.Unwatched
}

// hand hands the owner a reply.
func (f *follower) hand(r Reply) {
	f.batch = Batch{Of: r}
	f.do(f.o.On(r, f.now))
}

// restart lets another owner take the partition over.
func (f *follower) restart() {
	f.batch, f.build, f.asked, f.new = Batch{}, nil, false, true
	f.o = NewOwner(f.settings, f.fleet(), 0)
	f.o.OnFeatures = func(of *window.Features) {
		kept := *of
		f.features = append(f.features, &kept)
	}
	f.do(f.o.Start())
	if len(f.batch.Events) > 0 || len(f.batch.Letters) > 0 {
		f.fail("a restart publishes %d events, and sets records aside: %v", len(f.batch.Events), f.batch.Letters)
	}
	f.m.Restarted(f.now)
	f.say("restart")
}

func (f *follower) fleet() Fleet {
	of := maps.Clone(f.deployed)
	models := make(map[string]*model.Model)
	for letter, m := range toys() {
		if !f.removed[letter] {
			models[m.ID()] = m
		}
	}
	return Fleet{
		Of: func(_, layout string) *Deployment {
			if layout == "" {
				return cmp.Or(of[layoutOf("A")], of[layoutOf("Z")])
			}
			return of[layout]
		},
		Model: func(id string) *model.Model { return models[id] },
	}
}

// deploy makes a deployment the one of the layout of a form; nil: none.
func (f *follower) deploy(form string, d *Deployment) {
	layout := layoutOf(form)
	delete(f.deployed, layout)
	of := maps.Clone(f.m.Deployed)
	if of == nil {
		of = make(map[string]*oracle.Deployment)
	}
	delete(of, layout)
	if d != nil {
		f.deployed[layout] = d
		letter := letterOf(d.Champion)
		delete(f.removed, letter)
		o := &oracle.Deployment{Champion: f.models[letter], Now: d.Now}
		text := letter
		if d.Now {
			text += " now"
		}
		for _, s := range d.Shadows {
			letter := letterOf(s.Model)
			delete(f.removed, letter)
			o.Shadows = append(o.Shadows, oracle.Shadow{Model: f.models[letter], Until: s.Until})
			text += " shadow " + letter
		}
		if d.Alarm != (alarm.Settings{}) {
			set := settingsOf(d.Alarm)
			o.Settings = &set
		}
		of[layout] = o
		f.say("deployed for form %s: %s", form, text)
	} else {
		f.say("nothing is deployed for form %s", form)
	}
	f.m.Deployed = of
	for letter, m := range f.models {
		m.Gone = m.Gone && f.removed[letter]
	}
}

// run lets a day go by.
func (f *follower) run() {
	k := f.day
	p := plan{tool: "T1", epoch: 1, form: "A", value: 10}
	for i := range rapid.IntRange(1, 80).Draw(f.t, "events") {
		f.now = f.now.Add(time.Second)
		if k.pauses && f.one(15, "pause") {
			f.now = f.now.Add(time.Duration(rapid.IntRange(1, 70).Draw(f.t, "seconds")) * time.Second)
		}
		if !k.late || f.one(8, "tick") {
			f.tick()
		}
		if i > 0 && f.one(12, "restart") {
			if k.removed && f.one(3, "removed") {
				f.remove()
			}
			f.restart()
		}
		if (k.deployments || k.shadows || k.none) && f.one(10, "deployment") {
			f.redeploy()
		}
		f.builds()
		switch {
		case i > 0 && k.commands && f.one(6, "command"):
			f.command()
		case i > 0 && k.rename && f.one(25, "rename"):
			f.rename()
		case k.unread && f.one(12, "unreadable"):
			f.unreadable(p.epoch)
		default:
			f.window(&p)
		}
	}
}

func (f *follower) tick() {
	f.asks = false
	f.hand(Tick{Now: f.now})
	out := f.m.Tick(oracle.Tick{Now: f.now, Behind: !f.asked})
	f.compare("tick", out)
	if f.asks != (f.m.Overdue(f.now) && !f.asked) {
		f.fail("the machine asks for the end of the log: %v, overdue %v, asked %v", f.asks, f.m.Overdue(f.now), f.asked)
	}
	if f.asks {
		known := !f.one(4, "the broker does not answer")
		f.hand(End{Windows: Bounds{0, f.offset}, Known: known})
		if f.asked = known; !known {
			f.m.Restarted(f.now)
		}
	}
}

// remove takes models away that are not deployed: monitors that start do not know them.
func (f *follower) remove() {
	used := make(map[string]bool)
	for _, d := range f.deployed {
		used[letterOf(d.Champion)] = true
		for _, s := range d.Shadows {
			used[letterOf(s.Model)] = true
		}
	}
	for letter, m := range f.models {
		if !used[letter] {
			f.removed[letter], m.Gone = true, true
		}
	}
	f.say("models are removed")
}

func (f *follower) redeploy() {
	k := f.day
	form := "A"
	if k.layouts && f.one(4, "other layout") {
		form = "Z"
	}
	letters := []string{"Z"}
	if form == "A" {
		if letters = []string{"A", "B", "C", "D"}; k.lengths {
			letters = append(letters, "S")
		}
	}
	var d Deployment
	if was := f.deployed[layoutOf(form)]; was != nil {
		d = *was
	} else {
		d.Champion = toys()[letters[0]]
	}
	switch {
	case k.none && f.one(3, "none"):
		f.deploy(form, nil)
		f.hand(f.fleetReply())
		f.compare("nothing is deployed", oracle.Outcome{})
		return
	case k.shadows && f.one(2, "shadow"):
		d.Shadows = nil
		if f.one(2, "some") {
			d.Shadows = []Shadow{{Model: toys()[rapid.SampledFrom(letters).Draw(f.t, "shadow")]}}
			if f.one(2, "until") {
				d.Shadows[0].Until = f.now.Add(time.Duration(rapid.IntRange(0, 20).Draw(f.t, "seconds")) * time.Second)
			}
		}
	case k.settings && f.one(3, "settings"):
		d.Alarm = drawSettings(f.t, f.settings.Alarm)
	case k.deployments:
		d.Champion, d.Now = toys()[rapid.SampledFrom(letters).Draw(f.t, "champion")], rapid.Bool().Draw(f.t, "now")
	}
	f.deploy(form, &d)
	f.hand(f.fleetReply())
	f.compare("deployed", oracle.Outcome{})
}

func (f *follower) fleetReply() Reply {
	of := f.fleet()
	return &of
}

// builds shows a model the past of a tool, if that is due, or gives it back.
func (f *follower) builds() {
	if f.build == nil {
		if f.one(3, "no build yet") {
			return
		}
		due := f.m.Due()
		f.build = f.o.BuildDue(f.now)
		if f.build == nil {
			if len(due) > 0 && f.from == 0 && f.renames == 0 && !f.new {
				f.fail("%+v is due, and nothing is built", due)
			}
			return
		}
		job := f.build.Job()
		f.shows = len(f.features)
		f.job = oracle.Job{Model: job.Model, Tool: job.Tool, Settings: f.m.AlarmSettings()}
		if seen := f.m.Windows(job.Tool); len(seen) > 0 {
			f.job.First = seen[0]
		}
		f.say("model %s is to see tool %s", letterOf(f.build.Model()), job.Tool)
		return
	}
	if f.one(3, "slow build") {
		return
	}
	if f.day.retention && f.one(2, "retention") {
		f.from = max(f.from, f.shows-rapid.IntRange(0, 12).Draw(f.t, "left"))
	}
	b := f.build
	f.build = nil
	for _, of := range f.features[f.from:] {
		b.Observe(of, f.now)
	}
	letter := letterOf(b.Model())
	f.hand(b)
	seen := f.seen(f.job.Tool)
	out, used := f.m.Built(f.models[letter], f.job, seen)
	f.say("model %s has seen %d of %d windows of tool %s: used %v; machine: %s", letter, len(seen), len(f.m.Windows(f.job.Tool)), f.job.Tool, used, lines(f.batch))
	f.compare("built", out)
}

func lines(b Batch) string {
	var all []string
	for _, l := range b.Lines {
		all = append(all, l.Text)
	}
	return strings.Join(all, "; ")
}

// seen returns the windows of a tool that are in Kafka, or have come since the build was due.
func (f *follower) seen(tool string) (all []*oracle.Window) {
	left := make(map[string]bool)
	for _, of := range f.features[f.from:] {
		if of.Machine == f.name {
			left[fmt.Sprint(of.EpochString(), of.Seq)] = true
		}
	}
	for _, w := range f.m.Windows(tool) {
		if left[fmt.Sprint(w.Epoch, w.Seq)] {
			all = append(all, w)
		}
	}
	return all
}

// plan is what the machine does now.
type plan struct {
	tool, life, form string
	epoch            uint64
	value            float64
}

// change changes what the machine does, now and then.
func (f *follower) change(p *plan) {
	k := f.day
	if f.one(12, "tool") {
		p.tool = rapid.SampledFrom([]string{"T1", "T2", "T3", ""}).Draw(f.t, "name")
	}
	if k.lives && f.one(15, "life") {
		p.life = rapid.SampledFrom([]string{"", "x", "y"}).Draw(f.t, "which")
	}
	if f.one(6, "wear") || k.holds && f.one(4, "on and off") {
		p.value = rapid.SampledFrom([]float64{30 - p.value, 30 - p.value, 10, 15.5, 17, 20}).Draw(f.t, "value")
	}
	if k.lengths && f.one(20, "length") {
		p.form = "S"
	} else if k.layouts && f.one(20, "layout") {
		p.form = "Z"
	} else if p.form != "A" && f.one(6, "as before") {
		p.form = "A"
	}
}

// window lets a window come: the next one, or another.
func (f *follower) window(p *plan) {
	f.change(p)
	k := f.day
	tool, form := p.tool, p.form
	epoch := p.epoch + 10*uint64(f.renames) // every spool has an epoch of its own
	if k.epochs && f.one(20, "epoch") {
		p.epoch = rapid.Uint64Range(1, 4).Draw(f.t, "to")
		epoch = p.epoch + 10*uint64(f.renames)
	} else if k.epochs && f.one(8, "stray") {
		epoch = rapid.Uint64Range(1, 4).Draw(f.t, "of epoch") + 10*uint64(f.renames)
		tool = rapid.SampledFrom([]string{tool, "T9"}).Draw(f.t, "of tool")
		if k.layouts && f.one(2, "of another layout") {
			form = "Z"
		}
	}
	seq := f.next[epoch]
	f.next[epoch]++
	if k.disorder && f.one(8, "disorder") {
		if f.one(2, "ahead") {
			f.next[epoch]++ // the one before comes later, or never
			seq++
		} else if seq > 0 {
			seq = rapid.Uint64Range(0, seq-1).Draw(f.t, "seq")
		}
	}
	key := [2]uint64{epoch, seq}
	if _, came := f.known[key]; !came {
		f.known[key] = sent{measured{p.value, form}, tool, p.life}
	}
	s := f.known[key] // it may come again, and is what it was
	v, tool, form := s.measured, s.tool, s.form
	start := f.start(epoch, seq)
	w := v.window(epoch, seq, tool, s.life, start)
	w.Machine = f.name
	features := machinetest.Features(toys()[map[string]string{"A": "A", "S": "S", "Z": "Z"}[form]], w)
	offset := f.offset
	f.offset++
	f.hand(Read{Log: WindowLog, Inputs: []Input{{Offset: offset, At: f.now, Open: func(into *window.Features) error {
		*into = *features
		return nil
	}}}})
	out := f.m.Window(oracle.Window{
		Tool: tool, Life: s.life, Epoch: w.EpochString(), Seq: seq, Start: w.Start, End: w.End(), At: f.now, Now: f.now, Layout: layoutOf(form), Value: v,
	})
	f.asked = f.asked && out.Place == oracle.Repeat
	f.new = f.new && (out.Place != oracle.InOrder || tool == "") // it may be between tools
	f.compare(fmt.Sprintf("window %d/%d of %s#%s, %g of form %s, %s", epoch, seq, tool, s.life, v.value, form, out.Place), out)
}

// start returns when a window began, by sensors.
func (f *follower) start(epoch, seq uint64) time.Time {
	key := [2]uint64{epoch, seq}
	if f.begun[key].IsZero() {
		f.begun[key] = f.now
		for back := seq; back > 0 && f.begun[[2]uint64{epoch, back - 1}].IsZero(); back-- {
			f.begun[[2]uint64{epoch, back - 1}] = f.now.Add(-time.Duration(seq-back+1) * time.Second)
		}
		if f.day.settings && f.one(6, "overlaps the one before") {
			f.begun[key] = f.begun[key].Add(-time.Duration(rapid.IntRange(1, 9).Draw(f.t, "tenths")) * time.Second / 10)
		}
	}
	start := f.begun[key]
	if f.day.clocks && epoch > 1 {
		start = start.Add(time.Duration(epoch) * 5 * time.Second)
	}
	return start
}

// unreadable lets a window come that the monitor cannot open.
func (f *follower) unreadable(epoch uint64) {
	f.asked = false
	why := &window.Mismatch{What: window.OtherLength, Text: "windows of 2s, expected windows of 1s"}
	refusal := &Refusal{Machine: f.name, Epoch: fmt.Sprintf("%016x", epoch), Seq: 1000, Why: why}
	offset := f.offset
	f.offset++
	f.hand(Read{Log: WindowLog, Inputs: []Input{{Offset: offset, At: f.now, Open: func(*window.Features) error { return refusal }}}})
	f.compare("a window that cannot be opened", f.m.Unreadable(f.now, f.now))
}

func (f *follower) command() {
	k := f.day
	actions := []event.Action{event.Acknowledge}
	if k.masks {
		actions = append(actions, event.Shelve, event.Unshelve, event.Suppress, event.Unsuppress, event.OutOfService, event.InService)
	}
	if k.lives {
		actions = append(actions, event.NewTool)
	}
	if k.marks {
		actions = append(actions, event.MarkFalse, event.UnmarkFalse)
	}
	if k.retire && f.one(6, "retire") {
		actions = []event.Action{event.Retire}
	}
	action := rapid.SampledFrom(actions).Draw(f.t, "action")
	c := event.Command{ID: fmt.Sprint("c", f.commands), Machine: f.name, Action: action, By: "kim", Note: "n", Issued: f.now}
	if f.commands++; f.commands > 1 && f.one(10, "again") {
		c.ID = "c0"
	}
	if f.one(20, "another clock") {
		c.Issued = c.Issued.Add(time.Duration(rapid.IntRange(-400, 400).Draw(f.t, "seconds")) * time.Second)
	}
	of := oracle.Command{ID: c.ID, Action: string(action), At: f.now, Issued: c.Issued}
	needs := action == event.Acknowledge || action.Marks()
	if needs || (action == event.Shelve || action == event.Unshelve) && f.one(2, "by its alarm") {
		of.Incident, c.Incident = f.incident(needs)
	}
	switch action {
	case event.Shelve:
		c.Until = f.now.Add(time.Duration(rapid.IntRange(0, 70).Draw(f.t, "shelf")) * time.Second)
		of.Until = c.Until
	case event.Acknowledge:
		c.FalseAlarm = k.marks && f.one(2, "false")
		of.FalseAlarm = c.FalseAlarm
	case event.NewTool:
		c.Tool = rapid.SampledFrom([]string{"T1", "T2", "T3", "T9", ""}).Draw(f.t, "of")
		of.Tool = c.Tool
	case event.Suppress, event.Unsuppress, event.OutOfService, event.InService:
		if f.one(2, "of a tool") {
			c.Tool = rapid.SampledFrom([]string{"T1", "T2", "T3", "T9"}).Draw(f.t, "tool")
			of.Tool, of.OfTool = c.Tool, true
		}
	}
	f.send(c, of)
}

// incident draws an alarm that was named, or one that never was.
func (f *follower) incident(must bool) (int, string) {
	if len(f.alarms) == 0 || must && f.one(8, "another alarm") {
		return -1, "A-AAAAAAAA"
	}
	all := slices.Sorted(maps.Keys(f.alarms))
	n := all[len(all)-1]
	if f.one(3, "an older one") {
		n = rapid.SampledFrom(all).Draw(f.t, "alarm")
	}
	return n, f.alarms[n]
}

func (f *follower) send(c event.Command, of oracle.Command) {
	f.hand(CommandsRead{{Key: c.Machine, Value: event.JSON(c), Offset: int64(f.commands), At: f.now}})
	out := f.m.Command(of)
	got := oracle.Done
	for _, l := range f.batch.Letters {
		if got = oracle.Again; l.Unknown {
			got = oracle.Unknown
		}
	}
	f.batch.Events = slices.DeleteFunc(f.batch.Events, func(o Output) bool {
		a, ok := o.(Alert)
		refused := ok && a.State == event.Refused
		if refused {
			if got = oracle.RefusedAnswer; a.Severity != "info" {
				f.fail("a refusal has severity %s", a.Severity)
			}
		}
		return refused
	})
	for _, l := range f.batch.Letters {
		f.say("letter: %s", l.Reason)
	}
	what := fmt.Sprintf("command %s %s tool %q alarm %q: %s", c.ID, c.Action, c.Tool, c.Incident, out.Answer)
	if got != out.Answer {
		f.fail("%s: machine %s", what, got)
	}
	f.compare(what, out)
}

// rename gives the machine another name.
func (f *follower) rename() {
	var kept []event.Kept
	for _, r := range slices.SortedFunc(maps.Values(f.records), func(x, y event.StateRecord) int { return cmp.Compare(x.Key.String(), y.Key.String()) }) {
		if r.Key.Machine == f.name {
			kept = append(kept, event.Kept{Key: r.Key.String(), Value: r.Value})
		}
	}
	if f.o.Machine(f.name) == nil {
		return
	}
	was := f.name
	id := fmt.Sprint("c", f.commands)
	next, renamed := oracle.Rename(f.m, id, f.now, f.now)
	f.commands++
	retire := fmt.Sprint("c", f.commands)
	f.send(event.Command{ID: retire, Machine: was, Action: event.Retire, By: "kim", Issued: f.now}, oracle.Command{ID: retire, Action: "retire", At: f.now, Issued: f.now})
	f.commands++
	f.renames++
	f.asked = false
	f.name = fmt.Sprint(drill, f.renames)
	f.m, f.next, f.begun, f.build = next, make(map[uint64]uint64), make(map[[2]uint64]time.Time), nil
	c := event.Command{ID: id, Machine: f.name, Action: event.Rename, Was: was, State: kept, By: "kim", Issued: f.now}
	f.hand(CommandsRead{{Key: c.Machine, Value: event.JSON(c), Offset: int64(f.commands), At: f.now}})
	if len(f.batch.Letters) > 0 {
		f.fail("renamed: %s", f.batch.Letters[0].Reason)
	}
	f.compare("renamed "+f.name, renamed)
}

// compare holds what the owner published against the oracle.
func (f *follower) compare(what string, want oracle.Outcome) {
	f.t.Helper()
	var result *event.Result
	var shadows []*event.Result
	var alerts, trials []*event.Alert
	var advisories []string
	for _, o := range f.batch.Events {
		switch o := o.(type) {
		case ShadowResult:
			shadows = append(shadows, o.Result)
		case Result:
			result = o.Result
		case ShadowAlert:
			trials = append(trials, o.Alert)
		case Alert:
			alerts = append(alerts, o.Alert)
		case Advisory:
			if kind := kindOf(o.Advisory); kind != "" {
				advisories = append(advisories, kind+" "+string(o.State))
			}
		case Evidence: // these machines keep none
		}
	}
	for _, l := range f.batch.Lines {
		if l.Event == "machine_stopped" {
			f.fail("%s: %s", what, l.Text)
		}
	}
	machine, promised := f.words(alerts, shadows, result), f.promised(want)
	f.say("%s: %s", what, machine)
	if repeat := want.Place == oracle.Repeat; (f.batch.Repeats > 0) != repeat {
		f.fail("%s: %d repeats, the oracle says %s", what, f.batch.Repeats, want.Place)
	}
	if machine != promised {
		f.fail("%s:\nmachine %s\noracle  %s", what, machine, promised)
	}
	var ofOracle, ofTrials []oracle.Alert
	for _, a := range want.Alerts {
		if a.Shadow == "" {
			ofOracle = append(ofOracle, a)
		} else {
			ofTrials = append(ofTrials, a)
		}
	}
	for i, a := range alerts {
		f.same(f.alarms, what, a.Incident, ofOracle[i].Incident)
		if at := ofOracle[i].At; !at.IsZero() && !at.Equal(a.At) {
			f.fail("%s: %s at %v, the oracle says %v", what, a.State, a.At, at)
		}
	}
	if result != nil {
		f.same(f.alarms, what, result.Incident, want.Result.Incident)
	}
	var said, due []string
	for i, a := range trials {
		said = append(said, fmt.Sprintf("%s(%s) %s %s", a.State, a.Tool, a.Reason, a.Severity))
		if i < len(ofTrials) {
			f.same(f.trials, what, a.Incident, ofTrials[i].Incident)
		}
	}
	for _, a := range ofTrials {
		due = append(due, fmt.Sprintf("%s(%s) %s %s", a.State, a.Tool, a.Reason, a.Severity))
	}
	if !slices.Equal(said, due) {
		f.fail("%s: a shadow's alarm: machine %q, oracle %q", what, said, due)
	}
	var conditions []string
	for _, a := range want.Advisories {
		conditions = append(conditions, a.Kind+" "+a.State)
	}
	slices.Sort(advisories)
	slices.Sort(conditions)
	if !slices.Equal(advisories, conditions) {
		f.fail("%s: advisories: machine %q, oracle %q", what, advisories, conditions)
	}
}

// kindOf returns the oracle's name of an advisory; empty if it does not know it.
func kindOf(a *event.Advisory) string {
	switch kind := string(a.Kind); {
	case a.Kind == event.ModelAdvisory && a.Subject != "":
		return oracle.UsedReference
	case slices.Contains([]string{oracle.TwoIngesters, oracle.Refused, oracle.Silent, oracle.ModelChanged, oracle.Drifts, oracle.Unmonitored}, kind):
		return kind
	}
	return ""
}

func (f *follower) words(alerts []*event.Alert, shadows []*event.Result, r *event.Result) string {
	var all []string
	if r != nil {
		all = append(all, f.result(r.Model, string(r.Verdict), r.Unknown, r.Score, r.Late)+" alarm "+r.Alarm)
	}
	for _, r := range shadows {
		all = append(all, "shadow "+f.result(r.Model, string(r.Verdict), r.Unknown, r.Score, r.Late))
	}
	for _, a := range alerts {
		all = append(all, fmt.Sprintf("%s(%s) %s %s alarm %s", a.State, a.Tool, a.Reason, a.Severity, a.Alarm))
	}
	return strings.Join(all, ", ")
}

func (f *follower) promised(o oracle.Outcome) string {
	var all []string
	if r := o.Result; r != nil {
		all = append(all, f.result(r.Model, r.Verdict.Outcome, r.Verdict.Reason, r.Verdict.Score, r.Late)+" alarm "+r.Alarm)
	}
	for _, r := range o.Trials {
		all = append(all, "shadow "+f.result(r.Model, r.Verdict.Outcome, r.Verdict.Reason, r.Verdict.Score, r.Late))
	}
	for _, a := range o.Alerts {
		if a.Shadow == "" {
			all = append(all, fmt.Sprintf("%s(%s) %s %s alarm %s", a.State, a.Tool, a.Reason, a.Severity, a.Alarm))
		}
	}
	return strings.Join(all, ", ")
}

func (f *follower) result(id, verdict, reason string, score float64, late bool) string {
	for letter, m := range f.models {
		if m.ID == id {
			id = letter
		}
	}
	text := id + " " + verdict
	if reason != "" {
		text += " " + reason
	}
	if score != 0 && !math.IsNaN(score) {
		text += fmt.Sprintf(" %.3f", score)
	}
	if late {
		text += " late"
	}
	return text
}

// same checks that an alarm has one name.
func (f *follower) same(all map[int]string, what, incident string, n int) {
	switch {
	case n == 0 && incident == "":
	case n != 0 && all[n] == "" && incident != "":
		for number, known := range f.alarms {
			if known == incident && number != n {
				f.fail("%s: %q is the name of two alarms", what, incident)
			}
		}
		all[n] = incident
	case all[n] != incident:
		f.fail("%s: alarm %q, the oracle says number %d, which was %q", what, incident, n, all[n])
	}
}

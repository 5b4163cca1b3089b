package machine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
	"github.com/flank-tcm/flank/schemas"
)

// plant is an owner, the topics that it reads and writes, and what is deployed.
type plant struct {
	t        rapid.TB
	o        *Owner
	fleet    Fleet
	records  map[event.StateKey]event.StateRecord
	features []*window.Features // as they lie in Kafka: in the order in which they were judged
	sent     int64
	results  []event.Result
	shadows  map[string][]event.Result // by group
	alerts   []event.Alert
	advised  []event.Advisory
	lines    []machineLine
	letters  int
	others   uint64 // windows that no model judged
	panics   uint64

	commanded int64
	order     string // groups of the alerts of shadows
}

func newPlant(t rapid.TB, f Fleet) *plant {
	p := &plant{t: t, fleet: f, records: make(map[event.StateKey]event.StateRecord), shadows: make(map[string][]event.Result)}
	p.restart()
	return p
}

// restart gives the partition to another monitor.
func (p *plant) restart() {
	p.o = NewOwner(&Settings{Group: group, Alarm: testAlarm}, p.fleet, 0)
	p.o.Start()
	p.o.On(Fenced{At: Position{Windows: p.sent, Commands: p.commanded}}, time.Time{})
	loaded := []event.StateRecord{}
	for _, r := range p.records {
		loaded = append(loaded, r)
	}
	p.do(p.o.On(Loaded(loaded), p.now()))
}

func (p *plant) now() time.Time { return noon.Add(time.Duration(p.sent) * time.Second) }

// do publishes what actions say.
func (p *plant) do(actions []Action) {
	for len(actions) > 0 {
		a := actions[0]
		actions = actions[1:]
		switch a := a.(type) {
		case Fence, LoadState, ReadWindows, ReadFeatures, ReadCommands: // tests answer without that
		case AskEnd: // all windows that there are were given to the owner
			actions = append(actions, p.o.On(End{Known: true}, p.now())...)
		case *Batch:
			p.keep(a)
			actions = append(actions, p.o.On(Published{}, p.now())...)
		}
	}
}

func (p *plant) keep(b *Batch) {
	p.others += b.Unwatched
	p.panics += b.Panics
	for _, r := range b.State {
		if r.Value == nil {
			delete(p.records, r.Key)
		} else {
			p.records[r.Key] = r
		}
	}
	for _, e := range b.Events {
		p.valid(e)
		switch e := e.(type) {
		case ShadowResult:
			p.shadows[e.Result.Group] = append(p.shadows[e.Result.Group], *e.Result)
		case ShadowAlert:
			p.order += e.Alert.Group + " "
		case Result:
			p.results = append(p.results, *e.Result)
		case Alert:
			p.alerts = append(p.alerts, *e.Alert)
		case Advisory:
			p.advised = append(p.advised, *e.Advisory)
		case Evidence: // TestEvidence looks at it
		}
	}
	p.letters += len(b.Letters)
	p.lines = append(p.lines, b.Lines...)
}

// valid checks what is published against its schema.
func (p *plant) valid(e Output) {
	p.t.Helper()
	var schema string
	var published any
	switch e := e.(type) {
	case Result:
		schema, published = schemas.Result, e.Result
	case ShadowResult:
		schema, published = schemas.Result, e.Result
	case Alert:
		schema, published = schemas.Alert, e.Alert
	case ShadowAlert:
		schema, published = schemas.Alert, e.Alert
	case Advisory:
		schema, published = schemas.Advisory, e.Advisory
	case Evidence:
		schema, published = schemas.Evidence, e.Evidence
	}
	if err := schemas.Validate(schema, event.JSON(published)); err != nil {
		p.t.Errorf("%s: %v", event.JSON(published), err)
	}
}

func (p *plant) window(f *window.Features) {
	in := Input{Offset: p.sent, At: p.now(), Open: func(into *window.Features) error { *into = *f; return nil }}
	p.sent++
	p.do(p.o.On(Read{Log: WindowLog, Inputs: []Input{in}}, in.At))
	p.features = append(p.features, f)
}

// build runs a build that is due, lets windows come while it runs, and ends it.
func (p *plant) build(meanwhile ...*window.Features) bool {
	p.t.Helper()
	r := p.o.BuildDue(p.now())
	if r == nil {
		return false
	}
	log := slices.Clone(p.features)
	for i, f := range meanwhile {
		if i == len(meanwhile)/2 {
			for k, f := range log {
				r.Observe(f, noon.Add(time.Duration(k)*time.Second))
			}
			log = nil
		}
		p.window(f)
	}
	for k, f := range log {
		r.Observe(f, noon.Add(time.Duration(k)*time.Second))
	}
	p.do(p.o.On(r, p.now()))
	return true
}

// deploy lets the owner know of a fleet.
func (p *plant) deploy(f Fleet) {
	p.fleet = f
	p.do(p.o.On(&f, p.now()))
}

// fleetOf returns a fleet in which one deployment is for every machine.
func fleetOf(d *Deployment, known ...*model.Model) Fleet {
	return Fleet{
		Of: func(string, string) *Deployment { return d },
		Model: func(id string) *model.Model {
			for _, m := range known {
				if m.ID() == id {
					return m
				}
			}
			return nil
		},
	}
}

// said is what a result says of its window, without the alarm, which a swap leaves as it is,
// and without names of the group.
func said(r event.Result) string {
	r.ID, r.Group, r.Alarm, r.Incident = "", "", "", ""
	return string(event.JSON(r))
}

// pair returns two models of the same layout: the second one estimates wear, and learns a tool
// from more windows.
func pair(t machinetest.TB) (a, b *model.Model) {
	a, b = machinetest.OneValue(t), machinetest.WithWear(t)
	b.Reference.Windows = 3
	if _, err := b.Encode(); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// life draws windows of some tools that come and go.
func life(t *rapid.T, n int) (all []*window.Features) {
	tools := []string{"T1", "T2", "T3"}
	tool, epoch, seq := "T1", uint64(1), uint64(0)
	for i := range n {
		switch rapid.IntRange(0, 19).Draw(t, "what") {
		case 0:
			tool = rapid.SampledFrom(tools).Draw(t, "tool")
		case 1:
			epoch, seq = epoch+1, 0
		case 2:
			seq++ // a window that is lost
		}
		w := machinetest.At(seq, tool, false)
		w.Epoch, w.Start = epoch, w.Start.Add(time.Duration(i)*time.Minute)
		w.Samples[0][0] = float32(rapid.IntRange(8, 22).Draw(t, "value"))
		all = append(all, machinetest.Features(nil, w))
		seq++
	}
	return all
}

// After a swap at once every verdict is the one of a monitor that had the new model from the
// tool's first window on, windows that came while the tool's past was replayed among them. The
// old model judges until then, and the alarm is as it was.
func TestSwapAtOnceIsAsFromTheBeginning(t *testing.T) {
	a, b := pair(t)
	rapid.Check(t, func(rt *rapid.T) {
		before := life(rt, rapid.IntRange(1, 40).Draw(rt, "before"))
		all := append(slices.Clone(before), moreOf(before, rapid.IntRange(4, 30).Draw(rt, "after"))...)
		meanwhile := rapid.IntRange(0, 3).Draw(rt, "meanwhile")

		p := newPlant(rt, fleetOf(&Deployment{Champion: a}, a, b))
		for _, f := range before {
			p.window(f)
		}
		tool := before[len(before)-1].Tool
		standing := p.o.Machine(drill).alarms.inSpindle().alarm.State
		p.deploy(fleetOf(&Deployment{Champion: b, Now: true}, a, b))
		if !p.build(all[len(before) : len(before)+meanwhile]...) {
			rt.Fatal("nothing is to be replayed")
		}
		if meanwhile == 0 && fmt.Sprint(p.o.Machine(drill).alarms.inSpindle().alarm.State) != fmt.Sprint(standing) {
			rt.Fatalf("the swap moved the alarm: %+v, was %+v", p.o.Machine(drill).alarms.inSpindle().alarm.State, standing)
		}
		if rapid.Bool().Draw(rt, "restart") {
			p.restart()
		}
		swapped := len(p.results)
		for _, f := range all[len(before)+meanwhile:] {
			p.window(f)
		}

		q := newPlant(rt, fleetOf(&Deployment{Champion: b}, b))
		for i, f := range all {
			if len(q.results) == 0 && i < firstOf(p, tool) {
				continue
			}
			q.window(f)
		}
		got, want := p.results[swapped:], q.results[len(q.results)-(len(p.results)-swapped):]
		for i := range got {
			if said(got[i]) != said(want[i]) {
				rt.Fatalf("window %d after the swap:\n%s\nwant\n%s", i, said(got[i]), said(want[i]))
			}
		}
		for i, r := range p.results[:swapped] {
			if r.Model != a.ID() {
				rt.Fatalf("window %d before the swap was judged by %s", i, r.Model)
			}
		}
		if len(p.results) != len(all) || p.letters > 0 {
			rt.Fatalf("%d results of %d windows, %d letters", len(p.results), len(all), p.letters)
		}
	})
}

// moreOf returns windows of the last tool that follow.
func moreOf(before []*window.Features, n int) (all []*window.Features) {
	last := before[len(before)-1]
	for i := range n {
		w := machinetest.At(last.Seq+1+uint64(i), last.Tool, i%4 == 3)
		w.Epoch, w.Start = last.Epoch, last.Start.Add(time.Duration(i+1)*time.Second)
		all = append(all, machinetest.Features(nil, w))
	}
	return all
}

// firstOf returns where the first window of a tool lies.
func firstOf(p *plant, tool string) int {
	first := p.o.Machine(drill).Tools[p.o.Machine(drill).indexTool(tool)].First
	return slices.IndexFunc(p.features, func(f *window.Features) bool { return f.EpochString() == first.Epoch && f.Seq == first.Seq })
}

// A new champion waits for the next tool, also through restarts, and then judges that tool from
// its first window on.
func TestSwapAtTheNextTool(t *testing.T) {
	a, b := pair(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
	seq := uint64(0)
	next := func(tool string, want *model.Model) {
		t.Helper()
		p.window(machinetest.Features(nil, at(seq, tool, seq > 4)))
		if r := p.results[seq]; r.Model != want.ID() {
			t.Fatalf("window %d of %s was judged by %s, want %s", seq, tool, r.Model, want.ID())
		}
		seq++
	}
	for range 6 {
		next("T1", a)
	}
	p.deploy(fleetOf(&Deployment{Champion: b}, a, b))
	next("T1", a)
	p.restart()
	next("T1", a)
	if now, then := p.o.Machine(drill).Judges(); now != a.ID() || then != b.ID() {
		t.Errorf("models %s and %s", now, then)
	}
	next("T2", b)
	next("T2", b)
	if p.build() {
		t.Error("a new tool has no past")
	}
	wantStrings(t, "alerts", states(p.alerts), []string{"raised", "cleared tool_change"})
	// The tool comes back, which the new model has never seen, and whose reference it cannot use: it sees the tool's
	// past while the old model goes on, and judges from the tool's next entry on.
	next("T1", a)
	if !p.build() {
		t.Fatal("the past of a tool that is back is not read")
	}
	next("T1", a)
	next("T2", b)
	next("T1", b)
	if r := p.results[len(p.results)-1]; r.Verdict != event.Faulty || r.Wear == nil {
		t.Errorf("%s", event.JSON(r))
	}
	if p.build() {
		t.Error("it is read again")
	}
}

// A hundred swaps between two models, at once and at the next tool, with restarts: each window
// has one result, and alarms are raised and cleared as without any swap of models that agree.
func TestHundredSwaps(t *testing.T) {
	a, b := machinetest.OneValue(t), machinetest.WithWear(t)
	all := make([]*window.Features, 0, 2000)
	for i := range 2000 {
		w := at(uint64(i), fmt.Sprintf("T%d", i/70%4), i%35 > 20)
		all = append(all, machinetest.Features(nil, w))
	}
	run := func(swap bool) *plant {
		p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
		for i, f := range all {
			p.window(f)
			if !swap {
				continue
			}
			if i%20 == 7 {
				d := &Deployment{Champion: []*model.Model{a, b}[i/20%2], Now: i%3 == 0}
				p.deploy(fleetOf(d, a, b))
			}
			if i%9 == 0 {
				p.build()
			}
			if i%61 == 0 {
				p.restart()
			}
		}
		return p
	}
	p, q := run(true), run(false)
	if len(p.results) != len(all) || p.letters > 0 {
		t.Fatalf("%d results of %d windows, %d letters", len(p.results), len(all), p.letters)
	}
	used := make(map[string]int)
	for i, r := range p.results {
		used[r.Model]++
		if r.Seq != uint64(i) {
			t.Fatalf("result %d is of window %d", i, r.Seq)
		}
	}
	if len(used) != 2 || used[a.ID()] < 300 || used[b.ID()] < 300 {
		t.Errorf("results by model: %v", used)
	}
	if got, want := states(p.alerts), states(q.alerts); !slices.Equal(got, want) || len(want) < 20 {
		t.Errorf("alerts with swaps: %d %v\nwithout: %d %v", len(got), got, len(want), want)
	}
}

// A shadow judges as a monitor that had its model from the tool's first window on, moves no
// alarm, survives a restart, and leaves no record when it is over.
func TestShadow(t *testing.T) {
	a, b := pair(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
	q := newPlant(t, fleetOf(&Deployment{Champion: b}, b))
	r := newPlant(t, fleetOf(&Deployment{Champion: a}, a))
	seq := uint64(0)
	next := func(n int, tool string) {
		for range n {
			f := machinetest.Features(nil, at(seq, tool, seq%9 > 5))
			p.window(f)
			q.window(f)
			r.window(f)
			seq++
		}
	}
	next(7, "T1")
	p.deploy(fleetOf(&Deployment{Champion: a, Shadows: []Shadow{{Model: b}}}, a, b))
	next(2, "T1")
	if !p.build() || p.build() {
		t.Fatal("one replay is due")
	}
	next(5, "T1")
	p.restart()
	next(6, "T2")
	p.restart()
	next(9, "T1")
	of := event.ShadowGroup(group, b.ID())
	got := p.shadows[of]
	want := q.results[len(q.results)-len(got):]
	if len(got) < 20 {
		t.Fatalf("%d results of the shadow", len(got))
	}
	for i := range got {
		by := p.results[len(p.results)-len(got)+i]
		if c := got[i].Champion; c == nil || *c != (event.Champion{Model: by.Model, Verdict: by.Verdict, Incident: by.Incident}) {
			t.Errorf("window %d: the record has the verdict %+v for the champion, whose result is %s", i, c, event.JSON(by))
		}
		got[i].Champion = nil
		if said(got[i]) != said(want[i]) || got[i].Group != of {
			t.Errorf("window %d:\n%s\nwant\n%s", i, said(got[i]), said(want[i]))
		}
	}
	wantStrings(t, "alerts", states(p.alerts), states(r.alerts))
	for i := range r.results {
		if string(event.JSON(p.results[i])) != string(event.JSON(r.results[i])) {
			t.Fatalf("window %d with a shadow:\n%s\nwithout\n%s", i, event.JSON(p.results[i]), event.JSON(r.results[i]))
		}
	}
	ofShadow := func() (n int) {
		for k := range maps.Keys(p.records) {
			if k.Model == b.ID() {
				n++
			}
		}
		return n
	}
	if ofShadow() != 2 { // of T1 and T2
		t.Errorf("%d records of the shadow", ofShadow())
	}
	p.deploy(fleetOf(&Deployment{Champion: a, Shadows: []Shadow{{Model: b, Until: p.now()}}}, a, b))
	next(1, "T1")
	next(1, "T2")
	if n := ofShadow(); n > 0 || len(p.o.Machine(drill).Shadows()) > 0 {
		t.Errorf("%d records of a shadow that is over", n)
	}
}

// A machine without a model is advised of, and goes to no dead letters. Once a model is
// deployed it is watched.
func TestMachineWithoutModel(t *testing.T) {
	a := machinetest.OneValue(t)
	p := newPlant(t, fleetOf(nil, a))
	for seq := range uint64(3) {
		p.window(machinetest.Features(nil, at(seq, "T1", false)))
		p.restart()
	}
	wantStrings(t, "advisories", kinds(p.advised), []string{"windows_refused raised"})
	if text := p.advised[0].Text; !strings.Contains(text, "NOT WATCHED, no model is deployed for it") || len(p.results) > 0 || p.letters > 0 {
		t.Errorf("%q, %d results, %d letters", text, len(p.results), p.letters)
	}
	p.deploy(fleetOf(&Deployment{Champion: a}, a))
	p.sent += 120
	p.window(machinetest.Features(nil, at(3, "T1", false)))
	wantStrings(t, "advisories", kinds(p.advised), []string{"windows_refused raised", "windows_refused cleared"})
	if len(p.results) != 1 {
		t.Errorf("%d results", len(p.results))
	}
	p.deploy(fleetOf(nil, a))
	p.window(machinetest.Features(nil, at(4, "T1", false)))
	if len(p.results) != 1 || p.advised[len(p.advised)-1].State != event.Raised {
		t.Errorf("%d results; %+v", len(p.results), p.advised[len(p.advised)-1])
	}
}

// Alarm settings of a deployment count from the next window on, and an alarm that stands goes on.
func TestAlarmSettingsOfDeployment(t *testing.T) {
	a := machinetest.OneValue(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a, Alarm: alarm.Settings{K: 4, N: 4, Latch: true}}, a))
	for seq := range uint64(9) {
		p.window(machinetest.Features(nil, at(seq, "T1", seq > 1)))
		if raised := len(p.alerts) > 0; raised != (seq >= 5) {
			t.Fatalf("window %d: %v", seq, states(p.alerts))
		}
	}
	incident := p.results[8].Incident
	p.deploy(fleetOf(&Deployment{Champion: a, Alarm: alarm.Settings{K: 2, N: 3, Latch: true}}, a))
	p.window(machinetest.Features(nil, at(9, "T1", true)))
	if r := p.results[9]; r.Incident != incident || len(p.alerts) != 1 {
		t.Errorf("%s %v", event.JSON(r), states(p.alerts))
	}
}

// byLayout returns a fleet in which each model is for machines of its own layout.
func byLayout(models ...*model.Model) Fleet {
	of := make(map[string]*Deployment)
	for _, m := range models {
		of[m.Layout.Fingerprint()] = &Deployment{Champion: m}
	}
	f := fleetOf(nil, models...)
	f.Of = func(_, layout string) *Deployment { return of[layout] }
	return f
}

// wideOf returns the features of a window of the layout of machinetest.TwoValues.
func wideOf(m *model.Model, epoch, seq uint64, tool string) *window.Features {
	w := at(seq, tool, false)
	w.Epoch, w.Start = epoch, w.Start.Add(time.Duration(epoch)*time.Minute)
	w.Samples, w.Quality = [][]float32{{10}, {10}}, make([]signal.Quality, 2)
	return machinetest.Features(m, w)
}

// Once a machine has another layout, windows of the one before that come again, that come late, or
// that a second ingester sends do not bring the model of before back.
func TestOldWindowsOfAnotherLayout(t *testing.T) {
	a, b := machinetest.OneValue(t), machinetest.TwoValues(t)
	p := newPlant(t, byLayout(a, b))
	judgedBy := func(want *model.Model, results int) {
		t.Helper()
		if now, _ := p.o.Machine(drill).Judges(); now != want.ID() || len(p.results) != results {
			t.Fatalf("%s judges, want %s; %d results, want %d", now, want.ID(), len(p.results), results)
		}
	}
	for seq := range uint64(4) {
		p.window(of(1, seq, "T1"))
	}
	for seq := range uint64(2) {
		p.window(wideOf(b, 2, seq, "T1"))
	}
	if !p.build() { // the tool began with windows of the other layout
		t.Fatal("nothing is to be built")
	}
	p.window(wideOf(b, 2, 2, "T1"))
	judgedBy(b, 7)
	changed := []string{"model_changed raised", "model_changed cleared", "model_changed raised"} // its reference is of a used tool
	wantStrings(t, "advisories", kinds(p.advised), changed)
	p.sent += 70 // seconds
	p.window(wideOf(b, 2, 3, "T1"))
	for seq := range uint64(5) { // the last one did not come before
		p.window(of(1, seq, "T1"))
		judgedBy(b, 8+int(seq)+int(seq)/4)
		p.window(of(1, seq, "T1"))
		p.restart()
		p.window(wideOf(b, 2, 4+seq, "T1"))
		judgedBy(b, 9+int(seq)+int(seq)/4)
	}
	changed = append(changed, "two_ingesters raised")
	wantStrings(t, "advisories", kinds(p.advised), changed)
	if m := p.o.Machine(drill); !m.Epochs[0].Judged.Has(4) {
		t.Error("a window that came late is passed over again when it is sent again")
	}

	for seq := uint64(9); seq < 40; seq++ { // the ingester of before goes on next to the other one
		p.window(wideOf(b, 2, seq, "T1"))
		p.window(of(1, seq+100, "T1"))
	}
	if now, _ := p.o.Machine(drill).Judges(); now != b.ID() {
		t.Errorf("%s judges, want the model of the ingester that leads", now)
	}
	wantStrings(t, "advisories", kinds(p.advised), changed)
	for _, r := range p.results[len(p.results)-60:] {
		if of := map[string]string{"0000000000000001": a.ID(), "0000000000000002": b.ID()}[r.Epoch]; r.Model != of || r.Late != (r.Model == a.ID()) {
			t.Fatalf("%s", event.JSON(r))
		}
	}
}

// Everything knows its model, and no other one.
func TestEverything(t *testing.T) {
	m := machinetest.OneValue(t)
	f := Everything(m)
	if f.Model(m.ID()) != m || f.Model("another") != nil || f.Of(drill, "any").Champion != m {
		t.Error("Everything knows something else")
	}
}

// A partition makes room for so many machines of which no window was judged. Those that are judged take no room.
func TestRoomForUnjudged(t *testing.T) {
	m := machinetest.OneValue(t)
	f := fleetOf(nil, m)
	judged := func(name string) bool { return strings.HasPrefix(name, "acme/judged/") }
	f.Of = func(name, _ string) *Deployment {
		if judged(name) {
			return &Deployment{Champion: m}
		}
		return nil
	}
	p := newPlant(t, f)
	seen := 0
	p.o.OnWindow = func(of *window.Features, r event.Result) {
		if seen++; of.Machine != r.Machine || !judged(r.Machine) {
			t.Errorf("a window of %s with a result of %s", of.Machine, r.Machine)
		}
	}
	send := func(name string) {
		w := at(0, "T1", false)
		w.Machine = name
		p.window(machinetest.Features(nil, w))
	}
	for i := range mostRefused + 5 {
		send(fmt.Sprint("acme/judged/", i))
		send(fmt.Sprint("acme/line1/", i))
	}
	if seen != mostRefused+5 || p.others != mostRefused+5 {
		t.Errorf("%d windows were judged, and %d were not", seen, p.others)
	}
	for i := range mostRefused + 5 {
		if known := p.o.Machine(fmt.Sprint("acme/line1/", i)) != nil; known != (i < mostRefused) || p.o.Machine(fmt.Sprint("acme/judged/", i)) == nil {
			t.Errorf("machine %d: known %v", i, known)
		}
	}
}

// Machines take turns with their builds: one whose build fails again and again keeps no other one waiting.
func TestBuildsTakeTurns(t *testing.T) {
	a, b := machinetest.OneValue(t), otherFeatures(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
	names := []string{"acme/line1/a", "acme/line1/b", "acme/line1/c"}
	for _, name := range names {
		w := at(0, "T1", false)
		w.Machine = name
		p.window(machinetest.Features(nil, w))
	}
	p.deploy(fleetOf(&Deployment{Champion: b}, a, b))
	var order []string
	for range 6 {
		r := p.o.BuildDue(p.now())
		order = append(order, r.Job().Machine)
		r.Failed = true
		p.do(p.o.On(r, p.now()))
	}
	wantStrings(t, "builds", order, append(names, names...))
}

// A shadow that cannot see the tool's first window is shown its past once, also while nothing judges.
func TestShadowIsBuiltOnce(t *testing.T) {
	a, champion, shadow := machinetest.OneValue(t), ofLength(t, 2*time.Second), ofLength(t, 2*time.Second)
	shadow.Reference.Windows = 3
	if _, err := shadow.Encode(); err != nil {
		t.Fatal(err)
	}
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, champion, shadow))
	seq := p.run(0, 3, "T1", false)
	p.deploy(fleetOf(&Deployment{Champion: champion, Shadows: []Shadow{{Model: shadow}}}, a, champion, shadow))
	p.window(machinetest.Features(toys()["S"], measured{10, "S"}.window(1, seq, "T1", "", noon.Add(time.Minute))))
	builds := 0
	for builds < 9 && p.build() {
		builds++
	}
	if builds != 2 {
		t.Errorf("%d builds, want one of each model", builds)
	}
}

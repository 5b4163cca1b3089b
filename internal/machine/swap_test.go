package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// command hands the owner the next command.
func (p *plant) command(e event.Command) {
	e.Machine, e.By, e.Issued = drill, "kim", p.now()
	c := Command{Key: drill, Value: event.JSON(e), Offset: p.commanded, At: p.now()}
	p.commanded++
	p.do(p.o.On(CommandsRead{c}, p.now()))
}

// of returns the features of a window of an epoch.
func of(epoch, seq uint64, tool string) *window.Features {
	w := at(seq, tool, false)
	w.Epoch, w.Start = epoch, w.Start.Add(time.Duration(epoch)*time.Minute)
	return machinetest.Features(nil, w)
}

// A build leaves out windows that the machine has not judged yet: another group, or a gateway,
// may have published their features before. The machine judges them itself, once.
func TestBuildOfWindowsToCome(t *testing.T) {
	a, b := pair(t)
	p, q := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b)), newPlant(t, fleetOf(&Deployment{Champion: b}, b))
	var all []*window.Features
	for seq := range uint64(12) {
		all = append(all, of(1, seq, "T1"))
	}
	for _, f := range all[:2] {
		p.window(f)
	}
	p.deploy(fleetOf(&Deployment{Champion: b, Now: true}, a, b))
	r := p.o.BuildDue(p.now())
	for _, f := range all[:8] {
		r.Observe(f, p.now())
	}
	p.do(p.o.On(r, p.now()))
	for _, f := range all[2:] {
		p.window(f)
	}
	for _, f := range all {
		q.window(f)
	}
	for i := 2; i < len(all); i++ {
		if said(p.results[i]) != said(q.results[i]) {
			t.Errorf("window %d:\n%s\nwant\n%s", i, said(p.results[i]), said(q.results[i]))
		}
	}
}

// A build that did not find the tool's beginning is used if the windows that came meanwhile are of a form that only its model takes.
func TestBuildWhileTheFormChanges(t *testing.T) {
	before, champion := machinetest.Cycling(t), otherFeatures(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: before}, before, champion))
	seq := uint64(0)
	send := func(form *model.Model) {
		p.window(machinetest.Features(form, at(seq, "T1", false)))
		seq++
	}
	for range 4 {
		send(before)
	}
	p.deploy(fleetOf(&Deployment{Champion: champion, Now: true}, before, champion))
	b := p.o.BuildDue(p.now())
	if b == nil {
		t.Fatal("nothing is to be built")
	}
	send(nil)
	if r := p.last(); r.Unknown != modelChanged {
		t.Fatalf("%s", event.JSON(r))
	}
	for _, f := range p.features[1:4] { // retention has deleted the first one
		b.Observe(f, p.now())
	}
	p.do(p.o.On(b, p.now()))
	send(nil)
	if r := p.last(); r.Model != champion.ID() || r.Verdict != event.Healthy {
		t.Errorf("%s", event.JSON(r))
	}
}

// Features of windows from before the tool's first one, which another group has published
// later, do not make a second ingester the machine's.
func TestBuildAmongOthersFeatures(t *testing.T) {
	a, b := pair(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
	log := []*window.Features{
		of(1, 0, "T1"), of(1, 1, "T1"), of(2, 0, "X"), of(1, 2, "T1"), of(2, 1, "X"), of(1, 3, "T2"), of(2, 2, "X"), of(1, 4, "T2"), of(1, 5, "T2"),
	}
	for _, f := range log {
		p.window(f)
	}
	p.deploy(fleetOf(&Deployment{Champion: b, Now: true}, a, b))
	r := p.o.BuildDue(p.now())
	for _, f := range append(append(append([]*window.Features{}, log[:6]...), log[:6]...), log[6:]...) {
		r.Observe(f, p.now())
	}
	p.do(p.o.On(r, p.now()))
	if n := p.o.Machine(drill).inSpindle().judging(b.ID()).Reference.Windows; n != 3 {
		t.Errorf("the reference was learnt from %d windows, want 3", n)
	}
}

// A deployment counts from a restart on, not from the first window after it: a command may come
// before that.
func TestDeploymentAfterRestart(t *testing.T) {
	a, b := pair(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
	p.window(of(1, 0, "T1"))
	p.deploy(fleetOf(&Deployment{Champion: b, Alarm: alarm.Settings{K: 4, N: 6, Latch: true}}, a, b))
	p.restart()
	p.command(event.Command{ID: "1", Action: event.Unsuppress})
	if got := p.alerts[0]; got.K != 4 || got.N != 6 {
		t.Errorf("after a restart the alarm has %d of %d", got.K, got.N)
	}
	p.command(event.Command{ID: "2", Action: event.NewTool, Tool: "T1"})
	if now, next := p.o.Machine(drill).Judges(); now != b.ID() || next != "" {
		t.Errorf("a tool that is declared new is judged by %s and then by %q, want %s", now, next, b.ID())
	}
	p.deploy(fleetOf(nil, a, b))
	p.command(event.Command{ID: "3", Action: event.Unsuppress})
	if got := p.alerts[len(p.alerts)-1]; got.K != testAlarm.K {
		t.Errorf("without a deployment the alarm has K %d", got.K)
	}
}

// A machine that is retired while a model sees its tool's past begins again, and its later swaps
// at once come.
func TestRetiredDuringBuild(t *testing.T) {
	a, b := pair(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
	p.window(of(1, 0, "T1"))
	p.window(of(1, 1, "T1"))
	p.deploy(fleetOf(&Deployment{Champion: b, Now: true}, a, b))
	r := p.o.BuildDue(p.now())
	p.command(event.Command{ID: "1", Action: event.Retire})
	p.do(p.o.On(r, p.now()))
	p.window(of(1, 2, "T1"))
	p.window(of(1, 3, "T1"))
	p.deploy(fleetOf(&Deployment{Champion: a, Now: true}, a, b))
	if !p.build() {
		t.Error("nothing is to be built")
	}
	p.window(of(1, 4, "T1"))
	if now, _ := p.o.Machine(drill).Judges(); now != a.ID() {
		t.Errorf("%s judges", now)
	}
}

// A build waits while no model is deployed.
func TestNoBuildWithoutModel(t *testing.T) {
	a, b := pair(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
	for seq := range uint64(4) {
		p.window(of(1, seq, "T1"))
	}
	p.fleet = fleetOf(&Deployment{Champion: b}, b) // the old model is not known any more
	p.restart()
	p.window(of(1, 4, "T1"))
	if p.o.BuildDue(p.now()) == nil {
		t.Fatal("nothing is to be built")
	}
	p.fleet = fleetOf(nil)
	p.restart()
	p.window(of(1, 5, "T1"))
	if p.o.BuildDue(p.now()) != nil {
		t.Error("a build without a model is due")
	}
}

// A shadow does not judge windows that come again: it may be younger than they are.
func TestShadowOfResentWindows(t *testing.T) {
	a, b := pair(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
	p.window(of(1, 0, "T1"))
	p.window(of(1, 1, "T1"))
	p.deploy(fleetOf(&Deployment{Champion: a, Shadows: []Shadow{{Model: b}}}, a, b))
	p.window(of(1, 2, "T2"))
	p.window(of(1, 3, "T2"))
	p.window(of(1, 1, "T1"))
	p.window(of(1, 4, "T2"))
	var seqs []uint64
	for _, r := range p.shadows[event.ShadowGroup(group, b.ID())] {
		seqs = append(seqs, r.Seq)
	}
	if fmt.Sprint(seqs) != "[2 3 4]" {
		t.Errorf("the shadow judged %v", seqs)
	}
}

// A restart before a shadow has seen the tool's past leaves nothing of it: it sees the past after that.
func TestRestartOfWaitingShadow(t *testing.T) {
	a, b := pair(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
	for seq := range uint64(3) {
		p.window(of(1, seq, "T1"))
	}
	p.deploy(fleetOf(&Deployment{Champion: a, Shadows: []Shadow{{Model: b}}}, a, b))
	p.window(of(1, 3, "T1"))
	p.command(event.Command{ID: "1", Action: event.NewTool, Tool: "T9"})
	for k := range p.records {
		if k.Model == b.ID() {
			t.Errorf("record %q", k.String())
		}
	}
	p.restart()
	p.window(of(1, 4, "T1"))
	if !p.build() {
		t.Error("the shadow goes on without the past of the tool")
	}
}

// Shadows answer a command in the order of their models.
func TestShadowsInOrder(t *testing.T) {
	a, b := pair(t)
	c := machinetest.OneValue(t)
	c.Provenance.Seed = 7
	if _, err := c.Encode(); err != nil {
		t.Fatal(err)
	}
	var want string
	for i := range 20 {
		p := newPlant(t, fleetOf(&Deployment{Champion: a, Shadows: []Shadow{{Model: b}, {Model: c}}}, a, b, c))
		for seq := range uint64(9) {
			w := at(seq, "T1", seq > 4)
			p.window(machinetest.Features(nil, w))
		}
		p.order = ""
		p.command(event.Command{ID: "1", Action: event.NewTool, Tool: "T1"})
		if want == "" {
			want = p.order
		}
		if p.order != want || want == "" {
			t.Fatalf("try %d: %s, before %s", i, p.order, want)
		}
	}
}

// A shadow that ends and is wanted again within one batch begins again behind it.
func TestShadowAgainWithinBatch(t *testing.T) {
	a, b := pair(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a, Shadows: []Shadow{{Model: b}}}, a, b))
	p.window(of(1, 0, "T1"))
	p.deploy(fleetOf(&Deployment{Champion: b, Now: true, Shadows: []Shadow{{Model: b}}}, a, b))
	if p.build() {
		t.Fatal("the shadow has seen all of the tool")
	}
	p.deploy(fleetOf(&Deployment{Champion: a, Shadows: []Shadow{{Model: b}}}, a, b))
	var in []Input
	for seq, tool := range []string{"T1", "T2"} {
		f := of(1, uint64(seq+1), tool)
		in = append(in, Input{Offset: p.sent, At: p.now(), Open: func(into *window.Features) error { *into = *f; return nil }})
		p.sent++
	}
	p.do(p.o.On(Read{Log: WindowLog, Inputs: in}, p.now()))
	p.window(of(1, 3, "T2"))
	p.build()
	p.window(of(1, 4, "T2"))
	all := p.shadows[event.ShadowGroup(group, b.ID())]
	for _, r := range all {
		if r.Model != b.ID() {
			t.Errorf("a result of a shadow is of model %q", r.Model)
		}
	}
	if last := all[len(all)-1]; last.Seq != 4 {
		t.Errorf("the shadow judged window %d last", last.Seq)
	}
}

// What a shadow has seen of a tool is dropped if its time is over by then: no model that was never the champion judges the
// tool, not even if all others are gone.
func TestBuildOfAShadowThatIsOver(t *testing.T) {
	a, b := pair(t)
	c := machinetest.OneValue(t)
	c.Reference.Windows = 4
	if _, err := c.Encode(); err != nil {
		t.Fatal(err)
	}
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b, c))
	seq := p.run(0, 5, "T1", false)
	p.deploy(fleetOf(&Deployment{Champion: a, Shadows: []Shadow{{Model: b, Until: p.now().Add(time.Second)}}}, a, b, c))
	meanwhile := []*window.Features{machinetest.Features(a, at(seq, "T1", false)), machinetest.Features(a, at(seq+1, "T1", false))}
	if !p.build(meanwhile...) {
		t.Fatal("nothing is to be built")
	}
	p.deploy(fleetOf(&Deployment{Champion: c}, b, c))
	p.run(seq+2, 1, "T1", false)
	if r := p.last(); r.Model != c.ID() || r.Unknown != modelChanged {
		t.Errorf("a window once the champion is gone: %s", event.JSON(r))
	}
}

// A tool begins with the first window that moves it, not with one of an epoch that does not lead and that no model judges.
func TestFirstWindowOfAToolInTheMagazine(t *testing.T) {
	a := machinetest.OneValue(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a))
	seq := p.run(0, 4, "T1", false)
	p.command(event.Command{ID: "1", Action: event.NewTool, Tool: "T1"})
	for i := range uint64(3) {
		p.window(of(2, i, "T2"))
	}
	p.deploy(fleetOf(nil, a))
	p.window(of(1, seq, "T1"))
	p.deploy(fleetOf(&Deployment{Champion: a}, a))
	p.window(of(1, seq+1, "T1"))
	p.window(of(1, seq+2, "T1"))
	if in := p.o.Machine(drill).inSpindle(); in.Name != "T1" || in.First.Seq != seq+1 || in.Windows != 2 {
		t.Errorf("tool %s has %d windows, the first one is %d, want %d", in.Name, in.Windows, in.First.Seq, seq+1)
	}
}

// A window that moves nothing begins no trial: a former model that is put on trial has the alarm of the tool's past once it has seen it.
func TestShadowBeginsWithItsAlarm(t *testing.T) {
	a, b := pair(t)
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
	seq := p.run(0, 5, "T1", false)
	p.deploy(fleetOf(&Deployment{Champion: b, Now: true}, a, b))
	seq = p.run(seq, 1, "T1", false)
	p.build()
	seq = p.run(seq, 3, "T1", true)
	second := func(seq uint64) {
		w := at(seq, "T1", true)
		w.Epoch = 7
		p.window(machinetest.Features(nil, w))
	}
	second(0)
	p.run(seq, 1, "T1", true)
	p.deploy(fleetOf(&Deployment{Champion: b, Now: true, Shadows: []Shadow{{Model: a}}}, a, b))
	if second(1); !p.last().Late {
		t.Fatal("it is not of a second ingester")
	}
	for p.build() {
	}
	trial := p.o.Machine(drill).inSpindle().judging(a.ID())
	if trial == nil || trial.Trial == nil || !trial.Trial.Raised || !strings.Contains(p.order, event.ShadowGroup(group, a.ID())) {
		t.Errorf("%+v, alerts of %q", trial, p.order)
	}
}

package machine

import (
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/model"
)

// A model that is shown the past of a tool is shown no window of the tool under its name before: behind a tool that was declared
// new it judges as if it had been there from the new tool's first window on.
func TestBuildOfAToolDeclaredNew(t *testing.T) {
	a, b := pair(t)
	for _, worn := range []int{1, 4, 9} {
		p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
		seq := p.run(0, worn, "T1", true)
		p.command(event.Command{ID: "1", Action: event.NewTool, Tool: "T1"})
		first := seq
		seq = p.run(seq, 5, "T1", false)
		p.deploy(fleetOf(&Deployment{Champion: b, Now: true}, a, b))
		if !p.build() {
			t.Fatal("nothing is to be built")
		}
		seq = p.run(seq, 2, "T1", false)
		seq = p.run(seq, 3, "T1", true)

		q := newPlant(t, fleetOf(&Deployment{Champion: b}, b))
		q.run(first, int(seq-first), "T1", false)
		got, want := p.o.Machine(drill).inSpindle().judging(b.ID()), q.o.Machine(drill).inSpindle().judging(b.ID())
		if x, y := event.JSON(got.Reference), event.JSON(want.Reference); string(x) != string(y) {
			t.Errorf("behind %d windows of the tool before: %s\nwant %s", worn, x, y)
		}
		if r := p.last(); r.Model != b.ID() || r.Verdict != event.Faulty {
			t.Errorf("behind %d windows of the tool before, a worn window: %s", worn, event.JSON(r))
		}
	}
}

// buildFrom runs a build of which Kafka has no features before the k-th.
func (p *plant) buildFrom(k int) bool {
	r := p.o.BuildDue(p.now())
	if r == nil {
		return false
	}
	for i, f := range p.features[k:] {
		r.Observe(f, noon.Add(time.Duration(k+i)*time.Second))
	}
	p.do(p.o.On(r, p.now()))
	return true
}

// At once means now, also if the beginning of the tool's past is gone: a model with the reference of the one before takes over, and
// so does one that knows the tool from before, as after a rollback. Another one does not, and the log says so.
func TestAtOnceWithoutThePast(t *testing.T) {
	a, b := pair(t)
	like := machinetest.OneValue(t)
	like.Provenance.Seed = 7
	if _, err := like.Encode(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		then  []*model.Model
		gone  int
		takes bool
	}{
		"the reference of the one before": {[]*model.Model{like}, 5, true},
		"a rollback":                      {[]*model.Model{b, a}, 5, true},
		"neither":                         {[]*model.Model{b}, 5, false},
	} {
		p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b, like))
		seq := p.run(0, 10, "T1", false)
		for i, m := range c.then {
			p.deploy(fleetOf(&Deployment{Champion: m, Now: true}, a, b, like))
			seq = p.run(seq, 2, "T1", false)
			from := c.gone
			if i < len(c.then)-1 {
				from = 0
			}
			for n := 0; p.buildFrom(from); n++ {
				if n > 2 {
					t.Fatalf("%s: it is built again and again", name)
				}
			}
			seq = p.run(seq, 2, "T1", false)
		}
		last := c.then[len(c.then)-1]
		if takes := p.last().Model == last.ID(); takes != c.takes || !takes && p.count("model_not_built") != 1 {
			t.Errorf("%s: it takes over: %v; %v", name, takes, p.lines)
		}
	}
}

// A model that does not take the tool's first windows cannot know it as new: its past is read once, and other machines have their turn.
func TestBuildThatCannotEnd(t *testing.T) {
	a, long, trial := machinetest.OneValue(t), ofLength(t, 2*time.Second), ofLength(t, 2*time.Second)
	trial.Provenance.Seed, trial.Reference.Windows = 9, 3
	if _, err := trial.Encode(); err != nil {
		t.Fatal(err)
	}
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, long, trial))
	seq := p.run(0, 5, "T1", false)
	longs := func(n int) {
		for range n {
			w := at(seq, "T1", false)
			w.Length = 2 * time.Second
			w.Samples[0] = append(w.Samples[0], 10)
			p.window(machinetest.Features(long, w))
			seq++
		}
	}
	p.deploy(fleetOf(&Deployment{Champion: long}, a, long, trial))
	longs(3)
	for p.build() {
	}
	longs(3)
	if r := p.last(); r.Model != long.ID() || r.Verdict == event.Unknown {
		t.Fatalf("%s", event.JSON(r))
	}
	p.deploy(fleetOf(&Deployment{Champion: long, Shadows: []Shadow{{Model: trial}}}, a, long, trial))
	longs(1)
	builds := 0
	for builds < 10 && p.build() {
		builds++
	}
	if builds > 1 || p.count("model_not_built") != 1 {
		t.Errorf("%d builds, %v", builds, p.lines)
	}
}

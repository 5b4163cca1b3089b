package machine

import (
	"testing"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/model"
)

// slow returns a model with a reference of five windows.
func slow(t *testing.T, m *model.Model) *model.Model {
	t.Helper()
	m.Reference.Windows = 5
	if _, err := m.Encode(); err != nil {
		t.Fatal(err)
	}
	return m
}

// Two models that measure the same features learn a tool for themselves until its reference is settled: whichever window the
// second one comes with, both know of the tool what each would know alone. A reference that is still being learnt is not
// shared.
func TestReferenceIsLearntAlone(t *testing.T) {
	a, b := slow(t, machinetest.OneValue(t)), slow(t, machinetest.WithWear(t))
	window := func(p *plant, seq uint64) {
		w := at(seq, "T1", false)
		w.Samples[0][0] += float32(seq * seq % 7)
		p.window(machinetest.Features(nil, w))
	}
	alone := func(m *model.Model) string {
		p := newPlant(t, fleetOf(&Deployment{Champion: m}, m))
		for seq := range uint64(12) {
			window(p, seq)
		}
		return string(event.JSON(p.o.Machine(drill).inSpindle().judging(m.ID()).Reference))
	}
	wantA, wantB := alone(a), alone(b)
	for came := range uint64(8) {
		p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
		for seq := range uint64(12) {
			if seq == came {
				p.deploy(fleetOf(&Deployment{Champion: b}, a, b))
			}
			window(p, seq)
			if came > 0 && seq == came {
				knows := p.o.Machine(drill).inSpindle().judging(b.ID())
				if settled := came >= 5; (knows != nil) != settled {
					t.Errorf("behind %d windows the next model knows the tool: %v", came, knows != nil)
				}
			}
			p.build()
		}
		tool := p.o.Machine(drill).inSpindle()
		for id, want := range map[string]string{a.ID(): wantA, b.ID(): wantB} {
			if j := tool.judging(id); j != nil && string(event.JSON(j.Reference)) != want {
				t.Errorf("from window %d on: %s\nwant %s", came, event.JSON(j.Reference), want)
			}
		}
	}
}

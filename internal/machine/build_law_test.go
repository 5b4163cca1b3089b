package machine

import (
	"testing"

	"github.com/flank-tcm/flank/internal/event"
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

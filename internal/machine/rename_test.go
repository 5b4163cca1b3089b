package machine

import (
	"slices"
	"testing"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/machinetest"
)

// renamed returns an owner in partition 5 of a machine that was renamed to the drill, and had
// moved from partition 1 to partition 2 under the old name. All other partitions are of others.
func renamed(t *testing.T) *plant {
	t.Helper()
	const was = "acme/line1/lathe"
	a, b := pair(t)
	old, err := New(was, &Settings{Group: group, Alarm: testAlarm}, NewModel(a), noon)
	if err != nil {
		t.Fatal(err)
	}
	old.Model, old.Partition, old.Past = a.ID(), 2, []int{1}
	for seq := range uint64(3) {
		w := at(seq, "T1", false)
		w.Machine = was
		old.Apply(Window{Features: machinetest.Features(nil, w), Offset: int64(seq), At: noon, Now: noon})
	}
	old.writeAll()
	kept := event.Command{ID: "1", Action: event.Rename, Was: was}
	for _, r := range old.Records() {
		kept.State = append(kept.State, event.Kept{Key: r.Key.String(), Value: r.Value})
	}
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
	p.o.partition = 5
	p.command(kept)
	if m := p.o.Machine(drill); m == nil || m.Partition != 5 || m.inSpindle().Reference.Windows != 2 {
		t.Fatalf("the machine was not renamed: %+v", m)
	}
	return p
}

// The past of a machine that was renamed is read from the partition of its new name only.
func TestReplayAfterRename(t *testing.T) {
	p := renamed(t)
	a, b := p.o.Machine(drill).model.model, machinetest.WithWear(t)
	p.window(of(1, 3, "T1"))
	p.deploy(fleetOf(&Deployment{Champion: b, Now: true}, a, b))
	r := p.o.ReplayDue(p.now())
	if r == nil {
		t.Fatal("nothing is to be replayed")
	}
	if got := r.Job().Partitions; !slices.Equal(got, []int{5}) {
		t.Errorf("the replay reads partitions %v, want 5", got)
	}
}

// Earlier releases kept a partition that no topic has for a machine that was renamed.
func TestLoadAfterRename(t *testing.T) {
	p := renamed(t)
	m := p.o.Machine(drill)
	m.Past = []int{1, nowhere, 3}
	m.writeAll()
	again, err := Load(m.Records(), m.settings, m.model, noon)
	if err != nil || !slices.Equal(again.Past, []int{1, 3}) {
		t.Errorf("%v, %v", again.Past, err)
	}
}

package machine

import (
	"bytes"
	"testing"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/machinetest"
)

// A machine that was renamed goes on with the references of its tools, and with no offset of the
// partition of its old name.
func TestRename(t *testing.T) {
	const was = "acme/line1/lathe"
	a, b := pair(t)
	old, err := New(was, &Settings{Group: group, Alarm: testAlarm}, NewModel(a), noon)
	if err != nil {
		t.Fatal(err)
	}
	old.Model = a.ID()
	for seq := range uint64(3) {
		w := at(seq, "T1", false)
		w.Machine = was
		old.Apply(Window{Features: machinetest.Features(nil, w), Offset: 100 + int64(seq), At: noon, Now: noon})
	}
	old.writeAll()
	kept := event.Command{ID: "1", Action: event.Rename, Was: was}
	for _, r := range old.Records() {
		kept.State = append(kept.State, event.Kept{Key: r.Key.String(), Value: r.Value})
	}
	p := newPlant(t, fleetOf(&Deployment{Champion: a}, a, b))
	p.command(kept)
	m := p.o.Machine(drill)
	if m == nil || m.inSpindle().Reference.Windows != 2 || m.inSpindle().From != -1 {
		t.Fatalf("the machine was not renamed: %+v", m)
	}
	for _, w := range m.inSpindle().Trace {
		if w.Offset != 0 {
			t.Errorf("the trace has offset %d of the old name's partition", w.Offset)
		}
	}
}

// Records that move to another partition lose their offsets, and nothing else.
func TestMoved(t *testing.T) {
	b := newBench(t, machinetest.Cycling(t), withEvidence)
	for seq := range uint64(12) {
		b.window(at(seq, "T1", seq > 8))
	}
	b.window(at(12, "T2", true))
	b.window(at(13, "T2", true))
	if len(b.m.Evidence) == 0 {
		t.Fatal("no evidence is pending")
	}
	b.m.writeAll()
	was := b.m.Records()
	for _, tool := range b.m.Tools {
		tool.From = -1
		for i := range tool.Trace {
			tool.Trace[i].Offset = 0
		}
	}
	for i := range b.m.Evidence {
		b.m.Evidence[i].Offset = 0
	}
	b.m.writeAll()
	changed := 0
	for i, want := range b.m.Records() {
		got, err := Moved(was[i])
		if err != nil || got.Key != want.Key || !bytes.Equal(got.Value, want.Value) {
			t.Errorf("%v: %v\n%s\nwant\n%s", got.Key, err, got.Value, want.Value)
		}
		if !bytes.Equal(got.Value, was[i].Value) {
			changed++
		}
	}
	if changed < 3 {
		t.Errorf("%d records had an offset", changed)
	}
	if _, err := Moved(Record{Key: Key{Group: group, Machine: drill}, Value: []byte("{")}); err == nil {
		t.Error("a record that is cut off is moved")
	}
}

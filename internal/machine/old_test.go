package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/machinetest"
	"github.com/flank-tcm/flank/pkg/model"
)

// oldModel is the model of the records in testdata, which say MODEL where its id was.
func oldModel(t *testing.T) *model.Model {
	t.Helper()
	m := machinetest.WithWear(t)
	m.Cycle = machinetest.Cycling(t).Cycle
	if _, err := m.Encode(); err != nil {
		t.Fatal(err)
	}
	return m
}

func oldRecord(t *testing.T, name string, m *model.Model) Record {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "old-"+name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return Record{Key: Key{Machine: drill}, Value: []byte(strings.ReplaceAll(string(text), "MODEL", m.ID())), Offset: 3}
}

// takeOver lets an owner take a partition over that has these records, and returns what
// it publishes before it judges a window; nil if nothing.
func takeOver(t *testing.T, m *model.Model, from Position, records []Record) (*Owner, *Batch) {
	t.Helper()
	o := NewOwner(&Settings{Group: group, Alarm: testAlarm}, Everything(m), 0)
	if a := o.Start(); len(a) != 1 || !a[0].Fence {
		t.Fatalf("%+v", a)
	}
	if a := o.On(Reply{Fenced: &from, Now: noon}); len(a) != 1 || !a[0].Load {
		t.Fatalf("%+v", a)
	}
	if records == nil {
		records = []Record{}
	}
	var b *Batch
	for _, a := range o.On(Reply{Loaded: records, Now: noon}) {
		if a.Publish != nil {
			b = a.Publish
		}
	}
	if b != nil {
		o.On(Reply{Published: true, Now: noon})
	}
	return o, b
}

// write keeps the records of a batch.
func (b *bench) write(batch *Batch) {
	for _, r := range batch.State {
		if r.Value == nil {
			delete(b.records, r.Key)
		} else {
			b.records[r.Key] = r
		}
	}
}

// The record of a program before version 2 is taken over once: what it had decided is
// published, it is deleted, and the machine goes on under the keys of its group.
func TestOldRecord(t *testing.T) {
	m := oldModel(t)
	for name, tc := range map[string]struct {
		pending string // event types
		alarm   string
		next    uint64
	}{
		"raised":       {"result alert", "raised", 12},
		"clock":        {"result advisory", "raised", 13},
		"acknowledged": {"alert", "acknowledged", 14},
	} {
		t.Run(name, func(t *testing.T) {
			old := oldRecord(t, name, m)
			_, batch := takeOver(t, m, Position{Windows: 5, Commands: 5}, []Record{old})
			if batch == nil || batch.Position != (Position{Windows: 5, Commands: 5}) {
				t.Fatalf("%+v", batch)
			}
			var types []string
			for _, e := range batch.Events {
				switch {
				case e.Result != nil:
					types = append(types, "result")
				case e.Alert != nil:
					types = append(types, "alert")
				case e.Advisory != nil:
					types = append(types, "advisory")
				}
			}
			if got := strings.Join(types, " "); got != tc.pending {
				t.Errorf("published %q, want %q", got, tc.pending)
			}
			b := newBench(t, m)
			b.records[old.Key] = old
			b.write(batch)
			if _, there := b.records[old.Key]; there || len(b.records) != 3 {
				t.Errorf("%d records, the old one is there: %v", len(b.records), there)
			}
			for _, records := range [][]Record{b.stored(), append(b.stored(), old)} { // with one that was not compacted away
				if _, again := takeOver(t, m, Position{Windows: 5, Commands: 5}, records); again != nil {
					t.Errorf("published again: %+v", again)
				}
			}
			b.restart()
			incident := b.incident()
			if incident != "A-U67UPTM2" {
				t.Errorf("incident %s", incident)
			}
			d := b.window(at(tc.next, "T1", true))
			if r := d.Result; r.Verdict != event.Faulty || r.Alarm != tc.alarm || r.Incident != incident || r.Late || d.Missing != 0 || r.Wear == nil || r.CuttingState != "drilling" || len(d.Alerts) > 0 {
				t.Errorf("%v %s", states(d.Alerts), event.JSON(r))
			}
			for seq := range tc.next {
				if d := b.window(at(seq, "T1", false)); !d.Repeat {
					t.Errorf("window %d is judged again", seq)
				}
			}
			if n := len(b.m.inSpindle().Trace); n != int(tc.next)+1 {
				t.Errorf("%d windows in the trace", n)
			}
			if name == "acknowledged" {
				ack := event.Command{ID: "c1", Machine: drill, Action: event.Acknowledge, Incident: incident, By: "kim", Issued: noon}
				if d := b.apply(Command{Key: drill, Value: event.JSON(ack), At: noon}); !strings.Contains(d.Refused, "came before") {
					t.Errorf("a command of before is carried out again: %+v", d)
				}
			}
			b.m.EvidenceDue(noon)
			if j, due := b.m.EvidenceDue(noon.Add(evidencePatience)); !due || j.Offset != 6 || j.Incident != incident {
				t.Errorf("due %v: %+v", due, j)
			}
		})
	}
}

// A group that has judged nothing of the partition leaves old records alone: they are of
// another group.
func TestOldRecordOfAnotherGroup(t *testing.T) {
	m := oldModel(t)
	old := oldRecord(t, "raised", m)
	o, batch := takeOver(t, m, Position{Windows: -1, Commands: -1}, []Record{old, {Key: Key{Group: "trial", Machine: drill}, Value: []byte(`{}`)}})
	if batch == nil || len(batch.State)+len(batch.Events)+len(batch.Letters) > 0 || o.Machine(drill) != nil { // a new group says where it begins
		t.Errorf("%+v", batch)
	}
}

// An old record that cannot be used is set aside, and the others are taken over.
func TestOldRecordDamaged(t *testing.T) {
	m := oldModel(t)
	bad := Record{Key: Key{Machine: "acme/line1/bad"}, Value: []byte(`{"machine":"acme/line1/other"}`), Offset: 9}
	o, batch := takeOver(t, m, Position{Windows: 5, Commands: 5}, []Record{bad, oldRecord(t, "raised", m)})
	if batch == nil || len(batch.Letters) != 1 || !batch.Letters[0].State || batch.Letters[0].Key != "acme/line1/bad" || batch.Letters[0].Offset != 9 {
		t.Fatalf("%+v", batch)
	}
	if !slices.ContainsFunc(batch.State, func(r Record) bool { return r.Key == bad.Key && r.Value == nil }) {
		t.Error("it is not deleted")
	}
	if len(batch.Lines) != 1 || !strings.Contains(batch.Lines[0].Text, "change the tool") || o.Machine(drill) == nil || o.Machine("acme/line1/bad") != nil {
		t.Errorf("%+v", batch.Lines)
	}
}

// Commands that the older program answered are not answered again, also when the first
// owner ends as soon as it has taken the records over. Those that came later are.
func TestOldCommands(t *testing.T) {
	m := oldModel(t)
	for batches := range 3 { // that the first owner publishes
		old := oldRecord(t, "acknowledged", m)
		p := newPartition()
		p.position.Windows = 14
		p.records[old.Key] = old
		for i, c := range []event.Command{
			{ID: "c0", Action: event.Shelve, Issued: noon.Add(-24 * time.Hour), Until: noon.Add(-23 * time.Hour)},
			{ID: "c1", Action: event.Suppress, Issued: noon},
			{ID: "c2", Action: event.Suppress, Issued: noon.Add(time.Minute)},
		} {
			c.Machine, c.By, c.Note = drill, "kim", "n"
			p.commands = append(p.commands, Command{Key: drill, Value: event.JSON(c), Offset: int64(i), At: c.Issued})
		}
		o := newOwner(m)
		open := o.Start()
		for published := 0; published < batches && len(open) > 0; {
			a := open[0]
			open = open[1:]
			if r, ok := p.reply(a, 1, noon); ok {
				open = append(open, o.On(r)...)
			}
			if a.Publish != nil {
				published++
			}
		}
		o = newOwner(m)
		p.finish(o, o.Start(), 1)
		var got []string
		for _, s := range p.published {
			_, state, _ := strings.Cut(s, `"state":"`)
			state, _, _ = strings.Cut(state, `"`)
			got = append(got, state)
		}
		wantStrings(t, fmt.Sprint(batches, " batches"), got, []string{"acknowledged", "suppressed"})
	}
}

package machine

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
	"github.com/flank-tcm/flank/schemas"
)

const (
	drill = machinetest.Drill // the machine of windows made by machinetest.At
	group = "test"
)

var (
	noon      = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
	testAlarm = alarm.Settings{K: 2, N: 3, Latch: true}
)

func at(seq uint64, tool string, faulty bool) *window.Window {
	return machinetest.At(seq, tool, faulty)
}

// bench is a machine, and the state topic that it writes to.
type bench struct {
	t         rapid.TB
	unchecked bool // what is published is not checked against its schema
	m         *Machine
	model     *model.Model
	settings  *Settings
	records   map[event.StateKey]event.StateRecord // the last of every key that is not deleted
	written   []event.StateRecord                  // by the last event
	offset    int64                                // of the next window
	sent      time.Duration                        // since noon: when Kafka gets the next window
}

func newBench(t rapid.TB, m *model.Model, change ...func(*Settings)) *bench {
	t.Helper()
	b := &bench{t: t, model: m, settings: &Settings{Group: group, Alarm: testAlarm}, records: make(map[event.StateKey]event.StateRecord)}
	for _, c := range change {
		c(b.settings)
	}
	var err error
	if b.m, err = New(drill, b.settings, NewModel(m), noon); err != nil {
		t.Fatal(err)
	}
	return b
}

// apply lets an event happen, checks what is published against its schema and keeps the
// records.
func (b *bench) apply(e Event) Decision {
	b.t.Helper()
	d := b.m.Apply(e)
	b.keep()
	if d.Result != nil {
		b.valid(schemas.Result, d.Result)
	}
	for _, a := range d.Alerts {
		b.valid(schemas.Alert, a)
	}
	for _, a := range d.Advisories {
		b.valid(schemas.Advisory, a)
	}
	if d.Evidence != nil {
		b.valid(schemas.Evidence, d.Evidence)
	}
	return d
}

func (b *bench) valid(schema string, v any) {
	b.t.Helper()
	if b.unchecked {
		return
	}
	if err := schemas.Validate(schema, event.JSON(v)); err != nil {
		b.t.Fatalf("%s: %v", event.JSON(v), err)
	}
}

// keep writes the records that have changed.
func (b *bench) keep() {
	b.written = b.m.Records()
	for _, r := range b.written {
		if r.Value == nil {
			delete(b.records, r.Key)
		} else {
			b.records[r.Key] = r
		}
	}
}

// window lets the machine judge the next window of the partition.
func (b *bench) window(w *window.Window) Decision {
	b.t.Helper()
	return b.windowOf(w, "")
}

// windowOf is window for a tool whose life the ingester names.
func (b *bench) windowOf(w *window.Window, life string) Decision {
	b.t.Helper()
	when := noon.Add(b.sent)
	w.ToolLife = life
	d := b.apply(Window{Features: machinetest.Features(b.model, w), Offset: event.Offset{At: b.offset}, At: when, Now: when})
	b.offset++
	b.sent += time.Second
	return d
}

// judged is window for one that is not a repeat.
func (b *bench) judged(w *window.Window) *event.Result {
	b.t.Helper()
	d := b.window(w)
	if d.Result == nil {
		b.t.Fatalf("window %d was taken for a repeat", w.Seq)
	}
	return d.Result
}

// command sends a command of kim's, which Kafka gets at that time.
func (b *bench) command(c event.Command, when time.Time) Decision {
	b.t.Helper()
	c.Machine, c.By = drill, "kim"
	if c.Issued.IsZero() {
		c.Issued = when
	}
	return b.apply(Command{Key: drill, Value: event.JSON(c), At: when})
}

// restart replaces the machine by one that has read its records.
func (b *bench) restart() {
	b.t.Helper()
	b.restartUnder(b.model)
}

// restartUnder is restart with another model.
func (b *bench) restartUnder(m *model.Model) {
	b.t.Helper()
	b.m, b.model = loadUnder(b.t, b.stored(), b.settings, m, noon.Add(b.sent)), m
	b.keep()
}

// loadUnder returns the machine of records, which a model judges.
func loadUnder(t rapid.TB, records []event.StateRecord, s *Settings, m *model.Model, now time.Time) *Machine {
	t.Helper()
	again, err := Load(records, s, modelsOf(m), now)
	if err != nil {
		t.Fatal(err)
	}
	d := &Deployment{Champion: m}
	again.judges.deployed = func(string) *Deployment { return d }
	if !again.gone {
		again.deploy(d)
	}
	return again
}

// modelsOf returns models that are known.
func modelsOf(all ...*model.Model) *candidates {
	models := new(candidates)
	for _, m := range all {
		models.add(NewModel(m))
	}
	return models
}

// stored returns the records in the order of their keys.
func (b *bench) stored() []event.StateRecord {
	return slices.SortedFunc(maps.Values(b.records), func(x, y event.StateRecord) int {
		return slices.Compare([]byte(x.Key.String()), []byte(y.Key.String()))
	})
}

// incident returns the alarm that stands, as people call it.
func (b *bench) incident() string { return b.m.alarms.inSpindle().alarm.Incident }

// states returns the states of alerts, with the reason of those that have one.
func states(alerts []event.Alert) (all []string) {
	for _, a := range alerts {
		s := string(a.State)
		if a.Reason != "" {
			s += " " + a.Reason
		}
		all = append(all, s)
	}
	return all
}

// kinds returns kind and state of advisories.
func kinds(advisories []event.Advisory) (all []string) {
	for _, a := range advisories {
		all = append(all, fmt.Sprintf("%s %s", a.Kind, a.State))
	}
	return all
}

// wear lets the drill learn a tool and wear it until its alarm is raised, with windows
// from seq on. It returns the next seq.
func (b *bench) wear(tool string, seq uint64) (next uint64, incident string) {
	b.t.Helper()
	for _, faulty := range []bool{false, false, true, true} {
		b.window(at(seq, tool, faulty))
		seq++
	}
	if b.incident() == "" {
		b.t.Fatalf("tool %s: no alarm", tool)
	}
	return seq, b.incident()
}

func wantStrings(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

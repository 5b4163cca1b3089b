package machine

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/model"
)

// keptPlant returns a plant with records as every release of version 3 must read them, in which models that are known judge:
// T1 is worn and acknowledged, T2 worn and raised, both in the magazine; T3 is worn, shelved, and the machine suppressed. A
// shadow has seen all of them.
func keptPlant(t *testing.T, d *Deployment, known ...*model.Model) *plant {
	t.Helper()
	text, err := os.ReadFile("../event/testdata/records-3.json")
	if err != nil {
		t.Fatal(err)
	}
	var kept struct {
		Sent, Commanded int64
		Models          []string
		Records         []struct {
			Key   string
			Value json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	p := &plant{t: t, fleet: fleetOf(d, known...), records: make(map[event.StateKey]event.StateRecord), shadows: make(map[string][]event.Result), sent: kept.Sent, commanded: kept.Commanded}
	names := strings.NewReplacer(kept.Models[0], machinetest.OneValue(t).ID(), kept.Models[1], machinetest.WithWear(t).ID())
	for _, r := range kept.Records {
		k, ok := event.ParseStateKey(names.Replace(r.Key))
		if !ok {
			t.Fatalf("key %q", r.Key)
		}
		p.records[k] = event.StateRecord{Key: k, Value: []byte(names.Replace(string(r.Value)))}
	}
	p.restart()
	if p.letters > 0 {
		t.Fatalf("set aside: %+v", p.lines)
	}
	return p
}

// Alarms, masks, references and what shadows know go on from kept records.
func TestKeptRecords(t *testing.T) {
	a, b := machinetest.OneValue(t), machinetest.WithWear(t)
	p := keptPlant(t, &Deployment{Champion: a, Shadows: []Shadow{{Model: b}}, Alarm: testAlarm}, a, b)
	m := p.o.Machine(drill)
	if len(m.Tools) != 4 || m.inSpindle().Name != "T3" || m.AlarmWord() != "suppressed" || len(m.Raised) != 2 || len(m.Commands.IDs) != 3 {
		t.Fatalf("%d tools, %s in the spindle, alarm %s", len(m.Tools), m.inSpindle().Name, m.AlarmWord())
	}
	for _, name := range []string{"T1", "T2", "T3"} {
		tool := m.Tools[m.indexTool(name)]
		for _, id := range []string{a.ID(), b.ID()} {
			if j := tool.judging(id); j == nil || j.Reference.Center() == nil || !j.current(tool) || (j.Trial != nil) != (id == b.ID()) {
				t.Errorf("%s: model %s knows %+v", name, id, j)
			}
		}
	}
	seq := uint64(20)
	next := func(tool string, want event.Verdict, alarm string, alerts ...string) {
		t.Helper()
		sent := len(p.alerts)
		p.window(machinetest.Features(nil, at(seq, tool, true)))
		seq++
		r := p.results[len(p.results)-1]
		if r.Verdict != want || r.Alarm != alarm || r.Model != a.ID() || r.Late {
			t.Errorf("%s", event.JSON(r))
		}
		wantStrings(t, tool, states(p.alerts[sent:]), alerts)
	}
	if p.build() {
		t.Error("a model is to see the past again")
	}
	next("T3", event.Faulty, "suppressed")
	p.command(event.Command{ID: "un", Action: event.Unsuppress})
	next("T3", event.Faulty, "shelved")
	next("T2", event.Faulty, "raised", "raised tool_back")
	next("T1", event.Faulty, "acknowledged", "cleared tool_change")
	next("T3", event.Faulty, "shelved")
	if n := len(p.shadows[event.ShadowGroup(group, b.ID())]); n != 5 {
		t.Errorf("%d results of the shadow", n)
	}
}

// If the model that judged is gone, what it knew of a tool is the seed of the next one: its reference stays, also of a worn
// tool.
func TestRecordsOfAModelThatIsGone(t *testing.T) {
	a, b := machinetest.OneValue(t), machinetest.WithWear(t)
	p := keptPlant(t, &Deployment{Champion: b, Alarm: testAlarm}, a, b)
	p.window(machinetest.Features(nil, at(20, "T2", true)))
	if r := p.results[0]; r.Model != b.ID() || r.Verdict != event.Faulty {
		t.Errorf("%s", event.JSON(r))
	}
	p = keptPlant(t, &Deployment{Champion: otherFeatures(t), Alarm: testAlarm}, otherFeatures(t))
	p.window(machinetest.Features(nil, at(20, "T2", true)))
	if r := p.results[0]; r.Verdict != event.Unknown || r.Unknown != modelChanged {
		t.Errorf("%s", event.JSON(r))
	}
}

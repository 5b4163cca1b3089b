package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
)

// The card has the scores of tools held out with their intervals, what the verdict rests on, and
// the recordings; what the file does not say is left out.
func TestCardOf(t *testing.T) {
	m := *machinetest.OneValue(t)
	if c := cardOf(&m); c.GMean != nil || c.Verdict != "" || c.HeldOut || c.Label == "" || c.WindowSeconds != 1 || len(c.Classes) != 2 {
		t.Errorf("without scores: %+v", c)
	}
	pooled := score.Confusion{{90, 10}, {4, 36}}.Summary()
	h := card.Headline{
		Split: "leave one out by tool, 3 folds", Pooled: &pooled,
		Interval: card.IntervalOf([]score.Confusion{{{30, 3}, {1, 12}}, {{30, 3}, {2, 12}}, {{30, 4}, {1, 12}}}),
		Verdict:  &card.Verdict{Level: card.Shadow, Reasons: []card.Reason{{About: "worn tools", Level: card.Shadow, Because: "three", Do: "add tools"}}},
		Unknown:  &card.UnknownReport{Without: []string{"no novelty: too few tools"}},
	}
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	m.Scores, m.Provenance.Labels = text, "ef"
	for range mostData + 5 {
		m.Provenance.Data = append(m.Provenance.Data, model.DataSet{Name: "a.csv", Windows: 7})
	}
	c := cardOf(&m)
	if !c.HeldOut || c.Tools != 3 || c.Windows != 140 || c.Faulty != 40 || c.GMean == nil || c.GMean.Low == nil || *c.GMean.Low > c.GMean.Value || c.Verdict != "shadow" {
		t.Errorf("%+v", c)
	}
	if len(c.Reasons) != 1 || c.Labels != "ef" || c.Reasons[0].Do != "add tools" || c.Reasons[0].Level != "shadow" || len(c.Unknown) != 1 {
		t.Errorf("reasons %+v, not known %q", c.Reasons, c.Unknown)
	}
	if n := c.DataCount; len(c.Data) != mostData || n < mostData+5 || c.DataWindows < 7*n-7 {
		t.Errorf("%d of %d recordings with %d windows", len(c.Data), n, c.DataWindows)
	}
}

// Of each recording the page has what the model file says, and of many tools the number alone.
func TestDataOf(t *testing.T) {
	at := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	later := at.Add(time.Hour)
	many := make([]string, mostTools+3)
	for i := range many {
		many[i] = fmt.Sprint("T", i)
	}
	for name, tc := range map[string]struct {
		sets []model.DataSet
		want []web.CardData
	}{
		"none":           {nil, nil},
		"older releases": {[]model.DataSet{{Name: "a.csv", SHA256: "ab", Windows: 7}}, []web.CardData{{Name: "a.csv", SHA256: "ab", Windows: 7}}},
		"windows on Kafka": {
			[]model.DataSet{{
				Name: "tcm.windows.v1", SHA256: "cd", Windows: 9, Machines: []model.MachineTools{{Machine: "acme/a", Tools: []string{"T1", "T2"}}, {Machine: "acme/b", Tools: []string{"T1"}}},
				MoreTools: 4, From: at, To: later, Offsets: []model.OffsetRange{{Partition: 3, From: 10, To: 19}},
			}},
			[]web.CardData{{
				Name: "tcm.windows.v1", SHA256: "cd", Windows: 9, Machines: []web.CardMachine{{Machine: "acme/a", Tools: []string{"T1", "T2"}}, {Machine: "acme/b", Tools: []string{"T1"}}},
				MoreTools: 4, From: &at, To: &later, Offsets: []web.CardOffsets{{Partition: 3, From: 10, To: 19}},
			}},
		},
		"many tools": {
			[]model.DataSet{{Name: "a", Machines: []model.MachineTools{{Tools: many}}}, {Name: "b", Machines: []model.MachineTools{{Tools: many[:2]}}, MoreTools: 1}},
			[]web.CardData{{Name: "a", Machines: []web.CardMachine{{Tools: many[:mostTools]}}, MoreTools: 3}, {Name: "b", MoreTools: 3}},
		},
	} {
		if got := dataOf(tc.sets); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// A curve is found next to the model's file, in the folder of the history, and on tcm.models.v1. One that is
// damaged or of another model is none. Where there is none, the command that makes it puts it there.
func TestCurveOfModel(t *testing.T) {
	dir := t.TempDir()
	s := &system{c: defaults(filepath.Join(dir, "monitor.yaml"))}
	s.bus.Brokers = []string{"kafka1:9092"}
	point := alarm.Point{K: 2, N: 3, Threshold: 0.5}
	text := func(id string) []byte {
		t.Helper()
		text, err := json.Marshal(alarm.Curve{Model: id, Now: point, Chosen: point})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	write := func(name string, text []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.models.at = time.Now().Add(time.Hour) // it was read
	s.models.value.curves = map[string][]byte{"p": text("p"), "q": text("p"), "r": []byte("{")}
	find := func(id string) bool {
		t.Helper()
		c := s.curve(id)
		return c != nil && c.Model == id
	}
	if find("a") || !find("p") || find("q") || find("r") {
		t.Error("published")
	}
	tune := "trainer tune --config " + s.c.file // the examples of the trainer have the rest
	if got, want := s.curveCommand(), tune+` --model MODEL.flank --data DATA --budget "1 per 8h" && trainer publish MODEL.flank --kafka kafka1:9092 --key KEY`; got != want {
		t.Errorf("published: %s", got)
	}
	s.c.History.Dir = "."
	write("a.tune.json", text("a"))
	write("p.tune.json", []byte("{"))
	if !find("a") || !find("p") {
		t.Error("in the history")
	}
	s.c.Model = "m.flank"
	write("m.tune.json", text("b"))
	if !find("a") || !find("b") || find("../b") {
		t.Error("next to the model")
	}
	if got, want := s.curveCommand(), tune+` --data DATA --budget "1 per 8h"`; got != want {
		t.Errorf("next to the model: %s", got)
	}
}

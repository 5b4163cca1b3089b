package monitor

import (
	"testing"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/model"
)

// A page says what a model of healthy tools goes by, and that a machine's model was learnt on others, where the model names machines.
func TestFactsOf(t *testing.T) {
	of := func(machines ...string) *model.Model {
		m := *machinetest.FirstDay(t)
		for _, name := range machines {
			m.Provenance.Data = append(m.Provenance.Data, model.DataSet{Machines: []model.MachineTools{{Machine: name}}})
		}
		return &m
	}
	for _, c := range []struct {
		name string
		m    *model.Model
		want bool
	}{
		{"its own", of("a", "b"), false},
		{"of others", of("b", "c"), true},
		{"of recordings that name no machine", of(event.Unnamed), false},
		{"of others, and of recordings that name none", of("b", event.Unnamed), true},
		{"that names nothing", of(), false},
	} {
		if got := FactsOf(c.m)("a"); got.Borrowed != c.want || *got.FirstDay != (web.FirstDay{Sensor: "force", Limit: 1.6, Lives: 1}) || got.Layout != c.m.Layout {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	if got := FactsOf(machinetest.WithWear(t))("a"); got.FirstDay != nil || got.LimitUM != 500 {
		t.Errorf("%+v", got)
	}
}

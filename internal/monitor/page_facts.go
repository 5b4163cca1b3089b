package monitor

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
)

// Facts returns what a page shows of the model that judged a machine, and of the machine's
// alarm. What this monitor does not know is left out: the model of a machine that another
// monitor judges may not be here. It is safe for concurrent use.
func (m *Monitor) Facts(machine, id string) web.Facts {
	m.fleet.mu.Lock()
	defer m.fleet.mu.Unlock()
	facts, layout := web.Facts{}, ""
	if by := m.fleet.known[id]; by != nil {
		of := m.fleet.facts[id]
		if of == nil {
			of = FactsOf(by)
			m.fleet.facts[id] = of
		}
		facts, layout = of(machine), by.Layout.Fingerprint()
	}
	facts.Threshold = m.cfg.Alarm.Threshold
	if d := find(m.fleet.deployed, machine, layout); d.Alarm != nil {
		facts.Threshold = d.Alarm.Threshold
	}
	facts.Threshold = cmp.Or(facts.Threshold, alarm.Default.Threshold)
	return facts
}

// FactsOf returns what a page shows of a model that judged a machine. What it returns is asked for each window.
func FactsOf(m *model.Model) func(machine string) web.Facts {
	facts := web.Facts{Layout: m.Layout, LimitUM: LimitUM(m)}
	if f := m.FirstDay; f != nil {
		facts.FirstDay = &web.FirstDay{Sensor: f.Sensor, Limit: math.Round(100*model.Times(f.Limit)) / 100, Lives: len(f.Reached)}
	}
	of, named := make(map[string]bool), false // machines that it learnt from
	for _, d := range m.Provenance.Data {
		for _, from := range d.Machines {
			of[from.Machine], named = true, named || from.Machine != event.Unnamed
		}
	}
	return func(machine string) web.Facts {
		facts := facts
		facts.Borrowed = named && !of[machine]
		return facts
	}
}

// LimitUM returns the wear in µm at which the life of a tool ends, by a model; 0 if it estimates
// no wear or knows no limit.
func LimitUM(m *model.Model) float64 {
	switch {
	case m.ByWear != nil:
		return m.ByWear.LimitUM
	case m.Wear != nil:
		return m.Wear.LimitUM
	}
	return 0
}

// Models returns the models that this monitor judges by, in the order of their ids, and the
// deployments as pages get them, the most specific first.
func (m *Monitor) Models() ([]*model.Model, []web.Deployment) {
	m.fleet.mu.Lock()
	defer m.fleet.mu.Unlock()
	all := []web.Deployment{}
	for _, d := range m.fleet.deployed {
		w := web.Deployment{
			For: d.For.String(), Layout: d.Champion.Layout.Name(), Champion: d.Champion.ID(), Shadows: []web.Shadow{}, Unsigned: d.Unsigned, By: d.By,
		}
		for _, s := range d.Shadows {
			until := s.Until.UTC()
			w.Shadows = append(w.Shadows, web.Shadow{Model: s.Model.ID(), Until: &until})
		}
		if a := d.Alarm; a != nil {
			w.Alarm = &web.AlarmRule{K: a.K, N: a.N, Threshold: a.Threshold}
		}
		all = append(all, w)
	}
	return m.fleet.set.Models(), all
}

// Published returns the models on tcm.models.v1, the newest first; none if the monitor has its
// model from a file. It reads the topic.
func (m *Monitor) Published(ctx context.Context) ([]deploy.PublishedModel, error) {
	if m.cfg.Keys == nil {
		return nil, nil
	}
	topic, err := m.cfg.readModels(ctx)
	if err != nil {
		return nil, fmt.Errorf("monitor: models: %w", err)
	}
	return topic.Book().Models(), nil
}

// Lag returns how many windows of each of this monitor's partitions wait to be judged, by
// partition. It is safe for concurrent use.
func (m *Monitor) Lag() []web.Lag {
	m.ready.mu.Lock()
	defer m.ready.mu.Unlock()
	all := []web.Lag{}
	for id, h := range m.ready.partitions {
		all = append(all, web.Lag{Partition: id, Windows: h.waiting()})
	}
	slices.SortFunc(all, func(a, b web.Lag) int { return a.Partition - b.Partition })
	return all
}

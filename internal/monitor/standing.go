package monitor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
)

// Standing is the state of a machine's alarm, and its open advisories.
type Standing struct {
	Machine  string
	Tool     string
	Incident string    // short name of the open alarm; empty if there is none
	Alarm    string    // state of the alarm, in the words of a result
	Beneath  string    // the state that the masks hide, if any
	Called   bool      // the alarm was announced, and not cleared since
	Since    time.Time // start of the first faulty window that led to it
	By, Note string    // who masked it, and why; else who acknowledged it
	Until    time.Time // end of the shelf

	Tools        int       // number of tools that are remembered
	LastWindowAt time.Time // by the monitor's clock; zero if not known

	Advisories []Advice   // open ones, the oldest first
	Magazine   []Standing // tools that wait there with an open or masked alarm; of each of them the lines above Tools
}

// Advice is an open advisory.
type Advice struct {
	Kind    event.AdvisoryKind
	Subject string // sensor: the channel, or the rate of several
	Since   time.Time
	Text    string
}

// unwatched says which advisories mean that a machine is not watched, and why.
var unwatched = []struct {
	kind event.AdvisoryKind
	why  string
}{{event.StoppedAdvisory, "stopped by a defect"}, {event.RefusedAdvisory, "windows refused"}, {event.SilenceAdvisory, "no windows"}, {event.UnknownAdvisory, "windows unknown"}, {event.ModelAdvisory, "model changed"}}

// Unwatched says in a few words why the machine is not watched. It is empty if it is
// watched.
func (s *Standing) Unwatched() string {
	for _, u := range unwatched {
		i := slices.IndexFunc(s.Advisories, func(a Advice) bool { return a.Kind == u.kind && (a.Subject == "" || a.Kind != event.ModelAdvisory) })
		switch {
		case i >= 0 && u.kind == event.RefusedAdvisory && machine.LacksModel(s.Advisories[i].Text):
			return "no model"
		case i >= 0:
			return u.why
		}
	}
	return ""
}

// Alarms returns the state of all machines' alarms, in the order of their names, from the
// group's records on the state topic. It reads alerts only to find who acknowledged an open alarm. Alerts that it cannot read are
// skipped and counted.
func Alarms(ctx context.Context, cfg bus.Config, group string) (all []Standing, skipped int, err error) {
	records, err := history.Records(ctx, cfg, group)
	if err != nil {
		return nil, 0, err
	}
	for _, name := range slices.Sorted(maps.Keys(records)) {
		sum, err := machine.Summarise(records[name])
		if err != nil {
			return nil, 0, err
		}
		all = append(all, standingOf(name, sum))
	}
	wanted := make(map[string]bool) // alarms that someone has acknowledged
	each := func(f func(*Standing)) {
		for i := range all {
			f(&all[i])
			for j := range all[i].Magazine {
				f(&all[i].Magazine[j])
			}
		}
	}
	each(func(s *Standing) {
		if s.Alarm == "acknowledged" {
			wanted[s.Incident] = true
		}
	})
	acked, skipped, err := acknowledged(ctx, cfg, group, wanted)
	each(func(s *Standing) {
		if a, ok := acked[s.Incident]; ok && s.Alarm == "acknowledged" {
			s.By, s.Note = a.By, a.Note
		}
	})
	return all, skipped, err
}

// standingOf returns what a machine's records say, which is all but who acknowledged an alarm.
func standingOf(name string, sum machine.Summary) Standing {
	of := func(tool string, a machine.Alarm) Standing {
		s := Standing{Machine: name, Tool: tool, Incident: a.Incident, Alarm: a.Word(sum.Masks), Beneath: a.Beneath(), Called: a.Announced, Since: a.Since}
		if mask := sum.Mask(&a); mask != nil {
			s.By, s.Note, s.Until = mask.By, mask.Reason, mask.Until
		}
		return s
	}
	s := of(sum.Tool, sum.Alarm)
	s.Tools, s.LastWindowAt = sum.Tools, sum.LastWindowAt
	for _, t := range sum.Magazine {
		s.Magazine = append(s.Magazine, of(t.Name, t.Alarm))
	}
	for _, n := range sum.Notices {
		if n.Stands() {
			s.Advisories = append(s.Advisories, Advice{n.Kind, n.Subject, n.Since, n.Text})
		}
	}
	slices.SortStableFunc(s.Advisories, func(a, b Advice) int { return a.Since.Compare(b.Since) })
	return s
}

// firstLook is how many offsets of each partition are searched first for an acknowledgement.
const firstLook = 1000

// acknowledged returns the last acknowledgement of each wanted alarm. The topic may hold years of alerts, and most acknowledgements
// of alarms that are still open are recent: it searches from the end, in steps that double, until it has found all.
func acknowledged(ctx context.Context, cfg bus.Config, group string, wanted map[string]bool) (acked map[string]event.Alert, skipped int, err error) {
	acked = make(map[string]event.Alert)
	if len(wanted) == 0 {
		return acked, 0, nil
	}
	n, err := bus.Partitions(ctx, cfg, bus.TopicAlerts)
	if err != nil {
		return nil, 0, fmt.Errorf("history: alerts: %w", err)
	}
	first, end := make([]int64, n), make([]int64, n) // of what is not searched
	for p := range n {
		if first[p], end[p], err = bus.Bounds(ctx, cfg, bus.TopicAlerts, p); err != nil {
			return nil, 0, fmt.Errorf("history: alerts: %w", err)
		}
	}
	for look, more := int64(firstLook), true; more && len(acked) < len(wanted); look *= 2 {
		more = false
		for p := range n {
			if end[p] <= first[p] {
				continue
			}
			part := bus.Range{From: max(first[p], end[p]-look), To: end[p]}
			found, damaged, err := acknowledgedIn(ctx, cfg, group, p, part, wanted)
			if skipped += damaged; err != nil {
				return nil, skipped, fmt.Errorf("history: alerts: %w", err)
			}
			maps.Copy(found, acked) // what came later counts
			acked, end[p] = found, part.From
			more = more || end[p] > first[p]
		}
	}
	return acked, skipped, nil
}

// acknowledgedIn returns the last acknowledgement of each wanted alarm in a part of a partition.
func acknowledgedIn(ctx context.Context, cfg bus.Config, group string, partition int, part bus.Range, wanted map[string]bool) (acked map[string]event.Alert, skipped int, err error) {
	acked = make(map[string]event.Alert)
	err = bus.ReadRange(ctx, cfg, bus.TopicAlerts, partition, part, func(m bus.Message) error {
		if string(m.Header("ce_type")) != event.AlertType { // the topic has other events, too
			return nil
		}
		a, ours, err := history.Event[event.Alert](&m, group)
		if err != nil {
			skipped++
		} else if ours && a.State == "acknowledged" && wanted[a.Incident] {
			acked[a.Incident] = *a
		}
		return nil
	})
	return acked, skipped, err
}

// Raised returns the machine that remembers an alarm, for each alarm that may still be marked as false.
func Raised(ctx context.Context, cfg bus.Config, group string) (map[string]string, error) {
	records, err := history.Records(ctx, cfg, group)
	if err != nil {
		return nil, err
	}
	machines := make(map[string]string)
	for name, kept := range records {
		sum, err := machine.Summarise(kept)
		if err != nil {
			return nil, err
		}
		for _, a := range sum.Raised {
			machines[a.Incident] = name
		}
	}
	return machines, nil
}

// Shown returns the state of the machines whose alerts go to a partition of
// tcm.alerts.v1 now, in the order of their names, from the group's state records: for each
// machine an alert with an empty State, and its open advisories. State and alerts are
// published in one transaction, so it covers every alert that was on the topic when
// Shown was called.
func Shown(ctx context.Context, cfg bus.Config, group string, partition int) (all []event.Alert, advisories []event.Advisory, err error) {
	records, err := history.RecordsIn(ctx, cfg, group, partition)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(records)) {
		sum, err := machine.Summarise(records[name])
		if err != nil {
			continue // a monitor that gets the machine sets the record aside
		}
		all = append(all, sum.Shown(group))
		for _, n := range sum.Notices {
			if n.Stands() {
				advisories = append(advisories, n.Shown(group, name, sum.Model))
			}
		}
	}
	return all, advisories, nil
}

// StateSummary is what the state topic holds.
type StateSummary struct {
	Machines   int
	Alarms     int                  // raised
	References int                  // of tools, learnt or being learnt
	By         map[*model.Model]int // machines by the model that judges them
	Edge       map[*model.Model]int // of them, machines in mode edge, by their last windows
	Unwatched  int                  // machines for which no model is deployed
}

// CheckState reads the group's records of all machines as a monitor would that gets all
// partitions, and changes nothing. It reports records that a monitor would set aside, and
// what that means.
func CheckState(ctx context.Context, cfg Config, set deploy.Set) (sum StateSummary, err error) {
	records, err := history.Records(ctx, cfg.Bus, cfg.Group)
	if err != nil {
		return sum, err
	}
	fleet := newFleet(set).current()
	settings, sum := machine.Settings{Group: cfg.Group, Alarm: alarm.Default}, StateSummary{By: make(map[*model.Model]int), Edge: make(map[*model.Model]int)}
	models := machine.NewModels(fleet)
	for _, name := range slices.Sorted(maps.Keys(records)) {
		m, err := machine.Load(records[name], &settings, models, time.Now())
		if err != nil {
			return sum, fmt.Errorf("%w: a monitor will set this record aside: the machine's alarm is forgotten, and its reference learnt again from the tool at hand", err)
		}
		judge := fleet.Model(m.Model)
		if d := fleet.Of(name, m.Layout); judge == nil && d != nil {
			judge = d.Champion
		}
		s, err := machine.Summarise(records[name])
		if err != nil {
			return sum, err
		}
		sum.Machines++
		sum.References += m.References()
		switch {
		case judge == nil:
			sum.Unwatched++
		case s.FeaturesOnly:
			sum.Edge[judge]++
			fallthrough
		default:
			sum.By[judge]++
		}
		if s.Alarm.Raised {
			sum.Alarms++
		}
	}
	return sum, nil
}

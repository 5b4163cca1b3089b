package monitor

import (
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
)

// judge lets a machine of a group judge a tool that is worn from its third window on, and
// puts its records and alerts on their topics. It returns the alerts.
func (p *plant) judge(m *model.Model, group, name string, windows int, commands ...event.Command) (alerts []event.Alert) {
	p.t.Helper()
	now := time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
	mach, err := machine.New(name, &machine.Settings{Group: group, Alarm: alarm.Settings{K: 2, N: 3, Latch: true}}, machine.NewModel(m), now)
	if err != nil {
		p.t.Fatal(err)
	}
	mach.Model = m.ID()
	for seq := range uint64(windows) {
		w := machinetest.At(seq, "T7", seq > 1)
		w.Machine = name
		alerts = append(alerts, mach.Apply(machine.Window{Features: machinetest.Features(m, w), Offset: event.Offset{At: int64(seq)}, At: now, Now: now}).Alerts...)
	}
	for _, c := range commands {
		c.Machine, c.By, c.Issued = name, "kim", now
		if c.Action == event.Acknowledge {
			c.Incident = alerts[0].Incident
		}
		alerts = append(alerts, mach.Apply(machine.Command{Key: name, Value: event.JSON(c), At: now}).Alerts...)
	}
	for _, r := range mach.Records() {
		p.send(bus.Message{Topic: bus.TopicState, Key: r.Key.String(), Route: r.Key.Machine, Value: r.Value})
	}
	for _, a := range alerts {
		p.send(bus.Message{Topic: bus.TopicAlerts, Key: name, Value: event.JSON(a), Headers: []bus.Header{{Key: "ce_id", Value: []byte(a.ID)}, {Key: "ce_type", Value: []byte(event.AlertType)}}})
	}
	return alerts
}

// standingPlant is what readers see of these machines, of two groups. The partitions of some of them
// have grown: where they were before lies a tombstone.
func standingPlant(t *testing.T) *plant {
	p := newPlant(t, 4)
	m := machinetest.OneValue(t)
	p.judge(m, DefaultGroup, "acme/line1/quiet", 3)
	p.judge(m, DefaultGroup, "acme/line1/faulty", 4)
	p.judge(m, "trial", "acme/line1/faulty", 3)
	p.judge(m, "trial", "acme/line1/other", 4)
	p.judge(m, DefaultGroup, "acme/line1/acked", 4, event.Command{ID: "1", Action: event.Acknowledge, Note: "at hole end"})
	p.judge(m, DefaultGroup, "acme/line1/away", 4, event.Command{ID: "2", Action: event.OutOfService, Note: "moved"})
	at := time.Date(2026, 11, 2, 2, 13, 41, 0, time.UTC).Format(time.RFC3339)
	p.state("acme/line1/blind", `{"version":3,"machine":"acme/line1/blind","model":"m","notices":[{"kind":"silence","text":"blind: SILENT","raised":true,"since":"`+at+`"},{"kind":"sensor","subject":"ch07"}]}`)
	for i := range 4 {
		if home := bus.PartitionOf("acme/line1/blind", 4); i != home {
			p.send(bus.Message{Topic: bus.TopicState, Key: event.StateKey{Group: DefaultGroup, Machine: "acme/line1/blind"}.String(), Pinned: true, Partition: i})
		}
	}
	return p
}

// state puts the record of a machine itself on its topic.
func (p *plant) state(name, value string) {
	p.send(bus.Message{Topic: bus.TopicState, Key: event.StateKey{Group: DefaultGroup, Machine: name}.String(), Route: name, Value: []byte(value)})
}

// What Shown says of a machine is what its last alert left behind, in the partition where
// its alerts are. The records of another group do not count.
func TestShown(t *testing.T) {
	t.Parallel()
	p := standingPlant(t)
	p.state("acme/line1/broken", "[]")
	got := make(map[string]event.Alert)
	var advisories []event.Advisory
	for partition := range 4 {
		alerts, more, err := Shown(t.Context(), p.bus, DefaultGroup, partition)
		if err != nil {
			t.Fatal(err)
		}
		advisories = append(advisories, more...)
		for _, a := range alerts {
			if _, twice := got[a.Machine]; twice || bus.PartitionOf(a.Machine, 4) != partition {
				t.Errorf("%s in partition %d", a.Machine, partition)
			}
			got[a.Machine] = a
		}
	}
	if a := got["acme/line1/faulty"]; a.Alarm != "raised" || a.Severity != "warning" || a.Incident == "" || a.Tool != "T7" || a.Text != "faulty tool T7: the alarm of 02:00:02 is open, raised." {
		t.Errorf("%+v", a)
	}
	if a := got["acme/line1/acked"]; a.Alarm != "acknowledged" || a.Severity != "info" || a.Incident == "" {
		t.Errorf("%+v", a)
	}
	if a := got["acme/line1/quiet"]; a.Alarm != "normal" || a.Incident != "" || !strings.Contains(a.Text, "no open alarm") {
		t.Errorf("%+v", a)
	}
	if len(got) != 5 || len(advisories) != 1 || advisories[0].Kind != event.SilenceAdvisory || advisories[0].Text != "blind: SILENT" {
		t.Errorf("%d machines, advisories %+v", len(got), advisories)
	}
}

// Alarms returns one standing for each machine of the group, with who acknowledged or
// masked the alarm and why.
func TestAlarms(t *testing.T) {
	t.Parallel()
	p := standingPlant(t)
	all, _, err := Alarms(t.Context(), p.bus, DefaultGroup)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range all {
		names = append(names, strings.TrimPrefix(s.Machine, "acme/line1/")+" "+s.Tool+" "+s.Alarm+" "+s.Beneath+" "+s.By+": "+s.Note)
		if (s.Incident == "") != (s.Beneath == "normal") {
			t.Errorf("%+v", s)
		}
	}
	want := "acked T7 acknowledged acknowledged kim: at hole end|away T7 out_of_service raised kim: moved|blind  normal normal : |" +
		"faulty T7 raised raised : |quiet T7 normal normal : "
	if got := strings.Join(names, "|"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if s := all[2]; len(s.Advisories) != 1 || s.Advisories[0].Kind != event.SilenceAdvisory {
		t.Errorf("%+v", s)
	}
	if s := all[3]; s.Tools != 1 || s.LastWindowAt.IsZero() {
		t.Errorf("%+v", s)
	}
	trial, _, err := Alarms(t.Context(), p.bus, "trial")
	if err != nil || len(trial) != 2 {
		t.Errorf("%+v, %v", trial, err)
	}
}

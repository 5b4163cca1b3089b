package monitor

import (
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
)

// What Shown says of a machine is what its last alert left behind, in the partition
// where its alerts are.
func TestShown(t *testing.T) {
	p := newPlant(t, 4)
	at := time.Date(2026, 11, 2, 2, 13, 41, 0, time.UTC).Format(time.RFC3339)
	records := map[string]string{
		"acme/line1/quiet":  `{"machine":"acme/line1/quiet","model":"m","alarm":{"recent":0,"judged":3}}`,
		"acme/line1/faulty": `{"machine":"acme/line1/faulty","model":"m","incident":"A-K3ZQ7M2P","alarm":{"recent":7,"judged":3,"tool":"T7","raised":true,"since":"` + at + `","at":"` + at + `"}}`,
		"acme/line1/acked":  `{"machine":"acme/line1/acked","model":"m","incident":"A-22222222","alarm":{"recent":7,"judged":3,"tool":"T8","raised":true,"acked":true,"since":"` + at + `","at":"` + at + `"}}`,
		"acme/line1/blind":  `{"machine":"acme/line1/blind","model":"m","alarm":{"recent":0,"judged":3},"notices":[{"kind":"silence","text":"blind: SILENT","raised":true,"since":"` + at + `"},{"kind":"sensor","subject":"ch07"}]}`,
		"acme/line1/broken": `{"machine":"acme/line1/other"}`,
	}
	for key, value := range records {
		if err := p.out.Send(t.Context(), []bus.Message{{Topic: bus.TopicState, Key: key, Value: []byte(value)}}); err != nil {
			t.Fatal(err)
		}
	}
	got := make(map[string]event.Alert)
	var advisories []event.Advisory
	for partition := range 4 {
		alerts, more, err := Shown(t.Context(), p.bus, partition)
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
	if a := got["acme/line1/faulty"]; a.Alarm != "raised" || a.Severity != "warning" || a.Incident != "A-K3ZQ7M2P" || a.Tool != "T7" || a.Text != "faulty tool T7: the alarm of 02:13:41 stands, raised." {
		t.Errorf("%+v", a)
	}
	if a := got["acme/line1/acked"]; a.Alarm != "acknowledged" || a.Severity != "info" {
		t.Errorf("%+v", a)
	}
	if a := got["acme/line1/quiet"]; a.Alarm != "normal" || a.Incident != "" || !strings.Contains(a.Text, "no alarm stands") {
		t.Errorf("%+v", a)
	}
	if len(got) != 4 || len(advisories) != 1 || advisories[0].Kind != event.SilenceAdvisory || advisories[0].Text != "blind: SILENT" {
		t.Errorf("%d machines, advisories %+v", len(got), advisories)
	}
}

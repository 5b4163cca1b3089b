package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
)

// Alerts gives each alert of a group once, also if another group has sent one under its id. One that names no group cannot be read: no monitor has sent it.
func TestAlerts(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	trial := func(a *event.Alert) { a.Group = "trial" }
	none := func(a *event.Alert) { a.Group = "" }
	malformed := alertMessage(2, event.Raised)
	malformed.Value = []byte("{")
	p.send(malformed, alertMessage(3, event.Raised), alertMessage(3, event.Raised), alertMessage(4, event.Raised, trial), alertMessage(5, event.Cleared, trial), alertMessage(5, event.Cleared), alertMessage(6, event.Cleared, none))
	for g, want := range map[string]string{group: "raised cleared", "trial": "raised cleared", "third": ""} {
		var got []string
		skipped, err := Alerts(t.Context(), p.bus, g, func(a event.Alert) error {
			got = append(got, string(a.State))
			return nil
		})
		if err != nil || skipped != 2 || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %d skipped, %v; want %q", g, got, skipped, err, want)
		}
	}
}

// Alerts of a machine come in order, also if they lie in two partitions, as where the topics have grown.
func TestAlertsOfGrownTopics(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	said := func(seq uint64) (all []bus.Message) {
		for i := range 8 {
			all = append(all, alertMessage(seq, event.Raised, func(a *event.Alert) { a.Machine = fmt.Sprintf("%s%d", drill, i) }))
			all[i].Key, all[i].Headers[0].Value = fmt.Sprintf("%s%d", drill, i), fmt.Appendf(nil, "%d/%d", seq, i)
		}
		return all
	}
	for seq := range uint64(40) {
		p.send(said(seq)...)
	}
	kc := &kafka.Client{Addr: kafka.TCP(p.bus.Brokers...)}
	grown, err := kc.CreatePartitions(t.Context(), &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: bus.TopicAlerts, Count: 5}}})
	if err != nil || grown.Errors[bus.TopicAlerts] != nil {
		t.Fatal(err, grown)
	}
	p.out.Close()
	if p.out, err = bus.NewProducer(p.bus); err != nil {
		t.Fatal(err)
	}
	for seq := range uint64(40) {
		p.send(said(40 + seq)...)
	}
	for range 5 {
		got := make(map[string][]uint64)
		skipped, err := Alerts(t.Context(), p.bus, group, func(a event.Alert) error {
			got[a.Machine] = append(got[a.Machine], a.Seq)
			return nil
		})
		if err != nil || skipped > 0 || len(got) != 8 {
			t.Fatalf("%d machines, %d skipped, %v", len(got), skipped, err)
		}
		for name, all := range got {
			if len(all) != 80 || !slices.IsSorted(all) {
				t.Errorf("%s: %d alerts: %v", name, len(all), all)
			}
		}
	}
}

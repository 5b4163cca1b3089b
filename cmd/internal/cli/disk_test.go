package cli

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// A gun drill writes what its 14 channels deliver, and little more; windows that overlap
// are written as often as they do.
func TestMachineWrites(t *testing.T) {
	const samples = (12*20_000 + 2*100) * 4 * 86_400 // bytes a day
	for name, tc := range map[string]struct {
		spec window.Spec
		want float64
	}{
		"windows of 1 s":                  {window.Spec{Length: time.Second}, 1},
		"windows of 2 s":                  {window.Spec{Length: 2 * time.Second}, 1},
		"of 2 s, begun every half second": {window.Spec{Length: 2 * time.Second, Hop: 500 * time.Millisecond}, 4},
	} {
		w, err := MachineWrites(signal.GunDrill(), tc.spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := float64(w[bus.TopicWindows]) / samples; got < tc.want || got > 1.01*tc.want {
			t.Errorf("%s: %d bytes a day, %.3f of the samples, want %v", name, w[bus.TopicWindows], got, tc.want)
		}
	}
	if _, err := MachineWrites(signal.GunDrill(), window.Spec{}); err == nil {
		t.Error("no error for windows of no length")
	}
}

// One raw window in so many, and nothing else is changed.
func TestSampled(t *testing.T) {
	w := Written{bus.TopicWindows: 84e9, bus.TopicFeatures: 380e6}
	for every, want := range map[uint64]int64{0: 0, 1: 84e9, 3600: 23_333_333, math.MaxUint64: 0} {
		if got := w.Sampled(every); got[bus.TopicWindows] != want || got[bus.TopicFeatures] != 380e6 || w[bus.TopicWindows] != 84e9 {
			t.Errorf("one in %d: %v, want %d bytes of windows", every, got, want)
		}
	}
}

func TestPrintDisk(t *testing.T) {
	const day = 24 * time.Hour
	topic := func(name string, partitions, replicas int, keep time.Duration, bytes int64) bus.TopicStatus {
		return bus.TopicStatus{Name: name, Partitions: partitions, Replicas: replicas, Known: true, Retain: bus.Retain{Time: keep, Bytes: bytes}, Segment: 1e9}
	}
	compacted := topic(bus.TopicState, 4, 3, 0, bus.Unlimited)
	compacted.Compacted = true
	unknown := bus.TopicStatus{Name: bus.TopicAlerts, Partitions: 4, Replicas: 3}
	fresh := topic(bus.TopicWindows, 4, 1, 2*day, 50e9)
	fresh.Created, fresh.Notes = true, []string{"a note", "another"}
	drill := Written{bus.TopicWindows: 84e9, bus.TopicResults: 70e6, bus.TopicState: 864e6, bus.TopicAlerts: 200e3}
	small := Written{bus.TopicWindows: 1e9, bus.TopicResults: 70e6}
	var got strings.Builder
	for _, tc := range []struct {
		name     string
		status   []bus.TopicStatus
		machines []Written
	}{
		{"bytes before time", []bus.TopicStatus{fresh}, []Written{drill}},
		{"time before bytes, three replicas", []bus.TopicStatus{topic(bus.TopicWindows, 64, 3, 2*day, 250e9)}, []Written{drill}},
		{"two machines that differ", []bus.TopicStatus{topic(bus.TopicWindows, 64, 1, 2*day, 50e9)}, []Written{drill, small}},
		{"no limit of bytes, none of time", []bus.TopicStatus{topic(bus.TopicWindows, 64, 1, 2*day, bus.Unlimited), topic(bus.TopicResults, 64, 1, -1, bus.Unlimited)}, []Written{drill}},
		{"no machine writes to it, settings that may not be read", []bus.TopicStatus{topic(bus.TopicDead, 1, 3, 30*day, 10e9), compacted, unknown}, []Written{drill}},
		{"no raw windows are sent as a rule", []bus.TopicStatus{topic(bus.TopicWindows, 64, 1, 2*day, 50e9)}, []Written{small.Sampled(0)}},
		{"no machine", []bus.TopicStatus{topic(bus.TopicWindows, 64, 1, 2*day, 50e9), topic(bus.TopicResults, 64, 1, 30*day, bus.Unlimited)}, nil},
	} {
		got.WriteString("# " + tc.name + "\n")
		if err := PrintDisk(&got, tc.status, tc.machines); err != nil {
			t.Fatal(err)
		}
		got.WriteString("\n")
	}
	golden.Check(t, "disk.txt", got.String())
}

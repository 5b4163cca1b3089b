package machine

import (
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// The texts about a recording without a clock count seconds from its start.
func TestTextsWithoutClock(t *testing.T) {
	a := event.Alert{Since: time.Unix(75, 250e6).UTC(), Faulty: 5, Of: 8, K: 5, N: 8, Score: 0.9}
	a.Alarm = "raised"
	for change, want := range map[alarm.Change]string{
		alarm.Raised: "FAULTY since second 75.25, 5 of 8", alarm.Cleared: "alarm of second 75.25 cleared", alarm.Returned: "alarm of second 75.25 is over", alarm.Acknowledged: "alarm of second 75.25 acknowledged",
	} {
		if got := says(change, &a, cause{}); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", change, got, want)
		}
	}
	if a.Reason = "tool_back"; !strings.HasPrefix(says(alarm.Raised, &a, cause{}), "is back, FAULTY since second 75.25.") {
		t.Errorf("a tool that is back: %q", says(alarm.Raised, &a, cause{}))
	}
	a.Since = time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	if got := says(alarm.Raised, &a, cause{}); !strings.HasPrefix(got, "is back, FAULTY since 2026-11-02 06:00:00.") {
		t.Errorf("with a clock: %q", got)
	}
}

// While messages wait in Kafka, no shelf and no silence is over by the clock of the monitor: they end by the time of what comes.
func TestTickWhileMessagesWait(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	b.window(at(0, "T1", false))
	b.command(event.Command{ID: "c", Action: event.Shelve, Note: "n", Until: noon.Add(time.Hour)}, noon)
	if d := b.apply(Tick{Now: noon.Add(2 * time.Hour), Waits: true}); !d.Empty() {
		t.Errorf("%+v", d)
	}
	if d := b.apply(Tick{Now: noon.Add(2 * time.Hour)}); len(d.Alerts) != 1 || d.Alerts[0].State != "unshelved" {
		t.Errorf("%+v", d.Alerts)
	}
}

package machine

import (
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
)

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

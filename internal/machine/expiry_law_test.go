package machine

import (
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
)

// A shelf that is over ends before what comes next, by Kafka's clock: a window that lies behind its end finds the alarm raised,
// also if the monitor's own clock has not ticked in between. So does a command.
func TestShelfEndsBeforeTheNextEvent(t *testing.T) {
	for _, behind := range []string{"a window", "a command"} {
		b := newBench(t, machinetest.OneValue(t))
		b.window(at(0, "T1", false))
		b.command(event.Command{ID: "c", Action: event.Shelve, Note: "test piece", Until: noon.Add(time.Hour)}, noon)
		for seq := uint64(1); seq < 5; seq++ {
			b.window(at(seq, "T1", seq > 2))
		}
		if word := b.m.AlarmWord(); word != "shelved" {
			t.Fatalf("%s: alarm %s", behind, word)
		}
		b.sent = time.Hour
		if behind == "a command" {
			d := b.command(event.Command{ID: "d", Action: event.Unshelve}, noon.Add(b.sent))
			wantStrings(t, behind, states(d.Alerts), []string{"unshelved expired", "raised", "refused"})
			continue
		}
		d := b.window(at(5, "T1", true))
		wantStrings(t, behind, states(d.Alerts), []string{"unshelved expired", "raised"})
		if d.Result.Alarm != "raised" {
			t.Errorf("%s finds the alarm %s", behind, d.Result.Alarm)
		}
	}
}

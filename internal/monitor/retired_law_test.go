package monitor

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/fetch"
)

// A machine that was retired stays gone: the next monitor reads its former records and that they were deleted. A command
// for it goes to the dead letters, and its alarm has ended.
func TestRetiredMachineStaysGone(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	m := p.monitor()
	m.untilReady(t) // commands of before are not for a new group
	p.send(p.messages(life(6, 3)...)...)
	p.untilResults(6)
	if st := p.standing(drill); st.Alarm != "raised" {
		t.Fatalf("%+v", st)
	}
	send := func(c event.Command) {
		t.Helper()
		c.ID, c.Machine, c.By, c.Issued = event.NewCommandID(), drill, "kim", time.Now()
		msg, err := fetch.CommandMessage(c)
		if err != nil {
			t.Fatal(err)
		}
		p.send(msg)
	}
	send(event.Command{Action: event.Retire})
	p.until(bus.TopicAlerts, func(msgs []bus.Message) bool {
		var last event.Alert
		if err := json.Unmarshal(msgs[len(msgs)-1].Value, &last); err != nil {
			t.Fatal(err)
		}
		return last.State == event.Retired
	})
	alerts := len(p.alertsByID())
	if err := m.stop(); err != nil {
		t.Fatal(err)
	}
	p.monitor()
	send(event.Command{Action: event.Suppress, Note: "maintenance"})
	p.send(bus.Message{Topic: bus.TopicCommands, Key: drill, Value: []byte("{")}) // which is set aside in any case
	letters := p.until(bus.TopicDead, func(msgs []bus.Message) bool { return len(msgs) > 0 && string(msgs[len(msgs)-1].Value) == "{" })
	for _, l := range letters {
		if reason := string(l.Header("dead_reason")); len(letters) != 2 || !strings.Contains(reason, "none since it was retired") {
			t.Errorf("%d letters; a command is set aside because %q", len(letters), reason)
		}
	}
	if n := len(p.alertsByID()); n != alerts {
		t.Errorf("%d alerts of a machine that is gone", n-alerts)
	}
}

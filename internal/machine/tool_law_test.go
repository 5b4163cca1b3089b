package machine

import (
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/machinetest"
)

// The counted windows of a tool wait with it: one faulty window before it is taken out and one behind raise an alarm of two in
// three, also after a restart, however long the other tool was in. Windows of the other tool do not count.
func TestCountedWindowsWait(t *testing.T) {
	for _, between := range []int{1, 20} {
		b := newBench(t, machinetest.OneValue(t))
		seq := uint64(0)
		window := func(tool string, faulty bool) Decision {
			seq++
			return b.window(at(seq, tool, faulty))
		}
		for _, faulty := range []bool{false, false, false, true} {
			window("T1", faulty)
		}
		for range between {
			if d := window("T2", false); len(d.Alerts) > 0 {
				t.Fatalf("the other tool: %v", states(d.Alerts))
			}
			b.restart()
		}
		d := window("T1", true)
		wantStrings(t, "back", states(d.Alerts), []string{"raised"})
		if len(d.Alerts) == 1 && (d.Alerts[0].Faulty != 2 || d.Alerts[0].Of != 3) {
			t.Errorf("%s", event.JSON(d.Alerts[0]))
		}
	}
}

// A mask that a tool gets in the magazine keeps it from calling when it comes back, each kind of mask, and only this tool: its
// alarm is announced when the mask is taken off.
func TestMaskOfAToolInTheMagazine(t *testing.T) {
	for action, off := range map[event.Action]event.Action{event.Shelve: event.Unshelve, event.Suppress: event.Unsuppress, event.OutOfService: event.InService} {
		b := newBench(t, machinetest.OneValue(t), func(s *Settings) { s.Alarm.ReAlarm = time.Second })
		seq, incident := b.wear("T1", 0)
		window := func(tool string, faulty bool) Decision {
			b.restart()
			seq++
			return b.window(at(seq, tool, faulty))
		}
		send := func(action event.Action) Decision {
			c := event.Command{ID: string(action), Action: action, Note: "roughing", Until: noon.Add(time.Hour)}
			if c.Tool = "T1"; action == event.Shelve || action == event.Unshelve {
				c.Tool, c.Incident = "", incident
			}
			return b.command(c, noon.Add(b.sent))
		}
		window("T2", false)
		d := send(action)
		if len(d.Alerts) != 1 || d.Alerts[0].Tool != "T1" || !d.Alerts[0].Magazine {
			t.Fatalf("%s: %s", action, event.JSON(d.Alerts))
		}
		if d := window("T2", false); d.Result.Alarm != "normal" {
			t.Errorf("%s of T1 masks T2: %s", action, d.Result.Alarm)
		}
		d = window("T1", true)
		wantStrings(t, string(action)+", back", states(d.Alerts), nil)
		if word := d.Result.Alarm; word == "raised" || d.Result.Incident != incident {
			t.Errorf("%s: the alarm is %s", action, word)
		}
		if d := send(off); len(d.Alerts) != 2 || d.Alerts[1].State != event.Raised || d.Alerts[1].Incident != incident {
			t.Errorf("%s: %v", off, states(d.Alerts))
		}
	}
}

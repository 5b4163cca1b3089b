package web

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/web/summary"
)

// alarmTopic makes events of the test's machine as tcm.alerts.v1 has them. The sensors' clock is a
// day ahead of Kafka's, so the times of commands and of windows say nothing of their order.
type alarmTopic struct {
	alerts     []event.Alert
	advisories []event.Advisory
}

func (a *alarmTopic) window(epoch string, seq uint64, state event.AlertState, alarm, incident string) {
	x := testAlert(seq)
	x.ID, x.Epoch, x.State, x.Alarm, x.Incident = fmt.Sprintf("%s/%d/%s", epoch, seq, state), epoch, state, alarm, incident
	x.At = x.At.Add(24 * time.Hour)
	a.alerts = append(a.alerts, x)
}

// command adds what a person did, or the clock, after a window.
func (a *alarmTopic) command(epoch string, seq uint64, state event.AlertState, alarm, incident string) *event.Alert {
	n := len(a.alerts)
	a.alerts = append(a.alerts, event.Alert{
		ID: fmt.Sprintf("command/%d/%s", n, state), Machine: testMachine, State: state, Alarm: alarm, Incident: incident, Epoch: epoch, Seq: seq,
		Since: t0, At: t0.Add(time.Duration(n) * time.Second), By: fmt.Sprintf("operator %d", n), Note: "until the shift ends",
	})
	return &a.alerts[n]
}

func (a *alarmTopic) advise(kind event.AdvisoryKind, state event.AlertState) {
	n := len(a.advisories)
	a.advisories = append(a.advisories, event.Advisory{
		ID: fmt.Sprintf("advisory/%d", n), Machine: testMachine, Kind: kind, State: state, Since: t0.Add(time.Duration(n) * time.Minute), Text: fmt.Sprint("text ", n),
	})
}

// show gives all events to a hub, the oldest first.
func (a *alarmTopic) show(h *Hub) {
	for _, x := range a.alerts {
		h.Alert(x)
	}
	for _, x := range a.advisories {
		h.Advisory(x)
	}
}

// kept is what the store says of the machine after a last result and all events.
func (a *alarmTopic) kept(last event.Result) summary.Machine {
	m := summary.Machine{Name: testMachine, Strip: "h", Last: last, LastAt: t0}
	for _, x := range a.alerts {
		if x.Alarm != "" && !x.Aside() {
			m.Alert = &x
		}
	}
	for _, x := range a.advisories {
		m.Advisories = slices.DeleteFunc(m.Advisories, func(o event.Advisory) bool { return o.Kind == x.Kind && o.Subject == x.Subject })
		if x.State == event.Raised {
			m.Advisories = append(m.Advisories, x)
		}
	}
	return m
}

// After a restart a page shows what it showed before: from what the store kept, once the topic
// was read again, and when events come again.
func TestRemember(t *testing.T) {
	const one, two, incident = "00000000000000a1", "00000000000000b2", "A-K3ZQ7M2P"
	for name, c := range map[string]struct {
		events  func(*alarmTopic)
		lastSeq uint64 // of the last result
		alarm   string // that it says
	}{
		"acknowledged while the machine is off": {func(a *alarmTopic) {
			a.window(one, 10, event.Raised, "raised", incident)
			a.command(one, 12, event.Acknowledged, "acknowledged", incident)
		}, 12, "raised"},
		"the shelf has ended": {func(a *alarmTopic) {
			a.window(one, 10, event.Raised, "raised", incident)
			a.command(one, 12, event.Shelved, "shelved", incident).Until = t0.Add(time.Hour)
			a.command(one, 12, event.Unshelved, "raised", incident)
		}, 12, "shelved"},
		"shelved": {func(a *alarmTopic) {
			a.window(one, 10, event.Raised, "raised", incident)
			a.command(one, 11, event.Acknowledged, "acknowledged", incident)
			a.command(one, 12, event.Shelved, "shelved", incident).Until = t0.Add(time.Hour)
		}, 14, "shelved"},
		"raised for another ingester's window": {func(a *alarmTopic) {
			a.window(two, 90, event.Raised, "raised", "A-22222222")
			a.window(two, 95, event.Cleared, "normal", "A-22222222")
			a.window(one, 10, event.Raised, "raised", incident)
			a.command(one, 10, event.MarkedFalse, "raised", incident)
		}, 10, "raised"},
		"more than a page keeps": {func(a *alarmTopic) {
			for seq := range uint64(keptAlerts) {
				a.window(two, 10*seq, event.Raised, "raised", incident)
				a.window(two, 10*seq+5, event.Cleared, "normal", incident)
			}
			a.window(two, 5000, event.Raised, "raised", incident)
			a.command(two, 5000, event.Acknowledged, "acknowledged", incident)
		}, 12, "raised"},
		"advisories": {func(a *alarmTopic) {
			a.advise(event.DriftAdvisory, event.Raised)
			a.advise(event.RefusedAdvisory, event.Raised)
			a.advise(event.RefusedAdvisory, event.Cleared)
			a.advise(event.DriftAdvisory, event.Cleared)
			a.advise(event.DriftAdvisory, event.Raised)
			a.advise(event.RefusedAdvisory, event.Raised)
			a.advise(event.SilenceAdvisory, event.Raised)
			a.advise(event.SilenceAdvisory, event.Cleared)
		}, 12, "normal"},
	} {
		t.Run(name, func(t *testing.T) {
			var topic alarmTopic
			c.events(&topic)
			last := testResult(c.lastSeq)
			last.Alarm, last.Incident = c.alarm, incident
			if c.alarm == "normal" {
				last.Incident = ""
			}
			before := newTestHub()
			before.Result(last)
			topic.show(before)

			h := newTestHub()
			h.Remember(topic.kept(last))
			watched, at := page(h, testMachine)
			seen, want := watched, tiles(before)[testMachine]
			if seen.Alarm != want.Alarm || seen.Incident != want.Incident || seen.Rank != want.Rank || string(encode(seen.Tile.Advisories)) != string(encode(want.Advisories)) {
				t.Errorf("from the store alone the page shows\n%s, want\n%s", encode(seen.Tile), encode(want))
			}
			if len(topic.alerts) > 0 && (len(seen.Alerts) != 1 || seen.Alerts[0].ID != topic.kept(last).Alert.ID) {
				t.Errorf("from the store alone the page has the alerts %s", encode(seen.Alerts))
			}
			check := func(when string) {
				t.Helper()
				wanted, _ := page(before, testMachine)
				got, _ := page(h, testMachine)
				got.Results = wanted.Results // they come from another topic
				if string(encode(got)) != string(encode(wanted)) {
					t.Errorf("%s the page shows\n%s, want\n%s", when, encode(got), encode(wanted))
				}
				if h.alarms != before.alarms {
					t.Errorf("%s %d alarms call, want %d", when, h.alarms, before.alarms)
				}
			}
			topic.show(h)
			check("once the topic was read")
			if _, _, ok := h.server.since(at, testMachine); ok {
				t.Error("a page that has what was kept gets what is older behind it")
			}
			for i := max(0, len(topic.alerts)-keptAlerts); i < len(topic.alerts); i++ {
				h.Alert(topic.alerts[i])
				check(fmt.Sprintf("when alert %d comes again", i))
			}
			for i := range topic.advisories {
				h.Advisory(topic.advisories[i])
				check(fmt.Sprintf("when advisory %d comes again", i))
			}
		})
	}
}

// When the topic cannot be read after a restart, an old alert that comes again does not turn the
// state back, and one that was not there before the restart changes it.
func TestRememberWithoutTopic(t *testing.T) {
	const epoch, incident = "00000000000000a1", "A-K3ZQ7M2P"
	var topic alarmTopic
	topic.window(epoch, 10, event.Raised, "raised", incident)
	topic.command(epoch, 12, event.Acknowledged, "acknowledged", incident)
	last := testResult(12)
	last.Alarm, last.Incident = "raised", incident
	h := newTestHub()
	h.Remember(topic.kept(last))
	h.Alert(topic.alerts[0])
	if got := tiles(h)[testMachine]; got.Alarm != "acknowledged" || h.alarms != 0 {
		t.Errorf("an old alert comes again: the alarm is %q, and %d call", got.Alarm, h.alarms)
	}
	topic.command(epoch, 12, event.Cleared, "normal", incident)
	h.Alert(topic.alerts[2])
	if got := tiles(h)[testMachine]; got.Alarm != "normal" || got.Incident != "" {
		t.Errorf("after the end of the alarm it is %q", got.Alarm)
	}
}

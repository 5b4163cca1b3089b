package monitor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/fetch"
)

// What is on the commands topic, by whomever, is carried out once: a replay is
// refused, also after a restart and by the monitor that took over, and what cannot
// be read or is for an unknown machine is set aside. Each letter is written once.
func TestCommands(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 2)
	var late atomic.Int64 // how much later than it is the monitor takes it to be
	var mu sync.Mutex
	var audit []event.Audit
	clock := func(m *Monitor) {
		m.cfg.OnAudit = func(a event.Audit) {
			mu.Lock()
			defer mu.Unlock()
			audit = append(audit, a)
		}
		m.now = func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
	}
	m := p.monitor(clock)
	m.untilReady(t) // commands of before are not for a new group
	p.send(p.messages(life(6, 3)...)...)
	p.untilResults(6)
	st := p.standing(drill)
	if st.Incident == "" || st.Alarm != "raised" {
		t.Fatalf("%+v", st)
	}
	command := func(c event.Command) bus.Message {
		c.ID, c.Machine, c.By, c.Issued = event.NewCommandID(), drill, "kim", time.Now()
		msg, err := fetch.CommandMessage(c)
		if err != nil {
			t.Fatal(err)
		}
		return msg
	}
	outcome := func(id []byte) (last event.Alert) {
		t.Helper()
		p.until(bus.TopicAlerts, func(msgs []bus.Message) bool {
			if err := json.Unmarshal(msgs[len(msgs)-1].Value, &last); err != nil {
				t.Fatal(err)
			}
			return last.Command == string(id)
		})
		return last
	}
	ack := command(event.Command{Action: event.Acknowledge, Incident: st.Incident, Note: "change at hole end"})
	p.send(ack)
	if a := outcome(ack.Header("ce_id")); a.State != "acknowledged" || a.Note != "change at hole end" || a.Incident != st.Incident {
		t.Errorf("%s", event.JSON(a))
	}
	shelve := command(event.Command{Action: event.Shelve, Note: "test piece", Until: time.Now().Add(time.Hour)})
	forged := ack
	forged.Key = "acme/line1/other"
	unknown := forged
	unknown.Value = []byte(strings.ReplaceAll(string(ack.Value), drill, forged.Key))
	garbage := ack
	garbage.Value = []byte(`{"id":`)
	otherKey := ack
	otherKey.Value = []byte(strings.ReplaceAll(string(ack.Value), drill, "acme/line1/drill2"))
	p.send(ack, shelve, unknown, garbage, otherKey)
	if a := outcome(shelve.Header("ce_id")); a.State != "shelved" || a.By != "kim" || a.Until.IsZero() {
		t.Errorf("%s", event.JSON(a))
	}
	p.untilMessages(bus.TopicDead, 4)
	if err := m.stop(); err != nil {
		t.Fatal(err)
	}
	m = p.monitor(clock) // which reads all commands again, and heeds none
	p.send(ack)
	letters := p.until(bus.TopicDead, func(msgs []bus.Message) bool {
		return len(msgs) >= 5 && strings.Contains(string(msgs[len(msgs)-1].Header("dead_reason")), "came before")
	})
	var reasons strings.Builder
	for _, l := range letters {
		fmt.Fprintf(&reasons, "%s\n", l.Header("dead_reason"))
	}
	for _, want := range []string{"a command of this id came before", "no window of it has ever been judged", "unexpected end of JSON", "it is for machine"} {
		if !strings.Contains(reasons.String(), want) {
			t.Errorf("no letter says %q:\n%s", want, &reasons)
		}
	}
	if err := m.stop(); err != nil {
		t.Fatal(err)
	}
	late.Store(int64(2 * time.Hour)) // no monitor ran when the shelf ended
	p.monitor(clock).untilReady(t)
	late.Add(int64(readyWithin)) // by then it would have read commands that came meanwhile
	p.until(bus.TopicAlerts, func(msgs []bus.Message) bool {
		return strings.Contains(string(msgs[len(msgs)-1].Value), `"unshelved"`)
	})
	var states []string
	for _, a := range p.alertsByID() {
		states = append(states, string(a.State))
	}
	slices.Sort(states)
	if want := []string{"acknowledged", "raised", "shelved", "unshelved"}; !slices.Equal(states, want) {
		t.Errorf("alerts %v, want %v", states, want)
	}
	if st := p.standing(drill); st.Alarm != "acknowledged" || st.By != "kim" {
		t.Errorf("in the end: %+v", st)
	}
	mu.Lock()
	defer mu.Unlock()
	var records []string
	for _, a := range audit {
		if a.Actor.Identified != event.ByCommand || a.Group != DefaultGroup || (a.Reason == "") != (a.Outcome == event.Accepted) {
			t.Errorf("%+v", a)
		}
		records = append(records, fmt.Sprintf("%s by %s %s", a.Action, a.Actor.Name, a.Outcome))
	}
	slices.Sort(records)
	want := []string{
		" by  refused", // no JSON
		"acknowledge by kim accepted", "acknowledge by kim refused", "acknowledge by kim refused", "acknowledge by kim refused", "acknowledge by kim refused", "shelve by kim accepted",
	}
	if !slices.Equal(records, want) {
		t.Errorf("the audit has %q, want %q", records, want)
	}
}

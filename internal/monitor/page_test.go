package monitor

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/web"
)

// events are what a page shows of the topic of alerts.
type events struct {
	Alerts     []event.Alert
	Advisories []event.Advisory
	Evidence   []event.Evidence
}

// eventsOf returns what the page of a hub's only machine shows.
func eventsOf(t *testing.T, hub *web.Hub) (e events) {
	t.Helper()
	get := func(path string, v any) {
		w := httptest.NewRecorder()
		hub.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if err := json.Unmarshal(w.Body.Bytes(), v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	var all struct{ Machines []struct{ Name string } }
	get("/api/machines", &all)
	if len(all.Machines) != 1 {
		t.Fatalf("the page shows %d machines, want 1", len(all.Machines))
	}
	get("/api/machines/"+url.PathEscape(all.Machines[0].Name), &e)
	return e
}

// A page knows after a restart what it knew before.
func TestRecall(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	before, after := web.NewHub(web.Config{Layout: p.model.Layout}), web.NewHub(web.Config{Layout: p.model.Layout})
	mon := p.monitor(keeping(t, t.TempDir()), func(m *Monitor) { m.cfg.Show(before) })
	p.follow(before, p.store(t.TempDir()))
	p.send(p.messages(life(20, 10)...)...)
	p.evidence(1)
	p.eventually("the page shows the evidence", func() bool { return len(eventsOf(t, before).Evidence) > 0 })
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}
	p.send(bus.Message{Topic: bus.TopicAlerts, Key: drill, Value: []byte("{"), Headers: []bus.Header{{Key: "ce_type", Value: []byte(event.AlertType)}}})
	p.send(bus.Message{Topic: bus.TopicAlerts, Key: drill, Value: []byte(`{"id":"x"}`), Headers: []bus.Header{{Key: "ce_type", Value: []byte("io.tcm.other.v1")}}})
	p.send(bus.Message{Topic: bus.TopicAlerts, Key: drill, Value: []byte(`{"id":"x","machine":"acme/line1/other"}`), Headers: []bus.Header{{Key: "ce_type", Value: []byte(event.AdvisoryType)}}})
	p.send(bus.Message{Topic: bus.TopicAlerts, Key: drill, Value: fmt.Appendf(nil, `{"id":"x","machine":%q,"text":%q}`, drill, strings.Repeat("x", 256<<10)), Headers: []bus.Header{{Key: "ce_type", Value: []byte(event.EvidenceType)}}})
	_, skipped, err := Recall(t.Context(), p.bus, DefaultGroup, after)
	if err != nil || skipped != 3 {
		t.Errorf("%d messages were skipped, want 3: %v", skipped, err)
	}
	got, want := eventsOf(t, after), eventsOf(t, before)
	if len(want.Alerts) == 0 || len(want.Evidence) == 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("after a restart %+v\nbefore %+v", got, want)
	}
}

// manyAlerts puts so many alerts of machines on their topic, of each machine in turn,
// the first of them a year old.
func (p *plant) manyAlerts(machines, n int) {
	var msgs []bus.Message
	for i := range n {
		a := event.Alert{
			ID: fmt.Sprintf("alert/%d", i), Group: DefaultGroup, Machine: fmt.Sprintf("acme/line1/drill%02d", i%machines), State: event.Raised, Alarm: "raised",
			Incident: "A-K3ZQ7M2P", Text: strings.Repeat("x", 300), Since: time.Unix(int64(i), 0), At: time.Unix(int64(i), 0),
		}
		msgs = append(msgs, envelope.Event(bus.TopicAlerts, a.ID, a.Machine, event.AlertType, a.At, event.JSON(a)))
		if len(msgs) == 1000 || i == n-1 {
			p.send(msgs...)
			msgs = nil
		}
	}
}

// A page needs the end of the topic, and what lies before it costs nothing.
func TestRecallReadsFromTheEnd(t *testing.T) {
	t.Parallel()
	const machines, n = 8, 9000
	p := newPlant(t, 2)
	p.manyAlerts(machines, n)
	r, err := readPast(t.Context(), p.bus, DefaultGroup)
	if err != nil || r.skipped != 0 {
		t.Fatal(r.skipped, err)
	}
	if most := 2 * (recallFirst + 2*recallFirst); r.read > most {
		t.Errorf("%d of %d messages were read, want at most %d", r.read, n, most)
	}
	last := make(map[string][]string)
	hubs := make(map[string]*web.Hub)
	for _, e := range r.events {
		hub := hubs[e.machine]
		if hub == nil {
			hub = web.NewHub(web.Config{Layout: p.model.Layout})
			hubs[e.machine] = hub
		}
		give(hub, &e.Message)
		alerts := eventsOf(t, hub).Alerts
		last[e.machine] = append(last[e.machine], alerts[len(alerts)-1].ID)
	}
	if len(last) != machines {
		t.Errorf("%d machines of %d", len(last), machines)
	}
	for i := range machines {
		name := fmt.Sprintf("acme/line1/drill%02d", i)
		ids := last[name]
		if len(ids) < recallEnough {
			t.Errorf("%s has %d alerts, want %d", name, len(ids), recallEnough)
		}
		for j, id := range ids {
			if want := fmt.Sprintf("alert/%d", n-machines*(len(ids)-j)+i); id != want {
				t.Fatalf("%s: alert %d of %d is %s, want %s", name, j, len(ids), id, want)
			}
		}
	}
}

// A machine that was quiet for long does not make Recall read everything.
func TestRecallIsBounded(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	p.manyAlerts(1, 9000)
	quiet := event.Advisory{ID: "q", Group: DefaultGroup, Machine: "acme/line1/quiet", Kind: event.SilenceAdvisory, State: event.Raised}
	p.send(envelope.Event(bus.TopicAlerts, quiet.ID, quiet.Machine, event.AdvisoryType, time.Unix(1, 0), event.JSON(quiet)))
	r, err := readPast(t.Context(), p.bus, DefaultGroup)
	if err != nil || r.read != recallMost || len(r.events) != recallMost {
		t.Errorf("%d messages were read, %d events, want %d: %v", r.read, len(r.events), recallMost, err)
	}
	part, bytes, err := readPart(t.Context(), p.bus, DefaultGroup, 0, 0, 9001, 10_000)
	if n := len(part.events); err != nil || bytes > 10_000 || n < 5 || n > 30 || part.events[n-1].machine != quiet.Machine {
		t.Errorf("%d events of %d bytes, want the last within 10000 bytes: %v", n, bytes, err)
	}
}

// Events of several partitions come in the order in which they were sent: after the
// number of partitions was raised, the messages of one machine are in two of them.
func TestRecallMergesPartitions(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 2)
	other := drill
	for i := 0; bus.PartitionOf(other, 2) == bus.PartitionOf(drill, 2); i++ {
		other = fmt.Sprintf("acme/line1/m%d", i)
	}
	for i, state := range []event.AlertState{event.Raised, "acknowledged", event.Cleared} {
		a := event.Alert{ID: fmt.Sprint(i), Group: DefaultGroup, Machine: drill, State: state, Alarm: "normal"}
		p.send(envelope.Event(bus.TopicAlerts, a.ID, a.Machine, event.AlertType, time.Unix(1, 0), event.JSON(a)))
		b := a
		b.Machine = other
		p.send(envelope.Event(bus.TopicAlerts, b.ID, b.Machine, event.AlertType, time.Unix(1, 0), event.JSON(b)))
		time.Sleep(2 * time.Millisecond) // Kafka keeps milliseconds
	}
	r, err := readPast(t.Context(), p.bus, DefaultGroup)
	if err != nil || len(r.events) != 6 {
		t.Fatalf("%d events: %v", len(r.events), err)
	}
	for i := range r.events[1:] {
		if r.events[i+1].at.Before(r.events[i].at) {
			t.Errorf("event %d is older than the one before it", i+1)
		}
	}
}

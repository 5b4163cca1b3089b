package monitor

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/web"
)

// events are what a page shows of the topic of alerts.
type events struct {
	Alerts     []event.Alert
	Advisories []event.Advisory
	Evidence   []event.Evidence
}

func eventsOf(t *testing.T, hub *web.Hub) (e events) {
	t.Helper()
	w := httptest.NewRecorder()
	hub.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/state", nil))
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// A page knows after a restart what it knew before.
func TestRecall(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	before, after := web.NewHub(web.Config{Layout: p.model.Layout}), web.NewHub(web.Config{Layout: p.model.Layout})
	mon := p.monitor(keeping(t, t.TempDir()), func(m *Monitor) { m.cfg.Show(before) })
	p.send(p.messages(life(20, 10)...)...)
	p.evidence(1)
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}
	p.send(bus.Message{Topic: bus.TopicAlerts, Key: drill, Value: []byte("{"), Headers: []bus.Header{{Key: "ce_type", Value: []byte(event.AlertType)}}})
	p.send(bus.Message{Topic: bus.TopicAlerts, Key: drill, Value: []byte(`{"id":"x"}`), Headers: []bus.Header{{Key: "ce_type", Value: []byte("io.tcm.other.v1")}}})
	if err := Recall(t.Context(), p.bus, after); err != nil {
		t.Fatal(err)
	}
	got, want := eventsOf(t, after), eventsOf(t, before)
	if len(want.Alerts) == 0 || len(want.Evidence) == 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("after a restart %+v\nbefore %+v", got, want)
	}
}

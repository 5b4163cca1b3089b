package pages

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/broker/brokertest"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/web"
)

// A page shows what is on the topics, and after a restart its history, before anything new
// comes. For a machine or an alarm that the history does not hold the answer is 404.
func TestHistoryOfPage(t *testing.T) {
	b := brokertest.Start(t)
	cfg := b.Config("test")
	if _, err := bus.Apply(t.Context(), cfg, 1, 1); err != nil {
		t.Fatal(err)
	}
	out, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	now := time.Now().UTC()
	r := event.Result{ID: "r", Group: "tcm-monitor", Machine: "drill", Epoch: "00000000000000aa", Seq: 1, Tool: "T1", Start: now, End: now.Add(time.Second), Verdict: event.Healthy}
	a := event.Alert{ID: "a", Group: "tcm-monitor", Machine: "drill", State: event.Raised, Alarm: "raised", Incident: "A-K3ZQ7M2P", At: now, Since: now}
	sent := func(topic, typ string, v any) bus.Message {
		return bus.Message{Topic: topic, Key: "drill", Value: event.JSON(v), Headers: []bus.Header{{Key: "ce_type", Value: []byte(typ)}}}
	}
	if err := out.Send(t.Context(), []bus.Message{sent(bus.TopicResults, event.ResultType, r), sent(bus.TopicAlerts, event.AlertType, a)}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var log bytes.Buffer
	page := func(follow bus.Config) (get func(path string) string, stop func()) {
		store, err := OpenHistory(dir, "tcm-monitor", zerolog.New(&log))
		if err != nil {
			t.Fatal(err)
		}
		var view web.Config
		ShowHistory(&view, store)
		hub := web.NewHub(view)
		Remember(hub, store, zerolog.New(&log))
		end := Follow(t.Context(), follow, "tcm-monitor", hub, store, zerolog.New(&log))
		get = func(path string) string {
			w := httptest.NewRecorder()
			hub.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			return w.Body.String()
		}
		return get, func() { end(); CloseHistory(store, zerolog.New(&log)) }
	}
	get, stop := page(cfg)
	await.Right(t, func() string {
		past, now := get("/api/machines/drill/history"), get("/api/machines/drill")
		if strings.Contains(past, `"windows":[1]`) && strings.Contains(now, `"strip":"h"`) {
			return ""
		}
		return past + "\n" + now + "\n" + log.String()
	})
	if text := get("/api/alarms"); !strings.Contains(text, "A-K3ZQ7M2P") {
		t.Errorf("alarms: %s", text)
	}
	var detail struct{ Alerts []event.Alert }
	if text := get("/api/alarms/A-K3ZQ7M2P"); json.Unmarshal([]byte(text), &detail) != nil || len(detail.Alerts) != 1 {
		t.Errorf("alarm: %s", text)
	}
	for _, path := range []string{"/api/machines/other/history", "/api/machines/other/tools", "/api/alarms/A-22222222"} {
		if text := get(path); !strings.Contains(text, "error") || strings.Contains(text, "summary:") {
			t.Errorf("%s: %s", path, text)
		}
	}
	stop()
	away := cfg // no broker answers: neither a window nor an alert comes
	away.Brokers = []string{"127.0.0.1:1"}
	get, stop = page(away)
	defer stop()
	if text := get("/api/machines/drill"); !strings.Contains(text, `"strip":"h"`) || !strings.Contains(text, "A-K3ZQ7M2P") {
		t.Errorf("right after a restart: %s", text)
	}
	if text := get("/api/machines/drill/history"); !strings.Contains(text, `"windows":[1]`) {
		t.Errorf("history after a restart: %s", text)
	}
	if log.Len() > 0 {
		t.Errorf("log: %s", log.String())
	}
}

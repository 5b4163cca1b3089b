//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/schemas"
)

// When an ingester dies, the monitors report its machine as silent once, although the test kills
// monitors meanwhile and two of them share the machines. When the ingester is back, they report
// that once. A killed monitor that comes back late reports no silence for windows that wait.
func TestSilence(t *testing.T) {
	b, cfg := startServer(t, 2)
	dir := prepare(t, b.Addr(), 20)
	write(t, dir, "monitor.yaml", fmt.Sprintf("kafka: {brokers: [%q]}\nmodel: m.flank\npage: \"\"\nsilence: 5s\n", b.Addr()))
	results, alerts := follow(t, cfg, bus.TopicResults), follow(t, cfg, bus.TopicAlerts)
	monitor := func() *process { return start(t, "monitor", "run", "--config", filepath.Join(dir, "monitor.yaml")) }
	ingest := func() *process { return start(t, "ingest", "run", "--config", filepath.Join(dir, "ingest.yaml")) }
	silences := func() (states []event.AlertState) {
		seen := map[string]bool{}
		for _, m := range alerts.all() {
			var a event.Advisory
			if string(m.Header("ce_type")) != event.AdvisoryType || json.Unmarshal(m.Value, &a) != nil || a.Kind != event.SilenceAdvisory || seen[a.ID] {
				continue
			}
			if err := schemas.Validate(schemas.Advisory, m.Value); err != nil {
				t.Fatal(err)
			}
			seen[a.ID] = true
			states = append(states, a.State)
		}
		return states
	}
	until := func(n int) {
		t.Helper()
		for deadline := time.Now().Add(patience); len(silences()) < n; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%v, still waiting for %d", silences(), n)
			}
		}
	}
	one, feed := monitor(), ingest()
	monitor()
	results.until(t, 20, "results")
	one.kill()
	seen := results.distinct()
	results.until(t, seen+100, "results") // longer than the silence: windows waited for a while
	if s := silences(); len(s) != 0 {
		t.Fatalf("%v while windows came", s)
	}
	feed.kill()
	until(1)
	one = monitor()
	time.Sleep(7 * time.Second) // longer than the silence
	one.kill()
	ingest()
	until(2)
	if s := silences(); len(s) != 2 || s[0] != event.Raised || s[1] != event.Cleared {
		t.Errorf("%v", s)
	}
}

package ingest

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/gateway"
	"github.com/flank-tcm/flank/internal/golden"
	"github.com/flank-tcm/flank/internal/source/feed"
)

// What is shown goes on from one recording to the next, by machine, and every
// name is in docs/reference/metrics.md.
func TestMetrics(t *testing.T) {
	s := newSupervisor("acme/spore/bay2/line1/usk25", "acme/spore/bay2/line1/lathe")
	m := s.machines[0]
	m.before = gateway.Stats{Windows: 7, Delivered: 4, Pending: 3, Gaps: 1}.Add(gateway.Stats{Windows: 5, Delivered: 8, Dropped: 2, Damaged: 6, DamagedBytes: 99})
	m.received, m.restarts = feed.Stats{Frames: 9, Refused: 1}, 4
	m.enter("running", nil)
	h := s.handler("secret")
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	_, got := get("/metrics")
	docs, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	wants := []string{
		"windows_cut_total 12", "windows_delivered_total 12", "windows_fetched_total 0", "windows_pending 0", "windows_dropped_total 2", "windows_damaged_total 6", "spool_damaged_bytes_total 99",
		"source_gaps_total 1", "ingest_up 1", "ingest_restarts_total 4", "newest_window_timestamp_seconds 0", "frames_received_total 9",
		"frames_refused_total 1", "senders 0",
	}
	for _, want := range wants {
		name, value, _ := strings.Cut(want, " ")
		for _, line := range []string{"\ntcm_" + name + `{machine="acme/spore/bay2/line1/usk25"} ` + value + "\n", "\ntcm_" + name + `{machine="acme/spore/bay2/line1/lathe"} `} {
			if !strings.Contains(got, line) {
				t.Errorf("no %s in\n%s", line, got)
			}
		}
		if !strings.Contains(string(docs), "| `tcm_"+name+"` | ") {
			t.Errorf("docs/reference/metrics.md lacks tcm_%s", name)
		}
	}
	if types := strings.Count(got, "# TYPE "); types != len(wants) {
		t.Errorf("%d metrics, want %d\n%s", types, len(wants), got)
	}
	var heads []string
	for line := range strings.Lines(got) {
		if strings.HasPrefix(line, "#") {
			heads = append(heads, line)
		}
	}
	slices.Sort(heads)
	golden.Check(t, "metrics.txt", strings.Join(heads, ""))
	if _, got := get("/livez"); got != "ok\n" {
		t.Errorf("livez: %s", got)
	}
	if code, got := get("/healthz"); code != http.StatusOK || !strings.Contains(got, `"acme/spore/bay2/line1/lathe":{"state":"waiting"`) {
		t.Errorf("healthz: %d %s", code, got)
	}
	s.machines[1].enter("failed", errors.New("the disk is gone"))
	if code, got := get("/healthz"); code != http.StatusServiceUnavailable || !strings.Contains(got, "the disk is gone") || !strings.Contains(got, `usk25":{"state":"running"`) {
		t.Errorf("healthz of a machine that has failed: %d %s", code, got)
	}
}

// newSupervisor returns a supervisor of machines that do not run.
func newSupervisor(paths ...string) *Supervisor {
	s := &Supervisor{log: zerolog.Nop()}
	for _, path := range paths {
		m := defaults()
		m.Path = path
		s.machines = append(s.machines, newMachine(Config{}, m, bus.Config{}, zerolog.Nop(), nil))
	}
	return s
}

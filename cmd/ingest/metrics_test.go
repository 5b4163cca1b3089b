package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/gateway"
)

// What is shown goes on from one recording to the next, and every name is in
// docs/metrics.md.
func TestMetrics(t *testing.T) {
	l := &live{machine: "acme/spore/bay2/line1/usk25"}
	l.past = gateway.Stats{Windows: 7, Delivered: 4, Pending: 3, Gaps: 1}.Add(gateway.Stats{Windows: 5, Delivered: 8, Dropped: 2, Damaged: 6})
	w := httptest.NewRecorder()
	l.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	got := w.Body.String()
	docs, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, want := range []string{"windows_cut_total 12", "windows_delivered_total 12", "windows_pending 0", "windows_dropped_total 2", "windows_damaged_total 6", "source_gaps_total 1"} {
		name, value, _ := strings.Cut(want, " ")
		if line := "tcm_" + name + `{machine="acme/spore/bay2/line1/usk25"} ` + value + "\n"; !strings.Contains(got, line) {
			t.Errorf("no %s in\n%s", line, got)
		}
		if !strings.Contains(string(docs), "| `tcm_"+name+"` | ") {
			t.Errorf("docs/metrics.md lacks tcm_%s", name)
		}
		n++
	}
	if types := strings.Count(got, "# TYPE "); types != n {
		t.Errorf("%d metrics, want %d\n%s", types, n, got)
	}
	w = httptest.NewRecorder()
	l.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/livez", nil))
	if w.Body.String() != "ok\n" {
		t.Errorf("livez: %s", w.Body)
	}
}

package metric

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/testkit/metrictest"
	"github.com/flank-tcm/flank/internal/testkit/webtest"
)

func get(t *testing.T, h http.Handler) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if got, want := w.Header().Get("Content-Type"), "text/plain; version=0.0.4; charset=utf-8"; w.Code != http.StatusOK || !strings.HasPrefix(got, want) {
		t.Errorf("%d, %q, want %q", w.Code, got, want)
	}
	return w.Body.String()
}

func TestHandler(t *testing.T) {
	const want = `# HELP tcm_a_total Things that\nhappened, \\ and more.
# TYPE tcm_a_total counter
tcm_a_total 1.8014398509481984e+16
# HELP tcm_b Nothing yet.
# TYPE tcm_b gauge
tcm_b NaN
# HELP tcm_days_left Days.
# TYPE tcm_days_left gauge
tcm_days_left{certificate="a\"b\\c\nd"} -3
tcm_days_left{certificate="client"} 12.5
tcm_days_left{certificate="x�"} 4
`
	type counts struct{ a uint64 }
	got := get(t, Handler(
		Of(func() counts { return counts{1 << 54} }, []Metric[counts]{
			Counter("tcm_a_total", "Things that\nhappened, \\ and more.", func(c counts) uint64 { return c.a }),
			Gauge("tcm_b", "Nothing yet.", func(counts) float64 { return math.NaN() }),
		}),
		By("certificate", maps.All(map[string]float64{"client": 12.5, "a\"b\\c\nd": -3, "x\xff": 4}), []Metric[float64]{
			Gauge("tcm_days_left", "Days.", func(days float64) float64 { return days }),
		})))
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// A scrape takes one snapshot, so that its values fit together.
func TestOneSnapshotAScrape(t *testing.T) {
	n := uint64(0)
	same := func(n uint64) uint64 { return n }
	srv := httptest.NewServer(Handler(Of(func() uint64 { n++; return n }, []Metric[uint64]{
		Counter("tcm_n_total", "Times.", same), Counter("tcm_m_total", "Times again.", same),
	})))
	defer srv.Close()
	for _, want := range []string{"1\n", "2\n"} {
		_, text := webtest.Get(t, srv.URL+"/metrics")
		if !strings.Contains(text, "\ntcm_n_total "+want) || !strings.Contains(text, "\ntcm_m_total "+want) {
			t.Errorf("%q", text)
		}
	}
	res, err := http.Post(srv.URL+"/metrics", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %s", res.Status)
	}
}

// Several labels tell rows apart, and a histogram counts by size.
func TestLabelsAndHistograms(t *testing.T) {
	h := NewHistogram("tcm_wait_seconds", "Waiting.")
	for _, s := range []float64{.00005, .2, .2, 7200} {
		h.Observe(s)
	}
	got := get(t, Handler(h, ByLabels([]string{"topic", "partition"}, func(yield func([]string, float64) bool) {
		_ = yield([]string{"a", "0"}, 3) && yield([]string{"a", "1"}, 4)
	}, []Metric[float64]{Gauge("tcm_lag", "Lag.", func(n float64) float64 { return n })})))
	for _, want := range []string{
		`tcm_lag{partition="0",topic="a"} 3`, `tcm_lag{partition="1",topic="a"} 4`,
		`tcm_wait_seconds_bucket{le="0.0001"} 1`, `tcm_wait_seconds_bucket{le="0.25"} 3`, `tcm_wait_seconds_bucket{le="3600"} 3`, `tcm_wait_seconds_count 4`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

// The clocks of two computers differ: a duration between them that is less than nothing counts as 0, since Prometheus
// takes a sum that falls for a restart.
func TestNoNegativeDurations(t *testing.T) {
	h := NewHistogram("tcm_wait_seconds", "Waiting.")
	h.Observe(2)
	h.Observe(-0.5)
	got := get(t, Handler(h))
	for _, line := range []string{"tcm_wait_seconds_sum 2\n", "tcm_wait_seconds_count 2\n", "tcm_wait_seconds_bucket{le=\"0.0001\"} 1\n"} {
		if !strings.Contains(got, line) {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
}

// Two rows with the same labels do not take the other metrics away.
func TestSameLabels(t *testing.T) {
	got := get(t, Handler(
		Of(func() int { return 1 }, []Metric[int]{Gauge("tcm_a", "A.", func(n int) float64 { return float64(n) })}),
		By("machine", maps.All(map[string]float64{"x\xfe": 1, "x\xff": 2, "y": 3}), []Metric[float64]{Gauge("tcm_b", "B.", func(n float64) float64 { return n })}),
	))
	for _, want := range []string{"tcm_a 1\n", "tcm_b{machine=\"y\"} 3\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

// Scrapes that wait for counts which do not come are bounded, and go on when they come.
func TestScrapesAreBounded(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	h := Handler(Of(func() int { began <- struct{}{}; <-release; return 1 }, []Metric[int]{Gauge("tcm_a", "A.", func(n int) float64 { return float64(n) })}))
	codes := make(chan int)
	scrape := func() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		codes <- w.Code
	}
	for range mostScrapes {
		go scrape()
		<-began
	}
	go scrape()
	if code := <-codes; code != http.StatusServiceUnavailable {
		t.Errorf("one more scrape: %d", code)
	}
	close(release)
	for range mostScrapes {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a scrape that waited: %d", code)
		}
	}
}

// What a program says of itself: Go, the process, the build.
func TestRuntime(t *testing.T) {
	got := get(t, Handler(Runtime()...))
	for _, want := range []string{"go_goroutines ", "process_resident_memory_bytes ", "go_build_info{"} {
		if !strings.Contains(got, "\n"+want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

// A file for node-exporter is replaced whole, and others may read it.
func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tcm.prom")
	for _, n := range []uint64{1, 2} {
		if err := WriteFile(path, Of(func() uint64 { return n }, []Metric[uint64]{Gauge("tcm_runs", "Runs.", func(n uint64) float64 { return float64(n) })})); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if want := fmt.Sprintf("# HELP tcm_runs Runs.\n# TYPE tcm_runs gauge\ntcm_runs %d\n", n); err != nil || string(text) != want {
			t.Errorf("%q, %v, want %q", text, err, want)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Error(info, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Error(entries, err)
	}
}

func TestExpiriesAreDocumented(t *testing.T) {
	metrictest.Check(t, "../../docs/reference/metrics.md", Expiries(maps.All(map[string]time.Time{"client": time.Unix(1_800_000_000, 0)})))
}

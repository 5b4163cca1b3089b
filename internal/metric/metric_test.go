package metric

import (
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
		res, err := http.Get(srv.URL + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !strings.Contains(string(text), "\ntcm_n_total "+want) || !strings.Contains(string(text), "\ntcm_m_total "+want) {
			t.Errorf("%q, %v", text, err)
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

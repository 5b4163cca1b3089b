package metric

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	const want = `# HELP tcm_a_total Things that\nhappened, \\ and more.
# TYPE tcm_a_total counter
tcm_a_total 18014398509481984
# HELP tcm_days_left Days.
# TYPE tcm_days_left gauge
tcm_days_left{certificate="client"} 12.5
tcm_days_left{certificate="a\"b\\c\nd",machine="x�"} -3
# HELP tcm_b Nothing yet.
# TYPE tcm_b gauge
tcm_b NaN
`
	var b strings.Builder
	err := Write(&b, []Metric{
		Count("tcm_a_total", "Things that\nhappened, \\ and more.", 1<<54),
		{Name: "tcm_days_left", Kind: Gauge, Help: "Days.", Labels: []string{"certificate", "client"}, Value: 12.5},
		{Name: "tcm_days_left", Kind: Gauge, Help: "Days.", Labels: []string{"certificate", "a\"b\\c\nd", "machine", "x\xff"}, Value: -3},
		Level("tcm_b", "Nothing yet.", math.NaN()),
	})
	if got := b.String(); err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}

func TestHandler(t *testing.T) {
	n := uint64(0)
	srv := httptest.NewServer(Handler(func() []Metric { n++; return []Metric{Count("tcm_n_total", "Times.", n)} }))
	defer srv.Close()
	for _, want := range []string{"tcm_n_total 1\n", "tcm_n_total 2\n"} {
		res, err := http.Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !strings.HasSuffix(string(text), want) || res.Header.Get("Content-Type") != ContentType {
			t.Errorf("%q, %v", text, err)
		}
	}
	res, err := http.Post(srv.URL, "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %s", res.Status)
	}
}

package cli

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/metric"
	"github.com/flank-tcm/flank/internal/testkit/webtest"
)

// Metrics have an address of their own, with the metrics of the program's runtime, and say
// whether it is ready.
func TestServeMetrics(t *testing.T) {
	var log bytes.Buffer
	var problem error
	runs := metric.Of(func() uint64 { return 7 }, []metric.Metric[uint64]{metric.Counter("tcm_runs_total", "Runs.", func(n uint64) uint64 { return n })})
	stop, err := ServeMetrics("127.0.0.1:0", func() error { return problem }, zerolog.New(&log), runs)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	_, rest, _ := strings.Cut(log.String(), `"url":"`)
	url, _, _ := strings.Cut(rest, "/metrics")
	code, text := webtest.Get(t, url+"/metrics")
	if code != http.StatusOK || !strings.Contains(text, "\ntcm_runs_total 7\n") || !strings.Contains(text, "\ngo_build_info{") {
		t.Errorf("%d %s", code, text)
	}
	for path, want := range map[string]int{"/livez": 200, "/readyz": 200, "/": 404} {
		if code, text := webtest.Get(t, url+path); code != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	problem = errors.New("partition 3 stands still")
	if code, text := webtest.Get(t, url+"/readyz"); code != 503 || !strings.Contains(text, "partition 3") {
		t.Errorf("%d %s", code, text)
	}
	if _, err := ServeMetrics(strings.TrimPrefix(url, "http://"), nil, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "metrics: ") || !strings.Contains(err.Error(), "another address") {
		t.Error(err)
	}
}

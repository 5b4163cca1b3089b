package ingest

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/ingest/spool"
	"github.com/flank-tcm/flank/internal/metric"
	"github.com/flank-tcm/flank/internal/source/feed"
	"github.com/flank-tcm/flank/internal/source/machinetool"
	"github.com/flank-tcm/flank/internal/testkit/metrictest"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// What is shown goes on from one recording to the next, by machine, and every
// name is in docs/reference/metrics.md.
func TestMetrics(t *testing.T) {
	s := newSupervisor("acme/spore/bay2/line1/usk25", "acme/spore/bay2/line1/lathe")
	m := s.machines[0]
	m.before = gateway.Stats{Windows: 7, Delivered: 4, Pending: 3, Gaps: 1, Samples: window.Tally{Pushed: 25, Windowed: 20, Gaps: 2, Open: 3}}.Add(gateway.Stats{Windows: 5, Delivered: 8, Dropped: 2, Damaged: 6, DamagedBytes: 99, SpoolBytes: 4096})
	m.before.Flagged[5] = 8 // clock_step
	m.clock = "clock_step"
	m.Source.Kind = "tcp"
	m.received, m.restarts = feed.Stats{Frames: 9, Refused: [feed.Reasons]uint64{feed.Counter: 1}, Short: 3, Samples: 30, Unused: [feed.Reasons]uint64{feed.Counter: 5}}, 4
	m.answered = machinetool.Stats{Readings: 3, Failures: 2, Changes: 1, Stale: true} // stale is of one that runs
	m.enter("running", nil)
	m.MiB = 1
	h := s.handler("secret")
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	_, got := get("/metrics")
	wants := []string{
		"windows_cut_total 12", "windows_delivered_total 12", "windows_fetched_total 0", "windows_pending 0", "windows_dropped_total 2", "windows_damaged_total 6", "spool_damaged_bytes_total 99",
		"source_gaps_total 1", "ingest_up 1", "ingest_restarts_total 4", "newest_window_timestamp_seconds 0", "frames_received_total 9",
		"frames_refused_total 1", "senders 0", "mqtt_short_connections_total 3", "samples_received_total 30", "samples_windowed_total 20", "samples_open 3",
		"spool_oldest_seconds 0", "spool_bytes 4096", "spool_limit_bytes 1.048576e+06", "spool_writable 1", "ingest_kafka_up 1",
		"context_readings_total 3", "context_failures_total 2", "context_changes_total 1", "context_stale 0",
	}
	for _, want := range wants {
		name, value, _ := strings.Cut(want, " ")
		for _, line := range []string{"\ntcm_" + name + `{machine="acme/spore/bay2/line1/usk25"} ` + value + "\n", "\ntcm_" + name + `{machine="acme/spore/bay2/line1/lathe"} `} {
			if !strings.Contains(got, line) {
				t.Errorf("no %s in\n%s", line, got)
			}
		}
	}
	for _, want := range []string{`samples_unused_total{machine="acme/spore/bay2/line1/usk25",reason="gap"} 2`, `frames_unused_total{machine="acme/spore/bay2/line1/usk25",reason="counter"} 1`, `windows_flagged_total{flag="clock_step",machine="acme/spore/bay2/line1/usk25"} 8`} {
		if !strings.Contains(got, "\ntcm_"+want+"\n") {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	metrictest.Check(t, "../../docs/reference/metrics.md", s.collectors()...)
	if _, got := get("/livez"); got != "ok\n" {
		t.Errorf("livez: %s", got)
	}
	if code, got := get("/healthz"); code != http.StatusOK || !strings.Contains(got, `"acme/spore/bay2/line1/lathe":{"state":"waiting"`) || !strings.Contains(got, `"flags":{"clock_step":8},"clock":"clock_step"`) {
		t.Errorf("healthz: %d %s", code, got)
	}
	s.machines[1].enter("failed", errors.New("the disk is gone"))
	if code, got := get("/healthz"); code != http.StatusServiceUnavailable || !strings.Contains(got, "the disk is gone") || !strings.Contains(got, `usk25":{"state":"running"`) {
		t.Errorf("healthz of a machine that has failed: %d %s", code, got)
	}
}

// What /healthz says of the clocks of a window.
func TestClockOf(t *testing.T) {
	l, err := signal.NewLayout("two rates", []signal.Channel{{Name: "a", Kind: signal.Vibration, Rate: 100}, {Name: "b", Kind: signal.Force, Rate: 10}})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2002, 1, 1, 0, 0, 0, 0, time.UTC)
	for want, w := range map[string]window.Window{
		"":           {Quality: []signal.Quality{signal.Flatline, 0}},
		"clock_step": {Quality: []signal.Quality{0, signal.ClockStep}},
		"rate_error: 50 samples a second come where the layout says 100, 20 samples a second come where the layout says 10": {
			Quality: []signal.Quality{signal.RateError, signal.RateError}, Rates: []float64{50, 20}},
		"rate_error; clock_off: windows are dated 2002-01-01 00:00:00 UTC, far from the clock of their ingester": {Quality: []signal.Quality{signal.RateError | signal.ClockOff, signal.ClockOff}, Start: start},
		"clock_off: the clocks of the samples of 10 Hz and 100 Hz are more than 10s apart":                       {Quality: []signal.Quality{0, signal.ClockOff}, Start: start},
	} {
		if got := clockOf(&w, l); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A configuration of more machines than Prometheus should keep shows the first 500.
func TestMetricsAreBounded(t *testing.T) {
	paths := make([]string, metric.MaxMachines+3)
	for i := range paths {
		paths[i] = fmt.Sprintf("acme/spore/bay2/line1/m%d", i)
	}
	w := httptest.NewRecorder()
	metric.Handler(newSupervisor(paths...).collectors()...).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if got := w.Body.String(); strings.Count(got, "\ntcm_ingest_up{") != metric.MaxMachines || !strings.Contains(got, "\ntcm_ingest_machines_unlisted 3\n") {
		t.Errorf("%d machines", strings.Count(got, "\ntcm_ingest_up{"))
	}
}

// The histogram of a gateway outside a supervisor, and its newest window.
func TestGatewayMetrics(t *testing.T) {
	send := NewSend()
	ObserveSent(send)(30 * time.Millisecond)
	w := httptest.NewRecorder()
	metric.Handler(metricsOf(send, func() supervised { return supervised{} }, maps.All(map[string]counts{"drill": ofGateway(gateway.Stats{Delivered: 5}, gateway.Progress{}, time.Unix(7, 0))}))...).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{`tcm_window_send_seconds_bucket{le="0.05"} 1`, `tcm_windows_delivered_total{machine="drill"} 5`, `tcm_newest_window_timestamp_seconds{machine="drill"} 7`, `tcm_ingest_up{machine="drill"} 1`} {
		if !strings.Contains(w.Body.String(), "\n"+want+"\n") {
			t.Errorf("no %s in\n%s", want, w.Body)
		}
	}
}

// The spool counts as not writable for each reason why it takes no windows, and for no other.
func TestSpoolWritable(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
		o    observed
		want string
	}{
		"all is well":       {observed{lookedAt: now}, "1"},
		"no look yet":       {observed{}, "1"},
		"Kafka is away":     {observed{Progress: gateway.Progress{Pending: 9, Sending: now.Add(-time.Hour), Delivery: errors.New("refused")}}, "1"},
		"the disk is full":  {observed{refused: errors.New("no space left on device")}, "0"},
		"the spool is full": {observed{Progress: gateway.Progress{Refused: spool.ErrFull}}, "0"},
		"ingesting is over": {observed{state: done, lookedAt: now.Add(-time.Hour)}, "1"},
		"the disk hangs":    {observed{Progress: gateway.Progress{Storing: now.Add(-time.Hour)}}, "0"},
	} {
		w := httptest.NewRecorder()
		metric.Handler(metricsOf(NewSend(), func() supervised { return supervised{} }, maps.All(map[string]counts{"drill": {observed: tc.o}}))...).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if want := "\ntcm_spool_writable{machine=\"drill\"} " + tc.want + "\n"; !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: no %s in\n%s", name, want, w.Body)
		}
	}
}

// newSupervisor returns a supervisor of machines that do not run.
func newSupervisor(paths ...string) *Supervisor {
	s := &Supervisor{log: zerolog.Nop(), send: NewSend()}
	for _, path := range paths {
		m := defaults()
		m.Path = path
		s.machines = append(s.machines, newMachine(Config{}, m, bus.Config{}, zerolog.Nop(), nil))
	}
	return s
}

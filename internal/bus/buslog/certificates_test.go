package buslog

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
)

// A certificate is warned of once a day in its last 30 days, and no longer when
// it was renewed.
func TestCertificateWatch(t *testing.T) {
	var log bytes.Buffer
	w := certificateWatch{log: zerolog.New(&log), warnedAt: make(map[string]time.Time)}
	expires := time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC)
	for i, tc := range []struct {
		before time.Duration // of the client's; the broker's lasts a year longer
		lines  int           // so far
	}{
		{31 * 24 * time.Hour, 0},
		{30 * 24 * time.Hour, 0},
		{30*24*time.Hour - time.Second, 1},
		{29*24*time.Hour + time.Hour, 1},
		{29*24*time.Hour - 2*time.Second, 2},
		{-time.Hour, 3},
	} {
		w.look([]bus.Certificate{{Whose: "client", Name: "ingest", NotAfter: expires}, {Whose: "broker", NotAfter: expires.AddDate(1, 0, 0)}}, expires.Add(-tc.before))
		if n := strings.Count(log.String(), "\n"); n != tc.lines {
			t.Errorf("%d: %d lines, want %d\n%s", i, n, tc.lines, &log)
		}
	}
	if !strings.Contains(log.String(), `"event":"certificate_expires","certificate":"client","name":"ingest","not_after":"2026-12-31T12:00:00Z","days_left":29.99`) {
		t.Error(&log)
	}
	w.look([]bus.Certificate{{Whose: "client", NotAfter: expires.AddDate(2, 0, 0)}}, expires)
	w.look([]bus.Certificate{{Whose: "client", NotAfter: expires.AddDate(0, 0, 1)}}, expires)
	if n := strings.Count(log.String(), "\n"); n != 4 {
		t.Errorf("%d lines: want a line at once for a certificate that was renewed and runs out again\n%s", n, &log)
	}
}

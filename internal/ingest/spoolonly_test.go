package ingest

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLasts(t *testing.T) {
	const mib = 1 << 20
	for _, tc := range []struct {
		limit, before, bytes int64
		since                time.Duration
		want                 time.Duration
		known                bool
	}{
		{100 * mib, 20 * mib, 40 * mib, time.Minute, 3 * time.Minute, true},
		{100 * mib, 0, 100 * mib, time.Minute, 0, true},
		{0, 0, 40 * mib, time.Minute, 0, false},                // what the disk holds
		{100 * mib, 0, 40 * mib, 5 * time.Second, 0, false},    // just begun
		{100 * mib, 40 * mib, 40 * mib, time.Minute, 0, false}, // nothing comes
	} {
		if got, known := lasts(tc.limit, tc.before, tc.bytes, tc.since); got.Round(time.Second) != tc.want || known != tc.known {
			t.Errorf("%+v: %v, %v", tc, got, known)
		}
	}
	if got, _ := lasts(1<<60, 0, 1, time.Hour); got < 24*time.Hour || got > 1000*24*time.Hour {
		t.Errorf("a spool that hardly fills lasts %v", got)
	}
}

// A machine that only spools is ready however long Kafka has taken nothing, and says so.
func TestSpoolOnlyIsReady(t *testing.T) {
	s := newSupervisor("acme/spore/bay2/line1/usk25", "acme/spore/bay2/line1/lathe")
	if s.SpoolOnly() != "" {
		t.Errorf("while windows are sent: %s", s.SpoolOnly())
	}
	s.cfg.SpoolOnly = true
	for _, m := range s.machines {
		m.all.SpoolOnly, m.Spool = true, filepath.Join(t.TempDir(), "spool")
		m.enter(running, nil)
		m.look(time.Now(), tryFolder)
	}
	s.machines[1].enter(waiting, nil)
	o := s.machines[0].observe()
	o.Pending, o.Sending = 9, time.Now().Add(-time.Hour)
	if why := o.notReady(time.Now()); why != "" {
		t.Error(why)
	}
	for path, want := range map[string]string{
		"/readyz":  `"spool_only":{"acme/spore/bay2/line1/usk25":"spool only: windows are not sent"}`,
		"/healthz": `"spool_only":"spool only: windows are not sent"`,
		"/metrics": `tcm_ingest_spool_only{machine="acme/spore/bay2/line1/usk25"} 1`,
	} {
		w := httptest.NewRecorder()
		s.handler("").ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s lacks %s:\n%s", path, want, w.Body)
		}
	}
	if got := s.SpoolOnly(); got != "spool only: windows are not sent, 0 wait" {
		t.Error(got)
	}
}

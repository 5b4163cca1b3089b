package ingest

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/testkit/await"
)

// Readiness names every part that stands still within five seconds, and no other.
func TestNotReady(t *testing.T) {
	now := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	well := observed{state: "running", lookedAt: ago(time.Second), connected: ago(time.Second)}
	for name, tc := range map[string]struct {
		change func(o *observed)
		want   string // a part of the reason; empty: ready
	}{
		"all is well":                  {func(*observed) {}, ""},
		"before it runs":               {func(o *observed) { o.state = "waiting" }, "has not begun"},
		"a recording that is over":     {func(o *observed) { o.state, o.lookedAt = "done", ago(time.Hour) }, ""},
		"failed":                       {func(o *observed) { o.state, o.problem = "failed", errors.New("the port is in use") }, "the port is in use"},
		"a read-only spool":            {func(o *observed) { o.refused = errors.New("read-only file system") }, "cannot be written: read-only"},
		"samples are lost":             {func(o *observed) { o.lost = []event.LostSamples{{Reason: "gap", Seconds: 12}} }, "12 s of samples that came in the last minute are in no window (gap 12 s)"},
		"a rate is silent":             {func(o *observed) { o.silent = []float64{100, 1} }, "no new samples of 100 Hz and 1 Hz come while others do, or they are refused, and no window can be cut"},
		"a full spool":                 {func(o *observed) { o.Refused = errors.New("full") }, "does not take windows: full"},
		"a sync that takes its time":   {func(o *observed) { o.Storing = ago(4 * time.Second) }, ""},
		"a sync that never ends":       {func(o *observed) { o.Storing = ago(4*time.Second + 1) }, "taken no window for 4s"},
		"a look that never ends":       {func(o *observed) { o.lookedAt = ago(5 * time.Second) }, "not answered for 5s"},
		"before the first look":        {func(o *observed) { o.lookedAt = time.Time{} }, ""},
		"no MQTT broker, by TCP":       {func(o *observed) { o.connected = ago(time.Hour) }, ""},
		"no MQTT broker":               {func(o *observed) { o.needsBroker, o.connected = true, ago(5*time.Second) }, "MQTT broker that samples come from has not been connected for 5s"},
		"a client id that two have":    {func(o *observed) { o.needsBroker, o.contested = true, errors.New("another program connects") }, "another program connects"},
		"an MQTT broker gone just now": {func(o *observed) { o.needsBroker, o.connected = true, ago(3*time.Second) }, ""},
		"windows on their way":         {func(o *observed) { o.Pending, o.Sending = 9, ago(time.Second) }, ""},
		"Kafka is dead":                {func(o *observed) { o.Pending, o.Sending = 9, ago(60*time.Second) }, "Kafka has taken no window for 1m0s, 9 wait in the spool"},
		"Kafka is dead, and says why":  {func(o *observed) { o.Pending, o.Sending, o.Delivery = 9, ago(5*time.Second), errors.New("refused") }, "9 wait in the spool: refused"},
		"nothing to send":              {func(o *observed) { o.Progress = gateway.Progress{Stored: ago(time.Hour)} }, ""},
		"a machine that has been idle": {func(o *observed) { o.Stored, o.Sending = ago(time.Hour), ago(time.Hour) }, ""},
	} {
		o := well
		tc.change(&o)
		if got := o.notReady(now); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// The answer names each machine that is not ready, and why.
func TestReadyz(t *testing.T) {
	s := newSupervisor("acme/spore/bay2/line1/usk25", "acme/spore/bay2/line1/lathe")
	ms := s.machines
	for _, m := range ms {
		m.Spool = filepath.Join(t.TempDir(), "spool")
		m.enter("running", nil)
	}
	start := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	get := func(after time.Duration) (int, string) {
		w := httptest.NewRecorder()
		s.readyz(func() time.Time { return start.Add(after) })(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		return w.Code, w.Body.String()
	}
	for _, m := range ms {
		m.look(start, tryFolder)
	}
	if code, body := get(time.Second); code != http.StatusOK || body != `{"not_ready":{},"ready":true}`+"\n" {
		t.Errorf("%d %s", code, body)
	}
	ms[1].look(start.Add(time.Second), func(string) error { return errors.New("read-only file system") })
	if code, body := get(time.Second); code != http.StatusServiceUnavailable || !strings.Contains(body, `{"acme/spore/bay2/line1/lathe":"the spool cannot be written: read-only file system"}`) {
		t.Errorf("%d %s", code, body)
	}
	ms[1].look(start.Add(2*time.Second), tryFolder)
	if code, body := get(4 * time.Second); code != http.StatusOK {
		t.Errorf("writable again: %d %s", code, body)
	}
	// The disk of the first hangs: its look does not come back.
	ms[1].look(start.Add(4*time.Second), tryFolder)
	if code, body := get(5 * time.Second); code != http.StatusServiceUnavailable || !strings.Contains(body, "usk25") || strings.Contains(body, "lathe") {
		t.Errorf("%d %s", code, body)
	}
	ms[0].enter("failed", errors.New("no spool"))
	w := httptest.NewRecorder()
	s.handler("secret").ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "no spool") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A folder that cannot be written is found, and nothing is left of the try.
func TestTryFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	if err := tryFolder(dir); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := tryFolder(file); err == nil {
		t.Error("no error for a file in place of a folder")
	}
}

// While the disk of many machines hangs, readiness is known within a moment, and those who ask again and again
// wait for the same answer.
func TestReadyWhileDisksHang(t *testing.T) {
	t.Parallel()
	s := new(Supervisor)
	for range 100 {
		m := new(machine)
		m.Path = "m"
		m.mu.Lock() // as where the disk hangs in the middle of a removal
		s.machines = append(s.machines, m)
	}
	began := time.Now()
	err := s.Ready()
	if err == nil || strings.Count(err.Error(), "does not answer") != len(s.machines) {
		t.Errorf("%v", err)
	}
	if took := time.Since(began); took > await.Patience {
		t.Errorf("it took %v", took)
	}
	m := s.machines[0]
	first, second := m.beginLook(), m.beginLook()
	if first != second {
		t.Error("each who asks waits for an answer of their own")
	}
	for _, m := range s.machines {
		m.mu.Unlock()
	}
	<-first.done
	if err := s.Ready(); err != nil {
		t.Errorf("once the disk answers: %v", err)
	}
}

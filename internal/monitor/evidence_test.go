package monitor

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/evidence"
	"github.com/flank-tcm/flank/schemas"
)

// keeping lets a monitor keep evidence in dir.
func keeping(t *testing.T, dir string) func(*Monitor) {
	t.Helper()
	s, err := evidence.Open(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	return func(m *Monitor) { m.cfg.Evidence, m.cfg.EvidenceURL = s, "http://plant:9102" }
}

// evidence waits for events of evidence and returns them. Repeats must say the same.
func (p *plant) evidence(n int) map[string]event.Evidence {
	p.t.Helper()
	of := func(msgs []bus.Message) (found []bus.Message) {
		for _, m := range msgs {
			if string(m.Header("ce_type")) == event.EvidenceType {
				checkHeaders(p.t, headerSchema(p.t, "evidence"), "evidence", m)
				found = append(found, m)
			}
		}
		return found
	}
	got := map[string]event.Evidence{}
	p.until(bus.TopicAlerts, func(msgs []bus.Message) bool {
		got = byID(p.t, of(msgs), schemas.Evidence, func(e event.Evidence) string { return e.ID })
		return len(got) >= n
	})
	return got
}

// raisedBy is the window of life(20, 10) whose alert it is.
const raisedBy = drill + "/0000000000000001/11/" + DefaultGroup + "/raised"

// An alert says at once where its waveform will be, and an event when it is.
func TestEvidence(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	dir := filepath.Join(t.TempDir(), "evidence")
	p.monitor(keeping(t, dir))
	p.send(p.messages(life(20, 10)...)...)
	e := p.evidence(1)[raisedBy+"/evidence"]
	a := p.alertsByID()[raisedBy]
	if a.Evidence == nil || a.Evidence.URL != e.URL || !a.Evidence.From.Equal(at(7, "", false).Start) || !a.Evidence.To.Equal(at(16, "", false).End()) {
		t.Fatalf("alert promises %+v, the event says %+v", a.Evidence, e)
	}
	if !e.Complete || e.Windows != 10 || e.Alert != a.ID || e.Incident != a.Incident || !strings.Contains(e.Text, "waveform of 02:00:07 to 02:00:17 kept: 10 windows") {
		t.Errorf("%+v", e)
	}
	name := evidence.Name(a.Incident, 11)
	if e.URL != "http://plant:9102/evidence/"+name+".arrow" {
		t.Errorf("url %s", e.URL)
	}
	if info, err := os.Stat(filepath.Join(dir, name+".arrow")); err != nil || info.Size() != e.Bytes {
		t.Errorf("%v, %v", info, err)
	}
}

// A monitor that dies before the windows after the alert came is followed by one
// that keeps the evidence, once.
func TestEvidenceAfterADeath(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	dir := t.TempDir()
	ws := life(20, 10)
	mon := p.monitor(keeping(t, dir))
	p.send(p.messages(ws[:13]...)...)
	p.untilMessages(bus.TopicAlerts, 1)
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Fatalf("kept too soon: %v", files)
	}
	mon = p.monitor(keeping(t, dir))
	p.send(p.messages(ws[13:]...)...)
	if e := p.evidence(1)[raisedBy+"/evidence"]; !e.Complete || e.Windows != 10 {
		t.Errorf("%+v", e)
	}
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}
	sent := len(p.read(bus.TopicAlerts))
	p.monitor(keeping(t, dir)) // nothing is to be written any more
	p.send(p.messages(at(20, "T1", true))...)
	p.untilResults(21)
	if n := len(p.read(bus.TopicAlerts)); n > sent+1 { // the event, again, if it was pending
		t.Errorf("%d messages, %d before", n, sent)
	}
	p.evidence(1) // and it says the same
}

// An alert's Evidence says what is missing: windows that never come, and a disk that
// takes nothing. Judging goes on.
func TestEvidenceIncomplete(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		windows int
		spoil   func(dir string) error
		kept    int
		text    string
	}{
		"the ingester stopped": {13, func(string) error { return nil }, 6, "kept, but for 4s of it, of which no window came: 6 windows"},
		"the disk is full":     {20, os.RemoveAll, 0, "not kept: evidence: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlant(t, 1)
			dir := filepath.Join(t.TempDir(), "evidence")
			var ahead atomic.Int64
			p.monitor(keeping(t, dir), func(m *Monitor) {
				m.now = func() time.Time { return time.Unix(1e9, ahead.Load()) }
			})
			if err := tc.spoil(dir); err != nil {
				t.Fatal(err)
			}
			p.send(p.messages(life(tc.windows, 10)...)...)
			p.untilMessages(bus.TopicAlerts, 1)
			go func() {
				for t.Context().Err() == nil {
					ahead.Add(int64(15 * time.Second))
					time.Sleep(jobEvery / 4)
				}
			}()
			e := p.evidence(1)[raisedBy+"/evidence"]
			if e.Complete || e.Windows != tc.kept || (e.Bytes > 0) != (tc.kept > 0) || !strings.Contains(e.Text, tc.text) {
				t.Errorf("%+v", e)
			}
			p.send(p.messages(at(30, "T1", true))...)
			p.untilResults(tc.windows + 1)
		})
	}
}

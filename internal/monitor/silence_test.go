package monitor

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
)

// silence is a monitor's Config for the tests below, with a clock that they set.
func silence(ahead *atomic.Int64) func(*Monitor) {
	return func(m *Monitor) {
		m.cfg.Silence = time.Minute
		m.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}
}

// untilAdvisories waits for so many advisories, and returns the last.
func (p *plant) untilAdvisories(n int) (last bus.Message) {
	p.t.Helper()
	ids := map[string]bool{}
	p.until(bus.TopicAlerts, func(msgs []bus.Message) bool {
		if last = msgs[len(msgs)-1]; string(last.Header("ce_type")) == event.AdvisoryType {
			ids[string(last.Header("ce_id"))] = true
		}
		return len(ids) == n
	})
	return last
}

// A machine whose windows stop is said to be silent, once, through a restart, and
// to be there again when they come.
func TestSilence(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	var ahead atomic.Int64
	p.send(p.messages(life(3, 9)...)...)
	mon := p.monitor(silence(&ahead))
	p.untilResults(3)
	ahead.Store(int64(61 * time.Second))
	if text := string(p.untilAdvisories(1).Value); !strings.Contains(text, "drill: SILENT, no window to judge since ") {
		t.Error(text)
	}
	if st := p.standing(drill); len(st.Advisories) != 1 || st.Advisories[0].Kind != event.SilenceAdvisory || st.Alarm != "normal" {
		t.Errorf("standing %+v", st)
	}
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}
	mon = p.monitor(silence(&ahead))
	ahead.Store(int64(20 * time.Minute))
	p.send(p.message(at(3, "T1", false)))
	if text := string(p.untilAdvisories(2).Value); !strings.Contains(text, "windows come again, after 20m") {
		t.Error(text)
	}
	if st := p.standing(drill); len(st.Advisories) != 0 {
		t.Errorf("standing %+v", st)
	}
	ahead.Store(int64(22 * time.Minute))
	p.untilAdvisories(3)
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}
	states := map[event.AlertState]int{}
	for _, a := range p.advisories() {
		states[a.State]++
	}
	if states[event.Raised] != 2 || states[event.Cleared] != 1 {
		t.Errorf("%v", states)
	}
	if n := mon.Stats().Advisories; n != 2 {
		t.Errorf("the second monitor counts %d advisories", n)
	}
}

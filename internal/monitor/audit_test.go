package monitor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/audit"
)

// In an older plant, without the topic of the audit, a monitor judges and carries commands out. It says
// once that the audit is in its log only, and `monitor check` names the topic.
func TestMonitorWithoutAudit(t *testing.T) {
	t.Parallel()
	p := newPlantWithoutTopics(t)
	for _, topic := range bus.Planned(1) {
		if topic.Name != bus.TopicAudit {
			p.createTopic(topic.Name, 1)
		}
	}
	w, err := audit.Open(p.bus, "monitor", zerolog.New(&p.log))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	p.monitor(func(m *Monitor) { m.cfg.OnAudit = w.Record })
	p.send(p.messages(life(6, 3)...)...)
	p.untilResults(6)
	for range 2 {
		st := p.standing(drill)
		if err := SendCommand(t.Context(), p.out, event.Command{
			ID: event.NewCommandID(), Machine: drill, Action: event.Acknowledge, Incident: st.Incident, By: "kim", Issued: time.Now(),
		}); err != nil {
			t.Fatal(err)
		}
	}
	p.eventually("two lines of the audit are lost", func() bool { return w.Stats().Lost == 2 })
	p.send(p.messages(life(9, 9)...)[6:]...)
	p.untilResults(9)
	log := p.log.String()
	if strings.Count(log, `"event":"audit_unwritten"`) != 1 || strings.Count(log, `"event":"audit",`) != 2 || !strings.Contains(log, "ingest topics apply") {
		t.Error(log)
	}
	if s := w.Stats(); s.Accepted != 1 || s.Refused != 1 { // the second finds the alarm acknowledged
		t.Errorf("%+v", s)
	}
	steps, err := bus.Steps(p.bus, Needs(DefaultGroup))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(steps, func(s bus.Step) bool { return s.Name == "topics" })
	if _, err := steps[i].Run(t.Context()); err == nil || !strings.Contains(err.Error(), bus.TopicAudit) {
		t.Errorf("the check says %v", err)
	}
}

package web

import (
	"time"

	"github.com/flank-tcm/flank/internal/web/summary"
)

// Remember shows what was kept of a machine before the program began: its last verdicts, its
// last result, the state of its alarm, and its open advisories. The topic of alerts may be read
// again afterwards, from far before what was kept. Remember changes nothing of a machine of which
// a result has come.
func (h *Hub) Remember(kept summary.Machine) {
	var facts Facts
	if h.facts != nil && !kept.LastAt.IsZero() {
		facts = h.facts(kept.Name, kept.Last.Model)
	}
	h.change(kept.Name, func(m *machine) bool {
		if m.lastResult != nil {
			return false
		}
		m.strip, m.verdicts = []byte(kept.Strip), uint64(len(kept.Strip))
		if last := kept.Last; !kept.LastAt.IsZero() {
			m.wear(&last)
			m.lastResult, m.lastResultAt, m.facts = &last, kept.LastAt, facts
			if facts.Layout != nil {
				h.setLayout(m, facts.Layout)
			}
		}
		m.tools = kept.Alarms
		m.remembered = make(map[string]bool)
		if a := kept.Alert; a != nil && m.alert(*a, time.Time{}) {
			m.remembered[a.ID] = true
		}
		for _, a := range kept.Advisories {
			if m.advise(a) {
				m.remembered[a.ID] = true
			}
		}
		return true
	})
}

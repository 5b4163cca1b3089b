package oracle

import "time"

// settled is how long a condition must be over before its advisory is cleared.
const settled = time.Minute

// condition is an advisory that is open.
type condition struct {
	last time.Time     // until when it was observed
	over time.Duration // observed time without it, since it was there last
}

func (m *Machine) raise(kind string) *condition {
	if m.open[kind] == nil {
		m.open[kind] = &condition{}
		m.out.Advisories = append(m.out.Advisories, Advisory{kind, "raised"})
	}
	return m.open[kind]
}

func (m *Machine) clear(kind string) {
	if m.open[kind] != nil {
		delete(m.open, kind)
		m.out.Advisories = append(m.out.Advisories, Advisory{kind, "cleared"})
	}
}

// ingesters takes what a window says of the number of ingesters. It says nothing if it is late. The
// sensors' time counts.
func (m *Machine) ingesters(w *Window, p Place) {
	switch c := m.open[TwoIngesters]; {
	case p == Late:
	case p == Rival:
		c = m.raise(TwoIngesters)
		c.last, c.over = w.End, 0
	case c != nil:
		long := w.End.Sub(w.Start)
		if c.last.After(w.Start) && c.last.Before(w.End) {
			long = w.End.Sub(c.last)
		}
		c.last, c.over = w.End, c.over+long
		if c.over >= settled {
			m.clear(TwoIngesters)
		}
	}
}

// refuse notes that no model judges a window that moved the machine.
func (m *Machine) refuse(at time.Time) {
	c := m.raise(Refused)
	c.last, c.over = at, 0
}

// accept notes that a window was judged.
func (m *Machine) accept(at time.Time) {
	c := m.open[Refused]
	if c == nil {
		return
	}
	c.over += max(0, at.Sub(c.last))
	c.last = at
	if c.over >= settled {
		m.clear(Refused)
	}
}

// awake notes that a window came.
func (m *Machine) awake(now time.Time) {
	m.waiting = now
	m.clear(Silent)
}

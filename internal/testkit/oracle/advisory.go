package oracle

import (
	"slices"
	"time"
)

// settled is how long a condition must be over before its advisory is cleared.
const settled = time.Minute

// condition is an advisory that is open.
type condition struct {
	last time.Time     // until when it was observed
	over time.Duration // observed time without it, since it was there last
}

func (m *answers) raise(kind string) *condition {
	if m.open[kind] == nil {
		m.open[kind] = &condition{}
		m.out.Advisories = append(m.out.Advisories, Advisory{kind, "raised"})
	}
	return m.open[kind]
}

func (m *answers) clear(kind string) {
	if m.open[kind] != nil {
		delete(m.open, kind)
		m.out.Advisories = append(m.out.Advisories, Advisory{kind, "cleared"})
	}
}

// ingesters takes what a window says of the number of ingesters. It says nothing if it is late. The
// sensors' time counts.
func (m *answers) ingesters(w *Window, p Place) {
	if p != Late {
		m.says(TwoIngesters, p == Rival, w)
	}
}

// says takes whether a window says that a condition is there. A minute of windows that say it is not ends it.
func (m *answers) says(kind string, there bool, w *Window) {
	switch c := m.open[kind]; {
	case there:
		c = m.raise(kind)
		c.last, c.over = w.End, 0
	case c != nil:
		if c.passes(w); c.over >= settled {
			m.clear(kind)
		}
	}
}

// passes adds the time of a window without the condition. Windows that overlap count once.
func (c *condition) passes(w *Window) {
	long := w.End.Sub(w.Start)
	if c.last.After(w.Start) && c.last.Before(w.End) {
		long = w.End.Sub(c.last)
	}
	c.last, c.over = w.End, c.over+long
}

// unknown takes whether the model knew a window that moved the tool in the spindle, and whether it has a verdict. Without one for long
// the machine is not monitored, for any reason: not by a model that judges before it has seen the tool's past either.
func (m *Machine) unknown(t *tool, w *Window, r *Result, d *Deployment) {
	is, judged, n, by := r.Verdict.Outcome, false, 0, d.Champion
	if is == "not_cutting" {
		return
	}
	for _, j := range t.judgings {
		if j.model.ID == r.Model {
			by = j.model
		}
		if j.model.ID != r.Model || len(j.seen) == 0 || j.seen[len(j.seen)-1] != w {
			continue
		}
		if is != "healthy" && is != "faulty" && is != "unknown" {
			continue
		}
		judged = true
		j.outcomes = append(j.outcomes, is)
		for _, was := range j.outcomes[max(0, len(j.outcomes)-32):] {
			if was == "unknown" {
				n++
			}
		}
	}
	if m.unjudged++; is == "healthy" || is == "faulty" {
		m.unjudged = 0
	}
	if long := m.unjudged >= m.Limits.unjudged()+2*by.Learns; judged || long {
		m.says(Unmonitored, n >= 16 || long, w)
	}
}

// refuse notes that no model judges a window that moved the machine.
func (m *answers) refuse(at time.Time) {
	c := m.raise(Refused)
	c.last, c.over = at, 0
}

// accept notes that a window was judged.
func (m *answers) accept(at time.Time) {
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

// Sensor is what a window says of a channel of its layout.
type Sensor struct {
	Name, Rate string // as advisories name them
	Fault      bool   // of its own
	Failed     bool   // its values are missing or mean nothing
	Clock      bool   // its clock has a fault
	Grave      bool   // which is more than a step
}

// sensor is what is known of a channel, of all channels of a rate, or of the clock, which has no name.
type sensor struct {
	recent []bool // whether windows had the fault, since it was over
	on     bool   // it is there, whether or not an advisory says so
	grave  bool   // of the clock: a window had more than a step
	condition
}

// sense takes what a window that moved the machine, and was judged, says of its sensors.
func (m *answers) sense(w *Window) {
	if len(m.sensors) == 0 && !slices.ContainsFunc(w.Sensors, func(s Sensor) bool { return s.Fault || s.Clock }) {
		return // most windows
	}
	rates, clock, grave := make(map[string][]Sensor), false, false
	for _, s := range w.Sensors {
		rates[s.Rate] = append(rates[s.Rate], s)
		clock, grave = clock || s.Clock, grave || s.Grave
	}
	for of := range m.sensors { // of another layout
		if of != "" && len(rates[of]) < 2 && !slices.ContainsFunc(w.Sensors, func(s Sensor) bool { return s.Name == of }) {
			delete(m.sensors, of)
			m.clear(Faulty + of)
		}
	}
	together := make(map[string]bool)
	for rate, all := range rates {
		if len(all) > 1 {
			together[rate] = m.observe(rate, !slices.ContainsFunc(all, func(s Sensor) bool { return !s.Failed }), 3, w, false)
		}
	}
	for _, s := range w.Sensors {
		m.observe(s.Name, s.Fault, 3, w, together[s.Rate])
	}
	open := m.open[Faulty] != nil
	m.observe("", clock, 1, w, false)
	if s := m.sensors[""]; s != nil && grave {
		if open && !s.grave { // what was for information only is a warning
			m.clear(Faulty)
			m.raise(Faulty)
		}
		s.grave = true
	}
}

// observe takes whether a window has a fault, and reports whether the condition is there: from the k-th of five windows on, until a
// minute of windows without. Another advisory may cover it.
func (m *answers) observe(of string, bad bool, k int, w *Window, covered bool) bool {
	s := m.sensors[of]
	switch {
	case s == nil && !bad:
		return false
	case s == nil:
		s = &sensor{}
		m.sensors[of] = s
	}
	s.passes(w)
	s.recent = append(s.recent, bad)
	n := 0
	for _, was := range s.recent[max(0, len(s.recent)-5):] {
		if was {
			n++
		}
	}
	switch s.on = s.on || n >= k; {
	case bad:
		if s.over = 0; s.on && !covered {
			m.raise(Faulty + of)
		}
	case s.on && s.over >= settled:
		delete(m.sensors, of)
		m.clear(Faulty + of)
		return false
	case !s.on && n == 0:
		delete(m.sensors, of)
	}
	return s.on
}

package oracle

import "time"

// alarm is the alarm of one tool; with a shadow's id it is the one that the shadow would have.
type alarm struct {
	shadow    string
	counted   []counted
	moved     int    // how many windows there were when one moved it last
	state     string // empty: normal
	incident  int    // of an alarm that is not normal
	announced bool   // its alert raised was published, and cleared was not
	called    time.Time
}

// counted is a judged window, and what the settings of its time made of it.
type counted struct {
	faulty  bool
	cut     time.Duration
	to      time.Time
	on, off bool // whether the condition was on, or over
}

func (a *alarm) word() string {
	if a.state == "" {
		return "normal"
	}
	return a.state
}

// waits reports whether people are to be called, and were not.
func (a *alarm) waits() bool { return (a.state == "raised" || a.state == "returned") && !a.announced }

// renamed makes it the alarm of a machine with another name.
func (a *alarm) renamed() { a.announced, a.called = false, time.Time{} }

// count counts a judged window, and moves the alarm. An ambiguous or implausible one counts as its score says.
func (m *alarmBook) count(t *tool, a *alarm, w *Window, v Verdict) {
	if v.Outcome != "healthy" && v.Outcome != "faulty" && v.Reason != "ambiguous" && v.Reason != "implausible" {
		return
	}
	c := counted{faulty: v.Score >= m.set().Threshold, cut: w.End.Sub(w.Start), to: w.End}
	if n := len(a.counted); n > 0 {
		if last := a.counted[n-1].to; last.After(w.Start) && last.Before(w.End) {
			c.cut = w.End.Sub(last) // windows that overlap do not cut twice
		}
	}
	faulty := 0
	if c.faulty {
		faulty++
	}
	for i, n := len(a.counted)-1, 1; i >= 0 && n < m.set().N; i, n = i-1, n+1 {
		if a.counted[i].faulty {
			faulty++
		}
	}
	c.on, c.off = faulty >= m.set().K, faulty <= m.set().Clear
	a.counted = append(a.counted, c)
	if a.state == "returned" && !m.set().Latch { // alarms were latched before
		m.end(t, a, "recovered")
		return
	}
	is, hold := func(c counted) bool { return c.on }, m.set().OnHold
	by := "on"
	if a.state == "raised" || a.state == "acknowledged" {
		is, hold = func(c counted) bool { return c.off }, m.set().OffHold
		by = "off"
	}
	lasted := time.Duration(0)
	for i := len(a.counted) - 1; i >= a.moved && is(a.counted[i]); i-- {
		lasted += a.counted[i].cut
	}
	if is(c) && lasted >= hold {
		a.moved = len(a.counted)
		m.move(t, a, by, w.At)
	}
}

// move is the columns "on" and "off" of the table of states in alarms.md.
func (m *alarmBook) move(t *tool, a *alarm, by string, now time.Time) {
	calls := m.mayCall(t, a)
	switch a.word() + " " + by {
	case "normal on":
		m.numbered++
		a.state, a.incident, a.called = "raised", m.numbered, time.Time{}
		if calls {
			m.call(t, a, now, "", time.Time{})
		}
	case "returned on":
		a.state = "raised"
		if calls && a.announced {
			a.called = now
			m.say("reactivated", "", t, a, time.Time{})
		}
	case "raised off":
		if !m.set().Latch {
			m.end(t, a, "recovered")
			return
		}
		a.state = "returned"
		if calls && a.announced {
			m.say("returned", "", t, a, time.Time{})
		}
	case "acknowledged off":
		m.end(t, a, "recovered")
	}
}

// end makes an alarm normal.
func (m *alarmBook) end(t *tool, a *alarm, reason string) {
	was := a.announced
	a.state, a.announced, a.called = "", false, time.Time{}
	if was {
		m.say("cleared", reason, t, a, time.Time{})
	}
	a.incident = 0
}

// call publishes that an alarm is there which people do not know of. At is not zero if that
// happens by itself, at a time.
func (m *alarmBook) call(t *tool, a *alarm, now time.Time, reason string, at time.Time) {
	a.announced, a.called = true, now
	if a.shadow == "" {
		m.remember(pastAlarm{incident: a.incident, tool: t.name})
	}
	m.say("raised", reason, t, a, at)
	if a.state == "returned" {
		m.say("returned", "", t, a, at)
	}
}

// announce calls for alarms of the tool in the spindle that wait for that.
func (m *alarmBook) announce(now time.Time, reason string) {
	if len(m.tools) > 0 {
		m.announceAt(m.spindle().alarms(), now, reason, time.Time{})
	}
}

func (m *alarmBook) announceAt(all []*alarm, now time.Time, reason string, at time.Time) {
	t := m.spindle()
	for _, a := range all {
		if a.waits() && m.mayCall(t, a) && (a.called.IsZero() || !now.Before(a.called.Add(m.set().ReAlarm))) {
			m.call(t, a, now, reason, at)
		}
	}
}

// firstToCall returns the alarm whose silence after a call is over first, and when; nil if none is
// over by now.
func (m *alarmBook) firstToCall(now time.Time) (first *alarm, at time.Time) {
	if len(m.tools) == 0 {
		return nil, at
	}
	t := m.spindle()
	for _, a := range t.alarms() {
		over := a.called.Add(m.set().ReAlarm)
		if !a.called.IsZero() && a.waits() && m.mayCall(t, a) && !now.Before(over) && (first == nil || over.Before(at)) {
			first, at = a, over
		}
	}
	return first, at
}

// alarms returns the tool's alarm, and the ones that its shadows would have.
func (t *tool) alarms() []*alarm {
	all := []*alarm{&t.alarm}
	for _, j := range t.judgings {
		if j.trial.shadow != "" {
			all = append(all, &j.trial)
		}
	}
	return all
}

// mayCall reports whether an alarm of a tool may call: its tool is in the spindle, and no mask
// hides it. Masks do not hide what shadows would do.
func (m *alarmBook) mayCall(t *tool, a *alarm) bool {
	return t == m.spindle() && (a.shadow != "" || !t.masks.on() && !m.masks.on())
}

// word returns the state of a tool's alarm in the words of results: the lowest mask of the table in
// alarms.md, or the state beneath.
func (m *alarmBook) word(t *tool) string {
	switch {
	case m.masks.outOfService || t.masks.outOfService:
		return "out_of_service"
	case m.masks.suppressed || t.masks.suppressed:
		return "suppressed"
	case !t.masks.shelf.IsZero():
		return "shelved"
	}
	return t.alarm.word()
}

// empty returns the state of the machine's alarm without a tool.
func (m *alarmBook) empty() string { return m.word(&tool{}) }

func (m *alarmBook) emptyFor(a *alarm) string {
	if a.shadow != "" {
		return "normal"
	}
	return m.empty()
}

// say publishes a change of an alarm.
func (m *alarmBook) say(state, reason string, t *tool, a *alarm, at time.Time) {
	out := Alert{State: state, Reason: reason, Tool: t.name, Severity: "info", Alarm: m.word(t), Incident: a.incident, At: at, Shadow: a.shadow}
	if a.shadow != "" {
		out.Alarm = a.word()
	}
	if state == "raised" || state == "reactivated" {
		out.Severity = "warning"
	}
	m.alert(out)
}

// mask puts a mask on an alarm of a tool, or of the machine if t is nil, and reports false if
// it is on already. A new shelf replaces an earlier one.
func (m *alarmBook) mask(t *tool, mask string, until time.Time) bool {
	k := m.masksOf(t)
	switch mask {
	case "shelved":
		k.shelf = until
	case "suppressed":
		if k.suppressed {
			return false
		}
		k.suppressed = true
	case "out_of_service":
		if k.outOfService {
			return false
		}
		k.outOfService = true
	}
	if t == nil {
		t = m.spindle()
	}
	m.say(mask, "", t, &t.alarm, time.Time{})
	return true
}

// unmask takes a mask off, and reports false if it is not on. The alarm beneath calls if no one
// knows of it. At is not zero if the mask ends by itself.
func (m *alarmBook) unmask(t *tool, mask, reason string, at time.Time) bool {
	k := m.masksOf(t)
	var says string
	switch {
	case mask == "shelved" && !k.shelf.IsZero():
		says, k.shelf = "unshelved", time.Time{}
	case mask == "suppressed" && k.suppressed:
		says, k.suppressed = "unsuppressed", false
	case mask == "out_of_service" && k.outOfService:
		says, k.outOfService = "in_service", false
	default:
		return false
	}
	of := t
	if t == nil {
		of = m.spindle()
	}
	a := Alert{State: says, Reason: reason, Tool: of.name, Severity: "info", Alarm: m.word(of), Incident: of.alarm.incident}
	if reason == "expired" {
		a.At = at
	}
	if of == m.spindle() && m.Alarm() == "raised" {
		a.Severity = "warning" // an alarm calls now
	}
	m.alert(a)
	if of == m.spindle() {
		m.announceAt([]*alarm{&of.alarm}, at, "", a.At) // masks are not of shadows
	}
	return true
}

func (m *alarmBook) masksOf(t *tool) *masks {
	if t == nil {
		return &m.masks
	}
	return &t.masks
}

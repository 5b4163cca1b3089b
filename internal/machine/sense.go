package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/statement"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// failures are the flags of a sensor that has no values, or none that mean anything.
const failures = signal.Dropout | signal.Flatline | signal.NonFinite

// sensed is what a window says of a sensor, of the clock of several, or of all those
// of one rate.
type sensed struct {
	subject   string         // channel, sensor of several, or rate; empty: the clock
	flags     signal.Quality // the flags that are a fault; 0: none
	channels  []string       // of a rate, or of a sensor of several
	covered   bool           // the notice of its rate is raised and says it
	guarded   bool           // a model's guard knows the sensor
	absent    bool           // the tool's reference has no value of it
	disagrees bool           // with the other sensors, by its features
	detail    string         // of the clock: what is wrong with it, and the remedy; empty if that is not known
	gain      float64        // what it reads of what it read at the tool's reference, which is taken out; 0 or 1: the same
}

// Flags of a sensor that the tool's reference has no value of, of one that disagrees with the others, and of one whose gain has stepped, next to the names of
// package signal.
const (
	absent      = "no_reference"
	disagreeing = "disagrees"
	stepped     = "gain"
)

// byFeatures is what a model's guard says of its sensors in a window, by their features.
type byFeatures struct {
	sensors []sensed
	judged  bool   // otherwise it says nothing of them
	absent  []bool // by channel, see model.Verdict; nil: none
}

// namedRule is of what the guard says of a sensor.
var namedRule = alarm.Hysteresis{K: model.NamedIn, N: model.NamedOf, Hold: time.Minute}

// sensorsOf returns the sensors that the guard of a judge's model knows, of which a window says nothing yet. One of a single
// channel goes by its name; a strange model may know some without a channel.
func sensorsOf(judge *model.Judge, layout *signal.Layout) (out []sensed) {
	for k, name := range judge.Sensors() {
		s := sensed{subject: name, guarded: true}
		for _, c := range judge.SensorChannels(k) {
			s.channels = append(s.channels, layout.Channels()[c].Name)
		}
		if len(s.channels) == 1 {
			s.subject, s.channels = s.channels[0], nil
		}
		out = append(out, s)
	}
	return out
}

// byFeatures returns what the guard of a model says of its sensors.
func (m *Model) byFeatures(v model.Verdict) byFeatures {
	b := byFeatures{m.sensors, v.Found != nil, v.Absent}
	if !b.judged {
		return b
	}
	b.sensors = slices.Clone(m.sensors)
	for k := range b.sensors {
		if channels := m.judge.SensorChannels(k); len(channels) > 0 {
			b.sensors[k].flags, b.sensors[k].disagrees = v.Found[channels[0]], v.Disagrees == k
			b.sensors[k].gain = v.Gains[k]
			b.sensors[k].absent = len(channels) > 1 && v.Absent != nil && !slices.ContainsFunc(channels, func(c int) bool { return !v.Absent[c] })
		}
	}
	return b
}

// of returns what it says of a subject, nil if nothing.
func (b byFeatures) of(subject string) *sensed {
	return find(b.sensors, func(s sensed) bool { return s.subject == subject })
}

// failed reports whether the features say that a channel has failed, or the sensor that it is of.
func (b byFeatures) failed(channel string) bool {
	return slices.ContainsFunc(b.sensors, func(s sensed) bool {
		return s.flags != 0 && (s.subject == channel || slices.Contains(s.channels, channel))
	})
}

func (s sensed) bad() bool { return s.flags != 0 || s.absent || s.disagrees || s.stepped() }

func (s sensed) stepped() bool { return s.gain != 0 && s.gain != 1 }

// sensing is what a window says of its sensors, and the notices that it moves.
type sensing struct {
	notices  *notices
	decision *Decision
	faults   []signal.Quality // by channel: the flags that are faults
	of       byFeatures
	layout   *signal.Layout
	w        *window.Window
	r        *event.Result // of the window
}

// advise takes the flags of each channel that are faults. Flags of a
// clock concern all channels that it samples; they make one notice. A failure of all
// channels of a rate, which share a card or a source, makes one notice, too: while it is
// raised, the channels' own notices are not published. A sensor that is found to have failed by its features has
// a notice under its name.
func (x *sensing) advise() {
	faults, of, layout := x.faults, x.of, x.layout
	all := x.w.AllQuality() & signal.ClockOff // which no channel has for a fault
	for _, q := range faults {
		all |= q
	}
	if all == 0 && of.absent == nil && len(*x.notices) == 0 && !slices.ContainsFunc(of.sensors, sensed.bad) {
		return
	}
	lone := func(i int) bool { // the reference lacks channel i, and not the whole of a sensor
		name := layout.Channels()[i].Name
		return of.absent != nil && of.absent[i] && !slices.ContainsFunc(of.sensors, func(g sensed) bool { return g.absent && slices.Contains(g.channels, name) })
	}
	x.dismiss()
	covered := make([]bool, len(faults))
	for _, g := range layout.Groups() {
		if x.senseRate(g) {
			for _, i := range g.Channels {
				covered[i] = true
			}
		}
	}
	for i, q := range faults {
		s, rule := sensed{subject: layout.Channels()[i].Name, flags: q &^ signal.Clock, covered: covered[i], absent: lone(i)}, sensorRule
		if g := of.of(s.subject); g != nil {
			s.flags, s.guarded, s.disagrees, s.gain, rule = s.flags|g.flags, true, g.disagrees, g.gain, namedRule
			if !s.bad() && !of.judged {
				continue // while nothing is cut no feature tells that it is well again
			}
		}
		x.sense(s, rule)
	}
	x.sense(sensed{flags: all & signal.Clock, detail: clockDetail(all, layout, x.w)}, clockRule)
	for _, g := range of.sensors {
		if g.channels != nil && of.judged {
			x.sense(g, namedRule)
		}
	}
	if len(x.decision.Advisories) == 0 {
		return
	}
	left := len(faults)
	for i, q := range faults {
		if q != 0 || of.absent != nil && of.absent[i] || of.failed(layout.Channels()[i].Name) {
			left--
		}
	}
	verdict := fmt.Sprintf("tool verdict on %d channels", left)
	if x.r.Verdict == event.SensorFault {
		verdict = "no tool verdict"
	}
	for i := range x.decision.Advisories {
		a := &x.decision.Advisories[i]
		if a.Kind != event.SensorAdvisory {
			continue
		}
		if a.State == event.Raised {
			a.Text += "; " + verdict
			x.notices.of(a.Kind, a.Subject).Text = a.Text
		}
	}
}

// clockDetail says what is wrong with a clock of which a window has the flags, and what to do.
func clockDetail(q signal.Quality, layout *signal.Layout, w *window.Window) string {
	var all []string
	if rates := w.WrongRates(layout); q&signal.RateError != 0 && rates != "" {
		all = append(all, rates+": correct `rate` in the layout, or the sensors")
	}
	if q&signal.ClockOff != 0 {
		all = append(all, w.WrongDates(layout)+": set the clocks of the sensors, or of their ingester")
	}
	return strings.Join(all, "; ")
}

// doubted returns the channels and sensors of which an advisory stands.
func (n notices) doubted() (names []string) {
	for _, n := range n {
		if n.Kind == event.SensorAdvisory && n.Raised && n.Subject != "" {
			names = append(names, n.Subject)
		}
	}
	return names
}

// dismiss clears the advisories of channels, and of rates, that the layout does not have, and of sensors that
// the model does not know: no window says any more that they are over.
func (x *sensing) dismiss() {
	for _, n := range slices.Clone(*x.notices) {
		if n.Kind != event.SensorAdvisory || n.Subject == "" || x.layout.Index(n.Subject) >= 0 || x.of.of(n.Subject) != nil ||
			slices.ContainsFunc(x.layout.Groups(), func(g signal.Group) bool { return len(g.Channels) > 1 && rateName(g) == n.Subject }) {
			continue
		}
		was := n.Notice
		a := x.notices.publish(x.decision, n.Kind, n.Subject, x.notices.of(n.Kind, n.Subject).Clear(), was, byResult(x.r))
		switch {
		case a == nil:
		case n.Silent:
			x.decision.Advisories = x.decision.Advisories[:len(x.decision.Advisories)-1]
		default:
			a.Channels = n.Channels
			a.Text = fmt.Sprintf("%s: advisory of %s is over, no layout or model has %s any more", event.ShortName(x.r.Machine), statement.Clock(a.Since), n.Subject)
		}
	}
}

// rateName returns what the advisory of all channels of a rate is about.
func rateName(g signal.Group) string { return strconv.FormatFloat(g.Rate, 'f', -1, 64) + "Hz" }

// senseRate takes what a window says of all channels of a rate together, which is
// whether all have failed, and reports whether their notice stands.
func (x *sensing) senseRate(g signal.Group) bool {
	subject := rateName(g)
	if len(g.Channels) < 2 || x.layout.Index(subject) >= 0 {
		return false // it is a channel's
	}
	s := sensed{subject: subject}
	failed := 0
	for _, i := range g.Channels {
		if q := x.faults[i] & failures; q != 0 {
			s.flags |= q
			failed++
		}
		s.channels = append(s.channels, x.layout.Channels()[i].Name)
	}
	if failed < len(g.Channels) {
		s.flags = 0
	}
	x.sense(s, sensorRule)
	n := x.notices.of(event.SensorAdvisory, subject)
	return n != nil && n.Raised
}

// sense takes what a window says of a sensor, of the clock, or of a rate.
func (x *sensing) sense(s sensed, rule alarm.Hysteresis) {
	n := x.notices.of(event.SensorAdvisory, s.subject)
	bad := s.bad()
	if n == nil && !bad {
		return
	}
	q, was, silent := s.flags, signal.Quality(0), false
	if n != nil {
		q, was, silent = q|n.Flags, n.Flags, n.Silent
	}
	if s.absent {
		q = 0 // whether it works now does not matter to this tool
	}
	a := x.notices.observe(x.decision, event.SensorAdvisory, s.subject, bad, rule, x.r)
	n = x.notices.of(event.SensorAdvisory, s.subject)
	if n != nil {
		n.Flags, n.Channels = q, s.channels
	}
	switch {
	case a != nil && a.State == event.Raised && s.covered:
		n.Silent = true
		fallthrough
	case a != nil && a.State == event.Cleared && silent:
		x.decision.Advisories = x.decision.Advisories[:len(x.decision.Advisories)-1]
		return
	case silent && bad && !s.covered: // what covered it is over, and this is not
		n.Silent = false
		a = x.notices.publish(x.decision, event.SensorAdvisory, s.subject, alarm.Raised, n.Notice, byResult(x.r))
	case a == nil && n != nil && n.Raised && was.Status() == signal.MaintenanceRequired && q.Status() != was.Status(): // who hears of warnings only has not heard of it
		x.notices.publish(x.decision, event.SensorAdvisory, s.subject, alarm.Cleared, n.Notice, byResult(x.r)).Text =
			fmt.Sprintf("%s: SENSOR %s: what was advised at %s is worse now, and is advised again", event.ShortName(x.r.Machine), cmp.Or(s.subject, "clock"), statement.Clock(n.Since))
		a = x.notices.publish(x.decision, event.SensorAdvisory, s.subject, alarm.Raised, n.Notice, byResult(x.r))
	case a == nil && n != nil && n.Raised && s.absent && was != 0: // it says something else now
		a = x.notices.publish(x.decision, event.SensorAdvisory, s.subject, alarm.Raised, n.Notice, byResult(x.r))
	case a == nil:
		return
	}
	a.Channels = s.channels
	name, again, of := "SENSOR "+s.subject, " normal again;", ""
	switch {
	case s.channels != nil && s.guarded:
		of = fmt.Sprintf(" of channels %s,", listed(s.channels))
	case s.channels != nil: // some may have failed still, and say so themselves
		name, again, of = "SENSORS "+s.subject, ":", fmt.Sprintf(" of all %d channels, %s,", len(s.channels), listed(s.channels))
	case s.subject == "":
		name += "clock"
	}
	name = event.ShortName(x.r.Machine) + ": " + name
	switch {
	case a.State == event.Cleared && q == 0:
		a.Text = fmt.Sprintf("%s normal again; advisory of %s is over", name, statement.Clock(a.Since))
		return
	case a.State == event.Cleared:
		a.Text = fmt.Sprintf("%s%s %s of %s%s is over", name, again, strings.Join(statement.Flags(q), ", "), statement.Clock(a.Since), of)
		return
	}
	const check = ": check its mounting, cable and amplifier"
	what := strings.Join(statement.Flags(q), ", ") + strings.TrimSuffix(of, ",")
	a.Status, a.Flags = q.Status(), statement.Flags(q)
	switch {
	case q != 0 && s.detail != "":
		what += ": " + s.detail
	case q != 0:
	case s.absent:
		a.Status, a.Flags = signal.OutOfSpecification, []string{absent}
		what = "it gave no values while the reference of this tool was learnt, so it takes no part in the verdict until the next tool"
	case s.stepped():
		a.Status, a.Flags = signal.OutOfSpecification, []string{stepped}
		what = fmt.Sprintf("it reads %.2g times what it did at the beginning of this tool, since %s at the latest, and no other sensor has changed; the verdict does not count that", s.gain, statement.Clock(a.Since)) + check
	default:
		a.Status, a.Flags = signal.OutOfSpecification, []string{disagreeing}
		what = "it disagrees with the other sensors since " + statement.Clock(a.Since) + ", the verdict leans on those" + check
	}
	if a.Status == signal.MaintenanceRequired {
		a.Severity = "info"
	}
	status := strings.ReplaceAll(a.Status, "_", " ")
	a.Text = fmt.Sprintf("%s %s%s: %s", name, strings.ToUpper(status[:1]), status[1:], what)
}

// listed names channels, or the first of many.
func listed(names []string) string {
	const most = 16
	if n := len(names) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n)
	}
	return strings.Join(names, ", ")
}

package route

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // zones have names on a machine without any, too

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/event"
)

// Filter says which events a route is for. An empty field lets all pass.
type Filter struct {
	Severity string   `yaml:"severity"` // the least: "info" or "warning"
	Kinds    []string `yaml:"kinds"`    // alert, evidence, advisory, or kinds of advisories
	States   []string `yaml:"states"`   // of alerts and advisories
	Machines []string `yaml:"machines"` // patterns of paths or, without a slash, of their last part
	Hours    string   `yaml:"hours"`    // "06:00-14:00"; events that were sent in this time of day
	Zone     string   `yaml:"zone"`     // of the hours, such as Europe/Madrid; empty: the zone of this machine
}

// Words that a filter may name.
var (
	severities = []string{"info", "warning"}
	kinds      = append([]string{"alert", "advisory", "evidence"}, words(event.AdvisoryKinds)...)
	states     = words(event.AlertStates)
)

// words returns the names in a list of package event.
func words[T ~string](list []T) (all []string) {
	for _, w := range list {
		all = append(all, string(w))
	}
	return all
}

// filter is a Filter that was read.
type filter struct {
	Filter
	from, to time.Duration // of the day; equal: all of it
	zone     *time.Location
}

// badKey reports a value of the configuration that cannot be used.
func badKey(key, format string, args ...any) error {
	return &config.KeyError{Key: key, Err: fmt.Errorf(format, args...)}
}

// wrong is badKey if something is wrong, and nil otherwise.
func wrong(is bool, key, format string, args ...any) error {
	return config.Under(key, config.Wrong(is, format, args...))
}

// oneOf reports a word of a list that a filter may not name.
func oneOf(key string, list, allowed []string) error {
	for i, w := range list {
		if !slices.Contains(allowed, w) {
			return badKey(fmt.Sprintf("%s[%d]", key, i), "%q: choose of %q", w, allowed)
		}
	}
	return nil
}

func (f Filter) compile() (c filter, err error) {
	c = filter{Filter: f, zone: time.Local}
	err = cmp.Or(
		wrong(f.Severity != "" && !slices.Contains(severities, f.Severity), "severity", "%q: choose one of %q, the least that passes", f.Severity, severities),
		oneOf("kinds", f.Kinds, kinds),
		oneOf("states", f.States, states))
	for i, m := range f.Machines {
		_, bad := path.Match(m, "")
		err = cmp.Or(err, wrong(bad != nil || m == "", fmt.Sprintf("machines[%d]", i), "%q: write a path, in which * stands for all but a slash, or the last part of one", m))
	}
	if f.Zone != "" {
		zone, bad := time.LoadLocation(f.Zone)
		err = cmp.Or(err,
			wrong(bad != nil, "zone", "%q: name one as in Europe/Madrid or UTC", f.Zone),
			wrong(f.Hours == "", "zone", "%s of which hours? Add `hours: \"06:00-14:00\"`, or remove it", f.Zone))
		c.zone = zone
	}
	if f.Hours != "" {
		from, to, ok := strings.Cut(f.Hours, "-")
		var err1, err2 error
		c.from, err1 = ofDay(from)
		c.from %= 24 * time.Hour
		c.to, err2 = ofDay(to)
		err = cmp.Or(err, wrong(!ok || errors.Join(err1, err2) != nil || c.from == c.to, "hours", "%q: write two times of day as in \"06:00-14:00\" or, over midnight, \"22:00-06:00\"", f.Hours))
	}
	return c, err
}

// ofDay returns the time of day that text says, from 00:00 to 24:00.
func ofDay(text string) (time.Duration, error) {
	if text = strings.TrimSpace(text); text == "24:00" {
		return 24 * time.Hour, nil
	}
	t, err := time.Parse("15:04", text)
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, err
}

// stops reports why an event does not pass, or an empty text if it does.
func (f *filter) stops(e *Event) string {
	if f.Severity == "warning" && e.Severity == "info" {
		return "its severity is info, `severity` wants warning"
	}
	if w := e.word(); len(f.Kinds) > 0 && !slices.Contains(f.Kinds, w) && !(e.Type == event.AdvisoryType && slices.Contains(f.Kinds, "advisory")) {
		return fmt.Sprintf("it is of kind %q, `kinds` are %q", w, f.Kinds)
	}
	if len(f.States) > 0 && e.State != "" && !slices.Contains(f.States, e.State) {
		return fmt.Sprintf("its state is %s, `states` are %q", e.State, f.States)
	}
	if len(f.Machines) > 0 && !slices.ContainsFunc(f.Machines, func(p string) bool { return matches(p, e) }) {
		return fmt.Sprintf("its machine is %s, `machines` are %q", e.Machine, f.Machines)
	}
	if f.from != f.to && !f.within(e.Sent) {
		return fmt.Sprintf("it was sent at %s, `hours` are %s", e.Sent.In(f.zone).Format("15:04 MST"), f.Hours)
	}
	return ""
}

func matches(pattern string, e *Event) bool {
	name := e.Machine
	if !strings.Contains(pattern, "/") {
		name = event.ShortName(e.Machine)
	}
	ok, _ := path.Match(pattern, name) // it was checked
	return ok
}

// within reports whether the hours hold t. A shift that begins at 22:00 ends on
// the next day. Hours follow the local clock, also in summer.
func (f *filter) within(t time.Time) bool {
	t = t.In(f.zone)
	d := time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second
	if f.from < f.to {
		return d >= f.from && d < f.to
	}
	return d >= f.from || d < f.to
}

package shift

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Plan is when shifts begin, each day alike. Each lasts until the next begins.
type Plan struct {
	starts []clock
	zone   *time.Location
}

// clock is minutes since midnight.
type clock int

func (c clock) String() string {
	if c%60 == 0 {
		return fmt.Sprintf("%02d", c/60)
	}
	return fmt.Sprintf("%02d:%02d", c/60, c%60)
}

// ParsePlan reads when shifts begin, such as "06-14-22" or "6:30-18:30": hours, with
// minutes or without, between hyphens. At most 24.
func ParsePlan(s string, zone *time.Location) (Plan, error) {
	p := Plan{zone: zone}
	for _, word := range strings.Split(strings.TrimSpace(s), "-") {
		t, err := time.Parse("15:04", word)
		if err != nil {
			t, err = time.Parse("15", word)
		}
		if err != nil {
			return Plan{}, fmt.Errorf("shifts %.60q: %.20q is not a time of day: say when shifts begin, such as 06-14-22 or 6:30-18:30", s, word)
		}
		p.starts = append(p.starts, clock(t.Hour()*60+t.Minute()))
	}
	slices.Sort(p.starts)
	if len(p.starts) > 24 || len(slices.Compact(slices.Clone(p.starts))) < len(p.starts) {
		return Plan{}, fmt.Errorf("shifts %.60q: at most 24 shifts, each with a start of its own", s)
	}
	return p, nil
}

func (p Plan) String() string {
	words := make([]string, len(p.starts))
	for i, c := range p.starts {
		words[i] = c.String()
	}
	return strings.Join(words, "-")
}

// at returns the start of the i-th shift of the day that t is in, counted on into
// other days.
func (p Plan) at(t time.Time, i int) time.Time {
	n := len(p.starts)
	days := (i%n+n)%n - i
	c := int(p.starts[(i%n+n)%n])
	return time.Date(t.Year(), t.Month(), t.Day()-days/n, c/60, c%60, 0, 0, p.zone)
}

// Around returns the start of the shift that t is in, and of the next one.
func (p Plan) Around(t time.Time) (start, end time.Time) {
	t = t.In(p.zone)
	i := len(p.starts)
	for p.at(t, i).After(t) {
		i--
	}
	for !p.at(t, i+1).After(t) { // clocks that were put back repeat an hour
		i++
	}
	return p.at(t, i), p.at(t, i+1)
}

// name returns a shift in words.
func (p Plan) name(start, end time.Time) string {
	c := func(t time.Time) clock { return clock(t.Hour()*60 + t.Minute()) }
	return fmt.Sprintf("%s %v-%v", start.Format("Mon 2 Jan"), c(start), c(end.In(p.zone)))
}

var isoWeek = regexp.MustCompile(`^(\d{4})-W(\d{2})$`)

// Week returns the shifts of an ISO week, such as "2026-W47": from the first that
// begins on its Monday to the first of the Monday after. Empty is the last whole
// week before now.
func (p Plan) Week(s string, now time.Time) (since, until time.Time, err error) {
	first := func(monday time.Time) time.Time { return p.at(monday, 0) }
	monday := func(t time.Time) time.Time {
		t = t.In(p.zone)
		return time.Date(t.Year(), t.Month(), t.Day()-(int(t.Weekday())+6)%7, 0, 0, 0, 0, p.zone)
	}
	if s == "" {
		end := first(monday(now))
		if now.Before(end) {
			end = first(monday(now).AddDate(0, 0, -7))
		}
		return first(monday(end).AddDate(0, 0, -7)), end, nil
	}
	m := isoWeek.FindStringSubmatch(s)
	if m == nil {
		return since, until, fmt.Errorf("week %.40q: expected one as in 2026-W47", s)
	}
	year, _ := strconv.Atoi(m[1])
	week, _ := strconv.Atoi(m[2])
	// The fourth of January is always in week 1. (ISO 8601-1, 5.2.2.3)
	day := monday(time.Date(year, 1, 4, 12, 0, 0, 0, p.zone)).AddDate(0, 0, 7*(week-1))
	if y, w := day.AddDate(0, 0, 3).ISOWeek(); y != year || w != week {
		return since, until, fmt.Errorf("week %s: that year has no such week", s)
	}
	return first(day), first(day.AddDate(0, 0, 7)), nil
}

package signal

import (
	"math"
	"strconv"
	"time"
)

// firstClock is the first time that HasClock takes for one of a clock: 10⁹ s after
// 1970, which is 2001-09-09 01:46:40 UTC.
var firstClock = time.Unix(1e9, 0)

// HasClock reports whether a clock gave t. A recording that does not say when it began
// counts from 1970, so an earlier time is t.Unix seconds from its start, and no date.
func HasClock(t time.Time) bool { return !t.Before(firstClock) }

// FormatTime returns t in a layout of [time.Time.Format]. A time that no clock gave is
// counted from the start of its recording instead: "second 75.25", to the millisecond.
func FormatTime(t time.Time, layout string) string {
	if HasClock(t) {
		return t.Format(layout)
	}
	s := float64(t.Unix()) + math.Round(float64(t.Nanosecond())/1e6)/1e3
	return "second " + strconv.FormatFloat(math.Round(s*1e3)/1e3, 'f', -1, 64)
}

package feed

import (
	"fmt"
	"math"
	"time"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/signal"
)

// near is how far from the host's clock a time may be to count as meant for now.
const near = 36 * time.Hour

// units are what senders take for nanoseconds since 1970, in seconds: clocks of other programs.
var units = []struct {
	seconds float64   // of one
	epoch   time.Time // from which it counts
	name    string
}{
	{1, table.Since1970, "seconds since 1970: multiply by 1e9"},
	{1e-3, table.Since1970, "milliseconds since 1970: multiply by 1e6"},
	{1e-6, table.Since1970, "microseconds since 1970: multiply by 1e3"},
	{1e-9, table.Since1904, "nanoseconds since 1904, as LabVIEW counts: subtract 2082844800 s"},
	{1e-6, table.Since1904, "microseconds since 1904, as LabVIEW counts: subtract 2082844800 s, then multiply by 1e3"},
	{1e-3, table.Since1904, "milliseconds since 1904, as LabVIEW counts: subtract 2082844800 s, then multiply by 1e6"},
	{1, table.Since1904, "seconds since 1904, as LabVIEW counts: subtract 2082844800 s, then multiply by 1e9"},
	{86400, table.Since1899, "days since 1900, as Excel counts: subtract 25569 days, then multiply by 86400e9"},
	{86400e-9, table.Since1899, "days since 1900, as Excel counts, times 1e9: subtract 25569 days, then multiply by 86400e9"},
	{1e-9, table.Since1899, "days since 1900, as Excel counts, in nanoseconds: subtract 25569 days"},
	{1e-7, table.Since1970, "tenths of microseconds since 1970: multiply by 100"},
	{1, table.Since1900, "seconds since 1900, as NTP counts: subtract 2208988800 s, then multiply by 1e9"},
	{1e-9, table.Since1900, "nanoseconds since 1900: subtract 2208988800 s"},
	{1, date(1980, 1, 6), "seconds since 1980, as GPS counts: add 315964800 s and subtract the leap seconds, then multiply by 1e9"},
	{1e-9, date(1980, 1, 6), "nanoseconds since 1980, as GPS counts: add 315964800 s and subtract the leap seconds"},
	{1, date(2001, 1, 1), "seconds since 2001, as macOS counts: add 978307200 s, then multiply by 1e9"},
	{1e-7, date(1, 1, 1), "ticks of .NET, 100 ns since the year 1: subtract 62135596800 s, then multiply by 100"},
	{1e-7, date(1601, 1, 1), "Windows file time, 100 ns since 1601: subtract 11644473600 s, then multiply by 100"},
}

func date(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// Times before earliest, and more than maxFuture ahead of the host's clock, are of no samples: no window has such a date. A host's clock
// that is before released was never set, and bounds nothing.
var earliest, released = date(2000, 1, 1), date(2026, 1, 1)

const maxFuture = 366 * 24 * time.Hour

// checkTime reports a time that is about the host's time once it is taken for another unit or epoch, and one that
// cannot be. A time that is wrong in another way is taken, see maxAhead: the host's clock may be the wrong one.
func checkTime(at, now time.Time) error {
	ns := at.UnixNano()
	off := func(seconds float64, epoch time.Time) float64 {
		return math.Abs(float64(ns)*seconds + float64(epoch.Unix()-now.Unix()))
	}
	if off(1e-9, table.Since1970) < near.Seconds() {
		return nil
	}
	for _, u := range units {
		if off(u.seconds, u.epoch) < near.Seconds() {
			return fmt.Errorf("time_ns: %d: must be nanoseconds since 1970, UTC; it looks like %s", ns, u.name)
		}
	}
	switch {
	case at.Before(earliest):
		return fmt.Errorf("time_ns: %d is %s: a time before 2000 is not taken: set the clock of the sensor", ns, at.Format(time.RFC3339))
	case now.After(released) && at.Sub(now) > maxFuture:
		return fmt.Errorf("time_ns: %d is %s: a time more than a year ahead of this computer's clock, %s, is not taken: set the clock of the sensor, or of this computer", ns, at.Format(time.RFC3339), now.Format(time.RFC3339))
	}
	return nil
}

// How far the time of a frame may be from the host's clock: senders keep frames during an outage, and send them
// late. Between two notices of it passes an hour.
const (
	maxAhead    = 5 * time.Minute
	maxBehind   = 24 * time.Hour
	noticeEvery = time.Hour
)

// misdatedText returns what is to be said of so many frames, the last of which is off.
func misdatedText(at time.Time, ahead time.Duration, frames uint64) error {
	side := "ahead of"
	if ahead < 0 {
		side, ahead = "behind", -ahead
	}
	return fmt.Errorf("feed: a frame is of %s, %s %s this computer's clock (%d such frames since the last warning): set the clock of the sensor or of this computer; until then windows have these dates and the flag %v",
		at.Format(time.RFC3339), ahead.Round(time.Second), side, frames, signal.ClockOff)
}

package feed

import (
	"fmt"
	"math"
	"time"
)

// near is how far from the host's clock a time may be to count as meant for now.
const near = 36 * time.Hour

// units are what senders take for nanoseconds since 1970, in seconds: clocks of other programs.
var units = []struct {
	seconds float64   // of one
	epoch   time.Time // from which it counts
	name    string
}{
	{1, unix, "seconds since 1970: multiply by 1e9"},
	{1e-3, unix, "milliseconds since 1970: multiply by 1e6"},
	{1e-6, unix, "microseconds since 1970: multiply by 1e3"},
	{1e-9, labView, "nanoseconds since 1904, as LabVIEW counts: subtract 2082844800 s"},
	{1e-6, labView, "microseconds since 1904, as LabVIEW counts: subtract 2082844800 s, then multiply by 1e3"},
	{1e-3, labView, "milliseconds since 1904, as LabVIEW counts: subtract 2082844800 s, then multiply by 1e6"},
	{1, labView, "seconds since 1904, as LabVIEW counts: subtract 2082844800 s, then multiply by 1e9"},
	{86400, excel, "days since 1900, as Excel counts: subtract 25569 days, then multiply by 86400e9"},
	{86400e-9, excel, "days since 1900, as Excel counts, times 1e9: subtract 25569 days, then multiply by 86400e9"},
	{1e-9, excel, "days since 1900, as Excel counts, in nanoseconds: subtract 25569 days"},
	{1e-7, time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC), "Windows file time, 100 ns since 1601: subtract 11644473600 s, then multiply by 100"},
}

var (
	unix    = time.Unix(0, 0).UTC()
	labView = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	excel   = time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
)

// checkTime reports a time_ns that is not positive, or that is about the host's time once it is taken for another
// unit or epoch. A time that is wrong in another way is taken: the host's clock may be the wrong one.
func checkTime(ns int64, now time.Time) error {
	if ns <= 0 {
		return fmt.Errorf("time_ns: %d: must be nanoseconds since 1970, UTC", ns)
	}
	off := func(seconds float64, epoch time.Time) float64 {
		return math.Abs(float64(ns)*seconds + float64(epoch.Unix()-now.Unix()))
	}
	if off(1e-9, unix) < near.Seconds() {
		return nil
	}
	for _, u := range units {
		if off(u.seconds, u.epoch) < near.Seconds() {
			return fmt.Errorf("time_ns: %d: must be nanoseconds since 1970, UTC; it looks like %s", ns, u.name)
		}
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

// Seldom counts what happens as often as senders like, for a log that says it at most once in a while. Its zero value is
// ready; it is not safe for concurrent use.
type Seldom struct {
	said  time.Time
	count uint64 // since then
}

// Note counts one more. It reports whether that is to be said now, as the first since so long ago, and how many it stands for.
func (s *Seldom) Note(now time.Time, every time.Duration) (count uint64, say bool) {
	s.count++
	if !s.said.IsZero() && now.Sub(s.said).Abs() < every {
		return 0, false
	}
	count = s.count
	*s = Seldom{said: now}
	return count, true
}

// checkDate returns what is to be said of the time of a frame, nil mostly. Misdated counts the frames whose time is implausible.
func checkDate(misdated *Seldom, at, now time.Time) error {
	ahead := at.Sub(now)
	if ahead <= maxAhead && -ahead <= maxBehind {
		return nil
	}
	n, say := misdated.Note(now, noticeEvery)
	if !say {
		return nil
	}
	side := "ahead of"
	if ahead < 0 {
		side, ahead = "behind", -ahead
	}
	return fmt.Errorf("feed: a frame is of %s, %s %s this computer's clock (%d such frames since the last warning): set the clock of the sensor or of this computer; until then windows have wrong dates",
		at.Format(time.RFC3339), ahead.Round(time.Second), side, n)
}

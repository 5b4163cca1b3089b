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

// misdated counts frames whose time is implausible. Its zero value is ready; it is not safe for concurrent use.
type misdated struct {
	said  time.Time
	count int // of frames since then
}

// check returns what is to be said of the time of a frame, nil mostly.
func (m *misdated) check(at, now time.Time) error {
	ahead := at.Sub(now)
	if ahead <= maxAhead && -ahead <= maxBehind {
		return nil
	}
	m.count++
	if !m.said.IsZero() && now.Sub(m.said).Abs() < noticeEvery {
		return nil
	}
	n, side := m.count, "ahead of"
	m.said, m.count = now, 0
	if ahead < 0 {
		side, ahead = "behind", -ahead
	}
	return fmt.Errorf("feed: a frame is of %s, %s %s this computer's clock (%d such frames since the last warning): set the clock of the sensor or of this computer; until then windows have wrong dates",
		at.Format(time.RFC3339), ahead.Round(time.Second), side, n)
}

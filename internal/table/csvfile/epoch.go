package csvfile

import "time"

// The instants from which programs count times.
var (
	Since1970 = time.Unix(0, 0).UTC()
	Since1900 = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)   // NTP
	Since1904 = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)   // LabVIEW
	Since1899 = time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC) // Excel
)

// EpochOf returns what numbers count whose first one is v, if their size tells it: their unit in seconds, and from when. Seconds between 2001 and 2060, and
// milliseconds, microseconds and nanoseconds of this century, count from 1970; larger seconds count from 1904, as LabVIEW's do, or from 1900 if that
// would be in the future. Smaller numbers count from the start of the recording: ok is false.
func EpochOf(v float64, now time.Time) (unit float64, from time.Time, what string, ok bool) {
	const last, labView = 2.84e9, 6.2e9 // 2060 since 1970, 2100 since 1904
	switch {
	case v >= 1e9 && v < last:
		return 1, Since1970, "seconds since 1970", true
	case v >= last && v < labView:
		if v < now.Sub(Since1904).Seconds()+86400 {
			return 1, Since1904, "seconds since 1904, as LabVIEW counts", true
		}
		return 1, Since1900, "seconds since 1900, as NTP counts", true
	}
	for _, u := range []struct {
		unit float64
		name string
	}{{1e-3, "milliseconds"}, {1e-6, "microseconds"}, {1e-9, "nanoseconds"}} {
		if s := v * u.unit; s >= 9.46e8 && s < 4.1e9 {
			return u.unit, Since1970, u.name + " since 1970", true
		}
	}
	return 0, time.Time{}, "", false
}

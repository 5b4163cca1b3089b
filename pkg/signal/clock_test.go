package signal

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestFormatTime(t *testing.T) {
	for _, tc := range []struct {
		at    time.Time
		clock bool
		want  string
	}{
		{time.Unix(0, 0).UTC(), false, "second 0"},
		{time.Unix(75, 250_400_000).UTC(), false, "second 75.25"},
		{time.Unix(-1, 900_000_000).UTC(), false, "second -0.1"},
		{time.Unix(0, 999_999_999).In(time.FixedZone("", 3600)), false, "second 1"},
		{time.Unix(999_999_999, 999_000_000).UTC(), false, "second 999999999.999"},
		{time.Unix(1e9, 0).UTC(), true, "01:46:40"},
		{time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC), true, "06:00:00"},
	} {
		if got := FormatTime(tc.at, time.TimeOnly); got != tc.want || HasClock(tc.at) != tc.clock {
			t.Errorf("%v is %q, clock %v; want %q, %v", tc.at, got, HasClock(tc.at), tc.want, tc.clock)
		}
	}
}

// A time has a clock in every zone or in none, and later times keep it.
func TestHasClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(-1e10, 1e10).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
		zone := time.FixedZone("", rapid.IntRange(-14*3600, 14*3600).Draw(t, "zone"))
		if HasClock(at) != (at.Unix() >= 1e9) || HasClock(at) != HasClock(at.In(zone)) {
			t.Fatalf("%v: %v", at, HasClock(at))
		}
		if got := FormatTime(at, time.RFC3339); (got == at.Format(time.RFC3339)) != HasClock(at) {
			t.Fatalf("%v is written %q", at, got)
		}
	})
}

package shift

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func berlin(t testing.TB) *time.Location {
	t.Helper()
	l, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("this machine knows no time zones: ", err)
	}
	return l
}

func mustPlan(t rapid.TB, s string, zone *time.Location) Plan {
	t.Helper()
	p, err := ParsePlan(s, zone)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParsePlan(t *testing.T) {
	for s, want := range map[string]string{"06-14-22": "06-14-22", "22-6-14": "06-14-22", "6:30-18:30": "06:30-18:30", "00": "00", " 7 ": "07"} {
		if p, err := ParsePlan(s, time.UTC); err != nil || p.String() != want {
			t.Errorf("%q: %v, %v", s, p, err)
		}
	}
	for _, s := range []string{"", "6-14-", "24", "6:60", "six", "06-06", "06:00-6", "-6", "00-01-02-03-04-05-06-07-08-09-10-11-12-13-14-15-16-17-18-19-20-21-22-23-23:30"} {
		if p, err := ParsePlan(s, time.UTC); err == nil || !strings.Contains(err.Error(), "shifts ") {
			t.Errorf("%q: %v, %v", s, p, err)
		}
	}
}

func FuzzParsePlan(f *testing.F) {
	f.Add("06-14-22")
	f.Add("6:30-18:30")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePlan(s, time.UTC)
		if err != nil {
			return
		}
		if again, err := ParsePlan(p.String(), time.UTC); err != nil || again.String() != p.String() {
			t.Errorf("%q is written %q: %v", s, p, err)
		}
	})
}

// Every moment is in exactly one shift, and shifts follow each other without a gap,
// also where clocks are put on or back.
func TestShiftsCoverTime(t *testing.T) {
	zone := berlin(t)
	rapid.Check(t, func(t *rapid.T) {
		p := mustPlan(t, rapid.SampledFrom([]string{"06-14-22", "00", "2:30-14", "03", "02-03"}).Draw(t, "plan"), zone)
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.Int64Range(0, 365*86400).Draw(t, "second")) * time.Second)
		start, end := p.Around(at)
		if at.Before(start) || !at.Before(end) {
			t.Fatalf("%v is not in %v to %v", at.In(zone), start, end)
		}
		if again, _ := p.Around(end); !again.Equal(end) {
			t.Fatalf("after %v to %v comes one from %v", start, end, again)
		}
		if first, _ := p.Around(end.Add(-1)); !first.Equal(start) {
			t.Fatalf("the last moment of %v to %v is in one from %v", start, end, first)
		}
	})
}

func TestWeek(t *testing.T) {
	zone := berlin(t)
	p := mustPlan(t, "14-22-06", zone)
	at := func(s string) time.Time {
		v, err := time.ParseInLocation("2006-01-02 15:04", s, zone)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, tc := range []struct{ week, now, since, until, why string }{
		{"2026-W47", "2026-11-30 00:00", "2026-11-16 06:00", "2026-11-23 06:00", "from Monday's first shift to the next Monday's"},
		{"", "2026-11-24 10:00", "2026-11-16 06:00", "2026-11-23 06:00", "the last whole one"},
		{"", "2026-11-23 05:59", "2026-11-09 06:00", "2026-11-16 06:00", "the night shift of Sunday is not over"},
		{"2026-W53", "2027-02-01 00:00", "2026-12-28 06:00", "2027-01-04 06:00", "a long year"},
		{"2027-W01", "2027-02-01 00:00", "2027-01-04 06:00", "2027-01-11 06:00", ""},
		{"2026-W13", "2027-02-01 00:00", "2026-03-23 06:00", "2026-03-30 06:00", "clocks are put on: an hour less"},
	} {
		since, until, err := p.Week(tc.week, at(tc.now))
		if err != nil || !since.Equal(at(tc.since)) || !until.Equal(at(tc.until)) {
			t.Errorf("%s at %s: %v to %v, %v; want %s to %s: %s", tc.week, tc.now, since, until, err, tc.since, tc.until, tc.why)
		}
	}
	for _, s := range []string{"2026", "2026-47", "2026-W00", "2027-W53", "2026-W54", "W47"} {
		if since, _, err := p.Week(s, at("2026-11-24 10:00")); err == nil {
			t.Errorf("%s begins at %v", s, since)
		}
	}
}

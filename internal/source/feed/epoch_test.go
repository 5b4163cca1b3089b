package feed

import (
	"strings"
	"testing"
	"time"
)

// A time of another unit or epoch is refused with what it looks like; what is old, or ahead, is taken.
func TestCheckTime(t *testing.T) {
	for _, now := range []time.Time{
		time.Date(2026, 11, 27, 20, 50, 0, 0, time.UTC), time.Date(2040, 2, 29, 0, 0, 0, 0, time.UTC),
	} {
		s := now.Unix()
		days := float64(s)/86400 + 25569
		for name, c := range map[string]struct {
			ns   int64
			want string // empty: it is taken
		}{
			"now":                  {now.UnixNano(), ""},
			"an hour behind":       {now.Add(-time.Hour).UnixNano(), ""},
			"another time zone":    {now.Add(14 * time.Hour).UnixNano(), ""},
			"a month behind":       {now.AddDate(0, -1, 0).UnixNano(), ""},
			"ten years behind":     {now.AddDate(-10, 0, 0).UnixNano(), ""},
			"a year ahead":         {now.AddDate(1, 0, 0).UnixNano(), ""},
			"zero":                 {0, "must be nanoseconds since 1970"},
			"s":                    {s, "looks like seconds since 1970"},
			"ms":                   {s * 1e3, "looks like milliseconds since 1970"},
			"us, a day behind":     {(s - 86400) * 1e6, "looks like microseconds since 1970"},
			"LabVIEW":              {(s + 2082844800) * 1e9, "looks like nanoseconds since 1904"},
			"LabVIEW s":            {s + 2082844800, "looks like seconds since 1904"},
			"LabVIEW ms":           {(s + 2082844800) * 1e3, "looks like milliseconds since 1904"},
			"Excel days":           {int64(days), "looks like days since 1900"},
			"Excel days as if s":   {int64(days * 1e9), "looks like days since 1900, as Excel counts, times 1e9"},
			"Excel days in ns":     {int64(days * 86400e9), "looks like days since 1900, as Excel counts, in nanoseconds"},
			"Windows file time":    {(s + 11644473600) * 1e7, "looks like Windows file time"},
			"the largest possible": {1<<63 - 1, ""},
		} {
			err := checkTime(c.ns, now)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s at %v: %d: %v, want %q", name, now, c.ns, err, c.want)
			}
		}
	}
}

func TestFrameOfAnotherUnit(t *testing.T) {
	d := newDecoder(Config{Machine: drill, Layout: layout(t)})
	d.now = func() time.Time { return time.Date(2026, 11, 27, 20, 50, 0, 0, time.UTC) }
	for ns, want := range map[string]string{"1795812600": "seconds since 1970", "1795812600000000000": ""} {
		_, err := d.decode([]byte(`{"session": 1, "first": 0, "time_ns": ` + ns + `, "channels": {"c": [1, 2]}}`))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", ns, err, want)
		}
	}
}

// Times far from the host's clock, on both sides, cause a warning once in an hour, with the count of frames.
func TestMisdated(t *testing.T) {
	now := time.Date(2026, 11, 27, 20, 50, 0, 0, time.UTC)
	var m Seldom
	for _, c := range []struct {
		at    time.Time
		after time.Duration // since the step before
		want  string
	}{
		{now, 0, ""}, {now.Add(-time.Hour), 0, ""}, {now.Add(time.Minute), 0, ""},
		{now.Add(10 * time.Minute), 0, "10m0s ahead of this computer's clock (1 such frames"},
		{now.AddDate(-1, 0, 0), 0, ""}, {now.AddDate(174, 0, 0), time.Minute, ""},
		{time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC), time.Hour, "1970-01-02T00:00:00Z, "},
		{now.AddDate(-1, 0, 0), 2 * time.Hour, "behind this computer's clock (1 such frames"},
	} {
		now = now.Add(c.after)
		err := checkDate(&m, c.at, now)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v at %v: %v, want %q", c.at, now, err, c.want)
		}
	}
}

package feed

import (
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

// A time of another unit or epoch is refused with what it looks like, and one that no sample can have; what is old, or ahead, is taken.
func TestCheckTime(t *testing.T) {
	t.Parallel()
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
			"more than a year":     {now.AddDate(1, 0, 3).UnixNano(), "more than a year ahead of this computer's clock"},
			"the year 2200":        {date(2200, 1, 1).UnixNano(), "is 2200-01-01T00:00:00Z: a time more than a year ahead"},
			"since it was started": {5e9, "is 1970-01-01T00:00:05Z: a time before 2000 is not taken"},
			"before 2000":          {date(1999, 12, 31).UnixNano(), "a time before 2000"},
			"reset to 2000":        {date(2000, 1, 1).UnixNano(), ""},
			"NTP s":                {s + 2208988800, "looks like seconds since 1900"},
			"NTP ns":               {(s + 2208988800) * 1e9, "looks like nanoseconds since 1900"},
			"GPS s":                {s - 315964800, "looks like seconds since 1980"},
			"GPS ns":               {(s - 315964800) * 1e9, "looks like nanoseconds since 1980"},
			"macOS":                {s - 978307200, "looks like seconds since 2001"},
			"ticks of .NET":        {(s + 62135596800) * 1e7, "looks like ticks of .NET"},
			"100 ns":               {s * 1e7, "looks like tenths of microseconds since 1970"},
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
			"the largest possible": {1<<63 - 1, "a time more than a year ahead"},
		} {
			err := checkTime(time.Unix(0, c.ns).UTC(), now)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s at %v: %d: %v, want %q", name, now, c.ns, err, c.want)
			}
		}
	}
}

// The clock of a host that was never set bounds nothing ahead of it.
func TestCheckTimeOfHostWithoutClock(t *testing.T) {
	t.Parallel()
	if err := checkTime(date(2026, 11, 27), date(1970, 1, 1)); err != nil {
		t.Error(err)
	}
}

// A frame whose time cannot be is refused with its reason and counted with its samples; one that is off is taken, and its block has the
// flag: a warning says so once in an hour, with the number of frames.
func TestDates(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 20, 50, 0, 0, time.UTC)
	var said []string
	f := open(Config{Machine: drill, Layout: layout(t), Notify: func(n Notice) {
		if n.Err != nil {
			said = append(said, n.Err.Error())
		}
	}})
	f.check.now = func() time.Time { return now }
	first := int64(0) // counters go on: such a frame is taken at any time
	for _, c := range []struct {
		at    time.Time
		after time.Duration // since the step before
		flag  signal.Quality
		want  string // in the notice; empty: there is none
	}{
		{at: now}, {at: now.Add(-23 * time.Hour)}, {at: now.Add(4 * time.Minute)},
		{now.Add(10 * time.Minute), 0, signal.ClockOff, "10m0s ahead of this computer's clock (1 such frames"},
		{now.AddDate(0, -10, 0), 0, signal.ClockOff, ""},
		{now.AddDate(0, 0, 1), time.Minute, signal.ClockOff, ""},
		{date(2002, 1, 1), time.Hour, signal.ClockOff, "behind this computer's clock (3 such frames"},
		{date(1970, 1, 2), 0, 0, "a time before 2000"},
		{date(2200, 1, 2), 0, 0, "a time more than a year ahead"},
		{time.Unix(0, now.Unix()), 0, 0, "looks like seconds since 1970"},
	} {
		said, now = nil, now.Add(c.after)
		b := bare(f.Layout(), 0, 1, first, first+40, "T1")
		b.Time = c.at
		before, acked, answer := f.Stats(), false, Taken
		f.deliver(arrival{block: b, ack: func() { acked = true }, answer: func(r Reason, _ error) { answer = r }})
		f.admit(<-f.in)
		a, taken := f.names.next()
		if taken {
			f.complete(a.block)
			first += 40
		}
		if got := strings.Join(said, "; "); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%v: said %q, want %q", c.at, got, c.want)
		}
		refused := f.Stats().Unused[Date] - before.Unused[Date]
		switch s := f.Stats(); {
		case c.flag == 0 && c.want != "":
			if taken || refused != 80 || s.Refused[Date] != before.Refused[Date]+1 || answer != Date || !acked {
				t.Errorf("%v: taken %v, %d samples refused, answer %v", c.at, taken, refused, answer)
			}
		case !taken || refused != 0 || a.block.Quality != c.flag:
			t.Errorf("%v: taken %v with %v, %d samples refused", c.at, taken, a.block.Quality, refused)
		}
	}
}

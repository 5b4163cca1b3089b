package source

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

// Rows that share a stamp follow each other at the rate, from the stamp on. A stamp too late is a gap; one with too many rows is an error.
func TestCoarseStamps(t *testing.T) {
	start := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	second := func(at float64) string { return start.Add(time.Duration(at * 1e9)).Format(time.DateTime) }
	for name, tc := range map[string]struct {
		rate  float64
		rows  int
		at    func(i int) string
		end   float64 // seconds from the start above, of the last row; −1: any
		gaps  int64   // samples; −1: any
		error string
	}{
		"stamps to the second":              {10, 300, func(i int) string { return second(float64(i / 10)) }, 29.9, 0, ""},
		"the first second is not whole":     {10, 300, func(i int) string { return second(float64((i + 7) / 10)) }, 29.9, 0, ""},
		"9 or 11 rows of a second":          {10, 300, func(i int) string { return second(float64((i + i/10%2) / 10)) }, 29.9, 0, ""},
		"Unix seconds":                      {10, 300, func(i int) string { return fmt.Sprint(start.Unix() + int64(i/10)) }, 29.9, 0, ""},
		"Unix milliseconds of 100 ms":       {50, 300, func(i int) string { return fmt.Sprint(start.UnixMilli() + int64(i/5*100)) }, 5.98, 0, ""},
		"minutes":                           {1, 300, func(i int) string { return start.Add(time.Duration(i/60) * time.Minute).Format("02.01.2006 15:04") }, 299, 0, ""},
		"a gap of ten seconds":              {10, 300, func(i int) string { return second(float64(i/10 + i/150*10)) }, 39.9, 100, ""},
		"twice as many rows":                {10, 300, func(i int) string { return second(float64(i / 20)) }, 0, 0, "comes too early: so many rows have this time or the one before that they are more than 10 a second: correct `rate`"},
		"it stands still":                   {10, 300, func(int) string { return second(1) }, 0, 0, "comes too early"},
		"it goes back":                      {10, 300, func(i int) string { return second(float64(i / 10 % 20)) }, 0, 0, "is not later than the row before"},
		"half as often":                     {100, 300, func(i int) string { return fmt.Sprintf("%.3f", float64(i)/50) }, 0, 0, "ends 100 rows that come 50 times a second"},
		"a row lost now and then":           {100, 300, func(i int) string { return fmt.Sprintf("%.3f", float64(start.Unix())+float64(i+i/10)/100) }, 3.28, 29, ""},
		"twice as often as the layout says": {100, 300, func(i int) string { return fmt.Sprintf("%.3f", float64(i)/200) }, 0, 0, "ends 20 rows that come 200 times a second"},
		"late, and then at once":            {100, 3000, func(i int) string { return fmt.Sprintf("%.3f", float64(start.Unix())+float64(max(i, i/300*300+8))/100) }, -1, -1, ""},
		"a clock that runs fast":            {10, 100_000, func(i int) string { return second(math.Floor(float64(i) * 1.0001 / 10)) }, -1, 0, ""},
		"a clock that runs slowly":          {10, 100_000, func(i int) string { return second(math.Floor(float64(i) * 0.9999 / 10)) }, -1, 0, ""},
		"blocks of 10 and 30": {100, 3000, func(i int) string {
			return start.Add(time.Duration(i/40*40+i%40/10*10*min(1, i%40/30+1)%31) * 10 * time.Millisecond).Format("2006-01-02 15:04:05.000")
		}, -1, -1, ""},
		"blocks at 1 kHz": {1000, 3000, func(i int) string {
			return start.Add(time.Duration(3+i/20*20) * time.Millisecond).Format("2006-01-02 15:04:05.000")
		}, -1, 0, ""},
		"blocks of Unix milliseconds":                                {1000, 3000, func(i int) string { return fmt.Sprint(start.UnixMilli() + int64(i/20*20) + 7) }, -1, 0, ""},
		"fine stamps, one twice":                                     {100, 300, func(i int) string { return fmt.Sprintf("%.2f", float64(start.Unix())+float64(i-i/205)/100) }, 2.99, 0, ""},
		"one row of a hundred has the time before it":                {1000, 3000, func(i int) string { return fmt.Sprintf("%.3f", float64(start.Unix())+float64(i-max(i%100-98, 0))/1000) }, 2.999, 0, ""},
		"one row of ten has the time before it":                      {1000, 3000, func(i int) string { return fmt.Sprintf("%.3f", float64(i-max(i%10-8, 0))/1000) }, 0, 0, "is not later than the row before"},
		"fine stamps, and a row that is there two times after a gap": {100, 300, func(i int) string { return fmt.Sprintf("%.2f", float64(start.Unix())+float64(i-i/205+i/100*50)/100) }, 3.99, 100, ""},
	} {
		var b strings.Builder
		b.WriteString("t,ax\n")
		for i := range tc.rows {
			fmt.Fprintf(&b, "%s,%d\n", tc.at(i), i%7)
		}
		src, err := newText(strings.NewReader(b.String()), "f.csv", layout(t, tc.rate, "ax"), signal.Recording{Time: "t"}, tableOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var next, gaps int64
		var last time.Time
		for {
			b, err := src.Next(t.Context())
			if errors.Is(err, io.EOF) && tc.error == "" {
				break
			}
			if err != nil {
				if tc.error == "" || !strings.Contains(err.Error(), tc.error) {
					t.Errorf("%s: %v, want %q", name, err, tc.error)
				}
				break
			}
			gaps += b.First - next
			next = b.First + int64(b.Len())
			last = b.Time.Add(seconds(float64(b.Len()-1) / tc.rate))
		}
		if off := last.Sub(start).Seconds() - tc.end; tc.error == "" && (tc.end >= 0 && (off > 1e-6 || off < -1e-6) || tc.gaps >= 0 && gaps != tc.gaps) {
			t.Errorf("%s: ends %v s off, %d samples are missing, want %d", name, off, gaps, tc.gaps)
		}
	}
}

// Rows that come a little more often or seldom than the layout says are warned of.
func TestRateOfRows(t *testing.T) {
	for rate, want := range map[float64]string{100: "", 100.5: "", 101.6: "ends 2000 rows that come 101.6 times a second", 98.4: "ends 2000 rows that come 98.4 times a second", 130: "ends 100 rows that come 130 times a second"} {
		var b strings.Builder
		b.WriteString("t,ax\n")
		for i := range 3000 {
			fmt.Fprintf(&b, "%.6f,%d\n", float64(i)/rate, i%7)
		}
		said := ""
		src, err := newText(strings.NewReader(b.String()), "f.csv", layout(t, 100, "ax"), signal.Recording{Time: "t"}, tableOptions{Warn: func(text string) { said += text }})
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = src.Next(t.Context())
		}
		if !errors.Is(err, io.EOF) || (said == "") != (want == "") || !strings.Contains(said, want) || strings.Count(said, "rows that come") > 1 {
			t.Errorf("%v: %v, %q, want %q", rate, err, said, want)
		}
	}
}

// A cell may be a time of the day, or a number with its unit.
func TestSecondsOf(t *testing.T) {
	for cell, want := range map[string]float64{
		"06:00:00,250": 21600.25, "250 ms": 0.25, "0.25s": 0.25, "1793599200000ms": 1793599200, "1793599200,5 s": 1793599200.5, "90 sec": 90,
		"": -1, "ms": -1, "12": -1, "12 g": -1, "noon": -1, "46328 excel": -1,
	} {
		got, ok := SecondsOf(cell)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %v, %v, want %v", cell, got, ok, want)
		}
	}
}

func TestLooksLikeDate(t *testing.T) {
	for cell, want := range map[string]bool{
		"3/4/2026 06:00": true, "11.02.26 6:00 Uhr": true, "Nov 2, 2026 6:00 AM": true, "Mon Nov 2 06:00:00 2026": true, "2026-306T06:00:00": true, "2 November 2026": true, "06:00:00": true, "06h00m00": true,
		"T1": false, "ok": false, "1.5": false, "192": false, "12 mm": false, "": false, "worn": false, "Fz 12": false,
	} {
		if got := LooksLikeDate(cell); got != want {
			t.Errorf("%q: %v", cell, got)
		}
	}
}

// Where the beginning of a file that is looked at ends does not matter: a date that is cut off there is not a number with a decimal point.
func TestDecimalCommaWhereTheLookEnds(t *testing.T) {
	const row = "02.11.2026;06:00:00,050;-0,32;9,94\n"
	for n := range len(row) {
		text := "Datum" + strings.Repeat("m", n) + ";Uhrzeit;ax;Strom\n" + strings.Repeat(row, readAhead/len(row)+2)
		d, err := dialectOf(signal.Recording{})
		if err != nil {
			t.Fatal(err)
		}
		d.complete([]byte(text[:readAhead]))
		if !d.comma {
			t.Errorf("cut off at %q: no decimal comma", text[readAhead-12:readAhead])
		}
	}
}

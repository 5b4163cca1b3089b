package inspect

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The rate is the number of rows by their time, however loggers write times: with jitter, in steps, in any unit, with gaps.
func TestRateByTimes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	start := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	even := func(rate float64) func(int) float64 { return func(i int) float64 { return float64(i) / rate } }
	jitter := func(rate, by float64) func(int) float64 {
		return func(i int) float64 { return float64(i)/rate + by*(2*rng.Float64()-1) }
	}
	places, place := make([]int, 3000), 0 // of rows, one in ten of which is lost
	for i := range places {
		if places[i], place = place, place+1; rng.IntN(10) == 0 {
			place++
		}
	}
	for name, tc := range map[string]struct {
		header string
		rows   int
		at     func(i int) float64 // seconds
		write  string              // verb of the seconds, or how a date and time is written
		rate   float64
		gaps   int
		seconds,
		start float64 // since the start above
		doubt bool
	}{
		"seconds":                           {"time", 3000, even(100), "%.2f", 100, 0, 30, -1, false},
		"4 ms of jitter":                    {"time", 3000, jitter(100, 0.004), "%.4f", 100, 0, 30, -1, false},
		"4 ms of jitter, few rows":          {"time", 60, jitter(100, 0.004), "%.4f", 100, 0, 0.6, -1, false},
		"jitter at a rate of no name":       {"time", 3000, jitter(97.65625, 0.004), "%.4f", 97.656, 0, 30.72, -1, false},
		"stamps to the second":              {"Time", 3000, even(10), time.DateTime, 10, 0, 300, 0, false},
		"stamps to 0.1 s":                   {"time", 2000, func(i int) float64 { return float64(i/5) / 10 }, "%.1f", 50, 0, 40, -1, false},
		"German":                            {"Zeit", 500, even(20), "02.01.2006 15:04:05,000", 20, 0, 25, 0, false},
		"American":                          {"Timestamp", 500, even(20), "1/2/2006 3:04:05.000 PM", 20, 0, 25, 0, false},
		"milliseconds since 1970":           {"timestamp", 500, even(20), "ms", 20, 0, 25, 0, false},
		"nanoseconds since 1970":            {"RawTime", 500, even(20), "ns", 20, 0, 25, 0, false},
		"seconds since 1904":                {"t", 500, even(20), "1904", 20, 0, 25, 0, false},
		"a gap":                             {"time", 3000, func(i int) float64 { return float64(i)/100 + 2.5*float64(i/1500) }, "%.2f", 100, 1, 30, -1, false},
		"a gap with jitter":                 {"time", 3000, func(i int) float64 { return jitter(100, 0.003)(i) + 2.5*float64(i/1500) }, "%.4f", 100, 1, 30, -1, false},
		"a row a minute":                    {"time [s]", 400, func(i int) float64 { return 60 * float64(i) }, "%.0f", 1. / 60, 0, 24000, -1, false},
		"a gap of one row":                  {"time", 400, func(i int) float64 { return even(100)(i + i/200) }, "%.2f", 100, 1, 4, -1, false},
		"a clock that runs fast":            {"time", 3000, func(i int) float64 { return 1.0004 * float64(i) / 100 }, "%.4f", 99.96, 0, 30.012, -1, false},
		"rows lost one by one, with jitter": {"time", 3000, func(i int) float64 { return (float64(places[i]) + 0.2*float64(i*7%11)/11) / 100 }, "%.5f", 100, 287, 30, -1, false},
		"a first second that is not whole":  {"Time", 3000, func(i int) float64 { return float64((i + 63) / 100) }, time.DateTime, 100, 0, 30, 0, false},
		"a second that comes twice":         {"Time", 3000, func(i int) float64 { return float64(i) + float64(i*7%11)/12 }, time.DateTime, 1, 0, 3000, 0, false},
		"twice as fast in the middle":       {"time", 3000, func(i int) float64 { return float64(i)/100 - float64(max(0, i-1500))/200 }, "%.3f", 100, 0, 30, -1, true},
	} {
		var b strings.Builder
		b.WriteString(tc.header + ",ax\n")
		for i := range tc.rows {
			s := tc.at(i)
			at := start.Add(time.Duration(s * 1e9))
			var cell string
			switch tc.write {
			case "ms":
				cell = fmt.Sprint(at.UnixMilli())
			case "ns":
				cell = fmt.Sprint(at.UnixNano())
			case "1904":
				cell = fmt.Sprintf("%.3f", float64(at.UnixMilli())/1e3+2082844800)
			default:
				if cell = at.Format(tc.write); strings.HasPrefix(tc.write, "%") {
					cell = fmt.Sprintf(tc.write, s)
				}
			}
			fmt.Fprintf(&b, "%q,%d\n", cell, i%7)
		}
		path := filepath.Join(t.TempDir(), "day.csv")
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Inspect(t.Context(), path, Options{})
		if err != nil || s.Err != nil || s.Clock == nil {
			t.Errorf("%s: %v, %+v", name, err, s)
			continue
		}
		rate := s.Channels[1].Rate
		seconds := s.Channels[1].Duration().Seconds()
		if rate < tc.rate*0.9999 || rate > tc.rate*1.0001 || seconds < tc.seconds*0.999 || seconds > tc.seconds*1.001 || s.GapCount != tc.gaps || (s.Clock.Doubt != "") != tc.doubt {
			t.Errorf("%s: %v Hz, %v s, %d gaps %v, doubt %q; want %v, %v, %d, %v", name, rate, seconds, s.GapCount, s.Gaps, s.Clock.Doubt, tc.rate, tc.seconds, tc.gaps, tc.doubt)
		}
		if got := s.Start.Sub(start); tc.start >= 0 && got.Abs() > time.Microsecond {
			t.Errorf("%s: begins %v off", name, got)
		}
	}
}

// A measurement file of LabVIEW that has no times says its rate in its heading.
func TestRateOfTheHeading(t *testing.T) {
	text := "LabVIEW Measurement\t\nWriter_Version\t2\nReader_Version\t2\nDecimal_Separator\t,\nX_Columns\tNo\nDate\t2026/11/02\nTime\t06:00:00,0\n***End_of_Header***\t\n\t\nChannels\t2\t\t\n" +
		"Samples\t100\t100\t\nX0\t0,0\t0,0\t\nDelta_X\t0,001\t0,001\t\n***End_of_Header***\t\t\t\nX_Value\tax\tFz\tComment\n" + strings.Repeat("\t1,5\t2\n", 99) + "\t0,5\t1\tended\n"
	path := filepath.Join(t.TempDir(), "a.lvm")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Inspect(t.Context(), path, Options{})
	if err != nil || s.Err != nil || len(s.Channels) != 2 || s.Channels[0].Name != "ax" || s.Channels[0].Rate != 1000 || s.Channels[0].Count != 100 || s.Channels[0].Max != 1.5 {
		t.Errorf("%v, %+v", err, s)
	}
}

// A name says that a column holds times, in several languages and with a number behind it; T1 and T [°C] are temperatures.
func TestNamesTime(t *testing.T) {
	for name, want := range map[string]bool{
		"t": true, "T [s]": true, "t (ms)": true, "Time": true, "time_ms": true, "Zeit [s]": true, "Time 1": true, "X_Value": true, "time (UTC)": true,
		"T1": false, "T_2": false, "T [°C]": false, "T1 (°C)": false, "ax": false, "": false, "1": false,
	} {
		if got := NamesTime(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}

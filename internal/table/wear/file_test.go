package wear

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/pkg/signal"
)

// TestReadGolden reads a file as people keep it and writes it as we do.
func TestReadGolden(t *testing.T) {
	ms, warnings, err := Load("testdata/wear.csv")
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	var out bytes.Buffer
	if err := Write(&out, ms); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "wear.golden.csv", out.String())
}

// TestReadErrors keeps every error and warning in testdata/errors.golden, to be
// read as the person reads it who keeps the file.
func TestReadErrors(t *testing.T) {
	const header = "machine,tool,hole,time,vb_mean_um,vb_max_um,state\n"
	var out strings.Builder
	for _, tc := range []struct {
		name, text string
		warns      bool
	}{
		{name: "empty file", text: ""},
		{name: "workbook", text: "PK\x03\x04\x14\x00"},
		{name: "UTF-16", text: "\xff\xfet\x00o\x00"}, // it is read
		{name: "column twice", text: "tool,state,Tool\nT1,worn,T1\n"},
		{name: "inches in the header", text: "tool,vb_max_in\nT1,0.3\n"},
		{name: "both units", text: "tool,vb_max_mm,vb_um\nT1,0.3,300\n"},
		{name: "kilometres", text: "tool,vb_mm\nT1,1e300\n"},
		{name: "no tool column", text: "hole,vb_max_um\nH1,3\n"},
		{name: "no wear column", text: "tool,hole\nT1,H1\n"},
		{name: "no tool column, other names", text: "file;Verschleiß;Datum;a;b\nx;3;;;\n"},
		{name: "end without a beginning in the header", text: "tool,end,state\nT1,5,worn\n"},
		{name: "beginning without an end in the header", text: "tool,from,state\nT1,5,worn\n"},
		{name: "two names of one column", text: "tool,vb_um,vb_max_um\nT1,5,5\n"},
		{name: "no recording in a row", text: "recording,state\nday1,worn\n,worn\n"},
		{name: "negative seconds", text: "tool,time,state\nT1,-0.5,worn\n"},
		{name: "local time", text: "tool,time,state\nT1,2026-01-31 14:05:09,worn\n"},
		{name: "time before 1970", text: "tool,time,state\nT1,1969-12-31T23:59:59Z,worn\n"},
		{name: "end before the beginning", text: "tool,from,to,state\nT1,9.5,5,worn\n"},
		{name: "interval without length", text: "tool;from;to;state\nT1;9,5;9.5;worn\n"},
		{name: "end alone", text: "tool,from,to,state\nT1,,5,worn\n"},
		{name: "seconds and a time", text: "tool,time,to,state\nT1,0,2026-01-31T14:05:09Z,worn\n"},
		{name: "decimal comma in quotes", text: "tool,vb_um\nT1,\"3,5\"\n"},
		{name: "thousands", text: "tool;vb_um\nT1;1.203,5\n"},
		{name: "point after commas", text: "tool;vb_um\nT1;0,5\nT2;1.203\n"},
		{name: "comma after points", text: "tool\tvb_um\nT1\t0.5\nT2\t1,203\n"},
		{name: "a point between thousands", text: "tool;vb_um\nT1;95\nT1;845\nT1;1.350\nT2;2.010\n"},
		{name: "a comma between thousands", text: "tool;vb_um\nT1;1,350\nT1;120\n"},
		{name: "too few cells", text: "tool;state;note\nT1;worn\n"},
		{name: "whole tool twice", text: "tool,state\nT1,new\nT2,new\nT1,worn\n"},
		{name: "no tool in a row", text: "tool,vb_max_um\nT1,3\n,4\n"},
		{name: "text in wear", text: "tool,vb_max_um\nT1,much\n"},
		{name: "infinite wear", text: "tool,vb_max_um\nT1,Inf\n"},
		{name: "negative wear", text: "tool,vb_mean_um\nT1,-3\n"},
		{name: "mean above maximum", text: header + "m,T1,H1,,300,200,\n"},
		{name: "time of day", text: header + "m,T1,H1,14:05,,200,\n"},
		{name: "year that RFC 3339 cannot write in UTC", text: header + "m,T1,H1,9999-12-31T23:30:00-01:00,,200,\n"},
		{name: "decimal comma", text: "tool,vb_max_um\nT1,3\nT1,3,5\n"},
		{name: "stray quote", text: "tool,vb_max_um\nT1,3\"\n"},
		{name: "open quote", text: "tool,vb_max_um\nT1,\"3\nT2,4\n"},
		{name: "bad UTF-8", text: "tool,vb_max_um\nT\x81,3\n"},
		{name: "measured twice", text: header + "m,T1,H1,,,200,\nm,T2,H1,,,200,\nm,T1,H1,,,210,\n"},
		{name: "wear falls", text: "tool,vb_mean_um,vb_max_um,time\nT1,20,90,2026-01-31T14:02:00Z\nT2,5,5,\nT1,30,50,2026-01-31T14:01:00Z\nT1,,80,2026-01-31T14:03:00Z\n", warns: true},
		{name: "millimetres by their size", text: "tool,hole,vb_max_um\nT1,1,0.1\nT1,2,0.35\n", warns: true},
	} {
		ms, warnings, err := readMeasurements(strings.NewReader(tc.text), "wear.csv")
		fmt.Fprintf(&out, "# %s\n", tc.name)
		switch {
		case tc.warns && (err != nil || len(warnings) == 0 || len(ms) == 0):
			t.Errorf("%s: %d measurements, warnings %q, error %v; want warnings only", tc.name, len(ms), warnings, err)
		case !tc.warns && (err == nil || ms != nil):
			t.Errorf("%s: %d measurements, error %v; want an error only", tc.name, len(ms), err)
		}
		for _, w := range warnings {
			fmt.Fprintln(&out, w)
		}
		if err != nil {
			fmt.Fprintln(&out, err)
		}
		fmt.Fprintln(&out)
	}
	golden.Check(t, "errors.golden", out.String())

	if _, _, err := Load("testdata/absent.csv"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: %v, want os.ErrNotExist", err)
	}
}

func TestReadWarnsOfNothingUsual(t *testing.T) {
	for name, text := range map[string]string{
		"no rows":                     "tool,state\n",
		"zero wear":                   "tool,hole,vb_max_um\nT1,1,0\nT1,2,0\n",
		"equal wear":                  "tool,hole,vb_max_um\nT1,1,50\nT1,2,50\n",
		"rising by time, not by line": "tool,time,vb_max_um\nT1,2026-01-31T14:02:00Z,80\nT1,2026-01-31T14:01:00Z,50\n",
		"a new tool starts again":     "tool,vb_max_um\nT1,80\nT2,5\n",
		"another machine's tool":      "machine,tool,vb_max_um\na,T1,80\nb,T1,5\n",
	} {
		if _, warnings, err := readMeasurements(strings.NewReader(text), "wear.csv"); err != nil || len(warnings) > 0 {
			t.Errorf("%s: warnings %q, error %v", name, warnings, err)
		}
	}
}

// measurements draws measurements of a few tools, each at its own hole and time.
func measurements(t *rapid.T) []Measurement {
	word := rapid.Custom(func(t *rapid.T) string {
		s := strings.TrimSpace(rapid.StringMatching(`[A-Za-z0-9 ,"';µ/.-]{0,8}`).Draw(t, "word"))
		if table.IsMissing(s) { // not known
			return ""
		}
		return s
	})
	moment := func(from int64) time.Time {
		return time.Unix(0, rapid.OneOf(rapid.Int64Range(from, from+1e12), rapid.Int64Range(max(from, 1e18), 1<<61)).Draw(t, "time")).UTC()
	}
	var ms []Measurement
	for i := range rapid.IntRange(0, 20).Draw(t, "n") {
		um := rapid.OneOf(rapid.Just(nan), rapid.Float64Range(0, 1e6))
		m := Measurement{
			Machine:   word.Draw(t, "machine"),
			Tool:      "T" + rapid.Map(word, toolName).Draw(t, "tool"),
			Recording: word.Draw(t, "recording"),
			Hole:      fmt.Sprintf("H%d", i),
			VBMeanUM:  um.Draw(t, "mean"),
			VBMaxUM:   um.Draw(t, "max"),
			State:     word.Draw(t, "state"),
			Class:     word.Draw(t, "class"),
		}
		if m.Recording != "" && rapid.Bool().Draw(t, "recording only") {
			m.Tool = ""
		}
		if m.VBMeanUM > m.VBMaxUM {
			m.VBMeanUM, m.VBMaxUM = m.VBMaxUM, m.VBMeanUM
		}
		if rapid.Bool().Draw(t, "timed") {
			m.Time = moment(0)
			if rapid.Bool().Draw(t, "interval") {
				m.End = moment(m.Time.UnixNano() + 1)
				if signal.HasClock(m.Time) != signal.HasClock(m.End) {
					m.End = time.Time{}
				}
			}
		}
		ms = append(ms, m)
	}
	return ms
}

// equal compares measurements as text, so that NaN equals NaN. Where they were read from
// does not count.
func equal(a, b []Measurement) bool {
	text := func(ms []Measurement) string {
		ms = slices.Clone(ms)
		for i := range ms {
			ms[i].Where = ""
		}
		return fmt.Sprintf("%+v", ms)
	}
	return text(a) == text(b)
}

func TestReadReturnsWhatWriteWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := measurements(t)
		var out bytes.Buffer
		if err := Write(&out, ms); err != nil {
			t.Fatal(err)
		}
		got, _, err := readMeasurements(&out, "wear.csv")
		if err != nil {
			t.Fatal(err)
		}
		if !equal(got, ms) {
			t.Fatalf("read %+v\nwrote %+v", got, ms)
		}
	})
}

// What Excel writes in Europe, and what it writes as text with tabs, reads as what it
// writes with commas.
func TestReadOtherSeparators(t *testing.T) {
	want, _, err := readMeasurements(strings.NewReader("Tool,from,to,vb_um,state,note\n\"T 1, left\",0,12.5,0.35,new,\"a;b\"\nT2,2026-01-31T15:00:00+01:00,2026-01-31T14:30:00Z,1200,\"worn;\",\n"), "wear.csv")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"semicolons, decimal commas": "\ufeffTool;from;to;vb_um;state;note\r\nT 1, left;0;12,5;0,35;new;\"a;b\"\r\nT2;2026-01-31T15:00:00+01:00;2026-01-31T14:30:00Z;1200;\"worn;\";\r\n",
		"semicolons, decimal points": "Tool;from;to;vb_um;state;note\nT 1, left;0;12.5;0.35;new;\"a;b\"\nT2;2026-01-31T15:00:00+01:00;2026-01-31T14:30:00Z;1200;\"worn;\";\n",
		"sep= and a comment":         "sep=;\n# by Kim\nTool;from;to;vb_um;state;note\nT 1, left;0;12,5;0,35;new;\"a;b\"\nT2;2026-01-31T15:00:00+01:00;2026-01-31T14:30:00Z;1200;\"worn;\";\n",
		"tabs":                       "\r\nTool\tfrom\tto\tvb_um\tstate\tnote\r\nT 1, left\t0\t12,5\t0,35\tnew\ta;b\r\nT2\t2026-01-31T15:00:00+01:00\t2026-01-31T14:30:00Z\t1200\tworn;\t\r\n",
		"mm":                         "Tool,from,to,vb_mm,state,note\n\"T 1, left\",0,12.5,0.00035,new,\"a;b\"\nT2,2026-01-31T15:00:00+01:00,2026-01-31T14:30:00Z,1.2,\"worn;\",\n",
		"a semicolon in quotes":      "Tool,from,to,vb_um,state,\"note;\"\n\"T 1, left\",0,12.5,0.35,new,x\nT2,2026-01-31T14:00:00Z,2026-01-31T14:30:00Z,1200,worn;,\n",
	} {
		if got, _, err := readMeasurements(strings.NewReader(text), "wear.csv"); err != nil || !equal(got, want) {
			t.Errorf("%s: %+v, %v\nwant %+v", name, got, err, want)
		}
	}
}

// What people and programs write above a table, and next to its names, reads as what Write writes.
func TestReadHeadersOfStrangers(t *testing.T) {
	want, _, err := readMeasurements(strings.NewReader("tool,time,vb_mean_um,vb_max_um\nT1,0.5,,120\nT2,1,80,310.5\n"), "wear.csv")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a unit in brackets":            "Tool,time,vb_mean_um,vb [µm]\nT1,0.5,,120\nT2,1,80,310.5\n",
		"mm in parentheses":             "tool,time [s],VBmean (mm),VB (mm)\nT1,0.5,,0.12\nT2,1,0.08,0.3105\n",
		"German":                        "Tool;time;vb_mean_um;Verschleiß [µm]\nT1;0,5;;120\nT2;1;80;310,5\n",
		"in Windows-1252":               "Tool;time;vb_mean_um;Verschlei\xdf [\xb5m]\nT1;0,5;;120\nT2;1;80;310,5\n",
		"a title":                       "Wear of the week;;;\n\nTool;time;vb_mean_um;Flank wear [um]\nT1;0,5;;120\nT2;1;80;310,5\n",
		"a title with commas":           "Wear, by Kim, in µm\nTool;time;vb_mean_um;vb_um\nT1;0,5;;120\nT2;1;80;310,5\n",
		"facts and comments":            "Machine:,lathe 3\nOperator:,Kim\n# under the microscope\ntool,time,vb_mean_um,vb_um\nT1,0.5,,120\nT2,1,80,310.5\n",
		"a row of units":                "tool,time,VB mean,VB\n,s,µm,µm\nT1,0.5,,120\nT2,1,80,310.5\n",
		"a row of units in brackets":    "tool,time,VB mean,wear\n-,[s],[mm],[mm]\nT1,0.5,,0.12\nT2,1,0.08,0.3105\n",
		"a row of units that are known": "tool,time,vb_mean_um,vb_um\n,s,um,um\nT1,0.5,,120\nT2,1,80,310.5\n",
		"a column of another wear":      "tool,time,vb_mean_um,vb_um,wear\nT1,0.5,,120,little\nT2,1,80,310.5,much\n",
		"words for missing":             "tool,time,vb_mean_um,vb_um\nT1,0.5,-,120\nT2,1,80,310.5\n",
	} {
		if got, _, err := readMeasurements(strings.NewReader(text), "wear.csv"); err != nil || !equal(got, want) {
			t.Errorf("%s: %+v, %v\nwant %+v", name, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"tool,VB\nT1,120\n":                               `wear.csv:1: column "vb" is not known: wear is in`,
		"tool,vb [in]\nT1,1\n":                            `wear.csv:1: column "vb [in]" is not known`,
		"tool,vb_um\n,mm\nT1,0.12\n":                      `wear.csv:2: column vb_um is in mm by the row of units`,
		"tool,time,vb_um\n,min,um\nT1,1,120\n":            `wear.csv:2: column time is in min by the row of units`,
		"My wear\n\ntool,vb [µm]\nT1,120\nT2,much\n":      `wear.csv:5: column vb [µm]: "much" is not a number`,
		"tool,vb_um\n-,120\n":                             `wear.csv:2: column tool: "" is not a tool`,
		"tool,vb_um,wear [mm]\nT1,120,0.12\n":             `mean the same: remove one`,
		"PK\x03\x04 [Content_Types].xml and xl/ of Excel": "wear.csv: this is a workbook: save the table as CSV UTF-8",
	} {
		if _, _, err := readMeasurements(strings.NewReader(text), "wear.csv"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Three decimals are decimals where other numbers have some too, or none is above 100.
func TestReadThreeDecimals(t *testing.T) {
	for text, want := range map[string]float64{
		"tool,vb_um\nT1,1.350\nT2,120\nT3,80.5\n":  1.35,
		"tool,vb_um\nT1,1.350\nT2,80\n":            1.35,
		"tool,vb_um\nT1,101.350\nT2,120.000\n":     101.35,
		"tool;vb_mm\nT1;1,350\nT2;120\n":           1350,
		"tool,vb_um,state\nT1,12.350,\nT2,,worn\n": 12.35,
	} {
		if ms, _, err := readMeasurements(strings.NewReader(text), "wear.csv"); err != nil || ms[0].VBMaxUM != want {
			t.Errorf("%q: %+v, %v", text, ms, err)
		}
	}
}

// Wear far from what tools have is asked about.
func TestUnitDoubt(t *testing.T) {
	for largest, want := range map[float64]string{0.35: "is it in mm", 350: "", 9000: "", 50_000: "is the column in µm", 0: "", math.NaN(): ""} {
		if got := UnitDoubt(largest); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%v: %q", largest, got)
		}
	}
}

func TestReadTimes(t *testing.T) {
	for cell, want := range map[string]time.Time{
		"0":                           time.Unix(0, 0),
		"12.5":                        time.Unix(12, 5e8),
		".25":                         time.Unix(0, 25e7),
		"0.000000001":                 time.Unix(0, 1),
		"999999999.999999999":         time.Unix(999999999, 999999999),
		"1e3":                         time.Unix(1000, 0),
		"1.769868309000000000e+09":    time.Date(2026, 1, 31, 14, 5, 9, 0, time.UTC), // as NumPy writes by default
		"1.250000000E+01":             time.Unix(12, 5e8),
		"1769868309":                  time.Date(2026, 1, 31, 14, 5, 9, 0, time.UTC),
		"2026-01-31T15:05:09.5+01:00": time.Date(2026, 1, 31, 14, 5, 9, 5e8, time.UTC),
		"1970-01-01T00:00:07Z":        time.Unix(7, 0), // as a recording without a clock has it
		"-1":                          {},
		"1e300":                       {},
		"12:30":                       {},
	} {
		got, ok := parseTime(cell)
		if ok == want.IsZero() || !got.Equal(want) {
			t.Errorf("%q is %v, %v, want %v", cell, got, ok, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	text, err := os.ReadFile("testdata/wear.csv")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("\xef\xbb\xbftool,vb_mean_um\nT1,0.1\n\"T1\n\",0.05"))
	f.Add([]byte("tool;from;to;vb_um\nT1;0;12,5;0,1\nT1;12,5;1e3;2\n"))
	f.Add([]byte("recording\ttool\ttime\tclass\nC:\\runs\\a.csv\tT1\t0.000000001\tworn\n\tT2\t1769868309\t1\n"))
	f.Add([]byte("tool,state\nT1,worn\nT2,new\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		ms, _, err := readMeasurements(bytes.NewReader(text), "wear.csv")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "wear: wear.csv") {
				t.Fatalf("error does not name the file: %v", err)
			}
			return
		}
		var out bytes.Buffer
		if err := Write(&out, ms); err != nil {
			t.Fatal(err)
		}
		again, _, err := readMeasurements(&out, "wear.csv")
		if err != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		if !equal(again, ms) {
			t.Fatalf("first %+v\nthen  %+v", ms, again)
		}
		for _, m := range ms {
			if m.Tool == "" && m.Recording == "" || m.VBMaxUM < 0 || m.VBMeanUM < 0 || m.VBMeanUM > m.VBMaxUM {
				t.Fatalf("accepted %+v", m)
			}
		}
		for _, mode := range []Mode{Auto, HoleEnd, Interpolate} {
			j, err := NewJoin(ms, mode)
			if err != nil {
				if !strings.Contains(err.Error(), "wear.csv:") {
					t.Fatalf("error does not name the line: %v", err)
				}
				continue
			}
			for _, m := range ms {
				j.See(Window{Machine: m.Machine, Tool: "T" + m.Tool, Recording: stemOf(m.Recording), Hole: m.Hole, Start: m.Time, Began: m.Time})
			}
			j.Check()
			for _, m := range ms {
				j.At(Window{Machine: m.Machine, Tool: m.Tool, Recording: m.Recording, Hole: m.Hole, Start: m.Time, Length: time.Second})
			}
			j.Mismatches()
		}
	})
}

// toolName returns s as the name of a tool.
func toolName(s string) string {
	name, _ := plain.Name("T" + s)
	return strings.TrimPrefix(name, "T")
}

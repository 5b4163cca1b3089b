package wear

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/testkit/golden"
)

// read returns the rows of a wear file.
func read(t *testing.T, text string) []Measurement {
	t.Helper()
	ms, warnings, err := readMeasurements(strings.NewReader(text), "wear.csv")
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	return ms
}

// second returns a second of a recording that has no clock.
func second(s float64) time.Time { return time.Unix(0, 0).Add(time.Duration(s * 1e9)).UTC() }

// Windows of a second: what rows of the whole, of recordings and of several ways say of them.
func TestJoinByWhatRowsCarry(t *testing.T) {
	j, err := NewJoin(read(t, `machine,tool,recording,hole,time,to,vb_um,state,class
,whole,,,,,10,,
,both,,,,,20,,
,both,a,,,,30,,
,,a,,,,40,,
,,runs\b.csv,,,,50,,
m2,whole,,,,,60,,
,holes,,H1,,,70,,
,seconds,,,0,10,80,,
,seconds,,,10,20.5,,worn,
,class,c,,5,,,,1
,class,c,,15,,,,1
,class,c,,20,,,,healthy
,zero,,,0,,0,,
,zero,,,10,,100,,
,clock,,,2026-01-31T14:01:00Z,2026-01-31T14:02:00Z,90,,
`), Auto)
	if err != nil {
		t.Fatal(err)
	}
	began := after(0)
	win := func(machine, tool, recording, hole string, s float64) Window {
		return Window{Machine: machine, Tool: tool, Recording: recording, Hole: hole, Began: began, Start: began.Add(time.Duration(s * 1e9)), Length: time.Second}
	}
	type asked struct {
		why  string
		w    Window
		want string
	}
	all := []asked{
		{"whole tool", win("m", "whole", "x", "H9", 7), "10 "},
		{"whole tool in windows of Kafka", win("m", "whole", "", "", 7), "10 "},
		{"the machine's own row first", win("m2", "whole", "x", "", 7), "60 "},
		{"tool in another recording", win("m", "both", "x", "", 7), "20 "},
		{"tool in the recording of both", win("m", "both", "a", "", 7), "30 "},
		{"other tool in a recording", win("m", "other", "a", "", 7), "40 "},
		{"a recording goes before the tool", win("m", "holes", "a", "H1", 7), "40 "},
		{"a recording with folder and ending", win("m", "other", "b", "", 7), "50 "},
		{"no row", win("m", "other", "x", "", 7), "tool not measured"},
		{"hole", win("m", "holes", "x", "H1", 7), "70 "},
		{"another hole", win("m", "holes", "x", "H2", 7), "hole not measured"},
		{"first interval", win("m", "seconds", "x", "", 0), "80 "},
		{"most of the window in the first interval", win("m", "seconds", "x", "", 9.4), "80 "},
		{"half in the second interval", win("m", "seconds", "x", "", 9.5), "NaN worn"},
		{"last of the second interval", win("m", "seconds", "x", "", 19.9), "NaN worn"},
		{"after the intervals", win("m", "seconds", "x", "", 20), "in no interval"},
		{"before classes", win("m", "class", "c", "", 4), "before the first measurement"},
		{"between equal classes", win("m", "class", "c", "", 10), "NaN class 1"},
		{"between classes", win("m", "class", "c", "", 17), "between two states"},
		{"at a class", win("m", "class", "c", "", 20), "NaN class healthy"},
		{"after classes", win("m", "class", "c", "", 21), "after the last measurement"},
		{"a row at second 0", win("m", "zero", "x", "", 0), "0 "},
		{"from a row at second 0 on", win("m", "zero", "x", "", 5), "50 "},
		{"by the clock", win("m", "clock", "x", "", 59.5), "90 "},
		{"by the clock, before", win("m", "clock", "x", "", 59), "in no interval"},
		{"no clock", Window{Machine: "m", Tool: "clock", Recording: "y", Began: second(0), Start: second(70)}, "without a time that the rows can be compared with"},
		{"no time", Window{Machine: "m", Tool: "clock", Recording: "z"}, "without a time that the rows can be compared with"},
	}
	for _, tc := range all {
		j.See(tc.w)
	}
	if err := j.Check(); err != nil {
		t.Fatal(err)
	}
	labelled := 0
	for _, tc := range all {
		m, why := j.At(tc.w)
		got := why.String()
		if why == hasLabel {
			labelled++
			got = fmt.Sprint(m.VBMaxUM, " ", m.State)
			if m.Class != "" {
				got += "class " + m.Class
			}
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.why, got, tc.want)
		}
	}
	if n := j.Tally(); n[hasLabel] != labelled || n.Unlabelled() != len(all)-labelled {
		t.Errorf("tally %v", n)
	}
	if got, want := j.Tally().String(), "1 tool not measured, 1 hole not measured, 1 before the first measurement, 1 after the last measurement, 1 between two states, 2 in no interval, 2 without a time that the rows can be compared with"; !strings.HasSuffix(got, want) {
		t.Errorf("tally reads %q", got)
	}
}

// A recording that begins later, or has no clock, has the same labels: seconds count from its
// first sample.
func TestSecondsCountFromTheFirstSample(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		edges := []float64{0}
		var text strings.Builder
		text.WriteString("recording,from,to,state\n")
		for range rapid.IntRange(1, 6).Draw(t, "intervals") {
			from := edges[len(edges)-1] + float64(rapid.IntRange(0, 5).Draw(t, "pause"))
			to := from + float64(rapid.IntRange(1, 50).Draw(t, "tenths"))/10
			fmt.Fprintf(&text, "day,%v,%v,%v to %v\n", from, to, from, to)
			edges = append(edges, from, to)
		}
		ms, _, err := readMeasurements(strings.NewReader(text.String()), "wear.csv")
		if err != nil {
			t.Fatal(err)
		}
		j, err := NewJoin(rapid.Permutation(ms).Draw(t, "order"), Auto)
		if err != nil {
			t.Fatal(err)
		}
		began := rapid.SampledFrom([]time.Time{second(0), second(100.25), after(0), after(60).Add(1)}).Draw(t, "began")
		length := rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second}).Draw(t, "length")
		var windows []Window
		for at := time.Duration(0); at < time.Duration((edges[len(edges)-1]+2)*1e9); at += length {
			w := Window{Tool: "T", Recording: "day", Began: began, Start: began.Add(at), Length: length}
			windows = append(windows, w)
			j.See(w)
		}
		if err := j.Check(); err != nil {
			t.Fatal(err)
		}
		for _, w := range windows {
			middle := w.Start.Sub(began) + length/2
			want := ""
			for i := 1; i < len(edges); i += 2 {
				if from, to := time.Duration(edges[i]*1e9), time.Duration(edges[i+1]*1e9); from <= middle && middle < to {
					want = fmt.Sprintf("%v to %v", edges[i], edges[i+1])
				}
			}
			if m, _ := j.At(w); m.State != want {
				t.Fatalf("middle at %v: %q, want %q", middle, m.State, want)
			}
		}
	})
}

// A tool that comes back in a recording, and several tools in one: seconds are the recording's. In
// a table each tool has its own start.
func TestSecondsOfSeveralTools(t *testing.T) {
	const text = "tool,time,to,state\nT1,0,10,new\nT1,20,30,worn\nT2,10,20,new\n"
	for name, tc := range map[string]struct {
		began map[string]time.Time
		want  string
	}{
		"a recording": {map[string]time.Time{"T1": after(0), "T2": after(0)}, "T1 new, T2 new, T1 worn"},
		"a table":     {map[string]time.Time{"T1": after(0), "T2": after(10. / 60)}, "T1 new, T2 , T1 worn"},
	} {
		j, err := NewJoin(read(t, text), Auto)
		if err != nil {
			t.Fatal(err)
		}
		var windows []Window
		for i, tool := range []string{"T1", "T2", "T1"} {
			w := Window{Tool: tool, Recording: "day", Began: tc.began[tool], Start: after(0).Add(time.Duration(10*i+5) * time.Second), Length: time.Second}
			windows = append(windows, w)
			j.See(w)
		}
		if err := j.Check(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range windows {
			m, _ := j.At(w)
			got = append(got, w.Tool+" "+m.State)
		}
		if strings.Join(got, ", ") != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// Two recordings in different folders may have one name.
func TestRecordingsOfOneName(t *testing.T) {
	for text, want := range map[string]string{
		"recording,time,state\nday,0,new\n": `wear: wear.csv:2: the time of recording "day" is in seconds, but there are 2 starts that these may count from under the name "day"`,
		"tool,time,state\nT1,0,new\n":       `wear: wear.csv:2: the time of tool "T1" is in seconds, but there are 2 starts`,
		"tool,time,state\nT2,0,new\n":       "",
		"recording,state\nday.csv,new\n":    "",
	} {
		j, err := NewJoin(read(t, text), Auto)
		if err != nil {
			t.Fatal(err)
		}
		j.See(Window{Tool: "T1", Recording: "day", Began: after(0), Start: after(0)})
		j.See(Window{Tool: "T1", Recording: "day", Began: after(60), Start: after(60)})
		j.See(Window{Tool: "T2", Recording: "day", Began: after(60), Start: after(61)})
		if err := j.Check(); want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestJoinErrors keeps every refusal and every mismatch in testdata/join.golden.
func TestJoinErrors(t *testing.T) {
	const day = "tool,recording,hole,time,to,state\n"
	var out strings.Builder
	for _, tc := range []struct {
		name string
		mode Mode
		text string
	}{
		{"two ways", Auto, day + "T2,,,,,new\nT1,,,,,new\nT1,,H1,,,worn\n"},
		{"a moment and an interval", Auto, day + "T1,,,1,,new\nT1,,,2,3,worn\n"},
		{"intervals that overlap", Auto, day + "T1,,,5,9,new\nT1,,,0,5.5,worn\n"},
		{"intervals that overlap once seconds have a start", Auto, day + "T1,,,2026-01-31T14:00:05Z,2026-01-31T14:00:10Z,new\nT1,,,9,20,worn\n"},
		{"moments that are the same once seconds have a start", Auto, day + "T1,,,2026-01-31T14:00:05Z,,new\nT1,,,5,,worn\n"},
		{"seconds of a tool in two recordings", Auto, day + "T2,,,5,,new\n"},
		{"a recording named in two ways", Auto, day + ",a.csv,,,,new\n,a,,,,worn\n"},
		{"no time", Interpolate, day + "T1,,,,,new\n"},
		{"no hole", HoleEnd, day + "T1,,,,,new\n"},
		{"an interval for holes", HoleEnd, day + "T1,,H1,2,3,new\n"},
		{"an interval for moments", Interpolate, day + "T1,,H1,2,3,new\n"},
		{"leading zeros, case and signs", Auto, day + "t01,,,,,new\nT_2,,,,,new\n\"Tool 3\",,,,,new\n"},
		{"a file's name for the tool", Auto, day + "T1.csv,,,,,new\n"},
		{"a recording for the tool", Auto, day + "monday.csv,,,,,new\nX1,,,,,new\n"},
		{"a tool for the recording", Auto, day + ",T1,,,,new\n"},
		{"another recording", Auto, day + "T1,Monday,,,,new\nT3,friday,,,,new\n"},
		{"nothing alike", Auto, day + "X,,,,,new\nY,,,,,new\nZ,,,,,new\nU,,,,,new\n"},
		{"more tools than recordings", Auto, day + "T1,,,,,new\nT2,,,,,new\nT3,,,,,new\nU,,,,,new\n"},
		{"another machine", Auto, "machine,tool,state\nmill,T1,new\n"},
		{"holes", Auto, day + "T1,,1,,,new\nT1,,h02,,,new\nT1,,H3,,,new\n"},
		{"no holes", Auto, day + "T3,,H1,,,new\n"},
		{"other times", Auto, day + "T1,,,2025-01-31T14:00:00Z,2025-01-31T15:00:00Z,new\n"},
		{"seconds beyond the recording", Auto, day + "T1,,,100,110.5,new\n"},
		{"an interval that no window is in, next to one that has some", Auto, day + "T1,,,0,20,new\nT1,,,100,110.5,worn\n"},
		{"moments that no window is between", Auto, "tool,time,vb_um\nT1,2026-01-31T14:00:40Z,10\nT1,2026-01-31T15:00:40Z,20\nT1,2026-01-31T16:00:40Z,30\n"},
		{"a hole that no window is of, and all windows have a row", Auto, day + "T1,,H01,,,new\nT1,,H02,,,new\nT1,,H03,,,worn\n"},
		{"a clock for a recording without", Auto, day + "T3,,,2025-01-31T14:00:00Z,,new\n"},
	} {
		fmt.Fprintf(&out, "# %s\n", tc.name)
		j, err := NewJoin(read(t, tc.text), tc.mode)
		if err == nil {
			windows := []Window{
				{Machine: "lathe", Tool: "T1", Hole: "H01", Recording: "monday", Began: after(0), Start: after(0), Length: time.Second},
				{Machine: "lathe", Tool: "T1", Hole: "H02", Recording: "monday", Began: after(0), Start: after(0.5), Length: time.Second},
				{Machine: "lathe", Tool: "T2", Hole: "H01", Recording: "monday", Began: after(0), Start: after(1), Length: time.Second},
				{Machine: "lathe", Tool: "T2", Hole: "H01", Recording: "tuesday", Began: after(1440), Start: after(1440), Length: time.Second},
				{Machine: "lathe", Tool: "T3", Recording: "wednesday", Began: second(0), Start: second(3), Length: time.Second},
			}
			for _, w := range windows {
				j.See(w)
			}
			err = j.Check()
			for _, w := range windows {
				j.At(w)
			}
		}
		if err != nil {
			fmt.Fprintln(&out, err)
		} else {
			for _, text := range j.Mismatches() {
				fmt.Fprintln(&out, text)
			}
		}
		out.WriteString("\n")
	}
	golden.Check(t, "join.golden", out.String())
}

// A row of a recording that names no tool may go for two recordings of that name, and says so.
func TestRowOfTwoRecordings(t *testing.T) {
	for _, tc := range []struct {
		row  Measurement
		says bool
	}{{Measurement{Recording: "T1/hole_001.csv", VBMaxUM: 400, VBMeanUM: nan}, true}, {Measurement{Recording: "T1/hole_001.csv", Tool: "T1", VBMaxUM: 400, VBMeanUM: nan}, false}} {
		j, err := NewJoin([]Measurement{tc.row}, Auto)
		if err != nil {
			t.Fatal(err)
		}
		for i, tool := range []string{"T1", "T2", "T2"} {
			began := after(float64(10 * i))
			j.See(Window{Tool: tool, Recording: "hole_001", Began: began, Start: began, Length: time.Second})
		}
		if got := strings.Join(j.Mismatches(), "; "); strings.Contains(got, `is of tool "T1", and another one of that name of tool "T2": name the tool too`) != tc.says {
			t.Errorf("%q: %s", tc.row.Tool, got)
		}
	}
}

func TestToolsAreNamedAfterTheirFiles(t *testing.T) {
	j, err := NewJoin(read(t, "tool,state\nX,new\n"), Auto)
	if err != nil {
		t.Fatal(err)
	}
	j.See(Window{Tool: "day07", Recording: "day07"})
	const want = `no window is of tool "X" (wear.csv:2); no row is of tool "day07"; tools are named after their files, as the layout has no column of tools: write those names, or name the column`
	if got := strings.Join(j.Mismatches(), "\n"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWindowsOfKafkaHaveNoSeconds(t *testing.T) {
	j, err := NewJoin(read(t, "tool,time,state\nT1,5,new\n"), Auto)
	if err != nil {
		t.Fatal(err)
	}
	w := Window{Machine: "m", Tool: "T1", Start: after(0)}
	if _, why := j.At(w); why != noClock {
		t.Errorf("before windows were seen: %v", why)
	}
	j.See(w)
	if err := j.Check(); err == nil || !strings.HasPrefix(err.Error(), "wear: wear.csv:2: the time of tool \"T1\" is in seconds, but its windows are of no recording") {
		t.Errorf("%v", err)
	}
}

func TestNamesThatAreAlike(t *testing.T) {
	for _, tc := range []struct{ name, names, want string }{
		{"t01", "T1 T10 T11", "T1"},
		{"T-1", "T1 T_2", "T1"},
		{"Tool 7", "T6 T7", "T7"},
		{"7", "T6 T7", "T7"},
		{"1-2", "12 1_2", "1_2"},
		{"100", "1 0100", "0100"},
		{"day07.csv", "day07 day08", "day07"},
		{`C:\runs\day07.csv`, "day07 day08", "day07"},
		{"T1", "t1 T01", ""}, // either
		{"A", "B C", ""},
		{"-", "_ .", ""},
	} {
		if got := alikeName(tc.name, strings.Fields(tc.names)); got != tc.want {
			t.Errorf("%q among %s: %q, want %q", tc.name, tc.names, got, tc.want)
		}
	}
}

func TestClassesOfRows(t *testing.T) {
	for word, want := range map[string]int{"healthy": 0, "WORN": 1, "2": 2, "0": 0} {
		if k, ok := three.Named(word); !ok || k != want {
			t.Errorf("%q is class %d, %v", word, k, ok)
		}
	}
	for _, word := range []string{"", "3", "-1", "sharp", "1.0"} {
		if k, ok := three.Named(word); ok {
			t.Errorf("%q is class %d", word, k)
		}
	}
	for text, want := range map[string]string{
		"tool,class\nT1,worn\nT2,0\nT3,\n":          "",
		"tool,class\nT1,worn\nT2,sharp\n":           `wear: wear.csv:3: class "sharp" of tool "T2" is none of healthy, worn, faulty`,
		"recording,class,vb_um\na,worn,\na,1,400\n": `has a label as a whole`,
		"recording,class,vb_um\na,worn,400\n":       `wear: wear.csv:2: class "worn" of recording "a" contradicts its wear or state, which the rule (worn if`,
		"tool,class,state\nT1,faulty,broken\n":      "",
	} {
		ms, _, err := readMeasurements(strings.NewReader(text), "wear.csv")
		if err == nil {
			err = three.CheckClasses(ms)
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

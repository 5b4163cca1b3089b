package wear

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// after returns a time, in minutes from the start of a tool.
func after(minutes float64) time.Time {
	return time.Date(2026, 1, 31, 14, 0, 0, 0, time.UTC).Add(time.Duration(minutes * float64(time.Minute)))
}

func TestJoinHoleEnd(t *testing.T) {
	j, err := NewJoin([]Measurement{
		{Machine: "m", Tool: "T1", Hole: "H1", Time: after(9), VBMeanUM: nan, VBMaxUM: 60}, // later, though listed first
		{Machine: "m", Tool: "T1", Hole: "H1", Time: after(5), VBMeanUM: nan, VBMaxUM: 50},
		{Machine: "m", Tool: "T1", Hole: "H3", VBMeanUM: nan, VBMaxUM: nan, State: "chipped"},
		{Machine: "m", Tool: "T1", Hole: "H4", VBMeanUM: nan, VBMaxUM: nan}, // knows nothing
		{Tool: "T2", Hole: "H1", VBMeanUM: 7, VBMaxUM: 8},                   // any machine
		{Machine: "other", Tool: "T3", Hole: "H1", VBMeanUM: 1, VBMaxUM: 1},
	}, HoleEnd)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		why, tool, hole string
		want            string
	}{
		{"start of a hole", "T1", "H1", "NaN 60 "},
		{"hole without a measurement", "T1", "H2", ""},
		{"state only", "T1", "H3", "NaN NaN chipped"},
		{"measurement that knows nothing", "T1", "H4", ""},
		{"hole not known", "T1", "", ""},
		{"measurement without a machine", "T2", "H1", "7 8 "},
		{"tool of another machine", "T3", "H1", ""},
		{"tool without measurements", "T9", "H1", ""},
	} {
		m, why := j.At(Window{Machine: "m", Tool: tc.tool, Hole: tc.hole, Start: after(1)})
		got := fmt.Sprint(m.VBMeanUM, m.VBMaxUM, " ", m.State)
		if why != hasLabel {
			got = ""
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.why, got, tc.want)
		}
	}
	if want := (tally{hasLabel: 3, noTool: 2, noHole: 3}); j.Tally() != want {
		t.Errorf("tally %+v, want %+v", j.Tally(), want)
	}
	if got, want := j.Tally().String(), "3 labelled, 5 not: 2 tool not measured, 3 hole not measured"; got != want {
		t.Errorf("tally reads %q, want %q", got, want)
	}
}

func TestJoinInterpolate(t *testing.T) {
	j, err := NewJoin([]Measurement{
		{Machine: "m", Tool: "T1", Time: after(30), VBMeanUM: nan, VBMaxUM: 300, State: "worn"},
		{Machine: "m", Tool: "T1", Time: after(10), VBMeanUM: 50, VBMaxUM: 100, State: "new"},
		{Machine: "m", Tool: "T1", Time: after(40), VBMeanUM: 200, VBMaxUM: nan, State: "worn"},
		{Machine: "m", Tool: "T1", Time: after(50), VBMeanUM: 200, VBMaxUM: 310, State: "Chipped"},
		{Machine: "m", Tool: "T1", Time: after(60), VBMeanUM: nan, VBMaxUM: 320},
		{Machine: "m", Tool: "T2", Time: after(10), VBMeanUM: nan, VBMaxUM: nan, State: "unworn"},
		{Machine: "m", Tool: "T2", Time: after(20), VBMeanUM: nan, VBMaxUM: nan, State: "unworn"},
		{Machine: "m", Tool: "T2", Time: after(30), VBMeanUM: nan, VBMaxUM: nan, State: "worn"},
		{Machine: "m", Tool: "T3", Time: after(10), VBMeanUM: nan, VBMaxUM: 80},
		{Machine: "m", Tool: "T4", Time: after(10), VBMeanUM: nan, VBMaxUM: 80},
	}, Interpolate)
	if err != nil {
		t.Fatal(err)
	}
	j.See(Window{Machine: "m", Tool: "T1", Start: after(5)})
	j.See(Window{Machine: "m", Tool: "T1", Start: after(0)}) // the earliest counts
	j.See(Window{Machine: "m", Tool: "T1", Start: after(2)})
	j.See(Window{Machine: "m", Tool: "T4", Start: after(20)}) // after its first measurement: no use
	for _, tc := range []struct {
		why, tool string
		minute    float64
		want      string
	}{
		{"start of a new tool", "T1", 0, "0 0 new"},
		{"on the way to the first measurement", "T1", 5, "25 50 new"},
		{"before the start", "T1", -1, ""},
		{"at a measurement", "T1", 10, "50 100 new"},
		{"half-way; the mean skips a measurement that lacks it", "T1", 20, "100 200 "},
		{"at a measurement without mean", "T1", 30, "150 300 worn"},
		{"between equal states", "T1", 35, "175 302.5 worn"},
		{"chipped is not carried back", "T1", 49, "200 309.5 "},
		{"chipped from the measurement on", "T1", 50, "200 310 Chipped"},
		{"chipped stays, the mean has ended", "T1", 55, "NaN 315 Chipped"},
		{"chipped where the state was left out", "T1", 60, "NaN 320 Chipped"},
		{"chipped after the last measurement", "T1", 99, "NaN NaN Chipped"},
		{"states only, before the first", "T2", 5, ""},
		{"states only, equal", "T2", 15, "NaN NaN unworn"},
		{"states only, different", "T2", 25, ""},
		{"states only, at a measurement", "T2", 30, "NaN NaN worn"},
		{"states only, after the last", "T2", 31, ""},
		{"start not known", "T3", 9, ""},
		{"single measurement", "T3", 10, "NaN 80 "},
		{"after the last", "T3", 11, ""},
		{"start after the first measurement", "T4", 9, ""},
		{"tool without measurements", "T9", 9, ""},
	} {
		m, why := j.At(Window{Machine: "m", Tool: tc.tool, Hole: "H", Start: after(tc.minute)})
		got := fmt.Sprint(m.VBMeanUM, m.VBMaxUM, " ", m.State)
		if why != hasLabel {
			got = ""
		} else if !m.Time.Equal(after(tc.minute)) || m.Machine != "m" || m.Tool != tc.tool || m.Hole != "H" {
			t.Errorf("%s: measurement %+v is not of the window", tc.why, m)
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.why, got, tc.want)
		}
	}
	if want := (tally{hasLabel: 14, noTool: 1, beforeFirst: 4, afterLast: 2, between: 1}); j.Tally() != want {
		t.Errorf("tally %+v, want %+v", j.Tally(), want)
	}
}

func TestNewJoinErrors(t *testing.T) {
	known := Measurement{Tool: "T7", Hole: "H1", Time: after(1), VBMeanUM: nan, VBMaxUM: 1}
	untimed, unholed := known, known
	untimed.Time = time.Time{}
	unholed.Hole = ""
	for want, tc := range map[string]struct {
		mode Mode
		ms   []Measurement
	}{
		`join "nearest" is not one of`:                    {"nearest", nil},
		`tool "T7" names no hole`:                         {HoleEnd, []Measurement{unholed}},
		`tool "T7" has no time`:                           {Interpolate, []Measurement{untimed}},
		`two measurements at the end of hole "H1"`:        {HoleEnd, []Measurement{known, known}},
		`two measurements at 2026-01-31T14:01:00Z`:        {Interpolate, []Measurement{known, unholed}},
		`two measurements at the end of hole "H1": keep `: {HoleEnd, []Measurement{untimed, untimed}},
	} {
		if _, err := NewJoin(tc.ms, tc.mode); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	if _, err := NewJoin([]Measurement{known, {Tool: "T7", VBMeanUM: nan, VBMaxUM: nan}}, Interpolate); err != nil {
		t.Errorf("a measurement that knows nothing is refused: %v", err)
	}
}

// TestInterpolationLaws: measured wear that never falls gives wear that never
// falls, exact at the measurements, between them elsewhere, and every window
// is counted once.
func TestInterpolationLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ms []Measurement
		minute, um := rapid.Float64Range(1, 100).Draw(t, "first"), 0.0
		for range rapid.IntRange(1, 8).Draw(t, "n") {
			um += rapid.Float64Range(0, 200).Draw(t, "wear")
			ms = append(ms, Measurement{Tool: "T", Time: after(minute), VBMeanUM: um / 3, VBMaxUM: um})
			minute += rapid.Float64Range(0.001, 1e4).Draw(t, "minutes")
		}
		j, err := NewJoin(rapid.Permutation(ms).Draw(t, "order"), Interpolate)
		if err != nil {
			t.Fatal(err)
		}
		started := rapid.Bool().Draw(t, "started")
		if started {
			j.See(Window{Machine: "m", Tool: "T", Start: after(0)})
		}
		for i, m := range ms {
			if got, why := j.At(Window{Machine: "m", Tool: "T", Start: m.Time}); why != hasLabel || got.VBMaxUM != m.VBMaxUM || got.VBMeanUM != m.VBMeanUM {
				t.Fatalf("at measurement %d: %+v, want %+v", i, got, m)
			}
		}
		first, last := ms[0].Time, ms[len(ms)-1].Time
		asked, labelled, before := len(ms), len(ms), -1.0
		step := last.Sub(after(0))/97 + 1
		for w := after(0); !w.After(last.Add(2 * step)); w = w.Add(step) {
			m, why := j.At(Window{Machine: "m", Tool: "T", Start: w})
			ok := why == hasLabel
			asked++
			if want := !w.After(last) && (started || !w.Before(first)); ok != want {
				t.Fatalf("at %v labelled %v, want %v", w, ok, want)
			}
			if !ok {
				continue
			}
			labelled++
			if m.VBMaxUM < before || m.VBMaxUM > um {
				t.Fatalf("at %v wear %v after %v, last measured %v", w, m.VBMaxUM, before, um)
			}
			before = m.VBMaxUM
		}
		if n := j.Tally(); n[hasLabel] != labelled || n[hasLabel]+n.Unlabelled() != asked {
			t.Fatalf("tally %+v of %d windows, %d labelled", n, asked, labelled)
		}
	})
}

// Windows on Kafka of a recording without a clock count from its start themselves, so seconds are
// theirs.
func TestJoinSecondsOfWindowsWithoutAClock(t *testing.T) {
	ms, _, err := readMeasurements(strings.NewReader("tool,from,to,state\nT1,0,10,new\nT1,10,20,worn\n"), "wear.csv")
	if err != nil {
		t.Fatal(err)
	}
	j, err := NewJoin(ms, Auto)
	if err != nil {
		t.Fatal(err)
	}
	window := func(s int64) Window {
		return Window{Machine: "m", Tool: "T1", Start: time.Unix(s, 0).UTC(), Length: time.Second}
	}
	for _, s := range []int64{12, 3} { // in any order
		j.See(window(s))
	}
	if err := j.Check(); err != nil {
		t.Fatal(err)
	}
	for s, want := range map[int64]string{3: "new", 12: "worn"} {
		if m, why := j.At(window(s)); why != hasLabel || m.State != want {
			t.Errorf("second %d: %+v, %v", s, m, why)
		}
	}
}

// A measurement far behind the windows of its tool says nothing of them: a line from the new tool to it would
// call a worn tool healthy.
func TestJoinMeasurementFarBehind(t *testing.T) {
	for text, want := range map[string]Reason{
		"tool,time,vb_um\nT1,150,300\n":    hasLabel, // measured half a recording after its end
		"tool,time,vb_um\nT1,100000,300\n": beforeFirst,
	} {
		ms, _, err := readMeasurements(strings.NewReader(text), "wear.csv")
		if err != nil {
			t.Fatal(err)
		}
		j, err := NewJoin(ms, Auto)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
		window := func(s int) Window {
			return Window{Machine: "m", Tool: "T1", Recording: "day", Began: began, Start: began.Add(time.Duration(s) * time.Second), Length: time.Second}
		}
		for s := range 100 {
			j.See(window(s))
		}
		if m, why := j.At(window(90)); why != want {
			t.Errorf("%q: %+v, %v, want %v", text, m, why, want)
		}
	}
}

// A line to a tool that broke, or that a single look found far beyond the limit, says where the tool was healthy, and not where it was worn.
func TestJoinLeap(t *testing.T) {
	began := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		rows  string
		limit float64
		mean  bool
		want  string // of seconds 5, 15 … 95: - healthy, # worn, . no label
	}{
		"worn":                     {"tool,time,vb_um\nT1,100,340\n", 300, false, "---------#"},
		"broken":                   {"tool,time,vb_um,state\nT1,100,600,broken\n", 300, false, "-----....."},
		"broken in the common way": {"tool,time,vb_um,state\nT1,50,100,\nT1,100,400,Bruch\n", 300, false, "--------.."},
		"chipped, and measured on": {"tool,time,vb_um,state\nT1,50,320,chipped\nT1,100,420,chipped\n", 300, false, "-----#####"},
		"twice the limit":          {"tool,time,vb_um\nT1,100,600\n", 300, false, "-----#####"},
		"more than twice":          {"tool,time,vb_um\nT1,100,601\n", 300, false, "-----....."},
		"worn before it broke":     {"tool,time,vb_um,state\nT1,50,310,\nT1,100,700,broken\n", 300, false, "-----#####"},
		"by the mean":              {"tool,time,vb_mean_um,vb_max_um\nT1,100,250,900\n", 100, true, "----......"},
		"no limit":                 {"tool,time,vb_um,state\nT1,100,600,broken\n", 0, false, "-----#####"},
		"the whole tool":           {"tool,vb_um,state\nT1,700,broken\n", 300, false, "##########"},
	} {
		ms, _, err := readMeasurements(strings.NewReader(tc.rows), "wear.csv")
		if err != nil {
			t.Fatal(err)
		}
		j, err := NewJoin(ms, Auto)
		if err != nil {
			t.Fatal(err)
		}
		j.Limit(tc.limit, tc.mean)
		window := func(s int) Window {
			return Window{Machine: "m", Tool: "T1", Recording: "day", Began: began, Start: began.Add(time.Duration(s) * time.Second), Length: time.Second}
		}
		for s := range 100 {
			j.See(window(s))
		}
		rule, got, without := Rule{VBMaxUM: 300}, "", 0
		if tc.mean {
			rule = Rule{VBMeanUM: tc.limit}
		}
		for s := 5; s < 100; s += 10 {
			m, why := j.At(window(s))
			class, ok := rule.Class(m.VBMeanUM, m.VBMaxUM, m.State)
			switch {
			case !ok:
				got += "."
				without++
				if why != leapt {
					t.Errorf("%s, second %d: %v, want %v", name, s, why, leapt)
				}
			case class > 0:
				got += "#"
			default:
				got += "-"
			}
		}
		if n := j.Tally(); got != tc.want || n[leapt] != without {
			t.Errorf("%s: %s, %d leapt, want %s", name, got, n[leapt], tc.want)
		}
	}
}

// A tool does not wear after it was taken out: on a stream its wear counts at its last window, however much later it is measured. Of
// recordings, which may leave out what came later, it is on a line to then.
func TestJoinMeasuredAfterTheLastWindow(t *testing.T) {
	began := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		after  time.Duration // the last window of T1 until it is measured
		then   string        // tool of the windows that follow
		record string
		cutOff bool
		want   string // of T1 in µm after 50, 100 and 190 of 200 s
		says   bool   // that the line goes on behind the last window
	}{
		"still in":                {-time.Second, "", "", false, "85 171 325", false},
		"taken out, soon":         {time.Minute, "T2", "", false, "85 170 323", false},
		"taken out, weeks later":  {500 * time.Hour, "T2", "", false, "85 170 323", false},
		"taken out for a twin":    {time.Hour, "T1 · life 2", "", false, "85 170 323", false},
		"cut off":                 {time.Hour, "T2", "", true, "NaN NaN NaN", false},
		"no tool follows, soon":   {time.Minute, "", "", false, "65 131 248", true},
		"no tool follows, weeks":  {500 * time.Hour, "", "", false, "NaN NaN NaN", false},
		"a recording, soon":       {time.Minute, "T2", "day1", false, "65 131 248", true},
		"a recording, much later": {time.Hour, "T2", "day1", false, "NaN NaN NaN", false},
	} {
		at := began.Add(200*time.Second + tc.after)
		j, err := NewJoin([]Measurement{{Tool: "T1", Time: at, VBMaxUM: 340, VBMeanUM: math.NaN()}}, Auto)
		if err != nil {
			t.Fatal(err)
		}
		window := func(tool string, s int) Window {
			w := Window{Machine: "m", Tool: tool, Recording: tc.record, Start: began.Add(time.Duration(s) * time.Second), Length: time.Second, CutOff: tc.cutOff}
			if tc.record != "" {
				w.Began = began
			}
			return w
		}
		if tc.then != "" {
			j.See(window(tc.then, 205)) // windows come in any order
		}
		for s := range 200 {
			j.See(window("T1", s))
		}
		var got []string
		for _, s := range []int{50, 100, 190} {
			m, _ := j.At(window("T1", s))
			got = append(got, fmt.Sprintf("%.0f", m.VBMaxUM))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %s, want %s", name, strings.Join(got, " "), tc.want)
		}
		if says := strings.Contains(strings.Join(j.Mismatches(), "\n"), "was measured 1m0s after its last window"); says != tc.says {
			t.Errorf("%s: %q", name, j.Mismatches())
		}
	}
}

// A window without a time says nothing of when its tool was new: windows with one have the wear that they had without it.
func TestJoinWindowWithoutTime(t *testing.T) {
	for name, lacks := range map[string]int{"the first": 0, "one in the middle": 2} {
		j, err := NewJoin([]Measurement{{Tool: "T1", Time: after(40), VBMeanUM: nan, VBMaxUM: 400}}, Auto)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			w := Window{Tool: "T1", Start: after(float64(10 * i)), Length: time.Second}
			if i == lacks {
				w.Start = time.Time{}
			}
			j.See(w)
		}
		if _, why := j.At(Window{Tool: "T1"}); why != noClock {
			t.Errorf("%s: %v", name, why)
		}
		want := map[int]float64{0: 400. * 20 / 30, 2: 300}[lacks] // without the first, the tool is new at the first time there is
		if m, why := j.At(Window{Tool: "T1", Start: after(30), Length: time.Second}); math.Abs(m.VBMaxUM-want) > 1e-9 || why != hasLabel {
			t.Errorf("%s lacks its time: %v, %v, want %v", name, m, why, want)
		}
		if text := j.Mismatches(); text != nil {
			t.Error(text)
		}
	}
}

// A recording without a clock has no windows at the times of a clock, so no line leads there from a second of it.
func TestJoinSecondsAndClock(t *testing.T) {
	j, err := NewJoin([]Measurement{
		{Tool: "T1", Time: second(100), VBMeanUM: nan, VBMaxUM: 120},
		{Tool: "T1", Time: after(60), VBMeanUM: nan, VBMaxUM: 400},
	}, Auto)
	if err != nil {
		t.Fatal(err)
	}
	of := func(s float64) Window {
		return Window{Tool: "T1", Recording: "day1", Began: second(0), Start: second(s), Length: time.Second}
	}
	for s := range 4 {
		j.See(of(float64(100 * s)))
	}
	if m, why := j.At(of(300)); why != noClock {
		t.Errorf("%v, %v", m, why)
	}
	if text := strings.Join(j.Mismatches(), ""); !strings.Contains(text, "seconds count from the first sample of the recording") {
		t.Errorf("%q", text)
	}
}

// A tool that was declared new did not break with the one before it, and begins with no wear, where measurements name the tool alone.
func TestJoinLivesOfOneName(t *testing.T) {
	second := ToolOf("T8", "2")
	ms := []Measurement{
		{Tool: "T8", Time: after(10), VBMeanUM: nan, VBMaxUM: 200, State: "broken", Source: Floor},
		{Tool: "T8", Time: after(40), VBMeanUM: nan, VBMaxUM: 100, Source: Floor},
	}
	for name, tc := range map[string]struct {
		ms   []Measurement
		tool string
		at   float64
		want string
		why  Reason
	}{
		"before it broke":                  {ms, "T8", 5, "100 ", hasLabel},
		"once it was broken":               {ms, "T8", 10, "200 broken", hasLabel},
		"the next life":                    {ms, second, 30, "50 ", hasLabel},
		"the next life, behind the last":   {ms, second, 45, "NaN ", afterLast},
		"only the first life was measured": {ms[:1], second, 30, "NaN ", noTool},
		"the tool as a whole":              {[]Measurement{{Tool: "T8", VBMeanUM: nan, VBMaxUM: nan, State: "worn"}}, second, 30, "NaN worn", hasLabel},
	} {
		j, err := NewJoin(tc.ms, Auto)
		if err != nil {
			t.Fatal(err)
		}
		for minute := range 10 {
			j.See(Window{Tool: "T8", Start: after(float64(2 * minute)), Length: 2 * time.Minute})
			j.See(Window{Tool: second, Start: after(float64(20 + 3*minute)), Length: time.Minute})
		}
		m, why := j.At(Window{Tool: tc.tool, Start: after(tc.at), Length: time.Second})
		if got := fmt.Sprint(m.VBMaxUM, " ", m.State); got != tc.want || why != tc.why {
			t.Errorf("%s: %q, %v, want %q, %v", name, got, why, tc.want, tc.why)
		}
	}
}

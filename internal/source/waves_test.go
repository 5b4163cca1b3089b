package source

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// memory is a recorded file in memory.
type memory struct {
	track.Listing
	values []track.Values
}

func (m *memory) add(info track.Info, numbers ...float64) {
	info.Len = int64(len(numbers))
	m.Infos, m.values = append(m.Infos, info), append(m.values, track.Values{Numbers: numbers})
}

func (m *memory) addText(name string, texts ...string) {
	m.Infos = append(m.Infos, track.Info{Name: name, Text: true, Len: int64(len(texts))})
	m.values = append(m.values, track.Values{Texts: texts})
}

func (m *memory) Close() error { return nil }

func (m *memory) Open(tracks []int) (track.Reader, error) {
	return m.SideBySide(tracks, func(i int) (track.Column, error) { return &memoryColumn{m.values[i]}, nil })
}

type memoryColumn struct{ left track.Values }

func (c *memoryColumn) Read(dst track.Values) (int, error) {
	n := copy(dst.Numbers, c.left.Numbers) + copy(dst.Texts, c.left.Texts)
	if n == 0 {
		return 0, io.EOF
	}
	c.left = c.left.Slice(n, len(c.left.Numbers)+len(c.left.Texts))
	return n, nil
}

func ramp(from, n int) (x []float64) {
	for i := range n {
		x = append(x, float64(from+i))
	}
	return x
}

func twoRates(t *testing.T) *signal.Layout {
	l, err := signal.NewLayout("two rates", []signal.Channel{
		{Name: "ax", Kind: signal.Vibration, Rate: 1000}, {Name: "thrust", Kind: signal.Force, Rate: 100}, {Name: "ay", Kind: signal.Vibration, Rate: 1000},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestWaves reads two holes of two rates: groups are sessions, a late start is a
// gap, and groups of other rates, such as decimated copies, or that lack a channel, whichever, are left out with a warning.
func TestWaves(t *testing.T) {
	at := time.Date(2026, 1, 31, 14, 0, 0, 0, time.UTC)
	var m memory
	for h, hole := range []string{"Hole 1", "Hole 2"} {
		start := at.Add(time.Duration(h) * time.Minute)
		m.add(track.Info{Group: hole, Name: "PXI1Slot2/ai1", Rate: 1000, Start: start}, ramp(1000*h, 2100)...)
		m.add(track.Info{Group: hole, Name: "PXI1Slot2/ai0", Rate: 1000.0001, Start: start}, ramp(0, 2100)...)
		m.add(track.Info{Group: hole, Name: "F", Rate: 100, Start: start.Add(500 * time.Millisecond)}, ramp(100, 160)...)
	}
	m.add(track.Info{Group: "Decimated", Name: "PXI1Slot2/ai0", Rate: 10}, 1)
	m.add(track.Info{Group: "Decimated", Name: "PXI1Slot2/ai1", Rate: 10}, 1)
	m.add(track.Info{Group: "Decimated", Name: "F", Rate: 1}, 1)
	m.add(track.Info{Group: "Hole 3", Name: "PXI1Slot2/ai1", Rate: 1000}, 1)
	m.add(track.Info{Group: "Hole 4", Name: "PXI1Slot2/ai0", Rate: 1000}, 1)
	m.add(track.Info{Group: "Hole 4", Name: "F", Rate: 100}, 1)
	var said []string
	rec := signal.Recording{Origins: map[string]signal.Origin{
		"ax": {From: "PXI1Slot2/ai0", Gain: 1}, "ay": {From: "PXI1Slot2/ai1", Gain: 2, Offset: 1}, "thrust": {From: "F", Gain: -1},
	}}
	w, err := newWaves(&m, "f.tdms", twoRates(t), rec, tableOptions{Machine: "drill", Session: 7, Warn: func(text string) { said = append(said, text) }})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`f.tdms: groups without all channels of the layout, left out: 2, the first is "Hole 3"`,
		`f.tdms: groups with other channels than the layout, left out: 1, the first is "Decimated": channel "Decimated/PXI1Slot2/ai0" was recorded at 10 Hz, but the layout says 1000 Hz for ax: correct ` + "`rate`",
	}
	if !slices.Equal(said, want) {
		t.Errorf("warnings: %s", strings.Join(said, "\n"))
	}
	c, err := NewCutter(w, window.Spec{Length: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for {
		cut, err := c.Next(t.Context())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if g := cut.Gap; g != nil {
			out = append(out, fmt.Sprintf("%s %d: gap %v, %s", g.Hole, g.Session, g.Duration, g.Reason))
			continue
		}
		x := cut.Window.Samples
		out = append(out, fmt.Sprintf("%s %s %d: %s ax %v…%v thrust %v…%v ay %v", cut.Window.Machine, cut.Window.Hole, cut.Window.Session,
			cut.Window.Start.Format("04:05.000"), x[0][0], x[0][999], x[1][0], x[1][99], x[2][0]))
	}
	// Windows begin where there are samples of both rates.
	want = []string{
		"Hole 1 7: gap 500ms, missing samples",
		"drill Hole 1 7: 00:00.500 ax 500…1499 thrust -100…-199 ay 1001",
		"Hole 1 7: gap 600ms, end of session",
		"Hole 2 8: gap 500ms, missing samples",
		"drill Hole 2 8: 01:00.500 ax 500…1499 thrust -100…-199 ay 3001",
		"Hole 2 8: gap 600ms, end of session",
	}
	if strings.Join(out, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(out, "\n"), strings.Join(want, "\n"))
	}
}

func TestWavesErrors(t *testing.T) {
	m := func(infos ...track.Info) *memory {
		var m memory
		for _, i := range infos {
			m.add(i, 1, 2, 3)
		}
		return &m
	}
	ax, ay, f := track.Info{Name: "ax"}, track.Info{Name: "ay"}, track.Info{Name: "thrust"}
	in := func(group string, i track.Info) track.Info {
		i.Group = group
		return i
	}
	huge := m(ay, f)
	huge.add(ax, 1, 1e39, 3)
	text := m(ay, f)
	text.addText("ax", "a")
	var out strings.Builder
	for _, tc := range []struct {
		name string
		file *memory
		rec  signal.Recording
	}{
		{"channel not there", m(track.Info{Name: "ai0"}, track.Info{Name: "ai1"}), signal.Recording{}},
		{"channel nearly there", m(track.Info{Name: "Ax"}, ay, f), signal.Recording{}},
		{"origin not there", m(ax, ay, f), signal.Recording{Origins: map[string]signal.Origin{"ax": {From: "ai0", Gain: 1}}}},
		{"other rate", m(track.Info{Name: "ax", Rate: 1010}, ay, f), signal.Recording{}},
		{"channels in different groups", m(in("1", ax), in("2", ax), in("1", ay), in("2", f)), signal.Recording{}},
		{"every group of another rate", m(in("1", track.Info{Name: "ax", Rate: 5}), in("1", ay), in("1", f), in("2", track.Info{Name: "ax", Rate: 6}), in("2", ay), in("2", f)), signal.Recording{}},
		{"two channels of one name", m(ax, ay, f, ax), signal.Recording{}},
		{"two channels of one name in a group", m(in("1", ay), in("1", ax), in("1", f), in("2", ax), in("2", ay), in("2", f), in("2", ay)), signal.Recording{}},
		{"text", text, signal.Recording{}},
		{"beyond float32", huge, signal.Recording{}},
		{"beyond float32 when calibrated", m(ax, ay, f), signal.Recording{Origins: map[string]signal.Origin{"ay": {From: "ay", Gain: 1e300}}}},
		{"columns with two rates", m(ax, ay, f), signal.Recording{Tool: "ax"}},
	} {
		src, err := openTracks(tc.file, "f.tdms", twoRates(t), tc.rec, tableOptions{})
		for err == nil {
			_, err = src.Next(t.Context())
		}
		if err == io.EOF {
			t.Errorf("%s: no error", tc.name)
		}
		fmt.Fprintf(&out, "# %s\n%v\n\n", tc.name, err)
	}
	golden.Check(t, "waves-errors.golden", out.String())
}

// Tracks that are read side by side end with the shortest one, which is an error or a warning with both lengths.
func TestUnequalLengths(t *testing.T) {
	for name, tc := range map[string]struct {
		ax, ay, rate int
		columns      signal.Recording
		fails, warns string
	}{
		"equal":                 {200, 200, 0, signal.Recording{}, "", ""},
		"a few are missing":     {200, 199, 0, signal.Recording{}, "", "f.mat: channel \"ay\" has 199 values and \"ax\" 200, and the layout gives both one rate: what follows the last value of the former is not read"},
		"another rate":          {200, 20, 0, signal.Recording{}, "source: f.mat: channel \"ay\" has 20 values and \"ax\" 200, and the layout gives both one rate: correct `rate` of the former, or take it out of the layout", ""},
		"the rate is known":     {20, 200, 1000, signal.Recording{}, "", "f.mat: channel \"ax\" has 20 values and \"ay\" 200, and the layout gives both one rate: what follows the last value of the former is not read"},
		"columns":               {200, 200, 0, signal.Recording{Tool: "ay"}, "", ""},
		"a column is too short": {200, 20, 0, signal.Recording{Tool: "ay"}, "source: f.mat: channel \"ay\" has 20 values and \"ax\" 200, and the layout gives both one rate: correct `rate` of the former, or take it out of the layout", ""},
	} {
		var m memory
		m.add(track.Info{Name: "ax", Rate: float64(tc.rate)}, ramp(0, tc.ax)...)
		m.add(track.Info{Name: "ay", Rate: float64(tc.rate)}, ramp(0, tc.ay)...)
		l, err := signal.NewLayout("l", []signal.Channel{{Name: "ax", Kind: signal.Vibration, Rate: 1000}, {Name: "ay", Kind: signal.Vibration, Rate: 1000}})
		if err != nil {
			t.Fatal(err)
		}
		var warned []string
		src, err := openTracks(&m, "f.mat", l, tc.columns, tableOptions{Warn: func(text string) { warned = append(warned, text) }})
		for err == nil {
			_, err = src.Next(t.Context())
		}
		if err == io.EOF {
			err = nil
		}
		if got := strings.Join(warned, "; "); (err == nil) != (tc.fails == "") || err != nil && err.Error() != tc.fails || got != tc.warns {
			t.Errorf("%s: %v, %q", name, err, got)
		}
	}
}

// Channels of one rate that begin apart are read side by side, with a warning, and so are columns.
func TestStartsApart(t *testing.T) {
	at := time.Date(2026, 1, 31, 14, 0, 0, 0, time.UTC)
	const warns = `f.tdms: channels "ax" and "ay" begin 2ms apart, and are read side by side: start them by one trigger, or take one out of the layout`
	for name, tc := range map[string]struct {
		ax, ay  time.Time
		columns signal.Recording
		warns   string
	}{
		"less than a sample": {at, at.Add(time.Millisecond / 2), signal.Recording{}, ""},
		"later":              {at, at.Add(2 * time.Millisecond), signal.Recording{}, warns},
		"earlier":            {at, at.Add(-2 * time.Millisecond), signal.Recording{}, warns},
		"one is not known":   {at, time.Time{}, signal.Recording{}, ""},
		"columns":            {at, at.Add(2 * time.Millisecond), signal.Recording{VBMax: "ax"}, warns},
	} {
		var m memory
		m.add(track.Info{Name: "ax", Rate: 1000, Start: tc.ax}, ramp(0, 10)...)
		m.add(track.Info{Name: "ay", Rate: 1000, Start: tc.ay}, ramp(0, 10)...)
		var warned []string
		src, err := openTracks(&m, "f.tdms", layout(t, 1000, "ax", "ay"), tc.columns, tableOptions{Warn: func(text string) { warned = append(warned, text) }})
		if err == nil {
			_, err = src.Next(t.Context())
		}
		if got := strings.Join(warned, "; "); err != nil || got != tc.warns {
			t.Errorf("%s: %v, %q", name, err, got)
		}
	}
}

// TestTracksAsTable reads a file of columns, some of which are facts.
func TestTracksAsTable(t *testing.T) {
	var m memory
	m.add(track.Info{Name: "t"}, 0, 0.1, 0.4, 0.5)
	m.add(track.Info{Name: "ax"}, 1, 2, 3, 4)
	m.add(track.Info{Name: "VB"}, 50, 50, 60, 70)
	m.add(track.Info{Name: "n"}, 1750, 1750, 1750, 1800)
	m.add(track.Info{Name: "insert"}, 1, 1, 1, 2)
	m.addText("state", "new", "new", "worn", "NaN")
	rec := signal.Recording{Time: "t", Tool: "insert", Speed: "n", VBMax: "VB", State: "state"}
	src, err := openTracks(&m, "f.parquet", layout(t, 10, "ax"), rec, tableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for {
		b, err := src.Next(t.Context())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%s %d+%d %v %v", b.Tool, b.Session, b.First, b.SpindleSpeed, b.Samples)
		for _, tr := range b.Truth {
			text += fmt.Sprintf(" %v %q", tr.VBMaxUM, tr.State)
		}
		out = append(out, text)
	}
	want := `1 0+0 1750 [[1 2]] 50 "new" 50 "new"|1 0+4 1750 [[3]] 60 "worn"|2 1+0 1800 [[4]] 70 ""`
	if got := strings.Join(out, "|"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	m.values[0].Numbers[2] = 0.05
	m.values[5].Texts = []string{"x", "x", "x", "x"}
	for name, rec := range map[string]signal.Recording{
		`source: f.parquet: row 3: column "t": 0.05 is not later`:         {Time: "t"},
		`source: f.parquet: row 1: column "state": "x" is text, not a`:    {VBMax: "state"},
		`source: f.parquet: row 1: column "state": "x" is not a time`:     {Time: "state"},
		`source: f.parquet: no column "hole", which the layout names as `: {Hole: "hole"},
	} {
		src, err := openTracks(&m, "f.parquet", layout(t, 10, "ax"), rec, tableOptions{})
		for err == nil {
			_, err = src.Next(t.Context())
		}
		if !strings.HasPrefix(err.Error(), name) {
			t.Errorf("got %v, want %s…", err, name)
		}
	}
}

// A date that a column of numbers holds goes before the time of the day in another column, as in tables of text.
func TestTracksWithDateOfNumbers(t *testing.T) {
	var m memory
	m.add(track.Info{Name: "day"}, 20261102, 20261103, math.NaN())
	m.addText("t", "23:59:59.5", "00:00:00", "00:00:00.5")
	m.add(track.Info{Name: "ax"}, 1, 2, 3)
	src, err := openTracks(&m, "f.parquet", layout(t, 2, "ax"), signal.Recording{Time: "t", Date: "day"}, tableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := src.Next(t.Context())
	if want := time.Date(2026, 11, 2, 23, 59, 59, 500e6, time.UTC); err != nil || b.Len() != 2 || !b.Time.Equal(want) {
		t.Fatalf("%+v, %v", b, err)
	}
	if _, err := src.Next(t.Context()); err == nil || !strings.Contains(err.Error(), `row 3: column "t": "00:00:00.5" is not a time`) {
		t.Error(err)
	}
}

package report

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTicksAreRound(t *testing.T) {
	for _, tc := range []struct {
		low, high float64
		n         int
		want      []float64
		digits    int
	}{
		{0, 1, 5, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}, 1},
		{1, 150, 6, []float64{50, 100, 150}, 0},
		{-0.3, 0.3, 3, []float64{-0.2, 0, 0.2}, 1},
		{2, 2, 5, []float64{2}, 2},
		{1e6, 1e6 + 1e-9, 5, []float64{1e6}, 2},
	} {
		at, digits := ticks(tc.low, tc.high, tc.n)
		same := slices.EqualFunc(at, tc.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
		if !same || digits != tc.digits {
			t.Errorf("ticks of [%v, %v] are %v with %d digits, want %v with %d", tc.low, tc.high, at, digits, tc.want, tc.digits)
		}
	}
}

// sound reports what is wrong with a drawing as XML.
func sound(svg []byte) error {
	for dec := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := dec.Token(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// For any values and names, a plot is sound XML in which every coordinate
// is a number within the drawing.
func TestPlotsOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 20).Draw(t, "points")
		value := rapid.OneOf(rapid.Float64Range(-1e6, 1e6), rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), math.Inf(-1)}))
		s := Series{Name: rapid.String().Draw(t, "name"), Color: Blue, Dots: true}
		for range n {
			s.X, s.Y = append(s.X, value.Draw(t, "x")), append(s.Y, value.Draw(t, "y"))
			s.Notes = append(s.Notes, rapid.String().Draw(t, "note"))
		}
		p := Plot{Title: s.Name, X: Axis{Label: "x"}, Y: Axis{Label: "y", Log: true}, Series: []Series{s}}
		for _, svg := range [][]byte{p.SVG(), Panels(s.Name, "", 2, 200, 80, []Plot{p, {Series: p.Series}, p})} {
			if err := sound(svg); err != nil {
				t.Fatalf("%v\n%s", err, svg)
			}
			for _, bad := range []string{`="NaN"`, `="Inf"`, `="+Inf"`, `="-Inf"`} {
				if bytes.Contains(svg, []byte(bad)) {
					t.Fatalf("a coordinate is %s\n%s", bad, svg)
				}
			}
		}
	})
}

// Panels stand in rows below their title, and a row without titles or labels is lower.
func TestPanels(t *testing.T) {
	svg := string(Panels("all", "", 2, 200, 80, []Plot{{Title: "a"}, {}, {Y: Axis{Label: "b"}, X: Axis{Label: "s"}}}))
	for what, want := range map[string]string{
		"its size":                  `width="552" height="342"`, // 36, 46 + 80 + 26, 26 + 80 + 48
		"the title of a panel":      `x="58" y="60" text-anchor="start" fill="#1d2939" font-size="14" font-weight="600">a<`,
		"the second in a row":       `x1="334" y1="162" x2="534" y2="162"`,
		"a label in the second row": `x="58" y="206" text-anchor="start" fill="#667085" font-size="11">b<`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("%s: no %s in\n%s", what, want, svg)
		}
	}
}

// Long labels of Y push the axes to the right, and a constant is in the middle.
func TestLongLabels(t *testing.T) {
	series := func(y ...float64) []Series { return []Series{{X: []float64{0, 1}, Y: y, Color: Blue}} }
	svg := string(Panels("", "", 1, 200, 80, []Plot{{Series: series(0, 0)}, {Series: series(1769868000, 1769868010)}}))
	for what, want := range map[string]string{
		"a constant in the middle": `d="M82 66L282 66"`,
		"digits that differ":       `x="74" y="202" text-anchor="end" fill="#667085" font-size="11">1769868005<`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("%s: no %s in\n%s", what, want, svg)
		}
	}
}

// What is not finite neither decides a range nor is drawn.
func TestPlotLeavesOutInfinity(t *testing.T) {
	s := Series{X: []float64{0, 1, 2, 3}, Y: []float64{1, math.Inf(1), 2, math.Inf(-1)}, Color: Blue}
	svg := string(Plot{Series: []Series{s}}.SVG())
	if want := `d="M58 292M314 46"`; !strings.Contains(svg, want) {
		t.Errorf("no %s in\n%s", want, svg)
	}
}

// The path leaves out what cannot be seen and breaks where a value is missing.
func TestPath(t *testing.T) {
	c := &canvas{}
	nan := math.NaN()
	c.path([]float64{1, 1.01, 2, nan, 4, 5}, []float64{1, 1, 2, 3, 4, 5}, Blue, 1, false)
	if got := c.b.String(); !strings.Contains(got, `d="M1 1L2 2M4 4L5 5"`) {
		t.Error(got)
	}
}

// The words at dots stay within the plot: below a dot at the top, before a dot at the right.
func TestNotes(t *testing.T) {
	s := Series{X: []float64{0, 0.5, 1}, Y: []float64{0, 1, 1}, Notes: []string{"left", "top", "right"}, Color: Blue, Dots: true}
	svg := string(Plot{X: Axis{High: 1}, Y: Axis{High: 1}, Series: []Series{s}}.SVG())
	for _, want := range []string{`x="55" y="283" text-anchor="start"`, `x="247" y="63" text-anchor="start"`, `x="445" y="63" text-anchor="end"`} {
		if !strings.Contains(svg, want) {
			t.Errorf("no text at %s in\n%s", want, svg)
		}
	}
}

// The first alarm of a tool is a line at its window, with words at the top.
func TestAlarmOfALife(t *testing.T) {
	l := Life{Tool: "T1", Score: make([]float64, 202), Faulty: make([]bool, 202), Alarm: 101, Note: "271 <µm>"}
	svg := string(Lives("lives", []Life{l}))
	if err := sound([]byte(svg)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<line x1="131" y1="73" x2="131"`, "271 &lt;µm&gt;", "first alarm"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
	l.Alarm, l.Note = 0, ""
	if svg := string(Lives("lives", []Life{l})); strings.Contains(svg, "first alarm") {
		t.Error("an alarm is drawn, and there was none")
	}
}

// A life of more windows than pixels keeps its extremes.
func TestLongLife(t *testing.T) {
	l := Life{Tool: "T<1>", Score: make([]float64, 50000), Faulty: make([]bool, 50000)}
	l.Score[33333] = 1
	svg := string(Lives("lives", []Life{l}))
	if err := sound([]byte(svg)); err != nil {
		t.Fatal(err)
	}
	if len(svg) > 12000 || !strings.Contains(svg, " 76L") {
		t.Errorf("%d bytes, or the one high score is lost:\n%.3000s", len(svg), svg)
	}
}

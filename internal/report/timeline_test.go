package report

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// For any events, a timeline is sound XML in which every coordinate is a number.
func TestTimelinesOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.Float64Range(-1e6, 1e6), rapid.Just(0.))
		tl := Timeline{Title: rapid.String().Draw(t, "title"), Label: "hours", High: value.Draw(t, "high")}
		for range rapid.IntRange(0, 4).Draw(t, "lanes") {
			l := Lane{Name: rapid.String().Draw(t, "name"), High: value.Draw(t, "lane high"), Limit: value.Draw(t, "limit")}
			for range rapid.IntRange(0, 5).Draw(t, "points") {
				l.X, l.Y = append(l.X, value.Draw(t, "x")), append(l.Y, rapid.OneOf(value, rapid.Just(math.NaN())).Draw(t, "y"))
			}
			l.Spans = []Span{{value.Draw(t, "from"), value.Draw(t, "to"), Orange, rapid.String().Draw(t, "text")}}
			tl.Lanes = append(tl.Lanes, l)
		}
		svg := tl.SVG()
		if err := sound(svg); err != nil {
			t.Fatalf("%v\n%s", err, svg)
		}
		for _, bad := range []string{`"NaN"`, `Inf"`} {
			if bytes.Contains(svg, []byte(bad)) {
				t.Fatalf("a coordinate is %s\n%s", bad, svg)
			}
		}
	})
}

// What is too short to be seen is drawn all the same.
func TestTimelineShowsShortSpans(t *testing.T) {
	svg := string(Timeline{High: 8, Lanes: []Lane{{Name: "alarm", Spans: []Span{{4, 4, Orange, "T01"}}}}}.SVG())
	if !strings.Contains(svg, `width="1.5" height="13" fill="`+Orange) {
		t.Error(svg)
	}
}

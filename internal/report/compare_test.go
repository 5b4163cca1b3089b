package report

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// For any scores and names, drawings of methods are sound XML without a
// coordinate that is not a number, and equal input gives equal bytes.
func TestComparisonsOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "methods")
		share := rapid.SliceOf(rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 0.5, 1})))
		var boxes []BoxRow
		var ranks []Rank
		for range n {
			name := rapid.String().Draw(t, "name")
			boxes = append(boxes, BoxRow{Name: name, Values: share.Draw(t, "values"), Color: Blue})
			ranks = append(ranks, Rank{Name: name, Mean: rapid.Float64Range(1, float64(n)).Draw(t, "rank"), Color: Grey})
		}
		x := share.Draw(t, "x")
		s := Scatter{Title: "of sets", X: x, Y: slices.Clone(x), Names: make([]string, len(x)), Color: Orange}
		slices.Reverse(s.Y)
		draw := func() [][]byte {
			return [][]byte{Boxes("boxes", "", "G-mean", boxes), Ranks("ranks", 2.5, ranks), s.SVG()}
		}
		again := draw()
		for i, svg := range draw() {
			if err := sound(svg); err != nil {
				t.Fatalf("%v\n%s", err, svg)
			}
			for _, bad := range []string{"NaN", "Inf"} {
				if bytes.Contains(svg, []byte(`="`+bad)) || bytes.Contains(svg, []byte(`="-`+bad)) {
					t.Fatalf("a coordinate is %s\n%s", bad, svg)
				}
			}
			if !bytes.Equal(svg, again[i]) {
				t.Fatal("equal input, different bytes")
			}
		}
	})
}

// Bars of a critical-difference diagram: the largest groups, none inside another,
// none of one.
func TestRankGroups(t *testing.T) {
	for name, tc := range map[string]struct {
		ranks []float64
		want  [][2]int
	}{
		"nothing":                   {nil, nil},
		"all apart":                 {[]float64{1, 3, 5}, nil},
		"all together":              {[]float64{1, 1.5, 2}, [][2]int{{0, 2}}},
		"overlapping":               {[]float64{1, 2, 2.5, 3.9}, [][2]int{{0, 2}, {1, 3}}},
		"apart at the difference":   {[]float64{1, 3}, nil},
		"a group within a group":    {[]float64{1, 1.1, 2.9, 3, 4.95}, [][2]int{{0, 2}, {1, 3}, {3, 4}}},
		"equal ranks are one group": {[]float64{2, 2}, [][2]int{{0, 1}}},
	} {
		var ranks []Rank
		for _, r := range tc.ranks {
			ranks = append(ranks, Rank{Mean: r})
		}
		if got := groups(ranks, 2); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// Box, whiskers and what lies beyond, by hand: quartiles 0.425 and 0.575,
// so that whiskers end within 0.2 and 0.8.
func TestBox(t *testing.T) {
	svg := string(Boxes("t", "", "", []BoxRow{{Name: "m", Values: []float64{0, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7}, Color: Blue}}))
	at := func(v float64) string { return num(190 + v*(704-190-62)) }
	for what, want := range map[string]string{
		"the outlier":  fmt.Sprintf(`<circle cx="%s" cy="58" r="1.8"`, at(0)),
		"the whiskers": fmt.Sprintf(`<line x1="%s" y1="58" x2="%s" y2="58"`, at(0.4), at(0.7)),
		"the median":   fmt.Sprintf(`<line x1="%s" y1="52" x2="%s" y2="64"`, at(0.5), at(0.5)),
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("%s is not at %s\n%s", what, want, svg)
		}
	}
	for p, want := range map[float64]float64{0: 1, 0.5: 2.5, 0.25: 1.75, 1: 4} {
		if got := quantile([]float64{1, 2, 3, 4}, p); math.Abs(got-want) > 1e-12 {
			t.Errorf("quantile %v of 1 to 4 is %v, want %v", p, got, want)
		}
	}
}

func TestScatterNamesTheFarthest(t *testing.T) {
	s := Scatter{X: []float64{0.5, 0.9, 0.2, 0.4}, Y: []float64{0.5, 0.8, 0.9, 0.6}, Names: []string{"a", "b", "c", "d"}}
	if got := s.farthest(); !slices.Equal(got, []int{2, 3, 1}) {
		t.Errorf("%v, want 2, 3, 1: without the point on the diagonal", got)
	}
	if svg := string(s.SVG()); !strings.Contains(svg, "higher on 2, lower on 1") {
		t.Error(svg)
	}
}

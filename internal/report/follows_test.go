package report

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// For any features, the drawing is sound XML without a coordinate that is not a number,
// and equal input gives equal bytes.
func TestFollowersOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rows []Follower
		for range rapid.IntRange(0, 30).Draw(t, "features") {
			rows = append(rows, Follower{
				Name:   rapid.String().Draw(t, "name"),
				Weight: rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1e-9, 1})).Draw(t, "weight"),
				Rho:    rapid.SliceOf(rapid.OneOf(rapid.Float64Range(-1, 1), rapid.Just(math.NaN()))).Draw(t, "rho"),
			})
		}
		svg := Followers("title", rows)
		if err := sound(svg); err != nil {
			t.Fatalf("%v\n%s", err, svg)
		}
		for _, bad := range []string{`="NaN`, `="Inf`, `="-Inf`, `width="-`} {
			if bytes.Contains(svg, []byte(bad)) {
				t.Fatalf("%s in\n%s", bad, svg)
			}
		}
		if !bytes.Equal(svg, Followers("title", rows)) {
			t.Fatal("equal input, different bytes")
		}
	})
}

// A bar is as long as its weight says on a scale that ends at a round value, and dots are where
// their correlations are, with a line at the mean of those that there are.
func TestFollowers(t *testing.T) {
	svg := string(Followers("t", []Follower{{Name: "f", Weight: 0.73, Rho: []float64{-1, 0.5, math.NaN()}}, {Name: "g", Weight: 0.2}}))
	rho := func(v float64) string { return num(520 + (v+1)/2*296) }
	for what, want := range map[string]string{
		"the longer bar":  fmt.Sprintf(`<rect x="222" y="88.5" width="%s" height="12"`, num(0.73/0.8*230)),
		"the shorter bar": fmt.Sprintf(`<rect x="222" y="109.5" width="%s" height="12"`, num(0.2/0.8*230)),
		"a falling tool":  fmt.Sprintf(`<circle cx="%s" cy="94.5"`, rho(-1)),
		"a rising tool":   fmt.Sprintf(`<circle cx="%s" cy="94.5"`, rho(0.5)),
		"the mean":        fmt.Sprintf(`<line x1="%s" y1="87.5" x2="%s" y2="101.5"`, rho(-0.25), rho(-0.25)),
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("%s is not at %s\n%s", what, want, svg)
		}
	}
	if n := strings.Count(svg, "<circle"); n != 2 {
		t.Errorf("%d dots, want 2", n)
	}
}

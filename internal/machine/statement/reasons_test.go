package statement

import (
	"math"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/internal/event"
)

func TestRanked(t *testing.T) {
	for why, tc := range map[string]struct {
		parts  []float64
		most   int
		order  []int
		shares []float64
	}{
		"what speaks against has no share":     {[]float64{1, -5, 3}, 3, []int{2, 0}, []float64{0.75, 0.25}},
		"shares are of all, also those left":   {[]float64{1, 1, 2}, 1, []int{2}, []float64{0.5}},
		"equals stay in their order":           {[]float64{1, 1}, 2, []int{0, 1}, []float64{0.5, 0.5}},
		"nothing speaks for it":                {[]float64{-1, 0}, 2, nil, nil},
		"rounded to a thousandth":              {[]float64{1, 2}, 1, []int{1}, []float64{0.667}},
		"as small as can be, and still finite": {[]float64{math.SmallestNonzeroFloat64}, 1, []int{0}, []float64{1}},
	} {
		order, shares := ranked(tc.parts, tc.most)
		if !slices.Equal(order, tc.order) || !slices.Equal(shares, tc.shares) {
			t.Errorf("%s: %v %v, want %v %v", why, order, shares, tc.order, tc.shares)
		}
	}
}

func TestBecause(t *testing.T) {
	n := func(v float64) *float64 { return &v }
	reasons := &event.Reasons{Channels: []event.ChannelReason{{Channel: "torque", Words: "mean", Share: 0.41}, {Channel: "smcAC", Share: 0.27}}}
	for want, a := range map[string]event.Alert{
		"": {},
		" Reasons: torque 41 % (mean), smcAC 27 %.": {Reasons: reasons},
		" No holes left.":                     {Wear: &event.Wear{HolesLeft: n(0), HolesLeftLow: n(0), HolesLeftHigh: n(0.4)}},
		" ~0 holes (0-2) left.":               {Wear: &event.Wear{HolesLeft: n(0.3), HolesLeftLow: n(0), HolesLeftHigh: n(2)}},
		" ~3 holes (1-6) left.":               {Wear: &event.Wear{HolesLeft: n(3.2), HolesLeftLow: n(1), HolesLeftHigh: n(6.4)}},
		" ~1 hole (1-3) left.":                {Wear: &event.Wear{HolesLeft: n(0.5), HolesLeftLow: n(0.5), HolesLeftHigh: n(2.5)}},
		" ~1 hole (0 or more) left.":          {Wear: &event.Wear{HolesLeft: n(0.9), HolesLeftLow: n(0.2)}},
		" ~0 windows (0-12) of cutting left.": {Wear: &event.Wear{WindowsLeft: n(0), WindowsLeftLow: n(0), WindowsLeftHigh: n(12)}},
	} {
		if got := because(&a); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := because(&event.Alert{Reasons: &event.Reasons{}, Wear: &event.Wear{}}); got != "" {
		t.Errorf("%q", got)
	}
}

package machine

import (
	"math"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/machinetest"
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

// What an alert carries of the window that decided: the state, the time in the
// cut, the reasons, and a trace that ends with it.
func TestAlertCarriesItsReasons(t *testing.T) {
	b := newBench(t, machinetest.Cycling(t))
	var all []event.Alert
	seq := uint64(0)
	for range 70 { // longer than a trace
		all = append(all, b.window(at(seq, "T1", false)).Alerts...)
		seq++
	}
	b.window(machinetest.Idle(seq, "T1"))
	for range 2 {
		seq++
		all = append(all, b.window(at(seq, "T1", true)).Alerts...)
	}
	all = append(all, b.window(at(seq+1, "T2", false)).Alerts...)
	if len(all) != 2 {
		t.Fatalf("%d alerts", len(all))
	}
	for _, a := range all {
		if a.CuttingSeconds != 72 {
			t.Errorf("%s after %v s of cutting", a.State, a.CuttingSeconds)
		}
	}
	a := all[0]
	if a.CuttingState != "drilling" || len(a.Trace) != event.MaxTrace || a.Trace[event.MaxTrace-1].Seq != seq || a.Trace[event.MaxTrace-1].Score != a.Score {
		t.Errorf("%s after %d windows", a.CuttingState, len(a.Trace))
	}
	if w := a.Trace[event.MaxTrace-3]; w.Verdict != event.NotCutting || w.Score != 0 {
		t.Errorf("the idle window is %+v", w)
	}
	r := a.Reasons
	if r == nil || r.Total <= 0 || r.Base >= r.Total || len(r.Channels) != 1 || r.Channels[0] != (event.ChannelReason{Channel: "force", Share: 1}) {
		t.Fatalf("%+v", r)
	}
	if f := r.Features[0]; f.Feature != "force" || f.Unit != "N" || *f.Value != 20 || !(*f.Usual > 9 && *f.Usual < 15) {
		t.Errorf("%s", event.JSON(f))
	}
	if cleared := all[1]; cleared.Reasons != nil || cleared.Trace != nil {
		t.Errorf("%s", event.JSON(cleared))
	}
	b.window(at(seq+2, "T2", false))
	if tool := b.m.inSpindle(); len(tool.Trace) != 2 || tool.Cutting.Seconds() != 2 {
		t.Errorf("of the next tool %d windows are in the trace, %v cut", len(tool.Trace), tool.Cutting)
	}
}

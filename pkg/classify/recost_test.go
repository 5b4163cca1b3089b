package classify

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// What a fit keeps is what its costs were chosen on: with the same classes they come out the same, byte by byte, and so do posteriors.
func TestRecostSameClasses(t *testing.T) {
	for _, guard := range []Guard{GuardOff, GuardVote} {
		tb, s := sensed(3, 8), quick()
		s.Guard = guard
		c, r := tableFitted(t, tb, s)
		h := r.HeldOut
		if h == nil || len(h.Fold) != len(tb.Y) || h.Folds != r.Costs.Folds || h.Temperature != r.Costs.Temperature || !h.ByGroup {
			t.Fatalf("guard %s: kept %+v", guard, h)
		}
		if !slices.Equal(c.Judged(h), r.Posterior) {
			t.Errorf("guard %s: posteriors differ from those that costs were chosen on", guard)
		}
		for _, p := range h.Posterior {
			if p != float64(float32(p)) {
				t.Fatalf("posterior %v is not a float32", p)
			}
		}
		again, report, err := c.Recost(t.Context(), h, tb.Y, tb.Y, tb.Groups, s)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := c.AppendBinary(nil)
		b, _ := again.AppendBinary(nil)
		if !bytes.Equal(a, b) || !slices.Equal(report.Posterior, r.Posterior) || report.Held.GMean != r.Held.GMean {
			t.Errorf("guard %s: costs %v became %v, temperature %v %v", guard, c.Costs(), again.Costs(), r.Costs.Temperature, report.Costs.Temperature)
		}
		if (c.Guard() != nil) != (guard == GuardVote) {
			t.Errorf("guard %s: %v", guard, c.Guard())
		}
	}
}

func TestRecostRefuses(t *testing.T) {
	tb, s := sensed(3, 8), quick()
	s.Guard = GuardOff
	c, r := tableFitted(t, tb, s)
	h := r.HeldOut
	ones, flat := make([]int, len(tb.Y)), h.Rows(places(len(tb.Y)))
	for i := range flat.Posterior {
		flat.Posterior[i] = 0.5
	}
	for name, o := range map[string]struct {
		h  *HeldOut
		y  []int
		is error
	}{
		"rows are missing": {h.Rows([]int{0, 1}), tb.Y, ErrSize},
		"a class is empty": {h, ones, errClasses},
		"near constant":    {flat, tb.Y, ErrTooFew},
	} {
		if _, _, err := c.Recost(t.Context(), o.h, o.y, tb.Y, tb.Groups, s); !errors.Is(err, o.is) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func places(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Rows that were not trained on get the posteriors that they have later, but for float32, before temperature and guard.
func TestJudgeUnlabelled(t *testing.T) {
	tb, s := sensed(3, 8), quick()
	s.Guard = GuardVote
	c, r := tableFitted(t, tb, s)
	posterior, vote, err := c.JudgeUnlabelled(tb.X, r.HeldOut.Temperature)
	if err != nil {
		t.Fatal(err)
	}
	got := c.Judged(&HeldOut{Temperature: r.HeldOut.Temperature, Posterior: posterior, Vote: vote, Fold: make([]int, len(tb.Y))})
	scorer := c.NewScorer()
	for i := range tb.Y {
		want := scorer.Posterior(tb.X.(dbn.Matrix).Row(i))
		if math.Abs(got[2*i]-want[0]) > 1e-5 {
			t.Fatalf("row %d: %v, want %v", i, got[2*i:2*i+2], want)
		}
	}
}

func TestShift(t *testing.T) {
	a := weighted([]float64{1, 1, 1})
	for _, c := range []struct {
		to   []float64
		want float64
	}{{[]float64{2, 2, 2}, 0}, {[]float64{1, 2, 1}, math.Log(2)}, {[]float64{0.5, 1, 2}, math.Log(4)}} {
		if got := Shift(a, weighted(c.to)); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("to %v: %v, want %v", c.to, got, c.want)
		}
	}
}

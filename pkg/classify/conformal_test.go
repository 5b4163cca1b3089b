package classify

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// draw returns posteriors and labels of n rows from one law: a third of them of class
// 1, whose log odds are about 2 higher.
func draw(rng *rand.Rand, n int) (posterior []float64, y []int) {
	for range n {
		label := 0
		if rng.IntN(3) == 0 {
			label = 1
		}
		p := 1 / (1 + math.Exp(1-2*float64(label)-rng.NormFloat64()))
		posterior, y = append(posterior, 1-p, p), append(y, label)
	}
	return posterior, y
}

// The p-value is (1 + rows no more like the class)/(1 + rows), ties among them.
func TestConformalFormula(t *testing.T) {
	posterior := []float64{0.9, 0.1, 0.8, 0.2, 0.8, 0.2, 0.3, 0.7, 0.1, 0.9}
	c, err := NewConformal(posterior, []int{0, 0, 0, 1, 1}, 2, 0.34)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		healthy  float64 // P(healthy)
		p0, p1   float64
		decision int
		want     Doubt
	}{
		{0.95, 4. / 4, 1. / 3, 0, NoDoubt},
		{0.9, 4. / 4, 1. / 3, 0, NoDoubt},
		{0.8, 3. / 4, 1. / 3, 0, NoDoubt},
		{0.8, 3. / 4, 1. / 3, 1, Ambiguous}, // costs decide for the other
		{0.5, 1. / 4, 1. / 3, 0, Implausible},
		{0.3, 1. / 4, 2. / 3, 1, NoDoubt},
		{0.05, 1. / 4, 3. / 3, 1, NoDoubt}, // further out on its own side is no doubt
		{0.05, 1. / 4, 3. / 3, 0, Ambiguous},
	} {
		p := []float64{tc.healthy, 1 - tc.healthy}
		if got0, got1 := c.P(0, p), c.P(1, p); got0 != tc.p0 || got1 != tc.p1 {
			t.Errorf("P(healthy) %v: p-values %v, %v, want %v, %v", tc.healthy, got0, got1, tc.p0, tc.p1)
		}
		if got := c.Check(tc.decision, p); got != tc.want {
			t.Errorf("P(healthy) %v, decided %d: %v, want %v", tc.healthy, tc.decision, got, tc.want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { c.Check(0, posterior[:2]) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// With three classes the last two are one side.
func TestConformalSidesOfThreeClasses(t *testing.T) {
	c := &Conformal{Rate: 0.3, scores: [][]float64{{0.5, 0.9}, {0.2, 0.6}, {0.2, 0.6}}}
	for _, tc := range []struct {
		p        []float64
		decision int
		want     Doubt
	}{
		{[]float64{0.95, 0.03, 0.02}, 0, Ambiguous}, // p-values of 1/3 are above 0.3
		{[]float64{0.1, 0.5, 0.4}, 1, Ambiguous},
	} {
		if got := c.Check(tc.decision, tc.p); got != tc.want {
			t.Errorf("%v: %v, want %v", tc.p, got, tc.want)
		}
	}
	c.Rate = 0.4
	for _, tc := range []struct {
		p        []float64
		decision int
		want     Doubt
	}{
		{[]float64{0.95, 0.03, 0.02}, 0, NoDoubt},
		{[]float64{0.1, 0.5, 0.4}, 1, NoDoubt}, // of one of two, both faulty
		{[]float64{0.1, 0.5, 0.4}, 0, Ambiguous},
		{[]float64{0.45, 0.15, 0.15}, 1, Implausible},
		{[]float64{0.5, 0.4, 0.1}, 0, Ambiguous},
	} {
		if got := c.Check(tc.decision, tc.p); got != tc.want {
			t.Errorf("%v decided %d: %v, want %v", tc.p, tc.decision, got, tc.want)
		}
	}
}

// Of exchangeable rows, each class is in its set as often as promised, and hardly
// more often: over many calibrations coverage is 1 − rate to 1 − rate + 1/(n+1).
func TestConformalCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, rate := range []float64{0.05, 0.2} {
		var in, of [2]float64
		var slack [2]float64
		const calibrations = 60
		for range calibrations {
			p, y := draw(rng, 150)
			c, err := NewConformal(p, y, 2, rate)
			if err != nil {
				t.Fatal(err)
			}
			for k := range slack {
				slack[k] += 1 / float64(len(c.scores[k])+1) / calibrations
			}
			p, y = draw(rng, 600)
			for i, label := range y {
				of[label]++
				if c.In(label, p[2*i:2*i+2]) {
					in[label]++
				}
			}
		}
		for k := range in {
			const tolerance = 0.01 // three standard errors of 60 calibrations
			if got := in[k] / of[k]; got < 1-rate-tolerance || got > 1-rate+slack[k]+tolerance {
				t.Errorf("rate %v: class %d is in its set in %.4f of %v rows", rate, k, got, of[k])
			}
		}
	}
}

// A set never gains a class when the rate grows, and a row that looks more like a
// class never has a lower p-value of it.
func TestConformalMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		p, y := draw(rng, 120)
		a, b := rapid.Float64Range(0.06, 0.5).Draw(t, "rate"), rapid.Float64Range(0.06, 0.5).Draw(t, "other")
		low, err := NewConformal(p, y, 2, min(a, b))
		if err != nil {
			t.Skip(err)
		}
		high, err := NewConformal(p, y, 2, max(a, b))
		if err != nil {
			t.Skip(err)
		}
		q, r := rapid.Float64Range(0, 1).Draw(t, "q"), rapid.Float64Range(0, 1).Draw(t, "r")
		for k := range 2 {
			row := []float64{q, q}
			if high.In(k, row) && !low.In(k, row) {
				t.Fatalf("class %d of %v is in the set at %v and not at %v", k, row, high.Rate, low.Rate)
			}
			if q <= r && low.P(k, row) > low.P(k, []float64{r, r}) {
				t.Fatalf("p-value falls from %v to %v", q, r)
			}
		}
	})
}

// Of many calibration rows few are kept, and no p-value gets smaller by it, nor
// larger by more than two of their ranks.
func TestConformalKeepsFewOfMany(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	p, y := draw(rng, 100_000)
	c, err := NewConformal(p, y, 2, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	var all []float64
	for i, label := range y {
		if label == 0 {
			all = append(all, p[2*i])
		}
	}
	slices.Sort(all)
	if len(c.scores[0]) != mostKept {
		t.Fatalf("%d scores of %d rows", len(c.scores[0]), len(all))
	}
	for range 1000 {
		q := rng.Float64()
		want := float64(1+atMost(all, q)) / float64(1+len(all))
		if got := c.P(0, []float64{q, 1 - q}); got < want-1e-12 || got > want+2./(mostKept+1) {
			t.Errorf("P(healthy) %v: p-value %v, of all rows %v", q, got, want)
		}
	}
}

func TestConformalTooFew(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	p, y := draw(rng, 30)
	if _, err := NewConformal(p, y, 2, 0.05); !errors.Is(err, ErrTooFew) {
		t.Errorf("some ten rows at 0.05: %v", err)
	}
	if _, err := NewConformal(p, y, 2, 1); !errors.Is(err, ErrSettings) {
		t.Errorf("a rate of 1: %v", err)
	}
}

func FuzzConformal(f *testing.F) {
	p, y := draw(rand.New(rand.NewPCG(7, 8)), 90)
	c, err := NewConformal(p, y, 2, 0.1)
	if err != nil {
		f.Fatal(err)
	}
	good, _ := c.AppendBinary(nil)
	f.Add(good)
	f.Add(good[:len(good)-3])
	f.Fuzz(func(t *testing.T, b []byte) {
		var c Conformal
		if err := c.UnmarshalBinary(b); err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if again, _ := c.AppendBinary(nil); !slices.Equal(again, b) {
			t.Fatal("it is not written as it was read")
		}
		c.Check(0, make([]float64, c.Classes()))
	})
}

package unknown

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify"
	"pgregory.net/rapid"
)

// The p-value is (1 + K·F)/(1 + K), F the mean over K tools of their shares of windows
// that are as like the class or less. Of healthy there are two tools, of
// two windows and of one, and of faulty one of two.
func TestConformalByTool(t *testing.T) {
	posterior := []float64{0.9, 0.1, 0.8, 0.2, 0.8, 0.2, 0.3, 0.7, 0.1, 0.9}
	c, err := NewConformal(posterior, []int{0, 0, 0, 1, 1}, []string{"A", "A", "B", "A", "A"}, 2, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	if c.Tools(0) != 2 || c.Tools(1) != 1 || c.Classes() != 2 {
		t.Errorf("%d and %d tools of %d classes", c.Tools(0), c.Tools(1), c.Classes())
	}
	if math.Abs(c.Promise(0)-0.5*2/3)+math.Abs(c.Promise(1)-0.5*1/2) > 1e-12 { // (1 − rate)·K/(1 + K)
		t.Errorf("promised are %v and %v", c.Promise(0), c.Promise(1))
	}
	for _, tc := range []struct {
		healthy  float64 // P(healthy)
		p0, p1   float64
		decision int
		want     Reason
	}{
		{0.95, 3. / 3, 1. / 2, 0, certain},
		{0.9, 3. / 3, 1. / 2, 0, certain},
		{0.8, 2.5 / 3, 1. / 2, 0, certain},
		{0.8, 2.5 / 3, 1. / 2, 1, Ambiguous}, // costs decide for the other
		{0.5, 1. / 3, 1. / 2, 0, Implausible},
		{0.25, 1. / 3, 1.5 / 2, 1, Implausible}, // F of faulty is the rate, and not above it
		{0.1, 1. / 3, 2. / 2, 1, certain},
		{0.05, 1. / 3, 2. / 2, 1, certain}, // further out on its own side is certain too
		{0.05, 1. / 3, 2. / 2, 0, Ambiguous},
	} {
		p := []float64{tc.healthy, 1 - tc.healthy}
		if got0, got1 := c.P(0, p), c.P(1, p); math.Abs(got0-tc.p0)+math.Abs(got1-tc.p1) > 1e-15 {
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
	sets := func(low ...float64) *Conformal {
		c := &Conformal{Rate: 0.4}
		for _, v := range low {
			c.tools = append(c.tools, toolShares{tools: 4, at: []float64{v, v + 0.4}, share: []float64{0.5, 1}})
		}
		return c
	}
	c := sets(0.01, 0.01, 0.01)
	for _, tc := range []struct {
		p        []float64
		decision int
		want     Reason
	}{
		{[]float64{0.95, 0.03, 0.02}, 0, Ambiguous}, // all are in
		{[]float64{0.1, 0.5, 0.4}, 1, Ambiguous},
	} {
		if got := c.Check(tc.decision, tc.p); got != tc.want {
			t.Errorf("%v: %v, want %v", tc.p, got, tc.want)
		}
	}
	c = sets(0.5, 0.2, 0.2)
	for _, tc := range []struct {
		p        []float64
		decision int
		want     Reason
	}{
		{[]float64{0.95, 0.03, 0.02}, 0, certain},
		{[]float64{0.1, 0.5, 0.4}, 1, certain}, // of one of two, both faulty
		{[]float64{0.1, 0.5, 0.4}, 0, Ambiguous},
		{[]float64{0.45, 0.15, 0.15}, 1, Implausible},
		{[]float64{0.5, 0.4, 0.1}, 0, Ambiguous},
	} {
		if got := c.Check(tc.decision, tc.p); got != tc.want {
			t.Errorf("%v decided %d: %v, want %v", tc.p, tc.decision, got, tc.want)
		}
	}
}

// toolsOf returns posteriors, labels and groups of so many tools of one law: each has an
// offset, from 5 to 60 windows, and worn ones in the last third of them.
func toolsOf(rng *rand.Rand, n int, offset float64) (posterior []float64, y []int, groups []string) {
	for tool := range n {
		of := offset * rng.NormFloat64()
		windows := 5 + rng.IntN(56)
		for w := range windows {
			label := 0
			if 3*w >= 2*windows {
				label = 1
			}
			p := 1 / (1 + math.Exp(2-4*float64(label)-of-rng.NormFloat64()))
			posterior, y, groups = append(posterior, 1-p, p), append(y, label), append(groups, fmt.Sprint("T", tool))
		}
	}
	return posterior, y, groups
}

// Of exchangeable tools, each class is in its set as often as promised, on average over
// tools and calibrations, also where tools differ by far more than their windows do;
// hardly ever more often than 1 − rate, and where tools are alike and many about so often.
func TestConformalCoverageOfTools(t *testing.T) {
	for _, tc := range []struct {
		tools       int
		offset      float64
		rate        float64
		least, most float64 // coverage
	}{
		{1, 2, 0.05, 0.475, 0.95},
		{5, 0, 0.05, 0.93, 0.97},
		{5, 3, 0.05, 0.95 * 5 / 6, 0.95},
		{9, 10, 0.05, 0.95 * 9 / 10, 0.93}, // tools differ, their windows do not
		{9, 1, 0.2, 0.8 * 9 / 10, 0.82},
		{60, 1, 0.05, 0.93, 0.96},
	} {
		rng := rand.New(rand.NewPCG(uint64(tc.tools), 2))
		const calibrations = 300
		var in, tools [2]float64
		for range calibrations {
			p, y, groups := toolsOf(rng, tc.tools, tc.offset)
			c, err := NewConformal(p, y, groups, 2, tc.rate)
			if err != nil {
				t.Fatal(err)
			}
			for range 5 {
				p, y, _ := toolsOf(rng, 1, tc.offset)
				var covered, of [2]float64
				for i, label := range y {
					of[label]++
					if c.In(label, p[2*i:2*i+2]) {
						covered[label]++
					}
				}
				for k := range in {
					in[k] += covered[k] / of[k]
					tools[k]++
				}
			}
			for k := range in {
				if want := (1 - tc.rate) * float64(tc.tools) / float64(1+tc.tools); math.Abs(c.Promise(k)-want) > 1e-12 {
					t.Fatalf("%d tools: promised is %v, want %v", tc.tools, c.Promise(k), want)
				}
			}
		}
		for k := range in {
			const tolerance = 0.025 // three standard errors of 300 calibrations
			got := in[k] / tools[k]
			t.Logf("%d tools with offsets of %v at a rate of %v: class %d is in the set of %.3f", tc.tools, tc.offset, tc.rate, k, got)
			if got < tc.least-tolerance || got > tc.most+tolerance {
				t.Errorf("want %.3f to %.3f", tc.least, tc.most)
			}
		}
	}
}

// Every tool weighs the same: with all windows of one tool twice, or a hundred times,
// the calibration has the same bytes. P-values are above 0, and 1 at most.
func TestConformalWeighsTools(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		n := rapid.IntRange(1, 8).Draw(t, "tools")
		p, y, groups := toolsOf(rng, n, 2)
		a, err := NewConformal(p, y, groups, 2, 0.05)
		if err != nil {
			t.Fatal(err)
		}
		of, times := fmt.Sprint("T", rapid.IntRange(0, n-1).Draw(t, "tool")), rapid.SampledFrom([]int{2, 3, 100}).Draw(t, "times")
		var more []float64
		var labels []int
		var tools []string
		for i := range y {
			k := 1
			if groups[i] == of {
				k = times
			}
			for range k {
				more, labels, tools = append(more, p[2*i:2*i+2]...), append(labels, y[i]), append(tools, groups[i])
			}
		}
		b, err := NewConformal(more, labels, tools, 2, 0.05)
		if err != nil {
			t.Fatal(err)
		}
		old, _ := a.AppendBinary(nil)
		again, _ := b.AppendBinary(nil)
		if !slices.Equal(old, again) {
			t.Fatalf("%d times the windows of %s make another calibration", times, of)
		}
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		for k := range 2 {
			if v := a.P(k, []float64{q, q}); !(v > 0 && v <= 1) {
				t.Fatalf("p-value %v", v)
			}
		}
	})
}

// A set never gains a class when the rate grows, and a row that looks more like a
// class never has a lower p-value of it.
func TestConformalMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		p, y, groups := toolsOf(rng, 7, 1)
		a, b := rapid.Float64Range(0.06, 0.5).Draw(t, "rate"), rapid.Float64Range(0.06, 0.5).Draw(t, "other")
		low, err := NewConformal(p, y, groups, 2, min(a, b))
		if err != nil {
			t.Fatal(err)
		}
		high, err := NewConformal(p, y, groups, 2, max(a, b))
		if err != nil {
			t.Fatal(err)
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

// Of many different posteriors few are kept, and no p-value gets smaller by it, nor larger
// by more than the share that two of them stand for.
func TestConformalKeepsFewOfMany(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const rows, tools = 60_000, 3 // of which the last has a hundredth of the rows
	posterior, y, groups := make([]float64, 0, 2*rows), make([]int, rows), make([]string, rows)
	of := make([][]float64, tools)
	for i := range rows {
		tool := i % 2
		if i%100 == 99 {
			tool = 2
		}
		p := math.Pow(rng.Float64(), float64(1+tool))
		posterior, groups[i], y[i] = append(posterior, p, 1-p), fmt.Sprint(tool), i%10/9
		if y[i] == 0 {
			of[tool] = append(of[tool], p)
		}
	}
	y[99] = 0 // the last tool is faulty but for this row
	of[2] = append(of[2], posterior[2*99])
	c, err := NewConformal(posterior, y, groups, 2, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(c.tools[0].at); n > mostKept+1 || n < mostKept/3 || c.Tools(0) != tools {
		t.Fatalf("%d scores are kept of %d tools", n, c.Tools(0))
	}
	for _, x := range of {
		slices.Sort(x)
	}
	for range 2000 {
		q := rng.Float64()
		var share float64
		for _, x := range of {
			share += float64(atMost(x, q)) / float64(len(x)) / tools
		}
		want := (1 + tools*share) / (1 + tools)
		if got := c.P(0, []float64{q, 1 - q}); got < want-1e-12 || got > want+2./mostKept {
			t.Errorf("P(healthy) %v: p-value %v, of all rows %v", q, got, want)
		}
	}
}

func TestConformalRefuses(t *testing.T) {
	if _, err := NewConformal([]float64{0.9, 0.1}, []int{0}, []string{"A"}, 2, 0.05); !errors.Is(err, classify.ErrTooFew) {
		t.Errorf("no row of class 1: %v", err)
	}
	if _, err := NewConformal([]float64{0.9, 0.1, 0.2, 0.8}, []int{0, 1}, []string{"A", "B"}, 2, 1); !errors.Is(err, classify.ErrSettings) {
		t.Errorf("a rate of 1: %v", err)
	}
}

// The binary form is read as it was written. The first version, which begins with an error rate, and later ones are refused.
func TestConformalForm(t *testing.T) {
	p, y, groups := toolsOf(rand.New(rand.NewPCG(7, 8)), 6, 1)
	byTool, err := NewConformal(p, y, groups, 2, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := byTool.AppendBinary(nil)
	var read Conformal
	if err := read.UnmarshalBinary(b); err != nil || !reflect.DeepEqual(&read, byTool) {
		t.Errorf("%v, read as %+v", err, read)
	}
	if err := new(Conformal).UnmarshalBinary(b[12:]); !errors.Is(err, classify.ErrCorrupt) || !strings.Contains(err.Error(), "version 1") {
		t.Errorf("version 1: %v", err)
	}
	b[8] = 3
	if err := new(Conformal).UnmarshalBinary(b); !errors.Is(err, classify.ErrCorrupt) || !strings.Contains(err.Error(), "version 3") {
		t.Errorf("version 3: %v", err)
	}
	for name, spoil := range map[string]func(s *toolShares){
		"no tools":          func(s *toolShares) { s.tools = 0 },
		"scores descend":    func(s *toolShares) { s.at[1] = s.at[0] },
		"shares descend":    func(s *toolShares) { s.share[1] = s.share[0] / 2 },
		"a share of 0":      func(s *toolShares) { s.share[0] = 0 },
		"not all":           func(s *toolShares) { s.share[len(s.share)-1] = 0.99 },
		"a posterior of 2":  func(s *toolShares) { s.at[len(s.at)-1] = 2 },
		"a share too many":  func(s *toolShares) { s.share = append(s.share, 1) },
		"nothing":           func(s *toolShares) { s.at, s.share = nil, nil },
		"scores not number": func(s *toolShares) { s.at[1] = math.NaN() },
	} {
		broken, err := NewConformal(p, y, groups, 2, 0.1)
		if err != nil {
			t.Fatal(err)
		}
		spoil(&broken.tools[1])
		b, _ := broken.AppendBinary(nil)
		if err := new(Conformal).UnmarshalBinary(b); !errors.Is(err, classify.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzConformal(f *testing.F) {
	p, y, groups := toolsOf(rand.New(rand.NewPCG(7, 8)), 6, 1)
	c, err := NewConformal(p, y, groups, 2, 0.1)
	if err != nil {
		f.Fatal(err)
	}
	good, _ := c.AppendBinary(nil)
	f.Add(good)
	f.Add(good[:len(good)-3])
	f.Add(good[12:])
	f.Fuzz(func(t *testing.T, b []byte) {
		var c Conformal
		if err := c.UnmarshalBinary(b); err != nil {
			if !errors.Is(err, classify.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if again, _ := c.AppendBinary(nil); !slices.Equal(again, b) {
			t.Fatal("it is not written as it was read")
		}
		c.Check(0, make([]float64, c.Classes()))
		for k := range c.Classes() {
			if p := c.P(k, make([]float64, c.Classes())); !(p > 0 && p <= 1) {
				t.Fatalf("p-value %v", p)
			}
		}
	})
}

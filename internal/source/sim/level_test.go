package sim

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

// Wear must not be readable from the level of the channels, or the simulator
// would make any classifier look good; and it must be readable from all features
// relative to the tool's own beginning. Tools are left out one at a time.
func TestWearIsNotInTheLevel(t *testing.T) {
	if raceEnabled {
		t.Skip("takes minutes with the race detector, which has nothing to find in a single goroutine")
	}
	tools := Tools(1, 40*time.Second)[:12]
	layout := signal.GunDrill()
	var counts []int
	for _, c := range layout.Channels() {
		counts = append(counts, int(c.Rate))
	}
	e, err := signal.NewExtractor(layout, counts, signal.FeatureSpec{})
	if err != nil {
		t.Fatal(err)
	}
	var all, level table
	for i, tool := range tools {
		var windows [][]float64
		for _, s := range drilled(t, tool, 1) {
			var x []float64
			for _, v := range e.Extract(nil, append(s.fast, s.thrust, s.torque), s.block.Context) {
				x = append(x, float64(v))
			}
			windows = append(windows, x)
			all.y = append(all.y, s.truth.State != Healthy)
			all.group = append(all.group, i)
		}
		reference := make([]float64, len(windows[0]))
		for _, x := range windows[:5] {
			for j, v := range x {
				reference[j] += v / 5
			}
		}
		for _, x := range windows {
			for j := range x {
				x[j] -= reference[j]
			}
			all.x = append(all.x, x)
			var l []float64
			for j, name := range e.Names() {
				if strings.HasSuffix(name, ".rms") {
					l = append(l, x[j])
				}
			}
			level.x = append(level.x, l)
		}
	}
	level.y, level.group = all.y, all.group

	full, rms := all.gmean(len(tools)), level.gmean(len(tools))
	t.Logf("%d windows of %d tools, G-mean: RMS %.3f, all features %.3f", len(all.y), len(tools), rms, full)
	if full < 0.9 {
		t.Errorf("G-mean %.3f on all features: wear cannot be learnt", full)
	}
	if rms > full-0.05 {
		t.Errorf("G-mean %.3f on the RMS alone, %.3f on all features: wear is in the level", rms, full)
	}
}

// table is windows with their class and tool.
type table struct {
	x     [][]float64
	y     []bool
	group []int
}

// gmean returns the geometric mean of the two classes' shares that a logistic
// regression gets right on the groups that it has not seen.
func (t *table) gmean(groups int) float64 {
	var right, of [2]float64
	for g := range groups {
		z := t.standardised(g)
		w := t.fit(z, g)
		for i := range z {
			if t.group[i] != g {
				continue
			}
			class := 0
			if t.y[i] {
				class = 1
			}
			of[class]++
			if (score(w, z[i]) > 0) == t.y[i] {
				right[class]++
			}
		}
	}
	return math.Sqrt(right[0] / of[0] * right[1] / of[1])
}

// standardised returns x with columns of mean 0 and variance 1 over all but one
// group.
func (t *table) standardised(without int) [][]float64 {
	z := make([][]float64, len(t.x))
	for i := range z {
		z[i] = slices.Clone(t.x[i])
	}
	for j := range t.x[0] {
		var n, s, s2 float64
		for i, x := range t.x {
			if t.group[i] != without {
				n++
				s += x[j]
				s2 += x[j] * x[j]
			}
		}
		mean := s / n
		for i := range z {
			z[i][j] = (z[i][j] - mean) / math.Sqrt(s2/n-mean*mean)
		}
	}
	return z
}

// fit returns the weights, the intercept last, of an L2-regularised logistic
// regression with both classes of equal weight on the rows of all but one group,
// by gradient descent with momentum.
func (t *table) fit(z [][]float64, without int) []float64 {
	var count [2]float64
	for i, y := range t.y {
		if t.group[i] != without {
			if y {
				count[1]++
			} else {
				count[0]++
			}
		}
	}
	d := len(z[0])
	w, grad, step := make([]float64, d+1), make([]float64, d+1), make([]float64, d+1)
	const decay, momentum = 0.15, 0.97
	rate := 1 / float64(d) // the curvature is at most d/4
	for range 250 {
		clear(grad)
		for i, x := range z {
			if t.group[i] == without {
				continue
			}
			target, weight := 0., 0.5/count[0]
			if t.y[i] {
				target, weight = 1, 0.5/count[1]
			}
			miss := weight * (1/(1+math.Exp(-score(w, x))) - target)
			for j, v := range x {
				grad[j] += miss * v
			}
			grad[d] += miss
		}
		for j := range w {
			g := grad[j]
			if j < d {
				g += decay * w[j]
			}
			step[j] = momentum*step[j] - rate*g
			w[j] += step[j]
		}
	}
	return w
}

func score(w, x []float64) float64 {
	s := w[len(x)]
	for j, v := range x {
		s += w[j] * v
	}
	return s
}

func TestLogisticRegression(t *testing.T) {
	var tab table
	for i := range 60 {
		tab.x = append(tab.x, []float64{float64(i % 10), float64(i*7%13) / 5})
		tab.y = append(tab.y, i%10 > 5)
		tab.group = append(tab.group, i%3)
	}
	if g := tab.gmean(3); g < 0.9 {
		t.Errorf("G-mean %v on classes that a line parts", g)
	}
	tab.y = slices.Clone(tab.y)
	for i := range tab.y {
		tab.y[i] = i%4 == 0
	}
	if g := tab.gmean(3); g > 0.7 {
		t.Errorf("G-mean %v on noise", g)
	}
}

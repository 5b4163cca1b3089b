package score

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var nan = math.NaN()

// The columns of two forces, a frequency and a temperature; what follows lives, and in which direction.
func followed() (*Columns, []Sensor) {
	return &Columns{Mean: []float64{0.9, -0.9, 0.8, 0.99, 0.1}, Weight: []float64{0.3, 0.1, 0.2, 0.9, 0}},
		Sensors([]string{"F_f", "F_f", "F_c", "n", "T"})
}

func TestLead(t *testing.T) {
	for _, c := range []struct {
		name    string
		nepers  []float64
		sensor  string
		columns []int
		weights []float64
	}{
		{"a frequency does not count", []float64{1, 1, 1, 0, 1}, "F_f", []int{0, 1}, []float64{0.75, -0.25}},
		{"a variance is two amplitudes", []float64{0.5, 1, 1, 0, 1}, "F_f", []int{0, 1}, []float64{0.375, -0.25}},
		{"the sensor that leads has no amplitude", []float64{0, 0, 1, 0, 1}, "F_c", []int{2}, []float64{1}},
		{"nothing that is an amplitude follows lives", []float64{0, 0, 0, 0, 1}, "", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, ok := lead(c.nepers)
			if ok != (c.columns != nil) {
				t.Fatalf("got %+v, %v", l, ok)
			}
			if !ok {
				return
			}
			if l.Sensor != c.sensor || !slices.Equal(l.Columns, c.columns) || !slices.EqualFunc(l.Weights, c.weights, near) {
				t.Errorf("got %+v", l)
			}
		})
	}
	if l, ok := Lead(&Columns{}, nil, nil); ok {
		t.Errorf("without columns: %+v", l)
	}
}

// lead is Lead of the columns that are followed.
func lead(nepers []float64) (Level, bool) {
	of, sensors := followed()
	return Lead(of, sensors, nepers)
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestLevelOf(t *testing.T) {
	l := Level{Columns: []int{0, 2}, Weights: []float64{0.75, -0.25}}
	missing := float32(nan)
	for _, c := range []struct {
		name string
		row  []float32
		want float64
	}{
		{"as when it was new", []float32{0, 9, 0}, 0},
		{"twice as much", []float32{math.Ln2, 9, -math.Ln2}, math.Ln2},
		{"one is missing", []float32{missing, 9, -0.5}, 0.5},
		{"all are missing", []float32{missing, 9, missing}, nan},
	} {
		if got := l.Of(c.row); math.Abs(got-c.want) > 1e-6 || got != got && c.want == c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestReach(t *testing.T) {
	for _, c := range []struct {
		name   string
		levels []float64
		k, n   int
		want   float64
	}{
		{"two of three", []float64{1, 9, 2, 3, 1}, 2, 3, 3},
		{"one window alone", []float64{1, 9, 2, 3, 1}, 1, 1, 9},
		{"before n windows are there", []float64{5, 4}, 2, 8, 4},
		{"missing ones are passed over", []float64{5, nan, nan, nan, 4}, 2, 2, 4},
		{"too short", []float64{5, 4}, 3, 8, math.Inf(-1)},
	} {
		if got := ReachedLevel(c.levels, c.k, c.n); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestFirst(t *testing.T) {
	for _, c := range []struct {
		name   string
		levels []float64
		want   int
	}{
		{"two of three in a row", []float64{1, 0, 1, 1}, 2},
		{"too far apart", []float64{1, 0, 0, 1, 0, 0, 1}, -1},
		{"missing ones are passed over", []float64{1, nan, nan, nan, 1}, 4},
		{"at the limit is not above it", []float64{0.5, 0.5, 0.5}, -1},
	} {
		if got := FirstAbove(c.levels, 2, 3, 0.5); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

// The parts of a row's features are its level.
func TestLevelParts(t *testing.T) {
	l := Level{Columns: []int{0, 2}, Weights: []float64{0.75, -0.25}}
	if got := l.Parts([]float32{2, 9, float32(nan), 9}); !slices.Equal(got, []float64{2, 0, 0, 0}) {
		t.Errorf("got %v", got)
	}
	row := []float32{1, 9, -2, 9}
	sum := 0.0
	for _, part := range l.Parts(row) {
		sum += part
	}
	if !near(sum, l.Of(row)) || !near(sum, 1.25) {
		t.Errorf("parts of %v, level %v", sum, l.Of(row))
	}
}

func TestLeft(t *testing.T) {
	line := func(n int, slope, noise float64) (out []float64) {
		for i := range n {
			out = append(out, slope*float64(i)+noise*float64(i%3-1))
		}
		return out
	}
	for _, c := range []struct {
		name   string
		levels []float64
		limit  float64
		want   float64 // −1: none
	}{
		{"a straight line", line(20, 0.1, 0), 3, 13}, // the median of the last five is at 17
		{"one odd level", append(line(19, 0.1, 0), 40), 3, 13},
		{"noise about a line", line(60, 0.05, 0.2), 5, 43.5},
		{"too few", line(9, 0.1, 0), 3, -1},
		{"falling", line(20, -0.1, 0), 3, -1},
		{"noise alone", line(60, 0, 0.2), 3, -1},
		{"at the limit", line(20, 0.1, 0), 1.7, -1},
	} {
		n, ok := WindowsLeft(c.levels, c.limit)
		if ok != (c.want >= 0) || ok && math.Abs(n-c.want) > 3 {
			t.Errorf("%s: %v, %v, want %v", c.name, n, ok, c.want)
		}
	}
}

func TestLimit(t *testing.T) {
	none := math.Inf(-1)
	for _, c := range []struct {
		name    string
		reached []float64
		want    float64
	}{
		{"no life", nil, LeastDifferent},
		{"lives that were too short", []float64{none, none}, LeastDifferent},
		{"healthy tools stayed below a doubling", []float64{0.1, 0.5}, LeastDifferent},
		{"healthy tools went beyond it", []float64{1.5, none, 2.5}, 1.6},
	} {
		if got := DifferenceLimit(c.reached, ShareDifferent, LeastDifferent); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// Laws: an alarm of k of n above a limit is raised if, and only if, the limit is below what the life reached; a longer life never
// reaches less; and no order of the lives, nor a further life below the limit, raises the limit.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		levels := rapid.SliceOfN(rapid.Float64Range(-1, 3), 0, 30).Draw(t, "levels")
		n := rapid.IntRange(1, 8).Draw(t, "n")
		k := rapid.IntRange(1, n).Draw(t, "k")
		limit := rapid.Float64Range(-1, 3).Draw(t, "limit")
		raised := false
		for i := range levels {
			above := 0
			for _, v := range levels[max(0, i-n+1) : i+1] {
				if v > limit {
					above++
				}
			}
			raised = raised || above >= k
		}
		reach := ReachedLevel(levels, k, n)
		if (FirstAbove(levels, k, n, limit) >= 0) != raised {
			t.Fatalf("limit %v: raised %v, first at %d", limit, raised, FirstAbove(levels, k, n, limit))
		}
		if raised != (limit < reach) {
			t.Fatalf("limit %v, reached %v, raised %v", limit, reach, raised)
		}
		if len(levels) > 0 && ReachedLevel(levels[:len(levels)-1], k, n) > reach {
			t.Fatalf("a longer life reached less than %v", reach)
		}
		reached := rapid.SliceOfN(rapid.Float64Range(0, 3), 1, 6).Draw(t, "reached")
		whole := DifferenceLimit(reached, ShareDifferent, LeastDifferent)
		turned := slices.Clone(reached)
		slices.Reverse(turned)
		if got := DifferenceLimit(turned, ShareDifferent, LeastDifferent); math.Abs(got-whole) > 1e-12 || got < LeastDifferent {
			t.Fatalf("limit %v, of lives in another order %v", whole, got)
		}
		if got := DifferenceLimit(append(turned, 0), ShareDifferent, LeastDifferent); got > whole+1e-12 {
			t.Fatalf("limit %v, with a life at 0 %v", whole, got)
		}
	})
}

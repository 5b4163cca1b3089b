package score

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// table is rows of float32 for tests.
type table [][]float32

func (t table) row(i int) []float32 { return t[i] }

func lives(n ...int) []Life {
	var out []Life
	at := 0
	for k, rows := range n {
		l := Life{Tool: string(rune('a' + k))}
		for range rows {
			l.Rows = append(l.Rows, at)
			at++
		}
		out = append(out, l)
	}
	return out
}

func TestSpearmanWithOrder(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name   string
		values []float32
		want   float64
	}{
		{"rising", []float32{1, 2, 5, 90}, 1},
		{"falling", []float32{4, 3, 2, -1}, -1},
		{"constant", []float32{7, 7, 7, 7}, 0},
		{"too short", []float32{1, 2}, 0},
		{"missing are left out", []float32{1, nan, 2, nan, 3}, 1},
		{"nothing is there", []float32{nan, nan, nan}, 0},
		// scipy.stats.spearmanr([0..5], v), SciPy 1.17.1.
		{"ties", []float32{1, 1, 2, 3, 3, 3}, 0.9258200997725515},
		{"mixed", []float32{3, 1, 4, 1, 5, 9}, 0.6667366910003157},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s spearman
			if got := s.withOrder(c.values); math.Abs(got-c.want) > 1e-12 {
				t.Errorf("got %.16g, want %.16g", got, c.want)
			}
		})
	}
}

// Columns: 0 rises in every tool, 1 falls in every tool, 2 rises in one and falls in
// the other, 3 is constant, 4 is noise.
func TestRankKeepsWhatFollowsEveryLife(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	ls := lives(40, 60, 50, 45)
	var x table
	for k, l := range ls {
		for n := range l.Rows {
			v, sign := float32(n), float32(1-2*(k%2))
			x = append(x, []float32{v, -v * v, sign * v, 3, rng.Float32()})
		}
	}
	c := RankColumns(5, x.row, ls)
	if got := c.Kept(); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("kept %v, want columns 0 and 1: weights %v", got, c.Weight)
	}
	if c.Mean[0] != 1 || c.Mean[1] != -1 || c.Mean[3] != 0 {
		t.Errorf("means %v", c.Mean)
	}
	// s² = 2·0.09/(2+4−1) where all tools agree.
	if want := math.Pow(1-math.Sqrt(0.18/5), 2); math.Abs(c.Weight[0]-want) > 1e-12 {
		t.Errorf("weight %v, want %v", c.Weight[0], want)
	}
	c.Exclude([]int{0})
	if got := c.Kept(); !slices.Equal(got, []int{1}) {
		t.Errorf("kept %v after column 0 was excluded", got)
	}
}

func TestRankPassesOverShortLives(t *testing.T) {
	x := table{{1}, {2}, {3}, {9}, {8}}
	c := RankColumns(1, x.row, lives(3, 2))
	if !slices.Equal(c.Tools, []string{"a"}) {
		t.Errorf("tools %v", c.Tools)
	}
	if c := RankColumns(1, x.row, nil); len(c.Tools) != 0 || len(c.Kept()) != 0 {
		t.Errorf("without lives: %+v", c)
	}
}

// Laws: the weights do not change when a column is put on another rising scale, when
// it is turned upside down, or when tools come in another order; long lives are
// thinned without a visible change.
func TestRankLaws(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		ls := lives(5+rng.IntN(60), 5+rng.IntN(60), 5+rng.IntN(60))
		var x, scaled, turned table
		for _, l := range ls {
			for n := range l.Rows {
				v := float32(n) + 20*rng.Float32()
				x = append(x, []float32{v})
				scaled = append(scaled, []float32{v * v * v})
				turned = append(turned, []float32{-v})
			}
		}
		want := RankColumns(1, x.row, ls).Weight[0]
		if got := RankColumns(1, scaled.row, ls).Weight[0]; got != want {
			t.Fatalf("cubed: %v, was %v", got, want)
		}
		if got := RankColumns(1, turned.row, ls).Weight[0]; math.Abs(got-want) > 1e-12 {
			t.Fatalf("upside down: %v, was %v", got, want)
		}
		slices.Reverse(ls)
		if got := RankColumns(1, x.row, ls).Weight[0]; math.Abs(got-want) > 1e-12 {
			t.Fatalf("tools reversed: %v, was %v", got, want)
		}
	}
	long := lives(50_000)
	c := RankColumns(1, func(i int) []float32 { return []float32{float32(i)} }, long)
	if c.Mean[0] != 1 {
		t.Errorf("a long life: %v", c.Mean[0])
	}
}

func BenchmarkRank(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	x := make(table, 1400)
	for i := range x {
		x[i] = make([]float32, 152)
		for j := range x[i] {
			x[i][j] = rng.Float32()
		}
	}
	ls := lives(155, 155, 155, 155, 155, 155, 155, 155, 160)
	for b.Loop() {
		RankColumns(152, x.row, ls)
	}
}

// Without some tools the result is the one of their lives alone, and the whole one stays.
func TestWithout(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 2))
	ls := lives(12, 2, 15, 11, 14)
	var x table
	for range 54 {
		x = append(x, []float32{rng.Float32(), float32(len(x)), rng.Float32()})
	}
	whole := RankColumns(3, x.row, ls)
	for name, tools := range map[string][]string{"none": nil, "one": {"c"}, "two and a stranger": {"a", "e", "z"}, "all": {"a", "b", "c", "d", "e"}} {
		var rest []Life
		for _, l := range ls {
			if !slices.Contains(tools, l.Tool) {
				rest = append(rest, l)
			}
		}
		if got, want := whole.Without(tools), RankColumns(3, x.row, rest); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if !reflect.DeepEqual(whole, RankColumns(3, x.row, ls)) {
		t.Error("the whole has changed")
	}
}

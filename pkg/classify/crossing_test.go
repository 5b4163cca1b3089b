package classify

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// lessonOf returns all of a table, to be learnt from.
func lessonOf(t *Table) lesson {
	d := t.whole()
	x, more := d.view(0)
	return d.lesson(x, more)
}

// Rows are put where the wear of a tool jumps over the limit, a step apart, none beyond
// the row after the jump nor far beyond the limit, whichever tools are between.
func TestCrossings(t *testing.T) {
	nan := math.NaN()
	for name, tc := range map[string]struct {
		wear   []float64
		y      []int
		groups []string
		want   []crossing
	}{
		"a jump": {
			[]float64{0.5, 0.94, 1.13}, []int{0, 0, 1}, []string{"A", "A", "A"},
			[]crossing{{1, 2, 0.05 / 0.19, 0}, {1, 2, 0.1 / 0.19, 1}, {1, 2, 0.15 / 0.19, 1}},
		},
		"a jump far beyond the limit": {
			[]float64{0.94, 3.99}, []int{0, 1}, []string{"A", "A"},
			[]crossing{
				{0, 1, 0.05 / 3.05, 0}, {0, 1, 0.1 / 3.05, 1}, {0, 1, 0.15 / 3.05, 1}, {0, 1, 0.2 / 3.05, 1}, {0, 1, 0.25 / 3.05, 1},
				{0, 1, 0.3 / 3.05, 1}, {0, 1, 0.35 / 3.05, 1}, {0, 1, 0.4 / 3.05, 1}, {0, 1, 0.45 / 3.05, 1}, {0, 1, 0.5 / 3.05, 1},
				{0, 1, 0.55 / 3.05, 1},
			},
		},
		"other tools between": {
			[]float64{0.97, 0.2, 1.05, 0.25}, []int{0, 0, 1, 0}, []string{"A", "B", "A", "B"},
			[]crossing{{0, 2, 0.05 / 0.08, 1}},
		},
		"one step":                    {[]float64{0.98, 1.025}, []int{0, 1}, []string{"A", "A"}, nil},
		"a jump below the limit":      {[]float64{0.3, 0.9}, []int{0, 0}, []string{"A", "A"}, nil},
		"a jump above the limit":      {[]float64{1.1, 2}, []int{1, 1}, []string{"A", "A"}, nil},
		"another tool":                {[]float64{0.9, 2}, []int{0, 1}, []string{"A", "B"}, nil},
		"back":                        {[]float64{2, 0.9}, []int{1, 0}, []string{"A", "A"}, nil},
		"faulty before, by its state": {[]float64{0.9, 2}, []int{1, 1}, []string{"A", "A"}, nil},
		"healthy after":               {[]float64{0.9, 2}, []int{0, 0}, []string{"A", "A"}, nil},
		"wear not known":              {[]float64{nan, 2}, []int{0, 1}, []string{"A", "A"}, nil},
	} {
		tb := &Table{X: dbn.NewMatrix(len(tc.y), 1), Y: tc.y, Groups: tc.groups, Wear: tc.wear, Ordered: true}
		got := tb.whole().crossings()
		if !slices.EqualFunc(got, tc.want, func(a, b crossing) bool {
			return a.below == b.below && a.above == b.above && a.class == b.class && math.Abs(float64(a.share-b.share)) < 1e-6
		}) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
		tb.Ordered = false
		if got := tb.whole().crossings(); got != nil {
			t.Errorf("%s, without order: %v", name, got)
		}
	}
}

// Rows of a crossing lie on the line between its two rows, in memory and on disk, in
// any part of a table, and are of the class that their wear gives.
func TestCrossed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 20).Draw(t, "rows")
		m := dbn.NewMatrix(n, 2)
		tb := &Table{X: m, Ordered: true}
		for i := range n {
			// A feature that is the wear itself says where on the line a row is.
			w := rapid.Float64Range(0, 3).Draw(t, "wear")
			m.Row(i)[0], m.Row(i)[1] = float32(w), float32(-w)
			tb.Wear, tb.Groups, tb.Y = append(tb.Wear, w), append(tb.Groups, rapid.SampledFrom([]string{"A", "B"}).Draw(t, "tool")), append(tb.Y, 0)
			if w >= 1 {
				tb.Y[i] = 1
			}
		}
		some := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 1, n, rapid.ID).Draw(t, "some")
		slices.Sort(some)
		var of [2]dbn.Matrix
		for k, x := range []dbn.Rows{m, onDiskRows(m)} {
			tb.X = x
			d := subset{of: tb, rows: setOf(some)}
			rows, y, err := d.lesson(x, nil).crossed()
			if err != nil {
				t.Fatal(err)
			}
			of[k] = rows
			all := d.crossings()
			if len(y) != rows.Rows || len(all) != rows.Rows {
				t.Fatalf("%d rows, %d classes of %d crossings", rows.Rows, len(y), len(all))
			}
			for i := range rows.Rows {
				from, to := tb.Wear[some[all[i].below]], tb.Wear[some[all[i].above]]
				w := float64(rows.Row(i)[0])
				if rows.Row(i)[1] != -rows.Row(i)[0] || w <= from || w >= min(to, mostTunedWear)+1e-6 {
					t.Fatalf("row %v between wear of %v and %v", rows.Row(i), from, to)
				}
				if math.Abs(w-1) > 1e-6 && (w >= 1) != (y[i] == 1) {
					t.Fatalf("a row of wear %v is of class %d", w, y[i])
				}
			}
		}
		if !slices.Equal(of[0].Data, of[1].Data) {
			t.Fatalf("in memory %v, on disk %v", of[0], of[1])
		}
	})
}

// A single tool that chips tells of the limit: what is between its last healthy and its
// first faulty row is parted where the wear passes the limit, and not half-way. The rows
// between are in no score and no count, and say nothing of how common a class is.
func TestChippedTool(t *testing.T) {
	m := dbn.NewMatrix(60, 1)
	tb := &Table{Ordered: true}
	for i := range m.Rows {
		w := 0.9 * float64(i) / 50
		if i >= 50 {
			w = 3
		}
		m.Row(i)[0] = float32(w)
		class := 0
		if w >= 1 {
			class = 1
		}
		tb.Y, tb.Groups, tb.Wear = append(tb.Y, class), append(tb.Groups, "A"), append(tb.Wear, w)
	}
	tb.X = m
	s := quick()
	s.Network.Pretrain.Epochs = -1
	s.Network.FineTune.Epochs = 300
	boundary := func(c *Classifier) float64 {
		scorer := c.NewScorer()
		for w := 0.0; w < 3; w += 0.01 {
			if c.Decide(scorer.Posterior([]float32{float32(w)})) == 1 {
				return w
			}
		}
		return 3
	}
	with, r := tableFitted(t, tb, s)
	if r.Between != 12 || r.Rows != 60 || r.Held.Rows != 60 || !slices.Equal(r.ClassCounts, []int{50, 10}) {
		t.Errorf("%d rows between, %d rows, %d held, classes %v", r.Between, r.Rows, r.Held.Rows, r.ClassCounts)
	}
	again, _ := tableFitted(t, tb, s)
	if !bytes.Equal(bytesOf(t, with), bytesOf(t, again)) {
		t.Error("equal tables and seeds give other bytes")
	}
	plain := *tb
	plain.Wear = nil
	without, r := tableFitted(t, &plain, s)
	if r.Between != 0 {
		t.Errorf("%d rows between, without wear", r.Between)
	}
	if a, b := boundary(with), boundary(without); math.Abs(a-1) > 0.15 || b < a+0.1 {
		t.Errorf("faulty from %v limits on, and from %v without the rows between; want 1, and more", a, b)
	}
}

// With seven tools that chip, no rows are put between: there is enough to learn from.
func TestManyChippedTools(t *testing.T) {
	for tools, want := range map[int]int{mostCrossing: mostCrossing, mostCrossing + 1: 0} {
		tb := &Table{Ordered: true}
		var x dbn.Matrix
		x.Cols = 1
		for tool := range tools {
			for _, w := range []float64{0.2, 0.5, 0.94, 1.03, 1.04, 1.05} {
				x.Data, x.Rows = append(x.Data, float32(w)), x.Rows+1
				class := 0
				if w >= 1 {
					class = 1
				}
				tb.Y, tb.Groups, tb.Wear = append(tb.Y, class), append(tb.Groups, string(rune('A'+tool))), append(tb.Wear, w)
			}
		}
		tb.X = x
		s := quick()
		s.Costs.Folds = 2
		if _, r := tableFitted(t, tb, s); r.Between != want {
			t.Errorf("%d tools: %d rows between, want %d", tools, r.Between, want)
		}
	}
}

// An error of the disk ends the fit, also while rows of a crossing are read.
func TestCrossedUnreadable(t *testing.T) {
	x := onDiskRows(dbn.NewMatrix(2, 1))
	x.last = 1
	tb := &Table{X: x, Y: []int{0, 1}, Groups: []string{"A", "A"}, Wear: []float64{0.9, 1.1}, Ordered: true}
	if _, _, err := lessonOf(tb).crossed(); !errors.Is(err, errDisk) {
		t.Errorf("error %v, want %v", err, errDisk)
	}
}

package classify

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A set of rows is the list that it was made of.
func TestRowSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []int
		for i := range 60 {
			if rapid.IntRange(0, 3).Draw(t, "in") > 0 {
				list = append(list, i)
			}
		}
		s := setOf(list)
		var each []int
		s.each(func(row int) { each = append(each, row) })
		if s.rows != len(list) || !slices.Equal(each, list) {
			t.Fatalf("%v of %v", each, list)
		}
		for i, row := range list {
			if s.row(i) != row {
				t.Fatalf("row %d is %d, want %d of %v", i, s.row(i), row, list)
			}
		}
		if got := pick(ordinals(60), s); !slices.Equal(got, list) {
			t.Fatalf("picked %v, want %v", got, list)
		}
		n := rapid.IntRange(1, 70).Draw(t, "most")
		want := list
		if len(list) > n { // the middles of n equal shares
			want = nil
			for i := range n {
				want = append(want, list[(2*i+1)*len(list)/(2*n)])
			}
		}
		if got := pick(ordinals(60), s.thin(n)); !slices.Equal(got, want) {
			t.Fatalf("thinned to %v, want %v", got, want)
		}
	})
	if pick([]string(nil), setOf([]int{1})) != nil {
		t.Error("nothing to pick from gives something")
	}
}

func ordinals(n int) []int {
	x := make([]int, n)
	for i := range x {
		x[i] = i
	}
	return x
}

// Every fold's rows, and all others, are the ones in the lists.
func TestDealt(t *testing.T) {
	d := dealt{[]int32{1, 1, 0, 2, 0, 0, 1, 2}, 3}
	for f, fold := range d.lists() {
		if got := pick(ordinals(8), d.test(f)); !slices.Equal(got, fold.Test) {
			t.Errorf("fold %d holds out %v, want %v", f, got, fold.Test)
		}
		if got := pick(ordinals(8), d.train(f)); !slices.Equal(got, fold.Train) {
			t.Errorf("fold %d trains on %v, want %v", f, got, fold.Train)
		}
	}
}

// What all rows have, or rows that follow each other, is not copied, and what is added to it does not come behind them.
func TestPickWithoutCopy(t *testing.T) {
	x := []int{3, 1, 4, 1, 5}
	for name, tc := range map[string]struct {
		rows []int
		want []int
		same bool
	}{
		"all":      {[]int{0, 1, 2, 3, 4}, x, true},
		"a part":   {[]int{1, 2}, []int{1, 4}, true},
		"two runs": {[]int{0, 3, 4}, []int{3, 1, 5}, false},
		"none":     {nil, []int{}, false},
	} {
		got := pick(x, setOf(tc.rows))
		if !slices.Equal(got, tc.want) || got == nil {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
			continue
		}
		if same := len(got) > 0 && &got[0] == &x[tc.rows[0]]; same != tc.same {
			t.Errorf("%s: memory of x %v, want %v", name, same, tc.same)
		}
		if _ = append(got, 9); !slices.Equal(x, []int{3, 1, 4, 1, 5}) {
			t.Errorf("%s: x became %v", name, x)
		}
	}
	if pick([]int(nil), setOf([]int{0})) != nil {
		t.Error("nothing became something")
	}
}

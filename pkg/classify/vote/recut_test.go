package vote

import (
	"cmp"
	"encoding/json"
	"math"
	"testing"
)

func TestRecut(t *testing.T) {
	g := &Guard{cut: 0.25, bound: 2}
	vote := []float64{-3, -2, -1, 1, 2, 3, math.NaN()}
	was := []int{0, 0, 0, 1, 1, 1, 1}
	for _, c := range []struct {
		name string
		y    []int
		sign int
	}{
		{"the same classes", was, 0},
		{"more are worn", []int{0, 0, 1, 1, 1, 1, 1}, -1},
		{"fewer are worn", []int{0, 0, 0, 0, 1, 1, 1}, 1},
		{"an abstention has a class", []int{0, 0, 0, 1, 1, 1, 0}, 0},
		{"rows without a class", []int{0, 0, 0, 1, 1, 1, -1}, 0},
		{"none is worn", make([]int, 7), 0},
	} {
		got := g.Recut(vote, was, c.y).Cut()
		if sign := cmp.Compare(got, g.cut); sign != c.sign {
			t.Errorf("%s: cut %v", c.name, got)
		}
	}
	if g.cut != 0.25 {
		t.Error("the guard itself has changed")
	}
}

// A memory comes from outside: a sensor of which it says nothing is one that it has not seen.
func TestCloneOfAStrangeMemory(t *testing.T) {
	var m Memory
	if err := json.Unmarshal([]byte(`{"F": null, "A": {"windows": 2}}`), &m); err != nil {
		t.Fatal(err)
	}
	if c := m.Clone(); len(c) != 2 || c["F"] == nil || c["A"].Windows != 2 {
		t.Errorf("%+v", c)
	}
}

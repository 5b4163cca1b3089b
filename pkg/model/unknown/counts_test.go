package unknown

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// Distances depend on the columns that count and vary, and Counts says which these are.
func TestNoveltyCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	const cols = 4
	x := dbn.NewMatrix(240, cols)
	var groups []string
	for i := range x.Rows {
		groups = append(groups, fmt.Sprint("T", i/40))
		for j := range cols {
			x.Data[i*cols+j] = float32(rng.NormFloat64())
		}
		x.Data[i*cols+3] = 7 // says nothing
	}
	for name, tc := range map[string]struct{ counts, want []bool }{
		"all":          {nil, []bool{true, true, true, false}},
		"not the last": {[]bool{true, false, true, true}, []bool{true, false, true, false}},
	} {
		n, _, err := FitNovelty(t.Context(), x, groups, tc.counts, 0.05, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := n.Counts(); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
		s := n.NewScorer()
		before := s.Distance(x.Row(0))
		for j, counts := range n.Counts() {
			far := slices.Clone(x.Row(0))
			far[j] += 3
			if moved := s.Distance(far) != before; moved != counts {
				t.Errorf("%s: column %d counts: %v, and moves the distance: %v", name, j, counts, moved)
			}
		}
		n.Counts()[0] = false // the caller's own
		if !n.Counts()[0] {
			t.Errorf("%s: the novelty has changed", name)
		}
	}
}

package classify

import (
	"github.com/flank-tcm/flank/internal/kernel"
	"github.com/flank-tcm/flank/pkg/score"
)

// recalls evaluates costs on judged rows, a generation at a time.
type recalls struct {
	counts []int              // rows of each class
	pair   *kernel.SortedOdds // of two classes
	rows   *kernel.Posteriors // of more
}

// recalls makes them of at most most rows of each class, or of all if most is 0;
// of two classes it always takes all.
func (d judged) recalls(most int) recalls {
	if d.k == 2 {
		return recalls{counts: d.counts, pair: d.order()}
	}
	rows := kernel.NewPosteriors(d.k, d.posterior, d.y, most)
	return recalls{counts: rows.Counts(), rows: rows}
}

// fitness stores in f[i] the metric m of what the costs costs[i] decide. If soft,
// it adds softShare of the soft metric, which is the metric of the soft recalls
//
//	mean_{i: y_i=k} w_k·P_ik / Σ_j w_j·P_ij,
//
// which is never flat where posteriors are not.
func (r recalls) fitness(f []float64, costs [][]float64, m score.Metric, soft bool) {
	k := len(r.counts)
	weights := make([][]float64, len(costs))
	for i, x := range costs {
		weights[i] = make([]float64, k)
		weightless := CostVector(x).weightless()
		for j, c := range x {
			if weights[i][j] = 1 - c; weightless {
				weights[i][j] = 1
			}
		}
	}
	tallies := kernel.NewTallies(len(costs), k)
	if r.pair != nil {
		for i, w := range weights {
			r.pair.Count(&tallies[i], w[0], w[1], soft)
		}
	} else {
		r.rows.Count(tallies, weights)
	}
	for i, t := range tallies {
		f[i] = m.Value(r.counts, func(class int) float64 { return float64(t.Right[class]) / float64(r.counts[class]) })
		if soft {
			f[i] += softShare * m.Value(r.counts, func(class int) float64 { return t.Share[class] })
		}
	}
}

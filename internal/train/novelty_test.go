package train

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model/unknown"
	"github.com/flank-tcm/flank/pkg/score"
)

// disturbances change a value v of a feature, the n-th of those that are disturbed. Its standard
// deviation in training is sd, and its values in all windows of the tool are others.
var disturbances = []struct {
	name string
	of   func(rng *rand.Rand, v float32, n int, sd float64, others []float32) float32
}{
	{"as recorded", func(_ *rand.Rand, v float32, _ int, _ float64, _ []float32) float32 { return v }},
	{"a seventh higher by 0.7", func(_ *rand.Rand, v float32, n int, _ float64, _ []float32) float32 {
		if n%7 == 0 {
			v += 0.7
		}
		return v
	}},
	{"each shuffled among the windows", func(rng *rand.Rand, _ float32, _ int, _ float64, others []float32) float32 {
		return others[rng.IntN(len(others))]
	}},
	{"a fifth higher by two standard deviations", func(_ *rand.Rand, v float32, n int, sd float64, _ []float32) float32 {
		if n%5 == 0 {
			v += float32(2 * sd)
		}
		return v
	}},
	{"noise of one standard deviation", func(rng *rand.Rand, v float32, _ int, sd float64, _ []float32) float32 {
		return v + float32(sd*rng.NormFloat64())
	}},
}

// Of turning tools held out, few healthy windows are new. Where something is wrong with the
// features that count, novelty finds it if it looks at these, and hardly if it looks at all
// features. (The table is in docs/figures/unknown.md.)
func TestRecordedNoveltyLooksAtTheFeaturesThatCount(t *testing.T) {
	j := exampleJob(t, "turning", "vicomtech-turning/turning_wear_dev.csv")
	j.prepare()
	rows, _, _ := mustRows(t, j)
	p := len(rows.Columns)
	share := make([][2]float64, len(disturbances)) // by all features, by those that count
	windows := 0
	for _, tool := range rows.tools() {
		var train []float32
		var groups []string
		var lives []score.Life
		var healthy [][]float32
		for i, g := range rows.group {
			row := rows.Data[i*p : (i+1)*p]
			if g == tool {
				if rows.Class[i] == classify.Healthy {
					healthy = append(healthy, row)
				}
				continue
			}
			if n := len(lives); n == 0 || lives[n-1].Tool != g {
				lives = append(lives, score.Life{Tool: g})
			}
			life := &lives[len(lives)-1]
			life.Rows = append(life.Rows, len(groups))
			train, groups = append(train, row...), append(groups, g)
		}
		x := dbn.Matrix{Rows: len(groups), Cols: p, Data: train}
		kept := score.RankColumns(p, x.Row, lives).Kept()
		counts := make([]bool, p)
		for _, k := range kept {
			counts[k] = true
		}
		windows += len(healthy)
		for by, of := range [][]bool{nil, counts} {
			n, _, err := unknown.FitNovelty(t.Context(), x, groups, of, 0.01, 1, 2)
			if err != nil {
				t.Fatal(err)
			}
			s := n.NewScorer()
			rng := rand.New(rand.NewPCG(1, 2))
			for d, disturbance := range disturbances {
				changed := slices.Clone(healthy)
				for i, row := range healthy {
					changed[i] = slices.Clone(row)
				}
				for n, k := range kept {
					sd, values := spread(x, k), make([]float32, len(healthy))
					for i, row := range healthy {
						values[i] = row[k]
					}
					for i, v := range values {
						changed[i][k] = disturbance.of(rng, v, n, sd, values)
					}
				}
				for _, row := range changed {
					if s.P(row) <= 0.01 {
						share[d][by]++
					}
				}
			}
		}
	}
	for d, disturbance := range disturbances {
		for by := range share[d] {
			share[d][by] /= float64(windows)
		}
		t.Logf("%-42s %5.1f %% %5.1f %%", disturbance.name, 100*share[d][0], 100*share[d][1])
		if d == 0 && share[d][1] > 0.02 || d > 0 && share[d][1] < share[d][0]+0.1 {
			t.Errorf("%s: %.3f of the healthy windows are new by the features that count, %.3f by all", disturbance.name, share[d][1], share[d][0])
		}
	}
}

// spread returns the standard deviation of a column.
func spread(x dbn.Matrix, column int) float64 {
	var sum, squares float64
	for i := range x.Rows {
		v := float64(x.Row(i)[column])
		sum, squares = sum+v, squares+v*v
	}
	n := float64(x.Rows)
	return math.Sqrt(max(0, squares/n-sum/n*sum/n))
}

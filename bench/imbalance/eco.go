package imbalance

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/jade"
	"github.com/flank-tcm/flank/pkg/score"
)

// ecoFamily is an ensemble in the manner of P. Lim, C. Goh and K. Tan,
// "Evolutionary Cluster-Based Synthetic Oversampling Ensemble (ECO-Ensemble) for
// Imbalance Learning", IEEE Trans. Cybernetics 47(9), 2017. Only its abstract is
// public. Its are: rows of the smaller class are made up within clusters; an
// evolutionary algorithm tunes how; its population, not its best member alone, is
// the classifier. Ours is all that this leaves open: clusters by k-means, JADE,
// extreme learning machines as members, the genes of ecoPlan, and their number.
func ecoFamily() family {
	return family{
		effort: 2,
		methods: []Method{{"eco-ensemble", 3,
			"1 to 8 clusters, 0.5 to 1.5 of the lack, made up over 0 to 1 of the way between two rows of a cluster, ridge 2^−2 to 2^12, by JADE (10 members, 6 generations) on the G-mean of a third held out; the 10 best of all vote, extreme learning machines of 50 units each"}},
		solve: func(ctx context.Context, t Task) ([]methodAnswer, error) {
			began := startWatch()
			defer began.stop()
			scale := FitScale(t.X)
			t.X = scale.Apply(t.X)
			members, err := evolveECO(ctx, t)
			if err != nil {
				return nil, err
			}
			seconds := began.seconds()
			t.Test = scale.Apply(t.Test)
			votes := make([]float64, t.Test.Rows)
			for _, e := range members {
				for i, v := range e.values(t.Test) {
					votes[i] += min(max(v, -1), 1) / float64(len(members))
				}
			}
			a := answer(votes, seconds)
			a.Judging = began.seconds() - seconds
			return []methodAnswer{a}, nil
		},
	}
}

const (
	ecoMembers     = 10
	ecoGenerations = 6
	ecoUnits       = 50
)

// ecoPlan says how rows are made up and how a machine is fitted to them.
type ecoPlan struct {
	clusters int
	ratio    float64 // of the rows made up to those that the smaller class lacks
	reach    float64 // greatest share of the way between two rows
	ridge    float64 // C of the machine
}

var ecoBox = jade.Problem{Lower: []float64{1, 0.5, 0, -2}, Upper: []float64{9, 1.5, 1, 12}}

func planOf(genes []float64) ecoPlan {
	return ecoPlan{min(int(genes[0]), 8), genes[1], genes[2], math.Exp2(genes[3])}
}

// evolveECO returns the members of the ensemble.
func evolveECO(ctx context.Context, t Task) ([]*elm, error) {
	type individual struct {
		plan ecoPlan
		seed uint64
		g    float64
	}
	var all []individual
	var fold classify.Fold
	if folds := t.split(3, newRand(seedOf("held", t.Seed))); folds != nil {
		fold = folds[0]
	} else {
		for i := range t.Y {
			fold.Train, fold.Test = append(fold.Train, i), append(fold.Test, i)
		}
	}
	x, y := rowsOf(t.X, fold.Train), pick(t.Y, fold.Train)
	held, truth := rowsOf(t.X, fold.Test), pick(t.Y, fold.Test)
	problem := ecoBox
	problem.Evaluate = jade.Each(func(genes []float64) float64 {
		i := individual{plan: planOf(genes), seed: seedOf("member", len(all), t.Seed)}
		m := score.NewConfusion(2)
		for k, decision := range answer(i.plan.fit(x, y, i.seed).values(held), 0).Decision {
			m.Add(truth[k], decision)
		}
		i.g = m.GMean()
		all = append(all, i)
		return -i.g
	})
	_, err := jade.Minimize(ctx, problem, jade.Settings{Population: ecoMembers, Generations: ecoGenerations, Stall: -1, Seed: t.Seed})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b individual) int { return cmp.Compare(b.g, a.g) })
	var members []*elm
	for _, i := range all[:ecoMembers] {
		members = append(members, i.plan.fit(t.X, t.Y, i.seed))
	}
	return members, nil
}

// fit makes up rows as planned and fits a machine to all.
func (p ecoPlan) fit(x dbn.Matrix, y []int, seed uint64) *elm {
	rng := newRand(seed)
	x, y = p.oversample(x, y, rng)
	e := &elm{units: newRandomUnits(x, ecoUnits, rng)}
	e.beta = newRidge(e.units.apply(x), y, [2]float64{1, 1}).beta(p.ridge)
	return e
}

// oversample adds rows between two of a cluster of the smaller class, which may be
// one and the same. Clusters have shares in proportion to their rows.
func (p ecoPlan) oversample(x dbn.Matrix, y []int, rng *rand.Rand) (dbn.Matrix, []int) {
	l := lackOf(y)
	cluster := kMeans(x, l.rows, p.clusters, rng)
	members := make([][]int, p.clusters)
	for i, c := range cluster {
		members[c] = append(members[c], l.rows[i])
	}
	mates := make([][]int, len(l.rows)) // of each row: the rows of its cluster
	for i, c := range cluster {
		mates[i] = members[c]
	}
	g := grow(x, y, l)
	g.between(l.rows, mates, int(p.ratio*float64(l.need)), func(_ int, rng *rand.Rand) float64 { return p.reach * rng.Float64() }, rng)
	return g.x, g.y
}

// kMeans returns the cluster, below k, of each of the given rows of x. Centres
// begin far from each other at random and move at most 20 times.
//
// Source: D. Arthur and S. Vassilvitskii, "k-means++: The Advantages of Careful
// Seeding", SODA 2007.
func kMeans(x dbn.Matrix, rows []int, k int, rng *rand.Rand) []int {
	centres := dbn.NewMatrix(min(k, len(rows)), x.Cols)
	nearest := make([]float64, len(rows))
	for i := range nearest {
		nearest[i] = math.Inf(1)
	}
	at := rng.IntN(len(rows))
	for c := range centres.Rows {
		copy(centres.Row(c), x.Row(rows[at]))
		var sum float64
		for i, row := range rows {
			nearest[i] = min(nearest[i], distance(x.Row(row), centres.Row(c)))
			sum += nearest[i]
		}
		u := rng.Float64() * sum
		for at = 0; at < len(rows)-1 && u >= nearest[at]; at++ {
			u -= nearest[at]
		}
	}
	cluster := make([]int, len(rows))
	for range 20 {
		moved := false
		for i, row := range rows {
			best, least := 0, math.Inf(1)
			for c := range centres.Rows {
				if d := distance(x.Row(row), centres.Row(c)); d < least {
					best, least = c, d
				}
			}
			moved = moved || best != cluster[i]
			cluster[i] = best
		}
		if !moved {
			break
		}
		for c := range centres.Rows {
			sum, n := make([]float64, x.Cols), 0.0
			for i, row := range rows {
				if cluster[i] == c {
					n++
					for j, v := range x.Row(row) {
						sum[j] += float64(v)
					}
				}
			}
			for j := range sum {
				if n > 0 {
					centres.Row(c)[j] = float32(sum[j] / n)
				}
			}
		}
	}
	return cluster
}

package imbalance

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/flank-tcm/flank/pkg/score"
)

// The grid of weighted extreme learning machines. Its authors take C from 2⁻¹⁸ to
// 2⁵⁰ and from 10 to 1000 units in steps of 10; more than 200 units change little on
// sets of this size, and take most of the time.
var welmUnits = []int{10, 20, 50, 100, 200}

const (
	welmFirst, welmLast = -18, 50 // powers of 2
	welmStep            = 2
	welmFolds           = 5
)

// welmFamily is the weighted extreme learning machine: W1 gives each class the
// same weight in all, W2 the larger one less by the golden ratio. Both choose
// among the same random units.
func welmFamily() family {
	const with = "10 to 200 logistic units with weights from U(−1,1) on columns in [−1,1], C from 2^−18 to 2^50, by the G-mean of 5 inner folds, "
	return family{
		effort: 1,
		methods: []Method{
			{"welm-w1", 3, with + "weights 1/n"},
			{"welm-w2", 3, with + "weights 1/n, of the larger class 0.618/n"},
		},
		solve: func(ctx context.Context, t Task) ([]methodAnswer, error) {
			var all []methodAnswer
			for _, golden := range []bool{false, true} {
				began := startWatch()
				e, err := fitWELM(ctx, t, golden)
				seconds := began.seconds()
				if err != nil {
					began.stop()
					return nil, err
				}
				a := answer(e.values(t.Test), seconds)
				a.Judging = began.seconds() - seconds
				began.stop()
				all = append(all, a)
			}
			return all, nil
		},
	}
}

// welmWeights returns the weight of a row of each class.
func welmWeights(y []int, golden bool) [2]float64 {
	var n [2]int
	for _, label := range y {
		n[label]++
	}
	w := [2]float64{1 / float64(n[0]), 1 / float64(n[1])}
	if golden {
		for class := range w {
			if n[class] > n[1-class] {
				w[class] *= 0.618
			}
		}
	}
	return w
}

// fitWELM chooses units and C by inner folds, the fewest units and the smallest C
// of equals, and fits to all rows.
func fitWELM(ctx context.Context, t Task, golden bool) (*elm, error) {
	rng := newRand(seedOf("welm", t.Seed))
	folds := t.split(welmFolds, rng)
	units, power, most := welmUnits[0], 0, math.Inf(-1)
	for _, n := range welmUnits {
		u := newRandomUnits(t.X, n, newRand(seedOf("units", n, t.Seed)))
		h := u.apply(t.X)
		counts := make(map[int]score.Confusion)
		for _, fold := range folds {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			train, y := pickRows(h, fold.Train), pick(t.Y, fold.Train)
			r := newRidge(train, y, welmWeights(y, golden))
			var base mat.Dense
			base.Mul(pickRows(h, fold.Test), &r.vectors)
			for p := welmFirst; p <= welmLast; p += welmStep {
				if counts[p] == nil {
					counts[p] = score.NewConfusion(2)
				}
				var v mat.VecDense
				v.MulVec(&base, mat.NewVecDense(n, r.within(math.Exp2(float64(p)))))
				for k, decision := range answer(v.RawVector().Data, 0).Decision {
					counts[p].Add(t.Y[fold.Test[k]], decision)
				}
			}
		}
		for p := welmFirst; p <= welmLast && folds != nil; p += welmStep {
			if g := counts[p].GMean(); g > most {
				units, power, most = n, p, g
			}
		}
	}
	e := &elm{units: newRandomUnits(t.X, units, newRand(seedOf("units", units, t.Seed)))}
	e.beta = newRidge(e.units.apply(t.X), t.Y, welmWeights(t.Y, golden)).beta(math.Exp2(float64(power)))
	return e, nil
}

func pickRows(m *mat.Dense, rows []int) *mat.Dense {
	_, cols := m.Dims()
	p := mat.NewDense(len(rows), cols, nil)
	for k, i := range rows {
		copy(p.RawRowView(k), m.RawRowView(i))
	}
	return p
}

// pick returns the given rows of x, nil of nil.
func pick[E any](x []E, rows []int) []E {
	if x == nil {
		return nil
	}
	p := make([]E, len(rows))
	for k, i := range rows {
		p[k] = x[i]
	}
	return p
}

package imbalance

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// svmsmote makes up rows at the support vectors of the smaller class, of an svc,
// that are not noise: from those in danger, see [borderline1], towards neighbours
// of that class, from the others up to half as far away from them. What share of
// the rows comes from which kind is drawn from Beta(10, 10); if there are none of a
// kind, its share is missing, as in imbalanced-learn. If all are noise, which
// imbalanced-learn refuses, nothing is made up. Of more than 10,000 rows, the svc
// sees as many, drawn at random with both classes' shares. (H. Nguyen, E. Cooper and K. Kamei,
// "Borderline Over-sampling for Imbalanced Data Classification", IJKESDP 3, 2011.)
func svmsmote(x dbn.Matrix, y []int, rng *rand.Rand) (dbn.Matrix, []int) {
	l := lackOf(y)
	danger, safe := standing(x, y, supportVectors(x, y, l.class, rng), l)
	share := distuv.Beta{Alpha: 10, Beta: 10, Src: rng}.Rand()
	toDanger := int(share * float64(l.need+1))
	g := grow(x, y, l)
	if len(danger) > 0 {
		g.between(danger, neighbours(x, danger, l.rows, fewNeighbours), toDanger, wholeStep, rng)
	}
	if len(safe) > 0 {
		away := func(_ int, rng *rand.Rand) float64 { return -rng.Float64() / 2 }
		g.between(safe, neighbours(x, safe, l.rows, fewNeighbours), l.need-toDanger, away, rng)
	}
	return g.x, g.y
}

// svcRows is how many rows an svc is fitted to, at most: it takes the square of
// them in time and memory.
const svcRows = 10_000

// supportVectors returns the support vectors of a class.
func supportVectors(x dbn.Matrix, y []int, class int, rng *rand.Rand) []int {
	parts := (len(y) + svcRows - 1) / svcRows
	if parts < 2 {
		return fitSVC(x, y).support(y, class)
	}
	some := classify.StratifiedKFold(y, parts, rng)[0].Test
	var rows []int
	labels := pick(y, some)
	for _, i := range fitSVC(rowsOf(x, some), labels).support(labels, class) {
		rows = append(rows, some[i])
	}
	return rows
}

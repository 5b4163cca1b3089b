package classify

import (
	"math"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// ColumnWeights returns about what each column weighed in training, up to a factor that all
// share, by the lowest layer of the network: the fourth root of the sum of the squares of the weights of the
// column's inputs. The weight of a column is in these twice: as the scale of its inputs, and because
// learning moves the weights of an input in proportion to it. A column that did not count has 0.
// On the turning recording the shares of sensors in the squares differ from the shares in Report.Weights by 0.08 at most.
func (c *Classifier) ColumnWeights() []float64 {
	lowest, _ := c.network.Layer(0)
	out := make([]float64, c.Columns())
	at := 0
	for _, e := range c.encoder.Parts() { // whose inputs lie one behind the other
		for j, column := range e.columns {
			for range column.inputs(e.encoding) {
				for _, w := range lowest.Row(at) {
					out[j] += float64(w) * float64(w)
				}
				at++
			}
		}
	}
	for j, v := range out {
		out[j] = math.Sqrt(math.Sqrt(v))
	}
	return out
}

// ScoreTo stores in dst how much speaks against the first class in each row of x, see
// CostVector.Score. Dst has an entry for each row. NaN in x is a missing value.
func (c *Classifier) ScoreTo(dst []float64, x dbn.Matrix) {
	err := c.eachPosterior(x, func(i int, p []float64) { dst[i] = c.Score(p) })
	if err != nil {
		panic("classify: ScoreTo: " + err.Error()) // rows in memory can always be read
	}
}

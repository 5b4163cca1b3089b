package classify

import (
	"fmt"
	"math"
	"slices"
)

// Explanation is what a decision rests on. F is the cost-weighted log-odds of
// Class against the first class, healthy,
//
//	f(x) = ln (1 − c_k)·P(y=k|x) − ln (1 − c_0)·P(y=0|x),
//
// which is positive where Class is decided for, with the logarithms of costs kept
// as far apart as [weighted] keeps the costs.
type Explanation struct {
	Class int
	Total float64   // f of the row
	Base  float64   // f of what is usual: of a row of which every value is missing
	Parts []float64 // of every feature; they add up to Total − Base
}

// Explain says what the features of a row had to do with f, which for the class k is
// the log-odds of k against the first class, see [Explanation]. It is meant for
// a class other than the first. What is usual is what the encoder puts in for a
// missing value, the mean of the training rows ([Encoder.Column]): so a missing value has nothing to do
// with anything, its part is 0. The parts are integrated gradients in the inputs of
// the network, added up for the inputs of a feature, see [dbn.Network.AttributeTo]
// for their laws. It panics if row is not as long as the classifier has columns, or
// if it has no such class.
func (c *Classifier) Explain(row []float32, class int) Explanation {
	if class < 0 || class >= c.Classes() {
		panic(fmt.Sprintf("classify: Explain: class %d of %d", class, c.Classes()))
	}
	n := c.encoder.Inputs()
	x, usual, parts := make([]float32, n), make([]float32, n), make([]float64, n)
	c.encoder.EncodeTo(x, row)
	c.encoder.EncodeTo(usual, slices.Repeat([]float32{float32(math.NaN())}, c.Columns()))
	e := Explanation{Class: class, Parts: make([]float64, c.Columns())}
	e.Total, e.Base = c.network.AttributeTo(parts, x, usual, class, Healthy)
	weights := c.costs.logWeights()
	e.Total += weights[class] - weights[Healthy]
	e.Base += weights[class] - weights[Healthy]
	for _, encoder := range c.encoder.Parts() { // whose inputs lie one behind the other
		for j, column := range encoder.columns {
			k := column.inputs(encoder.encoding)
			for _, v := range parts[:k] {
				e.Parts[j] += v
			}
			parts = parts[k:]
		}
	}
	return e
}

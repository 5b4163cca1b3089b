package model

import "github.com/flank-tcm/flank/pkg/classify"

// Explanation is what a judgement rests on: the parts that features had in it, see
// [classify.Explanation], and what they were.
type Explanation struct {
	classify.Explanation
	Values   []float64 // of every feature in its own unit, before the reference; NaN if it has none
	Usual    []float64 // likewise of what Base is of: the mean of the training rows, brought to the tool by its reference
	Channels []float64 // of every channel of the layout, the sum of the parts of the features named after it
}

// Explain says what the judgement of the last window rests on: for the class that
// it was given, or, if that is healthy, for the one that came next to it. Ref is
// the reference that it was judged by. The window must have been judged: its
// outcome Healthy or Faulty, or its row not nil. The slices are the caller's. It
// computes for a fraction of a millisecond and is not meant for every window.
func (j *Judge) Explain(ref *Reference) Explanation {
	c := j.model.Classifier
	if c == nil {
		return j.explanation(ref, j.explainFirstDay(), func(int) float64 { return 0 })
	}
	posterior, costs := j.scorer.Posterior(j.row), c.Costs()
	class := c.Decide(posterior)
	if m := j.model; m.ByWear != nil { // between two classes; the parts are the classifier's
		faulty := m.faultyByWear(j.cutting, j.center)
		class = equalCosts.Decide([]float64{1 - faulty, faulty})
	}
	if class == classify.Healthy {
		class++
		for k := class + 1; k < len(posterior); k++ {
			if (1-costs[k])*posterior[k] > (1-costs[class])*posterior[class] {
				class = k
			}
		}
	}
	return j.explanation(ref, c.Explain(j.row, class), func(i int) float64 {
		fill, _, _ := c.Encoder().Parts()[0].Column(i) // all parts fill in the same
		return fill
	})
}

// explanation returns what parts of features mean; usual is what is put in for a feature that is missing, relative to the reference.
func (j *Judge) explanation(ref *Reference, of classify.Explanation, usual func(i int) float64) Explanation {
	e := Explanation{
		Explanation: of, Values: make([]float64, len(j.row)), Usual: make([]float64, len(j.row)),
		Channels: make([]float64, len(j.model.Usual)),
	}
	for i := range j.row {
		e.Values[i], e.Usual[i] = float64(j.cutting[i]), j.model.Reference.undo(usual(i), i, ref.center, j.extractor.Relations())
		e.Channels[j.extractor.Channels(i)[0]] += e.Parts[i]
	}
	return e
}

// Band returns the frequencies in Hz of the band whose energy feature i is, see
// [signal.Extractor.Band], and the channel.
func (j *Judge) Band(i int) (low, high float64, channel int, ok bool) {
	low, high, ok = j.extractor.Band(i)
	return low, high, j.extractor.Channels(i)[0], ok
}

// Describe returns what feature i is in words, and its unit, see
// [signal.Extractor.Describe]; and the channel that it is named after.
func (j *Judge) Describe(i int) (what, unit string, channel int) {
	what, unit = j.extractor.Describe(i)
	return what, unit, j.extractor.Channels(i)[0]
}

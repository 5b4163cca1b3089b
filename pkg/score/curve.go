package score

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

// OperatingPoint is what a threshold gives: rows whose score is at least the
// threshold are decided positive.
type OperatingPoint struct {
	Threshold float64 // +Inf where nothing is decided positive
	TP, FP    int     // positive and other rows decided positive
}

// OperatingPoints returns what every threshold that makes a difference gives,
// from +Inf downwards: first nothing is decided positive, at the end everything.
// The points of the ROC curve are (FP/others, TP/positives), the points of the
// precision-recall curve (TP/positives, TP/(TP+FP)). Scores must not be NaN. It
// panics if the slices differ in length.
func OperatingPoints(score []float64, positive []bool) []OperatingPoint {
	return slices.Collect(OperatingPointSeq(score, positive))
}

// below returns how many ascending scores are left without those at the end that are not below a threshold, with a NaN too.
func below(scores []float64, threshold float64) int {
	n := len(scores)
	for n > 0 && !(scores[n-1] < threshold) {
		n--
	}
	return n
}

// OperatingPointSeq is OperatingPoints one after the other, for scores of very
// many rows: it holds these once, sorted, and no point. It keeps neither slice.
func OperatingPointSeq(score []float64, positive []bool) iter.Seq[OperatingPoint] {
	if len(score) != len(positive) {
		panic(fmt.Sprintf("score: operating points of %d scores and %d labels", len(score), len(positive)))
	}
	yes, no := sortedByKind(score, positive)
	return func(yield func(OperatingPoint) bool) {
		at := OperatingPoint{Threshold: math.Inf(1)}
		if !yield(at) {
			return
		}
		for i, j := len(yes), len(no); i > 0 || j > 0; {
			if i > 0 && (j == 0 || yes[i-1] >= no[j-1]) {
				at.Threshold = yes[i-1]
			} else {
				at.Threshold = no[j-1]
			}
			i, j = below(yes[:i], at.Threshold), below(no[:j], at.Threshold)
			at.TP, at.FP = len(yes)-i, len(no)-j
			if !yield(at) {
				return
			}
		}
	}
}

// sortedByKind returns the scores of positive rows and of others, ascending.
func sortedByKind(score []float64, positive []bool) (yes, no []float64) {
	n := 0
	for _, p := range positive {
		if p {
			n++
		}
	}
	yes, no = make([]float64, 0, n), make([]float64, 0, len(positive)-n)
	for i, p := range positive {
		if p {
			yes = append(yes, score[i])
		} else {
			no = append(no, score[i])
		}
	}
	slices.Sort(yes)
	slices.Sort(no)
	return yes, no
}

// AveragePrecision returns the area under the precision-recall curve as steps,
//
//	Σ_n (R_n − R_{n−1})·P_n,
//
// over the operating points, as scikit-learn's average_precision_score does. It
// is NaN without positive rows.
func AveragePrecision(score []float64, positive []bool) float64 {
	var sum float64
	before := 0 // positive rows above
	for p := range OperatingPointSeq(score, positive) {
		if p.TP > before {
			sum += float64(p.TP-before) * float64(p.TP) / float64(p.TP+p.FP)
			before = p.TP
		}
	}
	return sum / float64(before)
}

// ReliabilityBin holds rows whose predicted probability of being positive lies
// within one bin.
type ReliabilityBin struct {
	Rows      int
	Predicted float64 // mean probability
	Observed  float64 // share that is positive
}

// Reliability sorts rows by probability into bins of equal width on [0, 1] and
// returns those that have rows. A calibrated model has Predicted equal to
// Observed in each, up to chance. It panics if the slices differ in length.
func Reliability(probability []float64, positive []bool, bins int) []ReliabilityBin {
	if len(probability) != len(positive) {
		panic(fmt.Sprintf("score: reliability of %d probabilities and %d labels", len(probability), len(positive)))
	}
	all := make([]ReliabilityBin, bins)
	for i, p := range probability {
		b := &all[min(max(int(p*float64(bins)), 0), bins-1)]
		b.Rows++
		b.Predicted += p
		if positive[i] {
			b.Observed++
		}
	}
	all = slices.DeleteFunc(all, func(b ReliabilityBin) bool { return b.Rows == 0 })
	for i := range all {
		all[i].Predicted /= float64(all[i].Rows)
		all[i].Observed /= float64(all[i].Rows)
	}
	return all
}

// CalibrationError returns the expected calibration error of the bins, the mean
// of |Predicted − Observed| over rows; NaN without rows. (C. Guo et al., "On
// Calibration of Modern Neural Networks", ICML 2017, eq. 3.)
func CalibrationError(bins []ReliabilityBin) float64 {
	var sum float64
	rows := 0
	for _, b := range bins {
		sum += float64(b.Rows) * math.Abs(b.Predicted-b.Observed)
		rows += b.Rows
	}
	return sum / float64(rows)
}

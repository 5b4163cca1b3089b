package score

import "math"

// CountingUnknown returns the figures of decisions and of windows without a decision,
// unknown[i] of class i, which all count as wrong: in the figures of one positive class a
// window of it without a decision is missed, and another one is a false alarm. MCC takes
// no decision for a class of its own that no window is of. AUC and Brier are undefined. It
// panics if there is not one number for each class.
func (m Confusion) CountingUnknown(unknown []int) Summary {
	if len(unknown) != len(m) {
		panic("score: CountingUnknown: one number for each class is needed")
	}
	wide := NewConfusion(len(m) + 1)
	total, p := 0, m.positive()
	for i, n := range unknown {
		copy(wide[i], m[i])
		wide[i][len(m)] = n
		total += n
	}
	s := m.Summary()
	if total == 0 {
		return s
	}
	undefined := Figure(math.NaN())
	rows, positive := wide.Rows(), wide.RowsOf(p)
	s.Rows, s.Positive, s.Unknown = rows, positive, append([]int(nil), unknown...)
	s.Accuracy = Figure(wide.Accuracy())
	s.Recall, s.Specificity, s.Precision, s.F1 = undefined, undefined, undefined, undefined
	others := rows - positive
	wrongly := m.decided(p) - m[p][p] + total - unknown[p] // others called positive, or not known
	if positive > 0 {
		s.Recall = Figure(wide.RecallOf(p))
		s.Precision = Figure(ratio(m[p][p], m[p][p]+wrongly))
		s.F1 = Figure(ratio(2*m[p][p], m[p][p]+wrongly+positive))
	}
	if others > 0 {
		s.Specificity = Figure(ratio(others-wrongly, others))
	}
	s.HardAUC = (s.Recall + s.Specificity) / 2
	product, sum := 1.0, 0.0
	for i := range m {
		recall := float64(undefined)
		if wide.RowsOf(i) > 0 {
			recall = wide.RecallOf(i)
		}
		product, sum = product*recall, sum+recall
		if s.Recalls != nil {
			s.Recalls[i] = Figure(recall)
		}
	}
	k := float64(len(m))
	s.GMean, s.BalancedAccuracy, s.MCC = Figure(math.Pow(product, 1/k)), Figure(sum/k), undefined
	if len(m) == 2 {
		s.GMean = Figure(math.Sqrt(product))
	}
	if product == product {
		s.MCC = Figure(wide.MCC())
	}
	return s
}

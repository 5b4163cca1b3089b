package score

// CountingUnknown returns the figures of decisions and of windows without a decision,
// unknown[i] of class i, which all count as wrong: as decided to be of the last class, and
// windows of the last class as decided to be of the first. AUC and Brier are undefined. It
// panics if there is not one number for each class.
func (m Confusion) CountingUnknown(unknown []int) Summary {
	s := m.WithWrong(unknown).Summary()
	if s.Confusion.Rows() > m.Rows() {
		s.Unknown = append([]int(nil), unknown...)
	}
	s.Confusion = m
	return s
}

// WithWrong returns the confusion in which windows without a decision count as wrong, as
// CountingUnknown has it.
func (m Confusion) WithWrong(unknown []int) Confusion {
	if len(unknown) != len(m) {
		panic("score: WithWrong: one number for each class is needed")
	}
	out := NewConfusion(len(m))
	for class := range m {
		copy(out[class], m[class])
		wrong := m.positive()
		if class == wrong {
			wrong = 0
		}
		out[class][wrong] += unknown[class]
	}
	return out
}

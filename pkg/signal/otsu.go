package signal

// Split parts numbers into low ones and high ones.
type Split struct {
	At        int     // how many are low
	Threshold float64 // half-way between the highest of the low and the lowest of the high
	Low, High float64 // mean of each part
	Between   float64 // variance between the parts
}

// Otsu splits sorted numbers where the variance between the two parts is greatest.
// At is 0 if no split has any, as when all numbers are equal.
//
// Source: N. Otsu, "A Threshold Selection Method from Gray-Level Histograms",
// IEEE Trans. SMC 9(1), 1979, eq. 14.
func Otsu(sorted []float64) Split {
	var sum, below float64
	for _, v := range sorted {
		sum += v
	}
	var best Split
	n := float64(len(sorted))
	for i := 1; i < len(sorted); i++ {
		below += sorted[i-1]
		w, low, high := float64(i)/n, below/float64(i), (sum-below)/(n-float64(i))
		if between := w * (1 - w) * (high - low) * (high - low); between > best.Between {
			best = Split{i, (sorted[i-1] + sorted[i]) / 2, low, high, between}
		}
	}
	return best
}

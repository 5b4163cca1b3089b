package kernel

// judgedRows is the number of rows that judge takes.
const judgedRows = 256

// judge returns how many rows of the given class are decided for it with the
// weights w, one for each of K classes, and the sum of their shares. Weights and
// posteriors are not negative. p is K×judgedRows: p[j*judgedRows+i] is the
// posterior of class j of row i. With v_j = w_j·p_j a row is decided for its
// class c if v_c is above all v_j of the classes before and not below the v_j of
// the classes after; its share is v_c / Σ v_j, or next to 0 if the sum is 0.
func judge(p, w []float32, class int) (right int, share float32) {
	check(len(p) == len(w)*judgedRows, "Judge: length of p")
	check(class >= 0 && class < len(w), "Judge: class")
	return active.judge(p, w, class)
}

// leastSum is what the sum of the weighted posteriors of a row counts at least.
const leastSum = 1e-30

// judgeGo adds shares in 16 lanes, as the vector families do.
func judgeGo(p, w []float32, class int) (right int, share float32) {
	var sum [lanes]float32
	for row := range judgedRows {
		own := w[class] * p[class*judgedRows+row]
		before, after, all := float32(-1), float32(0), own
		for j, v := range w[:class] {
			v *= p[j*judgedRows+row]
			before = max(before, v)
			all += v
		}
		for j := class + 1; j < len(w); j++ {
			v := w[j] * p[j*judgedRows+row]
			after = max(after, v)
			all += v
		}
		if before < own && after <= own {
			right++
		}
		sum[row%lanes] += own / max(all, leastSum)
	}
	for half := lanes / 2; half > 0; half /= 2 {
		for i := range half {
			sum[i] += sum[i+half]
		}
	}
	return right, sum[0]
}

package classify

import (
	"math"
)

// chooseView returns the view whose networks have the least loss on rows held out: the
// mean cross-entropy, at the temperature where that is least, each class counting alike
// and within it each group. The first view is kept unless another's loss is less by
// more than the standard error, over groups, of their difference: views differ by less
// than chance on most tables, and a choice that changes from fold to fold costs more
// than it gains. Without rows held out it is the first.
func chooseView(attempts []attempt, names []string, y []int, groups []string, k int, r *Report) int {
	if len(attempts) == 1 || attempts[0].held[0] == nil {
		return 0
	}
	losses := make([][]float64, len(attempts)) // by class and group
	for v, a := range attempts {
		_, joint := join(a.trained, a.held, y, k, false, &Report{})
		losses[v] = groupLosses(joint, y, groups, k)
		r.Views = append(r.Views, ViewScore{names[v], sum(losses[v])})
	}
	best := 0
	for v := range losses[1:] {
		if gain, se := difference(losses[0], losses[v+1]); gain > se && r.Views[v+1].Loss < r.Views[best].Loss {
			best = v + 1
		}
	}
	return best
}

// groupLosses returns the part that each class and group has in the loss of the given
// posteriors, those that have no rows left out.
func groupLosses(posterior []float64, y []int, groups []string, k int) []float64 {
	t := Temperature(posterior, y, k)
	number, names := NumberGroups(groups)
	total, rows := make([]float64, k*len(names)), make([]float64, k*len(names))
	logs := make([]float64, k)
	for i, class := range y {
		for j := range logs {
			logs[j] = max(math.Log(posterior[i*k+j]), leastLog) / t
		}
		at := class*len(names) + int(number[i])
		total[at] += logSum(logs) - logs[class]
		rows[at]++
	}
	var out []float64
	for class := range k {
		of := 0.0
		for g := range names {
			if rows[class*len(names)+g] > 0 {
				of++
			}
		}
		for g := range names {
			if at := class*len(names) + g; rows[at] > 0 {
				out = append(out, total[at]/rows[at]/of/float64(k))
			}
		}
	}
	return out
}

// difference returns Σ(a−b) and its standard error.
func difference(a, b []float64) (sum, se float64) {
	n := float64(len(a))
	var square float64
	for i := range a {
		sum += a[i] - b[i]
	}
	for i := range a {
		d := a[i] - b[i] - sum/n
		square += d * d
	}
	return sum, math.Sqrt(square * n / max(n-1, 1))
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

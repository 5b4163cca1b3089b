package classify

import (
	"cmp"
	"context"
	"math"

	"github.com/flank-tcm/flank/pkg/score"
)

// ViewScore is what a view of the rows gives on rows held out.
type ViewScore struct {
	Name string  `json:"name"`
	Loss float64 `json:"loss"` // mean cross-entropy, classes and within them groups counting alike; of a fit at the temperature where it is least

	Groups []ViewGroup `json:"-"` // what it gives on each group; of ScoreViews only
}

// ViewGroup is what a view of the rows gives on the rows of one group.
type ViewGroup struct {
	Group     string
	Loss      []float64       // by class: mean cross-entropy, NaN without rows
	Confusion score.Confusion // what is decided while it is held out
}

// chooseView returns the view whose networks have the least loss on rows held out, see
// BestView. Without rows held out it is the first.
func chooseView(attempts []attempt, names []string, y []int, groups []string, k int, r *Report) int {
	if len(attempts) == 1 || attempts[0].held[0] == nil {
		return 0
	}
	losses := make([][]float64, len(attempts)) // by class and group
	for v, a := range attempts {
		_, joint := join(a.trained, a.held, y, k, false, &Report{})
		losses[v] = parts(groupLosses(joint, y, groups, k, Temperature(joint, y, k)))
		r.Views = append(r.Views, ViewScore{Name: names[v], Loss: sum(losses[v])})
	}
	return leastLoss(losses)
}

// BestView returns which of the scores of ScoreViews, all of the same rows, is the best: the
// one with the least loss. The first is kept unless another's loss is less by more than the standard error,
// over groups, of their difference: views differ by less than chance on most tables, and
// a choice that changes from fold to fold costs more than it gains.
func BestView(scores []ViewScore) int {
	losses := make([][]float64, len(scores))
	for v, s := range scores {
		by := make([][]float64, len(s.Groups))
		for g := range by {
			by[g] = s.Groups[g].Loss
		}
		losses[v] = parts(by)
	}
	return leastLoss(losses)
}

// leastLoss is BestView of the parts that each class and group has in the losses.
func leastLoss(losses [][]float64) int {
	best := 0
	for v := range losses[1:] {
		if gain, se := difference(losses[0], losses[v+1]); gain > se && sum(losses[v+1]) < sum(losses[best]) {
			best = v + 1
		}
	}
	return best
}

// ScoreViews says what each view of t, with a class in all groups together, gives on the groups
// that folds hold out: each view alone, however few groups have rows of a class. Errors are
// the errors of CrossValidateTable.
func ScoreViews(ctx context.Context, t *Table, s Settings, folds []Fold) ([]ViewScore, error) {
	out := make([]ViewScore, len(t.Views))
	progress := newProgress(s.Progress, "train", len(t.Views))
	s.Shared = cmp.Or(s.Shared, NewShared())
	for v, view := range t.Views {
		alone := *t
		alone.Views = []View{view}
		s.Progress = progress.whole(v)
		if progress.report == nil {
			s.Progress = nil
		}
		found, err := CrossValidateTable(ctx, &alone, s, folds)
		if err != nil {
			return nil, err
		}
		losses := groupLosses(found.Posterior, t.Y, t.Groups, found.Classes, 1)
		out[v] = ViewScore{Name: view.Name, Loss: sum(parts(losses))}
		for g, of := range found.Groups {
			out[v].Groups = append(out[v].Groups, ViewGroup{of.Group, losses[g], of.Confusion})
		}
	}
	return out, nil
}

// groupLosses returns, by group and class, the mean cross-entropy of the given posteriors at
// a temperature; NaN of a group without rows of the class.
func groupLosses(posterior []float64, y []int, groups []string, k int, t float64) [][]float64 {
	number, names := NumberGroups(groups)
	total, rows := make([][]float64, len(names)), make([][]float64, len(names))
	for g := range names {
		total[g], rows[g] = make([]float64, k), make([]float64, k)
	}
	logs := make([]float64, k)
	for i, class := range y {
		for j := range logs {
			logs[j] = max(math.Log(posterior[i*k+j]), leastLog) / t
		}
		total[number[i]][class] += logSum(logs) - logs[class]
		rows[number[i]][class]++
	}
	for g := range names {
		for class := range k {
			total[g][class] /= rows[g][class] // NaN of none
		}
	}
	return total
}

// parts returns the part that each class and group has in a loss in which classes count
// alike, and within them groups; those that have no rows left out.
func parts(losses [][]float64) []float64 {
	var out []float64
	k := len(losses[0])
	for class := range k {
		of := 0.0
		for _, l := range losses {
			if l[class] == l[class] {
				of++
			}
		}
		for _, l := range losses {
			if l[class] == l[class] {
				out = append(out, l[class]/of/float64(k))
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

package card

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/pkg/score"
)

// ToolInterval says how far scores depend on which tools there happened to be: the
// 95 % interval of each figure over tools, by the bootstrap of whole tools. Windows of
// one tool are near copies, so tools are drawn and not windows. A figure is undefined
// if fewer than two tools have windows of a class that it asks about.
type ToolInterval struct {
	Tools int `json:"tools"`
	Draws int `json:"draws"` // of as many tools, with replacement

	GMean       [2]score.Figure   `json:"gmean"`
	Recall      [2]score.Figure   `json:"recall"`            // of the last class
	Specificity [2]score.Figure   `json:"specificity"`       // of the others against the last
	Recalls     [][2]score.Figure `json:"recalls,omitempty"` // of each class, if there are more than two
}

func undefinedInterval() [2]score.Figure {
	undefined := score.Figure(math.NaN())
	return [2]score.Figure{undefined, undefined}
}

// overTools returns the interval of the mean of a figure that each tool has, undefined of
// fewer than two tools.
func overTools(figures []float64) [2]score.Figure {
	if len(figures) < 2 {
		return undefinedInterval()
	}
	values := make([]float64, len(figures))
	return score.Bootstrap(len(figures), 1, func(drawn []int, out []float64) {
		for i, t := range drawn {
			values[i] = figures[t]
		}
		out[0] = mean(values)
	})[0]
}

// IntervalOf returns the interval of the scores of all tools together, given the decisions
// on the windows of each, or nil of fewer than two tools.
func IntervalOf(tools []score.Confusion) *ToolInterval {
	if len(tools) < 2 {
		return nil
	}
	k := len(tools[0])
	homes := make([]int, k) // tools that have windows of a class
	for _, m := range tools {
		for class, row := range m {
			if slices.Max(row) > 0 {
				homes[class]++
			}
		}
	}
	some := make([]score.Confusion, len(tools))
	all := score.Bootstrap(len(tools), 3+k, func(drawn []int, figures []float64) {
		for i, t := range drawn {
			some[i] = tools[t]
		}
		s := together(some, k).Summary()
		figures[0], figures[1], figures[2] = float64(s.GMean), float64(s.Recall), float64(s.Specificity)
		for class, f := range s.Recalls {
			figures[3+class] = float64(f)
		}
	})
	known := func(of [2]score.Figure, tools int) [2]score.Figure {
		if tools < 2 {
			return undefinedInterval()
		}
		return of
	}
	v := &ToolInterval{
		Tools: len(tools), Draws: score.BootstrapDraws,
		GMean: known(all[0], slices.Min(homes)), Recall: known(all[1], homes[k-1]), Specificity: known(all[2], slices.Max(homes[:k-1])),
	}
	if k > 2 {
		for class, of := range homes {
			v.Recalls = append(v.Recalls, known(all[3+class], of))
		}
	}
	return v
}

// together returns the decisions on the windows of all tools.
func together(tools []score.Confusion, classes int) score.Confusion {
	sum := score.NewConfusion(classes)
	for _, m := range tools {
		for truth, row := range m {
			for decision, n := range row {
				sum[truth][decision] += n
			}
		}
	}
	return sum
}

// confusions returns the decisions on the windows of each tool.
func confusions(tools []string, of map[string]score.Summary) []score.Confusion {
	out := make([]score.Confusion, len(tools))
	for i, t := range tools {
		out[i] = of[t].Confusion
	}
	return out
}

// twoClasses returns decisions between healthy and all other classes, taken as one.
func twoClasses(tools []score.Confusion) []score.Confusion {
	out := make([]score.Confusion, len(tools))
	for i, m := range tools {
		out[i] = scoresAgainstHealthy(m).Confusion
	}
	return out
}

// Within returns a figure and its interval, if that is defined.
func Within(f score.Figure, of [2]score.Figure) string {
	if of[0] != of[0] {
		return Figure(f)
	}
	return fmt.Sprintf("%s [%.2f, %.2f]", Figure(f), float64(of[0]), float64(of[1]))
}

// Words returns scores with their intervals, nothing if there are none. Names are the names of
// the classes.
func (v *ToolInterval) Words(names []string, s *score.Summary) string {
	if v == nil || s == nil {
		return ""
	}
	words := []string{"G-mean " + Within(s.GMean, v.GMean)}
	if several(names) && len(v.Recalls) == len(names) && len(s.Recalls) == len(names) {
		recalls := make([]string, len(names))
		for k, name := range names {
			recalls[k] = Within(s.Recalls[k], v.Recalls[k]) + " of " + name
		}
		words = append(words, "recall "+Listed(recalls))
	} else {
		words = append(words, "recall "+Within(s.Recall, v.Recall), "specificity "+Within(s.Specificity, v.Specificity))
	}
	return fmt.Sprintf("%s over %d tools", strings.Join(words, ", "), v.Tools)
}

func mean(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

package card

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/score"
)

// landscape is how the G-mean depends on the costs of two classes, of which only
// the threshold on P(faulty) matters: it moves along log odds from the first
// point to the last.
type landscape struct {
	Threshold   []float64 `json:"threshold"` // on P(faulty)
	GMean       []float64 `json:"gmean"`
	Recall      []float64 `json:"recall"`
	Specificity []float64 `json:"specificity"`

	// Within are the least and the greatest threshold around the best one up to
	// which the G-mean stays within 0.01 of it: the wider, the less the choice
	// matters.
	Within [2]float64 `json:"within_0.01"`
	Best   float64    `json:"best_gmean"`
}

const landscapePoints = 201

// NewLandscape returns the landscape on rows of the given P(faulty). Both
// classes must have rows.
func NewLandscape(faulty []float64, positive []bool) *landscape {
	logit := func(p float64) float64 { return min(max(math.Log(p/(1-p)), -16), 16) }
	low, high := logit(slices.Min(faulty)), logit(slices.Max(faulty))
	low, high = min(low, -1)-0.5, max(high, 1)+0.5
	points := score.OperatingPointSeq(faulty, positive) // thresholds descend
	all := totals(positive)
	l := &landscape{
		Threshold: make([]float64, landscapePoints), GMean: make([]float64, landscapePoints),
		Recall: make([]float64, landscapePoints), Specificity: make([]float64, landscapePoints),
	}
	for i := range landscapePoints {
		l.Threshold[i] = 1 / (1 + math.Exp(-(low + (high-low)*float64(i)/(landscapePoints-1))))
	}
	next := landscapePoints - 1
	var at score.OperatingPoint
	note := func(until float64) {
		for ; next >= 0 && l.Threshold[next] >= until; next-- {
			l.Recall[next], l.Specificity[next] = all.shares(at)
			l.GMean[next] = math.Sqrt(l.Recall[next] * l.Specificity[next])
		}
	}
	for p := range points {
		note(p.Threshold) // faulty is what exceeds a threshold
		at = p
	}
	note(0)
	l.Best, l.Within = plateau(points, all)
	return l
}

// totals counts the rows of both kinds: the last operating point of them.
func totals(positive []bool) (end rowCount) {
	for _, p := range positive {
		if p {
			end.faulty++
		} else {
			end.healthy++
		}
	}
	return end
}

type rowCount struct{ faulty, healthy int }

// shares returns recall and specificity at p.
func (n rowCount) shares(p score.OperatingPoint) (recall, specificity float64) {
	return float64(p.TP) / float64(n.faulty), 1 - float64(p.FP)/float64(n.healthy)
}

// plateau returns the best G-mean of the points and the widest span of thresholds
// around it over which it stays within 0.01. A point stands for all
// thresholds between the next point's threshold and its own.
func plateau(points iter.Seq[score.OperatingPoint], all rowCount) (best float64, within [2]float64) {
	gmean := func(p score.OperatingPoint) float64 {
		recall, specificity := all.shares(p)
		return math.Sqrt(recall * specificity)
	}
	at := math.Inf(1) // threshold of the best point
	for p := range points {
		if g := gmean(p); g > best {
			best, at = g, p.Threshold
		}
	}
	good := false // all points since within[1] was set
	for p := range points {
		was := good
		good = gmean(p) >= best-0.01
		switch {
		case good && !was && p.Threshold >= at:
			within[1] = min(p.Threshold, 1)
		case !good && p.Threshold < at:
			return best, [2]float64{p.Threshold, within[1]}
		}
	}
	return best, within
}

// CostStudy says what the costs of a model are, what else there was to choose,
// and how much the choice matters.
type CostStudy struct {
	Model     string               `json:"model"`
	Classes   []string             `json:"classes"`   // their names
	Costs     classify.CostVector  `json:"costs"`     // of the model
	Threshold score.Figure         `json:"threshold"` // on P(faulty) that they stand for; more than two classes have none
	On        string               `json:"on"`        // the windows that Report is about, in words
	GMean     score.Figure         `json:"gmean"`     // of the model's costs on them
	Report    *classify.CostReport `json:"report"`
	Landscape *landscape           `json:"landscape"` // nil for more than two classes
}

// Text returns the study for a terminal, with a plot of the landscape.
func (s *CostStudy) Text() string {
	if several(s.Classes) {
		return s.textOfClasses()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "model      %s: cost %.4f of healthy, %.4f of faulty; a window is called faulty from P(faulty) > %.4f on\n", s.Model, s.Costs[0], s.Costs[1], float64(s.Threshold))
	fmt.Fprintf(&b, "on         %s: G-mean %s\n", s.On, Figure(s.GMean))
	fmt.Fprintf(&b, "\n%-16s %9s %9s %10s %8s %9s", "rule", "healthy", "faulty", "threshold", "G-mean", "accuracy")
	var exact, jade float64
	for _, c := range s.Report.Choices {
		fmt.Fprintf(&b, "\n%-16s %9.4f %9.4f %10.4f %8.4f %9.4f", strings.ReplaceAll(c.Name, "_", " "), c.Costs[0], c.Costs[1], c.Costs.Threshold(), c.GMean, c.Accuracy)
		switch c.Name {
		case "exact":
			exact = c.GMean
		case "jade":
			jade = c.GMean
		}
	}
	r := s.Report.Search
	fmt.Fprintf(&b, "\n\nJADE       variant %s: %d generations, %d evaluations, stopped by %s; it is %.4f below the exact optimum, which a sweep of every threshold finds\n",
		r.Variant, r.Generations, r.Evaluations, r.Stopped, max(exact-jade, 0))
	l := s.Landscape
	fmt.Fprintf(&b, "landscape  every threshold from %.4f to %.4f is within 0.01 of the best G-mean, %.4f\n\n", l.Within[0], l.Within[1], l.Best)
	b.WriteString(l.plot(float64(s.Threshold)))
	return b.String()
}

// textOfClasses is Text for more than two classes, which have no threshold.
func (s *CostStudy) textOfClasses() string {
	var b strings.Builder
	fmt.Fprintf(&b, "model      %s: a window is of the class with the greatest (1 − cost)·posterior\n", s.Model)
	fmt.Fprintf(&b, "on         %s: G-mean %s\n", s.On, Figure(s.GMean))
	fmt.Fprintf(&b, "\n%-16s", "rule")
	for _, name := range s.Classes {
		fmt.Fprintf(&b, " %*s", max(len([]rune(name)), 9), name)
	}
	fmt.Fprintf(&b, " %8s %9s", "G-mean", "accuracy")
	for _, c := range s.Report.Choices {
		fmt.Fprintf(&b, "\n%-16s", strings.ReplaceAll(c.Name, "_", " "))
		for k, name := range s.Classes {
			fmt.Fprintf(&b, " %*.4f", max(len([]rune(name)), 9), c.Costs[k])
		}
		fmt.Fprintf(&b, " %8.4f %9.4f", c.GMean, c.Accuracy)
	}
	r := s.Report.Search
	fmt.Fprintf(&b, "\n\nJADE       variant %s: %d generations, %d evaluations, stopped by %s; more than two classes have no exact optimum to compare it with\n",
		r.Variant, r.Generations, r.Evaluations, r.Stopped)
	if held := heldChoices(s.Report); held != "" {
		fmt.Fprintf(&b, "held out   %s\n", held)
	}
	return b.String()
}

// plot draws the G-mean over the threshold in characters, with a mark at the
// given threshold.
func (l *landscape) plot(mark float64) string {
	const width, height = 67, 10
	n := len(l.GMean)
	column := func(c int) int { return c * (n - 1) / (width - 1) }
	var b strings.Builder
	for row := height; row >= 0; row-- {
		level := float64(row) / height
		if row%5 == 0 {
			fmt.Fprintf(&b, "%6.1f ┤", level)
		} else {
			b.WriteString("       │")
		}
		line := make([]rune, width)
		for c := range width {
			line[c] = ' '
			if g := l.GMean[column(c)]; math.Round(g*height) == float64(row) {
				line[c] = '●'
			} else if g*height > float64(row) {
				line[c] = '·'
			}
		}
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	at := 0
	for c := range width {
		if l.Threshold[column(c)] <= mark {
			at = c
		}
	}
	b.WriteString("       └" + strings.Repeat("─", width) + "\n")
	fmt.Fprintf(&b, "        %s▲ kept, %.4f\n", strings.Repeat(" ", at), mark)
	fmt.Fprintf(&b, "        threshold on P(faulty), by log odds, from %.2g to 1 − %.2g; height is the G-mean\n", l.Threshold[0], 1-l.Threshold[n-1])
	return b.String()
}

// FaultyOf returns P(faulty) of posteriors of k classes: of all but healthy.
func FaultyOf(posterior []float64, k int) []float64 {
	f := make([]float64, len(posterior)/k)
	for i := range f {
		for _, p := range posterior[k*i+1 : k*(i+1)] {
			f[i] += p
		}
	}
	return f
}

// Positives reports for each class whether it is faulty.
func Positives(class []int) []bool {
	p := make([]bool, len(class))
	for i, k := range class {
		p[i] = k != classify.Healthy
	}
	return p
}

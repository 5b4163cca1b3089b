package study

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// Summary is how one method does on a set.
type Summary struct {
	Method              string
	GMean, SD           float64 // SD of GMean over trials; 0 of one trial
	Accuracy, AUC       float64
	Recall, Specificity float64
	Seconds             float64 // of a fit
}

// Summarise returns the summaries of the cells of a set, the best mean G-mean first.
//
// If pooled, the decisions of all folds of a trial are counted together, which is
// for groups that have rows of one class only; otherwise figures are means over
// folds, then trials. AUC is always a mean over the folds that have one.
func Summarise(cells []Cell, pooled bool) []Summary {
	var methods []string
	trials := make(map[string][][]Cell)
	for _, c := range cells {
		if !slices.Contains(methods, c.Method) {
			methods = append(methods, c.Method)
		}
		for len(trials[c.Method]) < c.Trial {
			trials[c.Method] = append(trials[c.Method], nil)
		}
		trials[c.Method][c.Trial-1] = append(trials[c.Method][c.Trial-1], c)
	}
	all := make([]Summary, len(methods))
	for i, m := range methods {
		all[i] = summary(m, trials[m], pooled)
	}
	slices.SortStableFunc(all, func(a, b Summary) int { return cmp.Compare(b.GMean, a.GMean) })
	return all
}

// summary returns the summary of a method by the cells of its trials.
func summary(method string, trials [][]Cell, pooled bool) Summary {
	var sum [6]mean
	var gmeans []float64
	for _, cells := range trials {
		f := figures(cells, pooled)
		for k, v := range f {
			sum[k].add(v)
		}
		gmeans = append(gmeans, f[0])
	}
	s := Summary{
		Method: method, GMean: sum[0].value(), Accuracy: sum[1].value(), AUC: sum[2].value(),
		Recall: sum[3].value(), Specificity: sum[4].value(), Seconds: sum[5].value(),
	}
	if n := float64(len(trials)); n > 1 {
		var square float64
		for _, g := range gmeans {
			square += (g - s.GMean) * (g - s.GMean) / (n - 1)
		}
		s.SD = math.Sqrt(square)
	}
	return s
}

// figures returns G-mean, accuracy, AUC, recall, specificity and seconds of the cells of one trial.
func figures(cells []Cell, pooled bool) [6]float64 {
	var all Cell
	var m [6]mean
	for _, c := range cells {
		all.TP, all.FN, all.FP, all.TN = all.TP+c.TP, all.FN+c.FN, all.FP+c.FP, all.TN+c.TN
		m[2].add(c.AUC)
		m[5].add(c.Seconds)
	}
	counted := cells
	if pooled {
		counted = []Cell{all}
	}
	for _, c := range counted {
		recall, specificity := ratio(c.TP, c.FN), ratio(c.TN, c.FP)
		for k, v := range map[int]float64{0: math.Sqrt(recall * specificity), 1: ratio(c.TP+c.TN, c.FP+c.FN), 3: recall, 4: specificity} {
			m[k].add(v)
		}
	}
	var f [6]float64
	for k := range f {
		f[k] = m[k].value()
	}
	return f
}

// ratio returns the share of a; NaN of nothing.
func ratio(a, b int) float64 { return float64(a) / float64(a+b) }

// mean is the mean of the numbers added; NaN does not count.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v float64) {
	if v == v {
		m.sum += v
		m.n++
	}
}

func (m *mean) value() float64 { return m.sum / float64(m.n) }

// Table returns summaries as text for a terminal.
func Table(all []Summary) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "method\tG-mean\t±\trecall\tspecificity\taccuracy\tAUC\ts per fit\t")
	figure := func(v float64) string {
		if math.IsNaN(v) {
			return "–"
		}
		return fmt.Sprintf("%.3f", v)
	}
	for _, s := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.2f\t\n", s.Method, figure(s.GMean), figure(s.SD),
			figure(s.Recall), figure(s.Specificity), figure(s.Accuracy), figure(s.AUC), s.Seconds)
	}
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}

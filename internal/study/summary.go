package study

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// Summary is how one method does on the sets on which all have cells.
type Summary struct {
	Method              string
	GMean, SD           float64 // SD of GMean over trials; 0 of one trial
	Rank                float64 // mean over sets of the rank of the G-mean among the methods, 1 the best
	Accuracy, AUC       float64
	Recall, Specificity float64
	Seconds             float64 // of training, by cell
}

// Summarise returns the summaries of cells, the best mean G-mean first.
//
// If pooled, the decisions of all folds of a trial are counted together, which is
// for groups that have rows of one class only; otherwise figures are means over
// folds, then trials, then sets. AUC is always a mean over the folds that have
// one.
func Summarise(cells []Cell, pooled bool) []Summary {
	t := tableOf(cells)
	all := make([]Summary, len(t.methods))
	g := make(map[[2]string]float64) // by method and set
	for i, m := range t.methods {
		all[i] = t.summary(m, pooled, g)
	}
	for _, set := range t.sets {
		for i, m := range t.methods {
			rank := 1.0
			for _, other := range t.methods {
				switch a, b := g[[2]string{other, set}], g[[2]string{m, set}]; {
				case a > b:
					rank++
				case a == b && other != m:
					rank += 0.5
				}
			}
			all[i].Rank += rank / float64(len(t.sets))
		}
	}
	slices.SortStableFunc(all, func(a, b Summary) int { return cmp.Compare(b.GMean, a.GMean) })
	return all
}

// trialKey names one trial of a method on a set.
type trialKey struct {
	method, set string
	trial       int
}

// cellTable holds cells by trial.
type cellTable struct {
	cells   map[trialKey][]Cell
	methods []string
	sets    []string       // on which all methods have cells
	trials  map[string]int // by method: the last
}

func tableOf(cells []Cell) *cellTable {
	t := &cellTable{cells: make(map[trialKey][]Cell), trials: make(map[string]int)}
	for _, c := range cells {
		k := trialKey{c.Method, c.Dataset, c.Trial}
		t.cells[k] = append(t.cells[k], c)
		t.trials[c.Method] = max(t.trials[c.Method], c.Trial)
		if !slices.Contains(t.methods, c.Method) {
			t.methods = append(t.methods, c.Method)
		}
		if !slices.Contains(t.sets, c.Dataset) {
			t.sets = append(t.sets, c.Dataset)
		}
	}
	t.sets = slices.DeleteFunc(t.sets, func(set string) bool {
		return slices.ContainsFunc(t.methods, func(m string) bool { return t.cells[trialKey{m, set, 1}] == nil })
	})
	return t
}

// summary returns the summary of a method, without its rank, and adds its G-mean on each set
// to g.
func (t *cellTable) summary(method string, pooled bool, g map[[2]string]float64) Summary {
	trials := t.trials[method]
	byTrial := make([]mean, trials+1)
	var sum [6]mean
	for _, set := range t.sets {
		var of mean
		for trial := 1; trial <= trials; trial++ {
			cells := t.cells[trialKey{method, set, trial}]
			if len(cells) == 0 {
				continue
			}
			f := figures(cells, pooled)
			for k, v := range f {
				sum[k].add(v)
			}
			byTrial[trial].add(f[0])
			of.add(f[0])
		}
		g[[2]string{method, set}] = Exact(of.value())
	}
	s := Summary{
		Method: method, GMean: sum[0].value(), Accuracy: sum[1].value(), AUC: sum[2].value(),
		Recall: sum[3].value(), Specificity: sum[4].value(), Seconds: sum[5].value(),
	}
	var square mean
	for _, m := range byTrial[1:] {
		if d := m.value() - s.GMean; trials > 1 {
			square.add(d * d * float64(trials) / float64(trials-1))
		}
	}
	if square.n > 0 {
		s.SD = math.Sqrt(square.value())
	}
	return s
}

// Exact rounds a mean to nine digits, more than cells have: what is equal is a tie
// then, however many trials there were. (Ten times a tenth is not 1 in a float64.)
func Exact(v float64) float64 { return math.Round(v*1e9) / 1e9 }

// figures returns G-mean, accuracy, AUC, recall, specificity and seconds of the
// cells of one trial.
func figures(cells []Cell, pooled bool) [6]float64 {
	ratio := func(a, b int) float64 {
		if a+b == 0 {
			return math.NaN()
		}
		return float64(a) / float64(a+b)
	}
	var all Cell
	var m [6]mean
	for _, c := range cells {
		all.TP, all.FN, all.FP, all.TN = all.TP+c.TP, all.FN+c.FN, all.FP+c.FP, all.TN+c.TN
		for k, v := range []float64{c.GMean, c.Accuracy, c.AUC, c.Recall, ratio(c.TN, c.FP), c.Seconds} {
			m[k].add(v)
		}
	}
	var f [6]float64
	for k := range f {
		f[k] = m[k].value()
	}
	if pooled {
		f[3], f[4] = ratio(all.TP, all.FN), ratio(all.TN, all.FP)
		f[0] = math.Sqrt(f[3] * f[4])
		f[1] = ratio(all.TP+all.TN, all.FP+all.FN)
	}
	return f
}

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
	fmt.Fprintln(w, "method\tG-mean\t±\trank\trecall\tspecificity\taccuracy\tAUC\ts per fit\t")
	figure := func(v float64) string {
		if math.IsNaN(v) {
			return "–"
		}
		return fmt.Sprintf("%.3f", v)
	}
	for _, s := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%.1f\t%s\t%s\t%s\t%s\t%.2f\t\n", s.Method, figure(s.GMean), figure(s.SD), s.Rank,
			figure(s.Recall), figure(s.Specificity), figure(s.Accuracy), figure(s.AUC), s.Seconds)
	}
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}

package main

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/flank-tcm/flank/bench/columns"
	"github.com/flank-tcm/flank/bench/study/stat"
)

// Paper is what the paper's two tables print and what its data sets are.
type Paper struct {
	Methods []string // in the order of its columns; the first is ECS-DBN
	Sets    []string // sorted
	printed map[paperKey]printed
	// Share is the share of the minority class in each set, Rows its size.
	Share map[string]float64
	Rows  map[string]int
}

type paperKey struct {
	method, set string
	metric      Metric
}

// printed is a mean and a standard deviation as printed.
type printed struct{ mean, spread float64 }

// ReadPaper reads paper_results.csv and MANIFEST.csv in the folder of KEEL's sets.
func ReadPaper(dir string) (*Paper, error) {
	p := &Paper{printed: map[paperKey]printed{}, Share: map[string]float64{}, Rows: map[string]int{}}
	err := columns.Each(filepath.Join(dir, "paper_results.csv"), func(r *columns.Row) error {
		k := paperKey{r.Text("method"), r.Text("dataset"), Accuracy}
		switch metric := r.Text("metric"); metric {
		case "accuracy":
		case "gmean":
			k.metric = GMean
		default:
			return fmt.Errorf("metric %q is neither accuracy nor gmean", metric)
		}
		if !slices.Contains(p.Methods, k.method) {
			p.Methods = append(p.Methods, k.method)
		}
		if !slices.Contains(p.Sets, k.set) {
			p.Sets = append(p.Sets, k.set)
		}
		p.printed[k] = printed{r.Number("mean"), r.Number("std")}
		return nil
	}, "dataset", "metric", "method", "mean", "std")
	if err != nil {
		return nil, err
	}
	slices.Sort(p.Sets)
	for _, set := range p.Sets {
		for _, method := range p.Methods {
			for _, metric := range []Metric{Accuracy, GMean} {
				if _, ok := p.printed[paperKey{method, set, metric}]; !ok {
					return nil, fmt.Errorf("%s: no %s of %s on %s", filepath.Join(dir, "paper_results.csv"), metric, method, set)
				}
			}
		}
	}
	err = columns.Each(filepath.Join(dir, "MANIFEST.csv"), func(r *columns.Row) error {
		name, n := r.Text("name"), r.Whole("instances", 1)
		p.Rows[name], p.Share[name] = n, float64(r.Whole("positives", 0))/float64(n)
		return nil
	}, "name", "instances", "positives")
	return p, err
}

// Column returns the means that the paper prints for a method, by p.Sets.
func (p *Paper) Column(method string, metric Metric) []float64 {
	return p.column(method, metric, p.Sets)
}

func (p *Paper) column(method string, metric Metric, sets []string) []float64 {
	v := make([]float64, len(sets))
	for i, set := range sets {
		v[i] = p.printed[paperKey{method, set, metric}].mean
	}
	return v
}

// Impossible returns the sets whose pair of accuracy and G-mean printed for the
// method cannot be: see possible.
func (p *Paper) Impossible(method string) []string {
	var sets []string
	for _, set := range p.Sets {
		accuracy, gmean := p.printed[paperKey{method, set, Accuracy}].mean, p.printed[paperKey{method, set, GMean}].mean
		if share, known := p.Share[set]; known && !possible(accuracy, gmean, share) {
			sets = append(sets, set)
		}
	}
	return sets
}

// Printed returns the accuracy and the G-mean that the paper prints.
func (p *Paper) Printed(method, set string) string {
	return fmt.Sprintf("%.3f, %.3f", p.printed[paperKey{method, set, Accuracy}].mean, p.printed[paperKey{method, set, GMean}].mean)
}

// possible reports whether means over folds of accuracy and G-mean can go
// together, with 0.01 to spare, if a share of the rows is positive. Accuracy is
// share·TPR + (1−share)·TNR, so that
//
//	√(TPR·TNR) ≤ √((accuracy−share)/(1−share))  if accuracy > 2·share
//	√(TPR·TNR) ≥ min(TPR, TNR) ≥ 1−(1−accuracy)/share,
//
// the first a concave and the second a linear function of accuracy: what holds
// for every fold holds for means.
func possible(accuracy, gmean, share float64) bool {
	const spare = 0.01
	high := 1.
	if accuracy > 2*share {
		high = math.Sqrt((accuracy - share) / (1 - share))
	}
	return gmean <= high+spare && gmean >= 1-(1-accuracy)/share-spare
}

// ranks returns the mean rank of each of the paper's columns by its own means.
func (p *Paper) ranks(metric Metric) []float64 { return stat.AverageRanks(p.table(metric)) }

// holm returns the p-values of the first column against the others, by mean
// ranks, adjusted as Holm does.
func (p *Paper) holm(metric Metric) []float64 {
	return stat.Holm(stat.NewFriedman(p.table(metric)).AgainstControl(0))
}

// table returns a row for each set, a column for each method.
func (p *Paper) table(metric Metric) [][]float64 {
	t := make([][]float64, len(p.Sets))
	for i, set := range p.Sets {
		for _, method := range p.Methods {
			t[i] = append(t[i], p.printed[paperKey{method, set, metric}].mean)
		}
	}
	return t
}

// Repeated is how many sets print a G-mean of the method that another set prints
// to the same four digits.
func (p *Paper) Repeated(method string) int {
	times := map[float64]int{}
	for _, v := range p.Column(method, GMean) {
		times[v]++
	}
	n := 0
	for _, t := range times {
		if t > 1 {
			n += t
		}
	}
	return n
}

// SpreadIsMean is on how many sets the deviation printed for a method's G-mean is
// its mean.
func (p *Paper) SpreadIsMean(method string) int {
	return p.count(func(set string) bool {
		v := p.printed[paperKey{method, set, GMean}]
		return v.mean == v.spread
	})
}

func (p *Paper) count(is func(set string) bool) int {
	return len(slices.DeleteFunc(slices.Clone(p.Sets), func(set string) bool { return !is(set) }))
}

// Bests is on how many sets the method alone has the highest printed mean.
func (p *Paper) Bests(method string, metric Metric) int {
	return p.count(func(set string) bool {
		return !slices.ContainsFunc(p.Methods, func(m string) bool {
			return m != method && p.printed[paperKey{m, set, metric}].mean >= p.printed[paperKey{method, set, metric}].mean
		})
	})
}

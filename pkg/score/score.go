// Package score holds the figures that say how good decisions are.
//
// A [Confusion] counts decisions by true and decided class. [Assess] gives the
// [Summary] of a set of rows: accuracy, recall, G-mean, AUC and the others. [AUC],
// [OperatingPoints] and [Reliability] are of scores and of probabilities. A
// [Metric] is a figure that costs can be chosen to maximise.
//
// A class is an index from 0 to K−1. Figures that ask for one positive class take
// the last.
package score

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// Confusion counts decisions: Confusion[i][j] rows of class i were decided to be
// of class j. It is K×K. The positive class of the figures that ask for one is
// the last. Where a figure divides 0 by 0 it is 0.
type Confusion [][]int

// NewConfusion returns a confusion of k classes without rows.
func NewConfusion(k int) Confusion {
	m := make(Confusion, k)
	for i := range m {
		m[i] = make([]int, k)
	}
	return m
}

// Add counts a row of class truth that was decided to be of class decision.
func (m Confusion) Add(truth, decision int) { m[truth][decision]++ }

// Rows returns the number of rows.
func (m Confusion) Rows() int {
	n := 0
	for i := range m {
		n += m.RowsOf(i)
	}
	return n
}

// RowsOf returns the number of rows of class i.
func (m Confusion) RowsOf(i int) int {
	n := 0
	for _, c := range m[i] {
		n += c
	}
	return n
}

// decided returns the number of rows decided to be of class j.
func (m Confusion) decided(j int) int {
	n := 0
	for i := range m {
		n += m[i][j]
	}
	return n
}

// Right returns the number of rows decided right.
func (m Confusion) Right() int {
	n := 0
	for i := range m {
		n += m[i][i]
	}
	return n
}

func (m Confusion) positive() int { return len(m) - 1 }

// ratio returns a/b, or 0 if both are 0.
func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// Accuracy returns the share of rows decided right.
func (m Confusion) Accuracy() float64 { return ratio(m.Right(), m.Rows()) }

// RecallOf returns the share of the rows of class i decided right.
func (m Confusion) RecallOf(i int) float64 { return ratio(m[i][i], m.RowsOf(i)) }

// Recall returns the share of positive rows decided right, TP/(TP+FN).
func (m Confusion) Recall() float64 { return m.RecallOf(m.positive()) }

// Specificity returns the share of other rows not decided positive, TN/(TN+FP).
func (m Confusion) Specificity() float64 {
	p := m.positive()
	others := m.Rows() - m.RowsOf(p)
	return ratio(others-(m.decided(p)-m[p][p]), others)
}

// Precision returns the share of rows decided positive that are, TP/(TP+FP).
func (m Confusion) Precision() float64 {
	p := m.positive()
	return ratio(m[p][p], m.decided(p))
}

// F1 returns the harmonic mean of precision and recall, 2TP/(2TP+FP+FN).
func (m Confusion) F1() float64 {
	p := m.positive()
	return ratio(2*m[p][p], m.decided(p)+m.RowsOf(p))
}

// GMean returns the geometric mean of the recalls of the classes that have rows;
// for two classes √(recall·specificity). One recall of 0 makes it 0.
func (m Confusion) GMean() float64 {
	product, present := 1.0, 0
	for i := range m {
		if m.RowsOf(i) > 0 {
			product *= m.RecallOf(i)
			present++
		}
	}
	switch present {
	case 0:
		return 0
	case 1:
		return product
	case 2:
		return math.Sqrt(product)
	}
	return math.Pow(product, 1/float64(present))
}

// BalancedAccuracy returns the mean recall of the classes that have rows.
func (m Confusion) BalancedAccuracy() float64 {
	var sum float64
	present := 0
	for i := range m {
		if m.RowsOf(i) > 0 {
			sum += m.RecallOf(i)
			present++
		}
	}
	if present == 0 {
		return 0
	}
	return sum / float64(present)
}

// HardAUC returns (recall + specificity)/2, the area under the two straight
// lines through the one point of the ROC curve that decisions give. The paper
// calls this AUC; it is not [AUC].
func (m Confusion) HardAUC() float64 { return (m.Recall() + m.Specificity()) / 2 }

// MCC returns Matthews' correlation coefficient in [-1, 1], for more than two
// classes the R_K of J. Gorodkin, "Comparing Two K-category Assignments by a
// K-category Correlation Coefficient", Computational Biology and Chemistry 28,
// 2004.
func (m Confusion) MCC() float64 {
	n := float64(m.Rows())
	var cross, truths, decisions float64
	for i := range m {
		t, d := float64(m.RowsOf(i)), float64(m.decided(i))
		cross += t * d
		truths += t * t
		decisions += d * d
	}
	norm := math.Sqrt(n*n-truths) * math.Sqrt(n*n-decisions)
	if !(norm > 0) {
		return 0
	}
	return (float64(m.Right())*n - cross) / norm
}

// AUC returns the area under the ROC curve: the probability that a positive row
// drawn at random has a larger score than another row, equals counting half
// (the Mann-Whitney statistic by mid-ranks). It is NaN if either kind is
// missing. It panics if the slices differ in length.
func AUC(score []float64, positive []bool) float64 {
	if len(score) != len(positive) {
		panic(fmt.Sprintf("score: AUC of %d scores and %d labels", len(score), len(positive)))
	}
	return areaUnder(sortedByKind(score, positive))
}

// equal returns how many of the scores, from the first on, are v.
func equal(scores []float64, v float64) (n int) {
	for n < len(scores) && scores[n] == v {
		n++
	}
	return n
}

// areaUnder is AUC of the ascending scores of positive rows and of others.
func areaUnder(yes, no []float64) float64 {
	var ranks float64 // sum over positive rows of their rank, from 1
	n := 0
	for i, j := 0, 0; i < len(yes) || j < len(no); {
		below := i + j
		var v float64
		if i < len(yes) && (j == len(no) || cmp.Less(yes[i], no[j])) {
			v = yes[i]
		} else {
			v = no[j]
		}
		if v != v { // NaN, which is not equal to itself and comes first
			if i < len(yes) && yes[i] != yes[i] {
				i++
			} else {
				j++
			}
			continue
		}
		hits := equal(yes[i:], v)
		i, j = i+hits, j+equal(no[j:], v)
		ranks += float64(hits) * float64(below+1+i+j) / 2
		n += hits
	}
	others := len(yes) + len(no) - n
	return (ranks - float64(n)*float64(n+1)/2) / (float64(n) * float64(others))
}

// Brier returns the mean squared error of posteriors, N×K row-major, of rows of
// classes y: mean (P1 − y)², in [0, 1], for two classes, and mean Σ_j (P_j −
// [y=j])², in [0, 2], for more, as scikit-learn scales it. It is NaN without
// rows and panics if the lengths do not agree.
func Brier(posterior []float64, y []int, k int) float64 {
	if len(posterior) != len(y)*k {
		panic(fmt.Sprintf("score: Brier score of %d posteriors and %d labels of %d classes", len(posterior), len(y), k))
	}
	var sum float64
	for i, label := range y {
		sum = addSquares(sum, posterior[i*k:(i+1)*k], label)
	}
	return meanSquares(sum, len(y), k)
}

// addSquares adds the squared errors of the posterior of a row to a sum.
func addSquares(sum float64, posterior []float64, label int) float64 {
	for j, p := range posterior {
		if j == label {
			p = 1 - p
		}
		sum += p * p
	}
	return sum
}

func meanSquares(sum float64, rows, k int) float64 {
	if k == 2 {
		sum /= 2
	}
	return sum / float64(rows)
}

// Figure is a number that may be undefined: NaN in Go, null in JSON.
type Figure float64

// MarshalJSON implements json.Marshaler.
func (f Figure) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(f)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *Figure) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*f = Figure(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(f))
}

// Summary holds the figures of a set of rows. Figures of a class
// without rows are undefined, rather than 0: of a tool that never wore out, Recall, Precision, F1, GMean, MCC and AUC are null in JSON, and
// Specificity says all there is to say.
type Summary struct {
	Rows             int       `json:"rows"`
	Positive         int       `json:"positive"` // rows of the last class
	Accuracy         Figure    `json:"accuracy"`
	Recall           Figure    `json:"recall"`      // of the last class
	Specificity      Figure    `json:"specificity"` // of the others against the last
	Precision        Figure    `json:"precision"`
	F1               Figure    `json:"f1"`
	GMean            Figure    `json:"gmean"` // of the recalls of all classes
	BalancedAccuracy Figure    `json:"balanced_accuracy"`
	MCC              Figure    `json:"mcc"`
	AUC              Figure    `json:"auc"` // of the last class's posterior, by ranks
	HardAUC          Figure    `json:"auc_hard_labels"`
	Brier            Figure    `json:"brier"`
	Confusion        Confusion `json:"confusion"` // true class by row, decided class by column

	// Unknown are the rows without a decision, by true class, which count as wrong and are
	// not in Confusion; nil if there are none. See [Confusion.CountingUnknown].
	Unknown []int `json:"unknown,omitempty"`

	// Of each class against the rest, for more than two classes; else nil.
	Recalls []Figure `json:"recalls,omitempty"`
	AUCs    []Figure `json:"auc_one_vs_rest,omitempty"` // of the class's posterior
}

// Assess returns the figures of decisions on rows of classes y. Posterior, N×K
// row-major, may be nil; AUC and Brier are then undefined.
func Assess(y, decisions []int, posterior []float64, k int) Summary {
	m := NewConfusion(k)
	for i, label := range y {
		m.Add(label, decisions[i])
	}
	s := m.Summary()
	if posterior == nil || len(y) == 0 {
		return s
	}
	score, positive := make([]float64, len(y)), make([]bool, len(y))
	auc := func(class int) Figure {
		for i, label := range y {
			score[i], positive[i] = posterior[i*k+class], label == class
		}
		return Figure(AUC(score, positive))
	}
	s.AUC = auc(k - 1)
	for class := range s.AUCs {
		s.AUCs[class] = auc(class)
	}
	s.Brier = Figure(Brier(posterior, y, k))
	return s
}

// Assessor is Assess row by row, for very many rows: of each it holds one
// posterior, or, of more than two classes, all.
type Assessor struct {
	confusion Confusion
	sides     []sides // of the last class, or, of more than two, of each
	squares   float64
}

// sides are the posteriors of a class, of its rows and of others.
type sides struct {
	class   int
	yes, no []float64
}

// NewAssessor makes room for so many rows of each class.
func NewAssessor(counts []int) *Assessor {
	rows := 0
	for _, n := range counts {
		rows += n
	}
	k := len(counts)
	a := &Assessor{confusion: NewConfusion(k)}
	for class, n := range counts {
		if k > 2 || class == 1 {
			a.sides = append(a.sides, sides{class, make([]float64, 0, n), make([]float64, 0, rows-n)})
		}
	}
	return a
}

// Add counts a row of class truth that was decided to be of class decision, by its
// posterior, and keeps no reference to it.
func (a *Assessor) Add(truth, decision int, posterior []float64) {
	a.confusion.Add(truth, decision)
	for i := range a.sides {
		if s := &a.sides[i]; truth == s.class {
			s.yes = append(s.yes, posterior[s.class])
		} else {
			s.no = append(s.no, posterior[s.class])
		}
	}
	a.squares = addSquares(a.squares, posterior, truth)
}

// Summary returns the figures of all rows. It may be called once.
func (a *Assessor) Summary() Summary {
	s := a.confusion.Summary()
	for i, side := range a.sides {
		slices.Sort(side.yes)
		slices.Sort(side.no)
		if s.AUC = Figure(areaUnder(side.yes, side.no)); s.AUCs != nil { // in the end the last class's
			s.AUCs[i] = s.AUC
		}
	}
	s.Brier = Figure(meanSquares(a.squares, s.Rows, len(a.confusion)))
	return s
}

// Summary returns the figures that follow from decisions alone; AUC and Brier
// are undefined.
func (m Confusion) Summary() Summary {
	undefined := Figure(math.NaN())
	known := func(ok bool, f float64) Figure {
		if ok {
			return Figure(f)
		}
		return undefined
	}
	rows, positive := m.Rows(), m.RowsOf(m.positive())
	every := true
	for i := range m {
		every = every && m.RowsOf(i) > 0
	}
	var recalls, aucs []Figure
	if len(m) > 2 {
		for i := range m {
			recalls, aucs = append(recalls, known(m.RowsOf(i) > 0, m.RecallOf(i))), append(aucs, undefined)
		}
	}
	return Summary{
		Rows: rows, Positive: positive,
		Accuracy:         known(rows > 0, m.Accuracy()),
		Recall:           known(positive > 0, m.Recall()),
		Specificity:      known(positive < rows, m.Specificity()),
		Precision:        known(positive > 0, m.Precision()),
		F1:               known(positive > 0, m.F1()),
		GMean:            known(every, m.GMean()),
		BalancedAccuracy: known(every, m.BalancedAccuracy()),
		MCC:              known(every, m.MCC()),
		HardAUC:          known(positive > 0 && positive < rows, m.HardAUC()),
		AUC:              undefined,
		Brier:            undefined,
		Confusion:        m,
		Recalls:          recalls,
		AUCs:             aucs,
	}
}

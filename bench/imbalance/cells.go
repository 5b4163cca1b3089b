package imbalance

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/flank-tcm/flank/internal/config/atomicfile"
	"github.com/flank-tcm/flank/pkg/score"
)

// Key says which cell it is. Trials and folds count from 1.
type Key struct {
	Dataset, Method string
	Trial, Fold     int
}

// Cell is what came of one set, method, trial and fold. Figures are in [0, 1] but
// MCC; one that asks about a class that the test part lacks is NaN, and an empty
// field in a file.
type Cell struct {
	Key
	Accuracy, GMean, AUC  float64 // AUC by ranks of scores
	Precision, Recall, F1 float64 // of the rare class; 0 where they divide 0 by 0
	Seconds               float64 // of a processor, for training
	MCC, BalancedAccuracy float64
	TP, FN, FP, TN        int
	// Micros is µs of a processor to judge one test row; NaN in cells that were
	// made before it was measured.
	Micros float64
	// Groups counts the decisions on the rows of each group, in the order in which groups
	// begin in the test part; nil of rows without groups, and in cells that were made before
	// it was counted.
	Groups []score.Confusion
}

// columns of a file of cells.
var columns = []string{"dataset", "method", "trial", "fold", "accuracy", "gmean", "auc", "precision", "recall", "f1", "seconds",
	"mcc", "balanced_accuracy", "tp", "fn", "fp", "tn", "us_per_row", "by_group"}

// firstOptional is the index of the first column that a file of cells may lack.
const firstOptional = 11

// newCell scores decisions on rows of classes y, and of groups unless these are nil.
func newCell(k Key, y []int, groups []string, a methodAnswer) Cell {
	m := score.NewConfusion(2)
	positive := make([]bool, len(y))
	place := make(map[string]int) // of a group in byGroup
	var byGroup []score.Confusion
	for i, label := range y {
		m.Add(label, a.Decision[i])
		positive[i] = label == 1
		if groups == nil {
			continue
		}
		g, seen := place[groups[i]]
		if !seen {
			g = len(byGroup)
			place[groups[i]], byGroup = g, append(byGroup, score.NewConfusion(2))
		}
		byGroup[g].Add(label, a.Decision[i])
	}
	s := m.Summary()
	return Cell{
		Key: k, Accuracy: float64(s.Accuracy), GMean: float64(s.GMean), AUC: score.AUC(a.Score, positive),
		Precision: float64(s.Precision), Recall: float64(s.Recall), F1: float64(s.F1), Seconds: a.Seconds,
		MCC: float64(s.MCC), BalancedAccuracy: float64(s.BalancedAccuracy),
		TP: m[1][1], FN: m[1][0], FP: m[0][1], TN: m[0][0],
		Micros: 1e6 * a.Judging / float64(len(y)),
		Groups: byGroup,
	}
}

// line returns the cell as a line of a file.
func (c Cell) line() string {
	number := func(v float64, digits int) string {
		if math.IsNaN(v) {
			return ""
		}
		return strconv.FormatFloat(v, 'f', digits, 64)
	}
	fields := []string{c.Dataset, c.Method, strconv.Itoa(c.Trial), strconv.Itoa(c.Fold)}
	for _, v := range []float64{c.Accuracy, c.GMean, c.AUC, c.Precision, c.Recall, c.F1} {
		fields = append(fields, number(v, 6))
	}
	fields = append(fields, number(c.Seconds, 4), number(c.MCC, 6), number(c.BalancedAccuracy, 6))
	for _, n := range []int{c.TP, c.FN, c.FP, c.TN} {
		fields = append(fields, strconv.Itoa(n))
	}
	var byGroup []string // tp/fn/fp/tn
	for _, m := range c.Groups {
		byGroup = append(byGroup, fmt.Sprintf("%d/%d/%d/%d", m[1][1], m[1][0], m[0][1], m[0][0]))
	}
	fields = append(fields, number(c.Micros, 3), strings.Join(byGroup, " "))
	return strings.Join(fields, ",") + "\n"
}

// readCells reads the cells of a file. Columns are found by name; MCC and the
// columns behind it may be missing, as in the files of the peers, and are NaN and 0 then.
// The name is for errors.
func readCells(r io.Reader, name string) ([]Cell, error) {
	lines := csv.NewReader(r)
	lines.ReuseRecord = true
	header, err := lines.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: a file of cells begins with a line of column names", name, err)
	}
	at := make([]int, len(columns))
	for i, column := range columns {
		if at[i] = slices.Index(header, column); at[i] < 0 && i < firstOptional {
			return nil, fmt.Errorf("%s:1: no column %q: this is not a file of cells", name, column)
		}
	}
	var cells []Cell
	for {
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return cells, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		n, _ := lines.FieldPos(0)
		l := cellLine{fields: fields, at: at, name: name, n: n}
		c := l.cell()
		if l.err != nil {
			return nil, l.err
		}
		cells = append(cells, c)
	}
}

// cellLine is a line of a file of cells.
type cellLine struct {
	fields []string
	at     []int // by column: the index of its field, negative if the file lacks the column
	name   string
	n      int   // line number
	err    error // of the first field that cannot be used
}

// cell returns the line's cell, and sets err if a field cannot be used.
func (l *cellLine) cell() Cell {
	c := Cell{
		Key:      Key{strings.Clone(l.field(0)), strings.Clone(l.field(1)), l.whole(2, 1), l.whole(3, 1)},
		Accuracy: l.number(4), GMean: l.number(5), AUC: l.number(6), Precision: l.number(7), Recall: l.number(8), F1: l.number(9), Seconds: l.number(10),
		MCC: l.number(11), BalancedAccuracy: l.number(12), TP: l.whole(13, 0), FN: l.whole(14, 0), FP: l.whole(15, 0), TN: l.whole(16, 0),
		Micros: l.number(17),
	}
	sum := [4]int{}
	for _, text := range strings.Fields(l.field(18)) {
		var n [4]int
		if _, err := fmt.Sscanf(text, "%d/%d/%d/%d", &n[0], &n[1], &n[2], &n[3]); err != nil && l.err == nil || slices.Min(n[:]) < 0 {
			l.err = fmt.Errorf("%s:%d: %s %q must be tp/fn/fp/tn, whole numbers from 0 on", l.name, l.n, columns[18], text)
		}
		for i := range sum {
			sum[i] += n[i]
		}
		c.Groups = append(c.Groups, score.Confusion{{n[3], n[2]}, {n[1], n[0]}})
	}
	if total := [4]int{c.TP, c.FN, c.FP, c.TN}; c.Groups != nil && l.err == nil && sum != total {
		l.err = fmt.Errorf("%s:%d: %s sums to %v, but tp, fn, fp and tn are %v", l.name, l.n, columns[18], sum, total)
	}
	return c
}

// field returns the text in column i, empty if the file lacks the column.
func (l *cellLine) field(i int) string {
	if l.at[i] < 0 {
		return ""
	}
	return l.fields[l.at[i]]
}

// whole returns the whole number in column i, 0 if the file lacks the column.
func (l *cellLine) whole(i, least int) int {
	if l.at[i] < 0 {
		return 0
	}
	v, err := strconv.Atoi(l.field(i))
	if l.err == nil && (err != nil || v < least) {
		l.err = fmt.Errorf("%s:%d: %s %q must be a whole number from %d on", l.name, l.n, columns[i], l.field(i), least)
	}
	return v
}

// number returns the number in column i, NaN if it is empty.
func (l *cellLine) number(i int) float64 {
	if l.field(i) == "" {
		return math.NaN()
	}
	v, err := strconv.ParseFloat(l.field(i), 64)
	if l.err == nil && (err != nil || math.IsInf(v, 0)) {
		l.err = fmt.Errorf("%s:%d: %s %q is not a number; an undefined one is empty", l.name, l.n, columns[i], l.field(i))
	}
	return v
}

// LoadCells reads the file of cells at path.
func LoadCells(path string) ([]Cell, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readCells(f, path)
}

// sortCells puts cells in order of set, method, trial and fold.
func sortCells(cells []Cell) {
	slices.SortFunc(cells, func(a, b Cell) int {
		return cmp.Or(strings.Compare(a.Dataset, b.Dataset), strings.Compare(a.Method, b.Method), cmp.Compare(a.Trial, b.Trial), cmp.Compare(a.Fold, b.Fold))
	})
}

// writeCells replaces the file at path by the cells in order.
func writeCells(path string, cells []Cell) error {
	sortCells(cells)
	var b bytes.Buffer
	b.WriteString(strings.Join(columns, ",") + "\n")
	for _, c := range cells {
		b.WriteString(c.line())
	}
	return atomicfile.Write(path, b.Bytes())
}

// Exact rounds a mean to nine digits, more than cells have: what is equal is a tie
// then, however many trials there were. (Ten times a tenth is not 1 in a float64.)
func Exact(v float64) float64 { return math.Round(v*1e9) / 1e9 }

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

package card

import (
	"fmt"
	"strings"

	"github.com/flank-tcm/flank/pkg/score"
)

// scoresAgainstHealthy returns the scores of decisions between healthy and all other
// classes, taken as one.
func scoresAgainstHealthy(m score.Confusion) *score.Summary {
	two := score.NewConfusion(2)
	for truth, decided := range m {
		for decision, n := range decided {
			two[min(truth, 1)][min(decision, 1)] += n
		}
	}
	s := two.Summary()
	return &s
}

// recalls lists the recall of each class.
func recalls(names []string, s *score.Summary) string {
	words := make([]string, len(names))
	for k, name := range names {
		words[k] = fmt.Sprintf("%s of %s", Figure(s.Recalls[k]), name)
	}
	return "recall " + Listed(words)
}

// scoreCells write the figures of a table of scores, by the head of their column.
var scoreCells = map[string]func(*score.Summary) string{
	"windows": func(s *score.Summary) string { return fmt.Sprint(s.Rows) }, "faulty": func(s *score.Summary) string { return fmt.Sprint(s.Positive) },
	"unknown": func(s *score.Summary) string { return fmt.Sprint(sum(s.Unknown)) },
	"G-mean":  func(s *score.Summary) string { return Figure(s.GMean) }, "recall": func(s *score.Summary) string { return Figure(s.Recall) },
	"specificity": func(s *score.Summary) string { return Figure(s.Specificity) }, "precision": func(s *score.Summary) string { return Figure(s.Precision) },
	"F1": func(s *score.Summary) string { return Figure(s.F1) }, "accuracy": func(s *score.Summary) string { return Figure(s.Accuracy) },
	"MCC": func(s *score.Summary) string { return Figure(s.MCC) }, "AUC": func(s *score.Summary) string { return Figure(s.AUC) },
}

// scoreColumn is a column of a table of scores.
type scoreColumn struct {
	head  string
	width int // in a terminal
	cell  func(*score.Summary) string
}

func scoreColumns(heads ...string) (all []scoreColumn) {
	for _, head := range heads {
		all = append(all, scoreColumn{head, max(len(head)+1, 7), scoreCells[head]})
	}
	return all
}

// scoreTable lays scores out for a terminal.
type scoreTable struct {
	columns []scoreColumn
	first   int    // width of the first column
	words   string // behind the table
	b       strings.Builder
}

// newScoreTable returns a table of scores of these classes, with a column of windows without a decision if they are unknown.
func newScoreTable(names []string, unknown bool) *scoreTable {
	t := &scoreTable{first: 16, columns: scoreColumns("G-mean")}
	if several(names) {
		for k, name := range names {
			t.columns = append(t.columns, scoreColumn{name, max(len([]rune(name)), 7), func(s *score.Summary) string { return Figure(s.Recalls[k]) }})
		}
		t.columns = append(t.columns, scoreColumns("accuracy", "MCC", "windows")...)
		t.words = "\nUnder a class is the share of its windows that is found, its recall; G-mean is their geometric mean."
	} else {
		t.columns = append(t.columns, scoreColumns("recall", "specificity", "precision", "F1", "accuracy")...)
		if unknown {
			t.columns = append(t.columns, scoreColumns("MCC", "AUC")...)
		}
		t.columns = append(t.columns, scoreColumns("windows", "faulty")...)
	}
	if unknown {
		t.first, t.columns = len(withoutUnknown), append(t.columns, scoreColumns("unknown")...)
	}
	t.row("", func(c scoreColumn) string { return c.head })
	return t
}

func (t *scoreTable) row(name string, cell func(scoreColumn) string) {
	fmt.Fprintf(&t.b, "\n%-*s", t.first, name)
	for _, c := range t.columns {
		fmt.Fprintf(&t.b, " %*s", c.width, cell(c))
	}
}

func (t *scoreTable) line(name string, s *score.Summary) {
	t.row(name, func(c scoreColumn) string { return c.cell(s) })
}

// String ends the table with words about it.
func (t *scoreTable) String() string { return t.b.String() + t.words }

// scoreRows returns the head and what writes the rows of a table of scores on a page, after its
// first column.
func scoreRows(names []string) (head []string, row func(name string, s *score.Summary) []string) {
	columns := scoreColumns("windows", "faulty", "accuracy", "recall", "specificity", "precision", "F1", "G-mean")
	if several(names) {
		columns = scoreColumns("windows", "G-mean", "accuracy", "MCC")
		for k, name := range names {
			columns = append(columns, scoreColumn{head: "recall of " + name, cell: func(s *score.Summary) string { return Figure(s.Recalls[k]) }},
				scoreColumn{head: "AUC", cell: func(s *score.Summary) string { return Figure(s.AUCs[k]) }})
		}
	}
	for _, c := range columns {
		head = append(head, c.head)
	}
	return head, func(name string, s *score.Summary) []string {
		cells := []string{name}
		for _, c := range columns {
			cells = append(cells, c.cell(s))
		}
		return cells
	}
}

// healthyOrNot says how well scores part healthy from all other classes, which is what
// verdicts and alarms go by.
func healthyOrNot(s *score.Summary) string {
	return fmt.Sprintf("recall %s, specificity %s, precision %s, F1 %s, G-mean %s",
		Figure(s.Recall), Figure(s.Specificity), Figure(s.Precision), Figure(s.F1), Figure(s.GMean))
}

// confusionText lays a confusion out for a terminal, with the windows of each class that
// have no decision, if there are any.
func confusionText(names []string, m score.Confusion, unknown []int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s", "decided")
	for _, name := range names {
		fmt.Fprintf(&b, " %*s", max(len([]rune(name)), 7), name)
	}
	if unknown != nil {
		b.WriteString(" unknown")
	}
	for truth, name := range names {
		fmt.Fprintf(&b, "\n%-16s", "  "+name)
		for k := range names {
			fmt.Fprintf(&b, " %*d", max(len([]rune(names[k])), 7), m[truth][k])
		}
		if unknown != nil {
			fmt.Fprintf(&b, " %7d", unknown[truth])
		}
	}
	return b.String() + "\n"
}

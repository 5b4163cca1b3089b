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

// scoreTable lays scores of several classes out for a terminal.
type scoreTable struct {
	names   []string
	unknown bool // there is a column of windows without a decision
	b       strings.Builder
}

func newScoreTable(names []string, unknown bool) *scoreTable {
	t := &scoreTable{names: names, unknown: unknown}
	fmt.Fprintf(&t.b, "\n%-*s %7s", t.first(), "", "G-mean")
	for _, name := range names {
		fmt.Fprintf(&t.b, " %*s", t.width(name), name)
	}
	fmt.Fprintf(&t.b, " %9s %7s %8s", "accuracy", "MCC", "windows")
	if unknown {
		fmt.Fprintf(&t.b, " %8s", "unknown")
	}
	return t
}

// first returns the width of the first column.
func (t *scoreTable) first() int {
	if t.unknown {
		return len(withoutUnknown)
	}
	return 16
}

func (t *scoreTable) width(name string) int { return max(len([]rune(name)), 7) }

func (t *scoreTable) line(name string, s *score.Summary) {
	fmt.Fprintf(&t.b, "\n%-*s %7s", t.first(), name, Figure(s.GMean))
	for k, class := range t.names {
		fmt.Fprintf(&t.b, " %*s", t.width(class), Figure(s.Recalls[k]))
	}
	fmt.Fprintf(&t.b, " %9s %7s %8d", Figure(s.Accuracy), Figure(s.MCC), s.Rows)
	if t.unknown {
		fmt.Fprintf(&t.b, " %8d", sum(s.Unknown))
	}
}

// String ends the table with words about it.
func (t *scoreTable) String() string {
	return t.b.String() + "\nUnder a class is the share of its windows that is found, its recall; G-mean is their geometric mean."
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

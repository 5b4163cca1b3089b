package train

import (
	"fmt"
	"slices"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
)

// unjudged are the windows of a tool that are faulty by their label and were not judged.
type unjudged struct {
	Tool                              string
	Learning, NotCutting, SensorFault int
}

// Windows returns how many there are.
func (u unjudged) Windows() int { return u.Learning + u.NotCutting + u.SensorFault }

// Words says what became of them.
func (u unjudged) Words() string {
	var words []string
	for _, w := range []struct {
		n    int
		what string
	}{{u.Learning, "make its reference"}, {u.NotCutting, "not cutting"}, {u.SensorFault, "with sensor faults"}} {
		if w.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", w.n, w.what))
		}
	}
	return card.Listed(words)
}

// passOver counts a window that is not judged, if its label is faulty. It is not counted
// in the card.Tally of the join, which is of the windows that rows are made of.
func (l *labeller) passOver(group string, o *observed, outcome model.Outcome) {
	class := o.class
	if class == table.NoClass {
		t := l.peek(o)
		class, _ = l.rule.Class(t.VBMeanUM, t.VBMaxUM, t.State)
	}
	if class == classify.Healthy {
		return
	}
	u := l.unjudged[group]
	if u == nil {
		u = &unjudged{Tool: group}
		l.unjudged[group] = u
	}
	switch outcome {
	case model.Learning:
		u.Learning++
	case model.NotCutting:
		u.NotCutting++
	case model.SensorFault:
		u.SensorFault++
	}
}

// passed returns the tools with faulty windows that were not judged, by their names.
func (l *labeller) passed() []unjudged {
	var out []unjudged
	for _, u := range l.unjudged {
		out = append(out, *u)
	}
	slices.SortFunc(out, func(a, b unjudged) int { return card.CompareNames(a.Tool, b.Tool) })
	return out
}

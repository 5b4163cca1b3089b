package train

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
)

// lowest is the least value that each feature had, before the reference; +Inf while it
// has had none.
type lowest []float32

func newLowest(features int) lowest {
	return slices.Repeat(lowest{float32(math.Inf(1))}, features)
}

// add looks at the features of a window, or at the least of other windows. NaN is missing.
func (l lowest) add(features []float32) {
	for i, v := range features {
		if v < l[i] {
			l[i] = v
		}
	}
}

// positive returns which features were always positive, as model.ReferenceSpec.Positive
// has them. One without any value is not known to be.
func (l lowest) positive() string {
	var b strings.Builder
	for _, v := range l {
		if v > 0 && !math.IsInf(float64(v), 1) {
			b.WriteByte('1')
		} else {
			b.WriteByte('0')
		}
	}
	return b.String()
}

// cuttingWindows gives the features of windows of cutting to lowest.
type cuttingWindows struct {
	lowest
	judge  *model.Judge
	cycles map[string]*cycle.Memory // by machine and tool
}

func newCuttingWindows(m *model.Model) *cuttingWindows {
	plain := *m
	plain.Reference = model.ReferenceSpec{Mode: model.ReferenceOff}
	judge := plain.NewJudge()
	return &cuttingWindows{newLowest(len(judge.FeatureNames())), judge, make(map[string]*cycle.Memory)}
}

// observe looks at a window. A machine's windows come in the order of time.
func (c *cuttingWindows) observe(o *observed) {
	tool := o.machine + "/" + o.Tool
	k := c.cycles[tool]
	if k == nil {
		k = new(cycle.Memory)
		c.cycles[tool] = k
	}
	c.judge.Row(&o.Observation, new(model.Reference), k)
	c.add(c.judge.Cutting()) // empty unless the machine was cutting
}

// usedShare is the share of the label's limit from which on the tool of a reference is
// not new: below it may be what running in has worn off.
const usedShare = 1. / 3

// takenReference is what is known of the tool while its reference was taken.
type takenReference struct {
	tool            string  // its group
	startUM         float64 // wear at the first window of the reference that has one, NaN if none has
	windows, faulty int     // of the reference; those with a label that is not healthy
}

// watchReference looks at a window that ref has just learnt from. It is not counted in
// the card.Tally of the join, which is of the windows that rows are made of.
func (l *labeller) watchReference(group string, o *observed, ref *model.Reference) {
	if ref.Windows == 1 {
		l.taken = append(l.taken, takenReference{tool: group, startUM: math.NaN()})
		l.taking[group] = len(l.taken) - 1
	}
	r, truth := &l.taken[l.taking[group]], l.peek(o)
	r.windows++
	if r.startUM != r.startUM {
		r.startUM = l.wearOf(truth)
	}
	class := o.class
	if class == table.NoClass {
		class, _ = l.rule.Class(truth.VBMeanUM, truth.VBMaxUM, truth.State)
	}
	if class != classify.Healthy {
		r.faulty++
	}
}

// usedTools says in words which references were not taken on new and healthy tools,
// given the limit of the label in µm or 0. It is empty if all were.
func usedTools(taken []takenReference, limitUM float64) string {
	const most = 20 // that are named
	var words []string
	named := make(map[string]bool)
	for _, r := range taken {
		var what []string
		if limitUM > 0 && r.startUM > usedShare*limitUM {
			what = append(what, fmt.Sprintf("%.0f µm worn at its start, the limit is %.4g µm", r.startUM, limitUM))
		}
		if r.faulty > 0 {
			what = append(what, fmt.Sprintf("%d of its %d windows are labelled faulty", r.faulty, r.windows))
		}
		if len(what) == 0 || named[r.tool] {
			continue
		}
		named[r.tool] = true
		words = append(words, fmt.Sprintf("%s (%s)", r.tool, strings.Join(what, "; ")))
	}
	if len(words) == 0 {
		return ""
	}
	if n := len(words); n > most {
		words = append(words[:most], fmt.Sprintf("%d more", n-most))
	}
	return "these tools were used or faulty already when their reference was taken, so the model sees less of their wear: " + card.Listed(words) +
		": record tools from their first cut on, or leave these out of the training data"
}

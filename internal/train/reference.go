package train

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
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
	judge    *model.Judge
	memories map[string]*model.Memory // by machine and tool
	windows  map[string]int           // of each, of cutting and with sensors that work
}

func newCuttingWindows(m *model.Model) *cuttingWindows {
	plain := *m
	plain.Reference = model.ReferenceSpec{Mode: model.ReferenceOff}
	judge := plain.NewJudge()
	return &cuttingWindows{newLowest(len(judge.FeatureNames())), judge, make(map[string]*model.Memory), make(map[string]int)}
}

// observe looks at a window. A machine's windows come in the order of time.
func (c *cuttingWindows) observe(o *observed) {
	tool := o.machine + "/" + o.Tool
	k := c.memories[tool]
	if k == nil {
		k = new(model.Memory)
		c.memories[tool] = k
	}
	if row, _ := c.judge.Row(&o.Observation, new(model.Reference), k); row != nil {
		c.windows[tool]++
	}
	c.add(c.judge.Cutting()) // empty unless the machine was cutting
}

// mostShort is the share of the tools that may have no more windows of cutting than a reference takes; of others a reference takes
// referenceShare at most.
const mostShort, referenceShare = 1. / 5, 1. / 3

// fittingReference returns of how many windows references can be, given the windows of each tool; 0 if of none.
func fittingReference(windows map[string]int) int {
	lengths := slices.Sorted(maps.Values(windows))
	length := lengths[int(mostShort*float64(len(lengths)))]
	if length < 2 {
		return 0
	}
	return min(model.DefaultReference.Windows, int(math.Ceil(referenceShare*float64(length))))
}

// fitReference chooses of how many windows references are, where the configuration does not say and many tools are too short for what it is by
// default, and says so in words. It is an error if no reference fits, or if most tools are too short for the one that the configuration says.
func (j *Job) fitReference(m *model.Model, windows map[string]int) (note string, err error) {
	n, short := m.Reference.Windows, 0
	for _, w := range windows {
		if w <= n {
			short++
		}
	}
	said := j.Config.ReferenceSaid
	if m.Reference.Mode == model.ReferenceOff || float64(short) <= mostShort*float64(len(windows)) {
		return "", nil
	}
	fits, most := fittingReference(windows), 2*short > len(windows)
	if !most && (said || fits == 0) { // the other tools do
		return "", nil
	}
	lengths := slices.Sorted(maps.Values(windows))
	cause := fmt.Sprintf("a reference takes %d windows of cutting, and %d of %d tools have no more (%d to %d)", n, short, len(windows), lengths[0], lengths[short-1])
	switch {
	case fits == 0:
		return "", fmt.Errorf("%w: %s, so that no reference fits: record tools for longer, shorten `window: length`, or set `reference: {mode: \"off\"}`", errData, cause)
	case said:
		return "", fmt.Errorf("%w: %s: nothing would be learnt from them: record tools for longer, set `reference.windows` to %d, or leave it out", errData, cause, fits)
	}
	m.Reference.Windows, j.Config.Reference.Windows = fits, fits
	return fmt.Sprintf("%s: instead, references are of %d; to choose otherwise, set `reference.windows`", cause, fits), nil
}

// usedShare is the share of the label's limit from which on the tool of a reference is
// not new: below it may be what running in has worn off.
const usedShare = 1. / 3

// takenReference is what is known of the tool while its reference was taken.
type takenReference struct {
	tool            string  // its group
	startUM         float64 // wear at the first window of the reference that has one; NaN if none has
	mostUM          float64 // the greatest wear of its windows by a wear file, before whose first measurement a tool counts as new; NaN without one
	windows, faulty int     // of the reference; those with a label that is not healthy
	labelled        int     // windows of the reference with a label
}

// watchReference looks at a window that ref has just learnt from. It is not counted in
// the card.Tally of the join, which is of the windows that rows are made of.
func (l *labeller) watchReference(group string, o *observed, ref *model.Reference) {
	if ref.Windows == 1 {
		l.taken = append(l.taken, takenReference{tool: group, startUM: math.NaN(), mostUM: math.NaN()})
		l.taking[group] = len(l.taken) - 1
	}
	r, truth := &l.taken[l.taking[group]], l.peek(o)
	r.windows++
	um := l.wearOf(truth)
	if r.startUM != r.startUM {
		r.startUM = um
	}
	if l.join != nil && !(um <= r.mostUM) {
		r.mostUM = um
	}
	class, labelled := o.class, o.class != table.NoClass
	if !labelled {
		class, labelled = l.rule.Class(truth.VBMeanUM, truth.VBMaxUM, truth.State)
	}
	if !labelled {
		return
	}
	r.labelled++
	if class != classify.Healthy {
		r.faulty++
	}
}

// references is what is known of all references that were taken.
type references struct {
	taken   []takenReference
	limitUM float64         // of the label, or 0
	healthy map[string]bool // by tool that has windows with a label after its reference: whether one is healthy
	faulty  string          // what a window that is not healthy is called
}

// usedTools says in words which references were not taken on new and healthy tools. It is
// empty if all were.
func (rs references) usedTools() string {
	words := slices.DeleteFunc([]string{rs.faultyWords(), rs.wornWords(), rs.neverHealthyWords()}, func(s string) bool { return s == "" })
	if len(words) == 0 {
		return ""
	}
	s := strings.Join(words, "; ") + ". A reference stands for the new tool, so the model sees less of these tools' wear: record tools from their first cut on, or leave these out of the training data"
	if rs.oneState() {
		s += "; if each tool was recorded in one state only, set `reference.mode` to off"
	}
	return s
}

// faultyWords says how many windows of references have a label that is not healthy, and of
// which tools.
func (rs references) faultyWords() string {
	faulty, all := 0, 0
	var tools []string
	for _, r := range rs.taken {
		faulty, all = faulty+r.faulty, all+r.windows
		if r.faulty > 0 {
			tools = append(tools, fmt.Sprintf("%s (%d of %d)", r.tool, r.faulty, r.windows))
		}
	}
	if faulty == 0 {
		return ""
	}
	return fmt.Sprintf("%d of the %d windows that make references are labelled %s: %s", faulty, all, rs.faulty, firstTools(tools))
}

// wornWords says which tools had wear when their reference was taken.
func (rs references) wornWords() string {
	var tools []string
	named := make(map[string]bool)
	for _, r := range rs.taken {
		used := usedShare * rs.limitUM
		if rs.limitUM == 0 || named[r.tool] {
			continue
		}
		switch {
		case r.startUM > used:
			tools = append(tools, fmt.Sprintf("%s (%.0f µm at its first window)", r.tool, r.startUM))
		case r.mostUM > used:
			tools = append(tools, fmt.Sprintf("%s (%.0f µm by the end of its reference)", r.tool, r.mostUM))
		default:
			continue
		}
		named[r.tool] = true
	}
	if len(tools) == 0 {
		return ""
	}
	return fmt.Sprintf("these tools had more than a third of the wear limit, %.4g µm, when their reference was taken: %s", rs.limitUM, firstTools(tools))
}

// neverHealthyWords says which tools have no healthy window at all, where nothing is known
// of the windows of their reference.
func (rs references) neverHealthyWords() string {
	var tools []string
	for _, r := range rs.taken {
		if healthy, labelled := rs.healthy[r.tool]; r.labelled == 0 && labelled && !healthy && !slices.Contains(tools, r.tool) {
			tools = append(tools, r.tool)
		}
	}
	if len(tools) == 0 {
		return ""
	}
	return "the windows that make the references of these tools have no label, and none of their other windows is labelled healthy: " + firstTools(tools)
}

// oneState reports whether some tool has labels, none of them healthy.
func (rs references) oneState() bool {
	return slices.ContainsFunc(rs.taken, func(r takenReference) bool {
		healthy, labelled := rs.healthy[r.tool]
		return r.faulty == r.labelled && !healthy && (labelled || r.labelled > 0)
	})
}

// firstTools lists the first of many tools, with what is known of each.
func firstTools(words []string) string {
	const most = 20
	if n := len(words); n > most {
		words = append(words[:most:most], fmt.Sprintf("%d more", n-most))
	}
	return card.Listed(words)
}

package card

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
)

// ModeScore is what features give on tools held out if they are taken relative to the tool's
// reference in a mode, with an encoding.
type ModeScore struct {
	Mode     model.Mode        `json:"mode"`
	Encoding classify.Encoding `json:"encoding"`
	Kept     bool              `json:"kept,omitempty"` // by the model

	// GMean is of the classifier's decisions, in models that decide by wear too. Loss is the mean cross-entropy;
	// classes, and within them tools, count alike. Intervals are over tools.
	GMean         score.Figure    `json:"gmean"`
	GMeanInterval [2]score.Figure `json:"gmean_interval"`
	Loss          score.Figure    `json:"loss"`
	LossInterval  [2]score.Figure `json:"loss_interval"`

	// Better says that the loss is the least of all, and less than the kept mode's by GainInterval, which is clear of zero: of
	// classify.LeastViewGroups tools or more with windows of each class but healthy.
	Better       bool            `json:"better,omitempty"`
	GainInterval [2]score.Figure `json:"gain_interval"` // 95 %, over tools, of the kept mode's loss less this one's
}

// modeScores has a score of each mode that was looked at, of which the model has one.
type modeScores []ModeScore

// name returns the mode, and the encoding if it is not the one of the model.
func (m ModeScore) name(kept classify.Encoding) string {
	if m.Encoding == kept {
		return string(m.Mode)
	}
	return fmt.Sprintf("%s, encoding %s", m.Mode, m.Encoding)
}

// SetModes takes the scores of modes with encodings, of which the model has the one at kept.
func (r *Report) SetModes(modes []ModeScore, scores []classify.ViewScore, kept int) {
	r.Modes = modes
	order := append([]classify.ViewScore{scores[kept]}, scores...) // BestView keeps the first in doubt
	best := classify.BestView(order) - 1
	for i := range modes {
		m := &r.Modes[i]
		m.Kept, m.GainInterval = i == kept, undefinedInterval()
		tools := make([]score.Confusion, len(scores[i].Groups))
		for g, of := range scores[i].Groups {
			tools[g] = of.Confusion
		}
		k := len(tools[0])
		m.GMean, m.Loss = score.Figure(together(tools, k).GMean()), score.Figure(scores[i].Loss)
		m.GMeanInterval, m.LossInterval = undefinedInterval(), undefinedInterval()
		if v := IntervalOf(tools); v != nil {
			m.GMeanInterval = v.GMean
			m.LossInterval = lossInterval(scores[i].Groups, k)
			m.GainInterval = lossInterval(gains(scores[kept].Groups, scores[i].Groups), k)
		}
		m.Better = i == best && m.GainInterval[0] > 0 && !fewTools(scores[i].Groups)
	}
}

// fewTools reports whether too few tools have windows of some class but healthy for modes to be
// told apart.
func fewTools(tools []classify.ViewGroup) bool {
	for class := range tools[0].Loss[1:] {
		n := 0
		for _, t := range tools {
			if l := t.Loss[class+1]; l == l {
				n++
			}
		}
		if n < classify.LeastViewGroups {
			return true
		}
	}
	return false
}

// lossInterval returns the interval of a loss over tools. A draw without rows of some class
// is left out.
func lossInterval(tools []classify.ViewGroup, k int) [2]score.Figure {
	return score.Bootstrap(len(tools), 1, func(drawn []int, figures []float64) {
		figures[0] = 0
		for class := range k {
			sum, n := 0.0, 0.0
			for _, t := range drawn {
				if l := tools[t].Loss[class]; l == l {
					sum, n = sum+l, n+1
				}
			}
			figures[0] += sum / n / float64(k) // NaN of no tool
		}
	})[0]
}

// gains returns by how much the loss of each tool is less than the kept mode's.
func gains(kept, of []classify.ViewGroup) []classify.ViewGroup {
	out := make([]classify.ViewGroup, len(of))
	for t := range of {
		out[t].Loss = make([]float64, len(of[t].Loss))
		for class, l := range of[t].Loss {
			out[t].Loss[class] = kept[t].Loss[class] - l
		}
	}
	return out
}

// kept returns the mode that the model has, nil if modes were not scored.
func (all modeScores) kept() *ModeScore {
	if i := slices.IndexFunc(all, func(m ModeScore) bool { return m.Kept }); i >= 0 {
		return &all[i]
	}
	return nil
}

// Advice says on one line which mode to choose, where the gain of another one than the model's is clear of zero on tools
// held out. It is empty if none is.
func (all modeScores) Advice() string {
	at := slices.IndexFunc(all, func(m ModeScore) bool { return m.Better })
	if at < 0 {
		return ""
	}
	m, kept := &all[at], all.kept()
	return fmt.Sprintf("%s has a G-mean of %s and a loss of %s on tools held out, where %s, which is kept, has %s and %s (95 %% over tools: less by %s to %s): set %s in train.yaml and train again",
		m.name(kept.Encoding), Figure(m.GMean), Figure(m.Loss), kept.Mode, Figure(kept.GMean), Figure(kept.Loss), Figure(m.GainInterval[0]), Figure(m.GainInterval[1]), m.setting(kept.Encoding))
}

// setting returns the keys of train.yaml that stand for m.
func (m ModeScore) setting(kept classify.Encoding) string {
	s := fmt.Sprintf("`reference.mode` to %s", m.Mode)
	if m.Encoding != kept {
		s += fmt.Sprintf(" and `network.encoding` to %s", m.Encoding)
	}
	return s
}

// text is the table of the modes for a terminal, nothing if they were not scored.
func (all modeScores) text() string {
	kept := all.kept()
	if kept == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-30s %20s %22s", "reference mode, held out", "G-mean", "loss")
	for _, m := range all {
		mark := ""
		if m.Kept {
			mark = "  kept"
		}
		fmt.Fprintf(&b, "\n%-30s %20s %22s%s", m.name(kept.Encoding), Within(m.GMean, m.GMeanInterval), Within(m.Loss, m.LossInterval), mark)
	}
	return b.String()
}

// views writes how the mode of the reference was chosen, if it was left to the trainer, and
// what each mode gives on tools held out.
func (r *Report) views(p *page) {
	tried := len(r.Fit.Views) > 0
	if !tried && r.ViewLimitMiB > 0 {
		p.text("The mode was left to the trainer (`auto`), which kept to the first: it chooses another only on tables of at most %d MiB in memory, where four tools or more have windows of each class but healthy.", r.ViewLimitMiB)
	}
	if len(r.Modes) > 0 {
		if tried {
			p.text("The mode was left to the trainer (`auto`). The first mode is kept unless another's loss, on the tools that the model learns from, is less by more than the standard error over tools.")
		}
		r.Modes.table(p)
		return
	}
	if !tried {
		return
	}
	p.text("The mode was left to the trainer (`auto`). Loss is the cross-entropy on tools held out, classes and tools counting alike; " +
		"the first mode is kept unless another's loss is less by more than the standard error over tools.")
	t := p.table("mode", "loss")
	for _, v := range r.Fit.Views {
		name := v.Name
		if name == r.Fit.View {
			name += ", kept"
		}
		t.row(name, fmt.Sprintf("%.3f", v.Loss))
	}
}

func (all modeScores) table(p *page) {
	kept := all.kept()
	p.text("What the classifier gives in each mode on tools held out, all on the same windows. " +
		"Loss is the cross-entropy; classes, and within them tools, count alike, and less is better. Brackets are 95 %% intervals over tools.")
	t := p.table("mode", "G-mean", "loss")
	for _, m := range all {
		name := m.name(kept.Encoding)
		if m.Kept {
			name += ", kept"
		}
		t.row(name, Within(m.GMean, m.GMeanInterval), Within(m.Loss, m.LossInterval))
	}
	if advice := all.Advice(); advice != "" {
		p.text("%s.", capital(advice))
	} else {
		p.text("No mode is better than the one kept by more than chance.")
	}
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// heldChoices says on one line how costs of more than two classes did on tools that they
// were not chosen on; nothing if that was not compared.
func heldChoices(c *classify.CostReport) string {
	if len(c.Held) == 0 {
		return ""
	}
	words := make([]string, len(c.Held))
	for i, h := range c.Held {
		words[i] = fmt.Sprintf("%s %.3f", strings.ReplaceAll(h.Name, "_", " "), h.Fitness)
	}
	return fmt.Sprintf("On rows held out from the choice of costs: %s (%s). The greater one is kept", Listed(words), cmp.Or(c.Metric, score.GMean))
}

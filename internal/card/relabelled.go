package card

import (
	"fmt"
	"strings"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/score"
)

// Relabelled says how a model came from another one whose network it has, by labels that came later.
type Relabelled struct {
	Parent string            `json:"parent"`         // id
	From   string            `json:"from,omitempty"` // where the labels came from, in words
	Rows   RelabelledRows    `json:"rows"`
	Before Costing           `json:"before"` // on the same rows and labels as After
	After  Costing           `json:"after"`
	Tools  []RelabelledTools `json:"tools"`         // recalls by what the network knew of the tools, at the new costs
	Fit    []string          `json:"fit,omitempty"` // why a whole fit would be better, in words with figures; none: nothing speaks for it
}

// RelabelledRows counts windows by where their posteriors and labels come from.
type RelabelledRows struct {
	Same         int `json:"same"`    // the label of the fit, held out there
	Changed      int `json:"changed"` // another label than the one that networks were trained with
	ChangedTools int `json:"changed_tools"`
	Late         int `json:"late"` // no label at the fit; the model keeps its posterior
	LateTools    int `json:"late_tools"`
	Judged       int `json:"judged"` // of tools that came after the fit, judged now
	JudgedTools  int `json:"judged_tools"`
	Taught       int `json:"taught"`  // left out: the network was taught that they are healthy
	Skipped      int `json:"skipped"` // left out: other windows of training tools
}

// Costing are costs and what they give.
type Costing struct {
	Costs       classify.CostVector `json:"costs"`
	Threshold   score.Figure        `json:"threshold"` // on P(faulty); undefined of more than two classes
	Temperature float64             `json:"temperature"`
	Cut         *float64            `json:"guard_cut,omitempty"` // of the guard's vote, in log odds; null without a guard
	Score       score.Summary       `json:"score"`
}

// RelabelledTools are recalls on some of the tools.
type RelabelledTools struct {
	Of      string         `json:"of"`
	Rows    int            `json:"rows"`
	Recalls []score.Figure `json:"recalls"` // by class; null without rows
}

// words says what the costing is.
func (c *Costing) words() string {
	text := fmt.Sprintf("G-mean %s", Figure(c.Score.GMean))
	if c.Threshold == c.Threshold {
		text = fmt.Sprintf("threshold %.3f, %s, recall %s, specificity %s", float64(c.Threshold), text, Figure(c.Score.Recall), Figure(c.Score.Specificity))
	} else {
		text += fmt.Sprintf(", costs %.3f", []float64(c.Costs))
	}
	if text += fmt.Sprintf(", temperature %.3f", c.Temperature); c.Cut != nil {
		text += fmt.Sprintf(", the guard's cut %.3f", *c.Cut)
	}
	return text
}

// Words says in lines what became of the rows, the costs and the scores; empty of nil.
func (r *Relabelled) Words() string {
	if r == nil {
		return ""
	}
	var b strings.Builder
	n := r.Rows
	fmt.Fprintf(&b, "relabelled from %s: its network with costs for the labels of today", r.Parent)
	fmt.Fprintf(&b, "\nwindows: %d with the label of the fit, %d with another one (%d tools), %d late ones without a label at the fit (%d tools), %d of %d tools after the fit", n.Same, n.Changed, n.ChangedTools, n.Late, n.LateTools, n.Judged, n.JudgedTools)
	if n.Taught > 0 {
		fmt.Fprintf(&b, "; left out: %d that the network was taught as the healthy beginning of a tool without labels", n.Taught)
	}
	if n.Skipped > 0 {
		fmt.Fprintf(&b, "; left out: %d other windows of training tools, which no network has held out", n.Skipped)
	}
	fmt.Fprintf(&b, "\nbefore: %s\nafter:  %s (the same %d windows)", r.Before.words(), r.After.words(), r.After.Score.Rows)
	for _, t := range r.Tools {
		if t.Rows == 0 {
			continue
		}
		var recalls []string
		for _, f := range t.Recalls {
			recalls = append(recalls, Figure(f))
		}
		fmt.Fprintf(&b, "\n%s: %d windows, recall by class %s", t.Of, t.Rows, strings.Join(recalls, ", "))
	}
	if len(r.Fit) == 0 {
		b.WriteString("\nnothing speaks for a whole fit")
	}
	for _, why := range r.Fit {
		b.WriteString("\n" + wholeFit + why)
	}
	return b.String()
}

// writeTo writes what became of rows, costs and scores; nothing of nil.
func (r *Relabelled) writeTo(p *page) {
	if r == nil {
		return
	}
	p.section("relabelled", "What later labels changed")
	for line := range strings.SplitSeq(r.Words(), "\n") {
		if strings.HasPrefix(line, wholeFit) {
			p.note(capital(line))
		} else {
			p.text("%s.", capital(line))
		}
	}
}

// wholeFit begins the lines that say why to fit again.
const wholeFit = "a whole fit would be better: "

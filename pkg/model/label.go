package model

import (
	"errors"
	"fmt"
	"slices"
)

// LabelRule says what made a training window of which class. It has the fields
// of a rule for wear files and is kept so that a recording with labels can be
// scored by the rule that the model was trained with. Without Classes there are
// two, healthy and faulty.
type LabelRule struct {
	VBMaxUM  float64      `json:"vb_max_um,omitempty"`
	VBMeanUM float64      `json:"vb_mean_um,omitempty"`
	States   []string     `json:"states,omitempty"`
	Classes  []LabelClass `json:"classes,omitempty"` // in the order of the classifier's, healthy first

	HealthyStates []string `json:"healthy_states,omitempty"` // in which a tool is healthy

	// Findings has, for each class, the words of the labels for what it is, where that is another thing than wear or
	// breakage, such as "chatter": a new tool may not end it. Empty for other classes; nil if all are.
	Findings []string `json:"findings,omitempty"`
}

// Against returns what speaks against a tool by the verdict on a window, judged with a score that an alarm counts: its class, empty
// if that has the name of the verdict, and what is to be looked at, empty if it is wear or breakage, which a new tool ends.
func (m *Model) Against(v Verdict) (class, finding string) {
	k := v.Decided
	for i := 1; k == 0 && i < len(v.Posterior); i++ { // the alarm's threshold may be below the decision's
		if v.Posterior[i] == slices.Max(v.Posterior[1:]) {
			k = i
		}
	}
	if class = m.ClassNames()[k]; class == string(Faulty) || k == 0 {
		class = ""
	}
	switch {
	case m.FirstDay != nil && k > 0:
		finding = NoWornTool
	case len(m.Label.Findings) > 0:
		finding = m.Label.Findings[k]
	}
	return class, finding
}

// LabelClass is one of several classes, with what made a window one of it.
type LabelClass struct {
	Name     string   `json:"name"`
	VBMaxUM  float64  `json:"vb_max_um,omitempty"`
	VBMeanUM float64  `json:"vb_mean_um,omitempty"`
	States   []string `json:"states,omitempty"`
}

// check reports names that do not agree with the classifier's classes.
func (l LabelRule) check(classes int) error {
	if n := len(l.Findings); n > 0 && n != classes {
		return fmt.Errorf("classifier of %d classes, the label rule has findings of %d", classes, n)
	}
	if len(l.Classes) == 0 {
		return nil
	}
	if len(l.Classes) != classes {
		return fmt.Errorf("classifier of %d classes, the label rule names %d", classes, len(l.Classes))
	}
	seen := make(map[string]bool)
	for i, c := range l.Classes {
		switch {
		case c.Name == "":
			return errors.New("label: a class has no name")
		case i == 0 && c.Name != string(Healthy):
			return fmt.Errorf("label: the first class is %q: must be %q", c.Name, Healthy)
		case seen[c.Name]:
			return fmt.Errorf("label: two classes are named %q", c.Name)
		}
		seen[c.Name] = true
	}
	return nil
}

// ClassNames returns the names of the classes in the order of posteriors. The
// first is healthy; every other one is a fault of the tool.
func (m *Model) ClassNames() []string {
	var names []string
	for _, c := range m.Label.Classes {
		names = append(names, c.Name)
	}
	if len(names) > 0 {
		return names
	}
	names = []string{string(Healthy), string(Faulty)}
	if m.FirstDay != nil {
		names[1] = Different
	}
	for k := 2; k < m.Classes(); k++ { // of which no trainer has said anything
		names = append(names, fmt.Sprintf("faulty %d", k))
	}
	return names
}

// Package wear turns measured tool wear into labels of windows.
//
// A [Measurement] is what somebody saw under a microscope: the flank wear VB of
// a tool, in µm, as the mean and as the maximum over the cutting edge
// (ISO 3685), and the state of the tool as a word. Measurements are kept in a
// file, wear.csv, which [Read] reads and [Write] writes. A [Join] carries the
// few measurements of a tool to its many windows, and a [Rule] makes a class of
// wear: healthy, 0, or faulty, 1.
package wear

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Measurement is the measured wear of a tool.
type Measurement struct {
	Machine  string    // ISA-95 path; empty where there is but one machine
	Tool     string    // identity of the tool
	Hole     string    // the hole or cut that the tool had just ended; empty if not known
	Time     time.Time // when the tool was that worn; zero if not known
	VBMeanUM float64   // mean flank wear in µm; NaN if not measured
	VBMaxUM  float64   // maximum flank wear in µm; NaN if not measured
	State    string    // a word such as "worn", "chipped" or "broken"; empty if not known
}

// Known reports whether m says anything of the tool.
func (m Measurement) Known() bool {
	return m.VBMeanUM == m.VBMeanUM || m.VBMaxUM == m.VBMaxUM || m.State != ""
}

// States from which a tool does not come back.
const (
	Chipped = "chipped"
	Broken  = "broken"
)

// Classes that a Rule gives.
const (
	Healthy = 0
	Faulty  = 1
)

// Rule says when a tool is faulty: if any of its conditions holds.
type Rule struct {
	VBMaxUM  float64  `yaml:"vb_max_um"`  // maximum flank wear, in µm, from which a tool is faulty; 0 if it does not count
	VBMeanUM float64  `yaml:"vb_mean_um"` // the same of the mean flank wear
	States   []string `yaml:"states"`     // states, in whatever case, in which a tool is faulty
}

// DefaultRule returns the rule of Zhang et al. (arXiv 1804.10801): a tool is
// faulty from a maximum flank wear of 300 µm on, or if it is chipped or broken.
// For gun drills the limit is a convention. ISO 3685, which is about turning,
// has 300 µm mean or 600 µm maximum.
func DefaultRule() Rule {
	return Rule{VBMaxUM: 300, States: []string{Chipped, Broken}}
}

// Check reports why r cannot be used.
func (r Rule) Check() error {
	for _, f := range []struct {
		key string
		um  float64
	}{{"vb_max_um", r.VBMaxUM}, {"vb_mean_um", r.VBMeanUM}} {
		if !(f.um >= 0) || math.IsInf(f.um, 0) {
			return fmt.Errorf("wear: rule: %s %v: must be a positive number of µm, or 0 if it does not count", f.key, f.um)
		}
	}
	for i, s := range r.States {
		if strings.TrimSpace(s) != s || s == "" {
			return fmt.Errorf("wear: rule: states: entry %d is %q: write a word, such as %q", i+1, s, Broken)
		}
	}
	if r.VBMaxUM == 0 && r.VBMeanUM == 0 && len(r.States) == 0 {
		return errors.New("wear: rule: nothing makes a tool faulty: set vb_max_um, vb_mean_um or states")
	}
	return nil
}

// Class returns Faulty if any condition of the rule holds and Healthy if none
// does. Wear that is not known is NaN, a state that is not known is empty; ok
// is false if nothing that the rule looks at is known.
func (r Rule) Class(vbMean, vbMax float64, state string) (class int, ok bool) {
	for _, f := range [2]struct{ limit, um float64 }{{r.VBMaxUM, vbMax}, {r.VBMeanUM, vbMean}} {
		if f.limit == 0 || f.um != f.um {
			continue
		}
		if f.um >= f.limit {
			return Faulty, true
		}
		ok = true
	}
	if len(r.States) > 0 && state != "" {
		if slices.ContainsFunc(r.States, func(s string) bool { return strings.EqualFold(s, state) }) {
			return Faulty, true
		}
		ok = true
	}
	return Healthy, ok
}

// String returns the rule in words, as reports and model cards show it.
func (r Rule) String() string {
	var when []string
	if r.VBMaxUM != 0 {
		when = append(when, fmt.Sprintf("maximum flank wear ≥ %v µm", r.VBMaxUM))
	}
	if r.VBMeanUM != 0 {
		when = append(when, fmt.Sprintf("mean flank wear ≥ %v µm", r.VBMeanUM))
	}
	if len(r.States) > 0 {
		when = append(when, "the tool is "+strings.Join(r.States, " or "))
	}
	if len(when) == 0 {
		return "never faulty"
	}
	return "faulty if " + strings.Join(when, ", or ")
}

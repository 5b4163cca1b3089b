package wear

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/flank-tcm/flank/internal/config"
)

// Classes that a Rule of two gives. Class 0 is always healthy.
const (
	healthy = 0
	Faulty  = 1
)

// Names of the classes of a Rule that names none. The first of several has the
// former name, which is how a monitor knows it.
const (
	healthyName = "healthy"
	FaultyName  = "faulty"
)

// Rule says of which class a tool is. Without Classes there are two, and a tool
// is faulty if any of the conditions here holds. With Classes each has its own
// conditions, and those here must be empty.
type Rule struct {
	VBMaxUM  float64  `yaml:"vb_max_um"`  // maximum flank wear, in µm, from which a tool is faulty; 0 if it does not count
	VBMeanUM float64  `yaml:"vb_mean_um"` // the same of the mean flank wear
	States   []string `yaml:"states"`     // states, in any case of letters, in which a tool is faulty
	Classes  []Class  `yaml:"classes"`    // the best first: a tool is of the last one with a condition that holds, and of the first if none does

	HealthyStates []string `yaml:"healthy_states"` // states in which a tool is healthy, in addition to common words
}

// Class is one of several classes, with the conditions that a Rule has for
// faulty. The first has none. One without any is never given by wear: only a
// table can say that a row is of it.
type Class struct {
	Name     string   `yaml:"name"`
	VBMaxUM  float64  `yaml:"vb_max_um"`
	VBMeanUM float64  `yaml:"vb_mean_um"`
	States   []string `yaml:"states"`
}

// DefaultRule returns the rule of Zhang et al. (arXiv 1804.10801): a tool is
// faulty from a maximum flank wear of 300 µm on, or if it is chipped or broken.
// For gun drills the limit is a convention. ISO 3685, which is about turning,
// has 300 µm mean or 600 µm maximum.
func DefaultRule() Rule {
	return Rule{VBMaxUM: 300, States: []string{Chipped, broken}}
}

// faulty returns the second of the two classes of a rule without Classes.
func (r Rule) faulty() Class { return Class{FaultyName, r.VBMaxUM, r.VBMeanUM, r.States} }

// conditions returns the classes with what makes a tool one of them.
func (r Rule) conditions() []Class {
	if len(r.Classes) == 0 {
		return []Class{{Name: healthyName}, r.faulty()}
	}
	return r.Classes
}

// Names returns the names of the classes.
func (r Rule) Names() []string {
	var names []string
	for _, c := range r.conditions() {
		names = append(names, c.Name)
	}
	return names
}

// Check reports why r cannot be used, as a config.KeyError if it is one of its parts.
func (r Rule) Check() error {
	if err := cmp.Or(checkStates("healthy_states", r.HealthyStates), r.checkHealthy()); err != nil {
		return err
	}
	if len(r.Classes) == 0 {
		if err := r.faulty().check(""); err != nil {
			return err
		}
		if r.faulty().unconditional() {
			return errors.New("wear: rule: nothing makes a tool faulty: set vb_max_um, vb_mean_um or states")
		}
		return nil
	}
	limits := r.faulty().limits()
	for _, l := range append(limits[:], limit{key: "states", um: float64(len(r.States))}) {
		if l.um != 0 {
			return config.Under(l.key, errors.New("cannot be set together with classes: move it into the class that it makes"))
		}
	}
	if len(r.Classes) < 2 {
		return config.Under("classes", fmt.Errorf("there is only %q: name two or more, the best first", r.Classes[0].Name))
	}
	return r.checkClasses()
}

// checkHealthy reports states of healthy tools that a class has too.
func (r Rule) checkHealthy() error {
	for _, s := range r.HealthyStates {
		for _, c := range r.conditions() {
			if slices.ContainsFunc(c.States, func(o string) bool { return strings.EqualFold(o, s) }) {
				return config.Under("healthy_states", fmt.Errorf("%q is a state of class %s already: keep one of them", s, c.Name))
			}
		}
	}
	return nil
}

// checkClasses reports classes that cannot be told apart.
func (r Rule) checkClasses() error {
	var last Class // with the greatest limits so far
	states := make(map[string]string)
	for i, c := range r.Classes {
		at := fmt.Sprintf("classes[%d]", i)
		if err := r.checkName(i, at); err != nil {
			return err
		}
		if err := c.check(at + "."); err != nil {
			return err
		}
		if err := last.raise(c, at); err != nil {
			return err
		}
		for _, s := range c.States {
			if other, twice := states[strings.ToLower(s)]; twice {
				return config.Under(at+".states", fmt.Errorf("%q is a state of class %s already: keep one of them", s, other))
			}
			states[strings.ToLower(s)] = c.Name
		}
	}
	return nil
}

// checkName reports a class that cannot have its name, or the healthy class if it
// has conditions; at is its key.
func (r Rule) checkName(i int, at string) error {
	c := r.Classes[i]
	same := func(o Class) bool { return strings.EqualFold(o.Name, c.Name) }
	switch {
	case strings.TrimSpace(c.Name) != c.Name || c.Name == "":
		return config.Under(at+".name", fmt.Errorf("%q: write a word, such as %q", c.Name, "worn"))
	case i == 0 && c.Name != healthyName:
		return config.Under(at+".name", fmt.Errorf("%q: the first class is for good tools: name it %q, so that alarms know it", c.Name, healthyName))
	case i == 0 && !c.unconditional():
		return config.Under(at, errors.New("a tool is healthy if no other class holds: remove its conditions"))
	case slices.ContainsFunc(r.Classes[:i], same):
		return config.Under(at+".name", fmt.Errorf("%q is another class already: name each once", c.Name))
	}
	return nil
}

// raise takes over the limits of the next class. It reports a limit that is not above the one
// before; at is its key.
func (c *Class) raise(next Class, at string) error {
	for i, f := range next.limits() {
		before := c.limits()[i].um
		if f.um != 0 && f.um <= before {
			return config.Under(at+"."+f.key, fmt.Errorf("%v: must be above %v, the limit of a class before: order classes from the best to the worst", f.um, before))
		}
	}
	c.VBMaxUM, c.VBMeanUM = cmp.Or(next.VBMaxUM, c.VBMaxUM), cmp.Or(next.VBMeanUM, c.VBMeanUM)
	return nil
}

// limit is a limit of flank wear; 0: it does not count.
type limit struct {
	key, of string
	um      float64
}

// limits returns the limits of the maximum and of the mean.
func (c Class) limits() [2]limit {
	return [2]limit{{"vb_max_um", "maximum", c.VBMaxUM}, {"vb_mean_um", "mean", c.VBMeanUM}}
}

func (c Class) unconditional() bool { return c.VBMaxUM == 0 && c.VBMeanUM == 0 && len(c.States) == 0 }

// check reports a condition that cannot be met; at is put before its key.
func (c Class) check(at string) error {
	for _, f := range c.limits() {
		if !(f.um >= 0) || math.IsInf(f.um, 0) {
			return config.Under(at+f.key, fmt.Errorf("%v: must be a positive number of µm, or 0 if it does not count", f.um))
		}
	}
	return checkStates(at+"states", c.States)
}

// checkStates reports an entry of a list of states that is not a word.
func checkStates(key string, states []string) error {
	for i, s := range states {
		if strings.TrimSpace(s) != s || s == "" {
			return config.Under(key, fmt.Errorf("entry %d is %q: write a word, such as %q", i+1, s, broken))
		}
	}
	return nil
}

// Class returns the last class with a condition that holds, and Healthy if none
// does; a state is of the class that [Rule.StateClass] returns. Wear that is not known is NaN, a state that is
// not known is empty; ok is false if nothing that the rule looks at is known.
func (r Rule) Class(vbMean, vbMax float64, state string) (class int, ok bool) {
	if state != "" {
		class, ok = r.StateClass(state)
	}
	for i, c := range r.conditions() {
		holds, known := c.holds(vbMean, vbMax)
		if holds {
			class = max(class, i)
		}
		ok = ok || known
	}
	return class, ok
}

// holds reports whether a limit of c is reached, and whether the wear that it is of is known.
func (c Class) holds(vbMean, vbMax float64) (holds, known bool) {
	for i, um := range [2]float64{vbMax, vbMean} {
		if l := c.limits()[i].um; l != 0 && um == um {
			holds, known = holds || um >= l, true
		}
	}
	return holds, known
}

// Contradiction says in words how a wear and a state contradict each other: a healthy tool is worn beyond a limit, or a worn one is below half of the limit of its class. It
// is empty if they do not. A tool that is broken may have any wear.
func (r Rule) Contradiction(vbMean, vbMax float64, state string) string {
	if state == "" {
		return ""
	}
	by, ok := r.StateClass(state)
	if !ok {
		return ""
	}
	classes := r.conditions()
	um := vbMax
	if um != um {
		um = vbMean
	}
	taken := by
	for k, c := range classes {
		if holds, _ := c.holds(vbMean, vbMax); holds && by == healthy {
			taken = k
		}
	}
	if _, known := classes[by].holds(vbMean, vbMax); known && conditionOf(state) == isWorn {
		if holds, _ := classes[by].holds(2*vbMean, 2*vbMax); !holds {
			return fmt.Sprintf("the state is %q, but the wear is %.4g µm, not half of what the rule (%s) takes for %s", state, um, r, classes[by].Name)
		}
	}
	if taken == by {
		return ""
	}
	return fmt.Sprintf("the state is %q, but the wear is %.4g µm, which the rule (%s) takes for %s", state, um, r, classes[taken].Name)
}

// Limit returns the least flank wear, in µm, that makes a tool of another class
// than the first: maximum wear if that counts, else mean wear. It is 0 if
// no wear does.
func (r Rule) Limit() (um float64, mean bool) {
	for i := range (Class{}).limits() {
		for _, c := range r.conditions() { // limits ascend
			if um = c.limits()[i].um; um > 0 {
				return um, i == 1
			}
		}
	}
	return 0, false
}

// String returns the rule in words, as reports and model cards show it.
func (r Rule) String() string {
	classes := r.Classes
	if len(classes) == 0 {
		if r.faulty().unconditional() {
			return "never faulty"
		}
		classes = []Class{{}, r.faulty()}
	}
	var words []string
	for _, c := range classes {
		if !c.unconditional() {
			words = append(words, c.Name+" if "+c.words())
		}
	}
	if len(words) == 0 {
		last := len(classes) - 1
		return strings.Join(r.Names()[:last], ", ") + " or " + classes[last].Name + ", as the table says"
	}
	return strings.Join(words, "; ")
}

func (c Class) words() string {
	var when []string
	for _, l := range c.limits() {
		if l.um != 0 {
			when = append(when, fmt.Sprintf("%s flank wear ≥ %v µm", l.of, l.um))
		}
	}
	if len(c.States) > 0 {
		when = append(when, "the tool is "+strings.Join(c.States, " or "))
	}
	return strings.Join(when, ", or ")
}

// Named returns the class that a word names, by its name in any case of letters or by its
// number from 0.
func (r Rule) Named(word string) (class int, ok bool) {
	names := r.Names()
	if k := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, word) }); k >= 0 {
		return k, true
	}
	k, err := strconv.ParseUint(word, 10, 31)
	return int(k), err == nil && int(k) < len(names)
}

// CheckClasses reports the first of the measurements that names a class which the rule
// does not have, or that the rule takes for another class than it names, or of whose state the rule does not know the class.
func (r Rule) CheckClasses(ms []Measurement) error {
	names := r.Names()
	for _, m := range ms {
		if err := r.CheckState(m.State); err != nil {
			return fmt.Errorf("wear: %s: %s: %w", at(m), m.subject(), err)
		}
		if m.Class == "" {
			continue
		}
		class, ok := r.Named(m.Class)
		if !ok {
			return fmt.Errorf("wear: %s: class %q of %s is none of %s: correct it, or name the classes in train.yaml, the best first, as `label: {classes: [{name: healthy}, {name: worn}, {name: broken}]}`",
				at(m), m.Class, m.subject(), strings.Join(names, ", "))
		}
		if by, known := r.Class(m.VBMeanUM, m.VBMaxUM, m.State); known && by != class {
			return fmt.Errorf("wear: %s: class %q of %s contradicts its wear or state, which the rule (%s) takes for %q: correct the row, or leave one of them empty", at(m), m.Class, m.subject(), r, names[by])
		}
	}
	return nil
}

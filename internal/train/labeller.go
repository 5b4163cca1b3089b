package train

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
)

// labeller makes rows to learn from of windows.
type labeller struct {
	judge    *model.Judge
	rule     wear.Rule
	join     *wear.Join // nil: labels are in the recordings
	length   time.Duration
	takes    int // windows, that make a reference
	counts   *card.Tally
	machines bool                        // there are several
	used     map[string]bool             // by group: a window of it has a label
	bare     map[string]bool             // by group: a window of it has none
	names    map[string]string           // of groups, one copy of each
	refs     map[string]*model.Reference // by group
	memories map[string]*model.Memory    // by group
	settled  map[string]bool             // by group: its reference is among starts
	starts   [][]float32
	least    map[string]lowest  // by group: of its windows of cutting, before the reference; nil: not asked for
	um       float64            // wear of the window that was asked about last, NaN if not known
	mostUM   map[string]float64 // by group: the greatest wear that was measured
	states   map[string]int     // windows with a label by state, in lower case
	odd      int                // windows whose wear contradicts their state
	firstOdd string             // of them, in words
	causes   []map[string]bool  // by class: see wear.Rule.Cause
	cutting  map[string]int     // by group: windows of cutting with sensors that work, which make a reference or are judged
	clock    clock
	taken    []takenReference
	healthy  map[string]bool // by group that has windows with a label: one of them is healthy
	taking   map[string]int  // by group: the one of taken that learns, or learnt last
	unjudged map[string]*unjudged
	presume  bool                                                    // windows without a label are healthy
	tell     *telltales                                              // of windows with a label; nil: not asked for
	watch    func(group string, start time.Time, features []float32) // of each window that is judged, before the reference; may be nil
}

func newLabeller(m *model.Model, rule wear.Rule, join *wear.Join, counts *card.Tally, severalMachines bool) *labeller {
	causes := make([]map[string]bool, len(rule.Names()))
	for k := range causes {
		causes[k] = make(map[string]bool)
	}
	return &labeller{
		causes: causes, cutting: make(map[string]int),
		judge: m.NewJudge(), rule: rule, join: join, length: m.Window.Length, takes: m.Reference.Windows, counts: counts, machines: severalMachines,
		used: make(map[string]bool), bare: make(map[string]bool), names: make(map[string]string), refs: make(map[string]*model.Reference), memories: make(map[string]*model.Memory),
		mostUM: make(map[string]float64), clock: clock{last: make(map[string]time.Time)},
		states: make(map[string]int), settled: make(map[string]bool), taking: make(map[string]int), healthy: make(map[string]bool), unjudged: make(map[string]*unjudged),
	}
}

// labelled is a row to learn from; its slices are lent until the next.
type labelled struct {
	features []float32 // relative to the reference
	plain    []float32 // as before it
	center   []float32 // the reference, which lasts as long as the tool is in; nil in mode off
	group    string
	class    int // or table.NoClass
	vbMaxUM  float64
}

// judges counts a window, and reports whether it is one to judge.
func (l *labeller) judges(name string, outcome model.Outcome) bool {
	switch outcome {
	case model.NotCutting:
		l.counts.NotCutting++
		return false
	case model.SensorFault:
		l.counts.SensorFault++
		return false
	}
	if l.cutting[name]++; outcome == model.Learning {
		l.counts.Learning++
	}
	return outcome != model.Learning
}

// row returns the row of a window, or false if it is not one to judge. Of a window
// whose wear is not known the class is table.NoClass.
func (l *labeller) row(o *observed) (labelled, bool, error) {
	name, known := l.names[l.group(o)]
	if !known {
		name = l.group(o)
		l.names[name], l.used[name] = name, false
		l.refs[name], l.memories[name] = new(model.Reference), new(model.Memory)
	}
	ref := l.refs[name]
	truth, err := l.known(o)
	if err != nil {
		return labelled{}, false, err
	}
	row, v := l.judge.Row(&o.Observation, ref, l.memories[name])
	if x := l.judge.Cutting(); len(x) > 0 && l.least != nil {
		if l.least[name] == nil {
			l.least[name] = newLowest(len(x))
		}
		l.least[name].add(x)
	}
	l.clock.see(name, o.Start)
	if l.um = l.wearOf(truth); l.um > l.mostUM[name] {
		l.mostUM[name] = l.um
	}
	if ref.Center() != nil && !l.settled[name] {
		l.settled[name] = true
		l.starts = append(l.starts, slices.Clone(ref.Center()))
	}
	if row == nil {
		l.passOver(name, o, v.Outcome)
	} else if l.watch != nil {
		l.watch(name, o.Start, l.judge.Cutting())
	}
	if !l.judges(name, v.Outcome) {
		if v.Outcome == model.Learning {
			l.watchReference(name, o, ref)
		}
		return labelled{}, false, nil
	}
	class, um, ok, err := l.label(o)
	if err != nil {
		return labelled{}, false, fmt.Errorf("train: %w", err)
	}
	r := labelled{row, l.judge.Cutting(), ref.Center(), name, class, um}
	if !ok {
		l.counts.Unlabelled++
		l.bare[name] = true
		r.class = table.NoClass
		return r, true, nil
	}
	l.used[name] = true
	if truth.State != "" {
		l.states[strings.ToLower(truth.State)]++
	}
	l.healthy[name] = l.healthy[name] || class == classify.Healthy
	l.causes[class][l.rule.Cause(class, truth.State)] = true
	l.tell.add(class, l.um, r.plain)
	return r, true, nil
}

// label returns the label of a window that is judged.
func (l *labeller) label(o *observed) (class int, um float64, ok bool, err error) {
	if class, um, ok, err = label(o, l.length, l.rule, l.join); err == nil && !ok && l.presume {
		l.counts.Presumed++
		return classify.Healthy, um, true, nil
	}
	return class, um, ok, err
}

// findings returns what a model has of the words of its labels, see model.LabelRule.
func (l *labeller) findings() []string {
	out := make([]string, len(l.causes))
	for k, words := range l.causes[1:] {
		out[k+1] = wear.Finding(slices.Sorted(maps.Keys(words)))
	}
	if strings.Join(out, "") == "" {
		return nil
	}
	return out
}

// known returns what is known of the wear of a window, and lets o have the class that a
// wear file names.
func (l *labeller) known(o *observed) (source.Truth, error) {
	if l.join == nil {
		if err := l.rule.CheckState(o.truth.State); err != nil {
			return o.truth, fmt.Errorf("train: %s: %w: %w", o.where(), errUnknownState, err)
		}
		l.doubt(o.truth, o.where())
		return o.truth, nil
	}
	m, _ := l.join.Peek(o.window(l.length))
	t := source.Truth{VBMeanUM: m.VBMeanUM, VBMaxUM: m.VBMaxUM, State: m.State}
	l.doubt(t, cmp.Or(m.Where, o.where()))
	class, ok := l.rule.Named(m.Class)
	switch {
	case m.Class == "" || !ok:
	case o.class == table.NoClass:
		o.class = class
	case o.class != class:
		names := l.rule.Names()
		return t, fmt.Errorf("train: tool %s: a row of class %d (%s) is of class %q by the wear file (%s): %w: correct one of them", o.Tool, o.class, names[o.class], m.Class, cmp.Or(m.Where, "between two rows"), errLabels)
	}
	return t, nil
}

// doubt counts a window whose wear contradicts its state.
func (l *labeller) doubt(t source.Truth, where string) {
	text := l.rule.Contradiction(t.VBMeanUM, t.VBMaxUM, t.State)
	if text == "" {
		return
	}
	if l.odd++; l.odd == 1 {
		l.firstOdd = where + ": " + text
	}
}

// contradictions says in words which windows have a wear that contradicts their state.
func (l *labeller) contradictions() string {
	if l.odd == 0 {
		return ""
	}
	return fmt.Sprintf("windows whose wear contradicts their state: %d, the first by %s: the worse of both counts; correct one of them, or leave it empty", l.odd, l.firstOdd)
}

// peek returns what is known of the wear of a window, which is not counted in the card.Tally
// of the join.
func (l *labeller) peek(o *observed) source.Truth {
	if l.join == nil {
		return o.truth
	}
	m, _ := l.join.Peek(o.window(l.length))
	return source.Truth{VBMeanUM: m.VBMeanUM, VBMaxUM: m.VBMaxUM, State: m.State}
}

// wearOf returns the wear in µm that the limit of the label is of, NaN if it is not known.
func (l *labeller) wearOf(t source.Truth) float64 {
	if _, mean := l.rule.Limit(); mean {
		return t.VBMeanUM
	}
	return t.VBMaxUM
}

// group names the tool of a window. Tools of two machines may have one name, so
// with more than one machine the machine is part of it.
func (l *labeller) group(o *observed) string {
	if l.machines {
		return o.machine + "/" + o.Tool
	}
	return o.Tool
}

// describe tells the table of its rows what was seen of all windows.
func (l *labeller) describe(t *rowTable) {
	t.starts, t.ordered, t.mostUM, t.unjudged = l.starts, !l.clock.back, l.mostUM, l.passed()
	t.limitUM, _ = l.rule.Limit()
	t.states, t.findings, t.tell = l.states, l.findings(), l.tell
}

// finish notes what became of all windows; it is an error if none of them is
// left.
func (l *labeller) finish(rows int) error {
	c := l.counts
	c.Used, c.States, c.Contradictions = rows, l.rule.StatesByClass(l.states), l.contradictions()
	if l.join != nil {
		c.Join, c.Mismatches, c.LabelsFrom = l.join.Tally().String(), l.join.Mismatches(), l.join.Sources()
	}
	if c.Used == 0 {
		return fmt.Errorf("train: %w: %s%s", errData, c.Words(), c.Remedy())
	}
	for g, any := range l.used {
		switch {
		case any:
		case l.bare[g]:
			c.Bare = append(c.Bare, g)
		default:
			c.Unused = append(c.Unused, g)
			if n := l.cutting[g]; n > 0 {
				c.Short = append(c.Short, fmt.Sprintf("%s (%d)", g, n))
			}
		}
	}
	slices.SortFunc(c.Unused, card.CompareNames)
	slices.SortFunc(c.Bare, card.CompareNames)
	slices.SortFunc(c.Short, card.CompareNames)
	if len(c.Short) > 0 {
		c.ReferenceWindows, c.Fitting = l.takes, fittingReference(l.cutting)
	}
	rs := references{taken: l.taken, healthy: l.healthy, faulty: wear.FaultyName}
	rs.limitUM, _ = l.rule.Limit()
	if several(l.rule.Names()) {
		rs.faulty = "other than healthy"
	}
	c.UsedTools = rs.usedTools()
	return nil
}

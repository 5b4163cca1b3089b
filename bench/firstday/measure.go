package main

import (
	"cmp"
	"math"
	"slices"

	"github.com/flank-tcm/flank/bench/bootstrap"
	"github.com/flank-tcm/flank/pkg/score"
)

// What counts: a worn tool is warned of if its alarm comes before its wear is above late limits, an alarm is false if it comes
// below soon limits. Between them an alarm is neither early nor late.
const (
	late   = 1.2
	soon   = 0.8
	sooner = 0.9 // a narrower band, for comparison
)

// outcome is what became of one judged life.
type outcome struct {
	tool                   string
	taught                 []*life // by which tools' healthy lives
	worn                   bool
	warned, false_, false9 bool
}

// judge returns the outcomes of all splits with one setting.
func judge(s *set, of []taughtSplit, t setting) []outcome {
	var out []outcome
	for _, p := range of {
		limit := t.limit(p.score, p.taught)
		for _, l := range p.judged {
			o := outcome{tool: l.tool, taught: p.taught, worn: l.worst() >= s.Limit}
			if at := score.FirstAbove(p.score(l), t.k, t.n, limit); at >= 0 {
				w := l.wear[at] / s.Limit
				o.warned, o.false_, o.false9 = w <= late, w < soon, w < sooner
			}
			out = append(out, o)
		}
	}
	return out
}

// taughtSplit is a split whose method has learnt.
type taughtSplit struct {
	score  scorer
	taught []*life
	judged []*life
}

// learn lets a method learn from the splits.
func learn(s *set, m *method, splits []split) []taughtSplit {
	var out []taughtSplit
	for _, p := range splits {
		t := taughtSplit{}
		for _, tool := range p.Taught {
			t.taught = append(t.taught, s.lifeOf(tool))
		}
		for _, tool := range p.Judged {
			t.judged = append(t.judged, s.lifeOf(tool))
		}
		t.score = remember(m.learn(s, p, t.taught))
		out = append(out, t)
	}
	return out
}

// remember computes the scores of each life once.
func remember(of scorer) scorer {
	known := make(map[*life][]float64)
	return func(l *life) []float64 {
		if known[l] == nil {
			known[l] = of(l)
		}
		return known[l]
	}
}

// figures are shares of tools, each of which counts as often as another.
type figures struct {
	Warned    float64 // of worn tools
	False     float64 // lives with a false alarm, of all
	FalseNine float64 // the same below 0.9 limits
	Worn      int     // tools
	Tools     int

	WarnedIn, FalseIn bootstrap.Interval
}

// sum returns the figures of outcomes, with intervals over tools if bounds is true.
func sum(os []outcome, bounds bool) figures {
	type share struct{ yes, of float64 }
	by := make(map[string]*[3]share)
	var tools []string
	count := func(s *share, yes bool) {
		s.of++
		if yes {
			s.yes++
		}
	}
	for _, o := range os {
		t := by[o.tool]
		if t == nil {
			t = new([3]share)
			by[o.tool], tools = t, append(tools, o.tool)
		}
		if o.worn {
			count(&t[0], o.warned)
		}
		count(&t[1], o.false_)
		count(&t[2], o.false9)
	}
	mean := func(times map[string]float64) []float64 {
		out := make([]float64, 3)
		for k := range out {
			var yes, of float64
			for _, tool := range tools { // in order: sums of the same shares must not differ in their last bit
				t := by[tool]
				if n := times[tool]; t[k].of > 0 {
					yes, of = yes+n*t[k].yes/t[k].of, of+n
				}
			}
			out[k] = yes / of
		}
		return out
	}
	once := make(map[string]float64)
	f := figures{Tools: len(tools), WarnedIn: bootstrap.None, FalseIn: bootstrap.None}
	for tool, t := range by {
		once[tool] = 1
		if t[0].of > 0 {
			f.Worn++
		}
	}
	m := mean(once)
	f.Warned, f.False, f.FalseNine = m[0], m[1], m[2]
	if bounds {
		in := bootstrap.Tools(tools, 2, func(times map[string]float64) []float64 {
			if v := mean(times); v[0] == v[0] {
				return v[:2]
			}
			return nil
		})
		f.WarnedIn, f.FalseIn = in[0], in[1]
	}
	return f
}

// mostFalse is how many lives may have a false alarm.
const mostFalse = 0.1

// choice is one of a method's settings, with what became of the lives.
type choice struct {
	setting
	of []outcome
}

// choices returns what becomes of the lives with each setting.
func choices(s *set, of []taughtSplit, settings []setting) []choice {
	var out []choice
	for _, t := range settings {
		out = append(out, choice{t, judge(s, of, t)})
	}
	return out
}

// best returns the choice that warns of most worn tools with false alarms in at most a tenth of lives, of equals the one with fewest of
// these, then the first; if none has so few, the one with fewest. Outcomes count that keep says yes to; nil stands for all.
func best(of []choice, keep func(outcome) bool) choice {
	f := make([]figures, len(of))
	order := make([]int, len(of))
	for i, c := range of {
		order[i] = i
		kept := c.of
		if keep != nil {
			kept = slices.DeleteFunc(slices.Clone(c.of), func(o outcome) bool { return !keep(o) })
		}
		f[i] = sum(kept, false)
	}
	over := func(f figures) float64 { return math.Max(0, f.False-mostFalse) }
	return of[slices.MinFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(over(f[a]), over(f[b])), cmp.Compare(f[b].Warned, f[a].Warned), cmp.Compare(f[a].False, f[b].False), a-b)
	})]
}

// nested judges each tool by the choice that is best on the other tools, in splits that the tool does not teach either.
func nested(s *set, of []choice) []outcome {
	var out []outcome
	for _, l := range s.lives {
		c := best(of, func(o outcome) bool { return o.tool != l.tool && !slices.Contains(o.taught, l) })
		for _, o := range c.of {
			if o.tool == l.tool {
				out = append(out, o)
			}
		}
	}
	return out
}

package main

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/combin"

	"github.com/flank-tcm/flank/bench/columns"
)

// split says which tools are learnt from and which are judged. No label of a tool that
// is judged is looked at while learning, and nothing else of it but in protocols that
// end in atHand.
type split struct {
	Protocol string `json:"protocol"`

	// Unit names the splits whose windows are counted together before a G-mean is
	// taken: the one of a tool that is left out alone would often lack a class.
	Unit string `json:"unit"`

	Name       string   `json:"name"` // unique within set and protocol
	Train      []string `json:"train"`
	Test       []string `json:"test"`
	Unlabelled []string `json:"unlabelled,omitempty"` // recorded to the end of their lives, of unknown wear

	// Healthy is how many windows after its reference an unlabelled tool is taken
	// for healthy.
	Healthy int `json:"healthy,omitempty"`
}

// The protocols.
const (
	sixOfNine   = "6/3"
	leaveOneOut = "leave-one-out"
	fiveFold    = "5-fold"
	few         = "few-" // and how many labelled worn tools
	atHand      = "-at-hand"
)

// An unlabelled tool's windows that are taken for healthy: fewer where tools live for
// a minute only.
const (
	healthyTurning = 30
	healthyDrill   = 15
)

// allSplits returns the splits that a set is judged by.
func (s *set) allSplits() []split {
	ls := s.lives()
	switch s.Name {
	case "turning":
		out := slices.Concat(sixThree(ls), outOneByOne(ls))
		for _, n := range []int{1, 2, 3} {
			out = append(out, fewLabelled(ls, n)...)
		}
		return out
	case "drill":
		return drillSplits(ls)
	}
	return outOneByOne(ls)
}

// alone is the tool of which three windows are worn: a recall of three windows says
// nothing.
const alone = "13"

// sixThree returns all splits of nine tools into six to learn from and three to be
// judged, but for those whose judged part has faulty windows of no tool but alone:
// 74 of 84.
func sixThree(ls []life) []split {
	var out []split
	for _, test := range combin.Combinations(len(ls), 3) {
		if !slices.ContainsFunc(test, func(k int) bool { return ls[k].tool != alone && ls[k].faulty > 0 }) {
			continue
		}
		s := split{Protocol: sixOfNine}
		s.Test, s.Train = columns.Deal(toolsOf(ls), func(k int) bool { return slices.Contains(test, k) })
		s.Name = strings.Join(s.Test, " ")
		s.Unit = s.Name
		out = append(out, s)
	}
	return out
}

// outOneByOne leaves each tool out in turn.
func outOneByOne(ls []life) []split {
	var out []split
	for k, held := range ls {
		s := split{Protocol: leaveOneOut, Unit: "all", Name: held.tool}
		s.Test, s.Train = columns.Deal(toolsOf(ls), func(i int) bool { return i == k })
		out = append(out, s)
	}
	return out
}

func toolsOf(ls []life) (tools []string) {
	for _, l := range ls {
		tools = append(tools, l.tool)
	}
	return tools
}

// fewParts is how many parts the tools without a label are dealt to; each is judged
// in turn, by what the others and the labelled ones teach.
const fewParts = 3

// fewLabelled labels n of the worn tools, every choice of them. A tool that is judged
// is not among the unlabelled ones that are learnt from; and once more with all of
// the others both learnt from without their labels and judged, as for a plant that
// labels a few of the tools it has recorded.
func fewLabelled(ls []life, n int) []split {
	worn, rest := columns.Deal(toolsOf(ls), func(k int) bool { return ls[k].faulty > 0 })
	var out []split
	for _, choice := range combin.Combinations(len(worn), n) {
		labelled, others := columns.Deal(slices.Concat(worn, rest), func(k int) bool { return slices.Contains(choice, k) })
		s := split{Protocol: fmt.Sprintf("%s%d", few, n), Unit: strings.Join(labelled, " "), Train: labelled, Healthy: healthyTurning}
		all := s
		all.Protocol, all.Name, all.Test, all.Unlabelled = s.Protocol+atHand, s.Unit, others, others
		out = append(out, all)
		for part := range fewParts {
			s.Name = fmt.Sprintf("%s, %d", s.Unit, part+1)
			s.Test, s.Unlabelled = columns.Deal(others, func(k int) bool { return k%fewParts == part })
			out = append(out, s)
		}
	}
	return out
}

// drillSplits holds a fifth of the tools of one seed out at a time; and learns from
// few labelled tools of one seed, the others unlabelled, to judge the next seed's.
func drillSplits(ls []life) []split {
	var bySeed [][]string
	for _, seed := range drillSeeds {
		of, _ := columns.Deal(toolsOf(ls), func(k int) bool { return strings.HasPrefix(ls[k].tool, drillTool(seed, "")) })
		bySeed = append(bySeed, of)
	}
	const folds = 5
	var out []split
	for k, tools := range bySeed {
		unit := fmt.Sprintf("seed %d", drillSeeds[k])
		for fold := range folds {
			s := split{Protocol: fiveFold, Unit: unit, Name: fmt.Sprintf("%s, %d", unit, fold+1)}
			s.Test, s.Train = columns.Deal(tools, func(i int) bool { return i%folds == fold })
			out = append(out, s)
		}
	}
	for _, n := range []int{1, 3} {
		for k, tools := range bySeed {
			for choice := range folds {
				s := split{Protocol: fmt.Sprintf("%s%d", few, n), Healthy: healthyDrill, Test: bySeed[(k+1)%len(bySeed)]}
				s.Train, s.Unlabelled = columns.Deal(tools, func(i int) bool { return slices.Contains(spread(n, choice, len(tools)), i) })
				s.Unit = strings.Join(s.Train, " ")
				s.Name = s.Unit
				out = append(out, s)
			}
		}
	}
	return out
}

// spread returns n of the given number of places, far from each other, since tools of one geometry
// follow each other: the choice-th such selection.
func spread(n, choice, places int) (out []int) {
	for i := range n {
		out = append(out, (choice*3+i*7)%places)
	}
	return out
}

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// nine returns the turning tools with their faulty windows.
func nine() []life {
	return []life{{tool: "5"}, {tool: "9", faulty: 14}, {tool: "10"}, {tool: "13", faulty: 3}, {tool: "14", faulty: 38},
		{tool: "15", faulty: 15}, {tool: "3"}, {tool: "4", faulty: 45}, {tool: "6"}}
}

func apart(t *testing.T, s split) {
	t.Helper()
	seen := make(map[string]string)
	for part, tools := range map[string][]string{"train": s.Train, "unlabelled": s.Unlabelled, "test": s.Test} {
		for _, tool := range tools {
			if was, twice := seen[tool]; twice {
				t.Errorf("%s %s: tool %s is in %s and in %s", s.Protocol, s.Name, tool, was, part)
			}
			seen[tool] = part
		}
	}
}

func TestSixThree(t *testing.T) {
	ss := sixThree(nine())
	if len(ss) != 74 {
		t.Errorf("%d splits, want 74 of 84", len(ss))
	}
	names := make(map[string]bool)
	for _, s := range ss {
		apart(t, s)
		if len(s.Train) != 6 || len(s.Test) != 3 || names[s.Name] {
			t.Errorf("split %+v", s)
		}
		names[s.Name] = true
	}
	if names["5 13 3"] || names["5 10 3"] {
		t.Error("a split judges no worn tool but 13")
	}
	if !names["9 13 14"] {
		t.Error("tool 13 is never judged next to others")
	}
}

// With few labels, each tool that has none is judged once for each choice.
func TestFewLabelled(t *testing.T) {
	for n, want := range map[int]int{1: 5, 2: 10, 3: 10} {
		judged := make(map[string][]string)
		hand := 0
		for _, s := range fewLabelled(nine(), n) {
			if strings.HasSuffix(s.Protocol, atHand) { // judged and learnt from without labels
				if hand++; len(s.Train) != n || len(s.Test) != 9-n || !slices.Equal(s.Test, s.Unlabelled) || s.Healthy != healthyTurning {
					t.Errorf("split %+v", s)
				}
				continue
			}
			apart(t, s)
			if len(s.Train) != n || len(s.Train)+len(s.Unlabelled)+len(s.Test) != 9 || s.Healthy != healthyTurning {
				t.Errorf("split %+v", s)
			}
			judged[s.Unit] = append(judged[s.Unit], s.Test...)
		}
		if len(judged) != want || hand != want {
			t.Errorf("%d labelled: %d choices, want %d", n, len(judged), want)
		}
		for unit, tools := range judged {
			slices.Sort(tools)
			if len(slices.Compact(tools)) != 9-n {
				t.Errorf("%s: judged %v", unit, tools)
			}
		}
	}
}

func TestLeaveOneOut(t *testing.T) {
	ss := outOneByOne(nine())
	if len(ss) != 9 {
		t.Fatalf("%d splits", len(ss))
	}
	for _, s := range ss {
		apart(t, s)
		if len(s.Train) != 8 || len(s.Test) != 1 || s.Unit != ss[0].Unit {
			t.Errorf("split %+v", s)
		}
	}
}

func TestDrillSplits(t *testing.T) {
	var ls []life
	for _, seed := range drillSeeds {
		for n := range 20 {
			ls = append(ls, life{tool: drillTool(seed, fmt.Sprintf("T%02d", n+1)), faulty: 5})
		}
	}
	protocols, judged := make(map[string]int), make(map[string]int)
	for _, s := range drillSplits(ls) {
		apart(t, s)
		protocols[s.Protocol]++
		switch s.Protocol {
		case fiveFold:
			for _, tool := range s.Test {
				judged[tool]++
			}
			if len(s.Train) != 16 {
				t.Errorf("split %+v", s)
			}
		default:
			if want := int(s.Protocol[len(few)] - '0'); len(s.Train) != want || len(s.Unlabelled) != 20-want || len(s.Test) != 20 {
				t.Errorf("split %+v", s)
			}
			if s.Train[0][:2] == s.Test[0][:2] {
				t.Errorf("%s: judged on the same seed", s.Name)
			}
		}
	}
	if protocols[fiveFold] != 15 || protocols["few-1"] != 15 || protocols["few-3"] != 15 {
		t.Errorf("splits %v", protocols)
	}
	for _, l := range ls {
		if judged[l.tool] != 1 {
			t.Errorf("tool %s is judged %d times", l.tool, judged[l.tool])
		}
	}
}

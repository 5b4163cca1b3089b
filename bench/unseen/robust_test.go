package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/card"
)

// Both tables have a row for each kind of fault, and the page each trial that misses an alarm.
func TestRobustPage(t *testing.T) {
	off := &card.Robustness{Tools: 9, Worn: 5, Clean: card.Effect{GMean: 0.98}, Kinds: []card.FaultSummary{{Kind: "is missing", Trials: 3, Worst: 0, Mean: 0.5, Missed: 4, Of: 15, WorstIf: "F is missing"}},
		Trials: []card.Trial{{Fault: card.Fault{Kind: card.Missing, Sensors: []string{"F"}}, Effect: card.Effect{Missed: 4}, MissedTools: []string{"1", "3"}}, {Fault: card.Fault{Kind: card.Missing, Sensors: []string{"G"}}}}}
	vote := *off
	vote.Kinds, vote.Trials = []card.FaultSummary{{Kind: "is missing", Worst: 0.97, Mean: 0.98, Of: 15, False: 2}}, nil
	all := [3]*card.Robustness{off, &vote, &vote}
	guarded := vote
	guarded.Guarded = true
	for text, wants := range map[string][]string{
		robustPage(all, []other{{Title: "Drills", Both: [2]*card.Robustness{off, &guarded}}}): {"| as it should be | 0.980 | 0 of 5 | 0 | 0 | 0.980 | 0 of 5 | 0 | 0 |\n", "| is missing | 0.000, 0.500 | 4 of 15 | 0 | 0 | 0.970, 0.980 | 0 of 15 | 0 | 2 |\n"},
		robustPage(all, []other{{Title: "Drills", Both: [2]*card.Robustness{off, &vote}}}):    {"9 turning tools, 5 of which", "| is missing | 3 | 0.000 | 0.500 | 4 of 15 | 0 | 0 | F is missing |\n", "| F is missing | 0.000 | 1, 3 |\n", "## Drills\n\n5 of 9 tools get worn. No model here has a guard"},
	} {
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
	if strings.Contains(robustPage(all, []other{{Title: "Drills", Both: [2]*card.Robustness{off, &vote}}}), "| G is missing") {
		t.Error("a trial that misses nothing is listed")
	}
}

// README.md has the figures of the page without a guard, and by default.
func TestReadmeHasThePagesFigures(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile("../../docs/figures/robust.md")
	if err != nil {
		t.Fatal(err)
	}
	figures := regexp.MustCompile(`With one sensor wrong: (G-mean .* alarms missed)\.`).FindAllSubmatch(made, 3)
	if len(figures) != 3 {
		t.Fatalf("robust.md: %d parts", len(figures))
	}
	for _, run := range []int{0, 2} {
		if !bytes.Contains(readme, figures[run][1]) {
			t.Errorf("README.md has no %q", figures[run][1])
		}
	}
}

package card

import (
	"math"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/score"
)

// A candidate that is worse, or that nothing can be said of, loses.
func TestContestIsLost(t *testing.T) {
	of := func(candidate, champion float64) Contest {
		return Contest{Fresh: Standing{Candidate: StandingModel{GMean: score.Figure(candidate)}, Champion: StandingModel{GMean: score.Figure(champion)}}}
	}
	unsure := of(1, 0)
	unsure.Reason = "no row"
	for name, tc := range map[string]struct {
		c    Contest
		want bool
	}{
		"better": {of(0.9, 0.8), false}, "as good": {of(0.9, 0.9), false}, "worse": {of(0.8, 0.81), true}, "not known": {of(math.NaN(), math.NaN()), true}, "not comparable": {unsure, true},
	} {
		if tc.c.Worse() != tc.want {
			t.Errorf("%s: worse %v", name, !tc.want)
		}
	}
}

// The card and the report say how the model compares with the champion, or why that is not known.
func TestCardComparesWithChampion(t *testing.T) {
	s := Standing{Windows: 120, Tools: 3, Candidate: StandingModel{0.9, 0.1}, Champion: StandingModel{0.8, 0.2}}
	r := &Report{Fit: new(classify.Report), Against: []Contest{{Champion: "old", Fresh: s, All: s}, {Champion: "older", Reason: "no row"}}}
	page, err := r.HTML()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Compared with the champion", ">120<", ">0.900<", ">0.800<", "all tools, of which old remembers some", "not comparable with older: no row.", `"champions": [`} {
		if !strings.Contains(string(page), want) {
			t.Errorf("no %q on the card", want)
		}
	}
	r.Against = nil
	if page, err = r.HTML(); err != nil || strings.Contains(string(page), "Compared with the champion") {
		t.Errorf("a comparison that there is not: %v", err)
	}
}

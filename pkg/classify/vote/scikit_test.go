package vote_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify/vote"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// peer is what NumPy and scikit-learn make of a table, see bench/peers/vote.py.
type peer struct {
	Rows    []*float64
	Wear    []float64 // in limits
	Tools   []string
	Sensors []struct {
		Name, Unit string
		Weights    []float64
	}
	Kept    []string
	Groups  [][]string
	Pairs   [][]string
	ByClass computed `json:"by_class"`
	ByWear  computed `json:"by_wear"`
}

// computed is what experts and their vote are.
type computed struct {
	Bias    []float64
	Weights [][]float64
	Odds    [][]*float64
	Votes   []*float64
	Held    []float64
	Cut     float64
}

func readPeer(t testing.TB) (peer, vote.Table) {
	text, err := os.ReadFile("testdata/scikit-learn.json")
	if err != nil {
		t.Fatal(err)
	}
	var p peer
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	table := vote.Table{Groups: p.Tools}
	for _, limits := range p.Wear {
		class := 0
		if limits >= 1 {
			class = 1
		}
		table.Y = append(table.Y, class)
	}
	var weights []float64
	for _, s := range p.Sensors {
		of := vote.Sensor{Name: s.Name, Unit: s.Unit, Kinds: []vote.Kind{vote.RMS, vote.Mean, vote.Max, vote.Other}}
		for _, w := range s.Weights {
			of.Columns = append(of.Columns, len(weights))
			weights = append(weights, w)
			table.Log = append(table.Log, len(of.Columns) < 4)
		}
		table.Sensors = append(table.Sensors, of)
	}
	table.Weights = func([]string) []float64 { return weights }
	table.X = dbn.NewMatrix(len(p.Wear), len(weights))
	for i, v := range p.Rows {
		table.X.Data[i] = float32(math.NaN())
		if v != nil {
			table.X.Data[i] = float32(*v)
		}
	}
	return p, table
}

// Another implementation finds the same sensors, experts, coefficients, votes and cut, from classes alone and from wear.
func TestFitIsScikitLearns(t *testing.T) {
	p, table := readPeer(t)
	t.Run("by class", func(t *testing.T) { p.holds(t, table, p.ByClass) })
	table.Wear = p.Wear
	t.Run("by wear", func(t *testing.T) { p.holds(t, table, p.ByWear) })
}

func (p *peer) holds(t *testing.T, table vote.Table, of computed) {
	g, report, err := vote.Fit(t.Context(), table, vote.Settings{})
	if err != nil || report.Off != "" {
		t.Fatal(err, report)
	}
	if !slices.Equal(g.Sensors(), p.Kept) {
		t.Errorf("sensors %v, want %v", g.Sensors(), p.Kept)
	}
	want := append(slices.Clone(p.Groups), p.Pairs...)
	if len(report.Experts) != len(want) {
		t.Fatalf("experts %+v, want %v", report.Experts, want)
	}
	for e, x := range report.Experts {
		if !slices.Equal(x.Sensors, want[e]) || x.Ratio != (e >= len(p.Groups)) {
			t.Errorf("expert %d is of %v, ratio %t; want %v", e, x.Sensors, x.Ratio, want[e])
		}
	}
	for e, x := range g.Numbers() {
		if math.Abs(x.Bias-of.Bias[e]) > 1e-4 {
			t.Errorf("expert %v: bias %v, scikit-learn %v", want[e], x.Bias, of.Bias[e])
		}
		if len(x.Weights) != len(of.Weights[e]) {
			t.Fatalf("expert %v: weights %v, scikit-learn %v", want[e], x.Weights, of.Weights[e])
		}
		for k, w := range x.Weights {
			if math.Abs(w-of.Weights[e][k]) > 1e-4 {
				t.Errorf("expert %v: weight %d is %v, scikit-learn %v", want[e], k, w, of.Weights[e][k])
			}
		}
	}
	s := g.NewScorer()
	for i := range table.X.Rows {
		j := s.Judge(table.X.Row(i), 0.5)
		if math.Abs(j.Vote-*of.Votes[i]) > 1e-4 || math.Abs(report.Held[i]-of.Held[i]) > 1e-4 {
			t.Errorf("row %d: vote %v, held out %v; want %v and %v", i, j.Vote, report.Held[i], *of.Votes[i], of.Held[i])
		}
		for e, odds := range s.Odds() {
			if w := of.Odds[e][i]; w == nil != (odds != odds) || w != nil && math.Abs(odds-*w) > 1e-4 {
				t.Errorf("row %d: expert %v has log odds %v", i, want[e], odds)
			}
		}
	}
	if math.Abs(g.Cut()-of.Cut) > 1e-3 {
		t.Errorf("cut %v, want %v", g.Cut(), of.Cut)
	}
}

package main

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/flank-tcm/flank/bench/bootstrap"
	"github.com/flank-tcm/flank/pkg/score"
)

// toy is five tools of one unit: each has a faulty window that is found and a healthy
// one, which is called faulty of the bad ones.
func toy(method string, bad int) *tally {
	t := &tally{method: method}
	for k := range 5 {
		c := counts{TP: 1, TN: 1}
		if k < bad {
			c = counts{TP: 1, FP: 1}
		}
		t.add(cell{Unit: "u", Tool: string(rune('a' + k)), counts: c})
	}
	return t
}

// With B bad tools among five draws, the G-mean is √(1 − B/5). One in five being bad,
// P(B ≥ 3) = 0.058 and P(B ≥ 4) = 0.0067, so the 97.5 % quantile of B is 3.
func TestBootstrap(t *testing.T) {
	one, none := toy("one", 1), toy("none", 0)
	if f := one.figures(nil, false); math.Abs(f.GMean-math.Sqrt(0.8)) > 1e-12 || f.Recall != 1 || f.Specificity != 0.8 || f.Units != 1 {
		t.Errorf("figures %+v", f)
	}
	own, lead := bootstrapTools(one, none)
	if want := math.Sqrt(0.4); math.Abs(own.Low-want) > 1e-12 || own.High != 1 {
		t.Errorf("G-mean %v, want %v to 1", own, want)
	}
	if want := math.Sqrt(0.4) - 1; math.Abs(lead.Low-want) > 1e-12 || lead.High != 0 {
		t.Errorf("lead %v, want %v to 0", lead, want)
	}
	if _, lead := bootstrapTools(one, toy("the same", 1)); lead != (bootstrap.Interval{}) {
		t.Errorf("lead over an equal %v: draws are not paired", lead)
	}
	again, _ := bootstrapTools(one, nil)
	if again != own {
		t.Errorf("%v, then %v", own, again)
	}
}

// Of five splits with an AUC of 1 but for one of 0, the number of zeros drawn is as in
// TestBootstrap.
func TestAUCBounds(t *testing.T) {
	s := &tally{aucs: []float64{1, 1, 0, 1, 1}}
	if got := s.aucBounds(); math.Abs(got.Low-0.4) > 1e-12 || math.Abs(got.High-1) > 1e-12 {
		t.Errorf("AUC %v, want 0.4 to 1", got)
	}
	s.aucs = s.aucs[:4]
	if got := s.aucBounds(); got.Low == got.Low {
		t.Errorf("four splits have the interval %v", got)
	}
}

func TestFewToolsHaveNoInterval(t *testing.T) {
	s := toy("one", 1)
	few := &tally{}
	for k := range bootstrap.Few - 1 {
		few.add(cell{Unit: "u", Tool: s.tools[k], counts: s.counts[0][k]})
	}
	if own, _ := bootstrapTools(few, nil); own.Low == own.Low {
		t.Errorf("four tools have the interval %v", own)
	}
}

// Splits of one unit are counted together; units are averaged; a unit without faulty
// windows is passed over.
func TestTallies(t *testing.T) {
	cs := []cell{
		{Data: "d", Protocol: "p", Unit: "1", Split: "a", Method: "m", Tool: "a", counts: counts{TP: 1, FN: 1}, AUC: math.NaN()},
		{Data: "d", Protocol: "p", Unit: "1", Split: "b", Method: "m", Tool: "b", counts: counts{TN: 1, FP: 1}, AUC: math.NaN()},
		{Data: "d", Protocol: "p", Unit: "2", Split: "c", Method: "m", Tool: "a", counts: counts{TP: 1}, AUC: 0.75},
		{Data: "d", Protocol: "p", Unit: "2", Split: "c", Method: "m", Tool: "b", counts: counts{TN: 1}, AUC: 0.75},
		{Data: "d", Protocol: "p", Unit: "3", Split: "d", Method: "m", Tool: "b", counts: counts{TN: 1}, AUC: math.NaN()},
		{Data: "d", Protocol: "q", Unit: "3", Split: "d", Method: "m", Tool: "b", counts: counts{FP: 9}, AUC: math.NaN()},
	}
	ts := tallies(cs, "d", "p")
	if len(ts) != 1 || ts[0].splits != 4 {
		t.Fatalf("tallies %+v", ts)
	}
	if f := ts[0].figures(nil, false); f != (figures{GMean: 0.75, Median: 0.75, Least: 0.5, Recall: 0.75, Specificity: 0.75, Units: 2}) {
		t.Errorf("figures %+v", f)
	}
	if a := ts[0].auc(); a != 0.75 {
		t.Errorf("AUC %v", a)
	}
}

// The weights that bench/peers/unseen/peers.py screens columns by are pkg/score's.
func TestPeersScreenAlike(t *testing.T) {
	text, err := os.ReadFile("testdata/stability.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Lives  [][][]*float32 `json:"lives"`
		Weight []float64      `json:"weight"`
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	var rows [][]float32
	var lives []score.Life
	for _, l := range want.Lives {
		var one score.Life
		for _, values := range l {
			row := make([]float32, len(values))
			for j, v := range values {
				if row[j] = float32(math.NaN()); v != nil {
					row[j] = *v
				}
			}
			one.Rows = append(one.Rows, len(rows))
			rows = append(rows, row)
		}
		lives = append(lives, one)
	}
	got := score.RankColumns(len(want.Weight), func(i int) []float32 { return rows[i] }, lives)
	some := 0
	for j, w := range want.Weight {
		if math.Abs(got.Weight[j]-w) > 1e-9 {
			t.Errorf("column %d: weight %v, peers have %v", j, got.Weight[j], w)
		}
		if w > 0 {
			some++
		}
	}
	if some != 3 {
		t.Errorf("%d columns have a weight, the table was made for 3", some)
	}
}

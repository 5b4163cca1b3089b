package train

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/score"
)

// Every tool is judged once, by the network that was chosen while it was held
// out; networks are drawn within their bounds.
func TestSearch(t *testing.T) {
	j := latheJob(t)
	rng := rand.New(rand.NewPCG(9, 9))
	j.Config.Network.FineTune.Epochs, j.Config.Network.Pretrain.Epochs = 5, -1
	j.Config.Costs.Folds = 2
	s := Search{Job: j, Trials: 3}
	networks := s.draw(rng)
	if len(networks) != 3 || len(networks[0].Hidden) != len(j.Config.Network.Hidden) {
		t.Errorf("networks %+v", networks)
	}
	for _, n := range networks[1:] {
		if n.FineTune.Decay < 1e-4 || n.FineTune.Decay > 1e-2 || n.Pretrain.Rate < 0.01 || n.Pretrain.Rate > 0.2 || n.FineTune.Epochs != 5 {
			t.Errorf("drawn beyond the bounds: %+v", n)
		}
	}
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	picked := 0
	for _, tr := range r.Trials {
		picked += tr.Picked
	}
	if in := r.NestedInterval; in.Tools != 5 || !(in.GMean[0] <= r.Nested.GMean && r.Nested.GMean <= in.GMean[1]) || r.ConfiguredInterval.Tools != 5 {
		t.Errorf("G-mean %v within %+v", r.Nested.GMean, in)
	}
	if r.Nested.Rows != 199 || r.Configured.Rows != 199 || picked != 5 {
		t.Errorf("%d and %d rows judged, %d choices", r.Nested.Rows, r.Configured.Rows, picked)
	}
}

func TestBestOf(t *testing.T) {
	nan := math.NaN()
	for _, tc := range []struct {
		figures []float64
		want    int
	}{{[]float64{nan, 0.5, 0.7, 0.7}, 2}, {[]float64{nan, nan}, 0}, {[]float64{0, nan}, 0}} {
		if got := bestOf(tc.figures); got != tc.want {
			t.Errorf("best of %v is %d, want %d", tc.figures, got, tc.want)
		}
	}
}

func TestSearchTextHasTheBestNetworkFirst(t *testing.T) {
	r := searchReport{NestedInterval: new(card.ToolInterval), ConfiguredInterval: new(card.ToolInterval)}
	r.Trials = []trial{{GMean: 0.25}, {GMean: score.Figure(math.NaN())}, {GMean: 0.875}}
	lines := strings.Split(r.Text(), "\n")
	for i, figure := range []string{"0.875", "0.250", "–"} {
		if fields := strings.Fields(lines[4+i]); fields[len(fields)-2] != figure {
			t.Errorf("line %d of the networks is %q, want one with G-mean %s", i+1, lines[4+i], figure)
		}
	}
}

func TestVerdictsTakeOnlyTheRowsOfTheirFold(t *testing.T) {
	v := newVerdicts(3, 2)
	v.take(&classify.Validation{Decision: []int{-1, 1, -1}, Posterior: []float64{0, 0, 0.2, 0.8, 0, 0}}, []int{1})
	v.take(&classify.Validation{Decision: []int{0, -1, 1}, Posterior: []float64{0.9, 0.1, 0, 0, 0.4, 0.6}}, []int{0, 2})
	if s := v.scores([]int{0, 1, 1}); s.GMean != 1 || s.Rows != 3 || s.AUC != 1 {
		t.Errorf("%+v", s)
	}
}

// Copies of one recording stay on one side of inner folds as well.
func TestPartKeepsCopiesTogether(t *testing.T) {
	rows := rowTable{Table: table.New([]string{"rms"}), classes: []string{"healthy", "faulty"}}
	for i, tool := range []string{"A", "B", "C", "D"} {
		rows.Append(table.Row{Tool: tool, Class: i % 2, VBMaxUM: nan, Features: []float32{1}})
		rows.group = append(rows.group, tool)
	}
	rows.hold([]twin{{tool: "C", of: "A"}})
	if got := part(rows, []int{0, 1, 2}).apart(); !slices.Equal(got, []string{"A", "B", "A"}) {
		t.Errorf("%q", got)
	}
}

package main

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model"
)

// Wear must not be readable from the level of the channels, or the simulator
// would make any classifier look good; and it must be learnt from all features.
// docs/figures/simulator.md has the figures of all 20 tools.
func TestWearIsNotInTheLevel(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("takes minutes with the race detector, which other tests of this package give enough to look at")
	}
	s := wearStudy{Seed: 1, Life: 40 * time.Second, Tools: 8}
	x, err := s.rows(t.Context(), false, model.ReferenceKind)
	if err != nil {
		t.Fatal(err)
	}
	level, err := s.row(t.Context(), rowLevel, x, isLevel, logisticOf)
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.deepGMean(t.Context(), x, x.columns(isFeature), classify.LeaveOneGroupOut(x.lessons.Groups))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d windows, G-mean by tool: RMS %.3f, all features %.3f", x.Rows(), level.ByTool, all)
	if level.Features != 14 || x.columns(isFeature).Cols != len(x.Columns) {
		t.Errorf("%d levels of 14 channels, %d of %d features", level.Features, x.columns(isFeature).Cols, len(x.Columns))
	}
	if all < leastGMean {
		t.Errorf("G-mean %.3f on all features: wear cannot be learnt", all)
	}
	if level.ByTool > all-0.1 {
		t.Errorf("G-mean %.3f on the RMS alone, %.3f on all features: wear is in the level", level.ByTool, all)
	}
}

func TestLogisticRegression(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	x := dbn.Matrix{Rows: 400, Cols: 3}
	var line, noise []int
	for range x.Rows {
		a, b := rng.NormFloat64(), rng.NormFloat64()
		class := 0
		if a+2*b > 1.5 {
			class = 1
		}
		line, noise = append(line, class), append(noise, rng.IntN(8)/7)
		x.Data = append(x.Data, float32(1000+a), float32(b), 7)
	}
	x.Data[30], x.Data[31] = float32(math.NaN()), float32(math.NaN())
	folds := classify.StratifiedKFold(line, 4, rng)
	if g := logisticGMean(x, line, folds); g < 0.95 {
		t.Errorf("G-mean %v on classes that a line parts", g)
	}
	if g := logisticGMean(x, noise, folds); g > 0.65 {
		t.Errorf("G-mean %v on noise", g)
	}
}

// The report says of its goals whether they are held.
func TestSimulatorGoals(t *testing.T) {
	r := wearReport{Rows: []wearRow{{Name: rowBest, ByTool: 0.9}, {Name: rowLevel, ByTool: 0.7}, {Name: rowAllDBN, ByTool: 0.96}}}
	got := r.Markdown()
	for _, want := range []string{"0.95 on tools left out. 0.960: **held**", "0.05 below it. 0.900 is the best: **held**"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	r.Rows[2].ByTool = 0.94
	if got := r.Markdown(); strings.Count(got, ": not reached.") != 2 {
		t.Errorf("the report says that goals are held:\n%s", got)
	}
}

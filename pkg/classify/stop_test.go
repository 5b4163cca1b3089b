package classify

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/jade"
)

// The rows that say when to stop are of other groups than those trained on, and
// no class is lost to them.
func TestStopFold(t *testing.T) {
	_, y := clusters(1, 2, 1, 80, 20)
	groups := tools(len(y), 8)
	folds, ok := stopFolds(y, groups, 7)
	fold := folds.lists()[0]
	if !ok || len(fold.Train)+len(fold.Test) != len(y) {
		t.Fatalf("%d and %d of %d rows", len(fold.Train), len(fold.Test), len(y))
	}
	for _, i := range fold.Test {
		if slices.Contains(pick(groups, setOf(fold.Train)), groups[i]) {
			t.Fatalf("group %s is on both sides", groups[i])
		}
	}
	if share := float64(len(fold.Test)) / float64(len(y)); share < 0.1 || share > 0.3 {
		t.Errorf("a share of %v stops", share)
	}
	if folds, ok = stopFolds(y, nil, 7); !ok || folds.test(0).rows != len(y)/5 {
		t.Errorf("without groups %d of %d rows stop", folds.test(0).rows, len(y))
	}
	if _, ok = stopFolds([]int{0, 0, 0, 0, 0, 1}, nil, 7); ok {
		t.Error("the one row of a class is held out")
	}
}

func TestEarlyStop(t *testing.T) {
	x, y := clusters(4, 3, 1.2, 160, 80)
	groups := tools(len(y), 8)
	s := quick()
	s.Network.FineTune.Epochs, s.Network.FineTune.Patience = 300, 10
	s.EarlyStop = true
	_, r := fitted(t, x, y, groups, s)
	h := r.History
	if h.Kept >= 300 || len(h.Validation) != h.Kept+10 || len(h.Pretrain[0].FreeEnergyGap) == 0 {
		t.Errorf("kept epoch %d of %d", h.Kept, len(h.Validation))
	}
	if r.Held.AUC < 0.8 {
		t.Errorf("AUC %v of rows held out", r.Held.AUC)
	}
}

func TestSettingsCheck(t *testing.T) {
	if err := (Settings{}).Check(2); err != nil {
		t.Error(err)
	}
	for name, s := range map[string]Settings{
		"network":    {Network: dbn.Settings{Hidden: []int{0}}},
		"search":     {Costs: CostSettings{JADE: jade.Settings{Population: 2}}},
		"encoding":   {Encoding: "log"},
		"validation": {Network: dbn.Settings{FineTune: dbn.FineTuneSettings{Validation: dbn.NewMatrix(1, 1)}}},
		"rate":       {Network: dbn.Settings{FineTune: dbn.FineTuneSettings{Rate: math.NaN()}}},
	} {
		if err := s.Check(2); !errors.Is(err, ErrSettings) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// Values of any size that float32 holds give posteriors that are numbers, in
// every encoding.
func TestHugeValues(t *testing.T) {
	x, y := clusters(6, 3, 3, 60, 30)
	for i := range x.Rows {
		x.Row(i)[0] *= 1e37
		x.Row(i)[1] *= 1e-37
	}
	x.Row(0)[2], x.Row(1)[2] = math.MaxFloat32, -math.MaxFloat32
	for _, e := range encodings {
		s := quick()
		s.Encoding = e
		c, r := fitted(t, x, y, nil, s)
		scorer := c.NewScorer()
		for i := range x.Rows {
			for _, p := range scorer.Posterior(x.Row(i)) {
				if !(p >= 0 && p <= 1) {
					t.Fatalf("%s: posterior %v", e, p)
				}
			}
		}
		if r.Held.GMean < 0.9 { // the other two columns tell the classes apart
			t.Errorf("%s: G-mean %v out of fold", e, r.Held.GMean)
		}
	}
}

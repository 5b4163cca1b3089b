package train

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/model/unknown"
)

// With a single worn tool costs are chosen on folds by row, in which near copies of a
// window are on both sides: the model has no conformal sets, and the card says why.
func TestNoSetsFromFoldsByRow(t *testing.T) {
	t.Parallel()
	j := latheJob(t)
	j.Inputs = []Input{latheInput(t, j.Layout, "lives", "lathe", latheCSV([]life{{"A", 48, 420}, {"B", 30, 170}, {"C", 30, 180}}))}
	m, r, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	const why = "no conformal sets: costs were chosen on folds by row, because tool A alone has faulty windows; windows of one tool are near copies"
	if m.Conformal != nil || r.Unknown.ErrorRate != 0 || len(r.Unknown.Promises) != 0 || !strings.Contains(cardText(t, r), why) {
		t.Errorf("sets %v; %+v", m.Conformal, r.Unknown)
	}
	j = latheJob(t) // with two worn tools and more there are some
	if m, r, err = Run(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if m.Conformal == nil || m.Conformal.Tools(0) != 5 || m.Conformal.Tools(1) != 4 || len(r.Unknown.TooFew()) != 2 || r.Unknown.Classes[1].Tools != 4 {
		t.Errorf("sets %+v; %+v", m.Conformal, r.Unknown)
	}
}

// References that are spread independently have as many degrees of freedom as features, and
// those that one cause moves have one.
func TestFitDrift(t *testing.T) {
	starts := func(causes int) [][]float32 {
		var out [][]float32
		for tool := range 30 {
			s := make([]float32, 24)
			for j := range s {
				s[j] = 5 + float32(math.Sin(float64((j%causes+1)*(tool+1)*(tool+3))))
			}
			out = append(out, s)
		}
		return out
	}
	if d := fitDrift(starts(24), nil); d == nil || d.Degrees < 12 || d.Tools != 30 || !(d.Clear > 1 && d.Raise > d.Clear) {
		t.Errorf("independent: %+v", d)
	}
	if d := fitDrift(starts(1), nil); d == nil || d.Degrees > 1.5 || d.Raise < 8 {
		t.Errorf("one cause: %+v", d)
	}
	if d := fitDrift(starts(3)[:3], nil); d != nil {
		t.Error("drift by three tools")
	}
	counts := make([]bool, 24)
	counts[3], counts[20] = true, true
	d := fitDrift(starts(24), counts)
	for j, scale := range d.Scale {
		if (scale > 0) != counts[j] || counts[j] != (d.Center[j] > 0) {
			t.Errorf("feature %d counts: %v; scale %v", j, counts[j], scale)
		}
	}
	if d.Degrees > 2 {
		t.Errorf("two features count: %+v", d)
	}
	counts[3] = false
	if d := fitDrift(starts(24), counts); d != nil {
		t.Error("drift by one feature")
	}
}

// What docs/figures/unknown.md says of tools held out. With FLANK_STUDY set the simulated drill
// is measured too, which takes minutes.
func TestRecordedUnknownOfToolsHeldOut(t *testing.T) {
	if testing.Short() {
		t.Skip("trains on every turning tool")
	}
	jobs := map[string]func() Job{
		"turning": func() Job { return exampleJob(t, "turning", "vicomtech-turning/turning_wear_dev.csv") },
	}
	if os.Getenv("FLANK_STUDY") != "" {
		jobs["drill"] = func() Job {
			j := SimulatedHistory("m/a/c/h/i", 1)
			j.Config.Evaluate.ByTool = "leave-one-out"
			return j
		}
	}
	for name, job := range jobs {
		j := job()
		j.Config.Evaluate.RandomSplit = false
		_, r, err := Run(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		card := cardText(t, r)
		t.Logf("%s\n%s", name, card[strings.LastIndex(card, "\nUnknown\n"):strings.LastIndex(card, "\nWear trend\n")])
		for _, c := range r.Unknown.Classes {
			if c.Coverage < 0.91 || c.CoverageByTool < 0.91 || float64(c.Unknown()) > 0.08*float64(c.Windows) {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
}

// What docs/figures/unknown.md says of error rates: conformal sets alone, with one tool after
// the other held out, and with three of the nine turning tools, for each such choice.
func TestRatesOfConformalSets(t *testing.T) {
	if os.Getenv("FLANK_STUDY") == "" {
		t.Skip("set FLANK_STUDY to train on 129 choices of tools, which takes six minutes on two idle cores")
	}
	turning := exampleJob(t, "turning", "vicomtech-turning/turning_wear_dev.csv")
	for _, tc := range []struct {
		name  string
		job   Job
		three bool
	}{
		{"turning, one held out", turning, false}, {"turning, three held out", turning, true},
		{"simulated drill", SimulatedHistory("m/a/c/h/i", 1), false}, {"another seed", SimulatedHistory("m/a/c/h/i", 2), false},
	} {
		tc.job.prepare()
		rows, _, _ := mustRows(t, tc.job)
		folds := classify.LeaveOneGroupOut(rows.group)
		if tc.three {
			folds = threeOut(rows)
		}
		rates := []float64{0.01, 0.02, 0.05, 0.1}
		found, counted := make([]*card.UnknownReport, len(rates)), make([]*card.UnknownCounter, len(rates))
		for i := range counted {
			found[i] = &card.UnknownReport{}
			counted[i] = card.NewUnknownCounter(found[i], rows.classes)
		}
		for _, fold := range folds {
			one := []classify.Fold{fold} // a tool is held out more than once
			v, err := classify.CrossValidateTable(t.Context(), &classify.Table{X: rows.x(), Y: rows.Class, Groups: rows.group}, tc.job.settings(rows), one)
			if err != nil {
				t.Fatal(err)
			}
			p := v.Reports[0].Posterior
			for i, rate := range rates {
				v.Reports[0].Posterior = p
				sets, err := ofFolds(rows, &model.Model{Conformal: &unknown.Conformal{Rate: rate}}, v, one)
				if errors.Is(err, classify.ErrTooFew) {
					continue // a single worn tool is left
				} else if err != nil {
					t.Fatal(err)
				}
				for _, r := range fold.Test {
					counted[i].Add(sets[0], rows.group[r], rows.Class[r], v.Decision[r], v.Posterior[2*r:2*r+2], 1)
				}
			}
		}
		for i, rate := range rates {
			counted[i].Finish()
			for _, c := range found[i].Classes {
				t.Logf("%s at %v: %s coverage %.3f, by tool %.3f, unknown %d of %d", tc.name, rate, c.Class, float64(c.Coverage), float64(c.CoverageByTool), c.Unknown(), c.Windows)
				if rate == 0.05 && (c.Coverage < 0.91 || c.Coverage > 0.99) {
					t.Errorf("%s: coverage %.3f of %s windows", tc.name, float64(c.Coverage), c.Class)
				}
			}
		}
	}
}

// threeOut returns a fold for each choice of three tools to hold out that leaves two
// worn ones.
func threeOut(rows rowTable) []classify.Fold {
	tools := rows.tools()
	_, worn := rows.rowsOf(1)
	var folds []classify.Fold
	for a := range tools {
		for b := range a {
			for c := range b {
				out := []string{tools[a], tools[b], tools[c]}
				left := 0
				for _, w := range worn {
					if !slices.Contains(out, w) {
						left++
					}
				}
				if left < 2 {
					continue
				}
				var f classify.Fold
				for i, g := range rows.group {
					if slices.Contains(out, g) {
						f.Test = append(f.Test, i)
					} else {
						f.Train = append(f.Train, i)
					}
				}
				folds = append(folds, f)
			}
		}
	}
	return folds
}

// What docs/figures/unknown.md says of drift: references of simulated tools of two other seeds,
// as they are and with a fourteenth of the features, one channel of the 14, read higher.
func TestDriftOfTheSimulatedDrill(t *testing.T) {
	if os.Getenv("FLANK_STUDY") == "" {
		t.Skip("set FLANK_STUDY to drill three times 20 tools, which takes two minutes")
	}
	starts := func(seed uint64) [][]float32 {
		j := SimulatedHistory("m/a/c/h/i", seed)
		j.prepare()
		rows, _, _ := mustRows(t, j)
		return rows.starts
	}
	d := fitDrift(starts(1), nil)
	for seed := uint64(2); seed < 4; seed++ {
		of := starts(seed)
		for gain, want := range map[float32]int{1: 0, 1.3: 3, 2: 3} {
			var memory model.DriftMemory
			raised, sum := 0, 0.0
			for k, start := range of {
				center := slices.Clone(start)
				for j := range len(center) / 14 {
					center[j] *= gain
				}
				ref := model.Reference{Tool: fmt.Sprint(k)}
				ref.Learn(center, model.ReferenceSpec{Windows: 1, Mode: model.ReferenceKind})
				if memory.Observe(d, &ref) && memory.Drifted {
					raised = k + 1
				}
				sum += memory.F
			}
			t.Logf("seed %d, gain %v: raised at tool %d; mean F %.2f, raised from %.2f on", seed, gain, raised, sum/20, d.Raise)
			if raised != want {
				t.Errorf("raised at tool %d, want %d", raised, want)
			}
		}
	}
}

package train

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
	"github.com/flank-tcm/flank/pkg/unknown"
)

// Windows are counted by class and by tool, and every one of them once.
func TestDoubtsAddUp(t *testing.T) {
	var posterior []float64
	var y []int
	var groups []string
	for i := range 80 { // P(faulty) from 0 to 0.5 of healthy, 0.5 to 1 of faulty windows
		p := float64(i) / 80
		posterior, y = append(posterior, 1-p, p), append(y, i/40)
		groups = append(groups, fmt.Sprint("T", i%4))
	}
	c, err := unknown.NewConformal(posterior, y, groups, 2, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	m := &model.Model{Conformal: c, Novelty: &unknown.Novelty{Rate: 0.01}}
	d := &Doubts{}
	d.promise(m, []string{"healthy", "faulty"})
	b := newDoubter(d, []string{"healthy", "faulty"})
	for _, w := range []struct {
		tool            string
		class, decision int
		faulty, novelty float64
		want            model.Doubt
	}{
		{"A", 0, 0, 0.1, 0.5, ""},
		{"A", 0, 0, 0.1, 0.005, model.OutOfDistribution},
		{"A", 1, 1, 0.95, 0.005, ""}, // new, and faulty all the same
		{"B", 0, 1, 0.1, 0.5, model.Ambiguous},
		{"B", 1, 1, 0.5, 0.5, model.Implausible},
		{"B", 1, 1, 0.5, 0.5, model.Implausible},
	} {
		if got := b.add(m, w.tool, w.class, w.decision, []float64{1 - w.faulty, w.faulty}, w.novelty); got != w.want {
			t.Errorf("%+v: %q", w, got)
		}
	}
	b.finish()
	if h := d.Classes[0]; h != (ClassDoubt{Class: "healthy", Windows: 3, Coverage: 1, Tools: 2, CoverageByTool: 1, Interval: [2]score.Figure{1, 1}, OutOfDistribution: 1, Ambiguous: 1, New: 1}) || h.Unknown() != 2 {
		t.Errorf("healthy %+v", h)
	}
	if f := d.Classes[1]; f != (ClassDoubt{Class: "faulty", Windows: 3, Coverage: 1. / 3, Tools: 2, CoverageByTool: 0.5, Interval: [2]score.Figure{0, 1}, Implausible: 2, New: 1}) {
		t.Errorf("faulty %+v", f)
	}
	if d.Tools[0] != (ToolDoubt{"A", 2, 1, 1, 1, 0}) || d.Tools[1] != (ToolDoubt{"B", 1, 1, 0, 2, 2}) {
		t.Errorf("tools %+v", d.Tools)
	}
	if d.Judged.Rows != 2 || d.Decided.Rows != 6 || math.IsNaN(float64(d.Judged.GMean)) {
		t.Errorf("judged %+v, decided %+v", d.Judged, d.Decided)
	}
	if words := d.words(); words != "unknown: healthy 66.7 % (coverage 1.000, by tool 1.000 [1.000, 1.000]), faulty 66.7 % (coverage 0.333, by tool 0.500 [0.000, 1.000]) of windows, "+
		"at an error rate of 0.1 for each class, out of distribution up to a p-value of 0.01; recall 1.000 and specificity 1.000 of the windows that are left, 1.000 and 0.667 had none been unknown" {
		t.Error(words)
	}
}

// What is certain of a new tool is said of each class by the number of tools that
// have it, and that they are too few for the error rate.
func TestDoubtsPromise(t *testing.T) {
	var posterior []float64
	var y []int
	var groups []string
	for i := range 60 { // 20 healthy tools, of which two become faulty
		posterior, y, groups = append(posterior, 1-float64(i)/100, float64(i)/100), append(y, 0), append(groups, fmt.Sprint("T", i%20))
	}
	for i := range 6 {
		posterior, y, groups = append(posterior, 0.1, 0.9), append(y, 1), append(groups, fmt.Sprint("T", i%2))
	}
	c, err := unknown.NewConformal(posterior, y, groups, 2, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	d := &Doubts{}
	d.promise(&model.Model{Conformal: c}, []string{"healthy", "faulty"})
	for k, want := range []Promise{{"healthy", 20, 0.95 * 20 / 21, 20. / 21}, {"faulty", 2, 0.95 * 2 / 3, 2. / 3}} {
		p := d.Promises[k]
		if p.Class != want.Class || p.Tools != want.Tools || math.Abs(float64(p.Share-want.Share))+math.Abs(float64(p.Most-want.Most)) > 1e-12 {
			t.Errorf("%+v, want %+v", p, want)
		}
	}
	const few = "with 2 tools that have faulty windows no conformal sets can promise 0.95 for faulty: 0.667 is the most, and these promise 0.633"
	if got := d.tooFew(); len(got) != 1 || got[0] != few { // 20 healthy ones are enough for 0.95 of 20/21
		t.Errorf("%q", got)
	}
	var card strings.Builder
	d.markdown(&card)
	for _, want := range []string{"| healthy | 20 | 0.95 | 0.905 | 0.952 |\n", "| faulty | 2 | 0.95 | 0.633 | 0.667 |\n", "Note: " + few + "."} {
		if !strings.Contains(card.String(), want) {
			t.Errorf("the card does not say %q:\n%s", want, card.String())
		}
	}
}

// The interval over tools holds their mean and has no width where tools agree. One tool has
// none.
func TestIntervalOverTools(t *testing.T) {
	for name, tc := range map[string]struct {
		figures   []float64
		low, high float64
	}{
		"agreed":       {[]float64{0.9, 0.9, 0.9}, 0.9, 0.9},
		"nine of ten":  {[]float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 0}, 0.7, 1}, // 0 is drawn 0 to 3 times of ten with 98 %
		"one and none": {[]float64{0, 1}, 0, 1},
	} {
		if got := overTools(tc.figures); math.Abs(float64(got[0])-tc.low)+math.Abs(float64(got[1])-tc.high) > 1e-12 {
			t.Errorf("%s: %v, want %v to %v", name, got, tc.low, tc.high)
		}
	}
	if got := overTools([]float64{0.9}); !math.IsNaN(float64(got[0])) || !math.IsNaN(float64(got[1])) {
		t.Errorf("one tool: %v", got)
	}
}

// With a single worn tool costs are chosen on folds by row, in which near copies of a
// window are on both sides: there are no conformal sets, and the card says why.
func TestNoSetsFromFoldsByRow(t *testing.T) {
	j := latheJob(t)
	j.Inputs = []Input{latheInput(t, j.Layout, "lives", "lathe", latheCSV([]life{{"A", 48, 420}, {"B", 30, 170}, {"C", 30, 180}}))}
	m, r, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	const why = "no conformal sets: costs were chosen on folds by row, because tool A alone has faulty windows; windows of one tool are near copies"
	if m.Conformal != nil || r.Unknown.ErrorRate != 0 || len(r.Unknown.Promises) != 0 || !strings.Contains(r.Markdown("m.report"), "Note: "+why) {
		t.Errorf("sets %v; %+v", m.Conformal, r.Unknown)
	}
	j = latheJob(t) // with two worn tools and more there are some
	if m, r, err = Run(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if m.Conformal == nil || m.Conformal.Tools(0) != 5 || m.Conformal.Tools(1) != 4 || len(r.Unknown.tooFew()) != 2 || r.Unknown.Classes[1].Tools != 4 {
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

// What docs/alerts.md says of tools held out. With FLANK_STUDY set the simulated drill
// is measured too, which takes minutes.
func TestDoubtsOfToolsHeldOut(t *testing.T) {
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
		card := r.Markdown("m.report")
		t.Logf("%s\n%s", name, card[strings.Index(card, "## Unknown"):strings.Index(card, "## Wear trend")])
		for _, c := range r.Unknown.Classes {
			if c.Coverage < 0.91 || c.CoverageByTool < 0.91 || float64(c.Unknown()) > 0.08*float64(c.Windows) {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
}

// What docs/algorithm.md says of error rates: conformal sets alone, with one tool after
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
		counted := make([]*doubter, len(rates))
		for i := range counted {
			counted[i] = newDoubter(&Doubts{}, rows.classes)
		}
		for _, fold := range folds {
			one := []classify.Fold{fold} // a tool is held out more than once
			v, err := classify.CrossValidate(t.Context(), rows.x(), rows.Class, rows.group, tc.job.settings(rows), one)
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
					counted[i].add(sets[0], rows.group[r], rows.Class[r], v.Decision[r], v.Posterior[2*r:2*r+2], 1)
				}
			}
		}
		for i, rate := range rates {
			b := counted[i]
			b.finish()
			for _, c := range b.d.Classes {
				t.Logf("%s at %v: %s coverage %.3f, by tool %.3f, unknown %s", tc.name, rate, c.Class, float64(c.Coverage), float64(c.CoverageByTool), share(c.Unknown(), c.Windows))
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
	_, worn := rows.homes(1)
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

// What docs/algorithm.md says of drift: references of simulated tools of two other seeds,
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
				ref.Learn(center, model.ReferenceSpec{Windows: 1, Mode: model.ReferenceAuto})
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

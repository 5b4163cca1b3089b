package train

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

// robustOf returns what makes sensors read wrong on the tools that a job holds out.
func robustOf(t *testing.T, j Job) (*robust, rowTable) {
	t.Helper()
	j.prepare()
	rows, m, counts, err := j.rows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v, err := j.scoreByTool(t.Context(), rows, newReport(&j, m, rows, counts), rand.New(rand.NewPCG(1, foldSeed)))
	if err != nil || v == nil {
		t.Fatal(v, err)
	}
	b, why := j.robustFolds(&rows, m, v)
	if why != "" {
		t.Fatal(why)
	}
	return b, rows
}

// robustJobs are jobs whose folds take features relative to the reference in every way, by
// classifiers and by estimates of wear.
func robustJobs(t *testing.T) map[string]Job {
	out := make(map[string]Job)
	for _, mode := range []model.Mode{model.ReferenceKind, model.ReferenceLog, model.ReferenceOff, model.ReferenceAuto} {
		j := latheJob(t)
		quick(&j.Config)
		j.Config.Reference.Mode = mode
		out[string(mode)] = j
	}
	j := latheJob(t)
	quick(&j.Config)
	j.Inputs = []Input{latheInput(t, j.Layout, "few", "lathe", latheCSV(lives[:2]))}
	out["by wear"] = j
	return out
}

// Laws of faults: one that changes nothing leaves every score as it was, bit for bit; one that begins
// within a life leaves the windows before it; one of a sensor without weight leaves all; and
// windows of other tools do not count.
func TestFaultLaws(t *testing.T) {
	for name, j := range robustJobs(t) {
		b, rows := robustOf(t, j)
		all := []string{"rms", "power", "speed", "hum"}
		for _, f := range []card.Fault{{Kind: card.Gain, Factor: 1}, {Kind: card.Drift, Factor: 1}, {Kind: card.Noise}} {
			f.Sensors = all
			if got := b.scores(f, 1); !slices.Equal(got, b.clean) {
				t.Errorf("%s: %+v changes scores", name, f)
			}
		}
		for _, f := range card.FaultsOf([]string{"rms"}, false) {
			got, again := b.scores(f, 1), b.scores(f, 1)
			if !slices.Equal(got, again) {
				t.Errorf("%s: %s: scores differ the second time", name, f.Words())
			}
			if slices.Equal(got, b.clean) && f.Kind != card.Noise {
				t.Errorf("%s: %s: no score changes", name, f.Words())
			}
			for i, v := range got {
				if !(v >= 0 && v <= 1) || v != b.clean[i] && !b.has(f, i) {
					t.Fatalf("%s: %s: row %d, window %d of %d from %d on, has %v, before %v", name, f.Words(), i, b.at[i], b.length[i], b.begin[i], v, b.clean[i])
				}
			}
		}
		for _, f := range card.FaultsOf([]string{"speed"}, false) { // has a weight in no fold that weighs features
			weighs := slices.ContainsFunc(b.parts, func(p robustPart) bool { return p.weights[2] > 0 })
			if !weighs && !slices.Equal(b.scores(f, 1), b.clean) {
				t.Errorf("%s: %s changes scores without any weight", name, f.Words())
			}
		}
		for i := range rows.group {
			if b.begin[i] < b.length[i]/4 || b.begin[i] > b.length[i]-b.length[i]/4 || rows.group[b.last[i]] != rows.group[i] || b.at[b.last[i]] != max(0, b.begin[i]-1) {
				t.Fatalf("%s: row %d of %s: faults begin at %d of %d, the last window before is %d", name, i, rows.group[i], b.begin[i], b.length[i], b.last[i])
			}
		}
	}
}

// A fault is made in the features before the reference, which stays as it was.
func TestFaultsOfFeatures(t *testing.T) {
	level, square := signal.Gain{Power: 1}, signal.Gain{Power: 2}
	b := &robust{
		columns: 4, plain: []float32{1, 1, 1, 1, 2, 4, 3, -2, 3, 9, 5, -1},
		origins: []signal.FeatureOrigin{{Sensor: "F", Gain: level}, {Sensor: "F", Gain: square}, {Sensor: "F"}, {Sensor: "F", Gain: signal.Gain{Power: 2, Decades: true}}},
		at:      []int{0, 1, 2}, length: []int{3, 3, 3}, begin: []int{1, 1, 1}, last: []int{0, 0, 0},
	}
	nan := math.NaN()
	for _, tc := range []struct {
		fault card.Fault
		row   int
		want  []float64
	}{
		{card.Fault{Kind: card.Gain, Factor: 10}, 1, []float64{20, 400, 3, 0}},
		{card.Fault{Kind: card.Drift, Factor: 3}, 0, []float64{1, 1, 1, 1}},
		{card.Fault{Kind: card.Drift, Factor: 3}, 1, []float64{4, 16, 3, -2 + 2*math.Log10(2)}},
		{card.Fault{Kind: card.Drift, Factor: 3}, 2, []float64{9, 81, 5, -1 + 2*math.Log10(3)}},
		{card.Fault{Kind: card.Dead}, 1, []float64{0, 0, 0, 0}},
		{card.Fault{Kind: card.Stuck}, 2, []float64{1, 1, 1, 1}},
		{card.Fault{Kind: card.Missing}, 2, []float64{nan, nan, nan, nan}},
	} {
		x := slices.Clone(b.row(tc.row))
		b.spoil(x, []int{0, 1, 2, 3}, tc.fault, tc.row, nil)
		for j, v := range x {
			if w := tc.want[j]; math.Abs(float64(v)-w) > 1e-5*max(1, math.Abs(w)) || (w == w) != (v == v) {
				t.Errorf("%+v of row %d: %v, want %v", tc.fault, tc.row, x, tc.want)
			}
		}
	}
	var sum, squares float64
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		x := slices.Clone(b.row(1))
		b.spoil(x, []int{0}, card.Fault{Kind: card.Noise, Factor: 0.1}, 1, rng)
		d := math.Log(float64(x[0]) / 2)
		sum, squares = sum+d, squares+d*d
	}
	if sd := math.Sqrt(squares / 2000); math.Abs(sum/2000) > 0.01 || math.Abs(sd-0.1) > 0.01 {
		t.Errorf("10 %% noise: mean %v and standard deviation %v of logs", sum/2000, sd)
	}
}

// Sensors of one unit get a gain together, and one whose samples Flank has is missing only:
// flags tell if it is dead or stuck.
func TestFaultsThatAreTried(t *testing.T) {
	level := signal.Gain{Power: 1}
	b := &robust{
		columns: 5,
		origins: []signal.FeatureOrigin{
			{Sensor: "F_c", Group: "N", Gain: level}, {Sensor: "F_c", Group: "N"}, {Sensor: "F_f", Group: "N", Gain: level}, {Sensor: "acc", Group: "g", Gain: level, Samples: true}, {Sensor: "hum", Gain: level},
		},
		parts: []robustPart{{weights: []float64{1, 0, 1, 0, 0}}, {weights: []float64{0, 1, 0, 0.2, 0.05}}},
	}
	var words []string
	for _, f := range b.faults() {
		words = append(words, f.Words())
	}
	if len(words) != 12+12+10+5+2 {
		t.Errorf("%d faults: %s", len(words), strings.Join(words, "; "))
	}
	for _, want := range []string{"F_c reads zero", "acc is dead, stuck or missing, which its quality flags tell", "F_c and F_f read 10 % more", "F_c, F_f and acc have 5 % noise"} {
		if !slices.Contains(words, want) {
			t.Errorf("no %q in %s", want, strings.Join(words, "; "))
		}
	}
}

// A report and an exam have the table, the same with any number of workers, and the verdict has
// its line.
func TestRobustness(t *testing.T) {
	t.Parallel()
	var first []byte
	var m *model.Model
	for workers := 1; workers <= 3; workers += 2 {
		j := latheJob(t)
		quick(&j.Config)
		j.Workers = workers
		var r *card.Report
		var err error
		if m, r, err = Run(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		b := r.Robustness
		if b.Note != "" || b.Tools != 5 || b.Worn != 4 || math.Abs(float64(b.Clean.GMean-r.Pooled.GMean)) > 1e-12 || len(b.Trials) < 24 || !(b.Worst <= b.Mean) || b.Mean > 1 {
			t.Fatalf("%+v", b)
		}
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && string(first) != string(text) {
			t.Errorf("%d workers: %s\none: %s", workers, text, first)
		}
		first = text
		for _, want := range []string{"If a sensor reads wrong", "reads 20 % less to 25 % more"} {
			if !strings.Contains(r.Summary(), want) || !strings.Contains(cardText(t, r), want) {
				t.Errorf("no %q in\n%s", want, r.Summary())
			}
		}
		if !(b.Worst < 0.9*b.Clean.GMean) || r.Verdict.Level == card.SwitchOn {
			t.Errorf("a network of two features does not mind that one is wrong: %+v", b.Kinds)
		}
		at := slices.IndexFunc(r.Verdict.Reasons, func(r card.Reason) bool { return r.About == "sensors that read wrong" })
		if at < 0 || (r.Verdict.Reasons[at].Level == card.SwitchOn) != (b.Worst >= 0.9*b.Clean.GMean && !slices.ContainsFunc(b.Trials, func(t card.Trial) bool { return len(t.Sensors) == 1 && t.Missed > 0 })) {
			t.Errorf("%+v", r.Verdict)
		}
	}
	e, err := Exam{Model: m, Inputs: latheJob(t).Inputs, Alarm: alarm.Default}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if b := e.Robustness; b == nil || b.Note != "" || len(b.Trials) < 24 || !strings.Contains(e.Text(), "If a sensor reads wrong, on 5 tools of which 4 get worn. ") {
		t.Errorf("%+v\n%s", b, e.Text())
	}
}

// Without tools held out, or worn ones, nothing is measured, and the card says why.
func TestRobustnessNotMeasured(t *testing.T) {
	off, far := latheJob(t), tableJob(t, labelledTable(false), true)
	off.Config.Evaluate.ByTool = "off"
	for why, j := range map[string]Job{"no tool is held out": off, "the features take more than 64 MiB, or are not in memory": far} {
		quick(&j.Config)
		_, r, err := Run(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if r.Robustness.Note != why || !strings.Contains(cardText(t, r), "Not measured, because "+why) {
			t.Errorf("%+v", r.Robustness)
		}
	}
}

package train

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/classify/vote"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// sensorNames are of sensors that follow wear, each by two channels.
var sensorNames = []string{"force", "power", "acc", "sound"}

// sensorLevels returns what the channels of sensorNames say at a wear.
func sensorLevels(um float64, rng *rand.Rand) []float32 {
	var out []float32
	for s := range sensorNames {
		level := float64(10*(s+1)) * (1 + um/float64(200+60*s)) * (1 + 0.02*rng.NormFloat64())
		out = append(out, float32(level), float32(1.4*level*(1+0.05*rng.NormFloat64())))
	}
	return out
}

// guardedJob is of six tools, four of which get worn, with a guard.
func guardedJob(t *testing.T) Job {
	rng := rand.New(rand.NewPCG(5, 6))
	j := latheJob(t)
	j.Config.Guard = classify.GuardVote
	var channels []signal.Channel
	var b strings.Builder
	b.WriteString("tool")
	for _, s := range sensorNames {
		for _, of := range []string{"_RMS", "_MAX"} {
			channels = append(channels, signal.Channel{Name: s + of, Kind: signal.Feature, Rate: 1})
			b.WriteString("," + s + of)
		}
	}
	b.WriteString(",vb\n")
	for tool, end := range []float64{420, 390, 140, 400, 450, 180} {
		for s := range 50 {
			um := end * float64(s) / 49
			fmt.Fprintf(&b, "T%d", tool)
			for _, v := range sensorLevels(um, rng) {
				fmt.Fprintf(&b, ",%.4f", v)
			}
			fmt.Fprintf(&b, ",%.1f\n", um)
		}
	}
	j.Layout = layout(t, "sensors", channels)
	j.Inputs = []Input{latheInput(t, j.Layout, "sensors", "lathe", b.String())}
	return j
}

// trained is what a job trains, once for all tests, so none may change it.
type trained struct {
	sync.Once
	m        *model.Model
	r        *card.Report
	err      error
	progress []progress
}

type progress struct {
	phase       string
	done, total int
}

var guardedOnce, latheOnce, threeOnce trained

func (o *trained) of(t *testing.T, job func(*testing.T) Job) (*model.Model, *card.Report) {
	t.Helper()
	o.Do(func() {
		j := job(t)
		j.Progress = func(phase string, done, total int) {
			o.progress = append(o.progress, progress{phase, done, total})
		}
		o.m, o.r, o.err = Run(context.Background(), j)
	})
	if o.err != nil {
		t.Fatal(o.err)
	}
	return o.m, o.r
}

func guardedModel(t *testing.T) (*model.Model, *card.Report) {
	t.Helper()
	return guardedOnce.of(t, guardedJob)
}

func latheModel(t *testing.T) (*model.Model, *card.Report) {
	t.Helper()
	return latheOnce.of(t, func(t *testing.T) Job { return latheJob(t) })
}

func threeModel(t *testing.T) (*model.Model, *card.Report) {
	t.Helper()
	return threeOnce.of(t, func(t *testing.T) Job { return threeJob(t) })
}

// Where a guard bounds the network, a sensor that is dead does what a missing one does, one that is stuck nearly so, and neither
// loses an alarm: in the report's trials, and in a judge of windows, which says of which channels it is.
func TestFailedSensorsAbstain(t *testing.T) {
	t.Parallel()
	m, r := guardedModel(t)
	if m.Classifier.Guard() == nil {
		t.Fatal(r.Summary())
	}
	effects := make(map[string]map[card.FaultKind]card.Effect)
	for _, trial := range r.Robustness.Trials {
		if len(trial.Sensors) == 1 && (trial.Kind == card.Dead || trial.Kind == card.Missing || trial.Kind == card.Stuck) {
			if effects[trial.Sensors[0]] == nil {
				effects[trial.Sensors[0]] = make(map[card.FaultKind]card.Effect)
			}
			effects[trial.Sensors[0]][trial.Kind] = trial.Effect
		}
	}
	if len(effects) != len(sensorNames) {
		t.Errorf("trials of %d sensors", len(effects))
	}
	for sensor, e := range effects {
		if e[card.Dead] != e[card.Missing] {
			t.Errorf("%s: %+v if it is dead, %+v if it is missing", sensor, e[card.Dead], e[card.Missing])
		}
		if s := e[card.Stuck]; s.Missed > 0 || float64(s.GMean) < 0.9 || e[card.Dead].Missed > 0 || float64(e[card.Dead].GMean) < 0.9 {
			t.Errorf("%s: %+v", sensor, e)
		}
	}
	for name, tc := range map[string]struct {
		spoil func(x, before []float32)
		want  signal.Quality
		after int            // windows until it is known
		flags signal.Quality // of the channels, from outside
	}{
		"as it should be": {func([]float32, []float32) {}, 0, 0, 0},
		"zero":            {func(x, _ []float32) { x[2], x[3] = 0, 0 }, signal.Flatline, 0, 0},
		"stuck":           {func(x, before []float32) { x[2], x[3] = before[2], before[3] }, signal.Flatline, 1, 0},
		"one of two":      {func(x, _ []float32) { x[2] = 0 }, 0, 0, 0},
		"flagged already": {func(x, _ []float32) { x[2], x[3] = 0, 0 }, 0, 0, signal.Flatline},
	} {
		judge, rng := m.NewJudge(), rand.New(rand.NewPCG(8, 9))
		if got := judge.Sensors(); len(got) != 4 || !slices.Contains(got, "power") {
			t.Fatalf("sensors %v", got)
		}
		var ref model.Reference
		var memory model.Memory
		var before []float32
		const began, mended = 20, 56
		for n := range 60 {
			x, flags := sensorLevels(7*float64(n), rng), make([]signal.Quality, 8)
			struck := n >= began && n < mended
			if struck {
				tc.spoil(x, before)
				flags[2], flags[3] = tc.flags, tc.flags
			} else {
				before = slices.Clone(x)
			}
			w := &window.Window{Context: signal.Context{Machine: "lathe", Tool: "new"}, Start: time.Unix(int64(n), 0), Length: time.Second, Quality: flags}
			for _, v := range x {
				w.Samples = append(w.Samples, []float32{v})
			}
			v := judge.Judge(w, &ref, &memory)
			if v.Found == nil {
				t.Fatalf("%s, window %d: %+v", name, n, v)
			}
			for c, q := range v.Found {
				want := signal.Quality(0)
				if (c == 2 || c == 3) && struck && n >= began+tc.after {
					want = tc.want
				}
				if q != want {
					t.Errorf("%s, window %d, channel %d: flags %v, want %v", name, n, c, q, want)
				}
				if missing := judge.Cutting()[c] != judge.Cutting()[c]; missing != (q|flags[c] != 0) {
					t.Errorf("%s, window %d: feature %d is %v", name, n, c, judge.Cutting()[c])
				}
			}
			if um := 7 * n; n >= 5 && (um < 230 && v.Decided != 0 || um > 370 && v.Decided != 1) && name != "one of two" {
				t.Errorf("%s, window %d of %d µm: %+v", name, n, um, v)
			}
		}
		// A window that stands alone knows zero and missing, and not stuck.
		w := &window.Window{Context: signal.Context{Machine: "lathe", Tool: "alone"}, Start: time.Unix(99, 0), Length: time.Second, Quality: make([]signal.Quality, 8)}
		x := sensorLevels(0, rng)
		tc.spoil(x, x)
		for _, v := range x {
			w.Samples = append(w.Samples, []float32{v})
		}
		for range 4 {
			v := judge.Judge(w, new(model.Reference), nil)
			if failed := v.Found[2] != 0; failed != (name == "zero" || name == "flagged already") {
				t.Errorf("%s alone: %v", name, v.Found)
			}
		}
	}
}

// In trials a sensor is stuck at what it read in the window before, so that two more make three; a feature of two sensors is missing if
// one has failed.
func TestMending(t *testing.T) {
	if testing.Short() {
		t.Skip("trains, and judges trials with broken sensors")
	}
	m, _ := guardedModel(t)
	origins := m.NewJudge().Origins()
	origins[7].Other = "power"
	b := &robust{origins: origins, columns: 8, last: []int{0, 0, 0}}
	for range 3 {
		b.plain = append(b.plain, 1, 2, 3, 4, 5, 6, 7, 8)
	}
	mend := b.mending(m.Classifier.Guard())
	mend(b.row(0), 0)
	for i := 1; i <= 2; i++ {
		x := slices.Clone(b.row(i))
		for _, j := range []int{0, 1, 4, 5, 6, 7} {
			x[j] += float32(i)
		}
		for j, v := range mend(x, i) {
			if want := i == 2 && (j == 2 || j == 3 || j == 7); v != v != want {
				t.Errorf("row %d, feature %d: %v", i, j, v)
			}
		}
	}
}

// A gain is taken out of each feature of its sensor by the power that it has; a feature that is of another sensor too keeps its value.
func TestMendingOfAGain(t *testing.T) {
	m, _ := guardedModel(t)
	origins := m.NewJudge().Origins()
	origins[7].Other, origins[3].Gain.Power = "power", 2
	var memory vote.Memory
	if err := json.Unmarshal([]byte(`{"power":{"windows":0,"steps":{"gain":0.5}}}`), &memory); err != nil {
		t.Fatal(err)
	}
	x := []float32{1, 2, 3, 4, 5, 6, 7, 8}
	model.NewWatch(m.Classifier.Guard(), origins).Mend(&memory, x, true)
	for j, want := range []float64{1, 2, 3 * math.Exp(-0.5), 4 * math.Exp(-1), 5, 6, 7, 8} {
		if math.Abs(float64(x[j])-want) > 1e-6 {
			t.Errorf("feature %d is %v, want %v", j, x[j], want)
		}
	}
}

// A step in the gain of a sensor is taken out of its features, by the power that each has, also across a restart; the verdict has it,
// and a new tool begins without it. A window that stands alone knows no step.
func TestStepOfAGain(t *testing.T) {
	if testing.Short() {
		t.Skip("trains on tools whose sensor changes its gain")
	}
	t.Parallel()
	j := guardedJob(t)
	j.Config.Guard, j.Config.Reference.Mode = classify.GuardVoteAndGains, model.ReferenceLog
	m, r, err := Run(t.Context(), j)
	if err != nil || m.Classifier.Guard() == nil || r.Fit.Guard.StepsOff != "" {
		t.Fatal(err, r.Fit.Guard)
	}
	judge, rng := m.NewJudge(), rand.New(rand.NewPCG(8, 9))
	power := slices.Index(judge.Sensors(), "power")
	var ref model.Reference
	var memory model.Memory
	const began = 20
	for n := range 70 {
		tool, um := "new", 7*float64(n)
		if n >= 50 {
			tool, um = "newer", 7*float64(n-50)
		}
		if n == 50 {
			ref, memory = model.Reference{}, model.Memory{}
		}
		x := sensorLevels(um, rng)
		right := slices.Clone(x)
		if n >= began {
			x[2], x[3] = 1.6*x[2], 1.6*x[3]
		}
		w := &window.Window{Context: signal.Context{Machine: "lathe", Tool: tool}, Start: time.Unix(int64(n), 0), Length: time.Second, Quality: make([]signal.Quality, 8)}
		for _, v := range x {
			w.Samples = append(w.Samples, []float32{v})
		}
		b, err := json.Marshal(memory)
		if err != nil {
			t.Fatal(err)
		}
		if memory = (model.Memory{}); json.Unmarshal(b, &memory) != nil {
			t.Fatalf("%s", b)
		}
		v := judge.Judge(w, &ref, &memory)
		for k, gain := range v.Gains {
			want := 1.0
			if k == power && n > began && n < 50 {
				want = 1.6
			}
			if math.Abs(math.Log(gain/want)) > 0.1 || want == 1 && gain != 1 {
				t.Errorf("window %d: %s reads %v times, want %v", n, judge.Sensors()[k], gain, want)
			}
		}
		if n > began && n < 50 {
			for c, v := range judge.Cutting() {
				if off := float64(v / right[c]); math.Abs(off-1) > 0.1 || c != 2 && c != 3 && off != 1 {
					t.Errorf("window %d: feature %d is %v, without the step %v", n, c, v, right[c])
				}
			}
		}
		if n >= 5 && n < 50 && n != began && (um < 230 && v.Decided != 0 || um > 370 && v.Decided != 1) {
			t.Errorf("window %d of %v µm: %+v", n, um, v)
		}
		if alone := judge.Judge(w, new(model.Reference), nil); slices.Max(alone.Gains) != 1 {
			t.Errorf("window %d alone: %v", n, alone.Gains)
		}
	}
}

// Of three worn tools each network that judges one held out has two to learn from, and no guard; the report says so.
func TestGuardOfThreeWornTools(t *testing.T) {
	t.Parallel()
	j := guardedJob(t)
	j.Config.Label.VBMaxUM = 395
	m, r, err := Run(t.Context(), j)
	if err != nil || m.Classifier.Guard() == nil {
		t.Fatal(err)
	}
	if r.Robustness.Guarded || !strings.Contains(r.Robustness.Unguarded, "it takes 3") || !strings.HasPrefix(r.Robustness.Words(), "The networks that judge here have no guard (") {
		t.Errorf("guarded %t, %q", r.Robustness.Guarded, r.Robustness.Unguarded)
	}
	if text := r.Summary(); !strings.Contains(text, "have no guard to bound what one sensor can do: 2 of the tools have worn windows with a label, and it takes 3; ") {
		t.Error(text)
	}
}

// Steps of gains are not looked for where windows overlap.
func TestGuardOfOverlappingWindows(t *testing.T) {
	c := DefaultConfig()
	if s := c.Settings(1); s.Guard != classify.GuardVoteAndGains {
		t.Errorf("by default %q", s.Guard)
	}
	c.Window.Hop = c.Window.Length / 2
	if s := c.Settings(1); s.Guard != classify.GuardVote {
		t.Errorf("with windows that overlap %q", s.Guard)
	}
	c.Guard = classify.GuardOff
	if s := c.Settings(1); s.Guard != classify.GuardOff {
		t.Errorf("switched off %q", s.Guard)
	}
}

// An empty guard would be one that is off, in silence.
func TestEmptyGuard(t *testing.T) {
	file := filepath.Join(t.TempDir(), "train.yaml")
	if err := os.WriteFile(file, []byte("seed: 3\nguard: \"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadConfig(file); err == nil || !strings.Contains(err.Error(), "train.yaml:2: guard: it is empty: choose vote-and-gains, vote or off") {
		t.Error(err)
	}
}

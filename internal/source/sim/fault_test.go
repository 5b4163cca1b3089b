package sim

import (
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// span is a window as tests of faults look at it.
type span struct {
	at      time.Duration // of its first sample, by the sample counter
	samples [][]float32
	quality []signal.Quality
}

// windows cuts all windows of 16 s of drilling with the given faults, and counts
// gaps.
func windows(t *testing.T, faults ...string) (all []span, gaps int) {
	t.Helper()
	var fs []Fault
	for _, text := range faults {
		f, err := parseFault(text)
		if err != nil {
			t.Fatal(err)
		}
		fs = append(fs, f)
	}
	src, err := WithFaults(newDrill(t, Settings{Seed: 2, Tools: []Tool{tool(Worn, 16*time.Second)}, Hole: 16 * time.Second}), fs)
	if err != nil {
		t.Fatal(err)
	}
	c, err := source.NewCutter(src, window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	for {
		cut, err := c.Next(t.Context())
		if err == io.EOF {
			return all, gaps
		}
		if err != nil {
			t.Fatal(err)
		}
		if cut.Gap != nil {
			gaps++
			continue
		}
		w := span{at: time.Duration(cut.Window.First) * time.Second / fastRate, quality: slices.Clone(cut.Window.Quality)}
		for _, x := range cut.Window.Samples {
			w.samples = append(w.samples, slices.Clone(x))
		}
		all = append(all, w)
	}
}

// Each fault strikes the channel and the time it is asked to, has its flag, and
// nothing else changes.
func TestFaults(t *testing.T) {
	const ch07 = 6
	sound, gaps := windows(t)
	if len(sound) != 16 || gaps != 0 {
		t.Fatalf("%d windows and %d gaps without faults", len(sound), gaps)
	}
	for fault, tc := range map[string]struct {
		flag      signal.Quality
		channel   int
		from, end int // seconds that it strikes
		holds     func(x, was []float32) bool
	}{
		"dropout:ch07@5s+3s": {signal.Dropout, ch07, 5, 8, func(x, _ []float32) bool { return x[0] != x[0] && x[19_999] != x[19_999] }},
		"dropout:thrust@12s": {signal.Dropout, 12, 12, 16, func(x, _ []float32) bool { return x[0] != x[0] }},
		"flatline:ch07@5s+3s": {signal.Flatline, ch07, 5, 8, func(x, _ []float32) bool {
			return slices.Min(x) == sound[5].samples[ch07][0] && slices.Max(x) == slices.Min(x)
		}},
		"clipping:ch07@5s+3s":  {signal.Clipped, ch07, 5, 8, func(x, _ []float32) bool { return slices.Max(x) == 50 && slices.Min(x) == -50 }},
		"gain:ch07@5s+3s":      {0, ch07, 5, 8, func(x, was []float32) bool { return math.Abs(rms(x)/rms(was)-1.25) < 1e-6 }},
		"gain:torque@5s+3s=.8": {0, 13, 5, 8, func(x, was []float32) bool { return math.Abs(mean(x)/mean(was)-0.8) < 1e-6 }},
		"dead:ch07@5s+3s":      {signal.Flatline, ch07, 5, 8, func(x, _ []float32) bool { return rms(x) == 0 }},
		"bias:ch07@5s+3s=2.5":  {0, ch07, 5, 8, func(x, was []float32) bool { return math.Abs(mean(x)-mean(was)-2.5) < 1e-3 }},
		"bias:torque@5s+3s=-1": {0, 13, 5, 8, func(x, was []float32) bool { return math.Abs(mean(x)-mean(was)+1) < 1e-3 }},
		"non_finite:ch07@5s+3s": {signal.NonFinite, ch07, 5, 8, func(x, _ []float32) bool {
			n := 0
			for _, v := range x {
				if math.IsInf(float64(v), 1) {
					n++
				}
			}
			return n == 20
		}},
		"non_finite:torque@5s+3s": {signal.NonFinite, 13, 5, 8, func(x, _ []float32) bool { return math.IsInf(float64(x[0]), 1) && !math.IsInf(float64(x[1]), 1) }},
	} {
		got, gaps := windows(t, fault)
		if len(got) != len(sound) || gaps != 0 {
			t.Errorf("%s: %d windows and %d gaps", fault, len(got), gaps)
			continue
		}
		for i, w := range got {
			for c, x := range w.samples {
				struck := c == tc.channel && i >= tc.from && i < tc.end
				switch {
				case !struck && (!slices.Equal(x, sound[i].samples[c]) || w.quality[c] != 0):
					t.Errorf("%s: second %d, channel %d is not as it was, or has flags %v", fault, i, c+1, w.quality[c].Names())
				case struck && (!tc.holds(x, sound[i].samples[c]) || w.quality[c] != tc.flag):
					t.Errorf("%s: second %d: flags %v, want %v; samples begin %v", fault, i, w.quality[c].Names(), tc.flag.Names(), x[:3])
				}
			}
		}
	}
}

// A fault begins and ends at the sample.
func TestFaultWithinABlock(t *testing.T) {
	got, _ := windows(t, "bias:ch07@5.25s+0.5s=3")
	sound, _ := windows(t)
	for i, v := range got[5].samples[6] {
		want := sound[5].samples[6][i]
		if i >= 5000 && i < 15_000 {
			want += 3
		}
		if v != want {
			t.Fatalf("sample %d: %v, want %v", i, v, want)
		}
	}
}

// What befalls clocks leaves the samples as they are and raises flags.
func TestClockFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates a tool for each fault")
	}
	sound, _ := windows(t)
	for fault, tc := range map[string]struct {
		flag       signal.Quality
		seconds    []int // with the flag, among others of a drift
		untouched  int   // before this second there is none
		everywhere bool
	}{
		"clock_step@8s=2":             {signal.ClockStep, []int{8}, 8, true},
		"clock_step@8s=-3600":         {signal.ClockStep, []int{8}, 8, true},
		"clock_step:thrust@8s+4s=0.5": {signal.ClockStep, []int{8, 12}, 8, false},
		"clock_drift@2s=0.02":         {signal.RateError, []int{14}, 3, true},
	} {
		got, _ := windows(t, fault)
		if len(got) != len(sound) {
			t.Errorf("%s: %d windows", fault, len(got))
			continue
		}
		for i, w := range got {
			for c := range w.samples {
				if !slices.Equal(w.samples[c], sound[i].samples[c]) {
					t.Fatalf("%s: second %d, channel %d: samples changed", fault, i, c+1)
				}
				if i < tc.untouched && w.quality[c] != 0 {
					t.Errorf("%s: second %d, channel %d: flags %v before it strikes", fault, i, c+1, w.quality[c].Names())
				}
				if slices.Contains(tc.seconds, i) && (tc.everywhere || c == 12) && w.quality[c]&tc.flag == 0 {
					t.Errorf("%s: second %d, channel %d: flags %v", fault, i, c+1, w.quality[c].Names())
				}
				if !tc.everywhere && c < 12 && w.quality[c] != 0 {
					t.Errorf("%s: second %d, channel %d has another clock, and flags %v", fault, i, c+1, w.quality[c].Names())
				}
			}
		}
	}
}

// Blocks that are missing leave a gap; those that are late are waited for.
func TestBlockFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates a tool for each fault")
	}
	sound, _ := windows(t)
	for _, fault := range []string{"missing@5s+3s", "missing:ch01@5s+3s", "missing:torque@5s+3s", "missing@5.5s+2s"} {
		got, gaps := windows(t, fault)
		if gaps != 1 || len(got) != len(sound)-3 {
			t.Errorf("%s: %d gaps, %d windows of %d", fault, gaps, len(got), len(sound))
			continue
		}
		for i, w := range slices.Delete(slices.Clone(sound), 5, 8) {
			if got[i].at != w.at || !equalSamples(got[i].samples, w.samples) {
				t.Errorf("%s: window %d at %v differs", fault, i, got[i].at)
			}
		}
	}
	for _, fault := range []string{"late:thrust@5s+3s", "late:ch01@0s=2.5", "late:ch12@5s=60"} {
		got, gaps := windows(t, fault)
		if gaps != 0 || len(got) != len(sound) {
			t.Errorf("%s: %d gaps, %d windows", fault, gaps, len(got))
			continue
		}
		for i := range got {
			if !equalSamples(got[i].samples, sound[i].samples) {
				t.Errorf("%s: window %d differs", fault, i)
			}
		}
	}
}

func equalSamples(a, b [][]float32) bool { return slices.EqualFunc(a, b, slices.Equal[[]float32]) }

// late blocks come when they are due, blocks of the other rate in time, or when those are due.
func TestLateBlocksAreLate(t *testing.T) {
	slow := Fault{Kind: late, Channel: "torque", From: 2 * time.Second, For: 3 * time.Second, Size: 4}
	// Second 2 is over at 3 and comes 4 s after; those after the fault keep their place behind it.
	checkLate(t, []Fault{slow}, []int64{1, 102, 207, 308, 409, 509, 609, 709, 809, 910})
	// Fast blocks are 2 s late, and do not wait for the slow ones, which are later: at 7 there are four of them, and the fifth is due.
	checkLate(t, []Fault{slow, {Kind: late, Channel: "ch01", Size: 2}}, []int64{0, 100, 204, 305, 406, 506, 607, 707, 807, 908})
}

func checkLate(t *testing.T, faults []Fault, want []int64) {
	t.Helper()
	src, err := WithFaults(newDrill(t, Settings{Tools: []Tool{tool(Worn, 10*time.Second)}, Hole: 10 * time.Second}), faults)
	if err != nil {
		t.Fatal(err)
	}
	var order []int64 // seconds of the slow blocks, with how many fast ones came before
	fast := int64(0)
	for {
		b, err := src.Next(t.Context())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if b.Group == 0 {
			fast++
			continue
		}
		order = append(order, b.First/100*100+fast)
	}
	if !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

func TestParseFault(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rule := rapid.SampledFrom(kinds).Draw(r, "kind")
		f := Fault{Kind: rule.kind, Channel: "ch07", From: time.Duration(rapid.Int64Range(0, 1e13).Draw(r, "from")), For: time.Duration(rapid.Int64Range(0, 1e13).Draw(r, "for"))}
		if rule.size != 0 {
			f.Size = rapid.Float64Range(0, 1e9).Draw(r, "size")
		}
		got, err := parseFault(f.String())
		if err != nil || got != f {
			r.Errorf("%s: %+v, %v; want %+v", f, got, err, f)
		}
	})
	for text, want := range map[string]string{
		"":                            "does not say when",
		"flatline:ch07":               "does not say when: write kind:channel@from+for=size, for example flatline:ch07@30s+10s",
		"stuck:ch07@3s":               `kind "stuck" is not one of dropout, flatline, clipping, gain, dead, bias, non_finite, clock_step, clock_drift, missing, late`,
		"flatline@3s":                 "flatline strikes one channel: name it, as in flatline:ch07@30s",
		"flatline:ch07@soon":          `"soon" is not a time such as 30s`,
		"flatline:ch07@3s+":           `"" is not a positive time such as 10s`,
		"flatline:ch07@3s+0s":         `"0s" is not a positive time`,
		"flatline:ch07@-3s":           "times must not be negative",
		"flatline:ch07@3s=2":          "flatline has none",
		"gain:ch07@3s=-2":             "must be positive",
		"dead:ch07@3s=2":              "dead has none",
		"bias:ch07@3s=NaN":            "must be a number",
		"bias:ch07@3s=much":           `"much" is not a number but 0`,
		"clipping:ch07@3s=-1":         "must be positive",
		"late@3s":                     "name a channel of the rate",
		"flatline:ch07@3s+10s=2=3":    "is not a number",
		"clock_step:a:b@3000000h+10s": "is not a time",
	} {
		if f, err := parseFault(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want an error with %q", text, f, err, want)
		}
	}
}

func FuzzParseFault(f *testing.F) {
	f.Add("flatline:ch07@30s+10s")
	f.Add("clock_step@1m=-2.5")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseFault(text)
		if err != nil {
			return
		}
		if again, err := parseFault(got.String()); err != nil || again != got {
			t.Errorf("%q is %+v, written %q, which is %+v, %v", text, got, got, again, err)
		}
	})
}

func TestWithFaultsRejects(t *testing.T) {
	for text, want := range map[string]string{
		"flatline:ch99@3s":   `no channel "ch99" in layout gun-drill`,
		"clipping:thrust@3s": "the range of thrust is not known",
	} {
		f, err := parseFault(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := WithFaults(newDrill(t, Settings{Tools: Tools(1, time.Minute)}), []Fault{f}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := WithFaults(newDrill(t, Settings{Tools: Tools(1, time.Minute)}), []Fault{{Kind: "x"}}); err == nil {
		t.Error("a fault of no kind is taken")
	}
}

package card

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/score"
)

// tried returns a robustness of six worn tools with the given trials.
func tried(trials ...Trial) *Robustness {
	r := &Robustness{Tools: 6, Worn: 6, Clean: Effect{GMean: 0.98, False: 1}, alarmed: 6, clean: Alarms{N: 8}}
	r.SetTrials(trials)
	return r
}

func trial(kind FaultKind, factor float64, gmean score.Figure, missed int, sensors ...string) Trial {
	t := Trial{Fault: Fault{Kind: kind, Factor: factor, Sensors: sensors}, Effect: Effect{GMean: gmean, Missed: missed}}
	if missed > 0 {
		t.MissedTools = []string{"T1", "T2", "T3"}[:missed]
	}
	return t
}

// madeUpTrials are trials of two sensors that measure in one unit, and of one whose samples
// Flank has.
func madeUpTrials() []Trial {
	var out []Trial
	for _, f := range slices.Concat(FaultsOf([]string{"F_c"}, false), FaultsOf([]string{"F|f"}, false), FaultsOf([]string{"acc"}, true), FaultsOf([]string{"F_c", "F|f"}, false), NoiseOf([]string{"F_c", "F|f", "acc"})) {
		t := trial(f.Kind, f.Factor, 0.97-score.Figure(len(out))/1000, 0, f.Sensors...)
		t.Flagged = f.Flagged
		switch {
		case f.Kind == Gain && f.Factor == 1.5:
			t.GMean, t.Missed, t.Late, t.MissedTools = 0.75, 1, 1, []string{"T1"}
		case f.Kind == Dead:
			t.GMean, t.Missed, t.MissedTools = 0, 3, []string{"T1", "T2", "T3"}
		case f.Kind == Stuck:
			t.False = 2
		}
		out = append(out, t)
	}
	return out
}

// What is counted of a trial is what was not so without the fault.
func TestTrial(t *testing.T) {
	lives := func(a, b, c, d string) []Life {
		return []Life{
			lifeOf("A", "0000000011111111", a), lifeOf("B", "0000000011111111", b),
			lifeOf("C", "0000000011111111", c), lifeOf("D", "0000000000000000", d),
		}
	}
	s := alarm.Settings{K: 2, N: 3}
	r := NewRobustness(lives("0000000099999999", "0000000099999999", "0000000000000000", "0000000000000000"), s, second, 0)
	if r.Note != "" || r.Tools != 4 || r.Worn != 3 || r.Clean.Missed != 1 || r.Clean.False != 0 || r.Clean.Late != 0 {
		t.Fatalf("%+v", r)
	}
	for what, tc := range map[string]struct {
		lives []Life
		want  Effect
		tools []string
	}{
		"the same":                       {lives("0000000099999999", "0000000099999999", "0000000000000000", "0000000000000000"), Effect{GMean: r.Clean.GMean}, nil},
		"an alarm less":                  {lives("0000000099999999", "0000000000000000", "0000000000000000", "0000000000000000"), Effect{GMean: 0.57735, Missed: 1}, []string{"B"}},
		"3 windows later is in time":     {lives("0000000000099999", "0000000099999999", "0000000000000000", "0000000000000000"), Effect{GMean: 0.73598}, nil},
		"4 windows later is late":        {lives("0000000000009999", "0000000099999999", "0000000000000000", "0000000000000000"), Effect{GMean: 0.70711, Late: 1}, nil},
		"a false alarm":                  {lives("0000000099999999", "0000000099999999", "0000000000000000", "0000990000000000"), Effect{GMean: 0.79582, False: 1}, nil},
		"one that was missed is not new": {lives("0000000099999999", "0000000099999999", "0000000000000009", "0000000000000000"), Effect{GMean: 0.84163}, nil},
	} {
		got := r.Try(Fault{Kind: Dead, Sensors: []string{"x"}}, tc.lives)
		if d := got.GMean - tc.want.GMean; d > 1e-4 || d < -1e-4 {
			t.Errorf("%s: G-mean %v, want %v", what, got.GMean, tc.want.GMean)
		}
		got.GMean = tc.want.GMean
		if got.Effect != tc.want || !slices.Equal(got.MissedTools, tc.tools) {
			t.Errorf("%s: %+v, want %+v", what, got, tc.want)
		}
	}
}

// With measured wear, late is also past one and a half times the limit.
func TestLateByWear(t *testing.T) {
	wear := []float64{100, 200, 250, 310, 350, 400, 440, 460, 480}
	lives := func(scores string) []Life {
		return []Life{lifeOf("A", "000111111", scores, wear...), lifeOf("B", "000111111", "000999999", wear...)}
	}
	r := NewRobustness(lives("000999999"), alarm.Settings{K: 2, N: 8}, second, 300)
	if got := r.Try(Fault{Kind: Stuck, Sensors: []string{"x"}}, lives("000000990")); got.Late != 1 || got.Missed != 0 {
		t.Errorf("%+v", got)
	}
}

func TestNotRobust(t *testing.T) {
	for why, lives := range map[string][]Life{
		"1 tool gets worn":     {lifeOf("A", "0011", "0099"), lifeOf("B", "0000", "0000")},
		"no window is healthy": {lifeOf("A", "1111", "0099"), lifeOf("B", "11", "00")},
	} {
		r := NewRobustness(lives, alarm.Default, second, 0)
		if !strings.HasPrefix(r.Note, why) || r.Remedy == "" || r.Words() != "" {
			t.Errorf("%s: %+v", why, r)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
		e := perfect()
		e.Robustness = r
		if v := VerdictOf(e); v.Level != Shadow || v.Reasons[0].About != "sensors that read wrong" {
			t.Errorf("%+v", v)
		}
	}
}

// A fault that loses an alarm and lowers no G-mean is not said to lower it.
func TestAlarmIsLostAlone(t *testing.T) {
	for gmean, want := range map[float64]string{
		0.8:  "if ax reads 20 % less, the G-mean is 0.800 instead of 0.878, and of 6 alarms 1 is missed (T1)",
		0.89: "if ax reads 20 % less, the G-mean does not fall (0.890, without it 0.878), and of 6 alarms 1 is missed (T1)",
	} {
		e := perfect()
		e.Robustness = &Robustness{Tools: 6, Worn: 6, Clean: Effect{GMean: 0.878}, alarmed: 6, Trials: []Trial{
			{Fault: Fault{Kind: Gain, Factor: 0.8, Sensors: []string{"ax"}}, Effect: Effect{GMean: score.Figure(gmean), Missed: 1}, MissedTools: []string{"T1"}}}}
		if got := e.robustness().Because; !strings.HasPrefix(got, want) {
			t.Errorf("%s; want %s", got, want)
		}
	}
}

// The worst and the mean are of all trials with one sensor, and of each kind.
func TestSumsOfTrials(t *testing.T) {
	r := tried(trial(Gain, 0.8, 0.9, 1, "a"), trial(Gain, 1.1, 0.8, 0, "b"), trial(Missing, 0, 0.5, 2, "a"), trial(Gain, 0.8, 0.1, 3, "a", "b"))
	if r.Worst != 0.5 || r.Mean < 0.7333 || r.Mean > 0.7334 || len(r.Kinds) != 3 {
		t.Errorf("%+v", r)
	}
	if k := r.Kinds[0]; k.Trials != 2 || k.Worst != 0.8 || k.WorstIf != "b reads 10 % more" || k.Mean < 0.849 || k.Mean > 0.851 || k.Missed != 1 || k.Of != 12 {
		t.Errorf("%+v", k)
	}
	if k := r.Kinds[2]; k.WorstIf != "a and b read 20 % less" || k.Missed != 3 || k.Of != 6 {
		t.Errorf("%+v", k)
	}
}

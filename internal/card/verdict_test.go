package card

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/pkg/score"
)

// perfect is the evidence of six worn tools that all got their alarm in time, in hundred
// hours without a false one.
func perfect() Evidence {
	e := Evidence{
		Held: true, GMean: 0.98, Ours: 0.98, Random: 0.985, Baselines: []baselineFigure{{"logistic regression", 0.97}, {"random forest", 0.96}},
		Alarms: Alarms{K: 5, N: 8, Threshold: 0.5, LimitUM: 300, HealthyHours: 100},
	}
	for i := range 6 {
		e.Alarms.Tools = append(e.Alarms.Tools, toolAlarm{
			Tool: fmt.Sprintf("T%d", i+1), Judged: 1000, Right: 980, Healthy: 800, Worn: 801, Alarm: 806, WearUM: score.Figure(302 + i),
		})
	}
	return e
}

func nan() score.Figure { return score.Figure(math.NaN()) }

// each changes each tool of the evidence.
func each(change func(t *toolAlarm)) func(e *Evidence) {
	return func(e *Evidence) {
		for i := range e.Alarms.Tools {
			change(&e.Alarms.Tools[i])
		}
	}
}

// The verdict on made-up extremes, each one step away from a perfect model, with the
// reason that decides. The words of all are a golden file.
func TestVerdict(t *testing.T) {
	var text strings.Builder
	for _, tc := range []struct {
		what   string
		change func(e *Evidence)
		want   Level
		about  string // the reason that decides; empty: none
	}{
		{"perfect", func(*Evidence) {}, SwitchOn, ""},
		{"perfect but for the hours", func(e *Evidence) { e.Alarms.HealthyHours = 0.55 }, Shadow, "false alarms"},
		{"just enough hours", func(e *Evidence) { e.Alarms.HealthyHours = 24 }, SwitchOn, ""},
		{"hours are not known", func(e *Evidence) { e.Alarms.HealthyHours = nan() }, Shadow, "false alarms"},
		{"hours are not known, and every tool rang", func(e *Evidence) {
			e.Alarms.HealthyHours = nan()
			each(func(t *toolAlarm) { t.False = 1 })(e)
		}, NotYet, "false alarms"},
		{"one false alarm in an hour", func(e *Evidence) { e.Alarms.HealthyHours, e.Alarms.Tools[2].False = 1, 1 }, Shadow, "false alarms"},
		{"three false alarms in an hour", func(e *Evidence) { e.Alarms.HealthyHours, e.Alarms.Tools[2].False = 1, 3 }, NotYet, "false alarms"},
		{"all unknown", func(e *Evidence) {
			e.Alarms.HealthyHours = 0
			each(func(t *toolAlarm) { t.Unknown, t.Right, t.Alarm, t.WearUM = t.Judged, 0, 0, nan() })(e)
		}, NotYet, "alarms of worn tools"},
		{"three of ten unknown", each(func(t *toolAlarm) { t.Unknown, t.Right = 300, 690 }), Shadow, "unknown windows"},
		{"unknown windows were not counted", func(e *Evidence) { e.UnknownNotMeasured = true }, Shadow, "unknown windows"},
		{"one of six missed, whose record ends at once", func(e *Evidence) {
			l := &e.Alarms.Tools[4]
			l.Judged, l.Right, l.Alarm, l.WearUM = 803, 790, 0, nan()
		}, Shadow, "alarms of worn tools"},
		{"no worn tool", each(func(t *toolAlarm) { t.Healthy, t.Worn, t.Alarm, t.WearUM = t.Judged, 0, 0, nan() }), NotYet, "worn tools"},
		{"one worn tool", func(e *Evidence) { e.Alarms.Tools = e.Alarms.Tools[:1] }, NotYet, "worn tools"},
		{"three worn tools", func(e *Evidence) { e.Alarms.Tools = e.Alarms.Tools[:3] }, Shadow, "worn tools"},
		{"no healthy window", each(func(t *toolAlarm) { t.Healthy, t.Worn, t.Alarm = 0, 1, 5 }), NotYet, "worn tools"},
		{"no tool at all", func(e *Evidence) { e.Alarms.Tools = nil }, NotYet, "worn tools"},
		{"nothing was held out", func(e *Evidence) { e.Held = false }, NotYet, "tools held out"},
		{"one tool has all healthy windows", func(e *Evidence) {
			e.Held = false
			each(func(t *toolAlarm) { t.Healthy, t.Worn = 0, 1 })(e)
			e.Alarms.Tools[0].Healthy, e.Alarms.Tools[0].Worn = 1000, 0
		}, NotYet, "tools held out"},
		{"costs were chosen on the tools", func(e *Evidence) { e.CostsSeen = true }, Shadow, "tools held out"},
		{"trained on the same data", func(e *Evidence) { e.Seen = "day one" }, NotYet, "tools held out"},
		{"one of six missed", func(e *Evidence) { e.Alarms.Tools[4].Alarm, e.Alarms.Tools[4].WearUM = 0, nan() }, Shadow, "alarms of worn tools"},
		{"one of six is not judged when it is worn", func(e *Evidence) {
			l := &e.Alarms.Tools[4]
			l.Judged, l.Right, l.Alarm, l.WearUM, l.Unjudged, l.Why = 800, 780, 0, nan(), 3, "3 with sensor faults"
		}, Shadow, "alarms of worn tools"},
		{"two of six missed", func(e *Evidence) {
			for _, i := range []int{1, 4} {
				e.Alarms.Tools[i].Alarm, e.Alarms.Tools[i].WearUM = 0, nan()
			}
		}, NotYet, "alarms of worn tools"},
		{"one alarm at 172 µm", func(e *Evidence) { e.Alarms.Tools[0].Alarm, e.Alarms.Tools[0].WearUM = 500, 172 }, SwitchOn, ""},
		{"two alarms at 172 µm", func(e *Evidence) {
			for i := range 2 {
				e.Alarms.Tools[i].Alarm, e.Alarms.Tools[i].WearUM = 500, 172
			}
		}, Shadow, "alarms of worn tools"},
		{"alarms at 271 µm", each(func(t *toolAlarm) { t.Alarm, t.WearUM = 700, 271 }), SwitchOn, ""},
		{"alarms far too early", each(func(t *toolAlarm) { t.Alarm, t.WearUM = 100, 90 }), NotYet, "alarms of worn tools"},
		{"alarms early, without measured wear", func(e *Evidence) {
			e.Alarms.LimitUM = 0
			each(func(t *toolAlarm) { t.Alarm, t.WearUM = 100, nan() })(e)
		}, Shadow, "alarms of worn tools"},
		{"the wear at the alarms is not known", each(func(t *toolAlarm) { t.WearUM = nan() }), Shadow, "alarms of worn tools"},
		{"the wear at one alarm of six is not known", func(e *Evidence) { e.Alarms.Tools[0].WearUM = nan() }, SwitchOn, ""},
		{"folds decide by wear, the model by its classifier", func(e *Evidence) { e.NotOfModel = "3 of the 3 folds are decided by estimated wear" }, Shadow, "tools held out"},
		{"alarms far too late", each(func(t *toolAlarm) { t.Alarm, t.WearUM = 990, 500 }), Shadow, "alarms of worn tools"},
		{"a leak", func(e *Evidence) { e.GMean, e.Ours, e.Random = 0.75, 0.75, 0.99 }, NotYet, "windows"},
		{"a small leak", func(e *Evidence) { e.GMean, e.Ours, e.Random = 0.86, 0.86, 0.99 }, Shadow, "windows"},
		{"no random split", func(e *Evidence) { e.Random = nan() }, SwitchOn, ""},
		{"windows at chance", func(e *Evidence) { e.GMean, e.Ours = 0.5, 0.5; e.Random, e.Baselines = nan(), nil }, NotYet, "windows"},
		{"G-mean not defined", func(e *Evidence) { e.GMean = nan() }, NotYet, "windows"},
		{"one tool is judged wrong", func(e *Evidence) { e.Alarms.Tools[3].Right = 300 }, Shadow, "least sure tool"},
		{"a line does far better", func(e *Evidence) { e.Ours, e.Random = 0.8, nan(); e.Baselines[0].GMean = 0.99 }, NotYet, "other methods"},
		{"a line does better", func(e *Evidence) { e.Ours, e.Random = 0.9, nan(); e.Baselines[0].GMean = 0.97 }, Shadow, "other methods"},
		{"a line is a little ahead", func(e *Evidence) { e.Baselines[0].GMean = 0.99 }, SwitchOn, ""},
		{"not compared", func(e *Evidence) { e.Baselines = nil }, SwitchOn, ""},
		{"sensors may read wrong", func(e *Evidence) {
			e.Robustness = tried(trial(Gain, 1.1, 0.96, 0, "F_c"), trial(Dead, 0, 0.9, 0, "F_c"))
		}, SwitchOn, ""},
		{"no single sensor counts", func(e *Evidence) { e.Robustness = tried() }, SwitchOn, ""},
		{"a sensor that reads 10 % more breaks it", func(e *Evidence) {
			e.Robustness = tried(trial(Gain, 0.9, 0.97, 0, "F_c"), trial(Gain, 1.1, 0.65, 0, "F_c"), trial(Drift, 1.25, 0.7, 0, "F_f"))
		}, Shadow, "sensors that read wrong"},
		{"a sensor that is stuck loses an alarm", func(e *Evidence) {
			e.Robustness = tried(trial(Gain, 1.1, 0.65, 0, "F_c"), trial(Stuck, 0, 0.93, 1, "AE"))
		}, Shadow, "sensors that read wrong"},
		{"several sensors together break it", func(e *Evidence) {
			e.Robustness = tried(trial(Gain, 1.5, 0.3, 3, "F_c", "F_f"), trial(Gain, 1.1, 0.95, 0, "F_c"))
		}, SwitchOn, ""},
		{"robustness was not measured", func(e *Evidence) {
			e.Robustness = NotRobust("the features take more than 64 MiB", "train on a part of the table")
		}, Shadow, "sensors that read wrong"},
		{"a baseline is not defined", func(e *Evidence) { e.Baselines[1].GMean = nan() }, Shadow, "other methods"},
	} {
		e := perfect()
		tc.change(&e)
		v := VerdictOf(e)
		fmt.Fprintf(&text, "# %s\n%s\n", tc.what, v.Text())
		if v.Level != tc.want || tc.about == "" && v.Reasons[0].Level != SwitchOn || tc.about != "" && (v.Reasons[0].About != tc.about || v.Reasons[0].Level != tc.want) {
			t.Errorf("%s: %s, want %v because of %s", tc.what, v.Text(), tc.want, tc.about)
		}
	}
	golden.Check(t, "verdicts.txt", text.String())
}

// drawEvidence draws evidence of any kind, also such as no trainer makes.
func drawEvidence(t *rapid.T) Evidence {
	figure := func(name string, most float64) score.Figure {
		if rapid.IntRange(0, 9).Draw(t, name+" known") == 0 {
			return nan()
		}
		return score.Figure(rapid.Float64Range(0, most).Draw(t, name))
	}
	e := Evidence{
		Held: rapid.IntRange(0, 9).Draw(t, "held") > 0, GMean: figure("gmean", 1), Random: figure("random", 1), Ours: figure("ours", 1),
		Alarms: Alarms{LimitUM: rapid.SampledFrom([]float64{0, 300}).Draw(t, "limit"), HealthyHours: figure("hours", 200)},
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "baselines") {
		e.Baselines = append(e.Baselines, baselineFigure{fmt.Sprint("method ", i), figure("baseline", 1)})
	}
	if rapid.Bool().Draw(t, "robust") {
		e.Robustness = tried(trial(Gain, 1.1, score.Figure(rapid.Float64Range(0, 1).Draw(t, "gain")), rapid.IntRange(0, 2).Draw(t, "missed"), "F_c"))
	}
	for i := range rapid.IntRange(0, 12).Draw(t, "tools") {
		n := rapid.IntRange(0, 50).Draw(t, "judged")
		l := toolAlarm{Tool: fmt.Sprint("T", i), Judged: n, WearUM: nan()}
		l.Healthy = rapid.IntRange(0, n).Draw(t, "healthy")
		if l.Healthy < n {
			l.Worn = l.Healthy + 1
		}
		if n > 0 {
			l.Alarm = rapid.IntRange(0, n).Draw(t, "alarm")
		}
		if l.Alarm > 0 {
			l.WearUM = figure("wear", 600)
		}
		l.Unknown = rapid.IntRange(0, n).Draw(t, "unknown")
		l.Right = rapid.IntRange(0, n-l.Unknown).Draw(t, "right")
		l.False = rapid.IntRange(0, 2).Draw(t, "false")
		e.Alarms.Tools = append(e.Alarms.Tools, l)
	}
	return e
}

// What is worse never makes the verdict better: another false alarm, another unknown
// window, a worn tool that is not found, fewer hours, a lower G-mean or none. Every reason that
// keeps a model from being switched on says what to do.
func TestVerdictLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEvidence(t)
		v := VerdictOf(e)
		for i, r := range v.Reasons {
			if r.Because == "" || r.About == "" || r.Level < SwitchOn && r.Do == "" || r.Level < v.Level || i > 0 && r.Level < v.Reasons[i-1].Level {
				t.Fatalf("%+v of %+v", r, v)
			}
			if strings.Contains(r.Because+r.Do, "NaN") || strings.Contains(r.Because+r.Do, "Inf") {
				t.Fatalf("%+v", r)
			}
		}
		if text, err := json.Marshal(v); err != nil {
			t.Fatal(err)
		} else {
			var back Verdict
			if err := json.Unmarshal(text, &back); err != nil || back.Level != v.Level || !slices.Equal(back.Reasons, v.Reasons) {
				t.Fatalf("%s: %v", text, err)
			}
		}
		worse := map[string]func(e *Evidence){
			"fewer hours":       func(e *Evidence) { e.Alarms.HealthyHours /= 2 },
			"nothing held out":  func(e *Evidence) { e.Held = false },
			"costs seen":        func(e *Evidence) { e.CostsSeen = true },
			"seen":              func(e *Evidence) { e.Seen = "x" },
			"a lower G-mean":    func(e *Evidence) { e.GMean -= 0.1 },
			"a lower figure":    func(e *Evidence) { e.Ours -= 0.1 },
			"no G-mean":         func(e *Evidence) { e.GMean = nan() },
			"a better baseline": func(e *Evidence) { e.Baselines = append(e.Baselines, baselineFigure{"better", 1}) },
		}
		if e.Robustness != nil {
			worse["a sensor that is dead"] = func(e *Evidence) {
				e.Robustness = tried(append(slices.Clone(e.Robustness.Trials), trial(Dead, 0, 0.1, 1, "F_f"))...)
			}
		}
		if n := len(e.Alarms.Tools); n > 0 {
			k := rapid.IntRange(0, n-1).Draw(t, "tool")
			worse["a false alarm"] = func(e *Evidence) { e.Alarms.Tools[k].False++ }
			worse["an alarm less"] = func(e *Evidence) { // of a worn tool
				if l := &e.Alarms.Tools[k]; l.Worn > 0 {
					l.Alarm, l.WearUM = 0, nan()
				}
			}
			worse["an unknown window"] = func(e *Evidence) {
				if l := &e.Alarms.Tools[k]; l.Unknown < l.Judged {
					l.Unknown++
					l.Right = min(l.Right, l.Judged-l.Unknown)
				}
			}
			worse["a wrong verdict"] = func(e *Evidence) { e.Alarms.Tools[k].Right = max(0, e.Alarms.Tools[k].Right-1) }
		}
		for what, change := range worse {
			w := e
			w.Alarms.Tools, w.Baselines = slices.Clone(e.Alarms.Tools), slices.Clone(e.Baselines)
			change(&w)
			if got := VerdictOf(w); got.Level > v.Level {
				t.Fatalf("%s: %v after %v:\n%s\n%s", what, got.Level, v.Level, v.Text(), got.Text())
			}
		}
	})
}

package machine

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// standing is which advisories are open, by kind and subject.
type standing map[string]event.Advisory

func (s standing) take(d Decision) {
	for _, a := range d.Advisories {
		if about := string(a.Kind) + "/" + a.Subject; a.State == event.Raised {
			s[about] = a
		} else {
			delete(s, about)
		}
	}
}

// warning returns the text of the open warnings.
func (s standing) warning() string {
	var all []string
	for _, a := range s {
		if a.Severity == "warning" {
			all = append(all, a.Text)
		}
	}
	return strings.Join(all, "\n")
}

// A machine that sends windows and gets no verdict has a warning that names the cause, for each way of getting none, also
// over restarts. One that does not cut has none.
func TestNoVerdictIsAWarning(t *testing.T) {
	flagged := func(q signal.Quality) func(b *bench, seq uint64) Decision {
		return func(b *bench, seq uint64) Decision {
			w := at(seq, "T1", false)
			w.Quality[0] = q
			return b.window(w)
		}
	}
	for name, tc := range map[string]struct {
		model *model.Model
		step  func(b *bench, seq uint64) Decision
		want  string
	}{
		"a dead sensor":            {step: flagged(signal.Flatline), want: "SENSOR force Failure: flatline"},
		"a wrong rate":             {step: flagged(signal.RateError), want: "SENSOR clock Out of specification: rate_error"},
		"a clock that steps":       {step: flagged(signal.ClockStep), want: "UNKNOWN, no verdict in 68 windows, now sensor fault (clock_step): its tool is not monitored"},
		"flags of a newer gateway": {step: flagged(1 << 7), want: "now sensor fault (unknown)"},
		"a fault now and then, steps in between": {step: func(b *bench, seq uint64) Decision {
			return flagged([]signal.Quality{signal.Dropout, signal.ClockStep, signal.ClockStep}[seq%3])(b, seq)
		}, want: "UNKNOWN, no verdict in 68 windows"},
		"a tool for each window": {step: func(b *bench, seq uint64) Decision { return b.window(at(seq, fmt.Sprint("T", seq), false)) }, want: "now learning: its tool is not monitored. A tool has no verdict before its reference is learnt from 2 windows"},
		"steps, and a tool for each five": {step: func(b *bench, seq uint64) Decision {
			w := at(seq, fmt.Sprint("T", seq/5), false)
			w.Quality[0] = signal.ClockStep
			return b.window(w)
		}, want: "now sensor fault (clock_step)"},
		"unknown windows": {model: unsure(t), step: func(b *bench, seq uint64) Decision {
			w := at(seq, "T1", false)
			if w.Samples[0][0] = 15.5; seq < 2 {
				w.Samples[0][0] = 10
			}
			return b.window(w)
		}, want: "UNKNOWN, 16 of the last 32 windows of cutting, now ambiguous"},
		"windows of another length": {step: func(b *bench, seq uint64) Decision { return b.refused(seq, tooLong) }, want: "NOT WATCHED, its windows are refused: windows of 2s"},
		"no model": {step: func(b *bench, seq uint64) Decision {
			return b.refused(seq, &window.Mismatch{What: NoModel, Text: "no model is deployed for it"})
		}, want: "NOT WATCHED, no model is deployed"},
		"a model that waits for the past of the tool": {step: func(b *bench, seq uint64) Decision {
			if seq == 5 {
				b.restartUnder(wider(t))
			}
			return b.window(at(seq, "T1", false))
		}, want: "now model changed: its tool is not monitored. Its past cannot be read from Kafka yet"},
		"a defect": {step: func(b *bench, seq uint64) Decision {
			if seq > 0 {
				return Decision{}
			}
			return b.m.stop(&defect{text: "index out of range"}, noon)
		}, want: "STOPPED, none of its windows is judged"},
		"it does not cut": {model: machinetest.Cycling(t), step: func(b *bench, seq uint64) Decision { return b.window(machinetest.Idle(seq, "T1")) }},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.model == nil {
				tc.model = machinetest.OneValue(t)
			}
			b, open := newBench(t, tc.model), standing{}
			said := 0
			for seq := range uint64(90) {
				d := tc.step(b, seq)
				said += len(d.Advisories)
				open.take(d)
				if seq%7 == 6 && b.m.stopped == "" {
					b.restart()
				}
			}
			if got := open.warning(); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("open warnings %q, want %q", got, tc.want)
			}
			if said > 4 {
				t.Errorf("%d advisories", said)
			}
		})
	}
}

// unsure returns a model that does not know what lies between its classes.
func unsure(t *testing.T) *model.Model {
	m := machinetest.OneValue(t)
	machinetest.MakeSets(t, m, 0.3, 0.2)
	return m
}

// wider returns a model of other features, which no reference of OneValue serves.
func wider(t *testing.T) *model.Model {
	m := machinetest.OneValue(t)
	m.Reference.Windows = 3
	if _, err := m.Encode(); err != nil {
		t.Fatal(err)
	}
	return m
}

// For any windows: once it has sent so many windows in a row without a verdict, a warning is open.
func TestNoVerdictLaw(t *testing.T) {
	m := unsure(t)
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 12).Draw(t, "windows without a verdict")
		b, open := newBench(t, m, func(s *Settings) { s.Limits.Unjudged = most }), standing{}
		unjudged, seq := 0, uint64(0)
		for range rapid.IntRange(1, 12).Draw(t, "spells") {
			tools := rapid.IntRange(1, 4).Draw(t, "tools in turn")
			flags := rapid.SliceOfN(rapid.SampledFrom([]signal.Quality{0, 0, signal.ClockStep, signal.RateError, signal.Dropout, signal.ClockOff}), 1, 3).Draw(t, "flags in turn")
			value := rapid.SampledFrom([]float32{10, 15.5, 20}).Draw(t, "value")
			for i := range rapid.IntRange(1, 30).Draw(t, "windows") {
				w := at(seq, fmt.Sprint("T", i%tools), false)
				w.Samples[0][0], w.Quality[0] = value, flags[i%len(flags)]
				seq++
				d := b.window(w)
				open.take(d)
				if unjudged++; d.Result.Verdict == event.Healthy || d.Result.Verdict == event.Faulty {
					unjudged = 0
				}
				if unjudged >= most+2*m.Reference.Windows && open.warning() == "" {
					t.Fatalf("window %d: %s after %d windows without a verdict, and open are %v", seq, d.Result.Verdict, unjudged, open)
				}
			}
			if rapid.Bool().Draw(t, "restart") {
				b.restart()
			}
		}
	})
}

package train

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table"
)

// How long windows are is known of recordings, and of tables with times or with a length
// that the configuration gives.
func TestTimingOfWindows(t *testing.T) {
	rows := func(hop time.Duration) rowTable { return rowTable{hop: hop} }
	ofTable, said := []Input{{Table: table.New(nil)}}, windowConfig{Length: 2 * time.Second, Said: true}
	for name, tc := range map[string]struct {
		job  Job
		rows rowTable
		want card.Timing
	}{
		"a recording":              {Job{Inputs: []Input{{}}, Config: Config{Window: windowConfig{Length: time.Second, Hop: time.Second / 2}}}, rows(0), card.Timing{Length: time.Second, Step: time.Second / 2}},
		"a table":                  {Job{Inputs: ofTable, Config: Config{Window: windowConfig{Length: time.Second}}}, rows(0), card.Timing{}},
		"a table of a said length": {Job{Inputs: ofTable, Config: Config{Window: said}}, rows(0), card.Timing{Length: 2 * time.Second}},
		"a table with times":       {Job{Inputs: ofTable}, rows(3 * time.Second), card.Timing{Length: 3 * time.Second}},
	} {
		if got := tc.job.timing(tc.rows); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// A configuration says the length of windows if it has the key, also with the default.
func TestLengthIsSaid(t *testing.T) {
	for text, want := range map[string]bool{"window: {length: 1s}\n": true, "window:\n  length: 2s\n": true, "seed: 2\n": false, "window: {hop: 1s}\n": false} {
		path := filepath.Join(t.TempDir(), "train.yaml")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := LoadConfig(path)
		if err != nil || c.Window.Said != want {
			t.Errorf("%q: %v, %v", text, c.Window.Said, err)
		}
	}
}

// The verdict of a training rests on the tools held out: their alarms, the wear then and
// the hours of their windows.
func TestVerdictOfATraining(t *testing.T) {
	t.Parallel()
	_, r := latheModel(t)
	a := r.Alarms
	if r.Verdict == nil || r.Verdict.Level != card.Shadow || a == nil || len(a.Tools) != 5 || a.Worn != 4 || a.LimitUM != 300 {
		t.Fatalf("%+v, %+v", r.Verdict, a)
	}
	healthy := 0 // windows that were judged
	for _, u := range r.Unknown.Tools {
		healthy += u.Healthy
	}
	healthy -= r.Unknown.Classes[0].OutOfDistribution + r.Unknown.Classes[0].Implausible
	for _, l := range a.Tools {
		s := r.Groups[l.Tool]
		if l.Judged != s.Rows || l.Judged-l.Healthy != s.Positive {
			t.Errorf("%+v, %+v", l, s)
		}
		if um := float64(l.WearUM); l.Alarm > 0 && !(um > 100 && um < 450) {
			t.Errorf("%s: an alarm at %v µm", l.Tool, um)
		}
	}
	if hours := float64(healthy) / 3600; math.Abs(float64(a.HealthyHours)-hours) > 1e-9 {
		t.Errorf("%v h, want %v", a.HealthyHours, hours)
	}

	j := latheJob(t)
	j.Config.Evaluate.ByTool = "off"
	_, r, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict.Level != card.Shadow || r.Verdict.Reasons[0].About != "tools held out" || r.Alarms == nil || r.Alarms.Worn != 4 {
		t.Errorf("tools held out of the networks only: %+v, %+v", r.Verdict, r.Alarms)
	}

	j = latheJob(t)
	j.Inputs = []Input{latheInput(t, j.Layout, "few", "lathe", latheCSV([]life{{"A", 48, 420}, {"B", 30, 90}}))}
	quick(&j.Config)
	if _, r, err = Run(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if r.Verdict.Level != card.NotYet || r.Verdict.Reasons[0].About != "tools held out" || r.Alarms != nil {
		t.Errorf("one worn tool: %+v, %+v", r.Verdict, r.Alarms)
	}
}

package train

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/testkit/recorded"
	"github.com/flank-tcm/flank/pkg/signal"
)

// exampleJob returns the job that `trainer fit` makes of an example's
// configuration and the recordings that match the pattern below the folder
// that FLANK_DATA names.
func exampleJob(t *testing.T, example, pattern string) Job {
	t.Helper()
	dir := recorded.Folder(t)
	if raceDetector {
		t.Skip("takes minutes under the race detector, which sees the same code at work on made-up recordings")
	}
	folder := filepath.Join("../../examples", example)
	text, err := os.ReadFile(filepath.Join(folder, "train.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	j := Job{Config: DefaultConfig(), Program: "test"}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&j.Config); err != nil {
		t.Fatal(err)
	}
	var columns signal.Recording
	if j.Layout, columns, err = signal.LoadLayout(filepath.Join(folder, j.Config.Layout)); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %d recordings, %v", pattern, len(paths), err)
	}
	for _, path := range paths {
		rec := source.Recording{Path: path, Layout: j.Layout, Columns: columns, Machine: "m"}
		j.Inputs = append(j.Inputs, Input{Name: rec.Name(), Open: rec.Open})
	}
	return j
}

// With the default epochs, tools held out give a G-mean of 0.988 and the random split
// one of 0.990; half of them is as good.
func TestRecordedTurning(t *testing.T) {
	if testing.Short() {
		t.Skip("trains on every turning tool")
	}
	j := exampleJob(t, "turning", "vicomtech-turning/turning_wear_dev.csv")
	j.Config.Network.Pretrain.Epochs, j.Config.Network.FineTune.Epochs = 20, 75
	m, r, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s\n%s", m, r.Summary())
	if w := r.Windows; w.Windows != 1474 || w.Learning != 9*10 || w.Used != 1384 || w.NotCutting+w.SensorFault+w.Unlabelled != 0 {
		t.Errorf("windows %+v", w)
	}
	if r.Pooled.Positive != 115 || r.Pooled.GMean < 0.975 {
		t.Errorf("tools held out: %d faulty windows, G-mean %.3f, want 115 and at least 0.975", r.Pooled.Positive, float64(r.Pooled.GMean))
	}
	if r.Random.GMean < r.Pooled.GMean-0.005 { // weights leave hardly a difference between tools to leak
		t.Errorf("random split: G-mean %.3f, on tools held out %.3f: near copies of a window should not be harder", float64(r.Random.GMean), float64(r.Pooled.GMean))
	}
	if len(r.Groups) != 9 {
		t.Errorf("%d tools", len(r.Groups))
	}
	if w := r.Trend; w == nil || w.Windows != 1474 || w.LimitUM != 300 || w.Score.AllMAEUM > 28 || w.Score.Coverage < 0.75 || w.Score.Coverage > 0.9 {
		t.Errorf("wear trend %+v, want all windows within 28 µm and intervals that hold 0.75 to 0.9", w)
	}
	if m.Wear == nil || m.Wear.LimitUM != 300 {
		t.Errorf("wear in the model: %+v", m.Wear)
	}
}

// Worn and unworn runs of the mill cannot be told apart on runs never seen. A
// G-mean far above chance by run would be a leak.
func TestRecordedMilling(t *testing.T) {
	j := exampleJob(t, "milling", "umich-cnc-mill/experiment_*.csv")
	j.Config.Network.Pretrain.Epochs, j.Config.Network.FineTune.Epochs = 5, 20
	_, r, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r.Summary())
	if w := r.Windows; w.Windows != 850 || w.Used != 850 || w.Gaps != 13 {
		t.Errorf("windows %+v, want 850 of 13 runs with a tail each", w)
	}
	if len(r.Groups) != 13 || r.Pooled.GMean > 0.62 {
		t.Errorf("runs held out: %d, G-mean %.3f, want 13 and less than 0.62", len(r.Groups), float64(r.Pooled.GMean))
	}
	if r.Random.GMean < r.Pooled.GMean+0.1 {
		t.Errorf("random split: G-mean %.3f, on runs held out %.3f: it should leak", float64(r.Random.GMean), float64(r.Pooled.GMean))
	}
	if !strings.Contains(r.Label, "worn") {
		t.Errorf("label %q", r.Label)
	}
}

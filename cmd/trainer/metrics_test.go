package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/testkit/metrictest"
	"github.com/flank-tcm/flank/pkg/score"
)

func TestMetrics(t *testing.T) {
	began := time.Unix(1_700_000_000, 0)
	r := &card.Report{Model: "ecs-dbn-1", Windows: card.Tally{Used: 104}, Pooled: &score.Summary{GMean: .9}}
	metrictest.Check(t, "../../docs/reference/metrics.md", ran{began, began.Add(90 * time.Second), r}.metrics()...)
}

// A training leaves its metrics in a file, also one that fails; a file that could not be written
// is reported before the training begins.
func TestFitWritesMetrics(t *testing.T) {
	t.Parallel()
	dir := bench(t, "train.yaml", trainYAML+"evaluate: {random_split: false}\n")
	for _, tc := range []struct {
		args  string
		wants []string
	}{
		{"fit --config train.yaml --data tools.csv --model out.flank --metrics-file run.prom", []string{"tcm_trainer_last_run_success 1", `tcm_trainer_model_windows{model="ecs-dbn-`, `tcm_trainer_model_gmean_ratio{model="ecs-dbn-`}},
		{"fit --config train.yaml --data missing.csv --model out.flank --metrics-file run.prom", []string{"tcm_trainer_last_run_success 0", "tcm_trainer_last_run_timestamp_seconds "}},
	} {
		_, _, err := dir.trainer(t, tc.args)
		if failed := strings.HasSuffix(tc.wants[0], "0"); (err != nil) != failed {
			t.Fatalf("%s: %v", tc.args, err)
		}
		text, err := os.ReadFile(dir.path("run.prom"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range tc.wants {
			if !strings.Contains(string(text), "\n"+want) {
				t.Errorf("%s: no %s in\n%s", tc.args, want, text)
			}
		}
	}
	for args, want := range map[string]string{
		"run.txt":     "name it so",
		"no/run.prom": "make it first",
	} {
		if _, _, err := dir.trainer(t, "fit --config train.yaml --data tools.csv --model out.flank --metrics-file "+args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

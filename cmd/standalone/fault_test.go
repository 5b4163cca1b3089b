package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/classify"
)

// guardedDrill writes a model of the simulated drill that has a guard, trained on few short lives.
func guardedDrill(t *testing.T) string {
	schedule := train.Schedule{Life: 45 * time.Second, Hole: 10 * time.Second, Pause: 2 * time.Second}
	j := train.Simulation{Machine: "a/b/c/d/drill", Seed: 1, Schedule: schedule}.Job(sim.Tools(1, schedule.Life)[:7])
	j.Config.Guard, j.Config.Costs.Folds, j.Config.Network.FineTune.Epochs, j.Log = classify.GuardVote, 3, 40, zerolog.Nop()
	m, r, err := train.Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if m.Classifier.Guard() == nil {
		t.Fatal(r.Summary())
	}
	path := filepath.Join(t.TempDir(), "m.flank")
	if err := m.Save(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// In the running plant a sensor that reads wrong or dies is named, and the worn tool is called as without it.
func TestSensorOfTheRunningPlant(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a model of the simulated drill")
	}
	t.Parallel()
	path := guardedDrill(t)
	for _, tc := range []struct {
		fault, advisory string
	}{
		{"", ""},
		{"gain:ch06@15s=3", "drill: SENSOR ch06 Out of specification: it disagrees with the other sensors since "},
		{"dead:ch06@15s", "drill: SENSOR ch06 Failure: flatline; tool verdict on 13 channels"},
	} {
		t.Run("fault "+tc.fault, func(t *testing.T) {
			t.Parallel()
			args := []string{"--once", "--model", path, "--speed", "50", "--data-dir", t.TempDir(), "--page", "off", "--broker", "127.0.0.1:0"}
			if tc.fault != "" {
				args = append(args, "--fault", tc.fault)
			}
			var stdout, stderr bytes.Buffer
			if err := run(t.Context(), args, &stdout, &stderr); err != nil {
				t.Fatalf("%v\n%s", err, &stderr)
			}
			s := lastLine(t, stdout.String())
			if s.Lost != 0 || s.Alerts != 1 || s.Confusion.FN > 1 || s.Confusion.FP > 1 {
				t.Errorf("%+v, %+v: want one alarm\n%s", s, s.Confusion, &stderr)
			}
			if n := strings.Count(stderr.String(), "SENSOR"); !strings.Contains(stderr.String(), tc.advisory) || n > 0 != (tc.advisory != "") || n > 1 {
				t.Errorf("%s\nwant %q", &stderr, tc.advisory)
			}
		})
	}
}

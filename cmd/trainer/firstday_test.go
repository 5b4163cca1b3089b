package main

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// A model of healthy tools is written with a card and metrics, can be looked into, compared and examined, and has nothing to export.
func TestFitFirstDay(t *testing.T) {
	t.Parallel()
	lines := strings.SplitAfter(recording(), "\n")
	healthy := lines[:1:1]
	for _, l := range lines[1:] { // each tool is taken out before it is worn
		cells := strings.Split(strings.TrimSpace(l), ",")
		if um, err := strconv.ParseFloat(cells[len(cells)-1], 64); err == nil && um < 200 {
			healthy = append(healthy, l)
		}
	}
	dir := bench(t, "train.yaml", unscored, "healthy.csv", strings.Join(healthy, ""))
	for _, c := range []struct{ args, says, fails string }{
		{"fit --quiet --config train.yaml --data healthy.csv", "", "`trainer fit --first-day` makes a model"},
		{"fit --quiet --first-day --config train.yaml --data tools.csv", "", "worn by their labels are "},
		{"fit --quiet --first-day --config train.yaml --data healthy.csv --model first.flank --metrics-file fit.prom", "a window is different from before where sensor power differs 2-fold from a tool's first", ""},
		{"inspect first.flank", "first day   different from before where sensor power", ""},
		{"inspect -o json first.flank", `"sensor": "power"`, ""},
		{"evaluate --quiet --model first.flank --data tools.csv", "not measured, because the model goes by sensor power alone", ""},
		{"fit --quiet --config train.yaml --data tools.csv --model worn.flank", "worn.flank (ecs-dbn-", ""},
		{"models diff first.flank worn.flank", "first day", ""},
		{"export onnx first.flank", "", "has seen no worn tool, so it has no classifier"},
		{"costs --model first.flank", "", "has seen no worn tool"},
	} {
		out, log, err := dir.trainer(t, c.args)
		if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) || !strings.Contains(out, c.says) {
			t.Errorf("%s: %v\n%s%s", c.args, err, out, log)
		}
	}
	for file, says := range map[string]string{"first.report.html": "No worn tool was seen yet", "first.report.json": `"limit_times": 2`, "fit.prom": "tcm_trainer_last_run_success 1"} {
		if text, err := os.ReadFile(dir.path(file)); err != nil || !strings.Contains(string(text), says) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

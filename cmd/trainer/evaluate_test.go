package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/model"
)

// unscored trains a single model and none for its score.
const unscored = trainYAML + "evaluate:\n  by_tool: \"off\"\n  random_split: false\n"

// asTable turns the recording into a table with tools of other names.
func asTable(prefix string) string {
	s := strings.Replace(recording(), "tool,rms,power,vb", "tool,rms,power,vb_max_um", 1)
	return strings.ReplaceAll(s, "\nT", "\n"+prefix)
}

// A table of the same windows gives the same network as the recording, in every
// format, and the model judges both alike.
func TestTablesAndRecordingsAgree(t *testing.T) {
	bench(t, "train.yaml", unscored, "tools-table.csv", asTable("T"))
	all, err := table.Load("tools-table.csv")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"t.parquet", "t.arrow"} {
		if err := all.Save(name); err != nil {
			t.Fatal(err)
		}
	}
	var evaluations []string
	for i, data := range []string{"--data tools.csv", "--table tools-table.csv", "--table t.parquet", "--table t.arrow"} {
		path := fmt.Sprintf("m%d.flank", i)
		if _, _, err := trainer(t, "fit --quiet --config train.yaml --model "+path+" "+data); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		out, _, err := trainer(t, "evaluate --quiet --json --config train.yaml --model "+path+" "+data)
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		var e struct {
			Pooled  json.RawMessage
			Windows json.RawMessage
		}
		if err := json.Unmarshal([]byte(out), &e); err != nil {
			t.Fatal(err)
		}
		evaluations = append(evaluations, string(e.Pooled)+string(e.Windows))
		if evaluations[i] != evaluations[0] {
			t.Errorf("%s: evaluation\n%s\nthat of the recording is\n%s", data, evaluations[i], evaluations[0])
		}
	}
}

// A table needs no configuration.
func TestFitTableAlone(t *testing.T) {
	bench(t, "t.csv", asTable("T"))
	out, progress, err := trainer(t, "fit --quiet --table t.csv")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "120 windows cut, 80 used, 40 make the references") || !strings.Contains(progress, "80 windows of 4 tools: 48 healthy, 32 faulty, 1 to 1.5 healthy; 4 tools have some") {
		t.Errorf("%s%s", out, progress)
	}
	out, _, err = trainer(t, "inspect --features model.flank")
	if err != nil || out != "rms\npower\n" {
		t.Errorf("features %q, %v", out, err)
	}
	for _, flag := range []string{"--config", "--json"} {
		out, _, err = trainer(t, "inspect model.flank "+flag)
		if err != nil || !json.Valid([]byte(out)) {
			t.Errorf("%s: %v\n%s", flag, err, out)
		}
	}
}

func TestEvaluate(t *testing.T) {
	bench(t, "train.yaml", unscored, "new.csv", asTable("N"))
	if _, _, err := trainer(t, "fit --quiet --config train.yaml --data tools.csv --model m.flank"); err != nil {
		t.Fatal(err)
	}
	out, _, err := trainer(t, "evaluate --model m.flank --config train.yaml --data tools.csv -o e.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"faulty if maximum flank wear ≥ 300 µm", "ROC AUC ", "average precision", "4 of 4 worn tools caught once they were worn, 0 before, 0 missed; 0 of 0 others rang", "\nall ", "\nT1 ", "\nT4 ", "\nall, with 95 % intervals: G-mean ", " over 4 tools\n", "had none been unknown", "note: the model was trained on tools: "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	text, err := os.ReadFile("e.json")
	if err != nil {
		t.Fatal(err)
	}
	var e struct {
		Model  string                    `json:"model"`
		Pooled map[string]any            `json:"pooled"`
		Groups map[string]map[string]any `json:"groups"`
		Within struct{ Tools int }       `json:"pooled_interval"`
		Alarms struct{ Caught int }      `json:"alarms"`
	}
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	m, err := model.Load("m.flank")
	if err != nil {
		t.Fatal(err)
	}
	if e.Model != m.ID() || len(e.Groups) != 4 || e.Within.Tools != 4 || e.Alarms.Caught != 4 || e.Pooled["gmean"].(float64) < 0.9 || e.Pooled["rows"].(float64) != 104 {
		t.Errorf("%s", text)
	}
	// The other table names other tools, but its features are a copy. The program cannot see
	// that: the table shares no content with the recording.
	out, _, err = trainer(t, "evaluate --quiet --model m.flank --table new.csv")
	if err != nil || strings.Contains(out, "trained on") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, _, err = trainer(t, "evaluate --quiet --model m.flank --table new.csv --k 9"); err == nil || !strings.Contains(err.Error(), "k is 9") {
		t.Error(err)
	}
	if _, _, err = trainer(t, "evaluate --quiet --model m.flank --table new.csv --threshold 1.5"); err == nil || !strings.Contains(err.Error(), "threshold is 1.5") {
		t.Error(err)
	}
	if out, _, err = trainer(t, "evaluate --quiet --model m.flank --table new.csv --k 2 --n 3 --threshold 0.9"); err != nil || !strings.Contains(out, "alarms   at 2 of 3 windows with a score of 0.9 or more: ") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestCosts(t *testing.T) {
	bench(t, "train.yaml", unscored, "new.csv", asTable("N"))
	if _, _, err := trainer(t, "fit --quiet --config train.yaml --data tools.csv --model m.flank"); err != nil {
		t.Fatal(err)
	}
	for args, on := range map[string]string{
		"costs --model m.flank":                         "windows of training (posteriors: training)",
		"costs --quiet --model m.flank --table new.csv": "104 labelled windows, 32 faulty",
	} {
		out, _, err := trainer(t, args)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{on, "\nargmax ", "\ninverse prior ", "\nexact ", "\njade ", "\nkept ", "below the exact optimum", "▲ kept, ", "every threshold from"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", args, want, out)
			}
		}
		out, _, err = trainer(t, args+" --json")
		var s struct {
			Landscape struct {
				GMean []float64 `json:"gmean"`
				Best  float64   `json:"best_gmean"`
			} `json:"landscape"`
		}
		if err != nil || json.Unmarshal([]byte(out), &s) != nil || len(s.Landscape.GMean) != 201 || s.Landscape.Best < 0.9 {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
}

func TestExport(t *testing.T) {
	bench(t, "train.yaml", unscored)
	if _, _, err := trainer(t, "fit --quiet --config train.yaml --data tools.csv --model m.flank"); err != nil {
		t.Fatal(err)
	}
	for args, path := range map[string]string{
		"export onnx m.flank":                  "m.onnx",
		"export safetensors m.flank":           "m.safetensors",
		"export safetensors m.flank -o x.bin":  "x.bin",
		"export onnx m.flank --output graph.o": "graph.o",
	} {
		out, _, err := trainer(t, args)
		if info, statErr := os.Stat(path); err != nil || statErr != nil || info.Size() < 500 || !strings.HasPrefix(out, path+": ecs-dbn-") {
			t.Errorf("%s: %v, %v: %s", args, err, statErr, out)
		}
	}
	if _, _, err := trainer(t, "export onnx m.flank -o gone/m.onnx"); err == nil || !strings.Contains(err.Error(), "--output gone/m.onnx") {
		t.Error(err)
	}
}

// A search reports what to expect of its choice, and what the choice was made by. A
// search that was cut off goes on to the same report.
func TestSearch(t *testing.T) {
	bench(t)
	const args = "search --config train.yaml --data tools.csv --trials 3 --quiet"
	out, _, err := trainer(t, args)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"nested: 4 outer folds by tool", "conf 4 ", "flatters", "with tools held\nout from the choice itself: G-mean ", "of the configured network on the same tools: "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	text, err := os.ReadFile("search.json")
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Trials []struct{ Picked int }
		Nested struct{ Rows int }
	}
	if err := json.Unmarshal(text, &r); err != nil || len(r.Trials) != 3 || r.Trials[0].Picked+r.Trials[1].Picked+r.Trials[2].Picked != 4 || r.Nested.Rows != 104 {
		t.Errorf("%v: %s", err, text)
	}
	if _, err := os.Stat("search.checkpoint"); err == nil {
		t.Error("the checkpoint is left behind")
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	var first, errs strings.Builder
	if err := run(ctx, strings.Fields(args+" -o again.json"), &first, &errs); err != nil && !strings.Contains(err.Error(), "goes on with what is in again.checkpoint") {
		t.Error(err)
	}
	if _, _, err := trainer(t, args+" -o again.json --workers 1"); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile("again.json"); err != nil || string(again) != string(text) {
		t.Errorf("a search that was cut off ends otherwise: %v\n%s", err, again)
	}
}

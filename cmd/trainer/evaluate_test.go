package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/testkit/golden"
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
	t.Parallel()
	dir := bench(t, "train.yaml", unscored, "tools-table.csv", asTable("T"))
	all, err := table.Load(dir.path("tools-table.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"t.parquet", "t.arrow"} {
		if err := all.Save(dir.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	var evaluations []string
	for i, data := range []string{"--data tools.csv", "--table tools-table.csv", "--table t.parquet", "--table t.arrow"} {
		path := fmt.Sprintf("m%d.flank", i)
		if _, _, err := dir.trainer(t, "fit --quiet --config train.yaml --model "+path+" "+data); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		out, _, err := dir.trainer(t, "evaluate --quiet --format json --config train.yaml --model "+path+" "+data)
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
	t.Parallel()
	dir := bench(t, "t.csv", asTable("T"))
	out, progress, err := dir.trainer(t, "fit --quiet --table t.csv")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "120 windows cut, 80 used, 40 make the references") || !strings.Contains(progress, "80 windows of 4 tools: 48 healthy, 32 faulty, 1 to 1.5 healthy; 4 tools have some") {
		t.Errorf("%s%s", out, progress)
	}
	out, _, err = dir.trainer(t, "inspect model.flank --format json")
	var is struct{ Features []string }
	if err != nil || json.Unmarshal([]byte(out), &is) != nil || !slices.Equal(is.Features, []string{"rms", "power"}) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestEvaluate(t *testing.T) {
	t.Parallel()
	dir := bench(t, "train.yaml", unscored, "new.csv", asTable("N"))
	if _, _, err := dir.trainer(t, "fit --quiet --config train.yaml --data tools.csv --model m.flank"); err != nil {
		t.Fatal(err)
	}
	out, _, err := dir.trainer(t, "evaluate --model m.flank --config train.yaml --data tools.csv")
	if err != nil {
		t.Fatal(err)
	}
	dir.into(t, "e.json", "evaluate --model m.flank --config train.yaml --data tools.csv --format json")
	for _, want := range []string{"faulty if maximum flank wear ≥ 300 µm", "ROC AUC ", "average precision", "4 of 4 worn tools caught once they were worn, 0 before, 0 missed; 0 of 0 others rang", "\nall ", "\nT1 ", "\nT4 ", "\nall 104 windows, with 95 % intervals: G-mean ", " over 4 tools\n", "had none been unknown", "note: the model was trained on tools: "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	text, err := os.ReadFile(dir.path("e.json"))
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
	m, err := model.Load(dir.path("m.flank"))
	if err != nil {
		t.Fatal(err)
	}
	if e.Model != m.ID() || len(e.Groups) != 4 || e.Within.Tools != 4 || e.Alarms.Caught != 4 || e.Pooled["gmean"].(float64) < 0.9 || e.Pooled["rows"].(float64) != 104 {
		t.Errorf("%s", text)
	}
	// The other table names other tools and is another file, but its features are a copy.
	out, _, err = dir.trainer(t, "evaluate --quiet --model m.flank --table new.csv")
	if err != nil || !strings.Contains(out, "note: the model was trained on these tools, under these names or others: N1 (T1 in training), N2 (T2 in training), N3 (T3 in training) and N4 (T4 in training): their figures") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, _, err = dir.trainer(t, "evaluate --quiet --model m.flank --table new.csv --alarm k=9"); err == nil || !strings.Contains(err.Error(), "k is 9") {
		t.Error(err)
	}
	if _, _, err = dir.trainer(t, "evaluate --quiet --model m.flank --table new.csv --alarm threshold=1.5"); err == nil || !strings.Contains(err.Error(), "threshold is 1.5") {
		t.Error(err)
	}
	for _, rule := range []string{"monitor", "k=2,n=3,on_hold=1s", "k=2,latch=false"} {
		if _, _, err = dir.trainer(t, "evaluate --quiet --model m.flank --table new.csv --alarm "+rule); err == nil || !strings.Contains(err.Error(), "name k, n and threshold only") {
			t.Errorf("%s: %v", rule, err)
		}
	}
	if out, _, err = dir.trainer(t, "evaluate --quiet --model m.flank --table new.csv --alarm k=2,n=3,threshold=0.9"); err != nil || !strings.Contains(out, "alarms   at 2 of 3 windows with a score of 0.9 or more: ") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestCosts(t *testing.T) {
	t.Parallel()
	dir := bench(t, "train.yaml", unscored, "new.csv", asTable("N"))
	if _, _, err := dir.trainer(t, "fit --quiet --config train.yaml --data tools.csv --model m.flank"); err != nil {
		t.Fatal(err)
	}
	for args, on := range map[string]string{
		"costs --model m.flank":                         "windows of training (posteriors: training)",
		"costs --quiet --model m.flank --table new.csv": "104 labelled windows, 32 faulty",
	} {
		out, _, err := dir.trainer(t, args)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{on, "\nargmax ", "\ninverse prior ", "\nexact ", "\njade ", "\nkept ", "below the exact optimum", "▲ kept, ", "every threshold from"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", args, want, out)
			}
		}
		out, _, err = dir.trainer(t, args+" --format json")
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
	t.Parallel()
	dir := bench(t, "train.yaml", unscored)
	if _, _, err := dir.trainer(t, "fit --quiet --config train.yaml --data tools.csv --model m.flank"); err != nil {
		t.Fatal(err)
	}
	for args, path := range map[string]string{
		"export onnx m.flank":                    "m.onnx",
		"export safetensors m.flank":             "m.safetensors",
		"export safetensors m.flank --out x.bin": "x.bin",
		"export onnx m.flank --out graph.o":      "graph.o",
	} {
		out, _, err := dir.trainer(t, args)
		if info, statErr := os.Stat(dir.path(path)); err != nil || statErr != nil || info.Size() < 500 || !strings.HasPrefix(out, path+": ecs-dbn-") {
			t.Errorf("%s: %v, %v: %s", args, err, statErr, out)
		}
	}
	for args, want := range map[string]string{
		"export onnx m.flank --out gone/m.onnx": "--out gone/m.onnx",
		"export pmml m.flank":                   `must be one of "onnx","safetensors"`,
	} {
		if _, _, err := dir.trainer(t, args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// A search reports what to expect of its choice, and what the choice was made by. A
// search that was cut off goes on to the same report.
func TestSearch(t *testing.T) {
	t.Parallel()
	dir := bench(t)
	const args = "search --config train.yaml --data tools.csv --trials 3 --quiet"
	out, _, err := dir.trainer(t, args)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"nested: 4 outer folds by tool", "conf 4 ", "flatters", "with tools held\nout from the choice itself: G-mean ", "of the configured network on the same tools: "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	text, err := os.ReadFile(dir.path("search.json"))
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
	if _, err := os.Stat(dir.path("search.checkpoint")); err == nil {
		t.Error("the checkpoint is left behind")
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, _, err := dir.run(ctx, args+" --out again.json"); err != nil && !strings.Contains(err.Error(), "goes on with what is in again.checkpoint") {
		t.Error(err)
	}
	if _, _, err := dir.trainer(t, args+" --out again.json"); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(dir.path("again.json")); err != nil || string(again) != string(text) {
		t.Errorf("a search that was cut off ends otherwise: %v\n%s", err, again)
	}
}

// strangers are tools that wear out as the tools of recording do, with other noise. The last one
// is unlike anything that was trained on once it is worn.
func strangers(seed uint64) string {
	rng := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	b.WriteString("tool,rms,power,vb_max_um\n")
	for tool := range 3 {
		for s := range 34 {
			um := 13 * float64(s)
			rms, power := 1+um/200, 5+um/100
			if tool == 2 && um > 290 {
				rms, power = 0.7, 7
			}
			fmt.Fprintf(&b, "X%d,%.3f,%.3f,%v\n", 10-tool, rms*(1+0.03*rng.NormFloat64()), power+0.1*rng.NormFloat64(), um)
		}
	}
	return b.String()
}

// The evaluation of tools that the model has not seen: the verdict first, tools as people
// count, two lines where windows are unknown, and no hours that no one knows.
func TestEvaluationText(t *testing.T) {
	t.Parallel()
	dir := bench(t, "train.yaml", strings.Replace(unscored, "network:", "unknown: {error_rate: 0.2, novelty: 0.02}\nnetwork:", 1), "new.csv", strangers(7))
	if _, _, err := dir.trainer(t, "fit --quiet --config train.yaml --data tools.csv --model m.flank"); err != nil {
		t.Fatal(err)
	}
	out, _, err := dir.trainer(t, "evaluate --quiet --model m.flank --table new.csv")
	if err != nil {
		t.Fatal(err)
	}
	dir.into(t, "e.json", "evaluate --quiet --model m.flank --table new.csv --format json")
	_, out, _ = strings.Cut(out, "\nmodel ") // the verdict has its own tests
	_, out, _ = strings.Cut(out, "\n")       // and the id is another one after each change of the trainer
	golden.Check(t, "evaluation.txt", out)
	text, err := os.ReadFile(dir.path("e.json"))
	if err != nil {
		t.Fatal(err)
	}
	var e card.Evaluation
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	all, known := e.CountingUnknown, e.WindowScores
	unknown := 0
	for _, n := range all.Pooled.Unknown {
		unknown += n
	}
	if unknown == 0 || all.Pooled.Rows != known.Pooled.Rows+unknown || !(all.Pooled.GMean < known.Pooled.GMean) || !(all.Pooled.Accuracy < known.Pooled.Accuracy) ||
		all.Pooled.Brier == known.Pooled.Brier || all.AveragePrecision == known.AveragePrecision || e.WearScore == nil {
		t.Errorf("%d unknown\n%s", unknown, text)
	}
	for name, with := range all.Groups {
		if without := known.Groups[name]; with.Recall > without.Recall || with.Specificity > without.Specificity || with.Rows < without.Rows {
			t.Errorf("%s: %+v, without unknown %+v", name, with, without)
		}
	}
}

// The error of the wear is measured on these recordings, and not by the trainer.
func TestEvaluateScoresWearOnTheData(t *testing.T) {
	t.Parallel()
	twice := regexp.MustCompile(`(?m),([0-9.]+)$`).ReplaceAllStringFunc(strangers(7), func(s string) string {
		um, err := strconv.ParseFloat(s[1:], 64)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(",%v", um+100)
	})
	bare := strings.ReplaceAll(regexp.MustCompile(`(?m),[0-9.]+$`).ReplaceAllString(strangers(7), ""), ",vb_max_um", "")
	bare = strings.Replace(strings.ReplaceAll(bare, "\nX", "\n1,X"), "tool", "class,tool", 1)
	dir := bench(t, "train.yaml", unscored, "new.csv", strangers(7), "more.csv", twice, "bare.csv", strings.Replace(bare, "\n1,X", "\n0,X", 20))
	if _, _, err := dir.trainer(t, "fit --quiet --config train.yaml --data tools.csv --model m.flank"); err != nil {
		t.Fatal(err)
	}
	off := func(file string) float64 {
		out, _, err := dir.trainer(t, "evaluate --quiet --format json --model m.flank --table "+file)
		var e card.Evaluation
		if err != nil || json.Unmarshal([]byte(out), &e) != nil || e.WearScore == nil {
			t.Fatalf("%s: %v\n%s", file, err, out)
		}
		return e.WearScore.MAEUM
	}
	if right, wrong := off("new.csv"), off("more.csv"); !(right < 40) || !(wrong > right+60) {
		t.Errorf("off by %.1f µm, and by %.1f µm where 100 µm more were measured", right, wrong)
	}
	out, _, err := dir.trainer(t, "evaluate --quiet --model m.flank --table bare.csv")
	if err != nil || !strings.Contains(out, "wear     is estimated, but not scored: no wear was measured in these data\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Recordings need no configuration, because the model knows how to read them, and a layout
// file only if their columns have other names.
func TestEvaluateWithoutConfig(t *testing.T) {
	t.Parallel()
	renamed := strings.Replace(recording(), "tool,rms,power,vb", "id,level,power,wear", 1)
	const layout = "name: other\nrecording: {tool: id, vb_max_um: wear}\nchannels:\n  - {name: rms, from: level, kind: feature, rate: 1}\n"
	dir := bench(t, "train.yaml", unscored, "renamed.csv", renamed, "other.yaml", layout,
		"fits.yaml", layout+"  - {name: power, kind: feature, rate: 1}\n")
	if _, _, err := dir.trainer(t, "fit --quiet --config train.yaml --data tools.csv --model m.flank"); err != nil {
		t.Fatal(err)
	}
	figures := func(args string) string {
		out, _, err := dir.trainer(t, "evaluate --quiet --format json --model m.flank "+args)
		var e struct{ Pooled, Windows, Alarms json.RawMessage }
		if err != nil || json.Unmarshal([]byte(out), &e) != nil {
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
		return string(e.Pooled) + string(e.Windows) + string(e.Alarms)
	}
	want := figures("--config train.yaml --data tools.csv")
	if got := figures("--data tools.csv"); got != want {
		t.Errorf("without a configuration\n%s\nwith it\n%s", got, want)
	}
	if got := figures("--layout fits.yaml --data renamed.csv"); got != want {
		t.Errorf("with other names of columns\n%s\nwant\n%s", got, want)
	}
	for args, want := range map[string]string{
		"--data renamed.csv":                     `renamed.csv: no column "rms", which the layout names as a channel: the header has "id", "level", and 2 more, the layout "rms", "power": correct one of them, or give the file that belongs to this layout; it is read as the recordings that the model was trained on: if its columns or format are different, say so in a layout file and name it with --layout`,
		"--layout other.yaml --data renamed.csv": "other.yaml: model does not fit",
		"--data tools.csv --window=-2s":          "--window -2s: must be positive",
		"--layout no.yaml --data tools.csv":      "no.yaml",
		"--quiet --data tools.csv --table t.csv": "not from both at once",
	} {
		if _, _, err := dir.trainer(t, "evaluate --model m.flank "+args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v lacks %q", args, err, want)
		}
	}
}

// Recordings whose labels are in a wear file need no column of labels, although those that
// the model was trained on had one.
func TestEvaluateWithWearFile(t *testing.T) {
	t.Parallel()
	n := -1
	timed := "time," + regexp.MustCompile(`(?m)^T`).ReplaceAllStringFunc(recording(), func(string) string {
		n++
		return fmt.Sprintf("2026-11-02T06:%02d:%02dZ,T", n/60, n%60)
	})
	dir := bench(t, "train.yaml", unscored, "layout.yaml", layoutYAML+"  time: time\n", "timed.csv", timed,
		"unlabelled.csv", regexp.MustCompile(`(?m),[^,\n]*$`).ReplaceAllString(timed, ""),
		"wear.csv", "time,tool,vb_max_um\n2026-11-02T06:00:00Z,T1,0\n2026-11-02T06:00:29Z,T1,406\n")
	if _, _, err := dir.trainer(t, "fit --quiet --config train.yaml --data timed.csv --model m.flank"); err != nil {
		t.Fatal(err)
	}
	out, _, err := dir.trainer(t, "evaluate --quiet --model m.flank --data unlabelled.csv --wear wear.csv")
	if err != nil || !strings.Contains(out, "120 windows cut, 26 used, 16 make the references of their tools, 78 without label") || !strings.Contains(out, "26 windows of 1 tools: 18 healthy, 8 faulty") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, _, err = dir.trainer(t, "evaluate --quiet --model m.flank --data unlabelled.csv"); err == nil || !strings.Contains(err.Error(), "no column \"vb\"") {
		t.Errorf("without the labels: %v", err)
	}
}

// Hours are counted where the length of a row is known: by the flag, by a column, by the
// configuration that the model was trained with, or by the one at hand.
func TestHoursOfTables(t *testing.T) {
	t.Parallel()
	started := "start," + strings.TrimPrefix(strangers(7), "")
	var n int
	started = regexp.MustCompile(`(?m)^X`).ReplaceAllStringFunc(started, func(s string) string {
		n++
		return fmt.Sprintf("2026-11-02T06:%02d:%02dZ,X", n*3/60, n*3%60)
	})
	table := "label: {vb_max_um: 300}\nreference: {windows: 4, mode: kind}\nnetwork: {hidden: [4], pretrain: {epochs: 2}, fine_tune: {epochs: 5}}\ncosts: {folds: 2}\nevaluate: {by_tool: \"off\", random_split: false}\n"
	dir := bench(t, "t.csv", asTable("T"), "new.csv", strangers(7), "started.csv", started, "said.yaml", table+"window: {length: 2s}\n", "silent.yaml", table)
	for _, of := range []string{"said", "silent"} {
		if _, _, err := dir.trainer(t, "fit --quiet --config "+of+".yaml --table t.csv --model "+of+".flank"); err != nil {
			t.Fatal(err)
		}
	}
	for args, want := range map[string][]string{
		"--model said.flank --table new.csv":                      {"time     rows of 2s, as the model was trained on\n", " h of healthy cutting"},
		"--model silent.flank --table new.csv":                    {"note: it is not known how long a window lasts, so that there are no hours and no false alarms an hour: nothing says how long a row of the table lasts: give `window: {length: 2s}` in train.yaml, or the flag --window 2s, or a column `start` in the table", " windows\n"},
		"--model silent.flank --table new.csv --window 4s":        {"time     rows of 4s, as the configuration or the flag says\n"},
		"--model silent.flank --table new.csv --config said.yaml": {"time     rows of 2s, as the configuration or the flag says\n"},
		"--model silent.flank --table started.csv":                {"time     rows of 3s, by the column start\n"},
		"--model silent.flank --table started.csv --window 4s":    {"time     rows of 4s, as the configuration or the flag says, one every 3s by the column start\n"},
	} {
		out, _, err := dir.trainer(t, "evaluate --quiet "+args)
		for _, w := range want {
			if err != nil || !strings.Contains(out, w) {
				t.Errorf("%s: %v, no %q in\n%s", args, err, w, out)
			}
		}
		if unknown := strings.Contains(out, "it is not known how long"); unknown != (args == "--model silent.flank --table new.csv") {
			t.Errorf("%s: length not known: %v", args, unknown)
		}
	}
}

// into writes what the trainer prints to a file.
func (dir folder) into(t *testing.T, file, args string) {
	t.Helper()
	out, _, err := dir.trainer(t, args)
	if err == nil {
		err = os.WriteFile(dir.path(file), []byte(out), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

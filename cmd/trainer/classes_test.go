package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/model"
)

const classesYAML = trainYAML + "evaluate: {by_tool: 5-fold, random_split: false}\n"

// threeYAML names the classes of a table.
var threeYAML = strings.Replace(classesYAML, "  vb_max_um: 300\n", "  classes: [{name: healthy}, {name: worn}, {name: broken}]\n", 1)

// classTable returns four tools that go through three classes, by name or number.
func classTable(prefix string, named bool) string {
	rng := rand.New(rand.NewPCG(8, 9))
	names := []string{"healthy", "worn", "broken"}
	var b strings.Builder
	b.WriteString("tool,class,rms,power\n")
	for tool := range 4 {
		for s := range 36 {
			class := s / 12
			label := fmt.Sprint(class)
			if named {
				label = names[class]
			}
			fmt.Fprintf(&b, "%s%d,%s,%.3f,%.3f\n", prefix, tool+1, label, 1+float64(class)+0.1*rng.NormFloat64(), 5+3*float64(class)+0.3*rng.NormFloat64())
		}
	}
	return b.String()
}

// Every command works on three classes, from tables of every format, in memory
// and on disk, and classes by name are those by number.
func TestThreeClasses(t *testing.T) {
	here(t, "train.yaml", threeYAML, "named.csv", classTable("T", true), "numbered.csv", classTable("T", false), "new.csv", classTable("N", true))
	all, err := table.Load("named.csv")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"named.parquet", "named.arrow"} {
		if err := all.Save(name); err != nil {
			t.Fatal(err)
		}
	}
	classifier := func(file string) []byte {
		t.Helper()
		if out, log, err := trainer(t, "fit --quiet --config train.yaml --model m.flank --table "+file); err != nil ||
			!strings.Contains(out, "G-mean healthy    worn  broken  accuracy") || !strings.Contains(log, "128 windows of 4 tools: 32 healthy of 4, 48 worn of 4, 48 broken of 4") {
			t.Fatalf("%s: %v\n%s%s", file, err, out, log)
		}
		m, err := model.Load("m.flank")
		if err != nil {
			t.Fatal(err)
		}
		b, err := m.Classifier.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, scan := range []bool{false, true} {
		if scan {
			scanned(t)
		}
		want := classifier("numbered.csv")
		for _, file := range []string{"named.csv", "named.parquet", "named.arrow"} {
			if !bytes.Equal(classifier(file), want) {
				t.Errorf("%s, scanned %v: another classifier than of classes by number", file, scan)
			}
		}
	}
	for args, want := range map[string][]string{
		"inspect m.flank": {"label       healthy, worn or broken, as the table says\n", " of healthy, 0.", " of worn, ", " of broken\n", "recall ", " of worn and "},
		"evaluate --quiet --model m.flank --table new.csv":                {"\ndecided          healthy    worn  broken\n", " 1.000 of broken against the rest", "faulty   any class but healthy: recall ", "\nN4 "},
		"costs --model m.flank":                                           {"rule               healthy      worn    broken   G-mean", "\nkept ", "no exact optimum"},
		"costs --quiet --model m.flank --table new.csv":                   {"on         128 labelled windows: G-mean ", "\nkept "},
		"export onnx m.flank":                                             {"m.onnx: ecs-dbn-"},
		"export safetensors m.flank":                                      {"m.safetensors: ecs-dbn-"},
		"search --quiet --config train.yaml --table named.csv --trials 2": {"nested: 4 outer folds by tool", " of worn and "},
	} {
		out, _, err := trainer(t, args)
		for _, w := range want {
			if err != nil || !strings.Contains(out, w) {
				t.Errorf("%s: %v, no %q in\n%s", args, err, w, out)
			}
		}
	}
	for _, path := range []string{"m.onnx", "m.safetensors"} {
		if b, err := os.ReadFile(path); err != nil || !bytes.Contains(b, []byte("healthy, worn, broken")) {
			t.Errorf("%s does not name the classes, %v", path, err)
		}
	}
	var facts struct{ Classes []string }
	out, _, err := trainer(t, "inspect --format json m.flank")
	if err != nil || json.Unmarshal([]byte(out), &facts) != nil || !slices.Equal(facts.Classes, []string{"healthy", "worn", "broken"}) {
		t.Errorf("%v: %s", err, out)
	}
	for _, args := range []string{"evaluate --quiet --format json --model m.flank --table new.csv", "costs --format json --model m.flank"} {
		if out, _, err := trainer(t, args); err != nil || !json.Valid([]byte(out)) || !strings.Contains(out, `"broken"`) {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
}

// A recording has three classes by limits of its wear.
func TestThreeClassesByWear(t *testing.T) {
	t.Parallel()
	dir := bench(t, "train.yaml", strings.Replace(classesYAML, "  vb_max_um: 300\n", "  classes:\n    - name: healthy\n    - {name: worn, vb_max_um: 150}\n    - {name: faulty, vb_max_um: 300}\n", 1))
	if out, log, err := dir.trainer(t, "fit --quiet --config train.yaml --data tools.csv"); err != nil || !strings.Contains(log, "28 healthy of 4, 44 worn of 4, 32 faulty of 4") {
		t.Errorf("%v\n%s%s", err, out, log)
	}
	out, _, err := dir.trainer(t, "inspect model.flank")
	if err != nil || !strings.Contains(out, "label       worn if maximum flank wear ≥ 150 µm; faulty if maximum flank wear ≥ 300 µm\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// What is wrong with classes is named with file and line, or row, and remedy.
func TestErrorsOfClasses(t *testing.T) {
	t.Parallel()
	dir := bench(t, "t.csv", classTable("T", true))
	if _, log, err := dir.trainer(t, "fit --quiet --config train.yaml --table t.csv"); err != nil || !strings.Contains(log, "healthy") { // worn and broken are faulty
		t.Errorf("%v\n%s", err, log)
	}
	for rule, want := range map[string]string{
		"  vb_max_um: 300\n  classes: [{name: healthy}, {name: worn}]\n":                                  "train.yaml:5: label: vb_max_um: cannot be set together with classes: move it into the class",
		"  classes: [{name: healthy}]\n":                                                                  "train.yaml:5: label: classes: there is only \"healthy\": name two or more",
		"  classes:\n    - name: good\n    - name: bad\n":                                                 "train.yaml:6: label: classes[0]: name: \"good\": the first class is for good tools: name it \"healthy\"",
		"  classes:\n    - name: healthy\n    - {name: a, vb_max_um: 2}\n    - {name: b, vb_max_um: 1}\n": "train.yaml:8: label: classes[2]: vb_max_um: 1: must be above 2, the limit of a class before",
		"  classes:\n    - name: healthy\n    - {name: a, vb_max: 2}\n":                                   "train.yaml:7: unknown key `vb_max`",
		"  classes: [{name: healthy}, {name: worn}]\n":                                                    "train: t: row 25: class \"broken\" is none of healthy, worn: name the classes of the table in train.yaml",
		"  classes: [{name: healthy}, {name: worn}, {name: broken}, {name: gone}]\n":                      "none of 128 windows with a label is gone",
	} {
		if err := os.WriteFile(dir.path("train.yaml"), []byte(strings.Replace(trainYAML, "  vb_max_um: 300\n", rule, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := dir.trainer(t, "fit --quiet --config train.yaml --table t.csv"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s=> %v, want %s", rule, err, want)
		}
	}
}

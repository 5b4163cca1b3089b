package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
)

// worn is a table of five tools whose vibration doubles with wear.
func worn() string {
	var b strings.Builder
	b.WriteString("rms,power,material,tool,worn\n")
	for tool := range 5 {
		for i := range 20 {
			class, level := "no", 1.0
			if i >= 15 {
				class, level = "yes", 2.0
			}
			fmt.Fprintf(&b, "%.3f,%d,steel%d,T%d,%s\n", level+0.02*float64((7*i+tool)%10), (3*i)%7, tool%2, tool, class)
		}
	}
	return b.String()
}

func TestStudyOfTable(t *testing.T) {
	t.Parallel()
	dir := folder(t.TempDir())
	if err := os.WriteFile(dir.path("my.csv"), []byte(worn()), 0o644); err != nil {
		t.Fatal(err)
	}
	stdout, _, err := dir.trainer(t, "study --data my.csv --label worn --group tool --methods logistic,extra-trees --trials 1 --quiet")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"G-mean", "   logistic   1.000", "extra-trees",
		"my.csv: 100 rows of 4 columns, 25 of them of the rare class, worn=yes. Each of 5 parts is held out in turn, tool by tool."} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "flatter") {
		t.Error("the answer says that folds by group flatter")
	}
	if stdout, _, err = dir.trainer(t, "study --data my.csv --label worn --ignore tool --methods logistic --trials 1 --quiet"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(stdout, "Folds are by row, 5 of them") {
		t.Error("the answer does not say that folds by row flatter")
	}
}

// The first sentence says what to deploy: for a table that a line tells apart, logistic regression.
func TestStudyRecommends(t *testing.T) {
	t.Parallel()
	dir := folder(t.TempDir())
	if err := os.WriteFile(dir.path("my.csv"), []byte(strings.ReplaceAll(strings.ReplaceAll(worn(), "yes", "350"), "no", "120")), 0o644); err != nil {
		t.Fatal(err)
	}
	stdout, _, err := dir.trainer(t, "study --data my.csv --label worn --vb-max-um 300 --group tool --ignore mat* --methods logistic,random-forest --trials 1 --quiet")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(stdout, "Deploy logistic regression: its G-mean of 1.000 is ahead of a random forest by 0.000 (0.000 to 0.000) over 5 tools, and it is simpler.\nmy.csv: 100 rows of 2 columns, 25 of them of the rare class, worn from 300 on.") {
		t.Errorf("%s", stdout)
	}
}

// Recordings and tables that fit takes are studied with fit's flags, and with few methods.
func TestStudyOfRecordings(t *testing.T) {
	t.Parallel()
	dir := bench(t, "t.csv", asTable("T"))
	for args, want := range map[string][]string{
		"--config train.yaml --data tools.csv": {"Deploy ", " over 4 tools",
			"104 windows of 4 tools: 72 healthy, 32 faulty", "2 features, relative to the tool's reference by mode kind. Each of 4 parts is held out in turn, tool by tool.",
			"ecs-dbn", "logistic", "random-forest", "extra-trees"},
		"--config train.yaml --data tools.csv --vb-max-um 200 --ignore po* --methods logistic,extra-trees": {"Deploy ", "faulty if maximum flank wear ≥ 200 µm; 1 features"},
		"--config train.yaml --table t.csv --methods logistic,extra-trees":                                 {"Deploy ", "104 windows of 4 tools"},
	} {
		stdout, stderr, err := dir.trainer(t, "study --trials 1 --quiet "+args)
		if err != nil {
			t.Fatalf("%s: %v\n%s", args, err, stderr)
		}
		if !strings.HasPrefix(stdout, want[0]) {
			t.Errorf("%s: begins with %.60q", args, stdout)
		}
		for _, w := range want {
			if !strings.Contains(stdout, w) {
				t.Errorf("%s: no %q in\n%s", args, w, stdout)
			}
		}
	}
	for args, want := range map[string]string{
		"--config train.yaml --data tools.csv --vb-max-um 900": "all 104 windows with a label are healthy (faulty if maximum flank wear ≥ 900 µm; they have",
		"--config train.yaml --data tools.csv --ignore x*":     "x*",
		"--data tools.csv": "if the file is a recording, its layout is missing: name train.yaml with --config",
	} {
		if _, _, err := dir.trainer(t, "study --quiet "+args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", args, err, want)
		}
	}
}

// A study of a table answers whether ECS-DBN is right for it.
func TestStudyAnswers(t *testing.T) {
	t.Parallel()
	dir := folder(t.TempDir())
	if err := os.WriteFile(dir.path("my.csv"), []byte(worn()), 0o644); err != nil {
		t.Fatal(err)
	}
	stdout, _, err := dir.trainer(t, "study --data my.csv --label worn --group tool --methods ecs-dbn,logistic --trials 1 --quiet")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Is ECS-DBN right for this table? ", "Of 100 rows of worn=yes it finds 100"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

func TestStudyErrors(t *testing.T) {
	t.Parallel()
	dir := folder(t.TempDir())
	if err := os.WriteFile(dir.path("my.csv"), []byte(worn()), 0o644); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"":                                       "name your data with --data or --table",
		"--data my.csv":                          "--label is missing",
		"--data my.csv --label worn --trials=-1": "must be positive",
		"--data my.csv --label w":                "there are rms, power, material, tool, worn",
		"--data no.csv --label w":                "no.csv",
		"--data my.csv --label worn --methods dbn":       `"dbn" is not a method: there are ecs-dbn, logistic, random-forest, extra-trees`,
		"--data my.csv --label worn --methods x":         `"x" is not a method`,
		"--data my.csv --label rms":                      "if it is wear, give the limit from which on a tool is worn with --vb-max-um",
		"--data my.csv --vb-max-um 3":                    "--label is missing: the column of --data that holds the wear",
		"--data my.csv --label rms --vb-max-um 300":      "rms is 2.18 at most, below the limit of 300 µm: is the column in mm?",
		"--data my.csv --label material --vb-max-um 300": `my.csv:2: material "steel0" is not a wear in µm`,
		"--data my.csv --label worn --vb-max-um=-1":      "--vb-max-um -1: must be positive",
		"--data my.csv --label worn --ignore x*":         `no column "x*" for --ignore: there are rms, power, material, tool, worn`,
		"--data my.csv --label worn --wear w.csv":        "--wear goes with --config",
		"--data my.csv your.csv --label worn":            "of one .csv",
		"--data my.parquet --label worn":                 "name a table of features with --table",
		"--config train.yaml --data my.csv --label worn": "--label and --group are for a .csv without --config",
		"--table my.csv --group tool":                    "--label and --group are for a .csv without --config",
	} {
		_, _, err := dir.trainer(t, "study "+args)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", args, err, want)
		}
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := dir.run(stopped, "study --data my.csv --label worn --methods logistic --quiet")
	if err == nil || !strings.Contains(err.Error(), "stopped: nothing was kept") {
		t.Errorf("stopped: %v", err)
	}
}

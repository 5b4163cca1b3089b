package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

const presses = `name: press
channels:
  - {names: [acc], kind: vibration, unit: g, rate: 100, range: 50}
  - {names: [thrust], kind: force, unit: N, rate: 100}
recording: {tool: tool, hole: hole, time: time}
`

const pressTraining = `layout: layout.yaml
wear: wear.csv
window: {length: 500ms}
features: {set: [rms, mean, kurtosis, slope]}
reference: {windows: 4}
label: {vb_max_um: 300}
network: {hidden: [4], pretrain: {epochs: 1}, fine_tune: {epochs: 8}}
costs: {folds: 2}
evaluate: {by_tool: "off", random_split: false}
`

// press returns a recording of two tools: six holes each with pauses between them, the sensor of acceleration away
// for a while, and a gap. Start is in seconds since 1970.
func press(seed uint64, start int, tools ...string) string {
	rng := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	b.WriteString("time,tool,hole,acc,thrust\n")
	at := 100 * start
	for _, tool := range tools {
		for hole := range 6 {
			for i := range 600 {
				acc, thrust := 0.02*rng.NormFloat64(), 0.5*rng.NormFloat64()
				if i >= 150 && i < 500 { // it drills
					wear := 1 + float64(hole)/4
					acc, thrust = wear*rng.NormFloat64(), 300*wear+3*rng.NormFloat64()
				}
				cell := fmt.Sprintf("%.4f", acc)
				if hole == 3 && i > 260 && i < 290 && tool == "A" { // too seldom to be the channel's nature
					cell = ""
				}
				fmt.Fprintf(&b, "%d.%02d,%s,H%d,%s,%.3f\n", at/100, at%100, tool, hole, cell, thrust)
				if at++; hole == 2 && i == 300 {
					at += 40
				}
			}
		}
	}
	return b.String()
}

func pressBench(t *testing.T) folder {
	t.Helper()
	const monday = 1_780_000_000
	wear := "tool,time,vb_max_um,vb_mean_um,state\n"
	for tool, start := range map[string]int{"A": 0, "B": 36, "C": 1000, "D": 1036} {
		at := func(s int) string {
			return fmt.Sprintf("2026-05-28T%02d:%02d:%02dZ", 20+(start+s+1600)/3600, (start+s+1600)/60%60, (start+s+1600)%60)
		}
		if tool == "D" { // which is faulty by its state alone
			wear += fmt.Sprintf("D,%s,80,40,healthy\nD,%s,120,60,broken\n", at(0), at(24))
			continue
		}
		wear += fmt.Sprintf("%s,%s,80,40,healthy\n%s,%s,500,250,worn\n", tool, at(0), tool, at(40))
	}
	return bench(t, "layout.yaml", presses, "train.yaml", pressTraining, "wear.csv", wear,
		"one.csv", press(1, monday, "A", "B"), "two.csv", press(2, monday+1000, "C", "D"))
}

// What `trainer features` writes holds all that the trainer takes from a recording: the model of the
// table is the model of the recordings, byte for byte, in every format, and with a configuration that says
// nothing of recordings.
func TestModelOfATableIsTheModelOfItsRecordings(t *testing.T) {
	t.Parallel()
	dir := pressBench(t)
	short := strings.Replace(pressTraining, "layout: layout.yaml\nwear: wear.csv\nwindow: {length: 500ms}\nfeatures: {set: [rms, mean, kurtosis, slope]}\n", "", 1)
	if err := os.WriteFile(dir.path("short.yaml"), []byte(short), 0o600); err != nil {
		t.Fatal(err)
	}
	must := func(args string) string {
		t.Helper()
		out, errs, err := dir.trainer(t, args)
		if err != nil {
			t.Fatalf("%s: %v\n%s", args, err, errs)
		}
		return out
	}
	const data = " --data two.csv one.csv" // not in the order of time
	must("fit --quiet --config train.yaml --model a.flank" + data)
	want, err := os.ReadFile(dir.path("a.flank"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Load(dir.path("a.flank"))
	if err != nil {
		t.Fatal(err)
	}
	if m.Gate == nil && m.Cycle == nil || len(m.Provenance.Data) != 2 || len(m.Layout.Channels()) != 2 {
		t.Fatalf("the recordings are too simple for this test: %v, %+v", m.Cutting(), m.Provenance)
	}
	for i, ext := range table.Formats {
		must("features --quiet --config train.yaml --out f" + ext + data)
		config := []string{"train.yaml", "short.yaml", "short.yaml"}[i]
		must("fit --quiet --config " + config + " --model b.flank --table f" + ext)
		got, err := os.ReadFile(dir.path("b.flank"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: another model than the recordings give", ext)
		}
		one := must("evaluate --quiet --model a.flank --config train.yaml" + data)
		if two := must("evaluate --quiet --model a.flank --config train.yaml --table f" + ext); two != one {
			t.Errorf("%s: evaluated on the table\n%s\non the recordings\n%s", ext, two, one)
		}
	}
	if left, _ := filepath.Glob(dir.path(".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	// Two tables of a recording each are the recordings, too.
	for _, name := range []string{"one", "two"} {
		must("features --quiet --config train.yaml --out " + name + ".arrow --data " + name + ".csv")
	}
	must("fit --quiet --config short.yaml --model c.flank --table two.arrow one.arrow")
	if got, err := os.ReadFile(dir.path("c.flank")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("another model from two tables: %v", err)
	}
}

// The rows say what became of each window, and the columns are as people expect them.
func TestFeaturesTable(t *testing.T) {
	t.Parallel()
	dir := pressBench(t)
	out, _, err := dir.trainer(t, "features --quiet --config train.yaml --data one.csv --out f.parquet")
	if err != nil {
		t.Fatal(err)
	}
	all, err := table.Load(dir.path("f.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	status := make(map[string]int)
	for i, d := range all.Details {
		status[d.Status]++
		if d.Recording != "one" || d.Sequence != float64(i) || d.LengthS != 0.5 || d.Level != d.Level || all.Start[i].Year() != 2026 || all.Label[i] == "" && d.State != "" {
			t.Fatalf("row %d: %+v", i, d)
		}
		if strings.Contains(d.Quality, "acc=dropout") != (d.Quality != "") {
			t.Errorf("row %d: quality %q", i, d.Quality)
		}
	}
	if status[table.Learning] != 8 || status[table.NotCutting] < 40 || status[table.Judged] < 40 || !strings.Contains(out, fmt.Sprintf("%d judged, 8 learning", status[table.Judged])) {
		t.Errorf("%v\n%s", status, out)
	}
	if want := []string{"acc.rms", "acc.mean", "acc.kurtosis", "acc.slope", "thrust.rms", "thrust.mean", "thrust.kurtosis", "thrust.slope"}; !sameNames(all.Columns, want) {
		t.Errorf("features %q", all.Columns)
	}

	// Relative to the reference, features of windows that make it, or are not judged, are missing.
	if _, _, err := dir.trainer(t, "features --quiet --relative --config train.yaml --data one.csv --out r.csv"); err != nil {
		t.Fatal(err)
	}
	relative, err := table.Load(dir.path("r.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := dir.trainer(t, "features --quiet --relative --judged --config train.yaml --data one.csv --out j.arrow"); err != nil {
		t.Fatal(err)
	}
	judged, err := table.Load(dir.path("j.arrow"))
	if err != nil {
		t.Fatal(err)
	}
	mean := slices.Index(all.Columns, "thrust.mean")
	rms := slices.Index(all.Columns, "thrust.rms")
	var learnt []float64
	var tool string
	at := 0
	for i := range all.Rows() {
		if all.Tool[i] != tool {
			tool, learnt = all.Tool[i], nil
		}
		x, r := all.Row(i).Features, relative.Row(i).Features
		switch all.Details[i].Status {
		case table.Learning:
			learnt = append(learnt, float64(x[rms]))
		case table.Judged:
			slices.Sort(learnt)
			reference := float64(float32((learnt[1] + learnt[2]) / 2))
			if want := math.Log(float64(x[rms]) / reference); math.Abs(float64(r[rms])-want) > 1e-6 {
				t.Fatalf("row %d: rms of thrust is %v relative to %v, want %v", i, r[rms], reference, want)
			}
			if !slices.EqualFunc(judged.Row(at).Features, r, sameValue) || judged.Details[at].Sequence != all.Details[i].Sequence {
				t.Fatalf("row %d: judged windows have %v, all windows %v", i, judged.Row(at), r)
			}
			at++
			continue
		}
		if r[mean] == r[mean] {
			t.Fatalf("row %d is %s and has relative features", i, all.Details[i].Status)
		}
	}
	if at != judged.Rows() || at != status[table.Judged] {
		t.Errorf("%d judged windows of %d", judged.Rows(), at)
	}
}

func sameValue(a, b float32) bool { return a == b || a != a && b != b }

func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// A recording without a clock has seconds, and no start of 1970; so does the model of its table.
func TestFeaturesWithoutAClock(t *testing.T) {
	t.Parallel()
	dir := bench(t)
	if _, _, err := dir.trainer(t, "fit --quiet --config train.yaml --data tools.csv --model a.flank"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := dir.trainer(t, "features --quiet --config train.yaml --data tools.csv --out f.csv"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(dir.path("f.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "1970") || !strings.Contains(string(text), "local/site/area/line/machine,T1,,,healthy,28,,,tools,2,2,1,learning,,,,,") {
		t.Errorf("the table is\n%.700s", text)
	}
	if _, _, err := dir.trainer(t, "fit --quiet --config train.yaml --table f.csv --model b.flank"); err != nil {
		t.Fatal(err)
	}
	a, _ := os.ReadFile(dir.path("a.flank"))
	b, _ := os.ReadFile(dir.path("b.flank"))
	if len(a) == 0 || !bytes.Equal(a, b) {
		t.Error("another model than the recording gives")
	}
}

func TestFeaturesErrors(t *testing.T) {
	t.Parallel()
	dir := bench(t, "t.csv", asTable("T"), "off.yaml", strings.Replace(trainYAML, "mode: kind", `mode: "off"`, 1),
		"long.yaml", trainYAML+"window: {length: 2s}\n", "other.yaml", strings.Replace(trainYAML, "layout.yaml", "other-layout.yaml", 1),
		"other-layout.yaml", strings.Replace(layoutYAML, "power", "load", 1), "set.yaml", trainYAML+"features: {version: 1}\n")
	for _, out := range []string{"f.csv", "r.csv --relative", "j.csv --judged"} {
		if _, _, err := dir.trainer(t, "features --quiet --config train.yaml --data tools.csv --out "+out); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := dir.trainer(t, "fit --quiet --config train.yaml --table t.csv --model table.flank"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir.path("newer.csv"), []byte("tool,rms\nT1,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir.path(table.MetaPath("newer.csv")), []byte(`{"format": 2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"features --config train.yaml --data tools.csv --out f.xlsx":                "the ending says no format: name the file .csv, .parquet, .arrow",
		"features --config train.yaml --data tools.csv --out none/f.csv":            "no folder none: make it first",
		"features --table t.csv --out f.csv":                                        "a table has features already",
		"features --config off.yaml --data tools.csv --relative --out x.csv":        "takes no reference: leave out --relative",
		"features --config long.yaml --data tools.csv --out f.tsv":                  "the ending says no format",
		"fit --config train.yaml --table r.csv --model m.flank":                     "it was written with --relative, to look at",
		"fit --config train.yaml --table j.csv --model m.flank":                     "it was written with --judged, to look at",
		"fit --config long.yaml --table f.csv --model m.flank":                      "the table is of windows of 1s, and `window` of the configuration says 2s",
		"fit --config other.yaml --table f.csv --model m.flank":                     "`layout` of the configuration is another one",
		"fit --config set.yaml --table f.csv --model m.flank":                       "the table has other features than `features` of the configuration",
		"fit --config train.yaml --table newer.csv --model m.flank":                 "written by another release of Flank",
		"fit --config train.yaml --table f.csv --ignore shift --model m.flank":      "no column is named \"shift\"",
		"fit --config train.yaml --table f.csv --ignore tool --model m.flank":       "the column \"tool\" cannot be left out",
		"fit --config train.yaml --data tools.csv --ignore power --model m.flank":   "name features that shall not count under `exclude`",
		"fit --config train.yaml --table f.csv f.csv --model m.flank":               "are the same table",
		"evaluate --config train.yaml --model table.flank --table f.csv --ignore [": "is not a pattern",
	} {
		if _, _, err := dir.trainer(t, args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	if _, err := os.Stat(dir.path("x.csv")); err == nil {
		t.Error("a table was written in spite of an error")
	}
}

// A table that was changed is one like any other: its own columns are features, the trainer's are not, and
// columns of text and constant ones do no harm.
func TestChangedTable(t *testing.T) {
	t.Parallel()
	dir := bench(t)
	if _, _, err := dir.trainer(t, "features --quiet --config train.yaml --data tools.csv --out f.csv"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(dir.path("f.csv"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i := range lines {
		if i == 0 {
			lines[i] += ",mine,operator,shift,always,never"
		} else {
			lines[i] += fmt.Sprintf(",%d.5,Anna,early,7,", i%7)
		}
	}
	if err := os.WriteFile(dir.path("f.csv"), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := strings.Replace(unscored, "layout: layout.yaml\n", "", 1)
	if err := os.WriteFile(dir.path("plain.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err = dir.trainer(t, "fit --quiet --config plain.yaml --table f.csv --model m.flank")
	if err == nil || !strings.Contains(err.Error(), `operator ("Anna"), shift ("early"): leave them out with --ignore 'operator,shift'`) {
		t.Errorf("text: %v", err)
	}
	out, logs, err := dir.trainer(t, "fit --quiet --config plain.yaml --table f.csv --ignore operator,sh* --model m.flank")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"the table is not as `trainer features` wrote it", "1 of 5 features have the same value in all windows and say nothing: always", "1 of 5 features have no value in any window and say nothing: never"} {
		if strings.Count(logs, want) != 1 {
			t.Errorf("the log says %q %d times:\n%s", want, strings.Count(logs, want), logs)
		}
	}
	m, err := model.Load(dir.path("m.flank"))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.NewJudge().FeatureNames(); !sameNames(got, []string{"rms", "power", "mine", "always", "never"}) || m.Provenance.Data[0].Name != "f" {
		t.Errorf("features %q of %+v\n%s", got, m.Provenance.Data, out)
	}
	// The configuration may say the same.
	if err := os.WriteFile(dir.path("plain.yaml"), []byte(settings+"ignore: [operator, 'sh*']\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := dir.trainer(t, "fit --quiet --config plain.yaml --table f.csv --model n.flank"); err != nil {
		t.Fatal(err)
	}
	a, _ := os.ReadFile(dir.path("m.flank"))
	b, _ := os.ReadFile(dir.path("n.flank"))
	if !bytes.Equal(a, b) {
		t.Error("ignore: gives another model than --ignore")
	}
}

// A table keeps the layout that `trainer features` wrote into it, also after rows were changed; --layout says it by
// hand. A model of a table that says nothing warns of which machines it judges, in the log and on the card.
func TestLayoutOfATable(t *testing.T) {
	t.Parallel()
	dir := pressBench(t)
	ours, _, err := signal.LoadLayout(dir.path("layout.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := dir.trainer(t, "features --quiet --config train.yaml --out whole.csv --data one.csv two.csv"); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(dir.path("whole.csv"))
	meta, _ := os.ReadFile(dir.path(table.MetaPath("whole.csv")))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	fewer := strings.Join(append(slices.Clone(lines[:1]), lines[2:]...), "\n")
	for i := range lines {
		lines[i] += map[bool]string{true: ",mine", false: fmt.Sprintf(",%d.5", i%7)}[i == 0]
	}
	more := strings.Join(lines, "\n")
	settings := strings.Replace(pressTraining, "layout: layout.yaml\nwear: wear.csv\nwindow: {length: 500ms}\n", "", 1)
	const (
		unsaid = "nothing says of which layout the table's features are, so each of its"
		idle   = "nothing says when the machines of the table idle"
	)
	for name, tc := range map[string]struct {
		table, meta, args string
		ours              bool // the layout of the machines
		warns             []string
	}{
		"as it was written":           {string(text), string(meta), "", true, nil},
		"a row less":                  {fewer, string(meta), "", true, []string{idle}},
		"a column more":               {more, string(meta), "", false, []string{`"more":["mine"],"lacking":0`, unsaid + " 9 columns"}},
		"the column is ignored":       {more, string(meta), " --ignore mine", true, nil},
		"nothing is next to it":       {string(text), "", "", false, []string{unsaid + " 8 columns"}},
		"said by hand":                {string(text), "", " --layout layout.yaml", true, []string{idle}},
		"by hand, and a column more":  {more, "", " --layout layout.yaml", true, []string{`"columns":["mine"]`, idle}},
		"by hand, and it was changed": {fewer, string(meta), " --layout layout.yaml", true, []string{idle}},
	} {
		_ = os.Remove(dir.path(table.MetaPath("f.csv")))
		if err := os.WriteFile(dir.path("f.csv"), []byte(tc.table), 0o600); err != nil {
			t.Fatal(err)
		}
		if tc.meta != "" {
			if err := os.WriteFile(dir.path(table.MetaPath("f.csv")), []byte(tc.meta), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(dir.path("settings.yaml"), []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		_, logs, err := dir.trainer(t, "fit --quiet --config settings.yaml --table f.csv --model m.flank"+tc.args)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		m, err := model.Load(dir.path("m.flank"))
		if err != nil {
			t.Fatal(err)
		}
		if (m.Layout.Fingerprint() == ours.Fingerprint()) != tc.ours {
			t.Errorf("%s: layout %s", name, m.Layout.Name())
		}
		if got := strings.Count(logs, `"level":"warn"`); got != len(tc.warns) {
			t.Errorf("%s: %d warnings:\n%s", name, got, logs)
		}
		report, _ := os.ReadFile(dir.path("m.report.json"))
		for _, want := range tc.warns {
			if !strings.Contains(logs, want) {
				t.Errorf("%s: no warning %q:\n%s", name, want, logs)
			}
			if want == unsaid && !bytes.Contains(report, []byte(want)) {
				t.Errorf("%s: the report does not warn of %q", name, want)
			}
		}
	}
	if _, _, err := dir.trainer(t, "fit --quiet --layout layout.yaml --data one.csv two.csv --wear wear.csv --model m.flank"); err != nil {
		t.Errorf("recordings with a layout and without a configuration: %v", err)
	}
}

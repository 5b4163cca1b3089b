package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The column of the tool is the best of several, or the one that a person names. One that is another in each row is
// refused.
func TestInitRanksColumns(t *testing.T) {
	t.Parallel()
	var both, alone, wears strings.Builder
	both.WriteString("experiment_id,tool_id,vb_um,f1\n")
	alone.WriteString("experiment_id,vb_um,f1\n")
	wears.WriteString("wear,tool,vb_um,f1\n")
	for i := range 60 {
		fmt.Fprintf(&both, "%d,T%d,%d,%g\n", i+1, i/10, 10*(i%10), float64(i%7)/3)
		fmt.Fprintf(&alone, "%d,%d,%g\n", i+1, 10*(i%10), float64(i%7)/3)
		fmt.Fprintf(&wears, "%d,T%d,%d,%g\n", i%10, i/10, 10*(i%10), float64(i%7)/3)
	}
	for name, tc := range map[string]struct {
		data, args         string
		says, layout, fail string
	}{
		"the better name wins":    {both.String(), "", `left out  "experiment_id": it competes with "tool_id", which is taken for the tool`, "tool: tool_id", ""},
		"a person names it":       {both.String(), " --tool experiment_id", `left out  "tool_id": it competes with "experiment_id"`, "tool: experiment_id", ""},
		"no column names it":      {both.String(), " --tool none", `left out  "tool_id": --tool says that no column names the tool`, "", ""},
		"another one in each row": {alone.String(), "", "", "", `column "experiment_id", which may name the tool, is another one in each of 60 rows: name the column of the tool with --tool COLUMN`},
		"no such column":          {both.String(), " --tool insert", "", "", "--tool insert: there is no such column in data.csv, but experiment_id, tool_id, vb_um, f1"},
		"wear is not a channel":   {wears.String(), "", `left out  "wear": it competes with "vb_um", which is taken for the vb_max_um`, "vb_max_um: vb_um", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := bench(t, "data.csv", tc.data)
			folder := t.TempDir()
			dir.initInto(t, folder, "--rate 1 --data data.csv"+tc.args, tc.says, tc.layout, tc.fail)
		})
	}
}

// initInto runs `trainer init` with --out folder, and returns what it prints, which says something, as does the layout that it
// writes. If it is to fail with an error that has fails in it, it returns false.
func (dir folder) initInto(t *testing.T, folder, args, says, lays, fails string) (out string, ok bool) {
	t.Helper()
	out, _, err := dir.trainer(t, "init --out "+folder+" "+args)
	if fails != "" {
		if err == nil || !strings.Contains(err.Error(), fails) {
			t.Errorf("%v, want %q", err, fails)
		}
		return "", false
	}
	if err != nil {
		t.Fatal(err)
	}
	layout, err := os.ReadFile(dir.path(filepath.Join(folder, "layout.yaml")))
	if err != nil || !strings.Contains(out, says) || !strings.Contains(string(layout), lays) {
		t.Errorf("%v: no %q, or no %q, in\n%s\n%s", err, says, lays, out, layout)
	}
	return out, true
}

// A clock or a row number is not a channel, unless a person says so.
func TestInitLeavesClocksOut(t *testing.T) {
	t.Parallel()
	for unit, first := range map[string]int{
		"seconds since 1970": 1771303067, "milliseconds since 1970": 1771303067511, "microseconds since 1970": 1771303067511696, "nanoseconds since 1970": 1771303067511696697,
		"seconds since 1904, as LabVIEW counts": 3854147867,
	} {
		var b strings.Builder
		b.WriteString("stamp;n;load;ax\n")
		for i := range 200 {
			fmt.Fprintf(&b, "%d;%d;%d;%g\n", first+i*i, i+5, 1000000000+i%3*300000000, float64(i%7)/3)
		}
		dir := bench(t, "data.csv", b.String())
		for args, want := range map[string][]string{
			"":                       {"2 channels", `left out  "stamp": it looks like a time in ` + unit, `left out  "n": it seems to count rows: give --keep COLUMN`},
			" --keep stamp":          {"3 channels", `left out  "n"`},
			" --keep n --keep stamp": {"4 channels"},
			" --keep speed":          {"--keep speed: there is no such column in data.csv, but stamp, n, load, ax"},
		} {
			out, _, err := dir.trainer(t, "init --rate 10 --data data.csv --out "+t.TempDir()+args)
			for _, w := range want {
				if text := fmt.Sprint(out, err); !strings.Contains(text, w) {
					t.Errorf("%s,%s: no %q in %s", unit, args, w, text)
				}
			}
		}
	}
}

// counters is a table of features with columns that a model must not learn from: of ten tools with 20 rows each.
func counters() string {
	var b strings.Builder
	b.WriteString("case,tool,run,row,t_ms,energy,vc,rms,peak,class\n")
	for i := range 200 {
		tool, row := i/20, i%20
		wear := float64(row) / 20
		noise := func(k int) float64 { return float64(i*k%17)/17 + float64(i*k%5)/5 }
		fmt.Fprintf(&b, "%d,T%d,%d,%d,%d,%g,%d,%.4f,%.4f,%d\n", tool+1, tool, row+1, i, 1793599200000+1000*i, float64(3*i+i%2), []int{180, 220}[tool%2], 1+wear+0.3*noise(7), 2+wear+0.3*noise(11), row/10)
	}
	return b.String()
}

// Columns that count, tell the time or are a setting of each tool are left out of every reading of a table, with a reason and a way to take them in.
func TestLeaksOfTables(t *testing.T) {
	t.Parallel()
	short := "reference: {windows: 2, mode: \"off\"}\nfeatures: {set: [rms]}\nnetwork: {encoding: standard, hidden: [3], pretrain: {epochs: 1}, fine_tune: {epochs: 5}}\ncosts: {folds: 2}\nunknown: {error_rate: 0, novelty: 0}\nstability: \"off\"\nevaluate: {by_tool: \"off\", random_split: false}\n"
	dir := bench(t, "data.csv", counters(), "fit.yaml", "wear: \"\"\nwindow: {length: 1s}\n"+short, "bare.csv", "tool,row,class\n"+strings.Repeat("T1,1,0\n", 1)+func() (s string) {
		for i := range 40 {
			s += fmt.Sprintf("T%d,%d,%d\n", i/20, i, i%20/10)
		}
		return s
	}())
	for _, tc := range []struct{ args, says, not string }{
		{"init --rate 1 --data data.csv --out o1", `left out  "case": it competes with "tool", which is taken for the tool`, ""},
		{"init --rate 1 --data data.csv --out o2", `column    "run" is hole`, ""},
		{"init --rate 1 --data data.csv --out o3", `left out  "energy": it never falls, as a counter, a clock or an energy does: give --keep COLUMN`, ""},
		{"init --rate 1 --data data.csv --out o4", `left out  "vc": it is constant within each tool`, ""},
		{"init --rate 1 --data data.csv --out o5 --keep vc --keep energy", "", `"vc"`},
		{"study --data data.csv --label class --group tool --ignore case --methods logistic --trials 1 --quiet", "Columns: rms, peak.\nLeft out: run, since it never falls while a tool is in use", ""},
		{"study --data data.csv --label class --group tool --ignore case --keep vc --methods logistic --trials 1 --quiet", "Columns: vc, rms, peak.", ""},
		{"study --data data.csv --label class --group tool --keep cv --methods logistic --trials 1 --quiet", `no column "cv" for --keep`, ""},
		{"fit --config fit.yaml --table data.csv --model m.flank --quiet", "the column is left out: it is constant within each tool, as a setting or the tool's name is; if it is a feature, give --keep with its name", `"column":"rms"`},
		{"evaluate --model m.flank --table data.csv", `"column":"vc"`, `"column":"rms"`},
		{"fit --config fit.yaml --table data.csv --model k.flank --quiet --keep vc --keep energy", `"column":"row"`, `"column":"vc"`},
		{"evaluate --model k.flank --table data.csv", `"column":"row"`, `"column":"vc"`},
		{"fit --config fit.yaml --table data.csv --model n.flank --keep cv", "--keep cv: no column of data.csv is named so", ""},
		{"fit --config fit.yaml --table bare.csv --model n.flank", "none of its 1 columns of numbers seems to be a measurement, see the warnings: name the features among them with --keep", ""},
	} {
		out, log, err := dir.trainer(t, tc.args)
		if all := fmt.Sprint(out, log, err); !strings.Contains(all, tc.says) || tc.not != "" && strings.Contains(all, tc.not) {
			t.Errorf("%s: no %q, or %q, in\n%s", tc.args, tc.says, tc.not, all)
		}
	}
}

// Columns whose names say a label are left out of tables, with a reason and a way to take them in.
func TestLabelsOfTables(t *testing.T) {
	var b strings.Builder
	b.WriteString("tool,rms,peak,VB,y,tool_life_used,class\n")
	for i := range 200 {
		row := i % 20
		fmt.Fprintf(&b, "T%d,%.3f,%.3f,%.3f,%d,%.3f,%d\n", i/20, float64(i*7%17)+float64(row), float64(i*11%13)+float64(row), float64(row*15+i*7%11)/1000, row/10, float64(row+i*3%4)/20, row/10)
	}
	here(t, "data.csv", b.String(), "fit.yaml", "wear: \"\"\nwindow: {length: 1s}\nreference: {windows: 2, mode: \"off\"}\nfeatures: {set: [rms]}\nnetwork: {encoding: standard, hidden: [3], pretrain: {epochs: 1}, fine_tune: {epochs: 5}}\ncosts: {folds: 2}\nunknown: {error_rate: 0, novelty: 0}\nstability: \"off\"\nevaluate: {by_tool: \"off\", random_split: false}\n")
	const left = `the column is left out: its name says `
	for _, tc := range []struct {
		args string
		says []string
		not  string
	}{
		{"fit --config fit.yaml --table data.csv --model m.flank --quiet", []string{`"column":"VB"`, `"column":"y"`, left + "the wear or the state", left + "how much of the tool's life"}, `"column":"rms"`},
		{"evaluate --model m.flank --table data.csv", []string{`"column":"y"`}, `"column":"rms"`},
		{"fit --config fit.yaml --table data.csv --model k.flank --quiet --keep y --keep VB", []string{`"column":"tool_life_used"`, `each of 2 columns alone, VB, y, decides the class in `}, `"column":"y"`},
		{"evaluate --model k.flank --table data.csv", []string{`"column":"tool_life_used"`}, `"column":"y"`},
		{"study --data data.csv --label class --group tool --methods logistic --trials 1 --quiet", []string{"Columns: rms, peak.", "VB, since its name says the wear or the state of the tool; y, since", "tool_life_used, since its name says how much"}, ""},
		{"study --data data.csv --label class --group tool --keep y --methods logistic --trials 1 --quiet", []string{"Columns: rms, peak, y."}, ""},
	} {
		out, log, err := trainer(t, tc.args)
		all := fmt.Sprint(out, log, err)
		for _, says := range tc.says {
			if !strings.Contains(all, says) || tc.not != "" && strings.Contains(all, tc.not) {
				t.Errorf("%s: no %q, or %q, in\n%s", tc.args, says, tc.not, all)
			}
		}
	}
	if card, err := os.ReadFile("k.report.json"); err != nil || !strings.Contains(string(card), "each of 2 columns alone, VB, y, decides") {
		t.Errorf("%v: the report does not say which columns decide:\n%.2000s", err, card)
	}
	scanned(t)
	if _, log, err := trainer(t, "fit --config fit.yaml --table data.csv --model d.flank --quiet --keep y --keep VB"); err != nil || !strings.Contains(log, "each of 2 columns alone, VB, y, decides") {
		t.Errorf("on disk: %v\n%s", err, log)
	}
}

// A column that makes many tools that are shorter than a reference is not the tool: the next best name is, or a person names it.
func TestInitRefusesShortTools(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("toolid;insert;f1\n")
	for i := range 240 {
		fmt.Fprintf(&b, "%d;I%d;%g\n", i/4%7, i/40, float64(i*7%11)/3)
	}
	dir := bench(t, "data.csv", b.String(), "alone.csv", strings.ReplaceAll(b.String(), "insert", "batch"))
	for args, want := range map[string]string{
		"--data data.csv --out o1":                `column    "insert" is tool`,
		"--data data.csv --out o2 --tool toolid":  `column    "toolid" is tool`,
		"--data alone.csv --out o3":               `column "toolid", which may name the tool, is another one 60 times, most often for 4 rows or less, and the reference of a tool alone takes 10 windows of 1s: name the column of the tool with --tool COLUMN`,
		"--data alone.csv --out o4 --tool none":   `no column names it`,
		"--data alone.csv --out o5 --tool toolid": `column    "toolid" is tool`,
	} {
		out, _, err := dir.trainer(t, "init --rate 1 "+args)
		if all := fmt.Sprint(out, err); !strings.Contains(all, want) {
			t.Errorf("%s: no %q in\n%s", args, want, all)
		}
	}
}

// A column of text is the label if its name says so and its words are common ones. Others are named, with what to do.
func TestInitFindsStates(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ column, words, args, says, not string }{
		"OK and NG":          {"judge", "OK NG", "", `column    "judge" is state`, "may"},
		"worn in words":      {"worn", "healthy worn", "", `column    "worn" is state`, "may"},
		"the better name":    {"tool_state", "new dull", "", `column    "tool_state" is state`, "may"},
		"yes and no":         {"worn", "no yes", "", `["no"] is taken for healthy`, "may"},
		"True and False":     {"is_worn", "False True", "", `column    "is_worn" is state`, "may"},
		"0 and 1":            {"is_worn", "0 1", "", `["1"] is taken for faulty`, "may"},
		"1 is good":          {"ok", "0 1", "", `["0"] is taken for faulty`, "may"},
		"N and Y":            {"broken", "N Y", "", `["Y"] is taken for faulty`, "may"},
		"OK and NOK":         {"status", "OK NOK", "", `["NOK"] is taken for faulty`, "may"},
		"unworn":             {"tool_condition", "unworn worn", "", `["unworn"] is taken for healthy`, "may"},
		"0, 1 and 2":         {"is_worn", "0 1 2", "", `left out  "is_worn": its name says`, "is state"},
		"yes, no and maybe":  {"worn", "no yes maybe", "", `but not all of its words, such as ["no" "yes" "maybe"], are known: if it is the label, write words such as healthy and worn, or name it as ` + "`state`", "is state"},
		"what yes means":     {"chatter", "False True", "", `No column has labels, but ["chatter"] may, see above`, "is state"},
		"no name of a label": {"remark", "good worn-out", "", `left out  "remark": its words, such as ["good" "worn-out"], may be states of the tool`, "is state"},
		"trust of a logger":  {"ax_quality", "Good Bad", "", `left out  "ax_quality": it is text, such as "Good"`, "may"},
		"what a model said":  {"prediction", "healthy worn", "", `left out  "prediction": it is text`, "may"},
		"wear in words":      {"wear", "slight severe", "", `left out  "wear": its name says the wear or the state of the tool, but not all of its words`, "vb_max_um"},
		"by number":          {"OK_NOK", "0 1", "", `left out  "OK_NOK": its name says how good the part is, which is a label and no measurement`, "is state"},
		"kept":               {"HI", "0.8 0.3", " --keep HI", `2 channels`, `left out  "HI"`},
	} {
		t.Run(name, func(t *testing.T) {
			words := strings.Fields(tc.words)
			dir := bench(t, "data.csv", rowsOf(400, "tool;"+tc.column+";ax\n", func(i int) string {
				return fmt.Sprintf("T%d;%s;%g", i/100, words[i/20%len(words)], float64(i*7%11)/3)
			}))
			out, _, err := dir.trainer(t, "init --rate 20 --data data.csv --out o"+tc.args)
			if err != nil || !strings.Contains(out, tc.says) || strings.Contains(out, tc.not) {
				t.Errorf("%v: no %q, or %q, in\n%s", err, tc.says, tc.not, out)
			}
			if !strings.Contains(out, "is state") {
				return
			}
			if out, _, err := dir.trainer(t, "labels check --config o/train.yaml --data data.csv"); err != nil || !strings.Contains(out, "10 healthy, 10 faulty") {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}

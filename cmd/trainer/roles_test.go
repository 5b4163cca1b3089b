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
			bench(t, "data.csv", tc.data)
			folder := t.TempDir()
			out, _, err := trainer(t, "init --rate 1 --data data.csv --out "+folder+tc.args)
			if tc.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fail) {
					t.Fatalf("%v, want %s", err, tc.fail)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			layout, err := os.ReadFile(filepath.Join(folder, "layout.yaml"))
			if err != nil || !strings.Contains(out, tc.says) || !strings.Contains(string(layout), tc.layout) {
				t.Errorf("%v: %s\n%s", err, out, layout)
			}
		})
	}
}

// A clock or a row number is not a channel, unless a person says so.
func TestInitLeavesClocksOut(t *testing.T) {
	for unit, first := range map[string]int{
		"seconds since 1970": 1771303067, "milliseconds since 1970": 1771303067511, "microseconds since 1970": 1771303067511696, "nanoseconds since 1970": 1771303067511696697,
		"seconds since 1904, as LabVIEW counts": 3854147867,
	} {
		var b strings.Builder
		b.WriteString("stamp;n;load;ax\n")
		for i := range 200 {
			fmt.Fprintf(&b, "%d;%d;%d;%g\n", first+i*i, i+5, 1000000000+i%3*300000000, float64(i%7)/3)
		}
		bench(t, "data.csv", b.String())
		for args, want := range map[string][]string{
			"":                       {"2 channels", `left out  "stamp": it looks like a time in ` + unit, `left out  "n": it seems to count rows: give --keep COLUMN`},
			" --keep stamp":          {"3 channels", `left out  "n"`},
			" --keep n --keep stamp": {"4 channels"},
			" --keep speed":          {"--keep speed: there is no such column in data.csv, but stamp, n, load, ax"},
		} {
			out, _, err := trainer(t, "init --rate 10 --data data.csv --out "+t.TempDir()+args)
			for _, w := range want {
				if text := fmt.Sprint(out, err); !strings.Contains(text, w) {
					t.Errorf("%s,%s: no %q in %s", unit, args, w, text)
				}
			}
		}
	}
}

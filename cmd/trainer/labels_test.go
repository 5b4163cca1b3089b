package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/pkg/model"
)

const labelsLayout = `name: bench
channels:
  - {names: [rms], kind: feature, rate: 1}
recording: {time: time, tool: tool, hole: hole}
`

// days are the recordings that docs/how-to/labels.md is about.
func days() []string {
	day := func(at time.Time, spans ...string) string { // of "seconds tool hole"
		var b strings.Builder
		b.WriteString("time,tool,hole,rms\n")
		for _, span := range spans {
			var seconds int
			var tool, hole string
			fmt.Sscan(span, &seconds, &tool, &hole)
			for range seconds {
				fmt.Fprintf(&b, "%s,%s,%s,%v\n", at.Format(time.RFC3339), tool, hole, 1+at.Second())
				at = at.Add(time.Second)
			}
		}
		return b.String()
	}
	first := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	return []string{
		"layout.yaml", labelsLayout,
		"day1.csv", day(first, "20 T1 H1", "20 T1 H2", "20 T1 H3"),
		"day2.csv", day(first.AddDate(0, 0, 1), "30 T1 H4", "30 T2 H1"),
	}
}

// lineTimes are at the end of a tool's line. The page has them in its first example.
var lineTimes = regexp.MustCompile(`(?m) +[\d-]+ [\d:]+ to [\d:\- ]+ UTC$`)

// Every wear file of docs/how-to/labels.md gives the lines below it.
func TestLabelsPage(t *testing.T) {
	t.Parallel()
	const path = "../../docs/how-to/labels.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := bench(t, days()...)
	var out strings.Builder // the page as it should be
	label, wear, examples := "", "", 0
	for rest := string(page); rest != ""; {
		prose, block, found := strings.Cut(rest, "\n```")
		out.WriteString(prose)
		if !found {
			break
		}
		kind, block, _ := strings.Cut(block, "\n")
		text, after, closed := strings.Cut("\n"+block, "\n```\n")
		if !closed {
			t.Fatalf("a block of %s is not closed", kind)
		}
		text, rest = strings.TrimPrefix(text, "\n"), "\n"+after
		switch kind {
		case "yaml":
			label = text
		case "csv":
			wear = text
		case "text":
			examples++
			if text = dir.labelsExample(t, label, wear); examples > 1 {
				text = lineTimes.ReplaceAllString(text, "")
			}
			label, wear = "", ""
		}
		fmt.Fprintf(&out, "\n```%s\n%s\n```", kind, strings.TrimSuffix(text, "\n"))
	}
	if golden.Update() {
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != string(page) && !golden.Update() {
		t.Errorf("docs/how-to/labels.md differs; if that is meant, -update writes it again. Got:\n%s", out.String())
	}
	if examples < 10 {
		t.Errorf("%d examples only", examples)
	}
}

// labelsExample returns what a wear file of the page makes of the days: the lines of the
// tools and what does not agree, or the error.
func (dir folder) labelsExample(t *testing.T, label, wear string) string {
	t.Helper()
	for name, text := range map[string]string{"train.yaml": "layout: layout.yaml\n" + label, "wear.csv": wear + "\n"} {
		if err := os.WriteFile(dir.path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, log, err := dir.trainer(t, "labels check --quiet --config train.yaml --data day1.csv day2.csv --wear wear.csv")
	if log != "" {
		t.Errorf("%s\nwarns: %s", wear, log)
	}
	var lines []string
	for line := range strings.SplitSeq(out, "\n") {
		if strings.HasPrefix(line, "T") || strings.HasPrefix(line, "no window") {
			lines = append(lines, strings.TrimRight(line, " "))
		}
	}
	if err != nil && !strings.Contains(out, "no window is of") {
		t.Errorf("%s\nis refused: %v", wear, err)
	}
	return strings.Join(lines, "\n")
}

// What labels check prints of labels in a column, of a table, and of data where nothing is
// labelled.
func TestLabelsCheck(t *testing.T) {
	t.Parallel()
	dir := bench(t, append(days(), "columns.yaml", strings.Replace(trainYAML, "layout.yaml", "rated.yaml", 1), "rated.yaml", layoutYAML,
		"train.yaml", "layout: layout.yaml\n",
		"table.csv", "tool,class,rms\nT10,0,1\nT10,,2\nT2,1,3\n",
		"wear.csv", "tool,from,to,vb_um\nT2,2026-11-03T06:00:30Z,2026-11-03T06:00:40Z,50\n",
		"none.csv", "tool,vb_um\nt_1,50\nt_2.csv,50\nday1,1\n",
		"seconds.csv", "tool,time,vb_um\nT2,55,10\nT1,30,50\n",
		"late.csv", "recording,from,to,vb_um\nday2,622,640.5,50\nday1,0,60,2\n",
		"holes.csv", "tool,hole,vb_um\nT1,h1,50\nT1,2,50\nT1,H3,350\n",
	)...)
	var got strings.Builder
	for _, args := range []string{
		"--config columns.yaml --data tools.csv",
		"--table table.csv",
		"--config train.yaml --data day1.csv day2.csv",
		"--config train.yaml --data day1.csv day2.csv --wear wear.csv",
		"--config train.yaml --data day1.csv day2.csv --wear none.csv",
		"--config train.yaml --data day1.csv day2.csv --wear seconds.csv",
		"--config train.yaml --data day1.csv day2.csv --wear late.csv",
		"--config train.yaml --data day1.csv day2.csv --wear holes.csv",
		"--config train.yaml --data day1.csv --plot labels.png",
		"--data day1.csv",
	} {
		out, log, err := dir.trainer(t, "labels check --quiet "+args)
		fmt.Fprintf(&got, "$ trainer labels check %s\n%s%s", args, out, log)
		if err != nil {
			fmt.Fprintf(&got, "error: %v\n", err)
		}
		got.WriteString("\n")
	}
	golden.Check(t, "labels.txt", got.String())
}

func TestLabelsPlot(t *testing.T) {
	t.Parallel()
	dir := bench(t, append(days(), "train.yaml", "layout: layout.yaml\n", "wear.csv", "tool,vb_um\nT1,50\n")...)
	out, _, err := dir.trainer(t, "labels check --quiet --config train.yaml --data day1.csv day2.csv --wear wear.csv --plot labels.svg")
	if err != nil || !strings.HasSuffix(out, "\nplot     labels.svg\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	svg, err := os.ReadFile(dir.path("labels.svg"))
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"Labels of 90 of 120 windows", ">T1<", ">T2<", ">healthy<", ">no label<", "seconds of the tool, without pauses"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the plot has no %q", want)
		}
	}
}

// The same labels in different forms give the same model, from recordings and from tables,
// in memory and on disk.
func TestFitByFormsOfLabels(t *testing.T) {
	var seconds, spreadsheet strings.Builder
	seconds.WriteString("tool,from,to,state\n")
	spreadsheet.WriteString("Tool;start;end;State\r\n")
	for tool := range 4 {
		from, worn, to := 30*tool, 30*tool+20, 30*tool+30
		fmt.Fprintf(&seconds, "T%d,%d,%d,new\nT%[1]d,%[3]d,%d,Worn\n", tool+1, from, worn, to)
		fmt.Fprintf(&spreadsheet, "T%d;%d,0;%d,0;new\r\nT%[1]d;%[3]d;%d,5;Worn\r\n", tool+1, from, worn, to)
	}
	config := strings.Replace(trainYAML, "  vb_max_um: 300\n", "  vb_max_um: 0\n  states: [built-up]\n  healthy_states: [run-in]\n", 1) + "evaluate: {by_tool: \"off\", random_split: false}\nunknown: {error_rate: 0, novelty: 0}\n"
	at := time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)
	var timed, features strings.Builder
	timed.WriteString("time,tool,rms,power\n")
	features.WriteString("start,tool,rms,power\n")
	for i, line := range strings.Split(strings.TrimSpace(recording()), "\n")[1:] {
		cells := strings.Split(line, ",")
		row := fmt.Sprintf("%s,%s,%s,%s\n", at.Add(time.Duration(i)*time.Second).Format(time.RFC3339), cells[0], cells[1], cells[2])
		timed.WriteString(row)
		features.WriteString(row)
	}
	here(t, "train.yaml", config,
		"layout.yaml", "name: bench\nchannels:\n  - {names: [rms, power], kind: feature, rate: 1}\nrecording: {tool: tool, time: time}\n",
		"tools.csv", timed.String(), "features.csv", features.String(),
		"seconds.csv", seconds.String(), "spreadsheet.csv", spreadsheet.String(),
		"whole.csv", "tool,state\nT1,new\nT2,new\nT3,worn\nT4,Worn\n", "numbers.csv", "recording,tool,class\nfeatures,T1,0\n,T2,0\nfeatures.csv,T3,1\n,T4,faulty\n",
	)
	fit := func(args string) string {
		t.Helper()
		if _, log, err := trainer(t, "fit --quiet --config train.yaml --model m.flank --fresh "+args); err != nil {
			t.Fatalf("%s: %v\n%s", args, err, log)
		}
		m, err := model.Load("m.flank")
		if err != nil {
			t.Fatal(err)
		}
		return m.ID()
	}
	if a, b := fit("--data tools.csv --wear seconds.csv"), fit("--data tools.csv --wear spreadsheet.csv"); a != b {
		t.Errorf("models %s and %s", a, b)
	}
	if a, b := fit("--table features.csv --wear whole.csv"), fit("--table features.csv --wear numbers.csv"); a != b {
		t.Errorf("models of whole tools %s and %s", a, b)
	}
	scanned(t)
	if a, b := fit("--table features.csv --wear whole.csv"), fit("--table features.csv --wear numbers.csv"); a != b {
		t.Errorf("models of whole tools on disk %s and %s", a, b)
	}
}

// What fit says of labels that do not suit.
func TestFitComplainsOfLabels(t *testing.T) {
	t.Parallel()
	dir := bench(t, append(days(), "train.yaml", "layout: layout.yaml\nreference: {windows: 2}\n", "columns.yaml", "layout: mm.yaml\nreference: {mode: \"off\"}\n", "mm.yaml", layoutYAML,
		"mm.csv", "tool,rms,power,vb\nA,1,2,0\nA,2,3,0.125\nB,2,5,0.0625\n",
		"case.csv", "tool,vb_um\nt1,400\nt_2,20\n",
		"half.csv", "tool,vb_um\nT1,200\nt_2,400\n",
		"state.csv", "tool,state\nT1,new\nT2,purple\n",
		"class.csv", "tool,class\nT1,new\nT2,blunt\n",
		"two.csv", "tool,from,to,state\nT1,,,new\nT2,0,5,worn\nT1,9,10,worn\n",
		"apart.csv", "recording,time,vb_um\nday1.csv,2025-11-02T06:00:00Z,20\nday1.csv,2025-11-02T07:00:00Z,400\n",
	)...)
	for args, want := range map[string][]string{
		"--config columns.yaml --data mm.csv":                              {"they have 0 to 0.125 µm", "is it in mm? Write 125 for 0.125 mm, or name the column vb_mm, or vb_max_mm in a layout"},
		"--config train.yaml --wear case.csv --data day1.csv day2.csv":     {"0 labelled", `tool "t1" (case.csv:2) and tool "t_2" (case.csv:3)`, `no row is of tool "T1" and tool "T2"`, `did you mean tool "T1" and tool "T2"?`},
		"--config train.yaml --wear half.csv --data day1.csv day2.csv":     {"windows with a label are healthy", `tool "t_2" (half.csv:3)`, `did you mean tool "T2"?`},
		"--config train.yaml --wear state.csv --data day1.csv day2.csv":    {`state.csv:3: tool "T2": state "purple" means none of the classes`, "faulty are faulty, chipped, broken, worn, "},
		"--config train.yaml --wear class.csv --data day1.csv day2.csv":    {`class.csv:2: class "new" of tool "T1" is none of healthy, faulty`, "name the classes in train.yaml"},
		"--config train.yaml --wear two.csv --data day1.csv day2.csv":      {"two.csv:4: the row is of an interval", "(two.csv:2)", "label each tool in one way"},
		"--config train.yaml --wear apart.csv --data day1.csv day2.csv":    {"apart.csv:2: rows of recording \"day1.csv\" are from 2025-11-02T06:00:00Z to 2025-11-02T07:00:00Z, its windows from 2026-11-02T06:00:00Z to 2026-11-02T06:01:00Z", "`trainer labels check` shows both sides"},
		"--config train.yaml --wear nowhere.csv --data day1.csv day2.csv ": {"nowhere.csv"},
	} {
		_, _, err := dir.trainer(t, "fit --quiet --model m.flank "+args)
		if err == nil {
			t.Errorf("%s: no complaint", args)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v\nlacks %q", args, err, part)
			}
		}
	}
}

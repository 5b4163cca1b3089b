package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/golden"
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

// Every wear file of docs/how-to/labels.md gives the lines below it.
func TestLabelsPage(t *testing.T) {
	const path = "../../docs/how-to/labels.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	bench(t, days()...)
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
			text = labelsExample(t, label, wear)
			label, wear = "", ""
		}
		fmt.Fprintf(&out, "\n```%s\n%s\n```", kind, strings.TrimSuffix(text, "\n"))
	}
	if golden.Update() {
		t.Chdir(home)
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
func labelsExample(t *testing.T, label, wear string) string {
	t.Helper()
	for name, text := range map[string]string{"train.yaml": "layout: layout.yaml\n" + label, "wear.csv": wear + "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, log, err := trainer(t, "labels check --quiet --config train.yaml --data day1.csv day2.csv --wear wear.csv")
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
	bench(t, append(days(), "columns.yaml", strings.Replace(trainYAML, "layout.yaml", "rated.yaml", 1), "rated.yaml", layoutYAML,
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
		out, log, err := trainer(t, "labels check --quiet "+args)
		fmt.Fprintf(&got, "$ trainer labels check %s\n%s%s", args, out, log)
		if err != nil {
			fmt.Fprintf(&got, "error: %v\n", err)
		}
		got.WriteString("\n")
	}
	golden.Check(t, "labels.txt", got.String())
}

func TestLabelsPlot(t *testing.T) {
	bench(t, append(days(), "train.yaml", "layout: layout.yaml\n", "wear.csv", "tool,vb_um\nT1,50\n")...)
	out, _, err := trainer(t, "labels check --quiet --config train.yaml --data day1.csv day2.csv --wear wear.csv --plot labels.svg")
	if err != nil || !strings.HasSuffix(out, "\nplot     labels.svg\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	svg, err := os.ReadFile("labels.svg")
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

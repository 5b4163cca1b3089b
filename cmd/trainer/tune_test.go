package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/model"
)

// tunedTable is a table of tools that force doubles on, one window a second.
func tunedTable(tools ...string) string {
	var b strings.Builder
	b.WriteString("tool,class,force\n")
	for i, script := range tools {
		for _, c := range script {
			class, force := 0, 10.
			if c == 'F' {
				class, force = 1, 20
			}
			fmt.Fprintf(&b, "T%d,%d,%v\n", i+1, class, force)
		}
	}
	return b.String()
}

// tuneYAML is a configuration of a monitor, with keys that only the monitor reads.
const tuneYAML = "kafka:\n  brokers: [kafka1:9092]\nmodel: m.flank\npage: \"\"\nalarm:\n  k: 2\n  n: 3\n"

// tuneBench makes a working directory with a model, a configuration and a table of tools.
func tuneBench(t *testing.T, tools string) {
	t.Helper()
	t.Setenv("TCM_GROUP", "elsewhere") // a key of the monitor alone
	m := machinetest.OneValue(t)
	m.Label = model.LabelRule{VBMaxUM: 300}
	here(t, "tools.csv", tools, "monitor.yaml", tuneYAML)
	if err := m.Save("m.flank"); err != nil {
		t.Fatal(err)
	}
}

// tune judges a table by the model, says what it chose and on what, draws the
// curve, and prints settings that monitor.yaml takes.
func TestTune(t *testing.T) {
	h, f := strings.Repeat("h", 60), strings.Repeat("F", 12)
	tuneBench(t, tunedTable(h+f, h+h, h+f))
	tune := func(args ...string) (string, error) {
		var stdout, stderr bytes.Buffer
		err := run(t.Context(), append([]string{"tune", "--config", "monitor.yaml", "--quiet"}, args...), &stdout, &stderr)
		return stdout.String(), err
	}
	out, err := tune("--table", "tools.csv", "--budget", "1 per 8h", "--window", "1s")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"scores   of the model, which was not trained on these data as far as known", "tools    3, of which 2 turn faulty by their labels", "time     rows of 1s, as the configuration or the flag says\n", "\nchosen ", "\nnow  ", "   2    3        0.5\n", "2 of 2"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if svg, err := os.ReadFile("m.tune.svg"); err != nil || !bytes.Contains(svg, []byte("chosen: 2 of 2")) {
		t.Errorf("plot: %v\n%s", err, svg)
	}
	yaml := tuneYAML[:strings.Index(tuneYAML, "alarm:")] + out[strings.Index(out, "alarm:\n"):]
	if err := os.WriteFile("monitor.yaml", []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := tune("--table", "tools.csv", "--budget", "1 per 8h", "--window", "1s")
	if err != nil || again[strings.Index(again, "alarm:\n"):] != out[strings.Index(out, "alarm:\n"):] {
		t.Errorf("with what was chosen: %v\n%s", err, again)
	}
	folder(".").write(t, "healthy.csv", tunedTable(h), "kafka.yaml", "kafka: {brokers: [kafka1:9092]}\n", "wrong.yaml", "alarm: {m: 3}\n", "bad.yaml", "alarm: {n: 99}\n")
	for _, tc := range []struct{ args, want string }{
		{"--table tools.csv --budget 1_per_8h", "--budget 1 per 8h: there are no hours to count false alarms in: nothing says how long a row of the table lasts: give `window: {length: 2s}` in train.yaml, or the flag --window 2s, or a column `start` in the table; or write a number of false alarms in all of these data, such as \"1\""},
		{"--table tools.csv --budget 1/8h", "--budget \"1/8h\": expected three words"},
		{"--table healthy.csv --budget 1", "none of 1 tools turns faulty"},
		{"--table tools.csv --budget 1_per_8h --hold-out", "does not say how it was trained"},
		{"--table nothing.csv --budget 1_per_8h", "nothing.csv"},
		{"--data tools.csv --budget 1_per_8h --layout no.yaml", "no.yaml"},
		{"--data tools.csv --budget 1_per_8h --layout no.yaml", "no.yaml"},
		{"--table tools.csv --budget 1_per_8h --window=-1s", "--window -1s: must be positive"},
		{"--budget 1_per_8h", "no data: name"},
		{"--table tools.csv --budget 1_per_8h --model no.flank", "no.flank"},
		{"--table tools.csv --budget 1_per_8h --config no.yaml", "open no.yaml"},
		{"--table tools.csv --budget 1_per_8h --config kafka.yaml", "kafka.yaml: model: it names no model file: name one with --model"},
		{"--table tools.csv --budget 1_per_8h --config wrong.yaml", "wrong.yaml:1: unknown key `m`: remove it or correct its spelling"},
		{"--table tools.csv --budget 1_per_8h --config bad.yaml", "bad.yaml: alarm: n is 99"},
	} {
		args := strings.Fields(tc.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "_", " ")
		}
		if _, err := tune(args...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v lacks %q", tc.args, err, tc.want)
		}
	}
}

// Of a table whose rows have no length tune gives counts, and speaks of no hours. A tool that
// is worn while its reference is taken is missed, and not left out.
// The alarm counts ambiguous windows, and no others that are unknown.
func TestTuneCountsWindowsBetweenClasses(t *testing.T) {
	s := &train.Scored{Tool: []string{"A", "A", "A", "A"}, Class: make([]int, 4), Score: make([]float64, 4), Unknown: []model.UnknownReason{"", model.Ambiguous, model.Implausible, model.OutOfDistribution}}
	if got := livesOf(s)[0].Unknown; !slices.Equal(got, []bool{false, false, false, true}) {
		t.Errorf("not counted: %v", got)
	}
}

func TestTuneCounts(t *testing.T) {
	h, f := strings.Repeat("h", 60), strings.Repeat("F", 12)
	tuneBench(t, tunedTable(h+f, h+h, "FF"))
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), []string{"tune", "--config", "monitor.yaml", "--quiet", "--table", "tools.csv", "--budget", "0"}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	_, out, _ := strings.Cut(stdout.String(), "\n") // the model's id
	golden.Check(t, "tune.txt", out)
	if strings.Contains(out, "an hour") || strings.Contains(out, "per hour") || strings.Contains(out, " s ") {
		t.Errorf("it speaks of hours:\n%s", out)
	}
}

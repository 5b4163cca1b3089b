//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/schemas"
)

func dataSet(t *testing.T, parts ...string) string {
	root := os.Getenv("FLANK_DATA")
	if root == "" {
		t.Skip("FLANK_DATA is not set: the README names the recordings' public sources")
	}
	return filepath.Join(append([]string{root}, parts...)...)
}

type summary struct {
	Windows, Results, Faulty, Alerts, Lost, Duplicated int
	Verdicts                                           map[event.Verdict]int
	Seconds                                            float64
	GMean                                              *float64
}

func lastLine(t *testing.T, stdout string) (s summary) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &s); err != nil {
		t.Fatalf("last line: %v\n%s", err, stdout)
	}
	return s
}

// readResults returns the results in a file. It checks each line against the schema, and that
// each window is there once.
func readResults(t *testing.T, path string) []event.Result {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []event.Result
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if err := schemas.Validate(schemas.Result, []byte(line)); err != nil {
			t.Fatal(err)
		}
		var r event.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if seen[r.ID] {
			t.Errorf("result %s is there twice", r.ID)
		}
		seen[r.ID] = true
		out = append(out, r)
	}
	return out
}

func replay(recording, layout, model, dir string, extra ...string) []string {
	return append([]string{
		"--once", "--replay", recording, "--layout", layout, "--model", model, "--results", filepath.Join(dir, "out.jsonl"),
		"--data-dir", filepath.Join(dir, "data"), "--page", "off", "--broker", "127.0.0.1:0",
	}, extra...)
}

// quick returns the configuration of an example, but for a training that takes a second.
func quick(t *testing.T, dir, example string) string {
	t.Helper()
	text, _, _ := strings.Cut(string(read(t, filepath.Join("..", "examples", example, "train.yaml"))), "\nnetwork:")
	layout, err := filepath.Abs(filepath.Join("..", "examples", example, "layout.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text = strings.Replace(text, "layout: layout.yaml", "layout: "+layout, 1)
	return write(t, dir, "train.yaml", text+"\nnetwork: {hidden: [8], pretrain: {epochs: 5}, fine_tune: {epochs: 30}}\nevaluate: {by_tool: \"off\", random_split: false}\n")
}

// The README's turning commands.
func TestTurning(t *testing.T) {
	recording := dataSet(t, "vicomtech-turning", "turning_wear_dev.csv")
	dir := t.TempDir()
	model := filepath.Join(dir, "turning.flank")
	fit := []string{"fit", "--quiet", "--config", "../examples/turning/train.yaml", "--data", recording, "--model", model}
	t.Log("\n" + run(t, "trainer", fit...))
	for _, ext := range []string{".report.json", ".report.html"} {
		if _, err := os.Stat(filepath.Join(dir, "turning"+ext)); err != nil {
			t.Error(err)
		}
	}
	s := lastLine(t, run(t, "standalone", replay(recording, "../examples/turning/layout.yaml", model, dir)...))
	t.Logf("%+v, G-mean %.3f", s, *s.GMean)
	if s.Windows != 1474 || s.Results != 1474 || s.Lost != 0 || s.Duplicated != 0 || s.Verdicts[event.Learning] != 90 {
		t.Errorf("%+v: want 1474 windows of 9 tools, each with one result", s)
	}
	if n := len(readResults(t, filepath.Join(dir, "out.jsonl"))); n != 1474 {
		t.Errorf("%d lines in out.jsonl", n)
	}
}

// Standalone is killed half-way and started again. It goes on where it was, and its results
// agree with a run that was not killed.
func TestTurningKilled(t *testing.T) {
	recording := dataSet(t, "vicomtech-turning", "turning_wear_dev.csv")
	dir, calm := t.TempDir(), t.TempDir()
	model := filepath.Join(dir, "turning.flank")
	run(t, "trainer", "fit", "--quiet", "--config", quick(t, dir, "turning"), "--data", recording, "--model", model)
	args := replay(recording, "../examples/turning/layout.yaml", model, dir)
	p := start(t, "standalone", append(args, "--speed", "400")...)
	time.Sleep(2500 * time.Millisecond)
	p.kill()
	s := lastLine(t, run(t, "standalone", args...))
	want := lastLine(t, run(t, "standalone", replay(recording, "../examples/turning/layout.yaml", model, calm)...))
	if s.Windows != 1474 || s.Results != 1474 || s.Lost != 0 || s.Duplicated != 0 || s.Alerts != want.Alerts || s.Faulty != want.Faulty {
		t.Errorf("killed %+v, never killed %+v", s, want)
	}
	got, calmly := readResults(t, filepath.Join(dir, "out.jsonl")), readResults(t, filepath.Join(calm, "out.jsonl"))
	for i := range min(len(got), len(calmly)) {
		if got[i].Seq != calmly[i].Seq || got[i].Verdict != calmly[i].Verdict || got[i].Score != calmly[i].Score || got[i].Alarm != calmly[i].Alarm {
			t.Fatalf("window %d: killed %+v, never killed %+v", i, got[i], calmly[i])
		}
	}
}

// 44 raw channels in windows of two seconds.
func TestMilling(t *testing.T) {
	recording := dataSet(t, "umich-cnc-mill", "experiment_01.csv")
	dir := t.TempDir()
	model := filepath.Join(dir, "milling.flank")
	run(t, "trainer", "fit", "--quiet", "--config", quick(t, dir, "milling"), "--data", dataSet(t, "umich-cnc-mill", "experiment_*.csv"), "--model", model)
	s := lastLine(t, run(t, "standalone", replay(recording, "../examples/milling/layout.yaml", model, dir)...))
	if s.Windows != 1055/20 || s.Results != s.Windows || s.Lost != 0 || s.Duplicated != 0 {
		t.Errorf("%+v: want %d windows of 1055 rows, each with one result", s, 1055/20)
	}
}

// The README's first command, faster than real time: history, training, a simulated tool's
// life and its alert. A second start finds the model.
func TestFirstStart(t *testing.T) {
	dir := t.TempDir()
	args := []string{"--once", "--speed", "10", "--data-dir", filepath.Join(dir, "data"), "--page", "127.0.0.1:0", "--broker", "127.0.0.1:0"}
	p := start(t, "standalone", args...)
	p.wait(t)
	s := lastLine(t, p.stdout.String())
	t.Logf("%+v", s)
	if s.Results != s.Windows || s.Lost != 0 || s.Duplicated != 0 || s.Alerts < 1 {
		t.Errorf("%+v: want a result for each window and an alert\n%s", s, &p.stderr)
	}
	again := start(t, "standalone", args...)
	again.wait(t)
	if strings.Contains(again.stderr.String(), "First start") {
		t.Error("the second start did not find the model")
	}
	if s := lastLine(t, again.stdout.String()); s.Results != s.Windows || s.Lost != 0 {
		t.Errorf("second start: %+v", s)
	}
}

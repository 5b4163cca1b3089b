package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/model"
)

const layoutYAML = `name: bench
channels:
  - {names: [rms, power], kind: feature, rate: 1}
recording:
  tool: tool
  vb_max_um: vb
`

const trainYAML = `layout: layout.yaml
reference:
  {windows: 4, mode: kind}
label:
  vb_max_um: 300
network:
  hidden: [4]
  pretrain:
    epochs: 2
  fine_tune:
    epochs: 20
costs:
  folds: 2
`

// recording returns four tools that wear out in 30 s each, as a table.
func recording() string {
	rng := rand.New(rand.NewPCG(5, 6))
	var b strings.Builder
	b.WriteString("tool,rms,power,vb\n")
	for tool := range 4 {
		for s := range 30 {
			um := 14 * float64(s)
			fmt.Fprintf(&b, "T%d,%.3f,%.3f,%v\n", tool+1, (1+um/200)*(1+0.03*rng.NormFloat64()), 5+um/100+0.1*rng.NormFloat64(), um)
		}
	}
	return b.String()
}

// folder is where a test has its files. It is not the working directory, so tests can run next to each other.
type folder string

// bench makes a folder with what a training run needs, changed by
// pairs of a file's name and its text. Nothing is scored, which takes most of the time,
// unless the text says it.
func bench(t *testing.T, files ...string) folder {
	t.Helper()
	dir := folder(t.TempDir())
	dir.write(t, append([]string{"layout.yaml", layoutYAML, "train.yaml", unscored, "tools.csv", recording()}, files...)...)
	return dir
}

// here makes a bench the working directory, for a test that changes what all tests share.
func here(t *testing.T, files ...string) {
	t.Helper()
	t.Chdir(string(bench(t, files...)))
}

func (dir folder) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(string(dir), name)
}

// write writes pairs of a file's name and its text.
func (dir folder) write(t *testing.T, files ...string) {
	t.Helper()
	for ; len(files) > 0; files = files[2:] {
		path := dir.path(files[0])
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func trainer(t *testing.T, args string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	err = run(t.Context(), strings.Fields(args), &out, &errs)
	return out.String(), errs.String(), err
}

// A file follows a flag that takes one, or has the ending of one.
var (
	takesFile = regexp.MustCompile(`^--(config|data|table|model|out|key|public-key|plot|metrics-file|kafka-config)$`)
	isFile    = regexp.MustCompile(`^[^-].*\.(yaml|csv|parquet|arrow|flank|npz|txt|wav|gz|key|pub)$`)
)

// words returns the arguments of a command with files of the folder. Where a command would write into the working directory,
// they say that it is the folder.
func (dir folder) words(args string) []string {
	words := strings.Fields(args)
	for i := 1; i < len(words); i++ {
		if w := words[i]; w[0] != '-' && !filepath.IsAbs(w) && (takesFile.MatchString(words[i-1]) || isFile.MatchString(w)) {
			words[i] = string(dir) + "/" + w
		}
	}
	for command, flag := range map[string]string{"fit": "--model model.flank", "init": "--out .", "keys": "--out flank", "search": "--out search.json"} {
		if name, file, _ := strings.Cut(flag, " "); len(words) > 1 && words[0] == command && !slices.Contains(words, name) {
			words = append(words, name, string(dir)+"/"+file)
		}
	}
	return words
}

func (dir folder) trainer(t *testing.T, args string) (stdout, stderr string, err error) {
	t.Helper()
	return dir.run(t.Context(), args)
}

// run runs a command as if the folder were the working directory. What is printed does not name it.
func (dir folder) run(ctx context.Context, args string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	err = run(ctx, dir.words(args), &out, &errs)
	if err != nil {
		err = failed{err, dir}
	}
	return dir.unnamed(out.String()), dir.unnamed(errs.String()), err
}

// unnamed returns a text without the name of the folder.
func (dir folder) unnamed(text string) string { return strings.ReplaceAll(text, string(dir)+"/", "") }

// failed is an error that does not name the folder.
type failed struct {
	error
	dir folder
}

func (f failed) Error() string { return f.dir.unnamed(f.error.Error()) }
func (f failed) Unwrap() error { return f.error }

// Left to the trainer, the mode of the reference is the one with the least loss on tools held
// out. Tools that are all alike when they are new need no reference: features stay as they are,
// and drift has no references to compare with.
func TestFitChoosesTheReference(t *testing.T) {
	t.Parallel()
	dir := bench(t, "train.yaml", strings.Replace(trainYAML, ", mode: kind", "", 1))
	if _, _, err := dir.trainer(t, "fit --quiet --config train.yaml --data tools.csv --model m.flank"); err != nil {
		t.Fatal(err)
	}
	m, err := model.Load(dir.path("m.flank"))
	if err != nil {
		t.Fatal(err)
	}
	card, err := os.ReadFile(dir.path("m.report.html"))
	if err != nil {
		t.Fatal(err)
	}
	if m.Reference.Mode != model.ReferenceOff || m.Drift != nil {
		t.Errorf("reference %+v, drift %v", m.Reference, m.Drift)
	}
	for _, want := range []string{">Features are as they are, not relative to a reference.<", ">log<", ">ratio<", ">difference<", ">off, kept<"} {
		if !strings.Contains(string(card), want) {
			t.Errorf("the card does not say %q:\n%s", want, card)
		}
	}
}

func TestFitAndInspect(t *testing.T) {
	t.Parallel()
	dir := bench(t, "train.yaml", trainYAML)
	out, progress, err := dir.trainer(t, "fit --config train.yaml --data tools.csv --model out.flank")
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Load(dir.path("out.flank"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out, "Switch on in shadow: ") {
		t.Errorf("fit does not begin with its verdict:\n%s", out)
	}
	for _, want := range []string{
		" worn tools got an alarm, with ", " in a shift of 8 h\n      do: run in shadow for 24 more hours of healthy cutting without a false alarm",
		"120 windows cut, 104 used, 16 make the references", "G-mean  recall", "tools held out", "random (leaky)",
		"\ntools held out, with 95 % intervals: G-mean ", " over 4 tools\n", " features follow the life of every tool: ",
		"model   out.flank (" + m.ID() + ")\n", "card    out.report.html\nreport  out.report.json\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("fit prints no %q:\n%s", want, out)
		}
	}
	for _, want := range []string{"reading recordings: 100%\n", "scoring on tools held out: 100%\n", "training the model: 100%\n"} {
		if !strings.Contains(progress, want) {
			t.Errorf("progress lacks %q:\n%s", want, progress)
		}
	}
	text, err := os.ReadFile(dir.path("out.report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Model  string         `json:"model"`
		Groups map[string]any `json:"groups"`
	}
	if err := json.Unmarshal(text, &report); err != nil || report.Model != m.ID() || len(report.Groups) != 4 {
		t.Errorf("report %+v, %v", report, err)
	}
	if _, err := os.Stat(dir.path("out.report.html")); err != nil {
		t.Error(err)
	}

	out, _, err = dir.trainer(t, "inspect out.flank")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		m.ID() + ": 2 channels, windows of 1s", "layout      bench, fingerprint " + m.Layout.Fingerprint(),
		"label       faulty if maximum flank wear ≥ 300 µm", "trained on  tools, 120 windows, SHA-256 ",
		"\nverdict     Switch on in shadow: ", "scores      G-mean ", "            of 104 windows, 32 faulty; split: leave-one-out by tool, 4 folds\n", " over 4 tools, precision ", "checks      checksum and 12 golden vectors hold\n",
		"\nunknown     healthy ", "\nwear        of tools held out: off by ", "\ndrift       against the references of 4 tools\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("inspect prints no %q:\n%s", want, out)
		}
	}
	if strings.ContainsAny(out, "{}") {
		t.Errorf("inspect prints JSON:\n%s", out)
	}
}

// A recording for each tool, by name and by pattern, with labels in a file
// next to them.
func TestFitTakesManyRecordingsAndAWearFile(t *testing.T) {
	t.Parallel()
	const layout = "name: bench\nchannels:\n  - {names: [rms, power], kind: feature, rate: 1}\nrecording: {time: time}\n"
	files := []string{"layout.yaml", layout}
	var wear strings.Builder
	wear.WriteString("tool,time,vb_max_um\n")
	lines := strings.Split(strings.TrimSpace(recording()), "\n")[1:]
	for tool := range 4 {
		var b strings.Builder
		b.WriteString("time,rms,power\n")
		for s, line := range lines[30*tool : 30*tool+30] {
			cells := strings.Split(line, ",")
			fmt.Fprintf(&b, "2026-03-01T0%d:00:%02dZ,%s,%s\n", tool, s, cells[1], cells[2])
		}
		files = append(files, fmt.Sprintf("runs/tool%d.csv", tool+1), b.String())
		fmt.Fprintf(&wear, "tool%d,2026-03-01T0%d:00:29Z,406\n", tool+1, tool)
	}
	dir := bench(t, append(files, "wear.csv", wear.String())...)
	var ids []string
	for _, data := range []string{
		"--data runs/*.csv", "--data runs/tool1.csv --data runs/tool2.csv runs/tool3.csv runs/tool4.csv",
	} {
		out, progress, err := dir.trainer(t, "fit --quiet --config train.yaml --wear wear.csv "+data)
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if !strings.Contains(out, "120 windows cut, 104 used") || strings.Contains(progress, "%") {
			t.Errorf("%s: %s%s", data, out, progress)
		}
		m, err := model.Load(dir.path("model.flank"))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.ID())
	}
	if ids[0] != ids[1] {
		t.Errorf("models %v differ", ids)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	const fit = "fit --config train.yaml --data tools.csv"
	for _, tc := range []struct {
		why   string
		args  string
		files []string
		want  []string
	}{
		{"unknown key", fit, []string{"train.yaml", trainYAML + "sead: 3\n"}, []string{"train.yaml:14: unknown key `sead`"}},
		{"unknown key below another", fit, []string{"train.yaml", "network:\n  pretrain:\n    epoch: 3\n"}, []string{"train.yaml:3: unknown key `epoch`"}},
		{"value of another kind", fit, []string{"train.yaml", "seed: one\n"}, []string{"train.yaml:1: `seed: one`: must be a whole number"}},
		{"value that means nothing", fit, []string{"train.yaml", trainYAML + "gate: maybe\n"}, []string{"train.yaml:14: gate: \"maybe\"", "auto or off"}},
		{"no configuration", "fit --config absent.yaml --data tools.csv", nil, []string{"absent.yaml", "examples"}},
		{"no layout", fit, []string{"train.yaml", "layout: gone.yaml\n"}, []string{"gone.yaml"}},
		{"unknown key of the layout", fit, []string{"layout.yaml", layoutYAML + "speed: 3\n"}, []string{"layout.yaml", "layout.yaml:7", "speed"}},
		{"no recording", "fit --config train.yaml --data lost.csv", nil, []string{"--data lost.csv", "check the path"}},
		{"pattern without a match", "fit --config train.yaml --data runs/*.csv", nil, []string{"--data runs/*.csv", "must match"}},
		{"malformed pattern", "fit --config train.yaml --data runs/[.csv", nil, []string{"--data runs/[.csv", "syntax error"}},
		{"folder", "fit --config train.yaml --data runs", []string{"runs/a.csv", ""}, []string{"--data runs is a folder", "'runs/*.csv'"}},
		{"empty recording", "fit --config train.yaml --data empty.csv", []string{"empty.csv", ""}, []string{"empty.csv", "the file is empty"}},
		{"text in a number", fit, []string{"tools.csv", strings.Replace(recording(), "T2,", "T2,off", 1)}, []string{"tools.csv:32", `column "rms"`, "not a number"}},
		{"wrong column", fit, []string{"tools.csv", strings.Replace(recording(), "power", "pover", 1)}, []string{"tools.csv", `no column "power"`, `"pover"`}},
		{"label column that is not there", fit, []string{"tools.csv", strings.Replace(recording(), "vb", "wear", 1)}, []string{"tools.csv", `no column "vb"`, "recording: vb_max_um"}},
		{"same recording twice", "fit --config train.yaml --data tools.csv copy.csv", []string{"copy.csv", recording()}, []string{"tools.csv and copy.csv are the same recording"}},
		{
			"two tools of one name", "fit --config train.yaml --data a/1.csv b/1.csv",
			[]string{"layout.yaml", strings.Replace(layoutYAML, "  tool: tool\n", "", 1), "a/1.csv", recording(), "b/1.csv", recording() + "\n"},
			[]string{"a/1.csv and b/1.csv would name their tools alike", "rename"},
		},
		{"no wear file", fit + " --wear wear.csv", nil, []string{"wear.csv"}},
		{"wear file with a wrong number", fit + " --wear wear.csv", []string{"wear.csv", "tool,vb_max_um\nT1,big\n"}, []string{"wear.csv:2", "vb_max_um", "big"}},
		{"no folder for the model", fit + " --model out/m.flank", nil, []string{"--model out/m.flank", "no folder out"}},
		{"one class only", fit, []string{"train.yaml", trainYAML + "evaluate: {by_tool: off}\n", "tools.csv", strings.Join(strings.SplitAfter(recording(), "\n")[:20], "")}, []string{"all 15 windows with a label are healthy", "worn tools"}},
		{"no command", "", nil, []string{"expected", "trainer --help"}},
		{"no flags", "fit", nil, []string{"no data", "--data", "--table", "--help"}},
		{"no configuration", "fit --data tools.csv", nil, []string{"--config is missing", "layout"}},
		{"recordings and tables", "fit --config train.yaml --data tools.csv --table tools.csv", nil, []string{"--data and --table", "not from both"}},
		{"table of unknown format", "fit --table tools.xlsx", []string{"tools.xlsx", ""}, []string{"tools.xlsx", ".csv, .parquet, .arrow"}},
		{"table without tool", "fit --table t.csv", []string{"t.csv", "rms,class\n1,0\n"}, []string{"t.csv:1", `no column "tool"`}},
		{"table without rows", "fit --table t.csv", []string{"t.csv", "tool,rms,class\n"}, []string{"t.csv: it has no rows"}},
		{"table without features", "fit --table t.csv", []string{"t.csv", "tool,class\nT1,1\n"}, []string{"t: nothing to learn from", "no feature columns"}},
		{"table with a nameless tool", "fit --table t.csv", []string{"t.csv", "tool,rms,class\nT1,1,0\n,1,1\n"}, []string{"t.csv: row 2 names no tool"}},
		{"table cut off", "fit --table t.csv", []string{"t.csv", "tool,rms,class\nT1,1,0\nT1,2"}, []string{"t.csv:3", "a file that was cut off"}},
		{"infinity", "fit --table t.csv", []string{"t.csv", "tool,rms,class\nT1,Inf,0\n"}, []string{`t.csv:2: column "rms"`, "not a finite number"}},
		{"same table twice", "fit --table t.csv u.csv", []string{"t.csv", "tool,rms,class\nT1,1,0\n", "u.csv", "tool,rms,class\nT1,1,0\n"}, []string{"t.csv and u.csv are the same table"}},
		{"a third class", "fit --table t.csv", []string{"t.csv", "tool,rms,class\nT1,1,2\n"}, []string{"t: row 1: class 2", "name those that there are under `label: classes`"}},
		{"labels that contradict", "fit --config train.yaml --table t.csv", []string{"t.csv", "tool,rms,power,class,vb_max_um\n" + strings.Repeat("T1,1,2,0,350\n", 9)}, []string{"tool T1", "class 0 (healthy) has a wear of 350", "labels contradict", "drop the column"}},
		{"tools in turns", "fit --table t.csv", []string{"t.csv", "tool,rms,class\nT1,1,0\nT2,1,0\nT1,1,0\n"}, []string{"t: row 3", `tool "T1" comes back after tool "T2"`, "sort rows"}},
		{"feature missing from a table", "fit --config train.yaml --table t.csv", []string{"t.csv", "tool,rms,class\nT1,1,0\n"}, []string{`t: no column "power"`, "by name"}},
		{"one class in a table", "fit --table t.csv", []string{"t.csv", "tool,rms,class\n" + strings.Repeat("T1,1,0\n", 20)}, []string{"all 10 windows with a label are healthy"}},
		{"no labels in a table", "fit --table t.csv", []string{"t.csv", "tool,rms\n" + strings.Repeat("T1,1\n", 20)}, []string{"nothing to learn from", "10 without label", "class or vb_max_um"}},
		{"no model to evaluate", "evaluate --model lost.flank --table tools.csv", nil, []string{"lost.flank"}},
		{"a search of one", "search --config train.yaml --data tools.csv --trials 1", nil, []string{"1 trials", "2 or more"}},
		{"a search within two tools", "search --table t.csv", []string{"t.csv", "tool,rms,vb_max_um\n" + strings.Repeat("T1,1,0\n", 20) + strings.Repeat("T2,1,0\n", 12) + strings.Repeat("T2,2,400\n", 12)}, []string{"only 2 tools have healthy windows", "needs 3"}},
		{"costs of no model", "costs", nil, []string{"missing flags: --model=FILE"}},
		{"no model", "inspect lost.flank", nil, []string{"lost.flank", "trainer fit"}},
		{"something else than a model", "inspect tools.csv", nil, []string{"tools.csv", "damaged", "not a Flank model"}},
		{"a model that is cut off", "inspect cut.flank", []string{"cut.flank", "FLANKMDL\x01\x00\x00\x00"}, []string{"cut.flank", "damaged", "copy the file again"}},
	} {
		dir := bench(t, tc.files...)
		out, _, err := dir.trainer(t, tc.args)
		if err == nil {
			t.Errorf("%s: no error; printed %q", tc.why, out)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q lacks %q", tc.why, err, want)
			}
		}
		if left, _ := filepath.Glob(dir.path("*.flank")); len(left) > 0 && !strings.HasPrefix(tc.args, "inspect") {
			t.Errorf("%s: left %v behind", tc.why, left)
		}
	}
}

// A flipped bit anywhere in the file is found and reported.
func TestInspectCorrupt(t *testing.T) {
	t.Parallel()
	dir := bench(t)
	if _, _, err := dir.trainer(t, "fit --quiet --config train.yaml --data tools.csv --model m.flank"); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(dir.path("m.flank"))
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(good); at += len(good) / 20 {
		bad := bytes.Clone(good)
		bad[at] ^= 1
		if err := os.WriteFile(dir.path("m.flank"), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := dir.trainer(t, "inspect m.flank"); err == nil || !strings.Contains(err.Error(), "m.flank: damaged model") {
			t.Errorf("bit flipped in byte %d: %v", at, err)
		}
	}
}

func TestStopped(t *testing.T) {
	t.Parallel()
	dir := bench(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := dir.run(ctx, "fit --config train.yaml --data tools.csv")
	if err == nil || !strings.Contains(err.Error(), "no model is written") {
		t.Error(err)
	}
	if left, _ := filepath.Glob(dir.path("model.*")); len(left) > 0 {
		t.Errorf("left %v behind", left)
	}
	_, _, err = dir.run(ctx, "demo --model flank-data/model.flank")
	if _, missing := os.Stat(dir.path("flank-data")); err == nil || missing != nil { // the folder was made first
		t.Errorf("%v, %v", err, missing)
	}
}

// Help says what to type first.
func TestHelpTeaches(t *testing.T) {
	for args, want := range map[string][]string{
		"--help": {
			"trainer fit --config examples/turning/train.yaml --data turning.csv --model turning.flank", "trainer inspect turning.flank",
			"Tools, never single", ".report.html", "fit ", "inspect ",
		},
		"fit --help":     {"--config=FILE", "--data=FILE", "'runs/*.csv'", "--wear=FILE", "Show no progress."},
		"inspect --help": {"Model file."},
	} {
		out, _, err := trainer(t, args)
		if err != nil {
			t.Errorf("%s: %v", args, err)
		}
		flat := strings.Join(strings.Fields(out), " ")
		for _, w := range want {
			if !strings.Contains(flat, strings.TrimSpace(w)) {
				t.Errorf("%s: no %q in\n%s", args, w, out)
			}
		}
	}
}

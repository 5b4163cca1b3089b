package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/schemas"
)

func TestMain(m *testing.M) {
	await.Together()
	os.Exit(m.Run())
}

const layoutYAML = `name: small
channels:
  - {names: [force, power, noise], kind: feature, rate: 1}
recording: {tool: tool, vb_max_um: VB}
`

// recording writes a table of [wearing] tools.
func recording(t testing.TB, dir, name string, tools, rows int, seed uint64) string {
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, wearing(tools, rows, seed), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// wearing returns a table of tools that wear: force and power rise with the
// wear, noise does not. Every third tool is taken out before it is worn.
func wearing(tools, rows int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	var b bytes.Buffer
	b.WriteString("force,power,noise,tool,VB\n")
	for tool := range tools {
		gain, end := 1+rng.Float64(), 420.0
		if tool%3 == 2 {
			end = 240
		}
		for i := range rows {
			vb := end * float64(i) / float64(rows)
			noise := fmt.Sprintf("%.4f", rng.NormFloat64())
			if rng.IntN(20) == 0 {
				noise = "" // a sensor that is missing now and then
			}
			fmt.Fprintf(&b, "%.4f,%.4f,%s,T%d,%.1f\n", gain*(100+vb/2+4*rng.NormFloat64()), gain*(20+vb/8+rng.NormFloat64()), noise, tool, vb)
		}
	}
	return b.Bytes()
}

// trained returns the file of a model, which is trained once for all tests.
var trained = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "flank-standalone-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "layout.yaml")
	if err := os.WriteFile(file, []byte(layoutYAML), 0o600); err != nil {
		return nil, err
	}
	layout, columns, err := signal.LoadLayout(file)
	if err != nil {
		return nil, err
	}
	history := filepath.Join(dir, "history.csv")
	if err := os.WriteFile(history, wearing(6, 60, 1), 0o600); err != nil {
		return nil, err
	}
	cfg := train.DefaultConfig()
	cfg.Network.Hidden = []int{6}
	cfg.Network.Pretrain.Epochs, cfg.Network.FineTune.Epochs = 5, 40
	cfg.Evaluate = train.Evaluate{ByTool: "off"}
	rec := source.Recording{Path: history, Layout: layout, Columns: columns}
	m, _, err := train.Run(context.Background(), train.Job{
		Config: cfg, Layout: layout, Inputs: []train.Input{{Name: "history", Open: rec.Open}}, Log: zerolog.Nop(),
	})
	if err != nil {
		return nil, err
	}
	return m.Encode()
})

// bench is a folder with a layout, a recording and a model for it.
type bench struct {
	dir, layout, recording, model string
	windows                       int
}

func newBench(t testing.TB) bench {
	dir := t.TempDir()
	b := bench{dir: dir, layout: filepath.Join(dir, "layout.yaml"), model: filepath.Join(dir, "m.flank"), windows: 4 * 60}
	if err := os.WriteFile(b.layout, []byte(layoutYAML), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := trained()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.model, m, 0o600); err != nil {
		t.Fatal(err)
	}
	b.recording = recording(t, dir, "day.csv", 4, 60, 2)
	return b
}

// args returns the arguments of a replay on its own ports.
func (b bench) args(extra ...string) []string {
	return append([]string{
		"--once", "--replay", b.recording, "--layout", b.layout, "--model", b.model, "--results", filepath.Join(b.dir, "out.jsonl"),
		"--data-dir", filepath.Join(b.dir, "data"), "--page", "127.0.0.1:0", "--broker", "127.0.0.1:0",
	}, extra...)
}

// lastLine decodes the last line of stdout.
func lastLine(t testing.TB, stdout string) jobSummary {
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	var s jobSummary
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &s); err != nil {
		t.Fatalf("last line of stdout: %v\n%s", err, stdout)
	}
	return s
}

// checkResults checks that the results file has one valid result for each
// window, in order.
func checkResults(t testing.TB, path string, windows int) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	seq := 0
	for line := range strings.Lines(string(text)) {
		var r event.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if err := schemas.Validate("result", []byte(line)); err != nil {
			t.Fatalf("result %d: %v", seq, err)
		}
		if r.Seq != uint64(seq) {
			t.Fatalf("line %d is of seq %d", seq, r.Seq)
		}
		seq++
	}
	if seq != windows {
		t.Errorf("%d results, want %d", seq, windows)
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), b.args(), &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	s := lastLine(t, stdout.String())
	if s.Windows != uint64(b.windows) || s.Results != s.Windows || s.Lost != 0 || s.Duplicated != 0 {
		t.Errorf("%+v: want %d windows, each with one result", s, b.windows)
	}
	token, err := os.ReadFile(filepath.Join(b.dir, "data", tokenFile))
	if text := stderr.String(); err != nil || !strings.HasPrefix(text, "page     http://127.0.0.1:") || strings.Count(text, strings.TrimSpace(string(token))) != 1 {
		t.Errorf("%v: want the page's URL first, and the token once\n%s", err, text)
	}
	// Tools 0, 1 and 3 wear out; the recording is not one that is hard to judge.
	if s.Alerts != 3 || s.GMean == nil || *s.GMean < 0.9 || s.Confusion.TP+s.Confusion.FN == 0 {
		t.Errorf("%+v with confusion %+v: want an alert for each of 3 tools and a G-mean of 0.9", s, s.Confusion)
	}
	if s.Verdicts[event.Learning] != 4*uint64(model.DefaultReference.Windows) {
		t.Errorf("verdicts %v: want %d windows of learning for each of 4 tools", s.Verdicts, model.DefaultReference.Windows)
	}
	checkResults(t, filepath.Join(b.dir, "out.jsonl"), b.windows)

	// A replay that has reached its end starts again, in another epoch.
	stdout.Reset()
	stderr.Reset()
	if err := run(t.Context(), b.args(), &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	if text := stderr.String(); strings.Contains(text, strings.TrimSpace(string(token))) || !strings.Contains(text, tokenFile) {
		t.Errorf("want the place of the token, and not the token again\n%s", text)
	}
	if again := lastLine(t, stdout.String()); again.Windows != s.Windows || again.Results != s.Results || again.Faulty != s.Faulty || again.Alerts != s.Alerts {
		t.Errorf("second replay: %+v, first %+v", again, s)
	}
}

// A recording may name its machine in any way: --machine is what counts.
func TestMachineOfTheRecording(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := os.WriteFile(b.layout, []byte(strings.Replace(layoutYAML, "{tool", "{machine: tool, tool", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), b.args("--machine", "acme/spore/bay2/line1/lathe"), &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if s := lastLine(t, stdout.String()); s.Results != uint64(b.windows) {
		t.Errorf("%+v: want %d results", s, b.windows)
	}
}

// A window without a result, or with two, is a failure that a script can see.
func TestSummaryCheck(t *testing.T) {
	for _, tc := range []struct {
		s    jobSummary
		want string
	}{
		{jobSummary{Windows: 9, Results: 9}, ""},
		{jobSummary{Windows: 9, Results: 7, Lost: 2}, "2 of 9 windows have no result"},
		{jobSummary{Windows: 9, Results: 9, Duplicated: 1}, "1 have two that differ"},
	} {
		err := tc.s.check()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%+v: %v, want %q", tc.s, err, tc.want)
		}
	}
}

// A replay that is stopped half-way goes on where it was.
func TestReplayStopped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { // 240 windows at 10 a second: it stops when the first ones are in the spool
		for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
			segments, _ := filepath.Glob(filepath.Join(b.dir, "data", "spool", "*.seg"))
			for _, s := range segments {
				if info, err := os.Stat(s); err == nil && info.Size() > 1000 {
					stop()
				}
			}
		}
	}()
	var stdout, stderr bytes.Buffer
	if err := run(ctx, b.args("--speed", "10"), &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if text, err := os.ReadFile(filepath.Join(b.dir, "out.jsonl")); err != nil || bytes.Count(text, []byte("\n")) >= b.windows {
		t.Fatalf("it was not stopped in the middle: %v", err)
	}
	stdout.Reset()
	if err := run(t.Context(), b.args(), &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	s := lastLine(t, stdout.String())
	if s.Windows != uint64(b.windows) || s.Results != s.Windows || s.Lost != 0 || s.Duplicated != 0 {
		t.Errorf("%+v: want %d windows, each with one result", s, b.windows)
	}
	checkResults(t, filepath.Join(b.dir, "out.jsonl"), b.windows)
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	busy := taken.Addr().String()
	good, err := os.ReadFile(b.model)
	if err != nil {
		t.Fatal(err)
	}
	good[len(good)/2] ^= 1
	corrupt := write("corrupt.flank", string(good))
	for name, tc := range map[string]struct {
		args []string
		want []string // parts of the error
	}{
		"no model for a replay":        {[]string{"--replay", b.recording}, []string{"--model", "trainer fit"}},
		"start of the simulated drill": {[]string{"--start", "file-time"}, []string{"--start goes with --replay"}},
		"fault of a recording":         {b.args("--fault", "dead:ch06@1s"), []string{"--fault", "--replay"}},
		"fault of no channel":          {[]string{"--fault", "dead:ch66@1s", "--data-dir", filepath.Join(b.dir, "none")}, []string{"--fault", `no channel "ch66"`}},
		"fault of no kind":             {[]string{"--fault", "tired:ch06@1s", "--data-dir", filepath.Join(b.dir, "none")}, []string{"--fault", `kind "tired"`}},
		"start in words":               {b.args("--start", "noon"), []string{`--start: "noon": write a date, time and zone`}},
		"machine that is not a path":   {b.args("--machine", "Lathe 3"), []string{"--machine", "Lathe 3", "enterprise/site/area/line/machine"}},
		"speed below nothing":          {b.args("--speed=-1"), []string{"--speed", "positive"}},
		"unknown flag":                 {[]string{"--reply", b.recording}, []string{"--reply", "--help"}},
		"missing recording":            {b.args("--replay", "absent.csv"), []string{"absent.csv", "no such file"}},
		"missing layout":               {b.args("--layout", "absent.yaml"), []string{"absent.yaml", "no such file"}},
		"unknown key in a layout":      {b.args("--layout", write("l.yaml", layoutYAML+"rate: 3\n")), []string{"l.yaml:5", "unknown key `rate`"}},
		"layout of another model":      {b.args("--layout", write("l.yaml", strings.Replace(layoutYAML, "power", "speed", 1))), []string{"l.yaml", "channel 2", "speed", "power"}},
		"missing model":                {b.args("--model", "absent.flank"), []string{"absent.flank", "trainer fit"}},
		"corrupt model":                {b.args("--model", corrupt), []string{"corrupt.flank", "checksum", "copy the file again"}},
		"not a model":                  {b.args("--model", b.layout), []string{"layout.yaml", "not a Flank model"}},
		"missing column":               {b.args("--replay", write("r.csv", "force,noise,tool,VB\n1,2,T,0\n")), []string{"r.csv", "power"}},
		"text in a number":             {b.args("--replay", write("r.csv", "force,power,noise,tool,VB\n1,2,3,T,0\n1,two,3,T,0\n")), []string{"r.csv", "3", "power", "two"}},
		"page's port is taken":         {b.args("--page", busy), []string{busy, "--page"}},
		"broker's port is taken":       {b.args("--broker", busy), []string{busy}},
		"results in no folder":         {b.args("--results", filepath.Join(b.dir, "absent", "out.jsonl")), []string{"--results", "absent"}},
		"data directory is a file":     {b.args("--data-dir", b.model), []string{"--data-dir", "m.flank"}},
	} {
		var stdout, stderr bytes.Buffer
		err := run(t.Context(), tc.args, &stdout, &stderr)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, part := range tc.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", name, err, part)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(b.dir, "none")); err == nil {
		t.Error("a fault that cannot be is found after something has begun")
	}
}

func TestDataDirectoryInUse(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	first := make(chan error, 1)
	began := make(chan struct{})
	go func() {
		var stdout bytes.Buffer
		first <- run(ctx, b.args("--speed", "1"), &stdout, &notify{began: began})
	}()
	select {
	case <-began:
	case err := <-first:
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	err := run(t.Context(), b.args(), &stdout, &stderr)
	if err == nil || !strings.Contains(err.Error(), filepath.Join(b.dir, "data")) {
		t.Errorf("a second one on the same data directory: %v", err)
	}
	stop()
	if err := <-first; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("the first one: %v", err)
	}
}

// notify closes began at the first write.
type notify struct {
	began chan struct{}
	done  bool
}

func (n *notify) Write(b []byte) (int, error) {
	if !n.done {
		n.done = true
		close(n.began)
	}
	return len(b), nil
}

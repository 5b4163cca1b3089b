package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/broker/brokertest"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/internal/testkit/logtest"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// TestMain lets the test program be monitor itself, for its exit code.
func TestMain(m *testing.M) {
	if os.Getenv("FLANK_TEST_MAIN") != "" {
		main()
		return
	}
	await.Together()
	os.Setenv("USER", "kim") // who runs the commands
	quietFor = 0             // tests have no ingester
	os.Exit(m.Run())
}

// nowhere is an address at which no broker is.
const nowhere = "127.0.0.1:1"

func monitorYAML(broker, page string) string {
	return fmt.Sprintf("kafka:\n  brokers: [%q]\nmodel: m.flank\nalarm:\n  k: 2\n  n: 3\npage: %q\n", broker, page)
}

func layout(t *testing.T, channel string) *signal.Layout {
	t.Helper()
	l, err := signal.NewLayout("one value", []signal.Channel{{Name: channel, Kind: signal.Feature, Unit: "N", Rate: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var encoded struct {
	sync.Once
	file []byte
}

// trained returns a small model file: faulty is a feature that doubles.
func trained(t *testing.T) []byte {
	t.Helper()
	encoded.Do(func() {
		m := machinetest.OneValue(t)
		m.Label = model.LabelRule{VBMaxUM: 300}
		file, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		encoded.file = file
	})
	return encoded.file
}

// pageYAML returns a configuration whose page has a key.
func pageYAML(key string) string {
	return strings.Replace(monitorYAML(nowhere, ""), "page: \"\"\n", "page:\n  "+key+"\n", 1)
}

// bench makes a working directory with a model and a configuration, changed by
// pairs of a file's name and its text.
func bench(t *testing.T, files ...string) {
	t.Helper()
	t.Chdir(folder(t, files...))
}

// folder is a bench that is not the working directory, for tests that run next to each other.
func folder(t *testing.T, files ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for files = append([]string{"m.flank", string(trained(t)), "monitor.yaml", monitorYAML(nowhere, "")}, files...); len(files) > 0; files = files[2:] {
		if err := os.WriteFile(filepath.Join(dir, files[0]), []byte(files[1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// startBroker returns the address of a broker, with topics if apply.
func startBroker(t *testing.T, apply bool) string {
	t.Helper()
	b := brokertest.Start(t)
	if apply {
		if _, err := bus.Apply(t.Context(), b.Config("test"), 1, 1); err != nil {
			t.Fatal(err)
		}
	}
	return b.Addr()
}

func windowMessage(t *testing.T, l *signal.Layout, seq uint64, value float32, flags ...signal.Quality) bus.Message {
	t.Helper()
	return windowOf(t, l, "T1", seq, value, flags...)
}

// windowOf returns the message of a window of a tool.
func windowOf(t *testing.T, l *signal.Layout, tool string, seq uint64, value float32, flags ...signal.Quality) bus.Message {
	t.Helper()
	c, err := window.NewCodec(l, window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Seal(&window.Window{
		Context: signal.Context{Machine: "acme/spore/bay2/line1/lathe", Tool: tool}, Epoch: 1, Seq: seq,
		Start: time.Unix(int64(seq), 0), Length: time.Second, Samples: [][]float32{{value}}, Quality: append(flags, 0)[:1],
	})
	if err != nil {
		t.Fatal(err)
	}
	return envelope.Window(e)
}

// A monitor judges, shows its page, says of windows that are not for its model
// what to do, and tells at the end what it did.
func TestRun(t *testing.T) {
	t.Parallel()
	addr := startBroker(t, true)
	config := "--config=" + filepath.Join(folder(t, "monitor.yaml", monitorYAML(addr, "127.0.0.1:0")+"metrics: \"127.0.0.1:0\"\n"), "monitor.yaml")
	cfg := bus.Config{Brokers: []string{addr}, ClientID: "test"}
	out, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	msgs := []bus.Message{windowMessage(t, layout(t, "power"), 100, 1)}
	for seq, v := range []float32{10, 10, 10, 20, 20} {
		msgs = append(msgs, windowMessage(t, layout(t, "force"), uint64(seq), v))
	}
	if err := out.Send(t.Context(), append(msgs, msgs[1])); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	// The last message is a repeat, so all are through when one more is judged.
	if err := out.Send(ctx, []bus.Message{windowMessage(t, layout(t, "force"), 5, 20)}); err != nil {
		t.Fatal(err)
	}
	log := &logtest.Buffer{}
	var page, shown, metrics []byte
	get := func(url string) (body []byte) {
		if r, err := http.Get(url); err == nil {
			body, _ = io.ReadAll(r.Body)
			r.Body.Close()
		}
		return body
	}
	go func() {
		defer stop()
		_ = bus.ReadTopic(ctx, cfg, bus.TopicResults, bus.FirstOffset, true, func(m bus.Message) error {
			if !strings.HasSuffix(string(m.Header("ce_id")), "/5/tcm-monitor") {
				return nil
			}
			if url := after(log.String(), `"page":"`); url != "" {
				page, shown, metrics = get(url), get(url+"/metrics"), get(after(log.String(), `"url":"`))
			}
			return errors.New("enough")
		})
	}()
	var stdout bytes.Buffer
	if err := run(ctx, []string{"run", config, "--verbose"}, &stdout, log); err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	if want := "6 windows judged, 1 repeats dropped, 0 messages set aside, 1 alerts\n"; stdout.String() != want {
		t.Errorf("%q, want %q\n%s", stdout.String(), want, log)
	}
	for _, want := range []string{`lathe: NOT WATCHED, its windows are refused: windows of layout `, `no channel \"force\"; a channel \"power\" that is not expected. Give its ingester the layout of the model, or train a model on this one`, `"message":"monitoring"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log lacks %q:\n%s", want, log)
		}
	}
	for _, tc := range [][]string{
		{"alerts ls", "1 of 1 machines not watched, see the advisories", "\nwindows_refused  acme/spore/bay2/line1/lathe  ", "NOT WATCHED"},
		{"machines ls", "NO: windows refused"},
	} {
		var list bytes.Buffer
		if err := run(t.Context(), append(strings.Fields(tc[0]), config), &list, &list); err != nil {
			t.Error(err)
		}
		for _, want := range tc[1:] {
			if !strings.Contains(list.String(), want) {
				t.Errorf("%s lacks %q:\n%s", tc[0], want, list.String())
			}
		}
	}
	if !strings.Contains(strings.ToLower(string(page)), "<!doctype html>") {
		t.Errorf("page %.200q", page)
	}
	if !strings.Contains(string(metrics), "\ntcm_windows_judged_total ") || !strings.Contains(string(metrics), "\ntcm_windows_missing 0\n") {
		t.Errorf("metrics:\n%s", metrics)
	}
	if !strings.Contains(string(metrics), "\ngo_goroutines ") || strings.Contains(string(shown), "tcm_") {
		t.Errorf("metrics at the page's address: %.300q", shown)
	}
}

// after returns what follows prefix in a log, up to a quote.
func after(log, prefix string) string {
	_, rest, _ := strings.Cut(log, prefix)
	text, _, _ := strings.Cut(rest, `"`)
	return text
}

// What a person gets wrong, and what monitor says to it.
func TestErrors(t *testing.T) {
	t.Parallel()
	file := trained(t)
	flipped := bytes.Clone(file)
	flipped[len(flipped)/2] ^= 1
	bare := startBroker(t, false)
	ready := startBroker(t, true)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	busy := taken.Addr().String()
	const yaml, judge = "monitor.yaml", "run --config monitor.yaml"
	var got strings.Builder
	for _, tc := range []struct {
		why, args string
		files     []string
	}{
		{"no command", "", nil},
		{"no configuration is named", "run", nil},
		{"no configuration file", "run --config absent.yaml", nil},
		{"text for a duration", judge + " --wait long", nil},
		{"unknown key", judge, []string{yaml, monitorYAML(nowhere, "") + "mode: fast\n"}},
		{"unknown key below another", judge, []string{yaml, "alarm:\n  latched: true\n"}},
		{"text for a number", judge, []string{yaml, "alarm:\n  k: five\n"}},
		{"no broker is named", judge, []string{yaml, "model: m.flank\n"}},
		{"broker without a port", judge, []string{yaml, monitorYAML("kafka", "")}},
		{"no broker answers", judge, nil},
		{"no model is named", judge, []string{yaml, strings.Replace(monitorYAML(nowhere, ""), "model: m.flank\n", "", 1)}},
		{"no model", judge, []string{yaml, strings.Replace(monitorYAML(nowhere, ""), "m.flank", "absent.flank", 1)}},
		{"corrupt model", judge, []string{"m.flank", string(flipped)}},
		{"model that was cut off", judge, []string{"m.flank", string(file[:len(file)/2])}},
		{"something else than a model", judge, []string{"m.flank", "force,power\n1,2\n"}},
		{"alarm that can never be", judge, []string{yaml, strings.Replace(monitorYAML(nowhere, ""), "k: 2", "k: 4", 1)}},
		{"tokens for everyone to read", judge, []string{yaml, monitorYAML(nowhere, "0.0.0.0:0") + "page_token: {file: page-token}\n"}},
		{"people and a token that they share", judge, []string{yaml, pageYAML("people: people.yaml") + "page_token: {file: page-token}\n"}},
		{"people who are not there", judge, []string{yaml, pageYAML("people: people.yaml")}},
		{"people whom others may read", judge, []string{yaml, pageYAML("people: shared/people.yaml")}},
		{"people without a role", "check --config monitor.yaml", []string{yaml, pageYAML("people: people.yaml"), "people.yaml", "people:\n  - name: kim\n"}},
		{"reads need a login that no one has", judge, []string{yaml, pageYAML("read: token")}},
		{"a certificate that is not there", judge, []string{yaml, pageYAML("tls: {cert: page.pem, key: page.key}")}},
		{"unknown key of the page", judge, []string{yaml, pageYAML("port: 9102")}},
		{"page's port is taken", judge, []string{yaml, monitorYAML(ready, busy)}},
		{"no topics", judge, []string{yaml, monitorYAML(bare, "")}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			dir := folder(t, tc.files...)
			shared := filepath.Join(dir, "shared", "people.yaml")
			if err := errors.Join(os.Mkdir(filepath.Dir(shared), 0o755), os.WriteFile(shared, nil, 0o600), os.Chmod(shared, 0o644)); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr bytes.Buffer
			err := run(t.Context(), strings.Fields(strings.Replace(tc.args, "--config ", "--config "+dir+"/", 1)), &stdout, &stderr)
			if err == nil {
				t.Fatalf("no error; printed %q", &stdout)
			}
			text := strings.NewReplacer(bare, "BROKER", busy, "PAGE", dir+"/", "").Replace(err.Error())
			fmt.Fprintf(&got, "# %s\n%s\n\n", tc.why, text)
		})
	}
	if !t.Failed() {
		golden.Check(t, "errors.golden", got.String())
	}
}

// Ctrl-C is not a failure, even before the first window.
func TestStopped(t *testing.T) {
	t.Parallel()
	addr := startBroker(t, true)
	config := filepath.Join(folder(t, "monitor.yaml", monitorYAML(addr, "")), "monitor.yaml")
	ctx, stop := context.WithCancel(t.Context())
	var stdout bytes.Buffer
	log := stopper{stop}
	if err := run(ctx, []string{"run", "--config", config}, &stdout, log); err != nil {
		t.Error(err)
	}
	if want := "0 windows judged, 0 repeats dropped, 0 messages set aside, 0 alerts\n"; stdout.String() != want {
		t.Errorf("%q, want %q", stdout.String(), want)
	}
}

// stopper is a log that stops the program as soon as it says that it monitors.
type stopper struct{ stop func() }

func (s stopper) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(`"monitoring"`)) {
		s.stop()
	}
	return len(p), nil
}

// Help says what to type first.
func TestHelp(t *testing.T) {
	var got strings.Builder
	for _, args := range []string{"--help", "run --help"} {
		var stdout, stderr bytes.Buffer
		if err := run(t.Context(), strings.Fields(args), &stdout, &stderr); err != nil || stderr.Len() > 0 {
			t.Errorf("%s: %v, %q", args, err, &stderr)
		}
		fmt.Fprintf(&got, "$ monitor %s\n%s\n", args, &stdout)
	}
	golden.Check(t, "help.txt", got.String())
}

// An error is the last line on stderr, and the exit code is 1.
func TestExitCode(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]struct {
		code   int
		stderr string
	}{
		"--help":                   {0, ""},
		"tune --help":              {2, "monitor: tune: the command is `trainer tune` now, with the same flags: use that program\n"},
		"run --config absent.yaml": {1, "monitor: configuration: open absent.yaml: no such file or directory: name another file, or begin with one of the examples\n"},
	} {
		cmd := exec.Command(os.Args[0], strings.Fields(args)...)
		cmd.Env = append(os.Environ(), "FLANK_TEST_MAIN=1")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want.code || errs.String() != want.stderr {
			t.Errorf("%s: %v, stderr %q; want code %d and %q", args, err, &errs, want.code, want.stderr)
		}
	}
}

// The configurations that come with the programs can be read.
func TestExamples(t *testing.T) {
	for _, path := range []string{"../../examples/gun-drill/monitor.yaml", "../../deploy/compose/monitor.yaml"} {
		c := settings{Alarm: alarm.Default}
		if err := config.Load(path, &c); err != nil {
			t.Error(err)
		}
		if err := c.Alarm.Check(); err != nil || c.Model == "" || len(c.Kafka.Brokers) == 0 {
			t.Errorf("%s: %+v, %v", path, c, err)
		}
	}
}

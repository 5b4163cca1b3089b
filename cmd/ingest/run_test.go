package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/broker/brokertest"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/ingest"
	"github.com/flank-tcm/flank/internal/ingest/spool"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/golden"
)

// TestMain lets the test program be ingest itself, for its exit code.
func TestMain(m *testing.M) {
	if os.Getenv("FLANK_TEST_MAIN") != "" {
		main()
		return
	}
	await.Together()
	os.Exit(m.Run())
}

const (
	layoutYAML = `name: small
channels:
  - {names: [force, power], kind: feature, rate: 1}
recording: {tool: tool}
`
	table = "force,power,tool\n1,2,T1\n3,4,T1\n5,,T1\n7,8,T2\n"

	// nowhere is an address at which no broker is.
	nowhere = "127.0.0.1:1"
)

// ingestYAML is a configuration that replays the table, with one line changed.
func ingestYAML(broker, old, new string) string {
	text := fmt.Sprintf(`machine: acme/spore/bay2/line1/lathe
kafka:
  brokers: [%q]
layout: layout.yaml
window:
  length: 1s
spool: spool
source:
  kind: csv
  file: day.csv
  speed: 0
`, broker)
	if !strings.Contains(text, old) {
		panic("no line " + old)
	}
	return strings.Replace(text, old, new, 1)
}

// folder is where a test has its files. It is not the working directory, so tests can run next to each other.
type folder string

// bench makes a folder with a recording, its layout and a configuration, changed by
// pairs of a file's name and its text.
func bench(t *testing.T, files ...string) folder {
	t.Helper()
	dir := folder(t.TempDir())
	dir.write(t, append([]string{"layout.yaml", layoutYAML, "day.csv", table, "ingest.yaml", ingestYAML(nowhere, "", "")}, files...)...)
	return dir
}

func (dir folder) path(name string) string { return filepath.Join(string(dir), name) }

func (dir folder) write(t *testing.T, files ...string) {
	t.Helper()
	for ; len(files) > 0; files = files[2:] {
		if err := os.WriteFile(dir.path(files[0]), []byte(files[1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func ingestRun(t *testing.T, ctx context.Context, args string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	err = run(ctx, strings.Fields(args), &out, &errs)
	return out.String(), errs.String(), err
}

// run runs ingest as if the folder were the working directory: the configuration and what begins with ./ are in it,
// and what is printed does not name it.
func (dir folder) run(t *testing.T, ctx context.Context, args string) (stdout, stderr string, err error) {
	t.Helper()
	at := string(dir) + "/"
	stdout, stderr, err = ingestRun(t, ctx, strings.NewReplacer("--config ", "--config "+at, " ./", " "+at).Replace(args))
	return strings.ReplaceAll(stdout, at, ""), strings.ReplaceAll(stderr, at, ""), err
}

func startBroker(t *testing.T) string {
	t.Helper()
	b := brokertest.Start(t)
	return b.Addr()
}

// From a broker without topics to a recording that was sent, as a person would
// go about it.
func TestFirstDay(t *testing.T) {
	t.Parallel()
	addr := startBroker(t)
	dir := bench(t, "ingest.yaml", ingestYAML(addr, "", ""))
	_, _, err := dir.run(t, t.Context(), "run --config ingest.yaml")
	if !errors.Is(err, bus.ErrNoTopic) || !strings.Contains(err.Error(), "`ingest topics apply`") {
		t.Errorf("without topics: %v, want the remedy", err)
	}
	out, _, err := dir.run(t, t.Context(), "topics apply --config ingest.yaml --partitions 2")
	if err != nil || strings.Count(out, "\n") != 15 || !strings.Contains(out, "tcm.windows.v1   2 (new) ") {
		t.Errorf("topics apply: %v\n%s", err, out)
	}
	out, _, err = dir.run(t, t.Context(), "topics apply --config ingest.yaml")
	if err != nil || !strings.Contains(out, "tcm.windows.v1   2 ") || strings.Contains(out, "(new)") {
		t.Errorf("topics apply again: %v\n%s", err, out)
	}
	out, log, err := dir.run(t, t.Context(), "run --config ingest.yaml")
	if err != nil || out != "4 windows cut, 4 delivered, 0 pending in the spool, 0 gaps\n" {
		t.Errorf("run: %v\n%s%s", err, out, log)
	}
	if !strings.Contains(log, "continuing an unfinished replay") {
		t.Errorf("the windows of the first try are not gone on with:\n%s", log)
	}
	ids := map[string]bool{}
	err = bus.ReadTopic(t.Context(), bus.Config{Brokers: []string{addr}}, bus.TopicWindows, bus.FirstOffset, false, func(m bus.Message) error {
		if envelope.IsLedger(&m) {
			return nil
		}
		if m.Key != "acme/spore/bay2/line1/lathe" {
			t.Errorf("key %q", m.Key)
		}
		ids[string(m.Header("ce_id"))] = true
		return nil
	})
	if err != nil || len(ids) != 4 {
		t.Errorf("%d windows on the topic, want 4; %v", len(ids), err)
	}
}

// With spool_only nothing is sent. The next run without it sends everything once.
func TestSpoolOnly(t *testing.T) {
	t.Parallel()
	addr := startBroker(t)
	dir := bench(t, "ingest.yaml", ingestYAML(addr, "", ""), "only.yaml", ingestYAML(addr, "", "")+"spool_only: true\n")
	if _, _, err := dir.run(t, t.Context(), "topics apply --config ingest.yaml --partitions 2"); err != nil {
		t.Fatal(err)
	}
	sent := func() (n int) {
		t.Helper()
		if err := bus.ReadTopic(t.Context(), bus.Config{Brokers: []string{addr}}, bus.TopicWindows, bus.FirstOffset, false, func(m bus.Message) error {
			if !envelope.IsLedger(&m) {
				n++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	out, log, err := dir.run(t, t.Context(), "run --config only.yaml")
	if err != nil || out != "4 windows cut, 0 delivered, 4 pending in the spool, 0 gaps\n" || !strings.Contains(log, "spool only: windows are kept and none is sent") {
		t.Errorf("%v\n%s%s", err, out, log)
	}
	if n := sent(); n > 0 {
		t.Fatalf("%d windows are sent", n)
	}
	out, log, err = dir.run(t, t.Context(), "run --config ingest.yaml")
	if n := sent(); err != nil || n != 4 || out != "4 windows cut, 4 delivered, 0 pending in the spool, 0 gaps\n" {
		t.Errorf("%d windows are sent, %v\n%s%s", n, err, out, log)
	}
}

// Ctrl-C is not a failure, even while a simulated drill would run for ever or no
// broker takes its windows.
func TestStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := bench(t, "ingest.yaml", "machine: a/b/c/d/e\nkafka: {brokers: [\""+nowhere+"\"]}\n")
	out, _, err := dir.run(t, ctx, "run --config ingest.yaml")
	if err != nil || out != "0 windows cut, 0 delivered, 0 pending in the spool, 0 gaps\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

// A bad row names file, line and remedy; the windows before it are counted.
func TestBadRow(t *testing.T) {
	t.Parallel()
	addr := startBroker(t)
	dir := bench(t, "ingest.yaml", ingestYAML(addr, "", ""), "day.csv", table+"9,off,T2\n")
	if _, _, err := dir.run(t, t.Context(), "topics apply --config ingest.yaml"); err != nil {
		t.Fatal(err)
	}
	out, _, err := dir.run(t, t.Context(), "run --config ingest.yaml")
	if err == nil || !strings.Contains(err.Error(), `day.csv:6: column "power": "off" is not a number: correct it`) {
		t.Errorf("error %v", err)
	}
	if !strings.HasPrefix(out, "4 windows cut, 4 delivered") {
		t.Errorf("the windows before the bad row: %s", out)
	}
}

// What a person gets wrong, and what ingest says to it.
func TestErrors(t *testing.T) {
	t.Parallel()
	const (
		config = "ingest.yaml"
		ingest = "run --config ingest.yaml"
	)
	change := func(old, new string) []string { return []string{config, ingestYAML(nowhere, old, new)} }
	// The commands that write an audit have a broker with its topics: without one they wait for it.
	addr := startBroker(t)
	if _, err := bus.Apply(t.Context(), bus.Config{Brokers: []string{addr}}, 1, 1); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, tc := range []struct {
		why, args string
		files     []string
	}{
		{"no command", "", nil},
		{"no configuration is named", "run", nil},
		{"unknown flag", "run --confg ingest.yaml", nil},
		{"no configuration file", "run --config absent.yaml", nil},
		{"unknown key", ingest, change("window:\n", "windows:\n")},
		{"unknown key below another", ingest, change("  kind: csv\n", "  knd: csv\n")},
		{"no YAML", ingest, change("window:\n", "window\n")},
		{"text for a duration", ingest, change("length: 1s", "length: short")},
		{"text for a number", ingest, change("speed: 0", "speed: fast")},
		{"no broker", ingest, change(`["`+nowhere+`"]`, "[]")},
		{"broker without a port", ingest, change(nowhere, "kafka")},
		{"no machine", ingest, change("machine: acme/spore/bay2/line1/lathe\n", "")},
		{"machine that is not a path", ingest, change("acme/spore/bay2/line1/lathe", "lathe")},
		{"machine with a part too many", ingest, change("lathe", "lathe/2")},
		{"machine with capitals", ingest, change("lathe", "Lathe")},
		{"machine with an empty part", ingest, change("bay2", "")},
		{"machine that the recording names", ingest, []string{"layout.yaml", layoutYAML[:len(layoutYAML)-2] + ", machine: tool}\n"}},
		{"window that is part of a sample", ingest, change("length: 1s", "length: 1500ms")},
		{"window of nothing", ingest, change("length: 1s", "length: 0s")},
		{"hop longer than the window", ingest, change("length: 1s", "length: 1s\n  hop: 2s")},
		{"kind that is none", ingest, change("kind: csv", "kind: tsv")},
		{"speed below nothing", ingest, change("speed: 0", "speed: -1")},
		{"sync below nothing", ingest, change("spool: spool", "spool: spool\nspool_sync: -1")},
		{"no recording is named", ingest, change("  file: day.csv\n", "")},
		{"no recording", ingest, change("day.csv", "absent.csv")},
		{"recording that would not be read", ingest, change("kind: csv", "kind: simulate")},
		{"start in words", ingest, change("  kind: csv\n", "  kind: csv\n  start: noon\n")},
		{"start before there are clocks", ingest, change("  kind: csv\n", "  kind: csv\n  start: 1990-01-01T00:00:00Z\n")},
		{"start of what is live", ingest, change("  kind: csv\n", "  kind: tcp\n  listen: \"127.0.0.1:0\"\n  start: file-time\n")},
		{"life of no time", ingest, []string{config, "machine: a/b/c/d/e\nkafka: {brokers: [\"b:9092\"]}\nsource:\n  tool_life: 0s\n"}},
		{"layout of the simulated drill", ingest, []string{config, "machine: a/b/c/d/e\nkafka: {brokers: [\"b:9092\"]}\nlayout: layout.yaml\n"}},
		{"no layout", ingest, change("layout.yaml", "absent.yaml")},
		{"unknown key of the layout", ingest, []string{"layout.yaml", layoutYAML + "speed: 3\n"}},
		{"wrong column", ingest, []string{"day.csv", strings.Replace(table, "power", "pover", 1)}},
		{"layout of another recording", ingest, change("layout: layout.yaml\n", "")},
		{"empty recording", ingest, []string{"day.csv", ""}},
		{"spool in use", ingest, change("spool: spool", "spool: held")},
		{"spool that is a file", ingest, change("spool: spool", "spool: day.csv")},
		{"fault that is none", ingest, []string{config, "machine: a/b/c/d/e\nkafka: {brokers: [\"b:9092\"]}\nsource: {faults: [\"flatline:ch07\"]}\n"}},
		{"fault of a channel that is not there", ingest, []string{config, "machine: a/b/c/d/e\nkafka: {brokers: [\"b:9092\"]}\nsource: {faults: [\"flatline:ch99@1s\"]}\n"}},
		{"faults of a recording", ingest, change("  kind: csv\n", "  kind: csv\n  faults: [missing@1s]\n")},
		{"tcp without an address", ingest, change("  kind: csv\n", "  kind: tcp\n")},
		{"address that cannot be listened at", ingest, change("  kind: csv\n", "  kind: tcp\n  listen: nowhere\n")},
		{"open to the network", ingest, change("  kind: csv\n", "  kind: tcp\n  listen: \":9110\"\n")},
		{"insecure recording", ingest, change("  kind: csv\n", "  kind: csv\n  insecure: true\n")},
		{"address of a recording", ingest, change("  kind: csv\n", "  kind: csv\n  listen: \"127.0.0.1:0\"\n")},
		{"TLS without a certificate", ingest, change("  kind: csv\n", "  kind: tcp\n  listen: \"127.0.0.1:0\"\n  tls: {ca: ca.pem}\n")},
		{"mqtt without a broker", ingest, change("  kind: csv\n", "  kind: mqtt\n")},
		{"mqtt broker that is not an address", ingest, change("  kind: csv\n  file: day.csv\n  speed: 0\n", "  kind: mqtt\nmqtt: {broker: \"broker:1883\"}\n")},
		{"mqtt password in the open", ingest, change("  kind: csv\n  file: day.csv\n  speed: 0\n", "  kind: mqtt\nmqtt: {broker: \"mqtt://broker\", user: u, password_env: HOME}\n")},
		{"machines and a machine", ingest, []string{config, "machine: a/b/c/d/e\nkafka: {brokers: [\"b:9092\"]}\nmachines:\n  - {machine: a/b/c/d/f}\n"}},
		{"unknown key of a machine", ingest, []string{config, "kafka: {brokers: [\"b:9092\"]}\nmachines:\n  - {machine: a/b/c/d/f, sorce: {}}\n"}},
		{"one of several is not a path", ingest, []string{config, "kafka: {brokers: [\"b:9092\"]}\nmachines:\n  - {machine: a/b/c/d/f}\n  - {machine: b}\n"}},
		{"a machine twice", ingest, []string{config, "kafka: {brokers: [\"b:9092\"]}\nmachines:\n  - {machine: a/b/c/d/f}\n  - {machine: a/b/c/d/f, spool: b}\n"}},
		{"two machines, one spool", ingest, []string{config, "kafka: {brokers: [\"b:9092\"]}\nmachines:\n  - {machine: a/b/c/d/f, spool: s}\n  - {machine: a/b/c/d/e, spool: s}\n"}},
		{"two machines, one client of MQTT", ingest, []string{config, "kafka: {brokers: [\"b:9092\"]}\nmqtt: {broker: \"mqtts://b:8883\"}\nmachines:\n  - {machine: a/b/c/d-e/f, spool: s, source: {kind: mqtt}}\n  - {machine: a/b/c-d/e/f, spool: t, source: {kind: mqtt}}\n"}},
		{"tool of a recording", "tool --config ingest.yaml --tool T1", []string{config, ingestYAML(addr, "", "")}},
		{"tool of no name", "tool --config ingest.yaml --tool=", nil},
		{"no ingest to tell of a tool", "tool --config ingest.yaml --tool T1", []string{config, ingestYAML(addr, "  kind: csv\n", "  kind: tcp\n  listen: \"127.0.0.1:0\"\n")}},
		{"topics without a broker", "topics apply --config ingest.yaml", nil},
		{"topics of no partitions", "topics apply --config ingest.yaml --partitions 0", []string{config, ingestYAML(addr, "", "")}},
		{"kept for a moment", "topics apply --config ingest.yaml", change("window:\n", "retain:\n  windows: {time: 1s}\nwindow:\n")},
		{"kept as next to nothing", "topics apply --config ingest.yaml", change("window:\n", "retain:\n  dead_letters:\n    bytes: 5kB\nwindow:\n")},
		{"kept without a unit", ingest, change("window:\n", "retain: {windows: {bytes: 5}}\nwindow:\n")},
		{"kept of another topic", ingest, change("window:\n", "retain: {results: {time: 1h}}\nwindow:\n")},
		{"topics grown to none", "topics grow --config ingest.yaml --partitions 0", nil},
		{"topics grown without a broker", "topics grow --config ingest.yaml --partitions 8", nil},
		{"mode that is none", ingest, change("window:\n", "mode: both\nwindow:\n")},
		{"windows kept for no time", ingest, change("window:\n", "mode: edge\nedge: {keep_hours: 0}\nwindow:\n")},
		{"more kept than the spool takes", ingest, change("window:\n", "mode: edge\nedge: {keep_mib: 20000}\nwindow:\n")},
		{"fewer than no windows sampled", ingest, change("window:\n", "mode: edge\nedge: {sample: -1}\nwindow:\n")},
		{"fetch of nothing", "fetch --config ingest.yaml", nil},
		{"fetch without a beginning", "fetch --config ingest.yaml --until 2026-11-02T06:00:00Z", nil},
		{"resend without a beginning", "spool resend --config ingest.yaml", nil},
		{"fetch backwards", "fetch --config ingest.yaml --since 2026-11-02T06:00:00Z --until 2026-11-02T05:00:00Z", nil},
		{"fetch of too much", "fetch --config ingest.yaml --since 2026-11-02T06:00:00Z --until 2026-11-02T07:00:00Z --windows 1000000", nil},
		{"fetch of no machine", "fetch --config ingest.yaml --machine lathe --since 2026-11-02T06:00:00Z --until 2026-11-02T07:00:00Z", nil},
		{"topics, unknown key", "topics apply --config ingest.yaml", change("window:\n", "windows:\n")},
	} {
		t.Run(tc.why, func(t *testing.T) {
			dir := bench(t, tc.files...)
			held, _, err := spool.Open(dir.path("held"), spool.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			defer held.Close()
			out, _, err := dir.run(t, t.Context(), tc.args)
			if err == nil {
				t.Fatalf("no error; printed %q", out)
			}
			fmt.Fprintf(&got, "# %s\n%s\n\n", tc.why, strings.ReplaceAll(err.Error(), string(dir)+"/", ""))
		})
	}
	if !t.Failed() {
		golden.Check(t, "errors.golden", got.String())
	}
}

// Help says what to type first.
func TestHelp(t *testing.T) {
	var got strings.Builder
	for _, args := range []string{"--help", "run --help", "simulate --help", "tool --help", "fetch --help", "topics apply --help", "topics grow --help"} {
		out, errs, err := ingestRun(t, t.Context(), args)
		if err != nil || errs != "" {
			t.Errorf("%s: %v, %q", args, err, errs)
		}
		fmt.Fprintf(&got, "$ ingest %s\n%s\n", args, out)
	}
	golden.Check(t, "help.txt", got.String())
}

// An error is the last line on stderr, and the exit code is 1.
func TestExitCode(t *testing.T) {
	for args, want := range map[string]struct {
		code   int
		stderr string
	}{
		"--help":                   {0, ""},
		"run --config absent.yaml": {1, "ingest: configuration: open absent.yaml: no such file or directory: name another file, or begin with one of the examples\n"},
		"walk":                     {1, "ingest: unexpected argument walk (see ingest --help)\n"},
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
	for _, path := range []string{"../../examples/gun-drill/ingest.yaml", "../../examples/plant/ingest.yaml", "../../deploy/compose/ingest.yaml"} {
		c, err := ingest.Load(path)
		if err == nil {
			err = c.Check()
		}
		if err != nil {
			t.Error(err)
		}
	}
}

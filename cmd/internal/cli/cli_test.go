package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

var update = flag.Bool("update", false, "write golden files")

// holdTo holds got to a golden file.
func holdTo(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (write it anew with -update):\n%s", path, got)
	}
}

// config is a configuration with a field of every type that ours have.
type config struct {
	Machine  string        `yaml:"machine"`
	Epochs   int           `yaml:"epochs"`
	Hidden   []int         `yaml:"hidden"`
	States   []string      `yaml:"states"`
	Seed     uint64        `yaml:"seed"`
	Latch    bool          `yaml:"latch"`
	Rate     float64       `yaml:"rate"`
	Patience time.Duration `yaml:"patience"`
	Window   struct {
		Length time.Duration `yaml:"length"`
	} `yaml:"window"`
}

// write writes a file to a new working directory, so that paths in errors
// are the same everywhere.
func write(t *testing.T, name, text string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLoadYAML(t *testing.T) {
	write(t, "c.yaml", "# comment\nepochs: 3\nhidden: [4, 5]\nwindow: {length: 1500ms}\nmachine: off\n")
	got := config{Epochs: 1, Seed: 7}
	if err := LoadYAML("c.yaml", &got); err != nil {
		t.Fatal(err)
	}
	want := config{Epochs: 3, Seed: 7, Hidden: []int{4, 5}, Machine: "off"}
	want.Window.Length = 1500 * time.Millisecond
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v: what the file does not name keeps its default", got, want)
	}
	for _, text := range []string{"", "# nothing but a comment\n"} {
		write(t, "c.yaml", text)
		got := config{Epochs: 1}
		if err := LoadYAML("c.yaml", &got); err != nil || got.Epochs != 1 {
			t.Errorf("%q: %+v, %v; want the defaults", text, got, err)
		}
	}
}

// The golden file holds what each of these is answered.
func TestLoadYAMLErrors(t *testing.T) {
	golden, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, text := range []string{
		"epoch: 3\n",
		"machine: m\nwindow:\n  lenght: 1s\n",
		"epochs: many\n",
		"epochs: 3\nepochs: 4\n",
		"window:\n  length: 1 second\n",
		"window: 1s\n",
		"patience: 5\n",
		"hidden: 30\n",
		"hidden:\n  - 30\n  - thirty\n",
		"states: worn\n",
		"seed: -1\n",
		"latch: yes please\n",
		"rate: 0,1\n",
		"machine: {name: m}\n",
		"- epochs: 3\n",
		"epochs: many\nrates: 3\nseed: x\n",
		"epochs: 3\n\tseed: 1\n",
		"machine: a: b\n",
		"hidden: [1, 2\n",
		"epochs: 3\n---\nepochs: 4\n",
	} {
		write(t, "c.yaml", text)
		err := LoadYAML("c.yaml", new(config))
		if err == nil {
			t.Errorf("%q is read without complaint", text)
			continue
		}
		fmt.Fprintf(&b, "%s=> %s\n\n", text, strings.ReplaceAll(err.Error(), "\n", "\n   "))
	}
	t.Chdir(golden)
	holdTo(t, "yaml-errors.txt", b.String())
}

func TestLoadYAMLWithoutFile(t *testing.T) {
	err := LoadYAML("absent.yaml", new(config))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "absent.yaml") || !strings.Contains(err.Error(), "examples") {
		t.Error(err)
	}
	if err := LoadYAML(t.TempDir(), new(config)); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Error(err)
	}
}

func TestParse(t *testing.T) {
	type flags struct {
		Run struct {
			Config string   `required:"" placeholder:"FILE" help:"Configuration."`
			Speed  int      `default:"1" help:"Times as fast as a live sensor."`
			File   []string `arg:"" optional:"" help:"Recordings."`
		} `cmd:"" help:"Run it."`
	}
	var out, errs bytes.Buffer
	parse := func(args ...string) (flags, string, error) {
		out.Reset()
		errs.Reset()
		var f flags
		k, err := Parse(&f, "thing", "Do a thing.", args, &out, &errs)
		if k == nil {
			return f, "", err
		}
		return f, k.Command(), err
	}
	f, command, err := parse("run", "--config", "c.yaml", "a.csv", "b.csv")
	if err != nil || !strings.HasPrefix(command, "run") || f.Run.Config != "c.yaml" || f.Run.Speed != 1 || len(f.Run.File) != 2 {
		t.Errorf("%q, %+v, %v", command, f, err)
	}
	var help strings.Builder
	for _, args := range [][]string{{"--help"}, {"run", "--help"}} {
		if _, command, err := parse(args...); err != nil || command != "" || errs.Len() > 0 {
			t.Errorf("%v: command %q, %v, %q", args, command, err, &errs)
		}
		fmt.Fprintf(&help, "$ thing %s\n%s\n", strings.Join(args, " "), &out)
	}
	holdTo(t, "help.txt", help.String())
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, `expected "run`},
		{[]string{"rum"}, `unexpected argument rum`},
		{[]string{"run"}, "missing flags: --config=FILE"},
		{[]string{"run", "--confg", "x"}, `unknown flag --confg, did you mean "--config"?`},
		{[]string{"run", "--config", "x", "--speed", "fast"}, `--speed: expected a valid 64 bit int but got "fast"`},
	} {
		_, _, err := parse(tc.args...)
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "thing --help") {
			t.Errorf("%v: %v, want %q and where help is", tc.args, err, tc.want)
		}
	}
}

func TestBeside(t *testing.T) {
	abs, err := filepath.Abs("layout.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ file, path, want string }{
		{"examples/turning/train.yaml", "layout.yaml", filepath.Join("examples", "turning", "layout.yaml")},
		{"train.yaml", "../wear.csv", filepath.Join("..", "wear.csv")},
		{"examples/train.yaml", "", ""},
		{"examples/train.yaml", abs, abs},
	} {
		if got := Beside(tc.file, tc.path); got != tc.want {
			t.Errorf("Beside(%q, %q) = %q, want %q", tc.file, tc.path, got, tc.want)
		}
	}
}

// Away from a terminal the log is JSON, one object a line.
func TestLogger(t *testing.T) {
	var b bytes.Buffer
	log := Logger(&b, zerolog.WarnLevel)
	log.Info().Msg("quiet")
	log.Warn().Str("machine", "m").Msg("loud")
	if got := b.String(); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, `{"level":"warn","machine":"m"`) || !strings.Contains(got, `"message":"loud"`) {
		t.Errorf("log %q", got)
	}
}

// Await calls at once, again while it must, and no more once ctx is done.
func TestAwait(t *testing.T) {
	calls := 0
	if err := Await(t.Context(), time.Hour, func(context.Context) error { calls++; return nil }); err != nil || calls != 1 {
		t.Errorf("ready at once: %v after %d calls", err, calls)
	}
	down := errors.New("down")
	ctx, cancel := context.WithCancel(t.Context())
	calls = 0
	err := Await(ctx, time.Hour, func(context.Context) error { calls++; cancel(); return down })
	if !errors.Is(err, down) || calls != 1 {
		t.Errorf("cancelled: %v after %d calls", err, calls)
	}
	calls = 0
	if err := Await(t.Context(), -1, func(context.Context) error { calls++; return down }); !errors.Is(err, down) || calls != 1 {
		t.Errorf("without patience: %v after %d calls", err, calls)
	}
}

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/testkit/golden"
)

// example is a configuration with a field of every type that ours have.
type example struct {
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

func TestLoad(t *testing.T) {
	write(t, "c.yaml", "# comment\nepochs: 3\nhidden: [4, 5]\nwindow: {length: 1500ms}\nmachine: off\n")
	got := example{Epochs: 1, Seed: 7}
	if err := Load("c.yaml", &got); err != nil {
		t.Fatal(err)
	}
	want := example{Epochs: 3, Seed: 7, Hidden: []int{4, 5}, Machine: "off"}
	want.Window.Length = 1500 * time.Millisecond
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v: what the file does not name keeps its default", got, want)
	}
	for _, text := range []string{"", "# nothing but a comment\n"} {
		write(t, "c.yaml", text)
		got := example{Epochs: 1}
		if err := Load("c.yaml", &got); err != nil || got.Epochs != 1 {
			t.Errorf("%q: %+v, %v; want the defaults", text, got, err)
		}
	}
}

// A whole number may be written as any that has no fraction, and within anything that ours have.
func TestFraction(t *testing.T) {
	type inner struct {
		K int `yaml:"k"`
	}
	type all struct {
		inner  `yaml:",inline"`
		Named  struct{ M int }  `yaml:",inline"`
		N      *int             `yaml:"n"`
		Rate   float64          `yaml:"rate"`
		Text   string           `yaml:"text"`
		Inner  inner            `yaml:"inner"`
		List   []inner          `yaml:"list"`
		ByName map[string]inner `yaml:"by_name"`
		Plain  int
		Any    any `yaml:"any"`
	}
	for text, line := range map[string]int{
		"k: 1e3\nn: 2.0\nrate: 1.5\ntext: 1.5\nany: {k: 1.5}\n": 0, "": 0,
		"k: 1.5\n": 1, "rate: 1.5\nn: 1.5\n": 2, "inner:\n  k: 1.5\n": 2, "list:\n  - k: 1\n  - k: 1.5\n": 3, "by_name: {a: {k: 1.5}}\n": 1, "plain: .5\n": 1, "m: 1.5\n": 1,
		"by_name:\n  a: &a {k: 2}\n  b: *a\nlist: [{k: 2.5}]\n": 4,
	} {
		err := Decode([]byte(text), "c.yaml", new(all))
		if want := fmt.Sprintf("c.yaml:%d: ", line); line == 0 && err != nil || line > 0 && (err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "must be a whole number")) {
			t.Errorf("%q: %v, want line %d", text, err, line)
		}
	}
}

// The golden file holds what each of these is answered.
func TestLoadErrors(t *testing.T) {
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, text := range []string{
		"epoch: 3\n",
		"machine: m\nwindow:\n  lenght: 1s\n",
		"epochs: many\n",
		"epochs: 1.5\n",
		"seed: 0.5\n",
		"hidden: [30, 7.5]\n",
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
		err := Load("c.yaml", new(example))
		if err == nil {
			t.Errorf("%q is read without complaint", text)
			continue
		}
		fmt.Fprintf(&b, "%s=> %s\n\n", text, strings.ReplaceAll(err.Error(), "\n", "\n   "))
	}
	t.Chdir(home)
	golden.Check(t, "yaml-errors.txt", b.String())
}

func TestLoadWithoutFile(t *testing.T) {
	err := Load("absent.yaml", new(example))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "absent.yaml") || !strings.Contains(err.Error(), "examples") {
		t.Error(err)
	}
	if err := Load(t.TempDir(), new(example)); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Error(err)
	}
}

func TestResolvePath(t *testing.T) {
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
		if got := ResolvePath(tc.file, tc.path); got != tc.want {
			t.Errorf("ResolvePath(%q, %q) = %q, want %q", tc.file, tc.path, got, tc.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("epochs: 3\nwindow: {length: 1s}\n"))
	f.Add([]byte("a: &x [*x]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_ = Decode(text, "f.yaml", new(example)) // returns, with any error or none
	})
}

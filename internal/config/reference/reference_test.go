package reference

import (
	"testing"
	"time"
)

type sample struct {
	Machine string `yaml:"machine"`
	Window  struct {
		Length time.Duration `yaml:"length"`
	} `yaml:"window"`
	Common `yaml:",inline"`
	TLS    *Common  `yaml:"tls"`
	Routes []Common `yaml:"routes"`
	Whole  []Common `yaml:"whole"`
	secret int
	Found  int `yaml:"-"`
}

type Common struct {
	Hosts []string `yaml:"hosts"`
	Most  *int     `yaml:"most"`
	Rate  float64  `yaml:"rate"`
}

func TestTable(t *testing.T) {
	s := sample{Machine: "m", Common: Common{Hosts: []string{"a", "b"}}, secret: 1}
	s.Window.Length = 90 * time.Minute
	got := Table(t, s, map[string]string{
		"machine": "Name.", "window.length": "Length.", "hosts": "Hosts.", "most": "default: all of them. Most.", "rate": "Rate.",
		"….hosts": "Others.", "….most": "Most.", "tls.rate": "Own.", "routes[].rate": "Of a route.", "whole": "All.",
	})
	want := "| key | default, or what it takes | |\n|---|---|---|\n" +
		"| `machine` | `m` | Name. |\n" +
		"| `window.length` | `1h30m` | Length. |\n" +
		"| `hosts` | `[a, b]` | Hosts. |\n" +
		"| `most` | all of them | Most. |\n" +
		"| `rate` | `0` | Rate. |\n" +
		"| `….hosts` | list | Others. For `tls`, `routes[]`. |\n| `….most` | whole number | Most. For `tls`, `routes[]`. |\n| `tls.rate` | `0` | Own. |\n" +
		"| `routes[].rate` | `0` | Of a route. |\n" +
		"| `whole` | list | All. |\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// broken counts errors.
type broken struct {
	testing.TB
	errors int
}

func (b *broken) Errorf(string, ...any) { b.errors++ }
func (b *broken) Helper()               {}

func TestTableReports(t *testing.T) {
	b := &broken{TB: t}
	Table(b, Common{}, map[string]string{"hosts": "Hosts.", "rate": "Rate.", "nonsense": "x"})
	if b.errors != 2 {
		t.Errorf("%d errors, want one for the key without a sentence and one for the sentence without a key", b.errors)
	}
}

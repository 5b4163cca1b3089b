package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// A parser that knows one command alone prints and says what one of all commands does.
func TestAlone(t *testing.T) {
	type sub struct {
		Config string `required:"" help:"Configuration."`
		Ls     struct {
			All bool `help:"All."`
		} `cmd:"" help:"List."`
	}
	type flags struct {
		Run     sub `cmd:"" help:"Run it." example:"thing run --config c.yaml"`
		StopAll sub `cmd:"" help:"Stop all."`
		Stop    sub `cmd:"" help:"Stop it."`
	}
	known := func(args ...string) int {
		return len(Parser(new(flags), "thing", "", alone(new(flags), args)...).Model.Children)
	}
	for args, want := range map[string]int{"run": 1, "run ls --all": 1, "stop": 1, "stopall": 3, "stopAll": 3, "stop-all": 3, "Run": 3, "--man": 3, "run --man": 3, "run --man=true": 3, "--complete -- run": 3, "": 3} {
		if got := known(strings.Fields(args)...); got != want {
			t.Errorf("%s: %d commands are known, want %d", args, got, want)
		}
	}
	for _, args := range []string{"run --help", "run ls --help", "run ls --al", "run lx", "run", "run --confg x ls"} {
		said := func(options ...kong.Option) string {
			var out bytes.Buffer
			p := Parser(new(flags), "thing", "Do a thing.", append(options, kong.Writers(&out, &out), kong.Exit(func(int) { panic(errHelp) }))...)
			text := func() (text string) {
				defer func() {
					if recover() != nil {
						text = "help"
					}
				}()
				_, err := p.Parse(strings.Fields(args))
				return err.Error()
			}()
			return text + out.String()
		}
		if got, want := said(alone(new(flags), strings.Fields(args))...), said(); got != want || want == "" {
			t.Errorf("%s: %q, of all commands %q", args, got, want)
		}
	}
}

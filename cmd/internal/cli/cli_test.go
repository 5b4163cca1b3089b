package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/testkit/golden"
)

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
		k, err := parse(&f, "thing", "Do a thing.", args, &out, &errs)
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
	golden.Check(t, "help.txt", help.String())
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, `expected "run" (see thing --help)`},
		{[]string{"rum"}, `unexpected argument rum, did you mean "run"? (see thing --help)`},
		{[]string{"run"}, "missing flags: --config=FILE (see thing run --help)"},
		{[]string{"run", "--confg", "x"}, `unknown flag --confg, did you mean "--config"? (see thing run --help)`},
		{[]string{"run", "--config", "x", "--speed", "fast"}, `--speed: expected a valid 64 bit int but got "fast"`},
	} {
		_, _, err := parse(tc.args...)
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "--help") {
			t.Errorf("%v: %v, want %q and where help is", tc.args, err, tc.want)
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

// What comes from outside cannot move a cursor or forge a line, neither in a log nor in what a command prints.
func TestHostileText(t *testing.T) {
	const hostile = "T1\nFORGED\x1b[2J\x9b\u009b31m\u202e\x7f"
	var file, terminal, stdout bytes.Buffer
	logs := map[string]zerolog.Logger{"a file": Logger(&file, zerolog.InfoLevel), "a terminal": zerolog.New(forTerminal(&terminal))}
	for _, log := range logs {
		log.Warn().Str("tool", hostile).Strs("tools", []string{hostile, "T2"}).Err(errors.New(hostile)).Msg("machine " + hostile)
	}
	var f struct {
		Print printHostile `cmd:""`
	}
	f.Print.text = hostile
	if err := Run(t.Context(), &f, "thing", "Do a thing.", []string{"print"}, &stdout, &file); err != nil {
		t.Fatal(err)
	}
	colours := regexp.MustCompile("\x1b\\[[0-9]+m") // zerolog's
	for to, text := range map[string]string{"a file": file.String(), "a terminal": colours.ReplaceAllString(terminal.String(), ""), "stdout": stdout.String()} {
		if to != "stdout" && (strings.Count(text, "\n") != 1 || strings.Count(text, "FORGED") != 4) {
			t.Errorf("the log on %s has another line: %q", to, text)
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%s gets %q raw: %q", to, text[i:min(i+4, len(text))], text)
		}
	}
	for line := range strings.Lines(file.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

type printHostile struct{ text string }

func (p *printHostile) Run(out Output) error {
	_, err := fmt.Fprintln(out.Stdout, p.text)
	return err
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

// Who does it is known also where $USER is not set, as in a container.
func TestUserWithoutEnvironment(t *testing.T) {
	t.Setenv("USER", "")
	var flags struct {
		By string `default:"${user}"`
	}
	if _, err := parse(&flags, "flank", "", nil, io.Discard, io.Discard); err != nil || flags.By == "" {
		t.Errorf("by %q, error %v", flags.By, err)
	}
	t.Setenv("USER", "anna")
	if _, err := parse(&flags, "flank", "", nil, io.Discard, io.Discard); err != nil || flags.By != "anna" {
		t.Errorf("by %q, error %v", flags.By, err)
	}
}

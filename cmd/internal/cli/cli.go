// Package cli is what the commands have in common: flags, logs and
// progress.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/rs/zerolog"
	"golang.org/x/term"

	"github.com/flank-tcm/flank/internal/event/audit"
	"github.com/flank-tcm/flank/internal/kernel"
	"github.com/flank-tcm/flank/internal/plain"
)

// errHelp stops parse after help was printed.
var errHelp = errors.New("help")

// common are the flags of every program.
type common struct {
	Version    versionFlag    `help:"Print version, commit and Go version."`
	Completion completionFlag `hidden:"" placeholder:"SHELL" help:"Print a script that completes commands and flags: bash, zsh or fish."`
	Man        manualFlag     `hidden:"" help:"Print the manual page."`
	Health     healthFlag     `hidden:"" placeholder:"URL" help:"Ask a running program for its health, such as http://127.0.0.1:9102/livez; the exit code is 1 if it is not well."`
	Pprof      string         `hidden:"" placeholder:"ADDR" help:"Answer with profiles of this program at an address of this computer, such as 127.0.0.1:6060."`
}

// Parser returns the parser of a program. It takes the configuration of a command from TCM_CONFIG if
// --config is not given, and puts the examples of a command, from the tag `example` with "; " between them, between its help and what its tag `more` or its method Help adds.
func Parser(flags any, name, description string, options ...kong.Option) *kong.Kong {
	parser, err := kong.New(flags, append(options,
		kong.Name(name), kong.Description(description), kong.Embed(new(common)), kong.Vars{"user": audit.User(), "formats": "text, json", "wait": "0s"},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.PostBuild(func(k *kong.Kong) error { return kong.Visit(k.Model, prepare) }))...)
	if err != nil {
		panic("cli: " + err.Error())
	}
	return parser
}

// prepare completes one node of a parser.
func prepare(node kong.Visitable, next kong.Next) error {
	switch n := node.(type) {
	case *kong.Flag:
		if n.Name == "config" && !n.IsBool() {
			n.Envs, n.Tag.Envs = []string{"TCM_CONFIG"}, []string{"TCM_CONFIG"}
		}
	case *kong.Node:
		if n.Tag != nil && n.Tag.Has("example") {
			var b strings.Builder
			for e := range strings.SplitSeq(n.Tag.Get("example"), "; ") {
				fmt.Fprintf(&b, "  %s\n", e)
			}
			n.Detail = strings.TrimSuffix(b.String()+"\n"+n.Tag.Get("more")+n.Detail, "\n")
		}
	}
	return next(nil)
}

// alone makes a parser know no command but the one that args begin with, as to describe all takes longer than many a command. The manual is of all.
func alone(flags any, args []string) (options []kong.Option) {
	t, found, others := reflect.TypeOf(flags).Elem(), false, []string{"-"}
	for f := range t.Fields() {
		if name := strings.ToLower(f.Name); len(args) > 0 && args[0] == name && f.Name[1:] == name[1:] { // with a capital within, the command has a dash
			found = true
		} else if _, command := f.Tag.Lookup("cmd"); command {
			others = append(others, f.Name)
		}
	}
	if found && !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--man") }) {
		options = append(options, kong.IgnoreFields(`^`+t.Name()+`\.(`+strings.Join(others, "|")+`)$`))
	}
	return options
}

// parse reads args for Run. It returns nil, nil after --help.
func parse(flags any, name, description string, args []string, stdout, stderr io.Writer) (ctx *kong.Context, err error) {
	parser := Parser(flags, name, description, append(alone(flags, args), kong.Writers(stdout, stderr), kong.Exit(func(int) { panic(errHelp) }))...)
	if len(args) > 1 && args[0] == "--complete" && args[1] == "--" {
		for _, word := range Complete(parser.Model.Node, args[2:]) {
			fmt.Fprintln(stdout, word)
		}
		return nil, nil
	}
	defer func() {
		if r := recover(); r == errHelp {
			ctx, err = nil, nil
		} else if r != nil {
			panic(r)
		}
	}()
	ctx, err = parser.Parse(args)
	if err != nil {
		of := name
		if wrong := new(kong.ParseError); errors.As(err, &wrong) && wrong.Context.Selected() != nil {
			of = wrong.Context.Selected().FullPath()
		}
		return nil, fmt.Errorf("%w (see %s --help)", err, of)
	}
	if err := kernel.Err(); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
	}
	return ctx, nil
}

// Output is where a command writes: Stdout what was asked for, which is text, Stderr logs and
// progress. Stdout passes no control character on but line ends and tabs.
type Output struct{ Stdout, Stderr io.Writer }

// Run reads args into the struct that flags points to, as kong does, and calls the
// method Run of the command that they name. After --help, which is printed to stdout, it
// calls nothing. A value of FLANK_KERNEL that cannot be used is reported on stderr. The
// method Run may take a context.Context, an Output, and pointers to the structs of the
// commands above it.
func Run(ctx context.Context, flags any, name, description string, args []string, stdout, stderr io.Writer) error {
	k, err := parse(flags, name, description, args, stdout, stderr)
	if k == nil {
		return err
	}
	stop, err := profiling(k, stderr)
	if err != nil {
		return err
	}
	defer stop()
	k.BindTo(ctx, (*context.Context)(nil))
	return k.Run(Output{plain.NewWriter(stdout), stderr})
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Level returns the level of a log: debug if the command is verbose, else usual.
func Level(verbose bool, usual zerolog.Level) zerolog.Level {
	if verbose {
		return zerolog.DebugLevel
	}
	return usual
}

// Logger returns the program's logger: lines for people on a terminal, JSON
// elsewhere. It is safe for concurrent use, even if w is not.
func Logger(w io.Writer, level zerolog.Level) zerolog.Logger {
	if IsTerminal(w) {
		w = forTerminal(w)
	} else {
		w = plain.NewWriter(w)
	}
	return zerolog.New(zerolog.SyncWriter(w)).Level(level).With().Timestamp().Logger()
}

// forTerminal returns a writer that turns lines of JSON into lines for people. The message and
// lists are made safe here; zerolog quotes every other field that needs it.
func forTerminal(w io.Writer) zerolog.ConsoleWriter {
	return zerolog.ConsoleWriter{
		Out: w, TimeFormat: "15:04:05",
		FormatPrepare: func(line map[string]any) error {
			if text, ok := line[zerolog.MessageFieldName].(string); ok {
				line[zerolog.MessageFieldName] = plain.Text(text)
			}
			return nil
		},
		FormatFieldValue: func(v any) string {
			var b strings.Builder
			fmt.Fprintf(plain.NewWriter(&b), "%s", v)
			return b.String()
		},
	}
}

// Await calls ready until it returns nil, for as long as patience lasts, and
// returns its last error.
func Await(ctx context.Context, patience time.Duration, ready func(context.Context) error) error {
	for deadline := time.Now().Add(patience); ; {
		err := ready(ctx)
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

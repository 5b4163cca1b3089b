// Package cli is what the commands have in common: flags, logs and
// progress.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/alecthomas/kong"
	"github.com/rs/zerolog"
	"golang.org/x/term"

	"github.com/flank-tcm/flank/internal/kernel"
)

// errHelp stops parse after help was printed.
var errHelp = errors.New("help")

// parse reads args for Run. It returns nil, nil after --help.
func parse(flags any, name, description string, args []string, stdout, stderr io.Writer) (ctx *kong.Context, err error) {
	parser, err := kong.New(flags,
		kong.Name(name), kong.Description(description),
		kong.Writers(stdout, stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Exit(func(int) { panic(errHelp) }))
	if err != nil {
		panic("cli: " + err.Error())
	}
	defer func() {
		if r := recover(); r != nil {
			if r != errHelp {
				panic(r)
			}
			ctx, err = nil, nil
		}
	}()
	ctx, err = parser.Parse(args)
	if err != nil {
		return nil, fmt.Errorf("%w (see %s --help)", err, name)
	}
	if err := kernel.Err(); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
	}
	return ctx, nil
}

// Output is where a command writes: Stdout what was asked for, Stderr logs and
// progress.
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
	k.BindTo(ctx, (*context.Context)(nil))
	return k.Run(Output{stdout, stderr})
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
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: "15:04:05"}
	}
	return zerolog.New(zerolog.SyncWriter(w)).Level(level).With().Timestamp().Logger()
}

// Version returns the name and version of the program's module.
func Version() string {
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	return "flank " + version
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

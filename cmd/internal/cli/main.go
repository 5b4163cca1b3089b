package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/flank-tcm/flank/internal/plain"
)

// Main is the main function of a program. The context of run ends at the first
// Ctrl-C or SIGTERM; a second one ends the program at once. An error of run is
// printed to stderr, behind the name of the program. The exit code is 1, or the code
// of an Exit.
func Main(name string, run func(ctx context.Context, args []string, stdout, stderr io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(plain.NewWriter(os.Stderr), "%s: %v\n", name, err)
		code := 1
		var own *Exit
		if errors.As(err, &own) {
			code = own.Code
		}
		os.Exit(code)
	}
}

// Exit is an error with an exit code of its own.
type Exit struct {
	Code int
	Err  error
}

func (e *Exit) Error() string { return e.Err.Error() }
func (e *Exit) Unwrap() error { return e.Err }

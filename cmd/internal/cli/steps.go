package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
)

const (
	firstCode    = 3               // exit code of the first step
	stepPatience = 5 * time.Second // for each step
)

// RunSteps tries one step after the other, prints a line for each, and stops at
// the first that fails: its error is an Exit with a code of its own, 3 for the
// first step, 4 for the second and so on.
func RunSteps(ctx context.Context, steps []bus.Step, stdout io.Writer) error {
	for i, s := range steps {
		one, cancel := context.WithTimeout(ctx, stepPatience)
		found, err := s.Run(one)
		cancel()
		if err != nil {
			fmt.Fprintf(stdout, "%-7s FAILED\n", s.Name)
			return &Exit{Code: firstCode + i, Err: fmt.Errorf("%s: %w", s.Name, err)}
		}
		fmt.Fprintf(stdout, "%-7s ok  %s\n", s.Name, found)
	}
	return nil
}

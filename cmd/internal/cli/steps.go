package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
)

// firstCode is the exit code of the first step.
const firstCode = 3

// StepPatience is how long each step may take, slowPatience one that is slow.
const (
	StepPatience = 5 * time.Second
	slowPatience = 30 * time.Second
)

// RunSteps tries one step after the other, prints a line for each, and stops at
// the first that fails: its error is an Exit with a code of its own, 3 for the
// first step, 4 for the second and so on.
func RunSteps(ctx context.Context, steps []bus.Step, stdout io.Writer) error {
	for i, s := range steps {
		patience := StepPatience
		if s.Slow {
			patience = slowPatience
		}
		one, cancel := context.WithTimeout(ctx, patience)
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

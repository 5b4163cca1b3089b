package main

import (
	"io"
	"testing"

	"github.com/flank-tcm/flank/cmd/internal/cli/clitest"
)

func TestCommands(t *testing.T) {
	clitest.Check(t, new(flags), "monitor", description, func(args []string, stdout, stderr io.Writer) error {
		return run(t.Context(), args, stdout, stderr)
	})
}

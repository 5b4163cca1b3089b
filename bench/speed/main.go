//go:build unix

// Command speed compares this project with its peers and writes
// docs/figures/performance.md. Run it by make peers-bench, which installs the peers.
//
// A peer is a process that is asked, over a pipe, to do something and to say how
// long it took. Both sides of a comparison are asked in turn, and what is quoted
// is the median of the rounds and the median of the ratios of a round. This
// program is a peer too, once for each family of kernels.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/flank-tcm/flank/bench/command"
)

func main() { command.Main("speed", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if slices.Equal(args, []string{"worker"}) {
		return work(os.Stdin, stdout)
	}
	flags := flag.NewFlagSet("speed", flag.ContinueOnError)
	flags.SetOutput(stderr)
	openblas := flags.String("openblas", "", "program made from openblas/peer.c")
	python := flags.String("python", "", "Python with the packages of requirements.txt")
	script := flags.String("script", "speed/peer.py", "the Python peer")
	rounds := flags.Int("rounds", 5, "rounds of every race")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b := &bench{ctx: ctx, rounds: *rounds, log: stderr}
	if err := b.start(*openblas, *python, *script); err != nil {
		return err
	}
	defer b.stop()
	sections := []struct {
		name string
		run  func() error
	}{
		{"gemm", b.gemm},
		{"training", b.training},
		{"costs", b.costs},
		{"scale", b.scale},
		{"online", b.online},
	}
	for _, s := range sections {
		fmt.Fprintf(stderr, "%s\n", s.name)
		if err := s.run(); err != nil {
			return err
		}
	}
	return b.write(stdout)
}

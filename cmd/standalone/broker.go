package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/flank-tcm/flank/internal/broker"
	"github.com/flank-tcm/flank/internal/bus"
)

// onlyBroker runs the broker alone, with all topics, until ctx ends: for trying ingest and
// monitor as separate programs.
func (p *plant) onlyBroker(ctx context.Context) (err error) {
	for flag, given := range map[string]bool{
		"--once": p.Once, "--replay": p.Replay != "", "--layout": p.Layout != "", "--model": p.Model != "", "--results": p.Results != "", "--start": !p.Start.IsZero(),
	} {
		if given {
			return fmt.Errorf("%s goes without --broker-only, which starts neither gateway nor monitor", flag)
		}
	}
	if err := os.MkdirAll(p.DataDir, 0o700); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	dir := filepath.Join(p.DataDir, "broker")
	broker, err := broker.Start(dir, p.Broker)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Close()) }()
	if _, err := bus.Apply(ctx, broker.Config("flank-standalone"), 1, 1); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, `broker    %[1]s, with all topics, in %[2]s

Next, each in a terminal of its own:

  ingest init --kafka %[1]s && ingest run --config ingest.yaml
  monitor init --kafka %[1]s && monitor run --config monitor.yaml   # needs a model, see `+"`trainer fit`"+`

The broker runs until Ctrl-C. Started again, it has what it had.
`, broker.Addr(), dir)
	<-ctx.Done()
	return nil
}

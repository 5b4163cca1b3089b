package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/ingest"
	"github.com/flank-tcm/flank/internal/ingest/spool"
)

type checkCommand struct {
	cli.ConfigFile
}

// Run tries one step after the other and stops at the first that fails.
func (f *checkCommand) Run(ctx context.Context, out cli.Output) error {
	c, err := ingest.Load(f.Config)
	if err != nil {
		return err
	}
	to, err := c.Bus("flank-check")
	if err != nil {
		return err
	}
	needs := bus.Needs{Write: []string{bus.TopicWindows}, Alike: bus.MachineTopics()}
	if c.SendsFeatures() { // raw windows are sent on demand
		needs.Write = append(needs.Write, bus.TopicFeatures)
		needs.Read = []string{bus.TopicCommands}
	}
	steps, err := bus.Steps(to, needs)
	if err != nil {
		return fmt.Errorf("%s: kafka: %w", f.Config, err)
	}
	if err := c.Check(); err != nil {
		return err
	}
	written, err := written(f.Config, c)
	if err != nil {
		return err
	}
	for i, s := range steps {
		if s.Name == "topics" {
			steps[i].Run = func(ctx context.Context) (string, error) { return withDisk(ctx, s, to, written) }
		}
	}
	steps = append(steps, bus.Step{Name: "spool", Run: func(context.Context) (string, error) { return checkSpools(c) }})
	if c.MQTT != nil {
		steps = append(steps, bus.Step{Name: "mqtt", Run: func(ctx context.Context) (string, error) {
			to := c.Broker("")
			to.ClientID = fmt.Sprintf("flank-check-%d", os.Getpid())
			return to.Broker, to.Probe(ctx)
		}})
	}
	for _, m := range c.All() {
		if m.Source.Kind == "folder" {
			steps = append(steps, bus.Step{Name: "folder", Slow: true, Run: func(ctx context.Context) (string, error) { return m.ReadFolder(ctx) }})
		}
		if m.Source.Kind == "file" || m.Source.Kind == "csv" {
			steps = append(steps, bus.Step{Name: "file", Slow: true, Run: func(ctx context.Context) (string, error) { return m.ReadRecording(ctx) }})
		}
		if m.AsksControl() {
			steps = append(steps, bus.Step{Name: "context", Run: func(ctx context.Context) (string, error) { return m.ReadControl(ctx) }})
		}
	}
	return cli.RunSteps(ctx, steps, out.Stdout)
}

// withDisk runs a step and adds what the windows take on the brokers' disks.
func withDisk(ctx context.Context, s bus.Step, to bus.Config, written []cli.Written) (string, error) {
	found, err := s.Run(ctx)
	if err != nil {
		return "", err
	}
	status, err := bus.Describe(ctx, to, bus.TopicWindows)
	if err != nil {
		return "", err
	}
	return found + cli.DiskLines(status, written), nil
}

// checkSpools checks the spool of every machine, and returns a line for each.
func checkSpools(c ingest.Config) (string, error) {
	var lines []string
	for _, m := range c.All() {
		found, err := checkSpool(m.SpoolDir())
		if err != nil {
			return "", err
		}
		lines = append(lines, found)
	}
	return strings.Join(lines, "\n            "), nil
}

// checkSpool writes a file into the spool's folder and makes it durable. A gateway may
// be running.
func checkSpool(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("%w: correct `spool`, or the rights of its folder", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("%w: correct `spool`, or the rights of its folder", err)
	}
	defer root.Close()
	defer func() { _ = root.Remove("check") }()
	file, err := root.OpenFile("check", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", fmt.Errorf("%w: correct `spool`, or the rights of its folder", err)
	}
	defer file.Close()
	if _, err := file.Write(make([]byte, 1<<20)); err != nil {
		return "", fmt.Errorf("%w: free the disk", err)
	}
	begun := time.Now()
	if err := file.Sync(); err != nil {
		return "", fmt.Errorf("%w: the disk does not store what is written to it: check the disk", err)
	}
	took := time.Since(begun)
	l, err := spool.List(spool.Dir(dir))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, %d segments, fsync of 1 MiB in %v", dir, len(l.Segments), took.Round(100*time.Microsecond)), nil
}

package main

import (
	"context"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/ingest"
	"github.com/flank-tcm/flank/internal/ingest/grow"
)

type applyCommand struct {
	cli.ConfigFile
	Partitions  *int `placeholder:"N" help:"Partitions of each new topic that is keyed by machine; this many monitors at most share the machines (default: as many as the existing topics have, or 8, enough for 32 machines)."`
	Replication int  `default:"1" help:"Replicas of each partition; 3 on a cluster (default: 1)."`
	cli.Waiting
}

type growCommand struct {
	cli.ConfigFile
	Partitions int `required:"" placeholder:"N" help:"New number of partitions of each of these topics."`
}

// written returns what each machine of the configuration writes in a day. Of a machine in mode
// edge only sampled windows count: how many will be fetched is not known.
func written(file string, c ingest.Config) (all []cli.Written, err error) {
	for _, m := range c.All() {
		layout, _, err := m.LoadLayout()
		if err != nil {
			return nil, err
		}
		one, err := cli.MachineWrites(layout, m.Spec())
		if err != nil {
			return nil, fmt.Errorf("%s: window: %w", file, err)
		}
		if m.SendsFeatures() {
			one = one.Sampled(m.Edge.Sample)
		}
		all = append(all, one)
	}
	return all, nil
}

func checkPartitions(n int) error {
	if n < 1 {
		return fmt.Errorf("--partitions %d: must be 1 or more", n)
	}
	return nil
}

// Run makes the topics that are missing and prints what they take on disk.
func (f *applyCommand) Run(ctx context.Context, out cli.Output) error {
	c, err := ingest.Load(f.Config)
	if err != nil {
		return err
	}
	partitions := 0
	if f.Partitions != nil {
		partitions = *f.Partitions
		if err := checkPartitions(partitions); err != nil {
			return err
		}
	}
	written, err := written(f.Config, c)
	if err != nil {
		return err
	}
	cfg, err := c.Bus("flank-topics")
	if err != nil {
		return err
	}
	if cfg.Retain, err = c.Retain.Topics(); err != nil {
		return err // Load has checked it
	}
	if err := cli.Await(ctx, f.Wait, func(ctx context.Context) error { return bus.Probe(ctx, cfg) }); err != nil {
		return fmt.Errorf("%s: kafka: %w", f.Config, err)
	}
	status, err := bus.Apply(ctx, cfg, partitions, f.Replication)
	cli.AuditCommand(ctx, cfg, program, "", out.Stderr, event.Audit{Action: event.ApplyTopics, Object: made(status)}, err)
	if err != nil {
		return err
	}
	if err := cli.PrintDisk(out.Stdout, status, written); err != nil {
		return err
	}
	return printEnough(out.Stdout, status, len(written))
}

// printEnough says what the partitions of the windows are enough for: once when they are made, and each time if this
// configuration alone has more machines.
func printEnough(w io.Writer, status []bus.TopicStatus, machines int) error {
	windows := status[slices.IndexFunc(status, func(s bus.TopicStatus) bool { return s.Name == bus.TopicWindows })]
	enough := windows.Partitions * bus.MachinesAPartition
	switch {
	case machines > enough:
		_, err := fmt.Fprintf(w, "\n%d machines are many for %d partitions: some partitions get several times the average. More: ingest topics grow --partitions %d\n",
			machines, windows.Partitions, powerOfTwo((machines+bus.MachinesAPartition-1)/bus.MachinesAPartition))
		return err
	case windows.Created:
		_, err := fmt.Fprintf(w, "\n%d partitions are enough for %d machines, and for as many monitors as there are partitions. For more later: ingest topics grow\n", windows.Partitions, enough)
		return err
	}
	return nil
}

// powerOfTwo returns the least power of two that is not below n.
func powerOfTwo(n int) int {
	return 1 << bits.Len(uint(n-1))
}

// Run raises the number of partitions and prints each step.
func (f *growCommand) Run(ctx context.Context, out cli.Output) error {
	c, err := ingest.Load(f.Config)
	if err != nil {
		return err
	}
	if err := checkPartitions(f.Partitions); err != nil {
		return err
	}
	cfg, err := c.Bus("flank-topics")
	if err != nil {
		return err
	}
	if err := bus.Probe(ctx, cfg); err != nil {
		return fmt.Errorf("%s: kafka: %w", f.Config, err)
	}
	err = grow.Growth{
		Bus: cfg, Partitions: f.Partitions, Watch: grow.DefaultWatch,
		Say: func(line string) { fmt.Fprintln(out.Stdout, line) },
	}.Run(ctx)
	cli.AuditCommand(ctx, cfg, program, "", out.Stderr, event.Audit{Action: event.GrowTopics, Object: fmt.Sprintf("%d partitions", f.Partitions)}, err)
	return err
}

// made names the topics that were made.
func made(status []bus.TopicStatus) string {
	var names []string
	for _, s := range status {
		if s.Created {
			names = append(names, s.Name)
		}
	}
	return strings.Join(names, ", ")
}

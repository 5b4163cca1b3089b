package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/pkg/window"
)

type topicsFlags struct {
	Config      string        `required:"" placeholder:"FILE" help:"Configuration; 'kafka', 'retain' and the machines' layouts are used."`
	Partitions  *int          `placeholder:"N" help:"Partitions of each new topic whose messages go by machine; at most so many monitors share the machines (default: as many as such topics have that are there, or 64)."`
	Replication int           `default:"1" help:"Replicas of each partition; 3 on a cluster (default: 1)."`
	Wait        time.Duration `default:"0s" help:"How long to wait for a broker that is still starting."`
}

type growFlags struct {
	Config     string `required:"" placeholder:"FILE" help:"Configuration; of it only 'kafka' is used."`
	Partitions int    `required:"" placeholder:"N" help:"Partitions that each of these topics has afterwards."`
	Force      bool   `help:"Grow although monitors have windows left to judge or commands to answer. These meet nothing of what monitors remember of their machines."`
}

// retainConfig says what Kafka keeps of a topic.
type retainConfig struct {
	Windows retention `yaml:"windows"`
	Dead    retention `yaml:"dead_letters"`
}

type retention struct {
	Time  time.Duration `yaml:"time"`  // 0: the default
	Bytes *config.Bytes `yaml:"bytes"` // of each partition; nil: the default; 0: no limit but time
}

// Least of what is kept: Kafka looks every five minutes for what it may remove, and
// removes segments of 16 MiB or more.
const (
	leastTime  = 10 * time.Minute
	leastBytes = 100e6
)

// topics returns what the configuration says, by topic, or a value that cannot be meant.
func (r retainConfig) topics() (map[string]bus.Retain, error) {
	keep := make(map[string]bus.Retain)
	for _, one := range []struct {
		key, topic string
		retention
	}{{"windows", bus.TopicWindows, r.Windows}, {"dead_letters", bus.TopicDead, r.Dead}} {
		key := "retain." + one.key
		if one.Time != 0 && one.Time < leastTime {
			return nil, &config.KeyError{Key: key + ".time", Err: fmt.Errorf("%v: must be 10m or more, such as 168h", one.Time)}
		}
		k := bus.Retain{Time: one.Time}
		if one.Bytes != nil {
			k.Bytes = int64(*one.Bytes)
			if k.Bytes == 0 {
				k.Bytes = bus.Unlimited
			} else if k.Bytes < leastBytes {
				return nil, &config.KeyError{Key: key + ".bytes", Err: fmt.Errorf("%s: must be %s or more, or 0 for no limit but time", bus.FormatBytes(k.Bytes), bus.FormatBytes(leastBytes))}
			}
		}
		if k != (bus.Retain{}) {
			keep[one.topic] = k
		}
	}
	return keep, nil
}

// written returns what each machine of the configuration writes in a day.
func (c settings) written() (all []cli.Written, err error) {
	for _, m := range c.all() {
		layout, _, err := m.layout(c.file)
		if err != nil {
			return nil, err
		}
		one, err := cli.MachineWrites(layout, window.Spec{Length: m.Window.Length, Hop: m.Window.Hop})
		if err != nil {
			return nil, fmt.Errorf("%s: window: %w", c.file, err)
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

func applyTopics(ctx context.Context, f topicsFlags, stdout io.Writer) error {
	c, err := load(f.Config)
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
	written, err := c.written()
	if err != nil {
		return err
	}
	cfg, err := c.Kafka.Load(f.Config, "flank-topics")
	if err != nil {
		return err
	}
	if cfg.Retain, err = c.Retain.topics(); err != nil {
		return err // that load has not seen
	}
	if err := cli.Await(ctx, f.Wait, func(ctx context.Context) error { return bus.Probe(ctx, cfg) }); err != nil {
		return fmt.Errorf("%s: kafka: %w", f.Config, err)
	}
	status, err := bus.Apply(ctx, cfg, partitions, f.Replication)
	if err != nil {
		return err
	}
	return cli.PrintDisk(stdout, status, written)
}

// growTopics raises the number of partitions. It says each step.
func growTopics(ctx context.Context, f growFlags, stdout io.Writer) error {
	c, err := load(f.Config)
	if err != nil {
		return err
	}
	if err := checkPartitions(f.Partitions); err != nil {
		return err
	}
	cfg, err := c.Kafka.Load(f.Config, "flank-topics")
	if err != nil {
		return err
	}
	if err := bus.Probe(ctx, cfg); err != nil {
		return fmt.Errorf("%s: kafka: %w", f.Config, err)
	}
	err = bus.Grow(ctx, cfg, f.Partitions, f.Force, func(step string) { fmt.Fprintln(stdout, step) })
	if errors.Is(err, bus.ErrUnfinished) {
		return fmt.Errorf("%w; --force grows all the same", err)
	}
	return err
}

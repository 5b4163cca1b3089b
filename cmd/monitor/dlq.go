package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
)

type dlqFlags struct {
	Config string `required:"" placeholder:"FILE" help:"Configuration; of it only 'kafka' is used."`
}

type dlqListCommand struct{ dlqFlags }

type dlqShowCommand struct {
	dlqFlags
	Offset int64 `arg:"" help:"Offset, as printed by 'dlq ls'."`
}

type dlqRedriveCommand struct {
	dlqFlags
	Offset []int64 `arg:"" optional:"" help:"Offsets, as printed by 'dlq ls'."`
	All    bool    `help:"All dead letters."`
}

// letters calls fn for each dead letter.
func letters(ctx context.Context, cfg bus.Config, fn func(int64, bus.Letter) error) error {
	return bus.ReadFrom(ctx, cfg, bus.TopicDead, 0, bus.FirstOffset, false, func(m bus.Message) error {
		l, err := bus.OpenLetter(m)
		if err != nil {
			l = bus.Letter{Reason: "not written by a monitor: " + err.Error(), Message: m, Size: int64(len(m.Value))}
		}
		return fn(m.Offset, l)
	})
}

// Run lists the dead letters.
func (f *dlqListCommand) Run(ctx context.Context, out cli.Output) error {
	_, cfg, err := loadBus(f.Config)
	if err != nil {
		return err
	}
	stdout := out.Stdout
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "offset\tset aside\tkey\tfrom\tbytes\treason")
	n := 0
	err = letters(ctx, cfg, func(offset int64, l bus.Letter) error {
		n++
		m := l.Message
		_, err := fmt.Fprintf(w, "%d\t%s\t%s\t%s/%d@%d\t%s\t%s\n", offset, l.At.Local().Format(time.DateTime), printable(m.Key, 60), m.Topic, m.Partition, m.Offset, size(l), printable(l.Reason, 120))
		return err
	})
	if err != nil {
		return err
	}
	if n == 0 {
		_, err := fmt.Fprintln(stdout, "no dead letters")
		return err
	}
	return w.Flush()
}

// size says how many bytes the value has, and how many of them the letter holds if that
// is not all.
func size(l bus.Letter) string {
	kept := int64(len(l.Message.Value))
	switch {
	case l.Size == kept:
		return fmt.Sprint(kept)
	case l.Size < 0:
		return fmt.Sprintf("%d of ?", kept)
	}
	return fmt.Sprintf("%d of %d", kept, l.Size)
}

// printable returns at most n bytes of a text from outside, safe for a terminal.
func printable(s string, n int) string {
	quoted := fmt.Sprintf("%q", s[:min(n, len(s))])
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// Run prints a dead letter whole.
func (f *dlqShowCommand) Run(ctx context.Context, out cli.Output) error {
	_, cfg, err := loadBus(f.Config)
	if err != nil {
		return err
	}
	found, stdout := false, out.Stdout
	err = letters(ctx, cfg, func(at int64, l bus.Letter) error {
		if at != f.Offset {
			return nil
		}
		found = true
		m := l.Message
		fmt.Fprintf(stdout, "reason     %s\nset aside  %s\nfrom       %s partition %d offset %d, sent %s\nkey        %s\n",
			printable(l.Reason, 4096), l.At.UTC().Format(time.RFC3339Nano), m.Topic, m.Partition, m.Offset, m.Time.UTC().Format(time.RFC3339Nano), printable(m.Key, 200))
		for _, h := range m.Headers {
			fmt.Fprintf(stdout, "header     %s: %s\n", printable(h.Key, 200), printable(string(h.Value), 200))
		}
		if err := l.Whole(); err != nil {
			fmt.Fprintf(stdout, "incomplete %s\n", strings.TrimPrefix(err.Error(), "bus: "))
		}
		_, err := fmt.Fprintf(stdout, "value      %s bytes: %s\n", size(l), printable(string(m.Value), 256))
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("no dead letter at offset %d: see `monitor dlq ls`", f.Offset)
	}
	return err
}

// Run sends dead letters to the topic they came from, as they were. The letters stay:
// Kafka removes them with age. One that does not hold all of its message is not sent;
// with --all the others are.
func (f *dlqRedriveCommand) Run(ctx context.Context, out cli.Output) error {
	_, cfg, err := loadBus(f.Config)
	if err != nil {
		return err
	}
	if f.All == (len(f.Offset) > 0) {
		return errors.New("name the offsets of the dead letters to send again, or --all")
	}
	to, err := bus.NewProducer(cfg)
	if err != nil {
		return err
	}
	defer to.Close()
	wanted := map[int64]bool{}
	for _, offset := range f.Offset {
		wanted[offset] = true
	}
	sent, parts := 0, 0
	err = letters(ctx, cfg, func(offset int64, l bus.Letter) error {
		if !f.All && !wanted[offset] {
			return nil
		}
		delete(wanted, offset)
		if l.Message.Topic == bus.TopicDead {
			return fmt.Errorf("dead letter %d: %s", offset, l.Reason)
		}
		if err := l.Whole(); err != nil {
			if f.All {
				parts++
				return nil
			}
			return fmt.Errorf("dead letter %d is not sent: %w; `ingest spool resend` sends windows again that a spool still has", offset, err)
		}
		if err := to.Send(ctx, []bus.Message{l.Message}); err != nil {
			return fmt.Errorf("dead letter %d: %w", offset, err)
		}
		sent++
		return nil
	})
	fmt.Fprintf(out.Stdout, "%d dead letters sent again\n", sent)
	if parts > 0 {
		err = errors.Join(err, fmt.Errorf("%d dead letters are not sent because they hold only a part of the message: `monitor dlq show` prints where the message is", parts))
	}
	for offset := range wanted {
		err = errors.Join(err, fmt.Errorf("no dead letter at offset %d: see `monitor dlq ls`", offset))
	}
	return err
}

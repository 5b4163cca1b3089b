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
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/plain"
)

type dlqListCommand struct {
	cli.ConfigFile
	cli.Listing
}

type dlqShowCommand struct {
	cli.ConfigFile
	Offset int64 `arg:"" help:"Offset, as printed by 'dlq ls'."`
}

type dlqRedriveCommand struct {
	cli.ConfigFile
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
	if f.IsJSON() {
		return f.printJSON(ctx, cfg, out)
	}
	stdout := out.Stdout
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "offset\tset aside\tkey\tfrom\tbytes\treason")
	n := 0
	err = letters(ctx, cfg, func(offset int64, l bus.Letter) error {
		n++
		m := l.Message
		_, err := fmt.Fprintf(w, "%d\t%s\t%s\t%s/%d@%d\t%s\t%s\n", offset, l.At.Local().Format(time.DateTime), plain.Short(m.Key, 60), plain.Short(m.Topic, 100), m.Partition, m.Offset, size(l), plain.Short(l.Reason, 120))
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

// printJSON lists the dead letters for programs. Bytes is the size of the original value, -1 if not known.
func (f *dlqListCommand) printJSON(ctx context.Context, cfg bus.Config, out cli.Output) error {
	type row struct {
		Offset     int64     `json:"offset"`
		At         time.Time `json:"set_aside"`
		Key        string    `json:"key"`
		Topic      string    `json:"topic"`
		Partition  int       `json:"partition"`
		FromOffset int64     `json:"from_offset"`
		Bytes      int64     `json:"bytes"`
		Cut        string    `json:"cut,omitempty"`
		Reason     string    `json:"reason"`
	}
	rows := []row{}
	err := letters(ctx, cfg, func(offset int64, l bus.Letter) error {
		m := l.Message
		rows = append(rows, row{offset, l.At, m.Key, m.Topic, m.Partition, m.Offset, l.Size, l.Cut, l.Reason})
		return nil
	})
	if err != nil {
		return err
	}
	return cli.PrintJSON(out.Stdout, rows)
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
			plain.Short(l.Reason, 4096), l.At.UTC().Format(time.RFC3339Nano), plain.Short(m.Topic, 100), m.Partition, m.Offset, m.Time.UTC().Format(time.RFC3339Nano), plain.Short(m.Key, 200))
		for _, h := range m.Headers {
			fmt.Fprintf(stdout, "header     %s: %s\n", plain.Short(h.Key, 200), plain.Short(string(h.Value), 200))
		}
		if err := l.Whole(); err != nil {
			fmt.Fprintf(stdout, "incomplete %s\n", strings.TrimPrefix(err.Error(), "bus: "))
		}
		_, err := fmt.Fprintf(stdout, "value      %s bytes: %s\n", size(l), plain.Short(string(m.Value), 256))
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
	sent, parts, foreign := 0, 0, 0
	err = letters(ctx, cfg, func(offset int64, l bus.Letter) error {
		if !f.All && !wanted[offset] {
			return nil
		}
		delete(wanted, offset)
		if l.Message.Topic == bus.TopicDead { // no monitor has written it
			if f.All {
				foreign++
				return nil
			}
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
	cli.AuditCommand(ctx, cfg, program, "", out.Stderr, event.Audit{Action: event.Redrive, Object: fmt.Sprintf("%d dead letters", sent)}, err)
	fmt.Fprintf(out.Stdout, "%d dead letters sent again\n", sent)
	if parts > 0 {
		err = errors.Join(err, fmt.Errorf("%d dead letters are not sent because they hold only a part of the message: `monitor dlq show` prints where the message is", parts))
	}
	if foreign > 0 {
		fmt.Fprintf(out.Stderr, "note: %d messages on %s were not written by a monitor and are left out; `monitor dlq ls` lists them\n", foreign, bus.TopicDead)
	}
	for offset := range wanted {
		err = errors.Join(err, fmt.Errorf("no dead letter at offset %d: see `monitor dlq ls`", offset))
	}
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"text/tabwriter"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/ingest"
	"github.com/flank-tcm/flank/internal/ingest/spool"
)

// spoolFlags name spools.
type spoolFlags struct {
	cli.ConfigFile
	cli.OneMachine
}

type (
	listCommand struct {
		spoolFlags
		cli.Listing
	}
	verifyCommand struct{ spoolFlags }
)

type resendCommand struct {
	spoolFlags
	cli.Beginning
}

// errDamaged makes the exit code of verify.
var errDamaged = errors.New("the spool is damaged: `ingest run` sets the damaged records aside and delivers the others; check the disk")

// eachSpool calls fn for the spool of the machine, or of all machines, until it
// fails with something else than damage. Of several machines it passes over those that were never
// started, with a note.
func eachSpool(file, machine string, notes io.Writer, fn func(c ingest.Config, dir string, l spool.Listing) error) error {
	c, err := ingest.Load(file)
	if err != nil {
		return err
	}
	ms := c.All()
	if machine != "" {
		m, err := c.Find(machine)
		if err != nil {
			return err
		}
		ms = []ingest.Machine{m}
	}
	var damaged error
	for _, m := range ms {
		dir := m.SpoolDir()
		l, err := spool.List(spool.Dir(dir))
		if errors.Is(err, fs.ErrNotExist) && len(ms) > 1 {
			fmt.Fprintf(notes, "note: %s has no spool yet: %s\n", m.Path, dir)
			continue
		}
		if err == nil {
			err = fn(c, dir, l)
		}
		if errors.Is(err, errDamaged) {
			damaged = err
		} else if err != nil {
			return err
		}
	}
	return damaged
}

// Run lists the files of spools.
func (f *listCommand) Run(out cli.Output) error {
	if !f.IsJSON() {
		return eachSpool(f.Config, f.Machine, out.Stderr, func(_ ingest.Config, dir string, l spool.Listing) error { return printSpool(dir, l, out.Stdout) })
	}
	spools := []listedSpool{}
	err := eachSpool(f.Config, f.Machine, out.Stderr, func(_ ingest.Config, dir string, l spool.Listing) error {
		spools = append(spools, listSpool(dir, l))
		return nil
	})
	if err != nil {
		return err
	}
	return cli.PrintJSON(out.Stdout, spools)
}

// listedSpool is a spool as JSON.
type listedSpool struct {
	Dir      string          `json:"dir"`
	Epoch    string          `json:"epoch"`
	Acked    uint64          `json:"delivered_up_to_seq"`
	Segments []listedSegment `json:"segments"`
}

type listedSegment struct {
	Name    string    `json:"segment"`
	First   uint64    `json:"first_seq"`
	Bytes   int64     `json:"bytes"`
	Written time.Time `json:"written"`
	State   string    `json:"state"`
}

func listSpool(dir string, l spool.Listing) listedSpool {
	s := listedSpool{Dir: dir, Epoch: fmt.Sprintf("%016x", l.Epoch), Acked: l.Acked, Segments: []listedSegment{}}
	for i, g := range l.Segments {
		s.Segments = append(s.Segments, listedSegment{g.Name, g.First, g.Bytes, g.Written, stateOf(l, i)})
	}
	for _, g := range l.Bad {
		s.Segments = append(s.Segments, listedSegment{g.Name, g.First, g.Bytes, g.Written, "damaged"})
	}
	return s
}

// stateOf says how much of the ith segment is delivered.
func stateOf(l spool.Listing, i int) string {
	s := l.Segments[i]
	switch last := i == len(l.Segments)-1; {
	case s.Earlier, !last && l.Segments[i+1].First <= l.Acked:
		return "delivered"
	case last:
		return "being written"
	case s.First < l.Acked:
		return "partly delivered"
	}
	return "pending"
}

func printSpool(dir string, l spool.Listing, stdout io.Writer) error {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "segment\tfirst seq\tMiB\twritten\tstate\n")
	var bytes int64
	for i, s := range l.Segments {
		state := stateOf(l, i)
		bytes += s.Bytes
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%s\t%s\n", s.Name, s.First, float64(s.Bytes)/(1<<20), s.Written.Format(time.DateTime), state)
	}
	for _, bad := range l.Bad {
		c, err := spool.Walk(spool.Dir(dir), bad, nil)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%s\tset aside as damaged: %d of its records and %d bytes are lost\n",
			bad.Name, bad.First, float64(bad.Bytes)/(1<<20), bad.Written.Format(time.DateTime), c.Lost, c.DamagedBytes)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "%s: %d segments, %.1f MiB, epoch %016x, delivered up to seq %d\n", dir, len(l.Segments), float64(bytes)/(1<<20), l.Epoch, l.Acked)
	return err
}

// Run reads spools whole and reports damage.
func (f *verifyCommand) Run(out cli.Output) error {
	return eachSpool(f.Config, f.Machine, out.Stderr, func(_ ingest.Config, dir string, l spool.Listing) error { return readSpool(dir, l, out.Stdout) })
}

func readSpool(dir string, l spool.Listing, stdout io.Writer) error {
	var whole, lost uint64
	damaged := false
	for _, s := range l.Segments {
		c, err := spool.Walk(spool.Dir(dir), s, nil)
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintln(stdout, removed(s))
			continue
		}
		if err != nil {
			return err
		}
		whole += c.Records
		lost += c.Lost
		switch {
		case c.Damaged >= 0:
			damaged = true
			fmt.Fprintf(stdout, "%s: damaged at byte %d: %d records whole, %d lost with %d bytes\n", s.Name, c.Damaged, c.Records, c.Lost, c.DamagedBytes)
		case c.Torn > 0:
			fmt.Fprintf(stdout, "%s: %d records whole, %d bytes at its end that are being written or that a crash tore\n", s.Name, c.Records, c.Torn)
		}
	}
	fmt.Fprintf(stdout, "%s: %d records whole, %d lost\n", dir, whole, lost)
	if damaged {
		return errDamaged
	}
	return nil
}

// Run sends records once more, whether they were delivered or not. It only reads the
// spool, so `ingest run` may go on meanwhile.
func (f *resendCommand) Run(ctx context.Context, out cli.Output) error {
	if f.Since.IsZero() {
		return errors.New("--since is missing: name from when on to send windows, such as --since 10m")
	}
	sent := 0
	err := eachSpool(f.Config, f.Machine, out.Stderr, func(c ingest.Config, dir string, l spool.Listing) error {
		n, err := sendAgain(ctx, f.Config, c, dir, l, f.Since.Time, out.Stderr)
		sent += n
		return err
	})
	if err != nil && sent > 0 {
		return fmt.Errorf("%d windows sent, then: %w", sent, err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out.Stdout, "%d windows sent again: monitors judge those that they have not judged yet\n", sent)
	return err
}

// sendAgain sends the records of the segments that were written after cutoff. It notes what it cannot send: `ingest run` may remove
// segments meanwhile, and records may be damaged.
func sendAgain(ctx context.Context, file string, c ingest.Config, dir string, l spool.Listing, cutoff time.Time, notes io.Writer) (sent int, err error) {
	to, err := c.Bus("flank-resend")
	if err != nil {
		return 0, err
	}
	out, err := bus.NewProducer(to)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	defer out.Close()
	b := &resend{send: func(msgs []bus.Message) error { return out.Send(ctx, msgs) }}
	for _, s := range l.Segments {
		if s.Written.Before(cutoff) {
			continue
		}
		check, err := spool.Walk(spool.Dir(dir), s, func(r spool.Record) error { return b.add(s.Name, r) })
		switch {
		case errors.Is(err, fs.ErrNotExist):
			fmt.Fprintf(notes, "note: %s: %s\n", dir, removed(s))
		case err != nil:
			return b.sent, err
		case check.Lost > 0:
			fmt.Fprintf(notes, "note: %s: %s: %d damaged windows are not sent: ingest spool verify says where\n", dir, s.Name, check.Lost)
		}
	}
	err = b.flush()
	return b.sent, err
}

// removed says that a segment was there when the spool was listed.
func removed(s spool.SegmentInfo) string {
	return fmt.Sprintf("%s, written until %s, was removed meanwhile: ingest run removes the oldest windows when the spool is full", s.Name, s.Written.Format(time.DateTime))
}

// resend sends records in batches.
type resend struct {
	send func([]bus.Message) error
	msgs []bus.Message
	sent int
}

func (b *resend) add(segment string, r spool.Record) error {
	const batch = 16
	var m bus.Message
	if err := m.UnmarshalBinary(r.Payload); err != nil {
		return fmt.Errorf("%s: record %d: %w", segment, r.Seq, err)
	}
	if b.msgs = append(b.msgs, m); len(b.msgs) < batch {
		return nil
	}
	return b.flush()
}

func (b *resend) flush() error {
	if len(b.msgs) == 0 {
		return nil
	}
	if err := b.send(b.msgs); err != nil {
		return err
	}
	b.sent += len(b.msgs)
	b.msgs = b.msgs[:0]
	return nil
}

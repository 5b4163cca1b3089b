package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/internal/ingest/spool"
	"github.com/flank-tcm/flank/internal/plain"
)

type traceCommand struct {
	Window string `arg:"" help:"Id of a window, machine/epoch/number, or of a result or an alert, which begins with it."`
	cli.ConfigFile
	cli.Beginning
	Spool string `placeholder:"DIR" help:"Folder of the machine's spool, on the gateway's computer: look there, too."`
	cli.Listing
}

// trace is what is known of a window.
type trace struct {
	Window string         `json:"window"`
	Trace  string         `json:"trace_id"`
	Steps  []history.Step `json:"steps"`
}

// Run prints where a window was, and when.
func (f *traceCommand) Run(ctx context.Context, out cli.Output) error {
	_, to, err := loadBus(f.Config)
	if err != nil {
		return err
	}
	name, epoch, seq, ok := event.SplitWindowID(f.Window)
	if !ok {
		return fmt.Errorf("%q: not the id of a window: expected machine/epoch/number, such as acme/spore/bay2/line1/usk25/00c0ffee00c0ffee/17, as in the ce_id of results and alerts", f.Window)
	}
	t := trace{Window: event.WindowID(name, epoch, seq), Trace: event.TraceID(name, epoch, seq)}
	since := f.Since.Time
	if since.IsZero() {
		since = time.Now().Add(-24 * time.Hour)
	}
	if t.Steps, err = history.Trace(ctx, to, t.Window, since); err != nil {
		return err
	}
	if f.Spool != "" {
		s, err := inSpool(f.Spool, t.Window, epoch, seq)
		if err != nil {
			return fmt.Errorf("--spool %s: %w", f.Spool, err)
		}
		t.Steps = slices.Concat(s, t.Steps)
	}
	if len(t.Steps) == 0 {
		return fmt.Errorf("%s: nothing about it is in Kafka since %s: look further back with --since, or in the spool with --spool; the window may never have been cut", t.Window, since.Format(time.DateTime))
	}
	if f.IsJSON() {
		return cli.PrintJSON(out.Stdout, t)
	}
	return t.print(out)
}

// inSpool returns what a spool says of a window.
func inSpool(dir, id, epoch string, seq uint64) ([]history.Step, error) {
	start, err := strconv.ParseUint(epoch, 16, 64)
	if err != nil { // no gateway has such a one
		return nil, nil
	}
	found, err := spool.Find(dir, start, seq)
	if err != nil || found == nil {
		return nil, err
	}
	var m bus.Message
	if err := m.UnmarshalBinary(found.Payload); err != nil {
		return nil, fmt.Errorf("record %d: %w", seq, err)
	}
	acquired := envelope.AcquiredAt(&m) // zero if an older release acquired it
	s := history.Step{At: acquired, Acquired: acquired, Where: filepath.Join(dir, found.Segment), Offset: int64(seq), ID: id, Trace: string(m.Header(event.TraceHeader)), What: "the window, kept in the spool; Kafka does not have it yet"}
	if s.At.IsZero() {
		s.At = m.Time
	}
	if found.Delivered {
		s.What = "the window, kept in the spool; Kafka has it"
	}
	return []history.Step{s}, nil
}

func (t trace) print(out cli.Output) error {
	fmt.Fprintf(out.Stdout, "window  %s\ntrace   %s\n\n", plain.Short(t.Window, 600), t.Trace)
	w := tabwriter.NewWriter(out.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "when\twhere\twhat")
	const millis = "2006-01-02 15:04:05.000"
	for _, s := range t.Steps {
		where := fmt.Sprintf("%s/%d@%d", s.Where, s.Partition, s.Offset)
		if filepath.Base(s.Where) != s.Where { // a file
			where = s.Where
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.At.Local().Format(millis), where, plain.Short(s.What, 200))
	}
	return w.Flush()
}

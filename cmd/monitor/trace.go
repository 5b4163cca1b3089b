package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/internal/plain"
)

type traceCommand struct {
	Window string `arg:"" help:"Id of a window, machine/epoch/number, or of a result or an alert, which begins with it."`
	cli.ConfigFile
	cli.Beginning
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
	if len(t.Steps) == 0 {
		return fmt.Errorf("%s: nothing about it is in Kafka since %s: look further back with --since; the window may wait in the spool, or was never cut", t.Window, since.Format(time.DateTime))
	}
	if f.IsJSON() {
		return cli.PrintJSON(out.Stdout, t)
	}
	return t.print(out)
}

func (t trace) print(out cli.Output) error {
	fmt.Fprintf(out.Stdout, "window  %s\ntrace   %s\n\n", plain.Short(t.Window, 600), t.Trace)
	w := tabwriter.NewWriter(out.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "when\twhere\twhat")
	const millis = "2006-01-02 15:04:05.000"
	for _, s := range t.Steps {
		fmt.Fprintf(w, "%s\t%s/%d@%d\t%s\n", s.At.Local().Format(millis), s.Where, s.Partition, s.Offset, plain.Short(s.What, 200))
	}
	return w.Flush()
}

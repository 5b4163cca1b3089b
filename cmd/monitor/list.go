package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/pkg/signal"
)

type alertsList struct {
	All bool `help:"List every alarm that the topic still holds, also closed ones."`
}

// Run lists alarms: those that are open or masked now, or every one.
func (f *alertsList) Run(ctx context.Context, a *alertsCommand, out cli.Output) error {
	c, to, err := loadBus(a.Config)
	if err != nil {
		return err
	}
	if f.All {
		return listPast(ctx, to, c.Group, out.Stdout)
	}
	return listOpen(ctx, to, c.Group, out.Stdout)
}

// listOpen prints the alarms that are open or masked, and the open advisories.
func listOpen(ctx context.Context, cfg bus.Config, group string, stdout io.Writer) error {
	all, skipped, err := history.Alarms(ctx, cfg, group)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "alarm\tmachine\ttool\tstate\tsince\tuntil\tby\tnote")
	n, unwatched := 0, 0
	for _, st := range all {
		if st.Unwatched() != "" {
			unwatched++
		}
		if st.Alarm == "normal" {
			continue
		}
		n++
		state := st.Alarm
		if st.Beneath != st.Alarm {
			state += " (" + st.Beneath + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cmp.Or(st.Incident, "-"), printable(st.Machine, 100), printable(cmp.Or(st.Tool, "-"), 40),
			state, when(st.Since), when(st.Until), printable(cmp.Or(st.By, "-"), 40), printable(st.Note, 100))
	}
	if n == 0 {
		_, err = fmt.Fprintf(stdout, "no open alarms; %d machines\n", len(all))
	} else {
		err = w.Flush()
	}
	if err == nil && unwatched > 0 {
		_, err = fmt.Fprintf(stdout, "%d of %d machines not watched, see the advisories\n", unwatched, len(all))
	}
	if err != nil {
		return err
	}
	if err := advice(all, stdout); err != nil {
		return err
	}
	return noteSkipped(skipped, stdout)
}

// noteSkipped prints how many messages a list leaves out, if there are any.
func noteSkipped(n int, stdout io.Writer) error {
	if n == 0 {
		return nil
	}
	_, err := fmt.Fprintf(stdout, "\nnote: %[2]d messages on %[1]s cannot be read and are left out\n", bus.TopicAlerts, n)
	return err
}

// advice prints the open advisories, if there are any.
func advice(all []history.Standing, stdout io.Writer) error {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, st := range all {
		for i, a := range st.Advisories {
			if i == 0 {
				fmt.Fprintln(w, "\nadvisory\tmachine\tsince\twhat")
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", a.Kind, printable(st.Machine, 100), when(a.Since), printable(a.Text, 200))
		}
	}
	return w.Flush()
}

// when writes a time, or the seconds from the start of a recording without a clock.
func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return signal.FormatTime(t.Local(), time.DateTime)
}

// listPast prints every alarm that the topic still holds.
func listPast(ctx context.Context, cfg bus.Config, group string, stdout io.Writer) error {
	type row struct {
		first   event.Alert
		cleared event.Alert
		by      string
		wrong   bool // marked as false
	}
	var rows []*row
	index := make(map[string]*row) // by machine and incident
	skipped, err := history.Alerts(ctx, cfg, group, func(a event.Alert) error {
		key := a.Machine + " " + cmp.Or(a.Incident, a.Since.String())
		r := index[key]
		switch {
		case a.State == event.Raised:
			if r == nil {
				r = &row{first: a}
				rows, index[key] = append(rows, r), r
			}
		case r == nil:
		case a.State == event.Cleared:
			r.cleared = a
		case a.State == "acknowledged":
			r.by, r.wrong = a.By, r.wrong || a.FalseAlarm
		case a.State.Marks():
			r.wrong = a.State == event.MarkedFalse
		}
		return nil
	})
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "alarm\tmachine\ttool\traised\tacknowledged by\tcleared\treason\tfalse")
	for _, r := range rows {
		wrong := "-"
		if r.wrong {
			wrong = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cmp.Or(r.first.Incident, "-"), printable(r.first.Machine, 100), printable(cmp.Or(r.first.Tool, "-"), 40),
			when(r.first.At), printable(cmp.Or(r.by, "-"), 40), when(r.cleared.At), cmp.Or(r.cleared.Reason, "-"), wrong)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return noteSkipped(skipped, stdout)
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/audit"
	"github.com/flank-tcm/flank/internal/plain"
)

type auditCommand struct {
	cli.ConfigFile
	cli.Span
	Action []event.Action `sep:"," placeholder:"ACTION" help:"Only these actions, such as login or acknowledge; docs/how-to/audit.md lists them."`
	By     string         `placeholder:"NAME" help:"Only what this person did, by the name in the record."`
	cli.OnlyMachine
	Outcome string `enum:"any,accepted,refused" default:"any" help:"any, accepted or refused (default: any)."`
	cli.Listing
}

// Run lists the records that the flags ask for, the oldest first.
func (f *auditCommand) Run(ctx context.Context, out cli.Output) error {
	_, to, err := loadBus(f.Config)
	if err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	records := []event.Audit{}
	skipped, err := audit.Read(ctx, to, f.Since.Time, func(a event.Audit) error {
		if f.wants(a) && !slices.ContainsFunc(records[max(0, len(records)-repeatsWithin):], func(o event.Audit) bool { return o.ID == a.ID }) {
			records = append(records, a)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(records, func(a, b event.Audit) int { return a.At.Compare(b.At) })
	if f.IsJSON() {
		if err := noteSkipped(skipped, bus.TopicAudit, out.Stderr); err != nil {
			return err
		}
		return cli.PrintJSON(out.Stdout, records)
	}
	w := tabwriter.NewWriter(out.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "when\tprogram\taction\toutcome\tby\tidentified\tfrom\tabout\twhy")
	for _, a := range records {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", when(a.At), plain.Short(a.Program, 40), plain.Short(string(a.Action), 40), plain.Short(string(a.Outcome), 40),
			plain.Short(cmp.Or(a.Actor.Name, "-"), 60), plain.Short(string(a.Actor.Identified), 40),
			plain.Short(cmp.Or(a.Actor.From, "-"), 60), plain.Short(cmp.Or(aboutOf(a), "-"), 200), plain.Short(cmp.Or(whyOf(a), "-"), 200))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return noteSkipped(skipped, bus.TopicAudit, out.Stderr)
}

// repeatsWithin is how far back a record may come again: a request that was sent twice has fewer.
const repeatsWithin = 256

// check reports flags that no record can satisfy.
func (f *auditCommand) check() error {
	if !f.Until.IsZero() && !f.Since.Before(f.Until.Time) {
		return fmt.Errorf("--since %s is not before --until %s", f.Since.Format(time.RFC3339), f.Until.Format(time.RFC3339))
	}
	for _, a := range f.Action {
		if !slices.Contains(event.AuditActions, a) {
			return fmt.Errorf("--action %s: choose from %s", plain.Short(string(a), 40), joined(event.AuditActions))
		}
	}
	return nil
}

func joined(actions []event.Action) string {
	names := make([]string, len(actions))
	for i, a := range actions {
		names[i] = string(a)
	}
	return strings.Join(names, ", ")
}

// wants reports whether the flags ask for a record.
func (f *auditCommand) wants(a event.Audit) bool {
	switch {
	case a.At.Before(f.Since.Time), !f.Until.IsZero() && !a.At.Before(f.Until.Time):
	case len(f.Action) > 0 && !slices.Contains(f.Action, a.Action):
	case !slices.Contains([]string{"", a.Actor.Name}, f.By):
	case !f.Wants(a.Machine):
	case f.Outcome != "any" && string(a.Outcome) != f.Outcome:
	default:
		return true
	}
	return false
}

// aboutOf says what was acted on.
func aboutOf(a event.Audit) string {
	parts := slices.DeleteFunc([]string{a.Machine, a.Alarm, a.Model, a.Object}, func(s string) bool { return s == "" })
	return strings.Join(parts, ", ")
}

// whyOf says why an action was refused.
func whyOf(a event.Audit) string {
	if a.More > 0 {
		return fmt.Sprintf("%s (and %d more before, without a record)", a.Reason, a.More)
	}
	return a.Reason
}

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
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/pkg/signal"
)

type alertsList struct {
	cli.Listing
	cli.Past
}

// Run lists alarms: those that are open or masked now, or every one.
func (f *alertsList) Run(ctx context.Context, a *alertsCommand, out cli.Output) error {
	c, to, err := loadBus(a.Config)
	if err != nil {
		return err
	}
	if f.All {
		return f.listPast(ctx, to, c.Group, out)
	}
	return f.listOpen(ctx, to, c.Group, out)
}

// printOpen prints a row for each alarm that is open, and returns how many there are, and how many machines are not watched.
func printOpen(w io.Writer, all []monitor.Standing) (n, unwatched int) {
	row := func(st monitor.Standing, where string) {
		if st.Alarm == "normal" {
			return
		}
		n++
		state := st.Alarm + where
		if st.Beneath != st.Alarm {
			state += " (" + st.Beneath + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", plain.Short(cmp.Or(st.Incident, "-"), 40), plain.Short(st.Machine, 100), plain.Short(cmp.Or(st.Tool, "-"), 40),
			plain.Short(state, 60), when(st.Since), when(st.Until), plain.Short(cmp.Or(st.By, "-"), 40), plain.Short(st.Note, 100))
	}
	for _, st := range all {
		if st.Unwatched() != "" {
			unwatched++
		}
		row(st, "")
		for _, t := range st.Magazine {
			row(t, ", in the magazine")
		}
	}
	return n, unwatched
}

// listOpen prints the alarms that are open or masked, and the open advisories.
func (f *alertsList) listOpen(ctx context.Context, cfg bus.Config, group string, out cli.Output) error {
	all, skipped, err := monitor.Alarms(ctx, cfg, group)
	if err != nil {
		return err
	}
	if f.IsJSON() {
		return printStandings(out, all, skipped, func(st monitor.Standing) bool { return st.Alarm != "normal" || len(st.Advisories)+len(st.Magazine) > 0 })
	}
	stdout := out.Stdout
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "alarm\tmachine\ttool\tstate\tsince\tuntil\tby\tnote")
	n, unwatched := printOpen(w, all)
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
	return noteSkipped(skipped, bus.TopicAlerts, stdout)
}

// noteSkipped prints how many messages on a topic a list leaves out, if there are any.
func noteSkipped(n int, topic string, w io.Writer) error {
	if n == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nnote: %d messages on %s cannot be read and are left out\n", n, topic)
	return err
}

// advice prints the open advisories, if there are any.
func advice(all []monitor.Standing, stdout io.Writer) error {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	heading := "\nadvisory\tmachine\tsince\twhat\n"
	for _, st := range all {
		for _, a := range st.Advisories {
			fmt.Fprint(w, heading)
			heading = ""
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", plain.Short(string(a.Kind), 40), plain.Short(st.Machine, 100), when(a.Since), plain.Short(a.Text, 200))
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

// pastAlarm is an alarm that the topic still holds.
type pastAlarm struct {
	first   event.Alert
	cleared event.Alert
	by      string
	wrong   bool // marked as false
}

// pastAlarms returns every alarm that the topic still holds, and how many messages cannot be read.
func pastAlarms(ctx context.Context, cfg bus.Config, group string) (rows []*pastAlarm, skipped int, err error) {
	index := make(map[string]*pastAlarm) // by machine and incident
	skipped, err = history.Alerts(ctx, cfg, group, func(a event.Alert) error {
		key := a.Machine + " " + cmp.Or(a.Incident, a.Since.String())
		r := index[key]
		switch {
		case a.State == event.Raised:
			if r == nil {
				r = &pastAlarm{first: a}
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
	return rows, skipped, err
}

// listedPast is a pastAlarm as JSON.
type listedPast struct {
	Alarm   string     `json:"alarm"`
	Machine string     `json:"machine"`
	Tool    string     `json:"tool"`
	Raised  *time.Time `json:"raised"`
	By      string     `json:"acknowledged_by"`
	Cleared *time.Time `json:"cleared"`
	Reason  string     `json:"reason"`
	False   bool       `json:"false"`
}

// reopen takes back that alarms are cleared whose tools are in the spindle again, or in the magazine.
func reopen(rows []*pastAlarm, all []monitor.Standing) {
	for _, r := range rows {
		if st, err := find(all, r.first.Incident); err == nil && st.Incident == r.first.Incident {
			r.cleared = event.Alert{}
		}
	}
}

// listPast prints every alarm that the topic still holds.
func (f *alertsList) listPast(ctx context.Context, cfg bus.Config, group string, out cli.Output) error {
	rows, skipped, err := pastAlarms(ctx, cfg, group)
	if err != nil {
		return err
	}
	all, _, err := monitor.Alarms(ctx, cfg, group)
	if err != nil {
		return err
	}
	reopen(rows, all)
	if f.IsJSON() {
		list := []listedPast{}
		for _, r := range rows {
			list = append(list, listedPast{r.first.Incident, r.first.Machine, r.first.Tool, orNull(r.first.At), r.by, orNull(r.cleared.At), r.cleared.Reason, r.wrong})
		}
		return printRows(out, list, skipped)
	}
	stdout := out.Stdout
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "alarm\tmachine\ttool\traised\tacknowledged by\tcleared\treason\tfalse")
	for _, r := range rows {
		wrong := "-"
		if r.wrong {
			wrong = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", plain.Short(cmp.Or(r.first.Incident, "-"), 40), plain.Short(r.first.Machine, 100), plain.Short(cmp.Or(r.first.Tool, "-"), 40),
			when(r.first.At), plain.Short(cmp.Or(r.by, "-"), 40), when(r.cleared.At), plain.Short(cmp.Or(r.cleared.Reason, "-"), 40), wrong)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return noteSkipped(skipped, bus.TopicAlerts, stdout)
}

// standing is a machine with its alarm and advisories as JSON.
type standing struct {
	Machine   string `json:"machine"`
	Tool      string `json:"tool"`
	Tools     int    `json:"tools"`
	Watched   bool   `json:"watched"`
	Unwatched string `json:"not_watched_because,omitempty"`
	alarmState
	LastWindow *time.Time `json:"last_window"`
	Advisories []advised  `json:"advisories"`
	Magazine   []waiting  `json:"magazine"`
}

// waiting is a tool in the magazine whose alarm is open or masked.
type waiting struct {
	Tool string `json:"tool"`
	alarmState
}

// alarmState is how the alarm of a tool stands.
type alarmState struct {
	Alarm   string     `json:"alarm"`
	State   string     `json:"state"`
	Beneath string     `json:"state_beneath"`
	Since   *time.Time `json:"since"`
	Until   *time.Time `json:"until"`
	By      string     `json:"by"`
	Note    string     `json:"note"`
}

type advised struct {
	Kind    event.AdvisoryKind `json:"kind"`
	Subject string             `json:"subject,omitempty"`
	Since   *time.Time         `json:"since"`
	Text    string             `json:"text"`
}

func alarmStateOf(st *monitor.Standing) alarmState {
	return alarmState{st.Incident, st.Alarm, st.Beneath, orNull(st.Since), orNull(st.Until), st.By, st.Note}
}

// orNull returns a time for JSON; nil, written as null, if it is not known.
func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// printStandings prints the machines that want holds for.
func printStandings(out cli.Output, all []monitor.Standing, skipped int, want func(monitor.Standing) bool) error {
	rows := []standing{}
	for _, st := range all {
		if !want(st) {
			continue
		}
		why := st.Unwatched()
		row := standing{Machine: st.Machine, Tool: st.Tool, Tools: st.Tools, Watched: why == "", Unwatched: why, alarmState: alarmStateOf(&st),
			LastWindow: orNull(st.LastWindowAt), Advisories: []advised{}, Magazine: []waiting{}}
		for _, a := range st.Advisories {
			row.Advisories = append(row.Advisories, advised{a.Kind, a.Subject, orNull(a.Since), a.Text})
		}
		for _, t := range st.Magazine {
			row.Magazine = append(row.Magazine, waiting{t.Tool, alarmStateOf(&t)})
		}
		rows = append(rows, row)
	}
	return printRows(out, rows, skipped)
}

// printRows prints a list for programs. How many it leaves out goes to stderr.
func printRows[T any](out cli.Output, rows []T, skipped int) error {
	if err := noteSkipped(skipped, bus.TopicAlerts, out.Stderr); err != nil {
		return err
	}
	return cli.PrintJSON(out.Stdout, rows)
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/route"
)

type alertsFlags struct {
	Config string `required:"" placeholder:"FILE" help:"Configuration; of it only 'kafka' is used, and by 'test' the routes."`
	Ls     struct {
		All bool `help:"Every alarm that the topic still holds, not only what stands or is masked now."`
	} `cmd:"" help:"List the alarms that stand or are kept from calling, and the advisories that stand."`
	Show struct {
		ID string `arg:"" help:"As 'alerts ls' prints it, or a machine."`
	} `cmd:"" help:"Print everything that happened to an alarm; of a machine its advisories too."`
	Ack          ack       `cmd:"" help:"Acknowledge an alarm: somebody knows. A latched alarm that is over is cleared."`
	Shelve       shelve    `cmd:"" help:"Keep an alarm from calling for a while."`
	Unshelve     ackFlags  `cmd:"" help:"End a shelf before its time."`
	Suppress     maskFlags `cmd:"" help:"Keep an alarm from calling while it means nothing by design of the plant."`
	Unsuppress   ackFlags  `cmd:"" help:"End that."`
	OutOfService maskFlags `cmd:"" help:"Take an alarm out of service, for maintenance."`
	InService    ackFlags  `cmd:"" help:"Put it into service again."`
	MarkFalse    markFlags `cmd:"" help:"Say that an alarm was false, also when it is over: nothing was wrong with the tool. 'monitor report' counts these."`
	UnmarkFalse  markFlags `cmd:"" help:"Take that back, also what was said by 'ack --false'."`

	Test testFlags `cmd:"" help:"Send a test over a route, and say what happens at each step. Exit codes: 3 route, 4 connect, 5 filter, 6 send."`
}

// who is what every command of a person says.
type who struct {
	ID string `arg:"" help:"As 'alerts ls' prints it, or a machine: its path or the last part of that."`
	By string `required:"" env:"USER" placeholder:"NAME" help:"Who you are."`
}

type ackFlags struct {
	who
	Note string `placeholder:"TEXT" help:"What you have to say."`
}

type ack struct {
	ackFlags
	False bool `help:"It was a false alarm: nothing was wrong with the tool. 'monitor report' counts these, as what 'mark-false' marks later."`
}

type maskFlags struct {
	who
	Reason string `required:"" placeholder:"TEXT" help:"Why."`
}

type markFlags struct {
	ID   string `arg:"" help:"As 'alerts ls --all' prints it."`
	By   string `required:"" env:"USER" placeholder:"NAME" help:"Who you are."`
	Note string `placeholder:"TEXT" help:"What you have to say."`
}

type shelve struct {
	maskFlags
	For time.Duration `required:"" placeholder:"2h" help:"How long; alarm.max_shelf of the monitor bounds it."`
}

type testFlags struct {
	Route    string `required:"" placeholder:"NAME" help:"As in the configuration."`
	Severity string `default:"warning" enum:"warning,info" help:"Of the test: warning or info."`
}

// alertsTest sends an alert that says that it is a test straight to the receiver of
// a route: tcm.alerts.v1 and other routes see nothing of it.
func alertsTest(ctx context.Context, file string, c settings, to bus.Config, f testFlags, stdout io.Writer) error {
	var names []string
	for i, r := range c.Alerts.Routes {
		if names = append(names, r.Name); r.Name == f.Route {
			c.Alerts.Routes[i].Timeout = min(cmp.Or(r.Timeout, cli.StepPatience), cli.StepPatience)
		}
	}
	if !slices.Contains(names, f.Route) {
		return fmt.Errorf("%s: no route is called %s: there are %q under `alerts: routes:`", file, printable(f.Route, 40), names)
	}
	routes, err := c.Alerts.Build(file, to, c.Group, true, zerolog.Nop())
	if err != nil {
		return err
	}
	for _, r := range routes {
		defer r.Close()
		if r.Name() == f.Route {
			return cli.RunSteps(ctx, r.Steps(route.TestEvent(event.NewCommandID(), f.Severity, time.Now())), stdout)
		}
	}
	panic("monitor: no route " + f.Route)
}

// command returns what the flags want done, but for what depends on the alarm. It
// reports false if they want nothing done.
func (f *alertsFlags) command(name string, now time.Time) (c event.Command, id string, ok bool) {
	ack := func(a event.Action, f ackFlags) { c.Action, id, c.By, c.Note = a, f.ID, f.By, f.Note }
	mark := func(a event.Action, f markFlags) { c.Action, id, c.By, c.Note = a, f.ID, f.By, f.Note }
	mask := func(a event.Action, f maskFlags) { c.Action, id, c.By, c.Note = a, f.ID, f.By, f.Reason }
	switch strings.TrimSuffix(strings.TrimPrefix(name, "alerts "), " <id>") {
	case "ack":
		ack(event.Acknowledge, f.Ack.ackFlags)
		c.FalseAlarm = f.Ack.False
	case "shelve":
		mask(event.Shelve, f.Shelve.maskFlags)
		c.Until = now.Add(f.Shelve.For)
	case "unshelve":
		ack(event.Unshelve, f.Unshelve)
	case "suppress":
		mask(event.Suppress, f.Suppress)
	case "unsuppress":
		ack(event.Unsuppress, f.Unsuppress)
	case "out-of-service":
		mask(event.OutOfService, f.OutOfService)
	case "in-service":
		ack(event.InService, f.InService)
	case "mark-false":
		mark(event.MarkFalse, f.MarkFalse)
	case "unmark-false":
		mark(event.UnmarkFalse, f.UnmarkFalse)
	default:
		return c, "", false
	}
	c.ID, c.Issued = event.NewCommandID(), now
	return c, id, true
}

func alerts(ctx context.Context, cfg bus.Config, group, name string, f alertsFlags, stdout io.Writer) error {
	switch {
	case name == "alerts ls" && f.Ls.All:
		return alertsPast(ctx, cfg, group, stdout)
	case name == "alerts ls":
		return alertsList(ctx, cfg, group, stdout)
	case name == "alerts show <id>":
		return alertsShow(ctx, cfg, group, f.Show.ID, stdout)
	}
	c, id, ok := f.command(name, time.Now())
	if !ok {
		panic("monitor: no command " + name)
	}
	if c.Action.Marks() {
		var err error
		if c.Machine, c.Incident, err = raisedAs(ctx, cfg, group, id); err != nil {
			return err
		}
		return command(ctx, cfg, group, c, stdout)
	}
	all, _, err := history.Alarms(ctx, cfg, group)
	if err != nil {
		return err
	}
	st, err := find(all, id)
	if err != nil {
		return err
	}
	if c.Action == event.Acknowledge && st.Incident == "" {
		return fmt.Errorf("%s has no alarm that stands: see `monitor alerts ls`", st.Machine)
	}
	c.Machine, c.Incident = st.Machine, st.Incident
	return command(ctx, cfg, group, c, stdout)
}

// answerWait is how long an answer to a command is waited for.
const answerWait = 10 * time.Second

// command sends a command and prints what became of it.
func command(ctx context.Context, cfg bus.Config, group string, c event.Command, stdout io.Writer) error {
	out, err := bus.NewProducer(cfg)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := monitor.SendCommand(ctx, out, c); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	answered := errors.New("answered")
	var answer event.Alert
	err = bus.ReadTopic(waiting, cfg, bus.TopicAlerts, bus.FirstOffset, true, func(m bus.Message) error {
		answer = event.Alert{}
		if string(m.Header("ce_type")) != event.AlertType || json.Unmarshal(m.Value, &answer) != nil || answer.Command != c.ID || !history.OfGroup(answer.Group, group) {
			return nil // of others
		}
		if answer.Reason == "retired" || answer.Reason == "new_tool" {
			return nil // what the command did to the alarm; the answer follows
		}
		return answered
	})
	switch {
	case errors.Is(err, answered) && answer.State == event.Refused:
		return errors.New(answer.Text)
	case errors.Is(err, answered):
		_, err := fmt.Fprintln(stdout, printable(answer.Text, 2000))
		return err
	case waiting.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("the command is on %s, and no monitor has answered for %v: is one of group %s running? It is carried out when one starts", bus.TopicCommands, answerWait, group)
	}
	return err
}

// find returns the machine that a person means: by an alarm that stands, by the
// machine's path, or by the last part of it.
func find(all []history.Standing, id string) (found history.Standing, err error) {
	var matches []string
	for _, st := range all {
		if st.Incident != "" && strings.EqualFold(st.Incident, id) || st.Machine == id {
			return st, nil
		}
		if st.Machine[strings.LastIndexByte(st.Machine, '/')+1:] == id {
			matches, found = append(matches, st.Machine), st
		}
	}
	switch len(matches) {
	case 0:
		return found, fmt.Errorf("%s is neither an alarm that stands nor a machine: see `monitor alerts ls`, and `monitor alerts ls --all` for what is over", printable(id, 100))
	case 1:
		return found, nil
	}
	return found, fmt.Errorf("%s may be %s: name one by its path", id, strings.Join(matches, " or "))
}

// raisedAs returns the machine of an alarm, which may be over, and the alarm's name.
func raisedAs(ctx context.Context, cfg bus.Config, group, id string) (machine, incident string, err error) {
	_, err = history.Alerts(ctx, cfg, group, func(a event.Alert) error {
		if a.State == event.Raised && a.Incident != "" && strings.EqualFold(a.Incident, id) {
			machine, incident = a.Machine, a.Incident
		}
		return nil
	})
	if err == nil && incident == "" {
		err = fmt.Errorf("no alarm was called %s: see `monitor alerts ls --all`", printable(id, 100))
	}
	return machine, incident, err
}

func alertsShow(ctx context.Context, cfg bus.Config, group, id string, stdout io.Writer) error {
	of := func(machine string) bool {
		return machine == id || machine[strings.LastIndexByte(machine, '/')+1:] == id
	}
	type line struct {
		at         time.Time
		what, text string
	}
	var lines []line
	var last, why *event.Alert
	skipped, err := history.Alerts(ctx, cfg, group, func(a event.Alert) error {
		if strings.EqualFold(a.Incident, id) || of(a.Machine) {
			lines = append(lines, line{a.At, string(a.State), a.Text})
			if last == nil || !a.State.Marks() { // these may be about a machine whose alarm is another by now
				last = &a
			}
			if a.Reasons != nil {
				why = &a
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	more, err := history.Advisories(ctx, cfg, group, func(a event.Advisory) error {
		if of(a.Machine) {
			lines = append(lines, line{a.At, fmt.Sprintf("%s %s", a.Kind, a.State), a.Text})
		}
		return nil
	})
	if err != nil {
		return err
	}
	var kept *event.Evidence
	yetMore, err := history.Evidences(ctx, cfg, group, func(e event.Evidence) error {
		if why != nil && e.Alert == why.ID {
			kept = &e
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(lines) == 0 {
		return fmt.Errorf("nothing is known of %s: see `monitor alerts ls --all`", printable(id, 100))
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	if last != nil {
		showAlarm(last, stdout)
		if why != nil {
			if err := showReasons(why, kept, stdout); err != nil {
				return err
			}
		}
		fmt.Fprintln(stdout)
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		fmt.Fprintf(w, "%s\t%s\t%s\n", when(l.at), l.what, printable(l.text, 1500))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return noteSkipped(skipped+more+yetMore, stdout)
}

// showAlarm prints what the last alert says of its alarm.
func showAlarm(last *event.Alert, stdout io.Writer) {
	fmt.Fprintf(stdout, "machine  %s\ntool     %s\nalarm    %s\nmodel    %s\nraised   by %d of %d judged windows\n",
		printable(last.Machine, 200), printable(cmp.Or(last.Tool, "-"), 100), cmp.Or(last.Alarm, "-"), printable(last.Model, 100), last.K, last.N)
}

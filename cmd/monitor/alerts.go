package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/plain"
)

type alertsCommand struct {
	cli.ConfigFile
	Ls   alertsList `cmd:"" help:"List the open and masked alarms, and the open advisories." example:"monitor alerts ls --config monitor.yaml; monitor alerts ls --config monitor.yaml --all -o json"`
	Show alertsShow `cmd:"" help:"Print the history of an alarm, or of a machine with its advisories." example:"monitor alerts show --config monitor.yaml A-7F3K; monitor alerts show --config monitor.yaml usk25"`

	Ack          answerCommand `cmd:"" help:"Acknowledge an alarm: you have seen it. A latched alarm whose condition is over is cleared." example:"monitor alerts ack --config monitor.yaml A-7F3K --by anna --note 'tool is changed'"`
	Shelve       shelveCommand `cmd:"" help:"Keep an alarm from calling for a while." example:"monitor alerts shelve --config monitor.yaml A-7F3K --by anna --for 2h --reason 'new batch'"`
	Unshelve     answerCommand `cmd:"" help:"Unshelve an alarm before its time." example:"monitor alerts unshelve --config monitor.yaml A-7F3K --by anna"`
	Suppress     maskCommand   `cmd:"" help:"Keep an alarm from calling while it is expected, for example during setup." example:"monitor alerts suppress --config monitor.yaml usk25 --by anna --reason setup"`
	Unsuppress   unmaskCommand `cmd:"" help:"End a suppression." example:"monitor alerts unsuppress --config monitor.yaml usk25 --by anna"`
	OutOfService maskCommand   `cmd:"" help:"Take an alarm out of service, for maintenance." example:"monitor alerts out-of-service --config monitor.yaml usk25 --by anna --reason maintenance"`
	InService    unmaskCommand `cmd:"" help:"Put an alarm back into service." example:"monitor alerts in-service --config monitor.yaml usk25 --by anna"`
	MarkFalse    answerCommand `cmd:"" help:"Mark an alarm as false, open or closed: nothing was wrong with the tool. 'monitor report' counts these marks." example:"monitor alerts mark-false --config monitor.yaml A-7F3K --by anna --note 'the edge was sharp'"`
	UnmarkFalse  answerCommand `cmd:"" help:"Withdraw a false-alarm mark." example:"monitor alerts unmark-false --config monitor.yaml A-7F3K --by anna"`

	Test alertsTest `cmd:"" help:"Send a test over a route and print the result of each step. Exit codes: 3 route, 4 connect, 5 filter, 6 send." example:"monitor alerts test --config monitor.yaml --route shift"`
}

// who names an alarm and the person who acts on it.
type who struct {
	cli.AlarmID
	cli.Person
}

// toolFlag names the tool of a mask.
type toolFlag struct {
	Tool string `placeholder:"NAME" help:"Only the alarm of this tool, in the spindle or in the magazine. Without it the machine's, with all its tools."`
}

// The commands that act on an alarm. Each has several names, which are names of actions.
type (
	answerCommand struct {
		who
		cli.Remark
	}
	maskCommand struct {
		who
		cli.Why
		toolFlag
	}
	unmaskCommand struct {
		answerCommand
		toolFlag
	}
	shelveCommand struct {
		who
		cli.Why
		For time.Duration `required:"" placeholder:"2h" help:"How long; alarm.max_shelf of the monitor bounds it."`
	}
)

// actionOf returns the action that a command is named after.
func actionOf(k *cli.Called) event.Action {
	if name := k.Selected().Name; name != "ack" {
		return event.Action(strings.ReplaceAll(name, "-", "_"))
	}
	return event.Acknowledge
}

// Run acknowledges an alarm, ends its shelf, or marks it as false or as not false.
func (f *answerCommand) Run(ctx context.Context, k *cli.Called, a *alertsCommand, out cli.Output) error {
	return a.send(ctx, out, f.ID, event.Command{Action: actionOf(k), By: f.By, Note: f.Note})
}

// Run suppresses an alarm, or takes it out of service.
func (f *maskCommand) Run(ctx context.Context, k *cli.Called, a *alertsCommand, out cli.Output) error {
	return a.send(ctx, out, f.ID, event.Command{Action: actionOf(k), By: f.By, Note: f.Reason, Tool: f.Tool})
}

// Run ends such a mask.
func (f *unmaskCommand) Run(ctx context.Context, k *cli.Called, a *alertsCommand, out cli.Output) error {
	return a.send(ctx, out, f.ID, event.Command{Action: actionOf(k), By: f.By, Note: f.Note, Tool: f.Tool})
}

// Run shelves an alarm.
func (f *shelveCommand) Run(ctx context.Context, a *alertsCommand, out cli.Output) error {
	return a.send(ctx, out, f.ID, event.Command{Action: event.Shelve, By: f.By, Note: f.Reason, Until: time.Now().Add(f.For)})
}

// send sends a command about the alarm that id names.
func (a *alertsCommand) send(ctx context.Context, out cli.Output, id string, c event.Command) error {
	conf, to, err := loadBus(a.Config)
	if err != nil {
		return err
	}
	c.ID, c.Issued = event.NewCommandID(), time.Now()
	if c.Action.Marks() {
		if c.Machine, c.Incident, err = remembers(ctx, to, conf.Group, id); err != nil {
			return err
		}
		return sendCommand(ctx, to, conf.Group, c, out)
	}
	all, _, err := monitor.Alarms(ctx, to, conf.Group)
	if err != nil {
		return err
	}
	st, err := find(all, id)
	if err != nil {
		return err
	}
	if c.Action == event.Acknowledge && st.Incident == "" {
		return errNoneOpen(st)
	}
	if c.Machine = st.Machine; c.Tool == "" {
		c.Incident = st.Incident
	}
	return sendCommand(ctx, to, conf.Group, c, out)
}

// errNoneOpen says which alarms a machine has in the magazine that no one has acknowledged, as none is open in its spindle.
func errNoneOpen(st monitor.Standing) error {
	text := "no alarm of the tool in the spindle is open"
	for _, t := range st.Magazine {
		if t.Incident != "" && t.Beneath != "acknowledged" {
			text += fmt.Sprintf("; %s is of tool %s in the magazine: monitor alerts ack %[1]s", t.Incident, plain.Short(t.Tool, 40))
		}
	}
	return fmt.Errorf("%s: %s", st.Machine, text)
}

// answerWait is how long an answer to a command is waited for.
var answerWait = 10 * time.Second

// sendCommand sends a command and prints what became of it. It reports a refusal as a refusedError.
func sendCommand(ctx context.Context, cfg bus.Config, group string, c event.Command, out cli.Output) error {
	to, err := bus.NewProducer(cfg)
	if err != nil {
		return err
	}
	defer to.Close()
	from, err := alertEnds(ctx, cfg)
	if err != nil {
		return err
	}
	sent := monitor.SendCommand(ctx, to, c)
	record := event.Audit{Action: c.Action, Machine: c.Machine, Alarm: c.Incident, Object: cmp.Or(c.Tool, c.Was), Command: c.ID}
	defer cli.AuditCommand(ctx, cfg, program, c.By, out.Stderr, record, sent) // the answer is printed first
	if sent != nil {
		return sent
	}
	waiting, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	answer, err := awaitAnswer(waiting, cfg, from, group, c.ID)
	switch {
	case err == nil && answer.State == event.Refused:
		return refusedError(answer.Text)
	case err == nil:
		_, err := fmt.Fprintln(out.Stdout, plain.Short(answer.Text, 2000))
		return err
	case waiting.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("the command is on %s, and no monitor has answered for %v: is one of group %s running? It carries the command out when it starts", bus.TopicCommands, answerWait, group)
	}
	return err
}

// refusedError is the answer of a monitor that refused a command.
type refusedError string

func (e refusedError) Error() string { return string(e) }

// alertEnds returns the offset behind the last alert of each partition.
func alertEnds(ctx context.Context, cfg bus.Config) ([]int64, error) {
	n, err := bus.Partitions(ctx, cfg, bus.TopicAlerts)
	if err != nil {
		return nil, err
	}
	ends := make([]int64, n)
	for p := range ends {
		if _, ends[p], err = bus.Bounds(ctx, cfg, bus.TopicAlerts, p); err != nil {
			return nil, err
		}
	}
	return ends, nil
}

// answerIn returns the alert in a message if it answers a command, and does not only say what that did to the alarm.
func answerIn(m *bus.Message, group, command string) *event.Alert {
	if string(m.Header("ce_type")) != event.AlertType {
		return nil
	}
	a, ours, err := history.Event[event.Alert](m, group)
	if err != nil || !ours || a.Command != command || a.Reason == "retired" || a.Reason == "new_tool" {
		return nil
	}
	return a
}

// awaitAnswer returns the answer of a monitor of the group to a command, from the alerts at these offsets on.
func awaitAnswer(ctx context.Context, cfg bus.Config, from []int64, group, command string) (answer event.Alert, err error) {
	answered := errors.New("answered")
	start := func(p bus.Followed) bus.Start {
		if p.Partition < len(from) && !p.Lost {
			return bus.Start{Offset: from[p.Partition]}
		}
		return bus.Start{Offset: bus.FirstOffset} // the topic has grown, or was made again
	}
	err = bus.Follow(ctx, cfg, bus.TopicAlerts, bus.Following{Start: start, Take: func(_ bus.Followed, msgs []bus.Message, _ int64) error {
		for _, m := range msgs {
			if a := answerIn(&m, group, command); a != nil {
				answer = *a
				return answered
			}
		}
		return nil
	}})
	if errors.Is(err, answered) {
		err = nil
	}
	return answer, err
}

// find returns the machine that a person means, with the alarm: by an open alarm, also of a tool in the magazine, or by its name.
func find(all []monitor.Standing, id string) (found monitor.Standing, err error) {
	for _, st := range all {
		if i := slices.IndexFunc(st.Magazine, func(t monitor.Standing) bool { return strings.EqualFold(t.Incident, id) }); i >= 0 && id != "" {
			return st.Magazine[i], nil
		}
		if st.Incident != "" && strings.EqualFold(st.Incident, id) {
			return st, nil
		}
	}
	if found, err = called(all, id); err == nil && found.Machine == "" {
		err = fmt.Errorf("%s is neither an open alarm nor a machine: see `monitor alerts ls`, `monitor alerts ls --all` for closed alarms, and `monitor machines ls`", plain.Short(id, 100))
	}
	return found, err
}

// called returns the machine of a path, or of the last part of a path; one without a name if there is none.
func called(all []monitor.Standing, name string) (found monitor.Standing, err error) {
	var matches []string
	for _, st := range all {
		if st.Machine == name {
			return st, nil
		}
		if event.ShortName(st.Machine) == name {
			matches, found = append(matches, st.Machine), st
		}
	}
	if len(matches) > 1 {
		err = fmt.Errorf("%s may be %s: name one by its path", name, strings.Join(matches, " or "))
	}
	return found, err
}

// remembers returns the machine that remembers an alarm, open or closed, and the alarm's name. A machine that was renamed remembers
// the alarms of its old name.
func remembers(ctx context.Context, cfg bus.Config, group, id string) (machine, incident string, err error) {
	all, err := monitor.Raised(ctx, cfg, group)
	if err != nil {
		return "", "", err
	}
	for incident, machine := range all {
		if strings.EqualFold(incident, id) {
			return machine, incident, nil
		}
	}
	return "", "", fmt.Errorf("no machine remembers an alarm %s: a monitor remembers the last alarms of each machine that is not retired, see `monitor alerts ls --all`", plain.Short(id, 100))
}

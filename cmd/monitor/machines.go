package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/internal/plain"
)

// aboutMachine names a machine and the person who acts on it.
type aboutMachine struct {
	Machine string `arg:"" help:"Path of the machine, or the last part of the path."`
	By      string `required:"" env:"USER" placeholder:"NAME" help:"Your name."`
	Note    string `placeholder:"TEXT" help:"Why."`
}

type machinesCommand struct {
	Config  string         `required:"" placeholder:"FILE" help:"Configuration of the monitor, see examples/gun-drill/monitor.yaml."`
	Ls      machinesList   `cmd:"" help:"List the machines, with their alarms, tools and last windows." example:"monitor machines ls --config monitor.yaml; monitor machines ls --config monitor.yaml -o json"`
	Retire  retireCommand  `cmd:"" help:"Take a machine off: the monitor clears its alarm and advisories and forgets it. The machine begins again with its next window, so stop its ingester first." example:"monitor machines retire --config monitor.yaml usk25 --by anna --note scrapped"`
	Rename  renameCommand  `cmd:"" help:"Give a machine another name: its tools, references and alarm go on under it. Stop its ingester, rename, then start the ingester under the new name." example:"monitor machines rename --config monitor.yaml usk25 acme/spore/bay3/line1/usk25 --by anna"`
	NewTool newToolCommand `cmd:"" help:"Declare a tool new under its old name: reground, or a fresh insert. The monitor learns its reference again and clears its alarm." example:"monitor machines new-tool --config monitor.yaml usk25 T08 --by anna"`
}

type (
	machinesList  struct{ cli.Listing }
	retireCommand struct{ aboutMachine }
	renameCommand struct {
		aboutMachine
		To string `arg:"" help:"New path."`
	}
	newToolCommand struct {
		aboutMachine
		Tool string `arg:"" help:"Name of the tool, as in its windows."`
	}
)

// command returns a command about a machine that the flags name.
func (f aboutMachine) command(a event.Action, machine string) event.Command {
	return event.Command{ID: event.NewCommandID(), Machine: machine, Action: a, By: f.By, Note: f.Note, Issued: time.Now()}
}

// knownMachines are the machines that the monitors of a group remember.
type knownMachines struct {
	cfg     bus.Config
	group   string
	all     []history.Standing
	skipped int // messages that cannot be read
}

func (m *machinesCommand) read(ctx context.Context) (k knownMachines, err error) {
	c, to, err := loadBus(m.Config)
	if err != nil {
		return k, err
	}
	k = knownMachines{cfg: to, group: c.Group}
	k.all, k.skipped, err = history.Alarms(ctx, to, c.Group)
	return k, err
}

// find returns the machine that a person means, among the others.
func (m *machinesCommand) find(ctx context.Context, id string) (k knownMachines, st history.Standing, err error) {
	if k, err = m.read(ctx); err != nil {
		return k, st, err
	}
	st, err = find(k.all, id)
	return k, st, err
}

// Run takes a machine off.
func (f *retireCommand) Run(ctx context.Context, m *machinesCommand, out cli.Output) error {
	k, st, err := m.find(ctx, f.Machine)
	if err != nil {
		return err
	}
	return sendCommand(ctx, k.cfg, k.group, f.command(event.Retire, st.Machine), out)
}

// Run declares a tool new.
func (f *newToolCommand) Run(ctx context.Context, m *machinesCommand, out cli.Output) error {
	k, st, err := m.find(ctx, f.Machine)
	if err != nil {
		return err
	}
	c := f.command(event.NewTool, st.Machine)
	c.Tool = f.Tool
	return sendCommand(ctx, k.cfg, k.group, c, out)
}

// Run lists the machines.
func (f *machinesList) Run(ctx context.Context, m *machinesCommand, out cli.Output) error {
	k, err := m.read(ctx)
	if err != nil {
		return err
	}
	if f.IsJSON() {
		return printStandings(out, k.all, k.skipped, func(history.Standing) bool { return true })
	}
	w := tabwriter.NewWriter(out.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "machine\ttool\ttools\twatched\talarm\tlast window\tadvisories")
	for _, st := range k.all {
		tools, watched := st.Tools, "yes"
		if !st.LastWindowAt.IsZero() { // the tool in the spindle may have no record of its own yet
			tools = max(tools, 1)
		}
		state := st.Alarm
		if st.LastWindowAt.IsZero() && st.Tools == 0 { // no window of it was ever judged
			state = "-"
		}
		if why := st.Unwatched(); why != "" {
			watched = "NO: " + why
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%d\n", plain.Short(st.Machine, 100), plain.Short(cmp.Or(st.Tool, "-"), 40), tools, watched, state, when(st.LastWindowAt), len(st.Advisories))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return noteSkipped(k.skipped, bus.TopicAlerts, out.Stdout)
}

// Run retires a machine, which clears its alarm under the old name, and gives what the
// monitor remembers of it to the new name.
func (f *renameCommand) Run(ctx context.Context, m *machinesCommand, out cli.Output) error {
	k, st, err := m.find(ctx, f.Machine)
	if err != nil {
		return err
	}
	for _, o := range k.all {
		if o.Machine == f.To {
			return fmt.Errorf("%s has judged windows of its own: retire it first, so that it can continue with the history of %s", f.To, st.Machine)
		}
	}
	records, err := history.Records(ctx, k.cfg, k.group)
	if err != nil {
		return err
	}
	c := f.command(event.Rename, f.To)
	c.Was = st.Machine
	for _, r := range records[st.Machine] {
		if r.Key.Group == "" {
			return errors.New("only an older monitor has judged this machine: run a monitor of this release until it has judged a window of the machine")
		}
		c.State = append(c.State, event.Kept{Key: r.Key.String(), Value: r.Value})
	}
	if err := sendCommand(ctx, k.cfg, k.group, f.command(event.Retire, st.Machine), out); err != nil {
		return err
	}
	c.Issued = time.Now()
	return sendCommand(ctx, k.cfg, k.group, c, out)
}

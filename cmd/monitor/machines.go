package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/plain"
)

// aboutMachine names a machine and the person who acts on it.
type aboutMachine struct {
	Machine string `arg:"" help:"Path of the machine, or the last part of the path."`
	cli.Person
	cli.Remark
}

type machinesCommand struct {
	cli.ConfigFile
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
		To      string `arg:"" help:"New path, or only its last part: the rest stays."`
		Records string `placeholder:"FILE" help:"Send a rename again that failed after the machine was retired: the file that it named."`
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
	all     []monitor.Standing
	skipped int // messages that cannot be read
}

func (m *machinesCommand) read(ctx context.Context) (k knownMachines, err error) {
	c, to, err := loadBus(m.Config)
	if err != nil {
		return k, err
	}
	k = knownMachines{cfg: to, group: c.Group}
	k.all, k.skipped, err = monitor.Alarms(ctx, to, c.Group)
	return k, err
}

// find returns the machine that a person means, among the others.
func (m *machinesCommand) find(ctx context.Context, id string) (k knownMachines, st monitor.Standing, err error) {
	if k, err = m.read(ctx); err != nil {
		return k, st, err
	}
	if st, err = called(k.all, id); err == nil && st.Machine == "" {
		err = fmt.Errorf("no machine is called %s: see `monitor machines ls`", plain.Short(id, 100))
	}
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
		return printStandings(out, k.all, k.skipped, func(monitor.Standing) bool { return true })
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

// quietFor is how long no window has come of a machine whose ingester is taken for stopped.
var quietFor = time.Minute

// Run retires a machine, which clears its alarm under the old name, and gives what the
// monitors of all groups remember of it to the new name: all of them carry the commands out. It writes that to a file first, since nothing
// else has it once the machine is retired.
func (f *renameCommand) Run(ctx context.Context, m *machinesCommand, out cli.Output) error {
	if f.Records != "" {
		return f.again(ctx, m, out)
	}
	k, st, err := m.find(ctx, f.Machine)
	if err != nil {
		return err
	}
	f.To = fullName(f.To, st.Machine)
	if err := f.isFree(ctx, k.cfg); err != nil {
		return err
	}
	if ago := time.Since(st.LastWindowAt); ago < quietFor {
		return fmt.Errorf("a window of %s came %v ago, so its ingester still runs: stop it first, and send this again %v after its last window", st.Machine, max(0, ago.Round(time.Second)), quietFor)
	}
	all, err := history.RecordsOf(ctx, k.cfg, st.Machine)
	if err != nil {
		return err
	}
	c := f.command(event.Rename, f.To)
	c.Was = st.Machine
	for _, group := range slices.Sorted(maps.Keys(all)) {
		for _, r := range all[group] {
			c.State = append(c.State, event.Kept{Key: r.Key.String(), Value: r.Value})
		}
	}
	if err := c.Check(); err != nil {
		return fmt.Errorf("command: %w", err)
	}
	text := event.JSON(c)
	if len(text) > event.MaxRename {
		return fmt.Errorf("what %d groups of monitors remember of %s has %.1f MB, and a command at most %d MB: declare tools new that are not in use, which forgets them (`monitor machines new-tool`)",
			len(all), st.Machine, float64(len(text))/(1<<20), event.MaxRename>>20)
	}
	file, err := writeRecords(text)
	if err != nil {
		return err
	}
	quiet := cli.Output{Stdout: io.Discard, Stderr: out.Stderr} // the answer says that all is forgotten
	err = sendCommand(ctx, k.cfg, k.group, f.command(event.Retire, st.Machine), quiet)
	if refused := refusedError(""); errors.As(err, &refused) { // it is not retired
		return errors.Join(err, os.Remove(file))
	}
	if err == nil {
		c.Issued = time.Now()
		err = sendCommand(ctx, k.cfg, k.group, c, out)
	}
	if err == nil {
		return f.done(st.Machine, file, out)
	}
	return fmt.Errorf("%w\nWhat was remembered of %s is in %s. Stop the ingester of %s, retire it if `monitor machines ls` lists it, and send the rename again:\n  monitor machines rename --config %s %s %s --records %s",
		err, st.Machine, file, f.To, m.Config, st.Machine, f.To, file)
}

// done says what the machine is called now, and removes the file of the rename.
func (f *renameCommand) done(was, file string, out cli.Output) error {
	fmt.Fprintf(out.Stdout, "%s is %s now: start its ingester under this name.\n", was, f.To)
	return os.Remove(file)
}

// fullName returns a new name as a path: one without a slash stays on the line of the old one.
func fullName(name, was string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return was[:strings.LastIndexByte(was, '/')+1] + name
}

// isFree reports a new name that no ingester can have, and one under which a group of monitors has judged windows.
func (f *renameCommand) isFree(ctx context.Context, cfg bus.Config) error {
	if err := event.CheckMachine(f.To); err != nil {
		return err
	}
	taken, err := history.RecordsOf(ctx, cfg, f.To)
	if err != nil || len(taken) == 0 {
		return err
	}
	return fmt.Errorf("windows of %s came before (to group %s): stop its ingester and retire it first, so that it can go on with what is remembered of %s", f.To, slices.Sorted(maps.Keys(taken))[0], f.Machine)
}

// writeRecords writes a command that renames a machine to a new file, and returns the file's name.
func writeRecords(command []byte) (string, error) {
	file, err := os.CreateTemp("", "rename-*.json")
	if err == nil {
		_, err = file.Write(command)
		err = errors.Join(err, file.Sync(), file.Close())
	}
	if err != nil {
		return "", fmt.Errorf("cannot keep what is remembered while the machine is renamed: %w: name a folder that can be written in TMPDIR", err)
	}
	return file.Name(), nil
}

// again sends the command in a file again, for a machine that was retired and whose rename failed.
func (f *renameCommand) again(ctx context.Context, m *machinesCommand, out cli.Output) error {
	c, to, err := loadBus(m.Config)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(f.Records)
	if err != nil {
		return err
	}
	var kept event.Command
	if err := json.Unmarshal(text, &kept); err != nil || kept.Action != event.Rename || kept.Was != f.Machine {
		return fmt.Errorf("%s: not a file of `monitor machines rename` of %s: name the machine by its path, as it was called", f.Records, f.Machine)
	}
	f.To = fullName(f.To, kept.Was)
	if err := f.isFree(ctx, to); err != nil {
		return err
	}
	again := f.command(event.Rename, f.To)
	again.Was, again.State = kept.Was, kept.State
	if err := sendCommand(ctx, to, c.Group, again, out); err != nil {
		return err
	}
	return f.done(kept.Was, f.Records, out)
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/history"
)

// aboutMachine is what every command about a machine says.
type aboutMachine struct {
	Machine string `arg:"" help:"Path of the machine, or the last part of it."`
	By      string `required:"" env:"USER" placeholder:"NAME" help:"Who you are."`
	Note    string `placeholder:"TEXT" help:"Why."`
}

type machinesFlags struct {
	Config string       `required:"" placeholder:"FILE" help:"Configuration of the monitor, see examples/gun-drill/monitor.yaml."`
	Ls     struct{}     `cmd:"" help:"List the machines, with their alarms, tools and last windows."`
	Retire aboutMachine `cmd:"" help:"Take a machine off: its alarm and advisories are cleared, and nothing is remembered of it. It begins again with its next window, so stop its ingester first."`
	Rename struct {
		aboutMachine
		To string `arg:"" help:"New path."`
	} `cmd:"" help:"Give a machine another name: its tools, references and alarm go on under it. Stop its ingester, rename, then start the ingester under the new name."`
	NewTool struct {
		aboutMachine
		Tool string `arg:"" help:"The tool, as its windows name it."`
	} `cmd:"" help:"Say that a tool is new under its old name: reground, or a fresh insert. Its reference is learnt again, and its alarm is cleared."`
}

// machines lists machines, or sends a command about one and prints the answer.
func machines(ctx context.Context, cfg bus.Config, group, name string, f machinesFlags, now time.Time, stdout io.Writer) error {
	all, skipped, err := history.Alarms(ctx, cfg, group)
	if err != nil {
		return err
	}
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "machines "), " ")
	if name == "ls" {
		return machinesList(all, skipped, stdout)
	}
	c := event.Command{ID: event.NewCommandID(), Issued: now}
	var which string
	switch name {
	case "retire":
		c.Action, which, c.By, c.Note = event.Retire, f.Retire.Machine, f.Retire.By, f.Retire.Note
	case "rename":
		return rename(ctx, cfg, group, all, f, now, stdout)
	case "new-tool":
		c.Action, which, c.Tool, c.By, c.Note = event.NewTool, f.NewTool.Machine, f.NewTool.Tool, f.NewTool.By, f.NewTool.Note
	default:
		panic("monitor: no command machines " + name)
	}
	st, err := find(all, which)
	if err != nil {
		return err
	}
	c.Machine = st.Machine
	return command(ctx, cfg, group, c, stdout)
}

func machinesList(all []history.Standing, skipped int, stdout io.Writer) error {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "machine\ttool\ttools\talarm\tlast window\tadvisories")
	for _, st := range all {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%d\n", printable(st.Machine, 100), printable(cmp.Or(st.Tool, "-"), 40), max(st.Tools, 1), st.Alarm, when(st.LastWindowAt), len(st.Advisories))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return noteSkipped(skipped, stdout)
}

// rename retires a machine, which clears its alarm under the old name, and has the new name
// go on with what was remembered.
func rename(ctx context.Context, cfg bus.Config, group string, all []history.Standing, f machinesFlags, now time.Time, stdout io.Writer) error {
	st, err := find(all, f.Rename.Machine)
	if err != nil {
		return err
	}
	for _, o := range all {
		if o.Machine == f.Rename.To {
			return fmt.Errorf("%s has judged windows of its own: retire it first, so that it can go on with what is remembered of %s", f.Rename.To, st.Machine)
		}
	}
	records, err := history.Records(ctx, cfg, group)
	if err != nil {
		return err
	}
	c := event.Command{ID: event.NewCommandID(), Machine: f.Rename.To, Action: event.Rename, Was: st.Machine, By: f.Rename.By, Note: f.Rename.Note, Issued: now}
	for _, r := range records[st.Machine] {
		if r.Key.Group == "" {
			return errors.New("only an older monitor has judged this machine: let a monitor of this release judge a window of it first")
		}
		c.State = append(c.State, event.Kept{Key: r.Key.String(), Value: r.Value})
	}
	retire := event.Command{ID: event.NewCommandID(), Machine: st.Machine, Action: event.Retire, By: f.Rename.By, Note: f.Rename.Note, Issued: now}
	if err := command(ctx, cfg, group, retire, stdout); err != nil {
		return err
	}
	c.Issued = time.Now()
	return command(ctx, cfg, group, c, stdout)
}

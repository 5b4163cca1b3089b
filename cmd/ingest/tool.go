package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/ingest"
	"github.com/flank-tcm/flank/internal/source/feed"
)

type toolCommand struct {
	Config  string   `required:"" placeholder:"FILE" help:"Configuration of the running ingest, on this computer."`
	Machine string   `placeholder:"PATH" help:"ISA-95 path of the machine, where the configuration has several."`
	Tool    *string  `placeholder:"NAME" help:"Tool that is in use from now on, for example T08. A tool that was in use before continues with its reference, wear and alarm."`
	New     bool     `help:"Declare the tool new under its name, such as a reground drill or a fresh insert: its reference, wear and alarm start again. Without --tool: the tool in use."`
	Hole    *string  `placeholder:"NAME" help:"Hole that is being cut."`
	Speed   *float64 `placeholder:"RPM" help:"Spindle speed in rev/min."`
}

// Run tells the running ingest what changes at a machine.
func (f *toolCommand) Run(ctx context.Context, out cli.Output) error {
	change := feed.Change{Tool: f.Tool, Hole: f.Hole, SpindleSpeed: f.Speed, New: f.New}
	if err := change.Check(); err != nil {
		return fmt.Errorf("%w (by --tool, --new, --hole or --speed)", err)
	}
	c, err := ingest.Load(f.Config)
	if err != nil {
		return err
	}
	m, err := c.Find(f.Machine)
	if err != nil {
		return err
	}
	now, err := ingest.SetContext(ctx, m, change)
	if err != nil {
		return err
	}
	if f.New {
		tool := now.Tool
		if f.Tool != nil {
			tool = *f.Tool
		}
		fmt.Fprintf(out.Stdout, "%s: tool %s is new from now on\n", now.Machine, tool)
	}
	_, err = fmt.Fprintf(out.Stdout, "%s: tool %s, hole %s, %s\n", now.Machine, cmp.Or(now.Tool, "not known"), cmp.Or(now.Hole, "not known"), speedText(now.SpindleSpeed))
	return err
}

func speedText(rpm float64) string {
	if rpm == 0 {
		return "spindle speed not known"
	}
	return fmt.Sprintf("%v rev/min", rpm)
}

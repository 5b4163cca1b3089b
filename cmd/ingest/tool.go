package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/ingest"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/internal/source/feed"
)

type toolCommand struct {
	cli.ConfigFile
	cli.OneMachine
	Tool  *string  `placeholder:"NAME" help:"Tool that is in use from now on, for example T08. A tool that was in use before continues with its reference, wear and alarm."`
	New   bool     `help:"Declare the tool new under its name, such as a reground drill or a fresh insert: its reference, wear and alarm start again. Without --tool: the tool in use."`
	Hole  *string  `placeholder:"NAME" help:"Hole that is being cut."`
	Speed *float64 `placeholder:"RPM" help:"Spindle speed in rev/min."`
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
	defer f.record(ctx, c, m.Path, out, err) // what the person waits for is printed first
	if err != nil {
		return err
	}
	if f.New {
		tool := now.Tool
		if f.Tool != nil {
			tool = *f.Tool
		}
		fmt.Fprintf(out.Stdout, "%s: tool %s is new from now on\n", now.Machine, plain.Text(tool))
	}
	_, err = fmt.Fprintf(out.Stdout, "%s: tool %s, hole %s, %s%s\n", now.Machine, plain.Text(cmp.Or(now.Tool, "not known")), plain.Text(cmp.Or(now.Hole, "not known")), speedText(now.SpindleSpeed), more(now))
	return err
}

// record puts the change on the topic of the audit.
func (f *toolCommand) record(ctx context.Context, c ingest.Config, machine string, out cli.Output, err error) {
	to, wrong := c.Bus("flank-tool")
	if wrong != nil {
		fmt.Fprintf(out.Stderr, "note: %s has no record of this: %v\n", bus.TopicAudit, wrong)
		return
	}
	r := event.Audit{Action: event.SetContext, Machine: machine}
	if f.New {
		r.Action = event.NewTool
	}
	if f.Tool != nil {
		r.Object = *f.Tool
	}
	cli.AuditCommand(ctx, to, program, "", out.Stderr, r, err)
}

// more describes feed rate, programme and material as far as they are known.
func more(now ingest.Context) (text string) {
	if now.FeedRate != 0 {
		text = fmt.Sprintf(", feed rate %v mm/min", now.FeedRate)
	}
	if now.Programme != "" {
		text += ", programme " + plain.Text(now.Programme)
	}
	if now.Material != "" {
		text += ", material " + plain.Text(now.Material)
	}
	return text
}

func speedText(rpm float64) string {
	if rpm == 0 {
		return "spindle speed not known"
	}
	return fmt.Sprintf("%v rev/min", rpm)
}

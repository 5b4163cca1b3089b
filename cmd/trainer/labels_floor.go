package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/labels"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/internal/train"
)

// floorFlags say who gives labels, and how.
type floorFlags struct {
	cli.Broker
	cli.Person
	cli.Doubted
	cli.QuietFlag
	Method string `placeholder:"TEXT" help:"How it was measured, such as microscope or eye."`
}

// give puts labels on Kafka, once any doubts are answered, and records that.
func (f floorFlags) give(ctx context.Context, out cli.Output, made func(labels.Seen) ([]event.Label, error)) error {
	ctx, cfg, err := topicFlags{Broker: f.Broker}.bus(ctx)
	if err != nil {
		return err
	}
	seen, err := seenTools(ctx, cfg)
	if err != nil && !errors.Is(err, bus.ErrNoTopic) {
		return because(ctx, err)
	}
	there, _, err := labels.Read(ctx, cfg)
	if err != nil {
		return because(ctx, err)
	}
	all, err := made(seen)
	if err != nil {
		return err
	}
	bar := f.Progress(out.Stderr)
	defer bar.Close()
	report := func(phase string) func(int) {
		return func(done int) {
			if len(all) > manyLabels {
				bar.Report(phase, done, len(all))
			}
		}
	}
	doubts, err := f.sign(all, there, seen, report("looking for mistakes"))
	if err != nil {
		return err
	}
	if err := f.Ask(doubts, out); err != nil {
		return err
	}
	err = labels.Write(ctx, cfg, all, report("keeping labels"))
	record := event.Audit{Action: event.AddLabel, Object: fmt.Sprintf("%d labels", len(all))}
	if len(all) == 1 {
		record.Machine, record.Object = all[0].Machine, all[0].Tool+": "+all[0].Known()
	}
	recordLabels(ctx, cfg, f.By, out, record, err)
	if err != nil {
		return because(ctx, err)
	}
	return printLabels(all, out)
}

// manyLabels is from how many labels on progress is shown.
const manyLabels = 500

// sign says in labels who gave them, and returns what may be a mistake.
func (f floorFlags) sign(all, there []event.Label, seen labels.Seen, progress func(done int)) (doubts []string, err error) {
	ofTool := make(map[[2]string][]event.Label)
	for _, l := range there {
		ofTool[[2]string{l.Machine, l.Tool}] = append(ofTool[[2]string{l.Machine, l.Tool}], l)
	}
	for i := range all {
		l := &all[i]
		l.By, l.Method, l.Given = f.By, f.Method, time.Now().UTC()
		l.ID = l.NewLabelID()
		if err := l.Check(); err != nil {
			return nil, fmt.Errorf("label of tool %.40q: %w", l.Tool, err)
		}
		of := [2]string{l.Machine, l.Tool}
		doubts = append(doubts, labels.Classes(wear.Rule{}.StateClass).Doubts(ofTool[of], seen, *l)...)
		ofTool[of] = append(ofTool[of], *l)
		progress(i + 1)
	}
	slices.Sort(doubts)
	return slices.Compact(doubts), nil
}

// seenTools returns the tools that monitors of any group remember. A partition that machines have left has records without a value.
func seenTools(ctx context.Context, cfg bus.Config) (labels.Seen, error) {
	seen := make(labels.Seen)
	err := bus.ReadTopic(ctx, cfg, bus.TopicState, bus.FirstOffset, false, func(m bus.Message) error {
		var tool struct {
			Life     string `json:"life"`
			Declared string `json:"declared"`
		}
		k, ok := event.ParseStateKey(m.Key)
		if !ok || k.Part != event.ToolState || m.Damage != nil || json.Unmarshal(m.Value, &tool) != nil {
			return nil
		}
		if seen[k.Machine] == nil {
			seen[k.Machine] = make(map[string]string)
		}
		seen[k.Machine][k.Tool] = cmp.Or(tool.Life, tool.Declared)
		return nil
	})
	return seen, err
}

// recordLabels puts what a person did to labels on the topic of the audit.
func recordLabels(ctx context.Context, cfg bus.Config, by string, out cli.Output, record event.Audit, err error) {
	cfg.OnRetry = nil // it ends the command's own context
	cli.AuditCommand(ctx, cfg, program, by, out.Stderr, record, because(ctx, err))
}

type labelsAddCommand struct {
	cli.OneMachine
	Tool  string    `required:"" placeholder:"NAME" help:"Tool by the name that its windows have."`
	Life  string    `placeholder:"ID" help:"tool_life of a tool that was declared new, as results have it (default: the tool of that name that monitors saw last)."`
	Wear  string    `placeholder:"LENGTH" help:"Maximum flank wear with its unit: 0.34mm or 340um."`
	Mean  string    `placeholder:"LENGTH" help:"Mean flank wear with its unit."`
	State string    `placeholder:"WORD" help:"State of the tool, such as worn or healthy."`
	At    time.Time `placeholder:"TIME" help:"When it was that worn, as 2026-11-02T06:00:00Z (default: now, unless --hole is given)."`
	Hole  string    `placeholder:"NAME" help:"Hole that the tool had just ended."`
	cli.Remark
	floorFlags
}

// Run adds a label.
func (f *labelsAddCommand) Run(ctx context.Context, out cli.Output) error {
	if f.Machine == "" {
		return errors.New("--machine is missing: name the machine by its path")
	}
	return f.give(ctx, out, func(seen labels.Seen) ([]event.Label, error) {
		name, err := plain.Name(f.Tool)
		if err != nil {
			return nil, fmt.Errorf("--tool: %w", err)
		}
		l := event.Label{Machine: f.Machine, Tool: name, ToolLife: cmp.Or(f.Life, seen[f.Machine][name]), State: f.State, At: f.At.UTC(), Hole: f.Hole, Note: f.Note}
		if l.At.IsZero() && l.Hole == "" {
			l.At = time.Now().UTC().Truncate(time.Second)
		}
		for _, w := range []struct {
			flag, text string
			to         **float64
		}{{"--wear", f.Wear, &l.WearUM}, {"--mean", f.Mean, &l.WearMeanUM}} {
			if w.text == "" {
				continue
			}
			um, err := event.ParseWear(w.text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.flag, err)
			}
			*w.to = &um
		}
		return []event.Label{l}, nil
	})
}

type labelsImportCommand struct {
	File string `arg:"" help:"Wear file, as --wear takes it."`
	cli.OneMachine
	floorFlags
}

// Run adds the rows of a wear file. To import it again changes nothing.
func (f *labelsImportCommand) Run(ctx context.Context, out cli.Output) error {
	ms, warnings, err := wear.Load(f.File)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		fmt.Fprintf(out.Stderr, "note: %s\n", plain.Text(w))
	}
	ms = slices.DeleteFunc(ms, func(m wear.Measurement) bool { return !m.Known() })
	if len(ms) == 0 {
		return fmt.Errorf("%s: no row says how worn a tool was: write a row for each measurement below the header, with the tool and its wear or state", f.File)
	}
	return f.give(ctx, out, func(labels.Seen) (all []event.Label, err error) {
		for _, m := range ms {
			l, err := train.LabelOf(m, f.Machine)
			if err != nil {
				return nil, err
			}
			all = append(all, l)
		}
		return all, joinable(all)
	})
}

// joinable reports rows of a file that training could not join with windows, such as intervals of a tool that overlap.
func joinable(all []event.Label) error {
	var ms []wear.Measurement
	for _, l := range all {
		for _, m := range train.LabelMeasurements([]event.Label{l}, nil) {
			m.Where = l.Note // the line
			ms = append(ms, m)
		}
	}
	_, err := wear.NewJoin(ms, wear.Auto)
	return err
}

type labelsListCommand struct {
	cli.Broker
	cli.OnlyMachine
	cli.Past
	cli.Listing
}

// Run lists labels.
func (f *labelsListCommand) Run(ctx context.Context, out cli.Output) error {
	ctx, cfg, err := topicFlags{Broker: f.Broker}.bus(ctx)
	if err != nil {
		return err
	}
	all, skipped, err := labels.Read(ctx, cfg)
	if err != nil {
		return because(ctx, err)
	}
	if skipped > 0 {
		fmt.Fprintf(out.Stderr, "note: %d messages of %s are not labels\n", skipped, bus.TopicLabels)
	}
	all = slices.DeleteFunc(all, func(l event.Label) bool {
		return l.Revoked != nil && !f.All || !f.Wants(l.Machine)
	})
	if f.IsJSON() {
		return cli.PrintJSON(out.Stdout, append([]event.Label{}, all...))
	}
	return printLabels(all, out)
}

// printLabels prints a table of labels.
func printLabels(all []event.Label, out cli.Output) error {
	w := tabwriter.NewWriter(out.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "id\tmachine\ttool\tlife\twhen\tlabel\tmeasured\tby\tnote")
	for _, l := range all {
		note := l.Note
		if r := l.Revoked; r != nil {
			note = fmt.Sprintf("revoked by %s: %s", r.By, r.Reason)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.ID, plain.Short(l.Machine, 100), plain.Short(l.Tool, 60), cmp.Or(plain.Short(l.ToolLife, 40), "-"), plain.Short(whenOf(l), 60),
			plain.Short(l.Known(), 60), cmp.Or(plain.Short(l.Method, 40), "-"), plain.Short(l.By, 60), cmp.Or(plain.Short(note, 200), "-"))
	}
	return w.Flush()
}

// whenOf says of what part of the tool's life a label is.
func whenOf(l event.Label) string {
	switch {
	case !l.Until.IsZero():
		return clock(l.At) + " to " + clock(l.Until)
	case !l.At.IsZero():
		return clock(l.At)
	}
	return cmp.Or(l.Hole, "all its life")
}

type labelsRevokeCommand struct {
	ID string `arg:"" help:"Id of a label, as 'trainer labels ls' prints it."`
	cli.Why
	cli.Broker
	cli.Person
}

// Run revokes a label, which stays visible.
func (f *labelsRevokeCommand) Run(ctx context.Context, out cli.Output) error {
	ctx, cfg, err := topicFlags{Broker: f.Broker}.bus(ctx)
	if err != nil {
		return err
	}
	all, _, err := labels.Read(ctx, cfg)
	if err != nil {
		return because(ctx, err)
	}
	i := slices.IndexFunc(all, func(l event.Label) bool { return l.ID == f.ID })
	switch {
	case i < 0:
		return fmt.Errorf("%s is not a label: 'trainer labels ls' prints the ids", plain.Short(f.ID, 40))
	case all[i].Revoked != nil:
		return fmt.Errorf("%s was revoked by %s before: %s", f.ID, plain.Text(all[i].Revoked.By), plain.Text(all[i].Revoked.Reason))
	}
	l := all[i]
	l.Revoked = &event.Revoked{By: f.By, Reason: f.Reason, At: time.Now().UTC()}
	err = labels.Write(ctx, cfg, []event.Label{l}, func(int) {})
	recordLabels(ctx, cfg, f.By, out, event.Audit{Action: event.RevokeLabel, Machine: l.Machine, Object: l.ID}, err)
	if err != nil {
		return because(ctx, err)
	}
	return printLabels([]event.Label{l}, out)
}

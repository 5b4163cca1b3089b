package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/internal/history/shift"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
	"github.com/rs/zerolog"
)

type reportCommand struct {
	cli.ConfigFile
	Week  bool   `help:"A whole ISO week, from the first shift of its Monday on: the named week, or the last one."`
	Which string `arg:"" optional:"" name:"week" help:"The week, such as 2026-W47."`
	cli.Span
	cli.WearFile
	cli.Listing `set:"formats=text, markdown, json"`
	cli.QuietFlag
}

// span returns the span that flags name.
func (f *reportCommand) span(now time.Time) (since, until time.Time, err error) {
	if until = f.Until.Time; until.IsZero() {
		until = now
	}
	return f.Since.Time, until, cmp.Or(
		config.Wrong(f.Week || f.Which != "", "--week and --since: give one of them"),
		config.Wrong(f.Since.IsZero(), "--until goes with --since"),
		config.Wrong(!f.Since.Before(until), "--since %s is not before the end, %s", f.Since.Format(time.RFC3339), until.Format(time.RFC3339)))
}

// period returns what the report is about.
func (f *reportCommand) period(p shift.Plan, now time.Time) (since, until time.Time, err error) {
	switch {
	case !f.Since.IsZero() || !f.Until.IsZero():
		return f.span(now)
	case !f.Week:
		return since, until, errors.New("name the time: --week, --week 2026-W47, or --since 2026-11-16T06:00:00Z")
	}
	since, until, err = p.Week(f.Which, now)
	if err == nil && !since.Before(now) {
		err = fmt.Errorf("week %s has not begun", f.Which)
	}
	if err == nil && until.After(now) {
		until = now
	}
	return since, until, err
}

// limitUM is the wear up to which a tool could have been used, where no model says.
const limitUM = 300

// Run prints what happened to all machines.
func (f *reportCommand) Run(ctx context.Context, out cli.Output) error {
	c, to, err := loadBus(f.Config)
	if err != nil {
		return err
	}
	log := cli.Logger(out.Stderr, zerolog.WarnLevel)
	cfg, err := f.config(c, time.Now(), log)
	if err != nil {
		return err
	}
	p := f.Progress(out.Stderr)
	defer p.Close()
	r := shift.New(cfg)
	counted := 0
	results, err := readResults(ctx, to, c.Group, cfg, p, func(e event.Result) {
		if !signal.HasClock(e.End) {
			counted++
		}
		r.Result(e)
	})
	if err != nil {
		return err
	}
	p.Close()
	if counted > 0 {
		log.Warn().Int("windows", counted).Msg("the report leaves out windows of recordings that do not say when they began: give them a start, see docs/how-to/recordings.md")
	}
	alerts, err := readAlerts(ctx, to, c.Group, r)
	if err != nil {
		return err
	}
	if results+alerts > 0 {
		log.Warn().Int(bus.TopicResults, results).Int(bus.TopicAlerts, alerts).Msg("the report leaves out messages of these topics that cannot be read")
	}
	all := r.Finish()
	switch f.Format {
	case "json":
		_, err = out.Stdout.Write(shift.JSON(cfg, all))
	case "markdown":
		_, err = io.WriteString(out.Stdout, shift.Markdown(cfg, all))
	default:
		_, err = io.WriteString(out.Stdout, shift.Text(cfg, all))
	}
	return err
}

// config returns what the report is about, and what counts as wear and as a false
// alarm.
func (f *reportCommand) config(c settings, now time.Time, log zerolog.Logger) (cfg shift.Config, err error) {
	plan, err := shift.ParsePlan(c.Shifts, time.Local)
	if err != nil {
		return cfg, fmt.Errorf("%s: %w", c.file, err)
	}
	cfg = shift.Config{Plan: plan, LimitUM: limitUM}
	if cfg.Since, cfg.Until, err = f.period(plan, now); err != nil {
		return cfg, err
	}
	m, err := model.Load(config.ResolvePath(c.file, c.Model))
	switch {
	case err == nil:
		cfg.LimitUM = cmp.Or(card.RuleOf(m).VBMaxUM, limitUM)
	case f.Wear != "":
		return cfg, fmt.Errorf("--wear needs the label rule of the model: %w", err)
	}
	if f.Wear == "" {
		return cfg, nil
	}
	err = labels(&cfg, m, f.Wear, log)
	return cfg, err
}

// readAlerts adds the alerts and advisories of a group to a report. A message that
// cannot be read is skipped, and skipped counts them.
func readAlerts(ctx context.Context, to bus.Config, group string, r *shift.Report) (skipped int, err error) {
	err = bus.ReadMerged(ctx, to, bus.TopicAlerts, time.Time{}, nil, func(m bus.Message) error {
		ok := true
		switch string(m.Header("ce_type")) {
		case event.AlertType:
			ok = read(&m, group, r.Alert)
		case event.AdvisoryType:
			ok = read(&m, group, r.Advisory)
		}
		if !ok {
			skipped++
		}
		return nil
	})
	return skipped, err
}

// read calls fn with the event in a message, if the group published it. It reports false if it cannot be read.
func read[E event.Published](m *bus.Message, group string, fn func(E)) bool {
	e, ours, err := history.Event[E](m, group)
	if ours {
		fn(*e)
	}
	return err == nil
}

// labels makes cfg ask a wear file whether alarms were false, by the label rule of
// the model.
func labels(cfg *shift.Config, m *model.Model, path string, log zerolog.Logger) error {
	ms, warnings, err := wear.Load(path)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		log.Warn().Msg(w)
	}
	if i := slices.IndexFunc(ms, wear.Measurement.OfRecording); i >= 0 {
		log.Warn().Str("row", ms[i].Where).Msg("rows that name a recording or count its seconds are left out, because alarms are of no recording: write tools, and times by RFC 3339")
	}
	join, err := wear.NewJoin(ms, wear.Auto)
	if err != nil {
		return fmt.Errorf("--wear %s: %w", path, err)
	}
	rule, spec := card.RuleOf(m), m.Window
	if err := rule.CheckClasses(ms); err != nil {
		return fmt.Errorf("--wear %s: %w", path, err)
	}
	cfg.NewTool = func(machine, tool, life string, at time.Time) {
		join.See(wear.Window{Machine: machine, Tool: wear.ToolOf(tool, life), Start: at, Length: spec.Length})
	}
	cfg.Healthy = func(a event.Alert) (healthy, known bool) {
		v, _ := join.At(wear.Window{Machine: a.Machine, Tool: wear.ToolOf(a.Tool, a.ToolLife), Hole: a.Hole, Start: startOf(a, spec), Length: spec.Length})
		if class, named := rule.Named(v.Class); named {
			return class == 0, true
		}
		class, known := rule.Class(v.VBMeanUM, v.VBMaxUM, v.State)
		return class == 0, known
	}
	return nil
}

// startOf returns when the window began that decided an alert.
func startOf(a event.Alert, spec window.Spec) time.Time { return a.At.Add(-spec.Length) }

// readResults calls fn for the results of a group in the report's time, and perhaps others. A
// result that cannot be read is skipped, and skipped counts them.
func readResults(ctx context.Context, to bus.Config, group string, cfg shift.Config, p *cli.Progress, fn func(event.Result)) (skipped int, err error) {
	const steps = 1000
	whole := cfg.Until.Sub(cfg.Since)
	err = bus.ReadMerged(ctx, to, bus.TopicResults, cfg.Since, nil, func(m bus.Message) error {
		ok := read(&m, group, func(r event.Result) {
			fn(r)
			done := int(steps * float64(r.Start.Sub(cfg.Since)) / float64(whole))
			p.Report("reading results", min(max(done, 0), steps-1), steps)
		})
		if !ok {
			skipped++
		}
		return nil
	})
	if err == nil {
		p.Report("reading results", steps, steps)
	}
	return skipped, err
}

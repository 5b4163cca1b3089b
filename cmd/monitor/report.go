package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/internal/shift"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/internal/wear"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

type reportFlags struct {
	Config string    `required:"" placeholder:"FILE" help:"Configuration; of it 'kafka', 'shifts' and the label rule of 'model' are used."`
	Week   bool      `help:"A whole ISO week, from the first shift of its Monday on: the one that is named, or the last one."`
	Which  string    `arg:"" optional:"" name:"week" help:"The week, such as 2026-W47."`
	Since  time.Time `placeholder:"TIME" help:"Instead of a week: from when on, as 2026-11-16T06:00:00Z."`
	Until  time.Time `placeholder:"TIME" help:"And until when (default: now)."`
	Wear   string    `placeholder:"FILE" help:"Wear file: alarms whose window is healthy by its label are false."`
	Format string    `enum:"text,markdown,json" default:"text" help:"text, markdown or json (default: text)."`
	Quiet  bool      `help:"Show no progress."`
}

// period returns what the report is about.
func (f reportFlags) period(p shift.Plan, now time.Time) (since, until time.Time, err error) {
	switch bySpan := !f.Since.IsZero() || !f.Until.IsZero(); {
	case bySpan && (f.Week || f.Which != ""):
		return since, until, errors.New("--week and --since: give one of them")
	case bySpan && f.Since.IsZero():
		return since, until, errors.New("--until goes with --since")
	case bySpan:
		if until = f.Until; until.IsZero() {
			until = now
		}
		if !f.Since.Before(until) {
			return since, until, fmt.Errorf("--since %s is not before the end, %s", f.Since.Format(time.RFC3339), until.Format(time.RFC3339))
		}
		return f.Since, until, nil
	case !f.Week:
		return since, until, errors.New("say of when: --week, --week 2026-W47, or --since 2026-11-16T06:00:00Z")
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

// report prints what happened to all machines.
func report(ctx context.Context, file string, c settings, to bus.Config, f reportFlags, now time.Time, stdout, stderr io.Writer) error {
	plan, err := shift.ParsePlan(c.Shifts, time.Local)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	cfg := shift.Config{Plan: plan, LimitUM: limitUM}
	if cfg.Since, cfg.Until, err = f.period(plan, now); err != nil {
		return err
	}
	log := cli.Logger(stderr, zerolog.WarnLevel)
	m, err := model.Load(config.ResolvePath(file, c.Model))
	switch {
	case err == nil:
		cfg.LimitUM = cmp.Or(train.RuleOf(m).VBMaxUM, limitUM)
	case f.Wear != "":
		return fmt.Errorf("--wear needs the label rule of the model: %w", err)
	}
	if f.Wear != "" {
		if err := labels(&cfg, m, f.Wear, log); err != nil {
			return err
		}
	}
	p := cli.NewProgress(stderr)
	if f.Quiet {
		p = cli.NewProgress(io.Discard)
	}
	defer p.Close()
	r := shift.New(cfg)
	lost, err := readResults(ctx, to, cfg, p, r.Result)
	if err != nil {
		return err
	}
	p.Close()
	skipped := 0
	err = bus.ReadTopic(ctx, to, bus.TopicAlerts, bus.FirstOffset, false, func(m bus.Message) error {
		var ok bool
		switch string(m.Header("ce_type")) {
		case event.AlertType:
			ok = read(m, func(a event.Alert) {
				if history.OfGroup(a.Group, c.Group) {
					r.Alert(a)
				}
			})
		case event.AdvisoryType:
			ok = read(m, func(a event.Advisory) {
				if history.OfGroup(a.Group, c.Group) {
					r.Advisory(a)
				}
			})
		default:
			return nil
		}
		if !ok {
			skipped++
		}
		return nil
	})
	if err != nil {
		return err
	}
	if lost+skipped > 0 {
		log.Warn().Int(bus.TopicResults, lost).Int(bus.TopicAlerts, skipped).Msg("so many messages of these topics cannot be read, and the report is without them")
	}
	all := r.Finish()
	switch f.Format {
	case "json":
		_, err = stdout.Write(shift.JSON(cfg, all))
	case "markdown":
		_, err = io.WriteString(stdout, shift.Markdown(cfg, all))
	default:
		_, err = io.WriteString(stdout, shift.Text(cfg, all))
	}
	return err
}

// read calls fn with the event in a message. It reports false if it cannot be read.
func read[E any](m bus.Message, fn func(E)) bool {
	var e E
	if json.Unmarshal(m.Value, &e) != nil {
		return false
	}
	fn(e)
	return true
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
	join, err := wear.NewJoin(ms, wear.Interpolate)
	if err != nil {
		return fmt.Errorf("--wear %s: %w", path, err)
	}
	rule, spec := train.RuleOf(m), m.Window
	cfg.NewTool = join.Start
	cfg.Healthy = func(a event.Alert) (healthy, known bool) {
		v, _ := join.At(a.Machine, a.Tool, a.Hole, startOf(a, spec))
		class, known := rule.Class(v.VBMeanUM, v.VBMaxUM, v.State)
		return class == 0, known
	}
	return nil
}

// startOf returns when the window began that decided an alert.
func startOf(a event.Alert, spec window.Spec) time.Time { return a.At.Add(-spec.Length) }

// clockMargin is how far the clock of a sensor may be ahead of Kafka's, which keeps a
// result under the end of its window, or under its own time if that is sooner.
const clockMargin = time.Hour

// readResults calls fn for the results of the report's time, and perhaps others. A
// result that cannot be read is skipped, and skipped counts them.
func readResults(ctx context.Context, to bus.Config, cfg shift.Config, p *cli.Progress, fn func(event.Result)) (skipped int, err error) {
	const steps = 100 // of a partition
	partitions, err := bus.Partitions(ctx, to, bus.TopicResults)
	if err != nil {
		return 0, err
	}
	whole := cfg.Until.Sub(cfg.Since)
	for i := range partitions {
		err := bus.ReadRange(ctx, to, bus.TopicResults, i, bus.Range{Since: cfg.Since.Add(-clockMargin)}, func(m bus.Message) error {
			ok := read(m, func(r event.Result) {
				fn(r)
				done := int(steps * float64(r.Start.Sub(cfg.Since)) / float64(whole))
				p.Report("reading results", i*steps+min(max(done, 0), steps-1), partitions*steps)
			})
			if !ok {
				skipped++
			}
			return nil
		})
		if err != nil {
			return skipped, err
		}
		p.Report("reading results", (i+1)*steps, partitions*steps)
	}
	return skipped, nil
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/train/compare"
)

type shadowCommand struct {
	Report shadowReportCommand `cmd:"" help:"Say how the models on trial differ from those that judge, over the windows that both judged." example:"trainer shadow report --for 'acme/spore/bay2/**' --kafka kafka1:9092 --since 2026-11-16T06:00:00Z"`
}

// groupFlag names monitors.
type groupFlag struct {
	Group string `default:"tcm-monitor" help:"Consumer group of the monitors (default: tcm-monitor)."`
}

type shadowReportCommand struct {
	cli.Machines
	cli.Beginning
	groupFlag
	cli.Broker
	cli.WearFile
	cli.Listing
	cli.QuietFlag
}

// Run prints how shadows differ from champions.
func (f *shadowReportCommand) Run(ctx context.Context, out cli.Output) error {
	glob, err := deploy.ParseGlob(f.For)
	if err != nil {
		return fmt.Errorf("--for %w", err)
	}
	ctx, to, err := topicFlags{Broker: f.Broker}.bus(ctx)
	if err != nil {
		return err
	}
	log := cli.Logger(out.Stderr, zerolog.WarnLevel)
	labels, err := compare.LoadLabels(f.Wear, func(text string) { log.Warn().Msg(text) })
	if err != nil {
		return fmt.Errorf("--wear: %w", err)
	}
	p := f.Progress(out.Stderr)
	defer p.Close()
	r := shadowReader{trials: compare.NewTrials(f.Group, f.Since.Time, labels), machines: glob, to: to, progress: p}
	if err := r.read(ctx, f.Since.Time); err != nil {
		return because(ctx, err)
	}
	p.Close()
	if r.skipped > 0 {
		log.Warn().Int("messages", r.skipped).Msg("the report leaves out messages that cannot be read")
	}
	return f.print(out, r.trials.Reports())
}

func (f *shadowReportCommand) print(out cli.Output, reports []*compare.Report) error {
	if f.IsJSON() {
		return cli.PrintJSON(out.Stdout, struct {
			Shadows []*compare.Report `json:"shadows"`
		}{reports})
	}
	if len(reports) == 0 {
		_, err := fmt.Fprintf(out.Stdout, "no shadow of group %s has judged a window of these machines in that time: put one on trial with 'trainer promote ID --for GLOB --shadow 48h'\n", f.Group)
		return err
	}
	for i, r := range reports {
		text, err := r.Format(compare.Text)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(out.Stdout)
		}
		if _, err := out.Stdout.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// shadowReader reads what shadows and champions have published.
type shadowReader struct {
	trials   *compare.Trials
	machines deploy.Glob
	to       bus.Config
	progress *cli.Progress
	skipped  int // messages that cannot be read
}

// read reads the topic of shadows first: of champions only the windows count that a shadow has
// judged too.
func (r *shadowReader) read(ctx context.Context, since time.Time) error {
	if err := r.topic(ctx, bus.TopicShadow, since, r.trials.ShadowResult, r.trials.ShadowAlert); err != nil {
		return err
	}
	from, ok := r.trials.From()
	if !ok {
		return nil
	}
	if err := r.topic(ctx, bus.TopicAlerts, from, nil, r.trials.Alert); err != nil {
		return err
	}
	return r.topic(ctx, bus.TopicResults, from, r.trials.Result, nil)
}

// topic calls result and alert for what has been published to a topic since then.
func (r *shadowReader) topic(ctx context.Context, topic string, since time.Time, result func(*event.Result), alert func(*event.Alert)) error {
	began := time.Now()
	first := since
	err := bus.ReadMerged(ctx, r.to, topic, since, nil, func(m bus.Message) error {
		if !r.machines.Match(m.Key) {
			return nil
		}
		if first.IsZero() {
			first = m.Time
		}
		r.progress.Report("reading "+topic, min(max(int(100*m.Time.Sub(first).Seconds()/max(began.Sub(first).Seconds(), 1)), 0), 99), 100)
		switch typ := string(m.Header("ce_type")); {
		case typ == event.ResultType && result != nil:
			takeEvent(r, &m, result)
		case typ == event.AlertType && alert != nil:
			takeEvent(r, &m, alert)
		}
		return nil
	})
	if err == nil {
		r.progress.Report("reading "+topic, 100, 100)
	}
	return err
}

// takeEvent calls fn with the event in a message, or counts the message as skipped.
func takeEvent[E any](r *shadowReader, m *bus.Message, fn func(*E)) {
	var e E
	if json.Unmarshal(m.Value, &e) != nil {
		r.skipped++
		return
	}
	fn(&e)
}

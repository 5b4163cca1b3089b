package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/train/archive"
	"github.com/flank-tcm/flank/pkg/signal"
)

type archiveCommand struct {
	cli.Broker
	cli.Destination
	Layout      []string `sep:"none" placeholder:"FILE" help:"Layout file of machines, as ingest.yaml names it; repeat it for each layout. It names the columns of features. The simulated gun drill is known without one."`
	SkipUnknown bool     `help:"Leave out features of layouts that no --layout names. Without it they wait on Kafka, and the command ends with an error once the other topics are archived."`
	Keep        string   `placeholder:"TIME" help:"Remove days of machines whose newest message Kafka got longer ago, such as 5y, 18mo, 90d or 36h (default: keep all)."`
	KeepBytes   string   `placeholder:"SIZE" help:"Remove the oldest days of machines while the archive is larger, such as 500GB or 2TB (default: keep all)."`
	Follow      bool     `help:"Go on until a signal comes. It looks at Kafka every ten minutes. Without it the command ends when it has caught up, for cron."`
	cli.QuietFlag
}

// archiveEvery is how long --follow waits between two looks at Kafka. Shorter times would make more and smaller files until a day is over.
const archiveEvery = 10 * time.Minute

// Run archives what Kafka has.
func (a *archiveCommand) Run(ctx context.Context, out cli.Output) (err error) {
	cfg := archive.Config{Dir: a.Out, SkipUnknown: a.SkipUnknown, Now: time.Now, Layouts: []*signal.Layout{signal.GunDrill()}, Log: cli.Logger(out.Stderr, zerolog.InfoLevel)}
	if cfg.Keep, err = parseAge(a.Keep); err != nil {
		return err
	}
	if a.KeepBytes != "" {
		n, err := config.ParseBytes(a.KeepBytes)
		if err != nil || n == 0 {
			return fmt.Errorf("--keep-bytes %s: write a positive number and a unit, such as 500GB or 2TB", a.KeepBytes)
		}
		cfg.KeepBytes = int64(n)
	}
	if a.Follow {
		cfg.Follow = archiveEvery
	}
	for _, file := range a.Layout {
		l, _, err := signal.LoadLayout(file)
		if err != nil {
			return fmt.Errorf("--layout: %w", err)
		}
		cfg.Layouts = append(cfg.Layouts, l)
	}
	if cfg.Bus, err = a.Bus("flank-archive"); err != nil {
		return err
	}
	p := a.Progress(out.Stderr)
	defer p.Close()
	cfg.Progress = p.Report
	patient := ctx
	if !a.Follow { // which waits for a broker that is away
		var cancel context.CancelCauseFunc
		patient, cancel = cli.WithPatience(ctx, &cfg.Bus)
		defer cancel(nil)
	}
	r, err := archive.Run(patient, cfg)
	p.Close()
	printArchived(out, r)
	switch {
	case err != nil && a.Follow && ctx.Err() != nil:
		return nil
	case err != nil && patient.Err() != nil:
		return context.Cause(patient)
	}
	return err
}

func printArchived(out cli.Output, r archive.Report) {
	for _, topic := range slices.Sorted(maps.Keys(r.Rows)) {
		fmt.Fprintf(out.Stdout, "%-9s %d rows\n", topic, r.Rows[topic])
	}
	fmt.Fprintf(out.Stdout, "files     %d written, %s; %d days of machines merged, %d removed\n", r.Files, bus.FormatBytes(r.Bytes), r.Merged, r.Removed)
	for _, why := range slices.Sorted(maps.Keys(r.LeftOut)) {
		fmt.Fprintf(out.Stdout, "left out  %d messages: %s\n", r.LeftOut[why], why)
	}
	for _, where := range slices.Sorted(maps.Keys(r.Lost)) {
		fmt.Fprintf(out.Stdout, "lost      %d offsets of %s, that Kafka removed before they were archived\n", r.Lost[where], where)
	}
}

const day = 24 * time.Hour

// ages are the units of --keep. It has no minutes: 6m looks like months, and would empty the archive.
var ages = []struct {
	unit string
	is   time.Duration
}{{"mo", 30 * day}, {"y", 365 * day}, {"w", 7 * day}, {"d", day}, {"h", time.Hour}}

func parseAge(s string) (age time.Duration, err error) {
	if s == "" {
		return 0, nil
	}
	err = errors.ErrUnsupported
	for _, u := range ages {
		if digits, ok := strings.CutSuffix(s, u.unit); ok {
			var n int
			if n, err = strconv.Atoi(digits); err == nil && n > 200*365 {
				err = errors.New("too long")
			}
			age = time.Duration(n) * u.is
			break
		}
	}
	if err != nil || age <= 0 {
		return 0, fmt.Errorf("--keep %s: write a positive number and a unit, such as 5y, 18mo, 90d or 36h", s)
	}
	return age, nil
}

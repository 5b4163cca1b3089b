package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/labels"
	history "github.com/flank-tcm/flank/internal/history/shift"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/model"
)

// watcher gathers figures of champions. What it keeps grows with machines, days, tools and alerts, not with windows.
type watcher struct {
	set     deploy.Set
	group   string
	config  train.Config
	since   time.Time
	all     []*watched
	known   map[[2]string]*watched // by machine and model
	skipped int                    // messages that cannot be read
}

// watched is a champion with what was gathered.
type watched struct {
	asked
	figures train.Figures
	report  *history.Report
	stands  map[[2]string]bool // drift advisories that stand, by machine and subject
	drifted map[string]bool    // machines with one in the time that counts
}

func newWatcher(set deploy.Set, glob deploy.Glob, group string, config train.Config, now time.Time) *watcher {
	w := &watcher{set: set, group: group, config: config, since: now.Add(-config.Watch.Within), known: make(map[[2]string]*watched)}
	plan, err := history.ParsePlan("00", time.UTC) // a row for each day
	if err != nil {
		panic("watch: " + err.Error())
	}
	for _, d := range set.Deployments() {
		if !d.For.Meets(glob) {
			continue
		}
		x := &watched{
			asked:  asked{For: d.For.String(), Layout: d.Layout, Champion: d.Champion.ID(), deployment: d},
			report: history.New(history.Config{Plan: plan, Since: w.since, Until: now.Add(bus.ClockMargin)}),
			stands: make(map[[2]string]bool), drifted: make(map[string]bool),
		}
		x.figures.Gaps = make(map[train.Why]string)
		x.over = len(d.Shadows) > 0
		for _, s := range d.Shadows {
			x.over = x.over && !now.Before(s.Until)
			verb := "is"
			if !now.Before(s.Until) {
				verb = "was"
			}
			x.Waits = append(x.Waits, fmt.Sprintf("%s %s on trial until %s", s.Model.ID(), verb, clock(s.Until)))
		}
		w.all = append(w.all, x)
	}
	return w
}

// of returns the champion that has published something of a machine; nil if another model has.
func (w *watcher) of(machine, id string) *watched {
	key := [2]string{machine, id}
	x, known := w.known[key]
	if known {
		return x
	}
	for _, c := range w.all {
		if d, ok := w.set.Resolve(machine, c.Layout); ok && d.Change == c.deployment.Change && c.Champion == id {
			x = c
		}
	}
	if len(w.known) < mostPairs {
		w.known[key] = x
	}
	return x
}

// mostPairs is of how many machines and models the champion is remembered: someone may write any names.
const mostPairs = 100_000

// read gathers everything.
func (w *watcher) read(ctx context.Context, f *watchCommand, published []deploy.PublishedModel, out cli.Output) error {
	ctx, cfg, err := f.writing().bus(ctx)
	if err != nil || len(w.all) == 0 {
		return err
	}
	log := cli.Logger(out.Stderr, zerolog.WarnLevel)
	p := f.Progress(out.Stderr)
	defer p.Close()
	steps := []func(context.Context, bus.Config) error{
		func(ctx context.Context, cfg bus.Config) error {
			tools, err := f.labelled(ctx, cfg, w.config, log)
			for _, x := range w.all {
				w.tools(x, published, tools)
			}
			return err
		},
		w.forgotten, w.results, w.alerts,
	}
	for i, step := range steps {
		p.Report("reading what is known of models", i, len(steps))
		if err := step(ctx, cfg); err != nil {
			return because(ctx, err)
		}
	}
	p.Report("reading what is known of models", len(steps), len(steps))
	if w.skipped > 0 {
		log.Warn().Int("messages", w.skipped).Msg("left out messages that cannot be read")
	}
	return nil
}

// labelled returns the tools that have labels: on Kafka, and in the wear file. Of labels in recordings nothing is known.
func (f *watchCommand) labelled(ctx context.Context, cfg bus.Config, c train.Config, log zerolog.Logger) (tools []train.LabelledTool, err error) {
	given, err := f.labelsOnKafka(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	at := make(map[[2]string]int)
	add := func(t train.LabelledTool) {
		key := [2]string{t.Machine, t.Tool}
		i, known := at[key]
		switch {
		case !known:
			at[key], tools = len(tools), append(tools, t)
		default:
			if tools[i].Worn = tools[i].Worn || t.Worn; t.Given.Before(tools[i].Given) {
				tools[i].Given = t.Given
			}
		}
	}
	worn := func(m wear.Measurement) bool {
		class, _ := c.Label.Class(m.VBMeanUM, m.VBMaxUM, cmp.Or(m.State, m.Class))
		return class > 0
	}
	for _, l := range given {
		add(train.LabelledTool{Machine: l.Machine, Tool: wear.ToolOf(l.Tool, l.ToolLife), Given: l.Given, Worn: slices.ContainsFunc(train.LabelMeasurements([]event.Label{l}, nil), worn)})
	}
	file, err := loadWear(f.wearPath(f.Config, c), log)
	if err != nil {
		return nil, err
	}
	for _, m := range file {
		if m.Known() && !m.OfRecording() {
			add(train.LabelledTool{Machine: m.Machine, Tool: m.Tool, Worn: worn(m)})
		}
	}
	return tools, nil
}

// labelsOnKafka returns the labels that a training with these flags learns from.
func (f *watchCommand) labelsOnKafka(ctx context.Context, cfg bus.Config, log zerolog.Logger) ([]event.Label, error) {
	if f.Labels == labelsNone {
		return nil, nil
	}
	floor, err := readLabels(ctx, cfg, log)
	if err != nil && !errors.Is(err, bus.ErrNoTopic) {
		return nil, err
	}
	given := labels.Count(floor)
	if f.Labels == labelsFloor {
		return given, nil
	}
	answers, err := labels.Answers(ctx, cfg)
	return append(given, answers...), err
}

// tools counts the labelled tools of a champion's machines that it has not learnt from.
func (w *watcher) tools(x *watched, published []deploy.PublishedModel, all []train.LabelledTool) {
	var at time.Time
	if i := slices.IndexFunc(published, func(m deploy.PublishedModel) bool { return m.ID == x.Champion }); i >= 0 {
		at = published[i].At
	}
	var own []train.LabelledTool
	for _, t := range all {
		d, ok := w.set.Resolve(t.Machine, x.Layout)
		if t.Machine == "" || ok && d.Change == x.deployment.Change {
			own = append(own, t)
		}
	}
	x.fresh, x.figures.Gaps[train.NewTools] = train.FreshTools(&x.deployment.Champion.Provenance, at, own)
	x.figures.NewTools = len(x.fresh)
	for _, t := range x.fresh {
		if x.deployment.Champion.FirstDay != nil && t.Worn {
			x.figures.FirstWorn++
		}
	}
}

// forgotten notes which champions learnt from windows that Kafka no longer has.
func (w *watcher) forgotten(ctx context.Context, cfg bus.Config) error {
	oldest, err := oldestWindow(ctx, cfg)
	for _, x := range w.all {
		m := x.deployment.Champion
		i := slices.IndexFunc(m.Provenance.Data, func(d model.DataSet) bool {
			return len(d.Offsets) > 0 && d.From.Add(m.Window.Length).Before(oldest)
		})
		if i >= 0 {
			x.Notes = append(x.Notes, fmt.Sprintf("the champion learnt from windows from %s on, and Kafka has windows and features from %s on: a candidate learns from those alone; name an archive with --table to keep the others", clock(m.Provenance.Data[i].From), clock(oldest)))
		}
	}
	return err
}

// oldestWindow returns when the oldest window ended that Kafka has, or has features of; zero if there is none.
func oldestWindow(ctx context.Context, cfg bus.Config) (oldest time.Time, err error) {
	for _, topic := range []string{bus.TopicWindows, bus.TopicFeatures} {
		err := eachPartition(ctx, cfg, topic, func(p int, b beginning) error {
			if b.first == b.end {
				return nil
			}
			at, _, err := timesIn(ctx, cfg, topic, p, bus.Range{From: b.first, To: min(b.first+fewOffsets, b.end)})
			if !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
				oldest = at
			}
			return err
		})
		if err != nil && !errors.Is(err, bus.ErrNoTopic) {
			return oldest, err
		}
	}
	return oldest, nil
}

// eachPartition calls fn with the bounds of each partition of a topic.
func eachPartition(ctx context.Context, cfg bus.Config, topic string, fn func(partition int, b beginning) error) error {
	n, err := bus.Partitions(ctx, cfg, topic)
	for p := 0; p < n && err == nil; p++ {
		b := beginning{read: -1}
		if b.first, b.end, err = bus.Bounds(ctx, cfg, topic, p); err == nil {
			err = fn(p, b)
		}
	}
	return err
}

// fewOffsets is how many offsets in a row of a partition may hold no message: of transactions.
const fewOffsets = 10

// timesIn returns the least and the greatest time that messages in a range say of themselves, zero without any.
func timesIn(ctx context.Context, cfg bus.Config, topic string, partition int, r bus.Range) (oldest, newest time.Time, err error) {
	err = bus.ReadRange(ctx, cfg, topic, partition, r, func(m bus.Message) error {
		at, err := time.Parse(time.RFC3339Nano, string(m.Header("ce_time")))
		if err == nil && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
		if err == nil && at.After(newest) {
			newest = at
		}
		return nil
	})
	return oldest, newest, err
}

// beginning is where a partition begins, and what was read of it first.
type beginning struct {
	first, end int64     // of the partition
	read       int64     // offset of the first message that was read; -1: none
	at         time.Time // when Kafka got it
}

// lost reports whether Kafka has removed messages from since on.
func (b beginning) lost(since time.Time) bool {
	switch {
	case b.first == 0:
		return false
	case b.read < 0:
		return b.first == b.end // all are gone, and no one knows when they came
	}
	return b.read < b.first+fewOffsets && b.at.After(since)
}

// gap notes what is missing for some reasons, of all champions.
func (w *watcher) gap(text string, reasons ...train.Why) {
	for _, x := range w.all {
		for _, why := range reasons {
			x.figures.Gaps[why] = text
		}
	}
}

// topic calls fn for messages of a topic, from a time on, and notes what is gone of them since the time that counts.
func (w *watcher) topic(ctx context.Context, cfg bus.Config, topic string, since time.Time, fn func(*bus.Message), reasons ...train.Why) error {
	err := eachPartition(ctx, cfg, topic, func(p int, b beginning) error {
		err := bus.ReadRange(ctx, cfg, topic, p, bus.Range{Since: since}, func(m bus.Message) error {
			if b.read < 0 {
				b.read, b.at = m.Offset, m.Time
			}
			fn(&m)
			return nil
		})
		if b.lost(w.since) {
			w.gap(fmt.Sprintf("Kafka has removed a part of %s since %s: shorten watch.within, or keep the topic for longer", topic, clock(w.since)), reasons...)
		}
		return err
	})
	if errors.Is(err, bus.ErrNoTopic) {
		w.gap(topic+" is not there", reasons...)
		return nil
	}
	return err
}

// results counts verdicts.
func (w *watcher) results(ctx context.Context, cfg bus.Config) error {
	return w.topic(ctx, cfg, bus.TopicResults, w.since.Add(-bus.ClockMargin), func(m *bus.Message) {
		var r event.Result
		switch {
		case json.Unmarshal(m.Value, &r) != nil || r.Machine != m.Key:
			w.skipped++
		case r.Group == w.group:
			if x := w.of(r.Machine, r.Model); x != nil {
				x.report.Result(r)
			}
		}
	}, train.Unknowns)
}

// alerts counts alarms that people answered, and drift. A drift that stands may have been raised long ago.
func (w *watcher) alerts(ctx context.Context, cfg bus.Config) error {
	return w.topic(ctx, cfg, bus.TopicAlerts, time.Time{}, func(m *bus.Message) {
		switch string(m.Header("ce_type")) {
		case event.AlertType:
			w.alert(m)
		case event.AdvisoryType:
			w.advisory(m)
		}
	}, train.FalseAlarms, train.Drifting)
}

func (w *watcher) alert(m *bus.Message) {
	var a event.Alert
	if json.Unmarshal(m.Value, &a) != nil || a.Machine != m.Key {
		w.skipped++
		return
	}
	if a.Group != w.group || a.At.Before(w.since) {
		return
	}
	for _, x := range w.all {
		if a.State != event.Raised || w.of(a.Machine, a.Model) == x { // what people say comes later, and may come under another model
			x.report.Alert(a)
		}
	}
}

func (w *watcher) advisory(m *bus.Message) {
	var a event.Advisory
	if json.Unmarshal(m.Value, &a) != nil || a.Machine != m.Key {
		w.skipped++
		return
	}
	if a.Group != w.group || a.Kind != event.DriftAdvisory {
		return
	}
	key := [2]string{a.Machine, a.Subject}
	for _, x := range w.all {
		delete(x.stands, key)
	}
	if x := w.of(a.Machine, a.Model); x != nil && a.State == event.Raised {
		x.stands[key] = true
		if !a.At.Before(w.since) {
			x.drifted[a.Machine] = true
		}
	}
}

// answers compares what was gathered with the limits.
func (w *watcher) answers() (all []*asked) {
	all = []*asked{}
	for _, x := range w.all {
		for key := range x.stands {
			x.drifted[key[0]] = true
		}
		f := &x.figures
		f.Drifting = len(x.drifted)
		for _, m := range x.report.Finish() {
			t := m.Total()
			f.Judged += t.Verdicts[event.Healthy] + t.Verdicts[event.Faulty] + t.Verdicts[event.Unknown]
			f.Unknown += t.Verdicts[event.Unknown]
			f.Answered += t.Answered
			f.FalseAlarms += t.False
		}
		x.Due, x.Reasons = w.config.Watch.Ask(*f)
		all = append(all, &x.asked)
	}
	return all
}

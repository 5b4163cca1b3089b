// Package monitor is the monitor as a value: it reads windows from Kafka, judges each
// exactly once, and publishes results and alerts.
//
// It makes features of windows, judges by them, and publishes them with the results. It also
// judges the features that gateways have extracted.
//
// What a machine remembers and decides is package machine, which is pure. Here is the
// Kafka loop around it. A monitor that gets a partition first fences it: from then on the
// broker refuses the previous owner. Then it reads the group's position and the state
// records. Each batch of windows or commands becomes one transaction with the state,
// results, alerts, dead letters and the position: readers of committed messages see all
// of it or nothing. A monitor that loses the partition forgets what it has in memory.
//
// Commands of people come on tcm.commands.v1, keyed by the machine like its windows. What
// cannot be used, a window, a command or the record of a machine, is set aside on
// tcm.dlq.v1 with the reason, and the stream goes on.
package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/evidence"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// Config says what a Monitor does. Bus is needed, and one of Model and Keys.
type Config struct {
	Model *model.Model                // judges every machine of its layout; nil: what tcm.models.v1 deploys judges
	Keys  func() (deploy.Keys, error) // whose models and deployments of tcm.models.v1 count; it is asked again, so that a key may change
	Bus   bus.Config                  // OnStall and OnGap are set by New
	Group string                      // consumer group; empty means "tcm-monitor"
	Alarm alarm.Settings              // zero means alarm.Default

	// Silence is how long no windows of a machine may come before that is an advisory; 0: never.
	Silence time.Duration

	// Evidence keeps the waveforms around alerts; nil: they are not kept. EvidenceURL is the
	// address of the page that serves them, as receivers of alerts reach it; empty
	// if they know.
	Evidence    *evidence.Store
	EvidenceURL string

	// OnWindow, if not nil, sees every window as it is judged, and its layout, which is before
	// its result is durable: after a failure it may see one again. The window has no samples
	// if only its features are there, or if its layout is not the model's. OnAlert,
	// OnAdvisory and OnEvidence, if not nil, see such an event once it was sent. They
	// must not keep the window, and must not block. Partitions call them from
	// goroutines of their own.
	OnWindow   func(*signal.Layout, *window.Window, event.Result)
	OnModels   func(machine string, m web.Models) // every second, also if nothing has changed
	OnAlert    func(event.Alert)
	OnAdvisory func(event.Advisory)
	OnEvidence func(event.Evidence)

	// OnAudit, if not nil, gets a record of every command that was carried out or refused, once
	// readers can see that. It must not block. Partitions call it from goroutines of their own.
	OnAudit func(event.Audit)

	Log zerolog.Logger
}

// Monitor judges the windows of the machines it is assigned. Use New, then Run.
type Monitor struct {
	cfg     Config
	layouts *layouts
	fleet   *fleet
	group   *bus.Group

	deploying sync.Mutex // held while layouts and fleet change

	grace time.Duration // for the batch in hand after its partition was taken away

	fetchPatience time.Duration // for a gateway that is asked for windows

	now    func() time.Time
	ready  readiness
	topics topicCheck
	took   durations
	table  machineTable

	judged, late, repeats, dead, alerts atomic.Uint64
	features, unwatched, panics, alike  atomic.Uint64
	advisories                          atomic.Uint64
	seqGaps, missed                     atomic.Uint64
	offsetGaps, offsets, stalls         atomic.Uint64
	standstills                         atomic.Uint64
	missing                             atomic.Int64
	aside                               asideCounts
}

// New returns a monitor. It reports settings that cannot be used.
func New(cfg Config) (*Monitor, error) {
	cfg.Alarm, cfg.Group = cmp.Or(cfg.Alarm, alarm.Default), cmp.Or(cfg.Group, DefaultGroup)
	if err := cfg.Alarm.Check(); err != nil {
		return nil, err
	}
	if cfg.Silence != 0 && cfg.Silence < minSilence {
		return nil, fmt.Errorf("monitor: silence: %v: must be %v or more, for example 60s, or 0 for none", cfg.Silence, minSilence)
	}
	if err := event.CheckGroup(cfg.Group); err != nil {
		return nil, fmt.Errorf("monitor: %w", err)
	}
	if cfg.Model == nil && cfg.Keys == nil {
		return nil, errors.New("monitor: a monitor needs a model, or the keys of those who deploy models")
	}
	set, models := deploy.Set{}, []*model.Model(nil)
	if cfg.Model != nil {
		set, models = deploy.OfFile(cfg.Model, cfg.Alarm), []*model.Model{cfg.Model}
	}
	known, err := newLayouts(models)
	if err != nil {
		return nil, err
	}
	m := &Monitor{layouts: known, fleet: newFleet(set), grace: 8 * time.Second, fetchPatience: fetchPatience, now: time.Now, took: newDurations()}
	cfg.Bus.OnStall, cfg.Bus.OnGap, cfg.Bus.OnRetry = m.onStall, m.onGap, m.onRetry(cfg.Bus.OnRetry)
	cfg.Bus.OnDamage = func(err error) {
		cfg.Log.Warn().Err(err).Str("event", "message_damaged").Msg("passed over a message that cannot be taken out of its batch")
	}
	cfg.Bus.OnHeal = func(text string) { cfg.Log.Warn().Str("event", "transaction_closed").Msg(text) }
	m.cfg = cfg
	m.group, err = bus.NewGroup(cfg.Bus, cfg.Group, bus.TopicWindows)
	if err != nil {
		return nil, err
	}
	m.group.OnGeneration = func(partitions int) {
		m.topics.again() // topics may have begun to grow before this member joined
		m.ready.generation(partitions)
	}
	m.group.Protocol = bus.MonitorProtocol
	return m, nil
}

// DefaultGroup is the consumer group of monitors that are not given one.
const DefaultGroup = "tcm-monitor"

// machines returns the settings of the machines.
func (c *Config) machines() *machine.Settings {
	return &machine.Settings{Group: c.Group, Alarm: c.Alarm, Silence: c.Silence, Evidence: c.Evidence != nil, EvidenceURL: c.EvidenceURL}
}

// minSilence is the least Config.Silence but none. A window may take that long to
// come without anything being wrong.
const minSilence = 5 * time.Second

// Run judges windows until ctx ends; then the batch in hand is settled and nil
// returned. It waits for a broker that is away. It returns errors that
// do not pass, such as a topic that is missing, before it judges anything.
func (m *Monitor) Run(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { m.watchStandstill(watching) })
	defer watch.Wait()
	defer stop()
	err := m.checkTopics(ctx)
	if err == nil && m.cfg.Keys != nil {
		err = m.runDeployed(ctx, m.serve)
	} else if err == nil {
		err = m.group.Run(ctx, m.serve)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// topicCheck remembers when the topics were looked at last: the partitions of a generation
// begin together.
type topicCheck struct {
	mu     sync.Mutex
	at     time.Time
	last   error
	reader *bus.GrowthReader
	homes  homes

	partitions int // of the machines' topics
}

const topicCheckEvery = 5 * time.Second

// again lets the next look at the topics be a new one.
func (t *topicCheck) again() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at = time.Time{}
}

// checkTopics reports a topic that is missing: dead letters, say, may not be needed for
// months, and then at night. It also reports topics of machines that do not have as many
// partitions as each other, and machines whose state is not where their windows go.
func (m *Monitor) checkTopics(ctx context.Context) error {
	m.topics.mu.Lock()
	defer m.topics.mu.Unlock()
	if now := m.now(); m.topics.at.IsZero() || now.Sub(m.topics.at) > topicCheckEvery {
		m.topics.last = m.askTopics(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		m.topics.at = now
	}
	return m.topics.last
}

func (m *Monitor) askTopics(ctx context.Context) error {
	partitions := make(map[string]int)
	for _, topic := range neededTopics {
		n, err := bus.Partitions(ctx, m.cfg.Bus, topic)
		if err != nil {
			return fmt.Errorf("monitor: %w", err)
		}
		partitions[topic] = n
	}
	if err := bus.Agree(partitions, bus.MachineTopics()); err != nil {
		return fmt.Errorf("monitor: %w", err)
	}
	if m.topics.reader == nil {
		m.topics.reader = bus.NewGrowthReader(m.cfg.Bus)
	}
	g, err := m.topics.reader.Read(ctx)
	if err == nil {
		err = g.Check(partitions[bus.TopicWindows])
	}
	if err != nil {
		return fmt.Errorf("monitor: %w", err)
	}
	m.topics.homes, m.topics.partitions = homes{}, partitions[bus.TopicWindows]
	if len(g.Had) > 1 {
		m.topics.homes, m.topics.partitions = homes{g.State, g.Since}, g.State
	}
	return nil
}

// neededTopics are the topics that must be there.
var neededTopics = []string{bus.TopicWindows, bus.TopicFeatures, bus.TopicState, bus.TopicCommands, bus.TopicResults, bus.TopicAlerts, bus.TopicShadow, bus.TopicDead}

// onRetry returns what hears of trouble with the broker: it passes it on to next,
// and remembers when it was.
func (m *Monitor) onRetry(next func(error, time.Duration)) func(error, time.Duration) {
	return func(err error, since time.Duration) {
		m.ready.trouble(err, since, m.now())
		if next != nil {
			next(err, since)
		}
	}
}

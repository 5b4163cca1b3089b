// Package monitor is the monitor as a value: it reads windows from Kafka,
// judges each exactly once, and reports results and alerts.
//
// What it remembers of a machine is one record on the compacted topic
// tcm.state.v1: which windows were judged, the tool's reference, the alarm, and
// what was decided but perhaps not yet sent. A batch of windows is settled in a
// fixed order, first the state, then results and alerts, then the position in
// the stream. A monitor that dies anywhere in between is followed by one that
// sends the pending messages again under the same ids and drops the windows
// that come again: readers that drop repeats by id see everything once.
//
// Commands of people come on tcm.commands.v1, keyed by the machine like its
// windows, and are settled in the same order. What a machine has heard is part of
// its record, so that a command is carried out once.
//
// What cannot be used, a window, a command or the record of a machine, is set
// aside on tcm.dlq.v1 with the reason, and the stream goes on.
package monitor

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/evidence"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// Config says what a Monitor does. Model and Bus are needed.
type Config struct {
	Model *model.Model
	Bus   bus.Config     // OnStall and OnGap are set by New
	Group string         // consumer group; empty means "tcm-monitor"
	Alarm alarm.Settings // zero means alarm.Default

	// Silence is how long no windows of a machine may come before that is an advisory; 0: never.
	Silence time.Duration

	// Evidence keeps the waveforms around alerts; nil: nobody does. EvidenceURL is the
	// address of the page that serves them, as receivers of alerts reach it; empty
	// if they know.
	Evidence    *evidence.Store
	EvidenceURL string

	// OnWindow, if not nil, sees every window as it is judged, which is before
	// its result is durable: after a failure it may see one again. OnAlert,
	// OnAdvisory and OnEvidence, if not nil, see such an event once it was sent. They
	// must not keep the window, and must not block. Partitions call them from
	// goroutines of their own.
	OnWindow   func(*window.Window, event.Result)
	OnAlert    func(event.Alert)
	OnAdvisory func(event.Advisory)
	OnEvidence func(event.Evidence)

	Log zerolog.Logger
}

// Monitor judges the windows of the machines it is assigned. Use New, then Run.
type Monitor struct {
	cfg   Config
	codec *window.Codec
	group *bus.Group
	out   *bus.Producer
	grace time.Duration // for the batch in hand after its partition was taken away
	now   func() time.Time

	judged, late, repeats, dead, alerts atomic.Uint64
	advisories                          atomic.Uint64
	troubled                            atomic.Pointer[time.Time] // when the broker did not answer, or answered again
	seqGaps, missed                     atomic.Uint64
	offsetGaps, offsets, stalls         atomic.Uint64
	missing                             atomic.Int64
}

// New returns a monitor. It reports settings that cannot be used.
func New(cfg Config) (*Monitor, error) {
	if cfg.Alarm == (alarm.Settings{}) {
		cfg.Alarm = alarm.Default
	}
	if err := cfg.Alarm.Check(); err != nil {
		return nil, err
	}
	if cfg.Silence != 0 && cfg.Silence < MinSilence {
		return nil, fmt.Errorf("monitor: silence: %v: must be %v or more, for example 60s, or 0 for none", cfg.Silence, MinSilence)
	}
	if cfg.Group == "" {
		cfg.Group = "tcm-monitor"
	}
	codec, err := window.NewCodec(cfg.Model.Layout, cfg.Model.Window)
	if err != nil {
		return nil, err
	}
	m := &Monitor{codec: codec, grace: 8 * time.Second, now: time.Now}
	cfg.Bus.OnStall, cfg.Bus.OnGap, cfg.Bus.OnRetry = m.onStall, m.onGap, m.onRetry(cfg.Bus.OnRetry)
	m.cfg = cfg
	m.group, err = bus.NewGroup(cfg.Bus, cfg.Group, bus.TopicWindows)
	if err != nil {
		return nil, err
	}
	if m.out, err = bus.NewProducer(cfg.Bus); err != nil {
		return nil, err
	}
	return m, nil
}

// Close releases the connections.
func (m *Monitor) Close() { m.out.Close() }

// Run judges windows until ctx ends; then the batch in hand is settled and nil
// returned. It waits for a broker that is away. Other errors are those that the
// broker will not change its mind about, such as a topic that is missing, which
// is said before anything is judged.
func (m *Monitor) Run(ctx context.Context) error {
	err := m.checkTopics(ctx)
	if err == nil {
		err = m.group.Run(ctx, m.serve)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// checkTopics reports a topic that is missing: that of dead letters, say, may
// not be needed for months, and then at night. It also reports a state topic
// that is divided otherwise than the windows: the record of a machine would be
// looked for where it is not, and its windows judged again. Commands likewise.
func (m *Monitor) checkTopics(ctx context.Context) error {
	partitions := make(map[string]int)
	for _, topic := range []string{bus.TopicWindows, bus.TopicState, bus.TopicCommands, bus.TopicResults, bus.TopicAlerts, bus.TopicDead} {
		n, err := bus.Partitions(ctx, m.cfg.Bus, topic)
		if err != nil {
			return fmt.Errorf("monitor: %w", err)
		}
		partitions[topic] = n
	}
	if w, s := partitions[bus.TopicWindows], partitions[bus.TopicState]; w != s {
		return fmt.Errorf("monitor: topic %s has %d partitions and %s has %d: they must have as many: "+
			"remove %s, make it anew with `ingest topics apply --partitions %d`, and expect every tool's reference to be learnt again",
			bus.TopicWindows, w, bus.TopicState, s, bus.TopicState, w)
	}
	if w, c := partitions[bus.TopicWindows], partitions[bus.TopicCommands]; w != c {
		return fmt.Errorf("monitor: topic %s has %d partitions and %s has %d: they must have as many: remove %s and make it anew with `ingest topics apply --partitions %d`",
			bus.TopicWindows, w, bus.TopicCommands, c, bus.TopicCommands, w)
	}
	return nil
}

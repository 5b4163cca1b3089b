package ingest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/source"
)

// fetched returns how many windows were sent on demand.
func (m *machine) fetched() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fetcher == nil {
		return 0
	}
	return m.fetcher.Sent()
}

// behind reports whether the gateway has windows that wait to be delivered.
func (m *machine) behind() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gw != nil && m.gw.Stats().Pending > mostBehind
}

// mostBehind is how many windows may wait while raw ones are sent: one is just being cut,
// stored or sent.
const mostBehind = 2

// answerFetches answers commands that ask for raw windows of machines in mode edge, until
// ctx ends. The returned group waits for that.
func (s *Supervisor) answerFetches(ctx context.Context) (*sync.WaitGroup, error) {
	wg, turn := new(sync.WaitGroup), new(sync.Mutex)
	byPath := make(map[string]*gateway.Fetcher)
	for _, m := range s.machines {
		if m.edge() == nil || s.cfg.SpoolOnly {
			continue
		}
		f, err := gateway.NewFetcher(gateway.FetcherConfig{
			Machine: m.Path, SpoolDir: m.SpoolDir(), Length: m.Window.Length, Bus: s.bus, Turn: turn, Behind: m.behind, Log: m.log,
		})
		if err != nil {
			return wg, m.inFile(err)
		}
		byPath[m.Path] = f
		m.mu.Lock()
		m.fetcher = f
		m.mu.Unlock()
		wg.Go(func() { f.Run(ctx) })
	}
	if len(byPath) > 0 {
		wg.Go(func() { s.followCommands(ctx, byPath) })
	}
	return wg, nil
}

const followRetry = 10 * time.Second // after an error

// followCommands hands the commands of machines to their fetchers. It reads the topic from
// its beginning: a fetcher knows what it has answered, and what has expired.
func (s *Supervisor) followCommands(ctx context.Context, byPath map[string]*gateway.Fetcher) {
	take := func(_ bus.Followed, msgs []bus.Message, _ int64) error {
		for _, m := range msgs {
			if f := byPath[m.Key]; f != nil {
				if c, err := event.ReadCommand(m.Key, m.Value); err == nil && c.Action == event.Fetch { // what no monitor would read either is none
					f.Take(*c)
				}
			}
		}
		return nil
	}
	begin := func(bus.Followed) bus.Start { return bus.Start{Offset: bus.FirstOffset} }
	for ; ctx.Err() == nil; _ = source.SystemClock.Wait(ctx, followRetry) {
		err := bus.Follow(ctx, s.bus, bus.TopicCommands, bus.Following{Start: begin, Take: take})
		if ctx.Err() == nil {
			s.commands.failed(err, time.Now(), s.log)
		}
	}
}

// commandFailures counts how often the topic of commands could not be read.
type commandFailures struct {
	n    atomic.Uint64
	said time.Time // when the log last said so
}

// failed counts a failure at now, and says so once a minute.
func (f *commandFailures) failed(err error, now time.Time, log zerolog.Logger) {
	n := f.n.Add(1)
	if now.Sub(f.said) < time.Minute {
		return
	}
	f.said = now
	log.Error().Err(err).Uint64("failures", n).Msg("cannot read commands: windows of machines in mode edge cannot be fetched, everything else goes on; give this program the right to read the topic " + bus.TopicCommands)
}

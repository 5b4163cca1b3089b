// Package ingest runs the gateways of a plant's machines, as ingest.yaml configures
// them: it opens their sources, starts a machine that has failed again, and answers
// over HTTP with metrics, health and readiness.
//
// A machine is ingested by one gateway at a time. Machines do not depend on each
// other: a bad recording, a spool in use or a full disk stops one of them only.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/bus/buslog"
	"github.com/flank-tcm/flank/internal/metric"
	"github.com/flank-tcm/flank/internal/source"
)

// Supervisor ingests the machines of a configuration. Use New, then Run once.
type Supervisor struct {
	cfg      Config
	bus      bus.Config
	machines []*machine
	send     metric.Histogram
	log      zerolog.Logger
	commands commandFailures
}

// New returns a supervisor. Machines write a summary to stdout when they end. New
// reports a configuration that cannot be used.
func New(c Config, log zerolog.Logger, stdout io.Writer) (*Supervisor, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	to, err := c.Bus("flank-ingest")
	if err != nil {
		return nil, err
	}
	if c.SpoolOnly {
		log.Warn().Str("event", "spool_only").Msg("spool only: windows are kept and none is sent; the next start without spool_only sends them")
	}
	s := &Supervisor{cfg: c, bus: to, log: log, send: NewSend()}
	stdout = zerolog.SyncWriter(stdout) // several machines write lines to it
	for _, m := range c.All() {
		m := newMachine(c, m, to, log, stdout)
		m.onSent = ObserveSent(s.send)
		s.machines = append(s.machines, m)
	}
	return s, nil
}

// Run ingests until every source has ended or ctx ends. It returns the errors of
// machines that were not started again: of a single machine, and of recordings that
// cannot be read.
func (s *Supervisor) Run(ctx context.Context) error {
	web, err := s.serve()
	if err != nil {
		return fmt.Errorf("%s: %w", s.cfg.file, err)
	}
	defer web.close()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go buslog.WatchCertificates(watching, s.bus, s.log)
	for _, m := range s.machines {
		go m.watch(watching)
	}
	fetching, err := s.answerFetches(watching)
	if err != nil {
		return err
	}
	defer func() { stop(); fetching.Wait() }()
	if err := s.sendLedgers(watching, fetching); err != nil {
		return err
	}
	if len(s.machines) == 1 {
		return s.machines[0].run(ctx)
	}
	errs := make([]error, len(s.machines))
	var wg sync.WaitGroup
	for i, m := range s.machines {
		wg.Go(func() { errs[i] = m.keepRunning(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// backoff returns how long a machine waits before it is started again: the more often
// it has failed, the longer.
func backoff(failures int) time.Duration {
	return min(time.Second<<min(failures, 6), time.Minute)
}

// wellAfter is how long a machine must have run for its failures before not to count.
const wellAfter = 10 * time.Minute

// keepRunning ingests a machine and starts it again when it has failed. A recording
// that cannot be read is not read again: it would fail the same way.
func (m *machine) keepRunning(ctx context.Context) error {
	for failures := 0; ; failures++ {
		began := time.Now()
		err := m.run(ctx)
		if err == nil {
			return nil
		}
		err = fmt.Errorf("%s: %w", m.Path, err)
		if m.Source.recording() || ctx.Err() != nil {
			m.log.Error().Err(err).Msg("stopped ingesting this machine; other machines are unaffected")
			return err
		}
		if time.Since(began) > wellAfter {
			failures = 0
		}
		wait := backoff(failures)
		m.log.Error().Err(err).Dur("retry_in_ms", wait).Msgf("ingesting failed; retrying in %v; other machines are unaffected", wait)
		if source.SystemClock.Wait(ctx, wait) != nil {
			return nil // the error is in the log; the program ends for another reason
		}
		m.mu.Lock()
		m.restarts++
		m.mu.Unlock()
	}
}

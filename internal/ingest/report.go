package ingest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
)

const (
	ledgerEvery = time.Minute
	idleAfter   = 10 * time.Second // without a sample
	sendWithin  = 10 * time.Second // a ledger that Kafka does not take is not sent again: the next one says more
)

// saidLedger is what the last ledger that was sent has said.
type saidLedger struct {
	at                 time.Time
	lost, idle, silent bool
}

// dueLedger returns what the monitors of a machine are to know of its samples, at the end of each minute and at once
// when too many of them begin or cease to be lost, or to come.
func (m *machine) dueLedger(now time.Time) (l event.SourceLedger, due bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.losses) == 0 || m.state == done || m.state == waiting {
		return l, false
	}
	if m.said.at.IsZero() { // the first one does not wait for a minute
		m.said.at = now.Add(idleAfter - ledgerEvery)
	}
	idle, silent, lost := now.Sub(m.fresh.at), m.silentRates(now), m.losses.over(m.rate, m.Source.MaxLost)
	says := saidLedger{now, lost != nil, idle >= idleAfter, silent != nil}
	if was := m.said; says.lost == was.lost && says.idle == was.idle && says.silent == was.silent && now.Sub(was.at) < ledgerEvery {
		return l, false
	}
	last := m.losses[len(m.losses)-1]
	if len(m.hour) == 0 {
		m.hour = m.hour.note(m.losses[0].at, m.losses[0].ledger, sumWithin)
	}
	sum := append(m.hour[:len(m.hour):len(m.hour)], last).sum()
	if now.Sub(m.hour[len(m.hour)-1].at) >= ledgerEvery {
		m.hour = m.hour.note(last.at, last.ledger, sumWithin)
	}
	l = event.SourceLedger{Machine: m.Path, Ledger: sum, Lost: lost, Silent: silent}
	if says.idle {
		l.Idle, l.Repeating = idle.Seconds(), now.Sub(m.came.at) < idleAfter
	}
	m.said = says
	return l, true
}

// sendLedgers sends the ledgers of all machines until ctx ends; wg waits for that.
func (s *Supervisor) sendLedgers(ctx context.Context, wg *sync.WaitGroup) error {
	if s.cfg.SpoolOnly {
		return nil
	}
	out, err := bus.NewProducer(s.bus)
	if err != nil {
		return fmt.Errorf("%s: %w", s.cfg.file, err)
	}
	wg.Go(func() {
		defer out.Close()
		for {
			select {
			case now := <-time.After(lookEvery):
				s.sendDue(ctx, out, now)
			case <-ctx.Done():
				return
			}
		}
	})
	return nil
}

func (s *Supervisor) sendDue(ctx context.Context, out *bus.Producer, now time.Time) {
	var msgs []bus.Message
	for _, m := range s.machines {
		if l, due := m.dueLedger(now); due {
			msgs = append(msgs, envelope.Ledger(l))
		}
	}
	if len(msgs) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	if err := out.Send(ctx, msgs); err != nil {
		s.log.Debug().Err(err).Int("machines", len(msgs)).Msg("monitors do not know what became of the samples of the last minute: Kafka did not take it")
	}
}

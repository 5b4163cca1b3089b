package monitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/evidence"
	"github.com/flank-tcm/flank/pkg/window"
)

const (
	evidenceSpan     = 5 * time.Second        // before and after the window that decided
	evidencePatience = 15 * time.Second       // for the windows after it, by our clock
	evidenceTick     = 200 * time.Millisecond // how often somebody looks whether they are there
)

// debt is evidence that an alert has promised. It is part of the machine's record
// until the event of it is: a monitor that dies is followed by one that keeps the
// evidence. The windows are read from Kafka again, so nothing but this is held.
type debt struct {
	Name     string    `json:"name"` // of the evidence
	Alert    string    `json:"alert"`
	Incident string    `json:"incident"`
	Model    string    `json:"model"`
	Epoch    string    `json:"epoch"`
	At       time.Time `json:"at"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Offset   int64     `json:"offset"` // of the first window of the span

	since time.Time // when this monitor first knew of it
}

// check reports a debt that no monitor made. Its name becomes part of a path.
func (d debt) check(machine string) error {
	if err := evidence.CheckName(d.Name); err != nil {
		return err
	}
	if !strings.HasPrefix(d.Alert, machine+"/") || !d.From.Before(d.To) {
		return fmt.Errorf("evidence %s is of alert %.64q, from %v to %v", d.Name, d.Alert, d.From, d.To)
	}
	return nil
}

// promise adds to the alerts that a window raised where its waveform will be, and
// owes it.
func (s *partition) promise(m *machine, alerts []event.Alert, start time.Time) {
	if s.cfg.Evidence == nil {
		return
	}
	for i := range alerts {
		a := &alerts[i]
		if len(a.Trace) == 0 {
			continue
		}
		d := debt{
			Name: evidence.Name(a.Incident, a.Seq), Alert: a.ID, Incident: a.Incident, Model: a.Model, Epoch: a.Epoch,
			At: a.At, From: a.At.Add(-evidenceSpan), To: a.At.Add(evidenceSpan), Offset: m.offset,
		}
		if start.Before(d.From) { // windows may be long
			d.From = start
		}
		for _, w := range m.seen {
			if w.End.After(d.From) {
				d.Offset = w.Offset
				break
			}
		}
		a.Evidence = &event.EvidenceLink{URL: evidence.URL(s.cfg.EvidenceURL, d.Name), From: d.From, To: d.To}
		m.owed = append(m.owed, d)
	}
}

// payDebts keeps the evidence that the partition's machines owe, one after the
// other, until ctx ends. It holds up no window: reading and writing is done
// without the lock.
func (s *partition) payDebts(ctx context.Context) error {
	tick := time.NewTicker(evidenceTick)
	defer tick.Stop()
	for {
		m, d := s.due(s.now())
		if m == nil {
			select {
			case <-tick.C:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		e := s.gather(ctx, m.name, d)
		if ctx.Err() != nil {
			return ctx.Err() // whoever has the partition next does it
		}
		if err := s.pay(ctx, m, d, e); err != nil {
			return err
		}
	}
}

// due returns evidence that is not worth waiting for any longer: the windows after
// the alert are there, or have not come for so long that they will not.
func (s *partition) due(now time.Time) (*machine, debt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.machines {
		for i := range m.owed {
			d := &m.owed[i]
			if d.since.IsZero() {
				d.since = now
			}
			over := m.epochs[len(m.epochs)-1].ID != d.Epoch // no more windows of it
			if over || !m.newest.Before(d.To) || now.Sub(d.since) >= evidencePatience {
				return m, *d
			}
		}
	}
	return nil, debt{}
}

// errEnough ends the reading of windows.
var errEnough = errors.New("enough")

// gather reads the windows of a span again, keeps them, and says what became of it.
func (s *partition) gather(ctx context.Context, machine string, d debt) event.Evidence {
	e := event.Evidence{
		ID: d.Alert + "/evidence", Alert: d.Alert, Machine: machine, Incident: d.Incident,
		URL: evidence.URL(s.cfg.EvidenceURL, d.Name), From: d.From, To: d.To,
	}
	about := fmt.Sprintf("%s %s: waveform of %s to %s", short(machine), d.Incident, d.From.Format(clock), d.To.Format(clock))
	if s.cfg.Evidence == nil {
		e.Text = about + " not kept: the monitor has no evidence.dir any more."
		return e
	}
	facts := evidence.Facts{Alert: d.Alert, Machine: machine, Incident: d.Incident, Model: d.Model, At: d.At, From: d.From, To: d.To}
	k, err := s.cfg.Evidence.Write(d.Name, s.codec, facts, func(add func(*window.Window) error) error {
		var w window.Window
		next := uint64(0) // windows may have been sent again
		err := bus.ReadRange(ctx, s.cfg.Bus, bus.TopicWindows, s.id, bus.Range{From: d.Offset}, func(m bus.Message) error {
			if m.Key != machine || Open(s.codec, &m, &w) != nil || w.EpochString() != d.Epoch || w.Seq < next {
				return nil
			}
			if !w.Start.Before(d.To) {
				return errEnough
			}
			next = w.Seq + 1
			return add(&w)
		})
		if errors.Is(err, errEnough) {
			return nil
		}
		return err
	})
	switch e.Windows, e.Bytes, e.SHA256 = k.Windows, k.Bytes, k.SHA256; {
	case err != nil:
		e.Text = fmt.Sprintf("%s not kept: %v.", about, err)
	case k.Missing > 0:
		e.Text = fmt.Sprintf("%s kept, but for %v of it, of which no window came: %d windows, %.1f MB.", about, k.Missing, k.Windows, float64(k.Bytes)/1e6)
	default:
		e.Complete = true
		e.Text = fmt.Sprintf("%s kept: %d windows, %.1f MB.", about, k.Windows, float64(k.Bytes)/1e6)
	}
	return e
}

// pay tells what became of evidence, which then is not owed any more.
func (s *partition) pay(ctx context.Context, m *machine, d debt, e event.Evidence) error {
	batch, cancel := outlive(ctx, s.grace)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	m.owed = slices.DeleteFunc(m.owed, func(o debt) bool { return o.Alert == d.Alert })
	p := pending{event.EvidenceType, event.JSON(e)}
	msg, err := p.message()
	if err != nil {
		return err
	}
	if err := s.out.Send(batch, []bus.Message{s.record(m, d.To, []pending{p})}); err != nil {
		return fmt.Errorf("monitor: state: %w", err)
	}
	if err := s.out.Send(batch, []bus.Message{msg}); err != nil {
		return fmt.Errorf("monitor: evidence: %w", err)
	}
	log := s.log.Info()
	if !e.Complete {
		log = s.log.Warn()
	}
	log.Str("event", "evidence").Str("machine", e.Machine).Str("alert", e.Alert).Str("url", e.URL).Msg(e.Text)
	if s.cfg.OnEvidence != nil {
		s.cfg.OnEvidence(e)
	}
	return nil
}

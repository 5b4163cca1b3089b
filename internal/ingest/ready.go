package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/source"
)

const (
	// readyWithin is how long delivery, the disk or the source of a machine may stand
	// still before the machine is not ready. With lookEvery that shows within 5 s.
	readyWithin = 4 * time.Second
	lookEvery   = time.Second
)

// observed is what the readiness of a machine depends on, at one moment.
type observed struct {
	state    string
	problem  error     // of failed
	lookedAt time.Time // when the spool was last tried
	refused  error     // why it could not be written then

	needsBroker bool      // samples come from an MQTT broker
	connected   time.Time // when that was last seen connected, or the machine was started
	contested   error     // another program takes the client id

	spoolOnly bool // nothing is sent

	lost   []event.LostSamples // of the last minute; nil if they are not too many
	silent []float64           // rates in Hz of which no sample comes, see feed.Silent

	gateway.Progress
}

// notReady returns why a machine is not ready at a time; empty if it is.
func (o observed) notReady(now time.Time) string {
	switch {
	case o.state == done:
		return ""
	case o.state == waiting:
		return "ingesting has not begun"
	case o.state == failed:
		return fmt.Sprintf("ingesting failed and is retried: %v", o.problem)
	case o.spoolProblem(now) != "":
		return o.spoolProblem(now)
	case o.contested != nil:
		return o.contested.Error()
	case o.needsBroker && lateAt(now, o.connected) > 0:
		return fmt.Sprintf("the MQTT broker that samples come from has not been connected for %v", lateAt(now, o.connected))
	case o.lost != nil:
		return lossText(o.lost)
	case o.silent != nil:
		return silentText(o.silent)
	case o.spoolOnly:
		return ""
	case o.Pending > 0 && lateAt(now, o.Sending) > 0:
		text := fmt.Sprintf("Kafka has taken no window for %v, %d wait in the spool", lateAt(now, o.Sending), o.Pending)
		if o.Delivery != nil {
			text += fmt.Sprintf(": %v", o.Delivery)
		}
		return text
	}
	return ""
}

// spoolProblem returns why the spool takes no windows at a time; empty if it does, and for a machine
// that is not being ingested.
func (o observed) spoolProblem(now time.Time) string {
	switch {
	case o.state == done, o.state == waiting, o.state == failed:
		return ""
	case o.refused != nil:
		return fmt.Sprintf("the spool cannot be written: %v", o.refused)
	case o.Refused != nil:
		return fmt.Sprintf("the spool does not take windows: %v", o.Refused)
	case lateAt(now, o.Storing) > 0:
		return fmt.Sprintf("the disk of the spool has taken no window for %v", lateAt(now, o.Storing))
	case lateAt(now, o.lookedAt) > 0:
		return fmt.Sprintf("the disk of the spool has not answered for %v", lateAt(now, o.lookedAt))
	}
	return ""
}

// lateAt returns for how long something stands still that stands still for too long; 0 for anything else.
func lateAt(now, since time.Time) time.Duration {
	if since.IsZero() || now.Sub(since) <= readyWithin {
		return 0
	}
	return now.Sub(since).Round(time.Second)
}

// observe returns the machine as it is now.
func (m *machine) observe() observed {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := observed{
		state: m.state, problem: m.problem, lookedAt: m.lookedAt, refused: m.refused,
		needsBroker: m.Source.Kind == "mqtt", connected: m.connected, spoolOnly: m.all.SpoolOnly, lost: m.losses.over(m.rate, m.Source.MaxLost),
		silent: m.silentRates(time.Now()),
	}
	if m.gw != nil {
		o.Progress = m.gw.Progress()
	}
	for _, f := range m.feeds() {
		o.contested = cmp.Or(f.Err(), o.contested) // of samples rather than of tools
	}
	return o
}

// watch looks at the spool and the broker until ctx ends.
func (m *machine) watch(ctx context.Context) {
	for said := time.Now(); ; {
		m.look(time.Now(), tryFolder)
		if text := m.spoolOnly(time.Now()); text != "" && time.Since(said) >= spoolOnlyEvery {
			said = time.Now()
			m.log.Warn().Str("event", "spool_only").Msg(text)
		}
		if source.SystemClock.Wait(ctx, lookEvery) != nil {
			return
		}
	}
}

// look notes whether the spool can be written, and whether the broker is connected.
// Where a window was stored a moment ago, the spool can be written, and try is not
// called.
func (m *machine) look(now time.Time, try func(dir string) error) {
	m.mu.Lock()
	first := m.lookedAt.IsZero()
	if first { // readyWithin counts from now on
		m.lookedAt, m.connected = now, now
	}
	if m.feed != nil && m.feed.Stats().Senders > 0 {
		m.connected = now
	}
	stored := m.gw != nil && now.Sub(m.gw.Progress().Stored) < lookEvery
	running := m.state == running
	m.mu.Unlock()
	samples := m.health().Samples
	var err error
	if running && !stored {
		err = try(m.SpoolDir())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lookedAt, m.refused, m.losses = now, err, m.losses.note(now, samples, lossWithin)
	m.came.note(samples.Received, now)
	m.fresh.note(samples.Received-samples.Unused[repeat], now)
	if rates := m.silentRates(now); rates != nil {
		if _, say := m.silent.Note(now, refusalsEvery); say {
			m.log.Warn().Floats64("rates_hz", rates).Msg(silentText(rates))
		}
	}
	if lost := m.losses.over(m.rate, m.Source.MaxLost); lost != nil {
		if _, say := m.losing.Note(now, refusalsEvery); say {
			m.log.Warn().Str("event", "samples_lost").Msg(lossText(lost))
		}
	}
}

// silentRates returns the rates of a live source of which no sample comes while others do. The caller holds m.mu.
func (m *machine) silentRates(now time.Time) []float64 {
	if m.feed == nil {
		return nil
	}
	return m.feed.Silent(now)
}

// silentText says what rates without samples mean.
func silentText(rates []float64) string {
	return fmt.Sprintf("no new samples of %s come while others do, or they are refused, and no window can be cut: look at the log, at the sensors of that rate and at what sends their samples", event.RatesText(rates))
}

// tryFolder creates a file and removes it. It does not sync: windows do, and a disk
// that only waits is not worn by it.
func tryFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.WriteFile("ready", []byte("x"), 0o600); err != nil {
		return err
	}
	return root.Remove("ready")
}

// whyNotReady returns why the machine is not ready; empty if it is.
func (m *machine) whyNotReady(now time.Time) string {
	look := m.beginLook()
	select {
	case <-look.done:
		return look.seen.notReady(now)
	case <-time.After(time.Second):
		return "the disk of the spool does not answer"
	}
}

// look is an observation, which waits where the disk hangs in the middle of a removal.
type look struct {
	done chan struct{} // closed when seen is there
	seen observed
}

// beginLook returns the observation that is on its way, or begins one: while the disk hangs, there is one
// for all who ask.
func (m *machine) beginLook() *look {
	m.looking.Lock()
	defer m.looking.Unlock()
	if m.looks != nil {
		return m.looks
	}
	l := &look{done: make(chan struct{})}
	m.looks = l
	go func() {
		l.seen = m.observe()
		m.looking.Lock()
		defer m.looking.Unlock()
		m.looks = nil
		close(l.done)
	}()
	return l
}

// whyNotReady returns for each machine why it is not ready; empty if it is. The machines are looked at
// together: a disk that hangs costs a second, however many of them write to it.
func (s *Supervisor) whyNotReady(now time.Time) []string {
	whys := make([]string, len(s.machines))
	var wg sync.WaitGroup
	for i, m := range s.machines {
		wg.Go(func() { whys[i] = m.whyNotReady(now) })
	}
	wg.Wait()
	return whys
}

// Ready reports the machines that are not ready and why, or nil. It is safe for concurrent use.
func (s *Supervisor) Ready() error {
	var errs []error
	for i, why := range s.whyNotReady(time.Now()) {
		if why != "" {
			errs = append(errs, fmt.Errorf("%s: %s", s.machines[i].Path, why))
		}
	}
	return errors.Join(errs...)
}

// readyz says which machines are not ready, and why.
func (s *Supervisor) readyz(now func() time.Time) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		code, reasons, spooling := http.StatusOK, map[string]string{}, map[string]string{}
		for i, why := range s.whyNotReady(now()) {
			if m := s.machines[i]; why != "" {
				code, reasons[m.Path] = http.StatusServiceUnavailable, why
			} else if text := m.spoolOnly(now()); text != "" {
				spooling[m.Path] = text
			}
		}
		answer := map[string]any{"ready": code == http.StatusOK, "not_ready": reasons}
		if len(spooling) > 0 {
			answer["spool_only"] = spooling
		}
		writeJSON(w, code, answer)
	}
}

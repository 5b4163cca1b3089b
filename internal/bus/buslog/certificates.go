package buslog

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
)

const (
	lookEvery = 10 * time.Second // at the certificates: the broker's is known after a connection
	warnEvery = 24 * time.Hour
)

// WatchCertificates warns of certificates that expire soon, until ctx ends.
func WatchCertificates(ctx context.Context, cfg bus.Config, log zerolog.Logger) {
	if cfg.TLS == nil {
		return
	}
	w := certificateWatch{log: log, warnedAt: make(map[string]time.Time)}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		certificates, err := cfg.Certificates()
		if err == nil { // otherwise the next connection reports it
			w.look(certificates, time.Now())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// certificateWatch remembers of which certificates it has warned.
type certificateWatch struct {
	log      zerolog.Logger
	warnedAt map[string]time.Time // when the log last warned, by whose certificate
}

func (w *certificateWatch) look(certificates []bus.Certificate, now time.Time) {
	for _, c := range certificates {
		if c.Left(now) >= bus.RenewAhead {
			delete(w.warnedAt, c.Whose)
			continue
		}
		if at, ok := w.warnedAt[c.Whose]; ok && now.Sub(at) < warnEvery {
			continue
		}
		w.warnedAt[c.Whose] = now
		w.log.Warn().Str("event", "certificate_expires").Str("certificate", c.Whose).Str("name", c.Name).
			Time("not_after", c.NotAfter).Float64("days_left", c.DaysLeft(now)).
			Msg("a certificate for Kafka expires soon: replace its file; no restart is needed")
	}
}

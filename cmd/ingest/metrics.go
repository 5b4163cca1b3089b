package main

import (
	"net/http"
	"sync"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/gateway"
	"github.com/flank-tcm/flank/internal/metric"
)

// live is what the metrics tell of: the gateway at hand, and those that were
// before it.
type live struct {
	machine string
	bus     bus.Config

	mu   sync.Mutex
	past gateway.Stats
	gw   *gateway.Gateway // nil: none at hand
}

// show makes gw the one at hand, until the returned function is called, which
// must be before gw is closed.
func (l *live) show(gw *gateway.Gateway) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gw = gw
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.past, l.gw = l.past.Add(gw.Stats()), nil
	}
}

func (l *live) stats() gateway.Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gw == nil {
		return l.past
	}
	return l.past.Add(l.gw.Stats())
}

// handler answers at /metrics, and at /livez while the program runs.
func (l *live) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", metric.Handler(func() []metric.Metric {
		return append(l.stats().Metrics(l.machine), cli.CertificateMetrics(l.bus, time.Now())...)
	}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	return mux
}

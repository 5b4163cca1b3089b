package ingest

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/metric"
	"github.com/flank-tcm/flank/internal/source/feed"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// webServer is what a running ingest serves over HTTP: /metrics, /livez, /readyz and
// /healthz without a login, and /v1/context with the token that is in a file of the
// spool's folder.
type webServer struct {
	srv      *http.Server
	listener net.Listener
	controls []string // files to remove
}

// serve starts the server, if the configuration names an address for metrics, or a
// machine's tool can be named by `ingest tool`.
func (s *Supervisor) serve() (*webServer, error) {
	w := &webServer{}
	addr := s.cfg.Metrics
	var live []*machine
	for _, m := range s.machines {
		if m.Source.live() {
			live = append(live, m)
		}
	}
	if addr == "" && len(live) == 0 {
		return w, nil
	}
	if addr == "" {
		addr = "127.0.0.1:0" // for `ingest tool` alone
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w: choose another address, or stop the program that uses it", err)
	}
	token := rand.Text()
	w.listener = l
	w.srv = &http.Server{Handler: s.handler(token), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	go func() {
		if err := w.srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error().Err(err).Msg("the HTTP server has stopped: metrics, health and `ingest tool` do not work; restart ingest")
		}
	}()
	s.log.Info().Str("url", "http://"+l.Addr().String()).Msg("metrics and health")
	for _, m := range live {
		path := filepath.Join(m.SpoolDir(), controlFile)
		if err := writeControl(path, control{URL: localURL(l.Addr()), Token: token}); err != nil {
			m.log.Error().Err(err).Msg("`ingest tool` does not work for this machine: its address cannot be written to the spool's folder")
			continue
		}
		w.controls = append(w.controls, path)
	}
	return w, nil
}

// localURL returns how this computer reaches what listens at addr.
func localURL(addr net.Addr) string {
	a, ok := addr.(*net.TCPAddr)
	if !ok || !a.IP.IsUnspecified() {
		return "http://" + addr.String()
	}
	host := "127.0.0.1"
	if a.IP.To4() == nil {
		host = "::1"
	}
	return "http://" + net.JoinHostPort(host, fmt.Sprint(a.Port))
}

func (w *webServer) close() {
	for _, path := range w.controls {
		os.Remove(path)
	}
	if w.srv != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if w.srv.Shutdown(ctx) != nil {
			w.srv.Close()
		}
		w.listener.Close() // a server that does not serve yet leaves it open
	}
}

// handler serves all paths of the server; /v1/context asks for token.
func (s *Supervisor) handler(token string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", metric.Handler(append(append(s.collectors(), metric.Runtime()...), metric.Expiries(s.bus.Expiries()))...))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", s.readyz(time.Now))
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("POST /v1/context", func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+token)) != 1 {
			http.Error(w, "the token is missing or wrong: it is in "+controlFile+" in the spool's folder", http.StatusUnauthorized)
			return
		}
		now, code, err := s.setContext(http.MaxBytesReader(w, r.Body, 16<<10))
		if err != nil {
			http.Error(w, err.Error(), code)
			return
		}
		writeJSON(w, http.StatusOK, now)
	})
	return mux
}

// healthz answers with the health of every machine.
func (s *Supervisor) healthz(w http.ResponseWriter, _ *http.Request) {
	code, all := http.StatusOK, map[string]health{}
	for _, m := range s.machines {
		h := m.health()
		h.SpoolOnly = m.spoolOnly(time.Now())
		if h.State == failed {
			code = http.StatusServiceUnavailable
		}
		all[m.Path] = h
	}
	writeJSON(w, code, map[string]any{"machines": all})
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // fails only if the client has gone
}

// health is what /healthz says of a machine.
type health struct {
	State    string     `json:"state"`             // waiting, running, failed (and started again soon) or done
	Problem  string     `json:"problem,omitempty"` // of failed
	Restarts uint64     `json:"restarts"`
	Windows  uint64     `json:"windows"`
	Pending  uint64     `json:"pending"`          // in the spool, for the broker to take
	Newest   *time.Time `json:"newest,omitempty"` // sensor time at which the newest window ends
	Senders  *int64     `json:"senders,omitempty"`

	Samples ledger `json:"samples"` // what became of them, see docs/concepts/ledger.md

	Flags map[string]uint64 `json:"flags,omitempty"` // windows in which a sensor has a fault, by flag
	Clock string            `json:"clock,omitempty"` // what is wrong with the sensors' clocks in the newest window

	SpoolOnly string `json:"spool_only,omitempty"` // nothing is sent, and for how long the spool lasts
}

// snapshot returns the counts since the program was started.
func (m *machine) snapshot() (g gateway.Stats, f feed.Stats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if g = m.before; m.gw != nil {
		g = m.before.Add(m.gw.Stats())
	}
	f = m.received
	for _, one := range m.feeds() {
		f = f.Add(one.Stats())
	}
	if m.feed == nil {
		f.Senders = 0
	}
	return g, f
}

func (m *machine) health() health {
	g, f := m.snapshot()
	m.mu.Lock()
	defer m.mu.Unlock()
	h := health{Samples: newLedger(g, f, m.Source.live(), m.stopped), State: m.state, Restarts: m.restarts, Windows: g.Windows, Pending: g.Pending}
	h.Flags, h.Clock = flagsOf(g), m.clock
	if m.problem != nil {
		h.Problem = m.problem.Error()
	}
	if !m.newest.IsZero() {
		newest := m.newest
		h.Newest = &newest
	}
	if m.Source.live() {
		h.Senders = &f.Senders
	}
	return h
}

// flagsOf returns how many windows have each flag that any has.
func flagsOf(s gateway.Stats) map[string]uint64 {
	by := map[string]uint64{}
	for i, n := range s.Flagged {
		if n > 0 {
			by[signal.Flags[i]] = n
		}
	}
	return by
}

// clockOf says what is wrong with the sensors' clocks in a window of a layout; empty if nothing is.
func clockOf(w *window.Window, layout *signal.Layout) string {
	var what []string
	for _, flag := range (w.AllQuality() & signal.Clock).Names() {
		switch {
		case flag == signal.RateError.String() && w.WrongRates(layout) != "":
			flag += ": " + w.WrongRates(layout)
		case flag == signal.ClockOff.String():
			flag += ": " + w.WrongDates(layout)
		}
		what = append(what, flag)
	}
	return strings.Join(what, "; ")
}

package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/gateway"
	"github.com/flank-tcm/flank/internal/metric"
	"github.com/flank-tcm/flank/internal/source/feed"
)

// webServer is what a running ingest serves over HTTP: /metrics, /livez, /readyz and
// /healthz without a login, and /v1/context with the token that is in a file of the
// spool's folder.
type webServer struct {
	srv      *http.Server
	controls []string // files to remove
}

// control is the file by which `ingest tool` finds the running ingest.
type control struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

const controlFile = "control.json"

// serve starts the server, if anybody has asked for it or there is a machine
// whose tool is to be named.
func serve(c settings, ms []*machine, to bus.Config, log zerolog.Logger) (*webServer, error) {
	w := &webServer{}
	addr := c.Metrics
	var live []*machine
	for _, m := range ms {
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
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	token := hex.EncodeToString(secret)
	w.srv = &http.Server{Handler: routes(ms, to, token), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	go func() {
		if err := w.srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error().Err(err).Msg("metrics, health and `ingest tool` are gone")
		}
	}()
	log.Info().Str("url", "http://"+l.Addr().String()).Msg("metrics and health")
	for _, m := range live {
		path := filepath.Join(m.spool(), controlFile)
		if err := writeControl(path, control{URL: localURL(l.Addr()), Token: token}); err != nil {
			m.log.Error().Err(err).Msg("`ingest tool` will not find this machine")
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

// writeControl writes a file that only this user can read.
func writeControl(path string, c control) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+controlFile+".*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
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
	}
}

func routes(ms []*machine, to bus.Config, token string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", metric.Handler(collector(ms), cli.CertificateMetrics(to)))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", readyz(ms, time.Now))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		code, all := http.StatusOK, map[string]health{}
		for _, m := range ms {
			h := m.health()
			if h.State == failed {
				code = http.StatusServiceUnavailable
			}
			all[m.Machine] = h
		}
		writeJSON(w, code, map[string]any{"machines": all})
	})
	mux.HandleFunc("POST /v1/context", func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+token)) != 1 {
			http.Error(w, "no token: it is in "+controlFile+" of the spool's folder", http.StatusUnauthorized)
			return
		}
		now, code, err := tell(ms, http.MaxBytesReader(w, r.Body, 16<<10))
		if err != nil {
			http.Error(w, err.Error(), code)
			return
		}
		writeJSON(w, http.StatusOK, now)
	})
	return mux
}

// told is the body of a request: what is new of which machine.
type told struct {
	Machine string `json:"machine"`
	feed.Change
}

// tell applies what an operator says of a machine. It returns what is true now.
func tell(ms []*machine, body io.Reader) (now map[string]any, code int, err error) {
	var t told
	if err := json.NewDecoder(body).Decode(&t); err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("no JSON: %w", err)
	}
	for _, m := range ms {
		if m.Machine != t.Machine {
			continue
		}
		if !m.Source.live() {
			return nil, http.StatusConflict, fmt.Errorf("machine %s: its source, %s, names its tools itself", m.Machine, m.Source.Kind)
		}
		set, err := m.context()
		if err != nil {
			return nil, http.StatusInternalServerError, err
		}
		is, err := set.Apply(t.Change)
		switch {
		case errors.Is(err, feed.ErrNamed), errors.Is(err, feed.ErrNoTool):
			return nil, http.StatusConflict, err
		case err != nil && t.Check() != nil:
			return nil, http.StatusBadRequest, err
		case err != nil:
			return nil, http.StatusInternalServerError, err
		}
		m.log.Info().Str("tool", is.Tool).Str("hole", is.Hole).Float64("spindle_speed", is.SpindleSpeed).Bool("new", t.New).Str("tool_life", is.ToolLife).Msg("context changed")
		return map[string]any{"machine": m.Machine, "tool": is.Tool, "hole": is.Hole, "spindle_speed": is.SpindleSpeed, "tool_life": is.ToolLife}, http.StatusOK, nil
	}
	return nil, http.StatusNotFound, fmt.Errorf("machine %q is not ingested here", t.Machine)
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // who asked is gone
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
}

// snapshot returns the counts since the program was started.
func (m *machine) snapshot() (g gateway.Stats, f feed.Stats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if g = m.before; m.gw != nil {
		g = m.before.Add(m.gw.Stats())
	}
	if f = m.received; m.feed != nil {
		s := m.feed.Stats()
		f = feed.Stats{Frames: f.Frames + s.Frames, Refused: f.Refused + s.Refused, Senders: s.Senders}
	}
	return g, f
}

func (m *machine) health() health {
	g, f := m.snapshot()
	m.mu.Lock()
	defer m.mu.Unlock()
	h := health{State: m.state, Restarts: m.restarts, Windows: g.Windows, Pending: g.Pending}
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

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/metric"
)

// ServeMetrics answers at an address of its own with /metrics, /livez and /readyz until stop is
// called. Metrics of Go, the process and the build are added to the collectors. Ready reports
// why the program is not ready, or nil.
func ServeMetrics(listen string, ready func() error, logger zerolog.Logger, collectors ...metric.Collector) (stop func(), err error) {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w: choose another address, or stop the program that uses it", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", Metrics(collectors))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.Handle("GET /readyz", Readyz(ready))
	srv := &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: ServerLog(logger, "the server of the metrics"),
	}
	go func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			logger.Error().Err(err).Msg("the server of the metrics has stopped: restart the program")
		}
	}()
	logger.Info().Str("url", "http://"+l.Addr().String()+"/metrics").Msg("metrics")
	return func() {
		srv.Close()
		l.Close() // a server that does not serve yet leaves it open
	}, nil
}

// Metrics answers with what the collectors have, and metrics of Go, the process and the build.
func Metrics(collectors []metric.Collector) http.Handler {
	return metric.Handler(append(metric.Runtime(), collectors...)...)
}

// Readyz answers 200 while ready returns nil, and otherwise 503 with the reason.
func Readyz(ready func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
}

// ServerLog returns where an HTTP server writes its errors, in lines of the given text.
func ServerLog(logger zerolog.Logger, text string) *log.Logger {
	return log.New(serverLog{logger, text}, "", 0)
}

// serverLog takes the lines of a server: clients that break off are worth a line only to
// who looks for them, and a handler that panics is worth one to everyone.
type serverLog struct {
	log  zerolog.Logger
	text string
}

func (s serverLog) Write(line []byte) (int, error) {
	ev := s.log.Debug()
	if bytes.Contains(line, []byte("panic")) {
		ev = s.log.Error()
	}
	ev.Str("line", string(bytes.TrimSpace(line))).Msg(s.text)
	return len(line), nil
}

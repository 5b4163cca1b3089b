package cli

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/credential"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/web"
)

// Serve answers HTTP requests on an address, which the configuration calls what,
// until stop is called. It returns the URL of the server.
func Serve(addr, what string, h http.Handler, log zerolog.Logger) (url string, stop func(), err error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w: choose another address", what, err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error().Err(err).Msg("the server of the " + what + " has stopped: restart the program")
		}
	}()
	url = "http://" + l.Addr().String()
	log.Info().Str(what, url).Msg(what)
	return url, func() { srv.Close() }, nil
}

// PageControl returns what lets a page send commands, nil without a token. It
// reports a token that cannot be used. Call stop at the end.
func PageControl(token credential.Secret, to bus.Config) (control *web.Control, stop func(), err error) {
	if token.IsZero() {
		return nil, func() {}, nil
	}
	if _, err := token.Token(); err != nil {
		return nil, nil, fmt.Errorf("token of the page: %w", err)
	}
	out, err := bus.NewProducer(to)
	if err != nil {
		return nil, nil, err
	}
	return monitor.Control(out, token.Token), out.Close, nil
}

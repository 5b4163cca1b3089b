package cli

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/rs/zerolog"
)

// Serve answers HTTP requests on an address, which the configuration calls what,
// until the returned function is called.
func Serve(addr, what string, h http.Handler, log zerolog.Logger) (stop func(), err error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: choose another address", what, err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error().Err(err).Msg("the " + what + " is gone")
		}
	}()
	log.Info().Str(what, "http://"+l.Addr().String()).Msg(what)
	return func() { srv.Close() }, nil
}

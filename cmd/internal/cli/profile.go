package cli

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/alecthomas/kong"

	"github.com/flank-tcm/flank/internal/config/credential"
)

// profiling answers with profiles of the program at the address of --pprof, until stop is called. Without the flag it does nothing.
func profiling(k *kong.Context, stderr io.Writer) (stop func(), err error) {
	for _, p := range k.Path {
		if p.Flag != nil && p.Flag.Name == "pprof" {
			return serveProfiles(fmt.Sprint(k.FlagValue(p.Flag)), stderr)
		}
	}
	return func() {}, nil
}

func serveProfiles(addr string, stderr io.Writer) (stop func(), err error) {
	if host, _, err := net.SplitHostPort(addr); err != nil || !credential.IsLocal(host) {
		return nil, fmt.Errorf("--pprof %q: profiles tell what is in memory, and ask for no password: name an address of this computer, such as 127.0.0.1:6060", addr)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--pprof: %w: choose another port, or stop the program that uses it", err)
	}
	if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		l.Close()
		return nil, fmt.Errorf("--pprof %q is the address %v of a network here: write 127.0.0.1 instead", addr, l.Addr())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	srv := &http.Server{Handler: onlyLocal(mux), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintf(stderr, "--pprof: the server has stopped: %v: restart the program to have profiles\n", err)
		}
	}()
	fmt.Fprintf(stderr, "profiles: go tool pprof http://%s/debug/pprof/heap\n", l.Addr())
	return func() {
		srv.Close()
		l.Close() // a server that does not serve yet leaves it open
	}, nil
}

// onlyLocal refuses requests for a name that is not this computer's: a page in a browser here may have made its own name one of
// this address.
func onlyLocal(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host, _, err := net.SplitHostPort(r.Host); err != nil || !credential.IsLocal(host) {
			http.Error(w, "ask for 127.0.0.1 and the port", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

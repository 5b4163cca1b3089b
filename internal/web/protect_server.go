package web

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// serveStream serves an event stream. It ends when its person may not look any more.
func (g *Guard) serveStream(next http.Handler, w http.ResponseWriter, r *http.Request, address string, p proof) {
	if !g.limits.joinStream(address) {
		g.refuse(address, refusedStreams, "more than "+strconv.Itoa(streamsOfAnAddr)+" event streams")
		g.auditAccess(visit{person: p.person, address: address, how: p.how()}, refusedStreams)
		w.Header().Set("Retry-After", "10")
		text(w, http.StatusTooManyRequests, "your address has "+strconv.Itoa(streamsOfAnAddr)+" pages open already: close one")
		return
	}
	defer g.limits.leaveStream(address)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if g.ReadsNeedToken && g.Find != nil {
		go g.watch(ctx, cancel, p)
	}
	next.ServeHTTP(&streamWriter{w, http.NewResponseController(w), g.patient.stream}, r.WithContext(ctx))
}

// watch calls end when a proof does not count any more.
func (g *Guard) watch(ctx context.Context, end func(), p proof) {
	tick := time.NewTicker(g.recheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if !g.still(p) {
				end()
				return
			}
		}
	}
}

// streamWriter lets go of a client that takes nothing. Between two events the client has
// all the time.
type streamWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	patient time.Duration
}

// Unwrap returns the writer below, for http.ResponseController.
func (s *streamWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *streamWriter) Write(b []byte) (int, error) {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.patient)) // a recorder in a test knows none
	return s.ResponseWriter.Write(b)
}

// Flush implements http.Flusher.
func (s *streamWriter) Flush() { _ = s.FlushError() }

// FlushError sends what was written.
func (s *streamWriter) FlushError() error {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.patient))
	err := s.control.Flush()
	_ = s.control.SetWriteDeadline(time.Time{})
	return err
}

// patience is how long a server waits for its clients.
type patience struct {
	header time.Duration // of a request, and the handshake of TLS
	body   time.Duration // of a request
	idle   time.Duration // between two requests
	answer time.Duration // all of an answer that is not an event stream
	stream time.Duration // one event
}

var defaultPatience = patience{header: 5 * time.Second, body: orderWait, idle: time.Minute, answer: 2 * time.Minute, stream: writeTimeout}

// Server returns a server that answers by h, which is a handler of the guard. Its
// connections come from the guard's Listener. With TLS it also speaks HTTP/2.
func (g *Guard) Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, TLSConfig: g.TLS, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: g.patient.header, IdleTimeout: g.patient.idle, WriteTimeout: g.patient.answer,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxConcurrent, SendPingTimeout: g.patient.idle, PingTimeout: g.patient.body, WriteByteTimeout: g.patient.stream},
	}
}

const (
	maxHeader     = 16 << 10 // bytes
	maxConcurrent = 64       // requests in one connection of HTTP/2
)

// Listener returns l with bounds: of connections of one address and in all.
func (g *Guard) Listener(l net.Listener) net.Listener { return &boundedListener{l, g} }

type boundedListener struct {
	net.Listener
	guard *Guard
}

func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address := addressOf(c.RemoteAddr().String())
		if l.guard.limits.joinConn(address) {
			return &boundedConn{Conn: c, leave: sync.OnceFunc(func() { l.guard.limits.leaveConn(address) })}, nil
		}
		l.guard.refuse(address, refusedConnections, "too many connections")
		l.guard.auditAccess(visit{address: address, how: event.ByNothing}, refusedConnections)
		c.Close()
	}
}

type boundedConn struct {
	net.Conn
	leave func()
}

func (c *boundedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

package web

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flank-tcm/flank/internal/testkit/await"
)

// long is far more than any of these tests takes.
const long = await.Patience

// listen serves next behind the guard of s, and returns the address. The guard waits for as
// long as patient says.
func (s *site) listen(t *testing.T, next http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.serve(t, l, next)
	return l.Addr().String()
}

// serve serves next behind the guard of s until the test ends.
func (s *site) serve(t *testing.T, l net.Listener, next http.Handler) {
	t.Helper()
	srv := s.Server(s.Handler(next))
	srv.ErrorLog = log.New(io.Discard, "", 0)
	done := make(chan error, 1)
	serve := srv.Serve
	if srv.TLSConfig != nil {
		serve = func(l net.Listener) error { return srv.ServeTLS(l, "", "") }
	}
	go func() { done <- serve(s.Listener(l)) }()
	t.Cleanup(func() {
		srv.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// pipes is a listener for servers under virtual time. Its clients come from 127.0.0.1.
type pipes struct {
	conns, closed chan net.Conn
	once          sync.Once
}

// pipes serves next behind the guard of s in memory.
func (s *site) pipes(t *testing.T, next http.Handler) *pipes {
	t.Helper()
	p := &pipes{conns: make(chan net.Conn), closed: make(chan net.Conn)}
	t.Cleanup(func() { time.Sleep(time.Second) }) // after its last answer a server keeps a connection for half of that
	s.serve(t, p, next)
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

type pipeEnd struct {
	net.Conn
	from net.Addr
}

func (e pipeEnd) RemoteAddr() net.Addr { return e.from }

// dial connects, and sends text while the test goes on.
func (p *pipes) dial(t *testing.T, text string) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close() })
	p.conns <- pipeEnd{theirs, p.Addr()}
	go func() { _, _ = io.WriteString(ours, text) }()
	return ours
}

// dial connects from an address of this computer, and sends text.
func dial(t *testing.T, from, to, text string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: long}
	c, err := d.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(long))
	_, _ = io.WriteString(c, text) // the server may have closed it already
	return c
}

// answerOf reads the status of an answer, 0 if the connection was closed without one.
func answerOf(c net.Conn) int {
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	return res.StatusCode // closing the body would wait for its end
}

func (l *limits) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

func (l *limits) openStreams() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, of := range l.streams {
		n += of
	}
	return n
}

const askAlive = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"

// A thousand connections of one address, each with half a request, take their bound of
// places, and only for a while. Others are served meanwhile.
func TestManyConnections(t *testing.T) {
	s := newSite(Protection{})
	s.patient.header = long
	address := s.listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok") }))
	var half []net.Conn
	for range 1000 {
		half = append(half, dial(t, "127.0.0.1", address, askAlive[:30]))
	}
	await.Until(t, "refused connections", func() bool { return s.count(refusedConnections) == 1000-connsOfAnAddress })
	if n := s.limits.connections(); n != connsOfAnAddress {
		t.Errorf("%d connections are held, want %d", n, connsOfAnAddress)
	}
	if code := answerOf(dial(t, "127.0.0.2", address, askAlive)); code != http.StatusOK {
		t.Errorf("another address: %d", code)
	}
	if code := answerOf(dial(t, "127.0.0.1", address, askAlive)); code != 0 {
		t.Errorf("the same address: %d", code)
	}
	for _, c := range half {
		c.Close()
	}
	await.Until(t, "free places", func() bool { return s.limits.connections() <= 1 })
	if code := answerOf(dial(t, "127.0.0.1", address, askAlive)); code != http.StatusOK {
		t.Errorf("the same address, later: %d", code)
	}
	if len(s.log) == 0 || len(s.log) > linesAtOnce || s.log[0].Reason != "connections" || s.log[0].Address != "127.0.0.1" {
		t.Errorf("%d lines: %+v", len(s.log), s.log)
	}
}

// A client that sends its request byte by byte, or that keeps a connection for nothing, is
// let go.
func TestSlowClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(Protection{})
		server := s.pipes(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok") }))
		began := time.Now()
		drip := server.dial(t, "")
		go func() {
			for i := 0; ; i++ {
				if _, err := io.WriteString(drip, askAlive[i%20:i%20+1]); err != nil {
					return
				}
				time.Sleep(s.patient.header / 10)
			}
		}()
		if _, err := io.Copy(io.Discard, drip); err != nil || time.Since(began) != s.patient.header {
			t.Errorf("the slow client stayed for %v: %v", time.Since(began), err)
		}
		idle := server.dial(t, askAlive)
		r := bufio.NewReader(idle)
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Fatal(err)
		}
		began = time.Now()
		if _, err := r.ReadByte(); err != io.EOF || time.Since(began) != s.patient.idle {
			t.Errorf("the idle connection stayed for %v: %v", time.Since(began), err)
		}
		synctest.Wait()
		if n := s.limits.connections(); n != 0 {
			t.Errorf("%d connections are held", n)
		}
		big := server.dial(t, "GET /livez HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 64<<10)+"\r\n\r\n")
		if code := answerOf(big); code != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("a header of 64 KiB: %d", code)
		}
	})
}

// A body that does not come is not waited for, of a request that changes something and of
// one that should have none.
func TestStalledBody(t *testing.T) {
	for _, request := range []string{
		"POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"token\":",
		"POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"token\"\r\n",
		"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
		"GET /api/events HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST /api/logout HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(Protection{})
			c := s.pipes(t, http.NotFoundHandler()).dial(t, request)
			if code := answerOf(c); code < 200 || code >= 500 || code == http.StatusOK {
				t.Errorf("%.30s: %d", request, code)
			}
			go func() { _, _ = io.Copy(io.Discard, c) }() // the rest of the answer
			time.Sleep(s.patient.body + time.Second)
			synctest.Wait()
			if n := s.limits.connections(); n != 0 {
				t.Errorf("%.30s: %d connections are held", request, n)
			}
		})
	}
}

// events sends events to a page, as the hub does, for as long as more says.
func events(patient time.Duration, more func(r *http.Request, n int) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		control := http.NewResponseController(w)
		for n := 0; more(r, n); n++ {
			_ = control.SetWriteDeadline(time.Now().Add(patient))
			if _, err := io.WriteString(w, "data: x\n\n"); err != nil || control.Flush() != nil {
				return
			}
		}
	})
}

// A page that takes no events loses its place, also if its connection stays.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(Protection{})
		s.pipes(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		})).dial(t, "GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		for _, want := range []int{1, 0} {
			synctest.Wait()
			if streams, n := s.limits.openStreams(), s.limits.connections(); streams != want || n != want {
				t.Errorf("%d streams and %d connections, want %d", streams, n, want)
			}
			time.Sleep(s.patient.stream)
		}
	})
}

// Event streams of an address are bounded. Their places come back.
func TestStreamsAreBounded(t *testing.T) {
	s := newSite(Protection{})
	address := s.listen(t, events(long, func(r *http.Request, n int) bool {
		if n > 0 {
			<-r.Context().Done()
		}
		return n == 0
	}))
	const ask = "GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
	var open []net.Conn
	for range streamsOfAnAddr {
		open = append(open, dial(t, "127.0.0.1", address, ask))
	}
	await.Until(t, "the streams", func() bool { return s.limits.openStreams() == streamsOfAnAddr })
	if code := answerOf(dial(t, "127.0.0.1", address, ask)); code != http.StatusTooManyRequests || s.count(refusedStreams) != 1 {
		t.Errorf("one too many: %d, %d counted", code, s.count(refusedStreams))
	}
	if code := answerOf(dial(t, "127.0.0.2", address, ask)); code != http.StatusOK {
		t.Errorf("another address: %d", code)
	}
	for _, c := range open {
		c.Close()
	}
	await.Until(t, "free places", func() bool { return s.limits.openStreams() <= 1 })
	if code := answerOf(dial(t, "127.0.0.1", address, ask)); code != http.StatusOK {
		t.Errorf("later: %d", code)
	}
}

// A stream ends when its person is removed, and when the session is over. A damaged file
// of tokens ends no stream.
func TestStreamEndsWithItsPerson(t *testing.T) {
	for why, end := range map[string]func(s *site, cookie []string){
		"removed":    func(s *site, _ []string) { s.set("token-of-vera", Person{}) },
		"logged out": func(s *site, cookie []string) { s.ask("POST", "/api/logout", "", cookie...) },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(Protection{ReadsNeedToken: true})
			cookie := s.login(t, "token-of-vera", "Host", "127.0.0.1")
			over := false
			s.h = s.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				over = true
			}))
			go s.ask("GET", "/api/events", "", cookie...)
			synctest.Wait()
			s.breakFile(true)
			time.Sleep(3 * s.recheck)
			synctest.Wait()
			if over || s.limits.openStreams() != 1 {
				t.Fatalf("%s: ended by a damaged file", why)
			}
			s.breakFile(false)
			end(s, cookie)
			time.Sleep(s.recheck)
			synctest.Wait()
			if !over {
				t.Fatalf("%s: the stream goes on", why)
			}
		})
	}
}

// breakFile damages the file of tokens, or mends it.
func (s *site) breakFile(broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = broken
}

// Over TLS the page speaks HTTP/2, where a stream lives on however long it is silent, and
// the cookie is for TLS alone.
func TestTLS(t *testing.T) {
	certified := httptest.NewUnstartedServer(http.NotFoundHandler())
	certified.StartTLS() // for its certificate, of example.com
	certified.Close()
	synctest.Test(t, func(t *testing.T) {
		tlsConfig := certified.TLS.Clone()
		tlsConfig.NextProtos = nil
		s := newSite(Protection{TLS: tlsConfig, ReadsNeedToken: true})
		server := s.pipes(t, events(s.patient.stream, func(r *http.Request, n int) bool {
			time.Sleep(time.Duration(n) * 2 * s.patient.answer)
			return n < 3
		}))
		transport := certified.Client().Transport.(*http.Transport).Clone()
		transport.ForceAttemptHTTP2 = true
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return server.dial(t, ""), nil }
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport}
		const address = "127.0.0.1"
		res, err := client.Post("https://"+address+"/api/login", "application/json", strings.NewReader(`{"token":"token-of-vera"}`))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		c := res.Cookies()
		if len(c) != 1 || !c[0].Secure || !strings.HasPrefix(c[0].Name, "__Host-") || res.ProtoMajor != 2 {
			t.Fatalf("%s, %d, %+v", res.Proto, res.StatusCode, c)
		}
		r, err := http.NewRequest(http.MethodGet, "https://"+address+"/api/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.AddCookie(c[0])
		if res, err = client.Do(r); err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if b, err := io.ReadAll(res.Body); err != nil || strings.Count(string(b), "data: ") != 3 {
			t.Errorf("%d events, %v", strings.Count(string(b), "data: "), err)
		}
		if res, err := client.Get("http://" + address + "/livez"); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				t.Error("it answers without TLS")
			}
		}
	})
}

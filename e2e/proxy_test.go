//go:build e2e

package e2e

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"
)

// proxy stands between programs and a broker. In answers it replaces the broker's address by its
// own, since clients dial the addresses that brokers return.
type proxy struct {
	addr string

	mu    sync.Mutex
	conns map[net.Conn]bool
	hold  *hold         // nil unless frozen
	delay time.Duration // of every answer
	made  int           // connections so far

	up, down lane // to the broker, and from it
}

// lane is one direction of a link of so many bytes a second, which all connections share.
type lane struct {
	mu     sync.Mutex
	rate   float64   // bytes a second; 0: no limit
	free   time.Time // when the last byte that was accepted has gone
	passed int64     // bytes
}

// pass takes as long as so many bytes take on the link.
func (l *lane) pass(n int) {
	l.mu.Lock()
	l.passed += int64(n)
	if l.rate == 0 {
		l.mu.Unlock()
		return
	}
	if now := time.Now(); l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(float64(n) / l.rate * float64(time.Second)))
	until := l.free
	l.mu.Unlock()
	time.Sleep(time.Until(until))
}

// bytes returns how many bytes have passed.
func (l *lane) bytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.passed
}

// limit makes the proxy a link of so many bytes a second in each direction.
func (p *proxy) limit(rate float64) {
	for _, l := range []*lane{&p.up, &p.down} {
		l.mu.Lock()
		l.rate = rate
		l.mu.Unlock()
	}
}

// hold is a freeze of the proxy.
type hold struct {
	over   chan struct{}
	forget bool // held messages are lost, and their connections stay open and silent
}

// startProxy starts a proxy before the broker at target, at the host of the broker: a name of another length would not fit into answers.
func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	host, _, _ := net.SplitHostPort(target)
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String(), conns: make(map[net.Conn]bool)}
	named, own := advertised(t, target), advertised(t, p.addr)
	t.Cleanup(func() {
		l.Close()
		p.pass(false)
		p.reset()
	})
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				continue
			}
			p.mu.Lock()
			p.made++
			p.conns[client], p.conns[server] = true, true
			p.mu.Unlock()
			go p.copy(server, client, nil, nil)
			go p.copy(client, server, named, own)
		}
	}()
	return p
}

// advertised returns host and port in the encoding of a broker's description in the answers of
// Kafka's protocol.
func advertised(t *testing.T, addr string) []byte {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return binary.BigEndian.AppendUint32([]byte(host), uint32(n))
}

// copy passes whole messages on and replaces the broker's address.
func (p *proxy) copy(to, from net.Conn, named, own []byte) {
	defer p.drop(to, from)
	var size [4]byte
	for {
		if _, err := io.ReadFull(from, size[:]); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(from, frame); err != nil {
			return
		}
		p.mu.Lock()
		hold, delay := p.hold, p.delay
		p.mu.Unlock()
		if named != nil {
			p.down.pass(len(size) + len(frame))
		} else {
			p.up.pass(len(size) + len(frame))
		}
		if named != nil {
			frame = bytes.ReplaceAll(frame, named, own)
			time.Sleep(delay)
		}
		if hold != nil {
			if <-hold.over; hold.forget {
				_, _ = io.Copy(io.Discard, from)
				return
			}
		}
		if _, err := to.Write(append(size[:], frame...)); err != nil {
			return
		}
	}
}

func (p *proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(p.conns, c)
	}
}

// reset ends all connections, as a router does after a restart.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
	clear(p.conns)
}

// freeze holds all messages. Connections stay open at both ends; the proxy accepts new ones and
// does not answer on them.
func (p *proxy) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold = &hold{over: make(chan struct{})}
}

// pass ends a freeze. The held messages arrive late, or never. If never, their connections stay
// half open, and no answer will come on them.
func (p *proxy) pass(forget bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hold != nil {
		p.hold.forget = forget
		close(p.hold.over)
		p.hold = nil
	}
}

// slow delays every answer.
func (p *proxy) slow(by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = by
}

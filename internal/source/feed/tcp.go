package feed

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/source"
)

// TCP says where clients connect.
type TCP struct {
	Listen string // host:port; ":port" for every network of the computer

	// TLS, if not nil, encrypts. With a CA only clients connect whose
	// certificate it signed.
	TLS *credential.TLS
}

// headerSize is how many bytes come before a frame: its length and the CRC-32 of
// IEEE 802.3 of it, both of 32 bits, little-endian.
const headerSize = 8

// wantsRepeats in place of the CRC of an empty frame asks to hear of frames that came before. Clients of
// earlier releases do not know that answer.
const wantsRepeats = 1

// listener serves one client at a time: samples of one machine have one counter.
type listener struct {
	*Feed
	tcp    TCP
	places chan struct{} // one value for each connection
	slot   chan struct{} // one value while a client sends

	mu     sync.Mutex
	sender *client // of the slot
}

const (
	// maxClients is how many connections there may be, also those that hear that there is a client
	// already.
	maxClients = 32

	// idleTimeouts is for how many timeouts a client may send no frame, only signs of life, before it
	// gives its place to another one.
	idleTimeouts = 6
)

// ListenTCP returns a Feed of what clients send to an address. The protocol is in
// schemas/frame.md. It reports an address that cannot be listened at, and
// files that are missing.
func ListenTCP(cfg Config, tcp TCP) (*Feed, error) {
	if tcp.TLS != nil {
		if _, err := tcp.TLS.Server(); err != nil {
			return nil, fmt.Errorf("feed: TLS: %w", err)
		}
	}
	f := open(cfg)
	l, err := (&net.ListenConfig{KeepAlive: f.cfg.Timeout}).Listen(f.ctx, "tcp", tcp.Listen)
	if err != nil {
		f.stop()
		return nil, fmt.Errorf("feed: %w: choose another address under `listen`, or stop the program that uses it", err)
	}
	f.addr = l.Addr().String()
	s := &listener{Feed: f, tcp: tcp, places: make(chan struct{}, maxClients), slot: make(chan struct{}, 1)}
	context.AfterFunc(f.ctx, func() { l.Close() })
	f.wg.Go(func() { s.accept(l) })
	return f, nil
}

func (s *listener) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if s.ctx.Err() != nil {
			if err == nil {
				conn.Close()
			}
			return
		}
		if err != nil { // such as too many open files
			s.notify(Notice{Text: "no client can connect", Peer: s.addr, Err: err})
			_ = source.SystemClock.Wait(s.ctx, time.Second)
			continue
		}
		select {
		case s.places <- struct{}{}:
			s.wg.Go(func() {
				defer func() { <-s.places }()
				s.serve(conn)
			})
		default:
			conn.Close()
			s.notify(Notice{Text: "a client is refused", Peer: conn.RemoteAddr().String(), Err: fmt.Errorf("feed: there are %d connections already", maxClients)})
		}
	}
}

// client is a connection.
type client struct {
	net.Conn
	peer string
	last atomic.Int64  // when it connected or sent a frame, in ns since 1970
	wake chan struct{} // done or lines have changed

	mu    sync.Mutex
	lines []string     // for the client to read
	done  int          // the first frames, which are acknowledged
	acked map[int]bool // later ones that are, too
}

// serve receives frames until the client or the feed is closed. It says to the
// client what ends the connection.
func (s *listener) serve(conn net.Conn) {
	c := &client{Conn: conn, peer: conn.RemoteAddr().String(), wake: make(chan struct{}, 1), acked: make(map[int]bool)}
	defer context.AfterFunc(s.ctx, func() { conn.Close() })()
	defer conn.Close()
	err := s.handshake(c)
	if err == nil && !s.take(c) {
		s.mu.Lock()
		first := s.sender.peer
		s.mu.Unlock()
		err = fmt.Errorf("feed: machine %s has a client already, %s: only one can be connected; a client that is gone is disconnected after %v", s.cfg.Machine, first, s.cfg.Timeout)
		s.refuse(OtherSender, c.peer, err)
		s.farewell(c, err)
	} else if err == nil {
		s.senders.Add(1)
		s.notify(Notice{Text: "a client is connected", Peer: c.peer})
		err = s.talk(c)
		s.senders.Add(-1)
		<-s.slot // before the farewell: a client that comes again at once has its place
		if err != nil && s.ctx.Err() == nil {
			s.farewell(c, err)
		}
	}
	if s.ctx.Err() == nil {
		s.notify(Notice{Text: "a client is disconnected", Peer: c.peer, Err: err})
	}
}

// take gives c the place of the client that sends. If that client has sent nothing but signs of
// life for long, it is disconnected for c.
func (s *listener) take(c *client) bool {
	c.last.Store(time.Now().UnixNano())
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.slot <- struct{}{}: // while no one asks whose it is
		s.sender = c
		return true
	default:
	}
	if time.Since(time.Unix(0, s.sender.last.Load())) <= idleTimeouts*s.cfg.Timeout {
		return false
	}
	_ = s.sender.SetReadDeadline(time.Unix(1, 0)) // ends what waits
	s.mu.Unlock()
	select {
	case s.slot <- struct{}{}:
		s.mu.Lock()
		s.sender = c
		return true
	case <-time.After(s.cfg.Timeout):
		s.mu.Lock()
		return false
	}
}

// handshake begins TLS.
func (s *listener) handshake(c *client) error {
	if s.tcp.TLS == nil {
		return nil
	}
	cfg, err := s.tcp.TLS.Server()
	if err != nil {
		return fmt.Errorf("feed: TLS: %w", err)
	}
	conn := tls.Server(c.Conn, cfg)
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.Timeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("feed: TLS: %w", err)
	}
	c.Conn = conn
	return nil
}

// talk receives frames and acknowledges them. It returns nil when the client
// has hung up.
func (s *listener) talk(c *client) error {
	over := make(chan struct{})
	acked := make(chan struct{})
	go func() {
		defer close(acked)
		s.acknowledge(c, over)
	}()
	err := s.receive(c)
	close(over)
	<-acked
	return err
}

// farewell says to the client why it is disconnected, and reads for a moment what
// it has sent: closing on unread bytes would throw away the answer.
func (s *listener) farewell(c *client, err error) {
	if s.answer(c, "error %v\n", err) != nil {
		return
	}
	if half, ok := c.Conn.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		return
	}
	if c.SetReadDeadline(time.Now().Add(time.Second)) == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(c, 2*maxFrame))
	}
}

// receive hands on frames until one is wrong, the client hangs up or is silent
// for too long. It does not read on while too many frames wait.
func (s *listener) receive(c *client) error {
	in := bufio.NewReaderSize(c, 1<<16)
	var frame []byte
	repeats := false // the client wants to hear of them
	for n := 1; ; {
		if err := c.SetReadDeadline(time.Now().Add(s.cfg.Timeout)); err != nil {
			return fmt.Errorf("feed: %w", err)
		}
		var h [headerSize]byte
		if _, err := io.ReadFull(in, h[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return s.broken(n, err)
		}
		size, sum := binary.LittleEndian.Uint32(h[:]), binary.LittleEndian.Uint32(h[4:])
		if size > maxFrame {
			return s.refused(c, n, fmt.Errorf("its header says %d bytes: at most %d are taken", size, maxFrame))
		}
		if size == 0 {
			repeats = repeats || sum == wantsRepeats
			continue // the client is there
		}
		if int(size) > cap(frame) {
			frame = make([]byte, size)
		}
		frame = frame[:size]
		if _, err := io.ReadFull(in, frame); err != nil {
			return s.broken(n, err)
		}
		if got := crc32.ChecksumIEEE(frame); got != sum {
			return s.refused(c, n, fmt.Errorf("checksum %08x, its header says %08x", got, sum))
		}
		b, err := s.dec.decode(frame)
		switch name := (nameError{}); {
		case errors.As(err, &name): // to connect again would not help
			err = s.refused(c, n, err)
			c.say(fmt.Sprintf("refused %d: %v: %v\n", n, Malformed, err))
			c.ack(n)
			c.last.Store(time.Now().UnixNano())
			n++
			continue
		case err != nil:
			return s.refused(c, n, err)
		}
		if !s.deliver(c.arrived(b, n, repeats)) {
			return nil
		}
		c.last.Store(time.Now().UnixNano())
		n++
	}
}

// arrived is the block of the frame with a number; repeats: the client wants to hear of those.
func (c *client) arrived(b *source.Block, n int, repeats bool) arrival {
	return arrival{
		block: b, peer: c.peer, ack: func() { c.ack(n) },
		answer: func(why Reason, err error) {
			switch {
			case why != Repeat:
				c.say(fmt.Sprintf("refused %d: %v: %v\n", n, why, err))
			case repeats:
				c.say(fmt.Sprintf("repeat %d\n", n))
			}
		},
	}
}

func (s *listener) broken(n int, err error) error {
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		return fmt.Errorf("feed: no whole frame for %v: send one, or an empty one, more often", s.cfg.Timeout)
	}
	return fmt.Errorf("feed: frame %d: %w", n, err)
}

func (s *listener) refused(c *client, n int, err error) error {
	err = fmt.Errorf("frame %d: %w", n, err)
	s.malformed(c.peer, err)
	return err
}

// say sends a line before the next acknowledgement. A client that does not read gets the last ones.
func (c *client) say(line string) {
	c.mu.Lock()
	c.lines = append(c.lines, line)
	c.lines = c.lines[max(0, len(c.lines)-maxUnacked):]
	c.mu.Unlock()
	c.awake()
}

// ack notes that frame n is acknowledged. The client hears of it once all before it are.
func (c *client) ack(n int) {
	c.mu.Lock()
	c.acked[n] = true
	for ; c.acked[c.done+1]; c.done++ {
		delete(c.acked, c.done+1)
	}
	c.mu.Unlock()
	c.awake()
}

func (c *client) awake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// acknowledge sends the client how many of its frames are acknowledged, whenever
// there are more, until over is closed or the client cannot be reached.
func (s *listener) acknowledge(c *client, over <-chan struct{}) {
	for said := 0; ; {
		select {
		case <-c.wake:
			c.mu.Lock()
			text, done := strings.Join(c.lines, ""), c.done
			c.lines = c.lines[:0]
			c.mu.Unlock()
			if done > said {
				text, said = text+fmt.Sprintf("ok %d\n", done), done
			}
			if text != "" && s.answer(c, "%s", text) != nil {
				c.Close()
				return
			}
		case <-over:
			return
		}
	}
}

func (s *listener) answer(c *client, format string, args ...any) error {
	if err := c.SetWriteDeadline(time.Now().Add(s.cfg.Timeout)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c, format, args...)
	return err
}

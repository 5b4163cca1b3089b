package nightly

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// faults are the probabilities of the faults of a client's request.
type faults struct {
	lost       float64 // the request does not arrive, and the connection breaks
	late       float64 // it arrives after up to lateBy, and the connection breaks at once
	lateBy     time.Duration
	unheard    float64 // it arrives, and the connection breaks in the middle of the answer
	slow       float64 // it and everything behind it on the connection take up to slowBy
	slowBy     time.Duration
	doubled    float64 // it arrives again on another connection after up to doubledBy; only for requests that write messages
	doubledBy  time.Duration
	frozen     float64 // its program is suspended with it, for frozenFrom to frozenTo
	stranded   float64 // it arrives as late; a moment later, when its other requests have answers, its program is suspended until then
	frozenFrom time.Duration
	frozenTo   time.Duration
}

// latency is the longest time that a frame takes without trouble.
const latency = 5 * time.Millisecond

// Requests of Kafka's protocol by their keys.
const (
	produceKey         = 0 // writes messages
	initProducerIDKey  = 22
	addPartitionsKey   = 24
	addOffsetsKey      = 25
	endTxnKey          = 26
	txnOffsetCommitKey = 28
	// joinKey joins a group. It meets no faults, and a program that waits to join is not
	// killed before it has its answer: the tests of internal/bus do that.
	joinKey = 11
)

// network is a network in memory. Its frames have the form of Kafka's protocol: four bytes of
// length, then the request or the answer. The faults of a frame follow from the seed, the
// connection and the number of the frame. Plain connections have no frames; their only faults
// are that programs are suspended and killed.
type network struct {
	seed      uint64
	faults    faults
	txnFaults faults                           // of requests that belong to transactions
	mutant    *mutant                          // changes requests; nil: none
	say       func(format string, args ...any) // tells the story; called with mu held

	mu        sync.Mutex
	calm      bool // faults have ended
	listeners map[string]*listener
	hosts     map[string]*host
	count     struct{ dials, frames, lost, late, unheard, slow, doubled, frozen, stranded int }
}

// host is a program on the network.
type host struct {
	name    string
	dials   int
	suspend time.Time // until then it neither sends nor reads
	dead    bool
	ends    []*end
	joining map[string]bool // connections on which it waits to become a member of a group
}

func newNetwork(seed uint64, say func(string, ...any)) *network {
	return &network{seed: seed, say: say, listeners: make(map[string]*listener), hosts: make(map[string]*host)}
}

// draw returns a number in [0, 1) that follows from the seed and the arguments.
func (n *network) draw(what string, args ...any) float64 {
	h := fnv.New64a()
	fmt.Fprint(h, n.seed, what, args)
	z := h.Sum64() // SplitMix64's finalizer spreads hashes that FNV leaves similar
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return float64((z^(z>>31))>>11) / (1 << 53)
}

// within returns a time in [0, most).
func (n *network) within(most time.Duration, what string, args ...any) time.Duration {
	return time.Duration(n.draw(what, args...) * float64(most))
}

// endFaults ends all faults and wakes suspended programs.
func (n *network) endFaults() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.say("faults end")
	n.calm = true
	for _, h := range n.hosts {
		h.suspend = time.Time{}
		for _, e := range h.ends {
			e.in.poke()
		}
	}
}

func (n *network) host(name string) *host {
	h := n.hosts[name]
	if h == nil {
		h = &host{name: name, joining: make(map[string]bool)}
		n.hosts[name] = h
	}
	return h
}

// suspendHost stops a program for a while, as SIGSTOP would: it neither sends nor reads. Unlike
// with SIGSTOP, its clock goes on.
func (n *network) suspendHost(name string, by time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.calm {
		return
	}
	n.say("suspend %s for %v", name, by)
	n.host(name).suspend = time.Now().Add(by)
}

// kill takes a program off the network for ever. Frames that are under way may still arrive.
func (n *network) kill(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.say("kill %s", name)
	h := n.host(name)
	h.dead = true
	for _, e := range h.ends {
		e.out.finish()
		e.in.reset(0)
	}
}

// isJoining reports whether a program waits to become a member of a group.
func (n *network) isJoining(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.host(name).joining) > 0
}

type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }

type listener struct {
	at     address
	plain  bool
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (n *network) listen(at string, plain bool) net.Listener {
	l := &listener{at: address(at), plain: plain, conns: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[at] = l
	return l
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return l.at }

// dialer returns the dial function of a program.
func (n *network) dialer(name string) func(ctx context.Context, network, to string) (net.Conn, error) {
	return func(ctx context.Context, network, to string) (net.Conn, error) {
		refuse := func(err error) error { return &net.OpError{Op: "dial", Net: network, Addr: address(to), Err: err} }
		n.mu.Lock()
		h, l := n.host(name), n.listeners[to]
		dead, wait := h.dead, time.Until(h.suspend)
		n.mu.Unlock()
		if wait > 0 {
			select {
			case <-time.After(min(wait, 3*time.Second)):
				return nil, refuse(os.ErrDeadlineExceeded)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if l == nil || dead {
			return nil, refuse(errors.New("connection refused"))
		}
		ours, theirs := n.connect(h, to, l.plain)
		select {
		case l.conns <- theirs:
			return ours, nil
		case <-l.closed:
			return nil, refuse(errors.New("connection refused"))
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// connect makes a connection.
func (n *network) connect(h *host, to string, plain bool) (client, server *end) {
	up, down := newStream(), newStream()
	n.mu.Lock()
	defer n.mu.Unlock()
	h.dials++
	n.count.dials++
	id := fmt.Sprintf("%s#%d", h.name, h.dials)
	n.say("dial %s", id)
	client = &end{net: n, host: h, id: id, to: address(to), in: down, out: up, isClient: true, plain: plain}
	server = &end{net: n, host: h, id: id, to: address(h.name), in: up, out: down, plain: plain}
	h.ends = append(h.ends, client)
	return client, server
}

// stream is one direction of a connection.
type stream struct {
	mu       sync.Mutex
	chunks   []chunk
	last     time.Time // when the newest chunk arrives
	finished bool      // the stream ends behind the chunks
	broken   time.Time // when reading begins to fail; zero: never
	deadline time.Time
	doomed   bool // the connection breaks in the middle of the next frame
	wake     chan struct{}
}

type chunk struct {
	at time.Time
	b  []byte
}

func newStream() *stream { return &stream{wake: make(chan struct{}, 1)} }

func (s *stream) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// put lets b arrive at a time, but not before earlier chunks.
func (s *stream) put(b []byte, at time.Time) {
	s.mu.Lock()
	if at.Before(s.last) {
		at = s.last
	}
	s.last = at
	s.chunks = append(s.chunks, chunk{at, append([]byte(nil), b...)})
	s.mu.Unlock()
	s.poke()
}

// finish lets the reader find the end behind the chunks.
func (s *stream) finish() {
	s.mu.Lock()
	s.finished = true
	s.mu.Unlock()
	s.poke()
}

// reset lets reading fail after a while.
func (s *stream) reset(after time.Duration) {
	s.mu.Lock()
	s.broken = time.Now().Add(after)
	s.mu.Unlock()
	s.poke()
}

// over reports whether sending has ended.
func (s *stream) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.finished
}

// end is one end of a connection. One goroutine reads and one writes.
type end struct {
	net      *network
	host     *host // of the client
	id       string
	to       address
	isClient bool
	plain    bool
	in, out  *stream

	mu     sync.Mutex
	frame  []byte // the beginning of a frame that is not complete
	frames int
	closed bool
}

func (e *end) fail(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: e.to, Err: err}
}

func (e *end) Read(b []byte) (int, error) {
	for {
		n, wait, err := e.tryRead(b)
		if n > 0 || err != nil || len(b) == 0 {
			return n, err
		}
		if wait.IsZero() {
			<-e.in.wake
			continue
		}
		t := time.NewTimer(time.Until(wait))
		select {
		case <-e.in.wake:
		case <-t.C:
		}
		t.Stop()
	}
}

// tryRead reads the bytes that have arrived. If there are none, it returns until when to wait;
// zero: until the stream wakes.
func (e *end) tryRead(b []byte) (n int, wait time.Time, err error) {
	var until time.Time
	if e.isClient {
		e.net.mu.Lock()
		until = e.host.suspend
		e.net.mu.Unlock()
	}
	s, now := e.in, time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	earlier := func(t time.Time) {
		if !t.IsZero() && (wait.IsZero() || t.Before(wait)) {
			wait = t
		}
	}
	switch {
	case !s.broken.IsZero() && !now.Before(s.broken):
		return 0, wait, e.fail("read", errors.New("connection reset by peer"))
	case !s.deadline.IsZero() && !now.Before(s.deadline):
		return 0, wait, e.fail("read", os.ErrDeadlineExceeded)
	case len(s.chunks) > 0:
		at := s.chunks[0].at
		if at.Before(until) {
			at = until
		}
		if !at.After(now) {
			n = copy(b, s.chunks[0].b)
			if s.chunks[0].b = s.chunks[0].b[n:]; len(s.chunks[0].b) == 0 {
				s.chunks = s.chunks[1:]
			}
			return n, wait, nil
		}
		earlier(at)
	case s.finished:
		return 0, wait, io.EOF
	}
	earlier(s.broken)
	earlier(s.deadline)
	return 0, wait, nil
}

func (e *end) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.out.over() {
		return 0, e.fail("write", errors.New("broken pipe"))
	}
	if e.plain {
		e.pass(b)
		return len(b), nil
	}
	e.frame = append(e.frame, b...)
	for len(e.frame) >= 4 {
		size := 4 + int(binary.BigEndian.Uint32(e.frame))
		if len(e.frame) < size {
			break
		}
		frame := e.frame[:size:size]
		e.frame = append([]byte(nil), e.frame[size:]...)
		e.send(frame)
	}
	return len(b), nil
}

// pass sends the bytes of a plain connection.
func (e *end) pass(b []byte) {
	n := e.net
	n.mu.Lock()
	defer n.mu.Unlock()
	e.frames++
	at := time.Now().Add(n.within(latency, "latency", e.isClient, e.id, e.frames))
	if e.isClient && at.Before(e.host.suspend) {
		at = e.host.suspend
	}
	e.out.put(b, at)
}

// strandedAfter is how long a program goes on after one of its requests is stranded.
const strandedAfter = 100 * time.Millisecond

// transactional reports whether a request that writes messages has a transactional id. The id is
// its first field.
func transactional(frame []byte) bool {
	const client = 12 // offset of the client's name, behind its length in two bytes
	id := client + 2 + int(binary.BigEndian.Uint16(frame[client:]))
	return binary.BigEndian.Uint16(frame[id:]) != 0xffff
}

// send sends one frame with its faults.
func (e *end) send(frame []byte) {
	n := e.net
	n.mu.Lock()
	defer n.mu.Unlock()
	e.frames++
	n.count.frames++
	key, side, faults := -1, "answer", n.faults
	if e.isClient && len(frame) >= 6 {
		key, side = int(binary.BigEndian.Uint16(frame[4:])), "request"
		frame = n.mutant.change(e.host.name, frame)
	}
	switch {
	case key == joinKey:
		e.host.joining[e.id] = true
	case !e.isClient:
		delete(e.host.joining, e.id)
	}
	switch key {
	case addPartitionsKey, addOffsetsKey, endTxnKey, txnOffsetCommitKey:
		faults, faults.stranded = n.txnFaults, 0
	case produceKey:
		if transactional(frame) {
			faults.stranded, faults.frozenFrom, faults.frozenTo = n.txnFaults.stranded, n.txnFaults.frozenFrom, n.txnFaults.frozenTo
		}
	}
	sum := fnv.New32a()
	sum.Write(frame)
	n.say("%s %s %d: key %d, %d bytes, sum %08x", e.id, side, e.frames, key, len(frame), sum.Sum32())
	now := time.Now()
	at := now.Add(n.within(latency, "latency", side, e.id, e.frames))
	happens := func(p float64, fault string, counter *int) bool {
		if n.calm || key == joinKey || n.draw(fault, e.id, e.frames) >= p {
			return false
		}
		*counter++
		n.say("FAULT %s: request %d of %s", fault, e.frames, e.id)
		return true
	}
	frozenBy := func() time.Duration {
		return faults.frozenFrom + n.within(faults.frozenTo-faults.frozenFrom, "frozen by", e.id, e.frames)
	}
	if e.isClient && happens(faults.frozen, "frozen", &n.count.frozen) {
		by := frozenBy()
		n.say("suspend %s for %v, in the middle of a transaction", e.host.name, by)
		e.host.suspend = now.Add(by)
	}
	if e.isClient && at.Before(e.host.suspend) {
		at = e.host.suspend
	}
	switch {
	case !e.isClient:
		if e.out.isDoomed() {
			e.out.put(frame[:len(frame)/2], at)
			e.out.reset(at.Sub(now))
			e.in.finish()
			return
		}
	case happens(faults.lost, "lost", &n.count.lost):
		e.in.reset(0)
		e.out.finish()
		return
	case happens(faults.late, "late", &n.count.late):
		e.out.put(frame, at.Add(n.within(faults.lateBy, "late by", e.id, e.frames)))
		e.out.finish()
		e.in.reset(0)
		return
	case happens(faults.unheard, "answer lost", &n.count.unheard):
		e.in.doom()
	case happens(faults.slow, "slow", &n.count.slow):
		at = at.Add(n.within(faults.slowBy, "slow by", e.id, e.frames))
	case happens(faults.stranded, "stranded", &n.count.stranded):
		at = now.Add(frozenBy())
		time.AfterFunc(strandedAfter, func() { n.suspendHost(e.host.name, time.Until(at)) })
	case key == produceKey && happens(faults.doubled, "doubled", &n.count.doubled):
		go n.again(e, frame, n.within(faults.doubledBy, "doubled by", e.id, e.frames))
	}
	e.out.put(frame, at)
}

// again delivers a request once more, on a new connection.
func (n *network) again(e *end, frame []byte, after time.Duration) {
	time.Sleep(after)
	n.mu.Lock()
	l := n.listeners[string(e.to)]
	n.mu.Unlock()
	ours, theirs := n.connect(&host{name: "again-" + e.id}, string(e.to), false)
	select {
	case l.conns <- theirs:
	case <-l.closed:
		return
	}
	ours.out.put(frame, time.Now())
	_ = ours.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, _ = ours.Read(make([]byte, 1<<10))
	ours.Close()
}

func (s *stream) doom() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doomed = true
}

func (s *stream) isDoomed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doomed
}

func (e *end) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.out.finish()
	e.in.finish()
	e.in.reset(0)
	e.net.mu.Lock()
	delete(e.host.joining, e.id)
	e.net.mu.Unlock()
	return nil
}

func (e *end) LocalAddr() net.Addr  { return address(e.host.name) }
func (e *end) RemoteAddr() net.Addr { return e.to }

func (e *end) SetDeadline(t time.Time) error { return e.SetReadDeadline(t) }

func (e *end) SetReadDeadline(t time.Time) error {
	e.in.mu.Lock()
	e.in.deadline = t
	e.in.mu.Unlock()
	e.in.poke()
	return nil
}

// SetWriteDeadline has no effect: writing never waits.
func (e *end) SetWriteDeadline(time.Time) error { return nil }

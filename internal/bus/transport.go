package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/apiversions"
	"github.com/segmentio/kafka-go/protocol/saslauthenticate"
	"github.com/segmentio/kafka-go/protocol/saslhandshake"
	"github.com/segmentio/kafka-go/sasl"
)

const (
	idleTimeout = 30 * time.Second // after this without a request a connection is closed
	mostToOne   = 32               // connections to one broker
	tryTimeout  = 3 * time.Second  // for a broker that any other could answer for
)

// transport carries the requests of all clients of this process that reach Kafka in the same
// way. They share its connections and what it knows of the cluster. It implements
// kafka.RoundTripper.
//
// A connection carries one request at a time, of any client, so there are as many connections
// to a broker as there are requests at the same time. Kafka does not bind a transactional id or
// a group to a connection.
type transport struct {
	cfg    Config
	key    transportKey
	users  int // clients; guarded by transports
	limit  int // connections to one broker
	born   time.Time
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	peers   map[string]*peer // by address
	resets  int
	second  *transport // shares nothing with this one: for another look at what it says; nil: this is the second
	pollers map[pollerKey]*poller

	// What is known of the cluster.
	cluster *cluster
	topics  map[string]bool // that are in use
	stale   bool            // something has changed
	asking  *question       // under way; nil: none
	good    string          // address of the broker that answered last
	expired int             // failures that may have come from what is known

	coordinators map[coordinated]int32 // brokers, since the last failure
}

// transportKey is what clients with the same transport have in common.
type transportKey struct {
	brokers, clientID string
	tls               *TLS
	login             *credential.Login
	network           *Network
}

// transports are all that this process has.
var transports = struct {
	sync.Mutex
	all map[transportKey]*transport
}{all: make(map[transportKey]*transport)}

// transport returns the one of this process for the configuration. Call release when done.
func (c Config) transport() *transport {
	key := transportKey{strings.Join(c.Brokers, ","), c.ClientID, c.TLS, c.Login, c.Network}
	transports.Lock()
	defer transports.Unlock()
	t := transports.all[key]
	if t == nil {
		t = newTransport(c, mostToOne)
		t.second = newTransport(c, 1)
		t.key, transports.all[key] = key, t
	}
	t.users++
	return t
}

// release closes the connections when no client needs them any more.
func (t *transport) release() {
	transports.Lock()
	t.users--
	over := t.users == 0
	if over {
		delete(transports.all, t.key)
	}
	transports.Unlock()
	if over {
		t.close()
	}
}

func newTransport(cfg Config, limit int) *transport {
	t := &transport{
		cfg: cfg, limit: limit, born: time.Now(), peers: make(map[string]*peer), pollers: make(map[pollerKey]*poller),
		cluster: &cluster{}, topics: make(map[string]bool), coordinators: make(map[coordinated]int32),
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

func (t *transport) close() {
	t.cancel()
	t.reset()
	if t.second != nil {
		t.second.close()
	}
}

// reset closes all connections: those in use when they have carried their request.
func (t *transport) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.resets++
	t.stale = true
	clear(t.coordinators)
	for _, p := range t.peers {
		p.drop()
	}
}

// peer is an address of a broker.
type peer struct {
	t      *transport
	addr   string
	places chan struct{} // one value for each connection in use
	idle   []*conn       // the last one was used last; guarded by the transport's mu
}

// conn is a connection to a broker.
type conn struct {
	*protocol.Conn
	newest map[protocol.ApiKey]int16 // versions that the broker speaks
	resets int
	timer  *time.Timer // closes it; nil: it has not been idle
}

func (t *transport) peer(addr string) *peer {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peers[addr]
	if p == nil {
		p = &peer{t: t, addr: addr, places: make(chan struct{}, t.limit)}
		t.peers[addr] = p
	}
	return p
}

// exchange sends a request to the broker at an address and returns its answer, within callTimeout.
func (t *transport) exchange(ctx context.Context, addr string, req protocol.Message) (protocol.Message, error) {
	if at, ok := ctx.Deadline(); !ok || time.Until(at) > callTimeout {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callTimeout)
		defer cancel()
	}
	p := t.peer(addr)
	select {
	case p.places <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-p.places }()
	c, err := p.take(ctx)
	if err != nil {
		return nil, endOr(ctx, err)
	}
	var res protocol.Message
	err = c.within(ctx, func() (err error) {
		if r, ok := req.(interface {
			speaks(map[protocol.ApiKey]int16)
		}); ok {
			r.speaks(c.newest)
		}
		res, err = c.RoundTrip(req)
		return err
	})
	if err != nil && !errors.Is(err, protocol.ErrNoRecord) {
		_ = c.Close()
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.mu.Lock()
			p.drop() // the others may be dead, too
			t.mu.Unlock()
		}
		return nil, endOr(ctx, err)
	}
	p.give(c)
	return res, err
}

// endOr returns the error of ctx if it has ended, and otherwise err.
func endOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// within calls f, which uses the connection, and interrupts it when ctx ends.
func (c *conn) within(ctx context.Context, f func() error) error {
	deadline, _ := ctx.Deadline()
	if err := c.SetDeadline(deadline); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	err := f()
	if !stop() && err == nil {
		return ctx.Err()
	}
	return err
}

// take returns an idle connection or makes one.
func (p *peer) take(ctx context.Context) (*conn, error) {
	p.t.mu.Lock()
	resets := p.t.resets
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		c.timer.Stop()
		p.t.mu.Unlock()
		return c, nil
	}
	p.t.mu.Unlock()
	c, err := p.t.connect(ctx, p.addr)
	if err == nil {
		c.resets = resets
	}
	return c, err
}

// give takes a connection back.
func (p *peer) give(c *conn) {
	p.t.mu.Lock()
	defer p.t.mu.Unlock()
	if c.resets != p.t.resets || p.t.ctx.Err() != nil {
		_ = c.Close()
		return
	}
	p.idle = append(p.idle, c)
	if c.timer != nil {
		c.timer.Reset(idleTimeout)
		return
	}
	c.timer = time.AfterFunc(idleTimeout, func() {
		p.t.mu.Lock()
		defer p.t.mu.Unlock()
		if i := slices.Index(p.idle, c); i >= 0 {
			p.idle = slices.Delete(p.idle, i, i+1)
			_ = c.Close()
		}
	})
}

// drop closes the idle connections. The caller holds the transport's mu.
func (p *peer) drop() {
	for _, c := range p.idle {
		c.timer.Stop()
		_ = c.Close()
	}
	p.idle = nil
}

// connect makes a connection and logs in.
func (t *transport) connect(ctx context.Context, addr string) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	wire, err := t.cfg.dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: protocol.NewConn(wire, t.cfg.ClientID), newest: make(map[protocol.ApiKey]int16)}
	if err := c.within(ctx, func() error { return c.greet(ctx, t.cfg) }); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// greet asks which versions the broker speaks, and logs in.
func (c *conn) greet(ctx context.Context, cfg Config) error {
	res, err := c.RoundTrip(new(apiversions.Request))
	if err != nil {
		return err
	}
	speaks := res.(*apiversions.Response)
	if speaks.ErrorCode != 0 {
		return fmt.Errorf("bus: versions that the broker speaks: %w", kafka.Error(speaks.ErrorCode))
	}
	versions := make(map[protocol.ApiKey]int16)
	for _, r := range speaks.ApiKeys {
		key := protocol.ApiKey(r.ApiKey)
		versions[key], c.newest[key] = key.SelectVersion(r.MinVersion, r.MaxVersion), r.MaxVersion
	}
	c.SetVersions(versions)
	if m := cfg.mechanism(); m != nil {
		return c.login(ctx, m)
	}
	return nil
}

func (c *conn) login(ctx context.Context, m sasl.Mechanism) error {
	res, err := c.RoundTrip(&saslhandshake.Request{Mechanism: m.Name()})
	if err != nil {
		return err
	}
	if code := res.(*saslhandshake.Response).ErrorCode; code != 0 {
		return kafka.Error(code)
	}
	state, say, err := m.Start(ctx)
	for done := false; err == nil && !done; {
		if res, err = c.RoundTrip(&saslauthenticate.Request{AuthBytes: say}); err != nil {
			return err
		}
		answer := res.(*saslauthenticate.Response)
		if answer.ErrorCode != 0 {
			return fmt.Errorf("%w: %s", kafka.Error(answer.ErrorCode), answer.ErrorMessage)
		}
		done, say, err = state.Next(ctx, answer.AuthBytes)
	}
	return err
}

// RoundTrip implements kafka.RoundTripper: it finds the broker for a request.
func (t *transport) RoundTrip(ctx context.Context, _ net.Addr, req kafka.Request) (kafka.Response, error) {
	now, err := t.know(ctx, false)
	if err != nil {
		return nil, err
	}
	switch m := req.(type) {
	case protocol.BrokerMessage:
		b, err := m.Broker(now.Cluster)
		if err != nil {
			return nil, err
		}
		return t.toNode(ctx, b.ID, req)
	case protocol.GroupMessage:
		return t.toCoordinator(ctx, coordinated{ofGroup, m.Group()}, req)
	case protocol.TransactionalMessage:
		return t.toCoordinator(ctx, coordinated{ofTransaction, m.Transaction()}, req)
	}
	return t.anyone(ctx, req)
}

func (t *transport) toCoordinator(ctx context.Context, of coordinated, req protocol.Message) (protocol.Message, error) {
	node, err := t.coordinator(ctx, of)
	if err != nil {
		return nil, err
	}
	return t.toNode(ctx, node, req)
}

// toNode sends a request to the broker with a number.
func (t *transport) toNode(ctx context.Context, node int32, req protocol.Message) (protocol.Message, error) {
	now, err := t.know(ctx, false)
	if err != nil {
		return nil, err
	}
	addr, ok := now.addrs[node]
	if !ok {
		t.expire()
		return nil, kafka.BrokerNotAvailable
	}
	return t.exchange(ctx, addr, req)
}

// anyone sends a request that every broker answers in the same way. It begins with the broker
// that answered last and goes on until one answers.
func (t *transport) anyone(ctx context.Context, req protocol.Message) (res protocol.Message, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	addrs := t.addresses()
	for i, addr := range addrs {
		patience := tryTimeout // a broker that hangs must not take all the time
		if i+1 == len(addrs) {
			patience = callTimeout
		}
		try, cancel := context.WithTimeout(ctx, patience)
		res, err = t.exchange(try, addr, req)
		cancel()
		if err == nil {
			t.mu.Lock()
			t.good = addr
			t.mu.Unlock()
			return res, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// addresses returns where brokers are, in the order in which to ask them.
func (t *transport) addresses() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	addrs := slices.AppendSeq(slices.Clone(t.cfg.Brokers), maps.Values(t.cluster.addrs))
	slices.Sort(addrs)
	addrs = slices.Compact(addrs)
	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	if i := slices.Index(addrs, t.good); i > 0 {
		addrs[0], addrs[i] = addrs[i], addrs[0]
	}
	t.good = "" // until it has answered again
	return addrs
}

// Package mqtttest runs a broker of MQTT inside tests: mochi, which has nothing in
// common with the clients that are tested on it.
package mqtttest

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
)

// Options say what a broker wants of its clients. The zero value is: nothing.
type Options struct {
	Addr  string            // host:port; empty: a free one of this machine
	TLS   *tls.Config       // nil: in the clear
	Users map[string]string // names with passwords; nil: everybody may do everything

	ReadOnly string // beginning of the topics that no client may publish on; empty: there are none

	Refuse *atomic.Bool // nothing may be subscribed to while it is true; nil: never

	Mute func(topic string) bool // what clients publish gets no answer and goes nowhere if it returns true; nil: never
}

// gate lets everybody in.
type gate struct {
	mochi.HookBase
	o Options
}

func (*gate) ID() string { return "gate" }

func (*gate) Provides(b byte) bool {
	return b == mochi.OnConnectAuthenticate || b == mochi.OnACLCheck || b == mochi.OnPublish
}

func (*gate) OnConnectAuthenticate(*mochi.Client, packets.Packet) bool { return true }

func (g *gate) OnACLCheck(_ *mochi.Client, topic string, write bool) bool {
	refused := g.o.Refuse != nil && g.o.Refuse.Load()
	return !refused && !(write && g.o.ReadOnly != "" && strings.HasPrefix(topic, g.o.ReadOnly))
}

func (g *gate) OnPublish(_ *mochi.Client, p packets.Packet) (packets.Packet, error) {
	if g.o.Mute != nil && g.o.Mute(p.TopicName) {
		return p, packets.ErrRejectPacket
	}
	return p, nil
}

// takeovers keeps a client id that another connection takes. Without it mochi forgets the id once in some thousand times, and a
// third connection with it takes nothing: the earlier connection ends before mochi has noted that it was taken over.
type takeovers struct{ mochi.HookBase }

func (*takeovers) ID() string { return "takeovers" }

func (*takeovers) Provides(b byte) bool { return b == mochi.OnDisconnect }

func (*takeovers) OnDisconnect(c *mochi.Client, _ error, _ bool) {
	for errors.Is(c.StopCause(), packets.ErrSessionTakenOver) && !c.IsTakenOver() {
		runtime.Gosched()
	}
}

// Broker is a broker with a client of the test's own. It ends with the test.
type Broker struct {
	URL  string // mqtt:// or mqtts://
	Addr string
	Stop func() // before the test ends; twice does nothing

	server *mochi.Server
}

// Start starts a broker.
func Start(t testing.TB, o Options) *Broker {
	t.Helper()
	s := mochi.New(&mochi.Options{InlineClient: true, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	err := s.AddHook(new(takeovers), nil)
	if err != nil {
		t.Fatal(err)
	}
	if o.Refuse != nil || o.Mute != nil || o.ReadOnly != "" {
		err = s.AddHook(&gate{o: o}, nil)
	} else if o.Users == nil {
		err = s.AddHook(new(auth.AllowHook), nil)
	} else {
		ledger := &auth.Ledger{Users: auth.Users{}}
		for name, password := range o.Users {
			ledger.Users[name] = auth.UserRule{Username: auth.RString(name), Password: auth.RString(password), ACL: auth.Filters{"#": auth.ReadWrite}}
		}
		err = s.AddHook(new(auth.Hook), &auth.Options{Ledger: ledger})
	}
	if err != nil {
		t.Fatal(err)
	}
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	l := listeners.NewTCP(listeners.Config{ID: "t", Address: o.Addr, TLSConfig: o.TLS})
	if err := s.AddListener(l); err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(); err != nil {
		t.Fatal(err)
	}
	b := &Broker{URL: "mqtt://" + l.Address(), Addr: l.Address(), server: s, Stop: sync.OnceFunc(func() { _ = s.Close() })}
	if o.TLS != nil {
		b.URL = "mqtts://" + l.Address()
	}
	t.Cleanup(b.Stop)
	return b
}

// Publish publishes with QoS 1.
func (b *Broker) Publish(t testing.TB, topic string, payload []byte, retain bool) {
	t.Helper()
	if err := b.server.Publish(topic, payload, retain, 1); err != nil {
		t.Fatal(err)
	}
}

// Subscribe calls fn for what is published on topics that match a filter from now
// on, and for what is retained there.
func (b *Broker) Subscribe(t testing.TB, filter string, fn func(topic string, payload []byte, retained bool)) {
	t.Helper()
	err := b.server.Subscribe(filter, 1, func(_ *mochi.Client, _ packets.Subscription, p packets.Packet) {
		fn(p.TopicName, p.Payload, p.FixedHeader.Retain)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Inflight returns how many messages a client has not acknowledged, or -1 if the
// broker does not know it.
func (b *Broker) Inflight(client string) int {
	c, ok := b.server.Clients.Get(client)
	if !ok {
		return -1
	}
	return c.State.Inflight.Len()
}

// Subscribers returns how many clients have subscribed to a topic.
func (b *Broker) Subscribers(topic string) int {
	return len(b.server.Topics.Subscribers(topic).Subscriptions)
}

// Drop ends the connection of a client as a network does that fails.
func (b *Broker) Drop(t testing.TB, client string) {
	t.Helper()
	c, ok := b.server.Clients.Get(client)
	if !ok {
		t.Fatalf("no client is called %s", client)
	}
	c.Net.Conn.Close()
}

// Hostile starts a server that does not speak MQTT: it reads what comes and answers every connection with what
// say writes. It ends with the test. Hostile returns its host and port.
func Hostile(t testing.TB, say func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				go func() { _, _ = io.Copy(io.Discard, c) }()
				say(c)
			}()
		}
	}()
	return l.Addr().String()
}

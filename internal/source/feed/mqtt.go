package feed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"

	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/protocol/mqttconn"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
)

// MQTT says which broker to subscribe at, and to what.
type MQTT struct {
	Broker   string // mqtt://host:1883 or mqtts://host:8883
	ClientID string // the session of this feed at the broker, which keeps frames while it is away: every feed has its own, and keeps it

	// Samples and Context are the topics of frames and of what the machine is
	// doing, see Change; empty for none. See SamplesTopic and ContextTopic.
	Samples, Context string

	Login credential.Login
	TLS   *credential.TLS // for mqtts; nil: the broker's certificate is checked against the system's
}

// SamplesTopic and ContextTopic are the topics of a machine under a prefix.
func SamplesTopic(prefix, machine string) string { return prefix + "/" + machine + "/samples" }
func ContextTopic(prefix, machine string) string { return prefix + "/" + machine + "/context" }

// sessionExpiry is how long the broker keeps what comes while this program is away.
const sessionExpiry = 24 * time.Hour

// Check reports an address that cannot be meant, and files that are missing.
func (m MQTT) Check() error {
	if err := credential.CheckURL(m.Broker, "mqtt", "mqtts", !m.Login.IsZero()); err != nil {
		return fmt.Errorf("feed: broker: %w", err)
	}
	if err := m.Login.Check(); err != nil && !m.Login.IsZero() {
		return fmt.Errorf("feed: %w", err)
	}
	if _, err := m.TLS.Client(); err != nil {
		return fmt.Errorf("feed: TLS: %w", err)
	}
	return nil
}

// subscriber is a connection to a broker that comes back by itself.
type subscriber struct {
	*Feed
	mqtt MQTT
	last string // the message of context that was applied last

	connections atomic.Int64 // counts each that begins and each that ends
}

// DialMQTT returns a Feed of what a broker of MQTT 5 has. It connects when it can
// and returns only errors of the configuration: Config.Notify learns of a broker that
// is away. With a Setting, the feed applies to it what comes on
// MQTT.Context.
//
// Messages are taken with QoS 1 and acknowledged like all frames, so the broker
// keeps them until they are on disk. One that is refused is acknowledged too: the
// broker would send it again for ever.
func DialMQTT(cfg Config, m MQTT) (*Feed, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	f := open(cfg)
	f.addr = m.Broker
	f.lives = mqttconn.NewLives(m.ClientID, "let one ingest alone have this machine, and start a standby only after the first has stopped", time.Now)
	s := &subscriber{Feed: f, mqtt: m}
	u, err := url.Parse(m.Broker)
	if err != nil {
		panic("feed: DialMQTT: " + err.Error()) // it was checked
	}
	expiry := uint32(sessionExpiry.Seconds())
	if m.Samples+m.Context == "" {
		expiry = 0 // nothing to keep
	}
	manager, err := autopaho.NewConnection(f.ctx, autopaho.ClientConfig{
		ServerUrls: []*url.URL{u}, KeepAlive: 20, SessionExpiryInterval: expiry,
		ReconnectBackoff:     f.lives.Wait,
		ConnectTimeout:       f.cfg.Timeout,
		AttemptConnection:    s.dial,
		ConnectPacketBuilder: s.login,
		OnConnectionUp:       s.up,
		OnConnectionDown:     s.down,
		OnConnectError: func(err error) {
			s.notify(Notice{Text: "the MQTT broker cannot be reached", Peer: f.addr, Err: err})
		},
		ClientConfig: paho.ClientConfig{
			ClientID: m.ClientID, EnableManualAcknowledgment: true, SendAcksInterval: 50 * time.Millisecond,
			OnPublishReceived: []func(paho.PublishReceived) (bool, error){s.receive},
			OnClientError: func(err error) {
				s.say(Notice{Text: "the connection to the MQTT broker is lost", Peer: f.addr, Err: err})
			},
			OnServerDisconnect: func(d *paho.Disconnect) {
				if d.ReasonCode == packets.DisconnectSessionTakenOver {
					f.lives.TakenOver()
				}
				s.say(Notice{Text: "the MQTT broker has hung up", Peer: f.addr, Err: fmt.Errorf("feed: reason code %#x", d.ReasonCode)})
			},
		},
	})
	if err != nil {
		f.stop()
		return nil, fmt.Errorf("feed: %w", err)
	}
	f.wg.Go(func() { <-manager.Done() })
	return f, nil
}

// down notes that a connection has ended.
func (s *subscriber) down() bool {
	s.connections.Add(1)
	s.senders.Store(0)
	if err := s.lives.End(); err != nil {
		s.notify(Notice{Text: "the connection to the MQTT broker does not last", Peer: s.addr, Err: fmt.Errorf("feed: %w", err)})
	}
	return true
}

// say notifies of a connection that begins or ends, except while none lasts: down has said that.
func (s *subscriber) say(n Notice) {
	if s.lives.Err() == nil {
		s.notify(n)
	}
}

func (s *subscriber) dial(ctx context.Context, _ autopaho.ClientConfig, u *url.URL) (net.Conn, error) {
	return mqttconn.Dial(ctx, s.cfg.Timeout, u, s.mqtt.TLS, maxPacket)
}

// maxPacket is how many bytes a packet of the broker may have.
const maxPacket = maxFrame + 1<<16

// login completes the first packet of a connection.
func (s *subscriber) login(c *paho.Connect, _ *url.URL) (*paho.Connect, error) {
	// Twice what may be unacknowledged, so that the broker never waits for what we wait for.
	window, size := uint16(2*maxUnacked), uint32(maxPacket)
	if c.Properties == nil {
		c.Properties = &paho.ConnectProperties{}
	}
	c.Properties.ReceiveMaximum, c.Properties.MaximumPacketSize = &window, &size
	return c, mqttconn.LogIn(c, s.mqtt.Login)
}

// up subscribes on a new connection.
func (s *subscriber) up(m *autopaho.ConnectionManager, _ *paho.Connack) {
	sub := &paho.Subscribe{}
	for _, topic := range []string{s.mqtt.Samples, s.mqtt.Context} {
		if topic != "" {
			sub.Subscriptions = append(sub.Subscriptions, paho.SubscribeOptions{
				Topic: topic, QoS: 1,
				RetainHandling: 1, // retained messages come once, and not again after newer ones
			})
		}
	}
	s.lives.Begin()
	connection := s.connections.Add(1)
	s.wg.Go(func() { s.subscribe(m, sub, connection) })
}

// subscribe asks for the topics until the broker grants them or the connection ends: a right that
// is granted later ends no connection, and an answer may come too late. It says each refusal once.
func (s *subscriber) subscribe(m *autopaho.ConnectionManager, sub *paho.Subscribe, connection int64) {
	said := ""
	for n := 1; s.connections.Load() == connection; n++ {
		ctx, cancel := context.WithTimeout(s.ctx, s.cfg.Timeout)
		var err error
		if len(sub.Subscriptions) > 0 {
			_, err = m.Subscribe(ctx, sub)
		}
		cancel()
		switch {
		case s.ctx.Err() != nil || s.connections.Load() != connection:
			return
		case err == nil:
			s.senders.Store(1)
			s.say(Notice{Text: "the MQTT broker is connected", Peer: s.addr})
			return
		case err.Error() != said:
			said = err.Error()
			s.notify(Notice{Text: "the MQTT broker refuses the topics; they are asked for again until it grants them", Peer: s.addr, Err: err})
		}
		_ = source.SystemClock.Wait(s.ctx, s.lives.Wait(n))
	}
}

// receive takes a message. It waits while too many frames do.
func (s *subscriber) receive(r paho.PublishReceived) (bool, error) {
	ack := func() {
		// On a connection that is gone it cannot be acknowledged: the broker sends it
		// again, and it is dropped as known.
		_ = r.Client.Ack(r.Packet)
	}
	if r.Packet.Topic == s.mqtt.Context {
		defer ack()
		if err := s.context(r.Packet); err != nil {
			s.refuse(Malformed, s.addr+" "+r.Packet.Topic, err)
		}
		return true, nil
	}
	peer := s.addr + " " + r.Packet.Topic
	if r.Packet.Retain && len(r.Packet.Payload) > 0 {
		ack()
		s.refuse(Retained, peer, errors.New("feed: the broker had kept the frame, which may be days old: publish frames without the retain flag, and clear it by an empty retained message"))
		return true, nil
	}
	b, err := s.dec.decode(r.Packet.Payload)
	if err != nil {
		ack()
		s.malformed(peer, err)
		return true, nil
	}
	s.deliver(arrival{block: b, ack: ack, peer: peer})
	return true, nil
}

// context applies a message of what the machine is doing. That a tool is new is
// taken once: not from a message that was retained, nor from one that comes again
// because its acknowledgement was lost.
func (s *subscriber) context(p *paho.Publish) error {
	if s.cfg.Setting == nil || len(strings.TrimSpace(string(p.Payload))) == 0 {
		return nil // a retained message was cleared
	}
	c, err := parseChange(p.Payload)
	if err != nil {
		return err
	}
	if again := p.Duplicate() && string(p.Payload) == s.last; c.New && (p.Retain || again) {
		if !again {
			s.notify(Notice{Text: "context: the message was retained, so its tool is not taken for a new one: send it without the retain flag", Peer: s.addr})
		}
		if c.New = false; c.Check() != nil {
			return nil // it says nothing else
		}
	}
	before := s.cfg.Setting.Context()
	now, err := s.cfg.Setting.Apply(c)
	if err != nil {
		return err
	}
	if s.last = string(p.Payload); now != before {
		s.notify(Notice{Text: fmt.Sprintf("context: tool %q, hole %q, %v rev/min%s", now.Tool, now.Hole, now.SpindleSpeed, more(now)), Peer: s.addr})
	}
	if c.New {
		s.notify(Notice{Text: fmt.Sprintf("context: tool %q is new", c.tool(now)), Peer: s.addr})
	}
	return nil
}

// Probe connects to the broker and hangs up. It reports why it cannot.
func (m MQTT) Probe(ctx context.Context) error {
	if err := m.Check(); err != nil {
		return err
	}
	var mu sync.Mutex
	var why error
	m.Samples, m.Context = "", ""
	f, err := DialMQTT(Config{Layout: signal.GunDrill(), Notify: func(n Notice) {
		mu.Lock()
		defer mu.Unlock()
		if n.Err != nil {
			why = n.Err
		}
	}}, m)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		if f.Stats().Senders > 0 {
			return nil
		}
		mu.Lock()
		err := why
		mu.Unlock()
		if err != nil {
			return err
		}
		if err := source.SystemClock.Wait(ctx, 5*time.Millisecond); err != nil {
			return fmt.Errorf("feed: %s does not answer: %w", m.Broker, err)
		}
	}
}

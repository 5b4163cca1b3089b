package route

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"
	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/protocol/mqttconn"
	"github.com/flank-tcm/flank/pkg/signal"
)

// mqttConfig is a broker of MQTT 5 that shows the state of machines: a retained message
// for each machine on PREFIX/MACHINE/alarm, QoS 1, with the JSON of a
// [publishedState], which holds while the [monitorStatus] of the monitor that it names is online; or, with
// Sparkplug, births, data and deaths as Sparkplug B has them. It gets neither waveforms nor history: a client that connects later gets the
// present state.
type mqttConfig struct {
	Broker    string           `yaml:"broker"`    // mqtt://host:1883 or mqtts://host:8883
	Prefix    string           `yaml:"prefix"`    // of topics; empty: flank
	ClientID  string           `yaml:"client_id"` // of each monitor another; empty: of this process alone, with Sparkplug of the edge node
	Sparkplug *sparkplugConfig `yaml:"sparkplug"`
	Login     credential.Login `yaml:",inline"`
	TLS       *credential.TLS  `yaml:"tls"`
}

func (m *mqttConfig) check() error {
	return cmp.Or(
		config.Under("broker", credential.CheckURL(m.Broker, "mqtt", "mqtts", m.Login.User != "")),
		wrong(strings.ContainsAny(m.Prefix, "+#"), "prefix", "%q: a topic has neither + nor #", m.Prefix),
		wrong(m.Sparkplug != nil && m.Prefix != "", "prefix", "topics of Sparkplug begin with spBv1.0: remove it, or `sparkplug`"),
		m.Sparkplug.check(),
		checkLogin(m.Login),
		checkFiles(m.TLS))
}

func (m *mqttConfig) resolve(file string) {
	m.Login, m.TLS = m.Login.Resolve(file), m.TLS.Resolve(file)
}

func (m *mqttConfig) target() string { return "MQTT at " + host(m.Broker) }

func (m *mqttConfig) open(r *Route) (receiver, error) { return newMQTT(*m, r), nil }

// publishedState is the state of a machine, as it is retained and as
// schemas/machine-state.schema.json describes it.
type publishedState struct {
	Machine    string          `json:"machine"`
	Alarm      string          `json:"alarm"`  // its state, in the words of an alert
	Active     bool            `json:"active"` // the alarm calls people: it is open and not masked
	Incident   string          `json:"incident,omitempty"`
	Tool       string          `json:"tool,omitempty"`
	Since      time.Time       `json:"since,omitzero"` // of an open alarm; left out, as At is, for a recording without a clock
	At         time.Time       `json:"at,omitzero"`    // of the last alert
	Text       string          `json:"text,omitempty"` // of it
	Evidence   string          `json:"evidence,omitempty"`
	Advisories []advisoryState `json:"advisories"`        // open ones
	Monitor    string          `json:"monitor,omitempty"` // that judges the machine, by its id in PREFIX/_monitor/ID/status
	Sent       time.Time       `json:"sent,omitzero"`     // when the monitor published this
}

// monitorStatus is the life sign of a monitor, retained on PREFIX/_monitor/ID/status as
// schemas/monitor-status.schema.json describes it. The broker publishes the status offline as the will.
type monitorStatus struct {
	Monitor   string    `json:"monitor"`
	Status    string    `json:"status"`      // online or offline
	Connected time.Time `json:"connected"`   // when the connection to the broker began
	At        time.Time `json:"at,omitzero"` // when the monitor published this; left out of the will
}

// lifeSign is how often a monitor that has machines publishes that it is online. That also corrects the will of
// an earlier connection that comes late, or of another monitor of this host.
const lifeSign = 30 * time.Second

// advisoryState is an open advisory.
type advisoryState struct {
	Kind    string    `json:"kind"`
	Subject string    `json:"subject,omitempty"` // channel, or the rate of several
	Status  string    `json:"status,omitempty"`  // NAMUR NE 107
	Since   time.Time `json:"since,omitzero"`
	Text    string    `json:"text"`
}

// ofClock returns t, or zero if no clock gave it.
func ofClock(t time.Time) time.Time {
	if !signal.HasClock(t) {
		return time.Time{}
	}
	return t
}

func machineState(s *standing) publishedState {
	m := publishedState{Machine: s.machine, Alarm: "normal", Advisories: []advisoryState{}}
	if e := s.last; e != nil {
		m.Alarm, m.Active, m.Tool, m.At, m.Text = cmp.Or(e.Alarm, e.State), e.calls(), e.Tool, ofClock(e.At), e.Text
		if e.stands() {
			m.Incident, m.Since, m.Evidence = e.Incident, ofClock(e.Since), cmp.Or(e.link(), s.raised.link())
		}
	}
	for _, e := range s.sorted() {
		m.Advisories = append(m.Advisories, advisoryState{e.Kind, e.Subject, e.Status, ofClock(e.Since), e.Text})
	}
	return m
}

type mqttReceiver struct {
	cfg     mqttConfig
	timeout time.Duration
	now     func() time.Time
	log     zerolog.Logger
	lives   *mqttconn.Lives
	*machineStates

	once    sync.Once
	manager *autopaho.ConnectionManager
	broken  error // set without a manager
	stop    context.CancelFunc
	trouble atomic.Pointer[error] // of the last connection that failed

	life atomic.Pointer[context.Context] // of the last connection that was tried
	end  context.CancelCauseFunc         // of life; for the manager's goroutine

	id        string    // in the topic of the life sign; empty: there is none
	connected time.Time // when the connection began; guarded by the lock of machineStates, as what follows
	signed    time.Time // when the life sign was last published
	unsigned  string    // why it could not be

	downs atomic.Int64 // connections that ended, or after which a host asks for births again
	shown int64        // value of downs for which the node and the machines of all partitions but fresh were shown
	fresh map[int]bool // partitions whose machines were not shown yet
	bd    atomic.Int64 // bdSeq of the last CONNECT; negative before the first
	seq   int          // of the next message of Sparkplug
}

func newMQTT(m mqttConfig, r *Route) *mqttReceiver {
	host, err := os.Hostname()
	if err != nil {
		host = "monitor"
	}
	m.Prefix = cmp.Or(m.Prefix, "flank")
	id := inTopic.Replace(cmp.Or(m.ClientID, host))
	if r.opt.Aside || m.Sparkplug != nil {
		id = "" // a test does not judge machines, and Sparkplug has deaths
	}
	remedy, aside := "give each monitor a `client_id` of its own", ""
	if r.opt.Aside {
		aside = "-test"
	}
	host += aside
	if m.Sparkplug != nil {
		named := *m.Sparkplug
		named.Group, named.Edge = cmp.Or(named.Group, "flank"), strings.TrimSuffix(cmp.Or(named.Edge, inTopic.Replace(host)), aside)+aside
		m.Sparkplug = &named
		remedy = "give each monitor a `sparkplug.edge` and a `client_id` of its own"
	}
	switch {
	case m.ClientID != "":
		m.ClientID += aside
	case m.Sparkplug != nil: // an edge node is one client, also for the broker
		m.ClientID = "flank-" + m.Sparkplug.Group + "-" + m.Sparkplug.Edge
	default: // the session ends with the connection, so that the next process may have another one
		m.ClientID = "flank-" + r.name + "-" + host + "-" + strings.ToLower(rand.Text()[:8])
	}
	q := &mqttReceiver{cfg: m, id: id, timeout: r.timeout, now: r.time, log: r.log, machineStates: newMachineStates(), shown: -1, fresh: make(map[int]bool), end: func(error) {}}
	q.lives = mqttconn.NewLives(m.ClientID, remedy, r.time)
	q.bd.Store(-1)
	return q
}

// connect begins to connect, once. From then on connections come back by
// themselves.
func (q *mqttReceiver) connect() error {
	q.once.Do(func() {
		u, _ := url.Parse(q.cfg.Broker) // it was checked
		ctx, stop := context.WithCancel(context.Background())
		q.stop = stop
		q.manager, q.broken = autopaho.NewConnection(ctx, autopaho.ClientConfig{
			ServerUrls: []*url.URL{u}, KeepAlive: 20, CleanStartOnInitialConnection: true,
			ReconnectBackoff:     q.lives.Wait,
			ConnectTimeout:       q.timeout,
			AttemptConnection:    q.dial,
			ConnectPacketBuilder: q.login,
			OnConnectionUp:       q.up,
			OnConnectionDown:     q.down,
			OnConnectError:       func(err error) { q.trouble.Store(&err) },
			DisconnectPacketBuilder: func() *paho.Disconnect {
				return &paho.Disconnect{ReasonCode: packets.DisconnectDisconnectWithWillMessage} // the broker publishes the death now
			},
			ClientConfig: paho.ClientConfig{
				ClientID:           q.cfg.ClientID,
				OnPublishReceived:  []func(paho.PublishReceived) (bool, error){q.receive},
				OnClientError:      func(err error) { q.trouble.Store(&err) },
				OnServerDisconnect: func(d *paho.Disconnect) { q.hungUp(d.ReasonCode) },
			},
		})
	})
	return q.broken
}

func (q *mqttReceiver) hungUp(code byte) {
	err := fmt.Errorf("the broker closed the connection with reason code %#x", code)
	if code == packets.DisconnectSessionTakenOver {
		q.lives.TakenOver()
		err = fmt.Errorf("another program connects as %s: give each monitor a `client_id` of its own", q.cfg.ClientID)
	}
	q.trouble.Store(&err)
}

// down notes that a connection has ended.
func (q *mqttReceiver) down() bool {
	q.downs.Add(1)
	q.end(errEnded)
	if err := q.lives.End(); err != nil {
		q.log.Warn().Str("event", "route_contested").Err(err).Msg("the connection to the MQTT broker does not last")
	}
	return true
}

// unsteady returns an error while connections do not last.
func (q *mqttReceiver) unsteady() error { return q.lives.Err() }

func (q *mqttReceiver) dial(ctx context.Context, _ autopaho.ClientConfig, u *url.URL) (net.Conn, error) {
	q.end(errEnded) // of one that failed
	life, end := context.WithCancelCause(ctx)
	q.life.Store(&life)
	q.end = end
	return mqttconn.Dial(ctx, q.timeout, u, q.cfg.TLS, maxPacket)
}

var errEnded = errors.New("the connection ended before the broker answered")

// maxPacket is how many bytes a packet of the broker may have: hosts of Sparkplug send short commands.
const maxPacket = 1 << 20

// login completes the first packet of a connection.
func (q *mqttReceiver) login(c *paho.Connect, _ *url.URL) (*paho.Connect, error) {
	c.CleanStart = true
	if q.id != "" {
		will := monitorStatus{Monitor: q.id, Status: "offline", Connected: q.now().UTC()}
		c.WillMessage = &paho.WillMessage{Topic: q.statusTopic(), QoS: 1, Retain: true, Payload: event.JSON(will)}
		c.WillProperties = &paho.WillProperties{ContentType: "application/json"}
	}
	if s := q.cfg.Sparkplug; s != nil {
		c.WillMessage = &paho.WillMessage{Topic: s.topic("NDEATH", ""), QoS: 1, Payload: q.death()}
	}
	err := mqttconn.LogIn(c, q.cfg.Login)
	if err != nil {
		q.trouble.Store(&err)
	}
	return c, err
}

// death returns the payload of the next connection's NDEATH. Its bdSeq rises by one from connection to
// connection. A monitor keeps no files for routes, so the first one follows from the second in which it connects: a
// restart has the number of the life before in one of 256 cases, and always another one within four minutes.
func (q *mqttReceiver) death() []byte {
	bd := q.bd.Load() + 1
	if bd == 0 {
		bd = q.now().Unix()
	}
	bd &= 0xff
	q.bd.Store(bd)
	return spbPayload(q.now(), -1, []spbMetric{{"bdSeq", bd}})
}

// up begins to show the machines on a connection that began. It does not wait for the broker: the manager notices that the
// connection has ended, and asks for the next one, only after up.
func (q *mqttReceiver) up(m *autopaho.ConnectionManager, _ *paho.Connack) {
	q.lives.Begin()
	go q.greet(*q.life.Load(), m)
}

// greet subscribes, and publishes the life sign and all machines, on the connection of that life.
func (q *mqttReceiver) greet(life context.Context, m *autopaho.ConnectionManager) {
	ctx, cancel := context.WithTimeout(life, q.timeout)
	defer cancel()
	if s := q.cfg.Sparkplug; s != nil {
		_, err := m.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: s.topic("NCMD", ""), QoS: 1}}})
		if err != nil && life.Err() == nil { // else the connection ended
			q.log.Warn().Str("event", "route_commands").Err(err).Msgf("hosts of Sparkplug cannot ask for births: grant the right to subscribe to %s", s.topic("NCMD", ""))
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if life.Err() != nil {
		return // the next connection may be up already
	}
	q.connected, q.signed = q.now().UTC(), time.Time{}
	q.sign(ctx, m)
	_ = q.showAll(ctx, m) // the next delivery tries again and reports the error
}

func (q *mqttReceiver) statusTopic() string { return q.cfg.Prefix + "/_monitor/" + q.id + "/status" }

// sign publishes the life sign, unless that was done a moment ago, or up has not noted yet when the first connection
// began. Alerts do not wait for it: an error is logged once. The caller holds the lock.
func (q *mqttReceiver) sign(ctx context.Context, m *autopaho.ConnectionManager) {
	now := q.now().UTC()
	if q.id == "" || q.connected.IsZero() || now.Sub(q.signed) < lifeSign/2 {
		return
	}
	err := q.publish(ctx, m, q.statusTopic(), monitorStatus{q.id, "online", q.connected, now}, true)
	if err == nil {
		q.signed, q.unsigned = now, ""
	} else if text := err.Error(); text != q.unsigned {
		q.unsigned = text
		q.log.Warn().Str("event", "route_status").Err(err).Msg("cannot publish that this monitor is online: HMIs take its machines for unwatched")
	}
}

// receive handles a host's request for births.
func (q *mqttReceiver) receive(p paho.PublishReceived) (bool, error) {
	if again, err := spbWants(p.Packet.Payload, spbRebirth); err != nil || !again {
		return true, nil
	}
	q.downs.Add(1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), q.timeout)
		defer cancel()
		q.mu.Lock()
		defer q.mu.Unlock()
		_ = q.showAll(ctx, q.manager)
	}()
	return true, nil
}

// showAll shows the state of all machines, unless this connection has it. The caller
// holds the lock.
func (q *mqttReceiver) showAll(ctx context.Context, m *autopaho.ConnectionManager) error {
	downs := q.downs.Load()
	if q.shown == downs {
		return nil
	}
	if s := q.cfg.Sparkplug; s != nil {
		q.seq = 0
		err := q.sparkplug(ctx, m, "NBIRTH", "", []spbMetric{{"bdSeq", q.bd.Load()}, {spbRebirth, false}})
		if err != nil {
			return err
		}
	}
	for _, one := range q.all() {
		if err := q.show(ctx, m, "DBIRTH", one); err != nil {
			return err
		}
	}
	q.shown = downs
	clear(q.fresh)
	return nil
}

// show shows the state of one machine; typ is the message type of Sparkplug.
func (q *mqttReceiver) show(ctx context.Context, m *autopaho.ConnectionManager, typ string, s *standing) error {
	connection := q.downs.Load() + 1
	switch {
	case q.cfg.Sparkplug != nil && !s.retired:
		return q.sparkplug(ctx, m, typ, s.machine, spbDevice(s))
	case q.cfg.Sparkplug != nil && typ == "DDATA": // it was born
		return q.sparkplug(ctx, m, "DDEATH", s.machine, nil)
	case q.cfg.Sparkplug != nil, s.shownOn == connection: // by an attempt that did not come to all machines
		return nil
	}
	err := q.publish(ctx, m, q.topic(s.machine), q.state(s), true)
	if err == nil {
		s.shownOn = connection
	}
	return err
}

// state returns what is published of a machine now, nil of one that was retired: no one watches it.
func (q *mqttReceiver) state(s *standing) any {
	if s.retired {
		return nil
	}
	m := machineState(s)
	m.Monitor, m.Sent = q.id, q.now().UTC()
	return m
}

// inTopic replaces characters that have a meaning in topics.
var inTopic = strings.NewReplacer("/", "_", "+", "_", "#", "_")

// topic is where a machine's state is retained.
func (q *mqttReceiver) topic(machine string) string {
	var parts []string
	for part := range strings.SplitSeq(machine, "/") {
		parts = append(parts, inTopic.Replace(part))
	}
	return q.cfg.Prefix + "/" + strings.Join(parts, "/") + "/alarm"
}

// publish waits for the broker's answer, which does not come on a later connection. Without v it takes back what is retained.
func (q *mqttReceiver) publish(ctx context.Context, m *autopaho.ConnectionManager, topic string, v any, retain bool) error {
	var payload []byte
	if v != nil {
		payload = event.JSON(v)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	life := *q.life.Load()
	defer context.AfterFunc(life, func() { cancel(context.Cause(life)) })()
	res, err := m.Publish(ctx, &paho.Publish{
		Topic: topic, QoS: 1, Retain: retain, Payload: payload, Properties: &paho.PublishProperties{ContentType: "application/json"},
	})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return published(topic, res, err)
}

// sparkplug sends a message with the next seq. Sparkplug asks for QoS 0: messages that
// are lost with a connection are in the births of the next one.
func (q *mqttReceiver) sparkplug(ctx context.Context, m *autopaho.ConnectionManager, typ, machine string, metrics []spbMetric) error {
	topic := q.cfg.Sparkplug.topic(typ, machine)
	payload := spbPayload(q.now(), q.seq, metrics)
	res, err := m.Publish(ctx, &paho.Publish{Topic: topic, Payload: payload})
	q.seq = (q.seq + 1) % 256
	return published(topic, res, err)
}

func published(topic string, res *paho.PublishResponse, err error) error {
	if res != nil && res.ReasonCode >= 0x80 {
		err = fmt.Errorf("reason code %#x", res.ReasonCode)
		if res.ReasonCode == packets.PubackNotAuthorized {
			err = errors.New("not authorized")
		}
		return fmt.Errorf("the broker refuses %s: %w: grant the right to publish there", topic, err)
	}
	if err != nil {
		return fmt.Errorf("publish %s: %w", topic, err)
	}
	return nil
}

// ready waits for a connection.
func (q *mqttReceiver) ready(ctx context.Context) error {
	if err := q.connect(); err != nil {
		return err
	}
	if err := q.manager.AwaitConnection(ctx); err != nil {
		if why := q.trouble.Load(); why != nil {
			return fmt.Errorf("no connection to %s: %w", host(q.cfg.Broker), *why)
		}
		return fmt.Errorf("no connection to %s: %w", host(q.cfg.Broker), err)
	}
	return nil
}

func (q *mqttReceiver) deliver(ctx context.Context, e *Event) error {
	if err := q.ready(ctx); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.isTest() {
		return q.deliverTest(ctx, e)
	}
	s := q.machines[e.Machine]
	born := s != nil && !s.retired
	s = q.of(e.message.Partition, e.Machine)
	if !s.apply(e) {
		return nil
	}
	if q.shown != q.downs.Load() {
		return q.showAll(ctx, q.manager) // with s
	}
	typ := "DDATA"
	if !born {
		typ = "DBIRTH"
	}
	err := q.show(ctx, q.manager, typ, s)
	if err != nil {
		q.shown = -1 // a host may lack a seq or a birth
	}
	return err
}

// deliverTest shows a machine that does not exist. It leaves nothing behind.
func (q *mqttReceiver) deliverTest(ctx context.Context, e *Event) error {
	s := &standing{machine: e.Machine, advisories: make(map[string]*Event)}
	s.apply(e)
	if q.cfg.Sparkplug == nil {
		return q.publish(ctx, q.manager, q.topic(e.Machine), q.state(s), false)
	}
	if err := q.showAll(ctx, q.manager); err != nil {
		return err
	}
	if err := q.show(ctx, q.manager, "DBIRTH", s); err != nil {
		return err
	}
	return q.sparkplug(ctx, q.manager, "DDEATH", e.Machine, nil)
}

func (q *mqttReceiver) take(partition int, events []*Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.machineStates.take(partition, events)
	q.fresh[partition] = true
}

func (q *mqttReceiver) every() time.Duration {
	if q.id == "" {
		return 0
	}
	return lifeSign
}

// again shows what was not shown on this connection: all machines on a new one, else the machines of a new partition. So an
// edge node of Sparkplug has one birth for all of its partitions.
func (q *mqttReceiver) again(ctx context.Context, partition int) error {
	if err := q.ready(ctx); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sign(ctx, q.manager)
	if err := q.showAll(ctx, q.manager); err != nil || !q.fresh[partition] {
		return err
	}
	for _, s := range q.in(partition) {
		if err := q.show(ctx, q.manager, "DBIRTH", s); err != nil {
			q.shown = -1
			return err
		}
	}
	delete(q.fresh, partition)
	return nil
}

// drop publishes the death of Sparkplug's devices: the monitor that has the partition
// now shows them as its own.
func (q *mqttReceiver) drop(partition int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.cfg.Sparkplug != nil && q.manager != nil && q.shown == q.downs.Load() && !q.fresh[partition] {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		for _, s := range q.in(partition) {
			if !s.retired && q.sparkplug(ctx, q.manager, "DDEATH", s.machine, nil) != nil {
				q.shown = -1
				break
			}
		}
	}
	q.machineStates.drop(partition)
	delete(q.fresh, partition)
}

func (q *mqttReceiver) probe(ctx context.Context) (string, error) {
	if err := q.ready(ctx); err != nil {
		return "", err
	}
	found := host(q.cfg.Broker) + " answers"
	if q.cfg.Login.User != "" {
		found += ", user " + q.cfg.Login.User
	}
	return found, nil
}

func (q *mqttReceiver) close() {
	if q.manager == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = q.manager.Disconnect(ctx) // the broker publishes the will, also if it fails
	q.stop()
}

package grow

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/broker/brokertest"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
)

func TestMain(m *testing.M) { os.Exit(kafkatest.Main(m)) }

const group1, group2 = "tcm-monitor", "tcm-trial"

// plant is a broker with topics of two partitions, and two groups that have judged everything.
type plant struct {
	t   *testing.T
	cfg bus.Config
	out *bus.Producer
}

func newPlant(t *testing.T) *plant {
	t.Helper()
	p := &plant{t: t}
	if kafkatest.Version() != "" {
		p.cfg = bus.Config{Brokers: []string{kafkatest.Shared(t).Addr}, ClientID: "test"}
	} else {
		b := brokertest.Start(t)
		p.cfg = b.Config("test")
	}
	p.fill()
	return p
}

// fill makes the topics, and what two groups leave behind.
func (p *plant) fill() {
	t := p.t
	t.Helper()
	if _, err := bus.Apply(t.Context(), p.cfg, 2, 1); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.out, err = bus.NewProducer(p.cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.out.Close)
	for i := range 6 {
		name := machineName(i)
		p.send(bus.Message{Topic: bus.TopicWindows, Key: name, Value: []byte("w")}, bus.Message{Topic: bus.TopicCommands, Key: name, Value: []byte("c")})
		for _, group := range []string{group1, group2} {
			key := event.StateKey{Group: group, Machine: name}
			p.record(key, fmt.Sprintf(`{"version":3,"machine":%q,"tool":{"tool":"T1","alarm":{}},"evidence":[{"name":"A-1","offset":77}]}`, name))
			key.Part = event.SlowState
			p.record(key, `{"commands":{"ids":[]}}`)
			key.Part, key.Tool = event.ToolState, "moved"
			p.record(key, `{"tool":"moved","seen":1}`)
			if i == 5 { // retired
				p.record(event.StateKey{Group: group, Machine: name}, "")
				p.record(key, "")
			}
		}
	}
	p.record(event.StateKey{Group: group1, Machine: machineName(4), Part: event.ToolState, Tool: "torn"}, "{")
	p.send(bus.Message{Topic: bus.TopicState, Key: machineName(0), Value: []byte("of a program that no one has any more")})
	p.judged(group1, judgedTopics...)
	p.judged(group2, judgedTopics...)
}

func machineName(i int) string { return fmt.Sprintf("acme/line1/m%d", i) }

func (p *plant) send(msgs ...bus.Message) {
	p.t.Helper()
	if err := p.out.Send(p.t.Context(), msgs); err != nil {
		p.t.Fatal(err)
	}
}

func (p *plant) record(k event.StateKey, value string) {
	p.t.Helper()
	m := bus.Message{Topic: bus.TopicState, Key: k.String(), Route: k.Machine, Value: []byte(value)}
	if value == "" {
		m.Value = nil
	}
	p.send(m)
}

// judged commits that a group has read topics to their ends.
func (p *plant) judged(group string, topics ...string) {
	p.t.Helper()
	a := p.admin()
	for _, topic := range topics {
		counts, err := a.Partitions(p.t.Context(), topic)
		if err != nil {
			p.t.Fatal(err)
		}
		lies, err := a.Extents(p.t.Context(), topic, counts[topic])
		if err != nil {
			p.t.Fatal(err)
		}
		at := make(map[int]int64)
		for i := range lies {
			at[i] = lies[i].End
		}
		if err := a.SetPositions(p.t.Context(), group, topic, at); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *plant) admin() *bus.Admin {
	p.t.Helper()
	a, err := bus.OpenAdmin(p.cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(a.Close)
	return a
}

func (p *plant) grow(ctx context.Context, cfg bus.Config, partitions int, change ...func(*Growth)) (said []string, err error) {
	g := Growth{Bus: cfg, Partitions: partitions, Watch: time.Millisecond, Say: func(line string) { said = append(said, line) }}
	for _, c := range change {
		c(&g)
	}
	err = g.Run(ctx)
	return said, err
}

func (p *plant) mustGrow(partitions int, change ...func(*Growth)) string {
	p.t.Helper()
	said, err := p.grow(p.t.Context(), p.cfg, partitions, change...)
	if err != nil {
		p.t.Fatalf("%v\n%s", err, strings.Join(said, "\n"))
	}
	return strings.Join(said, "\n")
}

// state returns the last values of all keys that have one, by key and partition.
func (p *plant) state() map[string]map[int]string {
	p.t.Helper()
	last := make(map[string]map[int]string)
	if err := bus.ReadTopic(p.t.Context(), p.cfg, bus.TopicState, bus.FirstOffset, false, func(m bus.Message) error {
		if last[m.Key] == nil {
			last[m.Key] = make(map[int]string)
		}
		if delete(last[m.Key], m.Partition); m.Value != nil {
			last[m.Key][m.Partition] = string(m.Value)
		}
		return nil
	}); err != nil {
		p.t.Fatal(err)
	}
	for key, at := range last {
		if len(at) == 0 {
			delete(last, key)
		}
	}
	return last
}

// check checks that monitors may start, and that every record lies where its machine's windows go.
func (p *plant) check(partitions int, before map[string]map[int]string) {
	p.t.Helper()
	counts, err := p.admin().Partitions(p.t.Context(), bus.MachineTopics()...)
	if err != nil {
		p.t.Fatal(err)
	}
	for topic, n := range counts {
		if n != partitions {
			p.t.Errorf("%s has %d partitions, want %d", topic, n, partitions)
		}
	}
	if err := p.growth().Check(partitions); err != nil {
		p.t.Errorf("monitors do not start: %v", err)
	}
	now := p.state()
	for key := range before {
		k, ok := event.ParseStateKey(key)
		switch at := now[key]; {
		case !ok:
			if len(at) != 1 {
				p.t.Errorf("%q, which is not ours: %v", key, at)
			}
		case len(at) != 1 || at[bus.PartitionOf(k.Machine, partitions)] == "":
			p.t.Errorf("%q lies in %v, want partition %d", key, at, bus.PartitionOf(k.Machine, partitions))
		}
	}
	for _, group := range []string{group1, group2} {
		for _, topic := range []string{bus.TopicWindows, bus.TopicCommands} {
			at, err := p.admin().Positions(p.t.Context(), group, topic, partitions)
			if err != nil || slices.Min(at) < 0 {
				p.t.Errorf("%s: positions of %s %v, %v", topic, group, at, err)
			}
			for i := 2; i < partitions; i++ {
				if at[i] != 0 {
					p.t.Errorf("%s: %s begins at %d in the new partition %d", topic, group, at[i], i)
				}
			}
		}
	}
}

func (p *plant) growth() bus.Growth {
	p.t.Helper()
	g, err := bus.NewGrowthReader(p.cfg).Read(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return g
}

// The topics grow, and grow again. The state of all groups and shadows follows, without the offsets
// of the partition that it leaves.
func TestGrow(t *testing.T) {
	p := newPlant(t)
	before := p.state()
	said := p.mustGrow(5)
	golden.Check(t, "grow.txt", said+"\n")
	p.check(5, before)
	for key, at := range p.state() {
		k, ok := event.ParseStateKey(key)
		was := before[key]
		for i, value := range at {
			moved := was[i] == ""
			if ok && moved && strings.Contains(value, `"offset":77`) {
				t.Errorf("%q keeps an offset of another partition: %s", key, value)
			}
			if ok && !moved && value != was[i] {
				t.Errorf("%q changed from %s to %s, and did not move", key, was[i], value)
			}
			if k.Tool == "torn" && value != "{" {
				t.Errorf("%q changed to %s", key, value)
			}
		}
	}
	if again := p.mustGrow(5); !strings.Contains(again, "state    of 0 machines has moved") || strings.Contains(again, "raised") {
		t.Errorf("again:\n%s", again)
	}
	p.mustGrow(7)
	p.check(7, before)
	if g := p.growth(); !slices.Equal(g.Had, []int{2, 5, 7}) || g.Since.IsZero() {
		t.Errorf("%+v", g)
	}
	if _, err := p.grow(t.Context(), p.cfg, 4); err == nil || !strings.Contains(err.Error(), "has 7 partitions, and Kafka cannot take any away: ask for 7 or more") {
		t.Errorf("fewer: %v", err)
	}
}

// run makes a monitor of a group that reads windows.
func (p *plant) run(group string) (stop func()) {
	p.t.Helper()
	g, err := bus.NewGroup(p.cfg, group, bus.TopicWindows)
	if err != nil {
		p.t.Fatal(err)
	}
	joined := make(chan struct{}, 10)
	g.Protocol, g.OnGeneration = bus.MonitorProtocol, func(int) { joined <- struct{}{} }
	ctx, cancel := context.WithCancel(p.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = g.Run(ctx, func(ctx context.Context, _ *bus.Partition) error { <-ctx.Done(); return ctx.Err() })
	})
	<-joined
	stop = func() { cancel(); wg.Wait() }
	p.t.Cleanup(stop)
	return stop
}

// unchanged checks that nothing was changed, so that monitors may start.
func (p *plant) unchanged(before map[string]map[int]string) {
	p.t.Helper()
	counts, err := p.admin().Partitions(p.t.Context(), bus.MachineTopics()...)
	if err != nil {
		p.t.Fatal(err)
	}
	for topic, n := range counts {
		if n != 2 {
			p.t.Errorf("%s has %d partitions", topic, n)
		}
	}
	if err := p.growth().Check(2); err != nil {
		p.t.Error(err)
	}
	if now := p.state(); fmt.Sprint(now) != fmt.Sprint(before) {
		p.t.Errorf("the state has changed from\n%v\nto\n%v", before, now)
	}
}

// While monitors run nothing grows, also if they start when Run has looked for them.
func TestRefusesWithMembers(t *testing.T) {
	p := newPlant(t)
	before := p.state()
	stop := p.run(group2)
	refused := func(change ...func(*Growth)) {
		t.Helper()
		said, err := p.grow(t.Context(), p.cfg, 5, change...)
		if !errors.Is(err, errRunning) {
			t.Fatalf("%v\n%s", err, strings.Join(said, "\n"))
		}
		for _, want := range []string{"group tcm-trial has 1 member (test at ", "spool_only: true", "let the monitors judge", "stop the monitors", "a member for 6s more"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v lacks %q", err, want)
			}
		}
		p.unchanged(before)
	}
	refused()
	stop()
	refused(func(g *Growth) {
		g.Say = func(line string) {
			if strings.HasPrefix(line, "group    "+group2) {
				stop = p.run(group2)
			}
		}
	})
	stop()
	p.mustGrow(5)
	p.check(5, before)
}

// What a group has not judged keeps the topics from growing: windows, features and commands. Features
// that monitors have extracted and answers of gateways do not count. Once it has, they grow.
func TestRefusesBehind(t *testing.T) {
	p := newPlant(t)
	before := p.state()
	name := machineName(1)
	features := func(by envelope.Extractor) bus.Message {
		m := bus.Message{Topic: bus.TopicFeatures, Key: name, Value: []byte("f"), Headers: []bus.Header{{Key: "extracted", Value: []byte(by)}}}
		if by == envelope.Monitor {
			m.Headers = append(m.Headers, bus.Header{Key: "window_offset", Value: []byte("0")})
		}
		return m
	}
	answer := bus.Message{Topic: bus.TopicFeatures, Key: name, Headers: []bus.Header{{Key: "ce_type", Value: []byte("io.tcm.fetched.v1")}}}
	p.send(features(envelope.Monitor), answer)
	for _, tc := range []struct {
		m    bus.Message
		want string
	}{
		{bus.Message{Topic: bus.TopicWindows, Key: name}, "has 1 window, 0 messages of features and 0 commands left"},
		{features(envelope.Gateway), "has 0 windows, 3 messages of features and 0 commands left"},
		{bus.Message{Topic: bus.TopicCommands, Key: name}, "has 0 windows, 0 messages of features and 1 command left"},
	} {
		p.send(tc.m)
		p.judged(group1, tc.m.Topic)
		said, err := p.grow(t.Context(), p.cfg, 5)
		if !errors.Is(err, errBehind) || !strings.Contains(err.Error(), "group tcm-trial "+tc.want) || strings.Contains(err.Error(), "group tcm-monitor") || !strings.Contains(err.Error(), "kafka-consumer-groups.sh --delete") {
			t.Fatalf("%v, want %q\n%s", err, tc.want, strings.Join(said, "\n"))
		}
		p.unchanged(before)
		p.judged(group2, tc.m.Topic)
	}
	p.mustGrow(5)
	p.check(5, before)
}

// A position behind the end of a partition, whose tail Kafka has lost, is set to the end.
func TestLostTail(t *testing.T) {
	p := newPlant(t)
	if err := p.admin().SetPositions(t.Context(), group1, bus.TopicCommands, map[int]int64{1: 99}); err != nil {
		t.Fatal(err)
	}
	if said := p.mustGrow(5); !strings.Contains(said, "group tcm-monitor had read partition 1 of tcm.commands.v1 further than it goes now") {
		t.Error(said)
	}
	at, err := p.admin().Positions(t.Context(), group1, bus.TopicCommands, 5)
	if err != nil || at[1] > 6 {
		t.Errorf("positions %v, %v", at, err)
	}
}

// Another program has raised a topic. What ingesters have sent to its new partitions meanwhile does
// not count as left.
func TestAfterOthersRaised(t *testing.T) {
	p := newPlant(t)
	before := p.state()
	if err := p.admin().Raise(t.Context(), bus.TopicWindows, 5); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if i > 1 {
			p.send(bus.Message{Topic: bus.TopicWindows, Key: "k", Pinned: true, Partition: i})
		}
	}
	p.mustGrow(5)
	p.check(5, before)
}

// cutting is a network that ends a context behind so many requests that change something: the broker
// does it, and the answer is lost.
type cutting struct {
	after int
	mu    sync.Mutex
	n     int
	stop  context.CancelFunc
}

type cutConn struct {
	net.Conn
	c *cutting
}

func (c *cutting) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	return &cutConn{conn, c}, err
}

// Write takes each call for a request, as the client library makes them.
func (c *cutConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	const produce, offsetCommit, createPartitions = 0, 8, 37
	if len(b) > 8 && slices.Contains([]uint16{produce, offsetCommit, createPartitions}, binary.BigEndian.Uint16(b[4:])) {
		c.c.mu.Lock()
		defer c.c.mu.Unlock()
		if c.c.n++; c.c.n == c.c.after {
			time.Sleep(50 * time.Millisecond) // the broker takes it
			c.c.stop()
		}
	}
	return n, err
}

// Run is interrupted behind any request that changes something. Until it has run to its end monitors do not start,
// no record is lost, and another Run does the rest, also to more partitions.
func TestInterrupted(t *testing.T) {
	if kafkatest.Version() != "" {
		t.Skip("it starts many brokers")
	}
	for after := 1; ; after++ {
		p := newPlant(t)
		before := p.state()
		ctx, cancel := context.WithCancel(t.Context())
		cfg := p.cfg
		cut := &cutting{after: after, stop: cancel}
		cfg.Network = &bus.Network{Dial: cut.dial}
		_, err := p.grow(ctx, cfg, 5)
		cancel()
		if err == nil {
			p.check(5, before)
			if after < 10 {
				t.Fatalf("only %d requests change something", after-1)
			}
			return
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d requests: %v", after, err)
		}
		counts, err := p.admin().Partitions(t.Context(), bus.TopicWindows)
		if err != nil {
			t.Fatal(err)
		}
		if g := p.growth(); g.State == 0 && g.Check(counts[bus.TopicWindows]) == nil {
			t.Errorf("after %d requests monitors start: %+v", after, g)
		}
		for key := range before {
			if p.state()[key] == nil {
				t.Errorf("after %d requests %q is lost", after, key)
			}
		}
		n := 5
		if after%3 == 0 {
			n = 7
		}
		p.mustGrow(n)
		p.check(n, before)
		if t.Failed() {
			t.Fatalf("after %d requests", after)
		}
	}
}

// The rights of the administrator in deploy/kafka/acls.md are enough.
func TestRights(t *testing.T) {
	if kafkatest.Version() == "" {
		t.Skip("FLANK_KAFKA names no version of Apache Kafka")
	}
	k := kafkatest.StartSecure(t)
	const administrator, secret = "the administrator", "s3cret-of-the-plant"
	tls := credential.TLS{CA: k.CAFile()}
	tls.Cert, tls.Key = k.Issue(t, "admin", time.Now().Add(time.Hour)).WriteFiles(t, t.TempDir(), "admin")
	p := &plant{t: t, cfg: bus.Config{Brokers: []string{k.MTLS}, ClientID: "test", TLS: &bus.TLS{TLS: tls}}}
	p.fill()
	before := p.state()
	k.User(t, administrator, secret)
	k.GrantDocumented(t, administrator)
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := bus.Config{Brokers: []string{k.Addr}, ClientID: "test", TLS: &bus.TLS{TLS: credential.TLS{CA: k.CAFile()}}, Login: &credential.Login{User: administrator, PasswordFile: password}}
	if said, err := p.grow(t.Context(), cfg, 5); err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(said, "\n"))
	}
	p.check(5, before)
}

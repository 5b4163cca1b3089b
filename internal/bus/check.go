package bus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Step is one check of what must work between this program and a topic.
type Step struct {
	Name string
	Run  func(context.Context) (found string, err error) // the error says the cause and the remedy

	// Slow says that a new broker may need half a minute for the first such request: it
	// makes the topics in which it keeps groups and transactions.
	Slow bool
}

// Needs says what a program does with Kafka.
type Needs struct {
	Read, Write []string // topics
	Group       string   // the program is a member of; empty: none
	Alike       []string // topics that must have as many partitions as each other; topics that the program neither reads nor writes, and may not see, do not count

	// Transactional is a transactional id like the program's own; empty: it uses none. No
	// program may have this id: the check sends a request with it.
	Transactional string
}

// topics returns every topic once.
func (n Needs) topics() (all []string) {
	for _, t := range slices.Concat(n.Read, n.Write) {
		if !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all
}

// aheadLimit is how far this machine's clock may be behind the broker's.
const aheadLimit = time.Minute

// Steps returns what must work for a program with these needs, in the order in
// which to try it: a step makes sense after those before it. The broker used is
// the first that can be reached.
func Steps(cfg Config, needs Needs) ([]Step, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c := &checker{cfg: cfg, needs: needs, broker: cfg.Brokers[0]}
	return []Step{
		{Name: "dns", Run: c.dns}, {Name: "tcp", Run: c.tcp}, {Name: "tls", Run: c.tls}, {Name: "sasl", Run: c.sasl},
		{Name: "topics", Run: c.topics}, {Name: "acl", Run: c.acl, Slow: true}, {Name: "clock", Run: c.clock},
	}, nil
}

type checker struct {
	cfg    Config
	needs  Needs
	broker string // the one that answers
}

// any calls f for the brokers until it succeeds.
func (c *checker) any(f func(broker string) (string, error)) (found string, err error) {
	for _, broker := range c.cfg.Brokers {
		var one error
		if found, one = f(broker); one == nil {
			c.broker = broker
			return found, nil
		}
		err = errors.Join(err, one)
	}
	return "", err
}

func (c *checker) dns(ctx context.Context) (string, error) {
	return c.any(func(broker string) (string, error) {
		host, _, _ := net.SplitHostPort(broker)
		addrs, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil {
			return "", fmt.Errorf("bus: no address for %s (%v): correct `brokers`, or the name server of this machine", host, innermost(err))
		}
		return host + " is " + strings.Join(addrs, ", "), nil
	})
}

func (c *checker) tcp(ctx context.Context) (string, error) {
	return c.any(func(broker string) (string, error) {
		conn, err := c.cfg.connect(ctx, "tcp", broker)
		if err != nil {
			return "", explain(err, c.cfg)
		}
		conn.Close()
		return broker, nil
	})
}

func (c *checker) tls(ctx context.Context) (string, error) {
	if c.cfg.TLS == nil {
		return "not used", nil
	}
	conn, err := c.cfg.connect(ctx, "tcp", c.broker)
	if err != nil {
		return "", explain(err, c.cfg)
	}
	secure, err := c.cfg.TLS.handshake(ctx, conn, c.broker)
	if err != nil {
		return "", explain(err, c.cfg)
	}
	defer secure.Close()
	// In TLS 1.3 a client learns only after the handshake that the broker refuses its
	// certificate: the refusal comes instead of the answer to its first request. This
	// request asks for versions.
	_ = secure.SetDeadline(time.Now().Add(dialTimeout))
	_, err = secure.Write([]byte{0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff})
	if err == nil {
		_, err = secure.Read(make([]byte, 1))
	}
	if err != nil && refused(err) {
		return "", explain(err, c.cfg)
	}
	certificates, err := c.cfg.Certificates()
	if err != nil {
		return "", err
	}
	var found []string
	for _, cert := range certificates {
		found = append(found, cert.Whose+"'s certificate "+expiry(cert, time.Now()))
	}
	return strings.Join(found, ", "), nil
}

// expiry says how long a certificate lasts, with a warning if that is short.
func expiry(c Certificate, now time.Time) string {
	if c.Left(now) < 0 {
		return "has expired (renew it)"
	}
	text := fmt.Sprintf("expires in %.0f d", math.Floor(c.DaysLeft(now)))
	if c.Left(now) < RenewAhead {
		text += " (renew it soon)"
	}
	return text
}

func (c *checker) sasl(ctx context.Context) (string, error) {
	if err := Probe(ctx, c.cfg); err != nil {
		return "", err
	}
	if c.cfg.Login == nil {
		return "not used; the broker answers", nil
	}
	return "user " + c.cfg.Login.User, nil
}

func (c *checker) topics(ctx context.Context) (string, error) {
	names := c.needs.topics()
	partitions, err := askTopics(ctx, c.cfg, names...)
	if err != nil {
		return "", explain(err, c.cfg)
	}
	if err := c.alike(ctx, partitions); err != nil {
		return "", err
	}
	if len(c.needs.Alike) > 0 && slices.Contains(c.needs.Read, TopicModels) {
		g, err := NewGrowthReader(c.cfg).Read(ctx)
		if err == nil {
			err = g.Check(partitions[TopicWindows])
		}
		if err != nil {
			return "", err
		}
	}
	found := fmt.Sprintf("%s has %d partitions", names[0], partitions[names[0]])
	if n := len(names); n > 1 {
		found += fmt.Sprintf(", %d other topics are there", n-1)
	}
	readable, err := c.sizes(ctx)
	if err == nil && !readable {
		found += ", settings may not be read"
	}
	return found, err
}

// alike returns an error if topics do not have as many partitions as each other. Partitions
// holds the counts of the topics that this program reads or writes.
func (c *checker) alike(ctx context.Context, partitions map[string]int) error {
	var others []string
	for _, t := range c.needs.Alike {
		if _, known := partitions[t]; !known {
			others = append(others, t)
		}
	}
	if len(others) > 0 {
		now, err := askCluster(ctx, c.cfg, others...)
		if err != nil {
			return explain(err, c.cfg)
		}
		for _, t := range others {
			if topic, err := now.topic(t); err == nil {
				partitions[t] = len(topic.Partitions)
			}
		}
	}
	return Agree(partitions, c.needs.Alike)
}

// sizes returns an error if a topic does not take the largest messages. Readable reports
// whether this program may read the settings of all topics; it need not.
func (c *checker) sizes(ctx context.Context) (readable bool, err error) {
	req := &kafka.DescribeConfigsRequest{}
	for _, topic := range c.needs.Write {
		req.Resources = append(req.Resources, kafka.DescribeConfigRequestResource{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{"max.message.bytes"},
		})
	}
	kc := newKafkaClient(c.cfg)
	defer closeKafkaClient(kc)
	res, err := kc.DescribeConfigs(ctx, req)
	if err != nil {
		return false, explain(err, c.cfg)
	}
	readable = true
	for _, r := range res.Resources {
		if r.Error != nil {
			readable = false
		}
		for _, e := range r.ConfigEntries {
			if limit, err := strconv.Atoi(e.ConfigValue); err == nil && limit < MaxMessage {
				return readable, fmt.Errorf("bus: topic %s takes messages of %d bytes: set its max.message.bytes to %d", r.ResourceName, limit, MaxMessage)
			}
		}
	}
	return readable, nil
}

// Bits of Kafka's sets of operations.
const (
	mayRead  = 1 << 3
	mayWrite = 1 << 4
)

// acl asks the broker what this program may do, without doing it.
func (c *checker) acl(ctx context.Context) (string, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	for _, name := range c.needs.topics() {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, topic)
	}
	res, err := c.ask(ctx, req)
	if err != nil {
		return "", err
	}
	said := true                      // whether the broker says what is allowed
	allowed := make(map[string]int32) // by topic
	for _, t := range res.(*kmsg.MetadataResponse).Topics {
		name := ""
		if t.Topic != nil {
			name = *t.Topic
		}
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return "", fmt.Errorf("bus: topic %s: %w", name, err)
		}
		if t.AuthorizedOperations == math.MinInt32 {
			said = false
			continue
		}
		allowed[name] = t.AuthorizedOperations
	}
	if err := c.lacksTopics(allowed); err != nil {
		return "", err
	}
	if c.needs.Group != "" {
		if err := c.aclGroup(ctx); err != nil {
			return "", err
		}
	}
	if c.needs.Transactional != "" {
		if err := c.aclTransactional(ctx); err != nil {
			return "", err
		}
	}
	if !said {
		return "the broker does not say; it has no ACLs or is too old", nil
	}
	var may []string
	for verb, topics := range map[string][]string{"read": c.needs.Read, "write": c.needs.Write} {
		if len(topics) > 0 {
			may = append(may, verb+" "+strings.Join(topics, ", "))
		}
	}
	slices.Sort(may)
	if c.needs.Group != "" {
		may = append(may, "join "+c.needs.Group)
	}
	if c.needs.Transactional != "" {
		may = append(may, "write in transactions")
	}
	return "may " + strings.Join(may, "; "), nil
}

func (c *checker) aclGroup(ctx context.Context) error {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups, req.IncludeAuthorizedOperations = []string{c.needs.Group}, true
	res, err := c.askCoordinator(ctx, req, "group "+c.needs.Group, "offsets.topic.replication.factor=1")
	if errors.Is(err, kerr.GroupAuthorizationFailed) {
		return c.lacks("join group "+c.needs.Group, kafka.GroupAuthorizationFailed)
	}
	if err != nil {
		return err
	}
	for _, g := range res.(*kmsg.DescribeGroupsResponse).Groups {
		err := kerr.ErrorForCode(g.ErrorCode)
		switch {
		case errors.Is(err, kerr.GroupAuthorizationFailed), err == nil && g.AuthorizedOperations != math.MinInt32 && g.AuthorizedOperations&mayRead == 0:
			return c.lacks("join group "+c.needs.Group, kafka.GroupAuthorizationFailed)
		case errors.Is(err, kerr.GroupIDNotFound): // it has never had a member
		case err != nil:
			return fmt.Errorf("bus: group %s: %w", c.needs.Group, err)
		}
	}
	return nil
}

// aclTransactional asks the broker to end a transaction that cannot exist: its producer does
// not exist. Kafka first checks whether this program has the right to write under the id,
// and then finds no such producer. That changes nothing.
func (c *checker) aclTransactional(ctx context.Context) error {
	id := c.needs.Transactional
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = id, unusedProducer, 0
	res, err := c.askCoordinator(ctx, req, "transactional id "+id,
		"transaction.state.log.replication.factor=1 and transaction.state.log.min.isr=1")
	if err == nil {
		err = kerr.ErrorForCode(res.(*kmsg.EndTxnResponse).ErrorCode)
	}
	switch {
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		return c.lacks("write in transactions as "+id, kafka.TransactionalIDAuthorizationFailed)
	case err == nil, errors.Is(err, kerr.InvalidProducerIDMapping), errors.Is(err, kerr.InvalidTxnState):
		return nil
	}
	return fmt.Errorf("bus: transactional id %s: %w", id, err)
}

// unusedProducer is a producer id that no broker gives out: they count up from 0.
const unusedProducer = math.MaxInt64

// askCoordinator asks the broker that keeps the group or transaction of the request. The
// first request makes Kafka create the topic for that, so askCoordinator repeats it until
// ctx ends.
func (c *checker) askCoordinator(ctx context.Context, req kmsg.Request, what, setting string) (kmsg.Response, error) {
	res, err := c.ask(ctx, req)
	for errors.Is(err, kerr.CoordinatorNotAvailable) {
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("bus: %s: no broker keeps it (%w): look at the broker's log; a broker that is alone needs %s", what, err, setting)
		}
		if again, later := c.ask(ctx, req); ctx.Err() == nil {
			res, err = again, later
		}
	}
	return res, err
}

// lacks returns the error that a right is missing.
// lacksTopics names all topics that the program may not read or write as it needs.
func (c *checker) lacksTopics(allowed map[string]int32) error {
	var rights []string
	for _, kind := range []struct {
		verb   string
		topics []string
		bit    int32
	}{{"read", c.needs.Read, mayRead}, {"write", c.needs.Write, mayWrite}} {
		for _, name := range kind.topics {
			if operations, said := allowed[name]; said && operations&kind.bit == 0 {
				rights = append(rights, kind.verb+" topic "+name)
			}
		}
	}
	if len(rights) == 0 {
		return nil
	}
	return c.lacks(strings.Join(rights, ", "), kafka.TopicAuthorizationFailed)
}

func (c *checker) lacks(right string, err error) error {
	return errors.New(explainRefusal(fmt.Errorf("bus: %s: %w", right, err), c.cfg))
}

// clock compares the newest arrival time on the topic, by the broker's clock, with the clock
// of this machine. It finds a clock that is behind.
func (c *checker) clock(ctx context.Context) (string, error) {
	n, err := askPartitions(ctx, c.cfg, TopicWindows)
	if err != nil {
		return "", explain(err, c.cfg)
	}
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = TopicWindows
	for p := range n {
		part := kmsg.NewListOffsetsRequestTopicPartition()
		part.Partition, part.Timestamp = int32(p), -3 // the newest time of the partition
		topic.Partitions = append(topic.Partitions, part)
	}
	req.Topics = append(req.Topics, topic)
	res, err := c.ask(ctx, req)
	if err != nil {
		return "", err
	}
	newest := int64(-1)
	for _, t := range res.(*kmsg.ListOffsetsResponse).Topics {
		for _, p := range t.Partitions {
			newest = max(newest, p.Timestamp)
		}
	}
	if newest < 0 {
		return "nothing to compare with: no window has arrived yet", nil
	}
	if ahead := time.Until(time.UnixMilli(newest)); ahead > aheadLimit {
		return "", fmt.Errorf("bus: a window arrived at the broker %v in the future of this machine: set the clock of this machine or of the broker", ahead.Round(time.Second))
	}
	return "not behind the broker's", nil
}

// ask sends a request that kafka-go does not offer.
func (c *checker) ask(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	opts := []kgo.Opt{kgo.SeedBrokers(c.cfg.Brokers...), kgo.Dialer(c.cfg.dial), kgo.RequestRetries(2)}
	if l := c.cfg.Login; l != nil {
		opts = append(opts, kgo.SASL(scram.Sha512(func(context.Context) (scram.Auth, error) {
			password, err := l.Password()
			return scram.Auth{User: l.User, Pass: password}, err
		})))
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("bus: %w", err)
	}
	defer cl.Close()
	res, err := cl.Request(ctx, req)
	if err != nil {
		return nil, explain(err, c.cfg)
	}
	return res, nil
}

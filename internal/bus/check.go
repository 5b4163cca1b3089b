package bus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/apiversions"
	"github.com/twmb/franz-go/pkg/kmsg"
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
		{Name: "topics", Run: c.asking(c.topics)}, {Name: "acl", Run: c.asking(c.acl), Slow: true}, {Name: "clock", Run: c.asking(c.clock)},
	}, nil
}

type checker struct {
	cfg    Config
	needs  Needs
	broker string // the one that answers
}

// asking returns f with a client, which is open while f runs.
func (c *checker) asking(f func(context.Context, *client) (string, error)) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		to, err := newClient(c.cfg)
		if err != nil {
			return "", err
		}
		defer to.close()
		found, err := f(ctx, to)
		return found, explain(err, c.cfg)
	}
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
		conn, err := c.cfg.network().Dial(ctx, "tcp", broker)
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
	conn, err := c.cfg.dial(ctx, "tcp", c.broker)
	if err != nil {
		return "", explain(err, c.cfg)
	}
	defer conn.Close()
	// In TLS 1.3 a client learns only after the handshake that the broker refuses its
	// certificate: the refusal comes instead of the answer to its first request.
	_ = conn.SetDeadline(time.Now().Add(dialTimeout))
	if _, err = protocol.NewConn(conn, c.cfg.ClientID).RoundTrip(new(apiversions.Request)); err != nil && refused(err) {
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

func (c *checker) topics(ctx context.Context, to *client) (string, error) {
	names := c.needs.topics()
	partitions, err := to.askPartitions(ctx, names...)
	if err != nil {
		return "", err
	}
	now, err := to.t.know(ctx, true, c.needs.Alike...)
	if err != nil {
		return "", err
	}
	for _, t := range c.needs.Alike {
		if topic, err := now.topic(t); err == nil { // it may be a topic of others
			partitions[t] = len(topic.Partitions)
		}
	}
	if err := Agree(partitions, c.needs.Alike); err != nil {
		return "", err
	}
	if err := c.growth(ctx, partitions[TopicWindows]); err != nil {
		return "", err
	}
	found := fmt.Sprintf("%s has %d partitions", names[0], partitions[names[0]])
	if n := len(names); n > 1 {
		found += fmt.Sprintf(", %d other topics are there", n-1)
	}
	known, err := c.settings(ctx, to)
	if !known { // it need not
		found += ", settings may not be read"
	}
	return found, err
}

// growth checks the number of partitions of windows, for a program that knows the models.
func (c *checker) growth(ctx context.Context, partitions int) error {
	if len(c.needs.Alike) == 0 || !slices.Contains(c.needs.Read, TopicModels) {
		return nil
	}
	g, err := NewGrowthReader(c.cfg).Read(ctx)
	if err != nil {
		return err
	}
	return g.Check(partitions)
}

// settings checks the settings of topics that the program writes, and reports whether it may read the settings of all topics.
func (c *checker) settings(ctx context.Context, to *client) (known bool, err error) {
	if len(c.needs.Write) == 0 {
		return true, nil
	}
	status, err := to.describe(ctx, c.needs.Write)
	if err != nil {
		return true, err
	}
	for _, s := range status {
		if s.Known && s.largest < MaxMessage {
			return true, fmt.Errorf("bus: topic %s takes messages of %d bytes: set its max.message.bytes to %d", s.Name, s.largest, MaxMessage)
		}
	}
	return !slices.ContainsFunc(status, func(s TopicStatus) bool { return !s.Known }), nil
}

// mayRead is the bit of Kafka's sets of operations.
const mayRead = 1 << 3

// right is a right to topics.
type right struct {
	verb   string
	topics []string
	bit    int32 // of Kafka's sets of operations
}

func (n Needs) rights() []right {
	return []right{{"read", n.Read, mayRead}, {"write", n.Write, 1 << 4}}
}

// allowedTopics returns what is allowed, by topic. Said is false if the broker does not say it.
func allowedTopics(res *kmsg.MetadataResponse) (allowed map[string]int32, said bool, err error) {
	allowed, said = make(map[string]int32), true
	for _, t := range res.Topics {
		name := ""
		if t.Topic != nil {
			name = *t.Topic
		}
		if err := errorOf(t.ErrorCode); err != nil {
			return nil, false, fmt.Errorf("bus: topic %s: %w", name, err)
		}
		if t.AuthorizedOperations == math.MinInt32 {
			said = false
			continue
		}
		allowed[name] = t.AuthorizedOperations
	}
	return allowed, said, nil
}

// acl asks the broker what this program may do, without doing it.
func (c *checker) acl(ctx context.Context, to *client) (string, error) {
	req := metadataRequest(c.needs.topics())
	req.IncludeTopicAuthorizedOperations = true
	res, err := to.t.raw(ctx, anyNode, req)
	if err != nil {
		return "", err
	}
	allowed, said, err := allowedTopics(res.(*kmsg.MetadataResponse))
	if err == nil {
		err = c.lacksTopics(allowed)
	}
	if err != nil {
		return "", err
	}
	if c.needs.Group != "" {
		if err := c.aclGroup(ctx, to); err != nil {
			return "", err
		}
	}
	if c.needs.Transactional != "" {
		if err := c.aclTransactional(ctx, to); err != nil {
			return "", err
		}
	}
	if !said {
		return "the broker does not say; it has no ACLs or is too old", nil
	}
	return "may " + c.needs.words(), nil
}

func (n Needs) words() string {
	var may []string
	for _, r := range n.rights() {
		if len(r.topics) > 0 {
			may = append(may, r.verb+" "+strings.Join(r.topics, ", "))
		}
	}
	if n.Group != "" {
		may = append(may, "join "+n.Group)
	}
	if n.Transactional != "" {
		may = append(may, "write in transactions")
	}
	return strings.Join(may, "; ")
}

func (c *checker) aclGroup(ctx context.Context, to *client) error {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups, req.IncludeAuthorizedOperations = []string{c.needs.Group}, true
	what := "group " + c.needs.Group
	err := askCoordinator(ctx, to, what, coordinated{ofGroup, c.needs.Group}, req, func(res kmsg.Response) error {
		for _, g := range res.(*kmsg.DescribeGroupsResponse).Groups {
			switch err := errorOf(g.ErrorCode); {
			case errors.Is(err, kafka.GroupIdNotFound): // it has never had a member
			case err != nil:
				return err
			case g.AuthorizedOperations != math.MinInt32 && g.AuthorizedOperations&mayRead == 0:
				return kafka.GroupAuthorizationFailed
			}
		}
		return nil
	})
	if errors.Is(err, kafka.GroupAuthorizationFailed) {
		return c.lacks("join "+what, kafka.GroupAuthorizationFailed)
	}
	return err
}

// aclTransactional asks the broker to end a transaction that cannot exist: its producer does
// not exist. Kafka first checks whether this program has the right to write under the id,
// and then finds no such producer. That changes nothing.
func (c *checker) aclTransactional(ctx context.Context, to *client) error {
	id := c.needs.Transactional
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = id, unusedProducer, 0
	err := askCoordinator(ctx, to, "transactional id "+id, coordinated{ofTransaction, id}, req, func(res kmsg.Response) error {
		return errorOf(res.(*kmsg.EndTxnResponse).ErrorCode)
	})
	switch {
	case errors.Is(err, kafka.TransactionalIDAuthorizationFailed):
		return c.lacks("write in transactions as "+id, kafka.TransactionalIDAuthorizationFailed)
	case errors.Is(err, kafka.InvalidProducerIDMapping), errors.Is(err, kafka.InvalidTransactionState):
		return nil
	}
	return err
}

// unusedProducer is a producer id that no broker gives out: they count up from 0.
const unusedProducer = math.MaxInt64

// askCoordinator sends a request to the broker that coordinates a group or a transactional id.
// The first such request makes Kafka create the topic for that, so askCoordinator repeats it
// until ctx ends. Check returns the error in the answer.
func askCoordinator(ctx context.Context, to *client, what string, of coordinated, req kmsg.Request, check func(kmsg.Response) error) error {
	return repeat(ctx, to, func() error {
		var res kmsg.Response
		node, err := to.t.coordinator(ctx, of)
		if err == nil {
			res, err = to.t.raw(ctx, node, req)
		}
		if err == nil {
			err = check(res)
		}
		if err == nil {
			return nil
		}
		return fmt.Errorf("bus: %s: %w", what, err)
	})
}

// repeat asks until ctx ends, as long as Kafka answers that it is to be asked again: a leader moves, or a topic is new.
func repeat(ctx context.Context, to *client, ask func() error) error {
	for {
		err := ask()
		var k kafka.Error
		if err == nil || !errors.As(err, &k) || classifyCode(k) != again || pause(ctx, 200*time.Millisecond) != nil {
			return err
		}
		to.t.expire()
	}
}

// lacksTopics names all topics that the program may not read or write as it needs.
func (c *checker) lacksTopics(allowed map[string]int32) error {
	var rights []string
	for _, r := range c.needs.rights() {
		for _, name := range r.topics {
			if operations, said := allowed[name]; said && operations&r.bit == 0 {
				rights = append(rights, r.verb+" topic "+name)
			}
		}
	}
	if len(rights) == 0 {
		return nil
	}
	return c.lacks(strings.Join(rights, ", "), kafka.TopicAuthorizationFailed)
}

// lacks returns the error that a right is missing.
func (c *checker) lacks(right string, err error) error {
	return errors.New(explainRefusal(fmt.Errorf("bus: %s: %w", right, err), c.cfg))
}

// clock compares the newest arrival time on the topic, by the broker's clock, with the clock
// of this machine. It finds a clock that is behind.
func (c *checker) clock(ctx context.Context, to *client) (string, error) {
	counts, err := to.askPartitions(ctx, TopicWindows)
	if err != nil {
		return "", err
	}
	var found map[int]kmsg.ListOffsetsResponseTopicPartition
	if err = repeat(ctx, to, func() (err error) {
		found, err = to.t.offsets(ctx, TopicWindows, everywhere(counts[TopicWindows], newestTime), false)
		return err
	}); err != nil {
		return "", err
	}
	newest := int64(-1)
	for _, p := range found {
		newest = max(newest, p.Timestamp)
	}
	if newest < 0 {
		return "nothing to compare with: no window has arrived yet", nil
	}
	if ahead := time.Until(time.UnixMilli(newest)); ahead > aheadLimit {
		return "", fmt.Errorf("bus: a window arrived at the broker %v in the future of this machine: set the clock of this machine or of the broker", ahead.Round(time.Second))
	}
	return "not behind the broker's", nil
}

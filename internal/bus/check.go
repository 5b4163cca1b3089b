package bus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Step is one of the things that must work between this program and a topic.
type Step struct {
	Name string
	Run  func(context.Context) (found string, err error) // the error says the cause and the remedy
}

// aheadLimit is how far this machine's clock may be behind the broker's.
const aheadLimit = time.Minute

// Steps returns what a program that sends windows needs, in the order in which
// to try it: a step makes sense after those before it. The broker used is the
// first that can be reached.
func Steps(cfg Config) ([]Step, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c := &checker{cfg: cfg, broker: cfg.Brokers[0]}
	return []Step{
		{"dns", c.dns}, {"tcp", c.tcp}, {"tls", c.tls}, {"sasl", c.sasl}, {"topics", c.topics}, {"acl", c.acl}, {"clock", c.clock},
	}, nil
}

type checker struct {
	cfg    Config
	broker string // that answers
}

// any calls f for the brokers until one is well.
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
		conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", broker)
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
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", c.broker)
	if err != nil {
		return "", explain(err, c.cfg)
	}
	secure, err := c.cfg.TLS.handshake(ctx, conn, c.broker)
	if err != nil {
		return "", explain(err, c.cfg)
	}
	defer secure.Close()
	// In TLS 1.3 a client hears only afterwards that its certificate is refused.
	_ = secure.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := secure.Read(make([]byte, 1)); err != nil && refused(err) {
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

// expiry says how long a certificate lasts, with a warning where it is short.
func expiry(c Certificate, now time.Time) string {
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
	n, err := askPartitions(ctx, c.cfg, TopicWindows)
	if err != nil {
		return "", explain(err, c.cfg)
	}
	kc := newKafkaClient(c.cfg)
	defer closeKafkaClient(kc)
	found := fmt.Sprintf("%s has %d partitions", TopicWindows, n)
	res, err := kc.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: TopicWindows, ConfigNames: []string{"max.message.bytes"},
	}}})
	if err != nil {
		return "", explain(err, c.cfg)
	}
	for _, r := range res.Resources {
		if r.Error != nil {
			return found + ", its settings may not be read", nil
		}
		for _, e := range r.ConfigEntries {
			if limit, err := strconv.Atoi(e.ConfigValue); err == nil && limit < MaxMessage {
				return "", fmt.Errorf("bus: topic %s takes messages of %d bytes: set its max.message.bytes to %d", TopicWindows, limit, MaxMessage)
			}
		}
	}
	return found, nil
}

// acl asks what this program may do with the windows, without doing it.
func (c *checker) acl(ctx context.Context) (string, error) {
	req := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr(TopicWindows)
	req.Topics, req.IncludeTopicAuthorizedOperations = []kmsg.MetadataRequestTopic{topic}, true
	res, err := c.ask(ctx, req)
	if err != nil {
		return "", err
	}
	for _, t := range res.(*kmsg.MetadataResponse).Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return "", fmt.Errorf("bus: topic %s: %w", TopicWindows, err)
		}
		const write = 1 << 4 // AclOperation.WRITE
		switch {
		case t.AuthorizedOperations == math.MinInt32:
			return "the broker does not say; it has no ACLs or is too old", nil
		case t.AuthorizedOperations&write == 0:
			return "", errors.New(explainRefusal(fmt.Errorf("bus: topic %s: %w", TopicWindows, kafka.TopicAuthorizationFailed), c.cfg))
		}
	}
	return "may write " + TopicWindows, nil
}

// clock compares the newest arrival on the topic, in the broker's time, with the
// clock of this machine. It sees a clock that is behind.
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
		part.Partition, part.Timestamp = int32(p), -3 // the newest time there is
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

// ask sends a request that the client library does not offer.
func (c *checker) ask(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	opts := []kgo.Opt{kgo.SeedBrokers(c.cfg.Brokers...), kgo.Dialer(c.cfg.dial), kgo.RequestRetries(2)}
	if l := c.cfg.Login; l != nil {
		opts = append(opts, kgo.SASL(scram.Sha512(func(context.Context) (scram.Auth, error) {
			password, err := l.password()
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

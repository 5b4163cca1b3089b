package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

const (
	dialTimeout  = 3 * time.Second
	metadataTTL  = 10 * time.Second
	callTimeout  = 10 * time.Second
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = 2 * time.Second
	absentGrace  = 2 * time.Second // for so long Kafka may not know a topic after it was made, or after a restart
)

// client asks Kafka for one part of this program. It shares its transport with the others.
type client struct {
	cfg Config
	t   *transport
	kc  *kafka.Client

	accepted  atomic.Bool // a broker has let this program in
	allowed   atomic.Bool // a broker has let it write or read messages
	published atomic.Bool // a broker has let it write in a transaction
}

func newClient(cfg Config) (*client, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	t := cfg.transport()
	return &client{cfg: cfg, t: t, kc: &kafka.Client{Addr: kafka.TCP(cfg.Brokers...), Timeout: callTimeout, Transport: t}}, nil
}

// dial is the operating system's network.
var dial = (&net.Dialer{Timeout: dialTimeout}).DialContext

// network returns how to reach brokers, and the times.
func (c Config) network() Network {
	n := Network{Dial: dial}
	if c.Network != nil {
		n = *c.Network
	}
	n.MetadataTTL, n.ReadWait = cmp.Or(n.MetadataTTL, metadataTTL), cmp.Or(n.ReadWait, readWait)
	return n
}

func (c *client) sayDamage(m Message) {
	if c.cfg.OnDamage != nil {
		c.cfg.OnDamage(m.Damage)
	}
}

func (c *client) close() { c.t.release() }

// retry calls f, with a deadline, until it succeeds, fails for good or ctx ends.
func (c *client) retry(ctx context.Context, f func(ctx context.Context) error) error {
	var o outage
	for {
		callCtx, cancel := context.WithTimeout(ctx, callTimeout)
		err := f(callCtx)
		cancel()
		if err == nil {
			c.accepted.Store(true)
			o.over(c.cfg)
			return nil
		}
		if ctx.Err() != nil {
			return o.ended(ctx)
		}
		if err = explain(err, c.cfg); c.permanent(err) {
			return err
		}
		o.failed(c.cfg, err)
		c.t.expire()
		if o.sleep(ctx) != nil {
			return o.ended(ctx)
		}
	}
}

// outage is a row of failed attempts.
type outage struct {
	failures int
	since    time.Time
	last     error
}

func (o *outage) failed(cfg Config, err error) {
	if o.failures == 0 {
		o.since = time.Now()
	}
	o.failures++
	o.last = err
	if cfg.OnRetry != nil {
		cfg.OnRetry(err, time.Since(o.since))
	}
}

func (o *outage) over(cfg Config) {
	if o.failures > 0 && cfg.OnRetry != nil {
		cfg.OnRetry(nil, time.Since(o.since))
	}
	*o = outage{}
}

// sleep waits before the next attempt: twice as long each time, up to maxBackoff. A
// random part of up to a half is taken off, so that clients do not all ask at once.
func (o *outage) sleep(ctx context.Context) error {
	d := min(firstBackoff<<min(o.failures-1, 10), maxBackoff)
	return pause(ctx, d-rand.N(d/2))
}

// pause waits. It returns the error of ctx if that ends before.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ended returns the error of ctx with the last failure.
func (o *outage) ended(ctx context.Context) error {
	if o.last == nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w after %d attempts: %w", ctx.Err(), o.failures, o.last)
}

// partitions returns how many partitions topic has, or ErrNoTopic if Kafka still does not
// know the topic after absentGrace.
func (c *client) partitions(ctx context.Context, topic string) (n int, err error) {
	var absent time.Time
	err = c.retry(ctx, func(ctx context.Context) error {
		counts, err := c.askPartitions(ctx, topic)
		if errors.Is(err, ErrNoTopic) {
			if absent.IsZero() {
				absent = time.Now()
			}
			if time.Since(absent) < absentGrace {
				return errors.New(err.Error()) // not permanent yet
			}
		}
		n = counts[topic]
		return err
	})
	return n, err
}

// count is partitions from what the transport knows. It asks the brokers if it does not know the topic.
func (c *client) count(ctx context.Context, topic string) (int, error) {
	if now, err := c.t.know(ctx, false, topic); err == nil && len(now.Topics[topic].Partitions) > 0 {
		return len(now.Topics[topic].Partitions), nil
	}
	return c.partitions(ctx, topic)
}

// askPartitions asks the brokers, once, how many partitions topics have.
func (c *client) askPartitions(ctx context.Context, topics ...string) (partitions map[string]int, err error) {
	now, err := c.t.know(ctx, true, topics...)
	if err != nil {
		return nil, err
	}
	partitions = make(map[string]int)
	for _, name := range topics {
		topic, err := now.topic(name)
		if unknownTopic(err) {
			return nil, fmt.Errorf("bus: topic %s on %s: %w, or this program has no right to it: create it with `ingest topics apply`, or grant the right",
				name, strings.Join(c.cfg.Brokers, ", "), ErrNoTopic)
		}
		if err != nil {
			return nil, err
		}
		partitions[name] = len(topic.Partitions)
	}
	return partitions, nil
}

// unknownTopic reports whether Kafka, or the client's cache, does not know a topic.
func unknownTopic(err error) bool {
	return errors.Is(err, kafka.UnknownTopicOrPartition) || errors.Is(err, protocol.ErrNoTopic) || errors.Is(err, protocol.ErrNoPartition)
}

// permanentErrors are the errors that trying again does not change.
var permanentErrors = []error{
	ErrNoTopic, ErrTooLarge, errFewer,
	kafka.MessageSizeTooLarge, kafka.RecordListTooLarge, kafka.InvalidTopic, kafka.InvalidTimestamp,
	kafka.InvalidRecord, kafka.InvalidRequiredAcks, kafka.UnsupportedVersion, kafka.UnsupportedForMessageFormat,
	kafka.PolicyViolation, kafka.InvalidConfiguration, kafka.InvalidReplicationFactor, kafka.InvalidPartitionNumber,
	kafka.InvalidGroupId, kafka.InvalidSessionTimeout,
}

// permanent reports whether trying again does not help.
func (c *client) permanent(err error) bool {
	if slices.ContainsFunc(permanentErrors, func(p error) bool { return errors.Is(err, p) }) {
		return true
	}
	if denied(err) {
		return !c.allowed.Load()
	}
	return refused(err) && !c.accepted.Load()
}

// explained is an error in words for the person who runs this program.
type explained struct {
	text  string
	cause error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.cause }

// explain turns an error of the network into words for the person who runs this
// program. It returns other errors as they are.
func explain(err error, cfg Config) error {
	if already, ok := errors.AsType[*explained](err); ok { // a call within this one has given up
		return already
	}
	var dial *net.OpError
	brokers := strings.Join(cfg.Brokers, ", ")
	text := explainRefusal(err, cfg)
	switch {
	case text != "":
	case errors.As(err, &dial) && dial.Op == "dial":
		if dial.Addr != nil {
			brokers = dial.Addr.String()
		}
		cause := innermost(err).Error()
		if dial.Timeout() {
			cause = fmt.Sprintf("nothing within %v", dialTimeout)
		}
		text = fmt.Sprintf("bus: no Kafka broker answers at %s (%s): start one or correct `brokers`", brokers, cause)
	case errors.Is(err, errNotKafka):
		text = fmt.Sprintf("bus: the program that answers at %s is not Kafka, or wants TLS: correct `brokers` or set `tls`", brokers)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		text = fmt.Sprintf("bus: %s closed the connection: the broker went away, or wants TLS or a password", brokers)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		text = fmt.Sprintf("bus: no answer from %s in time: check the broker and the network", brokers)
	default:
		return err
	}
	return &explained{text, err}
}

// innermost returns the error at the end of the chain. For errors of the network it is
// the cause without the address.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// Probe reports why Kafka cannot be used, or nil if a broker answers. It tries
// once.
func Probe(ctx context.Context, cfg Config) error {
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	defer c.close()
	now, err := c.t.know(ctx, true)
	if err != nil {
		return explain(err, cfg)
	}
	if len(now.Brokers) == 0 {
		return fmt.Errorf("bus: %s answers, but knows no broker: wait until Kafka has started", strings.Join(cfg.Brokers, ", "))
	}
	return nil
}

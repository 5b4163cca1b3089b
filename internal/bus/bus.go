// Package bus carries messages through Kafka.
//
// A [Message] lies in a partition of a topic at an offset. Messages of one key
// are always in one partition, in the order in which they were sent.
//
// A [Producer] sends until Kafka has the messages. If Kafka's answer gets lost it
// sends again, so a message may be there twice: every message needs an identity by
// which its readers drop repeats.
//
// A [Group] divides the partitions of a topic among its members. A generation is the
// time during which no member joins or leaves. A [Partition] is one partition while a member
// has it.
//
// A [Txn] writes what a member makes of a partition, and how far it has read, in one
// transaction: readers see all of it or nothing. A member that has lost the partition
// writes nothing.
//
// A dead letter is a message that could not be used, kept whole with the reason. A
// [Broker] is Kafka enough for one machine, inside this process.
//
// A call that can succeed later is tried again until the context ends, and
// Config.OnRetry hears of it meanwhile. An error that trying again does not change is
// returned at once. Every call to Kafka has a deadline.
package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/flank-tcm/flank/internal/config/credential"
)

// Topics. A change of their messages that old readers cannot take is a new name.
const (
	TopicWindows  = "tcm.windows.v1"
	TopicResults  = "tcm.results.v1"
	TopicAlerts   = "tcm.alerts.v1"
	TopicState    = "tcm.state.v1" // compacted: the last message of each key stays
	TopicCommands = "tcm.commands.v1"
	TopicFeatures = "tcm.features.v1"
	TopicShadow   = "tcm.shadow.v1"
	TopicModels   = "tcm.models.v1" // compacted
	TopicAudit    = "tcm.audit.v1"
	TopicLabels   = "tcm.labels.v1" // compacted
	TopicDead     = "tcm.dlq.v1"
)

// MaxMessage is the largest message, in bytes, that the topics are made for.
const MaxMessage = 8 << 20

// Offsets that stand for a place in a partition.
const (
	FirstOffset int64 = -2 // the oldest message that is still there
	lastOffset  int64 = -1 // behind the newest message
)

// Errors that callers test for.
var (
	ErrNoTopic  = errors.New("does not exist")
	ErrTooLarge = errors.New("message too large")
	ErrLost     = errors.New("partition lost") // it may be another member's now
)

// Config says how to reach Kafka. It is copied and may be shared.
type Config struct {
	Brokers  []string // host:port of one or more brokers, from which the others are learnt
	ClientID string   // names this program in the broker's logs
	TLS      *TLS     // nil: connections are in the clear

	// Login is the user and password for SCRAM-SHA-512; nil: no one logs in.
	Login *credential.Login

	// Retain says, by the names of topics, how much of each Apply has Kafka keep. It
	// holds for new and for existing topics. It is not modified. A topic without an
	// entry is made with its default.
	Retain map[string]Retain

	// The functions that follow may be nil. They may be called by several goroutines at
	// once and must not block.

	// OnRetry is called when a call to Kafka failed and will be tried again, with the
	// error and with the time since the first failure. When a call succeeds at last it
	// is called with a nil error.
	OnRetry func(err error, since time.Duration)

	// OnStall is called each time a reader is rebuilt because it gets no messages
	// although there are some, and when they come again.
	OnStall func(Stall)

	// OnGap is called when a Group finds offsets missing.
	OnGap func(Gap)

	// OnDamage is called when ReadFrom, ReadTopic or ReadRange leave out a message that
	// cannot be read, with its Damage.
	OnDamage func(error)

	// OnHeal is called when Partition.Fence found and closed a transaction that a broker
	// had left open when it stopped.
	OnHeal func(text string)

	// Network, if not nil, replaces the operating system's network: a simulation brings
	// its own.
	Network *Network

	stallAfter time.Duration // 0: the constant; tests are less patient
}

// Network is a network for Config. Its times say how often a client asks when nothing has
// happened: a simulation spends most of its time on such requests.
type Network struct {
	Dial        func(ctx context.Context, network, address string) (net.Conn, error)
	MetadataTTL time.Duration // how old a client's idea of the cluster may be; 0: metadataTTL
	ReadWait    time.Duration // how long a fetch waits for the next message; 0: readWait
}

func (c Config) check() error {
	if len(c.Brokers) == 0 {
		return errors.New("bus: no broker is given: set `brokers`, for example to 127.0.0.1:9092")
	}
	for _, b := range c.Brokers {
		if _, port, err := net.SplitHostPort(b); err != nil || port == "" {
			return fmt.Errorf("bus: broker %q: want host:port, for example 127.0.0.1:9092", b)
		}
	}
	if c.TLS != nil {
		if _, err := c.TLS.clientConfig(); err != nil {
			return err
		}
	}
	if c.Login != nil {
		if err := c.Login.Check(); err != nil {
			return fmt.Errorf("bus: %w", err)
		}
	}
	return nil
}

// Header is one header of a message.
type Header struct {
	Key   string
	Value []byte
}

// Message is one message of a topic. Partition, Offset and Time are set in a message that
// was read; Time is when it was sent, in whole milliseconds. Sending ignores them, but for
// the Partition of a pinned message: Kafka removes messages by age, and last year's recording
// that is sent today must not be too old on arrival. The time of the event itself belongs in a
// header.
type Message struct {
	Topic     string
	Partition int
	Offset    int64
	Key       string
	Route     string // if not empty, decides the partition instead of Key; it is not sent
	Pinned    bool   // it is written to Partition, not where the key would go
	Time      time.Time
	Headers   []Header
	Value     []byte // nil deletes the key from a compacted topic

	// Damage, if not nil, says why the message at Offset, and perhaps messages behind it,
	// could not be read. It wraps errDamage. Key, headers and value are empty then. Only
	// Partition.Fetch returns such messages.
	Damage error

	sum    uint32 // of Value, if summed
	summed bool
	loan   *Loan // that Value is a part of; nil: Value is the message's own
}

// Header returns the value of the first header called key, or nil.
func (m *Message) Header(key string) []byte {
	for _, h := range m.Headers {
		if h.Key == key {
			return h.Value
		}
	}
	return nil
}

// Size returns about how many bytes m takes in a request.
func (m *Message) Size() int { return m.bytes(32, 8) }

// bytes counts the bytes of m, and so many more for it and for each header.
func (m *Message) bytes(more, each int) int {
	n := more + len(m.Key) + len(m.Value)
	for _, h := range m.Headers {
		n += each + len(h.Key) + len(h.Value)
	}
	return n
}

package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/flank-tcm/flank/internal/testkit/await"
)

// following is what Follow has called.
type following struct {
	t  *testing.T
	mu sync.Mutex

	begin  func(Followed) Start
	begun  []Followed
	got    []string // values, as partition: value
	next   map[int]int64
	rested int
	stop   func()
}

// startFollow follows a topic at a fast pace until the test ends. Begin says where to begin; nil:
// at the first message.
func startFollow(t *testing.T, cfg Config, topic string, begin func(Followed) Start) *following {
	t.Helper()
	f := &following{t: t, begin: begin, next: make(map[int]int64)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	f.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Follow: %v", err)
		}
	})
	go func() {
		ended <- follow(ctx, cfg, topic, followPace{20 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 5 * time.Second}, f.to())
	}()
	t.Cleanup(f.stop)
	return f
}

func (f *following) to() Following {
	return Following{
		Start: func(p Followed) Start {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.begun = append(f.begun, p)
			if f.begin == nil {
				return Start{Offset: FirstOffset}
			}
			return f.begin(p)
		},
		Take: func(p Followed, msgs []Message, next int64) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, m := range msgs {
				f.got = append(f.got, fmt.Sprintf("%d: %s", p.Partition, m.Value))
			}
			f.next[p.Partition] = next
			return nil
		},
		Rest: func() error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.rested++
			return nil
		},
	}
}

// wait waits until it is done, and returns what was read so far.
func (f *following) wait(what string, done func() bool) string {
	f.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		f.mu.Lock()
		is, got := done(), strings.Join(f.got, ", ")
		f.mu.Unlock()
		if is {
			return got
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%s: not within %v; read %s", what, patience, got)
		}
	}
}

// alertsTo returns messages that go to one of so many partitions.
func alertsTo(partition, of int, values ...string) (msgs []Message) {
	key := "m"
	for PartitionOf(key, of) != partition {
		key += "m"
	}
	for _, v := range values {
		msgs = append(msgs, Message{Topic: TopicAlerts, Key: key, Value: []byte(v)})
	}
	return msgs
}

// Follow reads all partitions and what comes, also in partitions that the topic gets later.
func TestFollow(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	apply(t, cfg, 2)
	p := newProducer(t, cfg)
	send(t, p, append(alertsTo(0, 2, "a"), alertsTo(1, 2, "b", "c")...))
	f := startFollow(t, cfg, TopicAlerts, nil)
	f.wait("three messages", func() bool { return len(f.got) == 3 && f.rested > 0 })
	if len(f.begun) != 2 || f.begun[0].End != 1 || f.begun[1].End != 2 || f.begun[0].ID == ([16]byte{}) || f.begun[0].Lost {
		t.Errorf("begun: %+v", f.begun)
	}
	send(t, p, alertsTo(1, 2, "d"))
	f.wait("the fourth", func() bool { return len(f.got) == 4 && f.next[0] == 1 && f.next[1] == 3 })

	req := kmsg.NewPtrCreatePartitionsRequest()
	more := kmsg.NewCreatePartitionsRequestTopic()
	more.Topic, more.Count = TopicAlerts, 3
	req.Topics, req.TimeoutMillis = []kmsg.CreatePartitionsRequestTopic{more}, 10_000
	if res := ask(t, cfg, req).(*kmsg.CreatePartitionsResponse); res.Topics[0].ErrorCode != 0 {
		t.Fatal(res.Topics[0].ErrorCode)
	}
	c := openClient(t, cfg)
	await.Until(t, "the broker shows the new partition", func() bool {
		n, err := c.askPartitions(testContext(t), TopicAlerts)
		return err == nil && n[TopicAlerts] == 3
	})
	send(t, newProducer(t, cfg), alertsTo(2, 3, "e"))
	if got := f.wait("the fifth, in a new partition", func() bool { return len(f.got) == 5 }); !strings.HasSuffix(got, "1: d, 2: e") {
		t.Errorf("read %s", got)
	}
}

// Follow begins where Start says: at an offset, or at a time.
func TestFollowBeginsWhereToldTo(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	apply(t, cfg, 2)
	p := newProducer(t, cfg)
	send(t, p, append(alertsTo(0, 2, "a", "b", "c"), alertsTo(1, 2, "d", "e")...))
	f := startFollow(t, cfg, TopicAlerts, func(p Followed) Start {
		if p.Partition == 0 {
			return Start{Offset: 2}
		}
		return Start{Offset: FirstOffset, Since: time.Now().Add(time.Hour)}
	})
	f.wait("the end", func() bool { return f.rested > 0 && len(f.got) > 0 })
	send(t, p, append(alertsTo(0, 2, "f"), alertsTo(1, 2, "g")...))
	got := f.wait("three messages", func() bool { return len(f.got) == 3 })
	if !strings.HasPrefix(got, "0: c, ") || !strings.Contains(got, "1: g") {
		t.Errorf("read %s", got)
	}
}

// Transactions that were aborted are left out, and what they leave takes offsets all the same:
// otherwise Follow would ask for them again and again.
func TestFollowReadsWhatIsCommitted(t *testing.T) {
	t.Parallel()
	_, cfg := startBroker(t)
	apply(t, cfg, 1)
	withPartition(t, cfg, func(ctx context.Context, p *Partition) {
		txn := fence(t, ctx, p)
		if err := txn.Publish(ctx, []Message{message(TopicAlerts, "m", "a")}, nil); err != nil {
			t.Error(err)
		}
	})
	f := startFollow(t, cfg, TopicAlerts, nil)
	f.wait("the message and the end of its transaction", func() bool { return len(f.got) == 1 && f.next[0] == 2 && f.rested > 2 })
}

// A topic that was made again is begun again, with another id. So is a log that has lost what
// was to be read next.
func TestFollowTopicMadeAgain(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	send(t, newProducer(t, cfg), alertsTo(0, 1, "a", "b", "c"))
	f := startFollow(t, cfg, TopicAlerts, nil)
	f.wait("three messages", func() bool { return len(f.got) == 3 })
	f.stop()
	deleteTopic(t, cfg, TopicAlerts)
	apply(t, cfg, 1)
	send(t, newProducer(t, cfg), alertsTo(0, 1, "d"))
	lost := startFollow(t, cfg, TopicAlerts, func(p Followed) Start {
		if p.Lost {
			return Start{Offset: FirstOffset}
		}
		return Start{Offset: 3}
	})
	lost.wait("the message of the new topic", func() bool { return len(lost.got) == 1 })
	if n := len(lost.begun); n != 2 || !lost.begun[1].Lost || lost.begun[1].ID == f.begun[0].ID {
		t.Errorf("begun: %+v, the first topic %x", lost.begun, f.begun[0].ID)
	}
}

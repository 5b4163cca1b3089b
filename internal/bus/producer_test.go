package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Keys go where every other Kafka client sends them.
func TestPartitionOf(t *testing.T) {
	// murmur2 of these keys by org.apache.kafka.common.utils.Utils, from its UtilsTest.
	for key, hash := range map[string]int32{"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536, "a-little-bit-longer-string": -1486304829, "abc": 479470107} {
		if got, want := PartitionOf(key, 12), int(hash&0x7fffffff)%12; got != want {
			t.Errorf("key %q in partition %d, want %d", key, got, want)
		}
	}
}

func TestSendThroughFaults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault func(*kfake.Cluster)
		most  int // times the first batch may be there
	}{
		"leader has moved": {func(c *kfake.Cluster) {
			c.Fault(failing(kmsg.Produce, kerr.NotLeaderForPartition, 4))
		}, 1},
		"too few replicas": {func(c *kfake.Cluster) {
			c.Fault(failing(kmsg.Produce, kerr.NotEnoughReplicas, 2))
		}, 1},
		"an error the client library gives up at": {func(c *kfake.Cluster) {
			c.Fault(failing(kmsg.Produce, kerr.UnknownServerError, 2))
		}, 1},
		"written, but the answer says timed out, twice": {func(c *kfake.Cluster) {
			c.Fault(failing(kmsg.Produce, kerr.RequestTimedOut, 2))
		}, 3},
		"written, but not by enough replicas, twice": {func(c *kfake.Cluster) {
			c.Fault(failing(kmsg.Produce, kerr.NotEnoughReplicasAfterAppend, 2))
		}, 3},
		"broker not available": {func(c *kfake.Cluster) {
			c.Fault(failing(kmsg.Produce, kerr.BrokerNotAvailable, 2))
		}, 1},
		"no answer ever comes": {func(c *kfake.Cluster) {
			c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) { return nil, nil, true })
		}, 1},
		"connection drops": {func(c *kfake.Cluster) {
			c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) { return nil, errors.New("drop"), true })
		}, 1},
		"unknown topic for a moment": {func(c *kfake.Cluster) {
			c.Fault(failing(kmsg.Produce, kerr.UnknownTopicOrPartition, 2))
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, cfg := startBroker(t)
			var mu sync.Mutex
			var retries []string
			cfg.OnRetry = func(err error, _ time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				retries = append(retries, fmt.Sprint(err))
			}
			apply(t, cfg, 1)
			p := newProducer(t, cfg)
			tc.fault(b.cluster)
			send(t, p, windows("k", 0, 3))
			send(t, p, windows("k", 3, 6))
			got := readAll(t, cfg, TopicWindows)["k"]
			repeats := len(got)/3 - 1
			if repeats < 1 || repeats > tc.most {
				t.Errorf("first batch is there %d times, want 1 to %d: %q", repeats, tc.most, got)
			}
			var want []string
			for range repeats {
				want = append(want, values(windows("k", 0, 3))...)
			}
			if want = append(want, values(windows("k", 3, 6))...); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			if n := len(retries); n < 2 || retries[n-1] != "<nil>" {
				t.Errorf("OnRetry heard %q, want failures and then success", retries)
			}
		})
	}
}

func TestTooLarge(t *testing.T) {
	cfg := anyBroker(t)
	createTopic(t, cfg, TopicWindows, 1, "max.message.bytes", "2000")
	p := newProducer(t, cfg)
	msgs := windows("k", 0, 100) // too large together, but not each alone
	send(t, p, msgs)
	if got := readAll(t, cfg, TopicWindows)["k"]; !slices.Equal(got, values(msgs)) {
		t.Errorf("got %q", got)
	}
	err := p.Send(testContext(t), []Message{{Topic: TopicWindows, Key: "big", Value: make([]byte, 3000)}})
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), `"big"`) || !strings.Contains(err.Error(), "max.message.bytes") {
		t.Errorf("a message of 3000 bytes: %v", err)
	}
}

func TestLargeMessage(t *testing.T) {
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	big := make([]byte, MaxMessage-1000) // headers, key and the form of a batch come on top
	for i := range big {
		big[i] = byte(i * i >> 7)
	}
	p := newProducer(t, cfg)
	send(t, p, []Message{{Topic: TopicWindows, Key: "k", Value: big}, {Topic: TopicWindows, Key: "k", Value: []byte("small")}})
	got := readAll(t, cfg, TopicWindows)["k"]
	if len(got) != 2 || got[0] != string(big) || got[1] != "small" {
		t.Errorf("%d messages back", len(got))
	}
}

func TestMissingTopic(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	check := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ErrNoTopic) || !strings.Contains(err.Error(), TopicWindows) || !strings.Contains(err.Error(), "ingest topics apply") {
			t.Errorf("%s: %v", what, err)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { check("Send", newProducer(t, cfg).Send(testContext(t), windows("k", 0, 1))) })
	wg.Go(func() {
		check("ReadTopic", ReadTopic(testContext(t), cfg, TopicWindows, FirstOffset, false, func(Message) error { return nil }))
	})
	wg.Go(func() {
		g, _ := NewGroup(cfg, "g", TopicWindows)
		check("Run", g.Run(testContext(t), func(context.Context, *Partition) error { return nil }))
	})
	wg.Wait()
}

// A topic that was removed while in use is an error too; Send does not wait for it.
func TestTopicRemoved(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	p := newProducer(t, cfg)
	send(t, p, windows("k", 0, 1))
	deleteTopic(t, cfg, TopicWindows)
	if err := p.Send(testContext(t), windows("k", 1, 2)); !errors.Is(err, ErrNoTopic) {
		t.Errorf("Send: %v", err)
	}
}

// When a topic is made again with fewer partitions, or gets more, a producer sends messages
// to the partitions in which readers look for them, in order.
func TestPartitionsChange(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	p := newProducer(t, cfg)
	var msgs []Message
	for i := range 12 {
		msgs = append(msgs, windows(fmt.Sprint("machine ", i), 0, 3)...)
	}
	for _, n := range []int{8, 2, 5} {
		if n < 8 {
			deleteTopic(t, cfg, TopicWindows)
		}
		apply(t, cfg, n)
		for n == 5 { // more are noticed within a second or two, as by every client of Kafka; fewer at once
			if have, err := p.c.count(testContext(t), TopicWindows); err != nil {
				t.Fatal(err)
			} else if have == n {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		send(t, p, msgs)
		got := make(map[string][]string)
		err := ReadTopic(testContext(t), cfg, TopicWindows, FirstOffset, false, func(m Message) error {
			if m.Partition != PartitionOf(m.Key, n) {
				t.Errorf("%d partitions: key %q is in %d", n, m.Key, m.Partition)
			}
			got[m.Key] = append(got[m.Key], string(m.Value))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 12 {
			key := fmt.Sprint("machine ", i)
			if !slices.Equal(got[key], values(windows(key, 0, 3))) {
				t.Errorf("%d partitions: %s has %q", n, key, got[key])
			}
		}
	}
}

// Send ends with its context and returns the last failure.
func TestSendEndsWithItsContext(t *testing.T) {
	cfg := Config{Brokers: []string{"127.0.0.1:1"}}
	ctx, cancel := context.WithCancel(context.Background())
	cfg.OnRetry = func(error, time.Duration) { cancel() }
	p, err := NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	err = p.Send(ctx, windows("k", 0, 1))
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "no Kafka broker answers at 127.0.0.1:1") {
		t.Errorf("%v", err)
	}
}

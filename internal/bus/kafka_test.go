package bus

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
)

// These tests kill and restart a real broker.

func needKafka(t *testing.T) {
	t.Helper()
	if kafkatest.Version() == "" {
		t.Skip("FLANK_KAFKA names no version of Apache Kafka: make e2e-kafka does")
	}
}

// A broker that is killed and comes back loses no message for which Send had returned. The
// group goes on. Messages that it had read and could not commit come again.
func TestKafkaKilled(t *testing.T) {
	needKafka(t)
	k := kafkatest.Start(t)
	var mu sync.Mutex
	var heard []string
	cfg := Config{Brokers: []string{k.Addr}, ClientID: "test", OnRetry: func(err error, _ time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			heard = append(heard, err.Error())
		}
	}}
	apply(t, cfg, 2)
	p := newProducer(t, cfg)
	c := newCollector()
	generations := 0
	defer runGroup(t, cfg, func(ctx context.Context, p *Partition) error {
		mu.Lock()
		generations++
		mu.Unlock()
		err := c.handle(ctx, p)
		if errors.Is(err, ErrLost) && ctx.Err() == nil {
			if _, again := p.Fetch(ctx, 1, 0); ctx.Err() == nil && len(p.queue) == 0 && !errors.Is(again, ErrLost) {
				t.Errorf("Fetch after a failed commit: %v", again)
			}
		}
		return err
	})()
	const rounds, each = 2, 200
	keys := []string{"a", "b", "c", "d"}
	sent := 0
	for range rounds {
		wait := make(chan error, 1)
		go func(from int) {
			ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
			defer cancel()
			for i := from; i < from+each; i += 20 {
				for _, key := range keys {
					if err := p.Send(ctx, windows(key, i, i+20)); err != nil {
						wait <- err
						return
					}
				}
			}
			wait <- nil
		}(sent)
		c.wait(t, sent*len(keys)+40)
		k.Kill()
		k.Restart(t)
		if err := <-wait; err != nil {
			t.Fatal(err)
		}
		sent += each
	}
	c.wait(t, sent*len(keys))
	for key, got := range readAll(t, cfg, TopicWindows) {
		if distinct := firsts(got); !slices.Equal(distinct, values(windows(key, 0, sent))) {
			t.Errorf("%s: %d messages, %d distinct; lost or out of order", key, len(got), len(distinct))
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if generations < 3 {
		t.Errorf("%d partitions were served: no generation followed a kill", generations)
	}
	if !slices.ContainsFunc(heard, func(s string) bool { return strings.Contains(s, "no Kafka broker answers at "+k.Addr) }) {
		t.Errorf("OnRetry heard %q", heard)
	}
}

// firsts returns the values without repeats.
func firsts(values []string) (distinct []string) {
	seen := map[string]bool{}
	for _, v := range values {
		if !seen[v] {
			seen[v] = true
			distinct = append(distinct, v)
		}
	}
	return distinct
}

// distinctResults returns the committed results of a partition without repeats. If Apache
// Kafka is killed in the middle of a commit, it may later show results that it had hidden
// while another member wrote the same results again.
func distinctResults(t *testing.T, cfg Config, w *watchdog, n int) []string {
	t.Helper()
	for last, since := -1, time.Now(); ; time.Sleep(100 * time.Millisecond) {
		all := committed(t, cfg, TopicResults, 0)
		got := firsts(all)
		if len(got) >= n {
			if len(all) > len(got) {
				t.Logf("%d of %d results came twice", len(all)-len(got), len(got))
			}
			return got
		}
		if len(got) > last {
			last, since = len(got), time.Now()
			w.progress()
		}
		if err := w.died(); err != nil {
			t.Fatal(err)
		}
		if time.Since(since) > patience {
			t.Fatalf("%d of %d results", len(all), n)
		}
	}
}

// A broker that is killed at any moment loses no result and shows none in the wrong place.
func TestKafkaKilledInTransactions(t *testing.T) {
	needKafka(t)
	k := kafkatest.Start(t)
	cfg, w := watchFor(t, Config{Brokers: []string{k.Addr}, ClientID: "test"}, k.Died)
	apply(t, cfg, 1)
	p := newProducer(t, cfg)
	defer runSticky(t, cfg, publishResults(2))()
	const rounds, each = 2, 100
	for i := range rounds {
		send(t, p, windows("k", i*each, (i+1)*each))
		distinctResults(t, cfg, w, i*each+each/2)
		k.Kill()
		k.Restart(t)
	}
	if got := distinctResults(t, cfg, w, rounds*each); !slices.Equal(got, values(windows("k", 0, rounds*each))) {
		t.Errorf("%d results, %.300q", len(got), got)
	}
}

// The partitions of a transaction, and its coordinators, are on different nodes. A node that
// dies takes some of them along.
func TestKafkaClusterInTransactions(t *testing.T) {
	needKafka(t)
	c := kafkatest.StartCluster(t)
	cfg, w := watchFor(t, Config{Brokers: c.Addrs(), ClientID: "test"}, c.Died)
	if _, err := Apply(testContext(t), cfg, 1, 3); err != nil {
		t.Fatal(err)
	}
	p := newProducer(t, cfg)
	handle := publishTo(2, TopicResults, TopicState, TopicAlerts)
	defer runSticky(t, cfg, handle)()
	const rounds, each = 3, 100
	for i := range rounds {
		send(t, p, windows("k", i*each, (i+1)*each))
		distinctResults(t, cfg, w, i*each+each/2)
		c.Nodes[i].Kill()
		distinctResults(t, cfg, w, (i+1)*each)
		c.Nodes[i].Restart(t)
	}
	want := values(windows("k", 0, rounds*each))
	for _, topic := range []string{TopicResults, TopicAlerts} {
		if got := firsts(committed(t, cfg, topic, 0)); !slices.Equal(got, want) {
			t.Errorf("%s: %d results, %.300q", topic, len(got), got)
		}
	}
}

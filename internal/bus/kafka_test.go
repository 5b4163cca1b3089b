package bus

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus/kafkatest"
)

// What only a real broker shows: how it dies and comes back.

func needKafka(t *testing.T) {
	t.Helper()
	if kafkatest.Version() == "" {
		t.Skip("FLANK_KAFKA names no version of Apache Kafka: make e2e-kafka does")
	}
}

// A broker that is killed and comes back loses nothing that Send had returned
// for. The group goes on; what it had read and could not commit comes again.
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

// firsts returns the values without those that came before.
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

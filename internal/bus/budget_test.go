package bus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Callers that wait get memory in order, and never more than is free. A caller that gives
// up leaves the budget as it was.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		ctx := t.Context()
		if err := b.take(ctx, 60); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []int
		for i := range 3 {
			go func() {
				if err := b.take(ctx, 50); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
			}()
			synctest.Wait()
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := b.take(short, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a small share overtakes: %v", err)
		}
		if len(order) > 0 || b.roomy() {
			t.Errorf("%v served with 40 free", order)
		}
		b.give(-20) // more than was reserved
		b.give(80)
		synctest.Wait()
		slices.Sort(order)
		if !slices.Equal(order, []int{0, 1}) || b.free != 0 {
			t.Errorf("served %v, %d left", order, b.free)
		}
		b.give(100)
		synctest.Wait()
		if len(order) != 3 || b.free != 50 || len(b.waiting) > 0 || !b.roomy() {
			t.Errorf("served %v, %d left, %d wait", order, b.free, len(b.waiting))
		}
	})
}

// In any order of takes, gives and given-up waits, all memory comes back, and readers never
// hold more than the budget.
func TestBudgetBalances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		var wg sync.WaitGroup
		for i := range 64 {
			rng := rand.New(rand.NewPCG(7, uint64(i)))
			wg.Go(func() {
				for range 50 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(50))*time.Millisecond)
					n := 1 + rng.IntN(100)
					if b.take(ctx, n) == nil {
						b.mu.Lock()
						if b.free < 0 {
							t.Error("readers hold more than the budget")
						}
						b.mu.Unlock()
						time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond)
						b.give(n)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		if b.free != 100 || len(b.waiting) > 0 {
			t.Errorf("%d of 100 are back, %d wait", b.free, len(b.waiting))
		}
	})
}

// With a backlog in every partition a group holds no more than its budget and the small
// answer that each partition may ask for without waiting.
func TestGroupSharesMemory(t *testing.T) {
	cfg := anyBroker(t)
	const partitions, each, size = 12, 16, 900_000
	apply(t, cfg, partitions)
	p := newProducer(t, cfg)
	total := 0
	for part := range partitions {
		key := ""
		for i := 0; key == ""; i++ {
			if k := fmt.Sprint("machine ", i); PartitionOf(k, partitions) == part {
				key = k
			}
		}
		for range each {
			send(t, p, []Message{{Topic: TopicWindows, Key: key, Value: make([]byte, size)}})
			total++
		}
	}
	var (
		mu   sync.Mutex
		most int
		got  = make(map[string]bool) // by partition and offset: a rebalance brings some again
		all  = make(chan struct{})
	)
	stop := runGroup(t, cfg, func(ctx context.Context, p *Partition) error {
		for {
			msgs, err := p.Fetch(ctx, 4, time.Millisecond)
			if err != nil {
				return err
			}
			if len(p.queue) == 0 && p.queue != nil {
				t.Error("the queue still holds messages that Fetch returned")
			}
			b := p.f.budget
			b.mu.Lock()
			used := b.size - b.free
			b.mu.Unlock()
			mu.Lock()
			most = max(most, used)
			had := len(got)
			for _, m := range msgs {
				got[fmt.Sprint(m.Key, "/", m.Offset)] = true
			}
			if had < total && len(got) == total {
				close(all)
			}
			mu.Unlock()
			if err := p.Commit(ctx, msgs[len(msgs)-1].Offset+1); err != nil {
				return err
			}
		}
	})
	defer stop()
	select {
	case <-all:
	case <-testContext(t).Done():
		mu.Lock()
		defer mu.Unlock()
		t.Fatalf("%d of %d", len(got), total)
	}
	if limit := fetchBudget + partitions*(quietFetch(TopicWindows)+size); most > limit || most < 2*size {
		t.Errorf("%d bytes at most, want no more than %d", most, limit)
	}
}

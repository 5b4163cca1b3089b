package bus

import (
	"context"
	"slices"
	"sync"
)

// fetchBudget is how many bytes of memory the fetched messages of all partitions of
// one reader may take, until the reader is done with them.
const fetchBudget = 64 << 20

// quietFetch is how many bytes a partition asks for that had little to read last time:
// a window, or a batch of other messages.
// It takes no share of the budget beforehand, so any number of partitions can wait
// for messages.
func quietFetch(topic string) int {
	if topic == TopicWindows {
		return 1 << 20
	}
	return 256 << 10
}

// budget shares memory among the partitions that are read at the same time: with a
// backlog in all of them, each would otherwise hold a whole answer.
type budget struct {
	mu      sync.Mutex
	size    int
	free    int
	waiting []*share // in order
}

// share is memory that is waited for.
type share struct {
	n    int
	turn chan struct{} // closed once it is taken
}

func newBudget(size int) *budget { return &budget{size: size, free: size} }

// take waits until n bytes are free and takes them. N must not exceed the budget. The
// caller must hold nothing: callers that hold something never wait, so the wait ends.
func (b *budget) take(ctx context.Context, n int) error {
	s := &share{n: n, turn: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, s)
	b.serve()
	b.mu.Unlock()
	select {
	case <-s.turn:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiting, s); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	} else {
		b.free += n // it was granted at the same moment
	}
	b.serve()
	return ctx.Err()
}

// give gives n bytes back; if n is negative it takes them without waiting, perhaps
// more than there are.
func (b *budget) give(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	b.serve()
}

// serve hands memory to those that wait for it.
func (b *budget) serve() {
	for len(b.waiting) > 0 && b.waiting[0].n <= b.free {
		b.free -= b.waiting[0].n
		close(b.waiting[0].turn)
		b.waiting = b.waiting[1:]
	}
}

// roomy reports whether half of the memory is free.
func (b *budget) roomy() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.free >= b.size/2
}

package dbn

import (
	"runtime"
	"sync/atomic"
)

// A batch is cut into shards, which one or more goroutines work through. Cuts
// depend on the number of rows alone, every shard has its own random source and
// its own gradient, and gradients are added in the order of the shards: so the
// result does not depend on how many goroutines there are, nor on which does
// what.
const (
	shardRows = 64 // of a batch, at most, that stay in one shard
	maxShards = 16
)

// shards returns how many shards n rows are cut into.
func shards(n int) int { return min((n+shardRows-1)/shardRows, maxShards) }

// part returns the bounds of shard i of n rows in all.
func part(n, i int) (from, to int) {
	all := shards(n)
	return n * i / all, n * (i + 1) / all
}

// roomFor returns the most rows that are worked on at a time in a shard of a
// batch of n rows or fewer.
func roomFor(n int) int {
	return min(n, chunk, max(shardRows, (n+maxShards-1)/maxShards))
}

// team is the goroutine that trains and its helpers. A batch takes a tenth of a
// millisecond or so, less than waking a goroutine may take, so helpers look for
// work for a while before they sleep.
type team struct {
	helpers  int
	do       func(shard int) // of this batch; read by the goroutines that took a shard
	ticket   atomic.Uint64   // see newTicket
	left     atomic.Int64    // shards of this batch that are not done
	sleeping atomic.Int64    // helpers
	wake     chan struct{}   // closed at the end
}

// newTicket returns the number of a batch, its shards and how many of them are
// taken, in one word, so that no goroutine takes a shard of one batch for another's.
func newTicket(batch uint32, shards int) uint64 { return uint64(batch)<<32 | uint64(shards)<<16 }

const looks = 2000 // for work before a helper sleeps: some tenths of a millisecond

// newTeam returns a team of the given number of goroutines, the caller's among
// them. It must be closed.
func newTeam(workers int) *team {
	t := &team{helpers: min(workers, maxShards) - 1, wake: make(chan struct{})}
	for range t.helpers {
		go t.help()
	}
	return t
}

func (t *team) close() { close(t.wake) }

// run does every shard and returns when all are done.
func (t *team) run(shards int, do func(shard int)) {
	if t.helpers <= 0 || shards == 1 {
		for i := range shards {
			do(i)
		}
		return
	}
	t.do = do
	t.left.Store(int64(shards))
	t.ticket.Store(newTicket(uint32(t.ticket.Load()>>32)+1, shards))
	for range t.sleeping.Load() {
		select {
		case t.wake <- struct{}{}:
		default: // not asleep yet, or up again
		}
	}
	t.take()
	for t.left.Load() > 0 {
		runtime.Gosched()
	}
}

// take does shards of this batch as long as there are any.
func (t *team) take() {
	for {
		ticket := t.ticket.Load()
		taken, shards := ticket&0xffff, ticket>>16&0xffff
		if taken == shards {
			return
		}
		if t.ticket.CompareAndSwap(ticket, ticket+1) {
			t.do(int(taken))
			t.left.Add(-1)
		}
	}
}

// help takes shards of every batch until the team is closed.
func (t *team) help() {
	last := t.ticket.Load() >> 32
	for idle := 0; ; {
		batch := t.ticket.Load() >> 32
		switch {
		case batch != last:
			last, idle = batch, 0
			t.take()
		case idle < looks:
			idle++
			runtime.Gosched()
		default:
			idle = 0
			t.sleeping.Add(1)
			open := true
			if t.ticket.Load()>>32 == last { // else run may have counted before
				_, open = <-t.wake
			}
			t.sleeping.Add(-1)
			if !open {
				return
			}
		}
	}
}

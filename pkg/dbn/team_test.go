package dbn

import (
	"sync/atomic"
	"testing"
	"time"
)

// Every shard of every batch is done once, and run returns after the last, with
// helpers that look for work and with helpers that sleep.
func TestTeamDoesEveryShardOnce(t *testing.T) {
	for _, workers := range []int{1, 2, 4} {
		team := newTeam(workers)
		var done [maxShards]atomic.Int64
		batches := 0
		for n := 1; n <= maxShards; n++ {
			for range 200 {
				team.run(n, func(shard int) { done[shard].Add(1) })
				batches++
				for i := range n {
					if got := done[i].Swap(0); got != 1 {
						t.Fatalf("%d workers, batch %d of %d shards: shard %d done %d times", workers, batches, n, i, got)
					}
				}
			}
			time.Sleep(2 * time.Millisecond)
		}
		team.close()
	}
}

func TestPartsCoverABatch(t *testing.T) {
	for n := 1; n < 3000; n++ {
		next := 0
		for i := range shards(n) {
			from, to := part(n, i)
			if from != next || to <= from {
				t.Fatalf("%d rows: shard %d is [%d, %d), the one before ended at %d", n, i, from, to, next)
			}
			if room := min(to-from, chunk); room > roomFor(n) || room > roomFor(n+100) {
				t.Fatalf("%d rows: shard %d works on %d at a time, room is for %d", n, i, room, roomFor(n))
			}
			next = to
		}
		if next != n {
			t.Fatalf("%d rows: shards end at %d", n, next)
		}
	}
}

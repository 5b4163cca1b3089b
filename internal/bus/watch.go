package bus

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// stallAfter is how long a reader may get no message from a partition that has some before
// it makes new connections.
const stallAfter = 30 * time.Second

// Stall is a partition that has messages while its reader gets neither messages nor errors.
type Stall struct {
	Topic     string
	Partition int
	Offset    int64         // to read next
	Behind    int64         // offsets up to the end of the partition
	For       time.Duration // since the last progress
	Times     int           // how often the reader was rebuilt in this stall; 0: messages come again
}

// String says it in words.
func (s Stall) String() string {
	if s.Times == 0 {
		return fmt.Sprintf("topic %s partition %d: messages come again after %v", s.Topic, s.Partition, s.For.Round(time.Second))
	}
	return fmt.Sprintf("topic %s partition %d: %d offsets behind, and none has come for %v at offset %d: making new connections",
		s.Topic, s.Partition, s.Behind, s.For.Round(time.Second), s.Offset)
}

// Gap is a stretch of offsets that a reader will never see: retention removed them first,
// the broker lost them, or the topic is compacted. If To is below From, the log ended
// before From: if Cut, it lost its newest messages; otherwise the topic was removed and
// made again.
type Gap struct {
	Topic     string
	Partition int
	From, To  int64 // the first missing offset, and the offset to read next
	Cut       bool
}

// Missing returns how many offsets are missing, or 0 if that is not known.
func (g Gap) Missing() int64 { return max(g.To-g.From, 0) }

// String says it in words.
func (g Gap) String() string {
	switch {
	case g.Cut:
		return fmt.Sprintf("topic %s partition %d has lost its newest messages: offset %d was next and the log ends at %d, going on there",
			g.Topic, g.Partition, g.From, g.To)
	case g.To < g.From:
		return fmt.Sprintf("topic %s partition %d was removed and made again: it ends before offset %d, going on at %d", g.Topic, g.Partition, g.From, g.To)
	}
	return fmt.Sprintf("topic %s partition %d: offsets %d to %d are gone before they were read", g.Topic, g.Partition, g.From, g.To-1)
}

// stallWatch is what a fetcher remembers of its progress.
type stallWatch struct {
	at    int64     // offset to read next at the last progress
	since time.Time // of the last progress, or when no message was left to read
	asked time.Time // when watch last asked where the partition ends
	times int       // how often the reader was rebuilt since
}

// watch must be called after every fetch. If there was no progress for a while, it asks on
// another connection whether there are messages to read. If there are, it gives the client
// new connections.
//
// It need not run in a goroutine of its own: every fetch ends by its deadline.
func (f *fetcher) watch(ctx context.Context, now time.Time) {
	w := &f.stall
	if f.next != w.at || w.since.IsZero() {
		if w.times > 0 {
			f.sayStall(Stall{For: now.Sub(w.since)})
		}
		*w = stallWatch{at: f.next, since: now, asked: now}
		return
	}
	if now.Sub(w.asked) < cmp.Or(f.c.cfg.stallAfter, stallAfter) {
		return
	}
	w.asked = now
	end, err := f.c.t.second.endOf(ctx, f.place)
	switch {
	case err != nil: // an outage, which the next fetch reports
	case end <= f.next:
		if w.times == 0 {
			w.since = now
		}
	default:
		w.times++
		f.c.t.reset()
		f.sayStall(Stall{Behind: end - f.next, For: now.Sub(w.since), Times: w.times})
	}
}

func (f *fetcher) sayStall(s Stall) {
	if f.c.cfg.OnStall == nil {
		return
	}
	s.Topic, s.Partition, s.Offset = f.topic, f.partition, f.next
	f.c.cfg.OnStall(s)
}

// sayGap reports missing offsets of a topic that should have them all.
func (f *fetcher) sayGap(g Gap) {
	if f.whole && f.c.cfg.OnGap != nil {
		f.c.cfg.OnGap(g)
	}
}

package bus

import (
	"context"
	"fmt"
	"time"
)

// stallAfter is how long a partition may have messages and none come before its
// connections are made anew.
const stallAfter = 30 * time.Second

// Stall is a partition that has messages while its reader gets none, and no
// error either.
type Stall struct {
	Topic     string
	Partition int
	Offset    int64         // to be read next
	Behind    int64         // offsets up to the end of the partition
	For       time.Duration // since the last progress
	Times     int           // the reader was rebuilt in this standstill; 0: messages come again
}

// String says it in words.
func (s Stall) String() string {
	if s.Times == 0 {
		return fmt.Sprintf("topic %s partition %d: messages come again after %v", s.Topic, s.Partition, s.For.Round(time.Second))
	}
	return fmt.Sprintf("topic %s partition %d: %d offsets behind, and none has come for %v at offset %d: connections are made anew",
		s.Topic, s.Partition, s.Behind, s.For.Round(time.Second), s.Offset)
}

// Gap is a stretch of offsets that a reader never saw and never will: retention
// removed them first, the broker lost them, or someone compacts the topic. If To is
// below From, the log ended before From: it lost its newest messages if Cut, and
// else belongs to a topic that was removed and made again.
type Gap struct {
	Topic     string
	Partition int
	From, To  int64 // the first offset that is missing, and the one that is read next
	Cut       bool
}

// Missing returns how many offsets are missing, or 0 if that cannot be known.
func (g Gap) Missing() int64 { return max(g.To-g.From, 0) }

// String says it in words.
func (g Gap) String() string {
	switch {
	case g.Cut:
		return fmt.Sprintf("topic %s partition %d has lost its newest messages: offset %d was to be read next and the log ends at %d, going on there",
			g.Topic, g.Partition, g.From, g.To)
	case g.To < g.From:
		return fmt.Sprintf("topic %s partition %d was removed and made again: it ends before offset %d, going on at %d", g.Topic, g.Partition, g.From, g.To)
	}
	return fmt.Sprintf("topic %s partition %d: offsets %d to %d are gone before they were read", g.Topic, g.Partition, g.From, g.To-1)
}

// stallWatch is what a fetcher remembers of its progress.
type stallWatch struct {
	at    int64     // offset to be read next when there was progress
	since time.Time // when that was, or when nothing was left to read
	asked time.Time // when the broker was last asked where the partition ends
	times int       // rebuilt since
}

// watch is told after every fetch. If no offset has gone by for a while, it asks
// on a connection of its own whether there is anything to read, and if there is,
// gives the client new connections.
//
// It need not run beside the fetches: each of them ends by its deadline.
func (f *fetcher) watch(ctx context.Context, now time.Time) {
	w := &f.stall
	if f.next != w.at || w.since.IsZero() {
		if w.times > 0 {
			f.sayStall(Stall{For: now.Sub(w.since)})
		}
		*w = stallWatch{at: f.next, since: now, asked: now}
		return
	}
	patience := f.c.cfg.stallAfter
	if patience == 0 {
		patience = stallAfter
	}
	if now.Sub(w.asked) < patience {
		return
	}
	w.asked = now
	end, err := f.askEnd(ctx)
	switch {
	case err != nil: // an outage, of which the next fetch hears too
	case end <= f.next:
		if w.times == 0 {
			w.since = now
		}
	default:
		w.times++
		f.c.rebuild(f.c.get())
		f.sayStall(Stall{Behind: end - f.next, For: now.Sub(w.since), Times: w.times})
	}
}

func (f *fetcher) askEnd(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	kc := newKafkaClient(f.c.cfg)
	defer closeKafkaClient(kc)
	return endOf(ctx, kc, f.topic, f.partition)
}

func (f *fetcher) sayStall(s Stall) {
	if f.c.cfg.OnStall == nil {
		return
	}
	s.Topic, s.Partition, s.Offset = f.topic, f.partition, f.next
	f.c.cfg.OnStall(s)
}

// sayGap reports offsets that are missing where all should be there.
func (f *fetcher) sayGap(g Gap) {
	if f.whole && f.c.cfg.OnGap != nil {
		f.c.cfg.OnGap(g)
	}
}

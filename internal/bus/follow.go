package bus

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// followPace says how often Follow asks.
type followPace struct {
	ends    time.Duration // where the partitions end
	regroup time.Duration // how many partitions there are, and whether the topic was made again
	shrunk  time.Duration // for how long a log must end before what was read until it has lost messages
	patient time.Duration // with a partition, before the others get their turn
}

var usualPace = followPace{250 * time.Millisecond, 5 * time.Second, 5 * time.Second, 20 * time.Second}

// Followed is a partition that Follow begins to read.
type Followed struct {
	Topic     string
	Partition int
	ID        [16]byte // that Kafka gave the topic when it was made; zero if it is not known
	End       int64    // offset behind the newest message that may be read
	Lost      bool     // the log ends before the offset to be read next: it lost its newest messages, or the topic was made again
}

// Start is where Follow begins to read a partition.
type Start struct {
	Offset int64     // or FirstOffset or lastOffset
	Since  time.Time // if not zero: without messages that Kafka got before
}

// Following is what Follow calls. The calls never overlap.
type Following struct {
	// Start returns where to begin in a partition. Follow calls it for every partition before
	// it reads any, for partitions that the topic gets later, again if the topic was made
	// again, and again with Lost if the log lost what was to be read next.
	Start func(Followed) Start

	// Take gets messages of a partition in order, without damaged ones, and the offset behind
	// them, also if there is no message: what transactions leave in a partition takes offsets,
	// too. Follow ends at its first error and returns it.
	Take func(p Followed, msgs []Message, next int64) error

	// Rest, if not nil, is called after each time Follow has asked and nothing was left to
	// read. Follow ends at its first error and returns it.
	Rest func() error
}

// Follow reads the committed messages of all partitions of a topic until ctx ends, and returns
// the error of ctx. It waits for a broker that is away.
//
// A topic at rest costs one request to each broker four times a second, for any number of
// partitions.
func Follow(ctx context.Context, cfg Config, topic string, to Following) error {
	return follow(ctx, cfg, topic, usualPace, to)
}

func follow(ctx context.Context, cfg Config, topic string, pace followPace, to Following) error {
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	defer c.close()
	f := &follower{c: c, topic: topic, pace: pace, to: to, memory: newBudget(fetchBudget)}
	for {
		if time.Since(f.asked) >= pace.regroup {
			if err := f.regroup(ctx); err != nil {
				return err
			}
			f.asked = time.Now()
		}
		more, err := f.round(ctx)
		if err != nil {
			return err
		}
		if more {
			continue // catching up
		}
		if to.Rest != nil {
			if err := to.Rest(); err != nil {
				return err
			}
		}
		if err := pause(ctx, pace.ends); err != nil {
			return err
		}
	}
}

// follower reads the partitions of a topic one after the other.
type follower struct {
	c      *client
	topic  string
	pace   followPace
	to     Following
	memory *budget
	id     topicID
	parts  []*followedPartition
	asked  time.Time // when regroup last asked
}

type followedPartition struct {
	Followed
	fetcher
	shrunk time.Time // when the log was first seen to end before next; zero if it does not
}

// regroup begins to read new partitions, and all of them if the topic was made again.
func (f *follower) regroup(ctx context.Context) error {
	n, err := f.c.partitions(ctx, f.topic)
	if err != nil {
		return err
	}
	now, err := f.c.t.know(ctx, false, f.topic) // as partitions has just asked
	if err != nil {
		return err
	}
	if id := now.ids[f.topic]; id != (topicID{}) && id != f.id {
		if f.id != (topicID{}) {
			f.parts = nil
		}
		f.id = id
	}
	for p := len(f.parts); p < n; p++ {
		part := &followedPartition{Followed: Followed{Topic: f.topic, Partition: p, ID: f.id}}
		if err := f.begin(ctx, part); err != nil {
			return err
		}
		f.parts = append(f.parts, part)
	}
	return nil
}

// begin asks where to begin in a partition.
func (f *follower) begin(ctx context.Context, p *followedPartition) error {
	err := f.c.retry(ctx, func(ctx context.Context) (err error) {
		p.End, err = f.c.t.endOf(ctx, place{f.topic, p.Partition})
		return err
	})
	if err != nil {
		return err
	}
	at := f.to.Start(p.Followed)
	p.fetcher = fetcher{c: f.c, place: place{f.topic, p.Partition}, budget: f.memory}
	p.shrunk = time.Time{}
	begins := reading{c: f.c, topic: f.topic, Range: Range{From: at.Offset, Since: at.Since}, plain: true}
	return f.c.retry(ctx, func(ctx context.Context) (err error) {
		p.next, _, err = begins.bounds(ctx, p.place)
		return err
	})
}

// round reads once from each partition that has messages. It reports whether one has more.
func (f *follower) round(ctx context.Context) (more bool, err error) {
	ends, err := f.ends(ctx)
	if err != nil {
		return false, err
	}
	for i, p := range f.parts {
		found, known := ends[i]
		end := found.Offset
		switch {
		case !known:
			continue
		case end < p.next:
			if err := f.shrinks(ctx, p); err != nil {
				return false, err
			}
			continue
		}
		p.shrunk = time.Time{}
		if p.next >= end {
			continue
		}
		if err := f.read(ctx, p); err != nil {
			return false, err
		}
		more = more || p.next < end
	}
	return more, ctx.Err()
}

// shrinks begins again in a partition whose log has ended before what was read for a while. A
// new leader may say so for a moment.
func (f *follower) shrinks(ctx context.Context, p *followedPartition) error {
	now := time.Now()
	if p.shrunk.IsZero() {
		p.shrunk = now
	}
	if now.Sub(p.shrunk) < f.pace.shrunk {
		return nil
	}
	f.asked = time.Time{} // perhaps it is another topic
	p.Lost = true
	err := f.begin(ctx, p)
	p.Lost = false
	return err
}

// read fetches once and gives what came to take.
func (f *follower) read(ctx context.Context, p *followedPartition) error {
	patient, cancel := context.WithTimeout(ctx, f.pace.patient)
	defer cancel()
	msgs, err := p.fetch(patient, time.Millisecond)
	if err != nil && patient.Err() != nil {
		return ctx.Err() // its leader is away: the others go on
	}
	if err != nil {
		return err
	}
	whole := msgs[:0]
	for _, m := range msgs {
		if m.Damage != nil {
			f.c.sayDamage(m)
			continue
		}
		whole = append(whole, m)
	}
	err = f.to.Take(p.Followed, whole, p.next)
	p.done(p.held)
	return err
}

// ends returns where the partitions end, by their index in f.parts. A partition that has no
// leader is left out: it is asked for again.
func (f *follower) ends(ctx context.Context) (ends map[int]kmsg.ListOffsetsResponseTopicPartition, err error) {
	err = f.c.retry(ctx, func(ctx context.Context) (err error) {
		ends, err = f.c.t.offsets(ctx, f.topic, everywhere(len(f.parts), lastOffset), committedOnly(f.topic))
		if err != nil && len(ends) > 0 {
			f.c.t.expire()
			return nil
		}
		return err
	})
	return ends, err
}

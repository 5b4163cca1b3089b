package bus

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	fetchSlots = 6                     // requests at the same time to one broker for one isolation
	fetchBytes = 40 << 20              // of the partitions of one request: an answer must be shorter than maxResponse
	gather     = 2 * time.Millisecond  // a request waits for that long for other partitions, unless one of them is urgent
	busyWait   = 25 * time.Millisecond // how long a request waits at a broker if no other could be sent meanwhile
	early      = 5 * time.Millisecond  // before its time an answer without messages is in time
)

// demand is what a reader asks of a partition.
type demand struct {
	place
	next   int64         // offset to begin at
	most   int           // bytes
	wait   time.Duration // for messages
	urgent bool          // there is probably something to read
	p      *poller
	answer chan answer // holds one value

	// The poller's mu guards these.
	listed bool // the poller has the demand
	asked  bool // the reader waits
	until  time.Time
}

// answer is what a broker said to a demand.
type answer struct {
	fetched
	body *Loan
	err  error
}

// poller fetches from one broker for all partitions that the broker leads. Each reader asks for
// the next messages of its partition when it wants them. A request carries all partitions that
// are asked for at the time, and waits at the broker until one of them has messages; the others
// go into the next request. A partition whose reader comes meanwhile goes into a second request,
// on another connection.
//
// All requests end at the same time, a tick, and begin again as one. A reader that has got an
// answer without messages then has until the next tick to ask again: its partition is in the
// request already.
type poller struct {
	pollerKey
	t *transport

	mu      sync.Mutex
	waiting []*demand // in order: a broker may have room for messages of the first partition only
	asking  int       // requests under way
	soon    bool      // some will be sent in a moment
}

type pollerKey struct {
	node      int32
	committed bool // leave out what is behind an open transaction
}

// fetch returns the leader's answer to what a reader wants. If it holds records, return its
// body. Last is the reader's last demand, or nil; fetch returns the present one.
func (t *transport) fetch(ctx context.Context, last *demand, want demand) (answer, *demand, error) {
	now, err := t.know(ctx, false, want.topic)
	if err != nil {
		return answer{}, last, err
	}
	key := pollerKey{committed: committedOnly(want.topic)}
	if key.node, err = now.leader(want.place); err != nil {
		return answer{}, last, err
	}
	t.mu.Lock()
	p := t.pollers[key]
	if p == nil {
		p = &poller{pollerKey: key, t: t}
		t.pollers[key] = p
	}
	t.mu.Unlock()
	d := p.add(last, want)
	select {
	case a := <-d.answer:
		return a, d, a.err
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	d.listed = false
	select {
	case a := <-d.answer:
		a.body.Return()
	default:
	}
	return answer{}, nil, ctx.Err()
}

// add takes what a reader wants into the next request. If its last demand is still listed, and the
// same, it notes that the reader waits again.
func (p *poller) add(last *demand, want demand) *demand {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last != nil && last.p == p && last.listed {
		if last.next == want.next && last.most == want.most && last.wait == want.wait {
			last.asked = true
			return last
		}
		last.listed = false
	}
	d := &want
	d.p, d.answer, d.listed, d.asked, d.until = p, make(chan answer, 1), true, true, p.t.tick(time.Now(), d.wait)
	p.waiting = append(p.waiting, d)
	if d.urgent {
		p.serve()
	} else {
		p.later()
	}
	return d
}

// later serves in a moment. The caller holds mu.
func (p *poller) later() {
	if p.soon {
		return
	}
	p.soon = true
	time.AfterFunc(gather, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.soon = false
		p.serve()
	})
}

// serve sends requests for the demands that wait. The caller holds mu.
func (p *poller) serve() {
	for p.asking < fetchSlots {
		batch := p.take()
		if len(batch) == 0 {
			return
		}
		p.asking++
		last := p.asking == fetchSlots
		go p.ask(batch, last)
	}
}

// take takes the demands of one request. The caller holds mu.
func (p *poller) take() (batch []*demand) {
	size := 0
	in := make(map[place]bool)
	p.waiting = slices.DeleteFunc(p.waiting, func(d *demand) bool {
		if !d.listed {
			return true
		}
		if in[d.place] || len(batch) > 0 && size+d.most > fetchBytes {
			return false // it waits for another request
		}
		in[d.place] = true
		size += d.most
		batch = append(batch, d)
		return true
	})
	return batch
}

// ask sends one request and answers the demands in it. Those that have no messages yet wait
// for the next request.
func (p *poller) ask(batch []*demand, last bool) {
	got, whole, err := p.exchange(p.t.ctx, batch, last)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking--
	now := time.Now()
	var first, rest []*demand
	moved := err != nil
	for i, d := range batch {
		f, known := got[d.place]
		a := answer{fetched: f, err: err}
		if err == nil && !known {
			a.err = fmt.Errorf("bus: topic %s partition %d: %w", d.topic, d.partition, errNotAnswered)
		}
		failed, full := a.err != nil || f.code != 0, len(f.records) > 0
		behind := f.end(d.topic) > d.next
		over := !now.Before(d.until.Add(-early))
		switch {
		case !d.listed:
			continue
		case !failed && !full && !behind && !over:
			rest = append(rest, d)
			continue
		case !d.asked: // it asks again
			d.listed = false
			continue
		case !failed && !full && behind && i > 0: // perhaps there was no room for it
			first, moved = append(first, d), true
			continue
		case full && !failed:
			a.body, moved = whole, true
			whole.users.Add(1)
		}
		d.answer <- a
		if d.asked = false; failed || full || behind || d.wait < 2*busyWait {
			d.listed = false
			continue
		}
		d.until = p.t.tick(now, d.wait)
		rest = append(rest, d)
	}
	whole.Return()
	p.waiting = slices.Concat(first, rest, p.waiting)
	if moved || p.asking == 0 {
		p.serve()
	} else if len(p.waiting) > 0 {
		p.later()
	}
}

// exchange sends one request. The body has one user, the caller.
func (p *poller) exchange(ctx context.Context, batch []*demand, last bool) (map[place]fetched, *Loan, error) {
	wait := busyWait
	if !last {
		wait = time.Hour
	}
	// PartitionMaxBytes bounds the answer, not MaxBytes: where MaxBytes ends an answer, the
	// embedded broker does not say which transactions were aborted.
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MinBytes, req.MaxBytes, req.SessionEpoch = -1, 1, math.MaxInt32, -1
	if p.committed {
		req.IsolationLevel = int8(kafka.ReadCommitted)
	}
	for _, d := range batch {
		wait = min(wait, time.Until(d.until))
		i := slices.IndexFunc(req.Topics, func(t kmsg.FetchRequestTopic) bool { return t.Topic == d.topic })
		if i < 0 {
			i, req.Topics = len(req.Topics), append(req.Topics, kmsg.FetchRequestTopic{Topic: d.topic})
		}
		part := kmsg.NewFetchRequestTopicPartition()
		part.Partition, part.FetchOffset, part.PartitionMaxBytes = int32(d.partition), d.next, int32(d.most)
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, part)
	}
	req.MaxWaitMillis = int32(max(wait+time.Millisecond-1, time.Millisecond).Milliseconds())
	res, err := p.t.toNode(ctx, p.node, &rawRequest{req, p.t.cfg.ClientID})
	if err != nil {
		return nil, nil, err
	}
	whole := res.(*rawResponse).body
	got, err := parseFetch(res.(*rawResponse).GetVersion(), whole.bytes)
	return got, whole, err
}

// tick returns when an answer without messages is due for a reader that waits that long: at
// the same time for all that wait as long.
func (t *transport) tick(now time.Time, wait time.Duration) time.Time {
	if wait < 2*busyWait {
		return now.Add(wait)
	}
	at := now.Sub(t.born) + wait/8 // not in a moment
	return t.born.Add((at/wait + 1) * wait)
}

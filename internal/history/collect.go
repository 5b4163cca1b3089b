package history

import (
	"bufio"
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/score"
)

// summaryReply is what a Collector saw of one epoch of one machine.
type summaryReply struct {
	Results    uint64                   // windows with a result
	Repeats    uint64                   // messages that came again under the same id
	Duplicated uint64                   // windows with two different results
	Verdicts   map[event.Verdict]uint64 // results by verdict
	Late       uint64
	Alerts     uint64 // alarms raised
	Unreadable uint64 // messages under the machine's key that are not a result or an alert, which any program may have sent; they are skipped
}

// Collector reads a group's results and alerts of one epoch of one machine, and drops
// repeats by id, as every reader must.
type Collector struct {
	group, machine, epoch string
	from                  uint64
	seed                  maphash.Seed

	mu      sync.Mutex
	sum     summaryReply
	seen    map[uint64]seenResult // by seq
	alerts  map[string]bool
	changed chan struct{} // closed and replaced after each new result or alert
	out     *bufio.Writer
	truth   map[uint64]int
}

// seenResult is what a Collector remembers of a result.
type seenResult struct {
	sum     uint64 // of its bytes, to notice a different one
	verdict event.Verdict
}

// NewCollector returns a Collector of the windows from a seq on, which writes
// every result as one line of JSON to out, if that is not nil.
func NewCollector(group, machine, epoch string, from uint64, out io.Writer) *Collector {
	c := &Collector{
		group: group, machine: machine, epoch: epoch, from: from, seed: maphash.MakeSeed(), seen: make(map[uint64]seenResult), alerts: make(map[string]bool),
		changed: make(chan struct{}), truth: make(map[uint64]int),
	}
	c.sum.Verdicts = make(map[event.Verdict]uint64)
	if out != nil {
		c.out = bufio.NewWriter(out)
	}
	return c
}

// Truth sets the true class of a window, 0 for healthy and 1 for faulty, for the scores. It may be called before
// or after the window's result is read.
func (c *Collector) Truth(seq uint64, class int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.truth[seq] = class
}

// Run reads both topics from their start and follows them until ctx ends; then
// it returns nil.
func (c *Collector) Run(ctx context.Context, cfg bus.Config) error {
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, 2)
	go func() { errs <- bus.ReadTopic(both, cfg, bus.TopicResults, bus.FirstOffset, true, c.result) }()
	go func() { errs <- bus.ReadTopic(both, cfg, bus.TopicAlerts, bus.FirstOffset, true, c.alert) }()
	err := <-errs
	cancel()
	_ = <-errs // the other one ended with its context
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// CatchUp counts every alert that is on the topic now. It gives up with an error after
// the given patience.
func (c *Collector) CatchUp(ctx context.Context, cfg bus.Config, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := bus.ReadTopic(ctx, cfg, bus.TopicAlerts, bus.FirstOffset, false, c.alert); err != nil {
		return fmt.Errorf("history: alerts: %w", err)
	}
	return nil
}

func (c *Collector) result(m bus.Message) error {
	if m.Key != c.machine {
		return nil
	}
	r, ours, err := Event[event.Result](&m, c.group)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.sum.Unreadable++
		return nil
	}
	if r.Epoch != c.epoch || !ours || r.Seq < c.from {
		return nil
	}
	sum := maphash.Bytes(c.seed, m.Value)
	if before, repeated := c.seen[r.Seq]; repeated {
		c.sum.Repeats++
		if before.sum != sum {
			c.sum.Duplicated++
		}
		return nil
	}
	c.seen[r.Seq] = seenResult{sum, r.Verdict}
	c.sum.Results++
	c.sum.Verdicts[r.Verdict]++
	if r.Late {
		c.sum.Late++
	}
	if c.out != nil {
		if _, err := c.out.Write(append(m.Value[:len(m.Value):len(m.Value)], '\n')); err != nil {
			return fmt.Errorf("history: results: %w", err)
		}
	}
	c.wake()
	return nil
}

func (c *Collector) alert(m bus.Message) error {
	if m.Key != c.machine || string(m.Header("ce_type")) != event.AlertType {
		return nil
	}
	a, ours, err := Event[event.Alert](&m, c.group)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.sum.Unreadable++
		return nil
	}
	if ours && a.Epoch == c.epoch && a.Seq >= c.from && !c.alerts[a.ID] {
		c.alerts[a.ID] = true
		if a.State == event.Raised {
			c.sum.Alerts++
		}
		c.wake()
	}
	return nil
}

func (c *Collector) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Wait returns when that many windows have results, when no result has come for the
// given patience, or when ctx ends.
func (c *Collector) Wait(ctx context.Context, windows uint64, patience time.Duration) {
	for {
		c.mu.Lock()
		done, changed := c.sum.Results >= windows, c.changed
		c.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-time.After(patience):
			return
		case <-ctx.Done():
			return
		}
	}
}

// summaryReply returns the counts so far.
func (c *Collector) Summary() summaryReply {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sum
	s.Verdicts = maps.Clone(c.sum.Verdicts)
	return s
}

// Scores compare the windows judged healthy or faulty with the truth. They are nil if no window's true class is known.
type Scores struct {
	Confusion *confusion    `json:"confusion,omitempty"`
	GMean     *score.Figure `json:"gmean,omitempty"`
}

// confusion counts the windows judged healthy or faulty whose truth is known,
// with faulty as the positive class.
type confusion struct {
	TP int `json:"tp"`
	FN int `json:"fn"`
	FP int `json:"fp"`
	TN int `json:"tn"`
}

// Scores returns the scores so far.
func (c *Collector) Scores() (s Scores) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, classes := score.NewConfusion(2), map[event.Verdict]int{event.Healthy: 0, event.Faulty: 1}
	for seq, r := range c.seen {
		truth, known := c.truth[seq]
		if class, decided := classes[r.verdict]; known && decided {
			m.Add(truth, class)
		}
	}
	if m.Rows() > 0 {
		gmean := m.Summary().GMean
		s = Scores{&confusion{TP: m[1][1], FN: m[1][0], FP: m[0][1], TN: m[0][0]}, &gmean}
	}
	return s
}

// Flush writes what is buffered to the results file.
func (c *Collector) Flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out == nil {
		return nil
	}
	if err := c.out.Flush(); err != nil {
		return fmt.Errorf("history: results: %w", err)
	}
	return nil
}

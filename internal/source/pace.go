package source

import (
	"context"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

// Clock is the time that passes. The zero value of a field means the system's; a
// simulation brings its own.
type Clock struct {
	Now   func() time.Time
	After func(time.Duration) <-chan time.Time // as [time.After]
}

// SystemClock is the system's.
var SystemClock = Clock{}.WithDefaults()

// WithDefaults returns c with the system's clock for what it leaves out.
func (c Clock) WithDefaults() Clock {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.After == nil {
		c.After = time.After
	}
	return c
}

// Wait returns after d, or when ctx ends, with its error.
func (c Clock) Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-c.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// paced holds blocks back until their samples would have been taken.
type paced struct {
	src     Source
	speed   float64
	clock   Clock
	known   func() bool
	started time.Time     // when the first block was delivered
	passed  time.Duration // sensor time delivered since, in the highest rate
}

// mostLag is how far behind the clock the first sample of a source may be that runs by it.
// Recordings are further back.
const mostLag = 10 * time.Second

// Pace returns a source that delivers the blocks of src as a live sensor
// would, speed times as fast. A speed of 0 returns src itself: as fast as it
// can be read. Time is counted in samples, so pauses in a recording take none.
//
// Known, if not nil, reports whether what comes next was delivered by an earlier run. Such
// blocks take no time, and the clock starts after them.
func Pace(src Source, speed float64, clock Clock, known func() bool) Source {
	if speed == 0 {
		return src
	}
	if known == nil {
		known = func() bool { return false }
	}
	return &paced{src: src, speed: speed, clock: clock.WithDefaults(), known: known}
}

func (p *paced) Layout() *signal.Layout { return p.src.Layout() }

// Next returns the next block of the source once its last sample is due.
func (p *paced) Next(ctx context.Context) (*Block, error) {
	b, err := p.src.Next(ctx)
	if err != nil || p.started.IsZero() && p.known() {
		return b, err
	}
	if p.started.IsZero() {
		p.started = p.clock.Now()
		// A source whose sensor time is the clock's has been running since its first
		// sample: what a slow start has cost is caught up, and not kept as a lag.
		if lag := p.started.Sub(b.Time); p.speed == 1 && lag > 0 && lag < mostLag {
			p.started = b.Time
		}
	}
	if b.Group == 0 {
		taken := float64(b.Len()) / p.Layout().Groups()[0].Rate
		p.passed += time.Duration(taken / p.speed * float64(time.Second))
		if err := p.clock.Wait(ctx, p.started.Add(p.passed).Sub(p.clock.Now())); err != nil {
			return nil, err
		}
	}
	return b, nil
}

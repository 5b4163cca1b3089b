package source

import (
	"context"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

// paced holds blocks back until their samples would have been taken.
type paced struct {
	src     Source
	speed   float64
	started time.Time     // by the wall clock, when the first block was delivered
	passed  time.Duration // sensor time delivered since, in the highest rate
}

// Pace returns a source that delivers the blocks of src as a live sensor
// would, speed times as fast. A speed of 0 returns src itself: as fast as it
// can be read. Time is counted in samples, so pauses in a recording take none.
func Pace(src Source, speed float64) Source {
	if speed == 0 {
		return src
	}
	return &paced{src: src, speed: speed}
}

func (p *paced) Layout() *signal.Layout { return p.src.Layout() }

// Next returns the next block of the source once its last sample is due.
func (p *paced) Next(ctx context.Context) (*Block, error) {
	b, err := p.src.Next(ctx)
	if err != nil {
		return nil, err
	}
	if p.started.IsZero() {
		p.started = time.Now()
	}
	if b.Group == 0 {
		taken := float64(b.Len()) / p.Layout().Groups()[0].Rate
		p.passed += time.Duration(taken / p.speed * float64(time.Second))
		select {
		case <-time.After(time.Until(p.started.Add(p.passed))):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return b, nil
}

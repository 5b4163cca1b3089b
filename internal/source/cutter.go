package source

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// Cut is what a Cutter finds next: either a window with what is known of the
// tool, or a gap.
type Cut struct {
	Window *window.Window // quality is assessed; epoch and seq are not set
	Gap    *window.Gap
	Truth  Truth // at the last sample of the window
}

// Cutter cuts the blocks of a source into windows. Gateway and trainer both
// use it, so that what is trained is what is served.
type Cutter struct {
	src    Source
	slicer *window.Slicer
	truths []truthSpan // of blocks that windows are still cut from
	ended  bool

	mu    sync.Mutex
	tally window.Tally
}

// truthSpan is the truth of consecutive samples of the highest rate.
type truthSpan struct {
	session, first, end int64
	truth               []Truth // one per sample, or one for all
}

// NewCutter returns a Cutter of what src delivers. It reports a spec that does
// not fit the layout of src.
func NewCutter(src Source, spec window.Spec) (*Cutter, error) {
	s, err := window.NewSlicer(src.Layout(), spec)
	if err != nil {
		return nil, err
	}
	return &Cutter{src: src, slicer: s}, nil
}

// Next returns the next window or gap, in order, or io.EOF after the last, or
// the error of the source. A window is valid until the next call.
func (c *Cutter) Next(ctx context.Context) (Cut, error) {
	for {
		ev, ok := c.slicer.Next()
		c.mu.Lock()
		c.tally = c.slicer.Tally()
		c.mu.Unlock()
		if ok {
			if ev.Gap != nil {
				return Cut{Gap: ev.Gap, Truth: NoTruth}, nil
			}
			ev.Window.Assess(c.src.Layout())
			return Cut{Window: ev.Window, Truth: c.truth(ev.Window)}, nil
		}
		if c.ended {
			return Cut{}, io.EOF
		}
		b, err := c.src.Next(ctx)
		if errors.Is(err, io.EOF) {
			c.ended = true
			c.slicer.Flush()
			continue
		}
		if err != nil {
			return Cut{}, err
		}
		if b.Group == 0 && len(b.Truth) > 0 {
			c.truths = append(c.truths, truthSpan{
				session: b.Session, first: b.First, end: b.First + int64(b.Len()),
				truth: append([]Truth(nil), b.Truth...), // the block is the source's
			})
		}
		c.slicer.Push(&b.Block)
	}
}

// Tally returns what became of the samples of the source. It is safe for concurrent use.
func (c *Cutter) Tally() window.Tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tally
}

// truth returns what is known at the last sample of w, and forgets what lies
// before w.
func (c *Cutter) truth(w *window.Window) Truth {
	rate := c.src.Layout().Groups()[0].Rate
	last := w.First + int64(math.Round(rate*w.Length.Seconds())) - 1
	i := slices.IndexFunc(c.truths, func(s truthSpan) bool { return s.session == w.Session && s.end > w.First })
	if i < 0 {
		return NoTruth
	}
	c.truths = c.truths[i:]
	for _, s := range c.truths {
		if s.session == w.Session && s.first <= last && last < s.end {
			if len(s.truth) == 1 {
				return s.truth[0]
			}
			return s.truth[last-s.first]
		}
	}
	return NoTruth
}

// Layout returns the layout of the source.
func (c *Cutter) Layout() *signal.Layout { return c.src.Layout() }

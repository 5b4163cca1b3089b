package window

import (
	"math"
	"slices"

	"github.com/flank-tcm/flank/pkg/signal"
)

// Tally counts what became of the samples that a Slicer was given, of all channels together.
type Tally struct {
	Pushed   uint64 // the sum of the others
	Windowed uint64 // are in a window
	Repeated uint64 // came before
	Late     uint64 // came when what lies behind them was cut already
	Gaps     uint64 // are in no window because others are missing or silent
	Tails    uint64 // were left when their session ended
	Open     uint64 // wait for more samples
}

// Tally returns the counts since the Slicer was made. Blocks of a session that waits for the end of the one
// before are not in them.
func (s *Slicer) Tally() Tally {
	t := s.tally
	t.Open = t.Pushed - t.Windowed - t.Repeated - t.Late - t.Gaps - t.Tails
	return t
}

// Add returns the counts of two Slicers together.
func (t Tally) Add(u Tally) Tally {
	return Tally{
		t.Pushed + u.Pushed, t.Windowed + u.Windowed, t.Repeated + u.Repeated, t.Late + u.Late, t.Gaps + u.Gaps, t.Tails + u.Tails, t.Open + u.Open,
	}
}

// ledger is what became of the samples of one rate in a session.
type ledger struct {
	came    signal.Spans
	decided int64 // counter before which it is known what became of samples
}

// maxSpans is how many spans are remembered of what was decided, to tell repeats from what is late.
const maxSpans = 256

// book counts the samples of b that came before or come too late, and notes the others.
func (s *Slicer) book(b *signal.Block) {
	st := &s.streams[b.Group]
	l := &st.ledger
	first, end := b.First, b.First+int64(b.Len())
	fresh := first // counter from which on samples are new and in order
	if n := len(l.came); n > 0 {
		fresh = min(max(first, l.came[n-1].End), end)
	}
	again := l.came.Known(first, fresh)
	late := fresh - first - again + max(0, min(end, l.decided)-fresh)
	s.tally.Pushed += uint64((end - first) * st.width)
	s.tally.Repeated += uint64(again * st.width)
	s.tally.Late += uint64(late * st.width)
	if n := len(l.came); n > 0 && l.came[n-1].End == fresh {
		l.came[n-1].End = end
	} else if fresh < end {
		l.came = append(l.came, signal.Span{First: fresh, End: end})
	}
	if n := len(l.came) - maxSpans; n > 0 && l.came[n-1].End <= l.decided {
		l.came = slices.Delete(l.came, 0, n)
	}
}

// decide counts what is not decided before a tick.
func (s *Slicer) decide(tick int64, into *uint64) {
	for i := range s.streams {
		st := &s.streams[i]
		end := int64(math.MaxInt64)
		if tick < math.MaxInt64/st.perTick {
			end = tick * st.perTick
		}
		if end > st.ledger.decided {
			*into += uint64(st.ledger.came.Known(st.ledger.decided, end) * st.width)
			st.ledger.decided = end
		}
	}
}

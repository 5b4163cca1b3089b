package feed

import (
	"cmp"

	"github.com/flank-tcm/flank/pkg/signal"
)

const (
	// maxWait is how many seconds of samples may come before a frame that waits for
	// the name of its tool goes on without it. maxWaiting and maxValues are how many
	// frames, and values in them, may wait.
	maxWait    = 16
	maxWaiting = maxUnacked / 2

	maxMarks = 256 // contexts of a rate that are remembered
)

// follower gives frames that name no tool what the frames of another rate say at
// the same sample: a machine has one tool, and often only one of its senders knows
// it. A frame waits until the rate that names tools has come as far; no window
// can be cut before. Frames leave in the order they came in.
type follower struct {
	rates  []float64 // of the layout's groups
	latest *session
	queue  []waiting
	values int // in the queue
}

// waiting is a frame in the queue.
type waiting struct {
	arrival
	session *session
}

// session is what the frames of a sender's session say.
type session struct {
	id    int64
	ended bool // frames of another session have come
	rates []rateState
}

// rateState is what the frames of one rate say.
type rateState struct {
	end   float64 // seconds from the start of the session to behind the last sample; 0 before the first frame
	marks []mark  // ascending by from
}

// mark is what holds from a time of the session on, in seconds.
type mark struct {
	from float64
	ctx  signal.Context
}

func newFollower(layout *signal.Layout) follower {
	var w follower
	for _, g := range layout.Groups() {
		w.rates = append(w.rates, g.Rate)
	}
	return w
}

// add takes a frame that has come.
func (w *follower) add(a arrival) {
	if w.latest == nil || w.latest.id != a.block.Session {
		if w.latest != nil {
			w.latest.ended = true
		}
		w.latest = &session{id: a.block.Session, rates: make([]rateState, len(w.rates))}
	}
	w.latest.rates[a.block.Group].note(a.block.Context, w.from(a), w.from(a)+float64(a.block.Len())/w.rates[a.block.Group])
	w.queue = append(w.queue, waiting{a, w.latest})
	w.values += a.values()
}

// values returns how many values the frame of a holds.
func (a arrival) values() int { return a.block.Len() * len(a.block.Samples) }

// from returns the seconds from the start of the session to the first sample of a.
func (w *follower) from(a arrival) float64 { return float64(a.block.First) / w.rates[a.block.Group] }

// note takes what a frame says of the seconds from ... to. One that comes again
// says nothing new.
func (s *rateState) note(ctx signal.Context, from, to float64) {
	if n := len(s.marks); n == 0 || from >= s.end && s.marks[n-1].ctx != ctx {
		s.marks = append(s.marks, mark{from, ctx})
		s.marks = s.marks[max(0, len(s.marks)-maxMarks):]
	}
	s.end = max(s.end, to)
}

// at returns what the rate says at a time.
func (s *rateState) at(time float64) (ctx signal.Context) {
	for _, m := range s.marks {
		if m.from > time {
			break
		}
		ctx = m.ctx
	}
	return ctx
}

// next returns the oldest frame once it is known what it follows, and false while
// it has to wait.
func (w *follower) next() (arrival, bool) {
	if len(w.queue) == 0 {
		return arrival{}, false
	}
	head := w.queue[0]
	if head.block.Tool == "" {
		ctx, known := w.lookUp(head)
		if !known {
			return arrival{}, false
		}
		if ctx.Tool != "" {
			b := head.block
			b.Tool, b.Hole, b.SpindleSpeed = ctx.Tool, cmp.Or(b.Hole, ctx.Hole), cmp.Or(b.SpindleSpeed, ctx.SpindleSpeed)
		}
	}
	w.queue = append(w.queue[:0], w.queue[1:]...)
	w.values -= head.values()
	return head.arrival, true
}

// lookUp returns what a rate that names its tool says at the first sample of a
// frame that does not; its tool is empty if no rate does. known is false while
// that may still come.
func (w *follower) lookUp(a waiting) (ctx signal.Context, known bool) {
	from, newest := w.from(a.arrival), 0.0
	known = true
	for g := range a.session.rates {
		s := &a.session.rates[g]
		newest = max(newest, s.end)
		if g == a.block.Group {
			continue
		}
		if is := s.at(from); ctx.Tool == "" && is.Tool != "" {
			ctx = is
		}
		if s.end == 0 || s.end <= from && s.marks[len(s.marks)-1].ctx.Tool != "" {
			known = false
		}
	}
	return ctx, known || a.session.ended || newest-from > maxWait || len(w.queue) > maxWaiting || w.values > maxValues
}

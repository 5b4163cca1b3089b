package feed

import (
	"cmp"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
)

const (
	// maxWait is how many seconds of samples may come before a frame that waits for
	// the name of its tool goes on without it. maxWaiting and maxValues are how many
	// frames, and values in them, may wait.
	maxWait    = 16
	maxWaiting = maxUnacked / 2

	maxMarks = 256 // contexts of a rate that are remembered

	// maxApart is for how many seconds of samples two rates may name different tools unheard: when a tool is changed, their
	// senders do not hear of it at once.
	maxApart = 10
)

// follower gives frames that name no tool what the frames of another rate say at
// the same sample: a machine has one tool, and often only one of its senders knows
// it. Where two rates name different ones, the higher rate is right: windows of two
// tools have no samples in common. A frame waits until the rate that names tools has come as far; no window
// can be cut before. Frames leave in the order they came in.
type follower struct {
	rates  []float64 // of the layout's groups
	noTool func(name string) bool
	latest *session
	queue  []waiting
	values int       // in the queue
	apart  []float64 // of each rate: seconds in a row of samples that were given another tool than they named

	// disagree, if not nil, hears of samples that named another tool than samples of a higher rate, once that has lasted.
	disagree func(b *source.Block, named string)
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
	w := follower{noTool: func(name string) bool { return name == "" }}
	for _, g := range layout.Groups() {
		w.rates = append(w.rates, g.Rate)
	}
	w.apart = make([]float64, len(w.rates))
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
	ctx, known := w.lookUp(head)
	if !known {
		return arrival{}, false
	}
	w.follow(head.block, ctx)
	w.queue = append(w.queue[:0], w.queue[1:]...)
	w.values -= head.values()
	return head.arrival, true
}

// follow gives a block the tool of ctx.
func (w *follower) follow(b *source.Block, ctx signal.Context) {
	named := b.Tool
	if ctx.Tool == named {
		if w.rank(named) == real {
			w.apart[b.Group] = 0
		}
		return
	}
	if w.rank(named) == real {
		b.Hole = ""
		if w.apart[b.Group] += float64(b.Len()) / w.rates[b.Group]; w.apart[b.Group] >= maxApart && w.disagree != nil {
			w.disagree(b, named)
		}
	}
	b.Tool, b.Hole, b.SpindleSpeed = ctx.Tool, cmp.Or(b.Hole, ctx.Hole), cmp.Or(b.SpindleSpeed, ctx.SpindleSpeed)
}

// What the name of a tool says, in the order in which one counts more than another.
const (
	unsaid = iota // nothing
	none          // that no tool is in
	real
)

func (w *follower) rank(tool string) int {
	switch {
	case tool == "":
		return unsaid
	case w.noTool(tool):
		return none
	}
	return real
}

// lookUp returns what holds at the first sample of a frame: what the frame says, or another rate that says more. Of
// rates that say as much, the highest is right. known is false while one that counts more may still come.
func (w *follower) lookUp(a waiting) (ctx signal.Context, known bool) {
	from, newest := w.from(a.arrival), 0.0
	ctx, known = a.block.Context, true
	by, says := a.block.Group, w.rank(ctx.Tool)
	for g := range a.session.rates {
		s := &a.session.rates[g]
		newest = max(newest, s.end)
		if g == a.block.Group || g > a.block.Group && w.rank(a.block.Tool) == real {
			continue
		}
		is := s.at(from)
		if r := w.rank(is.Tool); r > says || r == says && r != unsaid && g < by {
			ctx, by, says = is, g, r
		}
		if s.end == 0 && w.rank(a.block.Tool) != real || s.end > 0 && s.end <= from && s.marks[len(s.marks)-1].ctx.Tool != "" {
			known = false
		}
	}
	return ctx, known || a.session.ended || newest-from > maxWait || len(w.queue) > maxWaiting || w.values > maxValues
}

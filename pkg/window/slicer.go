package window

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

// Gap reasons.
const (
	missing = "missing samples" // the source counted samples that never came
	silent  = "silent channels" // the channels of one rate stopped while others went on
	Tail    = "end of session"  // fewer samples than a window were left when the session ended
)

// Gap is a span of time that no window covers.
type Gap struct {
	signal.Context
	Session  int64
	Reason   string        // Missing, Silent or Tail
	Start    time.Time     // sensor time at which the uncovered span begins
	Duration time.Duration // of the span
	Rate     float64       // rate in Hz of the channels that caused it
}

// Event is what a Slicer finds next: either a window or a gap.
type Event struct {
	Window *Window
	Gap    *Gap
}

// maxLead is how many windows the channels of one rate may run ahead of
// another before the others count as silent. It bounds the Slicer's memory.
const maxLead = 64

// clocksApart is by how much the clock of a rate may be off the one of the highest rate: from there on it has the flag ClockOff.
// Clocks that a network sets differ by milliseconds. A rate that is wrong by a few parts in a hundred has its own flag before it adds up to so much.
const clocksApart = 10 * time.Second

// Slicer cuts windows from the blocks of one machine, for any rates and
// however the stream is chopped into blocks.
//
// Time is counted in ticks from the start of the session. A tick is the
// shortest span after which every rate has taken a whole number of samples, so
// that window starts at a tick are aligned at every rate.
//
// The zero value is not ready; use NewSlicer. A Slicer is not safe for
// concurrent use.
type Slicer struct {
	layout  *signal.Layout
	spec    Spec
	step    int64    // hop in ticks
	length  int64    // window length in ticks
	streams []stream // one per group of the layout
	session int64
	open    bool  // a session has begun
	next    int64 // tick at which the next window starts
	covered int64 // tick at which the last window ended
	gap     Gap   // collected since the last window
	gapFrom int64 // tick at which gap begins
	inGap   bool
	flush   bool           // the session is over: what is left is a tail
	pending []signal.Block // blocks of the next session, waiting for the tail
	window  Window
	tally   Tally
}

// stream holds the samples of one rate that no window has used up.
type stream struct {
	rate    float64
	perTick int64 // samples in a tick
	width   int64 // channels
	length  int64 // samples in a window
	clock   clock
	runs    []run // ascending, with a hole before each but the first
	spare   run   // an empty run whose memory the next one takes
	ledger  ledger
	apart   time.Duration // by how much the clock was ahead of the one of the highest rate when the last window began
}

// run is consecutive samples without a hole.
type run struct {
	first   int64
	samples [][]float32 // one per channel of the group
	marks   []mark      // ascending by first
}

// mark says what was true from a sample on.
type mark struct {
	first   int64
	time    time.Time
	ctx     signal.Context
	quality signal.Quality // ClockStep of the clock at this sample, RateError, and what the source knows, from it on
	rate    float64        // by the clock, with RateError; 0 if it is right or not known
}

func (r *run) end() int64 { return r.first + int64(len(r.samples[0])) }

// NewSlicer returns a Slicer for blocks of the given layout. It reports a spec
// that cannot be used; after that, nothing fails because of the spec.
func NewSlicer(layout *signal.Layout, spec Spec) (*Slicer, error) {
	if err := spec.Check(layout); err != nil {
		return nil, err
	}
	base, err := commonRate(layout)
	if err != nil {
		return nil, err
	}
	s := &Slicer{
		layout: layout,
		spec:   spec,
		step:   int64(math.Round(base * spec.Step().Seconds())),
		length: int64(math.Round(base * spec.Length.Seconds())),
	}
	for _, g := range layout.Groups() {
		s.streams = append(s.streams, stream{
			rate:    g.Rate,
			perTick: int64(math.Round(g.Rate / base)),
			length:  int64(spec.Samples(g.Rate)),
			width:   int64(len(g.Channels)),
			clock:   clock{rate: g.Rate, limits: layout.Limits()},
		})
	}
	s.window.Samples = make([][]float32, len(layout.Channels()))
	s.window.Quality = make([]signal.Quality, len(layout.Channels()))
	return s, nil
}

// commonRate returns the greatest rate of which every rate is a multiple.
// Rates are whole numbers of millihertz, or have whole milliseconds between samples.
func commonRate(layout *signal.Layout) (float64, error) {
	var hertz, per int64 = 0, 1
	for _, g := range layout.Groups() {
		n, d := int64(math.Round(g.Rate*1000)), int64(1000)
		if n == 0 || math.Abs(float64(n)/1000-g.Rate) > 1e-9*g.Rate {
			n, d = 1000, int64(math.Round(1000/g.Rate))
		}
		if d == 0 || math.Abs(float64(n)/float64(d)-g.Rate) > 1e-9*g.Rate {
			return 0, fmt.Errorf("window: rate %v Hz (channel %s) is not a whole number of millihertz, and not one of milliseconds between samples: round it",
				g.Rate, layout.Channels()[g.Channels[0]].Name)
		}
		if hertz == 0 {
			hertz, per = n, d
			continue
		}
		hertz, per = divisor(hertz*d, n*per), per*d // of fractions with one denominator
		part := divisor(hertz, per)
		hertz, per = hertz/part, per/part
	}
	return float64(hertz) / float64(per), nil
}

// divisor returns the greatest common divisor.
func divisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Push hands b to the slicer, which copies the samples. A block of another
// session ends the current one. Samples that came before are ignored. Push
// panics if b does not have the channels of its group.
//
// Call Next until it reports false before the next Push: windows are found by
// Next, so that the caller decides when to take them.
func (s *Slicer) Push(b *signal.Block) {
	groups := s.layout.Groups()
	if b.Group < 0 || b.Group >= len(groups) || len(b.Samples) != len(groups[b.Group].Channels) {
		panic(fmt.Sprintf("window: Push: block of group %d with %d channels does not fit the layout", b.Group, len(b.Samples)))
	}
	for _, x := range b.Samples {
		if len(x) != b.Len() {
			panic("window: Push: channels of a block differ in length")
		}
	}
	if b.Len() == 0 {
		return
	}
	if s.open && b.Session != s.session {
		s.flush = true
		s.pending = append(s.pending, cloneBlock(b))
		return
	}
	if !s.open {
		s.begin(b)
	}
	s.book(b)
	s.streams[b.Group].add(b)
}

func cloneBlock(b *signal.Block) signal.Block {
	c := *b
	c.Samples = make([][]float32, len(b.Samples))
	for i, x := range b.Samples {
		c.Samples[i] = slices.Clone(x)
	}
	return c
}

// begin starts a session. Its first window starts at the first tick at which b
// has a sample: a source that was joined late does not begin with a gap.
func (s *Slicer) begin(b *signal.Block) {
	s.open, s.flush, s.inGap = true, false, false
	s.session = b.Session
	s.next = ceilDiv(b.First, s.streams[b.Group].perTick)
	s.covered = s.next
	for i := range s.streams {
		s.streams[i].clock.restart()
		s.streams[i].ledger = ledger{decided: s.next * s.streams[i].perTick}
	}
}

func (st *stream) add(b *signal.Block) {
	m := mark{first: b.First, time: b.Time, ctx: b.Context, quality: b.Quality}
	first, skip := b.First, int64(0)
	if n := len(st.runs); n > 0 {
		last := &st.runs[n-1]
		if skip = max(0, last.end()-first); skip >= int64(b.Len()) {
			return // seen before
		}
		if skip > 0 { // a block that came again says nothing of another time
			before := last.marks[len(last.marks)-1]
			m.quality, m.rate = before.quality&^signal.ClockStep, before.rate
		} else {
			st.clock.mark(&m)
		}
		if first += skip; first == last.end() {
			last.extend(b, skip, m)
			return
		}
	} else {
		st.clock.mark(&m)
	}
	r := st.spare
	st.spare = run{}
	if r.samples == nil {
		r.samples = make([][]float32, len(b.Samples))
	}
	r.first = first
	r.extend(b, skip, m)
	st.runs = append(st.runs, r)
}

func (r *run) extend(b *signal.Block, skip int64, m mark) {
	for i, x := range b.Samples {
		r.samples[i] = append(r.samples[i], x[skip:]...)
	}
	r.marks = append(r.marks, m)
}

// Flush ends the session: Next returns the samples that are left as a gap. Call it after
// Next has returned false.
func (s *Slicer) Flush() { s.flush = s.open }

// Next returns the next window or gap, or false if more samples are needed.
// The window belongs to the slicer and is valid until the next call of Next or
// Push; its samples too. Epoch and Seq are for the caller to set; Quality has
// what the sensor clocks say, and Window.Assess adds what the samples do.
func (s *Slicer) Next() (Event, bool) {
	for {
		ev, ok := s.find()
		if ok || !s.flush {
			return ev, ok
		}
		ev, ok = s.tail()
		s.decide(math.MaxInt64, &s.tally.Tails)
		s.open, s.flush, s.inGap = false, false, false
		for i := range s.streams {
			s.streams[i].drop(math.MaxInt64)
		}
		waiting := s.pending
		s.pending = nil
		for i := range waiting {
			s.Push(&waiting[i])
		}
		if ok {
			return ev, true
		}
		if len(waiting) == 0 {
			return Event{}, false
		}
	}
}

// find moves s.next past what is missing until every stream covers a
// window there. What it decides depends on the samples alone and not on the
// order in which the streams were pushed.
func (s *Slicer) find() (Event, bool) {
	if !s.open {
		return Event{}, false
	}
search:
	for {
		for i := range s.streams {
			st := &s.streams[i]
			from := s.next * st.perTick
			st.drop(from)
			switch r := st.runs; {
			case len(r) > 0 && r[0].first > from: // begins late
				s.skip(ceilDiv(r[0].first, st.perTick), missing, st)
			case len(r) > 0 && r[0].end() >= from+st.length:
				continue // covered
			case len(r) > 1: // ends early
				s.skip(ceilDiv(r[1].first, st.perTick), missing, st)
			case s.lead() <= maxLead:
				return Event{}, false // not there yet
			default:
				s.skip(s.next+s.step, silent, st)
				if s.next-s.gapFrom >= maxLead*s.step {
					return s.endGap(), true
				}
			}
			continue search
		}
		if s.inGap {
			return s.endGap(), true
		}
		s.cut()
		return Event{Window: &s.window}, true
	}
}

// lead returns by how many windows the stream that is furthest ahead has
// passed s.next.
func (s *Slicer) lead() int64 {
	var lead int64
	for i := range s.streams {
		st := &s.streams[i]
		if n := len(st.runs); n > 0 {
			lead = max(lead, (st.runs[n-1].end()-s.next*st.perTick)/st.length)
		}
	}
	return lead
}

func (s *Slicer) skip(to int64, reason string, st *stream) {
	if !s.inGap {
		s.inGap, s.gapFrom = true, max(s.next, s.covered)
		m := s.markAt(s.gapFrom)
		s.gap = Gap{Context: m.ctx, Session: s.session, Reason: reason, Start: m.time, Rate: st.rate}
	}
	s.next = max(to, s.next)
	s.decide(s.next, &s.tally.Gaps)
}

func (s *Slicer) endGap() Event {
	s.inGap = false
	g := s.gap
	g.Duration = s.since(s.gapFrom)
	return Event{Gap: &g}
}

// since returns the time from a tick to s.next.
func (s *Slicer) since(tick int64) time.Duration {
	st := &s.streams[0]
	return time.Duration(math.Round(float64((s.next-tick)*st.perTick) / st.rate * float64(time.Second)))
}

// tail reports the samples that were left when the session ended.
func (s *Slicer) tail() (Event, bool) {
	if !s.open {
		return Event{}, false
	}
	from := max(s.next, s.covered)
	if s.inGap {
		from = s.gapFrom
	}
	end := max(from, s.next)
	rate := s.streams[0].rate
	for i := range s.streams {
		st := &s.streams[i]
		if n := len(st.runs); n > 0 {
			if e := ceilDiv(st.runs[n-1].end(), st.perTick); e > end {
				end, rate = e, st.rate
			}
		}
	}
	if end == from {
		return Event{}, false
	}
	if !s.inGap {
		m := s.markAt(from)
		s.gap = Gap{Context: m.ctx, Session: s.session, Reason: Tail, Start: m.time, Rate: rate}
	}
	s.next = end
	g := s.gap
	g.Duration = s.since(from)
	return Event{Gap: &g}, true
}

// markAt returns what was true at a tick, from the highest rate that knows.
func (s *Slicer) markAt(tick int64) mark {
	for i := range s.streams {
		st := &s.streams[i]
		at := tick * st.perTick
		for r := range st.runs {
			run := &st.runs[r]
			m := run.marks[0]
			for _, later := range run.marks[1:] {
				if later.first > at {
					break
				}
				m = later
			}
			if r+1 < len(st.runs) && st.runs[r+1].first <= at {
				continue
			}
			m.time = m.at(at, st.rate)
			return m
		}
	}
	return mark{}
}

// cut fills s.window from s.next on and moves on by a hop.
func (s *Slicer) cut() {
	m := s.markAt(s.next)
	w := &s.window
	w.Context, w.Start, w.Length = m.ctx, m.time, s.spec.Length
	w.Session, w.First = s.session, s.next*s.streams[0].perTick
	w.Drift, w.Rates = 0, nil
	for g, group := range s.layout.Groups() {
		st := &s.streams[g]
		r := &st.runs[0]
		from := s.next * st.perTick
		at := from - r.first
		start, quality, rate := r.clockAt(from, from+st.length, st.rate)
		if rate != 0 {
			if w.Rates == nil {
				w.Rates = make([]float64, len(s.streams))
			}
			w.Rates[g] = rate
		}
		if st.apart = start.Sub(w.Start); start.IsZero() || w.Start.IsZero() {
			st.apart = 0
		}
		if st.apart.Abs() > w.Drift.Abs() {
			w.Drift = st.apart
		}
		for i, c := range group.Channels {
			w.Samples[c] = r.samples[i][at : at+st.length : at+st.length]
			w.Quality[c] = quality
		}
	}
	s.compareClocks()
	s.covered = s.next + s.length
	s.decide(s.covered, &s.tally.Windowed)
	s.next += s.step
}

// compareClocks flags the rates in s.window whose clock is far off the one of the highest rate. Clocks that drift apart
// because a rate is wrong are right.
func (s *Slicer) compareClocks() {
	w := &s.window
	if w.AllQuality()&signal.RateError != 0 || w.Drift.Abs() <= clocksApart {
		return
	}
	for g, group := range s.layout.Groups() {
		if s.streams[g].apart.Abs() > clocksApart {
			for _, c := range group.Channels {
				w.Quality[c] |= signal.ClockOff
			}
		}
	}
}

// clockAt returns the sensor time of sample from, what is wrong with the
// clock of the samples [from, end), and the rate by it if that is wrong.
func (r *run) clockAt(from, end int64, rate float64) (start time.Time, q signal.Quality, measured float64) {
	start = r.marks[0].at(from, rate)
	for _, m := range r.marks {
		if m.first < end {
			measured = m.rate
		}
		switch {
		case m.first >= end:
			return start, q, measured
		case m.first <= from:
			start = m.at(from, rate)
			q = m.quality
			if m.first < from {
				q &^= signal.ClockStep // it was before
			}
		default:
			q |= m.quality
		}
	}
	return start, q, measured
}

// at returns the sensor time of sample n by m.
func (m mark) at(n int64, rate float64) time.Time {
	if m.time.IsZero() {
		return m.time
	}
	return m.time.Add(time.Duration(math.Round(float64(n-m.first) / rate * float64(time.Second))))
}

// drop forgets samples before from.
func (st *stream) drop(from int64) {
	for len(st.runs) > 0 && st.runs[0].end() <= from {
		st.spare = st.runs[0]
		st.spare.marks = st.spare.marks[:0]
		for i := range st.spare.samples {
			st.spare.samples[i] = st.spare.samples[i][:0]
		}
		st.runs = slices.Delete(st.runs, 0, 1)
	}
	if len(st.runs) == 0 {
		return
	}
	r := &st.runs[0]
	// Move the rest to the front only when as much as stays is dropped: each
	// sample is then copied a bounded number of times.
	n := from - r.first
	if n <= 0 || 2*n < int64(len(r.samples[0])) {
		return
	}
	for i, x := range r.samples {
		r.samples[i] = x[:copy(x, x[n:])]
	}
	r.first = from
	keep := 0
	for keep+1 < len(r.marks) && r.marks[keep+1].first <= from {
		keep++
	}
	r.marks = slices.Delete(r.marks, 0, keep)
}

func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}

package feed

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Reason is why a frame is not taken.
type Reason uint8

// The reasons. Taken is none.
const (
	Taken       Reason = iota
	Repeat             // its samples came before: nothing is wrong
	Malformed          // it cannot be read, or does not fit the layout
	Counter            // its counter and its time do not fit the stream
	OtherSender        // another sender has the machine
	Stale              // it is of a session that has ended, or came again while it waited
	Retained           // the MQTT broker had kept it
	Date               // its time cannot be, or is of another unit
	Reasons            // how many there are
)

var reasonNames = [Reasons]string{"", "repeat", "malformed", "counter", "other_sender", "stale", "retained", "date"}

// String returns the reason as metrics and answers to senders have it.
func (r Reason) String() string { return reasonNames[r] }

const (
	// slack is by how much counter and time of a frame may disagree with the frames before: senders
	// that stamp frames by a computer's clock are some milliseconds off, seldom more. To that comes
	// a part of the time that frames were missing, for clocks that run fast or slow.
	slack      = time.Second
	slackOfGap = 0.01

	// few is how many frames in a row that do not fit the stream, but fit each other, are a new one.
	few = 3

	// longGap is after how many seconds without samples a session begins: no gap is longer.
	longGap = 3600
)

// checker decides which frames make the stream of a machine. What senders say of counters, times and
// sessions is compared with what they said before:
//
//   - A frame whose counter and time do not fit waits, and one that is far ahead. The next frame of its
//     rate that fits proves it wrong, and it is refused. A few in a row that fit each other are right:
//     samples were missing, or the sender began again, under the same session or with its clock set
//     back. Then they are taken as a session of their own.
//   - Samples come again if the same frame comes, or one whose time fits the counters that it repeats. Other values under the
//     same counters are another sender's, or of one that counts wrong.
//   - A frame of another session begins that session. If one before goes on, there are several
//     senders: the first keeps the machine, and the others are refused until the first is silent.
//
// It is used by one goroutine.
type checker struct {
	rates   []float64 // of the layout's groups
	silence time.Duration
	now     func() time.Time

	current   *stream   // whose frames are taken; nil before the first frame
	others    []*stream // sessions before, or what other senders send, the newest last
	contested time.Time
	runs      map[int64]int64 // newest run of each session
	streams   int             // that were begun

	candidate *stream // of the frames that wait
	waiting   []arrival
}

// stream is what a sender has said in a session.
type stream struct {
	session int64 // as the sender says
	run     int64 // how often the sender began again under it
	peer    string
	begun   int        // a number that counts streams
	at      []position // of each rate
	newest  time.Time  // behind the newest sample, by the sender's clock
	heard   time.Time  // when a frame with new samples came
}

// position is where the frames of one rate have come to.
type position struct {
	seen    bool
	resumed bool    // no new sample has come since the program was started
	end     int64   // counter behind the last sample
	fixed   reading // what times are compared with
	last    reading // of the newest frame
	came    signal.Spans
	frames  []print // of the newest frames
}

// print tells a frame from another one under the same counters.
type print struct {
	first int64
	sum   uint64
}

const (
	maxSpans  = 256
	maxPrints = 2 * maxUnacked // a sender sends no more again
	maxOthers = 16
)

// printOf returns the print of a block.
func printOf(b *source.Block) print {
	h := fnv.New64a()
	h.Write([]byte(b.Tool))
	sum := h.Sum64()
	for _, x := range b.Samples {
		for _, v := range x[:min(len(x), 4)] {
			sum = (sum ^ uint64(math.Float32bits(v))) * 0x100000001b3 // of FNV, four bytes at a time
		}
	}
	return print{b.First, sum}
}

// book notes that the samples of a block came.
func (p *position) book(b *source.Block) {
	s := signal.Span{First: b.First, End: b.First + int64(b.Len())}
	i := 0
	for i < len(p.came) && p.came[i].End < s.First {
		i++
	}
	j := i
	for j < len(p.came) && p.came[j].First <= s.End {
		s = signal.Span{First: min(s.First, p.came[j].First), End: max(s.End, p.came[j].End)}
		j++
	}
	p.came = slices.Replace(p.came, i, j, s)
	if n := len(p.came) - maxSpans; n > 0 {
		p.came = slices.Delete(p.came, 0, n)
	}
	if p.frames = append(p.frames, printOf(b)); len(p.frames) > maxPrints {
		p.frames = slices.Delete(p.frames, 0, maxPrints/2)
	}
}

// reading is a counter and its time.
type reading struct {
	first int64
	time  time.Time
}

// refusal is a frame that is not taken, and why.
type refusal struct {
	arrival
	reason Reason
	err    error
}

func newChecker(rates []float64, silence time.Duration) *checker {
	return &checker{rates: rates, silence: silence, now: time.Now, runs: make(map[int64]int64)}
}

// runBits is where the number of a run is in the id of a session: behind the bits in which sessions of
// one sender differ.
const runBits = 48

// id is the session under which windows are cut.
func (s *stream) id() int64 { return s.session ^ s.run<<runBits }

// resume begins where an earlier run of the program has ended: a session as id has it, whose
// sample of the highest rate with the counter first was taken at a time.
func (c *checker) resume(id, first int64, at time.Time) {
	s := &stream{session: id, at: make([]position, len(c.rates)), newest: at}
	for g, rate := range c.rates {
		n := int64(math.Round(float64(first) * rate / c.rates[0]))
		r := reading{n, at.Add(seconds(float64(n)/rate - float64(first)/c.rates[0]))}
		s.at[g] = position{seen: true, resumed: true, end: n, fixed: r, last: r, came: signal.Spans{{First: 0, End: n}}}
	}
	c.current = s
	c.runs[id] = 0
}

// identify finds out which run a stream that was resumed is of, once its sender says a session.
func (c *checker) identify(session int64) {
	s := c.current
	const low = 1<<runBits - 1
	if s == nil || !s.heard.IsZero() || s.session == session || (s.session^session)&low != 0 {
		return
	}
	s.session, s.run = session, (s.session^session)>>runBits&math.MaxUint16
	c.runs[session] = s.run
}

// check returns the frames that are taken now, with the session that windows get, and those that
// are refused. A frame that waits is in neither.
func (c *checker) check(a arrival) (taken []arrival, refused []refusal) {
	b, now := a.block, c.now()
	c.identify(b.Session)
	switch {
	case c.current == nil:
		return c.begin(a, now), nil
	case !c.current.at[b.Group].seen && c.other(b, continues) != nil: // a rate goes on as before, and another one began to count again
		return c.again(c.other(b, continues), a, now)
	case c.fits(c.current, b) && c.ahead(c.current, b) <= slack.Seconds():
		settles := c.waits(b.Group) && c.current.isNew(b)
		taken = []arrival{c.take(c.current, a, now)}
		if settles {
			caught, wrong := c.settle(now)
			taken, refused = append(taken, caught...), wrong
		}
		return taken, refused
	case c.other(b, c.fits) != nil:
		return c.again(c.other(b, c.fits), a, now)
	case b.Session != c.current.session && !b.Time.Before(c.current.newest.Add(-slack)) && c.free(now):
		refused = c.giveUp()
		return c.begin(a, now), refused
	}
	return c.wait(a, now)
}

// other returns the stream before the current one that a frame is of by a rule; nil if there is none.
func (c *checker) other(b *source.Block, is func(*stream, *source.Block) bool) *stream {
	for _, o := range slices.Backward(c.others) {
		if is(o, b) {
			return o
		}
	}
	return nil
}

// continues reports whether a frame goes on in a stream at the sample behind the last one of its rate.
func continues(s *stream, b *source.Block) bool {
	p := &s.at[b.Group]
	return s.session == b.Session && p.seen && b.First == p.end && b.First > 0
}

// again takes or refuses a frame of a stream before the current one.
func (c *checker) again(o *stream, a arrival, now time.Time) (taken []arrival, refused []refusal) {
	if c.silent(o, now) { // it was not there, and others came
		c.streams++
		o.begun = c.streams
	}
	switch {
	case !o.isNew(a.block):
		return nil, []refusal{c.stale(a)}
	case !c.silent(c.current, now) && o.begun > c.current.begun:
		c.contested = now
		c.note(o, a, now)
		return nil, []refusal{c.otherSender(a)}
	case !c.silent(c.current, now):
		c.contested = now // the current one came in between
	default:
		c.contested = time.Time{}
	}
	refused = c.giveUp()
	c.setAside(c.current)
	c.others = slices.DeleteFunc(c.others, func(s *stream) bool { return s == o })
	c.current = o
	return []arrival{c.take(o, a, now)}, refused
}

// setAside keeps a stream that is not the current one any more.
func (c *checker) setAside(s *stream) {
	if s == nil {
		return
	}
	for g := range s.at {
		s.at[g].frames = slices.Clone(s.at[g].frames[max(0, len(s.at[g].frames)-maxSpans):])
	}
	if c.others = append(c.others, s); len(c.others) > maxOthers {
		c.others = slices.Delete(c.others, 0, 1)
	}
}

func (c *checker) otherSender(a arrival) refusal {
	if a.block.Session == c.current.session && len(c.rates) > 1 {
		return refusal{a, Counter, fmt.Errorf("first: %d of %v Hz does not go with the other rates of session %d, one of which began to count again: a sender that begins again takes another session, for all of its rates",
			a.block.First, c.rates[a.block.Group], a.block.Session)}
	}
	return refusal{a, OtherSender, fmt.Errorf("two senders feed one machine: %s (session %d) came first, %s (session %d) may send when it has been silent for %v: stop one of them, or give it a machine of its own",
		c.current.peer, c.current.session, a.peer, a.block.Session, c.silence)}
}

func (c *checker) stale(a arrival) refusal {
	return refusal{a, Stale, fmt.Errorf("session %d at %s is over: the stream is session %d at %s: if another sender feeds the machine, stop one of them",
		a.block.Session, a.block.Time.Format(time.RFC3339Nano), c.current.session, c.current.newest.Format(time.RFC3339Nano))}
}

// wait keeps a frame that does not fit until the next ones say what it is.
func (c *checker) wait(a arrival, now time.Time) (taken []arrival, refused []refusal) {
	for i, w := range c.waiting { // its connection broke: it came again
		if w.block.Session == a.block.Session && w.block.Group == a.block.Group && w.block.First == a.block.First {
			c.waiting[i] = a
			return nil, []refusal{{w, Stale, errors.New("another frame came under the same counter while it waited for the next ones")}}
		}
	}
	if s := c.candidate; s == nil || !c.fits(s, a.block) || !s.isNew(a.block) || c.ahead(s, a.block) > slack.Seconds() {
		refused = c.giveUp()
		c.candidate = c.newStream(a)
	}
	c.note(c.candidate, a, now)
	c.waiting = append(c.waiting, a)
	if len(c.waiting) < few {
		return nil, refused
	}
	if !c.free(now) {
		return nil, append(refused, c.giveUp()...)
	}
	s, frames := c.candidate, c.waiting
	c.candidate, c.waiting = nil, nil
	if b := frames[0].block; !c.fits(c.current, b) || c.ahead(c.current, b) > longGap {
		c.enter(s)
	}
	for _, w := range frames {
		taken = append(taken, c.take(c.current, w, now))
	}
	return taken, refused
}

// settle decides on frames that wait, when the stream has gone on. Frames that are only early wait until it comes to them, and are taken
// then: their senders or their network have changed the order. Others were wrong.
func (c *checker) settle(now time.Time) (taken []arrival, refused []refusal) {
	for _, w := range c.waiting {
		p := &c.current.at[w.block.Group]
		if w.block.Session != c.current.session || w.block.First < p.end || !c.inStep(p, p.fixed, w.block) || c.ahead(c.current, w.block) > early.Seconds() {
			return nil, c.giveUp()
		}
	}
	if c.ahead(c.current, c.waiting[0].block) > slack.Seconds() {
		return nil, nil
	}
	frames := c.waiting
	c.candidate, c.waiting = nil, nil
	for _, w := range frames {
		taken = append(taken, c.take(c.current, w, now))
	}
	return taken, nil
}

// early is by how much a frame may come before its time and wait for it.
const early = 10 * time.Second

// giveUp refuses the frames that wait.
func (c *checker) giveUp() (refused []refusal) {
	for _, w := range c.waiting {
		b := w.block
		switch {
		case !c.free(c.now()):
			refused = append(refused, c.otherSender(w))
			continue
		case b.Session != c.current.session:
			refused = append(refused, c.stale(w))
			continue
		}
		p := c.current.at[b.Group]
		refused = append(refused, refusal{w, Counter, fmt.Errorf("first: %d at %s does not fit the stream, which is at %d and %s: counter or time is wrong: a sender that begins again takes another session",
			b.First, b.Time.Format(time.RFC3339Nano), p.end, c.current.newest.Format(time.RFC3339Nano))})
	}
	c.candidate, c.waiting = nil, nil
	return refused
}

// begin takes the first frame of another session.
func (c *checker) begin(a arrival, now time.Time) []arrival {
	s := c.newStream(a)
	c.enter(s)
	return []arrival{c.take(s, a, now)}
}

func (c *checker) newStream(a arrival) *stream {
	c.streams++
	return &stream{session: a.block.Session, peer: a.peer, begun: c.streams, at: make([]position, len(c.rates))}
}

// enter makes s the current stream.
func (c *checker) enter(s *stream) {
	if len(c.runs) > 256 {
		clear(c.runs)
		c.runs[c.current.session] = c.current.run
	}
	if run, known := c.runs[s.session]; known {
		s.run = run + 1
	}
	c.runs[s.session] = s.run
	c.setAside(c.current)
	c.current = s
}

func (c *checker) take(s *stream, a arrival, now time.Time) arrival {
	p := &s.at[a.block.Group]
	a.news = int64(a.block.Len()) - p.came.Known(a.block.First, a.block.First+int64(a.block.Len()))
	c.note(s, a, now)
	a.block.Session = s.id()
	return a
}

// free reports whether another stream may take the machine: unless two senders wanted it lately, and
// the current one still sends.
func (c *checker) free(now time.Time) bool {
	return c.contested.IsZero() || now.Sub(c.contested) >= c.silence || c.silent(c.current, now)
}

func (c *checker) silent(s *stream, now time.Time) bool { return now.Sub(s.heard) >= c.silence }

// fits reports whether a frame is of s: its counter goes on where the last frame of its rate has ended, or
// counter and time are in step with the frames before, or it repeats some of them. While frames of the rate wait, one of which may be
// right, a counter that goes on is not enough.
func (c *checker) fits(s *stream, b *source.Block) bool {
	p := &s.at[b.Group]
	switch {
	case b.Session != s.session:
		return false
	case !p.seen:
		return c.aligned(s, b)
	case b.First < p.end && !p.resumed:
		return c.repeats(p, b)
	case s == c.current && !p.resumed && c.waits(b.Group):
		return c.lag(p.fixed, b) <= max(strict, seconds(float64(b.Len())/c.rates[b.Group]))
	}
	return b.First == p.end || c.inStep(p, p.fixed, b)
}

// aligned reports whether counter and time of the first frame of a rate go with the other rates, however far their clocks may be apart.
func (c *checker) aligned(s *stream, b *source.Block) bool {
	for g := range s.at {
		p := &s.at[g]
		counts := seconds(float64(b.First)/c.rates[b.Group] - float64(p.fixed.first)/c.rates[g])
		if p.seen && (counts-b.Time.Sub(p.fixed.time)).Abs() > longGap*time.Second {
			return false
		}
	}
	return true
}

// strict is by how much time and counter of a frame may disagree if another frame says something else.
const strict = 100 * time.Millisecond

// waits reports whether a frame of a rate waits.
func (c *checker) waits(group int) bool {
	return c.candidate != nil && c.candidate.at[group].seen
}

// repeats reports whether a frame says again what came: the same values under the same counter, or a time that fits the counters
// that it repeats better than half of them. One none of whose samples came is late.
func (c *checker) repeats(p *position, b *source.Block) bool {
	for _, f := range slices.Backward(p.frames) {
		if f.first == b.First {
			return f == printOf(b) && c.inStep(p, p.fixed, b)
		}
	}
	again := p.came.Known(b.First, b.First+int64(b.Len()))
	if again == 0 {
		return c.inStep(p, p.fixed, b)
	}
	return c.lag(p.fixed, b) <= min(slack, seconds(float64(again)/c.rates[b.Group]/2))
}

// ahead returns the seconds that a frame leaves out. The first one of a rate is compared with the other rates.
func (c *checker) ahead(s *stream, b *source.Block) float64 {
	from, end := float64(b.First)/c.rates[b.Group], 0.0
	if p := &s.at[b.Group]; p.seen {
		return from - float64(p.end)/c.rates[b.Group]
	}
	for g := range s.at {
		end = max(end, float64(s.at[g].end)/c.rates[g])
	}
	return from - end
}

func (c *checker) inStep(p *position, r reading, b *source.Block) bool {
	gap := math.Abs(float64(b.First-p.end)) / c.rates[b.Group]
	return c.lag(r, b) <= slack+seconds(slackOfGap*gap)
}

// lag returns by how much time and counter of a frame disagree with a reading.
func (c *checker) lag(r reading, b *source.Block) time.Duration {
	return b.Time.Sub(r.time.Add(seconds(float64(b.First-r.first) / c.rates[b.Group]))).Abs()
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }

// isNew reports whether a frame has samples that no frame before had.
func (s *stream) isNew(b *source.Block) bool {
	return b.First+int64(b.Len()) > s.at[b.Group].end
}

// note takes what a frame says of its stream. A single time that is wrong moves nothing.
func (c *checker) note(s *stream, a arrival, now time.Time) {
	b := a.block
	p := &s.at[b.Group]
	if p.book(b); p.seen && !s.isNew(b) {
		return
	}
	r := reading{b.First, b.Time}
	if !p.seen || c.inStep(p, p.fixed, b) || c.inStep(p, p.last, b) {
		p.fixed = r
		s.newest = b.Time.Add(seconds(float64(b.Len()) / c.rates[b.Group]))
	}
	p.seen, p.resumed, p.end, p.last = true, false, b.First+int64(b.Len()), r
	s.heard, s.peer = now, a.peer
}

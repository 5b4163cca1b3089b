// Package feed receives the samples of live sensors over a network.
//
// A frame is the samples of the channels of one rate, from a sample counter on:
// an Arrow IPC stream of one record batch, or a JSON object for slow signals
// (schemas/frame.md). Frames come over TCP ([ListenTCP]) or from an MQTT 5 broker
// ([DialMQTT]). A [Feed] makes blocks of them and is a source like any recording,
// only that it never ends.
//
// A frame is acknowledged when its samples are in windows on disk, not before. A
// sender that keeps what is not acknowledged and sends it again, after its own
// trouble or ours, loses nothing and sends nothing twice: a Feed drops samples
// that are on disk already. The sender hears what is wrong with a frame;
// that ends neither the feed nor the machine's windows.
//
// A [Setting] is what the machine is doing, tool, hole and spindle speed, for
// sensors that do not know it.
package feed

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flank-tcm/flank/internal/protocol/mqttconn"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Config says what a Feed receives. Layout and Machine are needed.
type Config struct {
	Machine string // ISA-95 path; frames that name another are refused
	Layout  *signal.Layout
	Columns signal.Recording // where channels are found in frames, and what their numbers mean; only Origins is used

	// Setting, if not nil, says what frames do not.
	Setting *Setting

	// Timeout is how long a sender may be silent. 0 means 10 s.
	Timeout time.Duration

	// Notify, if not nil, hears what a person should know of. It is called from
	// several goroutines and must not block.
	Notify func(Notice)
}

// Notice is something that happened to a feed.
type Notice struct {
	Text string
	Peer string // the address of the sender or broker it happened with
	Err  error  // nil if nothing is wrong

	Reason Reason // of a frame that is not taken; such notices come as often as frames do
}

// Stats counts what a Feed received since it was opened.
type Stats struct {
	Frames  uint64          // that can be read
	Refused [Reasons]uint64 // frames and messages that were not taken, by reason
	Senders int64           // connected: clients by TCP, or the MQTT broker
	Short   uint64          // connections to the MQTT broker that ended before they had lasted, see mqttconn.Lives

	Samples uint64          // in frames, of all channels together; a malformed one counts as the one before it, or as a second
	Unused  [Reasons]uint64 // samples of them that the feed kept back, by reason
}

// Add returns the counts of s and t together, and the senders of t.
func (s Stats) Add(t Stats) Stats {
	s.Frames, s.Samples, s.Senders, s.Short = s.Frames+t.Frames, s.Samples+t.Samples, t.Senders, s.Short+t.Short
	for r := range Reasons {
		s.Refused[r] += t.Refused[r]
		s.Unused[r] += t.Unused[r]
	}
	return s
}

// AllRefused returns how many frames were not taken because something is wrong with them.
func (s Stats) AllRefused() (n uint64) {
	for _, one := range s.Refused[Malformed:] {
		n += one
	}
	return n
}

// Feed is a live source. Open one by ListenTCP or DialMQTT, and close it.
type Feed struct {
	cfg  Config
	dec  *decoder
	in   chan arrival
	addr string

	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	// Of the goroutine that calls Next and Acked.
	check    *checker
	names    follower
	ackedAny bool // session and next are set
	session  int64
	next     int64
	sessions []order // of unacked frames, and the latest
	unacked  []frame
	began    bool          // a frame has come
	fromDisk order         // session and counter, at the highest rate, up to which an earlier run of the program has put samples on disk
	overflow bool          // frames are acknowledged before they are on disk
	misdated source.Seldom // frames
	renamed  source.Seldom // frames

	due []atomic.Int64 // of each rate: until when a frame with new samples has to come, in ns since 1970

	frames, samples atomic.Uint64
	usual           atomic.Uint64 // samples of the last frame that could be read
	refused, unused [Reasons]atomic.Uint64

	senders atomic.Int64
	lives   *mqttconn.Lives // of connections to an MQTT broker; nil for TCP
}

// arrival is a block on its way to Next. ack is called once its frame is
// acknowledged, and answer, if not nil, before that if the frame is not taken. They must not block.
type arrival struct {
	block  *source.Block
	ack    func()
	peer   string // who sent it
	answer func(Reason, error)
	news   int64 // how many of its samples never came before, as the checker finds
}

// order numbers the sessions as they come.
type order struct {
	session int64
	ordinal uint64
}

// frame is a frame that is not acknowledged yet.
type frame struct {
	ordinal uint64 // of its session
	end     int64  // counter at the layout's highest rate behind its last sample
	ack     func()
}

const (
	// queued is how many frames wait for Next before senders have to.
	queued = 16

	// maxUnacked is how many frames may be without an acknowledgement: a sender need
	// not keep more. The window of an MQTT broker is twice that, so that it is
	// never what frames wait for.
	maxUnacked = 2048
)

func open(cfg Config) *Feed {
	cfg.Timeout = cmp.Or(cfg.Timeout, 10*time.Second)
	f := &Feed{cfg: cfg, dec: newDecoder(cfg), in: make(chan arrival, queued), names: newFollower(cfg.Layout)}
	if cfg.Setting != nil {
		f.names.noTool = cfg.Setting.isNoTool
	}
	f.names.disagree = f.disagree
	f.check = newChecker(f.names.rates, cfg.Timeout)
	f.due = make([]atomic.Int64, len(f.names.rates))
	for g := range f.due {
		f.due[g].Store(f.check.now().Add(cfg.Timeout).UnixNano())
	}
	for _, g := range cfg.Layout.Groups() { // a second, before any frame could be read
		f.usual.Add(uint64(g.Rate * float64(len(g.Channels))))
	}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

// Layout returns the layout of the blocks.
func (f *Feed) Layout() *signal.Layout { return f.cfg.Layout }

// Addr returns the address on which the feed listens, or the broker's.
func (f *Feed) Addr() string { return f.addr }

// Stats returns the counts. It is safe for concurrent use.
func (f *Feed) Stats() Stats {
	s := Stats{Frames: f.frames.Load(), Senders: f.senders.Load()}
	for r := range Reasons {
		s.Refused[r], s.Unused[r] = f.refused[r].Load(), f.unused[r].Load()
	}
	if f.lives != nil {
		s.Short = f.lives.Short()
	}
	s.Samples = f.samples.Load() // last: it is not less than the others together
	return s
}

// Silent returns the rates in Hz of which no new sample has come for the time that a sender may be silent, while samples of
// others come, at a time: no window can be cut. It is safe for concurrent use.
func (f *Feed) Silent(now time.Time) (rates []float64) {
	for g := range f.due {
		if f.due[g].Load() < now.UnixNano() {
			rates = append(rates, f.names.rates[g])
		}
	}
	if len(rates) == len(f.due) {
		return nil
	}
	return rates
}

// Err returns an error while another program takes the MQTT client id from this one again and again.
// It is safe for concurrent use.
func (f *Feed) Err() error {
	if f.lives == nil {
		return nil
	}
	return f.lives.Err()
}

// Close disconnects the senders and returns when everything that the feed
// started has ended. It never fails.
func (f *Feed) Close() error {
	f.stop()
	f.wg.Wait()
	return nil
}

// Next waits for the next frame and returns its samples that are not on disk. It
// returns only errors of ctx.
func (f *Feed) Next(ctx context.Context) (*source.Block, error) {
	for {
		if a, ok := f.names.next(); ok {
			if f.complete(a.block); f.take(a) {
				return a.block, nil
			}
			continue
		}
		select {
		case a := <-f.in:
			f.admit(a)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// admit takes or refuses a frame that has come.
func (f *Feed) admit(a arrival) {
	var taken []arrival
	var refused []refusal
	if err := checkTime(a.block.Time, f.check.now()); err != nil {
		refused = []refusal{{a, Date, err}}
	} else {
		taken, refused = f.check.check(a)
	}
	for _, r := range refused {
		f.refuse(r.reason, r.peer, fmt.Errorf("feed: %w", r.err))
		f.unused[r.reason].Add(uint64(r.values()))
		if r.answer != nil {
			r.answer(r.reason, r.err)
		}
		r.ack()
	}
	for _, t := range taken {
		if b := t.block; t.news > 0 {
			lasts := seconds(float64(b.Len()) / f.names.rates[b.Group])
			f.due[b.Group].Store(f.check.now().Add(f.cfg.Timeout + lasts).UnixNano())
		}
		f.names.add(t)
	}
}

// complete adds what the frame does not say. Another tool is another session, and so
// is a new one of the same name.
func (f *Feed) complete(b *source.Block) {
	b.Machine = f.cfg.Machine
	now := f.check.now()
	if ahead := b.Time.Sub(now); ahead > maxAhead || -ahead > maxBehind {
		b.Quality |= signal.ClockOff
		if frames, say := f.misdated.Note(now, noticeEvery); say {
			f.notify(Notice{Text: "the time of a frame is implausible", Err: misdatedText(b.Time, ahead, frames)})
		}
	}
	if s := f.cfg.Setting; s != nil {
		if err := s.fill(&b.Context); err != nil {
			f.notify(Notice{Text: "names of tools are alike", Err: err})
		}
	}
	b.Session ^= ofTool(b.Context)
}

// disagree says that the frames of a rate name another tool than frames of a higher one.
func (f *Feed) disagree(b *source.Block, named string) {
	frames, say := f.renamed.Note(f.check.now(), noticeEvery)
	if !say {
		return
	}
	f.notify(Notice{Text: "two rates name different tools", Err: fmt.Errorf("feed: samples of %v Hz say that tool %q is in, samples of a higher rate say another one, which counts (%d such frames since the last warning): let one sender name tools, or both the same",
		f.names.rates[b.Group], named, frames)})
}

// ofTool is by what the sessions of a tool differ from the sessions of another tool.
func ofTool(c signal.Context) int64 {
	if c.Tool == "" {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(c.Tool))
	if c.ToolLife != "" {
		h.Write([]byte("\x00" + c.ToolLife)) // a tool's name has no control characters
	}
	return int64(h.Sum64())
}

// take removes from the block of a what is on disk. It reports whether anything
// is left, and notes that its sender waits for the acknowledgement.
func (f *Feed) take(a arrival) bool {
	b, first := a.block, !f.began
	f.began = true
	groups := f.cfg.Layout.Groups()
	fast, rate := groups[0].Rate, groups[b.Group].Rate
	if n := len(f.sessions); n == 0 || f.sessions[n-1].session != b.Session {
		next := order{session: b.Session}
		if n > 0 {
			next.ordinal = f.sessions[n-1].ordinal + 1
		}
		f.sessions = append(f.sessions, next)
	}
	// Senders count on the order of acknowledgements, so also what is on disk waits
	// for what came before it.
	f.unacked = append(f.unacked, frame{
		ordinal: f.sessions[len(f.sessions)-1].ordinal,
		end:     int64(math.Ceil(float64(b.First+int64(b.Len())) * fast / rate)),
		ack:     a.ack,
	})
	if f.ackedAny && b.Session == f.session && !f.skipStored(a, first) {
		return false
	}
	if len(f.unacked) > maxUnacked {
		if !f.overflow {
			f.overflow = true
			f.notify(Notice{Text: "frames are acknowledged although they are in no window on disk: channels are missing, or frames are much shorter than windows"})
		}
		f.ackOldest(1)
	}
	return true
}

// skipStored removes from the block of a, of the session that was acknowledged last, what is on disk, and reports whether
// anything is left. first: nothing came before it.
func (f *Feed) skipStored(a arrival, first bool) bool {
	b := a.block
	fast, rate := f.cfg.Layout.Groups()[0].Rate, f.cfg.Layout.Groups()[b.Group].Rate
	// Windows begin at whole samples of every rate.
	skip := int64(math.Round(float64(f.next)*rate/fast)) - b.First
	if skip < 0 && first {
		// The slicer cannot know: for it the session begins here.
		f.notify(Notice{Text: "gap", Err: fmt.Errorf("feed: samples %d to %d of %v Hz, which follow what is on disk, have not come", b.First+skip, b.First-1, rate)})
	}
	if first {
		f.fromDisk = order{f.session, uint64(f.next)}
	}
	skip = min(skip, int64(b.Len()))
	if before := f.fromDisk.session == b.Session && float64(b.First)*fast/rate < float64(f.fromDisk.ordinal); !before && skip > int64(b.Len())-a.news {
		skip = 0 // some of them never came: the slicer knows which, and counts them as late
	}
	if skip > 0 {
		f.unused[Repeat].Add(uint64(skip) * uint64(len(b.Samples)))
	}
	if skip > 0 && skip == int64(b.Len()) {
		f.refused[Repeat].Add(1)
		if a.answer != nil {
			a.answer(Repeat, nil)
		}
		if len(f.unacked) == 1 {
			f.ackOldest(1)
		}
		return false
	}
	if skip > 0 {
		for i := range b.Samples {
			b.Samples[i] = b.Samples[i][skip:]
		}
		b.First += skip
		b.Time = b.Time.Add(time.Duration(math.Round(float64(skip) / rate * float64(time.Second))))
	}
	return true
}

// ackOldest acknowledges the n oldest frames.
func (f *Feed) ackOldest(n int) {
	for _, d := range f.unacked[:n] {
		d.ack()
	}
	f.unacked = append(f.unacked[:0], f.unacked[n:]...)
}

// Resumed says which window an earlier run of the program has put on disk last: its session, what the machine
// did, and counter and time of its first sample at the layout's highest rate. It is called before Next: frames
// are compared with what their sender said then.
func (f *Feed) Resumed(session int64, of signal.Context, first int64, at time.Time) {
	f.check.resume(session^ofTool(of), first, at)
}

// Acked implements [source.AckedSource].
func (f *Feed) Acked(session, next int64) {
	f.ackedAny, f.session, f.next = true, session, next
	i := len(f.sessions) - 1
	for i >= 0 && f.sessions[i].session != session {
		i--
	}
	if i < 0 {
		return // it was acknowledged before this feed was opened
	}
	f.sessions = f.sessions[i:]
	now := f.sessions[0].ordinal
	n := 0
	for n < len(f.unacked) && (f.unacked[n].ordinal < now || f.unacked[n].ordinal == now && f.unacked[n].end <= next) {
		n++
	}
	f.ackOldest(n)
	if len(f.unacked) < maxUnacked/2 {
		f.overflow = false
	}
}

// deliver hands a decoded frame to Next. It waits while there are too many, and
// reports whether the feed is still open.
func (f *Feed) deliver(a arrival) bool {
	n := uint64(a.values())
	f.usual.Store(n)
	f.samples.Add(n)
	select {
	case f.in <- a:
		f.frames.Add(1)
		return true
	case <-f.ctx.Done():
		f.samples.Add(-n)
		return false
	}
}

func (f *Feed) notify(n Notice) {
	if f.cfg.Notify != nil {
		f.cfg.Notify(n)
	}
}

// malformed counts a frame that cannot be taken, and reports it. Its samples are not known: it counts as the frame
// before it, or as a second of all channels if none could be read, so that a sender all of whose frames are refused is not taken for one that sends nothing.
func (f *Feed) malformed(peer string, err error) {
	n := f.usual.Load()
	f.samples.Add(n)
	f.unused[Malformed].Add(n)
	f.refuse(Malformed, peer, err)
}

// refuse counts a frame that is not taken, and reports it.
func (f *Feed) refuse(why Reason, peer string, err error) {
	f.refused[why].Add(1)
	f.notify(Notice{Text: "a frame is refused", Peer: peer, Err: err, Reason: why})
}

// Package gateway is the ingester as a value: it cuts the blocks of a machine
// into windows, keeps every window on disk, and delivers them to Kafka.
//
// A window that is closed is never lost: it is synced to the spool first and
// sent second, and it leaves the spool only after all replicas of the broker
// have it. While no broker answers, acquisition goes on and the spool fills.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/ingest/spool"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// Config says what a Gateway does. Bus, Source and SpoolDir are needed.
type Config struct {
	Source   source.Source // of one machine
	Window   window.Spec
	SpoolDir string
	Bus      bus.Config

	// Recording identifies the windows of a finite recording, see RecordingID.
	// A gateway that is started again on the same spool with the same recording
	// goes on after the last window that it had kept, until Finish is called;
	// then, or with another recording, a new epoch begins. Empty for live
	// sources, whose windows continue the epoch of the spool.
	Recording string

	// Sent is how many windows of Recording were sent before it grew, under another
	// Recording. They are cut and not kept: the epoch begins with the window after them.
	Sent uint64

	// Speed is how fast the blocks of Source come: 1 as a sensor would deliver them, 0 as
	// fast as they can be read. Windows that an earlier run has kept take no time.
	Speed float64

	// SameWindows says that a recording which is sent again is the same windows: their
	// epoch follows from Recording, so that readers drop those that they have. Without
	// it each replay is judged again, under an epoch of its own.
	SameWindows bool

	// SyncEvery is how many windows may share one sync to disk. 0 means 1,
	// which is right for live sources.
	SyncEvery int

	// Machine is whose the spool is. A spool of another machine in which windows wait is
	// refused. If another Host had the spool, live windows get a new epoch. Empty for a
	// spool that is not checked; Host is this computer by default.
	Machine, Host string

	// SpoolBytes limits the spool on disk. 0 means what the disk holds.
	SpoolBytes int64

	// DropOldest gives up the oldest windows of a full spool, whole segments at a
	// time, so that acquisition goes on: right for live sources. Without it
	// acquisition waits until there is room: right for recordings.
	DropOldest bool

	// SpoolOnly keeps windows in the spool and sends none. A gateway that is started again
	// without it sends them. A recording waits until windows of another one are sent.
	SpoolOnly bool

	// Edge, if not nil, sends features in place of windows.
	Edge *Edge

	// OnSent, if not nil, gets how long ago each window was acquired that Kafka has taken. It is
	// called from the delivering goroutine.
	OnSent func(age time.Duration)

	// OnCut, if not nil, gets every window and gap in order, also the windows of a
	// recording that an earlier run has stored. Epoch and seq of windows are set. It is
	// called from the acquiring goroutine and must not keep the window.
	OnCut func(source.Cut)

	Log zerolog.Logger

	// Disk is where the spool is, MintEpoch draws epochs, which are not 0, and Clock
	// is the time. The zero values mean SpoolDir, a random number and the system's
	// clock; a simulation brings its own.
	Disk      spool.Disk
	MintEpoch func() uint64
	Clock     source.Clock
}

// Gateway streams the windows of one machine. Use New, then Run once.
type Gateway struct {
	cfg   Config
	cut   *source.Cutter
	codec *window.Codec
	spool *spool.Spool
	disk  spool.Disk
	out   *bus.Producer

	extraction *extraction // nil: windows are sent

	begun         bool
	moved         bool   // another host had the spool
	first, resume uint64 // seq of the first window; windows that the spool has already
	next          uint64 // seq of the window that is cut next
	skip          uint64 // windows still to come that were sent before the recording grew

	memory memory
	held   []*held // windows that are not durable yet
	heldTo uint64  // seq after the last of them

	before  time.Time // end of the last window of a live source before the start
	apart   bool      // the clocks differ in the current session, and the log says so
	session int64     // the current one

	wrongRates source.Seldom // windows with a wrong rate

	patience time.Duration // for delivering the rest when nothing more is acquired

	windows, gaps, delivered atomic.Uint64
	flagged                  [len(signal.Flags)]atomic.Uint64 // windows

	mu       sync.Mutex
	progress Progress
}

// drainTime is how long Run continues to deliver after ctx has ended, and how long it
// waits for a broker that is away after its source has failed. The rest stays in the
// spool.
const drainTime = 4 * time.Second

// New opens the spool. It reports a window spec that does not fit the source or
// makes windows that no topic takes, a spool in use, and a disk that cannot be
// written.
func New(cfg Config) (*Gateway, error) {
	g := &Gateway{cfg: cfg, disk: cfg.Disk, patience: drainTime}
	g.cfg.Clock = cfg.Clock.WithDefaults()
	g.cfg.Host = cmp.Or(cfg.Host, spool.Host())
	var err error
	if g.cut, err = source.NewCutter(source.Pace(cfg.Source, cfg.Speed, g.cfg.Clock, g.known), cfg.Window); err != nil {
		return nil, err
	}
	codec, err := window.NewCodec(cfg.Source.Layout(), cfg.Window)
	if err != nil {
		return nil, err
	}
	// One window that cannot be sent would hold up all behind it for ever.
	if size := codec.MaxSize(); size > bus.MaxMessage {
		return nil, fmt.Errorf("gateway: a window of %v would be a message of %.1f MiB, and %d MiB is the most a topic takes: make windows shorter",
			cfg.Window.Length, float64(size)/(1<<20), bus.MaxMessage>>20)
	}
	g.codec = codec
	to := cfg.Bus
	to.OnRetry = func(err error, since time.Duration) {
		g.retrying(err)
		if cfg.Bus.OnRetry != nil {
			cfg.Bus.OnRetry(err, since)
		}
	}
	if cfg.Edge != nil {
		if g.extraction, err = newExtraction(cfg.Source.Layout(), cfg.Window, *cfg.Edge); err != nil {
			return nil, err
		}
	}
	if g.out, err = bus.NewProducer(to); err != nil {
		return nil, err
	}
	if g.disk == nil {
		g.disk = spool.Dir(cfg.SpoolDir)
	}
	last, err := g.lastReplay()
	if err != nil {
		return nil, err
	}
	if cfg.Recording == "" && last.Recording == "" { // a recording's windows are of another time
		g.before = lastEnd(g.disk)
	}
	sp, rec, err := spool.Open(cfg.SpoolDir, g.cfg.spoolSettings(last))
	if err != nil {
		return nil, err
	}
	g.spool = sp
	g.logDamage(spool.Stats{})
	g.logOwner(rec)
	if rec.Pending > 0 || rec.TornBytes > 0 {
		cfg.Log.Warn().Uint64("pending", rec.Pending).Int64("torn_bytes", rec.TornBytes).
			Msg("the spool holds windows from before the start: they are delivered first")
	}
	g.progress.Sending = g.cfg.Clock.Now()
	g.cfg.SyncEvery = max(cfg.SyncEvery, 1)
	g.memory.most = g.cfg.SyncEvery + 2 // being stored, handed over, and sent
	return g, nil
}

// logOwner logs that the spool was another host's or another machine's, or does not say whose it is.
func (g *Gateway) logOwner(rec spool.Recovery) {
	if g.moved = rec.OtherHost != ""; g.moved {
		g.cfg.Log.Warn().Str("folder", g.cfg.SpoolDir).Str("host_before", rec.OtherHost).Str("host", g.cfg.Host).Uint64("pending", rec.Pending).
			Msg("another host had this spool: what waits in it is delivered first, and new windows get an epoch of their own; if the spool was copied and that host still runs, two ingesters send for one machine: stop one")
	}
	if rec.NoOwner {
		g.cfg.Log.Warn().Str("folder", g.cfg.SpoolDir).Str("machine", g.cfg.Machine).Uint64("pending", rec.Pending).
			Msg("owner.json in the spool is missing or damaged: the windows that wait there are taken for this machine's; if another machine had the spool, stop this ingester and give it a folder of its own (`spool`)")
	}
	if rec.OtherMachine != "" {
		g.before = time.Time{} // this one was not away since
		g.cfg.Log.Warn().Str("folder", g.cfg.SpoolDir).Str("machine_before", rec.OtherMachine).Str("machine", g.cfg.Machine).
			Msg("another machine had this spool: all of its windows are delivered, and a new epoch begins; give each machine a spool of its own")
	}
}

// spoolSettings returns the settings of the spool, whose last replay is given.
func (c Config) spoolSettings(last replay) spool.Settings {
	set := spool.Settings{
		MaxBytes: c.SpoolBytes, DropOldest: c.DropOldest, MaxRecord: bus.MaxMessage + 64<<10,
		Disk: c.Disk, MintEpoch: c.MintEpoch, Now: c.Clock.Now,
		Recut: c.Recording != "" && last.Recording == c.Recording && !last.Finished,
	}
	if c.Machine != "" {
		set.Owner = spool.Owner{Machine: c.Machine, Host: c.Host}
	}
	if c.Edge != nil {
		set.Ring, set.RingBytes = c.Edge.Keep, c.Edge.KeepBytes
	}
	return set
}

// Begin decides the epoch of the windows to come and the seq of the first one. Windows
// of another recording that are still in the spool are delivered first. Run calls Begin
// itself; call it before Run to learn epoch and seq.
func (g *Gateway) Begin(ctx context.Context) (epoch, seq uint64, err error) {
	if !g.begun {
		if g.resume, err = g.settleEpoch(ctx); err != nil {
			return 0, 0, err
		}
		if err := g.leaveEpoch(ctx); err != nil {
			return 0, 0, err
		}
		g.begun = true
		if g.cfg.Recording == "" {
			g.first = g.spool.NextSeq()
			if err := g.reportEarlierRun(); err != nil {
				g.cfg.Log.Warn().Err(err).Msg("cannot read the source's last position: samples already spooled may be sent twice")
			}
		}
	}
	return g.spool.Epoch(), g.first, nil
}

// Close releases the spool and the connections. What was not delivered stays
// in the spool.
func (g *Gateway) Close() error {
	g.out.Close()
	return g.spool.Close()
}

// Run acquires and delivers until the source has ended and all its windows are
// acknowledged; with Config.SpoolOnly, until they are kept. When ctx ends, it stops acquiring and delivers what it can for
// a few seconds. It returns nil in both cases, and otherwise the error of the
// source or of the disk, or one of the broker that a retry does not change.
// Windows that came before an error of the source are delivered before it is
// returned, unless the broker is away: then they stay in the spool.
func (g *Gateway) Run(ctx context.Context) error {
	if _, _, err := g.Begin(ctx); err != nil {
		return unlessStopped(ctx, err)
	}
	acquiring, stop := context.WithCancel(ctx)
	defer stop()
	delivering, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	delivered := make(chan error, 1)
	go func() {
		err := g.deliver(delivering)
		stop() // the broker refuses the windows
		delivered <- err
	}()
	acquired := g.acquire(acquiring)
	stopping := ctx.Done()
	var deadline <-chan time.Time
	count, moved := g.delivered.Load(), g.cfg.Clock.Now()
	for !g.cfg.SpoolOnly && g.spool.Stats().Pending > 0 && delivering.Err() == nil {
		select {
		case err := <-delivered:
			return errors.Join(acquired, err)
		case <-stopping:
			stopping, deadline = nil, g.cfg.Clock.After(g.patience)
		case <-deadline:
			cancel()
		case <-g.cfg.Clock.After(2 * time.Millisecond):
			if n := g.delivered.Load(); n > count {
				count, moved = n, g.cfg.Clock.Now()
			}
			if acquired != nil && g.cfg.Clock.Now().Sub(moved) >= g.patience {
				cancel()
			}
		}
	}
	cancel()
	return errors.Join(acquired, unlessStopped(delivering, <-delivered))
}

// unlessStopped returns err, or nil if it is only that ctx has ended.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// acquire cuts windows and keeps those that the spool does not have, until the
// source or ctx ends. Then every window that it has kept is durable.
func (g *Gateway) acquire(ctx context.Context) error {
	err := g.cutAndKeep(ctx)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	err = errors.Join(unlessStopped(ctx, err), unlessStopped(ctx, g.store(ctx)))
	if err == nil && len(g.held) > 0 {
		g.cfg.Log.Warn().Int("windows", len(g.held)).Msg("stopped while the spool was full: the windows that waited for room are not kept")
	}
	return err
}

// known reports whether the window that is cut next was sent or is in the spool.
func (g *Gateway) known() bool { return g.skip > 0 || g.next < g.resume }

func (g *Gateway) cutAndKeep(ctx context.Context) error {
	machine := "" // the last one that was checked
	g.next, g.skip = g.first, g.cfg.Sent
	for {
		c, err := g.cut.Next(ctx)
		if err != nil {
			return err
		}
		if g.skip > 0 {
			if c.Gap == nil {
				g.skip--
			}
			continue
		}
		if c.Gap != nil {
			g.gap(c)
			continue
		}
		w := c.Window
		if w.Machine != machine { // a recording may name it
			if err := event.CheckMachine(w.Machine); err != nil {
				return fmt.Errorf("gateway: machine of a window: %w", err)
			}
			machine = w.Machine
		}
		if !g.before.IsZero() {
			g.declareAway(w)
		}
		w.Epoch, w.Seq = g.spool.Epoch(), g.next
		g.watchClocks(w)
		g.watchQuality(w)
		if g.cfg.OnCut != nil {
			g.cfg.OnCut(c)
		}
		if g.next++; g.next > g.resume {
			if err := g.keep(ctx, w); err != nil {
				return err
			}
		}
		g.windows.Add(1)
	}
}

// watchClocks logs once in a session that the clocks of the rates differ. Windows are cut
// by sample counters and do not show it.
func (g *Gateway) watchClocks(w *window.Window) {
	if w.Session != g.session {
		g.session, g.apart = w.Session, false
	}
	groups := g.cut.Layout().Groups()
	slowest := groups[len(groups)-1].Rate
	if g.apart || w.Drift.Abs().Seconds() <= 0.5/slowest {
		return
	}
	g.apart = true
	g.cfg.Log.Warn().Str("machine", w.Machine).Time("start", w.Start).Dur("drift_ms", w.Drift).Float64("rate_hz", slowest).
		Msg("the sensor clocks of the rates differ by more than half a sample of the slowest rate: sample all rates by one clock, or restart the recording more often")
}

// rateEvery passes between two lines that say that a rate is wrong.
const rateEvery = time.Hour

// watchQuality counts the flags of a window, and logs a rate that is wrong.
func (g *Gateway) watchQuality(w *window.Window) {
	all := w.AllQuality()
	for i := range signal.Flags {
		if all&(1<<i) != 0 {
			g.flagged[i].Add(1)
		}
	}
	if all&signal.RateError == 0 {
		return
	}
	windows, say := g.wrongRates.Note(g.cfg.Clock.Now(), rateEvery)
	if !say {
		return
	}
	g.cfg.Log.Warn().Str("machine", w.Machine).Stringer("flag", signal.RateError).Str("rates", w.WrongRates(g.cut.Layout())).Time("start", w.Start).Uint64("windows", windows).
		Msg("the sensors' rate is not the layout's: correct `rate` in the layout, or the sensors; until then windows have no verdict by these channels")
}

func (g *Gateway) gap(c source.Cut) {
	g.gaps.Add(1)
	if g.cfg.OnCut != nil {
		g.cfg.OnCut(c)
	}
	level := zerolog.WarnLevel
	if c.Gap.Reason == window.Tail {
		level = zerolog.InfoLevel
	}
	g.cfg.Log.WithLevel(level).Str("machine", c.Gap.Machine).Str("tool", c.Gap.Tool).Str("reason", c.Gap.Reason).
		Str("start", signal.FormatTime(c.Gap.Start, time.RFC3339Nano)).Dur("duration_ms", c.Gap.Duration).Float64("rate_hz", c.Gap.Rate).
		Msg("a span of the source is in no window")
}

// keep adds w to the held windows. Every SyncEvery windows they become durable.
func (g *Gateway) keep(ctx context.Context, w *window.Window) error {
	h, err := g.hold(w)
	if err != nil {
		return err
	}
	if g.extraction != nil && g.cfg.SyncEvery == 1 {
		h.ready = make(chan struct{})
	}
	g.held = append(g.held, h)
	g.heldTo = w.Seq + 1
	if len(g.held) < g.cfg.SyncEvery {
		return nil
	}
	err = g.store(ctx)
	if err == nil {
		g.reportOnDisk(w)
	}
	if h.ready != nil {
		g.extract(h, w, err)
	}
	return err
}

// deliver sends what the spool holds, in order, until ctx ends.
func (g *Gateway) deliver(ctx context.Context) error {
	if g.cfg.SpoolOnly {
		<-ctx.Done()
		return ctx.Err()
	}
	records := make(chan record, mostInBatch)
	read := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer func() { // the spool has one reader: this one must be gone before the next
		cancel()
		for range records {
		}
	}()
	go func() {
		defer close(records)
		read <- g.read(ctx, records)
	}()
	var b batch
	unrecorded := false // the spool's cursor is behind what was delivered
	for first := range records {
		g.fill(&b, first, records)
		if err := g.out.Send(ctx, b.msgs); err != nil {
			return err
		}
		if err := g.spool.Ack(b.last); err == nil {
			unrecorded = false
		} else if !unrecorded {
			unrecorded = true // logged once: on a full disk every batch fails
			g.cfg.Log.Warn().Err(err).Msg("cannot record the delivery position: after a crash, delivered windows are sent again; check the disk")
		}
		g.delivered.Add(uint64(len(b.acquired)))
		g.sent(b.acquired)
		for _, h := range b.held {
			g.memory.give(h)
		}
	}
	return <-read
}

// mostInBatch is how many windows are sent together at most.
const mostInBatch = 16

// batch is windows that are sent together.
type batch struct {
	msgs     []bus.Message
	last     uint64      // seq
	acquired []time.Time // each window
	held     []*held     // those that are in memory
}

// fill makes b of the first record and of those that are there already.
func (g *Gateway) fill(b *batch, first record, records <-chan record) {
	clear(b.msgs)
	b.msgs, b.acquired, b.held = b.msgs[:0], b.acquired[:0], b.held[:0]
	add := func(r record) {
		b.last, b.acquired = r.seq, append(b.acquired, envelope.AcquiredAt(&r.msg))
		if r.held != nil {
			b.held = append(b.held, r.held)
		}
		b.msgs = g.outgoing(b.msgs, r)
	}
	g.sending(envelope.AcquiredAt(&first.msg))
	for r, more := first, true; more; {
		if add(r); len(b.acquired) == mostInBatch {
			return
		}
		select {
		case r, more = <-records:
		default:
			more = false
		}
	}
}

// record is a window that the spool has. One that it has handed over shares the memory of held.
type record struct {
	seq      uint64
	msg      bus.Message
	features bus.Message // without a topic: they are to be made
	held     *held       // nil: the window was read
}

// read hands the records of the spool on.
func (g *Gateway) read(ctx context.Context, out chan<- record) error {
	damaged, full := g.spool.Stats(), false
	for {
		r, err := g.spool.Next(ctx)
		damaged = g.logDamage(damaged)
		if errors.Is(err, spool.ErrFull) {
			if !full {
				g.cfg.Log.Error().Err(err).Str("folder", g.cfg.SpoolDir).
					Msg("cannot rescue the good windows of a damaged spool because the disk is full: nothing is delivered until there is room; free the disk")
			}
			full = true
			if err := g.cfg.Clock.Wait(ctx, fullPause); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		full = false
		rec, err := recordOf(ctx, r)
		if err != nil {
			return err
		}
		select {
		case out <- rec:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// recordOf returns a record of the spool.
func recordOf(ctx context.Context, r spool.Record) (record, error) {
	rec := record{seq: r.Seq}
	h, kept := r.Kept.(*held)
	if !kept {
		if err := rec.msg.UnmarshalBinary(r.Payload); err != nil {
			return rec, fmt.Errorf("gateway: spool record %d: %w", r.Seq, err)
		}
		return rec, nil
	}
	if h.ready != nil {
		select {
		case <-h.ready:
		case <-ctx.Done():
			return rec, ctx.Err()
		}
	}
	rec.msg, rec.features, rec.held = h.msg, h.features, h
	return rec, nil
}

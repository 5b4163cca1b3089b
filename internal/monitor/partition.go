package monitor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/event/fetch"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/window"
)

const (
	batchWindows  = 64
	batchFeatures = 256
	batchCommands = 64
	batchWait     = 5 * time.Millisecond
	maxForeign    = 1000 // more machines than a partition has, fewer keys than a flood of garbage
	tickEvery     = time.Second
	jobEvery      = 200 * time.Millisecond // how often evidence and references that are due are looked for
)

// partition is one partition of the windows topic while it is assigned to us. It does what
// its owner says, with Kafka; the owner decides.
type partition struct {
	mon        *Monitor
	id         int
	in         *bus.Partition
	inFeatures *bus.Reader // nil before the fence
	inCommands *bus.Reader // nil before the owner asks for commands
	txn        *bus.Txn
	owner      *machine.Owner

	homes      homes
	window     window.Window // that is being judged, with its samples, which are parts of its message
	loans      []*bus.Loan   // of the messages that were judged since the last batch was published, which may hold letters of them
	format     *format       // of it; nil: only the features of what is being judged are there
	offset     int64         // of it in the windows topic
	opened     time.Time     // when judging it began
	other      window.Features
	extractors extractors
	announced  int64         // offset up to which the owner knows that all features were read
	sealed     []bus.Message // features of the batch that is being judged, to be published with it
	log        zerolog.Logger

	replies    chan machine.Reply
	redeployed <-chan machine.Fleet
	windows    chan struct{} // the owner wants windows
	features   chan struct{} // the owner wants features
	commands   chan struct{} // the owner wants commands

	mu  sync.Mutex
	raw map[letterKey]bus.Message // that a letter may be made of: the batches that are not published yet

	state     map[string]bus.Message // the newest state record of each key, until they are loaded
	stateNext int64                  // offset behind the last of them

	holes   uint64          // windows that are missing, of our machines, as of the last count
	foreign map[string]bool // keys, at most maxForeign of them, of which a window of another layout came
	busy    atomic.Bool     // a job is under way
}

// letterKey says where a message lies in the partition.
type letterKey struct {
	topic  string
	offset int64
}

// serve judges one partition, and does what its machines' commands say, until ctx
// ends.
func (m *Monitor) serve(ctx context.Context, p *bus.Partition) error {
	fleet, redeployed, stop := m.fleet.follow()
	defer stop()
	s := &partition{
		mon: m, id: p.ID(), in: p, owner: machine.NewOwner(m.cfg.machines(), fleet, p.ID()), redeployed: redeployed,
		log:     m.cfg.Log.With().Int("partition", p.ID()).Logger(),
		replies: make(chan machine.Reply), windows: make(chan struct{}, 1), features: make(chan struct{}, 1), commands: make(chan struct{}, 1),
		raw: make(map[letterKey]bus.Message), foreign: make(map[string]bool), extractors: make(extractors),
		state: make(map[string]bus.Message), stateNext: bus.FirstOffset,
	}
	s.owner.OnFeatures = s.seal
	s.owner.OnWindow = s.show
	p.OnFetched = func(end int64) { m.ready.fetched(p.ID(), ofWindows, end, m.now()) }
	if err := m.checkTopics(ctx); err != nil {
		return err
	}
	s.homes = m.homes()
	s.owner.Has = func(name string) bool { return m.homeOf(name) == p.ID() }
	m.ready.assigned(p.ID(), m.now())
	defer m.ready.revoked(p.ID())
	defer m.table.revoked(p.ID())
	// Until the fence the previous owner goes on. After it only what the owner has written
	// meanwhile is left to read.
	if err := bus.ReadFrom(ctx, m.cfg.Bus, bus.TopicState, p.ID(), bus.FirstOffset, false, s.remember); err != nil {
		return fmt.Errorf("monitor: state: %w", err)
	}
	defer func() { m.missing.Add(-int64(s.holes)) }() // the next owner counts them
	defer func() {
		for _, in := range []*bus.Reader{s.inFeatures, s.inCommands} {
			if in != nil {
				in.Close()
			}
		}
	}()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.run(ctx) })
	g.Go(func() error { return s.readWindows(ctx) })
	g.Go(func() error { return s.readFeatures(ctx) })
	g.Go(func() error { return s.readCommands(ctx) })
	return g.Wait()
}

// run does the owner's actions, one after the other, until ctx ends or the partition is
// lost.
func (s *partition) run(ctx context.Context) error {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	jobs := time.NewTicker(jobEvery)
	defer jobs.Stop()
	var working sync.WaitGroup
	defer working.Wait()
	actions := s.owner.Start()
	for {
		if err := s.doAll(ctx, actions); err != nil {
			return err
		}
		actions = nil
		select {
		case r := <-s.replies:
			select {
			case f := <-s.redeployed: // before the windows that came after it
				actions = s.owner.On(&f, s.mon.now())
			default:
			}
			actions = append(actions, s.owner.On(r, s.mon.now())...)
		case <-tick.C:
			s.showModels()
			actions = s.owner.On(machine.Tick{Now: s.mon.now(), Trouble: s.mon.ready.lastTrouble(), Waits: s.mon.ready.waits(s.id, s.mon.now())}, s.mon.now())
		case f := <-s.redeployed:
			actions = s.owner.On(&f, s.mon.now())
		case <-jobs.C:
			s.startJob(ctx, &working)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// doAll does actions, and those that come of them.
func (s *partition) doAll(ctx context.Context, actions []machine.Action) error {
	for len(actions) > 0 {
		a := actions[0]
		reply, err := s.do(ctx, a)
		if err != nil {
			return err
		}
		actions = actions[1:]
		if reply != nil {
			actions = append(actions, s.owner.On(reply, s.mon.now())...)
			if _, loaded := a.(machine.LoadState); loaded {
				s.countMachines()
			}
		}
	}
	return nil
}

// do does one action. It returns what came of it, or nil if that comes later.
func (s *partition) do(ctx context.Context, a machine.Action) (machine.Reply, error) {
	switch a := a.(type) {
	case machine.Fence:
		return s.fence(ctx)
	case machine.LoadState:
		return s.load(ctx)
	case machine.ReadWindows:
		s.windows <- struct{}{} // there is room for the one that is asked for at a time
	case machine.ReadFeatures:
		s.features <- struct{}{} // likewise
	case machine.ReadCommands:
		if s.inCommands == nil { // here, where positions are published, too
			s.inCommands = s.txn.Reader(bus.TopicCommands, a.From, nil)
		}
		s.commands <- struct{}{}
	case machine.AskEnd:
		return s.end(ctx)
	case *machine.Batch:
		return s.write(ctx, a)
	default:
		panic(fmt.Sprintf("monitor: no one does action %T", a))
	}
	return nil, nil
}

// write publishes a batch.
func (s *partition) write(ctx context.Context, b *machine.Batch) (machine.Reply, error) {
	ctx, cancel := withGrace(ctx, s.mon.grace)
	defer cancel()
	err := s.publish(ctx, b)
	if errors.Is(err, bus.ErrLost) {
		s.owner.On(machine.Lost{}, s.mon.now())
	}
	if err != nil {
		return nil, err
	}
	return machine.Published{}, nil
}

// end asks Kafka how far what is judged goes.
func (s *partition) end(ctx context.Context) (machine.Reply, error) {
	var end machine.End
	first, last, err := bus.Bounds(ctx, s.mon.cfg.Bus, bus.TopicFeatures, s.id)
	end.Features = machine.Bounds{First: first, End: last}
	if err == nil {
		first, last, err = bus.Bounds(ctx, s.mon.cfg.Bus, bus.TopicWindows, s.id)
		end.Windows = machine.Bounds{First: first, End: last}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	end.Known = err == nil
	return end, nil
}

// fence takes the partition over: after that, its previous owner can publish nothing.
func (s *partition) fence(ctx context.Context) (machine.Reply, error) {
	txn, err := s.in.Fence(ctx, bus.TopicCommands, bus.TopicFeatures)
	if err != nil {
		return nil, fmt.Errorf("monitor: partition %d: %w", s.id, err)
	}
	s.txn = txn
	s.inFeatures = txn.Reader(bus.TopicFeatures, txn.Position(bus.TopicFeatures), func(end int64) { s.passed(ctx, s.inFeatures.Next(), end) })
	at := machine.Position{Windows: txn.Position(bus.TopicWindows), Features: txn.Position(bus.TopicFeatures), Commands: txn.Position(bus.TopicCommands)}
	first, end, err := bus.Bounds(ctx, s.mon.cfg.Bus, bus.TopicCommands, s.id)
	if err != nil {
		return nil, fmt.Errorf("monitor: partition %d: %w: where the commands end: %w", s.id, bus.ErrLost, err)
	}
	if at.Commands >= 0 {
		at.Commands = min(max(at.Commands, first), end) // a topic that was made again begins at 0
	}
	s.mon.ready.reached(s.id, ofWindows, txn.Begin())
	s.mon.ready.reached(s.id, ofFeatures, at.Features)
	return machine.Fenced{At: at, CommandsEnd: end}, nil
}

// remember notes a state record.
func (s *partition) remember(m bus.Message) error {
	if s.stateNext = m.Offset + 1; m.Damage == nil {
		s.state[m.Key] = m
	}
	return nil
}

// load reads the state records of the partition that serve has not read before the fence. A
// machine has the same partition there.
func (s *partition) load(ctx context.Context) (machine.Reply, error) {
	if err := bus.ReadRange(ctx, s.mon.cfg.Bus, bus.TopicState, s.id, bus.Range{From: s.stateNext, Settled: true}, s.remember); err != nil {
		return nil, fmt.Errorf("monitor: state: %w", err)
	}
	last := s.state
	s.state = nil
	records, unreadable := stateRecords(last, s.mon.cfg.Group)
	for _, m := range unreadable {
		s.log.Warn().Str("topic", m.Topic).Int64("offset", m.Offset).Str("key", bounded(m.Key)).Msg("passed over a state record whose key no monitor makes")
	}
	for _, r := range records {
		s.raw[letterKey{bus.TopicState, r.Offset}] = last[r.Key.String()]
	}
	if err := s.mon.learnModels(ctx, event.StateModels(records)); err != nil {
		return nil, err
	}
	fleet := s.mon.fleet.current()
	s.owner.On(&fleet, s.mon.now())
	return machine.Loaded(records), nil
}

// stateRecords returns the records of a group, and those whose key no monitor
// makes.
func stateRecords(last map[string]bus.Message, group string) (records []event.StateRecord, unreadable []bus.Message) {
	records = []event.StateRecord{}
	for key, m := range last {
		k, ok := event.ParseStateKey(key)
		switch {
		case !ok:
			unreadable = append(unreadable, m)
		case len(m.Value) > 0 && k.Group == group:
			records = append(records, event.StateRecord{Key: k, Value: m.Value, Offset: m.Offset})
		}
	}
	return records, unreadable
}

// read reads batches of a topic when the owner asks for them, and replies with what take makes of their messages.
func (s *partition) read(ctx context.Context, asked <-chan struct{}, fetch func() ([]bus.Message, error), take func([]bus.Message) machine.Reply) error {
	for {
		if _, err := receive(ctx, asked); err != nil {
			return err
		}
		msgs, err := fetch()
		if err != nil {
			return err
		}
		s.mu.Lock()
		r := take(msgs)
		s.mu.Unlock()
		if err := s.reply(ctx, r); err != nil {
			return err
		}
	}
}

// inputs returns what makes inputs of messages. s.mu must be held.
func (s *partition) inputs(log machine.Read, input func(*bus.Message) machine.Input) func([]bus.Message) machine.Reply {
	return func(msgs []bus.Message) machine.Reply {
		log.Inputs = make([]machine.Input, len(msgs))
		for i := range msgs {
			m := &msgs[i]
			if log.Inputs[i] = input(m); log.Inputs[i].Open != nil || log.Inputs[i].Ledger != nil {
				s.raw[letterKey{m.Topic, m.Offset}] = *m
			}
		}
		s.mon.took.read(s.mon.now(), msgs, log.Inputs)
		return log
	}
}

// readWindows reads batches of windows, from where the last batch ended, or from the fence. They are decoded when
// they are judged: one at a time is enough memory.
//
// After a window that came alone the next one does not wait for others: what comes while
// it is judged and published is the batch after it.
func (s *partition) readWindows(ctx context.Context) error {
	wait := time.Duration(0)
	return s.read(ctx, s.windows, func() ([]bus.Message, error) {
		msgs, err := s.in.Fetch(ctx, batchWindows, wait)
		if wait = 0; len(msgs) > 1 {
			wait = batchWait
		}
		return msgs, err
	}, s.inputs(machine.Read{Log: machine.WindowLog}, s.windowInput))
}

// extract stores the features of the window in a message that its machine is judged by.
func (s *partition) extract(m *bus.Message, into *window.Features) error {
	s.opened = s.mon.now()
	if l := m.TakeLoan(); l != nil {
		s.loans = append(s.loans, l)
	}
	f, err := s.mon.layouts.openWindow(m, &s.window)
	if err != nil {
		return err
	}
	s.format, s.offset = f, m.Offset
	s.extractors.of(f.judged).Extract(&s.window, into)
	return nil
}

// seal adds the features of the window that is being judged to what is published with the
// batch, unless another program has published them.
func (s *partition) seal(x *window.Features) {
	if s.format == nil {
		return
	}
	x = s.format.publishable(x, &s.other, &s.window, s.extractors)
	e, err := s.format.features.Seal(x)
	if err != nil { // texts that are too long: the window had the same ones
		s.log.Error().Err(err).Str("machine", x.Machine).Msg("cannot publish the features of a window; it is judged all the same")
		return
	}
	s.sealed = append(s.sealed, envelope.Features(e, envelope.Monitor, s.offset))
}

// show notes how long judging a window took, and shows it, with its samples if they are there.
func (s *partition) show(x *window.Features, r event.Result) {
	s.mon.took.judge.Observe(s.mon.now().Sub(s.opened).Seconds())
	if s.mon.cfg.OnWindow == nil {
		return
	}
	w := &s.window
	if s.format == nil {
		w = &x.Window
	}
	s.mon.cfg.OnWindow(x.Form.Layout(), w, r)
}

// readFeatures reads batches of features, after fence, which sets inFeatures. Features that monitors
// extracted are not for an owner: it reads the windows itself.
func (s *partition) readFeatures(ctx context.Context) error {
	return s.read(ctx, s.features, func() ([]bus.Message, error) { return s.inFeatures.Fetch(ctx, batchFeatures, 0) },
		s.inputs(machine.Read{Log: machine.FeatureLog}, s.featuresInput))
}

// passed tells the owner how far features are read, where that is further than the last one
// it was given.
func (s *partition) passed(ctx context.Context, next, end int64) {
	s.mon.ready.fetched(s.id, ofFeatures, end, s.mon.now())
	s.mon.ready.reached(s.id, ofFeatures, next)
	if next <= s.announced {
		return
	}
	s.announced = next
	_ = s.reply(ctx, machine.FeaturesPassed(next))
}

// windowInput returns a message of the windows topic as the owner takes it.
func (s *partition) windowInput(m *bus.Message) machine.Input {
	in := machine.Input{Offset: m.Offset, At: m.Time}
	old, err := s.homes.check(m)
	switch {
	case envelope.IsLedger(m) && err == nil && m.Damage == nil:
		if l, bad := envelope.LedgerOf(m); bad != nil {
			in.Open = func(*window.Features) error { return &unreadable{m.Key, fmt.Errorf("monitor: %w", bad)} }
		} else {
			in.Ledger = &l
		}
	case m.Header(envelope.Copied) != nil || old:
	case err != nil:
		in.Open = func(*window.Features) error { return err }
	default:
		in.Open = func(into *window.Features) error { return s.extract(m, into) }
	}
	return in
}

// featuresInput returns what the owner is to know of a message of the features topic.
func (s *partition) featuresInput(m *bus.Message) machine.Input {
	in := machine.Input{Offset: m.Offset, At: m.Time}
	by, _, err := envelope.Origin(m)
	if m.Damage == nil && (fetch.IsAnswer(m) || err == nil && by == envelope.Monitor) {
		return in
	}
	if old, away := s.homes.check(m); old {
		return in
	} else if away != nil {
		in.Open = func(*window.Features) error { return away }
		return in
	}
	in.Open = func(into *window.Features) error {
		s.opened = s.mon.now()
		if s.format = nil; m.Damage == nil && err != nil {
			return &unreadable{m.Key, fmt.Errorf("monitor: %w", err)}
		}
		return s.mon.layouts.openFeatures(m, into)
	}
	return in
}

// readCommands reads batches of commands, after do, which sets inCommands. The topic has as many
// partitions as the windows and the same keys.
func (s *partition) readCommands(ctx context.Context) error {
	return s.read(ctx, s.commands, func() ([]bus.Message, error) { return s.inCommands.Fetch(ctx, batchCommands, 0) }, func(msgs []bus.Message) machine.Reply {
		commands := make(machine.CommandsRead, len(msgs))
		for i := range msgs {
			m := &msgs[i]
			s.raw[letterKey{m.Topic, m.Offset}] = *m
			commands[i] = commandOf(m)
		}
		return commands
	})
}

// receive returns the next value of a channel.
func receive[T any](ctx context.Context, c <-chan T) (v T, err error) {
	select {
	case v = <-c:
		return v, nil
	case <-ctx.Done():
		return v, ctx.Err()
	}
}

// reply gives the owner what came.
func (s *partition) reply(ctx context.Context, r machine.Reply) error {
	select {
	case s.replies <- r:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// commandOf returns a message of the commands topic as the owner takes it.
func commandOf(m *bus.Message) machine.Command {
	if m.Damage != nil {
		return machine.Command{Offset: m.Offset, At: m.Time}
	}
	return machine.Command{Key: m.Key, Value: m.Value, Offset: m.Offset, At: m.Time}
}

// withGrace returns a context that is canceled some time after ctx, so that what
// was begun can be finished.
func withGrace(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return longer, func() { stop(); cancel() }
}

// bounded returns a key that fits a log line: one of a stranger may be megabytes.
func bounded(key string) string { return key[:min(len(key), 256)] }

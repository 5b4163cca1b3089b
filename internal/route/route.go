// Package route delivers the events on tcm.alerts.v1 to receivers outside Flank.
//
// An [Event] is a message of that topic: an alert, an advisory, or the evidence of
// an alert. A [Route] delivers the events that pass its [Filter] to one receiver: a
// topic of Kafka, a webhook, an Alertmanager, a broker of MQTT, mailboxes, or the OPC UA
// server of a PLC. Each route is a consumer group of its own. A slow or dead receiver therefore delays
// neither the judging of windows nor another route, and gets everything, in order for
// each machine, when it is back. The route retries an event until the receiver has it,
// and only then moves its position in the stream. Delivery is at least once; a route
// drops events that it remembers to have delivered. An event always has the same id.
//
// A receiver that will never take an event refuses it. The route sets a refused event
// aside on tcm.dlq.v1 with the reason and continues with the next one.
//
// Alertmanager, MQTT and OPC UA show the state of machines rather than events. When such a
// route gets a partition, it shows the state that monitors keep on tcm.state.v1 and
// skips the events before: a monitor writes the state of a machine in the same
// transaction as its events.
package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
)

// Options are what routes have in common.
type Options struct {
	Bus   bus.Config // where the alerts are
	Group string     // consumer group of the monitors; a route's is Group-route-Name

	// Standing returns the state of the machines whose alerts are in a partition of
	// tcm.alerts.v1, as events: the last alert of each machine and each open advisory.
	Standing func(ctx context.Context, partition int) ([]*Event, error)

	// Aside is for trying a route out while a monitor uses it: where a broker knows
	// programs by name, this one gets another name.
	Aside bool

	// Dial, if not nil, connects to webhooks and Alertmanagers that are reached without
	// TLS. It is for simulations, whose network is in memory.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	Log zerolog.Logger
}

// receiver takes events. It is safe for use by several goroutines.
type receiver interface {
	// deliver returns nil once the receiver has e. An error that wraps a refusal is
	// permanent; one that wraps a later says when to try again.
	deliver(ctx context.Context, e *Event) error
	// probe connects and logs in as deliver does, sends nothing, and says what it
	// found.
	probe(ctx context.Context) (string, error)
	close()
}

// stateReceiver is a receiver that shows the state of machines, open alarms and
// advisories, rather than events.
type stateReceiver interface {
	receiver
	// take adds the machines of a partition, in the state of the events.
	take(partition int, standing []*Event)
	// again shows the state of the machines of a partition.
	again(ctx context.Context, partition int) error
	// every is how often that is needed; 0 means only after take.
	every() time.Duration
	// drop forgets a partition, which another monitor may have now.
	drop(partition int)
}

// steadyReceiver is a receiver that knows of trouble while it still takes events.
type steadyReceiver interface {
	receiver
	unsteady() error
}

// dryReceiver is a receiver that a test must not reach: what it shows makes machines act.
type dryReceiver interface {
	receiver
	// try does what deliver does, without effect, and says what it found.
	try(ctx context.Context) (string, error)
}

// Route takes events to one receiver. Use New, then Run.
type Route struct {
	name    string
	target  string // the kind of receiver, and where it is
	timeout time.Duration
	filter  filter
	to      receiver
	opt     Options
	log     zerolog.Logger

	now   func() time.Time
	sleep func(context.Context, time.Duration) error

	mu    sync.Mutex
	rng   *rand.Rand
	known *memory
	out   outage
	stats stats
}

// New returns a route. It reports a configuration that cannot be used as a
// config.KeyError, whose key begins at the route; nothing is connected yet.
func New(cfg Config, opt Options) (*Route, error) {
	f, to, err := cfg.check()
	if err != nil {
		return nil, err
	}
	h := fnv.New64a()
	h.Write([]byte(cfg.Name))
	r := &Route{
		name: cfg.Name, target: to.target(), timeout: cmp.Or(cfg.Timeout, defaultTimeout), filter: f, opt: opt,
		log: opt.Log.With().Str("route", cfg.Name).Logger(),
		now: time.Now, sleep: sleep, known: newMemory(),
		rng: rand.New(rand.NewPCG(h.Sum64(), uint64(time.Now().UnixNano()))),
	}
	r.stats.partitions = make(map[int]place)
	if r.to, err = to.open(r); err != nil {
		return nil, config.Under(to.key, err)
	}
	if _, ok := r.to.(stateReceiver); ok {
		if err := cfg.checkUnfiltered(to.key); err != nil {
			r.to.close()
			return nil, err
		}
	}
	return r, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// time is the clock of receivers.
func (r *Route) time() time.Time { return r.now() }

// Name returns the name of the route.
func (r *Route) Name() string { return r.name }

// GroupName returns the consumer group of the route.
func (r *Route) GroupName() string { return r.opt.Group + "-route-" + r.name }

// Err returns trouble of the receiver that a person must end, although it takes events: another
// program with its MQTT client id. It is safe for concurrent use.
func (r *Route) Err() error {
	if s, ok := r.to.(steadyReceiver); ok {
		return s.unsteady()
	}
	return nil
}

// Close closes connections. Run must have returned.
func (r *Route) Close() { r.to.close() }

// restartAfter is how long Run waits after an error before it starts again.
const restartAfter = time.Minute

// Run delivers events to the receiver until ctx ends. It logs an error that a retry does
// not change, such as a missing right, and starts again later: a route never ends the
// program whose alerts it delivers.
func (r *Route) Run(ctx context.Context) {
	for {
		err := r.run(ctx)
		if ctx.Err() != nil {
			return
		}
		r.log.Error().Str("event", "route_stopped").Err(err).Msgf("stopped delivering alerts to %s; retrying in %v", r.target, restartAfter)
		if r.sleep(ctx, restartAfter) != nil {
			return
		}
	}
}

func (r *Route) run(ctx context.Context) error {
	cfg := r.opt.Bus
	cfg.OnStall = func(s bus.Stall) { r.log.Warn().Str("event", "partition_stalled").Msg(s.String()) }
	cfg.OnGap = func(g bus.Gap) {
		r.log.Error().Str("event", "offset_gap").Msg(g.String() + ": the route is so far behind that " + bus.TopicAlerts + " no longer holds its next event")
	}
	g, err := bus.NewGroup(cfg, r.GroupName(), bus.TopicAlerts)
	if err != nil {
		return err
	}
	began, err := g.BeginAtEnd(ctx)
	if err != nil {
		return err
	}
	dead, err := bus.NewProducer(cfg)
	if err != nil {
		return err
	}
	defer dead.Close()
	r.log.Info().Bool("new", began).Str("group", r.GroupName()).Msg("delivering alerts to " + r.target)
	return g.Run(ctx, func(ctx context.Context, p *bus.Partition) error { return r.serve(ctx, p, dead) })
}

// fetchMost is how many events are read ahead.
const fetchMost = 64

// stream is a partition of the alerts. See bus.Partition.
type stream interface {
	ID() int
	Fetch(ctx context.Context, most int, wait time.Duration) ([]bus.Message, error)
	Commit(ctx context.Context, offset int64) error
	End(ctx context.Context) (int64, error)
}

// sink takes dead letters. See bus.Producer.
type sink interface {
	Send(ctx context.Context, msgs []bus.Message) error
}

// serve delivers the events of a partition to the receiver while this member of the
// group has it.
func (r *Route) serve(ctx context.Context, p stream, dead sink) error {
	defer r.leave(p.ID())
	shown, err := r.show(ctx, p)
	if err != nil {
		return err
	}
	if k, ok := r.to.(stateReceiver); ok {
		defer k.drop(p.ID())
		if every := k.every(); every > 0 {
			ctx, stop := context.WithCancel(ctx)
			var done sync.WaitGroup
			done.Go(func() { r.showEvery(ctx, k, p.ID(), every) })
			defer done.Wait()
			defer stop()
		}
	}
	for {
		msgs, err := p.Fetch(ctx, fetchMost, 0)
		if err != nil {
			return err
		}
		for i, m := range msgs {
			if m.Offset >= shown {
				if err := r.take(ctx, p, dead, m); err != nil {
					return err
				}
			} else if i < len(msgs)-1 {
				continue // the state of its machine was shown
			}
			if err := p.Commit(ctx, m.Offset+1); err != nil {
				return err
			}
		}
		r.caughtUp(p.ID())
	}
}

// show gives a stateReceiver the state of the machines of a partition. It returns the
// offset of the first event that the state may lack.
func (r *Route) show(ctx context.Context, p stream) (shown int64, err error) {
	k, ok := r.to.(stateReceiver)
	if !ok {
		return 0, nil
	}
	shown, err = p.End(ctx) // before the state is read, which then includes all events before it
	if err != nil {
		return 0, err
	}
	all, err := r.opt.Standing(ctx, p.ID())
	if err != nil {
		return 0, fmt.Errorf("route: %w", err)
	}
	standing := all[:0]
	for _, e := range all {
		if r.filter.stops(e) == "" {
			standing = append(standing, e)
		}
	}
	k.take(p.ID(), standing)
	return shown, r.until(ctx, func(ctx context.Context) error { return k.again(ctx, p.ID()) }, nil)
}

func (r *Route) showEvery(ctx context.Context, k stateReceiver, partition int, every time.Duration) {
	for failures, d := 0, every; r.sleep(ctx, d) == nil; {
		one, cancel := context.WithTimeout(ctx, r.timeout)
		d = every
		if err := k.again(one, partition); err != nil && ctx.Err() == nil {
			failures++
			r.failed(err)
			d = max(every, r.wait(failures, 0))
		} else if err == nil {
			failures = 0
			r.succeeded()
		}
		cancel()
	}
}

// take delivers one event to the receiver.
func (r *Route) take(ctx context.Context, p stream, dead sink, m bus.Message) error {
	if m.Damage != nil {
		return r.setAside(ctx, dead, m, m.Damage)
	}
	e, err := open(m)
	if err != nil {
		return r.setAside(ctx, dead, m, err)
	}
	why := r.filter.stops(e)
	if e.Group != r.opt.Group {
		why = "group " + e.Group + " published it" // alerts of monitors on trial are not delivered
	}
	if why != "" {
		r.log.Debug().Str("id", e.ID).Msg("left out: " + why)
		r.count(func(s *stats) { s.skipped++ })
		return nil
	}
	r.mu.Lock()
	repeated := r.known.known[e.ID]
	r.mu.Unlock()
	if repeated {
		r.count(func(s *stats) { s.repeated++ })
		return nil
	}
	r.behind(ctx, p, m)
	defer r.passed(p.ID())
	err = r.until(ctx, func(ctx context.Context) error { return r.to.deliver(ctx, e) }, func() { r.behind(ctx, p, m) })
	switch {
	case refused(err):
		return r.setAside(ctx, dead, m, err)
	case err != nil:
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.add(e.ID)
	r.stats.delivered++
	return nil
}

// until calls f, with a deadline, until it succeeds, is refused, or ctx ends. It
// calls failed, if not nil, after each failure.
func (r *Route) until(ctx context.Context, f func(context.Context) error, failed func()) error {
	for failures := 1; ; failures++ {
		one, cancel := context.WithTimeout(ctx, r.timeout)
		err := f(one)
		cancel()
		if err == nil {
			r.succeeded()
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if refused(err) {
			return err
		}
		r.failed(err)
		if failed != nil {
			failed()
		}
		var asked time.Duration
		if l, ok := errors.AsType[*later](err); ok {
			asked = l.after
		}
		if err := r.sleep(ctx, r.wait(failures, asked)); err != nil {
			return err
		}
	}
}

// setAside keeps a message that no retry brings to the receiver.
func (r *Route) setAside(ctx context.Context, dead sink, m bus.Message, cause error) error {
	reason := fmt.Sprintf("route %s: %v", r.name, cause)
	letter := bus.DeadLetter(m, reason, r.now())
	if m.Damage != nil {
		letter = bus.BareLetter(m, -1, reason, r.now())
	}
	err := dead.Send(ctx, []bus.Message{letter})
	if errors.Is(err, bus.ErrTooLarge) {
		reason += " (and it is too large for this topic: look for it where it lay)"
		err = dead.Send(ctx, []bus.Message{bus.BareLetter(m, len(m.Value), reason, r.now())})
	}
	if err != nil {
		return fmt.Errorf("route: dead letter: %w", err)
	}
	r.log.Error().Str("event", "route_refused").Int("partition", m.Partition).Int64("offset", m.Offset).Str("id", string(m.Header("ce_id"))).
		Err(cause).Msg("the receiver refused an event; it is set aside on " + bus.TopicDead + ": see `monitor dlq ls`")
	r.count(func(s *stats) { s.refused++ })
	return nil
}

// Steps returns what must work for an event to get to the receiver, in the order
// in which to try it. The last of them sends the event, past Kafka and past the
// filter; with a nil event there is none that sends.
func (r *Route) Steps(e *Event) []bus.Step {
	steps := []bus.Step{
		{Name: "route", Run: func(context.Context) (string, error) { return r.name + " goes to " + r.target, nil }},
		{Name: "connect", Run: func(ctx context.Context) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, r.timeout)
			defer cancel()
			return r.to.probe(ctx)
		}},
	}
	if e == nil {
		return steps
	}
	return append(steps,
		bus.Step{Name: "filter", Run: func(context.Context) (string, error) {
			f := r.filter
			f.Machines = nil // the test is about none
			if why := f.stops(e); why != "" {
				return "an alert like this would be left out: " + why + "; the test is sent nevertheless", nil
			}
			return fmt.Sprintf("a tool's alarm of severity %s passes now", e.Severity), nil
		}},
		bus.Step{Name: "send", Run: func(ctx context.Context) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, r.timeout)
			defer cancel()
			if d, ok := r.to.(dryReceiver); ok {
				return d.try(ctx)
			}
			began := r.now()
			if err := r.to.deliver(ctx, e); err != nil {
				if refused(err) {
					return "", fmt.Errorf("refused permanently: %w: an alert would be set aside on %s", err, bus.TopicDead)
				}
				return "", fmt.Errorf("%w: an alert would be retried until the receiver takes it", err)
			}
			return fmt.Sprintf("taken after %v, id %s", r.now().Sub(began).Round(time.Millisecond), e.ID), nil
		}})
}

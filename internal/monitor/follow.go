package monitor

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/internal/web/summary"
)

// Bounds of what a Follower reads.
const (
	followLive    = 10 * time.Minute   // how old a result may be that a page shows as one that came
	followFar     = 20_000             // messages behind, from which on pages do not wait for the store
	followAlerts  = 7 * 24 * time.Hour // alerts that a store in memory begins with
	followResults = 24 * time.Hour     // likewise results
	followAgain   = 15 * time.Second   // after an error
	alertsFirst   = time.Minute        // for which pages wait for alerts
)

// Follower reads the results and alerts of all machines of a group, whichever monitor judges
// them, and gives each to a page and to the store of its history. The store also gets the results
// of models on trial. While a page looks at a machine that this monitor does not judge, the page
// gets the machine's last window.
type Follower struct {
	Bus   bus.Config
	Group string
	Hub   *web.Hub
	Store *summary.Store
	Ends  map[int]int64 // of the topic of alerts: what lies before is on the page already, see Recall
	Log   zerolog.Logger

	far       int64         // replaces followFar in tests
	patience  time.Duration // replaces alertsFirst in tests
	noShadows sync.Once     // of the log line about models on trial
}

// Run follows the topics until ctx ends. It waits for a broker that is away, and goes on after
// errors, which it logs. A file that is damaged is moved aside and filled again.
func (f *Follower) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	l := &looker{bus: f.Bus, hub: f.Hub, layouts: new(layouts), seen: make(map[string]*looked)}
	wg.Go(func() { l.run(ctx) })
	for ctx.Err() == nil {
		err := f.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		f.recover(err)
		select {
		case <-time.After(followAgain):
		case <-ctx.Done():
		}
	}
}

// recover brings the store to where the following can go on after an error.
func (f *Follower) recover(err error) {
	if errors.Is(err, summary.ErrDamaged) {
		notice, again := f.Store.SetAside(err)
		f.Log.Error().Err(again).Str("event", "history_damaged").Msg(notice)
		return
	}
	f.Log.Error().Err(err).Str("event", "history_stopped").
		Msg("the page and its history get no new results: the monitor needs the right Read on " + bus.TopicResults + " and " + bus.TopicAlerts + ", and a disk with free space; trying again")
	if err := f.Store.Forget(); err != nil {
		f.Log.Error().Err(err).Msg("cannot read the history")
	}
}

// follow follows the topics until ctx ends or one of them fails. Alerts come first: they say
// which machines were renamed or retired. A result of a machine that the store does not know waits until alerts were
// read once more. A page does not wait for long: it gets new results on the side.
func (f *Follower) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	since := time.Now().Add(-followLive)
	alerts := &feed{Follower: f, topic: bus.TopicAlerts, since: since, shown: f.Ends, reached: make(chan struct{})}
	results := &feed{Follower: f, topic: bus.TopicResults, since: since, reached: make(chan struct{}), alerts: alerts, shown: make(map[int]int64)}
	errs := make(chan error, 3)
	wg.Go(func() { errs <- alerts.run(ctx) })
	wg.Go(func() {
		select {
		case <-alerts.reached:
		case <-time.After(cmp.Or(f.patience, alertsFirst)):
			results.lookAhead(ctx)
			defer results.endAhead()
			select {
			case <-alerts.reached:
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
		if ctx.Err() == nil {
			errs <- results.run(ctx)
		}
	})
	wg.Go(func() {
		if err := f.followShadows(ctx, alerts); err != nil {
			errs <- err
		}
	})
	return <-errs
}

// followShadows gives the store what models on trial make of windows, until ctx ends. It tries
// again after errors of the broker, which hold up nothing else, and returns errors of the store.
func (f *Follower) followShadows(ctx context.Context, alerts *feed) error {
	for {
		shadows := &feed{Follower: f, topic: bus.TopicShadow, reached: make(chan struct{}), alerts: alerts}
		err := shadows.run(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case shadows.failed != nil:
			return err
		}
		f.noShadows.Do(func() {
			f.Log.Warn().Err(err).Str("event", "history_without_shadows").
				Msg("the pages of models do not get what models on trial make of windows: the monitor needs the right Read on " + bus.TopicShadow + "; trying again")
		})
		select {
		case <-time.After(followAgain):
		case <-ctx.Done():
			return nil
		}
	}
}

// feed reads one topic. It gives every message to the store, and those that are new to the
// page. If the store is far behind, it reads the new ones for the page on the side, until the
// store has come so far.
type feed struct {
	*Follower
	topic   string
	since   time.Time     // what Kafka got before is not new to the page
	reached chan struct{} // closed when the store has caught up for the first time
	caught  bool
	behind  int64     // messages, when it began
	ahead   func()    // ends the reading on the side, and waits for it; nil: there is none
	once    sync.Once // of the log line about messages that cannot be read
	failed  error     // of the store
	alerts  *feed     // that says which machine a name is; nil: this is it

	mu    sync.Mutex
	shown map[int]int64   // offset by partition: what lies before is on the page
	ends  []chan struct{} // closed when the end is reached again, the next one first
}

func (f *feed) run(ctx context.Context) error {
	f.mu.Lock()
	shown := f.shown
	f.shown = make(map[int]int64)
	maps.Copy(f.shown, shown)
	f.mu.Unlock()
	defer f.endAhead()
	return bus.Follow(ctx, f.Bus, f.topic, bus.Following{
		Start: func(p bus.Followed) bus.Start { return f.start(ctx, p) },
		Take:  func(p bus.Followed, msgs []bus.Message, next int64) error { return f.take(ctx, p, msgs, next) },
		Rest:  f.rest,
	})
}

// start says where the store goes on.
func (f *feed) start(ctx context.Context, p bus.Followed) bus.Start {
	if p.Lost {
		f.mu.Lock()
		delete(f.shown, p.Partition)
		f.mu.Unlock()
	}
	next, ok := f.Store.Begin(p.Topic, p.Partition, p.ID, p.Lost)
	at := bus.Start{Offset: next}
	if !ok {
		at.Offset = bus.FirstOffset
		if f.Store.InMemory() {
			at.Since = time.Now().Add(-followResults)
			if p.Topic == bus.TopicAlerts {
				at.Since = time.Now().Add(-followAlerts)
			}
		}
	}
	f.behind += p.End - next
	if f.behind > f.tooFar() && f.ahead == nil && !f.caught && f.topic != bus.TopicShadow {
		f.lookAhead(ctx)
	}
	return at
}

// tooFar returns how many messages the store may be behind while pages wait for it.
func (f *Follower) tooFar() int64 { return cmp.Or(f.far, followFar) }

// lookAhead reads what is new for the page, on the side.
func (f *feed) lookAhead(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	f.ahead = func() { cancel(); wg.Wait() }
	wg.Go(func() {
		_ = bus.Follow(ctx, f.Bus, f.topic, bus.Following{ // the reading for the store meets the same error
			Start: func(bus.Followed) bus.Start { return bus.Start{Offset: bus.FirstOffset, Since: f.since} },
			Take: func(p bus.Followed, msgs []bus.Message, next int64) error {
				f.show(p.Partition, f.open(msgs), next)
				return nil
			},
		})
	})
}

// endAhead ends the reading on the side, if there is one.
func (f *feed) endAhead() {
	if f.ahead != nil {
		f.ahead()
		f.ahead = nil
	}
}

// take folds messages and shows those that are new.
func (f *feed) take(ctx context.Context, p bus.Followed, msgs []bus.Message, next int64) error {
	opened := f.open(msgs)
	if f.alerts != nil && slices.ContainsFunc(opened, f.isNew) {
		if err := f.alerts.again(ctx); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := f.Store.Fold(summary.Position{Topic: p.Topic, Partition: p.Partition, ID: p.ID}, next, opened); err != nil {
		f.failed = err
		return err
	}
	f.show(p.Partition, opened, next)
	if f.behind > f.tooFar() && !f.caught {
		time.Sleep(time.Since(began)) // judging goes first
	}
	return nil
}

// isNew reports whether the store does not know the machine of a result.
func (f *feed) isNew(m summary.Message) bool {
	r := cmp.Or(m.Result, m.Shadow)
	return r != nil && !f.Store.Knows(r.Machine, m.At)
}

// again waits until the feed has come to an end that it asked for after the call: to the second one, for it may be
// asking for the first one now.
func (f *feed) again(ctx context.Context) error {
	f.mu.Lock()
	for len(f.ends) < 2 {
		f.ends = append(f.ends, make(chan struct{}))
	}
	second := f.ends[1]
	f.mu.Unlock()
	select {
	case <-second:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rest is called when the store has caught up.
func (f *feed) rest() error {
	f.mu.Lock()
	if len(f.ends) > 0 {
		close(f.ends[0])
		f.ends = f.ends[1:]
	}
	f.mu.Unlock()
	if !f.caught {
		f.caught = true
		close(f.reached)
	}
	f.endAhead()
	f.failed = f.Store.Tick()
	return f.failed
}

// show gives the page what is new to it.
func (f *feed) show(partition int, msgs []summary.Message, next int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from, known := f.shown[partition]
	for i := range msgs {
		if m := &msgs[i]; m.Offset >= from && (known || !m.At.Before(f.since)) {
			give(f.Hub, m)
		}
	}
	if known {
		f.shown[partition] = max(from, next)
	} else if len(msgs) > 0 && !msgs[len(msgs)-1].At.Before(f.since) {
		f.shown[partition] = next
	}
}

// give gives the page a message.
func give(hub *web.Hub, m *summary.Message) {
	switch {
	case m.Result != nil:
		hub.ResultAt(*m.Result, m.At)
	case m.Alert != nil:
		hub.AlertAt(*m.Alert, m.At)
	case m.Advisory != nil:
		hub.Advisory(*m.Advisory)
	case m.Evidence != nil:
		hub.Evidence(*m.Evidence)
	}
}

// open returns the events in messages that are the group's. Others, and those that are not
// events, are left out.
func (f *feed) open(msgs []bus.Message) []summary.Message {
	opened := make([]summary.Message, 0, len(msgs))
	for i := range msgs {
		m := summary.Message{At: msgs[i].Time, Offset: msgs[i].Offset}
		ours, err := openEvent(&msgs[i], f.Group, &m)
		if err != nil {
			f.once.Do(func() {
				f.Log.Warn().Str("topic", msgs[i].Topic).Int("partition", msgs[i].Partition).Int64("offset", msgs[i].Offset).Err(err).
					Msg("the page leaves out messages that cannot be read as events; a program that is not a monitor has sent them")
			})
			continue
		}
		if ours {
			opened = append(opened, m)
		}
	}
	return opened
}

// championGroup returns the group of the monitors in whose name a shadow judges, which is the
// result's without the model.
func championGroup(r *event.Result) string {
	group, _ := strings.CutSuffix(r.Group, event.ShadowGroup("", r.Model))
	return group
}

// openEvent reads the event in a message, and reports whether it is of the group. Types of later
// releases are of no group.
func openEvent(m *bus.Message, group string, into *summary.Message) (ours bool, err error) {
	typ := string(m.Header("ce_type"))
	switch {
	case m.Topic == bus.TopicShadow && typ == event.ResultType:
		into.Shadow, _, err = history.Event[event.Result](m, group)
		ours = err == nil && championGroup(into.Shadow) == group
	case m.Topic == bus.TopicShadow:
	case m.Topic == bus.TopicResults && typ == event.ResultType:
		into.Result, ours, err = history.Event[event.Result](m, group)
	case typ == event.AlertType:
		into.Alert, ours, err = history.Event[event.Alert](m, group)
	case typ == event.AdvisoryType:
		into.Advisory, ours, err = history.Event[event.Advisory](m, group)
	case typ == event.EvidenceType:
		into.Evidence, ours, err = history.Event[event.Evidence](m, group)
	}
	return ours, err
}

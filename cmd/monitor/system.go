package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/internal/route"
	"github.com/flank-tcm/flank/internal/web"
)

// system tells the page how the monitor and what it depends on are doing.
type system struct {
	c       settings
	bus     bus.Config
	judging atomic.Pointer[monitor.Monitor] // nil until begin: the page is filled before
	routes  []*route.Route

	dead   recent[*web.Dead]
	read   letterCount // readDead alone uses it
	space  recent[*web.Disk]
	models recent[publishedModels]
}

// From when on the page calls something a problem.
const (
	muchLag      = 200 // windows of one partition that wait
	longRouteLag = time.Minute
	littleDisk   = 1 << 30 // bytes that are free
)

const (
	mostLetters = 500 // dead letters that are read at a time: each may have a whole window
	slowEvery   = 30 * time.Second
	slowWithin  = 10 * time.Second
)

// recent is what takes long to find out: it is asked for again in the background when it is
// needed and older than slowEvery.
type recent[T any] struct {
	mu    sync.Mutex
	at    time.Time
	value T
	busy  bool
}

// get returns the last value, the zero value at first, and looks for a newer one with find.
func (r *recent[T]) get(find func(context.Context) (T, error)) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.busy && time.Since(r.at) > slowEvery {
		r.busy = true
		go r.find(find)
	}
	return r.value
}

func (r *recent[T]) find(find func(context.Context) (T, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), slowWithin)
	defer cancel()
	value, err := find(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy, r.at = false, time.Now(); err == nil { // otherwise the last value stays
		r.value = value
	}
}

// begin says which monitor and routes there are. The page is served after it.
func (s *system) begin(m *monitor.Monitor, routes []*route.Route) {
	s.routes = routes
	s.judging.Store(m)
}

// show sets the functions of a page that need the monitor.
func (s *system) show(view *web.Config) {
	view.System = s.system
	view.Facts = func(machine, model string) web.Facts {
		if m := s.judging.Load(); m != nil {
			return m.Facts(machine, model)
		}
		return web.Facts{}
	}
	view.ListModels, view.Model = s.listModels, s.model
}

// system returns how everything is.
func (s *system) system(context.Context) web.System {
	missing := s.judging.Load().Stats().Missing
	now := web.System{Lag: s.judging.Load().Lag(), Missing: &missing, Dead: s.dead.get(s.readDead)}
	for _, r := range s.routes {
		messages, oldest := r.Lag()
		one := web.RouteLag{Name: r.Name(), Lag: messages, Seconds: oldest.Seconds()}
		if err := r.Err(); err != nil {
			one.Problem = err.Error()
		}
		now.Routes = append(now.Routes, one)
	}
	certificates, err := s.bus.Certificates()
	for _, c := range certificates {
		now.Certificates = append(now.Certificates, web.Certificate{File: s.fileOf(c), Days: c.DaysLeft(time.Now())})
	}
	now.Disk = s.space.get(s.disk)
	now.Problems = s.problems(&now, s.judging.Load().Ready(), err)
	return now
}

// fileOf returns the file of a certificate, or whose it is if another computer has the file.
func (s *system) fileOf(c bus.Certificate) string {
	if c.Whose == "client" && s.bus.TLS != nil && s.bus.TLS.Cert != "" {
		return s.bus.TLS.Cert
	}
	return c.Whose + " " + c.Name
}

// problems lists what a person should look at, the worst first.
func (s *system) problems(now *web.System, ready, certificates error) (all []web.Problem) {
	check := "monitor check --config " + s.c.file
	add := func(is bool, command, format string, args ...any) {
		if is {
			all = append(all, web.Problem{What: fmt.Sprintf(format, args...), Command: command})
		}
	}
	add(ready != nil, check, "not ready: %v", ready)
	for _, l := range now.Lag {
		add(l.Windows > muchLag, "monitor run --config "+s.c.file, "partition %d: %d windows wait to be judged: start another monitor, on another computer", l.Partition, l.Windows)
	}
	if d := now.Disk; d != nil {
		add(d.FreeBytes < littleDisk, "du -sh "+s.folders()[0], "%d MB are free on the disk", d.FreeBytes>>20)
	}
	add(certificates != nil, check, "a certificate cannot be read: %v", certificates)
	for _, c := range now.Certificates {
		expires := "has expired"
		if c.Days >= 0 {
			expires = fmt.Sprintf("expires in %.0f days", c.Days)
		}
		add(c.Days < bus.RenewAhead.Hours()/24, check, "certificate %s %s: replace its file, no restart is needed", c.File, expires)
	}
	for _, r := range now.Routes {
		test := fmt.Sprintf("monitor alerts test --config %s --route %s", s.c.file, r.Name)
		add(r.Problem != "", test, "route %s: %s", r.Name, r.Problem)
		add(r.Seconds > longRouteLag.Seconds(), test, "route %s: %d messages wait, the oldest for %v", r.Name, r.Lag, time.Duration(r.Seconds)*time.Second)
	}
	if now.Missing != nil {
		add(*now.Missing > 0, "ingest spool resend --config ingest.yaml --since 1h", "%d windows have not come", *now.Missing)
	}
	if now.Dead != nil && now.Dead.Count > 0 {
		add(true, "monitor dlq ls --config "+s.c.file, "%d messages were set aside: %s", now.Dead.Count, now.Dead.Reasons[0].Reason)
	}
	return all
}

// letterCount are dead letters that were counted.
type letterCount struct {
	next    int64 // offset of the first that was not
	reasons map[string]uint64
}

// readDead counts the dead letters and their reasons: the last mostLetters at first, and then those
// that came since, as long as no more came between two calls. It forgets the count when the topic
// has none of them any more.
func (s *system) readDead(ctx context.Context) (*web.Dead, error) {
	first, end, err := bus.Bounds(ctx, s.bus, bus.TopicDead, 0)
	if err != nil {
		return nil, err
	}
	if first >= s.read.next || end < s.read.next { // also of a topic that was made again
		s.read = letterCount{reasons: make(map[string]uint64)}
	}
	from := max(first, end-mostLetters, s.read.next)
	err = bus.ReadRange(ctx, s.bus, bus.TopicDead, 0, bus.Range{From: from, To: end}, func(m bus.Message) error {
		reason := "not written by a monitor"
		if l, err := bus.OpenLetter(m); err == nil {
			reason = plain.Short(l.Reason, 120)
		}
		s.read.add(reason)
		s.read.next = m.Offset + 1
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.read.next = max(s.read.next, end)
	return s.read.dead(), nil
}

// mostReasons bounds how many reasons are told apart.
const mostReasons = 100

// add counts a letter.
func (l *letterCount) add(reason string) {
	if _, known := l.reasons[reason]; !known && len(l.reasons) >= mostReasons {
		reason = "other reasons"
	}
	l.reasons[reason]++
}

// dead returns the count, the most frequent reason first.
func (l *letterCount) dead() *web.Dead {
	d := new(web.Dead)
	for reason, n := range l.reasons {
		d.Count += n
		d.Reasons = append(d.Reasons, web.DeadReason{Reason: reason, Count: n})
	}
	slices.SortFunc(d.Reasons, func(a, b web.DeadReason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return d
}

// How often the page gets how many windows a second are judged, and over how long that is.
const (
	rateEvery = 5 * time.Second
	rateOver  = 2 // of these
)

// showRate shows how many windows a second the monitor judges, until ctx ends.
func (s *system) showRate(ctx context.Context, hub *web.Hub, status web.Status) {
	tick := time.NewTicker(rateEvery)
	defer tick.Stop()
	var seen []uint64
	for {
		select {
		case <-tick.C:
			if seen = append(seen, s.judging.Load().Stats().Judged); len(seen) <= rateOver {
				continue
			}
			status.WindowsPerSecond = rateOf(seen[0], seen[rateOver], rateOver*rateEvery)
			seen = seen[1:]
			hub.Status(status)
		case <-ctx.Done():
			return
		}
	}
}

// rateOf returns how many windows a second were judged between two counts, in at most three
// digits: pages hear of changes only.
func rateOf(before, now uint64, over time.Duration) float64 {
	rate := float64(now-before) / over.Seconds()
	for unit := 0.1; ; unit *= 10 {
		if rate < 1000*unit {
			return math.Round(rate/unit) * unit
		}
	}
}

// folders returns the folders that the monitor writes to.
func (s *system) folders() (all []string) {
	for _, dir := range []string{s.c.Evidence.Dir, s.c.History.Dir} {
		if dir != "" {
			all = append(all, config.ResolvePath(s.c.file, dir))
		}
	}
	return all
}

// disk returns how full the disk is that the monitor writes to; nil if it writes to none.
func (s *system) disk(context.Context) (*web.Disk, error) {
	var d *web.Disk
	for _, dir := range s.folders() {
		free, used, err := spaceOf(dir)
		if err != nil {
			continue // it is not there yet, or the system does not say
		}
		if d == nil {
			d = &web.Disk{FreeBytes: free}
		}
		d.FreeBytes, d.UsedBytes = min(d.FreeBytes, free), d.UsedBytes+used
	}
	return d, nil
}

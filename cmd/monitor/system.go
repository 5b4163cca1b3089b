package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/route"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/model"
)

// system tells the page how the monitor and what it depends on are doing.
type system struct {
	c       settings
	bus     bus.Config
	judging atomic.Pointer[monitor.Monitor] // nil until begin: the page is filled before
	routes  []*route.Route

	dead   recent[*web.Dead]
	space  recent[*web.Disk]
	models recent[[]web.ModelFacts]
}

// From when on the page calls something a problem.
const (
	muchLag      = 200 // windows of one partition that wait
	longRouteLag = time.Minute
	littleDisk   = 1 << 30 // bytes that are free
)

const (
	mostLetters = 500 // dead letters, of which the page names the reasons
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
		now.Routes = append(now.Routes, web.RouteLag{Name: r.Name(), Lag: messages, Seconds: oldest.Seconds()})
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
	add := func(command, format string, args ...any) {
		all = append(all, web.Problem{What: fmt.Sprintf(format, args...), Command: command})
	}
	if ready != nil {
		add(check, "not ready: %v", ready)
	}
	for _, l := range now.Lag {
		if l.Windows > muchLag {
			add("monitor run --config "+s.c.file, "partition %d: %d windows wait to be judged: start another monitor, on another computer", l.Partition, l.Windows)
		}
	}
	if d := now.Disk; d != nil && d.FreeBytes < littleDisk {
		add("du -sh "+s.folders()[0], "%d MB are free on the disk", d.FreeBytes>>20)
	}
	if certificates != nil {
		add(check, "a certificate cannot be read: %v", certificates)
	}
	for _, c := range now.Certificates {
		switch {
		case c.Days < 0:
			add(check, "certificate %s has expired: replace its file, no restart is needed", c.File)
		case c.Days < bus.RenewAhead.Hours()/24:
			add(check, "certificate %s expires in %.0f days: replace its file, no restart is needed", c.File, c.Days)
		}
	}
	for _, r := range now.Routes {
		if r.Seconds > longRouteLag.Seconds() {
			add(fmt.Sprintf("monitor alerts test --config %s --route %s", s.c.file, r.Name), "route %s: %d messages wait, the oldest for %v", r.Name, r.Lag, time.Duration(r.Seconds)*time.Second)
		}
	}
	if now.Missing != nil && *now.Missing > 0 {
		add("ingest spool resend --config ingest.yaml --since 1h", "%d windows have not come", *now.Missing)
	}
	if now.Dead != nil && now.Dead.Count > 0 {
		add("monitor dlq ls --config "+s.c.file, "%d messages were set aside: %s", now.Dead.Count, now.Dead.Reasons[0].Reason)
	}
	return all
}

// readDead counts the dead letters and their reasons, of the last mostLetters.
func (s *system) readDead(ctx context.Context) (*web.Dead, error) {
	first, end, err := bus.Bounds(ctx, s.bus, bus.TopicDead, 0)
	if err != nil {
		return nil, err
	}
	d, reasons := new(web.Dead), make(map[string]uint64)
	err = bus.ReadRange(ctx, s.bus, bus.TopicDead, 0, bus.Range{From: max(first, end-mostLetters), To: end}, func(m bus.Message) error {
		reason := "not written by a monitor"
		if l, err := bus.OpenLetter(m); err == nil {
			reason = printable(l.Reason, 120)
		}
		d.Count++
		reasons[reason]++
		return nil
	})
	for reason, n := range reasons {
		d.Reasons = append(d.Reasons, web.DeadReason{Reason: reason, Count: n})
	}
	slices.SortFunc(d.Reasons, func(a, b web.DeadReason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return d, err
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

// listModels returns the models of tcm.models.v1 and of the file, and the deployments.
func (s *system) listModels(context.Context) (web.Deployed, error) {
	used, deployments := s.judging.Load().Models()
	published := s.models.get(s.readModels)
	all := web.Deployed{Models: slices.Clone(published), Deployments: deployments}
	for _, m := range used {
		i := slices.IndexFunc(all.Models, func(f web.ModelFacts) bool { return f.ID == m.ID() })
		if i < 0 {
			all.Models = append(all.Models, web.ModelFacts{ID: m.ID(), Title: m.String(), Layout: m.Layout.Name(), File: s.c.Model != ""})
			i = len(all.Models) - 1
		}
		all.Models[i].LimitUM = limitOf(m)
	}
	return all, nil
}

func limitOf(m *model.Model) *float64 {
	if um := monitor.LimitUM(m); um > 0 {
		return &um
	}
	return nil
}

// readModels reads what tcm.models.v1 says of models.
func (s *system) readModels(ctx context.Context) (all []web.ModelFacts, err error) {
	published, err := s.judging.Load().Published(ctx)
	for _, m := range published {
		f := web.ModelFacts{ID: m.ID, Title: m.Title, Layout: m.Layout.Name, By: m.By, Note: m.Note, Key: m.SignedBy}
		if m.Problem != "" {
			f.Title = "cannot be used: " + m.Problem
		}
		if !m.At.IsZero() {
			at := m.At.UTC()
			f.At = &at
		}
		all = append(all, f)
	}
	return all, err
}

// model returns what is known of a model, nil if nothing is.
func (s *system) model(ctx context.Context, id string) (*web.ModelDetail, error) {
	all, err := s.listModels(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all.Models, func(f web.ModelFacts) bool { return f.ID == id })
	if i < 0 {
		return nil, nil
	}
	d := &web.ModelDetail{ModelFacts: all.Models[i]}
	for _, deployment := range all.Deployments {
		if deployment.Champion == id || slices.ContainsFunc(deployment.Shadows, func(s web.Shadow) bool { return s.Model == id }) {
			d.Deployments = append(d.Deployments, deployment)
		}
	}
	used, _ := s.judging.Load().Models()
	if i := slices.IndexFunc(used, func(m *model.Model) bool { return m.ID() == id }); i >= 0 {
		d.Features = used[i].Classifier.Columns()
		for _, c := range used[i].Layout.Channels() {
			d.Channels = append(d.Channels, c.Name)
		}
	}
	return d, nil
}

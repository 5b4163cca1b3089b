package monitor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/model"
)

// fleet is what judges which machine, and who wants to know when that changes. It is safe
// for concurrent use.
type fleet struct {
	mu       sync.Mutex
	set      deploy.Set
	deployed []deployed
	known    map[string]*model.Model                   // by id: of every set so far, and what machines were judged by last
	facts    map[string]func(machine string) web.Facts // of models of known that pages asked for, see FactsOf
	former   []*model.Model                            // of them, those that are not in the set, the newest first
	listen   map[chan machine.Fleet]bool
}

// deployed is a deployment, and what machines are given of it.
type deployed struct {
	deploy.Deployment
	of *machine.Deployment
}

func newFleet(set deploy.Set) *fleet {
	f := &fleet{known: make(map[string]*model.Model), facts: make(map[string]func(string) web.Facts), listen: make(map[chan machine.Fleet]bool)}
	f.deploy(set, nil)
	return f
}

// byRank returns the models of a set in the order of their importance: champions first, of them
// the one that has been champion the longest, then shadows.
func byRank(set deploy.Set) (all []*model.Model) {
	ds := set.Deployments()
	slices.SortStableFunc(ds, func(a, b deploy.Deployment) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Champion.ID(), b.Champion.ID()))
	})
	seen := make(map[string]bool)
	add := func(m *model.Model) {
		if !seen[m.ID()] {
			seen[m.ID()], all = true, append(all, m)
		}
	}
	for _, d := range ds {
		add(d.Champion)
	}
	for _, d := range ds {
		for _, s := range d.Shadows {
			add(s.Model)
		}
	}
	return all
}

// mostFormer is of how many models that are not deployed any more features are extracted.
const mostFormer = 256

// formerly returns the models that are not deployed any more once a set counts, the newest first.
// Machines may still be judged by them. The caller holds f.mu.
func (f *fleet) formerly(set deploy.Set) (former []*model.Model) {
	seen := make(map[string]bool)
	for _, m := range set.Models() {
		seen[m.ID()] = true
	}
	for _, m := range slices.Concat(f.set.Models(), f.former) {
		if !seen[m.ID()] {
			seen[m.ID()], former = true, append(former, m)
		}
	}
	return former
}

// deploy makes another set count but for the shadows with these ids, and lets every listener
// know. It returns the deployments that count.
func (f *fleet) deploy(set deploy.Set, without map[string]bool) []deployed {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.former = f.formerly(set)
	f.set, f.deployed = set, nil
	known := maps.Clone(f.known) // machine.Fleets that were handed out keep theirs
	for _, m := range set.Models() {
		known[m.ID()] = m
	}
	f.known = known
	for _, d := range set.Deployments() {
		of := &machine.Deployment{Champion: d.Champion, Now: d.Now}
		if d.Alarm != nil {
			of.Alarm = *d.Alarm
		}
		d.Shadows = slices.DeleteFunc(slices.Clone(d.Shadows), func(s deploy.Shadow) bool { return without[s.Model.ID()] })
		for _, s := range d.Shadows {
			of.Shadows = append(of.Shadows, machine.Shadow{Model: s.Model, Until: s.Until})
		}
		f.deployed = append(f.deployed, deployed{d, of})
	}
	now := f.machines()
	for c := range f.listen {
		select {
		case <-c: // it has not looked at the one before
		default:
		}
		c <- now
	}
	return f.deployed
}

// machines returns what judges which machine by now. The caller holds f.mu.
func (f *fleet) machines() machine.Fleet {
	all, known := f.deployed, f.known
	var named []string
	for _, d := range all {
		if name, one := d.For.One(); one && !slices.Contains(named, name) {
			named = append(named, name)
		}
	}
	return machine.Fleet{
		Named: named,
		Of:    func(name, layout string) *machine.Deployment { return find(all, name, layout).of },
		Model: func(id string) *model.Model { return known[id] },
	}
}

// find returns the deployment of a machine, the zero value if there is none. Without a layout
// it returns the first for any.
func find(all []deployed, name, layout string) deployed {
	for _, d := range all {
		if (layout == "" || d.Layout == layout) && d.For.Match(name) {
			return d
		}
	}
	return deployed{}
}

// follow returns what judges which machine by now, and a channel that gets it when that
// changes, until stop is called.
func (f *fleet) follow() (now machine.Fleet, changed <-chan machine.Fleet, stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := make(chan machine.Fleet, 1)
	f.listen[c] = true
	return f.machines(), c, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.listen, c)
	}
}

// missing returns the ids among these of models that are not known.
func (f *fleet) missing(ids []string) (unknown []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		if id != "" && f.known[id] == nil && !slices.Contains(unknown, id) {
			unknown = append(unknown, id)
		}
	}
	return unknown
}

// learn makes a model known that judged machines last, before a champion that waits for the
// next tool.
func (f *fleet) learn(m *model.Model) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known = maps.Clone(f.known)
	f.known[m.ID()] = m
	f.former = append([]*model.Model{m}, f.former...)
	f.former = f.formerly(f.set)
}

// current returns what judges which machine by now.
func (f *fleet) current() machine.Fleet {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.machines()
}

// runDeployed judges by what tcm.models.v1 deploys, once it has been read.
func (m *Monitor) runDeployed(ctx context.Context, serve func(context.Context, *bus.Partition) error) error {
	g, ctx := errgroup.WithContext(ctx)
	ready := make(chan struct{})
	g.Go(func() error { return m.followModels(ctx, func() { close(ready) }) })
	g.Go(func() error {
		select {
		case <-ready:
			return m.group.Run(ctx, serve)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return g.Wait()
}

// followModels follows tcm.models.v1 until ctx ends. It calls ready once, when it has read all
// that is there.
func (m *Monitor) followModels(ctx context.Context, ready func()) error {
	var once sync.Once
	return deploy.Follow(ctx, m.cfg.Bus, m.cfg.Keys, func(v deploy.View) {
		defer once.Do(ready)
		for _, r := range v.Refused {
			m.cfg.Log.Warn().Str("event", "deployment_refused").Msg(r.String())
		}
		for _, d := range m.deploy(v.Set) {
			ev := m.cfg.Log.Info()
			if d.Unsigned {
				ev = m.cfg.Log.Warn().Bool("unsigned", true)
			}
			ev.Str("event", "deployed").Stringer("for", d.For).Str("layout", d.Layout).Str("model", d.Champion.ID()).Int("shadows", len(d.Shadows)).Str("by", d.By).Msg("a model is deployed")
		}
	})
}

// deploy makes another set count. Windows then give the features that all its models take
// together. A model that takes others is named in the log. It returns the deployments that count.
func (m *Monitor) deploy(set deploy.Set) []deployed {
	m.deploying.Lock()
	defer m.deploying.Unlock()
	without := make(map[string]bool)
	for _, r := range m.extractFor(set) {
		without[r.model.ID()] = true
		m.cfg.Log.Warn().Err(r.why).Str("event", "deployment_refused").Str("model", r.model.ID()).
			Msg("a model cannot judge by what is extracted for the other models of its layout: it does not judge as a shadow, and as a champion the windows of its machines are refused")
	}
	return m.fleet.deploy(set, without)
}

// extractFor lets windows give the features that the models of a set and former ones take. It
// returns the models of the set that take others.
func (m *Monitor) extractFor(set deploy.Set) []unfit {
	m.fleet.mu.Lock()
	former := m.fleet.formerly(set)
	m.fleet.mu.Unlock()
	return m.layouts.set(byRank(set), former[:min(len(former), mostFormer)]...)
}

// learn makes a model known that judged machines last.
func (m *Monitor) learn(by *model.Model) {
	m.deploying.Lock()
	defer m.deploying.Unlock()
	m.fleet.learn(by)
	m.fleet.mu.Lock()
	set := m.fleet.set
	m.fleet.mu.Unlock()
	m.extractFor(set)
}

// learnModels reads the models that machines were judged by last from tcm.models.v1, unless
// they are known. Of one that is not there any more, machines do without.
func (m *Monitor) learnModels(ctx context.Context, ids []string) error {
	unknown := m.fleet.missing(ids)
	if len(unknown) == 0 || m.cfg.Keys == nil {
		return nil
	}
	topic, err := m.cfg.readModels(ctx)
	if err != nil {
		return fmt.Errorf("monitor: models: %w", err)
	}
	for _, id := range unknown {
		by, err := topic.Model(ctx, id)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			m.cfg.Log.Warn().Err(err).Str("model", id).Msg("the model that judged last cannot be read: machines go on with the one that is deployed")
			continue
		}
		m.learn(by)
	}
	return nil
}

// readModels reads what is on tcm.models.v1 by now.
func (c *Config) readModels(ctx context.Context) (*deploy.Topic, error) {
	keys, err := c.Keys()
	if err != nil {
		return nil, err
	}
	topic := deploy.NewTopic(c.Bus, keys)
	_, err = topic.CatchUp(ctx)
	return topic, err
}

// showModels shows which models judge the machines of the partition.
func (s *partition) showModels() {
	if s.mon.cfg.OnModels == nil {
		return
	}
	s.owner.Machines(func(m *machine.Machine) {
		var show web.Models
		show.Now, show.Next = m.Judges()
		show.Shadows = m.Shadows()
		show.Unsigned = s.mon.fleet.unsigned(m.Machine, m.Layout)
		s.mon.cfg.OnModels(m.Machine, show)
	})
}

// unsigned reports whether the deployment of a machine was accepted without a signature.
func (f *fleet) unsigned(name, layout string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return find(f.deployed, name, layout).Unsigned
}

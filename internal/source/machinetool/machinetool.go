// Package machinetool asks the control of a machine which tool is in, what it cuts, by which
// programme and how fast, for sensors that do not know it.
//
// A control answers by MTConnect ([Agent]) or OPC UA ([Server]). [Follow] asks it again and again and applies
// what is new to a [feed.Setting]. The windows of a machine are never held back by its
// control: while the control does not answer, the tool stays as it was.
package machinetool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/flank-tcm/flank/internal/source/feed"
)

// Items names what is asked for. An empty one is not asked for.
type Items struct {
	Tool         string `yaml:"tool"`
	Hole         string `yaml:"hole"`
	SpindleSpeed string `yaml:"spindle_speed"`
	FeedRate     string `yaml:"feed_rate"`
	Programme    string `yaml:"programme"`
	Material     string `yaml:"material"`
}

// Check reports that nothing is asked for.
func (i Items) Check() error {
	if i == (Items{}) {
		return errors.New("nothing is asked for: set tool, hole, spindle_speed, feed_rate, programme or material")
	}
	return nil
}

// named returns the items that are asked for, with the keys of the configuration.
func (i Items) named() (asked []struct{ key, item string }) {
	for _, a := range []struct{ key, item string }{
		{"tool", i.Tool}, {"hole", i.Hole}, {"spindle_speed", i.SpindleSpeed},
		{"feed_rate", i.FeedRate}, {"programme", i.Programme}, {"material", i.Material},
	} {
		if a.item != "" {
			asked = append(asked, a)
		}
	}
	return asked
}

// Reading is what a control says. What is empty or 0 is not known.
type Reading struct {
	Tool, Hole          string
	SpindleSpeed        float64 // rev/min
	FeedRate            float64 // mm/min
	Programme, Material string

	Problem error // why something that was asked for is not known; the rest holds. nil if nothing is wrong
}

// Describe says in one line what is known of tool, hole and spindle speed, and of the others that
// were asked for.
func (r Reading) Describe(asked Items) string {
	text := fmt.Sprintf("tool %s, hole %s, spindle speed %s", quoted(r.Tool), quoted(r.Hole), measured(r.SpindleSpeed, "rev/min"))
	if asked.FeedRate != "" {
		text += ", feed rate " + measured(r.FeedRate, "mm/min")
	}
	if asked.Programme != "" {
		text += ", programme " + quoted(r.Programme)
	}
	if asked.Material != "" {
		text += ", material " + quoted(r.Material)
	}
	return text
}

func measured(v float64, unit string) string {
	if v == 0 {
		return "not known"
	}
	return fmt.Sprintf("%v %s", v, unit)
}

func quoted(s string) string {
	if s == "" {
		return "not known"
	}
	return fmt.Sprintf("%q", s)
}

// Config says how a control is followed.
type Config struct {
	// Read asks the control once. It must return when its context ends.
	Read    func(context.Context) (Reading, error)
	Items   Items
	Setting *feed.Setting // what the readings are applied to

	Interval time.Duration // between two readings; 0: 1 s
	Timeout  time.Duration // of a reading, and how long the last one holds; 0: 10 s

	// Notify, if not nil, hears what a person should know of: each change, and the first
	// of several failures in a row. It must not block.
	Notify func(feed.Notice)
	Peer   string // the control, in notices
}

// Stats counts what Follow did.
type Stats struct {
	Readings uint64 // that the control answered
	Failures uint64 // readings that failed
	Changes  uint64 // of the context
	Stale    bool   // no reading for Config.Timeout: all that was asked for, but the tool, is not known
}

// Add returns the counts of s and, after it, next. Whether the last reading is stale is
// next's.
func (s Stats) Add(next Stats) Stats {
	return Stats{s.Readings + next.Readings, s.Failures + next.Failures, s.Changes + next.Changes, next.Stale}
}

// Follower applies what a control says. Start one by Follow, and close it.
type Follower struct {
	cfg  Config
	stop context.CancelFunc
	wg   sync.WaitGroup

	// Of the goroutine that reads.
	named  bool   // a notice said that samples name their tool
	noTool bool   // a notice said that the control names no tool
	said   string // the notice of what is wrong; empty if nothing is
	last   time.Time

	mu    sync.Mutex
	stats Stats
}

// Follow reads the control until the Follower is closed.
func Follow(cfg Config) *Follower {
	cfg.Interval, cfg.Timeout = cmp.Or(cfg.Interval, defaultInterval), cmp.Or(cfg.Timeout, defaultTimeout)
	ctx, stop := context.WithCancel(context.Background())
	f := &Follower{cfg: cfg, stop: stop, last: time.Now()}
	f.wg.Go(func() {
		tick := time.NewTicker(cfg.Interval)
		defer tick.Stop()
		for ctx.Err() == nil {
			f.step(ctx)
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return f
}

// What a Config has where it says nothing.
const (
	defaultInterval = time.Second
	defaultTimeout  = 10 * time.Second
)

// Close ends the reading. It never fails.
func (f *Follower) Close() {
	f.stop()
	f.wg.Wait()
}

// Stats returns the counts. It is safe for concurrent use.
func (f *Follower) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stats
}

// step asks once and applies the answer.
func (f *Follower) step(ctx context.Context) {
	one, cancel := context.WithTimeout(ctx, f.cfg.Timeout)
	r, err := f.cfg.Read(one)
	cancel()
	if ctx.Err() != nil {
		return
	}
	wrong := "the machine's control cannot be read: windows keep the tool they have, all else that it says is not known after " + f.cfg.Timeout.String()
	if err == nil {
		wrong = "a part of what the machine's control says cannot be used"
		f.count(func(s *Stats) { s.Readings++; s.Stale = false })
		f.last = time.Now()
		err = errors.Join(f.apply(r), r.Problem)
	} else if time.Since(f.last) >= f.cfg.Timeout || errors.Is(err, errStandsStill) {
		err = errors.Join(err, f.expire())
	}
	switch {
	case err != nil:
		f.count(func(s *Stats) { s.Failures++ })
		if f.said != wrong {
			f.notify(wrong, err)
		}
		f.said = wrong
	case f.said != "":
		f.said = ""
		f.notify("the machine's control answers, and nothing is wrong any more", nil)
	}
}

// expire forgets what the control said, once. The tool stays: a control that is away
// has not changed it.
func (f *Follower) expire() error {
	if f.Stats().Stale {
		return nil
	}
	f.count(func(s *Stats) { s.Stale = true })
	return f.change(f.difference(Reading{}, false))
}

// apply makes a reading true.
func (f *Follower) apply(r Reading) error {
	if f.cfg.Items.Tool != "" && (r.Tool == "") != f.noTool {
		f.noTool = r.Tool == ""
		if f.noTool {
			f.notify("the machine's control does not know which tool is in: windows keep the tool they have", nil)
		}
	}
	err := f.change(f.difference(r, f.cfg.Items.Tool != ""))
	if errors.Is(err, feed.ErrNamed) {
		if !f.named {
			f.named = true
			f.notify("the machine's samples name their tool: the tool of the control is not used", err)
		}
		return f.change(f.difference(r, false))
	}
	if err == nil && r.Tool != "" {
		f.named = false
	}
	return err
}

// difference returns what of a reading is not true yet, and what the control has named with it, if its tool
// counts. A tool or hole that was named in another way stays until the control names another one than
// before: one that it names again is not new, also after it was away, and after a restart. What it does not
// know any more, and named itself, is not known. All else that is asked for is the control's.
func (f *Follower) difference(r Reading, tool bool) (c feed.Change, by feed.Named) {
	now, before := f.cfg.Setting.Context(), f.cfg.Setting.Control()
	by = before
	if tool && r.Tool != "" {
		if by.Tool = r.Tool; r.Tool != before.Tool && r.Tool != now.Tool {
			c.Tool = &r.Tool
		}
	}
	if f.cfg.Items.Hole != "" {
		by.Hole = cmp.Or(r.Hole, before.Hole)
		fresh := r.Hole != now.Hole && (r.Hole != before.Hole || now.Hole == "")
		if r.Hole == "" {
			fresh = now.Hole != "" && now.Hole == before.Hole
		}
		if fresh || c.Tool != nil {
			c.Hole = &r.Hole
		}
	}
	another := c.Tool != nil
	c.SpindleSpeed = stated(f.cfg.Items.SpindleSpeed, &r.SpindleSpeed, another || differs(r.SpindleSpeed, now.SpindleSpeed))
	c.FeedRate = stated(f.cfg.Items.FeedRate, &r.FeedRate, another || differs(r.FeedRate, now.FeedRate))
	c.Programme = stated(f.cfg.Items.Programme, &r.Programme, another || r.Programme != now.Programme)
	c.Material = stated(f.cfg.Items.Material, &r.Material, another || r.Material != now.Material)
	return c, by
}

// stated returns a value of an item that is asked for, if it is news.
func stated[T any](item string, value *T, news bool) *T {
	if item == "" || !news {
		return nil
	}
	return value
}

// differs reports whether a spindle speed or a feed rate is another one: a measured speed is
// never the same twice.
func differs(a, b float64) bool { return math.Abs(a-b) > 0.005*b || (a == 0) != (b == 0) }

// change applies c, and keeps what the control has named.
func (f *Follower) change(c feed.Change, by feed.Named) error {
	now, err := f.cfg.Setting.ApplyControl(c, by)
	if err != nil || c == (feed.Change{}) {
		return err
	}
	f.count(func(s *Stats) { s.Changes++ })
	if c == (feed.Change{FeedRate: c.FeedRate}) {
		return nil // a feed rate changes several times in each cut
	}
	r := Reading{
		Tool: now.Tool, Hole: now.Hole, SpindleSpeed: now.SpindleSpeed, FeedRate: now.FeedRate, Programme: now.Programme, Material: now.Material,
	}
	f.notify("context: "+r.Describe(f.cfg.Items), nil)
	return nil
}

func (f *Follower) count(add func(*Stats)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	add(&f.stats)
}

func (f *Follower) notify(text string, err error) {
	if f.cfg.Notify != nil {
		f.cfg.Notify(feed.Notice{Text: text, Peer: f.cfg.Peer, Err: err})
	}
}

// reading makes a Reading of texts, which the keys of the configuration name. What cannot be used
// is not known. A spindle that turns backwards turns as fast, and so does an axis.
func reading(texts map[string]string) (r Reading) {
	var errs []error
	for _, a := range []struct {
		key, unit string // the unit of a number
		text      *string
		number    *float64
		change    func(text string, v float64) feed.Change
	}{
		{"tool", "", &r.Tool, nil, func(s string, _ float64) feed.Change { return feed.Change{Tool: &s} }},
		{"hole", "", &r.Hole, nil, func(s string, _ float64) feed.Change { return feed.Change{Hole: &s} }},
		{"programme", "", &r.Programme, nil, func(s string, _ float64) feed.Change { return feed.Change{Programme: &s} }},
		{"material", "", &r.Material, nil, func(s string, _ float64) feed.Change { return feed.Change{Material: &s} }},
		{"spindle_speed", "rev/min", nil, &r.SpindleSpeed, func(_ string, v float64) feed.Change { return feed.Change{SpindleSpeed: &v} }},
		{"feed_rate", "mm/min", nil, &r.FeedRate, func(_ string, v float64) feed.Change { return feed.Change{FeedRate: &v} }},
	} {
		text, v, err := texts[a.key], 0.0, error(nil)
		if text == "" {
			continue
		}
		if a.number != nil {
			v, err = strconv.ParseFloat(text, 64)
			v = math.Abs(v)
		}
		if err != nil {
			err = fmt.Errorf("%s: %.40q is not a number: name an item that is one, in %s", a.key, text, a.unit)
		} else {
			err = a.change(text, v).Check()
		}
		switch {
		case err != nil:
			errs = append(errs, err)
		case a.number != nil:
			*a.number = v
		default:
			*a.text = text
		}
	}
	r.Tool, _ = feed.ToolName(r.Tool) // it was checked
	r.Problem = errors.Join(errs...)
	return r
}

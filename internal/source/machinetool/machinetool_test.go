package machinetool

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flank-tcm/flank/internal/source/feed"
)

// control answers what the test says.
type control struct {
	t   *testing.T
	set *feed.Setting
	f   *Follower

	mu      sync.Mutex
	says    Reading
	away    error
	notices []string
}

func (c *control) read(ctx context.Context) (Reading, error) {
	c.mu.Lock()
	r, err := c.says, c.away
	c.mu.Unlock()
	if errors.Is(err, errHangs) {
		<-ctx.Done()
		err = ctx.Err()
	}
	return r, err
}

// errHangs stands for a control that takes the question, and never answers.
var errHangs = errors.New("hangs")

// say changes what the control answers.
func (c *control) say(r Reading, away error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.says, c.away = r, away
}

// follow follows a control whose answers the test changes between two seconds.
func follow(t *testing.T, items Items) *control {
	t.Helper()
	set, err := feed.OpenSetting(filepath.Join(t.TempDir(), "context.json"))
	if err != nil {
		t.Fatal(err)
	}
	c := &control{t: t, set: set}
	c.start(items)
	return c
}

func (c *control) start(items Items) {
	c.f = Follow(Config{Read: c.read, Items: items, Setting: c.set, Notify: func(n feed.Notice) {
		text := n.Text
		if n.Err != nil {
			text += ": " + n.Err.Error()
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.notices = append(c.notices, text)
	}})
	synctest.Wait()
}

// after lets a time pass and checks what is true then, and how many notices there were.
func (c *control) after(d time.Duration, want Reading, notices ...string) {
	c.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	now := c.set.Context()
	if got := (Reading{Tool: now.Tool, Hole: now.Hole, SpindleSpeed: now.SpindleSpeed, FeedRate: now.FeedRate, Programme: now.Programme, Material: now.Material}); got != want {
		c.t.Errorf("%v, want %v", got, want)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, n := range c.notices {
		if i >= len(notices) || !strings.Contains(n, notices[i]) {
			c.t.Errorf("notices %q, want %q", c.notices, notices)
			break
		}
	}
	if len(c.notices) < len(notices) {
		c.t.Errorf("notices %q, want %q", c.notices, notices)
	}
	c.notices = nil
}

var all = Items{Tool: "t", Hole: "h", SpindleSpeed: "s"}

// The control's tool, hole and speed are used; what has not changed is not written again.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follow(t, all)
		defer c.f.Close()
		c.after(0, Reading{}, "does not know which tool is in")
		c.say(Reading{Tool: "T8", Hole: "O1", SpindleSpeed: 1650}, nil)
		c.after(time.Second, c.says, `context: tool "T8", hole "O1", spindle speed 1650 rev/min`)
		c.say(Reading{Tool: "T8", Hole: "O1", SpindleSpeed: 1650.4}, nil)
		c.after(time.Minute, Reading{Tool: "T8", Hole: "O1", SpindleSpeed: 1650})
		c.say(Reading{Tool: "T9", SpindleSpeed: 900}, nil)
		c.after(time.Second, c.says, `tool "T9", hole not known, spindle speed 900`)
		if s := c.f.Stats(); s.Changes != 2 || s.Failures != 0 || s.Readings < 60 {
			t.Errorf("%+v", s)
		}
		// An agent that has started again knows nothing for a while.
		c.say(Reading{}, nil)
		c.after(time.Second, Reading{Tool: "T9"}, "windows keep the tool they have", `context: tool "T9", hole not known, spindle speed not known`)
		c.say(Reading{Tool: "T9", Hole: "O2", SpindleSpeed: 900}, nil)
		c.after(time.Second, c.says, "context")
	})
}

// Feed rate, programme and material follow the control, too. Changes of the feed rate alone are not
// announced. Another tool, also one that a person names, has what the control says.
func TestFollowMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		items := all
		items.FeedRate, items.Programme, items.Material = "f", "p", "m"
		c := follow(t, items)
		defer c.f.Close()
		r := Reading{Tool: "T8", Hole: "1", SpindleSpeed: 1650, FeedRate: 82.5, Programme: "O1", Material: "42CrMo4"}
		c.say(r, nil)
		c.after(time.Second, r, "does not know which tool", `context: tool "T8", hole "1", spindle speed 1650 rev/min, feed rate 82.5 mm/min, programme "O1", material "42CrMo4"`)
		near := r
		near.FeedRate = 82.6
		c.say(near, nil)
		c.after(time.Minute, r)
		r.FeedRate = 3000
		c.say(r, nil)
		c.after(time.Second, r)
		r.Programme = "O2"
		c.say(r, nil)
		c.after(time.Second, r, `programme "O2"`)
		r.Material = ""
		c.say(r, nil)
		c.after(time.Second, r, `programme "O2", material not known`)
		r.Tool = "T9"
		c.say(r, nil)
		c.after(time.Second, r, `tool "T9"`)
		tool := "spare"
		if _, err := c.set.Apply(feed.Change{Tool: &tool}); err != nil {
			t.Fatal(err)
		}
		r.Tool = tool
		c.after(time.Minute, r, `tool "spare"`)
		c.say(Reading{}, errors.New("connection refused"))
		c.after(time.Minute, Reading{Tool: tool}, "cannot be read", `feed rate not known, programme not known, material not known`)
	})
}

// While the control is away the tool stays, and hole and speed are forgotten after the
// timeout. One notice says so.
func TestFollowAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follow(t, all)
		defer c.f.Close()
		was := Reading{Tool: "T8", Hole: "O1", SpindleSpeed: 1650}
		c.say(was, nil)
		c.after(time.Second, was, "does not know", "context")
		c.say(Reading{}, errors.New("connection refused"))
		c.after(9*time.Second, was, "cannot be read: windows keep the tool they have, all else that it says is not known after 10s: connection refused")
		if c.f.Stats().Stale {
			t.Error("stale too early")
		}
		c.after(2*time.Second, Reading{Tool: "T8"}, "context")
		c.after(time.Hour, Reading{Tool: "T8"})
		if s := c.f.Stats(); !s.Stale || s.Failures < 3000 {
			t.Errorf("%+v", s)
		}
		c.say(Reading{Tool: "T9", Hole: "O1", SpindleSpeed: 1650}, nil)
		c.after(time.Second, c.says, "context", "answers, and nothing is wrong any more")
		if c.f.Stats().Stale {
			t.Error("still stale")
		}
	})
}

// A control that takes the question and never answers has not been read.
func TestFollowHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follow(t, all)
		defer c.f.Close()
		was := Reading{Tool: "T8", Hole: "O1"}
		c.say(was, nil)
		c.after(time.Second, was, "does not know", "context")
		c.say(Reading{Tool: "T9"}, errHangs)
		c.after(12*time.Second, Reading{Tool: "T8"}, "hole not known", "cannot be read")
		if s := c.f.Stats(); !s.Stale || s.Failures != 1 || s.Readings != 2 {
			t.Errorf("%+v", s)
		}
		c.say(was, nil)
		c.after(11*time.Second, was, "context", "nothing is wrong any more")
	})
}

// What a person names stays until the control names something else than before: what it names again is
// not new, also after it was away, and after a restart of the program.
func TestFollowAndPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "context.json")
		c := &control{t: t}
		restart := func() {
			t.Helper()
			var err error
			if c.set, err = feed.OpenSetting(path); err != nil {
				t.Fatal(err)
			}
			c.start(all)
		}
		name := func(change feed.Change) {
			t.Helper()
			if _, err := c.set.Apply(change); err != nil {
				t.Fatal(err)
			}
		}
		restart()
		c.say(Reading{Tool: "T8", Hole: "O1", SpindleSpeed: 1650}, nil)
		c.after(time.Second, c.says, "does not know", "context")
		tool, hole := "spare", "13"
		name(feed.Change{Tool: &tool})
		c.after(time.Minute, Reading{Tool: "spare", Hole: "O1", SpindleSpeed: 1650}, "context")
		name(feed.Change{Hole: &hole})
		mine := Reading{Tool: "spare", Hole: "13", SpindleSpeed: 1650}
		c.after(time.Minute, mine)
		c.f.Close()
		restart()
		c.after(time.Minute, mine)
		c.say(Reading{}, errors.New("connection refused"))
		c.after(time.Minute, Reading{Tool: "spare", Hole: "13"}, "cannot be read", "context")
		c.say(Reading{Tool: "T8", Hole: "O1", SpindleSpeed: 1650}, nil)
		c.after(time.Second, mine, "context", "answers")
		c.say(Reading{}, nil)
		c.after(time.Second, Reading{Tool: "spare", Hole: "13"}, "does not know", "context")
		c.say(Reading{Tool: "T8", Hole: "O2", SpindleSpeed: 1650}, nil)
		c.after(time.Second, Reading{Tool: "spare", Hole: "O2", SpindleSpeed: 1650}, "context")
		c.say(Reading{Tool: "T9", Hole: "O2", SpindleSpeed: 1650}, nil)
		c.after(time.Second, c.says, "context")
		c.f.Close()
		c.say(Reading{Tool: "T10", Hole: "O2", SpindleSpeed: 1650}, nil)
		restart() // the tool was changed meanwhile
		c.after(0, c.says, "context")
		c.f.Close()
	})
}

// What is not asked for is left alone, and a part that is wrong does not hide the rest.
func TestFollowPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follow(t, Items{Tool: "t"})
		defer c.f.Close()
		speed := 700.0
		if _, err := c.set.Apply(feed.Change{SpindleSpeed: &speed}); err != nil {
			t.Fatal(err)
		}
		c.after(time.Second, Reading{SpindleSpeed: 700}, "does not know")
		c.say(Reading{Tool: "T1", Problem: errors.New("hole: none")}, nil)
		c.after(time.Second, Reading{Tool: "T1"}, "context", "a part of what the machine's control says cannot be used: hole: none")
		c.after(time.Minute, Reading{Tool: "T1"})
		c.say(Reading{Tool: "T1"}, nil)
		c.after(time.Second, Reading{Tool: "T1"}, "nothing is wrong any more")
	})
}

// Values that no window may have are left out one by one.
func TestReading(t *testing.T) {
	type texts map[string]string
	for _, c := range []struct {
		texts   texts
		want    Reading
		problem string
	}{
		{texts{"tool": "T1", "hole": "O1", "spindle_speed": "-1650"}, Reading{Tool: "T1", Hole: "O1", SpindleSpeed: 1650}, ""},
		{texts{"feed_rate": "-82.5", "programme": "O1 <bore>", "material": "42CrMo4"}, Reading{FeedRate: 82.5, Programme: "O1 <bore>", Material: "42CrMo4"}, ""},
		{texts{}, Reading{}, ""},
		{texts{"tool": "T\x1b[2J", "hole": "O1", "spindle_speed": "NaN"}, Reading{Hole: "O1"}, "control character"},
		{texts{"programme": "O1\n", "material": "42CrMo4"}, Reading{Material: "42CrMo4"}, "programme: "},
		{texts{"programme": "O1", "material": "\u202e4oMrC24"}, Reading{Programme: "O1"}, "material: "},
		{texts{"material": "\xff"}, Reading{}, "material: "},
		{texts{"tool": "T1", "hole": strings.Repeat("x", 300), "spindle_speed": "1650 rpm"}, Reading{Tool: "T1"}, "at most 256 bytes"},
		{texts{"programme": strings.Repeat("x", 256), "material": strings.Repeat("x", 257)}, Reading{Programme: strings.Repeat("x", 256)}, "at most 256 bytes"},
		{texts{"tool": "T1", "hole": "O1", "spindle_speed": "1e9"}, Reading{Tool: "T1", Hole: "O1"}, "rev/min from 0"},
		{texts{"tool": "T1", "feed_rate": "1e9"}, Reading{Tool: "T1"}, "mm/min from 0"},
		{texts{"feed_rate": "82 mm", "programme": "O1"}, Reading{Programme: "O1"}, `feed_rate: "82 mm" is not a number: name an item that is one, in mm/min`},
	} {
		got := reading(c.texts)
		if p := got.Problem; (p == nil) != (c.problem == "") || p != nil && !strings.Contains(p.Error(), c.problem) {
			t.Errorf("%q: %v, want %q", c.texts, p, c.problem)
		}
		if got.Problem = nil; got != c.want {
			t.Errorf("%q: %+v, want %+v", c.texts, got, c.want)
		}
	}
}

// A control that answers, and has said nothing new for its timeout, is stale at once.
func TestFollowStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follow(t, all)
		defer c.f.Close()
		c.say(Reading{Tool: "T8", Hole: "O1"}, nil)
		c.after(time.Second, c.says, "does not know which tool is in", "context")
		c.say(Reading{}, errStandsStill)
		c.after(time.Second, Reading{Tool: "T8"}, "hole not known", "cannot be read")
		if s := c.f.Stats(); !s.Stale || s.Failures == 0 {
			t.Errorf("%+v", s)
		}
	})
}

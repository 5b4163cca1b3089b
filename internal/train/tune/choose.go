package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/score"
)

// Job is what to choose, and from what.
type Job struct {
	Lives        []Life
	Length, Step time.Duration  // of windows; a step of 0 is the length
	Alarm        alarm.Settings // now: clear, hold times and the rest stay as they are
	Budget       budget

	// NoHours, if not empty, says why it is not known how long a window lasts, and what to
	// do about it. Then Length only serves the alarm's hold times, a budget is of false
	// alarms in all, and the choice has counts instead of times.
	NoHours string

	Workers int // 0: one for each CPU; never changes the choice

	// Progress, if not nil, is called with how many settings were replayed, by one
	// goroutine at a time.
	Progress func(done, total int)
}

// figures is what a replay under some settings gave.
type figures struct {
	Settings alarm.Settings
	False    int     // false alarms
	Hours    float64 // cutting hours; 0 if it is not known how long a window lasts
	Turned   int     // tools that turned
	Found    int     // of them
	Early    int     // of those found
	Chatters bool

	MeanDelay, MostDelay     time.Duration // of tools found
	MeanWindows, MostWindows float64       // the same in judged windows
	delay                    int           // windows, of all tools found
}

// Missed returns how many tools were missed.
func (f figures) Missed() int { return f.Turned - f.Found }

// Rate returns the false alarms per cutting hour; 0 without hours.
func (f figures) Rate() float64 {
	if f.Hours == 0 {
		return 0
	}
	return float64(f.False) / f.Hours
}

// Interval returns the interval of 95 % for the rate, see score.RateInterval.
func (f figures) Interval() (low, high float64) { return score.RateInterval(f.False, f.Hours) }

// Choice is the best settings within a budget, with all that it is compared to.
type Choice struct {
	Budget budget
	Now    figures   // of the settings that there are
	Best   figures   // of the settings chosen
	Within bool      // Best is within the budget; if nothing is, it has the fewest false alarms
	Curve  []figures // the trade-off: with each more false alarms than before, and better

	// Others adds up what becomes of each tool under the settings that all other
	// tools choose. Its Settings are empty. It is nil if less than two tools turn.
	Others *figures

	Counts   []count       // of the tools
	NoHours  string        // as in the job
	Assumed  time.Duration // length of a window for the alarm's hold times, with NoHours
	Settings int           // replayed
}

// Tools returns how many tools there are, and how many of them turn faulty by their
// labels.
func (c *Choice) Tools() (all, turned int) {
	for _, t := range c.Counts {
		if t.Turns() {
			turned++
		}
	}
	return len(c.Counts), turned
}

// Windows adds up the windows of all tools.
func (c *Choice) Windows() (all count) {
	for _, t := range c.Counts {
		all.Healthy, all.UnknownHealthy = all.Healthy+t.Healthy, all.UnknownHealthy+t.UnknownHealthy
		all.Faulty, all.UnknownFaulty = all.Faulty+t.Faulty, all.UnknownFaulty+t.UnknownFaulty
	}
	return all
}

// errData is wrapped by errors that other data would not give.
var errData = errors.New("nothing to tune on")

// ErrNoHours is wrapped by the error of a budget of some time where it is not known how
// long windows last.
var ErrNoHours = errors.New("there are no hours to count false alarms in")

// thresholds are tried: 0.5 is the model's own decision.
var thresholds = []float64{0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999}

// looks are the n that are tried.
var looks = []int{2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64}

// grid returns the settings that are tried: every k from 2 to n that s.Clear
// leaves room for. One window alone never raises an alarm.
func grid(s alarm.Settings) []alarm.Settings {
	var all []alarm.Settings
	for _, n := range looks {
		for k := max(2, s.Clear+1); k <= n; k++ {
			for _, t := range thresholds {
				s.K, s.N, s.Threshold = k, n, t
				all = append(all, s)
			}
		}
	}
	return all
}

// Choose replays all lives under many settings and returns the best within the
// budget. The best misses the fewest tools. Of several it has the least delay in all,
// and of several the fewest false alarms. Of settings as good it takes the k and n
// with the most thresholds, and of these thresholds the one in the middle, which is
// the farthest from being worse.
func Choose(ctx context.Context, j Job) (*Choice, error) {
	j.Step = cmp.Or(j.Step, j.Length)
	if j.Progress == nil {
		j.Progress = func(int, int) {}
	}
	if err := j.Alarm.Check(); err != nil {
		return nil, err
	}
	if j.NoHours != "" && j.Budget.Per != 0 {
		return nil, fmt.Errorf("budget %v: %w: %s; or write a number of false alarms in all of these data, such as %q", j.Budget, ErrNoHours, j.NoHours, number(j.Budget.Alarms))
	}
	r := newReplayer(j.Lives, j.Length, j.Step)
	c := &Choice{Budget: j.Budget, NoHours: j.NoHours, Assumed: j.Length}
	healthy := make([]int, len(j.Lives)) // windows
	for i, l := range j.Lives {
		n := l.count()
		c.Counts, healthy[i] = append(c.Counts, n), n.Healthy-n.UnknownHealthy
	}
	tools, turned := c.Tools()
	if turned == 0 {
		return nil, fmt.Errorf("tune: %w: none of %d tools turns faulty, so that there is nothing to detect: add tools that were used until they were worn", errData, tools)
	}
	settings := grid(j.Alarm)
	c.Settings = len(settings)
	outcomes, err := r.replayAll(ctx, settings, j.Workers, j.Progress)
	if err != nil {
		return nil, err
	}
	t := &replays{Job: j, settings: settings, outcomes: outcomes, healthy: healthy, figures: make([]figures, len(settings))}
	all := t.without(none)
	c.Best, c.Within = t.choose(all)
	c.Curve = curve(all)
	c.Now = t.sum(j.Alarm, r.replay(j.Alarm), none)
	if turned > 1 {
		c.Others = t.others()
	}
	return c, nil
}

// replays are what became of each tool under each of the settings.
type replays struct {
	Job
	settings []alarm.Settings
	outcomes [][]outcome // by settings and tool
	healthy  []int       // windows of each tool in which an alarm can be false
	figures  []figures   // memory that without lends
}

// none leaves no tool out.
const none = -1

// sum adds up what became of all tools but one.
func (t *replays) sum(s alarm.Settings, of []outcome, but int) figures {
	f := figures{Settings: s}
	for i, o := range of {
		if i != but {
			f.add(o, t.healthy[i], t.hour())
		}
	}
	return f.finish(t.Length, t.Step)
}

// hour returns how much cutting time a window counts for, nothing if that is not known.
func (t *replays) hour() time.Duration {
	if t.NoHours != "" {
		return 0
	}
	return t.Step
}

// without returns the figures of all settings over all tools but one, valid until the
// next call.
func (t *replays) without(but int) []figures {
	for i, s := range t.settings {
		t.figures[i] = t.sum(s, t.outcomes[i], but)
	}
	return t.figures
}

// choose returns the best within the budget, or else the one with the fewest false
// alarms.
func (t *replays) choose(all []figures) (chosen figures, within bool) {
	if chosen, within = best(all, t.Budget.allows); !within {
		chosen = fewest(all)
	}
	return chosen, within
}

// others adds up what becomes of each tool under the settings that all other tools
// choose.
func (t *replays) others() *figures {
	f := new(figures)
	for but := range t.Lives {
		chosen, _ := t.choose(t.without(but))
		at := slices.Index(t.settings, chosen.Settings)
		f.add(t.outcomes[at][but], t.healthy[but], t.hour())
	}
	*f = f.finish(t.Length, t.Step)
	return f
}

// add adds what became of a tool with so many healthy windows.
func (f *figures) add(o outcome, healthy int, step time.Duration) {
	f.False += o.falses
	f.Hours += float64(healthy) * step.Hours()
	f.Chatters = f.Chatters || o.chat
	if o.turned {
		f.Turned++
	}
	if o.found {
		f.Found++
		f.delay += o.after
		f.MostDelay = max(f.MostDelay, time.Duration(o.after))
	}
	if o.early {
		f.Early++
	}
}

// finish makes times of windows: n of them one after the other end n−1 steps and a
// length after the first began.
func (f figures) finish(length, step time.Duration) figures {
	if f.MostWindows = float64(f.MostDelay); f.Found > 0 {
		f.MeanWindows = float64(f.delay) / float64(f.Found)
	}
	if f.MostDelay > 0 {
		f.MostDelay = (f.MostDelay-1)*step + length
	}
	if late := f.Found - f.Early; f.Found > 0 {
		f.MeanDelay = (time.Duration(f.delay-late)*step + time.Duration(late)*length) / time.Duration(f.Found)
	}
	return f
}

// better orders by missed tools, delay and false alarms.
func better(a, b figures) int {
	return cmp.Or(cmp.Compare(a.Missed(), b.Missed()), cmp.Compare(a.delay, b.delay), cmp.Compare(a.False, b.False))
}

// allows reports whether the false alarms are within the budget.
func (b budget) allows(f figures) bool {
	if b.Per == 0 {
		return float64(f.False) <= b.Alarms
	}
	return f.Rate() <= b.Rate()
}

// atMost allows a number of false alarms.
func atMost(n int) func(figures) bool { return func(f figures) bool { return f.False <= n } }

// best returns the best figures of those that are allowed, see Choose. It reports
// false if there are none.
func best(all []figures, allowed func(figures) bool) (top figures, ok bool) {
	var tied []figures
	for _, f := range all {
		if f.Chatters || !allowed(f) {
			continue
		}
		if len(tied) > 0 {
			if o := better(f, tied[0]); o > 0 {
				continue
			} else if o < 0 {
				tied = tied[:0]
			}
		}
		tied = append(tied, f)
	}
	if len(tied) == 0 {
		return figures{}, false
	}
	return widest(tied), true
}

// widest returns, of figures in the order of the grid, the one in the middle of the
// thresholds of that k and n which has the most; of several the first.
func widest(tied []figures) figures {
	var most []figures
	for len(tied) > 0 {
		s, n := tied[0].Settings, 1
		for n < len(tied) && tied[n].Settings.K == s.K && tied[n].Settings.N == s.N {
			n++
		}
		if n > len(most) {
			most = tied[:n]
		}
		tied = tied[n:]
	}
	return most[len(most)/2]
}

// fewest returns the best of the figures with the fewest false alarms.
func fewest(all []figures) figures {
	least := slices.MinFunc(all, func(a, b figures) int {
		chat := func(f figures) int {
			if f.Chatters {
				return 1
			}
			return 0
		}
		return cmp.Or(chat(a)-chat(b), cmp.Compare(a.False, b.False))
	})
	top, ok := best(all, atMost(least.False))
	if !ok {
		return least // all chatter
	}
	return top
}

// curve returns the best figures for each number of false alarms at which they get
// better, from the fewest on.
func curve(all []figures) (out []figures) {
	var numbers []int // of false alarms
	for _, f := range all {
		if !f.Chatters {
			numbers = append(numbers, f.False)
		}
	}
	slices.Sort(numbers)
	for _, n := range slices.Compact(numbers) {
		f, ok := best(all, atMost(n))
		if ok && (len(out) == 0 || better(f, out[len(out)-1]) < 0) {
			out = append(out, f)
		}
	}
	return out
}

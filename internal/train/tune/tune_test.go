package tune

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// life reads windows of a second: the score is a digit of tenths, 'x' for 1, '?' for 1
// with the verdict unknown. From the bar on the label is faulty.
func life(script string) Life {
	l, faulty := Life{Tool: "T" + script}, false
	for _, c := range script {
		switch c {
		case '|':
			faulty = true
			continue
		case 'x', '?':
			l.Score = append(l.Score, 1)
		default:
			l.Score = append(l.Score, float64(c-'0')/10)
		}
		l.Faulty = append(l.Faulty, faulty)
		l.Unknown = append(l.Unknown, c == '?')
	}
	return l
}

// unjudged is a life whose faulty windows, n of them, were not judged.
func unjudged(script string, n int) Life {
	l := life(script)
	l.Unjudged, l.Why = n, fmt.Sprintf("%d make its reference", n)
	return l
}

// The words of the package comment, one by one.
func TestReplay(t *testing.T) {
	two := alarm.Settings{K: 2, N: 3, OffHold: 4 * time.Second, Latch: true}
	strict := two
	strict.Threshold = 0.8
	nervous := alarm.Settings{K: 1, N: 1, Latch: true}
	for name, tc := range map[string]struct {
		s      alarm.Settings
		script string
		want   outcome
	}{
		"never turns, never rings":                  {two, "000090000", outcome{}},
		"never turns, rings":                        {two, "0099000", outcome{falses: 1}},
		"found in its second faulty window":         {two, "0000|99", outcome{turned: true, found: true, after: 2}},
		"healthy windows before the turn count too": {two, "0009|99", outcome{turned: true, found: true, after: 1}},
		"missed":                                  {two, "0000|9009", outcome{turned: true}},
		"early: false, and there at the turn":     {two, "0099|99", outcome{falses: 1, turned: true, found: true, early: true}},
		"false and over before the turn":          {two, "99000000000|999", outcome{falses: 1, turned: true, found: true, after: 2, chat: true}},
		"rings again: another false alarm":        {two, "99000000000990", outcome{falses: 2, chat: true}},
		"acknowledged: the same wear rings once":  {two, "00|99999999", outcome{turned: true, found: true, after: 2}},
		"a threshold above: not counted":          {strict, "0000|7777", outcome{turned: true}},
		"a threshold above: counted from it on":   {strict, "0000|7788", outcome{turned: true, found: true, after: 4}},
		"as good as new afterwards: still found":  {two, "00|990000000", outcome{turned: true, found: true, after: 2}},
		"unknown: missed, not left out":           {two, "0000|????", outcome{turned: true}},
		"unknown windows take time":               {two, "00|?9?9", outcome{turned: true, found: true, after: 4}},
		"unknown at the turn: early all the same": {two, "099|?000", outcome{falses: 1, turned: true, found: true, early: true}},
		"unknown is never false":                  {two, "00???", outcome{}},
		"turns where nothing is judged":           {two, "0000|", outcome{turned: true}},
		"nothing is judged at all":                {two, "|", outcome{turned: true}},
		"stands where nothing is judged":          {two, "0099|", outcome{falses: 1, turned: true, found: true, early: true}},
		"three transitions in a minute: chatters": {nervous, "0909", outcome{falses: 2, chat: true}},
	} {
		l := life(tc.script)
		if strings.HasSuffix(tc.script, "|") { // it turns where nothing is judged
			l.Unjudged = 3
		}
		r := newReplayer([]Life{l}, time.Second, time.Second)
		if got := r.replay(tc.s)[0]; got != tc.want {
			t.Errorf("%s: %s gives %+v, want %+v", name, tc.script, got, tc.want)
		}
	}
}

// What one tool leaves behind is nothing to the next, even under the same name.
func TestToolsAreApart(t *testing.T) {
	s := alarm.Settings{K: 2, N: 3, Latch: true}
	r := newReplayer([]Life{{Tool: "T", Score: []float64{0, 1}, Faulty: make([]bool, 2)}, {Tool: "T", Score: []float64{1, 0}, Faulty: make([]bool, 2)}}, time.Second, time.Second)
	if got := r.replay(s); got[0].falses+got[1].falses != 0 {
		t.Errorf("%+v", got)
	}
}

// Windows that overlap: the delay is time, not windows.
func TestDelayOfOverlappingWindows(t *testing.T) {
	f := figures{}
	f.add(outcome{turned: true, found: true, after: 5}, 7200, 500*time.Millisecond)
	f.add(outcome{turned: true, found: true, early: true}, 0, 500*time.Millisecond)
	if f = f.finish(time.Second, 500*time.Millisecond); f.MostDelay != 3*time.Second || f.MeanDelay != 1500*time.Millisecond || f.Hours != 1 {
		t.Errorf("at most %v, mean %v, %v h: five windows that begin every half second last 3 s", f.MostDelay, f.MeanDelay, f.Hours)
	}
}

func drawLives(t *rapid.T) []Life {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Life {
		n := rapid.IntRange(1, 16).Draw(t, "windows")
		turn := rapid.IntRange(0, 24).Draw(t, "turn")
		l := Life{Tool: rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "tool")}
		for i := range n {
			l.Score = append(l.Score, float64(rapid.IntRange(0, 20).Draw(t, "score"))/20)
			l.Faulty = append(l.Faulty, i >= turn)
			l.Unknown = append(l.Unknown, rapid.IntRange(0, 5).Draw(t, "unknown") == 5)
		}
		return l
	}), 1, 4).Draw(t, "lives")
}

// For any lives: nothing that was replayed is within the budget and better than the
// choice. Along the curve false alarms rise, and each step is better than the one
// before. The number of workers changes nothing.
func TestChoiceIsTheBest(t *testing.T) {
	before := looks
	looks = []int{2, 3, 5, 8} // the law is the same, and quicker to see
	t.Cleanup(func() { looks = before })
	rapid.Check(t, func(t *rapid.T) {
		lives := drawLives(t)
		set := alarm.Settings{K: 5, N: 8, OffHold: time.Duration(rapid.SampledFrom([]int{0, 60}).Draw(t, "off")) * time.Second, Latch: true}
		j := Job{Lives: lives, Length: time.Second, Alarm: set, Budget: budget{float64(rapid.IntRange(0, 400).Draw(t, "budget")), time.Hour}, Workers: 1}
		c, err := Choose(t.Context(), j)
		if err != nil {
			if !errors.Is(err, errData) || slices.ContainsFunc(lives, func(l Life) bool { return slices.Contains(l.Faulty, true) }) {
				t.Fatal(err)
			}
			return
		}
		r := newReplayer(lives, time.Second, time.Second)
		any := false
		for _, s := range grid(set) {
			f := figures{}
			for i, o := range r.replay(s) {
				healthy := 0
				for w, faulty := range lives[i].Faulty {
					if !faulty && !lives[i].Unknown[w] {
						healthy++
					}
				}
				f.add(o, healthy, time.Second)
			}
			if f.Chatters || f.Rate() > j.Budget.Rate() {
				continue
			}
			any = true
			if better(f, c.Best) < 0 {
				t.Fatalf("%+v is better than %+v", f, c.Best)
			}
		}
		if any != c.Within || any && (c.Best.Chatters || c.Best.Rate() > j.Budget.Rate()) {
			t.Fatalf("within the budget: %v, chosen %+v", c.Within, c.Best)
		}
		for i := 1; i < len(c.Curve); i++ {
			if a, b := c.Curve[i-1], c.Curve[i]; b.False <= a.False || better(b, a) >= 0 {
				t.Fatalf("curve: %+v, then %+v", a, b)
			}
		}
		j.Workers = 3
		again, err := Choose(t.Context(), j)
		if err != nil || again.Text() != c.Text() || string(again.Plot().SVG()) != string(c.Plot().SVG()) {
			t.Fatalf("%v, or three workers choose otherwise:\n%s%s", err, again.Text(), c.Text())
		}
	})
}

// For any lives and any tool that turns and is never found: with it, no setting finds a
// greater share of the tools that turn, and neither does the choice of as many false
// alarms.
func TestMissedToolNeverHelps(t *testing.T) {
	before := looks
	looks = []int{2, 3, 5, 8}
	t.Cleanup(func() { looks = before })
	rapid.Check(t, func(t *rapid.T) {
		lives := drawLives(t)
		missed := rapid.SampledFrom([]Life{life("|????"), life("00???|??"), life("0000|0000"), unjudged("", 4), unjudged("000", 4), life("|?0?")}).Draw(t, "missed")
		more := append(slices.Clone(lives), missed)
		worse := func(with, without figures) {
			if with.Turned != without.Turned+1 || with.Found*without.Turned > without.Found*with.Turned {
				t.Fatalf("%d of %d found, without a tool that is never found %d of %d", with.Found, with.Turned, without.Found, without.Turned)
			}
		}
		set := alarm.Settings{K: 5, N: 8, Latch: true}
		sum := func(lives []Life, s alarm.Settings) (f figures) {
			for _, o := range newReplayer(lives, time.Second, time.Second).replay(s) {
				f.add(o, 0, 0)
			}
			return f
		}
		for _, s := range grid(set) {
			worse(sum(more, s), sum(lives, s))
		}
		j := Job{Lives: lives, Length: time.Second, Alarm: set, Budget: budget{Alarms: float64(rapid.IntRange(0, 3).Draw(t, "budget"))}, Workers: 1}
		without, err := Choose(t.Context(), j)
		if errors.Is(err, errData) {
			return // no tool turns
		} else if err != nil {
			t.Fatal(err)
		}
		j.Lives = more
		with, err := Choose(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		worse(with.Best, without.Best)
		worse(with.Now, without.Now)
	})
}

// Without the length of a window there are counts, and no hours.
func TestNoHours(t *testing.T) {
	j := Job{Lives: shop(), Length: time.Second, Alarm: alarm.Default, Budget: budget{Alarms: 1}, NoHours: "say window.length"}
	c, err := Choose(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "counts.txt", c.Text())
	golden.Check(t, "counts.svg", c.Plot().SVG())
	j.Budget = budget{1, 8 * time.Hour}
	if _, err := Choose(t.Context(), j); err == nil || err.Error() != `budget 1 per 8h: there are no hours to count false alarms in: say window.length; or write a number of false alarms in all of these data, such as "1"` {
		t.Error(err)
	}
}

// shop is three tools: one that a nervous alarm would ring for, two that turn.
func shop() []Life {
	return []Life{
		life(strings.Repeat("0", 60) + "66" + strings.Repeat("0", 900)),
		life(strings.Repeat("1", 800) + "|" + strings.Repeat("7", 12)),
		life(strings.Repeat("0", 700) + "|" + strings.Repeat("9", 12)),
	}
}

// Scores of 0.6 ring falsely, 0.7 is the least of a faulty window, two windows are
// enough. Without the tool that rings the others choose less, and it rings; without
// the one of 0.7 they choose the middle of more, and miss it.
func TestChoose(t *testing.T) {
	j := Job{Lives: shop(), Length: time.Second, Alarm: alarm.Default, Budget: budget{1, 8 * time.Hour}}
	c, err := Choose(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if b := c.Best; !c.Within || b.False != 0 || b.Found != 2 || b.MostDelay != 2*time.Second || !(b.Settings.Threshold > 0.6 && b.Settings.Threshold <= 0.7) {
		t.Errorf("chosen %+v", b)
	}
	if c.Others == nil || c.Others.Found != 1 || c.Others.Turned != 2 || c.Others.False != 1 {
		t.Errorf("by others %+v", c.Others)
	}
	golden.Check(t, "choice.txt", c.Text())
	golden.Check(t, "choice.svg", c.Plot().SVG())
}

// The notes where the data cannot give what is asked for.
func TestNotes(t *testing.T) {
	if testing.Short() {
		t.Skip("searches settings for each note")
	}
	loud := life(strings.Repeat("9", 100))
	for name, tc := range map[string]struct {
		lives  []Life
		budget budget
		want   []string
	}{
		"nothing within":  {append(shop(), life(strings.Repeat("x", 100))), budget{0, time.Hour}, []string{"NOTHING IS WITHIN THE BUDGET: the fewest false alarms are 1 "}},
		"one tool turns":  {[]Life{shop()[1], loud}, budget{100, time.Hour}, []string{"only one tool turns faulty"}},
		"missed":          {[]Life{life("000|000000"), life("000|999")}, budget{1, time.Hour}, []string{"1 of 2 tools that turn faulty are missed"}},
		"too few hours":   {shop(), budget{1, 8 * time.Hour}, []string{"there must be none in 24 h"}},
		"no hours at all": {[]Life{life("|999"), life("|999")}, budget{1, time.Hour}, []string{"at most ∞ an hour"}},
		"in all":          {shop(), budget{Alarms: 1}, []string{"budget   1: so many false alarms in all of these windows", "\nchosen           1 ", "say that there are at most "}},
		"worn and unknown": {[]Life{life("000|999"), life("0000|????")}, budget{1, time.Hour}, []string{
			"tools    2, of which 2 turn faulty by their labels; 14 windows judged", "\nunknown  28.6 % of 14 windows: 0.0 % of 7 healthy, 57.1 % of 7 faulty",
			"half or more of T0000|???? (50.0 %)", "1 of 2 tools that turn faulty are missed", "the verdict is unknown in each of their faulty windows: T0000|???? (4): ",
		}},
		"worn and never judged": {[]Life{life("000|999"), unjudged("", 20)}, budget{1, time.Hour}, []string{
			"tools    2, of which 2 turn faulty by their labels", "1 of 2 tools that turn faulty are missed", "none of their faulty windows is judged: T (20 make its reference): record tools from their first cut on",
		}},
	} {
		c, err := Choose(t.Context(), Job{Lives: tc.lives, Length: time.Second, Alarm: alarm.Default, Budget: tc.budget})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(c.Text(), want) {
				t.Errorf("%s: no %q in\n%s", name, want, c.Text())
			}
		}
	}
	if _, err := Choose(t.Context(), Job{Lives: []Life{loud}, Length: time.Second, Alarm: alarm.Default}); !errors.Is(err, errData) {
		t.Errorf("no tool turns: %v", err)
	}
}

func TestParseBudget(t *testing.T) {
	for s, want := range map[string]float64{"1 per 8h": 0.125, " 0.5  per 30m ": 1, "0 per 1h": 0, "2 per 1h30m": 4. / 3} {
		if b, err := ParseBudget(s); err != nil || math.Abs(b.Rate()-want) > 1e-12 {
			t.Errorf("%q: %v an hour, %v", s, b.Rate(), err)
		}
	}
	for s, want := range map[string]budget{"1": {Alarms: 1}, " 0 ": {}, "2.5": {Alarms: 2.5}} {
		if b, err := ParseBudget(s); err != nil || b != want {
			t.Errorf("%q: %+v, %v", s, b, err)
		}
	}
	for s, want := range map[string]string{
		"-1": `"-1"`, "two": "or a number", "NaN": `"NaN"`, "": "three words", "1/8h": "three words", "1 in 8h": "three words", "one per 8h": `"one"`, "-1 per 8h": `"-1"`, "NaN per 8h": `"NaN"`, "Inf per 8h": `"Inf"`,
		"1 per 8": `"8"`, "1 per 0h": `"0h"`, "1 per -8h": `"-8h"`, "1 per shift": `"shift"`, "1 per 99999h": `"99999h"`,
	} {
		if _, err := ParseBudget(s); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"1 per 8h"`) {
			t.Errorf("%q: %v lacks %q", s, err, want)
		}
	}
}

// What is read is written so that it is read again as the same.
func FuzzParseBudget(f *testing.F) {
	f.Add("1 per 8h")
	f.Add("2")
	f.Add("0.5 per 1h30m")
	f.Add("1e3 per 1h0m1s")
	f.Add("1 per 2562047h47m16.854775807s")
	f.Fuzz(func(t *testing.T, s string) {
		b, err := ParseBudget(s)
		if err != nil {
			return
		}
		if r := b.Rate(); b.Per != 0 && (!(r >= 0) || math.IsInf(r, 0)) {
			t.Errorf("%q: %v an hour", s, r)
		}
		if again, err := ParseBudget(b.String()); err != nil || again != b {
			t.Errorf("%q is written %q, which is %+v, %v", s, b.String(), again, err)
		}
	})
}

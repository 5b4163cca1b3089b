package alarm

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is the alarms of a machine as docs/concepts/alarms.md draws them: a table of states, windows
// that are all kept and counted again each time, and one rule for what is announced.
type model struct {
	Settings
	masks   map[Change]time.Time // the machine's, and until when
	tools   []*modelTool
	spindle int
	now     time.Time // by Kafka's clock
}

// modelTool is one life of a tool.
type modelTool struct {
	state     string
	announced bool
	calls     []time.Time // of the alarm that is open
	masks     map[Change]time.Time
	windows   []modelWindow
	moved     int // windows before the last move by windows
	raised    int // windows before the alarm was raised, if it is open
}

type modelWindow struct {
	faulty     bool
	start, end time.Time
}

// moves is the diagram: where on (the condition has lasted), off (it is over, and
// has been) and ack lead from each state.
var moves = map[string]map[string]string{
	"normal":       {"on": "raised"},
	"raised":       {"off": "returned", "ack": "acknowledged"},
	"acknowledged": {"off": "normal"},
	"returned":     {"on": "raised", "ack": "normal"},
}

func newModel(s Settings, tools int) *model {
	m := &model{Settings: s, masks: map[Change]time.Time{}}
	for range tools {
		m.tools = append(m.tools, newModelTool())
	}
	return m
}

func newModelTool() *modelTool {
	return &modelTool{state: "normal", masks: map[Change]time.Time{}}
}

// quiet reports whether a tool's alarm may not call.
func (m *model) quiet(tool int) bool {
	return tool != m.spindle || len(m.masks) > 0 || len(m.tools[tool].masks) > 0
}

// lasts returns for how long the number of faulty windows of a tool has been so, up to
// now and since the last move by windows.
func (m *model) lasts(t *modelTool, so func(count int) bool) (d time.Duration, now bool) {
	for i := len(t.windows); i > t.moved; i-- {
		count := 0
		for _, w := range t.windows[max(0, i-m.N):i] {
			if w.faulty {
				count++
			}
		}
		if !so(count) {
			break
		}
		d, now = d+t.windows[i-1].end.Sub(t.windows[i-1].start), true
	}
	return d, now
}

// since returns the start of the faulty windows that led to the alarm: no n windows in
// a row among them are healthy.
func (m *model) since(t *modelTool) (since time.Time) {
	for i, last := t.raised-1, t.raised-1; i >= 0 && last-i < m.N; i-- {
		if t.windows[i].faulty {
			since, last = t.windows[i].start, i
		}
	}
	return since
}

func (m *model) move(tool int, by string) (out []note) {
	t := m.tools[tool]
	to, ok := moves[t.state][by]
	if !ok {
		return nil
	}
	if to == "returned" && !m.Latch {
		to = "normal"
	}
	from := t.state
	t.state = to
	heard := t.announced && !m.quiet(tool)
	switch {
	case by == "ack":
		out = append(out, note{tool, Acknowledged})
	case from == "normal":
		t.raised = len(t.windows)
	case heard && to == "returned":
		out = append(out, note{tool, Returned})
	case heard && to == "raised":
		t.calls = append(t.calls, m.now)
		out = append(out, note{tool, Reactivated})
	}
	if to != "normal" {
		return out
	}
	if t.announced {
		out = append(out, note{tool, Cleared})
	}
	t.announced, t.calls = false, nil
	return out
}

func (m *model) window(tool int, w modelWindow) []note {
	t := m.tools[tool]
	t.windows = append(t.windows, w)
	by, hold := "on", m.OnHold
	so := func(count int) bool { return count >= m.K }
	if t.state == "raised" || t.state == "acknowledged" {
		by, hold = "off", m.OffHold
		so = func(count int) bool { return count <= m.Clear }
	}
	if d, now := m.lasts(t, so); !now || d < hold {
		return nil
	}
	t.moved = len(t.windows)
	return m.move(tool, by)
}

func mask(masks map[Change]time.Time, tool int, c Change, until time.Time) []note {
	if _, there := masks[c]; there && c != Shelved {
		return nil
	}
	masks[c] = until
	return []note{{tool, c}}
}

func unmask(masks map[Change]time.Time, tool int, c, end Change) []note {
	if _, there := masks[c]; !there {
		return nil
	}
	delete(masks, c)
	return []note{{tool, end}}
}

// silent returns until when re_alarm keeps an alarm quiet that has something to announce.
func (m *model) silent(tool int) (until time.Time, silent bool) {
	t := m.tools[tool]
	if t.announced || t.state != "raised" && t.state != "returned" || len(t.calls) == 0 {
		return time.Time{}, false
	}
	return t.calls[len(t.calls)-1].Add(m.ReAlarm), true
}

// announce is the announce rule.
func (m *model) announce() (out []note) {
	t := m.tools[m.spindle]
	until, silent := m.silent(m.spindle)
	if m.quiet(m.spindle) || t.announced || t.state == "normal" || t.state == "acknowledged" || silent && m.now.Before(until) {
		return nil
	}
	t.announced, t.calls = true, append(t.calls, m.now)
	if out = append(out, note{m.spindle, Raised}); t.state == "returned" {
		out = append(out, note{m.spindle, Returned})
	}
	return out
}

// takeOut is a tool that leaves the spindle.
func (m *model) takeOut() (out []note) {
	if t := m.tools[m.spindle]; t.announced {
		t.announced = false
		out = append(out, note{m.spindle, Cleared})
	}
	return out
}

func (m *model) step(c rune, at time.Time) (out []note) {
	m.now = at.Add(skew)
	for i, t := range m.tools {
		if until, there := t.masks[Shelved]; there && !m.now.Before(until) {
			out = append(out, unmask(t.masks, i, Shelved, Unshelved)...)
		}
	}
	out = append(out, m.announce()...)
	in, other := m.spindle, (m.spindle+1)%len(m.tools)
	t, shelf, w := m.tools[in], m.now.Add(5*time.Second), modelWindow{start: at, end: at.Add(time.Second)}
	out = append(out, func() []note {
		switch c {
		case 'h', 'F':
			w.faulty = c == 'F'
			return m.window(in, w)
		case 'g', 'G':
			w.faulty = c == 'G'
			return m.window(other, w)
		case 'A':
			return m.move(in, "ack")
		case 'B':
			return m.move(other, "ack")
		case 'S':
			return mask(t.masks, in, Shelved, shelf)
		case 'U':
			return unmask(t.masks, in, Shelved, Unshelved)
		case 'R':
			return mask(m.tools[other].masks, other, Shelved, shelf)
		case 'r':
			return unmask(m.tools[other].masks, other, Shelved, Unshelved)
		case 'P':
			return mask(t.masks, in, Suppressed, time.Time{})
		case 'p':
			return unmask(t.masks, in, Suppressed, Unsuppressed)
		case 'Q':
			return mask(t.masks, in, OutOfService, time.Time{})
		case 'q':
			return unmask(t.masks, in, OutOfService, InService)
		case 'D':
			return mask(m.masks, noTool, Suppressed, time.Time{})
		case 'd':
			return unmask(m.masks, noTool, Suppressed, Unsuppressed)
		case 'O':
			return mask(m.masks, noTool, OutOfService, time.Time{})
		case 'o':
			return unmask(m.masks, noTool, OutOfService, InService)
		case '1', '2', '3':
			to := int(c - '1')
			if to == in || to >= len(m.tools) {
				return nil
			}
			cleared := m.takeOut()
			m.spindle = to
			return cleared
		case 'T':
			gone := append(unmask(t.masks, in, Shelved, Unshelved), m.takeOut()...)
			m.tools[in] = newModelTool()
			return gone
		}
		return nil
	}()...)
	return append(out, m.announce()...)
}

func (m *model) word(tool int) string {
	for _, c := range []Change{OutOfService, Suppressed, Shelved} {
		_, own := m.tools[tool].masks[c]
		if _, machine := m.masks[c]; own || machine {
			return string(c)
		}
	}
	return m.tools[tool].state
}

// disagrees says what of a tool the bench and the model see differently.
func (m *model) disagrees(b *bench, tool int) string {
	s, t := &b.tools[tool], m.tools[tool]
	if s.Word(b.machine) != m.word(tool) || s.Beneath() != t.state || s.Announced != t.announced {
		return fmt.Sprintf("%s over %s, announced %t; the model: %s over %s, announced %t", s.Word(b.machine), s.Beneath(), s.Announced, m.word(tool), t.state, t.announced)
	}
	until, silent := s.Silent(b.set)
	if want, is := m.silent(tool); silent != is || !until.Equal(want) {
		return fmt.Sprintf("silent %t until %v; the model: %t until %v", silent, until, is, want)
	}
	var since, at time.Time
	if t.state != "normal" {
		since, at = m.since(t), t.windows[t.raised-1].end
	}
	if !s.Since.Equal(since) || !s.At.Equal(at) {
		return fmt.Sprintf("since %v, raised at %v; the model: %v, %v", s.Since, s.At, since, at)
	}
	if err := s.Check(); err != nil {
		return err.Error()
	}
	return ""
}

// laws holds what was announced against promises that name no state of the alarm.
type laws struct {
	up     map[int]bool      // a tool's Raised was announced, and Cleared was not
	called map[int]time.Time // the last call of the alarm that is open
}

// broken says which promise an event has broken, of all that was announced with it.
func (l *laws) broken(b *bench, out []note, now time.Time) string {
	for i, n := range out {
		last := i == len(out)-1
		switch n.change {
		case Raised, Reactivated:
			if l.up[n.tool] != (n.change == Reactivated) {
				return fmt.Sprintf("%v, though its alarm was announced: %v", n, l.up[n.tool])
			}
			if before, ok := l.called[n.tool]; ok && n.change == Raised && now.Before(before.Add(b.set.ReAlarm)) {
				return fmt.Sprintf("%v, %v after the last call", n, now.Sub(before))
			}
			l.up[n.tool], l.called[n.tool] = true, now
		case Cleared:
			if !l.up[n.tool] {
				return fmt.Sprintf("%v, and it was not raised", n)
			}
			l.up[n.tool] = false
		}
		if calls := n.change == Raised || n.change == Reactivated || n.change == Returned; calls && last && b.quiet(n.tool) {
			return fmt.Sprintf("%v, though it is masked or in the magazine", n)
		}
	}
	for i := range b.tools {
		if b.tools[i].Beneath() == "normal" {
			delete(l.called, i) // the next one is another incident
		}
		if i != b.spindle && l.up[i] {
			return fmt.Sprintf("tool %d is in the magazine, and its alarm is announced", i+1)
		}
	}
	before, ok := l.called[b.spindle]
	if calls := b.tools[b.spindle].Word(b.machine) == "raised"; calls && !l.up[b.spindle] && !(ok && now.Before(before.Add(b.set.ReAlarm))) {
		return "the alarm calls, and was not announced"
	}
	return ""
}

// A few tools in turn, drawn as pieces of a script of bench.step. Half of the days have no masks,
// which would hide most of what happens.
func drawScript(t *rapid.T) string {
	words := strings.Fields("h F hh hhh FF FFF hhh FFF hhhhh FFFFF g G gg GG ggg GGG A B 1 2 3 1 2 3 21 2-1 23 hhFFA FFA - ----- T")
	if rapid.Bool().Draw(t, "masks") {
		words = append(words, strings.Fields("S U R r P p Q q D d O o pqdo pqdo")...)
	}
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 10, 80).Draw(t, "script"), "")
}

func drawSettings(t *rapid.T) Settings {
	n := rapid.IntRange(1, rapid.SampledFrom([]int{2, 3, 4, 5, 64}).Draw(t, "at most")).Draw(t, "n")
	k := rapid.IntRange(1, n).Draw(t, "k")
	hold := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(max(0, rapid.IntRange(-6, 6).Draw(t, "s"))) * time.Second
	})
	return Settings{
		K: k, N: n, Clear: rapid.IntRange(0, k-1).Draw(t, "clear"), Latch: rapid.IntRange(0, 2).Draw(t, "latch") > 0,
		OnHold: hold.Draw(t, "on"), OffHold: hold.Draw(t, "off"), ReAlarm: time.Duration(rapid.IntRange(1, 20).Draw(t, "re_alarm")) * time.Second,
	}
}

// After any events, and however often they are stored and restored, the alarms of one to three tools
// are in the states that the model's are in and announce the same. What they announce keeps these laws:
// raised and cleared of a tool alternate; an alarm that is masked, or whose tool is in the magazine, does
// not call; one that calls has been announced, unless it called less than re_alarm ago; and an alarm is
// not raised again within re_alarm of its last call, however often its tool leaves and comes back.
func TestAlarmFollowsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tools := rapid.SampledFrom([]int{2, 3, 1}).Draw(t, "tools")
		s := drawSettings(t)
		b := newBench(t, s, tools)
		m, l := newModel(s, tools), laws{up: map[int]bool{}, called: map[int]time.Time{}}
		at := start
		for i, c := range drawScript(t) {
			at = at.Add(time.Second)
			out, want := b.step(c, at), m.step(c, at)
			if !slices.Equal(out, want) {
				t.Fatalf("step %d, %c: %v; the model: %v", i, c, out, want)
			}
			for tool := range b.tools {
				if text := m.disagrees(b, tool); text != "" {
					t.Fatalf("step %d, %c, tool %d: %s", i, c, tool+1, text)
				}
			}
			if text := l.broken(b, out, at.Add(skew)); text != "" {
				t.Fatalf("step %d, %c: %s", i, c, text)
			}
			if !rapid.Bool().Draw(t, "restart") {
				continue
			}
			tools, machine := stored(t, b.tools), stored(t, b.machine)
			if !reflect.DeepEqual(tools, b.tools) || !reflect.DeepEqual(machine, b.machine) {
				t.Fatalf("step %d: %+v, %+v, restored %+v, %+v", i, b.tools, b.machine, tools, machine)
			}
			b.tools, b.machine = tools, machine
		}
	})
}

func stored[T any](t rapid.TB, v T) (back T) {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// A state is small where there is nothing to remember: a machine has up to 64 tools.
func TestStoredState(t *testing.T) {
	b := newBench(t, latched, 1)
	if text, _ := json.Marshal(b.tools[0]); string(text) != `{"recent":0,"judged":0}` {
		t.Errorf("nothing is stored as %s", text)
	}
	b.play("FFF")
	want := `{"recent":7,"judged":3,"raised":true,"since":"2026-11-02T02:13:00Z","onset":"2026-11-02T02:13:00Z","at":"2026-11-02T02:13:03Z","last":"2026-11-02T02:13:03Z","announced":true,"called":"2026-11-02T03:43:02Z"}`
	if text, _ := json.Marshal(b.tools[0]); string(text) != want {
		t.Errorf("raised is stored as %s, want %s", text, want)
	}
	b.play("S")
	if text, _ := json.Marshal(b.tools[0]); !strings.Contains(string(text), `"shelf":{"by":"kim","reason":"test piece","since":"2026-11-02T03:43:00Z","until":"2026-11-02T03:43:05Z"}`) {
		t.Errorf("shelved is stored as %s", text)
	}
}

// spread returns the shortest time that holds three changes made by windows, or
// an hour.
func spread(set Settings, s *State, next func(i int) (faulty bool, start, end time.Time), windows int) time.Duration {
	least := time.Hour
	var when []time.Time
	for i := range windows {
		faulty, start, end := next(i)
		if s.Observe(set, false, faulty, start, end, end) != None {
			when = append(when, end)
		}
		if n := len(when); n >= 3 {
			least = min(least, when[n-1].Sub(when[n-3]))
		}
	}
	return least
}

// With the defaults, latched or not, no three changes lie within a minute,
// for any windows. (Chattering: three transitions or more a minute.)
func TestDefaultsNeverChatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := Default
		set.Latch = rapid.Bool().Draw(t, "latch")
		at := start
		length := time.Duration(rapid.IntRange(50, 20000).Draw(t, "ms")) * time.Millisecond
		runs := rapid.SliceOfN(rapid.IntRange(1, 90), 1, 30).Draw(t, "runs") // of faulty and healthy windows, in turn
		var script []bool
		for i, n := range runs {
			script = append(script, slices.Repeat([]bool{i%2 == 0}, n)...)
		}
		acks := rapid.IntRange(0, 50).Draw(t, "acks")
		var s State
		got := spread(set, &s, func(i int) (bool, time.Time, time.Time) {
			if acks > 0 && i%acks == 0 {
				_, _ = s.Acknowledge()
			}
			from := at
			at = at.Add(length)
			return script[i], from, at
		}, len(script))
		if got <= time.Minute {
			t.Fatalf("three changes within %v", got)
		}
	})
	// Without the hold time an alarm does chatter, so the law says something.
	got := spread(Settings{K: Default.K, N: Default.N, Latch: true}, &State{}, func(i int) (bool, time.Time, time.Time) {
		at := start.Add(time.Duration(i) * time.Second)
		return i%16 < 6, at, at.Add(time.Second)
	}, 100)
	if got > time.Minute {
		t.Errorf("without a hold time three changes take %v: the check cannot fail", got)
	}
}

// An alarm that returned while it was latched clears when it no longer is. The time for which the
// condition has been on again goes on.
func TestLatchTakenAway(t *testing.T) {
	for name, tc := range map[string]struct {
		s            Settings
		before, then string
		want         string
	}{
		"off":                        {Settings{K: 1, N: 1}, "Fh", "hF", "0:cleared 1:raised"},
		"on again":                   {Settings{K: 1, N: 1, OnHold: 3 * time.Second}, "FFFhF", "FF", "0:cleared 1:raised"},
		"on again, but for a while":  {Settings{K: 1, N: 1, OnHold: 3 * time.Second}, "FFFhFF", "hFFF", "0:cleared 3:raised"},
		"it would be raised at once": {Settings{K: 1, N: 1, OnHold: 3 * time.Second}, "FFFhFF", "FF", "0:cleared 1:raised"},
	} {
		s := tc.s
		s.Latch = true
		b := newBench(t, s, 1)
		b.play(tc.before)
		b.set.Latch = false
		if got := b.play(tc.then); got != tc.want {
			t.Errorf("%s: announced %q, want %q", name, got, tc.want)
		}
	}
}

func TestImpossibleStates(t *testing.T) {
	for _, s := range []State{
		{Judged: -1}, {Judged: 65}, {Judged: 2, Recent: 4}, {Judged: 63, Recent: 1 << 63}, {Held: -1}, {Returned: true}, {Raised: true, Acked: true, Returned: true},
		{Announced: true}, {Acked: true}, {Masks: Masks{Shelf: &Mask{By: "kim"}}},
	} {
		if err := s.Check(); !errors.Is(err, errState) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	for _, s := range []State{
		{}, {Judged: 64, Recent: 1 << 63}, {Judged: 2, Recent: 3}, {Held: 1}, {Raised: true, Returned: true, Announced: true}, {Raised: true, Acked: true, Announced: true},
		{Masks: Masks{Shelf: &Mask{By: "kim", Until: start}, Service: &Mask{}}},
	} {
		if err := s.Check(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

package alarm

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is the alarm as docs/concepts/alarms.md draws it: a table of states, and windows
// that are all kept and counted again each time.
type model struct {
	Settings
	state     string
	announced bool // of the raised alarm
	masks     map[Change]time.Time
	windows   []struct {
		faulty bool
		length time.Duration
	}
	moved int // windows before the last move by windows
}

// moves is the diagram: where on (the condition has lasted), off (it is over, and
// has been) and ack lead from each state.
var moves = map[string]map[string]string{
	"normal":       {"on": "raised"},
	"raised":       {"off": "returned", "ack": "acknowledged"},
	"acknowledged": {"off": "normal"},
	"returned":     {"on": "raised", "ack": "normal"},
}

// lasts returns for how long the number of faulty windows has been so, up to now
// and since the last move.
func (m *model) lasts(so func(count int) bool) (d time.Duration, now bool) {
	for i := len(m.windows); i > m.moved; i-- {
		count := 0
		for _, w := range m.windows[max(0, i-m.N):i] {
			if w.faulty {
				count++
			}
		}
		if !so(count) {
			break
		}
		d, now = d+m.windows[i-1].length, true
	}
	return d, now
}

func (m *model) move(by string) (changes []Change) {
	to, ok := moves[m.state][by]
	if !ok {
		return nil
	}
	if to == "returned" && !m.Latch {
		to = "normal"
	}
	from := m.state
	m.state = to
	switch {
	case by == "ack":
		changes = append(changes, Acknowledged)
	case from == "normal":
		if m.announced = len(m.masks) == 0; m.announced {
			return []Change{Raised}
		}
	case m.announced && len(m.masks) == 0 && to == "returned":
		return []Change{Returned}
	case m.announced && len(m.masks) == 0 && to == "raised":
		return []Change{Reactivated}
	}
	if to == "normal" && m.announced {
		m.announced = false
		changes = append(changes, Cleared)
	}
	return changes
}

func (m *model) window(faulty bool, length time.Duration) []Change {
	m.windows = append(m.windows, struct {
		faulty bool
		length time.Duration
	}{faulty, length})
	by, hold := "on", m.OnHold
	so := func(count int) bool { return count >= m.K }
	if m.state == "raised" || m.state == "acknowledged" {
		by, hold = "off", m.OffHold
		so = func(count int) bool { return count <= m.Clear }
	}
	if d, now := m.lasts(so); !now || d < hold {
		return nil
	}
	m.moved = len(m.windows)
	return m.move(by)
}

func (m *model) mask(c Change, until time.Time) []Change {
	if _, there := m.masks[c]; there && c != Shelved {
		return nil
	}
	m.masks[c] = until
	return []Change{c}
}

func (m *model) unmask(c, end Change) []Change {
	if _, there := m.masks[c]; !there {
		return nil
	}
	delete(m.masks, c)
	changes := []Change{end}
	if len(m.masks) == 0 && !m.announced && (m.state == "raised" || m.state == "returned") {
		m.announced = true
		if changes = append(changes, Raised); m.state == "returned" {
			changes = append(changes, Returned)
		}
	}
	return changes
}

func (m *model) tool() (changes []Change) {
	if _, there := m.masks[Shelved]; there {
		delete(m.masks, Shelved)
		changes = append(changes, Unshelved)
	}
	if m.announced {
		changes = append(changes, Cleared)
	}
	m.state, m.announced, m.windows, m.moved = "normal", false, nil, 0
	return changes
}

func (m *model) word() string {
	for _, c := range []Change{OutOfService, Suppressed, Shelved} {
		if _, there := m.masks[c]; there {
			return string(c)
		}
	}
	return m.state
}

func drawSettings(t *rapid.T) Settings {
	n := rapid.OneOf(rapid.IntRange(1, 4), rapid.IntRange(1, 64)).Draw(t, "n")
	k := rapid.IntRange(1, n).Draw(t, "k")
	hold := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(max(0, rapid.IntRange(-5, 10).Draw(t, "s"))) * time.Second
	})
	return Settings{
		K: k, N: n, Clear: rapid.IntRange(0, k-1).Draw(t, "clear"), Latch: rapid.Bool().Draw(t, "latch"),
		OnHold: hold.Draw(t, "on"), OffHold: hold.Draw(t, "off"),
	}
}

// After any events, and however often it is stored and restored, the alarm
// is in the state that the model is in and tells the same. What it tells keeps
// three laws: raised and cleared alternate, a masked alarm does not call, and
// an alarm that calls has been announced.
func TestAlarmFollowsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSettings(t)
		a, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		m := &model{Settings: s, state: "normal", masks: map[Change]time.Time{}}
		script := rapid.StringOfN(rapid.RuneFrom([]rune("hhhhhhFFFFFFAATSSUDdOo-")), 0, 120, -1).Draw(t, "script")
		at, up := start, false
		for i, c := range script {
			at = at.Add(time.Second)
			changes := a.Expire(at)
			var want []Change
			if until, there := m.masks[Shelved]; there && !at.Before(until) {
				want = m.unmask(Shelved, Unshelved)
			}
			changes = append(changes, step(a, c, i, at)...)
			switch c {
			case 'h', 'F':
				want = append(want, m.window(c == 'F', time.Second)...)
			case 'A':
				want = append(want, m.move("ack")...)
			case 'T':
				want = append(want, m.tool()...)
			case 'S':
				want = append(want, m.mask(Shelved, at.Add(5*time.Second))...)
			case 'U':
				want = append(want, m.unmask(Shelved, Unshelved)...)
			case 'D':
				want = append(want, m.mask(Suppressed, time.Time{})...)
			case 'd':
				want = append(want, m.unmask(Suppressed, Unsuppressed)...)
			case 'O':
				want = append(want, m.mask(OutOfService, time.Time{})...)
			case 'o':
				want = append(want, m.unmask(OutOfService, InService)...)
			}
			if !slices.Equal(changes, want) || a.State().Word() != m.word() || a.State().Beneath() != m.state {
				t.Fatalf("step %d, %c: changes %v, state %s over %s; the model: %v, %s over %s",
					i, c, changes, a.State().Word(), a.State().Beneath(), want, m.word(), m.state)
			}
			for _, c := range changes {
				if c == Raised && up || c == Cleared && !up {
					t.Fatalf("step %d: %s, after the same", i, c)
				}
				up = up && c != Cleared || c == Raised
			}
			if last := len(changes) - 1; last >= 0 && a.Masked() && slices.Contains([]Change{Raised, Returned, Reactivated}, changes[last]) {
				t.Fatalf("step %d: %s, though masked", i, changes[last])
			}
			if a.Calls() && !up {
				t.Fatalf("step %d: calls, and Raised was not announced", i)
			}
			if rapid.Bool().Draw(t, "restart") {
				b, _ := New(s)
				if err := b.Restore(stored(t, a.State())); err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(a.State(), b.State()) {
					t.Fatalf("step %d: %+v, restored %+v", i, a.State(), b.State())
				}
				a = b
			}
		}
	})
}

func stored(t rapid.TB, s State) (back State) {
	text, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// spread returns the shortest time that holds three changes made by windows, or
// an hour.
func spread(a *Alarm, next func(i int) (faulty bool, start, end time.Time), windows int) time.Duration {
	least := time.Hour
	var when []time.Time
	for i := range windows {
		faulty, start, end := next(i)
		if a.Observe(faulty, start, end) != None {
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
		s := Default
		s.Latch = rapid.Bool().Draw(t, "latch")
		a, _ := New(s)
		at := start
		length := time.Duration(rapid.IntRange(50, 20000).Draw(t, "ms")) * time.Millisecond
		runs := rapid.SliceOfN(rapid.IntRange(1, 90), 1, 30).Draw(t, "runs") // of faulty and healthy windows, in turn
		var script []bool
		for i, n := range runs {
			script = append(script, slices.Repeat([]bool{i%2 == 0}, n)...)
		}
		acks := rapid.IntRange(0, 50).Draw(t, "acks")
		got := spread(a, func(i int) (bool, time.Time, time.Time) {
			if acks > 0 && i%acks == 0 {
				_, _ = a.Acknowledge()
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
	a, _ := New(Settings{K: Default.K, N: Default.N, Latch: true})
	got := spread(a, func(i int) (bool, time.Time, time.Time) {
		at := start.Add(time.Duration(i) * time.Second)
		return i%16 < 6, at, at.Add(time.Second)
	}, 100)
	if got > time.Minute {
		t.Errorf("without a hold time three changes take %v: the check cannot fail", got)
	}
}

// What older programs wrote: an alarm that stands, one that was acknowledged
// and cleared by that, and one that is normal.
func TestStatesWrittenBefore(t *testing.T) {
	const times = `"since":"2026-11-02T02:13:00Z","onset":"2026-11-02T02:13:00Z","at":"2026-11-02T02:13:03Z"`
	for _, tc := range []struct{ text, word, then string }{
		{`{"tool":"T1","recent":0,"judged":9,"raised":false}`, "normal", "3:raised 8:returned"},
		{`{"tool":"T1","recent":7,"judged":9,"raised":true,` + times + `}`, "raised", "8:returned"},
		{`{"tool":"T1","recent":7,"judged":9,"raised":false,"onset":"2026-11-02T02:13:00Z","acked":true}`, "acknowledged", "3:raised 8:returned"},
	} {
		var s State
		if err := json.Unmarshal([]byte(tc.text), &s); err != nil {
			t.Fatal(err)
		}
		a, _ := New(Settings{K: 3, N: 5, Latch: true})
		if err := a.Restore(s); err != nil {
			t.Fatal(err)
		}
		if got := a.State().Word(); got != tc.word {
			t.Errorf("%s: %s, want %s", tc.text, got, tc.word)
		}
		script := map[string]string{"normal": "hFFFhhhhhh", "raised": "FFFFhhhhh", "acknowledged": "hhhhh"}[tc.word]
		got := play(a, script)
		if tc.word == "acknowledged" { // its end is not announced; then it begins again
			if got != "" {
				t.Errorf("an alarm that was cleared by its acknowledgement: %s", got)
			}
			got = play(a, "hFFFhhhhh")
		}
		if got != tc.then {
			t.Errorf("%s: then %q, want %q", tc.text, got, tc.then)
		}
	}
}

// An alarm that returned while it was latched clears when it no longer is.
func TestLatchTakenAway(t *testing.T) {
	a, _ := New(Settings{K: 1, N: 1, Latch: true})
	play(a, "Fh")
	b, _ := New(Settings{K: 1, N: 1})
	if err := b.Restore(a.State()); err != nil {
		t.Fatal(err)
	}
	if got := play(b, "hF"); got != "0:cleared 1:raised" {
		t.Errorf("announced %q", got)
	}
}

func TestImpossibleStates(t *testing.T) {
	a, _ := New(Default)
	for _, s := range []State{
		{Judged: -1}, {Judged: 65}, {Judged: 2, Recent: 4}, {Held: -1}, {Returned: true}, {Raised: true, Acked: true, Returned: true},
		{Silent: true}, {Shelf: &Mask{By: "kim"}},
	} {
		if err := a.Restore(s); !errors.Is(err, ErrState) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

package alarm

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 11, 2, 2, 13, 0, 0, time.UTC)

// play feeds one window a second: 'h' healthy, 'F' faulty, 'A' acknowledges,
// 'T' changes the tool. It returns what changed where, as in "4:raised".
func play(a *Alarm, script string) string {
	var out []string
	note := func(i int, c Change) {
		if c != None {
			out = append(out, fmt.Sprintf("%d:%s", i, map[Change]string{Raised: "raised", Cleared: "cleared"}[c]))
		}
	}
	for i, c := range script {
		switch c {
		case 'A':
			note(i, a.Acknowledge())
		case 'T':
			note(i, a.ChangeTool(fmt.Sprint("T", i)))
		default:
			at := start.Add(time.Duration(i) * time.Second)
			note(i, a.Observe(c == 'F', at, at.Add(time.Second)))
		}
	}
	return strings.Join(out, " ")
}

func TestAlarm(t *testing.T) {
	latched, loose := Settings{3, 5, true}, Settings{3, 5, false}
	for name, tc := range map[string]struct {
		s            Settings
		script, want string
	}{
		"three in a row":                            {latched, "hhFFF", "4:raised"},
		"three of five":                             {latched, "FhFhF", "4:raised"},
		"three of six are too thin":                 {latched, "FhhFhFhhh", ""},
		"single faulty windows never alarm":         {latched, "FhhhhFhhhhFhhhhF", ""},
		"latched: stays through healthy windows":    {latched, "FFFhhhhhhhhhFFFF", "2:raised"},
		"not latched: clears when none of n is":     {loose, "FFFhhhhhFFF", "2:raised 7:cleared 10:raised"},
		"acknowledged: the same wear stays quiet":   {latched, "FFFAFFFFFF", "2:raised 3:cleared"},
		"acknowledged, healed, worn again":          {latched, "FFFAhhhhhFFF", "2:raised 3:cleared 11:raised"},
		"acknowledging nothing":                     {latched, "AhA", ""},
		"a new tool clears":                         {latched, "FFFTFF", "2:raised 3:cleared"},
		"a new tool starts counting anew":           {latched, "FFTFhF", ""},
		"one of one is every faulty window's alarm": {Settings{1, 1, false}, "FhFh", "0:raised 1:cleared 2:raised 3:cleared"},
	} {
		a, err := New(tc.s)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := play(a, tc.script); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestSince(t *testing.T) {
	a, err := New(Settings{3, 5, true})
	if err != nil {
		t.Fatal(err)
	}
	play(a, "FhhhhhhFhFF") // the first F is out of sight when the alarm is raised
	if s := a.State(); !s.Raised || !s.Since.Equal(start.Add(7*time.Second)) || !s.At.Equal(start.Add(11*time.Second)) {
		t.Errorf("state %+v, want since +7s, at +11s", s)
	}
	if f, of := a.Count(); f != 3 || of != 5 {
		t.Errorf("count %d of %d, want 3 of 5", f, of)
	}
}

// An alarm that is stored and restored anywhere goes on as if nothing had
// happened, and it never stands with fewer than k faulty windows behind it.
func TestRestartChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 64).Draw(t, "n")
		s := Settings{K: rapid.IntRange(1, n).Draw(t, "k"), N: n, Latch: rapid.Bool().Draw(t, "latch")}
		script := rapid.StringOfN(rapid.RuneFrom([]rune("hhhFFFAT")), 0, 200, -1).Draw(t, "script")
		a, _ := New(s)
		b, _ := New(s)
		for i, c := range script {
			was := a.Raised()
			ca, cb := play(a, string(c)), play(b, string(c))
			if ca != cb {
				t.Fatalf("step %d: %q, restored %q", i, ca, cb)
			}
			if count, _ := a.Count(); !was && a.Raised() && count < s.K {
				t.Fatalf("step %d: raised with %d of %d", i, count, s.K)
			}
			text, err := json.Marshal(b.State())
			if err != nil {
				t.Fatal(err)
			}
			var st State
			if err := json.Unmarshal(text, &st); err != nil {
				t.Fatal(err)
			}
			b, _ = New(s)
			if err := b.Restore(st); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(a.State(), b.State()) {
				t.Fatalf("step %d: %+v, restored %+v", i, a.State(), b.State())
			}
		}
	})
}

func TestBadSettingsAndStates(t *testing.T) {
	for _, s := range []Settings{{}, {K: 1}, {K: 0, N: 4}, {K: 5, N: 4}, {K: 3, N: 65}, {K: -1, N: 1}} {
		if _, err := New(s); err == nil {
			t.Errorf("%+v was taken", s)
		}
	}
	a, _ := New(Default)
	for _, s := range []State{{Judged: -1}, {Judged: 65}, {Judged: 2, Recent: 4}} {
		if err := a.Restore(s); !errors.Is(err, ErrState) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

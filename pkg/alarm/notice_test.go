package alarm

import (
	"encoding/json"
	"errors"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestNotice(t *testing.T) {
	rule := Hysteresis{K: 3, N: 5, Hold: 4 * time.Second}
	for name, tc := range map[string]struct {
		rule         Hysteresis
		script, want string // 'h' good, 'F' bad, '-' not observed, one a second
	}{
		"three in a row":                       {rule, "hFFFh", "3:raised"},
		"three of five":                        {rule, "FhFhF", "4:raised"},
		"too thin":                             {rule, "FhhFhhFhhF", ""},
		"four good seconds clear it":           {rule, "FFFhhhh", "2:raised 6:cleared"},
		"a bad one begins the hold again":      {rule, "FFFhhhFhhhh", "2:raised 10:cleared"},
		"what is not observed clears not":      {rule, "FFFhh--------hh", "2:raised 14:cleared"},
		"cleared forgets the bad ones":         {rule, "FFFhhhhFFhF", "2:raised 6:cleared 10:raised"},
		"one is enough where K is one":         {Hysteresis{K: 1, N: 1, Hold: 2 * time.Second}, "hFhhh", "1:raised 3:cleared"},
		"no hold: the first good one":          {Hysteresis{K: 1, N: 1}, "FhF", "0:raised 1:cleared 2:raised"},
		"a hold that is longer than the input": {Hysteresis{K: 1, N: 1, Hold: time.Hour}, "Fhhhhhhhh", "0:raised"},
		"the last bad one need not be new":     {rule, "FFhhhFhhhh", ""},
	} {
		var n Notice
		got := ""
		for i, c := range tc.script {
			if c == '-' {
				continue
			}
			at := start.Add(time.Duration(i) * time.Second)
			if change := n.Observe(c == 'F', at, at.Add(time.Second), tc.rule); change != None {
				if got != "" {
					got += " "
				}
				got += strconv.Itoa(i) + ":" + string(change)
			}
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// A notice does what its diagram says, counted again from all observations each
// time; through restarts; raised and cleared alternate.
func TestNoticeModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 64).Draw(t, "n")
		if rapid.Bool().Draw(t, "small") {
			n = rapid.IntRange(1, 6).Draw(t, "small n")
		}
		h := Hysteresis{N: n, K: rapid.IntRange(1, n).Draw(t, "k"), Hold: time.Duration(rapid.IntRange(0, 20).Draw(t, "hold")) * time.Second}
		type observation struct {
			bad    bool
			start  time.Time
			length time.Duration
		}
		var seen []observation // since the last change
		var not Notice
		raised, now := false, start
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.IntRange(0, 20).Draw(t, "restart") == 0 {
				text, err := json.Marshal(not)
				if err != nil {
					t.Fatal(err)
				}
				not = Notice{}
				if err := json.Unmarshal(text, &not); err != nil {
					t.Fatal(err)
				}
				if err := not.Check(); err != nil {
					t.Fatal(err)
				}
			}
			o := observation{rapid.IntRange(0, 2).Draw(t, "bad") == 0, now, time.Duration(rapid.IntRange(1, 3).Draw(t, "length")) * time.Second}
			seen = append(seen, o)
			end := o.start.Add(o.length)
			got := not.Observe(o.bad, o.start, end, h)
			now = end.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "gap")) * time.Second)

			want := None
			if raised {
				var good time.Duration
				for i := len(seen) - 1; i >= 0 && !seen[i].bad; i-- {
					good += seen[i].length
				}
				if !o.bad && good >= h.Hold {
					want = Cleared
				}
			} else {
				count := 0
				for _, s := range seen[max(0, len(seen)-h.N):] {
					if s.bad {
						count++
					}
				}
				if count >= h.K {
					want = Raised
				}
			}
			if got != want {
				t.Fatalf("%q, want %q, after %+v with %+v", got, want, seen, h)
			}
			if want == Raised {
				var since time.Time // of the bad ones that led to it, no n good ones in a row among them
				for i, last := len(seen)-1, len(seen)-1; i >= 0 && last-i < h.N; i-- {
					if seen[i].bad {
						since, last = seen[i].start, i
					}
				}
				if !not.Since.Equal(since) || !not.At.Equal(end) {
					t.Fatalf("since %v, at %v, want %v, %v", not.Since, not.At, since, end)
				}
			}
			if want != None {
				raised, seen = !raised, nil
			}
			if raised != not.Raised {
				t.Fatalf("raised %v, want %v", not.Raised, raised)
			}
			if !raised && !o.bad && len(seen) == 0 && !not.Quiet() {
				t.Fatalf("cleared, and remembers %+v", not)
			}
		}
	})
}

// With a hold of a minute nothing chatters, for any observations.
func TestNoticeDoesNotChatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Hysteresis{K: rapid.IntRange(2, 5).Draw(t, "k"), N: 5, Hold: time.Minute}
		length := time.Duration(rapid.IntRange(1, 90_000).Draw(t, "ms")) * time.Millisecond
		var n Notice
		var changes []time.Time
		now := start
		for range 400 {
			// Runs of good ones long enough to clear it as soon as it may be.
			bad := n.Held == 0 && rapid.IntRange(0, 3).Draw(t, "bad") > 0
			end := now.Add(length)
			if n.Observe(bad, now, end, h) != None {
				changes = append(changes, end)
			}
			now = end
		}
		for i := 2; i < len(changes); i++ {
			if d := changes[i].Sub(changes[i-2]); d <= time.Minute {
				t.Fatalf("three changes in %v", d)
			}
		}
	})
}

func TestNoticeChecks(t *testing.T) {
	for name, n := range map[string]Notice{
		"held before it is raised": {Held: time.Second},
		"held for less than none":  {Raised: true, At: start, Held: -1},
		"raised at no time":        {Raised: true},
	} {
		if err := n.Check(); !errors.Is(err, errState) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, h := range map[string]Hysteresis{"zero": {}, "k above n": {K: 3, N: 2}, "n above 64": {K: 1, N: 65}, "hold below 0": {K: 1, N: 1, Hold: -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("hysteresis %s: taken", name)
				}
			}()
			new(Notice).Observe(true, start, start.Add(time.Second), h)
		}()
	}
}

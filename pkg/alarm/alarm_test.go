package alarm

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 2, 2, 13, 0, 0, time.UTC)

// play feeds one window a second: 'h' healthy, 'F' faulty. 'A' acknowledges, 'T'
// changes the tool, 'S' shelves for five seconds, 'U' unshelves, 'D' and 'd'
// suppress and end that, 'O' and 'o' take out of service and put back, '-' is a
// second in which nothing is cut. It returns what was announced where, as in
// "4:raised".
func play(a *Alarm, script string) string {
	var out []string
	for i, c := range script {
		at := start.Add(time.Duration(i) * time.Second)
		changes := a.Expire(at)
		changes = append(changes, step(a, c, i, at)...)
		for _, c := range changes {
			out = append(out, fmt.Sprintf("%d:%s", i, c))
		}
	}
	return strings.Join(out, " ")
}

func step(a *Alarm, c rune, i int, at time.Time) (changes []Change) {
	m := Mask{By: "kim", Reason: "test piece", Since: at}
	switch c {
	case 'A':
		changes, _ = a.Acknowledge()
	case 'T':
		changes = a.ChangeTool(fmt.Sprint("T", i))
	case 'S':
		m.Until = at.Add(5 * time.Second)
		changes, _ = a.Shelve(m)
	case 'U':
		changes, _ = a.Unshelve()
	case 'D':
		changes, _ = a.Suppress(m)
	case 'd':
		changes, _ = a.Unsuppress()
	case 'O':
		changes, _ = a.Remove(m)
	case 'o':
		changes, _ = a.PutBack()
	case 'h', 'F':
		if c := a.Observe(c == 'F', at, at.Add(time.Second)); c != None {
			changes = append(changes, c)
		}
	}
	return changes
}

func TestAlarm(t *testing.T) {
	latched, loose := Settings{K: 3, N: 5, Latch: true}, Settings{K: 3, N: 5}
	slow := Settings{K: 2, N: 3, OnHold: 3 * time.Second, OffHold: 4 * time.Second}
	for name, tc := range map[string]struct {
		s            Settings
		script, want string
	}{
		"three in a row":                                  {latched, "hhFFF", "4:raised"},
		"three of five":                                   {latched, "FhFhF", "4:raised"},
		"three of six are too thin":                       {latched, "FhhFhFhhh", ""},
		"single faulty windows never alarm":               {latched, "FhhhhFhhhhFhhhhF", ""},
		"latched: waits to be acknowledged":               {latched, "FFFhhhhhhhhhA", "2:raised 7:returned 12:acknowledged 12:cleared"},
		"latched: there again before anybody knew":        {latched, "FFFhhhhhhFFF", "2:raised 7:returned 11:reactivated"},
		"not latched: clears when none of n is":           {loose, "FFFhhhhhFFF", "2:raised 7:cleared 10:raised"},
		"acknowledged: the same wear stays quiet":         {latched, "FFFAFFFFFF", "2:raised 3:acknowledged"},
		"acknowledged, healed, worn again":                {latched, "FFFAhhhhhFFF", "2:raised 3:acknowledged 8:cleared 11:raised"},
		"acknowledging nothing":                           {latched, "AhA", ""},
		"acknowledged once is enough":                     {latched, "FFFAA", "2:raised 3:acknowledged"},
		"a new tool clears":                               {latched, "FFFTFF", "2:raised 3:cleared"},
		"a new tool starts counting again":                {latched, "FFTFhF", ""},
		"one of one is every faulty window's alarm":       {Settings{K: 1, N: 1}, "FhFh", "0:raised 1:cleared 2:raised 3:cleared"},
		"hysteresis: over at one, not below three":        {Settings{K: 3, N: 5, Clear: 1}, "FFFhhhh", "2:raised 6:cleared"},
		"on hold: two of three for three seconds":         {slow, "FFhhhFFFF", "8:raised"},
		"off hold: none of three for four seconds":        {slow, "FFFFhhhhhhh", "3:raised 9:cleared"},
		"off hold: a faulty window begins it again":       {slow, "FFFFhhhhFhhhhhhh", "3:raised 14:cleared"},
		"off hold: idling proves nothing":                 {slow, "FFFFhhh-------h", "3:raised"},
		"shelved before: announced when the time is over": {latched, "SFFFF-hh", "0:shelved 5:unshelved 5:raised"},
		"shelved before: announced when taken off":        {latched, "SFFFU", "0:shelved 4:unshelved 4:raised"},
		"shelved after: announced once":                   {latched, "FFFSFFFFF", "2:raised 3:shelved 8:unshelved"},
		"came and went on the shelf: still unknown":       {latched, "DFFFhhhhhhd", "0:suppressed 10:unsuppressed 10:raised 10:returned"},
		"came and went on the shelf, not latched":         {loose, "DFFFhhhhhhd", "0:suppressed 10:unsuppressed"},
		"raised, cleared behind the mask":                 {loose, "FFFDhhhhhhd", "2:raised 3:suppressed 8:cleared 10:unsuppressed"},
		"returned behind the mask":                        {latched, "FFFDhhhhhFFFd", "2:raised 3:suppressed 12:unsuppressed"},
		"acknowledged behind the mask: not announced":     {latched, "DFFFAdhhhhh", "0:suppressed 4:acknowledged 5:unsuppressed"},
		"the last of two masks tells":                     {latched, "DOFFFdo", "0:suppressed 1:out_of_service 5:unsuppressed 6:in_service 6:raised"},
		"a new tool is not shelved":                       {latched, "STFFF", "0:shelved 1:unshelved 4:raised"},
		"a new tool is out of service still":              {latched, "OTFFFo", "0:out_of_service 5:in_service 5:raised"},
		"a new tool clears what was announced":            {latched, "FFFST", "2:raised 3:shelved 4:unshelved 4:cleared"},
		"a new tool clears silently what was not":         {latched, "SFFFT", "0:shelved 4:unshelved"},
		"a longer shelf replaces the first":               {latched, "S--S-----", "0:shelved 3:shelved 8:unshelved"},
		"nothing to take off":                             {latched, "Udo", ""},
		"masked twice":                                    {latched, "DDOO", "0:suppressed 2:out_of_service"},
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
	a, err := New(Settings{K: 3, N: 5, Latch: true})
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

// Windows that overlap do not cut twice: a hold of three seconds is three
// seconds, not six windows of one.
func TestOverlappingWindows(t *testing.T) {
	a, _ := New(Settings{K: 1, N: 1, OnHold: 3 * time.Second})
	for i := range 10 {
		at := start.Add(time.Duration(i) * 500 * time.Millisecond)
		if a.Observe(true, at, at.Add(time.Second)) == Raised {
			if i != 4 {
				t.Errorf("raised by window %d, want 4, which ends 3 s after the first began", i)
			}
			return
		}
	}
	t.Error("not raised")
}

func TestShelfIsBoundedAndAudited(t *testing.T) {
	a, _ := New(Settings{K: 1, N: 1, MaxShelf: time.Hour})
	good := Mask{By: "kim", Reason: "test piece", Since: start, Until: start.Add(time.Hour)}
	for name, tc := range map[string]func(m *Mask){
		"no name":  func(m *Mask) { m.By = "" },
		"reason":   func(m *Mask) { m.Reason = "" },
		"too long": func(m *Mask) { m.Until = m.Until.Add(time.Second) },
		"for ever": func(m *Mask) { m.Until = time.Time{} },
		"over":     func(m *Mask) { m.Until = m.Since },
	} {
		m := good
		tc(&m)
		if changes, err := a.Shelve(m); !errors.Is(err, ErrRefused) || changes != nil || a.Masked() {
			t.Errorf("%s: %v, %v", name, changes, err)
		}
	}
	if _, err := a.Shelve(good); err != nil || *a.State().Shelf != good || a.State().Word() != "shelved" {
		t.Errorf("%v, %+v", err, a.State())
	}
	if changes := a.Expire(good.Until.Add(-1)); changes != nil {
		t.Errorf("%v a moment too soon", changes)
	}
	if changes := a.Expire(good.Until); len(changes) != 1 || changes[0] != Unshelved || a.Masked() {
		t.Errorf("announced %v at its end", changes)
	}
	if _, err := a.Suppress(Mask{By: "kim"}); !errors.Is(err, ErrRefused) {
		t.Errorf("suppressed without a reason: %v", err)
	}
	if d, _ := New(Settings{K: 1, N: 1}); d.Settings().MaxShelf != Default.MaxShelf {
		t.Errorf("no longest shelf by default")
	}
}

func TestBadSettings(t *testing.T) {
	for _, s := range []Settings{
		{}, {K: 1}, {K: 0, N: 4}, {K: 5, N: 4}, {K: 3, N: 65}, {K: -1, N: 1}, {K: 3, N: 5, Clear: 3}, {K: 3, N: 5, Clear: -1},
		{K: 1, N: 1, OnHold: -1}, {K: 1, N: 1, OffHold: 2 * time.Hour}, {K: 1, N: 1, MaxShelf: -1}, {K: 1, N: 1, MaxShelf: 8 * 24 * time.Hour},
		{K: 1, N: 1, Threshold: -0.1}, {K: 1, N: 1, Threshold: 1.1}, {K: 1, N: 1, Threshold: math.NaN()},
	} {
		if _, err := New(s); err == nil {
			t.Errorf("%+v was taken", s)
		}
	}
}

// From the threshold on a window counts; without one that is the model's own
// decision, which calls a window faulty from 0.5 on.
func TestThreshold(t *testing.T) {
	for _, tc := range []struct {
		threshold, score float64
		want             bool
	}{
		{0, 0.5, true}, {0, math.Nextafter(0.5, 0), false}, {0.8, 0.8, true}, {0.8, 0.79, false}, {1, 1, true}, {1, 0.999, false},
	} {
		a, err := New(Settings{K: 1, N: 1, Threshold: tc.threshold})
		if err != nil {
			t.Fatal(err)
		}
		if a.IsFaulty(tc.score) != tc.want {
			t.Errorf("threshold %v: a score of %v counts: %v", tc.threshold, tc.score, !tc.want)
		}
	}
}

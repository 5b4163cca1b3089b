package cli

import (
	"strings"
	"testing"
	"time"
)

// Away from a terminal a phase has a first line, one for every five seconds,
// and a last.
func TestProgressLines(t *testing.T) {
	var b strings.Builder
	p := NewProgress(&b)
	now := time.Date(2026, 2, 3, 6, 0, 0, 0, time.UTC)
	p.now = func() time.Time { return now }
	for _, step := range []struct {
		after       time.Duration
		phase       string
		done, total int
	}{
		{0, "reading", 0, 200},
		{time.Second, "reading", 10, 200}, // too soon
		{3 * time.Second, "reading", 40, 200},
		{time.Second, "reading", 50, 200},
		{7 * time.Second, "reading", 120, 200},
		{time.Second, "reading", 200, 200},
		{time.Second, "reading", 200, 200}, // it is over
		{0, "training", 1, 3000},
		{time.Second, "training", 3000, 3000},
		{0, "nothing to do", 0, 0},
	} {
		now = now.Add(step.after)
		p.Report(step.phase, step.done, step.total)
	}
	p.Close()
	const want = `reading: 0%
reading: 25%, about 15s left
reading: 60%, about 8s left
reading: 100%
training: 0%
training: 100%
nothing to do: 100%
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// On a terminal a bar is drawn in place, and ends its line.
func TestProgressBar(t *testing.T) {
	var b strings.Builder
	p := NewProgress(&b)
	p.terminal = true
	p.Report("reading", 1, 2)
	p.Report("reading", 2, 2)
	p.Report("training", 1, 4)
	p.Close()
	got := b.String()
	if !strings.Contains(got, "reading") || !strings.Contains(got, "100%") || !strings.Contains(got, "training") || !strings.Contains(got, "\r") {
		t.Errorf("bars %q", got)
	}
	if strings.Count(got, "\n") != 2 || !strings.HasSuffix(got, "\n") {
		t.Errorf("%d lines, want one for each phase: %q", strings.Count(got, "\n"), got)
	}
}

// Programs read an object a line, at most one a second, and one at the end.
func TestJSONProgress(t *testing.T) {
	var out strings.Builder
	at := time.Unix(0, 0)
	p := NewJSONProgress(&out)
	p.now = func() time.Time { return at }
	for done := range 9 {
		p.Report("training", done, 8)
		at = at.Add(500 * time.Millisecond)
	}
	p.Report("saving", 1, 1)
	p.Close()
	const want = `{"phase":"training","done":0,"total":8,"seconds":0,"eta_seconds":null}
{"phase":"training","done":2,"total":8,"seconds":1,"eta_seconds":3}
{"phase":"training","done":4,"total":8,"seconds":2,"eta_seconds":2}
{"phase":"training","done":6,"total":8,"seconds":3,"eta_seconds":1}
{"phase":"training","done":8,"total":8,"seconds":4,"eta_seconds":0}
{"phase":"saving","done":1,"total":1,"seconds":0,"eta_seconds":0}
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

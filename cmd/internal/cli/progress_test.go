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

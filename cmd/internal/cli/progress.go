package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Progress shows how far long work is: a bar on a terminal, a line every few
// seconds elsewhere. It is safe for concurrent use.
type Progress struct {
	w        io.Writer
	terminal bool
	now      func() time.Time
	mu       sync.Mutex
	phase    string
	bar      *progressbar.ProgressBar
	shown    time.Time
	began    time.Time
	done     bool
}

// lineEvery is how often a line is printed without a terminal.
const lineEvery = 5 * time.Second

// NewProgress returns a Progress that writes to w.
func NewProgress(w io.Writer) *Progress {
	return &Progress{w: w, terminal: IsTerminal(w), now: time.Now}
}

// Report says that done of total steps of a phase are done.
func (p *Progress) Report(phase string, done, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if phase != p.phase {
		p.finish()
		p.phase, p.began, p.shown, p.done = phase, now, time.Time{}, false
	}
	if p.done {
		return
	}
	if p.terminal {
		p.draw(done, total)
	} else if now.Sub(p.shown) >= lineEvery || done >= total {
		p.shown = now
		fmt.Fprintf(p.w, "%s: %d%%%s\n", phase, percent(done, total), eta(now.Sub(p.began), done, total))
	}
	if done >= total {
		p.finish()
		p.done = true
	}
}

func (p *Progress) draw(done, total int) {
	if p.bar == nil {
		p.bar = progressbar.NewOptions(total,
			progressbar.OptionSetWriter(p.w), progressbar.OptionSetDescription(fmt.Sprintf("%-28s", p.phase)),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetPredictTime(true),
			progressbar.OptionSetWidth(30), progressbar.OptionShowCount())
	}
	p.bar.ChangeMax(total)
	_ = p.bar.Set(done) // work continues without a bar
}

// finish ends the line of the current bar.
func (p *Progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
		fmt.Fprintln(p.w)
		p.bar = nil
	}
}

// Close ends the last bar.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finish()
}

func percent(done, total int) int {
	if done >= total {
		return 100
	}
	return 100 * done / total
}

func eta(passed time.Duration, done, total int) string {
	left, ok := remaining(passed, done, total)
	if !ok || done >= total {
		return ""
	}
	return fmt.Sprintf(", about %v left", left.Round(time.Second))
}

// remaining returns how long the rest of a phase takes at the pace so far; it is
// false while that is not known.
func remaining(passed time.Duration, done, total int) (time.Duration, bool) {
	switch {
	case done >= total:
		return 0, true
	case done == 0 || passed < time.Second:
		return 0, false
	}
	return time.Duration(float64(passed) / float64(done) * float64(total-done)), true
}

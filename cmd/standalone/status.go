package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// status is the one calm line at the bottom of the terminal.
type status struct {
	w        io.Writer
	terminal bool
	page     string
	hub      *web.Hub

	mu      sync.Mutex
	last    event.Result
	windows int // since began
	rated   int // of windows when the rate was last computed
	rate    float64
	alerts  int
	width   int // of the line on the screen
	closed  bool
}

func newStatus(p *plant) *status {
	return &status{w: p.stderr, terminal: cli.IsTerminal(p.stderr), page: p.pageURL, hub: p.hub}
}

// also returns callbacks that update the status; the one for windows calls onWindow, too.
func (s *status) also(onWindow func(*signal.Layout, *window.Window, event.Result)) (
	func(*signal.Layout, *window.Window, event.Result), func(event.Alert), func(event.Advisory),
) {
	return func(l *signal.Layout, w *window.Window, r event.Result) {
			onWindow(l, w, r)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.last = r
			s.windows++
		}, func(a event.Alert) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if a.State == event.Raised {
				s.alerts++
			}
			s.wipe()
			fmt.Fprintf(s.w, "%s  %s\n", signal.FormatTime(a.At.Local(), time.TimeOnly), plain.Text(a.Text))
		}, func(a event.Advisory) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.wipe()
			fmt.Fprintf(s.w, "%s  %s\n", signal.FormatTime(a.At.Local(), time.TimeOnly), plain.Text(a.Text))
		}
}

// run redraws the line until ctx ends: each second on a terminal, every ten
// elsewhere.
func (s *status) run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.mu.Lock()
		s.rate += 0.5 * (float64(s.windows-s.rated) - s.rate) // smoothed over a few seconds
		s.rated = s.windows
		switch {
		case s.closed || s.windows == 0:
		case s.terminal:
			s.wipe()
			line := s.line()
			fmt.Fprint(s.w, line)
			s.width = len([]rune(line))
		case n%10 == 0:
			fmt.Fprintln(s.w, s.line())
		}
		if !s.closed {
			s.hub.Status(web.Status{Phase: web.Monitoring, WindowsPerSecond: s.rate, Fraction: -1})
		}
		s.mu.Unlock()
	}
}

func (s *status) line() string {
	line := fmt.Sprintf("%.1f windows/s   %s", s.rate, strings.ReplaceAll(string(s.last.Verdict), "_", " "))
	if s.last.Verdict == event.NotCutting && s.last.CuttingState != "" {
		line += ", " + plain.Text(s.last.CuttingState)
	}
	if s.last.Tool != "" {
		line += "   tool " + plain.Text(s.last.Tool)
	}
	if s.last.Verdict == event.Healthy || s.last.Verdict == event.Faulty {
		line += fmt.Sprintf("   score %.2f", s.last.Score)
	}
	line += fmt.Sprintf("   alerts %d", s.alerts)
	if s.page != "" {
		line += "   " + s.page
	}
	return line
}

// wipe clears the line.
func (s *status) wipe() {
	if s.width > 0 {
		fmt.Fprintf(s.w, "\r%s\r", strings.Repeat(" ", s.width))
		s.width = 0
	}
}

// close clears the line for good.
func (s *status) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
	s.closed = true
}

// jobSummary is the last line of stdout.
type jobSummary struct {
	Windows    uint64                   `json:"windows"`    // cut from the source
	Results    uint64                   `json:"results"`    // windows with a result
	Faulty     uint64                   `json:"faulty"`     // windows judged faulty
	Alerts     uint64                   `json:"alerts"`     // alarms raised
	Lost       uint64                   `json:"lost"`       // windows without a result
	Duplicated uint64                   `json:"duplicated"` // windows with two results that differ
	Seconds    float64                  `json:"seconds"`    // since the program was started
	Gaps       uint64                   `json:"gaps"`       // spans that no window covers
	Repeats    uint64                   `json:"repeats"`    // results that came again under the same id and were dropped
	Verdicts   map[event.Verdict]uint64 `json:"verdicts"`
	Model      string                   `json:"model"`
	history.Scores
}

// check reports that a recording which was sent to its end was not judged so.
func (s *jobSummary) check() error {
	if s.Lost == 0 && s.Duplicated == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d windows have no result and %d have two that differ: "+
		"start again with the same --data-dir, which goes on where it was, and with --verbose, which says why", s.Lost, s.Windows, s.Duplicated)
}

// summarize prints the summary and returns it.
func (p *plant) summarize(gw *gateway.Gateway, results *history.Collector) (*jobSummary, error) {
	g, r := gw.Stats(), results.Summary()
	if r.Unreadable > 0 {
		p.log.Warn().Uint64("messages", r.Unreadable).Msg("skipped messages on the results and alerts topics that cannot be read; another program must have sent them")
	}
	s := &jobSummary{
		Windows: g.Windows, Results: r.Results, Faulty: r.Verdicts[event.Faulty], Alerts: r.Alerts,
		Lost: g.Windows - min(r.Results, g.Windows), Duplicated: r.Duplicated,
		Seconds: float64(time.Since(p.started).Milliseconds()) / 1000,
		Gaps:    g.Gaps, Repeats: r.Repeats, Verdicts: r.Verdicts, Model: p.model.ID(), Scores: results.Scores(),
	}
	text, err := json.Marshal(s)
	if err != nil {
		return s, fmt.Errorf("summary: %w", err)
	}
	_, err = fmt.Fprintf(p.stdout, "%s\n", text)
	return s, err
}

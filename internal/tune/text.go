package tune

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/report"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// Text returns the choice for a terminal: the trade-off curve as a table, what was
// chosen, and what is to be known before trusting it.
func (c *Choice) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "tools    %d, of which %d turn faulty; %d windows judged, %.2f h of cutting while healthy\n", c.Tools, c.Best.Turned, c.Windows, c.Best.Hours)
	fmt.Fprintf(&b, "budget   %v: %.3g false alarms per cutting hour; %d settings replayed\n\n", c.Budget, c.Budget.Rate(), c.Settings)
	fmt.Fprintf(&b, "%-10s %7s %10s %15s %9s %6s %9s %9s %4s %4s %10s\n", "", "false", "per hour", "95 %", "found", "early", "delay", "at most", "k", "n", "threshold")
	row := func(name string, f Figures) {
		low, high := f.Interval()
		k, n, threshold := strconv.Itoa(f.Settings.K), strconv.Itoa(f.Settings.N), number(f.Settings.Threshold)
		if f.Settings.N == 0 {
			k, n, threshold = "–", "–", "–"
		}
		fmt.Fprintf(&b, "%-10s %7d %10s %15s %9s %6d %9s %9s %4s %4s %10s", name, f.False, rate(f.Rate()), rate(low)+" to "+rate(high),
			fmt.Sprintf("%d of %d", f.Found, f.Turned), f.Early, seconds(f, f.MeanDelay), seconds(f, f.MostDelay), k, n, threshold)
		if f.Chatters {
			b.WriteString("  chatters")
		}
		b.WriteByte('\n')
	}
	for _, f := range c.Curve {
		name := ""
		if f.Settings == c.Best.Settings {
			name = "chosen"
		}
		row(name, f)
	}
	row("now", c.Now)
	if c.Others != nil {
		row("by others", *c.Others)
	}
	b.WriteByte('\n')
	for _, note := range c.Notes() {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	b.WriteString("\n" + c.YAML())
	return b.String()
}

// Notes says in words what a person should know before trusting the choice.
func (c *Choice) Notes() (notes []string) {
	f := c.Best
	if !c.Within {
		notes = append(notes, fmt.Sprintf("NOTHING IS WITHIN THE BUDGET: the fewest false alarms are %d in %.2f h, %s an hour; the settings below have these. Train on more tools, or allow more", f.False, f.Hours, rate(f.Rate())))
	}
	if _, high := f.Interval(); high > c.Budget.Rate() {
		note := fmt.Sprintf("%.2f h of healthy cutting with %d false alarms say that there are at most %s an hour (95 %%)", f.Hours, f.False, rate(high))
		if c.Budget.Alarms > 0 {
			note += fmt.Sprintf("; for %v to be sure, there must be none in %.3g h", c.Budget, hoursFor(c.Budget.Rate()))
		}
		notes = append(notes, note)
	}
	if c.Others != nil {
		notes = append(notes, fmt.Sprintf("settings that are chosen on tools flatter on them: `by others` is each tool under what all others choose without it, and what to expect of the next: %d of %d found, %d false alarms",
			c.Others.Found, c.Others.Turned, c.Others.False))
	} else {
		notes = append(notes, "only one tool turns faulty: what the settings are worth on the next one cannot be said; add tools that were used until they were worn")
	}
	if m := f.Missed(); m > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d tools that turn faulty are missed; the delay is of those that are found", m, f.Turned))
	}
	return notes
}

// YAML returns what to put into monitor.yaml.
func (c *Choice) YAML() string {
	s := c.Best.Settings
	if s.MaxShelf == 0 {
		s.MaxShelf = alarm.Default.MaxShelf
	}
	return fmt.Sprintf("alarm:\n  k: %d\n  n: %d\n  threshold: %s\n  clear: %d\n  on_hold: %s\n  off_hold: %s\n  latch: %t\n  max_shelf: %s\n",
		s.K, s.N, number(s.Threshold), s.Clear, short(s.OnHold), short(s.OffHold), s.Latch, short(s.MaxShelf))
}

// Plot returns the trade-off curve. Points with different numbers of missed tools
// are different series, because their delays are of different tools.
func (c *Choice) Plot() report.Plot {
	p := report.Plot{
		Title:       "Delay to detection against false alarms",
		Description: fmt.Sprintf("The least mean delay for each number of false alarms, of %d settings replayed on %d tools.", c.Settings, c.Tools),
		X:           report.Axis{Label: "false alarms per cutting hour"}, Y: report.Axis{Label: "mean delay, s of cutting"},
	}
	colors := []string{report.Blue, report.Purple, report.Grey}
	for i := 0; i < len(c.Curve); {
		missed, s := c.Curve[i].Missed(), report.Series{Dots: true}
		s.Name, s.Color = "all tools found", report.Green
		if missed > 0 {
			s.Name, s.Color = fmt.Sprintf("%d missed", missed), colors[(missed-1)%len(colors)]
		}
		for ; i < len(c.Curve) && c.Curve[i].Missed() == missed; i++ {
			s.X, s.Y = append(s.X, c.Curve[i].Rate()), append(s.Y, c.Curve[i].MeanDelay.Seconds())
		}
		p.Series = append(p.Series, s)
	}
	mark := func(f Figures, what, color string, words report.Place) {
		if f.Found > 0 {
			text := fmt.Sprintf("%s: %d of %d from %s", what, f.Settings.K, f.Settings.N, number(f.Settings.Threshold))
			p.Marks = append(p.Marks, report.Mark{X: f.Rate(), Y: f.MeanDelay.Seconds(), Text: text, Color: color, Words: words})
		}
	}
	for _, f := range append([]Figures{c.Now, c.Best}, c.Curve...) {
		p.X.High, p.Y.High = max(p.X.High, f.Rate()), max(p.Y.High, f.MeanDelay.Seconds())
	}
	p.X.High, p.Y.High = max(1.05*p.X.High, 1), max(1.1*p.Y.High, 1)
	place := func(f Figures) report.Place {
		if f.Rate() > p.X.High/2 {
			return report.Before
		}
		return report.After
	}
	if c.Now.Settings.K != c.Best.Settings.K || c.Now.Settings.N != c.Best.Settings.N || c.Now.Settings.Threshold != c.Best.Settings.Threshold {
		mark(c.Now, "now", report.Grey, place(c.Now))
	}
	mark(c.Best, "chosen", report.Orange, place(c.Best))
	return p
}

// number writes a threshold; 0 stands for the default.
func number(t float64) string {
	if t == 0 {
		t = alarm.Default.Threshold
	}
	return strconv.FormatFloat(t, 'g', -1, 64)
}

// rate writes a rate an hour.
func rate(r float64) string {
	switch {
	case math.IsInf(r, 1):
		return "∞"
	case r >= 10:
		return strconv.FormatFloat(r, 'f', 1, 64)
	}
	return strconv.FormatFloat(r, 'f', 2, 64)
}

// seconds writes a delay, if a tool was found.
func seconds(f Figures, d time.Duration) string {
	if f.Found == 0 {
		return "–"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
}

package tune

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/report"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// Text returns the choice for a terminal: the trade-off curve as a table, what was
// chosen, and what is to be known before trusting it.
func (c *Choice) Text() string {
	var b strings.Builder
	tools, turned := c.Tools()
	judged, unknown := c.Windows().Windows()
	hours := fmt.Sprintf("%.2f h of cutting while healthy", c.Best.Hours)
	if c.NoHours != "" {
		hours = "hours are not known"
	}
	fmt.Fprintf(&b, "tools    %d, of which %d turn faulty by their labels; %d windows judged, %s\n", tools, turned, judged, hours)
	if unknown > 0 {
		fmt.Fprintf(&b, "unknown  %s\n", c.unknown())
	}
	if c.Budget.Per == 0 {
		fmt.Fprintf(&b, "budget   %v: so many false alarms in all of these windows; %d settings replayed\n\n", c.Budget, c.Settings)
	} else {
		fmt.Fprintf(&b, "budget   %v: %.3g false alarms per cutting hour; %d settings replayed\n\n", c.Budget, c.Budget.Rate(), c.Settings)
	}
	c.table(&b)
	b.WriteByte('\n')
	for _, note := range c.Notes() {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	b.WriteString("\n" + c.YAML())
	return b.String()
}

// table lays the trade-off curve out, with the settings that there are and what becomes
// of each tool under the settings that the others choose.
func (c *Choice) table(b *strings.Builder) {
	rates := func(perHour, interval string) {
		if c.NoHours == "" {
			fmt.Fprintf(b, " %10s %15s", perHour, interval)
		}
	}
	fmt.Fprintf(b, "%-10s %7s", "", "false")
	rates("per hour", "95 %")
	fmt.Fprintf(b, " %9s %6s %9s %9s %4s %4s %10s\n", "found", "early", "delay", "at most", "k", "n", "threshold")
	row := func(name string, f figures) {
		low, high := f.Interval()
		k, n, threshold := strconv.Itoa(f.Settings.K), strconv.Itoa(f.Settings.N), number(f.Settings.Threshold)
		if f.Settings.N == 0 {
			k, n, threshold = "–", "–", "–"
		}
		fmt.Fprintf(b, "%-10s %7d", name, f.False)
		rates(rate(f.Rate()), rate(low)+" to "+rate(high))
		mean, most := c.delay(f)
		fmt.Fprintf(b, " %9s %6d %9s %9s %4s %4s %10s", fmt.Sprintf("%d of %d", f.Found, f.Turned), f.Early, mean, most, k, n, threshold)
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
}

// delay writes the mean and the longest delay: in seconds, or in windows if it is not
// known how long these last.
func (c *Choice) delay(f figures) (mean, most string) {
	if f.Found == 0 {
		return "–", "–"
	}
	if c.NoHours != "" {
		return fmt.Sprintf("%.1f w", f.MeanWindows), fmt.Sprintf("%.0f w", f.MostWindows)
	}
	return fmt.Sprintf("%.1f s", f.MeanDelay.Seconds()), fmt.Sprintf("%.1f s", f.MostDelay.Seconds())
}

// share writes n of a number of windows as a share.
func share(n, of int) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}

// unknown says how many windows are unknown, and of which tools half or more are.
func (c *Choice) unknown() string {
	all := c.Windows()
	judged, unknown := all.Windows()
	s := fmt.Sprintf("%s of %d windows: %s of %d healthy, %s of %d faulty; no alarm counts those, which are out of distribution", share(unknown, judged), judged,
		share(all.UnknownHealthy, all.Healthy), all.Healthy, share(all.UnknownFaulty, all.Faulty), all.Faulty)
	var most []string
	for _, t := range c.Counts {
		of, n := t.Windows()
		switch {
		case n > 0 && 2*n >= of:
			most = append(most, fmt.Sprintf("%s (%s)", t.Tool, share(n, of)))
		case t.UnknownFaulty > 0 && 2*t.UnknownFaulty >= t.Faulty:
			most = append(most, fmt.Sprintf("%s (%s of its %d faulty windows)", t.Tool, share(t.UnknownFaulty, t.Faulty), t.Faulty))
		}
	}
	if len(most) == 0 {
		return s
	}
	return s + "; half or more of " + some(most)
}

// some lists words, but not very many.
func some(words []string) string {
	const most = 20
	if n := len(words); n > most {
		words = append(words[:most:most], fmt.Sprintf("%d more", n-most))
	}
	return strings.Join(words, ", ")
}

// Notes says in words what a person should know before trusting the choice.
func (c *Choice) Notes() (notes []string) {
	f := c.Best
	if !c.Within {
		fewest := fmt.Sprintf("%d in %.2f h, %s an hour", f.False, f.Hours, rate(f.Rate()))
		if c.NoHours != "" {
			fewest = strconv.Itoa(f.False)
		}
		notes = append(notes, fmt.Sprintf("NOTHING IS WITHIN THE BUDGET: the fewest false alarms are %s; the settings below have these. Train on more tools, or allow more", fewest))
	}
	switch _, high := f.Interval(); {
	case c.NoHours != "":
		notes = append(notes, fmt.Sprintf("it is not known how long a window lasts, so that there are counts and no hours, and delays are in windows (w): %s; hold times and chattering were replayed as though a window lasts %v", c.NoHours, c.Assumed))
	case c.Budget.Per == 0 || high > c.Budget.Rate():
		note := fmt.Sprintf("%.2f h of healthy cutting with %d false alarms say that there are at most %s an hour (95 %%)", f.Hours, f.False, rate(high))
		if c.Budget.Alarms > 0 && c.Budget.Per > 0 {
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
	return append(notes, c.lost()...)
}

// lost says of which tools that turn no alarm can count a faulty window, and why. They
// are missed under all settings, unless an alarm was raised too early.
func (c *Choice) lost() (notes []string) {
	var unknown, unjudged []string
	for _, t := range c.Counts {
		switch {
		case t.Faulty > 0 && t.UnknownFaulty == t.Faulty:
			unknown = append(unknown, fmt.Sprintf("%s (%d)", t.Tool, t.Faulty))
		case t.Faulty == 0 && t.Unjudged > 0:
			unjudged = append(unjudged, fmt.Sprintf("%s (%s)", t.Tool, t.Why))
		}
	}
	if len(unknown) > 0 {
		notes = append(notes, "no alarm can find these tools, because the verdict is unknown in each of their faulty windows: "+some(unknown)+
			": train on more tools, or see what is new about these with `trainer evaluate`")
	}
	if len(unjudged) > 0 {
		notes = append(notes, "no alarm can find these tools, because none of their faulty windows is judged: "+some(unjudged)+
			": record tools from their first cut on, and see to the sensors")
	}
	return notes
}

// YAML returns what to put into monitor.yaml.
func (c *Choice) YAML() string {
	s := c.Best.Settings
	s.MaxShelf, s.ReAlarm = cmp.Or(s.MaxShelf, alarm.Default.MaxShelf), cmp.Or(s.ReAlarm, alarm.Default.ReAlarm)
	return fmt.Sprintf("alarm:\n  k: %d\n  n: %d\n  threshold: %s\n  clear: %d\n  on_hold: %s\n  off_hold: %s\n  latch: %t\n  max_shelf: %s\n  re_alarm: %s\n",
		s.K, s.N, number(s.Threshold), s.Clear, config.Duration(s.OnHold), config.Duration(s.OffHold), s.Latch, config.Duration(s.MaxShelf), config.Duration(s.ReAlarm))
}

// Plot returns the trade-off curve. Points with different numbers of missed tools
// are different series, because their delays are of different tools.
func (c *Choice) Plot() report.Plot {
	p := report.Plot{
		Title:       "Delay to detection against false alarms",
		Description: fmt.Sprintf("The least mean delay for each number of false alarms, of %d settings replayed on %d tools.", c.Settings, len(c.Counts)),
		X:           report.Axis{Label: "false alarms per cutting hour"}, Y: report.Axis{Label: "mean delay, s of cutting"},
	}
	x, y := figures.Rate, func(f figures) float64 { return f.MeanDelay.Seconds() }
	if c.NoHours != "" {
		p.X.Label, p.Y.Label = "false alarms", "mean delay, windows"
		x, y = func(f figures) float64 { return float64(f.False) }, func(f figures) float64 { return f.MeanWindows }
	}
	colors := []string{report.Blue, report.Purple, report.Grey}
	for i := 0; i < len(c.Curve); {
		missed, s := c.Curve[i].Missed(), report.Series{Dots: true}
		s.Name, s.Color = "all tools found", report.Green
		if missed > 0 {
			s.Name, s.Color = fmt.Sprintf("%d missed", missed), colors[(missed-1)%len(colors)]
		}
		for ; i < len(c.Curve) && c.Curve[i].Missed() == missed; i++ {
			s.X, s.Y = append(s.X, x(c.Curve[i])), append(s.Y, y(c.Curve[i]))
		}
		p.Series = append(p.Series, s)
	}
	mark := func(f figures, what, color string, words report.Place) {
		if f.Found > 0 {
			text := fmt.Sprintf("%s: %d of %d from %s", what, f.Settings.K, f.Settings.N, number(f.Settings.Threshold))
			p.Marks = append(p.Marks, report.Mark{X: x(f), Y: y(f), Text: text, Color: color, Words: words})
		}
	}
	for _, f := range append([]figures{c.Now, c.Best}, c.Curve...) {
		p.X.High, p.Y.High = max(p.X.High, x(f)), max(p.Y.High, y(f))
	}
	p.X.High, p.Y.High = max(1.05*p.X.High, 1), max(1.1*p.Y.High, 1)
	place := func(f figures) report.Place {
		if x(f) > p.X.High/2 {
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
	return strconv.FormatFloat(cmp.Or(t, alarm.Default.Threshold), 'g', -1, 64)
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

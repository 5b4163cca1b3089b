package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/pkg/signal"
)

// mostEvents is how many events of a machine the text lists. JSON has all.
const mostEvents = 40

// text returns the report for people. Its first lines are what a person decides by.
func (r *Report) text() string {
	var b strings.Builder
	for _, line := range r.summary() {
		fmt.Fprintln(&b, plain.Text(line))
	}
	for _, m := range r.Machines {
		b.WriteByte('\n')
		m.text(&b)
	}
	if len(r.Notes) > 0 {
		b.WriteByte('\n')
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", plain.Text(n))
	}
	return b.String()
}

// summary returns the first lines of the report.
func (r *Report) summary() []string {
	lines := []string{"A         " + r.Models[sideA], "B         " + r.Models[sideB]}
	if r.Windows == 0 {
		return append(lines, "windows   none that both judged, so there is nothing to compare")
	}
	lines = append(lines,
		fmt.Sprintf("windows   %s that both judged, of %s, from %s to %s", number(r.Windows), count(r.compared(), "machine"), dayTime(r.From), dayTime(r.To)),
		"alarms    "+r.Alarms.words())
	if r.Unknown[sideA] != nil && r.Unknown[sideB] != nil {
		lines = append(lines, fmt.Sprintf("unknown   A %s, B %s of the windows while cutting", percent(*r.Unknown[sideA]), percent(*r.Unknown[sideB])))
	}
	if r.WearUM[sideA] != nil || r.WearUM[sideB] != nil {
		lines = append(lines, fmt.Sprintf("wear      at the alarm, median: A %s, B %s", wearWords(r.WearUM[sideA], r.Worn[sideA]), wearWords(r.WearUM[sideB], r.Worn[sideB])))
	}
	var left uint64
	for _, m := range r.Machines {
		for _, n := range m.LeftOut {
			left += n
		}
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("left out  %s windows: see their machines", number(left)))
	}
	return lines
}

// compared returns how many machines have a window that both judged.
func (r *Report) compared() (n int) {
	for _, m := range r.Machines {
		if m.Windows > 0 {
			n++
		}
	}
	return n
}

func wearWords(um *float64, n int) string {
	if um == nil {
		return "not known"
	}
	return fmt.Sprintf("%.0f µm (%s)", *um, count(n, "alarm"))
}

// words returns the tally as a sentence.
func (t eventTally) words() string {
	if t.Both+t.OnlyA+t.OnlyB == 0 {
		return "neither raised one" + t.leftOut()
	}
	var s []string
	if t.Both > 0 {
		both := fmt.Sprintf("%d in both", t.Both)
		var how []string
		for _, k := range []struct {
			n    int
			text string
		}{{t.Earlier, "B earlier in %d"}, {t.Later, "B later in %d"}, {t.Same, "at the same window in %d"}} {
			if k.n > 0 {
				how = append(how, fmt.Sprintf(k.text, k.n))
			}
		}
		s = append(s, fmt.Sprintf("%s (%s; median: %s)", both, strings.Join(how, ", "), laterWords(*t.LaterS)))
	}
	if t.OnlyA > 0 || t.Both == 0 {
		s = append(s, fmt.Sprintf("%d only in A", t.OnlyA))
	}
	if t.OnlyB > 0 || t.Both == 0 {
		s = append(s, fmt.Sprintf("%d only in B", t.OnlyB))
	}
	return strings.Join(s, ", ") + t.leftOut()
}

func (t eventTally) leftOut() string {
	if t.Unannounced == 0 {
		return ""
	}
	return fmt.Sprintf("; %d left out, which stood before or were masked", t.Unannounced)
}

// laterWords says by how much B raised later.
func laterWords(seconds float64) string {
	switch {
	case seconds < 0:
		return span(-seconds) + " earlier"
	case seconds > 0:
		return span(seconds) + " later"
	}
	return "at the same window"
}

// span writes a time in the two units that matter.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.1f days", d.Hours()/24)
	case d >= time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	case d >= time.Minute:
		d = d.Round(time.Second)
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}

// text writes a machine.
func (m *machineReport) text(b *strings.Builder) {
	fmt.Fprintln(b, plain.Text(m.Name))
	if m.Windows > 0 {
		fmt.Fprintf(b, "  %s windows of %s\n", number(m.Windows), count(len(m.Tools), "tool"))
		m.shares(b)
		fmt.Fprintf(b, "  alarms: %s\n", m.Alarms.words())
		m.events(b)
	}
	for _, line := range m.Remarks() {
		fmt.Fprintf(b, "  %s\n", plain.Text(line))
	}
}

// Remarks returns what else is to be said of a machine.
func (m *machineReport) Remarks() (lines []string) {
	if m.Joined != nil {
		lines = append(lines, fmt.Sprintf("tool %s was in the spindle when the replay began: its reference is of windows from then on, so do not trust its verdicts unless it was new", cmp.Or(*m.Joined, "-")))
	}
	for _, why := range slices.Sorted(maps.Keys(m.LeftOut)) {
		lines = append(lines, fmt.Sprintf("left out: %s windows: %s", number(m.LeftOut[why]), why))
	}
	return lines
}

// verdictRow is how often each side gave a verdict.
type verdictRow struct {
	Name string
	A, B uint64
}

// Verdicts returns how often each side gave each verdict.
func (m *machineReport) Verdicts() (rows []verdictRow) {
	for _, v := range event.Verdicts {
		rows = append(rows, verdictRow{strings.ReplaceAll(string(v), "_", " "), m.Counts[sideA][v], m.Counts[sideB][v]})
	}
	return rows
}

// shares writes how often each side gave each verdict.
func (m *machineReport) shares(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	a, bb := "\n  A\t", "\n  B\t"
	fmt.Fprint(t, "\t")
	for _, v := range m.Verdicts() {
		fmt.Fprintf(t, "%s\t", v.Name)
		a += number(v.A) + "\t"
		bb += number(v.B) + "\t"
	}
	fmt.Fprint(t, a, bb)
	fmt.Fprintln(t)
	_ = t.Flush() // a builder takes all
}

// events writes the alarms, those first on which the sides differ the most in kind.
func (m *machineReport) events(b *strings.Builder) {
	if len(m.Events) == 0 {
		return
	}
	wear := slices.ContainsFunc(m.Events, func(e occasion) bool { return hasWear(e.A) || hasWear(e.B) })
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "  tool\tA raised\tB raised\tB compared with A")
	if wear {
		fmt.Fprint(t, "\twear A\twear B")
	}
	fmt.Fprintln(t)
	for _, e := range m.Events[:min(len(m.Events), mostEvents)] {
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s", plain.Text(cmp.Or(e.Tool, "-")), raised(e.A), raised(e.B), e.Words())
		if wear {
			fmt.Fprintf(t, "\t%s\t%s", wearOf(e.A), wearOf(e.B))
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // a builder takes all
	if n := len(m.Events) - mostEvents; n > 0 {
		fmt.Fprintf(b, "  and %d more: --format json lists all\n", n)
	}
}

// Words says how B compares with A.
func (e occasion) Words() string {
	var s string
	switch e.Kind {
	case kindOnlyA:
		s = "only in A"
	case kindOnlyB:
		s = "only in B"
	case kindUnknown:
		s = "stood before, or was masked"
	default:
		s = laterWords(*e.LaterS)
	}
	if a, b := len(e.A), len(e.B); a > 1 || b > 1 {
		s += fmt.Sprintf(" (alarms: %d of A, %d of B)", a, b)
	}
	return s
}

func hasWear(alarms []*Alarm) bool { return len(alarms) > 0 && alarms[0].WearUM != nil }

func wearOf(alarms []*Alarm) string {
	if !hasWear(alarms) {
		return "-"
	}
	return fmt.Sprintf("%.0f µm", *alarms[0].WearUM)
}

func raised(alarms []*Alarm) string {
	if len(alarms) == 0 {
		return "-"
	}
	return dayTime(alarms[0].Raised)
}

func dayTime(t time.Time) string { return signal.FormatTime(t.UTC(), time.DateTime) }

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// number writes n with commas between thousands.
func number(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

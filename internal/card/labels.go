package card

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flank-tcm/flank/internal/report"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Labels says which windows have a label, and why others have none.
type Labels struct {
	Source     string   // what the labels come from
	Rule       string   // in words
	States     string   // which states became which class, in words; empty if none did
	Classes    []string // names
	Tools      []LabelledTool
	Mismatches []string // names and times that should agree in wear file and recordings
	Warnings   []string
}

// LabelledTool is the life of a tool.
type LabelledTool struct {
	Name    string
	Windows []LabelledWindow // in the order of time
}

// LabelledWindow is a window with its label.
type LabelledWindow struct {
	Start  time.Time // zero if not known
	Length time.Duration
	Class  int     // or NoLabel
	WearUM float64 // NaN if not known
	Why    string  // it has no label
}

// NoLabel is the class of a window without a label.
const NoLabel = -1

const barWidth = 60 // characters at most

// Count returns how many windows there are of each class, and without a label.
func (t LabelledTool) Count(classes int) (of []int, without int) {
	of = make([]int, classes)
	for _, w := range t.Windows {
		if w.Class == NoLabel {
			without++
		} else {
			of[w.Class]++
		}
	}
	return of, without
}

// Labelled returns the number of windows with a label, and of all.
func (l *Labels) Labelled() (labelled, all int) {
	for _, t := range l.Tools {
		_, without := t.Count(len(l.Classes))
		labelled, all = labelled+len(t.Windows)-without, all+len(t.Windows)
	}
	return labelled, all
}

// ShortOfAlarm says which worn tools have too few windows of other classes than the first for an alarm, which takes k; nothing if none has.
func (l *Labels) ShortOfAlarm(k int) string {
	short, worn, first := 0, 0, ""
	for _, t := range l.Tools {
		of, _ := t.Count(len(l.Classes))
		n := sum(of[1:])
		if n > 0 {
			worn++
		}
		if n > 0 && n < k {
			if short++; first == "" {
				first = fmt.Sprintf("%s with %d", t.Name, n)
			}
		}
	}
	if short == 0 {
		return ""
	}
	return fmt.Sprintf("tools with fewer %s windows than the %d that raise an alarm: %d of %d, such as %s: shorten `window: length`, or record on after the limit",
		strings.Join(l.Classes[1:], " or "), k, short, worn, first)
}

// sort brings the tools in the order in which people count.
func (l *Labels) sort() {
	slices.SortStableFunc(l.Tools, func(a, b LabelledTool) int { return CompareNames(a.Name, b.Name) })
}

// Text shows the labels as people read them: a line for each tool.
func (l *Labels) Text() string {
	l.sort()
	var b bytes.Buffer
	total, none, longest := make([]int, len(l.Classes)), 0, 1
	for _, t := range l.Tools {
		of, without := t.Count(len(l.Classes))
		for k, n := range of {
			total[k] += n
		}
		none += without
		longest = max(longest, len(t.Windows))
	}
	_, all := l.Labelled()
	fmt.Fprintf(&b, "labels   %s: %s\n", l.Source, l.Rule)
	fmt.Fprintf(&b, "windows  %d of %s: %s\n", all, count(len(l.Tools), "tool", "tools"), l.census(total, none))
	b.WriteString("pauses   count here: trainer fit leaves out windows without cutting, and those that make a reference\n")
	if l.States != "" {
		fmt.Fprintf(&b, "states   %s\n", l.States)
	}
	each := (longest + barWidth - 1) / barWidth
	fmt.Fprintf(&b, "bars     a character is %s: ", map[bool]string{true: "a window", false: fmt.Sprintf("%d windows, by the class of most of them", each)}[each == 1])
	for k, name := range l.Classes {
		fmt.Fprintf(&b, "%c %s, ", l.sign(k), name)
	}
	fmt.Fprintf(&b, "%c no label\n\n", l.sign(NoLabel))
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, tool := range l.Tools {
		of, without := tool.Count(len(l.Classes))
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", tool.Name, l.bar(tool, each), l.census(of, without), tool.wear(), tool.life())
	}
	_ = t.Flush() // to memory
	if why := l.why(); why != "" {
		fmt.Fprintf(&b, "\nwithout a label:\n%s", why)
	}
	for _, text := range slices.Concat(l.Mismatches, l.Warnings) {
		fmt.Fprintf(&b, "\n%s\n", text)
	}
	return b.String()
}

// census says how many windows there are of each class that occurs.
func (l *Labels) census(of []int, without int) string {
	var words []string
	for k, n := range of {
		if n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, l.Classes[k]))
		}
	}
	if without > 0 {
		words = append(words, fmt.Sprintf("%d without a label", without))
	}
	return strings.Join(words, ", ")
}

// sign returns the character of a class.
func (l *Labels) sign(class int) rune {
	switch {
	case class == NoLabel:
		return '.'
	case class == 0:
		return '-'
	case len(l.Classes) == 2:
		return '#'
	case class < 10:
		return rune('0' + class)
	}
	return rune('A' + class - 10)
}

// bar draws a tool's life. A character stands for a number of windows.
func (l *Labels) bar(t LabelledTool, each int) string {
	var b strings.Builder
	for part := range slices.Chunk(t.Windows, each) {
		of, without := LabelledTool{Windows: part}.Count(len(l.Classes))
		most, n := NoLabel, without
		for k, count := range of {
			if count >= n && count > 0 {
				most, n = k, count
			}
		}
		b.WriteRune(l.sign(most))
	}
	return b.String()
}

// wear says between which bounds the wear of the windows lies.
func (t LabelledTool) wear() string {
	least, most := math.Inf(1), math.Inf(-1)
	for _, w := range t.Windows {
		if w.WearUM == w.WearUM {
			least, most = min(least, w.WearUM), max(most, w.WearUM)
		}
	}
	switch {
	case least > most:
		return "–"
	case least == most:
		return fmt.Sprintf("%.4g µm", most)
	}
	return fmt.Sprintf("%.4g to %.4g µm", least, most)
}

// life says when the tool was used.
func (t LabelledTool) life() string {
	first, last := t.Windows[0], t.Windows[0]
	for _, w := range t.Windows {
		if w.Start.Before(first.Start) {
			first = w
		}
		if last.Start.Before(w.Start) {
			last = w
		}
	}
	from, to := first.Start, last.Start.Add(last.Length)
	switch {
	case from.IsZero():
		return "no times"
	case !signal.HasClock(from):
		return fmt.Sprintf("%.6g to %.6g s", from.Sub(time.Unix(0, 0)).Seconds(), to.Sub(time.Unix(0, 0)).Seconds())
	}
	const form = "2006-01-02 15:04:05"
	if from.UTC().Format(time.DateOnly) == to.UTC().Format(time.DateOnly) {
		return from.UTC().Format(form) + " to " + to.UTC().Format("15:04:05") + " UTC"
	}
	return from.UTC().Format(form) + " to " + to.UTC().Format(form) + " UTC"
}

// why lists the reasons why windows have no label, tool by tool.
func (l *Labels) why() string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, tool := range l.Tools {
		counts := make(map[string]int)
		var reasons []string
		for _, w := range tool.Windows {
			if w.Class != NoLabel {
				continue
			}
			if counts[w.Why]++; counts[w.Why] == 1 {
				reasons = append(reasons, w.Why)
			}
		}
		for _, reason := range reasons {
			fmt.Fprintf(t, "  %s\t%d of %d windows\t%s\n", tool.Name, counts[reason], len(tool.Windows), reason)
		}
	}
	_ = t.Flush() // to memory
	return b.String()
}

// SVG draws a line for each tool, from its first window on, without pauses.
func (l *Labels) SVG() []byte {
	l.sort()
	labelled, all := l.Labelled()
	longest := 0.0
	for _, t := range l.Tools {
		at := t.seconds()
		longest = max(longest, at[len(at)-1]+t.Windows[len(at)-1].Length.Seconds())
	}
	unit, label := 1.0, "seconds of the tool, without pauses"
	switch {
	case longest > 3*3600:
		unit, label = 3600, "hours of the tool, without pauses"
	case longest > 3*60:
		unit, label = 60, "minutes of the tool, without pauses"
	}
	p := report.Timeline{
		Title: fmt.Sprintf("Labels of %d of %d windows", labelled, all), Label: label, High: longest / unit,
		Description: fmt.Sprintf("One line for each of %s: the class of its windows over its life.", count(len(l.Tools), "tool", "tools")),
		Lanes:       []report.Lane{l.legend(longest / unit)},
	}
	for _, t := range l.Tools {
		lane := report.Lane{Name: report.Shorten(cmp.Or(t.Name, "(no name)"), 14)}
		at := t.seconds()
		for i, w := range t.Windows {
			s := report.Span{From: at[i] / unit, To: (at[i] + w.Length.Seconds()) / unit, Color: l.color(w.Class)}
			if n := len(lane.Spans); n > 0 && lane.Spans[n-1].Color == s.Color && s.From-lane.Spans[n-1].To < longest/unit/1000 {
				lane.Spans[n-1].To = s.To
			} else {
				lane.Spans = append(lane.Spans, s)
			}
		}
		p.Lanes = append(p.Lanes, lane)
	}
	return p.SVG()
}

// legend names the colours, on a line of the given length.
func (l *Labels) legend(length float64) report.Lane {
	lane := report.Lane{}
	names := append(slices.Clone(l.Classes), "no label")
	for k, name := range names {
		if k == len(l.Classes) {
			k = NoLabel
		}
		from := length * float64(len(lane.Spans)) / float64(len(names))
		lane.Spans = append(lane.Spans, report.Span{From: from, To: from + length/float64(4*len(names)), Color: l.color(k), Text: name})
	}
	return lane
}

func (l *Labels) color(class int) string {
	if class == NoLabel {
		return report.Grey
	}
	if len(l.Classes) == 2 {
		return [...]string{report.Blue, report.Orange}[class]
	}
	return [...]string{report.Blue, report.Green, report.Purple, report.Orange}[class*3/max(len(l.Classes)-1, 1)]
}

// seconds returns how many seconds of the tool there are before each window. A pause is left out, or a
// tool that is used once a day would have a line of pauses; so is a time that is not known or that goes
// back because another recording follows.
func (t LabelledTool) seconds() []float64 {
	at := make([]float64, len(t.Windows))
	for i := 1; i < len(at); i++ {
		step := t.Windows[i].Start.Sub(t.Windows[i-1].Start)
		if length := t.Windows[i-1].Length; step <= 0 || step > length {
			step = length
		}
		at[i] = at[i-1] + step.Seconds()
	}
	return at
}

// RuleOf returns the rule that a model was labelled by.
func RuleOf(m *model.Model) wear.Rule {
	l := m.Label
	r := wear.Rule{VBMaxUM: l.VBMaxUM, VBMeanUM: l.VBMeanUM, States: l.States, HealthyStates: l.HealthyStates}
	for _, c := range l.Classes {
		r.Classes = append(r.Classes, wear.Class(c))
	}
	return r
}

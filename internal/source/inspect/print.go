package inspect

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Print writes the summary for people.
func (s *Summary) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n", plain.Text(s.Path))
	for _, n := range s.Notes {
		fmt.Fprintf(w, "  note: %s\n", plain.Text(n))
	}
	fmt.Fprintf(w, "%s\n", s.head())
	if read := s.Read(); read != "" {
		fmt.Fprintln(w, read)
	}
	if s.Tool != "" {
		fmt.Fprintf(w, "tool      %s\n", plain.Text(s.Tool))
	}
	if c := s.Clock; c != nil {
		fmt.Fprintln(w, c)
	}
	if !signal.HasClock(s.Start) {
		fmt.Fprintln(w, "start     not known, so times are seconds from it: name it by --start, and by `start` in ingest.yaml and train.yaml")
	}
	s.printGaps(w)
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tunit\tHz\tsamples\tseconds\tmissing\tmin\tmean\tmax\tdeviation\trms\t")
	widest := 0
	for _, c := range s.Channels {
		widest = max(widest, utf8.RuneCountInString(plain.Text(c.Name)))
	}
	for i := range s.Channels {
		s.Channels[i].print(t, widest)
	}
	return t.Flush()
}

// print writes the channel as a row of the table, with its name as wide as the widest one.
func (c *Channel) print(t io.Writer, widest int) {
	name := plain.Text(cmp.Or(c.Name, "(unnamed)"))
	name += strings.Repeat(" ", max(0, widest-utf8.RuneCountInString(name)))
	rate, length, more := "–", "–", ""
	if c.Left < 0 {
		more = ">"
	}
	if c.Rate > 0 {
		rate, length = number(c.Rate), more+number(c.Duration().Seconds())
	}
	fmt.Fprintf(t, "%s\t%s\t%s\t%s%d\t%s\t%d\t", name, plain.Text(c.Unit), rate, more, c.Samples(), length, c.Missing)
	switch {
	case c.Text:
		fmt.Fprintf(t, "text\t\t\t\t\t %s\n", c.words8())
		return
	case c.Count == 0:
		fmt.Fprintf(t, "–\t–\t–\t–\t–\t\n")
		return
	}
	fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t", number(c.Min), number(c.Mean()), number(c.Max), number(c.Deviation()), number(c.RMS()))
	switch why := c.Leak.Why(); {
	case c.Other != "":
		fmt.Fprintf(t, " %s", plain.Text(c.Other))
	case c.Constant():
		fmt.Fprint(t, " constant")
	case why != "" && !NamesTime(c.Name):
		fmt.Fprintf(t, " no measurement? %s", why)
	}
	if c.Infinite > 0 {
		fmt.Fprintf(t, " %d infinite", c.Infinite)
	}
	fmt.Fprintln(t)
}

// String says what the column of times says.
func (c *Clock) String() string {
	column := fmt.Sprintf("column %q", c.Column)
	if c.Date != "" {
		column += fmt.Sprintf(", with the date in %q", c.Date)
	}
	text := fmt.Sprintf("time      %s, usual step %s", column, number(c.Step))
	switch {
	case c.Counts != "":
		text += " s: it seems to count " + c.Counts
	case c.Stamps || c.Unit != 0:
		text += " s"
	case c.Step >= 1:
		text += fmt.Sprintf(": %s Hz if it counts seconds, %s Hz if milliseconds", number(1/c.Step), number(1000/c.Step))
	default:
		text += fmt.Sprintf(": %s Hz if it counts seconds", number(1/c.Step))
	}
	if c.Jitter > 0.05 && c.coarse == 0 {
		text += fmt.Sprintf(", rows are up to %.2g of it early or late", c.Jitter)
	}
	if c.Still > 0 {
		text += fmt.Sprintf("; stands still at %d rows", c.Still)
	}
	if c.Restarts > 0 {
		text += fmt.Sprintf("; begins again with %d tools", c.Restarts)
	}
	if c.Backwards > 0 {
		text += fmt.Sprintf("; goes back at %d rows", c.Backwards)
	}
	return text
}

// head says how many channels there are and for how long.
func (s *Summary) head() string {
	var longest time.Duration
	for i := range s.Channels {
		longest = max(longest, s.Channels[i].Duration())
	}
	text := fmt.Sprintf("channels  %d", len(s.Channels))
	if longest > 0 {
		text += fmt.Sprintf(", %s s", number(longest.Seconds()))
		if slices.ContainsFunc(s.Channels, func(c Channel) bool { return c.Left < 0 }) {
			text += " or more"
		}
	} else {
		text += ", rate not known: give --rate or --layout"
	}
	if signal.HasClock(s.Start) {
		text += ", from " + s.Start.UTC().Format("2006-01-02 15:04:05.999 MST")
	}
	if s.Sessions > 1 {
		text += fmt.Sprintf(", %d sessions", s.Sessions)
	}
	return text
}

// Read says how much was read of a long recording; empty if all was.
func (s *Summary) Read() string {
	if s.Pieces == 0 {
		return ""
	}
	var read, all int64
	known := true
	for _, c := range s.Channels {
		read, all, known = read+c.Count, all+c.Samples(), known && c.Left >= 0
	}
	what := "the beginning"
	if s.Pieces > 1 {
		what = fmt.Sprintf("the beginning and %d pieces behind it", s.Pieces-1)
	}
	if known {
		what += fmt.Sprintf(", %.2g %% of the samples", 100*float64(read)/float64(all))
	}
	return fmt.Sprintf("read      %s: figures are of them, and what else the recording holds is not known; --all reads everything", what)
}

func (s *Summary) printGaps(w io.Writer) {
	of := ""
	if s.Pieces > 0 {
		of = " in what was read"
	}
	switch {
	case s.GapCount == 0 && s.Clock == nil && s.Sessions == 0:
		fmt.Fprintln(w, "gaps      not known: nothing in the recording says the time of a sample")
		return
	case s.GapCount == 0:
		fmt.Fprintf(w, "gaps      none%s\n", of)
		return
	}
	fmt.Fprintf(w, "gaps      %d%s\n", s.GapCount, of)
	for i, g := range s.Gaps {
		if i == 5 {
			fmt.Fprintf(w, "          and %d more\n", s.GapCount-5)
			break
		}
		fmt.Fprintf(w, "          %s s before sample %d", number(g.Duration.Seconds()), g.At)
		if !g.Time.IsZero() {
			fmt.Fprintf(w, ", from %s", signal.FormatTime(g.Time.UTC(), "15:04:05.999"))
		}
		fmt.Fprintln(w)
	}
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

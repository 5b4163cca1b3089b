package shift

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/pkg/score"
)

// Add adds what happened in another row.
func (r *toolRow) Add(o *toolRow) {
	r.Windows += o.Windows
	r.Missing += o.Missing
	r.Cutting += o.Cutting
	r.Alarms += o.Alarms
	r.False += o.False
	r.Labelled += o.Labelled
	r.Chattering += o.Chattering
	r.Acknowledged += o.Acknowledged
	r.Answered += o.Answered
	r.AckTotal += o.AckTotal
	r.AckMost = max(r.AckMost, o.AckMost)
	r.Shelved += o.Shelved
	r.Suppressed += o.Suppressed
	r.OutOfService += o.OutOfService
	for v, n := range o.Verdicts {
		r.Verdicts[v] += n
	}
	for k, n := range o.Advisories {
		r.Advisories[k] += n
	}
	for _, m := range o.Models {
		if !slices.Contains(r.Models, m) {
			r.Models = append(r.Models, m)
		}
	}
}

// Total returns the sum of all shifts.
func (m *machineShift) Total() *toolRow {
	t := &toolRow{Shift: "all", Verdicts: make(map[event.Verdict]int), Advisories: make(map[string]int)}
	for i, r := range m.Rows {
		if i == 0 {
			t.Start = r.Start
		}
		t.End = r.End
		t.Add(r)
	}
	return t
}

// sheet is a table of words: the first row is its head.
type sheet struct {
	left int // columns that begin at the left
	rows [][]string
}

// text lays the table out for a terminal.
func (s sheet) text() string {
	var widths []int
	for _, row := range s.rows {
		for c, cell := range row {
			if c == len(widths) {
				widths = append(widths, 0)
			}
			widths[c] = max(widths[c], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range s.rows {
		line := ""
		for c, cell := range row {
			room := strings.Repeat(" ", widths[c]-utf8.RuneCountInString(cell))
			if c < s.left {
				line += cell + room + "  "
			} else {
				line += room + cell + "  "
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// markdown lays it out as GitHub draws tables.
func (s sheet) markdown() string {
	var b strings.Builder
	for i, row := range s.rows {
		for _, cell := range row {
			b.WriteString("| " + cell + " ")
		}
		b.WriteString("|\n")
		if i == 0 {
			for c := range row {
				b.WriteString(map[bool]string{true: "|---", false: "|---:"}[c < s.left])
			}
			b.WriteString("|\n")
		}
	}
	return b.String()
}

// shifts is the table of a machine's shifts.
func (m *machineShift) shifts() sheet {
	s := sheet{left: 1, rows: [][]string{{"shift", "windows", "missing", "cutting", "alarms", "false", "chattering", "acknowledged", "after", "at most", "masked", "sensor", "other"}}}
	for _, r := range append(slices.Clone(m.Rows), m.Total()) {
		mean := "–"
		most := "–"
		if r.Acknowledged > 0 {
			mean, most = lasted(r.AckTotal/seconds(r.Acknowledged)), lasted(r.AckMost)
		}
		other := 0
		for kind, n := range r.Advisories {
			if kind != string(event.SensorAdvisory) {
				other += n
			}
		}
		s.rows = append(s.rows, []string{
			r.Shift, fmt.Sprint(r.Windows), fmt.Sprint(r.Missing), hours(r.Cutting), fmt.Sprint(r.Alarms), fmt.Sprint(r.False), fmt.Sprint(r.Chattering),
			fmt.Sprint(r.Acknowledged), mean, most, lasted(r.Shelved + r.Suppressed + r.OutOfService), fmt.Sprint(r.Advisories[string(event.SensorAdvisory)]), fmt.Sprint(other),
		})
	}
	return s
}

// tools is the table of a machine's tools.
func (m *machineShift) tools(limit float64, zone *time.Location, safe func(string) string) sheet {
	s := sheet{left: 3, rows: [][]string{{"tool", "seen from", "to", "cutting", "wear", "of limit", "alarms", ""}}}
	for _, t := range m.Tools {
		um, of := "–", "–"
		if t.WearUM != nil {
			um = fmt.Sprintf("%.0f µm", *t.WearUM)
			if limit > 0 {
				of = fmt.Sprintf("%.0f %%", 100**t.WearUM/limit)
			}
		}
		var notes []string
		if !t.Whole {
			notes = append(notes, "was in before")
		}
		if !t.Changed {
			notes = append(notes, "is in still")
		}
		s.rows = append(s.rows, []string{t.called(safe), stamp(t.From, zone), stamp(t.To, zone), hours(t.Cutting), um, of, fmt.Sprint(t.Alarms), strings.Join(notes, ", ")})
	}
	return s
}

// called returns what people call the tool.
func (t *tool) called(safe func(string) string) string {
	if t.Tool == "" {
		return "–"
	}
	return safe(t.Tool)
}

// words are sentences on what the tables do not hold.
func (m *machineShift) words(limit float64, safe func(string) string) (out []string) {
	t := m.Total()
	say := func(what bool, format string, a ...any) {
		if what {
			out = append(out, fmt.Sprintf(format, a...))
		}
	}
	var shares []string
	for _, v := range event.Verdicts {
		if n := t.Verdicts[v]; n > 0 {
			shares = append(shares, fmt.Sprintf("%d %s", n, strings.ReplaceAll(string(v), "_", " ")))
		}
	}
	say(len(shares) > 0, "Windows: %s.", strings.Join(shares, ", "))
	if h := t.Cutting.Duration().Hours(); h > 0 {
		low, high := score.RateInterval(t.False, h)
		say(true, "False alarms per cutting hour: %.2f (95 %%: %.2f to %.2f). Measured wear says of %d of %d alarms whether they were false; the others count as false if a person said so.",
			float64(t.False)/h, low, high, t.Labelled, t.Alarms)
	}
	say(t.Chattering > 0, "CHATTERING: %d times a third transition within a minute. Lengthen alarm.off_hold; with 60s it cannot be.", t.Chattering)
	say(m.Open > 0, "An alarm is still raised, and no one has acknowledged it.")
	say(t.Missing > 0, "%d windows are missing: look at the gateway's spool, and at the monitor's log for why.", t.Missing)
	say(t.Shelved+t.Suppressed+t.OutOfService > 0, "The alarm was kept from calling: shelved %s, suppressed %s, out of service %s.", lasted(t.Shelved), lasted(t.Suppressed), lasted(t.OutOfService))
	var kinds, models []string
	for _, k := range slices.Sorted(maps.Keys(t.Advisories)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", t.Advisories[k], safe(k)))
	}
	say(len(kinds) > 0, "Advisories: %s.", strings.Join(kinds, ", "))
	changed, unnoticed := m.changed(limit, safe)
	say(len(m.Tools) > 0, "Tools changed: %d. Wear is the model's estimate after the last window of each.", changed)
	say(len(unnoticed) > 0, "Beyond the limit by the estimate, and no alarm: %s. Look at these tools: were they missed, or is the estimate wrong?", strings.Join(unnoticed, ", "))
	for _, id := range t.Models {
		models = append(models, safe(id))
	}
	say(len(models) > 0, "Judged by %s.", strings.Join(models, ", "))
	return out
}

// changed returns how many tools were changed, and those beyond the limit of wear that had no alarm.
func (m *machineShift) changed(limit float64, safe func(string) string) (n int, unnoticed []string) {
	for _, tool := range m.Tools {
		if !tool.Changed {
			continue
		}
		if n++; limit > 0 && tool.WearUM != nil && *tool.WearUM >= limit && tool.Alarms == 0 {
			unnoticed = append(unnoticed, tool.called(safe))
		}
	}
	return n, unnoticed
}

func (c Config) title() string {
	return fmt.Sprintf("%s to %s, shifts %v", stamp(c.Since, c.Plan.zone), stamp(c.Until, c.Plan.zone), c.Plan)
}

const nothing = "Nothing happened: no result, alert or advisory of that time is on Kafka.\n"

// Text returns the report of some machines for a terminal.
func Text(c Config, all []*machineShift) string {
	return c.document(all, [3]string{}, sheet.text, plain.Text)
}

// Markdown returns the same as a document.
func Markdown(c Config, all []*machineShift) string {
	return c.document(all, [3]string{"# ", "## ", "- "}, sheet.markdown, plain.Markdown)
}

// document returns the report with the given marks before its title, before the machines'
// names and before the facts about them. Names pass through safe.
func (c Config) document(all []*machineShift, marks [3]string, text func(sheet) string, safe func(string) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\n", marks[0], c.title())
	if len(all) == 0 {
		b.WriteString("\n" + nothing)
	}
	for _, m := range all {
		fmt.Fprintf(&b, "\n%s%s\n\n%s", marks[1], safe(m.Machine), text(m.shifts()))
		if len(m.Tools) > 0 {
			b.WriteString("\n" + text(m.tools(c.LimitUM, c.Plan.zone, safe)))
		}
		b.WriteString("\n")
		for _, w := range m.words(c.LimitUM, safe) {
			b.WriteString(marks[2] + w + "\n")
		}
	}
	return b.String()
}

// JSON returns it for programs. A key that is there stays.
func JSON(c Config, all []*machineShift) []byte {
	if all == nil {
		all = []*machineShift{}
	}
	text, err := json.MarshalIndent(struct {
		Since    time.Time       `json:"since"`
		Until    time.Time       `json:"until"`
		Shifts   string          `json:"shifts"`
		LimitUM  float64         `json:"wear_limit_um,omitempty"`
		Machines []*machineShift `json:"machines"`
	}{c.Since, c.Until, c.Plan.String(), c.LimitUM, all}, "", "  ")
	if err != nil {
		panic("shift: " + err.Error()) // plain data
	}
	return append(text, '\n')
}

func stamp(t time.Time, zone *time.Location) string { return t.In(zone).Format("2006-01-02 15:04") }

func hours(s seconds) string { return fmt.Sprintf("%.2f h", s.Duration().Hours()) }

// lasted writes a time to the second, without units that are zero.
func lasted(s seconds) string {
	text := (time.Duration(math.Round(float64(s))) * time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

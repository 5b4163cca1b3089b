package wear

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/flank-tcm/flank/pkg/signal"
)

// Mismatches says in words which rows go for no window that was seen, where names or
// times on both sides look as if they were meant to agree, and which may go for more than they are meant for. It is to be called when
// all windows were asked about.
func (j *Join) Mismatches() []string {
	j.settle()
	var out []string
	if text := j.lostTools(); text != "" {
		out = append(out, text)
	}
	for _, h := range j.all {
		if h.tools[1] != "" {
			text := "%s: %s is of tool %q, and another one of that name of tool %q: name the tool too"
			out = append(out, fmt.Sprintf(text, at(h.rows[0]), h.rows[0].subject(), h.tools[0], h.tools[1]))
		}
		switch {
		case !h.matched:
		case h.form == holes:
			if text := j.holesOf(h); text != "" {
				out = append(out, text)
			}
		case h.labelled == 0 && h.form != whole:
			out = append(out, h.times())
		case h.form != whole:
			if text := h.unused(); text != "" {
				out = append(out, text)
			}
			if text := j.late(h); text != "" {
				out = append(out, text)
			}
		}
	}
	return out
}

// late says that a tool was measured so long after its last window that its windows are taken for less worn than they were if it did not cut
// meanwhile.
func (j *Join) late(h *history) string {
	i := slices.IndexFunc(h.moments, func(m Measurement) bool { return m.Time.After(h.until) })
	if i < 0 || 20*h.moments[i].Time.Sub(h.until) < h.until.Sub(h.from) {
		return ""
	}
	for key, t := range j.tools {
		if name, _, _ := strings.Cut(key.tool, ofLife); (name == h.tool || key.tool == h.tool) && t.end.Equal(h.until) && t.takenOut() && h.began.IsZero() {
			return ""
		}
	}
	m := h.moments[i]
	return fmt.Sprintf("%s: %s was measured %v after its last window, at %s, and its wear is taken to grow until then: if it did not cut meanwhile, write the time of that window", at(m), m.subject(), m.Time.Sub(h.until).Round(time.Second), timeWords(h.until))
}

// lostTools compares the tools and recordings that rows name with the windows.
func (j *Join) lostTools() string {
	var rows, others, guesses []string // rows with a guess, rows without
	for _, h := range j.all {
		if h.matched {
			continue
		}
		if guess := j.guess(h); guess != "" {
			rows, guesses = append(rows, h.named()), append(guesses, guess)
		} else {
			others = append(others, h.named())
		}
	}
	bare := j.bare()
	if len(rows) == 0 && (len(others) == 0 || len(bare) == 0) {
		return "" // a wear file may be of more tools than the recordings
	}
	text := "no window is of " + listed(append(rows, others...), 2)
	if len(bare) > 0 {
		text += "; no row is of " + listed(bare, 2)
	} else {
		text += "; windows are of " + listed(j.seen(), 2)
	}
	if len(guesses) == 0 && j.byFile() {
		text += "; tools are named after their files, as the layout has no column of tools: write those names, or name the column"
	}
	if len(guesses) > 0 {
		text += ": did you mean " + strings.Join(guesses[:min(2, len(guesses))], " and ") + "?"
	}
	return text
}

// byFile reports whether all tools are named after their recordings.
func (j *Join) byFile() bool {
	return !slices.ContainsFunc(j.order, func(of subject) bool { return of.tool != of.recording })
}

// named says what the first row of h is of, and where it is.
func (h *history) named() string {
	m := h.rows[0]
	text := m.subject()
	if m.Machine != "" {
		text += fmt.Sprintf(" of machine %q", m.Machine)
	}
	if m.Where != "" {
		text += " (" + m.Where + ")"
	}
	return text
}

// bare returns the tools of windows that no row goes for, in words.
func (j *Join) bare() []string {
	var words []string
	for _, key := range j.toolOrder {
		if !slices.ContainsFunc(j.tools[key].recordings, func(rec string) bool {
			return j.find(Window{Machine: key.machine, Tool: key.tool, Recording: rec}) != nil
		}) {
			words = append(words, j.describe(key))
		}
	}
	return words
}

// seen returns the tools of windows, in words.
func (j *Join) seen() []string {
	var words []string
	for _, key := range j.toolOrder {
		words = append(words, j.describe(key))
	}
	return words
}

// describe names a tool of windows, with its machine if rows name machines and with its
// recording if they name recordings.
func (j *Join) describe(key toolKey) string {
	text := fmt.Sprintf("tool %q", key.tool)
	switch t := j.tools[key]; {
	case !j.recording || t.first == "":
	case t.first == key.tool: // it is named after the file
		text = fmt.Sprintf("recording %q", t.first)
	default:
		text += fmt.Sprintf(" in recording %q", t.first)
	}
	if slices.ContainsFunc(j.all, func(h *history) bool { return h.machine != "" }) {
		text += fmt.Sprintf(" of machine %q", key.machine)
	}
	return text
}

// guess returns what may have been meant by the names of rows that go for no window.
func (j *Join) guess(h *history) string {
	var tools, recordings, machines []string
	for _, key := range j.toolOrder {
		tools, machines = append(tools, key.tool), append(machines, key.machine)
		recordings = append(recordings, j.tools[key].recordings...)
	}
	if h.tool != "" && !slices.Contains(tools, h.tool) {
		if slices.Contains(recordings, stemOf(h.tool)) {
			return fmt.Sprintf("recording %q", stemOf(h.tool))
		}
		if name := alikeName(h.tool, tools); name != "" {
			return fmt.Sprintf("tool %q", name)
		}
	}
	if rec := stemOf(h.recording); h.recording != "" && !slices.Contains(recordings, rec) {
		if slices.Contains(tools, h.recording) {
			return fmt.Sprintf("tool %q", h.recording)
		}
		if name := alikeName(h.recording, recordings); name != "" {
			return fmt.Sprintf("recording %q", name)
		}
	}
	if h.machine != "" && !slices.Contains(machines, h.machine) {
		if slices.Contains(tools, h.tool) && len(slices.Compact(slices.Sorted(slices.Values(machines)))) == 1 {
			return fmt.Sprintf("machine %q", machines[0])
		}
		if name := alikeName(h.machine, machines); name != "" {
			return fmt.Sprintf("machine %q", name)
		}
	}
	return ""
}

// bareHoles returns the holes of windows that no row is of.
func (h *history) bareHoles() (bare []string) {
	for _, hole := range h.holeOrder {
		if _, ok := h.holes[hole]; !ok && hole != "" {
			bare = append(bare, hole)
		}
	}
	return bare
}

// holesOf compares the holes that rows name with the holes that windows name.
func (j *Join) holesOf(h *history) string {
	var lost []string // holes of rows without windows
	var first string
	for _, m := range h.rows {
		if !h.holesSeen[m.Hole] && !slices.Contains(lost, m.Hole) {
			lost = append(lost, m.Hole)
			first = cmp.Or(first, at(m))
		}
	}
	bare := h.bareHoles()
	switch {
	case len(lost) == 0:
		return ""
	case h.holesSeen[""] && len(h.holesSeen) == 1:
		return fmt.Sprintf("%s: no window of %s names a hole, the rows name %s: name the column of the hole in the layout, or label with time, or the whole tool", first, h.rows[0].subject(), someNames(lost))
	}
	text := fmt.Sprintf("%s: holes of %s that no window is of: %s", first, h.rows[0].subject(), someNames(lost))
	if len(bare) > 0 {
		text += "; holes of windows without a row: " + someNames(bare)
	}
	for _, hole := range lost {
		if name := alikeName(hole, bare); name != "" {
			return text + fmt.Sprintf(": did you mean %q for %q?", name, hole)
		}
	}
	return text
}

// unused names rows of a tool that say nothing about any of its windows, although others do.
func (h *history) unused() string {
	var lost []string
	for _, m := range slices.Concat(h.moments, h.intervals) { // it has either
		if !h.used[m.Time] {
			lost = append(lost, fmt.Sprintf("%s at %s", at(m), timeWords(m.Time)))
		}
	}
	if len(lost) == 0 {
		return ""
	}
	return fmt.Sprintf("rows of %s that no window is of: %s; its windows are from %s to %s", h.rows[0].subject(), listed(lost, 3), timeWords(h.from), timeWords(h.until))
}

// times compares the times of rows with the times of windows, none of which has a label.
func (h *history) times() string {
	from := slices.MinFunc(h.rows, func(a, b Measurement) int { return a.Time.Compare(b.Time) })
	to := slices.MaxFunc(h.rows, func(a, b Measurement) int { return a.ends().Compare(b.ends()) })
	text := fmt.Sprintf("%s: rows of %s are from %s to %s, ", at(from), from.subject(), timeWords(from.Time), timeWords(to.ends()))
	switch {
	case h.from.IsZero():
		return text + "but its windows have no time: name the column of the time in the layout, or label the whole tool"
	case !signal.HasClock(h.from) && signal.HasClock(from.Time):
		return text + "but its windows count seconds from the start of the recording: give the recording a start with --start, or write the times in seconds from it"
	case !signal.HasClock(from.Time) && !h.began.IsZero():
		second := func(t time.Time) string { return timeWords(time.Unix(0, 0).Add(t.Sub(h.began))) }
		return text + fmt.Sprintf("its windows from %s to %s: seconds count from the first sample of the recording", second(h.from), second(h.until))
	}
	return text + fmt.Sprintf("its windows from %s to %s, and none of them has a label", timeWords(h.from), timeWords(h.until))
}

// ends returns the end of an interval, or the moment.
func (m Measurement) ends() time.Time {
	if m.End.IsZero() {
		return m.Time
	}
	return m.End
}

// timeWords returns a time as wear files have it, with the unit of seconds.
func timeWords(t time.Time) string {
	if signal.HasClock(t) {
		return timeCell(t)
	}
	return timeCell(t) + " s"
}

// listed lists up to most words.
func listed(words []string, most int) string {
	if len(words) > most+1 {
		words = append(slices.Clone(words[:most]), fmt.Sprintf("%d more", len(words)-most))
	}
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// alikeName returns the one of names that a person may have meant by name: the same
// but for upper and lower case, blanks, signs, leading zeros, or the folder and ending of a
// file; or else the only one with the same numbers. It is empty if there is none, or more.
func alikeName(name string, names []string) string {
	for _, form := range []func(string) string{plainName, func(s string) string { return plainName(stemOf(s)) }, numbers} {
		want := form(name)
		if want == "" {
			continue
		}
		found := ""
		for _, other := range names {
			if other == found || form(other) != want {
				continue
			}
			if found != "" {
				found = ""
				break
			}
			found = other
		}
		if found != "" {
			return found
		}
	}
	return ""
}

// plainName returns the letters and numbers of a name in lower case, without leading zeros.
func plainName(name string) string {
	var b strings.Builder
	number, gap := false, false // behind a digit that counts; behind a sign since then
	for i, r := range name {
		switch {
		case r == '0' && (!number || gap) && i+1 < len(name) && name[i+1] >= '0' && name[i+1] <= '9':
		case unicode.IsDigit(r):
			if number && gap {
				b.WriteByte(' ')
			}
			number, gap = true, false
			b.WriteRune(r)
		case unicode.IsLetter(r):
			number, gap = false, false
			b.WriteRune(unicode.ToLower(r))
		default:
			gap = true
		}
	}
	return b.String()
}

// numbers returns the numbers in a name, without leading zeros.
func numbers(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r < '0' || r > '9' })
	for i, w := range words {
		words[i] = strings.TrimLeft(w[:len(w)-1], "0") + w[len(w)-1:]
	}
	return strings.Join(words, " ")
}

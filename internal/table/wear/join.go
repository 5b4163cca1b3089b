package wear

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

// Mode says how measurements reach windows.
type Mode string

const (
	// Auto chooses by what the rows of a tool carry. Rows with a time and an end
	// are intervals, which windows whose middle lies in them have the wear of. Rows
	// with a time are taken as by Interpolate, other rows with a hole as by HoleEnd.
	// A row with neither is of all windows of the tool, or of the recording.
	Auto Mode = "auto"

	// HoleEnd gives every window of a hole the measurement that was taken
	// when the hole had ended, the latest if there are several.
	HoleEnd Mode = "hole-end"

	// Interpolate takes the wear of a window linear in time between two
	// measurements of its tool. Before the first measurement it starts from
	// zero at the start of the tool, if [Join.See] saw it in this recording;
	// otherwise, and after the last measurement, wear is not known. A state or a
	// class is never carried back in time: a window has it if both measurements
	// around it agree on it. From a measurement that says chipped or broken, or a word for it, on, the
	// tool is that for good. Where the tool chipped or broke between two measurements, or wear
	// grew by more than twice the limit of [Join.Limit], the line only says where the tool was
	// healthy: windows that it would call worn have no label.
	Interpolate Mode = "interpolate"
)

// Reason says why a window has no label.
type Reason int

// Reasons; Labelled is that it has one.
const (
	hasLabel    Reason = iota
	noTool             // no row of the tool or the recording
	noHole             // rows of holes: none of this one, or the window names no hole
	beforeFirst        // rows of moments: before the first, and the tool's start is not known
	afterLast          // rows of moments: after the last
	between            // rows of moments: between rows of states that differ, and of no wear
	outside            // rows of intervals: in none of them
	noClock            // the window has no time, or one of another kind than the rows
	leapt              // rows of moments: wear leapt between them, and the line of it is above the limit
	numReasons
)

var reasonWords = [numReasons]string{
	"labelled", "tool not measured", "hole not measured", "before the first measurement", "after the last measurement",
	"between two states", "in no interval", "without a time that the rows can be compared with",
	"before a measurement that found the tool broken, or much more worn",
}

// String returns the reason in words.
func (r Reason) String() string { return reasonWords[r] }

// tally counts the windows that a Join was asked about by Reason: how many found a
// label, and why the others did not.
type tally [numReasons]int

// Unlabelled returns how many windows found no label.
func (t tally) Unlabelled() int {
	n := 0
	for _, k := range t[noTool:] {
		n += k
	}
	return n
}

// String returns the tally in words, leaving out what did not occur.
func (t tally) String() string {
	var why []string
	for r := noTool; r < numReasons; r++ {
		if t[r] > 0 {
			why = append(why, fmt.Sprintf("%d %s", t[r], r))
		}
	}
	s := fmt.Sprintf("%d labelled, %d not", t[hasLabel], t.Unlabelled())
	if len(why) > 0 {
		s += ": " + strings.Join(why, ", ")
	}
	return s
}

// Join finds the wear of windows. It must not be used by several goroutines at
// once.
type Join struct {
	subjects  map[subject]*history
	stems     map[subject]*history // the same, of recordings that rows name with folder or ending
	all       []*history           // in the order of their first rows
	recording bool                 // rows name recordings
	tools     map[toolKey]*toolSeen
	toolOrder []toolKey               // of tools, as they were first seen
	ends      map[string]*time.Time   // of the last windows, by machine
	begun     map[subject][]time.Time // of the tools seen in each recording: when it began; more than one if recordings share a name
	order     []subject               // of begun, as they were first seen
	tally     tally
	limit     float64 // in µm, of the mean wear or of the maximum; 0: none
	ofMean    bool

	settled bool
	err     error

	last  Window // that find was asked about
	found *history
}

// subject is what rows are of. Tool or recording may be empty, and so may the machine.
type subject struct{ machine, tool, recording string }

type toolKey struct{ machine, tool string }

// toolSeen is what is known of a tool from windows that were seen.
type toolSeen struct {
	start      time.Time // of its first window
	first      string    // the recording of that window
	recordings []string
	cutOff     bool       // see Window
	end        time.Time  // of its last window
	machine    *time.Time // when the last window of its machine ends
}

// ofKafka reports whether the window is of a stream, of which none is missing at the end of a tool, and not of a recording.
func (w Window) ofKafka() bool { return w.Recording == "" && w.Began.IsZero() }

// takenOut reports whether another tool followed in the machine.
func (t *toolSeen) takenOut() bool { return signal.HasClock(t.end) && t.machine.After(t.end) }

// history is what is known of one subject.
type history struct {
	subject
	form form
	rows []Measurement // as they were read

	holes     map[string]Measurement
	moments   []Measurement // by time
	intervals []Measurement // by time
	mean, max curve
	unplaced  bool // rows count seconds from a start that is not known

	matched     bool               // a window is of the subject
	tools       [2]string          // of the first window, and of one of another recording of its name if the rows name no tool
	holesSeen   map[string]bool    // of its windows
	holeOrder   []string           // of holesSeen, as they were first seen
	from, until time.Time          // of its windows
	began       time.Time          // the recording of the first of them
	labelled    int                // windows
	used        map[time.Time]bool // beginnings of moments or intervals that windows have their wear from
}

// form is what the rows of a subject carry.
type form int

const (
	whole form = iota
	holes
	moments
	intervals
)

func (f form) String() string {
	return [...]string{"the whole", "a hole", "a moment", "an interval"}[f]
}

// curve is measured wear over time, ascending.
type curve struct {
	at []time.Time
	um []float64
}

// NewJoin returns a Join of the measurements, of which those that know nothing
// are left out. A measurement without a machine goes for every machine that has
// none of the tool itself. Measurements of a tool in one recording go before
// measurements of the recording, and these before measurements of the tool.
//
// NewJoin returns an error if mode is not known, if it contradicts what the rows
// carry, if the rows of a tool are not all of one kind, if a tool was measured
// twice at once, or if two intervals of a tool overlap.
func NewJoin(ms []Measurement, mode Mode) (*Join, error) {
	if !slices.Contains([]Mode{Auto, HoleEnd, Interpolate}, mode) {
		return nil, fmt.Errorf("wear: join %q is not one of %q, %q, %q", mode, Auto, Interpolate, HoleEnd)
	}
	j := &Join{
		subjects: make(map[subject]*history), stems: make(map[subject]*history),
		tools: make(map[toolKey]*toolSeen), begun: make(map[subject][]time.Time), ends: make(map[string]*time.Time),
	}
	for _, m := range ms {
		if !m.Known() {
			continue
		}
		f, err := formOf(m, mode)
		if err != nil {
			return nil, err
		}
		key := subject{m.Machine, m.Tool, m.Recording}
		h := j.subjects[key]
		if h == nil {
			h = &history{subject: key, form: f, holesSeen: make(map[string]bool), used: make(map[time.Time]bool)}
			j.subjects[key] = h
			j.all = append(j.all, h)
			j.recording = j.recording || m.Recording != ""
		}
		if f != h.form {
			return nil, fmt.Errorf("wear: %s: the row is of %s, but %s has rows of %s (%s): label each tool in one way", at(m), f, m.subject(), h.form, at(h.rows[0]))
		}
		h.rows = append(h.rows, m)
	}
	for _, h := range j.all {
		if err := cmp.Or(j.addStem(h), h.arrange(time.Time{})); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// at names where a row is in its file.
func at(m Measurement) string {
	if m.Where == "" {
		return "a measurement of " + m.subject()
	}
	return m.Where
}

// formOf returns what the row is of, if that suits the mode.
func formOf(m Measurement, mode Mode) (form, error) {
	f := whole
	switch {
	case !m.End.IsZero():
		f = intervals
	case mode == HoleEnd:
		f = holes
	case !m.Time.IsZero():
		f = moments
	case m.Hole != "":
		f = holes
	}
	switch {
	case mode == HoleEnd && f == holes && m.Hole == "":
		return f, fmt.Errorf("wear: %s: the row of %s names no hole, which `join: %s` asks for: fill column hole, or remove `join`", at(m), m.subject(), mode)
	case mode == HoleEnd && f == intervals:
		return f, fmt.Errorf("wear: %s: the row of %s is of an interval, but `join: %s` asks for rows of holes: remove `join`", at(m), m.subject(), mode)
	case mode == Interpolate && f == intervals:
		return f, fmt.Errorf("wear: %s: the row of %s is of an interval, but `join: %s` asks for rows of moments: remove `join`", at(m), m.subject(), mode)
	case mode == Interpolate && f != moments:
		return f, fmt.Errorf("wear: %s: the row of %s has no time, which `join: %s` asks for: fill column time, or remove `join`", at(m), m.subject(), mode)
	}
	return f, nil
}

// addStem lets rows name a recording with its folder and ending.
func (j *Join) addStem(h *history) error {
	stem := stemOf(h.recording)
	if stem == h.recording {
		return nil
	}
	key := subject{h.machine, h.tool, stem}
	other := j.subjects[key]
	if other == nil {
		other = j.stems[key]
	}
	if other != nil {
		return fmt.Errorf("wear: %s: %s may be %s (%s) too: name each recording in one way", at(h.rows[0]), h.rows[0].subject(), other.rows[0].subject(), at(other.rows[0]))
	}
	j.stems[key] = h
	return nil
}

// stemOf returns the name of a file without folder and ending.
func stemOf(path string) string {
	base := path[strings.LastIndexAny(path, `/\`)+1:]
	if dot := strings.LastIndexByte(base, '.'); dot > 0 {
		return base[:dot]
	}
	return base
}

// arrange puts the rows in order. Seconds count from began; if it is zero, they stay
// seconds.
func (h *history) arrange(began time.Time) error {
	h.holes, h.moments, h.intervals, h.mean, h.max = nil, nil, nil, curve{}, curve{}
	place := func(t time.Time) time.Time {
		if t.IsZero() || signal.HasClock(t) || began.IsZero() {
			return t
		}
		return began.Add(t.Sub(time.Unix(0, 0)))
	}
	rows := slices.Clone(h.rows)
	for i := range rows {
		rows[i].Time, rows[i].End = place(rows[i].Time), place(rows[i].End)
	}
	slices.SortStableFunc(rows, func(a, b Measurement) int { return a.Time.Compare(b.Time) })
	switch h.form {
	case holes:
		return h.arrangeHoles(rows)
	case moments:
		return h.arrangeMoments(rows)
	case intervals:
		h.intervals = rows
		for i := 1; i < len(rows); i++ {
			if a, b := rows[i-1], rows[i]; b.Time.Before(a.End) {
				return fmt.Errorf("wear: %s: the interval of %s begins before the one of %s has ended: correct one of them", at(b), b.subject(), at(a))
			}
		}
	}
	return nil
}

func (h *history) arrangeHoles(rows []Measurement) error {
	h.holes = make(map[string]Measurement, len(rows))
	for _, m := range rows {
		if o, twice := h.holes[m.Hole]; twice && o.Time.Equal(m.Time) {
			return fmt.Errorf("wear: %s has two measurements at the end of hole %q%s: keep one of them, or state when each was taken", m.subject(), m.Hole, both(o, m))
		}
		h.holes[m.Hole] = m
	}
	return nil
}

func (h *history) arrangeMoments(rows []Measurement) error {
	h.moments = rows
	for i, m := range rows {
		if i > 0 && rows[i-1].Time.Equal(m.Time) {
			return fmt.Errorf("wear: %s has two measurements at %s%s: keep one of them", m.subject(), timeCell(m.Time), both(rows[i-1], m))
		}
		h.mean.add(m.Time, m.VBMeanUM)
		h.max.add(m.Time, m.VBMaxUM)
	}
	return nil
}

// both says where two rows are, if they were read from a file.
func both(a, b Measurement) string {
	if a.Where == "" || b.Where == "" {
		return ""
	}
	return fmt.Sprintf(" (%s and %s)", a.Where, b.Where)
}

func (c *curve) add(at time.Time, um float64) {
	if um == um {
		c.at = append(c.at, at)
		c.um = append(c.um, um)
	}
}

// Limit tells j from which wear on a tool is worn, in µm, as [Rule.Limit] returns it; without it no line leaps.
func (j *Join) Limit(um float64, mean bool) { j.limit, j.ofMean = um, mean }

// See says that there is a window, before At is asked about any. The tool was new,
// with no wear, at the start of the earliest of its windows, and seconds count from
// the first sample of a window's recording.
func (j *Join) See(w Window) {
	key := toolKey{w.Machine, w.Tool}
	t := j.tools[key]
	if t == nil {
		if j.ends[w.Machine] == nil {
			j.ends[w.Machine] = new(time.Time)
		}
		t = &toolSeen{start: w.Start, first: w.Recording, machine: j.ends[w.Machine]}
		j.tools[key], j.toolOrder = t, append(j.toolOrder, key)
	}
	if end := w.Start.Add(w.Length); end.After(t.end) {
		if t.end = end; end.After(*t.machine) {
			*t.machine = end
		}
	}
	t.cutOff = t.cutOff || w.CutOff
	if earlier(w.Start, t.start) {
		t.start, t.first = w.Start, w.Recording
	}
	if n := len(t.recordings); n == 0 || t.recordings[n-1] != w.Recording && !slices.Contains(t.recordings, w.Recording) {
		t.recordings = append(t.recordings, w.Recording)
		j.settled = false
	}
	of := subject{w.Machine, w.Tool, w.Recording}
	if w.ofKafka() && !signal.HasClock(w.Start) { // it counts from its recording's start itself
		w.Began = time.Unix(0, 0).UTC()
	}
	if began := j.begun[of]; !slices.ContainsFunc(began, w.Began.Equal) {
		if began == nil {
			j.order = append(j.order, of)
		}
		j.begun[of] = append(began, w.Began)
		j.settled = false
	}
	h := j.find(w)
	if h == nil {
		return
	}
	if !h.matched {
		h.tools[0] = w.Tool
	} else if h.tool == "" && w.Tool != h.tools[0] && !w.Began.Equal(h.began) {
		h.tools[1] = w.Tool
	}
	if earlier(w.Start, h.from) {
		h.from, h.began = w.Start, w.Began
	}
	if end := w.Start.Add(w.Length); !h.matched || end.After(h.until) {
		h.until = end
	}
	h.matched = true
	if h.form == holes && !h.holesSeen[w.Hole] {
		h.holesSeen[w.Hole], h.holeOrder = true, append(h.holeOrder, w.Hole)
	}
}

// earlier reports whether a comes before b, where zero is not known.
func earlier(a, b time.Time) bool { return !a.IsZero() && (b.IsZero() || a.Before(b)) }

// Check reports rows that count seconds from a start that is not the one of a single
// recording. It is to be called when all windows were seen.
func (j *Join) Check() error {
	j.settle()
	return j.err
}

// settle finds out from when on seconds count.
func (j *Join) settle() {
	if j.settled {
		return
	}
	j.settled, j.err = true, nil
	for _, h := range j.all {
		seconds := slices.IndexFunc(h.rows, func(m Measurement) bool { return !m.Time.IsZero() && !signal.HasClock(m.Time) })
		if seconds < 0 || h.form == holes {
			continue
		}
		began, err := j.beginning(h, h.rows[seconds])
		if err == nil {
			err = h.arrange(began)
		}
		h.unplaced = began.IsZero() || !signal.HasClock(began) && slices.ContainsFunc(h.rows, func(m Measurement) bool { return signal.HasClock(m.Time) })
		if err != nil && j.err == nil {
			j.err = err
		}
	}
}

// beginning returns when the recording began that the seconds of row m count from; zero if
// no window of it was seen.
func (j *Join) beginning(h *history, m Measurement) (time.Time, error) {
	var names []string
	var began []time.Time
	for _, of := range j.order {
		if h.machine != "" && h.machine != of.machine || h.tool != "" && h.tool != of.tool ||
			h.recording != "" && h.recording != of.recording && stemOf(h.recording) != of.recording {
			continue
		}
		for _, t := range j.begun[of] {
			if !slices.Contains(names, of.recording) || !slices.ContainsFunc(began, t.Equal) {
				names, began = append(names, of.recording), append(began, t)
			}
		}
	}
	const byClock = "write times by RFC 3339, as 2026-01-31T14:05:09Z"
	switch {
	case len(names) == 0:
		return time.Time{}, nil
	case names[0] == "" && began[0].IsZero():
		return time.Time{}, fmt.Errorf("wear: %s: the time of %s is in seconds, but its windows are of no recording that these could count from: %s", at(m), m.subject(), byClock)
	case len(names) == 1:
		return began[0], nil
	case h.recording == "" && names[0] != names[1]:
		return time.Time{}, fmt.Errorf("wear: %s: the time of %s is in seconds, which may count from the start of any of %d recordings (%s): name one in a column recording, or %s",
			at(m), m.subject(), len(names), someNames(names), byClock)
	}
	return time.Time{}, fmt.Errorf("wear: %s: the time of %s is in seconds, but there are %d starts that these may count from under the name %q: name the tool too, give each recording its own name, or %s",
		at(m), m.subject(), len(names), names[0], byClock)
}

// Sources returns how many labels are of tools that windows were seen of, by where they come from; nil if all are of files.
func (j *Join) Sources() map[string]int {
	of := make(map[string]int)
	seen := make(map[string]bool)
	for _, h := range j.all {
		for _, m := range h.rows {
			if h.matched && (m.Where == "" || !seen[m.Where]) {
				of[cmp.Or(string(m.Source), "file")]++
				seen[m.Where] = true
			}
		}
	}
	if of["file"] > 0 && len(of) == 1 {
		return nil
	}
	return of
}

// tally returns the count of the calls of At so far.
func (j *Join) Tally() tally { return j.tally }

// Peek is At for a window that is not labelled, so that it is not counted.
func (j *Join) Peek(w Window) (m Measurement, why Reason) {
	j.settle()
	h := j.find(w)
	if h == nil {
		return unknown, noTool
	}
	tool := j.tools[toolKey{w.Machine, w.Tool}]
	if h = h.of(w, tool); h.form == moments && len(h.moments) == 0 {
		return unknown, noTool
	}
	if m, why = h.at(w, tool); why != hasLabel {
		return unknown, why
	}
	if of, um := &h.max, m.VBMaxUM; h.form == moments && j.limit > 0 {
		if j.ofMean {
			of, um = &h.mean, m.VBMeanUM
		}
		if h.leaps(of, j.limit, w, tool) {
			if um >= j.limit {
				return unknown, leapt
			}
			m.VBMeanUM, m.VBMaxUM, m.State = math.NaN(), math.NaN(), healthyName
		}
	}
	return m, hasLabel
}

// of returns what is known of the life of a window's tool. Where rows name the tool alone, a life that was declared new begins after
// the moments before its first window, which are of the life before.
func (h *history) of(w Window, tool *toolSeen) *history {
	if name, life, _ := strings.Cut(w.Tool, ofLife); h.form != moments || h.tool != name || life == "" || tool == nil || tool.cutOff {
		return h
	}
	of := *h
	of.moments = h.moments[sort.Search(len(h.moments), func(i int) bool { return !h.moments[i].Time.Before(tool.start) }):]
	of.mean, of.max = h.mean.since(tool.start), h.max.since(tool.start)
	return &of
}

func (c curve) since(t time.Time) curve {
	i := sort.Search(len(c.at), func(i int) bool { return !c.at[i].Before(t) })
	return curve{c.at[i:], c.um[i:]}
}

// unknown is a measurement that says nothing.
var unknown = Measurement{VBMeanUM: math.NaN(), VBMaxUM: math.NaN()}

// At returns the wear of a tool in a window, and counts what it found. What is not
// known of it is NaN or empty; if nothing is, the reason says why. Of moments it bears the
// time of the window; otherwise it is the measurement itself.
func (j *Join) At(w Window) (m Measurement, why Reason) {
	m, why = j.Peek(w)
	j.tally[why]++
	if why == hasLabel {
		j.found.labelled++ // as find, which Peek called, left it
	}
	return m, why
}

// find returns the rows that go for a window, or nil.
func (j *Join) find(w Window) *history {
	if l := &j.last; j.found != nil && l.Tool == w.Tool && l.Machine == w.Machine && l.Recording == w.Recording {
		return j.found
	}
	j.last, j.found = w, j.search(w)
	return j.found
}

func (j *Join) search(w Window) *history {
	for _, machine := range []string{w.Machine, ""} {
		if j.recording && w.Recording != "" {
			for _, tool := range []string{w.Tool, ""} {
				key := subject{machine, tool, w.Recording}
				for _, of := range []map[subject]*history{j.subjects, j.stems} {
					if h := of[key]; h != nil {
						return h
					}
				}
			}
		}
		name, _, _ := strings.Cut(w.Tool, ofLife)
		for _, tool := range []string{w.Tool, name} {
			if h := j.subjects[subject{machine, tool, ""}]; h != nil && tool != "" {
				return h
			}
		}
	}
	return nil
}

// at returns the wear in a window of a tool, of which windows were seen unless it is nil.
func (h *history) at(w Window, tool *toolSeen) (Measurement, Reason) {
	switch h.form {
	case whole:
		return h.rows[0], hasLabel
	case holes:
		m, ok := h.holes[w.Hole]
		if !ok {
			return m, noHole
		}
		return m, hasLabel
	}
	if w.Start.IsZero() || h.unplaced || !signal.HasClock(w.Start) && signal.HasClock(h.rows[0].Time) {
		return unknown, noClock
	}
	if h.form == intervals {
		return h.interval(w)
	}
	return h.between(w, tool)
}

// interval returns the wear of the interval that has the middle of a window.
func (h *history) interval(w Window) (Measurement, Reason) {
	middle := w.Start.Add(w.Length / 2)
	i := sort.Search(len(h.intervals), func(i int) bool { return h.intervals[i].End.After(middle) }) // the first that ends later
	if i == len(h.intervals) || middle.Before(h.intervals[i].Time) {
		return unknown, outside
	}
	h.used[h.intervals[i].Time] = true
	return h.intervals[i], hasLabel
}

// span is what is known of when the tool of a window was in.
type span struct {
	known bool
	start time.Time // when it had no wear, if that is known
	end   time.Time // after which it did not wear, as another tool was in; zero: not known
}

// at returns when the tool was as worn as it was at t.
func (s span) at(t time.Time) time.Time {
	if !s.end.IsZero() && t.After(s.end) {
		return s.end
	}
	return t
}

func (h *history) span(w Window, tool *toolSeen) (s span) {
	if tool == nil {
		return s
	}
	if w.ofKafka() && tool.takenOut() && w.Start.Before(tool.end) {
		s.end = tool.end
	}
	switch {
	case tool.cutOff || h.recording != "" && tool.first != w.Recording:
	case len(tool.recordings) > 1 && !signal.HasClock(tool.start): // without clocks all recordings begin at second 0, so the first of them is not known
	case s.end.IsZero() && h.matched && h.until.After(tool.start) && h.moments[0].Time.After(h.until.Add(h.until.Sub(tool.start))):
		// a line from the new tool to a measurement far behind its windows would say that it hardly wore
	default:
		s.known, s.start = true, tool.start
	}
	return s
}

// between returns the wear in a window between two moments.
func (h *history) between(w Window, tool *toolSeen) (Measurement, Reason) {
	t, s := w.Start, h.span(w, tool)
	m := Measurement{
		Machine: w.Machine, Tool: w.Tool, Recording: w.Recording, Hole: w.Hole, Time: t,
		VBMeanUM: h.mean.value(t, s),
		VBMaxUM:  h.max.value(t, s),
		State:    h.state(t, s.knows(t)),
		Class:    h.word(t, func(m Measurement) string { return m.Class }),
	}
	switch {
	case m.Known():
		i := h.next(t)
		for _, around := range h.moments[max(i-1, 0):min(i+1, len(h.moments))] {
			h.used[around.Time] = true
		}
		return m, hasLabel
	case t.Before(h.moments[0].Time):
		return m, beforeFirst
	case t.After(h.moments[len(h.moments)-1].Time):
		return m, afterLast
	}
	return m, between
}

// knows reports whether the tool is known to have been new at or before t.
func (s span) knows(t time.Time) bool { return s.known && !t.Before(s.start) }

// leaps reports whether the straight line at a window is none that wear follows: it leads to a measurement that found the tool chipped or broken,
// or more than twice the limit higher. A tool that was above the limit before is not meant.
func (h *history) leaps(of *curve, limit float64, w Window, tool *toolSeen) bool {
	i, _, um0, ok := of.line(w.Start, h.span(w, tool))
	if !ok || of.at[i].Equal(w.Start) || um0 >= limit {
		return false
	}
	found := h.moments[h.next(of.at[i])-1] // at that time
	return conditionOf(found.State) == isBroken || of.um[i]-um0 > 2*limit
}

// line returns the first measurement at or after t, and where the line to it begins. It is not ok if wear is not known at t.
func (c *curve) line(t time.Time, s span) (i int, t0 time.Time, um0 float64, ok bool) {
	i = sort.Search(len(c.at), func(i int) bool { return !c.at[i].Before(t) })
	switch {
	case i == len(c.at):
		return i, t0, 0, false
	case i > 0:
		return i, c.at[i-1], c.um[i-1], true
	}
	return i, s.start, 0, s.knows(t) || c.at[i].Equal(t)
}

// value returns the wear at t, NaN if it is not known.
func (c *curve) value(t time.Time, s span) float64 {
	i, t0, um0, ok := c.line(t, s)
	switch {
	case !ok:
		return math.NaN()
	case c.at[i].Equal(t):
		return c.um[i]
	}
	um1 := c.um[i]
	share := float64(t.Sub(t0)) / float64(s.at(c.at[i]).Sub(t0))
	// Rounding must not carry the wear beyond the measurements around it.
	return min(max(um0+share*(um1-um0), min(um0, um1)), max(um0, um1))
}

// next returns the first moment after t, or their number.
func (h *history) next(t time.Time) int {
	return sort.Search(len(h.moments), func(i int) bool { return h.moments[i].Time.After(t) })
}

// state returns the state of the tool at t, empty if it is not known. A tool that was healthy was so since it was new.
func (h *history) state(t time.Time, isNew bool) string {
	if first := h.moments[0].State; isNew && h.next(t) == 0 && conditionOf(first) == isGood {
		return first
	}
	for k := h.next(t) - 1; k >= 0; k-- {
		if s := h.moments[k].State; conditionOf(s) == isBroken {
			h.used[h.moments[k].Time] = true
			return s
		}
	}
	return h.word(t, func(m Measurement) string { return m.State })
}

// word returns the word of the moment at t, or the one that those around t agree on.
func (h *history) word(t time.Time, of func(Measurement) string) string {
	i := h.next(t)
	switch {
	case i == 0:
		return ""
	case h.moments[i-1].Time.Equal(t), i < len(h.moments) && strings.EqualFold(of(h.moments[i]), of(h.moments[i-1])):
		return of(h.moments[i-1])
	}
	return ""
}

package web

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/score"
)

// Tile is what pages show of one machine at a glance. What is not known is left out.
type Tile struct {
	ID     uint64 `json:"id"` // of the machine, short; another one after a restart
	Name   string `json:"name"`
	Layout string `json:"layout,omitempty"` // its name
	Tool   string `json:"tool,omitempty"`   // of the last result
	Hole   string `json:"hole,omitempty"`   // likewise

	Alarm       string     `json:"alarm,omitempty"`    // state of the alarm in a word, as in a result
	Incident    string     `json:"incident,omitempty"` // of the alarm, if one is open
	Since       *time.Time `json:"since,omitempty"`    // start of the first faulty window that led to the alarm
	Instruction *wording   `json:"instruction,omitempty"`

	Verdict   event.Verdict `json:"verdict,omitempty"`
	VerdictAt *time.Time    `json:"verdict_at,omitempty"` // end of the last window that was judged: sensor time
	Strip     string        `json:"strip"`                // a letter for each of the last 60 verdicts, the oldest first, see summary.StripLetter
	Score     *float64      `json:"score,omitempty"`      // of the last window that the model judged
	Threshold *float64      `json:"threshold,omitempty"`  // score from which on a window counts as faulty for the alarm

	Magazine []tileAlarm `json:"magazine,omitempty"` // open alarms of tools that are not in the spindle, the one that changed last at the end

	Wear *tileWear `json:"wear,omitempty"`
	Left *tileLeft `json:"left,omitempty"`

	Level    *tileLevel `json:"level,omitempty"`    // by a model that has seen no worn tool
	Borrowed bool       `json:"borrowed,omitempty"` // the model has learnt from no tool of this machine

	Advisories     []tileAdvisory `json:"advisories,omitempty"` // open ones, warnings first, at most tileAdvisories
	MoreAdvisories int            `json:"more_advisories"`      // open ones that are not listed

	WindowAge  *float64 `json:"window_age,omitempty"`  // seconds since the last window or result came
	Span       *float64 `json:"span,omitempty"`        // seconds that the last window lasted
	RefusedAge *float64 `json:"refused_age,omitempty"` // seconds since the monitor began to refuse the machine's windows
	Models     *Models  `json:"models,omitempty"`
	Rank       int      `json:"rank"` // 0 is the worst, see the constants

	verdicts uint64    // that came in all: the last of them are Strip
	seen     time.Time // when the last window or result came
	refused  time.Time // when the monitor began to refuse windows
}

// wording is a line for a person in parts, so that a page can word it in its language and
// time zone. Args are strings, numbers and times.
type wording struct {
	Key  string         `json:"key"`
	Args map[string]any `json:"args,omitempty"`
}

// tileWear is the wear of the tool in whole µm. Of an Unknown wear only the limit is there.
type tileWear struct {
	UM      *float64 `json:"um,omitempty"`
	LowUM   *float64 `json:"low_um,omitempty"` // of the 80 % interval
	HighUM  *float64 `json:"high_um,omitempty"`
	LimitUM *float64 `json:"limit_um,omitempty"`
	Unknown bool     `json:"unknown,omitempty"` // the model estimates wear, but not now
}

// tileLeft is how long the tool will last: the estimate, and the low and the high end of its
// interval, which is null if it is not in sight. One of the two is there.
type tileLeft struct {
	Holes   []*float64 `json:"holes,omitempty"`
	Windows []*float64 `json:"windows,omitempty"` // of cutting
}

// tileLevel is how much the tool differs from its first windows.
type tileLevel struct {
	FirstDay
	Times       *float64 `json:"times,omitempty"`        // by what factor the sensor differs; nil if the last window was not judged
	WindowsLeft *float64 `json:"windows_left,omitempty"` // of cutting to the limit, if it goes on rising as in the last windows; nil if it does not rise, or is above the limit
}

// tileAlarm is an open alarm of a tool in the magazine.
type tileAlarm struct {
	Tool     string     `json:"tool"`
	Incident string     `json:"incident"`
	Alarm    string     `json:"alarm"` // its state, in the words of a result
	Since    *time.Time `json:"since,omitempty"`
}

// tileAdvisory is an open advisory.
type tileAdvisory struct {
	Kind     event.AdvisoryKind `json:"kind"`
	Subject  string             `json:"subject,omitempty"`
	Status   string             `json:"status,omitempty"` // of a sensor, by NAMUR NE 107
	Flags    []string           `json:"flags,omitempty"`  // of a sensor
	Since    *time.Time         `json:"since,omitempty"`
	Severity string             `json:"severity,omitempty"`
	Text     string             `json:"text,omitempty"`
}

// The ranks of tiles, the worst first.
const (
	rankAlarm = iota // an alarm calls
	rankKnown        // an open alarm does not call: acknowledged or returned; or the alarm is masked
	rankUnwatched
	rankWorn // the tool is at its limit
	rankSensor
	rankAdvisory
	rankNormal
)

const (
	tileAdvisories = 8
	openAdvisories = 200 // that a hub keeps of a machine; more are not shown
)

// unwatching lists the advisories that mean that the machine is not watched, the strongest
// reason first.
var unwatching = []event.AdvisoryKind{event.StoppedAdvisory, event.RefusedAdvisory, event.SilenceAdvisory, event.UnknownAdvisory, event.ModelAdvisory}

// tile returns what pages show of a machine by now. It shares nothing that changes.
func (m *machine) tile(now time.Time) *Tile {
	t := &Tile{
		ID: m.number, Name: m.name, Tool: m.newest.Tool, Hole: m.newest.Hole, Strip: string(m.strip), Models: m.models,
		Since: m.alarmSince(), WindowAge: ageOf(m.seenAt(), now), RefusedAge: ageOf(m.refusedAt, now),
		verdicts: m.verdicts, seen: m.seenAt(), refused: m.refusedAt,
	}
	if m.layout != nil {
		t.Layout = m.layout.Name
	}
	t.Alarm, t.Incident = m.standing()
	if r := m.lastResult; r != nil {
		t.Tool, t.Hole, t.Verdict, t.VerdictAt = r.Tool, r.Hole, r.Verdict, known(r.End)
		if !r.Start.IsZero() && !r.End.Before(r.Start) {
			t.Span = ptr(r.End.Sub(r.Start).Seconds())
		}
		if judged(r) {
			t.Score = ptr(math.Round(r.Score*1000) / 1000)
		}
	}
	for _, a := range m.tools {
		if m.inMagazine(a) {
			t.Magazine = append(t.Magazine, tileAlarm{a.Tool, a.Incident, a.Alarm, known(a.Since)})
		}
	}
	t.Wear, t.Left = m.wornTile()
	t.Level, t.Borrowed = m.level(), m.facts.Borrowed
	if threshold := m.threshold(); threshold > 0 {
		t.Threshold = ptr(threshold)
	}
	t.Advisories = m.openAdvisories()
	if n := len(t.Advisories); n > tileAdvisories {
		t.Advisories, t.MoreAdvisories = t.Advisories[:tileAdvisories:tileAdvisories], n-tileAdvisories
	}
	t.Rank = m.rank(t)
	t.Instruction = m.instruction(t)
	return t
}

// threshold returns the one of the last result, or else of its model; 0 if neither says.
func (m *machine) threshold() float64 {
	if m.lastResult == nil {
		return m.facts.Threshold
	}
	return cmp.Or(max(m.lastResult.Threshold, 0), m.facts.Threshold)
}

// wornTile returns the wear of the tool that is in, and what is left of its life: of the
// last window that had them, as windows between holes do not.
func (m *machine) wornTile() (*tileWear, *tileLeft) {
	w := m.lastWear
	if w == nil && !m.wearUnknown {
		return nil, nil
	}
	t := &tileWear{Unknown: m.wearUnknown}
	if m.facts.LimitUM > 0 {
		t.LimitUM = ptr(m.facts.LimitUM)
	}
	if m.wearUnknown || w == nil {
		return t, nil
	}
	t.UM, t.LowUM, t.HighUM = ptr(math.Round(w.WearUM)), ptr(math.Round(w.WearLowUM)), ptr(math.Round(w.WearHighUM))
	switch {
	case w.HolesLeft != nil:
		return t, &tileLeft{Holes: leftOf(w.HolesLeft, w.HolesLeftLow, w.HolesLeftHigh)}
	case w.WindowsLeft != nil:
		return t, &tileLeft{Windows: leftOf(w.WindowsLeft, w.WindowsLeftLow, w.WindowsLeftHigh)}
	}
	return t, nil
}

// trendWindows is of how many judged windows of the tool the trend of its level is.
const trendWindows = 60

// level returns how much the tool differs from its first windows, and when it comes to the limit; nil by a model that has seen worn
// tools.
func (m *machine) level() *tileLevel {
	f, last := m.facts.FirstDay, m.lastResult
	if f == nil {
		return nil
	}
	t := &tileLevel{FirstDay: *f}
	if last == nil || !(last.Level > 0) || !finite(100*last.Level) {
		return t
	}
	t.Times = ptr(math.Round(100*last.Level) / 100)
	counts := 0.0 // log odds from which on the alarm counts a window: the model's limit
	if s := m.threshold(); s > 0 && s < 1 {
		counts = math.Log(s / (1 - s))
	}
	t.Limit = math.Round(100*f.Limit*math.Exp(counts)) / 100
	var levels []float64 // neper above the limit, the newest first
	for i := m.results.total; i > m.results.first() && len(levels) < trendWindows; i-- {
		r := m.results.at(i - 1)
		c := r.of.Value()
		if c.tool == "" && last.Tool != "" { // between two tools
			continue
		}
		if c.tool != last.Tool || c.model != last.Model || c.verdict == event.Learning {
			break
		}
		if s := float64(r.score); s > 0 && s < 1 && !r.late {
			levels = append(levels, math.Log(s/(1-s)))
		}
	}
	slices.Reverse(levels)
	if left, ok := score.WindowsLeft(levels, counts); ok && left < 1e6 {
		t.WindowsLeft = ptr(math.Ceil(left))
	}
	return t
}

// leftOf rounds what is left for a glance. What is not nothing does not become 0.
func leftOf(mid, low, high *float64) []*float64 {
	all := []*float64{nil, nil, nil}
	if mid != nil {
		all[0] = ptr(math.Round(*mid))
		if *mid > 0 && *mid < 1 {
			all[0] = ptr(math.Ceil(10**mid) / 10)
		}
	}
	if low != nil {
		all[1] = ptr(math.Floor(*low))
	}
	if high != nil {
		all[2] = ptr(math.Ceil(*high))
	}
	return all
}

// calls reports whether the word of an alarm calls people. Words that this release does not
// know call.
func calls(alarm string) bool {
	switch alarm {
	case "", "normal", "acknowledged", "returned", "shelved", "suppressed", "out_of_service":
		return false
	}
	return true
}

// masked reports whether the word says that someone keeps the alarm of a machine from calling.
func masked(alarm string) bool {
	return alarm == "shelved" || alarm == "suppressed" || alarm == "out_of_service"
}

// rank returns how bad the state of the machine is.
func (m *machine) rank(t *Tile) int {
	switch {
	case calls(t.Alarm):
		return rankAlarm
	case t.Incident != "" || masked(t.Alarm):
		return rankKnown
	case m.unwatched() != nil:
		return rankUnwatched
	case t.worn():
		return rankWorn
	case slices.ContainsFunc(m.open, func(a event.Advisory) bool { return a.Kind == event.SensorAdvisory }):
		return rankSensor
	case len(m.open) > 0:
		return rankAdvisory
	}
	return rankNormal
}

// worn reports whether the estimated wear has reached the limit.
func (t *Tile) worn() bool {
	return t.Wear != nil && t.Wear.UM != nil && t.Wear.LimitUM != nil && *t.Wear.UM >= *t.Wear.LimitUM
}

// unwatched returns the advisory that says why the machine is not watched, nil if it is.
func (m *machine) unwatched() *event.Advisory {
	for _, kind := range unwatching {
		if i := slices.IndexFunc(m.open, func(a event.Advisory) bool { return a.Kind == kind && !ofUsedTool(a.Kind, a.Subject) }); i >= 0 {
			return &m.open[i]
		}
	}
	return nil
}

// ofUsedTool reports whether an advisory says that the reference of a tool was learnt when the tool was used. Then the
// tool is watched.
func ofUsedTool(kind event.AdvisoryKind, subject string) bool {
	return kind == event.ModelAdvisory && subject != ""
}

// openAdvisories returns the open advisories, those that say why the machine is not watched
// first, then warnings, then the older ones.
func (m *machine) openAdvisories() (all []tileAdvisory) {
	for _, a := range m.open {
		all = append(all, tileAdvisory{a.Kind, a.Subject, a.Status, a.Flags, known(a.Since), a.Severity, a.Text})
	}
	urgency := func(a tileAdvisory) int {
		switch i := slices.Index(unwatching, a.Kind); {
		case i >= 0 && !ofUsedTool(a.Kind, a.Subject):
			return i
		case a.Severity == "warning":
			return len(unwatching)
		}
		return len(unwatching) + 1
	}
	slices.SortStableFunc(all, func(a, b tileAdvisory) int { return cmp.Compare(urgency(a), urgency(b)) })
	return all
}

// advisoryKeys has the instruction for each kind of advisory.
var advisoryKeys = map[event.AdvisoryKind]string{
	event.StoppedAdvisory: "judging_stopped",
	event.RefusedAdvisory: "windows_refused",
	event.SilenceAdvisory: "check_gateway",
	event.UnknownAdvisory: "tool_not_watched",
	event.ModelAdvisory:   "reference_rebuilt",
	event.SensorAdvisory:  "check_sensor",
	event.RivalAdvisory:   "stop_second_ingester",
	event.LossAdvisory:    "samples_lost",
	event.DriftAdvisory:   "check_drift",
}

// cause matches what the text of an advisory says before the cause: the tile says it, too.
var cause = regexp.MustCompile(`^[^:]*: (NOT WATCHED, (its windows are refused: )?|STOPPED, none of its windows is judged: )`)

// instruction returns what a person should do about the machine, nil for nothing.
func (m *machine) instruction(t *Tile) *wording {
	if t.Incident != "" || calls(t.Alarm) || masked(t.Alarm) {
		return m.answer(t)
	}
	if t.worn() {
		return sentence("plan_tool_change", "tool", t.Tool, "um", *t.Wear.UM, "limit_um", *t.Wear.LimitUM)
	}
	if len(t.Advisories) == 0 {
		return nil
	}
	return m.heed(t.Advisories[0])
}

// heed returns what a person should do about an advisory.
func (m *machine) heed(a tileAdvisory) *wording {
	key, ok := advisoryKeys[a.Kind]
	switch {
	case !ok:
		key = "read_advisory"
	case ofUsedTool(a.Kind, a.Subject):
		key = "reference_of_used_tool"
	}
	s := sentence(key, "subject", a.Subject, "status", a.Status, "flags", strings.Join(a.Flags, " "), "since", a.Since)
	if a.Kind == event.RefusedAdvisory || a.Kind == event.StoppedAdvisory || !ok {
		s.add("text", cause.ReplaceAllString(a.Text, "")) // it names the cause, which differs
	}
	if _, command, ok := strings.Cut(strings.TrimSuffix(a.Text, "`"), ": `"); ok && a.Kind == event.RefusedAdvisory {
		s.Key = "no_model" // the one cause that a command ends
		s.add("command", strings.ReplaceAll(command, "MACHINE", m.name))
	}
	return s
}

// answer returns what a person should do about an open alarm.
func (m *machine) answer(t *Tile) *wording {
	by, note, until, key, finding := "", "", (*time.Time)(nil), "change_tool", ""
	a := cmp.Or(m.lastChange, new(event.Alert))
	if a.Alarm == t.Alarm {
		by, note, until = a.By, a.Note, known(a.Until)
	}
	raised := m.raiser(t.Incident)
	for _, a := range []*event.Alert{raised, a} { // a tool that is back has its alarm without an alert of its own
		switch {
		case a == nil || a.Incident != t.Incident:
		case a.Class == event.Different:
			key, finding = "look_at_different", ""
		case a.Finding != "":
			key, finding = "look_at_finding", a.Finding
		}
	}
	switch t.Alarm {
	case "returned":
		return sentence("acknowledge_returned", "tool", t.Tool, "incident", t.Incident, "since", t.Since)
	case "acknowledged":
		return sentence(key+"_acknowledged", "tool", t.Tool, "incident", t.Incident, "since", t.Since, "by", by, "finding", finding)
	case "shelved", "suppressed", "out_of_service":
		return sentence("alarm_"+t.Alarm, "tool", t.Tool, "incident", t.Incident, "since", t.Since, "by", by, "note", note, "until", until)
	}
	s := sentence(key, "tool", t.Tool, "incident", t.Incident, "since", t.Since, "finding", finding)
	if raised != nil && raised.Of > 0 {
		s.add("faulty", raised.Faulty)
		s.add("of", raised.Of)
	}
	return s
}

// sentence returns a sentence with the arguments that are known: pairs of names and values.
func sentence(key string, pairs ...any) *wording {
	s := &wording{Key: key}
	for i := 0; i < len(pairs); i += 2 {
		switch v := pairs[i+1].(type) {
		case string:
			if v == "" {
				continue
			}
		case *time.Time:
			if v == nil {
				continue
			}
		}
		s.add(pairs[i].(string), pairs[i+1])
	}
	return s
}

func (s *wording) add(name string, value any) {
	if s.Args == nil {
		s.Args = make(map[string]any)
	}
	s.Args[name] = value
}

func ptr[T any](v T) *T { return &v }

// known returns t, or nil if it is the zero time, which stands for one that is not known, or if RFC 3339 cannot say it,
// as happens when a recording counts its seconds from nowhere.
func known(t time.Time) *time.Time {
	t = t.UTC()
	if y := t.Year(); t.IsZero() || y < 1 || y > 9998 {
		return nil
	}
	return &t
}

// ageOf returns how many seconds before now t was, rounded to a tenth, or nil if t is zero.
func ageOf(t, now time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	return ptr(math.Round(10*max(0, now.Sub(t).Seconds())) / 10)
}

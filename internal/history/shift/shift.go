// Package shift tells what happened to machines and their alarms, shift by shift,
// from results, alerts and advisories as they lie on Kafka.
//
//	window          one that has a result; a repeat of a result is not counted
//	cutting time    of windows judged healthy, faulty or unknown, or learnt from;
//	                where windows overlap, time counts once
//	missing         windows whose number was passed over and that have not come since,
//	                in the shift of the window behind them
//	alarm           one that was raised, in the shift in which it was
//	false alarm     one that a person marked so, when acknowledging it or later, also
//	                after the end of the report, and did not take that back; or, where
//	                wear was measured, one whose window is healthy by the label
//	transition      an alarm is raised, again too, or is over by itself; what people
//	                do does not count
//	chattering      a third transition within a minute
//	acknowledged    alarms of the shift that a person acknowledged before the end of the
//	                report; and how long that took
//	masked          time for which an alarm was shelved, suppressed or out of service
//	tool's life     the cutting time that was seen of a tool, and its estimated flank
//	                wear when it was changed, in the shift of the change
//
// A Report holds one row for each machine and shift, the tools, and what is open; its
// memory does not grow with the number of results.
package shift

import (
	"maps"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// toolRow is what happened to one machine in one shift.
type toolRow struct {
	Shift string    `json:"shift"` // in words
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`

	Windows  int                   `json:"windows"`
	Verdicts map[event.Verdict]int `json:"verdicts"`
	Missing  int                   `json:"missing"`
	Cutting  seconds               `json:"cutting_s"`

	Alarms       int     `json:"alarms"`
	False        int     `json:"false_alarms"`
	Labelled     int     `json:"labelled_alarms"` // of which a wear label says whether they were false
	Chattering   int     `json:"chattering"`
	Acknowledged int     `json:"acknowledged"`
	Answered     int     `json:"-"`           // acknowledged, or marked as false or as not false
	AckTotal     seconds `json:"ack_total_s"` // until they were, in all
	AckMost      seconds `json:"ack_most_s"`

	Shelved      seconds `json:"shelved_s"`
	Suppressed   seconds `json:"suppressed_s"`
	OutOfService seconds `json:"out_of_service_s"`

	Advisories map[string]int `json:"advisories,omitempty"` // raised, by kind
	Models     []string       `json:"models,omitempty"`     // that judged
}

// seconds is a time that is written in seconds.
type seconds float64

// Duration returns it as such.
func (s seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// tool is the life of a tool, as far as it was seen.
type tool struct {
	Tool    string    `json:"tool"`
	From    time.Time `json:"from"` // its first window that was seen
	To      time.Time `json:"to"`   // its last
	Cutting seconds   `json:"cutting_s"`
	WearUM  *float64  `json:"wear_um,omitempty"` // estimated after its last window; nil if it was not known
	Alarms  int       `json:"alarms"`
	Whole   bool      `json:"whole"`   // it came within the time of the report
	Changed bool      `json:"changed"` // and another followed
	life    string    // see event.Result.ToolLife
}

// machineShift is all that happened to one.
type machineShift struct {
	Machine string     `json:"machine"`
	Rows    []*toolRow `json:"shifts"` // in their order
	Tools   []*tool    `json:"tools"`
	Open    int        `json:"open_alarms"` // raised and not acknowledged, nor over, at the end

	rows   map[int64]*toolRow // by start
	epochs map[string]*sequence
	tool   *tool
	cut    time.Time // up to which cutting time was counted
	alarm  incident
	masks  map[event.AlertState]*mask
}

// Config says what a report is about.
type Config struct {
	Plan         Plan
	Since, Until time.Time
	LimitUM      float64 // flank wear up to which a tool could have been used; 0: no limit is known

	// Healthy, if not nil, says of the window in which an alarm was raised whether
	// it is healthy by the label that was measured, or that nothing is known. It is
	// asked once all results are in, about tools that NewTool has named.
	Healthy func(a event.Alert) (healthy, known bool)
	NewTool func(machine, tool, life string, at time.Time)
}

// Report collects what happened. Results, alerts and advisories may come in any
// order of machines, each in the order of its own topic; then comes Finish.
type Report struct {
	cfg      Config
	machines map[string]*machineShift
	seen     map[string]bool // ids of alerts and advisories
	raised   []*raised
}

// New returns a report of nothing.
func New(cfg Config) *Report {
	return &Report{cfg: cfg, machines: make(map[string]*machineShift), seen: make(map[string]bool)}
}

func (r *Report) machine(name string) *machineShift {
	m := r.machines[name]
	if m == nil {
		m = &machineShift{Machine: name, rows: make(map[int64]*toolRow), epochs: make(map[string]*sequence), masks: make(map[event.AlertState]*mask)}
		r.machines[name] = m
	}
	return m
}

// within reports whether the report is about t.
func (r *Report) within(t time.Time) bool { return !t.Before(r.cfg.Since) && t.Before(r.cfg.Until) }

// row returns the row of the shift that t is in.
func (r *Report) row(m *machineShift, t time.Time) *toolRow {
	if n := len(m.Rows); n > 0 { // mostly the one before
		if last := m.Rows[n-1]; !t.Before(last.Start) && t.Before(last.End) {
			return last
		}
	}
	start, end := r.cfg.Plan.Around(t)
	row := m.rows[start.UnixNano()]
	if row == nil {
		row = &toolRow{Shift: r.cfg.Plan.name(start, end), Start: start, End: end, Verdicts: make(map[event.Verdict]int), Advisories: make(map[string]int)}
		m.rows[start.UnixNano()] = row
		m.Rows = append(m.Rows, row)
	}
	return row
}

// Finish ends the report: nothing is to come. It returns the machines by name, with
// a row for each shift in which there was something to tell.
func (r *Report) Finish() []*machineShift {
	var all []*machineShift
	for _, name := range slices.Sorted(maps.Keys(r.machines)) {
		m := r.machines[name]
		for state, on := range m.masks {
			r.mask(m, state, on.since, r.cfg.Until)
		}
		if m.alarm.open() {
			m.Open++
		}
		if len(m.Rows) == 0 && m.Open == 0 {
			continue
		}
		all = append(all, m)
	}
	r.label()
	for _, m := range all {
		slices.SortFunc(m.Rows, func(a, b *toolRow) int { return a.Start.Compare(b.Start) })
	}
	return all
}

// label counts alarms that were false by the wear measured, where no one has marked them.
func (r *Report) label() {
	for _, a := range r.raised {
		if a.marked || r.cfg.Healthy == nil {
			continue
		}
		if healthy, known := r.cfg.Healthy(a.alert); known {
			if a.row.Labelled++; healthy {
				a.row.False++
			}
		}
	}
}

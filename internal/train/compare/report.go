package compare

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// Report is a comparison of two sides. As JSON it is what programs read.
type Report struct {
	Models [2]string `json:"models"` // A and B in words
	From   time.Time `json:"from,omitzero"`
	To     time.Time `json:"to,omitzero"` // of the windows that both judged

	Windows  uint64          `json:"windows"` // that both judged
	Alarms   eventTally      `json:"alarms"`
	Unknown  [2]*float64     `json:"unknown_share"` // of the windows that were healthy, faulty or unknown; null without any
	WearUM   [2]*float64     `json:"wear_um"`       // median of the wear at the alarms, by the labels; null if no wear is known
	Worn     [2]int          `json:"alarms_with_wear"`
	Machines []machineReport `json:"machines"` // by name
	Notes    []string        `json:"notes,omitempty"`
}

// eventTally counts events, see occasion.
type eventTally struct {
	Both        int      `json:"both"`
	Earlier     int      `json:"b_earlier"`
	Later       int      `json:"b_later"`
	Same        int      `json:"same_window"`
	OnlyA       int      `json:"only_a"`
	OnlyB       int      `json:"only_b"`
	Unannounced int      `json:"unannounced"`      // left out of the others
	LaterS      *float64 `json:"median_b_later_s"` // seconds by which B raised later; below 0: earlier; null without events in both
}

// machineReport is one machine of a report.
type machineReport struct {
	Name    string            `json:"machine"`
	Windows uint64            `json:"windows"`
	Alarms  eventTally        `json:"alarms"`
	Counts  [2]sideCounts     `json:"verdicts"`
	Tools   []toolReport      `json:"tools"`
	Events  []occasion        `json:"events,omitempty"`
	LeftOut map[string]uint64 `json:"left_out,omitempty"` // windows that not both could judge, by why

	// Joined is the tool that was in the spindle already when a replay began. Its reference was
	// learnt from then on, and not while it was new.
	Joined *string `json:"joined,omitempty"`
}

// toolReport is what both sides made of the windows of a tool.
type toolReport struct {
	Name   string        `json:"tool"`
	Counts [2]sideCounts `json:"verdicts"`
}

// Report returns what is known so far. Models are the names of the sides.
func (c *Comparison) Report(models [2]string) *Report {
	r := &Report{Models: models, From: c.from, To: c.to, Machines: []machineReport{}}
	var all sums
	for _, name := range slices.Sorted(maps.Keys(c.machines)) {
		g := c.machines[name]
		m := machineReport{Name: name, Counts: [2]sideCounts{{}, {}}, Tools: []toolReport{}, LeftOut: g.refused, Joined: g.joined}
		for _, tool := range slices.Sorted(maps.Keys(g.tools)) {
			counts := g.tools[tool]
			m.Tools = append(m.Tools, toolReport{tool, *counts})
			for s := range counts {
				m.Counts[s].add(counts[s])
			}
		}
		m.Windows = m.Counts[sideA].Windows()
		var own sums
		for _, e := range g.events() {
			g.label(name, e)
			own.add(e)
			all.add(e)
			m.Events = append(m.Events, e)
		}
		m.Alarms = own.tally()
		r.Windows += m.Windows
		r.Machines = append(r.Machines, m)
	}
	r.Alarms = all.tally()
	for s := range r.Models {
		counts := sideCounts{}
		for _, m := range r.Machines {
			counts.add(m.Counts[s])
		}
		if counts.Judged() > 0 {
			r.Unknown[s] = known(counts.Share(event.Unknown))
		}
		r.WearUM[s], r.Worn[s] = known(median(all.wear[s])), len(all.wear[s])
	}
	return r
}

// known returns v, or nil if it is NaN.
func known(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}

// sums gathers events.
type sums struct {
	kinds map[kind]int
	later []float64
	wear  [2][]float64 // at the first alarm of each event, by side
}

func (s *sums) add(e occasion) {
	if s.kinds == nil {
		s.kinds = make(map[kind]int)
	}
	s.kinds[e.Kind]++
	if e.LaterS != nil {
		s.later = append(s.later, *e.LaterS)
	}
	for side, alarms := range [2][]*Alarm{e.A, e.B} {
		if hasWear(alarms) {
			s.wear[side] = append(s.wear[side], *alarms[0].WearUM)
		}
	}
}

func (s *sums) tally() eventTally {
	return eventTally{
		Both: len(s.later), Earlier: s.kinds[kindEarlier], Later: s.kinds[kindLater], Same: s.kinds[kindSame],
		OnlyA: s.kinds[kindOnlyA], OnlyB: s.kinds[kindOnlyB], Unannounced: s.kinds[kindUnknown], LaterS: known(median(s.later)),
	}
}

// Formats are the forms in which Format writes a report.
const (
	Text = "text"
	JSON = "json"
	HTML = "html"
)

// Format returns the report as text, JSON or a page in HTML.
func (r *Report) Format(format string) ([]byte, error) {
	switch format {
	case JSON:
		b, err := json.MarshalIndent(r, "", "  ")
		return append(b, '\n'), err
	case HTML:
		return r.html()
	}
	return []byte(r.text()), nil
}

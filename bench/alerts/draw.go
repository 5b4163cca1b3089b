package main

import (
	"fmt"
	"math"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/report"
)

// draw plots what was true of a machine and what the monitor reported.
func (r *record) draw() []byte {
	last := hour(r.moments[len(r.moments)-1].end)
	wear, score := r.curves()
	tools := report.Lane{Name: "tool"}
	faulty := report.Lane{Name: "label: faulty"}
	alarms := report.Lane{Name: "alarm"}
	span := func(lane *report.Lane, so func(m *moment) bool, color string, text func(m *moment) string) {
		for i := 0; i < len(r.moments); i++ {
			if !so(&r.moments[i]) {
				continue
			}
			from := i
			for i+1 < len(r.moments) && so(&r.moments[i+1]) && r.moments[i+1].tool == r.moments[from].tool {
				i++
			}
			lane.Spans = append(lane.Spans, report.Span{From: hour(r.moments[from].end), To: hour(r.moments[i].end), Color: color, Text: text(&r.moments[from])})
		}
	}
	nothing := func(*moment) string { return "" }
	span(&tools, func(m *moment) bool { return m.tool%2 == 0 }, report.Grey, nothing)
	span(&faulty, func(m *moment) bool { return m.faulty }, report.Purple, func(m *moment) string { return r.plan.stays[m.tool].tool.End })
	span(&alarms, func(m *moment) bool { return m.alarm != "normal" }, report.Orange, func(m *moment) string { return r.plan.stays[m.tool].tool.Name })
	sensors := report.Lane{Name: "sensor fault"}
	for _, f := range r.plan.faults {
		sensors.Spans = append(sensors.Spans, report.Span{From: f.From.Hours(), To: (f.From + f.For).Hours(), Color: report.Purple, Text: string(f.Kind)})
	}
	advice := report.Lane{Name: "advisory"}
	for i, a := range r.advisories {
		if a.Kind != event.SensorAdvisory || a.State != event.Raised {
			continue
		}
		to := last
		for _, b := range r.advisories[i:] {
			if b.Kind == a.Kind && b.Subject == a.Subject && b.State == event.Cleared {
				to = hour(b.At)
				break
			}
		}
		name := a.Subject
		if name == "" {
			name = "clock"
		}
		advice.Spans = append(advice.Spans, report.Span{From: hour(a.At), To: to, Color: report.Orange, Text: name})
	}
	return report.Timeline{
		Title: "A simulated shift", Label: "hours", High: math.Ceil(last*10) / 10,
		Description: fmt.Sprintf("%d tools over %.1f hours: their flank wear, the highest score of each minute, when they were faulty by their label and when an alarm was open, "+
			"when a sensor failed and when the monitor reported it.", len(r.plan.stays), last),
		Lanes: []report.Lane{tools, wear, score, faulty, alarms, sensors, advice},
	}.SVG()
}

// hour returns the hours from the beginning.
func hour(at time.Time) float64 { return at.Sub(begin).Hours() }

// curves returns the flank wear at the end of each minute, and the highest score in it.
func (r *record) curves() (wear, score report.Lane) {
	wear = report.Lane{Name: "flank wear", High: 600, Limit: 300, Unit: "µm"}
	score = report.Lane{Name: "score", High: 1, Limit: 0.5}
	const minute = 60 // windows
	for i := 0; i < len(r.moments); i += minute {
		part := r.moments[i:min(i+minute, len(r.moments))]
		var most float64
		for _, m := range part {
			most = max(most, m.score)
		}
		x := hour(part[0].end)
		wear.X, wear.Y = append(wear.X, x), append(wear.Y, part[len(part)-1].wear)
		score.X, score.Y = append(score.X, x), append(score.Y, most)
	}
	breaks(&wear)
	return wear, score
}

// breaks breaks the line of the wear where the tool is changed.
func breaks(l *report.Lane) {
	for i := 1; i < len(l.Y); i++ {
		if l.Y[i] < l.Y[i-1]-50 {
			l.Y[i-1] = math.NaN()
		}
	}
}

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/report"
)

func (r *results) markdown() string {
	var b strings.Builder
	s, tools, sensors, healthy := &r.of[ofShift], &r.of[ofFailingTools], &r.of[ofFailingSensors], &r.of[ofHealthyTools]
	if r.small {
		b.WriteString("In small (`go run -C bench ./alerts -quick`): an hour, tools that live for less than three minutes, holes of 24 s, no day of healthy cutting. " +
			"`make shift` measures the whole, in a quarter of an hour of processor time, and writes it here.\n\n")
	}
	fmt.Fprintf(&b, "Model %s. A shift of %s: %d tools, %s of cutting, %d retracts. %d alarms; %d windows judged, %d of them not as their label says.\n\n",
		r.model.ID(), hours(s.machine), s.tools, hours(s.cutting), s.retracts, s.alarms, s.judgement, s.wrong)
	b.WriteString("| tool | fails | faulty by its label | alarm | behind the label | flank wear at the alarm |\n|---|---|---|---|---:|---:|\n")
	for _, f := range s.failures {
		alarm, delay := "none", "–"
		if !f.alarm.IsZero() {
			alarm, delay = f.alarm.Format(time.TimeOnly), fmt.Sprintf("%.0f s", f.delay.Seconds())
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %.0f µm |\n", f.tool.Name, f.tool.End, f.label.Format(time.TimeOnly), alarm, delay, f.wear)
	}
	b.WriteString("\n| sensor | fault | from | advisory | NE 107 |\n|---|---|---|---|---|\n")
	for _, x := range s.sensors {
		at, status := "none", "–"
		if x.advisory != nil {
			at, status = x.advisory.At.Format(time.TimeOnly), strings.ReplaceAll(x.advisory.Status, "_", " ")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", x.fault.Channel, x.fault.Kind, begin.Add(x.fault.From).Format(time.TimeOnly), at, status)
	}
	b.WriteString("\n| | what | to hold | measured |\n|---|---|---|---|\n")
	for _, g := range r.goals() {
		held := "held"
		if !g.held {
			held = "**not held**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s: %s |\n", g.of, g.what, g.figure, g.measured, held)
	}
	if n := s.unsure + healthy.unsure + tools.unsure + sensors.unsure; n > 0 {
		fmt.Fprintf(&b, "\nIn addition, %d advisories said that the model did not know what it saw, or that features had drifted: %d in the shift, %d in healthy cutting, %d of tools and sensors that fail.\n",
			n, s.unsure, healthy.unsure, tools.unsure+sensors.unsure)
	}
	var early []string
	for _, f := range slices.Concat(s.failures, tools.failures) {
		if !f.alarm.IsZero() && f.delay < 0 {
			early = append(early, fmt.Sprintf("%.0f s at %.0f µm", -f.delay.Seconds(), f.wear))
		}
	}
	if len(early) > 0 {
		fmt.Fprintf(&b, "\nOf the %d alarms of tools that failed, %d came before the label turned at %d µm: by %s. From %d µm on that counts as found.\n",
			len(s.failures)+len(tools.failures), len(early), 300, strings.Join(early, ", "), nearLimit)
	}
	for _, a := range slices.Concat(s.falsely, healthy.falsely, tools.falsely, sensors.falsely) {
		fmt.Fprintf(&b, "\nFalse alarm: %s\n", a.Text)
	}
	return b.String()
}

type goal struct {
	of, what, figure, measured string
	held                       bool
}

func (r *results) goals() []goal {
	s, c, f, n := &r.of[ofShift], &r.of[ofHealthyTools], &r.of[ofFailingTools], &r.of[ofFailingSensors]
	share := func(k, of int) string { return fmt.Sprintf("%d of %d", k, of) }
	budget := int(c.cutting / (8 * time.Hour))
	goals := []goal{
		{"shift", "tools found within 30 s after their label turns faulty", share(3, 3), share(s.found(), len(s.failures)), s.found() == 3 && len(s.failures) == 3},
		{"shift", "false alarms", "at most 1", fmt.Sprint(len(s.falsely)), len(s.falsely) <= 1},
		{"shift", "changes within a minute of two others", "0", fmt.Sprint(s.chatter), s.chatter == 0},
		{"shift", "sensor faults shown as such", share(5, 5), share(s.shown(), len(s.sensors)), s.shown() == 5 && s.spurious == 0},
		{"tools that fail", "found within 30 s after their label", share(len(f.failures), len(f.failures)), share(f.found(), len(f.failures)), f.found() == len(f.failures)},
		{"tools that fail", "false alarms, below 270 µm", "0", fmt.Sprint(len(f.falsely)), len(f.falsely) == 0},
		{"sensors that fail", "shown as sensor faults", share(len(n.sensors), len(n.sensors)), share(n.shown(), len(n.sensors)), n.shown() == len(n.sensors)},
		{"sensors that fail", "alarms of tools, all of which were fit", "0", fmt.Sprint(n.alarms), n.alarms == 0},
		{"all", "changes within a minute of two others", "0", fmt.Sprint(s.chatter + c.chatter + f.chatter + n.chatter), s.chatter+c.chatter+f.chatter+n.chatter == 0},
	}
	if c.tools == 0 {
		return goals
	}
	return append(goals, []goal{
		{"healthy cutting", fmt.Sprintf("false alarms in %s of cutting, %d tools, %d retracts", hours(c.cutting), c.tools, c.retracts),
			fmt.Sprintf("at most %d, 1 per 8 h", budget), fmt.Sprint(c.alarms), c.alarms <= budget},
		{"healthy cutting", "advisories of sensors", "0", fmt.Sprint(c.spurious), c.spurious == 0},
	}...)
}

func hours(d time.Duration) string { return fmt.Sprintf("%.1f h", d.Hours()) }

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

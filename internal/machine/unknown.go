package machine

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/statement"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
)

// A tool is not watched when the model did not know so many of the last windows that
// it might have judged. Of tools never seen it does not know one in thirty, and of the
// worst of them one in ten.
const (
	unknownWindows = 32
	unknownMost    = 16
)

// unknownRule is of whether that is so; it must be over for a minute of cutting.
var unknownRule = alarm.Hysteresis{K: 1, N: 1, Hold: time.Minute}

// countUnknown takes whether the model knew the window of r, and whether it has a verdict, and advises if that has been missing for
// so long that the tool is not monitored.
func (m *Machine) countUnknown(c candidate, r *event.Result) {
	many, counts := 0, c.Judging != nil && r.Verdict == event.Unknown
	switch r.Verdict {
	case event.NotCutting:
		return
	case event.Healthy, event.Faulty:
		m.Unjudged, counts = 0, c.Judging != nil
	default:
		m.Unjudged++
	}
	if counts {
		many = c.noteUnknown(r.Verdict == event.Unknown)
	}
	long := m.Unjudged >= m.settings.mostUnjudged()+2*c.by.model.Reference.Windows
	if !counts && !long {
		return
	}
	a := m.Notices.observe(m.decision, event.UnknownAdvisory, "", many >= unknownMost || long, unknownRule, r)
	if a == nil {
		return
	}
	name := event.ShortName(m.Machine)
	switch {
	case a.State == event.Cleared:
		a.Text = fmt.Sprintf("%s: the model knows what it sees again, after %s", name, statement.Clock(a.Since))
		return
	case long:
		a.Text = fmt.Sprintf("%s: UNKNOWN, no verdict in %d windows, now %s", name, m.Unjudged, noVerdict(c, r))
	default:
		a.Text = fmt.Sprintf("%s: UNKNOWN, %d of the last %d windows of cutting, now %s: its tool is not monitored. Look at sensors, material and cutting data; if they are meant to be so, train on them",
			name, many, unknownWindows, strings.ReplaceAll(r.Unknown, "_", " "))
	}
	m.Notices.of(event.UnknownAdvisory, "").Text = a.Text
}

// noteUnknown notes whether the verdict on a window was unknown, and returns how many of the last ones were.
func (j *Judging) noteUnknown(unknown bool) int {
	j.Unknown <<= 1
	if unknown {
		j.Unknown |= 1
	}
	j.Unknown &= 1<<unknownWindows - 1
	return bits.OnesCount64(j.Unknown)
}

// noVerdict says why a window has no verdict, and what to do.
func noVerdict(c candidate, r *event.Result) string {
	switch {
	case r.Verdict == event.Learning:
		return fmt.Sprintf("learning: its tool is not monitored. A tool has no verdict before its reference is learnt from %d windows, and none is in for so long: give it one name for its whole life", c.by.model.Reference.Windows)
	case r.Verdict == event.SensorFault:
		var flags []string
		for _, s := range r.Sensors {
			flags = append(flags, s.Flags...)
		}
		slices.Sort(flags)
		return fmt.Sprintf("sensor fault (%s): its tool is not monitored. Look at its sensors and their clocks", cmp.Or(strings.Join(slices.Compact(flags), ", "), "no cutting state can be told"))
	case r.Unknown == string(event.NoTool):
		return "no tool: the control names none. Look at what it says, and at context.no_tool of the ingester"
	case c.Judging == nil:
		return "model changed: its tool is not monitored. Its past cannot be read from Kafka yet: look at Kafka and the monitor's log, or change the tool"
	}
	return strings.ReplaceAll(r.Unknown, "_", " ") + ": its tool is not monitored. Look at sensors, material and cutting data; if they are meant to be so, train on them"
}

// drifts takes the reference of a tool that was new into account once it is there, and advises of
// drift of the machine and of its end. It outlives tools, and belongs to the model: of another one, which judges
// until its tool is changed, the monitor says nothing.
func (m *Machine) drifts(t *Tool, c candidate, r *event.Result) {
	if c.Judging == nil {
		return
	}
	if c.tellsOfDrift(t) {
		m.addDrift(t, c)
	}
	memory := m.Drift[c.Model]
	n := m.Notices.of(event.DriftAdvisory, "")
	if drifted := memory != nil && memory.Drifted; drifted == (n != nil) || m.judges.deployment == nil || m.judges.deployment.Champion.ID() != c.Model {
		return
	}
	by := byResult(r)
	if n != nil {
		text := fmt.Sprintf("%s: new tools are as when the model was trained again; drift of %s is over", event.ShortName(m.Machine), statement.Clock(n.Since))
		if memory == nil {
			text = fmt.Sprintf("%s: drift of %s is forgotten, the model is another", event.ShortName(m.Machine), statement.Clock(n.Since))
		}
		m.Notices.clear(m.decision, event.DriftAdvisory, "", by, text)
		return
	}
	text := fmt.Sprintf("%s: DRIFT, its last tools differed from the tools of the training even when new (F %.1f): %s. Check the sensors, or train on recent tools",
		event.ShortName(m.Machine), memory.F, moved(memory, c.by.judge.FeatureNames()))
	m.Notices.raise(m.decision, event.DriftAdvisory, "", r.Start, r.End, by, text).Severity = "info"
}

// tellsOfDrift reports whether the reference of a tool is there and was not taken into account.
func (c candidate) tellsOfDrift(t *Tool) bool {
	return c.by.model.Drift != nil && c.Reference.Center() != nil && c.complete(t) && !slices.Contains(t.Drifted, c.Model)
}

// addDrift takes the reference of a tool into account. What other models have seen is remembered while they judge a tool.
func (m *Machine) addDrift(t *Tool, c candidate) {
	maps.DeleteFunc(m.Drift, func(id string, _ *model.DriftMemory) bool {
		if slices.ContainsFunc(m.Tools, func(t *Tool) bool { return t.By == id }) {
			return false
		}
		for _, of := range m.Tools {
			if i := slices.Index(of.Drifted, id); i >= 0 {
				of.Drifted, m.dirty.tools[of.Name] = slices.Delete(of.Drifted, i, i+1), true
			}
		}
		return true
	})
	if m.Drift == nil {
		m.Drift = make(map[string]*model.DriftMemory)
	}
	if m.Drift[c.Model] == nil {
		m.Drift[c.Model] = new(model.DriftMemory)
	}
	c.by.judge.Drift(m.Drift[c.Model], &c.Reference)
	t.Drifted, m.dirty.tools[t.Name], m.dirty.slow = append(t.Drifted, c.Model), true, true
}

// usedTool is the subject of a model_changed advisory that says that a reference is of a used tool. Without a subject it
// says that windows are unknown.
const usedTool = "reference"

// modelAdvisory says that windows of the tool in the spindle are unknown since another model was deployed, until a
// build has ended; or that the tool was used when its reference was learnt.
func (m *Machine) modelAdvisory(t *Tool, c candidate, builds bool, r *event.Result) {
	m.modelNotice(t, "", builds, r)
	m.modelNotice(t, usedTool, c.Judging != nil && !c.complete(t), r)
}

// modelNotice raises an advisory, or clears it, as its condition says.
func (m *Machine) modelNotice(t *Tool, subject string, holds bool, r *event.Result) {
	n := m.Notices.of(event.ModelAdvisory, subject)
	if holds == (n != nil) {
		return
	}
	about := event.ShortName(m.Machine) + " tool " + statement.Tool(t.Name) + ": "
	switch {
	case holds && subject == usedTool:
		why := ""
		if t.Used {
			why = fmt.Sprintf("the machine has more than %d tools in turn, and the monitor had forgotten this one; ", m.settings.keptTools())
		}
		m.Notices.raise(m.decision, event.ModelAdvisory, subject, r.Start, r.End, byResult(r), about+"REFERENCE OF A USED TOOL: "+why+"model "+r.Model+
			" has not seen its first windows, and knows it from later ones on only: trust its verdicts less until the tool is changed")
	case holds:
		m.Notices.raise(m.decision, event.ModelAdvisory, subject, r.Start, r.End, byResult(r), about+"MODEL CHANGED; no model knows the tool, so its windows are unknown until its past is read from Kafka; "+
			"its alarm stays as it is").Severity = "info"
	default:
		m.Notices.clear(m.decision, event.ModelAdvisory, subject, byResult(r), about+"model "+r.Model+" knows it, and judges it")
	}
}

// moved names the channels whose features have moved most: the prefixes of their names.
func moved(d *model.DriftMemory, names []string) string {
	const looked = 50
	features, _ := d.Most(looked)
	counts := make(map[string]int)
	for _, j := range features {
		name, _, _ := strings.Cut(names[j], ".")
		counts[name]++
	}
	order := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return "most " + strings.Join(order[:min(3, len(order))], ", ")
}

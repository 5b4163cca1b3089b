// Package compare says how two models differ that judged the same windows: which of them
// raised an alarm, when, at which wear, and how many windows each did not know.
//
// A [Comparison] takes results and alerts of the two [modelSide]s in the order in which they were
// decided, and keeps counts and alarms of them, so its memory does not grow with the windows.
// A [Replay] makes results and alerts of features. A [Report] is what people read.
package compare

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/table/wear"
)

// modelSide is one of the two models that are compared.
type modelSide int

// The sides: A is what judges today, B what may judge tomorrow.
const (
	sideA modelSide = iota
	sideB
)

// String returns the letter of the side.
func (s modelSide) String() string { return [...]string{"A", "B"}[s] }

// sideCounts says how often a side gave each verdict.
type sideCounts map[event.Verdict]uint64

// Windows returns the number of windows.
func (c sideCounts) Windows() (n uint64) {
	for _, k := range c {
		n += k
	}
	return n
}

// Judged returns how many windows were healthy, faulty or unknown: while cutting, and with a
// reference.
func (c sideCounts) Judged() uint64 {
	return c[event.Healthy] + c[event.Faulty] + c[event.Unknown]
}

// Share returns the part of the judged windows that has a verdict; 0 without any.
func (c sideCounts) Share(v event.Verdict) float64 {
	return float64(c[v]) / float64(max(c.Judged(), 1))
}

func (c sideCounts) add(other sideCounts) {
	for v, n := range other {
		c[v] += n
	}
}

// Alarm is an alarm of one side, from the window that raised it until it was cleared. While
// its tool is not in the spindle, it stands.
type Alarm struct {
	Incident string    `json:"incident"`
	Tool     string    `json:"tool"`
	Hole     string    `json:"hole,omitempty"`
	Raised   time.Time `json:"raised"`           // end of the window that raised it
	Cleared  time.Time `json:"cleared,omitzero"` // zero: it stands at the end
	Score    float64   `json:"score"`
	WearUM   *float64  `json:"wear_um,omitempty"` // maximum flank wear by the labels; nil if it is not known

	// Unannounced: the alarm stood before the comparison began, or someone had masked it. When
	// the model would have raised it is not known; Raised is the first window that had it.
	Unannounced bool `json:"unannounced,omitempty"`
}

// Comparison gathers what two sides made of windows. One goroutine at a time may use it.
type Comparison struct {
	machines map[string]*gathered
	from, to time.Time
	join     *wear.Join // nil: without labels
}

// gathered is what is known of a machine so far.
type gathered struct {
	tools   map[string]*[2]sideCounts
	alarms  [2][]*Alarm
	by      [2]map[string]*Alarm // the same by incident
	refused map[string]uint64    // windows left out, by why
	length  time.Duration        // of the windows
	join    *wear.Join           // that saw the windows; nil: none
	joined  *string              // tool that was in the spindle when a replay began; nil: none, or it is not known
}

// New returns a comparison of which nothing is known. Labels may be nil.
func New(labels *Labels) *Comparison {
	return &Comparison{machines: make(map[string]*gathered), join: labels.join()}
}

func (c *Comparison) machine(name string) *gathered {
	g := c.machines[name]
	if g == nil {
		g = &gathered{tools: make(map[string]*[2]sideCounts), by: [2]map[string]*Alarm{{}, {}}, refused: make(map[string]uint64)}
		c.machines[name] = g
	}
	return g
}

// Result counts the verdict of a side on a window. The caller drops repeats. Results of a
// machine come in order; whether its alerts come before or after makes no difference.
func (c *Comparison) Result(s modelSide, r *event.Result) {
	g := c.machine(r.Machine)
	counts := g.tools[r.Tool]
	if counts == nil {
		counts = &[2]sideCounts{{}, {}}
		g.tools[r.Tool] = counts
	}
	counts[s][r.Verdict]++
	if s == sideA {
		c.see(g, r)
	}
	if c.from.IsZero() || r.Start.Before(c.from) {
		c.from = r.Start
	}
	if r.End.After(c.to) {
		c.to = r.End
	}
	if r.Incident == "" || r.Late || r.Between() {
		return
	}
	if g.by[s][r.Incident] == nil {
		g.add(s, &Alarm{Incident: r.Incident, Tool: r.Tool, Raised: r.End, Unannounced: true})
	}
}

// Alert takes a change of an alarm. The wear is the tool's maximum flank wear in µm in the
// window that decided, NaN if it is not known.
func (c *Comparison) Alert(s modelSide, a *event.Alert, wearUM float64) {
	g := c.machine(a.Machine)
	known := g.by[s][a.Incident]
	switch {
	case a.State == event.Raised:
		g.raised(s, known, a, wearUM)
	case a.State == event.Cleared && known != nil:
		known.Cleared = a.At
	case a.State == event.Cleared && a.Incident != "": // it stood before
		g.add(s, &Alarm{Incident: a.Incident, Tool: a.Tool, Raised: a.Since, Cleared: a.At, Unannounced: true})
	}
}

// raised takes an alert that says that an alarm is raised, which may be known.
func (g *gathered) raised(s modelSide, known *Alarm, a *event.Alert, wearUM float64) {
	switch {
	case known == nil:
		n := &Alarm{Incident: a.Incident, Tool: a.Tool, Hole: a.Hole, Raised: a.At, Score: a.Score, Unannounced: !announces(a)}
		n.setWear(wearUM)
		g.add(s, n)
	case known.Unannounced && known.Raised.Equal(a.At) && announces(a):
		known.Hole, known.Score, known.Unannounced = a.Hole, a.Score, false
		known.setWear(wearUM)
	default: // its tool is back
		known.Cleared = time.Time{}
	}
}

// announces reports whether a raised alarm was raised by its window: not that its tool came
// back, nor that someone took the mask off an alarm that stood already.
func announces(a *event.Alert) bool { return a.Reason != "tool_back" && a.Score > 0 }

func (a *Alarm) setWear(um float64) {
	if um == um && !a.Unannounced {
		a.WearUM = &um
	}
}

func (g *gathered) add(s modelSide, a *Alarm) {
	g.alarms[s], g.by[s][a.Incident] = append(g.alarms[s], a), a
}

// Refuse counts a window of a machine that the comparison leaves out, and why.
func (c *Comparison) Refuse(machine, why string) {
	g := c.machine(machine)
	if _, known := g.refused[why]; !known && len(g.refused) >= mostReasons {
		why = "other reasons"
	}
	g.refused[why]++
}

// mostReasons is how many different reasons to leave windows out are kept for a machine.
const mostReasons = 16

// Merge adds the machines of another comparison, which has none of this one's.
func (c *Comparison) Merge(other *Comparison) {
	maps.Copy(c.machines, other.machines)
	if c.from.IsZero() || !other.from.IsZero() && other.from.Before(c.from) {
		c.from = other.from
	}
	if other.to.After(c.to) {
		c.to = other.to
	}
}

// events puts the alarms of a machine together that stood at the same time for the same tool.
func (g *gathered) events() []occasion {
	type sided struct {
		*Alarm
		side modelSide
	}
	byTool := make(map[string][]sided)
	for _, s := range []modelSide{sideA, sideB} {
		for _, a := range g.alarms[s] {
			byTool[a.Tool] = append(byTool[a.Tool], sided{a, s})
		}
	}
	var out []occasion
	for _, alarms := range byTool {
		slices.SortStableFunc(alarms, func(x, y sided) int { return x.Raised.Compare(y.Raised) })
		var end time.Time // of the event at hand; zero: it stands
		for i, a := range alarms {
			e := len(out) - 1
			if i == 0 || !end.IsZero() && !a.Raised.Before(end) && !a.Raised.Equal(alarms[i-1].Raised) {
				out, e, end = append(out, occasion{Tool: a.Tool}), e+1, a.Cleared
			}
			if of := &out[e]; a.side == sideA {
				of.A = append(of.A, a.Alarm)
			} else {
				of.B = append(of.B, a.Alarm)
			}
			if a.Cleared.IsZero() || !end.IsZero() && a.Cleared.After(end) {
				end = a.Cleared
			}
		}
	}
	for i := range out {
		out[i].compare()
	}
	slices.SortFunc(out, func(x, y occasion) int { return cmp.Or(x.at().Compare(y.at()), cmp.Compare(x.Tool, y.Tool)) })
	return out
}

// occasion is an occasion on which at least one side had an alarm: its alarms of one tool that
// overlap in time.
type occasion struct {
	Tool   string   `json:"tool"`
	Kind   kind     `json:"kind"`
	LaterS *float64 `json:"b_later_s,omitempty"` // as in eventTally
	A      []*Alarm `json:"a,omitempty"`         // oldest first; empty: that side had none
	B      []*Alarm `json:"b,omitempty"`
}

// at returns when the first of the alarms was raised.
func (e *occasion) at() time.Time {
	if len(e.A) == 0 || len(e.B) > 0 && e.B[0].Raised.Before(e.A[0].Raised) {
		return e.B[0].Raised
	}
	return e.A[0].Raised
}

// kind says which side raised an alarm.
type kind string

// The kinds of events.
const (
	kindOnlyA   kind = "only_a"
	kindOnlyB   kind = "only_b"
	kindEarlier kind = "b_earlier"
	kindLater   kind = "b_later"
	kindSame    kind = "same_window"
	kindUnknown kind = "unannounced" // of one side it is not known when it would have raised
)

// compare sets which side raised, and how much later B did than A if both did.
func (e *occasion) compare() {
	unannounced := func(alarms []*Alarm) bool { return len(alarms) > 0 && alarms[0].Unannounced }
	switch {
	case unannounced(e.A) || unannounced(e.B):
		e.Kind = kindUnknown
	case len(e.B) == 0:
		e.Kind = kindOnlyA
	case len(e.A) == 0:
		e.Kind = kindOnlyB
	default:
		later := e.B[0].Raised.Sub(e.A[0].Raised)
		e.Kind, e.LaterS = [...]kind{kindEarlier, kindSame, kindLater}[1+cmp.Compare(later, 0)], new(later.Seconds())
	}
}

// nan is a wear that is not known.
var nan = math.NaN()

// median returns the middle value, the mean of the two in the middle; NaN of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return nan
	}
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/table/wear"
)

// Labels are the measurements of a wear file.
type Labels struct{ measured []wear.Measurement }

// LoadLabels reads the wear file at path; nil if that is empty. It calls warn with what it
// leaves out.
func LoadLabels(path string, warn func(text string)) (*Labels, error) {
	if path == "" {
		return nil, nil
	}
	ms, warnings, err := wear.Load(path)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		warn(w)
	}
	if i := slices.IndexFunc(ms, wear.Measurement.OfRecording); i >= 0 {
		warn(fmt.Sprintf("%s: rows that name a recording or count its seconds are left out, because alarms are of no recording: write tools, and times by RFC 3339", ms[i].Where))
		ms = slices.DeleteFunc(ms, wear.Measurement.OfRecording)
	}
	l := &Labels{ms}
	if _, err := wear.NewJoin(ms, wear.Auto); err != nil {
		return nil, err
	}
	return l, nil
}

// join returns a join of the measurements; nil if there are none.
func (l *Labels) join() *wear.Join {
	if l == nil {
		return nil
	}
	j, err := wear.NewJoin(l.measured, wear.Auto)
	if err != nil {
		panic("compare: labels: " + err.Error()) // LoadLabels did the same
	}
	return j
}

// see lets the labels know of the window of a result.
func (c *Comparison) see(g *gathered, r *event.Result) {
	g.length = r.End.Sub(r.Start)
	if c.join != nil {
		g.join = c.join
		c.join.See(wear.Window{Machine: r.Machine, Tool: r.Tool, Hole: r.Hole, Start: r.Start, Length: g.length})
	}
}

// label sets the wear at alarms of which it is not known yet.
func (g *gathered) label(machine string, e occasion) {
	if g.join == nil {
		return
	}
	for _, a := range slices.Concat(e.A, e.B) {
		if a.WearUM != nil || a.Unannounced {
			continue
		}
		m, _ := g.join.Peek(wear.Window{Machine: machine, Tool: a.Tool, Hole: a.Hole, Start: a.Raised.Add(-g.length), Length: g.length})
		a.WearUM = known(VB(m.VBMaxUM, m.VBMeanUM))
	}
}

// VB returns the maximum flank wear, or the mean where only that was measured; NaN if neither
// was.
func VB(maximum, mean float64) float64 {
	if math.IsNaN(maximum) {
		return mean
	}
	return maximum
}

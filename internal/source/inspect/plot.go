package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/report"
)

// maxPanels is how many channels a plot shows, one below another.
const maxPanels = 16

// errPlot is returned where there is nothing that could be drawn.
var errPlot = errors.New("no channel to draw")

// Plot writes a picture of the named channels to the file at path, as SVG; of the
// first maxPanels channels of numbers if none is named. It returns how many
// channels it left out.
func (s *Summary) Plot(path string, names []string) (left int, err error) {
	var shown []*Channel
	for i := range s.Channels {
		if c := &s.Channels[i]; c.finite > 0 && (len(names) == 0 || slices.Contains(names, c.Name)) {
			shown = append(shown, c)
		}
	}
	for _, n := range names {
		if !slices.ContainsFunc(shown, func(c *Channel) bool { return c.Name == n }) {
			return 0, fmt.Errorf("plot: %q is not a channel with numbers in it: %w", n, errPlot)
		}
	}
	if len(shown) == 0 {
		return 0, errPlot
	}
	if len(shown) > maxPanels {
		left = len(shown) - maxPanels
		shown = shown[:maxPanels]
	}
	var panels []report.Plot
	var drawn []string
	for i, c := range shown {
		p := c.panel()
		if i < len(shown)-1 && (c.Rate > 0) == (shown[len(shown)-1].Rate > 0) {
			p.X.Label = "" // the last panel says it for all
		}
		panels, drawn = append(panels, p), append(drawn, c.Name)
	}
	svg := report.Panels(filepath.Base(s.Path), "Channels "+strings.Join(drawn, ", ")+", one below another.", 1, 1060, 100, panels)
	if err := config.WriteFile(path, svg); err != nil {
		return 0, fmt.Errorf("plot: %w", err)
	}
	return left, nil
}

// panel draws one channel over time, or over samples if its rate is not known: a
// line of samples, or one up and down within each bin of them. Bins are narrower
// than the pen, so that it looks like the area between least and greatest.
func (c *Channel) panel() report.Plot {
	e := &c.Envelope
	step, over := float64(e.Width), "sample"
	if c.Rate > 0 {
		step, over = step/c.Rate, "time [s]"
	}
	s := report.Series{Color: report.Blue, Width: 0.8}
	for i := range e.Min {
		if e.Width == 1 {
			s.X, s.Y = append(s.X, step*float64(i)), append(s.Y, e.Min[i])
			continue
		}
		x := step * (float64(i) + 0.5)
		s.X, s.Y = append(s.X, x, x), append(s.Y, e.Min[i], e.Max[i])
	}
	return report.Plot{
		X:      report.Axis{Label: over, High: step * float64(len(e.Min))},
		Y:      report.Axis{Label: label(c.Name, c.Unit)},
		Series: []report.Series{s},
	}
}

// label names a quantity and its unit.
func label(name, unit string) string {
	if unit == "" {
		return name
	}
	return name + " [" + unit + "]"
}

// holeColors tell the lines of the two holes apart.
var holeColors = [2]string{report.Blue, report.Orange}

// Plot writes a picture of the holes to the file at path, as SVG: a stretch of each
// waveform, both spectra, and the features over the time of the hole. The captions
// say what the holes are.
func (h *Holes) Plot(path string, captions [2]string) error {
	panels := append(h.waves(captions), h.spectra(captions))
	for _, t := range h.Features {
		panels = append(panels, t.panel())
	}
	svg := report.Panels("", "Two holes of "+filepath.Base(h.Path)+", channel "+h.Channel.Name+": waveforms, spectra and features.", 2, 444, 190, panels)
	if err := config.WriteFile(path, svg); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	return nil
}

// waves draws the stretches, to the same scale.
func (h *Holes) waves(captions [2]string) []report.Plot {
	panels := make([]report.Plot, 2)
	most := 0.
	for k, hole := range h.Holes {
		s := report.Series{Color: holeColors[k], Width: 0.6}
		for i, v := range hole.Wave {
			s.X, s.Y = append(s.X, 1000*float64(i)/h.Channel.Rate), append(s.Y, float64(v))
			if a := math.Abs(float64(v)); a > most && !math.IsInf(a, 0) {
				most = a
			}
		}
		panels[k] = report.Plot{
			Title:  captions[k],
			X:      report.Axis{Label: "ms, from the middle of the hole", High: 1000 * float64(len(h.Holes[0].Wave)) / h.Channel.Rate},
			Y:      report.Axis{Label: label(h.Channel.Name, h.Channel.Unit)},
			Series: []report.Series{s},
		}
	}
	most = cmp.Or(most, 1)
	for k := range panels {
		panels[k].Y.Low, panels[k].Y.High = -1.05*most, 1.05*most
	}
	return panels
}

// spectra draws the power of both, as density in decibels of unit²/Hz.
func (h *Holes) spectra(captions [2]string) report.Plot {
	unit := cmp.Or(h.Channel.Unit, "1")
	scale, over := 1000., "kHz"
	if h.Channel.Rate < 2000 {
		scale, over = 1, "Hz"
	}
	p := report.Plot{
		Title: "spectrum",
		X:     report.Axis{Label: over, High: h.Channel.Rate / 2 / scale},
		Y:     report.Axis{Label: "dB, " + unit + "²/Hz"},
	}
	for k, hole := range h.Holes {
		s := report.Series{Name: captions[k], Color: holeColors[k], Width: 0.8}
		for i := 1; i < len(hole.Power); i++ {
			s.X = append(s.X, float64(i)*hole.Width/scale)
			s.Y = append(s.Y, 10*math.Log10(hole.Power[i]/hole.Width))
		}
		p.Series = append(p.Series, s)
	}
	return p
}

func (t trend) panel() report.Plot {
	p := report.Plot{Title: label(t.Name, t.Unit), X: report.Axis{Label: "s, since the hole began"}}
	for k := range t.At {
		p.Series = append(p.Series, report.Series{X: t.At[k], Y: t.Values[k], Color: holeColors[k], Width: 1.5})
		for _, at := range t.At[k] {
			p.X.High = max(p.X.High, at)
		}
	}
	return p
}

package inspect

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The colours of the two holes: blue and vermilion, which those who see colours
// otherwise can distinguish too.
var holeInks = [2]color.Color{ink, color.NRGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff}}

// Plot writes a picture of the holes to the file at path, whose ending is .png or
// .svg: a stretch of each waveform, both spectra, and the features over the time
// of the hole. The captions say what the holes are.
func (h *Holes) Plot(path string, captions [2]string) error {
	const width, height = 11 * vg.Inch, 2.9 * vg.Inch
	left, right, err := h.waves(captions)
	if err != nil {
		return err
	}
	spectra, err := h.spectra(captions)
	if err != nil {
		return err
	}
	panels := []*plot.Plot{left, right, spectra}
	for _, t := range h.Features {
		p, err := t.panel()
		if err != nil {
			return err
		}
		panels = append(panels, p)
	}
	var rows [][]*plot.Plot
	for len(panels) > 0 {
		row := make([]*plot.Plot, 2)
		n := copy(row, panels)
		rows, panels = append(rows, row), panels[n:]
	}
	return save(path, rows, width, vg.Length(len(rows))*height)
}

// newPanel returns axes with a title and labels.
func newPanel(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding = 4
	for _, style := range []*draw.TextStyle{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		style.Font.Variant = "Sans"
		style.Font.Size = 9
	}
	p.Title.TextStyle.Font.Size = 10
	p.Legend.Top = true
	p.Legend.XOffs, p.Legend.YOffs = -6, -4
	p.Legend.Padding = 2
	grid := plotter.NewGrid()
	grid.Horizontal.Color = color.Gray{0xe0}
	grid.Vertical.Color = color.Gray{0xe0}
	p.Add(grid)
	return p
}

// addLine draws y over x, leaving out what is not finite.
func addLine(p *plot.Plot, x, y []float64, ink color.Color, width vg.Length, name string) error {
	var runs []plotter.XYs
	joined := false
	for i := range y {
		if math.IsNaN(y[i]) || math.IsInf(y[i], 0) {
			joined = false
			continue
		}
		if !joined {
			runs = append(runs, nil)
			joined = true
		}
		last := &runs[len(runs)-1]
		*last = append(*last, plotter.XY{X: x[i], Y: y[i]})
	}
	for i, run := range runs {
		l, err := plotter.NewLine(run)
		if err != nil {
			return fmt.Errorf("plot: %w", err)
		}
		l.Color, l.Width = ink, width
		p.Add(l)
		if i == 0 && name != "" {
			key := *l
			key.Width = 2
			p.Legend.Add(name, &key)
		}
	}
	return nil
}

// waves draws the stretches, to the same scale.
func (h *Holes) waves(captions [2]string) (left, right *plot.Plot, err error) {
	var panels [2]*plot.Plot
	most := 0.
	for k, hole := range h.Holes {
		p := newPanel(captions[k], "ms, from the middle of the hole", label(h.Channel.Name, h.Channel.Unit))
		x, y := make([]float64, len(hole.Wave)), make([]float64, len(hole.Wave))
		for i, v := range hole.Wave {
			x[i], y[i] = 1000*float64(i)/h.Channel.Rate, float64(v)
			if a := math.Abs(y[i]); a > most && !math.IsInf(a, 0) {
				most = a
			}
		}
		if err := addLine(p, x, y, holeInks[k], 0.6, ""); err != nil {
			return nil, nil, err
		}
		panels[k] = p
	}
	for _, p := range panels {
		p.Y.Min, p.Y.Max = -1.05*most, 1.05*most
		if most == 0 {
			p.Y.Min, p.Y.Max = -1, 1
		}
		p.X.Min, p.X.Max = 0, 1000*float64(len(h.Holes[0].Wave))/h.Channel.Rate
	}
	return panels[0], panels[1], nil
}

func label(name, unit string) string {
	if unit == "" {
		return name
	}
	return name + " [" + unit + "]"
}

// spectra draws the power of both, as density in decibels of unit²/Hz.
func (h *Holes) spectra(captions [2]string) (*plot.Plot, error) {
	unit := h.Channel.Unit
	if unit == "" {
		unit = "1"
	}
	p := newPanel("spectrum", "kHz", "dB, "+unit+"²/Hz")
	scale := 1000.
	if h.Channel.Rate < 2000 {
		scale, p.X.Label.Text = 1, "Hz"
	}
	for k, hole := range h.Holes {
		var x, y []float64
		for i := 1; i < len(hole.Power); i++ {
			x = append(x, float64(i)*hole.Width/scale)
			y = append(y, 10*math.Log10(hole.Power[i]/hole.Width))
		}
		if err := addLine(p, x, y, holeInks[k], 0.7, captions[k]); err != nil {
			return nil, err
		}
	}
	p.X.Min, p.X.Max = 0, h.Channel.Rate/2/scale
	p.Y.Max += 0.25 * (p.Y.Max - p.Y.Min) // for the legend
	return p, nil
}

func (t Trend) panel() (*plot.Plot, error) {
	p := newPanel(label(t.Name, t.Unit), "s, since the hole began", "")
	for k := range t.At {
		if err := addLine(p, t.At[k], t.Values[k], holeInks[k], 1.4, ""); err != nil {
			return nil, err
		}
	}
	p.X.Min = 0
	return p, nil
}

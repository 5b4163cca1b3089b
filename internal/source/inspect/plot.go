package inspect

import (
	"errors"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// MaxPanels is how many channels a plot shows, one below another.
const MaxPanels = 16

// ErrPlot is returned where there is nothing that could be drawn.
var ErrPlot = errors.New("no channel to draw")

// Plot writes a picture of the named channels to the file at path, whose ending
// is .png or .svg; of the first MaxPanels channels of numbers if none is named.
// It returns how many channels it left out.
func (s *Summary) Plot(path string, names []string) (left int, err error) {
	const width, height = 12 * vg.Inch, 1.5 * vg.Inch
	var shown []*Channel
	for i := range s.Channels {
		if c := &s.Channels[i]; c.finite > 0 && (len(names) == 0 || slices.Contains(names, c.Name)) {
			shown = append(shown, c)
		}
	}
	for _, n := range names {
		if !slices.ContainsFunc(shown, func(c *Channel) bool { return c.Name == n }) {
			return 0, fmt.Errorf("plot: %q is not a channel with numbers in it: %w", n, ErrPlot)
		}
	}
	if len(shown) == 0 {
		return 0, ErrPlot
	}
	if len(shown) > MaxPanels {
		left = len(shown) - MaxPanels
		shown = shown[:MaxPanels]
	}
	plots := make([][]*plot.Plot, len(shown))
	for i, c := range shown {
		p, err := c.panel()
		if err != nil {
			return 0, err
		}
		if i == 0 {
			p.Title.Text = filepath.Base(s.Path)
			p.Title.TextStyle.Font.Size = 12
		}
		if i < len(shown)-1 && (c.Rate > 0) == (shown[len(shown)-1].Rate > 0) {
			p.X.Label.Text = "" // the last panel says it for all
		}
		plots[i] = []*plot.Plot{p}
	}
	return left, save(path, plots, width, vg.Length(len(shown))*height+0.5*vg.Inch)
}

// save writes rows of plots to the file at path, whose ending is .png or .svg.
func save(path string, rows [][]*plot.Plot, width, height vg.Length) error {
	var canvas vg.CanvasWriterTo
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".png":
		canvas = vgimg.PngCanvas{Canvas: vgimg.New(width, height)}
	case ".svg":
		canvas = vgsvg.New(width, height)
	default:
		return fmt.Errorf("plot: %s: name the file .png or .svg", path)
	}
	tiles := draw.Tiles{Rows: len(rows), Cols: len(rows[0]), PadTop: 8, PadBottom: 4, PadLeft: 8, PadRight: 16, PadX: 18, PadY: 6}
	for i, cells := range plot.Align(rows, tiles, draw.New(canvas)) {
		for j, cell := range cells {
			if rows[i][j] != nil {
				rows[i][j].Draw(cell)
			}
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	_, err = canvas.WriteTo(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	return nil
}

var ink = color.NRGBA{R: 0x1f, G: 0x5a, B: 0x8c, A: 0xff}

// panel draws one channel over time, or over samples if its rate is not known.
func (c *Channel) panel() (*plot.Plot, error) {
	p := plot.New()
	p.Y.Label.Text = c.Name
	if c.Unit != "" {
		p.Y.Label.Text += " [" + c.Unit + "]"
	}
	if r := []rune(p.Y.Label.Text); len(r) > 24 {
		p.Y.Label.Text = string(r[:23]) + "…"
	}
	for _, style := range []*draw.TextStyle{&p.Y.Label.TextStyle, &p.X.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		style.Font.Size = 8
	}
	step := float64(c.Envelope.Width)
	p.X.Label.Text = "sample"
	if c.Rate > 0 {
		step /= c.Rate
		p.X.Label.Text = "time [s]"
	}
	p.Add(plotter.NewGrid())
	e := &c.Envelope
	for from := 0; from < len(e.Min); {
		if e.Min[from] != e.Min[from] {
			from++
			continue
		}
		to := from
		for to < len(e.Min) && e.Min[to] == e.Min[to] {
			to++
		}
		if err := addRun(p, e, from, to, step); err != nil {
			return nil, fmt.Errorf("plot: channel %s: %w", c.Name, err)
		}
		from = to
	}
	p.X.Min, p.X.Max = 0, step*float64(len(e.Min))
	if c.Min == c.Max { // keep a constant in the middle
		p.Y.Min, p.Y.Max = c.Min-1, c.Max+1
	}
	return p, nil
}

// addRun draws bins without a hole: a line of samples, or the area between
// least and greatest.
func addRun(p *plot.Plot, e *Envelope, from, to int, step float64) error {
	var line plotter.XYs
	if e.Width == 1 {
		for i := from; i < to; i++ {
			line = append(line, plotter.XY{X: step * float64(i), Y: e.Min[i]})
		}
	} else {
		// Up and down within each bin, and on to the next: an area where bins
		// are as narrow as the pen, and never less than the pen.
		for i := from; i < to; i++ {
			x := step * (float64(i) + 0.5)
			line = append(line, plotter.XY{X: x, Y: e.Min[i]}, plotter.XY{X: x, Y: e.Max[i]})
		}
	}
	l, err := plotter.NewLine(line)
	if err != nil {
		return err
	}
	l.Color = ink
	l.Width = vg.Points(0.5)
	p.Add(l)
	return nil
}

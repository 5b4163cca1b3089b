package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// Holes is what two holes of a recording look like on one channel, side by side.
type Holes struct {
	Path    string
	Channel signal.Channel
	Holes   [2]Hole

	// Features are the RMS of the channel, the one of its others that differs most
	// between the holes, and the mean of the first force channel, as far as there
	// are such.
	Features []trend
}

// Hole is one of them. Its middle are the windows that begin in the middle half
// of its time, in which a drill cuts.
type Hole struct {
	Name  string
	Wave  []float32 // a stretch of the window in the middle
	Power []float64 // mean power spectrum of the middle; index 0 is not used
	Width float64   // of a bin of it, in Hz

	session    int64     // of its windows
	start, end time.Time // of their starts
	at         []float64 // seconds from the first window to the end of each
	rows       [][]float32
	middle     []bool
	cut        float64 // windows in the middle
}

// trend is a feature over both holes.
type trend struct {
	Name   string
	Unit   string       // of the RMS and the mean; of other features see docs/reference/features.md
	At     [2][]float64 // seconds from the beginning of the hole
	Values [2][]float64 // NaN where the feature has no value
}

// waveSamples is the length of a stretch of waveform: 50 ms at 20 kHz.
const waveSamples = 1000

// errHoles is returned where a recording does not have the holes asked for.
var errHoles = errors.New("no such hole")

// CompareHoles reads the recording at path, whose layout and columns opt says,
// twice: to find the two holes, and to look into them. The channel is the first
// of the layout if none is named. Features are computed by package signal in windows
// of a second.
func CompareHoles(ctx context.Context, path string, opt Options, channel string, first, second string) (*Holes, error) {
	layout := opt.Layout
	c := 0
	if channel != "" {
		if c = layout.Index(channel); c < 0 {
			return nil, fmt.Errorf("inspect: %q is not a channel of layout %q", channel, layout.Name())
		}
	}
	h := &Holes{Path: path, Channel: layout.Channels()[c]}
	h.Holes[0].Name, h.Holes[1].Name = first, second
	var seen []string
	twice := ""
	err := eachWindow(ctx, path, opt, func(w *window.Window) {
		if !slices.Contains(seen, w.Hole) {
			seen = append(seen, w.Hole)
		}
		if hole := h.hole(w.Hole); hole != nil {
			if hole.start.IsZero() {
				hole.start, hole.session = w.Start, w.Session
			} else if w.Session != hole.session {
				twice = hole.Name
			}
			hole.end = w.Start
		}
	})
	if err != nil {
		return nil, err
	}
	if twice != "" {
		return nil, fmt.Errorf("inspect: %s: several tools have a hole %q: make a file of each tool", path, twice)
	}
	for i := range h.Holes {
		if hole := &h.Holes[i]; hole.start.IsZero() {
			return nil, fmt.Errorf("inspect: %s: %w: %q is not among %s: name two that it has", path, errHoles, hole.Name, strings.Join(quoted(seen), ", "))
		}
	}
	spec := windowSpec(layout)
	counts := make([]int, len(layout.Channels()))
	for i, ch := range layout.Channels() {
		counts[i] = spec.Samples(ch.Rate)
	}
	x, err := signal.NewExtractor(layout, counts, signal.FeatureSpec{})
	if err != nil {
		return nil, err
	}
	err = eachWindow(ctx, path, opt, func(w *window.Window) {
		if hole := h.hole(w.Hole); hole != nil {
			hole.add(w, c, x)
		}
	})
	if err != nil {
		return nil, err
	}
	for _, hole := range h.Holes {
		for k := range hole.Power { // a mean of those that were added
			hole.Power[k] /= hole.cut
		}
	}
	h.choose(layout, c, x)
	return h, nil
}

func quoted(names []string) (q []string) {
	for _, n := range names {
		q = append(q, fmt.Sprintf("%q", n))
	}
	return q
}

func (h *Holes) hole(name string) *Hole {
	if i := slices.IndexFunc(h.Holes[:], func(h Hole) bool { return h.Name == name }); i >= 0 {
		return &h.Holes[i]
	}
	return nil
}

// windowSpec is windows of a second, four a second where rates allow it.
func windowSpec(layout *signal.Layout) window.Spec {
	spec := window.DefaultSpec
	spec.Hop = spec.Length / 4
	if spec.Check(layout) != nil {
		spec.Hop = 0
	}
	return spec
}

func eachWindow(ctx context.Context, path string, opt Options, visit func(*window.Window)) error {
	src, err := source.Recording{Path: path, Layout: opt.Layout, Columns: opt.Columns}.Open()
	if err != nil {
		return err
	}
	defer source.Close(src)
	cut, err := source.NewCutter(src, windowSpec(opt.Layout))
	if err != nil {
		return err
	}
	for {
		c, err := cut.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if c.Window != nil {
			visit(c.Window)
		}
	}
}

func (h *Hole) add(w *window.Window, channel int, x *signal.Extractor) {
	since, long := w.Start.Sub(h.start), h.end.Sub(h.start)
	middle := since >= long/4 && since <= long-long/4
	h.at = append(h.at, (since + w.Length).Seconds())
	h.rows = append(h.rows, x.Extract(nil, w.Samples, w.Context))
	h.middle = append(h.middle, middle)
	samples := w.Samples[channel]
	if h.Wave == nil && since >= long/2 {
		h.Wave = slices.Clone(samples[:min(len(samples), waveSamples)])
	}
	if !middle {
		return
	}
	power, hz := signal.PowerSpectrum(samples, float64(len(samples))/w.Length.Seconds())
	h.cut++
	if h.Power == nil {
		h.Power, h.Width = make([]float64, len(power)), hz
	}
	for k, p := range power {
		h.Power[k] += p
	}
}

// choose sets the features.
func (h *Holes) choose(layout *signal.Layout, channel int, x *signal.Extractor) {
	rms, most, force := -1, -1, -1
	by := 0.
	for i, name := range x.Names() {
		ch := x.Channels(i)[0]
		switch {
		case ch == channel && strings.HasSuffix(name, ".rms"):
			rms = i
		case ch == channel:
			if d := h.differs(i); d > by {
				most, by = i, d
			}
		case layout.Channels()[ch].Kind == signal.Force && strings.HasSuffix(name, ".mean") && force < 0:
			force = i
		}
	}
	for _, i := range []int{rms, most, force} {
		if i < 0 {
			continue
		}
		t := trend{Name: x.Names()[i]}
		if i != most {
			t.Unit = layout.Channels()[x.Channels(i)[0]].Unit
		}
		for k := range h.Holes {
			t.At[k] = h.Holes[k].at
			for _, row := range h.Holes[k].rows {
				t.Values[k] = append(t.Values[k], float64(row[i]))
			}
		}
		h.Features = append(h.Features, t)
	}
}

// differs returns by how many standard deviations a feature differs between the
// middles of the holes, 0 if it has no value there.
func (h *Holes) differs(feature int) float64 {
	var mean, variance [2]float64
	for k, hole := range h.Holes {
		var n, sum, squares float64
		for i, row := range hole.rows {
			if v := float64(row[feature]); hole.middle[i] && v == v {
				n, sum, squares = n+1, sum+v, squares+v*v
			}
		}
		if n < 2 {
			return 0
		}
		mean[k] = sum / n
		variance[k] = max(0, squares/n-mean[k]*mean[k])
	}
	spread := math.Sqrt((variance[0] + variance[1]) / 2)
	if !(spread > 0) {
		return 0
	}
	return math.Abs(mean[1]-mean[0]) / spread
}

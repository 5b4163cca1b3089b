package signal

import (
	"slices"

	"github.com/flank-tcm/flank/internal/kernel"
)

// board computes the features of version 2 of all channels of a layout: each
// channel's measures by a panel or the twin, then its entries.
type board struct {
	channels []boardChannel
	sides    []side
}

type boardChannel struct {
	rate     float64
	entries  []*entry
	measures measures
	twin     *twin
	before   int  // the channel before it of the same rate, or −1
	done     bool // its measures are of the window at hand
}

// side is up to 16 channels of one rate that share a panel.
type side struct {
	panel    *panel
	channels []int
	measures []*measures
	samples  [][]float32 // scratch
}

// minPanel is the number of samples from which on a panel is worth its while.
const minPanel = 512

// newBoard returns a board of the layout without entries.
func newBoard(l *Layout, samples []int) *board {
	b := &board{channels: make([]boardChannel, len(samples))}
	twins := make(map[int]*twin)
	for _, g := range l.groups {
		before := -1
		for _, i := range g.Channels {
			n := samples[i]
			if twins[n] == nil {
				twins[n] = newTwin(n)
			}
			c := &b.channels[i]
			*c = boardChannel{rate: g.Rate, twin: twins[n], before: before}
			if c.twin.spectral {
				c.measures = newMeasures(&c.twin.shape, g.Rate)
			}
			c.measures.rate = g.Rate
			before = i
		}
	}
	return b
}

// add lets channel i compute e, and reports whether that can be.
func (b *board) add(i int, e *entry) bool {
	c := &b.channels[i]
	if e.spectral() && !c.twin.spectral || e.pair && (c.before < 0 || c.twin.shape.segments < minCoherence) {
		return false
	}
	c.entries = append(c.entries, e)
	return true
}

func (c *boardChannel) needs() needs {
	var n needs
	for _, e := range c.entries {
		n = n.union(e.needs)
	}
	return n
}

// join makes the panels once all entries are there.
func (b *board) join(l *Layout, samples []int) {
	for _, g := range l.groups {
		if n := samples[g.Channels[0]]; n < minPanel {
			continue
		}
		lines := slices.ContainsFunc(g.Channels, func(i int) bool { return b.channels[i].needs().lines })
		for from := 0; from < len(g.Channels); from += kernel.FrameLanes {
			s := side{channels: g.Channels[from:min(from+kernel.FrameLanes, len(g.Channels))]}
			needs := needs{lines: lines} // a neighbour may be in another panel
			for _, i := range s.channels {
				s.measures = append(s.measures, &b.channels[i].measures)
				needs = needs.union(b.channels[i].needs())
			}
			s.samples = make([][]float32, len(s.channels))
			s.panel = newPanel(samples[g.Channels[0]], needs)
			b.sides = append(b.sides, s)
		}
	}
}

// measure sets the measures of all channels.
func (b *board) measure(samples [][]float32, spindle float64) {
	for i := range b.channels {
		c := &b.channels[i]
		c.done = false
		c.measures.spindle = spindle
	}
	for i := range b.sides {
		s := &b.sides[i]
		for j, c := range s.channels {
			s.samples[j] = samples[c]
		}
		fit := s.panel.measure(s.measures, s.samples, b.channels[s.channels[0]].rate)
		for j, c := range s.channels {
			b.channels[c].done = fit[j]
		}
	}
	for i := range b.channels {
		c := &b.channels[i]
		if !c.done {
			c.twin.measure(&c.measures, samples[i], c.rate)
		}
	}
	b.finish()
}

// finish sets what is computed from measures.
func (b *board) finish() {
	for i := range b.channels {
		c := &b.channels[i]
		if c.needs().spectrum {
			c.measures.summarize()
		}
		if c.needs().lines {
			c.measures.cohere(&b.channels[c.before].measures)
		}
	}
}

// appendTo appends the features of all channels to dst.
func (b *board) appendTo(dst []float32) []float32 {
	for i := range b.channels {
		c := &b.channels[i]
		for _, e := range c.entries {
			n := 1
			if e.several != nil {
				n = e.several(&c.measures)
			}
			for j := range n {
				dst = append(dst, narrow(e.value(&c.measures, j)))
			}
		}
	}
	return dst
}

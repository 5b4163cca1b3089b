package signal

import (
	"math"

	"github.com/flank-tcm/flank/internal/kernel"
)

// panel computes the measures of up to 16 channels of one length side by side,
// one lane each, in float32 with sums in float64 after every few samples. Every
// lane is moved to its mean and scaled by a power of two, so that nothing over-
// or underflows, in any unit.
type panel struct {
	shape   shape
	needs   needs
	taper   []float32
	forward *kernel.FFT // of a segment
	band    *kernel.FFT // of the band, back to M points
	modes   *kernel.FFT // of the squared envelope

	ring     []kernel.Frame // the window, between samples that come again for the packets
	x        []kernel.Frame // the window
	a, b     []kernel.Frame // scratch of transforms
	bins     []kernel.Frame // of the band of a segment, twice what they are, then as many zeros
	power    []kernel.Frame
	envelope []kernel.Frame
	nodes    [packetLevels][packetCount][]kernel.Frame // the part at hand of the packets of each level
	energies [packetCount]kernel.Frame                 // of the packets, in float32 so far
	extent   kernel.Extent
	center   kernel.Center
	steps    kernel.Steps
	sums     [8][kernel.FrameLanes]float64 // d to d⁴, |x|, √|x|, squared steps and bends
	moment   [kernel.FrameLanes]float64    // Σ i·d
	fit      [kernel.FrameLanes]bool       // the lane can be computed so
	blocks   [kernel.FrameLanes][]float32  // the channels' samples that place has at hand
}

// needs says which parts of measures the features take.
type needs struct{ spectrum, envelope, packets, lines bool }

// panelBlock is how many samples are added up in float32.
const panelBlock = 256

// wrap is how many samples a packet needs beyond the two for each of its halves' samples.
const wrap = kernel.WaveletTaps - 2

// packetRing is how many samples of the window come again before it and behind it: packetLead of each level, in samples.
const packetRing = (packetCount - 1) * packetLead

// packetPart is how many samples of a packet of the last level are worked out at a time, so that all of the tree they
// need stays near the processor. It divides panelBlock.
const packetPart = 32

func newPanel(n int, needs needs) *panel {
	p := &panel{shape: newShape(n), needs: needs}
	size := p.shape.segment
	for _, w := range p.shape.taper {
		p.taper = append(p.taper, float32(w))
	}
	p.forward, p.band, p.modes = kernel.NewFFT(size/2), kernel.NewFFT(size/4), kernel.NewFFT(size/8)
	p.ring = make([]kernel.Frame, n+2*packetRing)
	p.x = p.ring[packetRing:][:n]
	p.a, p.b = make([]kernel.Frame, size), make([]kernel.Frame, size)
	p.bins = make([]kernel.Frame, size/2)
	p.power = make([]kernel.Frame, size/2+1)
	p.envelope = make([]kernel.Frame, size/8+1)
	if needs.packets {
		for level := range p.nodes {
			for i := range 2 << level {
				p.nodes[level][i] = make([]kernel.Frame, packetRing+packetPart*packetCount>>(level+1))
			}
		}
	}
	return p
}

// measure sets the measures of the channels and reports, for each, whether it
// could: not if a sample is missing, infinite, or of a size that float32 cannot
// take to the fourth power. Lines are set if spindle is known.
func (p *panel) measure(ms []*measures, samples [][]float32, rate float64) []bool {
	n := len(samples[0])
	p.place(ms, samples)
	p.pass(n)
	for c, m := range ms {
		if p.fit[c] {
			p.finishMoments(m, c, float64(n), rate)
		}
	}
	if p.needs.spectrum || p.needs.envelope || p.needs.lines {
		p.measureSpectra(ms)
	}
	if p.needs.packets {
		p.measurePackets(ms, n/packetCount*packetCount)
	}
	return p.fit[:len(ms)]
}

// place sets p.x to the samples, finds where each lane lies and how far it reaches, and says in
// p.center how to bring it to [−1, 1] about its mean. Each block is read again while it is in the first cache.
func (p *panel) place(ms []*measures, samples [][]float32) {
	var sum [kernel.FrameLanes]float64
	n := len(samples[0])
	e, blocks := &p.extent, p.blocks[:len(samples)]
	defer clear(blocks) // the samples are the caller's
	for at := 0; at < n; at += panelBlock {
		end := min(at+panelBlock, n)
		for i, x := range samples {
			blocks[i] = x[at:end]
		}
		kernel.Interleave(p.x[at:end], blocks)
		if at == 0 {
			*e = kernel.Extent{Min: p.x[0], Max: p.x[0]}
		}
		e.Sum = kernel.Frame{}
		e.Add(p.x[at:end])
		for c, v := range &e.Sum {
			sum[c] += float64(v)
		}
	}
	p.center = kernel.Center{}
	for c := range kernel.FrameLanes {
		low, high := float64(e.Min[c]), float64(e.Max[c])
		middle := float32(min(max(sum[c]/float64(n), low), high))
		reach := max(high-float64(middle), float64(middle)-low)
		p.fit[c] = !math.IsNaN(sum[c]) && reach < 0x1p100 && (reach == 0 || reach > 0x1p-100) && max(high, -low) < 0x1p100
		if !p.fit[c] {
			continue // with a gain of 0 the lane is 0, or NaN
		}
		_, exponent := math.Frexp(reach)
		p.center.Offset[c], p.center.Gain[c] = middle, float32(math.Ldexp(1, -exponent))
		if c < len(ms) {
			ms[c].min, ms[c].max = low, high
		}
	}
}

// pass replaces the samples by (x − offset)·gain and adds up what the moments
// and the shape are made of.
func (p *panel) pass(n int) {
	p.sums, p.moment = [8][kernel.FrameLanes]float64{}, [kernel.FrameLanes]float64{}
	s := &p.steps
	for at := 0; at < n; at += panelBlock {
		block := p.x[at:min(at+panelBlock, n)]
		k := &p.center
		*k = kernel.Center{Offset: k.Offset, Gain: k.Gain}
		k.Apply(block)
		if at == 0 {
			p.firstSteps()
			s.Add(block[2:])
		} else {
			s.Count, s.Moment, s.Step2, s.Bend2 = kernel.Frame{}, kernel.Frame{}, kernel.Frame{}, kernel.Frame{}
			s.Add(block)
		}
		for i, sum := range [8]*kernel.Frame{&k.D, &k.D2, &k.D3, &k.D4, &k.Abs, &k.SqrtOfAbs, &s.Step2, &s.Bend2} {
			for c, v := range sum {
				p.sums[i][c] += float64(v)
			}
		}
		for c := range p.moment {
			p.moment[c] += float64(s.Moment[c]) + float64(at)*float64(k.D[c])
		}
	}
}

// firstSteps sets p.steps to what it is after the first two samples.
func (p *panel) firstSteps() {
	s := &p.steps
	*s = kernel.Steps{Last: p.x[1], Moment: p.x[1]}
	for c := range kernel.FrameLanes {
		step := p.x[1][c] - p.x[0][c]
		s.LastStep[c], s.Step2[c], s.Count[c] = step, step*step, 2
		s.Crossings[c] = int32((math.Float32bits(p.x[0][c]) ^ math.Float32bits(p.x[1][c])) >> 31)
	}
}

// finishMoments sets the moments and the shape of lane c.
func (p *panel) finishMoments(m *measures, c int, n, rate float64) {
	unit := 1 / float64(p.center.Gain[c])
	mean := func(i int) float64 { return p.sums[i][c] / n }
	δ := mean(0) // of the true mean from the offset
	m2, m3, m4 := mean(1), mean(2), mean(3)
	m.mean = float64(p.center.Offset[c]) + δ*unit
	m.m2 = max(0, m2-δ*δ) * unit * unit
	m.m3 = (m3 - 3*δ*m2 + 2*δ*δ*δ) * unit * unit * unit
	m.m4 = (m4 - 4*δ*m3 + 6*δ*δ*m2 - 3*δ*δ*δ*δ) * unit * unit * unit * unit
	m.meanSquare = m.m2 + m.mean*m.mean
	m.slope = (p.moment[c] - (n-1)/2*p.sums[0][c]) / (n * (n*n - 1) / 12) * unit * rate
	m.times = (n*n - 1) / 12 / (rate * rate)
	m.abs = mean(4) * unit
	m.sqrtAbs = mean(5) * math.Sqrt(unit)
	m.crossings = float64(p.steps.Crossings[c]) / (n - 1)

	first, last := p.x[0][c], p.steps.Last[c]
	step := float64(last-first) / (n - 1)
	m.step2 = max(0, p.sums[6][c]/(n-1)-step*step) * unit * unit
	bend := (float64(p.steps.LastStep[c]) - float64(p.x[1][c]-first)) / (n - 2)
	m.bend2 = max(0, p.sums[7][c]/(n-2)-bend*bend) * unit * unit
}

func (p *panel) measureSpectra(ms []*measures) {
	clear(p.power)
	clear(p.envelope)
	size := p.shape.segment
	for s := range p.shape.segments {
		x := p.x[p.shape.start(s):][:size]
		z := p.forward.Real(p.bins[:len(p.bins)/2], p.power, x, p.taper, p.a, p.b)
		if p.needs.lines {
			p.setLines(ms, z, s)
		}
		if p.needs.envelope {
			p.addEnvelope()
		}
	}
	for at := 0; at < len(p.power); at += panelBlock { // a block is in the first cache for all channels
		block := p.power[at:min(at+panelBlock, len(p.power))]
		for c, m := range ms {
			if !p.fit[c] {
				continue
			}
			unit := 1 / float64(p.center.Gain[c])
			scale := 2 * p.shape.gain / 4 * unit * unit // bins are twice what they are
			power := m.power[at:][:len(block)]
			for k := range power {
				power[k] = float64(block[k][c]) * scale
			}
		}
	}
	for c, m := range ms {
		if p.fit[c] {
			m.power[len(m.power)-1] /= 2
			for q := range m.envelope {
				m.envelope[q] = float64(p.envelope[q][c])
			}
		}
	}
}

// setLines sets the lines of segment s from its transform.
func (p *panel) setLines(ms []*measures, z []kernel.Frame, s int) {
	for h := range coherenceLines {
		k := ms[0].lineBin(h + 1) // all have one rate and one spindle
		for c, m := range ms {
			re, im := p.forward.Bin(z, k, c)
			m.lines[s*coherenceLines+h] = complex(float64(re), float64(im))
		}
	}
}

// addEnvelope adds the envelope spectrum of the segment at hand.
func (p *panel) addEnvelope() {
	points := len(p.bins)
	// The transform in place of its inverse turns time around, which the absolute
	// values of a spectrum do not show.
	z := p.band.Complex(p.bins, p.a[:points], p.b[:points])
	squared := p.a[points:][:points/2]
	kernel.Power(squared, z)
	p.modes.Real(nil, p.envelope, squared, nil, p.a[:points/2], p.b[:points/2])
}

// measurePackets splits the first n samples into packets, overwriting p.ring.
func (p *panel) measurePackets(ms []*measures, n int) {
	copy(p.ring, p.x[n-packetRing:n])
	copy(p.x[n:n+packetRing], p.x)
	var sums [packetCount][kernel.FrameLanes]float64
	size := n / packetCount
	for at := 0; at < size; at += packetPart {
		end := min(at+packetPart, size)
		from := 0
		if at > 0 {
			from = packetCount*at + 2*packetRing - wrap
		}
		p.splitPacket(p.ring[from:packetCount*end+2*packetRing], 0, 0, at == 0)
		if end%panelBlock == 0 || end == size {
			for i := range sums {
				for c, v := range &p.energies[i] {
					sums[i][c] += float64(v)
				}
			}
			p.energies = [packetCount]kernel.Frame{}
		}
	}
	for c, m := range ms {
		if p.fit[c] {
			unit := 1 / float64(p.center.Gain[c])
			for i := range sums {
				m.packets[i] = sums[i][c] / float64(n) * unit * unit
			}
		}
	}
}

// splitPacket splits the part x of the packet that is i-th in frequency on its level, the first part or what follows
// on the part before, and then its halves down to the last level. A high pass turns the spectrum around, see [node].
func (p *panel) splitPacket(x []kernel.Frame, level, i int, first bool) {
	kept, count := wrap, (len(x)-wrap)/2
	if first || level == packetLevels-1 {
		kept = 0
	}
	i *= 2
	halves := [2]*[]kernel.Frame{&p.nodes[level][i], &p.nodes[level][i+1]}
	for _, to := range halves {
		copy(*to, (*to)[len(*to)-kept:])
		*to = (*to)[:kept+count]
	}
	low, high := *halves[0], *halves[1]
	kernel.SplitWavelet(low[kept:], high[kept:], x)
	for k, to := range [2][]kernel.Frame{low, high} {
		if child := i + (k ^ i/2&1); level < packetLevels-1 {
			p.splitPacket(to, level+1, child, first)
		} else {
			kernel.AddEnergy(to, &p.energies[child])
		}
	}
}

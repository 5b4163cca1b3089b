package dbn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// tiny is an RBM small enough to sum over all its states, in float64 and by the
// definition of its energy alone: what the package is held to.
type tiny struct {
	visible Unit
	w       [][]float64 // V×H
	a, b    []float64
}

func newTiny(visible Unit, v, h int, rng *rand.Rand) *tiny {
	t := &tiny{visible: visible, a: make([]float64, v), b: make([]float64, h)}
	// Values that float32 holds exactly, so that both sides have the same weights.
	draw := func() float64 { return float64(float32(rng.NormFloat64())) }
	for i := range v {
		t.a[i] = draw()
		t.w = append(t.w, make([]float64, h))
		for j := range h {
			t.w[i][j] = draw()
		}
	}
	for j := range h {
		t.b[j] = draw()
	}
	return t
}

func (t *tiny) rbm() *rbm {
	r := &rbm{t.visible, NewMatrix(len(t.a), len(t.b)), make([]float32, len(t.a)), make([]float32, len(t.b))}
	for i, row := range t.w {
		for j, v := range row {
			r.Weights.Row(i)[j] = float32(v)
		}
		r.VisibleBias[i] = float32(t.a[i])
	}
	for j, v := range t.b {
		r.HiddenBias[j] = float32(v)
	}
	return r
}

func tinyOf(r *rbm) *tiny {
	t := &tiny{visible: r.Visible}
	for i, a := range r.VisibleBias {
		t.a = append(t.a, float64(a))
		t.w = append(t.w, nil)
		for _, v := range r.Weights.Row(i) {
			t.w[i] = append(t.w[i], float64(v))
		}
	}
	for _, b := range r.HiddenBias {
		t.b = append(t.b, float64(b))
	}
	return t
}

func (t *tiny) energy(v, h []float64) float64 {
	var e float64
	for i, x := range v {
		if t.visible == Gaussian {
			e += (x - t.a[i]) * (x - t.a[i]) / 2
		} else {
			e -= t.a[i] * x
		}
		for j, y := range h {
			e -= x * t.w[i][j] * y
		}
	}
	for j, y := range h {
		e -= t.b[j] * y
	}
	return e
}

// freeEnergy is -ln Σ_h exp(-E(v,h)).
func (t *tiny) freeEnergy(v []float64) float64 {
	var sum float64
	for _, h := range states(len(t.b)) {
		sum += math.Exp(-t.energy(v, h))
	}
	return -math.Log(sum)
}

// freeEnergyFormula is the closed form, with the product over hidden units.
func (t *tiny) freeEnergyFormula(v []float64) float64 {
	f := t.energy(v, nil)
	for j, b := range t.b {
		for i, x := range v {
			b += x * t.w[i][j]
		}
		f -= softplus(b)
	}
	return f
}

// hidden and reconstruct are the conditional means.
func (t *tiny) hidden(v []float64) []float64 {
	h := make([]float64, len(t.b))
	for j := range h {
		z := t.b[j]
		for i, x := range v {
			z += x * t.w[i][j]
		}
		h[j] = 1 / (1 + math.Exp(-z))
	}
	return h
}

func (t *tiny) reconstruct(h []float64) []float64 {
	v := make([]float64, len(t.a))
	for i := range v {
		z := t.a[i]
		for j, y := range h {
			z += t.w[i][j] * y
		}
		if v[i] = z; t.visible == Bernoulli {
			v[i] = 1 / (1 + math.Exp(-z))
		}
	}
	return v
}

// states returns all vectors of n zeros and ones.
func states(n int) [][]float64 {
	var all [][]float64
	for bits := range 1 << n {
		s := make([]float64, n)
		for i := range s {
			s[i] = float64(bits >> i & 1)
		}
		all = append(all, s)
	}
	return all
}

// logLikelihood is the mean of ln P(v), with the exact partition function.
func (t *tiny) logLikelihood(data [][]float64) float64 {
	var z, sum float64
	for _, v := range states(len(t.a)) {
		z += math.Exp(-t.freeEnergyFormula(v))
	}
	for _, v := range data {
		sum -= t.freeEnergyFormula(v)
	}
	return sum/float64(len(data)) - math.Log(z)
}

func matrixOf(rows [][]float64) Matrix {
	m := NewMatrix(len(rows), len(rows[0]))
	for i, row := range rows {
		for j, v := range row {
			m.Row(i)[j] = float32(v)
		}
	}
	return m
}

// Summing exp(-F(v)) over v is summing exp(-E(v,h)) over both: the partition
// function from either side, to 1e-10.
func TestPartitionFunction(t *testing.T) {
	tn := newTiny(Bernoulli, 4, 3, rand.New(rand.NewPCG(1, 1)))
	var joint, marginal float64
	for _, v := range states(4) {
		for _, h := range states(3) {
			joint += math.Exp(-tn.energy(v, h))
		}
		marginal += math.Exp(-tn.freeEnergyFormula(v))
	}
	if math.Abs(marginal/joint-1) > 1e-10 {
		t.Errorf("Z = %v from F, %v from E", marginal, joint)
	}
}

// The same for a Gaussian unit, by the trapezium rule, which converges faster
// than any power of its step on such integrands, against the Gaussian integral
// Σ_h √(2π)·exp(b·h + a·Wh + |Wh|²/2).
func TestPartitionFunctionGaussian(t *testing.T) {
	tn := newTiny(Gaussian, 1, 3, rand.New(rand.NewPCG(2, 1)))
	var integral, want float64
	const step = 1.0 / 64
	for v := -40.0; v <= 40; v += step {
		integral += step * math.Exp(-tn.freeEnergyFormula([]float64{v}))
	}
	for _, h := range states(3) {
		var bh, wh float64
		for j, y := range h {
			bh += tn.b[j] * y
			wh += tn.w[0][j] * y
		}
		want += math.Sqrt(2*math.Pi) * math.Exp(bh+tn.a[0]*wh+wh*wh/2)
	}
	if math.Abs(integral/want-1) > 1e-10 {
		t.Errorf("Z = %v, want %v", integral, want)
	}
}

func TestFreeEnergy(t *testing.T) {
	for _, unit := range []Unit{Bernoulli, Gaussian} {
		tn := newTiny(unit, 4, 3, rand.New(rand.NewPCG(3, 1)))
		rows := states(4)
		if unit == Gaussian {
			rows = append(rows, []float64{-2.5, 0.25, 3, -0.5})
		}
		for len(rows) <= chunk { // several chunks, the last not full
			rows = append(rows, rows...)
		}
		rows = rows[:len(rows)-3]
		f := make([]float64, len(rows))
		tn.rbm().FreeEnergyTo(f, matrixOf(rows))
		for i, v := range rows {
			if want := tn.freeEnergy(v); math.Abs(f[i]-want) > 1e-6*(1+math.Abs(want)) {
				t.Fatalf("%s: F(%v) = %v, want %v", unit, v, f[i], want)
			}
		}
	}
}

func TestConditionalMeans(t *testing.T) {
	for _, unit := range []Unit{Bernoulli, Gaussian} {
		tn := newTiny(unit, 4, 3, rand.New(rand.NewPCG(4, 1)))
		r := tn.rbm()
		hidden, visible := NewMatrix(1, 3), NewMatrix(1, 4)
		for _, v := range states(4) {
			r.HiddenTo(hidden, matrixOf([][]float64{v}))
			r.VisibleTo(visible, hidden)
			// P(h_j=1|v) from the energy: the share of the states with h_j on.
			for j := range 3 {
				var on, all float64
				for _, h := range states(3) {
					p := math.Exp(-tn.energy(v, h))
					all += p
					on += h[j] * p
				}
				if got := float64(hidden.Data[j]); math.Abs(got-on/all) > 1e-6 {
					t.Errorf("%s: P(h%d=1|%v) = %v, want %v", unit, j, v, got, on/all)
				}
			}
			h := make([]float64, 3)
			for j := range h {
				h[j] = float64(hidden.Data[j])
			}
			for i, want := range tn.reconstruct(h) {
				if got := float64(visible.Data[i]); math.Abs(got-want) > 1e-6*(1+math.Abs(want)) {
					t.Errorf("%s: mean(v%d|%v) = %v, want %v", unit, i, h, got, want)
				}
			}
		}
	}
	// For Gaussian units the mean is where the energy is least.
	tn := newTiny(Gaussian, 4, 3, rand.New(rand.NewPCG(5, 1)))
	h := []float64{1, 0, 1}
	mean := tn.reconstruct(h)
	for i := range mean {
		const d = 1e-3
		up, down := append([]float64(nil), mean...), append([]float64(nil), mean...)
		up[i] += d
		down[i] -= d
		if slope := (tn.energy(up, h) - tn.energy(down, h)) / (2 * d); math.Abs(slope) > 1e-9 {
			t.Errorf("slope of the energy by v%d at its mean: %v", i, slope)
		}
	}
}

// The gradient of the mean log-likelihood is <v h>_data - <v h>_model. Held to
// central differences to 1e-8: the formula that contrastive divergence
// approximates.
func TestLikelihoodGradient(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	tn := newTiny(Bernoulli, 4, 3, rng)
	data := [][]float64{{1, 0, 1, 0}, {1, 1, 0, 0}, {0, 0, 1, 1}}
	for i := range 4 {
		for j := range 3 {
			var want, model, z float64
			for _, v := range data {
				want += v[i] * tn.hidden(v)[j] / float64(len(data))
			}
			for _, v := range states(4) {
				p := math.Exp(-tn.freeEnergyFormula(v))
				z += p
				model += p * v[i] * tn.hidden(v)[j]
			}
			want -= model / z

			const d = 1e-5
			w := tn.w[i][j]
			tn.w[i][j] = w + d
			up := tn.logLikelihood(data)
			tn.w[i][j] = w - d
			down := tn.logLikelihood(data)
			tn.w[i][j] = w
			if got := (up - down) / (2 * d); math.Abs(got-want) > 1e-8 {
				t.Errorf("by w[%d,%d]: %v, want %v", i, j, got, want)
			}
		}
	}
}

// expected adds to dw, da and db the expectation of the statistics of the last
// step of CD-k from hidden probabilities p, by summing over the sampled states.
func (t *tiny) expected(p []float64, steps int, share float64, dw [][]float64, da, db []float64) {
	for _, h := range states(len(p)) {
		q := share
		for j, y := range h {
			q *= y*p[j] + (1-y)*(1-p[j])
		}
		v := t.reconstruct(h)
		next := t.hidden(v)
		if steps > 1 {
			t.expected(next, steps-1, q, dw, da, db)
			continue
		}
		for i, x := range v {
			da[i] += q * x
			for j, y := range next {
				dw[i][j] += q * x * y
			}
		}
		for j, y := range next {
			db[j] += q * y
		}
	}
}

// TestContrastiveDivergence averages the gradient over many samples and
// compares it with its exact expectation over all hidden states.
func TestContrastiveDivergence(t *testing.T) {
	for _, tc := range []struct {
		unit  Unit
		steps int
	}{{Bernoulli, 1}, {Bernoulli, 2}, {Gaussian, 1}, {Gaussian, 3}} {
		tn := newTiny(tc.unit, 4, 3, rand.New(rand.NewPCG(7, 1)))
		for i := range tn.w {
			for j := range tn.w[i] {
				tn.w[i][j] = float64(float32(tn.w[i][j] / 2))
			}
		}
		data := [][]float64{{1, 0, 1, 0}, {0.5, 1, 0.25, 1}}
		const copies = 1 << 14
		x := NewMatrix(copies*len(data), 4)
		small := matrixOf(data)
		for i := range x.Rows {
			copy(x.Row(i), small.Row(i%len(data)))
		}
		c := newContrast(tn.rbm(), x.Rows, 1, 8)
		g, _ := c.gradient(x, ordered(x.Rows), PretrainSettings{Steps: tc.steps})

		dw, da, db := make([][]float64, 4), make([]float64, 4), make([]float64, 3)
		for i := range dw {
			dw[i] = make([]float64, 3)
		}
		for _, v := range data {
			h := tn.hidden(v)
			tn.expected(h, tc.steps, 1, dw, da, db)
			for i, x := range v {
				da[i] -= x
				for j, y := range h {
					dw[i][j] -= x * y
				}
			}
			for j, y := range h {
				db[j] -= y
			}
		}
		// Statistics have a standard deviation below 2, their mean over 2¹⁴ draws
		// one below 0.016; the seed is fixed, so this never fails by luck.
		near := func(what string, got float32, want float64) {
			if mean := float64(got) / copies; math.Abs(mean-want) > 0.05 {
				t.Errorf("%s, CD-%d: %s = %.4f, want %.4f", tc.unit, tc.steps, what, mean, want)
			}
		}
		for i := range dw {
			near("da", g.dVisible[i], da[i])
			for j := range dw[i] {
				near("dW", g.dWeights[i*3+j], dw[i][j])
			}
		}
		for j := range db {
			near("db", g.dHidden[j], db[j])
		}
	}
}

// twoModes returns rows near 111000 or 000111, each value flipped with
// probability 0.1. Without noise CD-1 is known to fail on such data.
func twoModes(n int, rng *rand.Rand) [][]float64 {
	var rows [][]float64
	for range n {
		mode := float64(rng.IntN(2))
		row := []float64{mode, mode, mode, 1 - mode, 1 - mode, 1 - mode}
		for i := range row {
			if rng.Float64() < 0.1 {
				row[i] = 1 - row[i]
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// TestTrainRaisesLikelihood uses the exact likelihood. Independent units reach
// -6·ln 2 = -4.159 on this data; its entropy, with noise of 0.1, is
// ln 2 + 6·0.325 = 2.64 nats at most, so that no model exceeds about -2.64.
func TestTrainRaisesLikelihood(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 1))
	data := twoModes(400, rng)
	x := matrixOf(data)
	r := newRBM(x, 4, Bernoulli, rng)
	before := tinyOf(r).logLikelihood(data)
	h, err := trainAlone(r, x, PretrainSettings{Epochs: 60, Validation: matrixOf(twoModes(100, rng))}, rng)
	if err != nil {
		t.Fatal(err)
	}
	after := tinyOf(r).logLikelihood(data)
	if math.Abs(before+4.16) > 0.03 || after < -2.9 {
		t.Errorf("log-likelihood %v before, %v after", before, after)
	}
	first, last := h.ReconstructionError[0], h.ReconstructionError[59]
	if !(last < 0.8*first) {
		t.Errorf("reconstruction error %v in the first epoch, %v in the last", first, last)
	}
	if got := reconstructionError(r, x); math.Abs(got-last) > 0.1 {
		t.Errorf("reconstruction error %v after training, %v in the last epoch", got, last)
	}
	if len(h.FreeEnergyGap) != 60 || math.Abs(h.FreeEnergyGap[59]) > 0.5 {
		t.Errorf("free-energy gap on rows of the same law: %v", h.FreeEnergyGap)
	}
}

// Rows of another law have a higher free energy, so the gap shows them.
func TestFreeEnergyGapGrowsOnForeignRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 1))
	x := matrixOf(twoModes(300, rng))
	foreign := matrixOf([][]float64{{1, 0, 1, 0, 1, 0}, {0, 1, 0, 1, 0, 1}})
	h, err := trainAlone(newRBM(x, 4, Bernoulli, rng), x, PretrainSettings{Epochs: 60, Validation: foreign}, rng)
	if err != nil {
		t.Fatal(err)
	}
	if gap := h.FreeEnergyGap; !(gap[59] > gap[0]+1) {
		t.Errorf("gap %v in the first epoch, %v in the last", gap[0], gap[59])
	}
}

// Gaussian units learn where the rows lie: the reconstruction beats the mean.
func TestTrainGaussian(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 1))
	x := NewMatrix(500, 4)
	for i := range x.Rows {
		side := float64(2*rng.IntN(2) - 1)
		for j := range x.Row(i) {
			x.Row(i)[j] = float32(side*[]float64{1, -1, 1, 1}[j] + 0.3*rng.NormFloat64())
		}
	}
	r := newRBM(x, 6, Gaussian, rng)
	before := reconstructionError(r, x)
	if _, err := trainAlone(r, x, PretrainSettings{Epochs: 50}, rng); err != nil {
		t.Fatal(err)
	}
	if after := reconstructionError(r, x); before < 0.95 || after > 0.45 {
		t.Errorf("reconstruction error %v before, %v after; the noise is 0.3", before, after)
	}
}

func TestNewRBMVisibleBias(t *testing.T) {
	x := matrixOf([][]float64{{1, 0, 0.5}, {1, 0, 0.5}, {0, 0, 0.5}})
	rng := rand.New(rand.NewPCG(12, 1))
	for unit, want := range map[Unit][]float64{
		Bernoulli: {math.Log(2.5 / 1.5), math.Log(0.5 / 3.5), 0},
		Gaussian:  {2. / 3, 0, 0.5},
	} {
		for i, got := range newRBM(x, 2, unit, rng).VisibleBias {
			if math.Abs(float64(got)-want[i]) > 1e-6 {
				t.Errorf("%s: bias %d = %v, want %v", unit, i, got, want[i])
			}
		}
	}
}

// trainAlone trains an RBM that is not part of a network.
func trainAlone(r *rbm, x Matrix, s PretrainSettings, rng *rand.Rand) (*LayerHistory, error) {
	s = s.withDefaults()
	f := newFeed(x, nil, r.Visible)
	if err := f.check("training"); err != nil {
		return nil, err
	}
	if x.Cols != r.Weights.Rows {
		return nil, fmt.Errorf("dbn: rows of %d features for %d visible units", x.Cols, r.Weights.Rows)
	}
	if err := checkValidation(s.Validation, x.Cols, r.Visible); err != nil {
		return nil, err
	}
	begin := func(*contrast, *LayerHistory) error { return nil }
	return r.train(context.Background(), "pre-training", f, s, 1, rng, begin, func() error { return nil })
}

// reconstructionError returns the root mean square of v - mean(v|h), where h
// are the hidden probabilities given v. It falls while an RBM learns, but is
// not what learning minimises. (The guide, §4.)
func reconstructionError(r *rbm, v Matrix) float64 {
	n := min(v.Rows, chunk)
	hidden, again := NewMatrix(n, r.Weights.Cols), NewMatrix(n, v.Cols)
	var sum float64
	for from := 0; from < v.Rows; from += chunk {
		part := v.rows(from, min(from+chunk, v.Rows))
		h, a := hidden.rows(0, part.Rows), again.rows(0, part.Rows)
		r.HiddenTo(h, part)
		r.VisibleTo(a, h)
		for i, x := range part.Data {
			d := float64(x) - float64(a.Data[i])
			sum += d * d
		}
	}
	return math.Sqrt(sum / float64(len(v.Data)))
}

package sim

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/dsp/fourier"
)

func rms(x []float32) float64 {
	var s float64
	for _, v := range x {
		s += float64(v) * float64(v)
	}
	return math.Sqrt(s / float64(len(x)))
}

func mean(x []float32) float64 {
	var s float64
	for _, v := range x {
		s += float64(v)
	}
	return s / float64(len(x))
}

// lines returns the power of a second of an acceleration at 0, 1, … 10,000 Hz.
func lines(x []float32) []float64 {
	y := make([]float64, fastRate)
	for i := range y {
		y[i] = float64(x[i])
	}
	c := fourier.NewFFT(len(y)).Coefficients(nil, y)
	p := make([]float64, len(c))
	for i, v := range c {
		p[i] = real(v)*real(v) + imag(v)*imag(v)
	}
	return p
}

// level returns the mean of p from low to high Hz.
func level(p []float64, low, high float64) float64 {
	var s float64
	for _, v := range p[int(low) : int(high)+1] {
		s += v
	}
	return s / float64(int(high)-int(low)+1)
}

// drilled returns the seconds of a tool in which the whole edge was cutting all
// the time, going by the thrust alone: those in which it never falls below three
// quarters of what it usually is.
func drilled(t *testing.T, tool Tool, seed uint64) []second {
	t.Helper()
	all := drain(t, newDrill(t, Settings{Seed: seed, Tools: []Tool{tool}, Hole: 10 * time.Second, Pause: time.Second}))
	var cutting []float32
	for _, s := range all {
		if lowest := slices.Min(s.thrust); lowest > 100 {
			cutting = append(cutting, lowest)
		}
	}
	slices.Sort(cutting)
	usual := cutting[len(cutting)/2]
	return slices.DeleteFunc(all, func(s second) bool { return slices.Min(s.thrust) < 0.75*usual })
}

func TestResonator(t *testing.T) {
	const hz, damping = 1000, 0.02
	r := newResonator(hz, damping)
	rng := rand.New(rand.NewPCG(1, 1))
	noise, out := make([]float64, 500_000), make([]float32, 500_000)
	for i := range noise {
		noise[i] = rng.NormFloat64()
	}
	r.run(out, noise)
	if v := rms(out); math.Abs(v-1) > 0.03 {
		t.Errorf("RMS %v of the answer to white noise of 1", v)
	}

	// The answer to an impulse, H = b/(1 − a1/z − a2/z²): greatest at hz, and
	// 1/√2 of that at hz·(1 ± damping).
	gain := func(hz float64) float64 {
		z := cmplx.Exp(complex(0, -2*math.Pi*hz/fastRate))
		return cmplx.Abs(complex(r.b, 0) / (1 - complex(r.a1, 0)*z - complex(r.a2, 0)*z*z))
	}
	for f := 100.; f < 9900; f += 10 {
		if gain(f) > 1.001*gain(hz) {
			t.Errorf("answers %v at %v Hz, %v at %v Hz", gain(f), f, gain(hz), float64(hz))
		}
	}
	for _, side := range []float64{1 - damping, 1 + damping} {
		if ratio := gain(hz*side) / gain(hz); math.Abs(ratio-math.Sqrt2/2) > 0.02 {
			t.Errorf("%v of the peak at %v Hz, want 1/√2", ratio, hz*side)
		}
	}
	r = newResonator(hz, damping)
	r.run(out[:1], []float64{1})
	if math.Abs(float64(out[0])-r.b) > 1e-6 {
		t.Errorf("answer to an impulse begins with %v, want %v", out[0], r.b)
	}
}

// What can be known of the spectrum: lines at the spindle's harmonics, a peak at
// the tube's first torsional mode, 3200/(4·1.45) = 552 Hz give or take 6 %.
func TestSpectrum(t *testing.T) {
	worn := tool(Worn, 16*time.Second) // 1450 mm, 1200 rev/min = 20 Hz
	power := make([]float64, fastRate/2+1)
	for seed := range uint64(2) {
		for _, s := range drilled(t, worn, seed) {
			if s.truth.VBMaxUM < 250 {
				for i, v := range lines(s.fast[0]) {
					power[i] += v
				}
			}
		}
	}
	for hz, above := range map[float64]float64{20: 10, 40: 2} { // whirling covers the higher ones
		if line, floor := level(power, hz, hz), level(power, hz+5, hz+15); line < above*floor {
			t.Errorf("%v Hz: %v, %v next to it: no harmonic of the spindle", hz, line, floor)
		}
	}
	for _, mode := range []float64{552, 1655} {
		if peak, floor := level(power, mode*0.95, mode*1.05), level(power, mode*1.25, mode*1.35); peak < 5*floor {
			t.Errorf("%v Hz: %v, %v next to it: no torsional mode", mode, peak, floor)
		}
	}
}

// The high bands tell wear, as a ratio of a tool's end to its beginning.
func TestVibrationOfWear(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates six lives")
	}
	for _, end := range []string{Worn, Chipped, Broken} {
		var high float64
		const seeds = 2
		for seed := range uint64(seeds) {
			in := drilled(t, tool(end, 18*time.Second), seed)
			fresh, last := in[1], in[len(in)-1]
			for ch := range channels {
				a, b := lines(fresh.fast[ch]), lines(last.fast[ch])
				high += math.Log10(level(b, 4000, 9900)/level(a, 4000, 9900)) / seeds / channels
				if peak := max(rms(fresh.fast[ch]), rms(last.fast[ch])); peak > 25 || peak < 0.1 {
					t.Errorf("%s: channel %d has an RMS of %v g", end, ch, peak)
				}
			}
		}
		if high < 0.7 {
			t.Errorf("%s: power above 4 kHz rises by 10^%.2f", end, high)
		}
	}
}

func TestQuietWhenNotCutting(t *testing.T) {
	all := drain(t, newDrill(t, Settings{Tools: []Tool{tool(Worn, 10*time.Second)}, Hole: 5 * time.Second, Pause: 10 * time.Second}))
	// per hole: 2 s idle, 2 s start-up, 5 s drilling, 3 s retract, 3 s idle
	for i, s := range all {
		for ch, x := range s.fast {
			quiet, least := 1., 0. // the spindle turns, with its runout
			switch second := i % 15; {
			case second < 2 || second == 14:
				quiet = 0.05
			case second >= 4 && second < 9:
				quiet, least = 25, 0.1
			}
			if v := rms(x); v > quiet || v < least {
				t.Errorf("second %d: channel %d has an RMS of %v g, want %v to %v", i, ch, v, least, quiet)
			}
		}
		if cutting := i%15 >= 4 && i%15 < 9; cutting != (mean(s.thrust) > 100) {
			t.Errorf("second %d: thrust %v N", i, mean(s.thrust))
		}
	}
}

// Whole edges are struck now and then, damaged ones once per revolution.
func TestImpulses(t *testing.T) {
	for state, want := range map[string][2]int{Healthy: {15, 90}, Worn: {15, 90}, Chipped: {2000, 2090}, Broken: {2000, 2090}} {
		rng := rand.New(rand.NewPCG(4, 4))
		c := cut{engaged: 1, speed: 20, state: state}
		var hits int
		for range 100 * framesPerBlock { // 100 s, 2000 revolutions
			at, size := impulse(&c, rng)
			if at >= 0 {
				hits++
			}
			if at >= perFrame || size < 0 {
				t.Fatalf("%s: strikes sample %d of a frame with %v", state, at, size)
			}
			c.angle, _ = c.turn()
		}
		if hits < want[0] || hits > want[1] {
			t.Errorf("%s: struck %d times in 100 s, want %d to %d", state, hits, want[0], want[1])
		}
	}
	if at, _ := impulse(&cut{state: Broken, speed: 20, angle: 6.28}, rand.New(rand.NewPCG(1, 1))); at >= 0 {
		t.Error("something strikes the edge outside the material")
	}
}

// A pulse arrives at each sensor after its delay, then fades as its low pass does.
func TestPaths(t *testing.T) {
	worn := tool(Worn, time.Minute)
	rng := rand.New(rand.NewPCG(1, 1))
	v := newVibration(&worn, rng)
	const pulse = 40
	v.wave[insert1][maxDelay+pulse] = 10
	for ch := range channels {
		v.mix[ch] = [origins]float32{insert1: 1}
		x := make([]float32, perFrame)
		v.listen(x, ch, &cut{}, rng)
		p := path[ch/axes]
		first := 10 * (1 - math.Exp(-2*math.Pi*p.cornerHz/fastRate))
		at := pulse + p.delay
		if math.Abs(float64(x[at-1])) > 0.05 || math.Abs(float64(x[at])-first) > 0.05 || x[at+1] > x[at]/2 {
			t.Errorf("channel %d: %v around sample %d, want %v there", ch, x[at-1:at+2], at, first)
		}
	}
}

func TestSensorsSaturate(t *testing.T) {
	worn := tool(Worn, time.Minute)
	rng := rand.New(rand.NewPCG(1, 1))
	v := newVibration(&worn, rng)
	v.mix[2] = [origins]float32{insert1: 1}
	v.wave[insert1][maxDelay+5], v.wave[insert1][maxDelay+60] = 1e6, -1e6
	x := make([]float32, perFrame)
	v.listen(x, 2, &cut{}, rng)
	if x[5] != fullScaleG || x[60] != -fullScaleG {
		t.Errorf("%v and %v g, the sensors end at ±50", x[5], x[60])
	}
}

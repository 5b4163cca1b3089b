package classify

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/pkg/dbn"
	"pgregory.net/rapid"
)

var nan = float32(math.NaN())

// columnOf makes a matrix of one column.
func columnOf(x ...float32) dbn.Matrix { return dbn.Matrix{Rows: len(x), Cols: 1, Data: x} }

func encoderOf(t *testing.T, x dbn.Matrix, e Encoding, bins int) *Encoder {
	t.Helper()
	enc, err := FitEncoder(x, e, bins)
	if err != nil {
		t.Fatal(err)
	}
	return enc
}

func TestEncodings(t *testing.T) {
	inf := float32(math.Inf(1))
	for name, tc := range map[string]struct {
		encoding Encoding
		bins     int
		train    []float32
		x        float32
		want     []float32
	}{
		"standard: mean 2, sd √2":           {Standard, 0, []float32{0, 1, 2, 3, 4}, 4, []float32{math.Sqrt2}},
		"standard: a missing value is mean": {Standard, 0, []float32{0, 1, nan, 3, 4}, nan, []float32{0}},
		"standard: clipped":                 {Standard, 0, []float32{0, 1, 2, 3, 4}, 1e6, []float32{5}},
		"standard: infinity is clipped":     {Standard, 0, []float32{0, 1, 2, 3, 4}, -inf, []float32{-5}},
		"standard: constant":                {Standard, 0, []float32{7, 7, 7}, 9, []float32{0}},
		"standard: no value at all":         {Standard, 0, []float32{nan, nan}, 9, []float32{0}},
		"minmax":                            {MinMax, 0, []float32{1, 5, 3}, 4, []float32{0.75}},
		"minmax: clipped":                   {MinMax, 0, []float32{1, 5, 3}, 6, []float32{1}},
		"minmax: missing":                   {MinMax, 0, []float32{1, 5, nan, 3}, nan, []float32{0.5}},
		"minmax: constant":                  {MinMax, 0, []float32{1, 1}, 6, []float32{0}},
		// Mid-ranks 1, 2.5, 2.5, 4: quantiles 0.125, 0.5, 0.5, 0.875; Φ⁻¹(0.875) = 1.1503493803760079.
		"normalscore: a tie in the middle":    {NormalScore, 0, []float32{1, 2, 2, 3}, 2, []float32{0}},
		"normalscore: the largest":            {NormalScore, 0, []float32{1, 2, 2, 3}, 3, []float32{1.1503494}},
		"normalscore: beyond it":              {NormalScore, 0, []float32{1, 2, 2, 3}, inf, []float32{1.1503494}},
		"normalscore: between":                {NormalScore, 0, []float32{1, 2, 2, 3}, 1.5, []float32{-1.1503494 / 2}},
		"bins: edges 0, 2, 4":                 {Bins, 2, []float32{0, 1, 2, 3, 4}, 3, []float32{1, 0.5}},
		"bins: below":                         {Bins, 2, []float32{0, 1, 2, 3, 4}, -9, []float32{0, 0}},
		"bins: above":                         {Bins, 2, []float32{0, 1, 2, 3, 4}, 9, []float32{1, 1}},
		"bins: missing is the mean, 2":        {Bins, 2, []float32{0, 1, nan, 3, 4}, nan, []float32{1, 0}},
		"bins: equal quantiles are one edge":  {Bins, 4, []float32{0, 0, 0, 0, 1}, 0.5, []float32{0.5}},
		"bins: a constant column is one zero": {Bins, 4, []float32{3, 3}, 5, []float32{0}},
	} {
		e := encoderOf(t, columnOf(tc.train...), tc.encoding, tc.bins)
		if e.Inputs() != len(tc.want) || e.Columns() != 1 {
			t.Errorf("%s: %d inputs of %d columns, want %d of 1", name, e.Inputs(), e.Columns(), len(tc.want))
			continue
		}
		got := make([]float32, e.Inputs())
		e.EncodeTo(got, []float32{tc.x})
		for i := range got {
			if !(math.Abs(float64(got[i]-tc.want[i])) < 1e-6) {
				t.Errorf("%s: %v encodes to %v, want %v", name, tc.x, got, tc.want)
				break
			}
		}
	}
}

// Laws of every encoding: inputs are finite and in range, never fall as the
// value rises, and do not depend on the order of training rows.
func TestEncoderLaws(t *testing.T) {
	value := rapid.OneOf(
		rapid.Float32Range(-3, 3), rapid.SampledFrom([]float32{0, 1, 1, 1e30, -1e30, math.MaxFloat32, -math.MaxFloat32, nan}))
	rapid.Check(t, func(t *rapid.T) {
		x := columnOf(rapid.SliceOfN(value, 1, 40).Draw(t, "train")...)
		bins := rapid.IntRange(1, 9).Draw(t, "bins")
		probe := rapid.SliceOfN(value, 2, 10).Draw(t, "probe")
		probe = slices.DeleteFunc(probe, func(v float32) bool { return v != v })
		probe = append(probe, float32(math.Inf(1)), float32(math.Inf(-1)))
		slices.Sort(probe)
		for _, encoding := range encodings {
			e, err := FitEncoder(x, encoding, bins)
			if err != nil {
				t.Fatal(err)
			}
			shuffled := columnOf(slices.Clone(x.Data)...)
			rand.New(rand.NewPCG(1, 1)).Shuffle(x.Rows, func(i, j int) {
				shuffled.Data[i], shuffled.Data[j] = shuffled.Data[j], shuffled.Data[i]
			})
			other, err := FitEncoder(shuffled, encoding, bins)
			if err != nil {
				t.Fatal(err)
			}
			last, got, again := make([]float32, e.inputs), make([]float32, e.inputs), make([]float32, e.inputs)
			for i, v := range append(probe, nan) {
				e.EncodeTo(got, []float32{v})
				other.EncodeTo(again, []float32{v})
				if !slices.Equal(got, again) {
					t.Fatalf("%s: %v encodes to %v, or %v if training rows are shuffled", encoding, v, got, again)
				}
				for j := range got {
					if encoding != Committee && encoding.visible() == dbn.Bernoulli && !(got[j] >= 0 && got[j] <= 1) {
						t.Fatalf("%s: %v encodes to %v, outside of [0, 1]", encoding, v, got)
					}
					if !(math.Abs(float64(got[j])) < 10) {
						t.Fatalf("%s: %v encodes to %v", encoding, v, got)
					}
					if i > 0 && i < len(probe) && got[j] < last[j] {
						t.Fatalf("%s: %v encodes to %v, below the %v of a smaller value", encoding, v, got, last)
					}
				}
				copy(last, got)
			}
		}
	})
}

// Piecewise linear coding keeps the value: the widths of bins times their inputs
// add up to it.
func TestBinsKeepTheValue(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 0))
	x := dbn.NewMatrix(50, 1)
	for i := range x.Data {
		x.Data[i] = float32(rng.NormFloat64())
	}
	e := encoderOf(t, x, Bins, 8)
	c := e.columns[0]
	if len(c.knots) != 9 {
		t.Fatalf("%d edges, want 9", len(c.knots))
	}
	in := make([]float32, 8)
	for i := range x.Rows {
		e.EncodeTo(in, x.Row(i))
		v := c.knots[0]
		for b, share := range in {
			v += float64(share) * (c.knots[b+1] - c.knots[b])
		}
		if math.Abs(v-float64(x.Data[i])) > 1e-6 {
			t.Fatalf("%v comes back as %v", x.Data[i], v)
		}
	}
}

func TestNormalScoresOfManyValues(t *testing.T) {
	x := dbn.NewMatrix(5000, 1)
	for i := range x.Data {
		x.Data[i] = float32(i)
	}
	e := encoderOf(t, x, NormalScore, 0)
	if n := len(e.columns[0].knots); n != maxKnots {
		t.Fatalf("%d knots, want %d", n, maxKnots)
	}
	in := make([]float32, 1)
	for _, i := range []int{0, 1, 700, 2500, 4999} {
		e.EncodeTo(in, x.Row(i))
		want := math.Sqrt2 * math.Erfinv(2*(float64(i)+0.5)/5000-1)
		if math.Abs(float64(in[0])-want) > 0.02 && i != 1 || math.Abs(float64(in[0])-want) > 0.3 {
			t.Errorf("value %d scores %v, want %v", i, in[0], want)
		}
	}
}

func TestEncoderErrors(t *testing.T) {
	inf := float32(math.Inf(-1))
	if _, err := FitEncoder(columnOf(1, inf), Standard, 0); !errors.Is(err, ErrNotFinite) {
		t.Errorf("infinity: %v", err)
	}
	if _, err := FitEncoder(columnOf(1), "onehot", 0); !errors.Is(err, ErrSettings) {
		t.Errorf("unknown encoding: %v", err)
	}
	if _, err := FitEncoder(columnOf(1), Bins, maxBins+1); !errors.Is(err, ErrSettings) {
		t.Errorf("too many bins: %v", err)
	}
}

// Columns of weight 0 make the inputs of a constant column, and the others what they make otherwise.
func TestEncoderOfWeighedColumns(t *testing.T) {
	x, _ := clusters(3, 4, 1, 30, 5)
	weights := slices.Repeat([]float64{0.5}, x.Cols)
	weights[0], weights[2] = 0, 0
	blank := dbn.Matrix{Rows: x.Rows, Cols: x.Cols, Data: slices.Clone(x.Data)}
	for i := range x.Rows {
		blank.Row(i)[0], blank.Row(i)[2] = 7, 7
	}
	for _, encoding := range encodings {
		e, err := fitEncoder(x, encoding, 4, weights)
		if err != nil {
			t.Fatal(err)
		}
		want := encoderOf(t, blank, encoding, 4)
		if !slices.Equal(e.encodeAll(x).Data, want.encodeAll(blank).Data) {
			t.Errorf("%s: columns of weight 0 change the others", encoding)
		}
	}
}

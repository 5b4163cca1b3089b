package classify

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestBinaryRoundTrip(t *testing.T) {
	x, y := clusters(20, 3, 2, 40, 20)
	x.Row(3)[1] = nan
	for i := range x.Rows {
		x.Row(i)[2] = 1
	}
	for _, encoding := range encodings {
		s := quick()
		s.Encoding = encoding
		c, _ := fitted(t, x, y, nil, s)
		b, err := c.AppendBinary([]byte("prefix"))
		if err != nil {
			t.Fatal(err)
		}
		b = b[len("prefix"):]
		var back Classifier
		if err := back.UnmarshalBinary(b); err != nil {
			t.Fatalf("%s: %v", encoding, err)
		}
		again, err := back.AppendBinary(nil)
		if err != nil || !slices.Equal(b, again) {
			t.Errorf("%s: the classifier read back has other bytes, error %v", encoding, err)
		}
		one, two := c.NewScorer(), back.NewScorer()
		for i := range x.Rows {
			if p, q := one.Posterior(x.Row(i)), two.Posterior(x.Row(i)); !slices.Equal(p, q) || c.Decide(p) != back.Decide(q) {
				t.Fatalf("%s: row %d: posterior %v, read back %v", encoding, i, p, q)
			}
		}
	}
	if _, err := new(Classifier).AppendBinary(nil); err == nil {
		t.Error("an empty classifier has a binary form")
	}
}

// Every truncation and every changed byte either gives a classifier that works
// or an error that says so; nothing panics and nothing is half read.
func TestDamagedBinary(t *testing.T) {
	for _, encoding := range []Encoding{NormalScore, Committee} {
		t.Run(string(encoding), func(t *testing.T) { testDamagedBinary(t, encoding) })
	}
}

func testDamagedBinary(t *testing.T, encoding Encoding) {
	x, y := clusters(21, 2, 2, 40, 20)
	s := quick()
	s.Encoding = encoding
	s.Costs.Posteriors = Training // equal shares: all members of a committee stay
	c, _ := fitted(t, x, y, nil, s)
	b, err := c.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range b {
		var back Classifier
		if err := back.UnmarshalBinary(b[:n]); !errors.Is(err, ErrCorrupt) || back.network != nil {
			t.Fatalf("the first %d of %d bytes: error %v", n, len(b), err)
		}
	}
	if err := new(Classifier).UnmarshalBinary(append(slices.Clone(b), 0)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a byte too many: error %v", err)
	}
	rng := rand.New(rand.NewPCG(1, 0))
	for range 3000 {
		damaged := slices.Clone(b)
		damaged[rng.IntN(min(len(b), 400))] ^= byte(1 + rng.IntN(255))
		checkUnmarshal(t, damaged)
	}
}

// checkUnmarshal reads b and uses what was read.
func checkUnmarshal(t *testing.T, b []byte) {
	var c Classifier
	if err := c.UnmarshalBinary(b); err != nil {
		if !errors.Is(err, ErrCorrupt) {
			t.Fatalf("error %v is not ErrCorrupt", err)
		}
		return
	}
	row := make([]float32, c.Columns())
	for _, v := range []float32{0, nan, math.MaxFloat32, float32(math.Inf(-1))} {
		for j := range row {
			row[j] = v
		}
		p := c.NewScorer().Posterior(row)
		if k := c.Decide(p); k < 0 || k >= c.Classes() {
			t.Fatalf("decision %d of %d classes", k, c.Classes())
		}
		if s := c.Score(p); !(s >= 0 && s <= 1) && !math.IsNaN(p[0]) {
			t.Fatalf("score %v of posterior %v", s, p)
		}
	}
	if again, err := c.AppendBinary(nil); err != nil || !slices.Equal(again, b) {
		t.Fatalf("read back as other bytes, error %v", err)
	}
}

func FuzzUnmarshalBinary(f *testing.F) {
	x, y := clusters(22, 2, 2, 16, 8)
	for _, encoding := range encodings {
		s := quick()
		s.Encoding, s.Network.Hidden, s.Network.FineTune.Epochs = encoding, []int{2}, 2
		c, _, err := Fit(f.Context(), x, y, nil, s)
		if err != nil {
			f.Fatal(err)
		}
		b, err := c.AppendBinary(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkUnmarshal(t, b) })
}
